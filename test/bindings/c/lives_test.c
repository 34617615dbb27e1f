/* Handles that outlive what they stand for, and calls from several threads. */

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "test/bindings/c/checks.h"

static const char* const kId[] = {"id"};

/* Every call with a transaction that has ended. */
static void check_ended(flugs_transaction* t, flugs_lookup* lookup, uint32_t table) {
  flugs_value value = flugs_int64(1);
  flugs_walk* walk = NULL;
  struct ArrowArrayStream stream;
  char* text = NULL;
  flugs_query* query = query_of("item");
  FAILS(flugs_insert(t, table, &value, 1, NULL), FLUGS_INVALID_ARGUMENT, "has ended");
  FAILS(flugs_insert_rows(t, table, &value, 1, 1), FLUGS_INVALID_ARGUMENT, "has ended");
  FAILS(flugs_find(t, lookup, &value, 1, &value, 1), FLUGS_INVALID_ARGUMENT, "has ended");
  FAILS(flugs_update(t, lookup, &value, 1, &value, 1), FLUGS_INVALID_ARGUMENT, "has ended");
  FAILS(flugs_upsert(t, lookup, &value, 1, NULL), FLUGS_INVALID_ARGUMENT, "has ended");
  FAILS(flugs_remove(t, lookup, &value, 1), FLUGS_INVALID_ARGUMENT, "has ended");
  FAILS(flugs_remove_where(t, table, column("id"), NULL), FLUGS_INVALID_ARGUMENT, "has ended");
  FAILS(flugs_walk_create(t, table, NULL, NULL, kId, 1, &walk), FLUGS_INVALID_ARGUMENT,
        "has ended");
  FAILS(flugs_query_stream(query, t, NULL, &stream), FLUGS_INVALID_ARGUMENT, "has ended");
  FAILS(flugs_query_explain(query, t, NULL, &text), FLUGS_INVALID_ARGUMENT, "has ended");
  FAILS(flugs_transaction_commit(t, NULL), FLUGS_INVALID_ARGUMENT, "has ended");
  FAILS(flugs_transaction_cancel(t), FLUGS_NOT_FOUND, "has ended");
  OK(flugs_transaction_abort(t));
  flugs_query_free(query);
}

/* Every call with a database that is closed. */
static void check_closed(flugs_database* database) {
  flugs_transaction* t = NULL;
  flugs_lookup* lookup = NULL;
  uint32_t table = 0;
  size_t count = 0;
  char* text = NULL;
  FAILS(flugs_transaction_begin(database, 0, 0, &t), FLUGS_INVALID_ARGUMENT, "closed");
  FAILS(flugs_lookup_create(database, 1, NULL, kId, 1, &lookup), FLUGS_INVALID_ARGUMENT, "closed");
  FAILS(flugs_table_find(database, "item", &table), FLUGS_INVALID_ARGUMENT, "closed");
  FAILS(flugs_table_list(database, &table, 1, &count), FLUGS_INVALID_ARGUMENT, "closed");
  FAILS(flugs_table_drop(database, 1), FLUGS_INVALID_ARGUMENT, "closed");
  FAILS(flugs_database_statistics(database, &text), FLUGS_INVALID_ARGUMENT, "closed");
  FAILS(flugs_database_merge(database, 1, NULL, NULL), FLUGS_INVALID_ARGUMENT, "closed");
  FAILS(flugs_database_sync(database), FLUGS_INVALID_ARGUMENT, "closed");
  FAILS(flugs_database_check(database), FLUGS_INVALID_ARGUMENT, "closed");
  FAILS(flugs_database_close(database), FLUGS_INVALID_ARGUMENT, "closed");
}

static void closing_ends_what_is_open(void) {
  uint32_t table = 0;
  flugs_database* database = open_items(&table);
  add_items(database, table, 1, 10);
  flugs_lookup* lookup = NULL;
  OK(flugs_lookup_create(database, table, NULL, kId, 1, &lookup));
  flugs_transaction* written = begin(database);
  flugs_transaction* reading = begin_reading(database);
  flugs_transaction* ended = begin(database);
  flugs_value key = flugs_int64(3);
  flugs_value value;
  OK(flugs_remove(written, lookup, &key, 1));
  OK(flugs_find(reading, lookup, &key, 1, &value, 1));
  OK(flugs_transaction_abort(ended));
  OK(flugs_transaction_abort(ended));
  OK(flugs_database_close(database));
  check_closed(database);
  check_ended(written, lookup, table);
  check_ended(reading, lookup, table);
  check_ended(ended, lookup, table);
  flugs_transaction_free(written);

  /* Another database of the same pool: handles of the first one are none of its. What `written` did
   * is undone. */
  flugs_database* again = NULL;
  OK(flugs_database_open(test_pool(), NULL, &again));
  flugs_transaction* t = begin_reading(again);
  FAILS(flugs_find(t, lookup, &key, 1, &value, 1), FLUGS_INVALID_ARGUMENT, "");
  flugs_lookup_free(lookup);
  OK(flugs_table_find(again, "item", &table));
  OK(flugs_lookup_create(again, table, NULL, kId, 1, &lookup));
  OK(flugs_find(t, lookup, &key, 1, &value, 1));
  CHECK(value.number == 3);
  flugs_database_free(again);
  check_ended(t, lookup, table);
  flugs_lookup_free(lookup);
  flugs_transaction_free(t);
  flugs_transaction_free(ended);
  flugs_transaction_free(reading);
  flugs_database_free(database);
}

