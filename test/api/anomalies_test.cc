// The named anomalies: two or three transactions interleaved by hand, after Hermitage (Kleppmann,
// 2014). The tests say which level of isolation admits which.
#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr ColumnId kIdColumn{0};
constexpr ColumnId kValueColumn{1};

/// The outcome of an anomaly.
enum class Became : std::uint8_t {
  kNothing,   ///< it did not happen, and all transactions committed
  kConflict,  ///< it did not happen: a writer got a conflict
  kHappened,
};

/// Two rows, 1 with 10 and 2 with 20, in the delta or in main.
class TwoRows {
 public:
  TwoRows(Isolation isolation, bool in_main) : isolation_(isolation) {
    TableSchema schema("test");
    schema.column("id", Type::kInt64).column("value", Type::kInt64);
    schema.primary_key({"id"}).key("by_value", {"value"});
    table_ = must(database_->create_table(schema));
    Transaction t = begin();
    must(insert(t, 1, 10));
    must(insert(t, 2, 20));
    must(t.commit());
    if (!in_main) return;
    MergeOptions everything;
    everything.scope = MergeScope::kEverything;
    must(database_->merge(table_, everything));
  }

  Transaction begin() { return must(database_->begin(AccessMode::kReadWrite, isolation_)); }

  Status insert(Transaction& t, std::int64_t id, std::int64_t value) const {
    return t.insert(table_, {Value::int64(id), Value::int64(value)}).status();
  }
  Status update(Transaction& t, std::int64_t id, std::int64_t value) const {
    const Result<Row> row = t.get({table_, 0}, {Value::int64(id)});
    if (!row.ok()) return row.status();
    return t.update(table_, row->id(), {{kValueColumn, Value::int64(value)}}).status();
  }
  Status remove(Transaction& t, std::int64_t id) const {
    const Result<Row> row = t.get({table_, 0}, {Value::int64(id)});
    return row.ok() ? t.remove(table_, row->id()) : row.status();
  }
  /// 0: the row is absent.
  std::int64_t read(const Transaction& t, std::int64_t id) const {
    const Result<Row> row = t.get({table_, 0}, {Value::int64(id)});
    return row.ok() ? row->get_unchecked<std::int64_t>(kValueColumn) : 0;
  }
  /// Ids of the rows whose value is a multiple of a number, by a scan and by the index over values.
  std::vector<std::int64_t> multiples(const Transaction& t, std::int64_t of) const {
    std::vector<std::int64_t> scanned;
    must(t.scan(table_, {kIdColumn, kValueColumn}, [&](const ScanBatch& batch) {
      for (std::size_t i = 0; i < batch.row_count(); ++i)
        if (batch.column_unchecked<std::int64_t>(1)[i] % of == 0)
          scanned.push_back(batch.column_unchecked<std::int64_t>(0)[i]);
      return true;
    }));
    std::vector<std::int64_t> walked;
    must(t.rows({table_, 1}, {}, {}, [&](const Row& row) {
      if (row.get_unchecked<std::int64_t>(kValueColumn) % of == 0)
        walked.push_back(row.get_unchecked<std::int64_t>(kIdColumn));
      return true;
    }));
    std::sort(scanned.begin(), scanned.end());
    std::sort(walked.begin(), walked.end());
    CHECK(scanned == walked);
    return scanned;
  }
  /// The values of rows 1 and 2 for a transaction of its own.
  std::vector<std::int64_t> values() {
    const Transaction t = begin();
    return {read(t, 1), read(t, 2)};
  }

 private:
  Isolation isolation_;
  TemporaryDatabase database_;
  TableId table_;
};

/// Checks that a write either succeeded or got a conflict.
bool is_conflict(const Status& status) {
  CHECK((status.ok() || status.code() == StatusCode::kConflict));
  return !status.ok();
}

Became either(bool has_happened) { return has_happened ? Became::kHappened : Became::kNothing; }

using Values = std::vector<std::int64_t>;
using Ids = std::vector<std::int64_t>;

// Writes of two transactions lie between each other.
Became g0(TwoRows& rows) {
  Transaction a = rows.begin();
  Transaction b = rows.begin();
  must(rows.update(a, 1, 11));
  const bool told = is_conflict(rows.update(b, 1, 12));
  must(rows.update(a, 2, 21));
  must(a.commit());
  CHECK(rows.values() == Values{11, 21});
  if (told) {
    b.abort();
    return Became::kConflict;
  }
  must(rows.update(b, 2, 22));
  must(b.commit());
  return either(rows.values() != Values{12, 22});
}

// A value of an aborted transaction is read.
Became g1a(TwoRows& rows) {
  Transaction a = rows.begin();
  Transaction b = rows.begin();
  must(rows.update(a, 1, 101));
  const std::int64_t first = rows.read(b, 1);
  a.abort();
  const std::int64_t second = rows.read(b, 1);
  must(b.commit());
  return either(first != 10 || second != 10);
}

