// Threads with serializable transactions: invariants over several rows that each transaction keeps
// alone, and that two together would break with snapshot isolation.
#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <thread>
#include <vector>

#include "test/support/complaint.h"
#include "test/support/random.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr ColumnId kDoctor{0};
constexpr ColumnId kShift{1};
constexpr ColumnId kOnCall{2};

TableSchema duty_schema(const std::string& name) {
  TableSchema schema(name);
  schema.column("doctor", Type::kInt64).column("shift", Type::kInt64);
  schema.column("on_call", Type::kInt64);
  schema.primary_key({"doctor"});
  schema.key("by_shift", {"shift"}).ordered();
  return schema;
}

struct Hospital {
  TemporaryDatabase database;
  TableId table = must(database->create_table(duty_schema("duty")));
  TableId other = must(database->create_table(duty_schema("holidays")));
  KeyId doctor{table, 0};
  KeyId by_shift{table, 1};
  KeyId on_holiday{other, 0};

  static std::vector<Value> row(std::int64_t id, std::int64_t shift, std::int64_t on_call) {
    return {Value::int64(id), Value::int64(shift), Value::int64(on_call)};
  }
  Transaction begin(AccessMode mode = AccessMode::kReadWrite) {
    Result<Transaction> begun = database->begin(mode, Isolation::kSerializable);
    return begun.ok() ? std::move(*begun) : Transaction();  // a default one refuses every call
  }
};

/// Threads that call step(thread, random) `steps` times each; meanwhile another thread calls
/// look(). It yields after each call: a step that yields in its middle then waits for a look, not
/// for the end of the other thread's time slice.
void run_steps(int threads, int steps, Complaint& complaint,
               const std::function<void(int, Random&)>& step, const std::function<void()>& look) {
  std::atomic<int> left{threads};
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i)
    running.emplace_back([&, i] {
      Random random(static_cast<std::uint64_t>(i) + 1);
      for (int n = 0; n < steps && !complaint.failed(); ++n) step(i, random);
      left.fetch_sub(1);
    });
  while (left.load() != 0 && !complaint.failed()) {
    look();
    std::this_thread::yield();
  }
  for (std::thread& thread : running) thread.join();
  look();
}

}  // namespace

TEST_CASE("serializable: one of two rows stays, as the rule demands", "[engine]") {
  constexpr std::int64_t kPairs = 4;
  Hospital hospital;
  {
    Transaction t = hospital.begin();
    for (std::int64_t i = 0; i < kPairs * 2; ++i)
      must(t.insert(hospital.table, Hospital::row(i, i / 2, 1)));
    must(t.commit());
  }
  Complaint complaint;
  std::atomic<std::uint64_t> committed{0};
  const auto step = [&](int, Random& random) {
    Transaction t = hospital.begin();
    const auto first = static_cast<std::int64_t>(random.below(kPairs)) * 2;
    const auto mine = first + static_cast<std::int64_t>(random.below(2));
    const Result<Row> a = t.get(hospital.doctor, {Value::int64(first)});
    const Result<Row> b = t.get(hospital.doctor, {Value::int64(first + 1)});
    if (!complaint.expect(a.ok() && b.ok(), "both are there")) return;
    const Row& own = mine == first ? *a : *b;
    const bool both =
        a->get_unchecked<std::int64_t>(kOnCall) + b->get_unchecked<std::int64_t>(kOnCall) == 2;
    const std::int64_t wanted = own.get_unchecked<std::int64_t>(kOnCall) == 0 ? 1 : (both ? 0 : 1);
    if (wanted == own.get_unchecked<std::int64_t>(kOnCall)) return;
    std::this_thread::yield();  // now another thread reads what is about to change
    if (!t.update(hospital.table, own.id(), {{kOnCall, Value::int64(wanted)}}).ok()) return;
    const Status done = t.commit();
    if (done.ok()) committed.fetch_add(1, std::memory_order_relaxed);
    complaint.expect(done.ok() || done.code() == StatusCode::kConflict, "commit");
  };
  const auto look = [&] {
    const Transaction t = hospital.begin(AccessMode::kReadOnly);
    for (std::int64_t i = 0; i < kPairs; ++i) {
      std::int64_t on_call = 0;
      for (std::int64_t d = i * 2; d < i * 2 + 2; ++d)
        if (const Result<Row> row = t.get(hospital.doctor, {Value::int64(d)}); row.ok())
          on_call += row->get_unchecked<std::int64_t>(kOnCall);
      complaint.expect(on_call >= 1, "somebody is on call");
    }
  };
  run_steps(3, 4000 * kEffort, complaint, step, look);
  CHECK(complaint.what() == "");
  CHECK(committed.load() > 100);
}

