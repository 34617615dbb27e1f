/* The program of docs/c_api.md. Its argument is the path of a new pool. */
/* --8<-- [start:check] */
#include <stdio.h>
#include <stdlib.h>

#include "flugs.h"

static void check(flugs_error* error) {
  if (error == NULL) return;
  fprintf(stderr, "%s\n", flugs_error_message(error));
  exit(1);
}
/* --8<-- [end:check] */

/* --8<-- [start:table] */
static uint32_t make_table(flugs_database* database) {
  const char* id[] = {"id"};
  flugs_schema* schema = NULL;
  uint32_t table = 0;
  check(flugs_schema_create("item", &schema));
  check(flugs_schema_column(schema, "id", FLUGS_INT64));
  check(flugs_schema_column(schema, "name", FLUGS_STRING));
  check(flugs_schema_not_null(schema)); /* of the column added last */
  check(flugs_schema_column(schema, "price", FLUGS_DECIMAL));
  check(flugs_schema_scale(schema, 2));
  check(flugs_schema_primary_key(schema, id, 1));
  check(flugs_schema_ordered(schema)); /* can be walked in order, too */
  check(flugs_table_ensure(database, schema, &table));
  flugs_schema_free(schema);
  return table;
}
/* --8<-- [end:table] */

/* --8<-- [start:insert] */
static void insert(flugs_database* database, uint32_t table) {
  flugs_transaction* t = NULL;
  check(
      flugs_transaction_begin(database, FLUGS_READ_WRITE, FLUGS_SNAPSHOT, &t));
  for (int64_t id = 1; id <= 100; ++id) {
    const flugs_value row[] = {flugs_int64(id),
                               flugs_string(id % 2 ? "pen" : "ink"),
                               flugs_decimal(id * 25, 2)};
    check(flugs_insert(t, table, row, 3, NULL));
  }
  check(flugs_transaction_commit(t, NULL)); /* durable when it returns */
  flugs_transaction_free(t);
}
/* --8<-- [end:insert] */

/* --8<-- [start:find] */
static void find(flugs_transaction* t, const flugs_lookup* by_id, int64_t id) {
  const flugs_value key = flugs_int64(id);
  flugs_value found[2];
  flugs_error* error = flugs_find(t, by_id, &key, 1, found, 2);
  if (flugs_error_code(error) == FLUGS_NOT_FOUND) {
    printf("%s has no row %d\n", flugs_error_table(error), (int)id);
    flugs_error_free(error);
    return;
  }
  check(error);
  printf("%.*s costs %d cents\n", (int)found[0].size, found[0].data,
         (int)found[1].number);
}
/* --8<-- [end:find] */

/* --8<-- [start:query] */
static flugs_query* pens_from(int64_t least) {
  const flugs_value id = flugs_int64(least);
  const flugs_value pen = flugs_string("pen");
  flugs_query* query = NULL;
  check(flugs_query_table("item", &query));
  /* Each function takes over the expressions that it is given, so they nest. */
  check(flugs_query_where(
      query,
      flugs_expr_binary(
          FLUGS_OP_AND,
          flugs_expr_binary(FLUGS_OP_GREATER_EQUAL, flugs_expr_column("id"),
                            flugs_expr_constant(&id)),
          flugs_expr_binary(FLUGS_OP_EQUAL, flugs_expr_column("name"),
                            flugs_expr_constant(&pen)))));
  const char* columns[] = {"id"};
  check(flugs_query_select_columns(query, columns, 1));
  return query;
}
/* --8<-- [end:query] */

/* --8<-- [start:stream] */
static void print_ids(const flugs_query* query, flugs_transaction* t) {
  struct ArrowArrayStream stream;
  struct ArrowArray batch;
  check(flugs_query_stream(query, t, NULL, &stream));
  while (stream.get_next(&stream, &batch) == 0 && batch.release != NULL) {
    const int64_t* ids = batch.children[0]->buffers[1];
    for (int64_t i = 0; i < batch.length; ++i) printf("pen %d\n", (int)ids[i]);
    batch.release(&batch);
  }
  if (stream.get_last_error(&stream) != NULL)
    puts(stream.get_last_error(&stream));
  stream.release(&stream);
}
/* --8<-- [end:stream] */

/* --8<-- [start:arrow] */
static void copy_into(flugs_database* database, uint32_t target,
                      const flugs_query* query) {
  flugs_transaction* t = NULL;
  struct ArrowArrayStream
      stream; /* of a query, or of any library that has Arrow */
  uint64_t rows = 0;
  check(
      flugs_transaction_begin(database, FLUGS_READ_WRITE, FLUGS_SNAPSHOT, &t));
  check(flugs_query_stream(query, t, NULL, &stream));
  check(
      flugs_insert_arrow(t, target, &stream, &rows)); /* releases the stream */
  check(flugs_transaction_commit(t, NULL));
  flugs_transaction_free(t);
  printf("copied %d rows\n", (int)rows);
}
/* --8<-- [end:arrow] */

/* --8<-- [start:walk] */
static void print_last(flugs_transaction* t, uint32_t table) {
  const char* columns[] = {"id", "price"};
  flugs_range range = {0}; /* all of the key */
  range.flags = FLUGS_RANGE_REVERSE;
  range.limit = 2;
  flugs_walk* walk = NULL;
  check(flugs_walk_create(t, table, "primary", &range, columns, 2, &walk));
  flugs_value values[2 * 10]; /* ten rows at a time */
  size_t rows = 0;
  do {
    check(flugs_walk_next(walk, values, 10, &rows));
    for (size_t i = 0; i < rows; ++i)
      printf("last %d\n", (int)values[2 * i].number);
  } while (rows > 0);
  flugs_walk_free(walk);
}
/* --8<-- [end:walk] */

static uint32_t make_copy(flugs_database* database) {
  flugs_schema* schema = NULL;
  uint32_t table = 0;
  check(flugs_schema_create("pen", &schema));
  check(flugs_schema_column(schema, "id", FLUGS_INT64));
  check(flugs_table_ensure(database, schema, &table));
  flugs_schema_free(schema);
  return table;
}

static void read_back(flugs_database* database, uint32_t table) {
  const char* columns[] = {"name", "price"};
  flugs_transaction* t = NULL;
  check(flugs_transaction_begin(database, FLUGS_READ_ONLY_ACCESS,
                                FLUGS_SNAPSHOT, &t));
  /* --8<-- [start:lookup] */
  flugs_lookup* by_id = NULL;
  check(flugs_lookup_create(database, table, NULL, columns, 2,
                            &by_id)); /* NULL: primary key */
  find(t, by_id, 7);
  find(t, by_id, 700);
  flugs_lookup_free(by_id);
  /* --8<-- [end:lookup] */
  flugs_query* query = pens_from(95);
  print_ids(query, t);
  copy_into(database, make_copy(database), query);
  flugs_query_free(query);
  print_last(t, table);
  flugs_transaction_free(t);
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  /* --8<-- [start:open] */
  flugs_options* options = NULL;
  flugs_database* database = NULL;
  check(flugs_options_create(&options));
  check(flugs_options_set(options, "mode", "create"));
  check(flugs_options_set(options, "max_bytes", "1G"));
  check(flugs_database_open(arguments[1], options, &database));
  flugs_options_free(options);
  /* --8<-- [end:open] */
  const uint32_t table = make_table(database);
  insert(database, table);
  read_back(database, table);
  /* --8<-- [start:close] */
  check(flugs_database_close(database));
  flugs_database_free(database);
  /* --8<-- [end:close] */
  return 0;
}
