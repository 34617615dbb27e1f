/* Rows of an ordered key. */

#include "test/bindings/c/checks.h"

static const char* const kId[] = {"id"};

/* Walks in steps of three rows; checks that the ids go from `first` to `last` by `step`. */
static void check_walk(flugs_transaction* t, uint32_t table, const flugs_range* range,
                       int64_t first, int64_t last, int64_t step) {
  flugs_walk* walk = NULL;
  OK(flugs_walk_create(t, table, NULL, range, kId, 1, &walk));
  int64_t expected = first;
  while (1) {
    flugs_value ids[3];
    size_t rows = 0;
    OK(flugs_walk_next(walk, ids, 3, &rows));
    if (rows == 0) break;
    for (size_t i = 0; i < rows; ++i, expected += step) CHECK(ids[i].number == expected);
  }
  CHECK(expected == last + step);
  flugs_walk_free(walk);
}

static void ranges(flugs_transaction* t, uint32_t table) {
  const flugs_value low = flugs_int64(10);
  const flugs_value high = flugs_int64(20);
  flugs_range range;
  memset(&range, 0, sizeof range);
  check_walk(t, table, NULL, 1, 100, 1);
  check_walk(t, table, &range, 1, 100, 1);
  range.lower = &low;
  range.lower_count = 1;
  check_walk(t, table, &range, 10, 100, 1);
  range.upper = &high;
  range.upper_count = 1;
  check_walk(t, table, &range, 10, 20, 1);
  range.flags = FLUGS_RANGE_LOWER_OPEN | FLUGS_RANGE_UPPER_OPEN;
  check_walk(t, table, &range, 11, 19, 1);
  range.flags = FLUGS_RANGE_REVERSE;
  check_walk(t, table, &range, 20, 10, -1);
  range.limit = 4;
  check_walk(t, table, &range, 20, 17, -1);

  flugs_walk* walk = NULL;
  range.flags = 8;
  FAILS(flugs_walk_create(t, table, NULL, &range, kId, 1, &walk), FLUGS_INVALID_ARGUMENT, "flags");
  range.flags = 0;
  range.reserved = 1;
  FAILS(flugs_walk_create(t, table, NULL, &range, kId, 1, &walk), FLUGS_INVALID_ARGUMENT, "flags");
  range.reserved = 0;
  range.lower = NULL;
  FAILS(flugs_walk_create(t, table, NULL, &range, kId, 1, &walk), FLUGS_INVALID_ARGUMENT, "NULL");
}

static void prefixes_and_texts(flugs_transaction* t, uint32_t table) {
  static const char* const kColumns[] = {"name", "id"};
  const flugs_value name = flugs_string("name 3");
  const flugs_range range = {&name, 1, &name, 1, 0, 0, 0};
  flugs_walk* walk = NULL;
  OK(flugs_walk_create(t, table, "by_name", &range, kColumns, 2, &walk));
  flugs_value values[2 * 16];
  size_t rows = 0;
  OK(flugs_walk_next(walk, values, 16, &rows));
  CHECK(rows == 10);
  for (size_t i = 0; i < rows; ++i) {
    CHECK(values[2 * i].size == 6 && memcmp(values[2 * i].data, "name 3", 6) == 0);
    CHECK(values[2 * i + 1].number == (int64_t)(10 * i + 3));
  }
  OK(flugs_walk_next(walk, values, 16, &rows));
  CHECK(rows == 0);
  FAILS(flugs_walk_next(walk, NULL, 16, &rows), FLUGS_INVALID_ARGUMENT, "values");
  FAILS(flugs_walk_next(walk, values, 16, NULL), FLUGS_INVALID_ARGUMENT, "out");
  flugs_walk_free(walk);
  FAILS(flugs_walk_create(t, table, "none", NULL, kId, 1, &walk), FLUGS_NOT_FOUND, "none");
  static const char* const kNone[] = {"none"};
  FAILS(flugs_walk_create(t, table, NULL, NULL, kNone, 1, &walk), FLUGS_NOT_FOUND, "none");
  CHECK(walk == NULL);
}

void test_walks(void) {
  uint32_t table = 0;
  flugs_database* database = open_items(&table);
  add_items(database, table, 1, 100);
  flugs_transaction* t = begin(database);
  ranges(t, table);
  prefixes_and_texts(t, table);

  /* A walk outlives its transaction, and says so. */
  flugs_walk* walk = NULL;
  flugs_value value;
  size_t rows = 0;
  OK(flugs_walk_create(t, table, NULL, NULL, kId, 1, &walk));
  OK(flugs_walk_next(walk, &value, 1, &rows));
  CHECK(rows == 1);
  commit(t);
  FAILS(flugs_walk_next(walk, &value, 1, &rows), FLUGS_INVALID_ARGUMENT, "has ended");
  flugs_database_free(database);
  FAILS(flugs_walk_next(walk, &value, 1, &rows), FLUGS_INVALID_ARGUMENT, "has ended");
  flugs_walk_free(walk);
}
