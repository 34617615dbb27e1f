/* Merges, checks, statistics, modes of opening. */

#include "test/bindings/c/checks.h"

void test_upkeep(void) {
  uint32_t table = 0;
  flugs_database* database = open_items(&table);
  add_items(database, table, 1, 500);
  flugs_options* options = NULL;
  char* text = NULL;
  OK(flugs_options_create(&options));
  OK(flugs_options_set(options, "scope", "everything"));
  OK(flugs_options_set(options, "threads", "1"));
  OK(flugs_database_merge(database, table, options, &text));
  CHECK(text[0] == '{' && strstr(text, "\"rows\":500") != NULL);
  flugs_text_free(text);
  OK(flugs_database_merge(database, table, NULL, NULL));
  flugs_error* error = flugs_database_merge(database, 99, NULL, &text);
  CHECK(flugs_error_code(error) == FLUGS_NOT_FOUND && text == NULL);
  flugs_error_free(error);
  OK(flugs_options_set(options, "mode", "open"));
  FAILS(flugs_database_merge(database, table, options, &text), FLUGS_INVALID_ARGUMENT, "mode");
  flugs_options_free(options);

  OK(flugs_database_check(database));
  flugs_transaction* t = begin(database);
  FAILS(flugs_database_check(database), FLUGS_BUSY, "transaction");
  flugs_transaction_free(t);

  OK(flugs_database_statistics(database, &text));
  CHECK(strstr(text, "\"transactions_committed\":1") != NULL);
  CHECK(strstr(text, "\"tables\":[{\"name\":\"item\"") != NULL);
  CHECK(strstr(text, "\"group_rows\":500") != NULL);
  flugs_text_free(text);
  FAILS(flugs_database_statistics(database, NULL), FLUGS_INVALID_ARGUMENT, "out");

  flugs_database* other = NULL;
  FAILS(flugs_database_open(test_pool(), NULL, &other), FLUGS_BUSY, "");
  flugs_database_free(database);
  OK(flugs_options_create(&options));
  OK(flugs_options_set(options, "mode", "read-only"));
  OK(flugs_database_open(test_pool(), options, &other));
  FAILS(flugs_transaction_begin(other, FLUGS_READ_WRITE, FLUGS_SNAPSHOT, &t), FLUGS_READ_ONLY, "");
  t = begin_reading(other);
  flugs_query* query = query_of("item");
  CHECK(run(query, t, NULL) == 500);
  flugs_query_free(query);
  flugs_transaction_free(t);
  flugs_database_free(other);
  OK(flugs_options_set(options, "mode", "create"));
  FAILS(flugs_database_open(test_pool(), options, &other), FLUGS_ALREADY_EXISTS, "");
  flugs_options_free(options);
}
