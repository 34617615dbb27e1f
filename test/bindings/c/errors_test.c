/* Errors, options, and arguments that are wrong. */

#include "test/bindings/c/checks.h"

static void errors_say_what_happened(void) {
  CHECK(flugs_error_code(NULL) == FLUGS_OK);
  CHECK(strcmp(flugs_error_message(NULL), "ok") == 0);
  CHECK(flugs_error_table(NULL) == NULL && flugs_error_key(NULL) == NULL);
  CHECK(flugs_error_column(NULL) == NULL && flugs_error_constraint(NULL) == NULL);
  flugs_error_free(NULL);
  CHECK(strcmp(flugs_code_name(FLUGS_CONFLICT), "conflict") == 0);
  CHECK(strcmp(flugs_code_name(99), "unknown") == 0 && strcmp(flugs_code_name(-1), "unknown") == 0);
  CHECK(strchr(flugs_version(), '.') != NULL && flugs_pool_format_version() > 0);

  flugs_database* database = (flugs_database*)&database;
  flugs_error* error = flugs_database_open("/nowhere/at/all.pool", NULL, &database);
  CHECK(flugs_error_code(error) == FLUGS_NOT_FOUND && database == NULL);
  CHECK(strstr(flugs_error_message(error), "not found: ") != NULL);
  flugs_error_free(error);
}

static void every_function_refuses_no_handle(void) {
  char* text = NULL;
  size_t count = 0;
  uint32_t table = 0;
  struct ArrowSchema schema;
  const char* names[] = {"id"};
  FAILS(flugs_database_open("x", NULL, NULL), FLUGS_INVALID_ARGUMENT, "out: NULL");
  FAILS(flugs_options_create(NULL), FLUGS_INVALID_ARGUMENT, "out");
  FAILS(flugs_options_set(NULL, "a", "b"), FLUGS_INVALID_ARGUMENT, "options");
  FAILS(flugs_database_close(NULL), FLUGS_INVALID_ARGUMENT, "database");
  FAILS(flugs_database_sync(NULL), FLUGS_INVALID_ARGUMENT, "database");
  FAILS(flugs_database_merge(NULL, 1, NULL, &text), FLUGS_INVALID_ARGUMENT, "database");
  FAILS(flugs_database_check(NULL), FLUGS_INVALID_ARGUMENT, "database");
  FAILS(flugs_database_statistics(NULL, &text), FLUGS_INVALID_ARGUMENT, "database");
  FAILS(flugs_schema_create("t", NULL), FLUGS_INVALID_ARGUMENT, "out");
  FAILS(flugs_schema_column(NULL, "c", FLUGS_INT64), FLUGS_INVALID_ARGUMENT, "schema");
  FAILS(flugs_schema_not_null(NULL), FLUGS_INVALID_ARGUMENT, "schema");
  FAILS(flugs_schema_primary_key(NULL, names, 1), FLUGS_INVALID_ARGUMENT, "schema");
  FAILS(flugs_schema_check(NULL, "c", column("id")), FLUGS_INVALID_ARGUMENT, "schema");
  FAILS(flugs_table_create(NULL, NULL, &table), FLUGS_INVALID_ARGUMENT, "database");
  FAILS(flugs_table_drop(NULL, 1), FLUGS_INVALID_ARGUMENT, "database");
  FAILS(flugs_table_find(NULL, "t", &table), FLUGS_INVALID_ARGUMENT, "database");
  FAILS(flugs_table_list(NULL, &table, 1, &count), FLUGS_INVALID_ARGUMENT, "database");
  FAILS(flugs_table_describe(NULL, 1, &text), FLUGS_INVALID_ARGUMENT, "database");
  FAILS(flugs_table_arrow_schema(NULL, 1, &schema), FLUGS_INVALID_ARGUMENT, "database");
  CHECK(schema.release == NULL && text == NULL && table == 0 && count == 0);
}

