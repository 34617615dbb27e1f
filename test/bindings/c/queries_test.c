/* Expressions and queries. Table item has rows 1 to 1000: test/bindings/c/main.c. */

#include "test/bindings/c/checks.h"

static flugs_expr* binary(flugs_op op, flugs_expr* a, flugs_expr* b) {
  return flugs_expr_binary(op, a, b);
}

/* The number of rows for which a condition is true. */
static int64_t rows_where(flugs_transaction* t, flugs_expr* condition) {
  flugs_query* query = query_of("item");
  OK(flugs_query_where(query, condition));
  const int64_t rows = run(query, t, NULL);
  flugs_query_free(query);
  return rows;
}

static flugs_expr* many(flugs_op op, size_t count, flugs_expr* a, flugs_expr* b, flugs_expr* c,
                        flugs_expr* d, flugs_expr* e) {
  flugs_expr* const arguments[] = {a, b, c, d, e};
  return flugs_expr_op(op, arguments, count);
}

static void comparisons(flugs_transaction* t) {
  CHECK(rows_where(t, binary(FLUGS_OP_EQUAL, column("id"), int64_constant(7))) == 1);
  CHECK(rows_where(t, binary(FLUGS_OP_NOT_EQUAL, column("id"), int64_constant(7))) == 999);
  CHECK(rows_where(t, binary(FLUGS_OP_LESS, column("id"), int64_constant(7))) == 6);
  CHECK(rows_where(t, binary(FLUGS_OP_LESS_EQUAL, column("id"), int64_constant(7))) == 7);
  CHECK(rows_where(t, binary(FLUGS_OP_GREATER, column("id"), int64_constant(7))) == 993);
  CHECK(rows_where(t, binary(FLUGS_OP_GREATER_EQUAL, column("id"), int64_constant(7))) == 994);
  CHECK(rows_where(t, flugs_expr_unary(FLUGS_OP_IS_NULL, column("flag"))) == 142);
  CHECK(rows_where(t, flugs_expr_unary(FLUGS_OP_IS_NOT_NULL, column("flag"))) == 858);
  CHECK(rows_where(t, flugs_expr_unary(FLUGS_OP_NOT, column("flag"))) == 429);
  CHECK(rows_where(t, many(FLUGS_OP_BETWEEN, 3, column("id"), int64_constant(5), int64_constant(9),
                           NULL, NULL)) == 5);
  CHECK(rows_where(t, many(FLUGS_OP_IN, 4, column("id"), int64_constant(5), int64_constant(9),
                           int64_constant(5000), NULL)) == 2);
  flugs_expr* first = binary(FLUGS_OP_LESS, column("id"), int64_constant(11));
  flugs_expr* second = binary(FLUGS_OP_EQUAL, column("name"), text_constant("name 1"));
  CHECK(rows_where(t, binary(FLUGS_OP_AND, flugs_expr_copy(first), flugs_expr_copy(second))) == 1);
  CHECK(rows_where(t, binary(FLUGS_OP_OR, flugs_expr_copy(first), flugs_expr_copy(second))) == 109);
  CHECK(rows_where(t, many(FLUGS_OP_AND, 3, first, second,
                           binary(FLUGS_OP_EQUAL, column("id"), int64_constant(2)), NULL, NULL)) ==
        0);
}

