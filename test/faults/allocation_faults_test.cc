// Out of space at the n-th allocation, for every n of every public operation: the operation fails
// with kOutOfSpace, nothing committed is lost, nothing leaks, and the next attempt works.
#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "test/faults/faulty_pool.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr std::size_t kPoolBytes = std::size_t{24} << 20;
constexpr std::size_t kLongText = 3000;

TableSchema rows_schema(const std::string& name) {
  TableSchema schema(name);
  schema.column("id", Type::kInt64).column("text", Type::kString).column("city", Type::kString);
  schema.column("count", Type::kInt32);
  schema.columns[1].encoding = Encoding::kDirect;
  schema.columns[2].encoding = Encoding::kDictionary;
  schema.columns[3].encoding = Encoding::kDictionary;
  return schema.primary_key({"id"});
}

/// Committed rows, by id: one number determines all texts of a row.
using Contents = std::map<std::int64_t, std::int64_t>;

class Subject {
  PoolBuffer buffer_;  // outlives the database

 public:
  explicit Subject(IndexPlace index_place = test_index_place()) : buffer_(kPoolBytes) {
    options_ = small_options("(memory)");
    options_.index_place = index_place;
    options_.segment_bytes = std::uint64_t{1} << 20;
    options_.slots_max = 4;
  }

  Status create() {
    pmem::PoolOptions pool;
    pool.segment_bytes = options_.segment_bytes;
    return open(must(pmem::Pool::create_in_memory(buffer_.span(), pool)), true);
  }
  Status reopen() {
    core.reset();
    return open(must(pmem::Pool::open_in_memory(buffer_.span(), pmem::PoolOptions{})), false);
  }
  std::uint64_t used_bytes() const { return core->statistics().pool_used_bytes; }

  AllocationFaults faults;
  std::unique_ptr<engine::DatabaseCore> core;

 private:
  Status open(std::unique_ptr<pmem::Pool> pool, bool created) {
    auto opened = engine::DatabaseCore::open(std::make_unique<FaultyPool>(std::move(pool), faults),
                                             created, options_);
    if (!opened.ok()) return std::move(opened).status();
    core = std::move(*opened);
    return {};
  }

  OpenOptions options_;
};

std::vector<Value> row_of(std::int64_t id, std::int64_t seed, std::string& text) {
  text = std::to_string(seed) + std::string(kLongText, 'x');
  return {Value::int64(id), Value::string(text), Value::string(text),
          Value::int32(static_cast<std::int32_t>(seed))};
}

/// A public operation, and its change when it commits.
struct Operation {
  std::string name;
  std::function<Status(engine::DatabaseCore&, Contents&)> run;
};

Status insert_many(engine::DatabaseCore& core, Contents& contents, std::int64_t first,
                   std::int64_t end) {
  Result<Transaction> t = core.begin(AccessMode::kReadWrite);
  if (!t.ok()) return std::move(t).status();
  std::string text;
  for (std::int64_t id = first; id < end; ++id) {
    const auto row = t->insert(TableId(1), row_of(id, id, text));
    if (!row.ok()) return row.status();
  }
  if (Status s = t->commit(); !s.ok()) return s;
  for (std::int64_t id = first; id < end; ++id) contents[id] = id;
  return {};
}

Status insert_batch(engine::DatabaseCore& core, Contents& contents) {
  Result<Transaction> t = core.begin(AccessMode::kReadWrite);
  if (!t.ok()) return std::move(t).status();
  std::vector<std::string> texts(600);
  std::vector<Value> values;
  for (std::size_t i = 0; i < texts.size(); ++i)
    for (const Value& v : row_of(static_cast<std::int64_t>(1000 + i), 1000, texts[i]))
      values.push_back(v);
  std::vector<RowId> ids(texts.size());
  if (Status s = t->insert_rows(TableId(1), values, ids); !s.ok()) return s;
  if (Status s = t->commit(); !s.ok()) return s;
  for (std::size_t i = 0; i < texts.size(); ++i)
    contents[static_cast<std::int64_t>(1000 + i)] = 1000;
  return {};
}

Status update_all(engine::DatabaseCore& core, Contents& contents) {
  Result<Transaction> t = core.begin(AccessMode::kReadWrite);
  if (!t.ok()) return std::move(t).status();
  Contents changed = contents;
  std::string text;
  for (auto& [id, seed] : changed) {
    const auto row = t->get({TableId(1), 0}, {Value::int64(id)});
    if (!row.ok()) return row.status();
    seed += 100'000;
    const std::vector<Value> values = row_of(id, seed, text);
    const auto updated =
        t->update(TableId(1), row->id(),
                  {{ColumnId(1), values[1]}, {ColumnId(2), values[2]}, {ColumnId(3), values[3]}});
    if (!updated.ok()) return updated.status();
  }
  if (Status s = t->commit(); !s.ok()) return s;
  contents = changed;
  return {};
}

