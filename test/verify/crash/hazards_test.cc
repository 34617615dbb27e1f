// Hazards that are no missing flush or fence: what others see in the middle of a commit, and what a
// crash leaves in rows. Missing flushes and fences are in mutations_test.cc.

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "verify/crash/scripts/tables.h"

namespace flugs::crash {
namespace {

constexpr std::chrono::milliseconds kPatience{20};

void require_ok(const CrashRig& rig) {
  const Status outcome = rig.outcome();
  INFO(outcome.to_string());
  REQUIRE(outcome.ok());
}

/// A rig that calls `before_fence`, but explores nothing.
RigOptions unexplored() {
  RigOptions options;
  options.slots = 4;
  options.explorer.replay = {{~std::uint64_t{0}, 0}};  // no crash point has this number
  return options;
}

std::size_t rows_seen(engine::DatabaseCore& core, const Transaction& reader) {
  const Result<DatabaseState> state = read_state(core, reader);
  return state.ok() ? state->at("wide").size() : ~std::size_t{0};
}

/// Begins and counts rows in a thread of its own.
class Reader {
 public:
  explicit Reader(engine::DatabaseCore& core)
      : thread_([this, &core] {
          Result<Transaction> reader = core.begin(AccessMode::kReadOnly);
          if (reader.ok()) rows_ = rows_seen(core, *reader);
          is_done_ = true;
        }) {}
  bool is_done() const { return is_done_; }
  std::size_t join() {
    thread_.join();
    return rows_;
  }

 private:
  std::atomic<bool> is_done_{false};
  std::atomic<std::size_t> rows_{0};
  std::thread thread_;
};

TEST_CASE("no transaction sees a commit before it is durable", "[crash]") {
  CrashRig rig(unexplored());
  rig.create_table(wide_schema());
  rig.commit({insert("wide", wide_row(1))});
  rig.watch();
  Result<Transaction> earlier = rig.core().begin(AccessMode::kReadOnly);
  REQUIRE(earlier.ok());
  std::size_t seen_by_earlier = 0;
  bool is_done_before_fence = true;
  std::unique_ptr<Reader> later;
  rig.before_fence = [&](pmem::Label label) {
    if (std::string_view(label) != "commit/2") return;
    seen_by_earlier = rows_seen(rig.core(), *earlier);
    later = std::make_unique<Reader>(rig.core());
    std::this_thread::sleep_for(kPatience);
    is_done_before_fence = later->is_done();
  };
  rig.commit({insert("wide", wide_row(2)), insert("wide", wide_row(3))});
  rig.before_fence = nullptr;
  REQUIRE(later != nullptr);
  CHECK(seen_by_earlier == 1);
  CHECK_FALSE(is_done_before_fence);
  CHECK(later->join() == 3);
  CHECK(rows_seen(rig.core(), *earlier) == 1);
  earlier->abort();
  require_ok(rig);
}

TEST_CASE("a transaction that sees a commit sees every earlier one", "[crash]") {
  CrashRig rig(unexplored());
  rig.create_table(wide_schema());
  rig.watch();
  const std::size_t second = rig.begin({insert("wide", wide_row(2))});
  bool is_done_before_fence = true;
  std::unique_ptr<Reader> reader;
  int commits = 0;
  rig.before_fence = [&](pmem::Label label) {
    if (std::string_view(label) != "commit/2" || ++commits != 1) return;
    // It has a later time-stamp and ends earlier.
    rig.commit(second);
    reader = std::make_unique<Reader>(rig.core());
    std::this_thread::sleep_for(kPatience);
    is_done_before_fence = reader->is_done();
  };
  const std::size_t first = rig.begin({insert("wide", wide_row(1))});
  rig.commit(first);
  rig.before_fence = nullptr;
  REQUIRE(reader != nullptr);
  CHECK_FALSE(is_done_before_fence);
  CHECK(reader->join() == 2);
}

TEST_CASE("writes that a crash left in flight block no row and show no row", "[crash]") {
  const std::uint64_t choice = GENERATE(0U, 1U, 2U, 3U, 4U, 5U);
  RigOptions options = unexplored();
  options.pool_bytes = std::size_t{512} << 10;
  CrashRig rig(options);
  rig.create_table(wide_schema());
  rig.create_table(log_schema());
  for (std::int32_t id = 1; id <= 3; ++id) rig.commit({insert("log", log_entry(id, id))});
  fill_with_dead_rows(rig);  // opening does not sweep these three
  for (std::int32_t id = 1; id <= 3; ++id) rig.commit({insert("wide", wide_row(id))});
  rig.watch();
  rig.begin({remove("wide", 1), update("wide", 2, {set(1, Value::string("lost"))}),
             insert("wide", wide_row(4)), remove("log", 1),
             update("log", 2, {set(1, Value::int64(-1))}), insert("log", log_entry(500, 1))});
  rig.begin({remove("wide", 3), remove("log", 3)});
  rig.crash(choice);
  rig.commit({update("wide", 1, {set(1, Value::string("kept"))}), remove("wide", 2),
              insert("wide", wide_row(4)), update("log", 1, {set(1, Value::int64(-2))}),
              remove("log", 2), insert("log", log_entry(500, 2))});
  rig.commit({remove("wide", 3), remove("log", 3)});
  rig.crash(choice);
  rig.commit({remove("wide", 4), remove("log", 500)});
  rig.reopen();
  require_ok(rig);
}

TEST_CASE("a time-stamp is given out once, whatever crashes", "[crash]") {
  CrashRig rig(unexplored());
  rig.create_table(wide_schema());
  rig.watch();
  for (std::int32_t id = 1; id <= 12; ++id) {
    rig.commit({insert("wide", wide_row(id))});  // compares time-stamps
    const std::size_t aborted = rig.begin({remove("wide", id)});
    if (id % 2 == 0) rig.abort(aborted);
    rig.crash(static_cast<std::uint64_t>(id) % 4);
  }
  require_ok(rig);
}

}  // namespace
}  // namespace flugs::crash
