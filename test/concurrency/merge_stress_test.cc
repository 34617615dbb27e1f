// Merges while readers read and writers update, delete and insert.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <limits>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "bench/support/random.h"
#include "flugs/merge.h"
#include "flugs/query.h"
#include "test/support/complaint.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr std::int64_t kAccounts = 2000;
// Least numbers for a run to count; ten times as many would take a sanitizer minutes.
constexpr std::uint64_t kMergedMin = kEffort;
constexpr std::uint64_t kAskedMin = 2 * kEffort;
constexpr ColumnId kMergedAmount{1};
constexpr ColumnId kText{2};
constexpr ColumnId kMemo{3};
constexpr ColumnId kMergedNote{4};

/// Accounts between which money moves: the total is the same in every snapshot.
class MergedBank {
 public:
  MergedBank() {
    TableSchema schema("accounts");
    schema.column("id", Type::kInt64).column("amount", Type::kInt64).column("text", Type::kString);
    schema.column("memo", Type::kString).direct().column("note", Type::kString);
    schema.columns[4].encoding = Encoding::kDictionary;
    schema.primary_key({"id"}).key("amount", {"amount", "id"}).ordered();
    table = must(database->create_table(schema));
    Transaction t = must(database->begin());
    for (std::int64_t id = 0; id < kAccounts; ++id) must(insert(t, id, 100));
    must(t.commit());
  }

  /// Texts that change with the amount, so that most stored texts are soon unused.
  static std::string memo_of(std::int64_t amount, char filling) {
    return std::string(90, filling) + std::to_string(amount);
  }
  Status insert(Transaction& t, std::int64_t id, std::int64_t amount) const {
    const std::string memo = memo_of(amount, 'm');
    const std::string note = memo_of(amount, 'n');
    return t
        .insert(table, {Value::int64(id), Value::int64(amount),
                        Value::string(std::string_view(text_of(id))), Value::string(memo),
                        Value::string(note)})
        .status();
  }
  Status set(Transaction& t, const Row& row, std::int64_t amount) const {
    const std::string memo = memo_of(amount, 'm');
    const std::string note = memo_of(amount, 'n');
    return t
        .update(table, row.id(),
                {{kMergedAmount, Value::int64(amount)},
                 {kMemo, Value::string(memo)},
                 {kMergedNote, Value::string(note)}})
        .status();
  }

  static std::string text_of(std::int64_t id) { return "account " + std::to_string(id % 50); }
  Result<Row> find(const Transaction& t, std::int64_t id) const {
    return t.get({table, 0}, {Value::int64(id)});
  }

  bool is_ended(StatusCode code) const noexcept {
    return ends_transactions && code == StatusCode::kCancelled;
  }

  /// Moves an amount between two accounts; now and then deletes and reinserts one of them.
  void move(bench::Random& random, Complaint& complaint) {
    auto t = database->begin();
    if (!t.ok()) return;
    const auto from_id = static_cast<std::int64_t>(random.between(0, kAccounts - 1));
    const std::int64_t to_id = (from_id + 1) % kAccounts;
    const auto from = find(*t, from_id);
    const auto to = find(*t, to_id);
    if (is_ended(from.code()) || is_ended(to.code())) return;
    if (!complaint.expect(from.ok() && to.ok(), "an account is not there")) return;
    const std::int64_t less = from->get_unchecked<std::int64_t>(kMergedAmount) - 1;
    const std::int64_t more = to->get_unchecked<std::int64_t>(kMergedAmount) + 1;
    complaint.expect(from->get_unchecked<std::string_view>(kText) == text_of(from_id),
                     "another account's text");
    complaint.expect(
        from->get_unchecked<std::string_view>(kMemo) == memo_of(less + 1, 'm') &&
            from->get_unchecked<std::string_view>(kMergedNote) == memo_of(less + 1, 'n'),
        "another amount's texts");
    bool done = set(*t, *to, more).ok();
    if (done && random.between(0, 7) == 0)
      done = t->remove(table, from->id()).ok() && insert(*t, from_id, less).ok();
    else if (done)
      done = set(*t, *from, less).ok();
    if (done && random.between(0, 9) != 0)
      complaint.expect(t->commit().ok(), "commit");
    else
      t->abort();
  }

