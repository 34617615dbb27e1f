// A pool that has grown to its end: everything committed is there, and what needs no space works.
#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <thread>

#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr std::int64_t kRowsPerTransaction = 20;

struct Full {
  TemporaryDatabase database{[](OpenOptions& options) {
    options.max_bytes = std::uint64_t{16} << 20;
    options.segment_bytes = std::uint64_t{1} << 20;
  }};
  TableId table;
  std::set<std::int64_t> committed;

  explicit Full(Encoding encoding) {
    TableSchema schema("rows");
    schema.column("id", Type::kInt64).column("text", Type::kString).not_null();
    schema.columns[1].encoding = encoding;
    schema.primary_key({"id"}).ordered();
    table = must(database->create_table(schema));
  }

  std::string text(std::int64_t id, std::size_t bytes) const {
    return std::to_string(id) + std::string(bytes, 't');
  }
  /// Inserts rows until one does not fit; aborts the transaction in which it did not.
  StatusCode fill(std::size_t text_bytes) {
    for (std::int64_t id = committed.empty() ? 0 : *committed.rbegin() + 1;;) {
      Transaction t = must(database->begin());
      std::set<std::int64_t> ids;
      for (std::int64_t i = 0; i < kRowsPerTransaction; ++i, ++id) {
        const std::string value = text(id, text_bytes);
        const auto row = t.insert(table, {Value::int64(id), Value::string(value)});
        if (!row.ok()) return row.code();  // aborts
        ids.insert(id);
      }
      if (const Status s = t.commit(); !s.ok()) return s.code();
      committed.merge(ids);
    }
  }
  /// Exactly the rows that were committed are there, by scan and by key.
  void check() {
    const Transaction t = must(database->begin(AccessMode::kReadOnly));
    std::set<std::int64_t> found;
    must(t.rows({table, 0}, {}, [&](const Row& row) {
      const std::int64_t id = row.get_unchecked<std::int64_t>(ColumnId(0));
      if (row.get_unchecked<std::string_view>(ColumnId(1)).starts_with(std::to_string(id)))
        found.insert(id);
      return true;
    }));
    CHECK((found == committed));
    std::size_t scanned = 0;
    must(t.scan(table, {ColumnId(0)}, [&](const ScanBatch& batch) {
      scanned += batch.row_count();
      return true;
    }));
    CHECK(scanned == committed.size());
  }
  /// Removes the rows in one transaction; says whether it committed.
  bool remove(const std::set<std::int64_t>& ids) {
    Transaction t = must(database->begin());
    for (const std::int64_t id : ids)
      must(t.remove(table, must(t.get({table, 0}, {Value::int64(id)})).id()));
    const Status s = t.commit();
    if (!s.ok()) {
      CHECK(s.code() == StatusCode::kOutOfSpace);
      return false;
    }
    for (const std::int64_t id : ids) committed.erase(id);
    return true;
  }
};

}  // namespace

TEST_CASE("a full pool keeps what was committed, reads, deletes and opens again", "[api]") {
  const Encoding encoding = GENERATE(Encoding::kDictionary, Encoding::kDirect);
  const std::size_t text_bytes = GENERATE(std::size_t{1}, std::size_t{200}, std::size_t{100'000});
  Full full(encoding);
  CHECK(full.fill(text_bytes) == StatusCode::kOutOfSpace);
  REQUIRE(full.committed.size() >= kRowsPerTransaction);
  full.check();
  // It stays full: no space is lost or won by failing.
  for (int i = 0; i < 50; ++i) CHECK(full.fill(200'000) == StatusCode::kOutOfSpace);
  full.check();
  must(full.database->check());
  full.database.reopen();
  full.check();
  must(full.database->check());
  CHECK(full.fill(200'000) == StatusCode::kOutOfSpace);
  // Removing all rows at once may need space for the list of writes; a few at a time do not.
  const std::set<std::int64_t> all = full.committed;
  if (!full.remove(all)) {
    full.check();
    while (!full.committed.empty()) CHECK(full.remove({*full.committed.begin()}));
  }
  full.check();
  full.database.reopen();
  full.check();
  must(full.database->check());
}

TEST_CASE("deleting makes room in a full pool", "[api]") {
  const std::size_t deleted = GENERATE(1u, 100u);
  Full full(Encoding::kDirect);
  CHECK(full.fill(1) == StatusCode::kOutOfSpace);
  const std::size_t before = full.committed.size();
  REQUIRE(before > deleted);
  const bool by_others = GENERATE(false, true);
  std::set<std::int64_t> ids(full.committed.begin(), std::next(full.committed.begin(), deleted));
  if (by_others) {
    // Dead rows of another slot: its next transaction learns that they are needed.
    CHECK(full.fill(1) == StatusCode::kOutOfSpace);
    for (const std::int64_t id : ids) full.committed.erase(id);
    std::thread([&] {
      Result<Transaction> t = full.database->begin();
      for (const std::int64_t id : ids) {
        const Result<Row> row = t->get({full.table, 0}, {Value::int64(id)});
        if (!row.ok() || !t->remove(full.table, row->id()).ok()) return;
      }
      if (t->commit().ok()) ids.clear();
    }).join();
    REQUIRE(ids.empty());
  } else {
    REQUIRE(full.remove(ids));
  }
  // One transaction may find no space; then there are rows for the next ones.
  std::size_t refused = 0;
  for (std::int64_t id = *full.committed.rbegin() + 1; full.committed.size() < before; ++id) {
    Transaction t = must(full.database->begin());
    const std::string text = full.text(id, 1);
    if (t.insert(full.table, {Value::int64(id), Value::string(text)}).ok()) {
      must(t.commit());
      full.committed.insert(id);
    } else {
      REQUIRE(++refused < 10);
    }
  }
  full.check();
  full.database.reopen();
  full.check();
  must(full.database->check());
}

TEST_CASE("dropping a table makes room in a full pool", "[api]") {
  Full full(Encoding::kDirect);
  CHECK(full.fill(300) == StatusCode::kOutOfSpace);
  TableSchema schema("other");
  schema.column("id", Type::kInt64)
      .column("text", Type::kString)
      .direct()
      .primary_key({"id"})
      .ordered();
  must(full.database->drop_table(full.table));
  const std::size_t before = std::exchange(full.committed, {}).size();
  full.table = must(full.database->create_table(schema));
  CHECK(full.fill(300) == StatusCode::kOutOfSpace);
  CHECK(full.committed.size() > before * 9 / 10);
  full.check();
  full.database.reopen();
  full.check();
}

TEST_CASE("a table that does not fit leaves the catalogue as it was", "[api]") {
  Full full(Encoding::kDirect);
  TableSchema schema("wide");
  for (int i = 0; i < 1000; ++i) schema.column("column" + std::to_string(i), Type::kBool);
  std::size_t tables = 1;
  StatusCode code = StatusCode::kOk;
  for (; code == StatusCode::kOk; ++tables) {
    schema.name = "wide" + std::to_string(tables);
    code = full.database->create_table(schema).code();
  }
  --tables;  // the last one failed
  CHECK(code == StatusCode::kOutOfSpace);
  CHECK(full.database->tables().size() == tables);
  full.database.reopen();
  CHECK(full.database->tables().size() == tables);
  CHECK(full.database->create_table(schema).code() == StatusCode::kOutOfSpace);
  must(full.database->drop_table(full.database->tables().back()));
  CHECK(full.database->create_table(schema).ok());
}

}  // namespace flugs::test
