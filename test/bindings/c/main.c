#include "test/bindings/c/checks.h"

const char* test_pool(void) {
  static char path[64];
  snprintf(path, sizeof path, "/dev/shm/flugs_c_abi_%ld.pool", (long)getpid());
  return path;
}

void give_up(void) {
  unlink(test_pool());
  abort();
}

static const char* const kItemColumns[ITEM_COLUMNS] = {"id",  "flag",   "small", "price", "weight",
                                                       "day", "moment", "name",  "raw"};

flugs_database* open_items(uint32_t* table) {
  static const flugs_type kTypes[ITEM_COLUMNS] = {FLUGS_INT64,     FLUGS_BOOL,   FLUGS_INT32,
                                                  FLUGS_DECIMAL,   FLUGS_DOUBLE, FLUGS_DATE,
                                                  FLUGS_TIMESTAMP, FLUGS_STRING, FLUGS_BYTES};
  flugs_schema* schema = NULL;
  OK(flugs_schema_create("item", &schema));
  for (int i = 0; i < ITEM_COLUMNS; ++i) {
    OK(flugs_schema_column(schema, kItemColumns[i], kTypes[i]));
    if (kTypes[i] == FLUGS_DECIMAL) OK(flugs_schema_scale(schema, 2));
  }
  OK(flugs_schema_primary_key(schema, kItemColumns, 1));
  OK(flugs_schema_ordered(schema));
  const char* by_name[] = {"name", "id"};
  OK(flugs_schema_key(schema, "by_name", by_name, 2));

  unlink(test_pool());
  flugs_options* options = NULL;
  OK(flugs_options_create(&options));
  OK(flugs_options_set(options, "mode", "create"));
  OK(flugs_options_set(options, "max_bytes", "256M"));
  OK(flugs_options_set(options, "segment_bytes", "4M"));
  flugs_database* database = NULL;
  OK(flugs_database_open(test_pool(), options, &database));
  flugs_options_free(options);
  OK(flugs_table_ensure(database, schema, table));
  CHECK(*table != 0);
  flugs_schema_free(schema);
  return database;
}

void item_row(int64_t id, flugs_value row[ITEM_COLUMNS], char* text) {
  snprintf(text, 32, "name %d", (int)(id % 10));
  row[0] = flugs_int64(id);
  row[1] = id % 7 == 0 ? flugs_null() : flugs_bool(id % 2 == 0);
  row[2] = flugs_int32((int32_t)(id % 100));
  row[3] = flugs_decimal(id * 5, 2);
  row[4] = flugs_double((double)id / 4);
  row[5] = flugs_date((int32_t)id);
  row[6] = flugs_timestamp(id * 1000000);
  row[7] = flugs_string(text);
  row[8] = flugs_bytes(text, 4);
}

void add_items(flugs_database* database, uint32_t table, int64_t first, int64_t last) {
  flugs_transaction* t = begin(database);
  char text[32];
  for (int64_t id = first; id <= last; ++id) {
    flugs_value row[ITEM_COLUMNS];
    item_row(id, row, text);
    OK(flugs_insert(t, table, row, ITEM_COLUMNS, NULL));
  }
  commit(t);
}

flugs_expr* column(const char* name) { return flugs_expr_column(name); }

flugs_expr* int64_constant(int64_t number) {
  flugs_value value = flugs_int64(number);
  return flugs_expr_constant(&value);
}

flugs_expr* text_constant(const char* text) {
  flugs_value value = flugs_string(text);
  return flugs_expr_constant(&value);
}

flugs_transaction* begin(flugs_database* database) {
  flugs_transaction* t = NULL;
  OK(flugs_transaction_begin(database, FLUGS_READ_WRITE, FLUGS_SNAPSHOT, &t));
  return t;
}

flugs_transaction* begin_reading(flugs_database* database) {
  flugs_transaction* t = NULL;
  OK(flugs_transaction_begin(database, FLUGS_READ_ONLY_ACCESS, FLUGS_SNAPSHOT, &t));
  return t;
}

void commit(flugs_transaction* transaction) {
  OK(flugs_transaction_commit(transaction, NULL));
  flugs_transaction_free(transaction);
}

flugs_query* query_of(const char* table) {
  flugs_query* query = NULL;
  OK(flugs_query_table(table, &query));
  return query;
}

int64_t run(flugs_query* query, flugs_transaction* transaction, int64_t* sum) {
  struct ArrowArrayStream stream;
  OK(flugs_query_stream(query, transaction, NULL, &stream));
  int64_t rows = 0;
  if (sum != NULL) *sum = 0;
  while (1) {
    struct ArrowArray batch;
    CHECK(stream.get_next(&stream, &batch) == 0);
    if (batch.release == NULL) break;
    rows += batch.length;
    const int64_t* numbers = batch.children[0]->buffers[1];
    for (int64_t i = 0; sum != NULL && i < batch.length; ++i) *sum += numbers[i];
    batch.release(&batch);
  }
  stream.release(&stream);
  return rows;
}

int main(void) {
  test_errors();
  test_values();
  test_schemas();
  test_rows();
  test_walks();
  test_queries();
  test_streams();
  test_lives();
  test_threads();
  test_upkeep();
  unlink(test_pool());
  puts("C ABI: all checks held");
  return 0;
}
