/* Tables: what a schema can say, and what a table says of itself. */

#include "test/bindings/c/checks.h"

static flugs_database* in_memory(void) {
  flugs_options* options = NULL;
  OK(flugs_options_create(&options));
  OK(flugs_options_set(options, "max_bytes", "64M"));
  OK(flugs_options_set(options, "segment_bytes", "4M"));
  OK(flugs_options_set(options, "index_place", "dram"));
  OK(flugs_options_set(options, "ready", "indexes-built"));
  OK(flugs_options_set(options, "merge", "false"));
  flugs_database* database = NULL;
  OK(flugs_database_open(NULL, options, &database));
  flugs_options_free(options);
  return database;
}

static void check_has(const char* text, const char* part) {
  if (strstr(text, part) != NULL) return;
  fprintf(stderr, "%s\nhas no\n%s\n", text, part);
  give_up();
}

static flugs_schema* customers(void) {
  flugs_schema* schema = NULL;
  OK(flugs_schema_create("customer", &schema));
  FAILS(flugs_schema_not_null(schema), FLUGS_INVALID_ARGUMENT, "no column");
  FAILS(flugs_schema_ordered(schema), FLUGS_INVALID_ARGUMENT, "no key");
  OK(flugs_schema_column(schema, "id", FLUGS_INT64));
  OK(flugs_schema_auto_increment(schema));
  OK(flugs_schema_column(schema, "mail", FLUGS_STRING));
  OK(flugs_schema_not_null(schema));
  OK(flugs_schema_encoding(schema, FLUGS_ENCODING_DIRECT));
  OK(flugs_schema_column(schema, "credit", FLUGS_DECIMAL));
  OK(flugs_schema_scale(schema, 2));
  flugs_value nothing = flugs_decimal(150, 2);
  OK(flugs_schema_default(schema, &nothing));
  OK(flugs_schema_expect_distinct(schema, 100));
  FAILS(flugs_schema_scale(schema, 19), FLUGS_INVALID_ARGUMENT, "0 to 18");
  FAILS(flugs_schema_encoding(schema, 3), FLUGS_INVALID_ARGUMENT, "encoding");
  FAILS(flugs_schema_column(schema, "x", 10), FLUGS_INVALID_ARGUMENT, "number 10");
  FAILS(flugs_schema_column(schema, NULL, FLUGS_INT64), FLUGS_INVALID_ARGUMENT, "name");
  FAILS(flugs_schema_default(schema, NULL), FLUGS_INVALID_ARGUMENT, "value");

  const char* mail[] = {"mail"};
  const char* id[] = {"id"};
  const char* both[] = {"mail", "id"};
  const char* broken[] = {NULL};
  OK(flugs_schema_unique_key(schema, "by_mail", mail, 1));
  FAILS(flugs_schema_unique_key(schema, "by_mail", mail, 1), FLUGS_INVALID_ARGUMENT, "by_mail");
  FAILS(flugs_schema_key(schema, "k", broken, 1), FLUGS_INVALID_ARGUMENT, "name 0 is NULL");
  OK(flugs_schema_primary_key(schema, id, 1));
  OK(flugs_schema_ordered(schema)); /* the primary key, though it is the first one now */
  OK(flugs_schema_unique_key(schema, "both", both, 2));
  OK(flugs_schema_hash_prefix(schema, 1));
  FAILS(flugs_schema_hash_prefix(schema, 3), FLUGS_INVALID_ARGUMENT, "more than");
  OK(flugs_schema_check(
      schema, "paid",
      flugs_expr_binary(FLUGS_OP_GREATER_EQUAL, column("credit"), int64_constant(0))));
  FAILS(flugs_schema_check(schema, NULL, column("id")), FLUGS_INVALID_ARGUMENT, "name");
  FAILS(flugs_schema_check(schema, "c", NULL), FLUGS_INVALID_ARGUMENT, "expression 0");
  OK(flugs_schema_delta_layout(schema, FLUGS_DELTA_COLUMNS));
  FAILS(flugs_schema_delta_layout(schema, 2), FLUGS_INVALID_ARGUMENT, "layout");
  OK(flugs_schema_column_group(schema, both, 2));
  FAILS(flugs_schema_column_group(schema, broken, 1), FLUGS_INVALID_ARGUMENT, "name 0 is NULL");
  return schema;
}

static flugs_schema* orders(void) {
  flugs_schema* schema = NULL;
  const char* customer[] = {"customer"};
  OK(flugs_schema_create("orders", &schema));
  OK(flugs_schema_column(schema, "number", FLUGS_INT32));
  OK(flugs_schema_column(schema, "customer", FLUGS_INT64));
  OK(flugs_schema_foreign_key(schema, "of", customer, 1, "customer", NULL, FLUGS_CASCADE,
                              FLUGS_SET_NULL));
  FAILS(flugs_schema_foreign_key(schema, "of", customer, 1, NULL, NULL, 0, 0),
        FLUGS_INVALID_ARGUMENT, "table");
  FAILS(flugs_schema_foreign_key(schema, "of", customer, 1, "customer", NULL, 3, 0),
        FLUGS_INVALID_ARGUMENT, "on_delete");
  return schema;
}

static void set_groups(flugs_database* database, uint32_t order) {
  const char* both[] = {"number", "customer"};
  const char* unknown[] = {"nothing"};
  flugs_schema* groups = NULL;
  OK(flugs_schema_create("groups", &groups));
  OK(flugs_schema_column_group(groups, both, 2));
  OK(flugs_table_set_column_groups(database, order, groups));
  FAILS(flugs_table_set_column_groups(database, 99, groups), FLUGS_NOT_FOUND, "");
  FAILS(flugs_table_set_column_groups(database, order, NULL), FLUGS_INVALID_ARGUMENT, "groups");
  OK(flugs_schema_column_group(groups, unknown, 1));
  FAILS(flugs_table_set_column_groups(database, order, groups), FLUGS_INVALID_ARGUMENT, "nothing");
  flugs_schema_free(groups);
  OK(flugs_table_set_delta_layout(database, order, FLUGS_DELTA_ROWS));
}

