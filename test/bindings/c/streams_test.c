/* Arrow streams of queries: their content, and what they do when their transaction is gone. */

#include <errno.h>

#include "test/bindings/c/checks.h"

static void columns_have_their_types(flugs_transaction* t) {
  static const char* const kFormats[ITEM_COLUMNS] = {"l",   "b",    "i",  "d:19,2", "g",
                                                     "tdD", "tsu:", NULL, NULL};
  flugs_query* query = query_of("item");
  flugs_expr* keys[] = {column("id")};
  OK(flugs_query_order_by(query, keys, NULL, 1));
  struct ArrowArrayStream stream;
  OK(flugs_query_stream(query, t, NULL, &stream));
  flugs_query_free(query); /* the stream goes on */
  struct ArrowSchema schema;
  CHECK(stream.get_schema(&stream, &schema) == 0);
  CHECK(schema.n_children == ITEM_COLUMNS);
  for (int i = 0; i < ITEM_COLUMNS; ++i) {
    const struct ArrowSchema* child = schema.children[i];
    if (kFormats[i] != NULL) CHECK(strcmp(child->format, kFormats[i]) == 0);
    if (i >= 7 && child->dictionary != NULL) CHECK(strcmp(child->format, "i") == 0);
  }
  schema.release(&schema);

  struct ArrowArray batch;
  CHECK(stream.get_next(&stream, &batch) == 0 && batch.length == 100);
  const int64_t* ids = batch.children[0]->buffers[1];
  const double* weights = batch.children[4]->buffers[1];
  const uint8_t* valid = batch.children[1]->buffers[0];
  for (int64_t i = 0; i < 100; ++i) {
    CHECK(ids[i] == i + 1 && weights[i] == (double)(i + 1) / 4);
    CHECK(((valid[i / 8] >> (i % 8)) & 1) == ((i + 1) % 7 != 0));
  }
  CHECK(batch.children[1]->null_count == 14);
  stream.release(&stream);
  CHECK(stream.release == NULL);
  CHECK(ids[99] == 100); /* a batch outlives its stream */
  batch.release(&batch);
}

/* What the two parts of a text column's batch say of row `row`. */
static int text_is(const struct ArrowArray* column, int64_t row, const char* text) {
  const struct ArrowArray* texts = column;
  int64_t place = row;
  if (column->dictionary != NULL) {
    texts = column->dictionary;
    place = ((const int32_t*)column->buffers[1])[row];
  }
  const int32_t* offsets = texts->buffers[1];
  const char* bytes = texts->buffers[2];
  const size_t size = (size_t)(offsets[place + 1] - offsets[place]);
  return size == strlen(text) && memcmp(bytes + offsets[place], text, size) == 0;
}

static void texts_come_whole(flugs_transaction* t) {
  flugs_query* query = query_of("item");
  const char* names[] = {"id", "name"};
  OK(flugs_query_select_columns(query, names, 2));
  struct ArrowArrayStream stream;
  struct ArrowArray batch;
  OK(flugs_query_stream(query, t, NULL, &stream));
  int64_t rows = 0;
  char text[32];
  while (stream.get_next(&stream, &batch) == 0 && batch.release != NULL) {
    const int64_t* ids = batch.children[0]->buffers[1];
    for (int64_t i = 0; i < batch.length; ++i, ++rows) {
      snprintf(text, sizeof text, "name %d", (int)(ids[i] % 10));
      CHECK(text_is(batch.children[1], i, text));
    }
    batch.release(&batch);
  }
  CHECK(rows == 100);
  stream.release(&stream);
  flugs_query_free(query);
}

static void stream_is_dead(struct ArrowArrayStream* stream) {
  struct ArrowArray batch;
  struct ArrowSchema schema;
  CHECK(stream->get_next(stream, &batch) == EINVAL);
  CHECK(strstr(stream->get_last_error(stream), "has ended") != NULL);
  CHECK(stream->get_schema(stream, &schema) == EINVAL);
}

static void streams_outlive_what_they_come_from(flugs_database* database) {
  struct ArrowArrayStream streams[4];
  struct ArrowArray batch;
  flugs_query* query = query_of("item");
  flugs_transaction* committed = begin(database);
  flugs_transaction* freed = begin(database);
  flugs_transaction* open = begin(database);
  OK(flugs_query_stream(query, committed, NULL, &streams[0]));
  OK(flugs_query_stream(query, freed, NULL, &streams[1]));
  OK(flugs_query_stream(query, open, NULL, &streams[2]));
  OK(flugs_query_stream(query, open, NULL, &streams[3]));
  CHECK(streams[2].get_next(&streams[2], &batch) == 0 && batch.length == 100);
  streams[3].release(&streams[3]);
  OK(flugs_transaction_commit(committed, NULL));
  stream_is_dead(&streams[0]);
  flugs_transaction_free(freed);
  stream_is_dead(&streams[1]);
  flugs_database_free(database);
  stream_is_dead(&streams[2]);
  CHECK(((const int64_t*)batch.children[0]->buffers[1])[0] > 0);
  batch.release(&batch);
  for (int i = 0; i < 3; ++i) streams[i].release(&streams[i]);
  flugs_transaction_free(committed);
  flugs_transaction_free(open);
  flugs_query_free(query);
}