  void check_sum(Complaint& complaint) {
    auto t = database->begin(AccessMode::kReadOnly);
    if (!t.ok()) return;
    std::int64_t sum = 0;
    std::size_t count = 0;
    bool has_memos = true;
    const Status scanned = t->scan(table, {kMergedAmount, kMemo}, [&](const ScanBatch& batch) {
      count += batch.row_count();
      for (const std::int64_t amount : batch.column_unchecked<std::int64_t>(0)) sum += amount;
      for (std::size_t r = 0; r < batch.row_count(); ++r)
        has_memos &= batch.get_unchecked(1, r).as_string() ==
                     memo_of(batch.column_unchecked<std::int64_t>(0)[r], 'm');
      return true;
    });
    complaint.expect(has_memos, "a scan saw another amount's text");
    if (is_ended(scanned.code())) return;
    complaint.expect(scanned.ok() && count == kAccounts && sum == 100 * kAccounts,
                     "a scan saw another sum");
    if (!check_query(*t, complaint)) return;
    std::size_t ranged = 0;
    std::int64_t last = std::numeric_limits<std::int64_t>::min();  // accounts may be overdrawn
    bool is_ascending = true;
    const Status walked = t->rows({table, 1}, {}, {}, [&](const Row& row) {
      ++ranged;
      is_ascending = is_ascending && row.get_unchecked<std::int64_t>(kMergedAmount) >= last;
      last = row.get_unchecked<std::int64_t>(kMergedAmount);
      return true;
    });
    if (is_ended(walked.code())) return;
    complaint.expect(walked.ok() && ranged == kAccounts, "a range saw another number of accounts");
    complaint.expect(is_ascending, "a range saw accounts in another order");
  }

  // Checks whole groups with deleted rows, and parts of groups behind a filter. False: the
  // transaction was ended.
  bool check_query(const Transaction& t, Complaint& complaint) const {
    using query::col;
    const query::Query all = query::Query::table("accounts");
    const query::Query some = all.where(col("text") != "nobody's");
    for (const query::Query& rows : {all, some}) {
      const auto result = rows.group_by({}, {query::sum("amount"), query::count(), query::min("id"),
                                             query::max("id")})
                              .run(t);
      if (is_ended(result.code())) return false;
      if (!complaint.expect(result.ok(), "query: " + result.status().to_string())) return true;
      const auto number = [&](std::size_t i) { return result->get_unchecked(0, i).as_int64(); };
      complaint.expect(number(0) == 100 * kAccounts && number(1) == kAccounts,
                       "a query saw another sum");
      complaint.expect(number(2) == 0 && number(3) == kAccounts - 1, "a query saw other accounts");
    }
    return true;
  }

  void check_before_and_after_opening(Complaint& complaint) {
    must(database->check());
    check_sum(complaint);
    database.reopen();
    check_sum(complaint);
    CHECK(complaint.what() == "");
    must(database->check());
  }

  TemporaryDatabase database;
  TableId table;
  bool ends_transactions = false;  ///< merges may end any of them
};

/// Three threads move money and one adds it up, for some time or until one of them fails.
class Traffic {
 public:
  Traffic(MergedBank& bank, std::chrono::seconds time, Complaint& complaint)
      : complaint_(complaint), time_(time), end_(std::chrono::steady_clock::now() + time) {
    for (std::uint64_t user = 1; user <= 3; ++user)
      threads_.emplace_back([this, user, &bank] {
        bench::Random random(user);
        while (!stops_.load() && !complaint_.failed()) bank.move(random, complaint_);
      });
    threads_.emplace_back([this, &bank] {
      while (!stops_.load() && !complaint_.failed()) bank.check_sum(complaint_);
    });
  }
  ~Traffic() { stop(); }
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