TEST_CASE("serializable: no more rows are added than each adding transaction counted", "[engine]") {
  constexpr std::int64_t kShifts = 3;
  constexpr std::size_t kRowsMax = 4;
  Hospital hospital;
  Complaint complaint;
  std::atomic<std::int64_t> next{0};
  std::atomic<std::uint64_t> added{0};
  const auto count_by_key = [&](const Transaction& t, std::int64_t shift, RowId& last) {
    std::size_t rows = 0;
    complaint.expect(t.rows(hospital.by_shift, {Value::int64(shift)},
                            [&](const Row& row) {
                              ++rows;
                              last = row.id();
                              return true;
                            })
                         .ok(),
                     "rows");
    return rows;
  };
  const auto count_by_scan = [&](const Transaction& t, std::int64_t shift) {
    std::size_t rows = 0;
    complaint.expect(
        t.scan(hospital.table, std::vector{kDoctor}, Predicate::equal(kShift, Value::int64(shift)),
               [&](const ScanBatch& batch) {
                 rows += batch.row_count();
                 return true;
               })
            .ok(),
        "scan");
    return rows;
  };
  const auto step = [&](int, Random& random) {
    Transaction t = hospital.begin();
    const auto shift = static_cast<std::int64_t>(random.below(kShifts));
    RowId last{0};
    const bool scans = random.chance(30);
    const std::size_t rows = scans ? count_by_scan(t, shift) : count_by_key(t, shift, last);
    if (rows == kRowsMax && !scans) {
      if (!t.remove(hospital.table, last).ok()) return;
    } else if (rows < kRowsMax) {
      if (!t.insert(hospital.table, Hospital::row(next.fetch_add(1), shift, 1)).ok()) return;
      if (t.commit().ok()) added.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    static_cast<void>(t.commit());
  };
  const auto look = [&] {
    const Transaction t = hospital.begin(AccessMode::kReadOnly);
    RowId last{0};
    for (std::int64_t shift = 0; shift < kShifts; ++shift) {
      const std::size_t rows = count_by_key(t, shift, last);
      complaint.expect(rows <= kRowsMax, "no more rows than allowed");
      complaint.expect(rows == count_by_scan(t, shift), "key and scan agree");
    }
  };
  run_steps(3, 3000 * kEffort, complaint, step, look);
  CHECK(complaint.what() == "");
  CHECK(added.load() > 100);
}

TEST_CASE("serializable: an absent row is still absent at commit", "[engine]") {
  constexpr std::int64_t kDoctors = 8;
  Hospital hospital;
  Complaint complaint;
  std::atomic<std::uint64_t> moved{0};
  // A doctor goes on duty or on holiday, after a look at the other table.
  const auto step = [&](int, Random& random) {
    Transaction t = hospital.begin();
    const auto id = static_cast<std::int64_t>(random.below(kDoctors));
    const bool to_duty = random.chance(50);
    const KeyId wanted = to_duty ? hospital.doctor : hospital.on_holiday;
    const KeyId against = to_duty ? hospital.on_holiday : hospital.doctor;
    if (const Result<Row> row = t.get(wanted, {Value::int64(id)}); row.ok()) {
      if (!t.remove(wanted.table, row->id()).ok()) return;
    } else if (t.get(against, {Value::int64(id)}).code() == StatusCode::kNotFound) {
      if (!t.insert(wanted.table, Hospital::row(id, 0, 1)).ok()) return;
    }
    if (t.commit().ok()) moved.fetch_add(1, std::memory_order_relaxed);
  };
  const auto look = [&] {
    const Transaction t = hospital.begin(AccessMode::kReadOnly);
    for (std::int64_t id = 0; id < kDoctors; ++id)
      complaint.expect(!t.get(hospital.doctor, {Value::int64(id)}).ok() ||
                           !t.get(hospital.on_holiday, {Value::int64(id)}).ok(),
                       "nobody is on duty and on holiday");
  };
  run_steps(3, 4000 * kEffort, complaint, step, look);
  CHECK(complaint.what() == "");
  CHECK(moved.load() > 100);
}

}  // namespace flugs::test