static void functions(flugs_transaction* t) {
  CHECK(rows_where(
            t, binary(FLUGS_OP_EQUAL, binary(FLUGS_OP_REMAINDER, column("id"), int64_constant(10)),
                      int64_constant(3))) == 100);
  CHECK(rows_where(t, binary(FLUGS_OP_LESS,
                             binary(FLUGS_OP_MINUS,
                                    binary(FLUGS_OP_TIMES, column("id"), int64_constant(2)),
                                    binary(FLUGS_OP_PLUS, column("id"), int64_constant(1))),
                             int64_constant(5))) == 5);
  CHECK(
      rows_where(t, binary(FLUGS_OP_EQUAL, binary(FLUGS_OP_DIVIDE, column("id"), int64_constant(4)),
                           column("weight"))) == 1000);
  CHECK(rows_where(t, binary(FLUGS_OP_STARTS_WITH, column("name"), text_constant("name"))) == 1000);
  CHECK(rows_where(t, binary(FLUGS_OP_ENDS_WITH, column("name"), text_constant(" 4"))) == 100);
  CHECK(rows_where(t, binary(FLUGS_OP_CONTAINS, column("name"), text_constant("e 7"))) == 100);
  CHECK(rows_where(t, binary(FLUGS_OP_EQUAL, flugs_expr_unary(FLUGS_OP_YEAR, column("day")),
                             int64_constant(1970))) == 364);
  CHECK(rows_where(t, binary(FLUGS_OP_EQUAL, flugs_expr_unary(FLUGS_OP_MONTH, column("day")),
                             int64_constant(2))) == 85);
  CHECK(rows_where(t, binary(FLUGS_OP_EQUAL, flugs_expr_unary(FLUGS_OP_DAY, column("moment")),
                             int64_constant(1))) == 1000);
  CHECK(rows_where(t, binary(FLUGS_OP_EQUAL,
                             many(FLUGS_OP_SUBSTRING, 3, column("name"), int64_constant(6),
                                  int64_constant(1), NULL, NULL),
                             text_constant("8"))) == 100);
  CHECK(rows_where(t, binary(FLUGS_OP_EQUAL, flugs_expr_unary(FLUGS_OP_FIRST_BYTE, column("name")),
                             int64_constant('n'))) == 1000);
  CHECK(rows_where(t, binary(FLUGS_OP_EQUAL, flugs_expr_unary(FLUGS_OP_TO_DOUBLE, column("id")),
                             int64_constant(9))) == 1);
  flugs_expr* cases = many(
      FLUGS_OP_CASE, 5, binary(FLUGS_OP_LESS, column("id"), int64_constant(5)), int64_constant(1),
      binary(FLUGS_OP_LESS, column("id"), int64_constant(8)), int64_constant(2), int64_constant(3));
  CHECK(rows_where(t, binary(FLUGS_OP_EQUAL, cases, int64_constant(2))) == 3);
}

/* A text is row 7's name, or a constant: each condition holds for one row or for none. */
static int64_t is_text(flugs_transaction* t, flugs_expr* text, const char* expected) {
  return rows_where(t,
                    many(FLUGS_OP_AND, 2, binary(FLUGS_OP_EQUAL, column("id"), int64_constant(7)),
                         binary(FLUGS_OP_EQUAL, text, text_constant(expected)), NULL, NULL, NULL));
}

static int64_t is_number(flugs_transaction* t, flugs_expr* number, int64_t expected) {
  return rows_where(
      t, many(FLUGS_OP_AND, 2, binary(FLUGS_OP_EQUAL, column("id"), int64_constant(7)),
              binary(FLUGS_OP_EQUAL, number, int64_constant(expected)), NULL, NULL, NULL));
}

static flugs_expr* one(flugs_op op, flugs_expr* argument) { return flugs_expr_unary(op, argument); }

static void functions_of_texts(flugs_transaction* t) {
  CHECK(rows_where(t, binary(FLUGS_OP_LIKE, column("name"), text_constant("n%e _"))) == 1000);
  CHECK(rows_where(t, many(FLUGS_OP_LIKE, 3, column("name"), text_constant("name!_7"),
                           text_constant("!"), NULL, NULL)) == 0);
  CHECK(is_text(t, one(FLUGS_OP_UPPER, column("name")), "NAME 7"));
  CHECK(is_text(t, one(FLUGS_OP_LOWER, text_constant("ABC")), "abc"));
  CHECK(is_number(t, one(FLUGS_OP_LENGTH, text_constant("\xc3\xa4")), 1));
  CHECK(is_number(t, one(FLUGS_OP_BYTE_LENGTH, text_constant("\xc3\xa4")), 2));
  CHECK(is_text(t, one(FLUGS_OP_TRIM, text_constant(" a ")), "a"));
  CHECK(is_text(t, binary(FLUGS_OP_TRIM, text_constant(" a "), int64_constant(1)), "a "));
  CHECK(is_text(t,
                many(FLUGS_OP_CONCAT, 3, column("name"), text_constant("/"),
                     one(FLUGS_OP_TO_TEXT, column("id")), NULL, NULL),
                "name 7/7"));
  CHECK(is_number(t, binary(FLUGS_OP_POSITION, column("name"), text_constant("7")), 6));
  CHECK(is_number(t, one(FLUGS_OP_TO_INT64, text_constant("12")), 12));
}

static void regular_expressions(flugs_transaction* t) {
  CHECK(rows_where(t, binary(FLUGS_OP_MATCHES, column("name"), text_constant("e [34]$"))) == 200);
  CHECK(
      is_text(t, binary(FLUGS_OP_REGEXP_EXTRACT, column("name"), text_constant("[a-z]+")), "name"));
  CHECK(is_text(t,
                many(FLUGS_OP_REGEXP_EXTRACT, 3, column("name"), text_constant("(.)e (.)"),
                     int64_constant(2), NULL, NULL),
                "7"));
  CHECK(is_text(t,
                many(FLUGS_OP_REGEXP_REPLACE, 3, column("name"), text_constant("[a-e]"),
                     text_constant("<\\0>"), NULL, NULL),
                "n<a>me 7"));
  CHECK(is_text(t,
                many(FLUGS_OP_REGEXP_REPLACE, 4, column("name"), text_constant("[a-e]"),
                     text_constant("_"), int64_constant(1), NULL),
                "n_m_ 7"));
}