Status remove_all(engine::DatabaseCore& core, Contents& contents) {
  Result<Transaction> t = core.begin(AccessMode::kReadWrite);
  if (!t.ok()) return std::move(t).status();
  for (const auto& [id, seed] : contents) {
    const auto row = t->get({TableId(1), 0}, {Value::int64(id)});
    if (!row.ok()) return row.status();
    if (Status s = t->remove(TableId(1), row->id()); !s.ok()) return s;
  }
  if (Status s = t->commit(); !s.ok()) return s;
  contents.clear();
  return {};
}

Status merge_all(engine::DatabaseCore& core) {
  MergeOptions options;
  options.scope = MergeScope::kEverything;
  options.threads = 1;
  const Result<MergeReport> merged = core.merge(TableId(1), options);
  return merged.ok() ? Status() : merged.status();
}

/// A deletion from a row group needs room for its time-stamp.
Status remove_merged(engine::DatabaseCore& core, Contents& contents) {
  if (Status s = merge_all(core); !s.ok()) return s;
  return remove_all(core, contents);
}

Status update_merged(engine::DatabaseCore& core, Contents& contents) {
  if (Status s = merge_all(core); !s.ok()) return s;
  if (Status s = update_all(core, contents); !s.ok()) return s;
  return merge_all(core);
}

constexpr ColumnId kAdded{4};

/// Needs space for a dictionary, its first entry and the entry's text.
Status add_column(engine::DatabaseCore& core, Contents&) {
  ColumnSchema column;
  column.name = "added";
  column.type = Type::kString;
  column.encoding = Encoding::kDictionary;
  column.default_value = Constant(Value::string(std::string_view(std::string(kLongText, 'd'))));
  return core.add_column(TableId(1), column).status();
}

/// Each change is separate: after a failure it continues with the one that failed.
Status alter(engine::DatabaseCore& core, Contents& contents) {
  const engine::Table& table = *core.table(TableId(1));
  Status s;
  if (table.schema().columns.size() == 4) s = add_column(core, contents);
  if (s.ok() && !contents.contains(2000)) s = insert_many(core, contents, 2000, 2050);
  if (s.ok() && table.name() != "renamed") s = core.rename_table(TableId(1), "renamed");
  if (s.ok() && table.schema().columns[1].name != "words")
    s = core.rename_column(TableId(1), ColumnId(1), "words");
  if (s.ok() && table.schema().keys[0].name != "by_id")
    s = core.rename_key({TableId(1), 0}, "by_id");
  return s.ok() ? core.drop_column(TableId(1), kAdded) : s;
}

/// Changes a column with a dictionary of long texts, and one of numbers; rows of both editions
/// stay.
Status change_types(engine::DatabaseCore& core, Contents& contents) {
  Status s = core.change_type(TableId(1), ColumnId(2), Type::kString);
  if (s.ok()) s = core.change_type(TableId(1), ColumnId(3), Type::kInt64);
  return s.ok() ? insert_many(core, contents, 2000, 2200) : s;
}

Status change_keys(engine::DatabaseCore& core, Contents&) {
  if (core.table(TableId(1))->schema().keys.size() == 1) {
    KeySchema key;
    key.name = "by_city";
    key.columns = {"city"};
    key.ordered = true;
    const Result<KeyId> made = core.add_key(TableId(1), key);
    if (!made.ok()) return made.status();
  }
  return core.drop_key({TableId(1), 1});
}

/// Adds and changes constraints; after a failure it continues with the one that failed.
Status change_constraints(engine::DatabaseCore& core, Contents&) {
  const engine::Table& table = *core.table(TableId(1));
  Status s;
  if (table.schema().checks.empty())
    s = core.add_check(TableId(1), {"known", Condition::is_not_null("id")});
  if (s.ok() && table.schema().columns[2].nullable)
    s = core.set_not_null(TableId(1), ColumnId(2), true);
  if (s.ok() && !table.schema().columns[3].default_value)
    s = core.set_default(TableId(1), ColumnId(3), Value::int32(4));
  if (s.ok() && table.schema().foreign_keys.empty()) {
    ForeignKeySchema foreign;
    foreign.name = "itself";
    foreign.columns = {"id"};
    foreign.table = table.name();
    s = core.add_foreign_key(TableId(1), foreign);
  }
  return s.ok() ? core.drop_foreign_key(TableId(1), "itself") : s;
}

