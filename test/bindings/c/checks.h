#pragma once

/* What the tests of the C ABI are written with. A check that fails ends the process. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FLUGS_DRAFTS
#include "flugs.h"

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
      give_up();                                                              \
    }                                                                         \
  } while (0)

/* Removes the test's pool, and ends the process. */
_Noreturn void give_up(void);

/* The call must succeed. */
#define OK(call) check_ok((call), __FILE__, __LINE__, #call)
/* The call must fail with this code, and with a message that has this part. */
#define FAILS(call, code, part) check_fails((call), (code), (part), __FILE__, __LINE__, #call)

static inline void check_ok(flugs_error* error, const char* file, int line, const char* call) {
  if (error == NULL) return;
  fprintf(stderr, "%s:%d: %s: %s\n", file, line, call, flugs_error_message(error));
  give_up();
}

static inline void check_fails(flugs_error* error, flugs_code code, const char* part,
                               const char* file, int line, const char* call) {
  if (flugs_error_code(error) != code || strstr(flugs_error_message(error), part) == NULL) {
    fprintf(stderr, "%s:%d: %s gave %s, not %s with '%s'\n", file, line, call,
            flugs_error_message(error), flugs_code_name(code), part);
    give_up();
  }
  flugs_error_free(error);
}

/* A test's pool: on /dev/shm, removed before and after. */
const char* test_pool(void);

/* A pool with a table "item" of every type, whose primary key is the int64 "id". */
flugs_database* open_items(uint32_t* table);
/* Adds rows with ids from `first` to `last`, and commits. */
void add_items(flugs_database* database, uint32_t table, int64_t first, int64_t last);
#define ITEM_COLUMNS 9
/* The values of row `id`. The text lies in `text`, 32 bytes. */
void item_row(int64_t id, flugs_value row[ITEM_COLUMNS], char* text);

/* Shorthands. */
flugs_expr* column(const char* name);
flugs_expr* int64_constant(int64_t number);
flugs_expr* text_constant(const char* text);
flugs_transaction* begin(flugs_database* database);
flugs_transaction* begin_reading(flugs_database* database);
void commit(flugs_transaction* transaction); /* and frees it */
flugs_query* query_of(const char* table);
/* Runs a query whose first column is of int64: its rows, and the sum of that column. */
int64_t run(flugs_query* query, flugs_transaction* transaction, int64_t* sum);

/* The parts of the test. */
void test_errors(void);
void test_values(void);
void test_schemas(void);
void test_rows(void);
void test_walks(void);
void test_queries(void);
void test_streams(void);
void test_lives(void);
void test_threads(void);
void test_upkeep(void);
