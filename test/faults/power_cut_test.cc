#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "bench/random/random_user.h"
#include "bench/support/random.h"
#include "test/faults/power_cuts.h"
#include "test/support/complaint.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr std::uint64_t kDeviceBytes = std::uint64_t{10} << 20;
constexpr std::uint64_t kSeed = 11;

OpenOptions device_options(const std::string& path) {
  OpenOptions options = small_options(path);
  options.max_bytes = kDeviceBytes;
  options.segment_bytes = std::uint64_t{1} << 20;
  options.slots_max = 2;
  options.tuning.hint_interval = std::chrono::milliseconds(0);  // one thread: each step is judged
  options.tuning.journal_bytes = 64 << 10;                      // many laps
  options.tuning.restart_budget = std::chrono::microseconds(100);  // many checkpoints
  return options;
}

std::uint64_t cut_effort() {
  const char* states = std::getenv("FLUGS_CRASH_STATES");
  return states == nullptr ? 1 : std::strtoull(states, nullptr, 10);
}

/// Tables of any schema that change, and their rows.
class RandomTables final : public PowerCutScenario {
 public:
  OpenOptions options(const std::string& path) const override { return device_options(path); }
  Status create(Database& database) override {
    return bench::create_random_tables(database, kSeed);
  }
  Status do_step(Database& database, std::uint64_t step) override {
    return bench::RandomUser(database, kSeed, 0).execute(step);
  }
  void acknowledge(std::uint64_t step) override {
    model_.apply(step);
    next_ = step + 1;
  }
  Status compare(Database& database, bool is_next) const override {
    bench::RandomModel model = model_;
    if (is_next) model.apply(next_);
    return model.compare(database);
  }

 private:
  bench::RandomModel model_{kSeed, 0};
  std::uint64_t next_ = 0;
};

/// A table that is filled, merged, half deleted and merged again, so that its groups, which are
/// written past the journal, lie where chunks and other groups were.
class MergedTable final : public PowerCutScenario {
 public:
  OpenOptions options(const std::string& path) const override {
    OpenOptions options = device_options(path);
    options.tuning.direct_write_bytes = 4096;
    return options;
  }
  Status create(Database& database) override {
    TableSchema schema("merged");
    schema.column("id", Type::kInt64).column("a", Type::kInt64).column("text", Type::kString);
    schema.primary_key({"id"});
    return database.create_table(schema).status();
  }
  Status do_step(Database& database, std::uint64_t step) override {
    const Result<TableId> table = database.find_table("merged");
    if (!table.ok()) return table.status();
    if (step % 2 == 1) return database.merge(*table, {.scope = MergeScope::kEverything}).status();
    Result<Transaction> t = database.begin();
    if (!t.ok()) return t.status();
    const Numbers before = rows_after(step);
    const Numbers wanted = rows_after(step + 1);
    for (const auto& [id, number] : before)
      if (!wanted.contains(id))
        if (Status s = t->remove({*table, 0}, {Value::int64(id)}); !s.ok()) return s;
    for (const auto& [id, number] : wanted) {
      if (before.contains(id)) continue;
      const std::string text = std::to_string(number);
      const auto inserted =
          t->insert(*table, {Value::int64(id), Value::int64(number), Value::string(text)});
      if (!inserted.ok()) return inserted.status();
    }
    return t->commit();
  }
  std::string finish(Database& database) override {
    return database.statistics().direct_writes != 0 ? "" : "nothing was written past the journal";
  }
  void acknowledge(std::uint64_t step) override { steps_ = step + 1; }
  Status compare(Database& database, bool is_next) const override {
    const Result<TableId> table = database.find_table("merged");
    if (!table.ok()) return table.status();
    const Result<Transaction> t = database.begin(AccessMode::kReadOnly);
    if (!t.ok()) return t.status();
    Numbers found;
    bool is_right = true;
    const auto take = [&](const ScanBatch& batch) {
      const auto ids = batch.column_unchecked<std::int64_t>(0);
      const auto numbers = batch.column_unchecked<std::int64_t>(1);
      const auto texts = batch.column_unchecked<std::string_view>(2);
      for (std::size_t i = 0; i < batch.row_count(); ++i) {
        found[ids[i]] = numbers[i];
        is_right = is_right && texts[i] == std::to_string(numbers[i]);
      }
      return true;
    };
    Status status = t->scan(*table, {ColumnId(0), ColumnId(1), ColumnId(2)}, take);
    if (!status.ok()) return status;
    if (is_right && found == rows_after(steps_ + (is_next ? 1 : 0))) return {};
    return Status(StatusCode::kCorrupt, "the table has other rows");
  }

 private:
  using Numbers = std::map<std::int64_t, std::int64_t>;  // of each row, by its id

  /// Steps 0, 4, 8 insert rows; steps 2, 6, 10 delete every second row, or all; the others merge.
  static Numbers rows_after(std::uint64_t steps) {
    Numbers rows;
    for (std::uint64_t step = 0; step < steps; step += 2) {
      bench::Random random(step);
      const auto first = static_cast<std::int64_t>(step) * 1000;
      if (step % 4 == 0)
        for (std::int64_t id = first; id < first + kBatch; ++id)
          rows[id] = static_cast<std::int64_t>(random.next() >> 1);
      else
        std::erase_if(rows, [&](const auto& row) { return step % 8 == 6 || row.first % 2 == 0; });
    }
    return rows;
  }

  static constexpr std::int64_t kBatch = 600;
  std::uint64_t steps_ = 0;
};

}  // namespace

TEST_CASE("power cuts on a file lose nothing acknowledged", "[faults]") {
  RandomTables tables;
  const std::uint64_t images = run_power_cuts(tables, rounds_of(40, 12) * cut_effort(), 2);
  CHECK((images == 0 || images > rounds_of(300, 90)));
}

TEST_CASE("power cuts in merges that write past the journal lose nothing", "[faults]") {
  MergedTable table;
  const std::uint64_t images = run_power_cuts(table, rounds_of(10, 4) * cut_effort(), 0);
  CHECK((images == 0 || images > rounds_of(100, 40)));
}

}  // namespace flugs::test
