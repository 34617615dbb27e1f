// Threads delete, rename and refer to the same rows: no snapshot has a row that refers to a missing
// one.
#include <atomic>
#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "flugs/merge.h"
#include "test/support/complaint.h"
#include "test/support/random.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr ColumnId kOwnId{0};
constexpr ColumnId kReference{1};
constexpr std::int64_t kParentIds = 12;
constexpr std::int64_t kChildIds = 60;

struct Families {
  explicit Families(ReferenceAction action) {
    TableSchema parents("parents");
    parents.column("id", Type::kInt64).column("note", Type::kInt64).primary_key({"id"});
    parent = must(database->create_table(parents));
    TableSchema children("children");
    children.column("id", Type::kInt64).column("parent", Type::kInt64).primary_key({"id"});
    children.foreign_key("of_parent", {"parent"}, "parents", action, action);
    child = must(database->create_table(children));
  }

  // A step may be refused, but only for one of the known reasons.
  bool step(Random& random, Complaint& complaint) {
    Result<Transaction> t =
        database->begin(AccessMode::kReadWrite, static_cast<Isolation>(random.below(3)));
    if (!complaint.expect(t.ok(), t.status().to_string())) return false;
    for (std::uint64_t writes = 1 + random.below(3); writes != 0; --writes) {
      const Status s = write(*t, random);
      const bool is_known =
          s.ok() || s.code() == StatusCode::kConflict || s.code() == StatusCode::kNotFound ||
          s.code() == StatusCode::kAlreadyExists || s.code() == StatusCode::kConstraintViolated;
      if (!complaint.expect(is_known, s.to_string())) return false;
      if (s.code() == StatusCode::kConflict) return false;
    }
    const Status s = t->commit();
    complaint.expect(s.ok() || s.code() == StatusCode::kConflict, s.to_string());
    return s.ok();
  }

  Status write(Transaction& t, Random& random) {
    const Value of = Value::int64(static_cast<std::int64_t>(random.below(kParentIds)));
    const Value id = Value::int64(static_cast<std::int64_t>(random.below(kChildIds)));
    const std::uint64_t kind = random.below(8);
    if (kind == 0) return t.insert(parent, {of, Value::int64(0)}).status();
    if (kind <= 2) return t.insert(child, {id, random.chance(10) ? Value::null() : of}).status();
    const TableId table = kind <= 5 ? parent : child;
    const Result<Row> row = t.get({table, 0}, {kind <= 5 ? of : id});
    if (!row.ok()) return row.status();
    const Value next = Value::int64(static_cast<std::int64_t>(random.below(kParentIds)));
    switch (kind) {
      case 3:
      case 6:
        return t.remove(table, row->id());
      case 4:
        return t.update(parent, row->id(), {{kOwnId, next}}).status();
      case 5:
        return t.update(parent, row->id(), {{kReference, next}}).status();
      default:
        return t.update(child, row->id(), {{kReference, next}}).status();
    }
  }

  void look(Complaint& complaint) {
    Result<Transaction> t = database->begin(AccessMode::kReadOnly);
    if (!complaint.expect(t.ok(), t.status().to_string())) return;
    std::set<std::int64_t> ids;
    Status s = t->scan(parent, {kOwnId}, [&](const ScanBatch& batch) {
      for (const std::int64_t id : batch.column_unchecked<std::int64_t>(0)) ids.insert(id);
      return true;
    });
    complaint.expect(s.ok(), s.to_string());
    s = t->scan(child, {kReference}, [&](const ScanBatch& batch) {
      for (std::size_t i = 0; i < batch.row_count(); ++i) {
        const Value of = batch.get_unchecked(0, i);
        complaint.expect(of.is_null() || ids.contains(of.as_int64()),
                         "a row refers to parent " + of.to_string() + ", which is not there");
      }
      return true;
    });
    complaint.expect(s.ok(), s.to_string());
  }

  TemporaryDatabase database;
  TableId parent;
  TableId child;
};

}  // namespace

TEST_CASE("no snapshot has a row that refers to a missing row", "[concurrency]") {
  const ReferenceAction action =
      GENERATE(ReferenceAction::kRestrict, ReferenceAction::kCascade, ReferenceAction::kSetNull);
  constexpr int kThreads = 4;
  constexpr int kSteps = 2000 * kEffort;
  Families families(action);
  Complaint complaint;
  std::atomic<int> left{kThreads};
  std::atomic<int> commits{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      Random random(static_cast<std::uint64_t>(i) + 1);
      for (int n = 0; n < kSteps && !complaint.failed(); ++n)
        if (families.step(random, complaint)) commits.fetch_add(1);
      left.fetch_sub(1);
    });
  for (int round = 0; left.load() != 0 && !complaint.failed(); ++round) {
    families.look(complaint);
    if (round % 64 == 0) static_cast<void>(families.database->merge(families.parent, {}));
    if (round % 64 == 32) static_cast<void>(families.database->merge(families.child, {}));
  }
  for (std::thread& thread : threads) thread.join();
  families.look(complaint);
  INFO(complaint.what());
  CHECK_FALSE(complaint.failed());
  CHECK(commits.load() > kSteps);
  must(families.database->check({}));
  families.database.reopen();
  must(families.database->check({}));
}

}  // namespace flugs::test