// A value that its writer overwrote is read.
Became g1b(TwoRows& rows) {
  Transaction a = rows.begin();
  Transaction b = rows.begin();
  must(rows.update(a, 1, 101));
  const std::int64_t first = rows.read(b, 1);
  must(rows.update(a, 1, 11));
  must(a.commit());
  const std::int64_t second = rows.read(b, 1);
  must(b.commit());
  return either(first == 101 || second == 101);
}

// Two transactions read each other's writes.
Became g1c(TwoRows& rows) {
  Transaction a = rows.begin();
  Transaction b = rows.begin();
  must(rows.update(a, 1, 11));
  must(rows.update(b, 2, 22));
  const bool a_sees_b = rows.read(a, 2) == 22;
  const bool b_sees_a = rows.read(b, 1) == 11;
  must(a.commit());
  if (is_conflict(b.commit())) return Became::kConflict;
  CHECK(rows.values() == Values{11, 22});
  return either(a_sees_b && b_sees_a);
}

// A transaction that was seen vanishes again.
Became otv(TwoRows& rows) {
  Transaction a = rows.begin();
  must(rows.update(a, 1, 11));
  must(rows.update(a, 2, 19));
  Transaction early = rows.begin();
  CHECK(is_conflict(rows.update(early, 1, 12)));
  early.abort();
  must(a.commit());
  Transaction b = rows.begin();
  Transaction reader = rows.begin();
  must(rows.update(b, 1, 12));
  const std::int64_t first = rows.read(reader, 1);
  must(rows.update(b, 2, 18));
  const std::int64_t second = rows.read(reader, 2);
  must(b.commit());
  const std::int64_t third = rows.read(reader, 2);
  const std::int64_t fourth = rows.read(reader, 1);
  must(reader.commit());
  const bool has_seen_b = first == 12 || second == 18 || third == 18;
  return either(has_seen_b && ((first == 12 && second == 19) || third == 19 || fourth == 11));
}

// The second of two reads by conditions sees a commit between them.
Became pmp(TwoRows& rows) {
  Transaction a = rows.begin();
  CHECK(rows.multiples(a, 30).empty());
  Transaction b = rows.begin();
  must(rows.insert(b, 3, 30));
  must(b.commit());
  const Ids seen = rows.multiples(a, 3);
  must(a.commit());
  return either(!seen.empty());
}

// The same, with a deletion by a condition on values that another transaction is changing.
Became pmp_of_writes(TwoRows& rows) {
  Transaction a = rows.begin();
  Transaction b = rows.begin();
  must(rows.update(a, 1, 20));
  must(rows.update(a, 2, 30));
  const Ids doomed = rows.multiples(b, 20);
  CHECK(doomed == Ids{2});
  const bool told = is_conflict(rows.remove(b, 2));
  must(a.commit());
  if (told) {
    b.abort();
    CHECK(rows.values() == Values{20, 30});
    return Became::kConflict;
  }
  must(b.commit());
  return either(rows.values() != Values{0, 30});
}

// P4: an update is lost.
Became lost_update(TwoRows& rows) {
  Transaction a = rows.begin();
  Transaction b = rows.begin();
  const std::int64_t seen_by_a = rows.read(a, 1);
  const std::int64_t seen_by_b = rows.read(b, 1);
  must(rows.update(a, 1, seen_by_a + 1));
  const bool told = is_conflict(rows.update(b, 1, seen_by_b + 1));
  must(a.commit());
  if (told) {
    b.abort();
    CHECK(rows.values() == Values{11, 20});
    return Became::kConflict;
  }
  must(b.commit());
  return either(rows.values() != Values{12, 20});
}

// The same, when the other one has committed by the time of the second write.
Became late_lost_update(TwoRows& rows) {
  Transaction a = rows.begin();
  Transaction b = rows.begin();
  const std::int64_t seen_by_b = rows.read(b, 1);
  must(rows.update(a, 1, 15));
  must(a.commit());
  if (is_conflict(rows.update(b, 1, seen_by_b + 1))) return Became::kConflict;
  must(b.commit());
  return either(rows.values() == Values{11, 20});
}

// G-single: one transaction reads states of two moments.
Became g_single(TwoRows& rows) {
  Transaction a = rows.begin();
  const std::int64_t first = rows.read(a, 1);
  Transaction b = rows.begin();
  must(rows.update(b, 1, 12));
  must(rows.update(b, 2, 18));
  must(b.commit());
  const std::int64_t second = rows.read(a, 2);
  must(a.commit());
  return either(first == 10 && second == 18);
}

// The same with conditions.
Became g_single_of_conditions(TwoRows& rows) {
  Transaction a = rows.begin();
  CHECK(rows.multiples(a, 5) == Ids{1, 2});
  Transaction b = rows.begin();
  must(rows.update(b, 1, 12));
  must(b.commit());
  const Ids seen = rows.multiples(a, 3);
  must(a.commit());
  return either(!seen.empty());
}