static void functions_of_numbers(flugs_transaction* t) {
  flugs_expr* half = binary(FLUGS_OP_DIVIDE, column("id"), int64_constant(-2));
  CHECK(is_number(t, one(FLUGS_OP_FLOOR, flugs_expr_copy(half)), -4));
  CHECK(is_number(t, one(FLUGS_OP_CEILING, flugs_expr_copy(half)), -3));
  CHECK(is_number(t, one(FLUGS_OP_ROUND, flugs_expr_copy(half)), -4));
  CHECK(is_number(t, one(FLUGS_OP_ROUND, one(FLUGS_OP_ABSOLUTE, flugs_expr_copy(half))), 4));
  CHECK(is_number(t, one(FLUGS_OP_TO_INT64, half), -3));
  CHECK(is_number(t, binary(FLUGS_OP_ROUND, column("id"), int64_constant(-1)), 10));
  CHECK(is_number(t, binary(FLUGS_OP_QUOTIENT, column("id"), int64_constant(2)), 3));
  CHECK(is_number(t, one(FLUGS_OP_SQUARE_ROOT, int64_constant(49)), 7));
  CHECK(is_number(t, one(FLUGS_OP_LOGARITHM, int64_constant(1)), 0));
  CHECK(is_number(t, one(FLUGS_OP_EXPONENTIAL, int64_constant(0)), 1));
  CHECK(is_number(t, binary(FLUGS_OP_POWER, column("id"), int64_constant(2)), 49));
  CHECK(is_number(t, binary(FLUGS_OP_TO_DECIMAL, column("id"), int64_constant(2)), 7));
}

/* Row 7's day is 1970-01-08, a Thursday. */
static void functions_of_times(flugs_transaction* t) {
  CHECK(is_number(t, one(FLUGS_OP_QUARTER, column("day")), 1));
  CHECK(is_number(t, one(FLUGS_OP_DAY_OF_YEAR, column("day")), 8));
  CHECK(is_number(t, one(FLUGS_OP_WEEKDAY, column("day")), 4));
  CHECK(is_number(t, one(FLUGS_OP_HOUR, column("day")), 0));
  CHECK(is_number(t, one(FLUGS_OP_MINUTE, one(FLUGS_OP_TO_TIMESTAMP, column("day"))), 0));
  CHECK(is_number(t, one(FLUGS_OP_SECOND, column("day")), 0));
  CHECK(is_text(
      t,
      one(FLUGS_OP_TO_TEXT, binary(FLUGS_OP_TRUNCATE_TIME, column("day"), text_constant("week"))),
      "1970-01-05"));
  CHECK(is_text(t,
                one(FLUGS_OP_TO_TEXT, binary(FLUGS_OP_ADD_MONTHS,
                                             one(FLUGS_OP_TO_DATE, column("day")), column("id"))),
                "1970-08-08"));
}