  /// Runs up to ten times as long if too little has happened by then: under a sanitizer, on a busy
  /// machine.
  bool goes_on(bool is_enough = true) const {
    const auto now = std::chrono::steady_clock::now();
    return !complaint_.failed() && (now < end_ || (!is_enough && now < end_ + 9 * time_));
  }
  void stop() {
    stops_.store(true);
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  Complaint& complaint_;
  const std::chrono::seconds time_;
  const std::chrono::steady_clock::time_point end_;
  std::atomic<bool> stops_{false};
  std::vector<std::thread> threads_;
};

// Returns how many chunks and groups were merged: more than `merged_min`, if ten times the time
// suffices.
std::uint64_t move_and_merge(MergedBank& bank, std::chrono::seconds time, std::uint64_t merged_min,
                             Complaint& complaint) {
  std::uint32_t renewed = 0;
  Traffic traffic(bank, time, complaint);
  std::uint64_t merged = 0;
  while (traffic.goes_on(merged > merged_min)) {
    MergeOptions options;
    options.scope = MergeScope::kEverything;
    options.dead_percent = 10;
    options.threads = 2;
    options.waste_bytes = std::uint64_t{16} << 10;  // columns begin anew again and again
    options.patience = std::chrono::milliseconds(3000);
    const auto report = bank.database->merge(bank.table, options);
    complaint.expect(report.ok(), "merge: " + report.status().to_string());
    if (!report.ok()) continue;
    merged += report->chunks_merged + report->groups_merged + report->chunks_emptied;
    renewed += report->columns_rewritten;
  }
  CHECK(renewed > 0);
  return merged;
}

}  // namespace

TEST_CASE("money moves while its accounts are merged", "[engine]") {
  MergedBank bank;
  Complaint complaint;
  const std::uint64_t merged = move_and_merge(bank, std::chrono::seconds(3), kMergedMin, complaint);
  REQUIRE(complaint.what() == "");
  CHECK(merged > kMergedMin);
  bank.check_before_and_after_opening(complaint);
}

TEST_CASE("money moves between accounts that index runs serve", "[engine]") {
  MergedBank bank;
  Complaint complaint;
  for (int round = 0; round < rounds_of(4, 2); ++round) {
    MergeOptions options;
    options.scope = MergeScope::kEverything;
    must(bank.database->merge(bank.table, options));
    bank.database.reopen();
    CHECK(bank.database->recovery_report().rows_live == 0);
    bank.check_sum(complaint);
    move_and_merge(bank, std::chrono::seconds(1), 0, complaint);
    REQUIRE(complaint.what() == "");
    must(bank.database->check());
  }
}

TEST_CASE("money moves while its accounts are merged by policy", "[engine]") {
  MergedBank bank;
  Complaint complaint;
  MergePolicy policy;
  policy.automatic = true;
  policy.delta_bytes = 1;
  policy.dead_percent = 10;
  policy.written_percent = 100;
  policy.waste_bytes = std::uint64_t{64} << 10;
  policy.interval = std::chrono::milliseconds(10);
  must(bank.database->set_merge_policy(bank.table, policy));
  Traffic traffic(bank, std::chrono::seconds(3), complaint);
  for (std::uint32_t round = 0; traffic.goes_on(); ++round) {
    // Changes the policy, and another table that comes and goes.
    policy.threads = 1 + round / 16 % 2;
    policy.written_percent = round % 32 == 16 ? 0 : 100;
    if (round % 16 == 0)
      complaint.expect(bank.database->set_merge_policy(bank.table, policy).ok(), "policy");
    TableSchema schema("passing");
    schema.column("id", Type::kInt64);
    const auto passing = bank.database->create_table(schema);
    complaint.expect(passing.ok(), "create: " + passing.status().to_string());
    if (!passing.ok()) break;
    complaint.expect(bank.database->set_merge_policy(*passing, policy).ok(), "policy");
    complaint.expect(bank.database->merge_status(*passing).ok(), "status");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    // A slow machine may need longer than the second that a drop waits for transactions.
    Status dropped = bank.database->drop_table(*passing);
    for (int tries = 0; tries < 10 && dropped.code() == StatusCode::kBusy; ++tries)
      dropped = bank.database->drop_table(*passing);
    complaint.expect(dropped.ok(), "drop: " + dropped.to_string());
    static_cast<void>(bank.database->statistics());
  }
  traffic.stop();
  REQUIRE(complaint.what() == "");
  const MergeStatus status = must(bank.database->merge_status(bank.table));
  CHECK(status.merges != 0);
  must(bank.database->set_merge_policy(bank.table, {}));
  bank.check_before_and_after_opening(complaint);
}

