/* Values and single rows. */

#include "test/bindings/c/checks.h"

void test_values(void) {
  uint32_t table = 0;
  flugs_database* database = open_items(&table);
  flugs_transaction* t = begin(database);
  char text[32];
  flugs_value row[ITEM_COLUMNS];
  item_row(1, row, text);
  OK(flugs_insert(t, table, row, ITEM_COLUMNS, NULL));

  item_row(2, row, text);
  row[1].type = 77;
  FAILS(flugs_insert(t, table, row, ITEM_COLUMNS, NULL), FLUGS_INVALID_ARGUMENT,
        "value 1: no type has the number 77");
  row[1] = flugs_of_number(FLUGS_INT32, (int64_t)1 << 40, 0);
  FAILS(flugs_insert(t, table, row, ITEM_COLUMNS, NULL), FLUGS_INVALID_ARGUMENT, "32 bits");
  row[1] = flugs_decimal(1, 19);
  FAILS(flugs_insert(t, table, row, ITEM_COLUMNS, NULL), FLUGS_INVALID_ARGUMENT, "scale 19");
  row[1] = flugs_of_text(FLUGS_STRING, NULL, 5);
  FAILS(flugs_insert(t, table, row, ITEM_COLUMNS, NULL), FLUGS_INVALID_ARGUMENT, "data is NULL");
  row[1] = flugs_string("yes");
  FAILS(flugs_insert(t, table, row, ITEM_COLUMNS, NULL), FLUGS_CONSTRAINT_VIOLATED, "flag");
  row[1] = flugs_of_number(FLUGS_BOOL, 7, 0); /* every number but 0 is true */
  row[3] = flugs_decimal(5, -1);              /* units of the column's scale */
  row[7] = flugs_of_text(FLUGS_STRING, NULL, 0);
  OK(flugs_insert(t, table, row, ITEM_COLUMNS, NULL));
  FAILS(flugs_insert(t, table, NULL, ITEM_COLUMNS, NULL), FLUGS_INVALID_ARGUMENT, "values: NULL");

  static const char* const kColumns[] = {"flag", "price", "name"};
  flugs_lookup* lookup = NULL;
  OK(flugs_lookup_create(database, table, NULL, kColumns, 3, &lookup));
  flugs_value key = flugs_int32(2);
  flugs_value found[3];
  OK(flugs_find(t, lookup, &key, 1, found, 3));
  CHECK(found[0].type == FLUGS_BOOL && found[0].number == 1);
  CHECK(found[1].type == FLUGS_DECIMAL && found[1].number == 5 && found[1].scale == 2);
  CHECK(found[2].type == FLUGS_STRING && found[2].size == 0);
  flugs_lookup_free(lookup);
  commit(t);
  flugs_database_free(database);
}

static void all_types_come_back(flugs_database* database, uint32_t table) {
  static const char* const kColumns[ITEM_COLUMNS] = {"id",  "flag",   "small", "price", "weight",
                                                     "day", "moment", "name",  "raw"};
  flugs_lookup* lookup = NULL;
  OK(flugs_lookup_create(database, table, "primary", kColumns, ITEM_COLUMNS, &lookup));
  flugs_transaction* t = begin_reading(database);
  char text[32];
  for (int64_t id = 1; id <= 30; ++id) {
    flugs_value wanted[ITEM_COLUMNS];
    flugs_value found[ITEM_COLUMNS];
    item_row(id, wanted, text);
    OK(flugs_find(t, lookup, wanted, 1, found, ITEM_COLUMNS));
    for (int i = 0; i < ITEM_COLUMNS; ++i) {
      CHECK(found[i].type == wanted[i].type && found[i].size == wanted[i].size);
      if (i == 4) CHECK(found[i].real == wanted[i].real);
      if (i < 7 && i != 4) CHECK(found[i].number == wanted[i].number);
      if (i >= 7) CHECK(memcmp(found[i].data, wanted[i].data, found[i].size) == 0);
    }
  }
  flugs_transaction_free(t);
  flugs_lookup_free(lookup);
}

static void errors_name_table_and_key(flugs_database* database, uint32_t table) {
  static const char* const kColumns[] = {"weight"};
  flugs_lookup* lookup = NULL;
  flugs_value value;
  flugs_value key = flugs_int64(99);
  flugs_error* error = flugs_lookup_create(database, table, "by_name", kColumns, 1, &lookup);
  CHECK(flugs_error_code(error) == FLUGS_INVALID_ARGUMENT && lookup == NULL);
  CHECK(strcmp(flugs_error_key(error), "by_name") == 0);
  flugs_error_free(error);
  FAILS(flugs_lookup_create(database, table, "none", kColumns, 1, &lookup), FLUGS_NOT_FOUND,
        "none");
  FAILS(flugs_lookup_create(database, 99, NULL, kColumns, 1, &lookup), FLUGS_NOT_FOUND, "");
  OK(flugs_lookup_create(database, table, NULL, kColumns, 1, &lookup));

  flugs_transaction* t = begin(database);
  error = flugs_find(t, lookup, &key, 1, &value, 1);
  CHECK(flugs_error_code(error) == FLUGS_NOT_FOUND);
  CHECK(strcmp(flugs_error_message(error), "not found") == 0);
  CHECK(strcmp(flugs_error_table(error), "item") == 0);
  CHECK(strcmp(flugs_error_key(error), "primary") == 0);
  flugs_error_free(error);
  flugs_value two[2] = {key, key};
  FAILS(flugs_find(t, lookup, two, 2, &value, 1), FLUGS_INVALID_ARGUMENT, "");
  FAILS(flugs_find(t, lookup, &key, 1, &value, 2), FLUGS_INVALID_ARGUMENT, "");
  FAILS(flugs_find(t, lookup, &key, 1, NULL, 1), FLUGS_INVALID_ARGUMENT, "out: NULL");
  FAILS(flugs_find(t, NULL, &key, 1, &value, 1), FLUGS_INVALID_ARGUMENT, "lookup");

  /* A conflict: another transaction has changed the row since. */
  flugs_transaction* first = begin(database);
  key = flugs_int64(1);
  value = flugs_double(2);
  OK(flugs_update(first, lookup, &key, 1, &value, 1));
  commit(first);
  error = flugs_update(t, lookup, &key, 1, &value, 1);
  CHECK(flugs_error_code(error) == FLUGS_CONFLICT);
  CHECK(strcmp(flugs_error_table(error), "item") == 0);
  CHECK(strlen(flugs_error_message(error)) > strlen("conflict: "));
  flugs_error_free(error);
  flugs_transaction_free(t);
  flugs_lookup_free(lookup);
}