/* What is wrong in an expression is told by the call that uses it. */
static void wrong_expressions(flugs_transaction* t) {
  flugs_query* query = query_of("item");
#define WRONG(expression, part) \
  FAILS(flugs_query_where(query, (expression)), FLUGS_INVALID_ARGUMENT, (part))
  WRONG(NULL, "expression 0: NULL");
  WRONG(column(NULL), "column is NULL");
  WRONG(flugs_expr_constant(NULL), "constant is NULL");
  WRONG(binary(99, column("id"), column("id")), "no operation has the number 99");
  WRONG(binary(FLUGS_OP_NOT, column("id"), column("id")), "does not have 2 arguments");
  WRONG(flugs_expr_unary(FLUGS_OP_EQUAL, column("id")), "does not have 1 arguments");
  WRONG(flugs_expr_op(FLUGS_OP_AND, NULL, 2), "expressions: NULL");
  WRONG(flugs_expr_named(column("id"), NULL), "name of an expression is NULL");
  WRONG(flugs_expr_copy(NULL), "expression: NULL");
  WRONG(binary(FLUGS_OP_CONTAINS, column("name"), column("raw")), "constant text");
  WRONG(binary(FLUGS_OP_LIKE, column("name"), column("raw")), "constant text");
  WRONG(many(FLUGS_OP_LIKE, 3, column("name"), text_constant("a"), text_constant("ab"), NULL, NULL),
        "single byte");
  WRONG(binary(FLUGS_OP_MATCHES, column("name"), int64_constant(1)), "constant text");
  WRONG(many(FLUGS_OP_REGEXP_EXTRACT, 3, column("name"), text_constant("a"), int64_constant(-1),
             NULL, NULL),
        "from 0 on");
  WRONG(many(FLUGS_OP_REGEXP_REPLACE, 4, column("name"), text_constant("a"), text_constant("b"),
             int64_constant(2), NULL),
        "0 or 1");
  WRONG(binary(FLUGS_OP_TRUNCATE_TIME, column("day"), text_constant("decade")), "constant text");
  WRONG(binary(FLUGS_OP_TRIM, column("name"), int64_constant(4)), "must be 1, 2 or 3");
  WRONG(binary(FLUGS_OP_ROUND, column("id"), column("id")), "constant integer");
  WRONG(binary(FLUGS_OP_TO_DECIMAL, column("id"), int64_constant(300)), "0 to 18");
  WRONG(binary(FLUGS_OP_OR, column("id"), flugs_expr_unary(77, column("id"))), "number 77");
  flugs_value no_scale = flugs_decimal(1, -1);
  WRONG(flugs_expr_constant(&no_scale), "scale");
  flugs_expr* twice = column("id");
  WRONG(binary(FLUGS_OP_EQUAL, twice, twice), "taken over before");
#undef WRONG
  /* A column that is not there shows when the query runs. */
  OK(flugs_query_where(query, column("nothing")));
  struct ArrowArrayStream stream;
  FAILS(flugs_query_stream(query, t, NULL, &stream), FLUGS_INVALID_ARGUMENT, "nothing");
  CHECK(stream.release == NULL);
  flugs_query_free(query);

  char* text = NULL;
  flugs_expr* expression = binary(FLUGS_OP_LESS, column("id"), int64_constant(5));
  OK(flugs_expr_text(expression, &text));
  CHECK(strcmp(text, "id < 5") == 0);
  flugs_text_free(text);
  flugs_expr_free(expression);
  expression = column(NULL);
  FAILS(flugs_expr_text(expression, &text), FLUGS_INVALID_ARGUMENT, "NULL");
  flugs_expr_free(expression);
}

static void groups_and_order(flugs_transaction* t) {
  flugs_query* query = query_of("item");
  flugs_expr* by_name[] = {column("name")};
  const flugs_aggregate figures[] = {
      {FLUGS_SUM, 0, column("id"), "total"},
      {FLUGS_COUNT_ROWS, 0, NULL, NULL},
      {FLUGS_COUNT, 0, column("flag"), "flags"},
      {FLUGS_COUNT_DISTINCT, 0, column("id"), "ids"},
      {FLUGS_MIN, 0, column("id"), "least"},
      {FLUGS_MAX, 0, column("id"), "most"},
      {FLUGS_AVG, 0, column("weight"), "mean"},
      {FLUGS_VARIANCE, 0, column("id"), "variance"},
      {FLUGS_STDDEV, 0, column("id"), "deviation"},
      {FLUGS_MEDIAN, 0, column("id"), "median"},
      {FLUGS_QUANTILE, 0, column("id"), "first"},
      {FLUGS_QUANTILE, 1000000, column("id"), "last"},
      {FLUGS_APPROX_COUNT_DISTINCT, 0, column("id"), "about"},
  };
  OK(flugs_query_group_by(query, by_name, 1, figures, sizeof figures / sizeof *figures));
  OK(flugs_query_where(query, binary(FLUGS_OP_GREATER, column("least"), int64_constant(5))));
  flugs_expr* by_total[] = {column("total"), column("name")};
  const uint8_t down[] = {1, 0};
  OK(flugs_query_order_by(query, by_total, down, 2));
  OK(flugs_query_limit(query, 3, 1));
  flugs_expr* outputs[] = {flugs_expr_named(column("total"), "t"), column("least")};
  OK(flugs_query_select(query, outputs, 2));
  int64_t sum = 0;
  CHECK(run(query, t, &sum) == 3);
  /* Totals of names 6 to 9 and of 0 are 50000 - 500 + 100 * digit, with 10 for 0. */
  CHECK(sum == 50400 + 50300 + 50200);

  char* plan = NULL;
  OK(flugs_query_explain(query, t, NULL, &plan));
  CHECK(strstr(plan, "item") != NULL);
  flugs_text_free(plan);
  flugs_query_free(query);

  query = query_of("item");
  const flugs_aggregate wrong = {FLUGS_SUM, 0, NULL, NULL};
  FAILS(flugs_query_group_by(query, NULL, 0, &wrong, 1), FLUGS_INVALID_ARGUMENT, "have one");
  const flugs_aggregate worse = {99, 0, column("id"), NULL};
  FAILS(flugs_query_group_by(query, NULL, 0, &worse, 1), FLUGS_INVALID_ARGUMENT, "number 9");
  flugs_query_free(query);
}