static void calls_refuse_no_transaction(void) {
  flugs_transaction* t = NULL;
  flugs_lookup* lookup = NULL;
  flugs_walk* walk = NULL;
  flugs_query* query = NULL;
  struct ArrowArrayStream stream;
  char* text = NULL;
  size_t count = 0;
  flugs_value value = flugs_null();
  FAILS(flugs_transaction_begin(NULL, 0, 0, &t), FLUGS_INVALID_ARGUMENT, "database");
  FAILS(flugs_transaction_commit(NULL, NULL), FLUGS_INVALID_ARGUMENT, "transaction");
  FAILS(flugs_transaction_abort(NULL), FLUGS_INVALID_ARGUMENT, "transaction");
  FAILS(flugs_transaction_cancel(NULL), FLUGS_INVALID_ARGUMENT, "transaction");
  FAILS(flugs_insert(NULL, 1, &value, 1, NULL), FLUGS_INVALID_ARGUMENT, "transaction");
  FAILS(flugs_insert_rows(NULL, 1, &value, 1, 1), FLUGS_INVALID_ARGUMENT, "transaction");
  FAILS(flugs_lookup_create(NULL, 1, NULL, NULL, 0, &lookup), FLUGS_INVALID_ARGUMENT, "database");
  FAILS(flugs_find(NULL, NULL, &value, 1, &value, 1), FLUGS_INVALID_ARGUMENT, "transaction");
  FAILS(flugs_update(NULL, NULL, &value, 1, &value, 1), FLUGS_INVALID_ARGUMENT, "transaction");
  FAILS(flugs_upsert(NULL, NULL, &value, 1, NULL), FLUGS_INVALID_ARGUMENT, "transaction");
  FAILS(flugs_remove(NULL, NULL, &value, 1), FLUGS_INVALID_ARGUMENT, "transaction");
  FAILS(flugs_remove_where(NULL, 1, column("id"), NULL), FLUGS_INVALID_ARGUMENT, "transaction");
  FAILS(flugs_update_where(NULL, 1, column("id"), NULL, NULL, 0, NULL), FLUGS_INVALID_ARGUMENT,
        "transaction");
  FAILS(flugs_walk_create(NULL, 1, NULL, NULL, NULL, 0, &walk), FLUGS_INVALID_ARGUMENT,
        "transaction");
  FAILS(flugs_walk_next(NULL, &value, 1, &count), FLUGS_INVALID_ARGUMENT, "walk");
  FAILS(flugs_query_table("t", NULL), FLUGS_INVALID_ARGUMENT, "out");
  FAILS(flugs_query_table(NULL, &query), FLUGS_INVALID_ARGUMENT, "table");
  FAILS(flugs_query_copy(NULL, &query), FLUGS_INVALID_ARGUMENT, "query");
  FAILS(flugs_query_where(NULL, column("id")), FLUGS_INVALID_ARGUMENT, "query");
  FAILS(flugs_query_limit(NULL, 1, 0), FLUGS_INVALID_ARGUMENT, "query");
  FAILS(flugs_query_stream(NULL, NULL, NULL, &stream), FLUGS_INVALID_ARGUMENT, "transaction");
  FAILS(flugs_query_explain(NULL, NULL, NULL, &text), FLUGS_INVALID_ARGUMENT, "transaction");
  CHECK(stream.release == NULL);
  flugs_transaction_free(NULL);
  flugs_lookup_free(NULL);
  flugs_walk_free(NULL);
  flugs_query_free(NULL);
  flugs_database_free(NULL);
  flugs_schema_free(NULL);
  flugs_options_free(NULL);
  flugs_text_free(NULL);
  flugs_expr_free(NULL);
}

static void a_handle_of_another_kind_is_refused(void) {
  flugs_options* options = NULL;
  OK(flugs_options_create(&options));
  FAILS(flugs_database_close((flugs_database*)(void*)options), FLUGS_INVALID_ARGUMENT, "database");
  FAILS(flugs_transaction_abort((flugs_transaction*)(void*)options), FLUGS_INVALID_ARGUMENT,
        "transaction");
  flugs_query_free((flugs_query*)(void*)options);
  flugs_error_free((flugs_error*)(void*)options);
  OK(flugs_options_set(options, "mode", "open"));
  flugs_options_free(options);
}

static void options_are_checked(void) {
  static const char* const kWrong[][3] = {
      {"modus", "open", "option modus is none of: mode, max_bytes"},
      {"mode, max_bytes", "1", "option mode, max_bytes is none of: mode, max_bytes"},
      {"mode", "often", "option mode: 'often' is none of: open, create"},
      {"max_bytes", "many", "option max_bytes: 'many'"},
      {"max_bytes", "-1", "option max_bytes"},
      {"max_bytes", "1Q", "option max_bytes"},
      {"max_bytes", "99999999T", "option max_bytes"},
      {"slots_max", "5000000000", "option slots_max: '5000000000' is none of: 0 to 4294967295"},
      {"crash_ring", "maybe", "option crash_ring"},
      {"accept_lost_lines", "maybe", "option accept_lost_lines"},
  };
  for (size_t i = 0; i < sizeof kWrong / sizeof *kWrong; ++i) {
    flugs_options* options = NULL;
    flugs_database* database = NULL;
    OK(flugs_options_create(&options));
    OK(flugs_options_set(options, kWrong[i][0], kWrong[i][1]));
    FAILS(flugs_database_open(NULL, options, &database), FLUGS_INVALID_ARGUMENT, kWrong[i][2]);
    FAILS(flugs_options_set(options, NULL, "x"), FLUGS_INVALID_ARGUMENT, "name");
    FAILS(flugs_options_set(options, "x", NULL), FLUGS_INVALID_ARGUMENT, "value");
    flugs_options_free(options);
  }
}

void test_errors(void) {
  errors_say_what_happened();
  every_function_refuses_no_handle();
  calls_refuse_no_transaction();
  a_handle_of_another_kind_is_refused();
  options_are_checked();
}