/// Other calls that a transaction can make.
Status write_in_parts(engine::DatabaseCore& core, Contents& contents) {
  Result<Transaction> t = core.begin(AccessMode::kReadWrite);
  if (!t.ok()) return std::move(t).status();
  std::string text;
  const Result<Savepoint> before = t->savepoint();
  if (!before.ok()) return before.status();
  for (std::int64_t id = 3000; id < 3040; ++id)
    if (const auto row = t->insert(TableId(1), row_of(id, id, text)); !row.ok())
      return row.status();
  if (Status s = t->rollback_to(*before); !s.ok()) return s;
  for (std::int64_t id = 3000; id < 3040; ++id) {
    const std::vector<Value> row = row_of(id, id, text);
    const auto done = id % 2 == 0 ? t->upsert({TableId(1), 0}, row).status()
                                  : t->insert_if_absent({TableId(1), 0}, row).status();
    if (!done.ok()) return done;
  }
  if (Status s = t->commit(); !s.ok()) return s;
  for (std::int64_t id = 3000; id < 3040; ++id) contents[id] = id;
  return {};
}

std::vector<Operation> operations() {
  return {
      {"create_table",
       [](engine::DatabaseCore& core, Contents&) {
         const Result<TableId> made = core.create_table(rows_schema("another"));
         return made.ok() ? Status() : made.status();
       }},
      {"insert",
       [](engine::DatabaseCore& core, Contents& c) { return insert_many(core, c, 100, 500); }},
      {"insert_rows", insert_batch},
      {"update", update_all},
      {"remove", remove_all},
      {"merge", [](engine::DatabaseCore& core, Contents&) { return merge_all(core); }},
      {"remove from a row group", remove_merged},
      {"update in a row group and merge", update_merged},
      {"savepoint, upsert and insert_if_absent", write_in_parts},
      {"add_column", add_column},
      {"add_column, rename and drop_column", alter},
      {"change_type", change_types},
      {"add_key and drop_key", change_keys},
      {"checks, NOT NULL, defaults and foreign keys", change_constraints},
      {"drop_table",
       [](engine::DatabaseCore& core, Contents& contents) {
         Status s = core.drop_table(TableId(1));
         if (s.ok()) contents.clear();
         return s;
       }},
  };
}

void check_contents(engine::DatabaseCore& core, const Contents& expected) {
  must(core.verify({}));
  if (core.table(TableId(1)) == nullptr) {
    REQUIRE(expected.empty());
    return;
  }
  Contents found;
  bool whole = true;
  Transaction t = must(core.begin(AccessMode::kReadOnly));
  must(t.scan(TableId(1), {ColumnId(0), ColumnId(1), ColumnId(2), ColumnId(3)},
              [&](const ScanBatch& batch) {
                for (std::size_t i = 0; i < batch.row_count(); ++i) {
                  std::string text;
                  const std::int64_t id = batch.get_unchecked(0, i).as_int64();
                  const std::int64_t seed = batch.get_unchecked(3, i).as_int32();
                  row_of(id, seed, text);
                  whole &= batch.get_unchecked(1, i).as_string() == text;
                  whole &= batch.get_unchecked(2, i).as_string() == text;
                  found[id] = seed;
                }
                return true;
              }));
  CHECK(whole);
  CHECK((found == expected));
}

/// Runs `operation` on a database with a few rows; the allocations `first` to `last` fail. Returns
/// whether one did.
bool run_with_fault(const Operation& operation, std::uint64_t first, std::uint64_t last) {
  Subject subject;
  must(subject.create());
  must(subject.core->create_table(rows_schema("rows")));
  Contents contents;
  must(insert_many(*subject.core, contents, 0, 20));

  subject.faults.arm(first, last);
  const Status status = operation.run(*subject.core, contents);
  const bool injected = subject.faults.failed != 0;
  subject.faults.disarm();
  INFO(operation.name << ", allocation " << first << ": " << status.to_string());
  // An allocation made ahead of need may fail unnoticed; every other failure reaches the caller.
  if (!status.ok()) REQUIRE((injected && status.code() == StatusCode::kOutOfSpace));
  check_contents(*subject.core, contents);
  if (!status.ok()) must(operation.run(*subject.core, contents));
  check_contents(*subject.core, contents);
  // The used space equals what opening can reach: the failed attempt has lost no space.
  const std::uint64_t used = subject.used_bytes();
  must(subject.reopen());
  CHECK(subject.used_bytes() == used);
  check_contents(*subject.core, contents);
  return injected;
}