/* A stream that makes calls from within an insert, and then fails. */
struct Meddler {
  flugs_database* database;
  flugs_transaction* transaction;
  int releases;
};

static int meddle_schema(struct ArrowArrayStream* stream, struct ArrowSchema* out) {
  struct Meddler* meddler = stream->private_data;
  flugs_value row = flugs_int64(1);
  FAILS(flugs_database_close(meddler->database), FLUGS_BUSY, "this thread");
  FAILS(flugs_transaction_commit(meddler->transaction, NULL), FLUGS_BUSY, "is running");
  FAILS(flugs_transaction_abort(meddler->transaction), FLUGS_BUSY, "is running");
  FAILS(flugs_insert(meddler->transaction, 1, &row, 1, NULL), FLUGS_BUSY, "is running");
  flugs_transaction_free(meddler->transaction);
  flugs_database_free(meddler->database);
  (void)out;
  return EIO;
}

static int meddle_next(struct ArrowArrayStream* stream, struct ArrowArray* out) {
  (void)stream;
  (void)out;
  return EIO;
}

static const char* meddle_error(struct ArrowArrayStream* stream) {
  (void)stream;
  return "meddled";
}

static void meddle_release(struct ArrowArrayStream* stream) {
  ++((struct Meddler*)stream->private_data)->releases;
  stream->release = NULL;
}

static void inserts_from_streams(flugs_database* database, uint32_t table, uint32_t copy) {
  flugs_transaction* t = begin(database);
  flugs_query* query = query_of("item");
  OK(flugs_query_where(query,
                       flugs_expr_binary(FLUGS_OP_LESS_EQUAL, column("id"), int64_constant(60))));
  const char* names[] = {"id", "name", "price"};
  OK(flugs_query_select_columns(query, names, 3));
  struct ArrowArrayStream stream;
  OK(flugs_query_stream(query, t, NULL, &stream));
  uint64_t rows = 0;
  OK(flugs_insert_arrow(t, copy, &stream, &rows)); /* a stream of the same transaction */
  CHECK(rows == 60 && stream.release == NULL);
  OK(flugs_query_stream(query, t, NULL, &stream));
  flugs_error* error = flugs_insert_arrow(t, copy, &stream, &rows);
  CHECK(flugs_error_code(error) == FLUGS_ALREADY_EXISTS && rows == 0 && stream.release == NULL);
  CHECK(strcmp(flugs_error_table(error), "copy") == 0);
  CHECK(strcmp(flugs_error_key(error), "primary") == 0);
  flugs_error_free(error);
  FAILS(flugs_insert_arrow(t, copy, NULL, NULL), FLUGS_INVALID_ARGUMENT, "stream: NULL");
  FAILS(flugs_insert_arrow(t, copy, &stream, NULL), FLUGS_INVALID_ARGUMENT, "been released");
  OK(flugs_query_stream(query, t, NULL, &stream));
  FAILS(flugs_insert_arrow(NULL, copy, &stream, NULL), FLUGS_INVALID_ARGUMENT, "transaction");
  CHECK(stream.release == NULL);

  struct Meddler meddler = {database, t, 0};
  struct ArrowArrayStream meddling = {meddle_schema, meddle_next, meddle_error, meddle_release,
                                      &meddler};
  FAILS(flugs_insert_arrow(t, table, &meddling, NULL), FLUGS_INVALID_ARGUMENT, "meddled");
  CHECK(meddler.releases == 1);
  flugs_query_free(query);

  int64_t sum = 0;
  query = query_of("copy");
  CHECK(run(query, t, &sum) == 60 && sum == 60 * 61 / 2);
  flugs_query_free(query);
  commit(t);
  static const char* const kColumns[] = {"name", "price"};
  flugs_lookup* lookup = NULL;
  OK(flugs_lookup_create(database, copy, NULL, kColumns, 2, &lookup));
  t = begin_reading(database);
  flugs_value key = flugs_int64(44);
  flugs_value found[2];
  OK(flugs_find(t, lookup, &key, 1, found, 2));
  CHECK(found[0].size == 6 && memcmp(found[0].data, "name 4", 6) == 0 && found[1].number == 220);
  flugs_transaction_free(t);
  flugs_lookup_free(lookup);
}

static uint32_t make_copy_table(flugs_database* database) {
  static const char* const kId[] = {"id"};
  flugs_schema* schema = NULL;
  uint32_t table = 0;
  OK(flugs_schema_create("copy", &schema));
  OK(flugs_schema_column(schema, "id", FLUGS_INT64));
  OK(flugs_schema_column(schema, "name", FLUGS_STRING));
  OK(flugs_schema_column(schema, "price", FLUGS_DECIMAL));
  OK(flugs_schema_scale(schema, 2));
  OK(flugs_schema_primary_key(schema, kId, 1));
  OK(flugs_table_create(database, schema, &table));
  flugs_schema_free(schema);
  return table;
}

void test_streams(void) {
  uint32_t table = 0;
  flugs_database* database = open_items(&table);
  add_items(database, table, 1, 100);
  flugs_transaction* t = begin(database);
  columns_have_their_types(t);
  texts_come_whole(t);
  flugs_transaction_free(t);
  inserts_from_streams(database, table, make_copy_table(database));
  streams_outlive_what_they_come_from(database);
}