static void commits_have_options(void) {
  uint32_t table = 0;
  flugs_database* database = open_items(&table);
  flugs_options* options = NULL;
  flugs_transaction* t = begin(database);
  char text[32];
  flugs_value row[ITEM_COLUMNS];
  item_row(1, row, text);
  OK(flugs_insert(t, table, row, ITEM_COLUMNS, NULL));
  OK(flugs_options_create(&options));
  OK(flugs_options_set(options, "durability", "never"));
  FAILS(flugs_transaction_commit(t, options), FLUGS_INVALID_ARGUMENT, "on-return, soon");
  OK(flugs_options_set(options, "durability", "soon"));
  OK(flugs_options_set(options, "soon_ms", "5"));
  OK(flugs_transaction_commit(t, options)); /* a wrong option had left it open */
  OK(flugs_database_sync(database));
  flugs_transaction_free(t);
  flugs_options_free(options);
  FAILS(flugs_transaction_begin(database, 2, 0, &t), FLUGS_INVALID_ARGUMENT, "access");
  FAILS(flugs_transaction_begin(database, 0, 3, &t), FLUGS_INVALID_ARGUMENT, "isolation");

  t = begin_reading(database);
  item_row(2, row, text);
  FAILS(flugs_insert(t, table, row, ITEM_COLUMNS, NULL), FLUGS_READ_ONLY, "");
  flugs_transaction_free(t);
  t = begin(database);
  OK(flugs_insert(t, table, row, ITEM_COLUMNS, NULL));
  OK(flugs_transaction_cancel(t));
  FAILS(flugs_transaction_commit(t, NULL), FLUGS_CANCELLED, "");
  flugs_transaction_free(t);
  flugs_database_free(database);
}

/* In a child process the handles of the parent fail, and freeing them does nothing. */
static void be_a_child(flugs_database* database, flugs_transaction* t, flugs_walk* walk,
                       struct ArrowArrayStream* stream) {
  flugs_transaction* of_child = NULL;
  flugs_value row = flugs_int64(1);
  size_t rows = 0;
  uint32_t table = 0;
  struct ArrowArray batch;
  FAILS(flugs_transaction_begin(database, 0, 0, &of_child), FLUGS_INVALID_ARGUMENT, "forked");
  FAILS(flugs_insert(t, table, &row, 1, NULL), FLUGS_INVALID_ARGUMENT, "forked");
  FAILS(flugs_transaction_abort(t), FLUGS_INVALID_ARGUMENT, "forked");
  FAILS(flugs_transaction_cancel(t), FLUGS_INVALID_ARGUMENT, "forked");
  FAILS(flugs_walk_next(walk, &row, 1, &rows), FLUGS_INVALID_ARGUMENT, "forked");
  FAILS(flugs_table_find(database, "item", &table), FLUGS_INVALID_ARGUMENT, "forked");
  FAILS(flugs_database_close(database), FLUGS_INVALID_ARGUMENT, "forked");
  CHECK(stream->get_next(stream, &batch) == EINVAL);
  CHECK(strstr(stream->get_last_error(stream), "forked") != NULL);
  stream->release(stream);
  flugs_walk_free(walk);
  flugs_transaction_free(t);
  flugs_database_free(database);

  /* A database of its own. */
  OK(flugs_database_open(NULL, NULL, &database));
  flugs_transaction_free(begin(database));
  flugs_database_free(database);
  _exit(0);
}