static void rows_change_by_key(flugs_database* database, uint32_t table) {
  static const char* const kColumns[] = {"small", "name"};
  flugs_lookup* lookup = NULL;
  OK(flugs_lookup_create(database, table, NULL, kColumns, 2, &lookup));
  flugs_transaction* t = begin(database);
  flugs_value key = flugs_int64(5);
  flugs_value changed[2] = {flugs_int32(-5), flugs_string("changed")};
  flugs_value found[2];
  OK(flugs_update(t, lookup, &key, 1, changed, 2));
  OK(flugs_find(t, lookup, &key, 1, found, 2));
  CHECK(found[0].number == -5 && found[1].size == 7);
  FAILS(flugs_update(t, lookup, &key, 1, changed, 1), FLUGS_INVALID_ARGUMENT, "");

  char text[32];
  flugs_value row[ITEM_COLUMNS];
  int32_t inserted = -1;
  item_row(5, row, text); /* exists: only "small" and "name" get the row's values */
  row[4] = flugs_double(77);
  OK(flugs_upsert(t, lookup, row, ITEM_COLUMNS, &inserted));
  CHECK(inserted == 0);
  OK(flugs_find(t, lookup, &key, 1, found, 2));
  CHECK(found[0].number == 5 && found[1].size == 6);
  item_row(1000, row, text);
  OK(flugs_upsert(t, lookup, row, ITEM_COLUMNS, &inserted));
  CHECK(inserted == 1);

  key = flugs_int64(1000);
  OK(flugs_remove(t, lookup, &key, 1));
  FAILS(flugs_remove(t, lookup, &key, 1), FLUGS_NOT_FOUND, "not found");
  commit(t);
  flugs_lookup_free(lookup);
}

static void many_rows_at_once(flugs_database* database, uint32_t table) {
  char texts[50][32];
  flugs_value rows[50 * ITEM_COLUMNS];
  for (int i = 0; i < 50; ++i) item_row(2000 + i, rows + ITEM_COLUMNS * i, texts[i]);
  flugs_transaction* t = begin(database);
  OK(flugs_insert_rows(t, table, rows, ITEM_COLUMNS, 50));
  FAILS(flugs_insert_rows(t, table, rows, ITEM_COLUMNS, 50), FLUGS_ALREADY_EXISTS, "2000");
  FAILS(flugs_insert_rows(t, table, rows, 3, 150), FLUGS_INVALID_ARGUMENT, "has 9 columns");
  FAILS(flugs_insert_rows(t, table, rows, 0, 7), FLUGS_INVALID_ARGUMENT, "has 9 columns");
  OK(flugs_insert_rows(t, table, rows, ITEM_COLUMNS, 0));
  uint64_t count = 0;
  const char* columns[] = {"weight"};
  flugs_value one = flugs_double(1);
  flugs_expr* value = flugs_expr_binary(FLUGS_OP_PLUS, column("weight"), flugs_expr_constant(&one));
  OK(flugs_update_where(
      t, table, flugs_expr_binary(FLUGS_OP_GREATER_EQUAL, column("id"), int64_constant(2000)),
      columns, &value, 1, &count));
  CHECK(count == 50);
  value = column("weight");
  columns[0] = NULL;
  FAILS(flugs_update_where(t, table, column("flag"), columns, &value, 1, &count),
        FLUGS_INVALID_ARGUMENT, "name 0 is NULL");
  FAILS(flugs_remove_where(t, table, NULL, &count), FLUGS_INVALID_ARGUMENT, "expression 0");
  OK(flugs_remove_where(
      t, table, flugs_expr_binary(FLUGS_OP_GREATER_EQUAL, column("id"), int64_constant(2001)),
      &count));
  CHECK(count == 49);
  commit(t);
}

static void numbers_are_given(flugs_database* database) {
  flugs_schema* schema = NULL;
  uint32_t table = 0;
  OK(flugs_schema_create("numbered", &schema));
  OK(flugs_schema_column(schema, "id", FLUGS_INT64));
  OK(flugs_schema_auto_increment(schema));
  OK(flugs_table_create(database, schema, &table));
  flugs_schema_free(schema);
  flugs_transaction* t = begin(database);
  flugs_value row = flugs_null();
  int64_t number = 0;
  OK(flugs_insert(t, table, &row, 1, &number));
  CHECK(number > 0);
  commit(t);
}

void test_rows(void) {
  uint32_t table = 0;
  flugs_database* database = open_items(&table);
  add_items(database, table, 1, 30);
  all_types_come_back(database, table);
  errors_name_table_and_key(database, table);
  rows_change_by_key(database, table);
  many_rows_at_once(database, table);
  numbers_are_given(database);
  OK(flugs_database_check(database));
  flugs_database_free(database);
}