// The same, with a write based on the older moment.
Became g_single_of_writes(TwoRows& rows) {
  Transaction a = rows.begin();
  CHECK(rows.read(a, 1) == 10);
  Transaction b = rows.begin();
  must(rows.update(b, 1, 12));
  must(rows.update(b, 2, 18));
  must(b.commit());
  if (rows.multiples(a, 20).empty()) return Became::kHappened;
  if (is_conflict(rows.remove(a, 2))) return Became::kConflict;
  must(a.commit());
  return Became::kHappened;
}

// G2-item: write skew.
Became g2_item(TwoRows& rows) {
  Transaction a = rows.begin();
  Transaction b = rows.begin();
  const std::int64_t sum_of_a = rows.read(a, 1) + rows.read(a, 2);
  const std::int64_t sum_of_b = rows.read(b, 1) + rows.read(b, 2);
  if (is_conflict(rows.update(a, 1, sum_of_a)) || is_conflict(rows.update(b, 2, sum_of_b)))
    return Became::kConflict;
  if (is_conflict(a.commit()) || is_conflict(b.commit())) return Became::kConflict;
  return either(rows.values() == Values{30, 30});
}

// G2: the same with conditions: phantoms.
Became g2(TwoRows& rows) {
  Transaction a = rows.begin();
  Transaction b = rows.begin();
  CHECK(rows.multiples(a, 3).empty());
  CHECK(rows.multiples(b, 3).empty());
  if (is_conflict(rows.insert(a, 3, 30)) || is_conflict(rows.insert(b, 4, 42)))
    return Became::kConflict;
  if (is_conflict(a.commit()) || is_conflict(b.commit())) return Became::kConflict;
  const Transaction after = rows.begin();
  return either(rows.multiples(after, 3) == Ids{3, 4});
}

// G2 with a third, read-only transaction (Fekete, O'Neil and O'Neil, 2004): without it the history
// would be serializable.
Became g2_of_a_reader(TwoRows& rows) {
  Transaction a = rows.begin();
  const std::int64_t sum = rows.read(a, 1) + rows.read(a, 2);
  Transaction b = rows.begin();
  must(rows.update(b, 2, rows.read(b, 2) + 5));
  must(b.commit());
  Transaction reader = rows.begin();
  const Values seen = {rows.read(reader, 1), rows.read(reader, 2)};
  must(reader.commit());
  if (is_conflict(rows.update(a, 1, sum)) || is_conflict(a.commit())) return Became::kConflict;
  return either(seen == Values{10, 25} && rows.values() == Values{30, 25});
}

struct Scenario {
  const char* name;
  Became (*run)(TwoRows& rows);
  // The expected outcome for each level.
  Became read_committed;
  Became snapshot;
  Became serializable;
};

constexpr Became kNothing = Became::kNothing;
constexpr Became kConflict = Became::kConflict;
constexpr Became kHappened = Became::kHappened;

constexpr Scenario kScenarios[] = {
    {"G0", g0, kConflict, kConflict, kConflict},
    {"G1a", g1a, kNothing, kNothing, kNothing},
    {"G1b", g1b, kNothing, kNothing, kNothing},
    {"G1c", g1c, kNothing, kNothing, kConflict},
    {"OTV", otv, kNothing, kNothing, kNothing},
    {"PMP", pmp, kHappened, kNothing, kNothing},
    {"PMP of writes", pmp_of_writes, kConflict, kConflict, kConflict},
    {"P4", lost_update, kConflict, kConflict, kConflict},
    {"P4, late", late_lost_update, kHappened, kConflict, kConflict},
    {"G-single", g_single, kHappened, kNothing, kNothing},
    {"G-single of conditions", g_single_of_conditions, kHappened, kNothing, kNothing},
    {"G-single of writes", g_single_of_writes, kHappened, kConflict, kConflict},
    {"G2-item", g2_item, kHappened, kHappened, kConflict},
    {"G2", g2, kHappened, kHappened, kConflict},
    {"G2 of a reader", g2_of_a_reader, kHappened, kHappened, kConflict},
};

}  // namespace

TEST_CASE("each isolation level admits exactly the anomalies that it documents", "[isolation]") {
  for (const bool in_main : {false, true})
    for (const Scenario& scenario : kScenarios) {
      const auto run = [&](Isolation isolation) {
        TwoRows rows(isolation, in_main);
        return scenario.run(rows);
      };
      INFO(scenario.name << (in_main ? ", rows in main" : ", rows in the delta"));
      CHECK(run(Isolation::kReadCommitted) == scenario.read_committed);
      CHECK(run(Isolation::kSnapshot) == scenario.snapshot);
      CHECK(run(Isolation::kSerializable) == scenario.serializable);
    }
}

}  // namespace flugs::test