static void a_forked_child_gets_errors(void) {
  uint32_t table = 0;
  flugs_database* database = open_items(&table);
  add_items(database, table, 1, 10);
  flugs_transaction* t = begin(database);
  flugs_query* query = query_of("item");
  flugs_walk* walk = NULL;
  struct ArrowArrayStream stream;
  OK(flugs_query_stream(query, t, NULL, &stream));
  OK(flugs_walk_create(t, table, NULL, NULL, kId, 1, &walk));
  fflush(NULL);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) be_a_child(database, t, walk, &stream);
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  stream.release(&stream);
  flugs_walk_free(walk);
  CHECK(run(query, t, NULL) == 10);
  flugs_query_free(query);
  commit(t);
  flugs_database_free(database);
}

void test_lives(void) {
  closing_ends_what_is_open();
  commits_have_options();
  a_forked_child_gets_errors();
}

/* Two threads with one transaction: one of them is told, and nothing is lost. */

struct Shared {
  flugs_database* database;
  flugs_transaction* transaction;
  uint32_t table;
  atomic_int is_over;
  atomic_long inserted;
  atomic_long refused;
};

static void* insert_into_shared(void* argument) {
  struct Shared* shared = argument;
  static atomic_long next_id = 1;
  char text[32];
  flugs_value row[ITEM_COLUMNS];
  while (!atomic_load(&shared->is_over)) {
    item_row(atomic_fetch_add(&next_id, 1), row, text);
    flugs_error* error = flugs_insert(shared->transaction, shared->table, row, ITEM_COLUMNS, NULL);
    if (error == NULL) {
      atomic_fetch_add(&shared->inserted, 1);
    } else {
      CHECK(flugs_error_code(error) == FLUGS_BUSY);
      CHECK(strstr(flugs_error_message(error), "is running") != NULL);
      atomic_fetch_add(&shared->refused, 1);
      flugs_error_free(error);
    }
  }
  return NULL;
}

static void two_threads_with_one_transaction(void) {
  struct Shared shared = {0};
  shared.database = open_items(&shared.table);
  shared.transaction = begin(shared.database);
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i)
    CHECK(pthread_create(&threads[i], NULL, insert_into_shared, &shared) == 0);
  for (int i = 0;
       i < 20000 && (atomic_load(&shared.refused) == 0 || atomic_load(&shared.inserted) < 100); ++i)
    usleep(500);
  atomic_store(&shared.is_over, 1);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  CHECK(atomic_load(&shared.refused) > 0);
  flugs_query* query = query_of("item");
  CHECK(run(query, shared.transaction, NULL) == atomic_load(&shared.inserted));
  flugs_query_free(query);
  commit(shared.transaction);
  OK(flugs_database_check(shared.database));
  flugs_database_free(shared.database);
}

/* Each thread begins, inserts and commits until the database is closed under it. */
static void* work_until_closed(void* argument) {
  struct Shared* shared = argument;
  static atomic_long next_id = 1000000;
  char text[32];
  flugs_value row[ITEM_COLUMNS];
  while (1) {
    flugs_transaction* t = NULL;
    flugs_error* error = flugs_transaction_begin(shared->database, 0, 0, &t);
    for (int i = 0; i < 20 && error == NULL; ++i) {
      item_row(atomic_fetch_add(&next_id, 1), row, text);
      error = flugs_insert(t, shared->table, row, ITEM_COLUMNS, NULL);
    }
    if (error == NULL) error = flugs_transaction_commit(t, NULL);
    flugs_transaction_free(t);
    if (error != NULL) {
      const flugs_code code = flugs_error_code(error);
      CHECK(code == FLUGS_INVALID_ARGUMENT || code == FLUGS_CANCELLED || code == FLUGS_BUSY);
      flugs_error_free(error);
      return NULL;
    }
    atomic_fetch_add(&shared->inserted, 20);
  }
}

static void closing_while_threads_work(void) {
  for (int round = 0; round < 10; ++round) {
    struct Shared shared = {0};
    shared.database = open_items(&shared.table);
    pthread_t threads[3];
    for (int i = 0; i < 3; ++i)
      CHECK(pthread_create(&threads[i], NULL, work_until_closed, &shared) == 0);
    while (atomic_load(&shared.inserted) < 200) usleep(100);
    OK(flugs_database_close(shared.database));
    for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
    flugs_database_free(shared.database);

    flugs_database* again = NULL;
    OK(flugs_database_open(test_pool(), NULL, &again));
    flugs_transaction* t = begin_reading(again);
    flugs_query* query = query_of("item");
    CHECK(run(query, t, NULL) == atomic_load(&shared.inserted));
    flugs_query_free(query);
    flugs_transaction_free(t);
    flugs_database_free(again);
  }
}

void test_threads(void) {
  two_threads_with_one_transaction();
  closing_while_threads_work();
}