/// Returns the number of allocations.
std::uint64_t fail_each_allocation_of(const Operation& operation, bool all_later_ones) {
  std::uint64_t n = 1;
  while (run_with_fault(operation, n, all_later_ones ? AllocationFaults::kNone - 1 : n)) ++n;
  return n - 1;
}

void fail_each_allocation(bool all_later_ones) {
  std::map<std::string, std::uint64_t> allocations;
  for (const Operation& operation : operations())
    allocations[operation.name] = fail_each_allocation_of(operation, all_later_ones);
  CHECK(allocations["create_table"] >= 1);
  CHECK(allocations["insert"] >= 10);
  CHECK(allocations["insert_rows"] >= 5);
  CHECK(allocations["update"] >= 2);
  CHECK(allocations["merge"] >= 1);
  CHECK(allocations["remove from a row group"] > allocations["merge"]);
  CHECK(allocations["savepoint, upsert and insert_if_absent"] >= 2);
  CHECK(allocations["add_column"] >= 3);  // its layout, the schema, an entry with a long text
  CHECK(allocations["add_column, rename and drop_column"] >= 7);
  CHECK(allocations["change_type"] >= 5);  // layout and schema, twice; a chunk, long texts
  CHECK(allocations["add_key and drop_key"] >= 2);
  CHECK(allocations["checks, NOT NULL, defaults and foreign keys"] >= 5);
}

}  // namespace

TEST_CASE("one allocation fails in the middle of an operation", "[faults]") {
  fail_each_allocation(false);
}

TEST_CASE("all allocations fail from one on", "[faults]") { fail_each_allocation(true); }

// An index run covers the rows of the group, so the list of index runs changes, too.
TEST_CASE("an allocation fails while an emptied group becomes a chunk of rows", "[faults]") {
  std::uint64_t emptied = 0;
  for (std::uint64_t n = 1;; ++n) {
    INFO("allocation " << n);
    Subject subject(IndexPlace::kDram);  // else runs have no hash tables
    must(subject.create());
    TableSchema schema = rows_schema("rows");
    must(subject.core->create_table(schema.key("by_count", {"count"})));
    Contents contents;
    must(insert_many(*subject.core, contents, 0, 600));
    must(merge_all(*subject.core));
    must(remove_all(*subject.core, contents));
    must(insert_many(*subject.core, contents, 600, 620));
    must(subject.reopen());

    subject.faults.arm(n, n);
    MergeOptions options;
    options.scope = MergeScope::kEverything;
    options.threads = 1;
    const Result<MergeReport> merged = subject.core->merge(TableId(1), options);
    const bool injected = subject.faults.failed != 0;
    subject.faults.disarm();
    if (!merged.ok()) REQUIRE((injected && merged.code() == StatusCode::kOutOfSpace));
    if (merged.ok()) emptied += merged->chunks_emptied;
    check_contents(*subject.core, contents);
    const std::uint64_t used = subject.used_bytes();
    must(subject.reopen());
    CHECK(subject.used_bytes() == used);
    check_contents(*subject.core, contents);
    if (!injected) break;
  }
  CHECK(emptied >= 1);
}

TEST_CASE("an allocation fails while a database is created or opened", "[faults]") {
  for (std::uint64_t n = 1;; ++n) {
    Subject subject;
    subject.faults.arm(n, n);
    const Status created = subject.create();
    const bool injected = subject.faults.failed != 0;
    subject.faults.disarm();
    INFO("allocation " << n << ": " << created.to_string());
    REQUIRE(created.ok() == !injected);
    if (!created.ok()) {
      CHECK(created.code() == StatusCode::kOutOfSpace);
      must(subject.create());
    }
    must(subject.core->create_table(rows_schema("rows")));
    Contents contents;
    must(insert_many(*subject.core, contents, 0, 20));

    subject.faults.arm(n, n);
    const Status opened = subject.reopen();
    const bool injected_too = subject.faults.failed != 0;
    subject.faults.disarm();
    REQUIRE(opened.ok() == !injected_too);
    if (!opened.ok()) must(subject.reopen());
    check_contents(*subject.core, contents);
    if (!injected && !injected_too) break;
  }
}

}  // namespace flugs::test