static void tables_describe_themselves(flugs_database* database, uint32_t table, uint32_t order) {
  char* text = NULL;
  OK(flugs_table_describe(database, table, &text));
  check_has(text, "{\"name\":\"customer\",\"columns\":[{\"name\":\"id\",\"type\":\"int64\"");
  check_has(text, "\"auto_increment\":true");
  check_has(text, "\"encoding\":\"direct\"");
  check_has(text, "\"scale\":2");
  check_has(text, "\"default\":\"1.50\"");
  check_has(text,
            "{\"name\":\"primary\",\"columns\":[\"id\"],\"unique\":true,\"ordered\":true,"
            "\"hashed_columns\":1}");
  check_has(text, "{\"name\":\"both\",\"columns\":[\"mail\",\"id\"],\"unique\":true,\"ordered\":");
  check_has(text, "\"hashed_columns\":1}");
  check_has(text, "\"checks\":[{\"name\":\"paid\",\"condition\":\"credit >= 0.00\"}]");
  check_has(text, "\"delta_layout\":\"columns\",\"column_groups\":[[\"mail\",\"id\"]]");
  flugs_text_free(text);
  OK(flugs_table_set_delta_layout(database, order, FLUGS_DELTA_COLUMNS));
  OK(flugs_table_set_delta_layout(database, order, FLUGS_DELTA_ROWS));
  FAILS(flugs_table_set_delta_layout(database, order, 2), FLUGS_INVALID_ARGUMENT, "layout");
  FAILS(flugs_table_set_delta_layout(database, 99, FLUGS_DELTA_ROWS), FLUGS_NOT_FOUND, "");
  set_groups(database, order);
  OK(flugs_table_describe(database, order, &text));
  check_has(
      text,
      "{\"name\":\"of\",\"columns\":[\"customer\"],\"table\":\"customer\",\"key\":\"primary\","
      "\"on_delete\":\"cascade\",\"on_update\":\"set null\"}");
  flugs_text_free(text);
  FAILS(flugs_table_describe(database, 99, &text), FLUGS_NOT_FOUND, "");

  struct ArrowSchema schema;
  OK(flugs_table_arrow_schema(database, table, &schema));
  CHECK(strcmp(schema.format, "+s") == 0 && schema.n_children == 3);
  CHECK(strcmp(schema.children[0]->format, "l") == 0);
  CHECK(strcmp(schema.children[2]->name, "credit") == 0);
  CHECK(strncmp(schema.children[2]->format, "d:", 2) == 0);
  schema.release(&schema);
}

static void refusals_name_their_part(flugs_database* database, uint32_t table) {
  flugs_transaction* t = begin(database);
  flugs_value row[3] = {flugs_null(), flugs_null(), flugs_decimal(1, 0)};
  flugs_error* error = flugs_insert(t, table, row, 3, NULL);
  CHECK(flugs_error_code(error) == FLUGS_CONSTRAINT_VIOLATED);
  CHECK(strcmp(flugs_error_table(error), "customer") == 0);
  CHECK(strcmp(flugs_error_column(error), "mail") == 0);
  CHECK(flugs_error_key(error) == NULL && flugs_error_constraint(error) == NULL);
  flugs_error_free(error);
  row[1] = flugs_text("a@b", 3);
  row[2] = flugs_decimal(-1, 0);
  error = flugs_insert(t, table, row, 3, NULL);
  CHECK(strcmp(flugs_error_constraint(error), "paid") == 0 && flugs_error_column(error) == NULL);
  flugs_error_free(error);
  flugs_transaction_free(t);
}

void test_schemas(void) {
  flugs_database* database = in_memory();
  uint32_t table = 0;
  uint32_t order = 0;
  flugs_schema* schema = customers();
  flugs_schema* of_orders = orders();
  FAILS(flugs_table_create(database, of_orders, &order), FLUGS_INVALID_ARGUMENT, "customer");
  OK(flugs_table_create(database, schema, &table));
  OK(flugs_table_create(database, of_orders, &order));
  flugs_error* error = flugs_table_create(database, schema, NULL);
  CHECK(flugs_error_code(error) == FLUGS_ALREADY_EXISTS);
  CHECK(strcmp(flugs_error_table(error), "customer") == 0);
  CHECK(flugs_error_key(error) == NULL && flugs_error_constraint(error) == NULL);
  flugs_error_free(error);
  uint32_t again = 0;
  OK(flugs_table_ensure(database, schema, &again));
  CHECK(again == table);
  OK(flugs_table_find(database, "customer", &again));
  CHECK(again == table);
  FAILS(flugs_table_find(database, "nobody", &again), FLUGS_NOT_FOUND, "nobody");
  CHECK(again == 0);
  tables_describe_themselves(database, table, order);
  refusals_name_their_part(database, table);

  uint32_t ids[1] = {0};
  size_t count = 0;
  OK(flugs_table_list(database, ids, 1, &count));
  CHECK(count == 2 && ids[0] == table);
  FAILS(flugs_table_drop(database, table), FLUGS_CONSTRAINT_VIOLATED, "of");
  OK(flugs_table_drop(database, order));
  OK(flugs_table_drop(database, table));
  FAILS(flugs_table_drop(database, table), FLUGS_NOT_FOUND, "");
  flugs_schema_free(schema);
  flugs_schema_free(of_orders);
  flugs_database_free(database);
}