TEST_CASE("money moves while merges end the transactions in their way", "[engine]") {
  MergedBank bank;
  bank.ends_transactions = true;
  Complaint complaint;
  Traffic traffic(bank, std::chrono::seconds(4), complaint);
  std::uint64_t asked = 0;
  std::uint64_t merged = 0;
  for (int round = 0; traffic.goes_on(asked > kAskedMin && merged > kMergedMin / 2); ++round) {
    MergeOptions options;
    options.scope = MergeScope::kEverything;
    options.dead_percent = 10;
    options.patience = std::chrono::milliseconds(1 + round % 4);
    options.ends_old_transactions = true;
    const auto report = bank.database->merge(bank.table, options);
    complaint.expect(report.ok() || report.code() == StatusCode::kBusy,
                     "merge: " + report.status().to_string());
    if (!report.ok()) continue;
    asked += report->transactions_asked_to_end;
    merged += report->chunks_merged + report->groups_merged + report->chunks_emptied;
  }
  traffic.stop();
  REQUIRE(complaint.what() == "");
  CHECK(asked > kAskedMin);
  CHECK(merged > kMergedMin / 2);
  bank.ends_transactions = false;
  bank.check_before_and_after_opening(complaint);
}

TEST_CASE("a merge is no open transaction", "[engine]") {
  const TemporaryPath path;
  Database database = must(Database::open(small_options(path.string())));
  TableSchema schema("numbers");
  schema.column("id", Type::kInt64).primary_key({"id"});
  const TableId table = must(database.create_table(schema));
  std::atomic<bool> done{false};
  std::atomic<std::uint64_t> looks{0};
  Complaint complaint;
  std::thread merger([&] {
    for (int i = 0; (i < 500 * kEffort || looks == 0) && !complaint.failed(); ++i) {
      const Status merged = database.merge(table).status();
      complaint.expect(merged.ok(), merged.to_string());
    }
    done = true;
  });
  for (; !done; ++looks)
    complaint.expect(database.statistics().transactions_open == 0, "a merge is counted");
  merger.join();
  CHECK(complaint.what() == "");
  CHECK(looks > 0);
}

// A merge takes idle slots for a moment, to reclaim the dead rows of their transactions.
TEST_CASE("merges leave each thread its transaction, however few slots there are", "[engine]") {
  constexpr std::int64_t kThreads = 2;
  const TemporaryPath path;
  OpenOptions options = small_options(path.string());
  options.slots_max = kThreads;
  Database database = must(Database::open(options));
  TableSchema schema("counters");
  schema.column("id", Type::kInt64).column("n", Type::kInt64).primary_key({"id"});
  const TableId table = must(database.create_table(schema));
  Complaint complaint;
  std::atomic<std::uint64_t> merges{0};
  std::vector<std::thread> threads;
  for (std::int64_t id = 0; id < kThreads; ++id)
    threads.emplace_back([&, id] {
      const auto count = [&](std::int64_t n) -> Status {
        Result<Transaction> t = database.begin();
        if (!t.ok()) return t.status();
        if (n == 0) {
          if (Status s = t->insert(table, {Value::int64(id), Value::int64(0)}).status(); !s.ok())
            return s;
        } else {
          const Result<Row> row = t->get({table, 0}, {Value::int64(id)});
          if (!row.ok()) return row.status();
          const Status s = t->update(table, row->id(), {{ColumnId(1), Value::int64(n)}}).status();
          if (!s.ok()) return s;
        }
        return t->commit();
      };
      for (std::int64_t n = 0; merges < 200 * kEffort && !complaint.failed(); ++n) {
        const Status counted = count(n);
        complaint.expect(counted.ok(), counted.to_string());
      }
    });
  while (merges < 200 * kEffort && !complaint.failed()) {
    const Status merged = database.merge(table).status();
    complaint.expect(merged.ok() || merged.code() == StatusCode::kBusy, merged.to_string());
    merges.fetch_add(1);
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(complaint.what() == "");
}

}  // namespace flugs::test