static int64_t joined(flugs_transaction* t, flugs_join kind, const char* right_prefix) {
  flugs_query* left = query_of("item");
  flugs_query* right = query_of("item");
  OK(flugs_query_where(right, binary(FLUGS_OP_LESS_EQUAL, column("id"), int64_constant(10))));
  OK(flugs_query_as(right, right_prefix));
  flugs_expr* left_keys[] = {column("id")};
  flugs_expr* right_keys[] = {column("r.id")};
  OK(flugs_query_join(
      left, kind, right, left_keys, right_keys, 1,
      kind == FLUGS_JOIN_INNER ? binary(FLUGS_OP_LESS, column("r.id"), int64_constant(6)) : NULL));
  flugs_query_free(right);
  const int64_t rows = run(left, t, NULL);
  flugs_query_free(left);
  return rows;
}

static void joins_and_copies(flugs_transaction* t) {
  CHECK(joined(t, FLUGS_JOIN_INNER, "r") == 5);
  CHECK(joined(t, FLUGS_JOIN_LEFT, "r") == 1000);
  CHECK(joined(t, FLUGS_JOIN_SEMI, "r") == 10);
  CHECK(joined(t, FLUGS_JOIN_ANTI, "r") == 990);
  flugs_query* query = query_of("item");
  flugs_expr* keys[] = {column("id")};
  flugs_expr* others[] = {column("id")};
  FAILS(flugs_query_join(query, 4, query, keys, others, 1, NULL), FLUGS_INVALID_ARGUMENT, "kind");
  keys[0] = column("id");
  others[0] = column("id");
  FAILS(flugs_query_join(query, 0, NULL, keys, others, 1, NULL), FLUGS_INVALID_ARGUMENT, "right");

  flugs_query* copy = NULL;
  OK(flugs_query_copy(query, &copy));
  const char* names[] = {"name"};
  OK(flugs_query_select_columns(copy, names, 1));
  OK(flugs_query_distinct(copy));
  CHECK(run(copy, t, NULL) == 10);
  CHECK(run(query, t, NULL) == 1000);
  flugs_query_free(copy);
  flugs_expr* outputs[] = {flugs_expr_op(FLUGS_OP_ROW_ID, NULL, 0)};
  OK(flugs_query_select(query, outputs, 1));
  int64_t sum = 0;
  CHECK(run(query, t, &sum) == 1000 && sum > 0);
  flugs_query_free(query);
}

void test_queries(void) {
  uint32_t table = 0;
  flugs_database* database = open_items(&table);
  add_items(database, table, 1, 1000);
  flugs_transaction* t = begin(database);
  comparisons(t);
  functions(t);
  functions_of_texts(t);
  regular_expressions(t);
  functions_of_numbers(t);
  functions_of_times(t);
  wrong_expressions(t);
  groups_and_order(t);
  joins_and_copies(t);
  flugs_options* options = NULL;
  OK(flugs_options_create(&options));
  OK(flugs_options_set(options, "threads", "1"));
  OK(flugs_options_set(options, "memory_bytes_max", "100"));
  flugs_query* query = query_of("item");
  flugs_expr* keys[] = {column("id")};
  OK(flugs_query_order_by(query, keys, NULL, 1));
  struct ArrowArrayStream stream;
  FAILS(flugs_query_stream(query, t, options, &stream), FLUGS_OUT_OF_MEMORY, "memory");
  // 1000 rows to sort, in less memory than they take: they would go to a file in the folder.
  OK(flugs_options_set(options, "memory_bytes_max", "200000"));
  OK(flugs_options_set(options, "temporary_folder", "/nowhere/at all"));
  FAILS(flugs_query_stream(query, t, options, &stream), FLUGS_IO_ERROR, "/nowhere/at all");
  OK(flugs_options_set(options, "memory_bytes_max", "1000000"));
  OK(flugs_query_stream(query, t, options, &stream));
  stream.release(&stream);
  flugs_query_free(query);
  flugs_options_free(options);
  flugs_transaction_free(t);
  flugs_database_free(database);
}
