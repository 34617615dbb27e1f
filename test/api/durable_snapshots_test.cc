// Readers that see nothing that a power cut could still take back.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <vector>

#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

using std::chrono::milliseconds;

/// A table with a number for each id, and commits that nobody waits for.
class DurableReads {
 public:
  explicit DurableReads(const std::string& medium = "/var/tmp")
      : path_(medium), database_(must(Database::open(small_options(path_.string())))) {
    TableSchema schema("numbers");
    schema.column("id", Type::kInt64).column("number", Type::kInt64).primary_key({"id"});
    table_ = must(database_.create_table(schema));
  }
  bool has_journal() const { return database_.statistics().flush == "journal"; }
  Database& database() { return database_; }
  TableId table() const { return table_; }

  void insert(std::int64_t id, std::int64_t number, const CommitOptions& how = kMuchLater) {
    Transaction t = must(database_.begin());
    must(t.insert(table_, {Value::int64(id), Value::int64(number)}).status());
    must(t.commit(how));
    newest_ = t.commit_timestamp();
  }
  void update(std::int64_t id, std::int64_t number, const CommitOptions& how = kMuchLater) {
    Transaction t = must(database_.begin());
    must(t.update({table_, 0}, {Value::int64(id)}, {{ColumnId(1), Value::int64(number)}}).status());
    must(t.commit(how));
    newest_ = t.commit_timestamp();
  }
  void make_durable() { must(database_.wait_durable(database_.durable_token())); }
  std::uint64_t newest() const { return newest_; }
  Transaction begin(AccessMode mode = AccessMode::kReadOnlyDurable) {
    return must(database_.begin(mode));
  }
  /// 0: there is no such row.
  std::int64_t number(const Transaction& t, std::int64_t id) const {
    const Result<Row> row = t.get({table_, 0}, {Value::int64(id)});
    return row.ok() ? row->get<std::int64_t>(ColumnId(1)).value() : 0;
  }

  static constexpr CommitOptions kMuchLater{.durability = Durability::kSoon,
                                            .soon = milliseconds(60'000)};

 private:
  TemporaryPath path_;
  Database database_;
  TableId table_;
  std::uint64_t newest_ = 0;
};

}  // namespace

TEST_CASE("a durable reader sees a commit when it is durable", "[api][soon]") {
  DurableReads reads;
  if (!reads.has_journal()) return;
  reads.insert(1, 10, {});
  CHECK(reads.number(reads.begin(), 1) == 10);
  reads.insert(2, 20);
  reads.update(1, 11);
  const Transaction before = reads.begin();
  CHECK(before.snapshot() < reads.newest());
  CHECK(reads.number(before, 1) == 10);
  CHECK(reads.number(before, 2) == 0);
  CHECK(reads.number(reads.begin(AccessMode::kReadOnly), 1) == 11);
  reads.make_durable();
  CHECK(reads.number(before, 1) == 10);
  CHECK(reads.number(before, 2) == 0);
  const Transaction after = reads.begin();
  CHECK(after.snapshot() >= reads.newest());
  CHECK(reads.number(after, 1) == 11);
  CHECK(reads.number(after, 2) == 20);
}

TEST_CASE("without a journal a durable reader sees every commit", "[api][soon]") {
  DurableReads reads("/dev/shm");
  CHECK_FALSE(reads.has_journal());
  reads.insert(1, 10);
  const Transaction t = reads.begin();
  CHECK(t.snapshot() == reads.newest());
  CHECK(reads.number(t, 1) == 10);
}

TEST_CASE("a durable reader cannot write, and its mode is shown", "[api][soon]") {
  DurableReads reads;
  Transaction t = reads.begin();
  const Status refused = t.insert(reads.table(), {Value::int64(1), Value::int64(1)}).status();
  CHECK(refused.code() == StatusCode::kReadOnly);
  for (const Isolation isolation :
       {Isolation::kSnapshot, Isolation::kSerializable, Isolation::kReadCommitted}) {
    const Transaction other = must(reads.database().begin(AccessMode::kReadOnlyDurable, isolation));
    const std::vector<TransactionInfo> open = reads.database().transactions();
    REQUIRE(open.size() == 2);
    const TransactionInfo& info = open[0].id == other.id() ? open[0] : open[1];
    CHECK(info.mode == AccessMode::kReadOnlyDurable);
    CHECK(info.isolation == isolation);
  }
}

TEST_CASE("with read committed each call sees what is durable by then", "[api][soon]") {
  DurableReads reads;
  if (!reads.has_journal()) return;
  const Transaction t =
      must(reads.database().begin(AccessMode::kReadOnlyDurable, Isolation::kReadCommitted));
  reads.insert(1, 10);
  CHECK(reads.number(t, 1) == 0);
  reads.make_durable();
  CHECK(reads.number(t, 1) == 10);
  reads.update(1, 11);
  CHECK(reads.number(t, 1) == 10);
}

// Old versions die thousands of commits before the first reader begins, and rows are used again.
TEST_CASE("garbage collection keeps what a durable reader may see", "[api][soon]") {
  constexpr std::int64_t kIds = 20;
  DurableReads reads;
  if (!reads.has_journal()) return;
  for (std::int64_t id = 0; id < kIds; ++id) reads.insert(id, 1, {});
  std::int64_t updates = 0;
  while (updates < 7000) {
    reads.update(updates % kIds, 1000 + updates);
    if (++updates % 1000 == 0) reads.make_durable();
    if (updates % 500 != 0) continue;
    const Transaction t = reads.begin();
    std::int64_t seen = 0;  // of the updates: the journal may have been written meanwhile
    for (std::int64_t id = 0; id < kIds; ++id)
      seen = std::max(seen, reads.number(t, id) - 1000 + 1);
    CHECK(seen >= updates / 1000 * 1000);
    CHECK(seen <= updates);
    for (std::int64_t id = 0; id < kIds; ++id)
      CHECK(reads.number(t, (seen + id) % kIds) ==
            (seen < kIds - id ? 1 : 1000 + seen - kIds + id));
  }
}

TEST_CASE("schema changes and merges make durable what durable readers lack", "[api][soon]") {
  DurableReads reads;
  if (!reads.has_journal()) return;
  for (std::int64_t id = 1; id <= 5000; ++id) reads.insert(id, id);
  const auto merge = [&] { must(reads.database().merge(reads.table()).status()); };
  merge();
  CHECK(reads.number(reads.begin(), 5000) == 5000);
  reads.update(7, 70);
  must(reads.database().add_key(reads.table(), {"numbers", {"number"}}));
  CHECK(reads.number(reads.begin(), 7) == 70);
  reads.update(7, 71);
  TableSchema other("others");
  other.column("id", Type::kInt64).primary_key({"id"});
  must(reads.database().drop_table(must(reads.database().create_table(other))));
  CHECK(reads.number(reads.begin(), 7) == 71);
}

}  // namespace flugs::test
