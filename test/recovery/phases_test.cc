#include "recovery/phases.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "columns/cells/unflushed.h"
#include "columns/column/column.h"
#include "recovery/rebuild_dictionaries.h"
#include "test/support/test_column.h"

namespace flugs::recovery {
namespace {

std::vector<std::function<Status()>> tasks_of(std::size_t count,
                                              const std::function<Status(std::size_t)>& work) {
  std::vector<std::function<Status()>> tasks;
  for (std::size_t i = 0; i < count; ++i) tasks.emplace_back([work, i] { return work(i); });
  return tasks;
}

}  // namespace

TEST_CASE("phases are measured in the order in which they ran", "[recovery]") {
  RecoveryReport report;
  Phases phases(report, 3, {});
  CHECK(report.threads == 3);
  const auto sleep = [](std::uint64_t items) {
    return [items]() -> Result<std::uint64_t> {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      return items;
    };
  };
  CHECK(phases.run("first", sleep(7)).ok());
  CHECK(phases.run("second", sleep(8)).ok());
  phases.finish();
  REQUIRE(report.phases.size() == 2);
  CHECK(report.phases[0].name == "first");
  CHECK(report.phases[0].items == 7);
  CHECK(report.phase_us("second") >= 2000);
  CHECK(report.phase_us("third") == 0);
  CHECK(report.total_us >= report.phase_us("first") + report.phase_us("second"));
}

TEST_CASE("a phase that fails is not in the report", "[recovery]") {
  RecoveryReport report;
  Phases phases(report, 1, {});
  const Status status = phases.run(
      "bad", []() -> Result<std::uint64_t> { return Status(StatusCode::kCorrupt, "broken"); });
  CHECK(status.code() == StatusCode::kCorrupt);
  CHECK(report.phases.empty());
}

TEST_CASE("0 threads means one for each processor", "[recovery]") {
  RecoveryReport report;
  const Phases phases(report, 0, {});
  CHECK(phases.threads() >= 1);
  CHECK(report.threads == phases.threads());
}

TEST_CASE("every task runs once, whatever the number of threads", "[recovery]") {
  for (const std::uint32_t threads : {1u, 2u, 8u}) {
    RecoveryReport report;
    std::uint64_t last = 0;
    std::uint64_t calls = 0;
    Phases phases(report, threads, {.progress = [&](const Progress& p) {
                    // One call at a time, and always further.
                    calls += p.phase == "p" && p.total == 100 && p.done == last + 1 ? 1 : 0;
                    last = p.done;
                  }});
    std::vector<std::atomic<int>> runs(100);
    const Status status = phases.run_parallel("p", tasks_of(100, [&](std::size_t i) {
                                                runs[i].fetch_add(1);
                                                return Status();
                                              }));
    CHECK(status.ok());
    CHECK(calls == 100);
    std::size_t wrong = 0;
    for (const auto& count : runs) wrong += count.load() == 1 ? 0 : 1;
    CHECK(wrong == 0);
  }
}

TEST_CASE("a failure is returned and ends the rest", "[recovery]") {
  for (const std::uint32_t threads : {1u, 4u}) {
    RecoveryReport report;
    Phases phases(report, threads, {});
    std::atomic<std::size_t> ran{0};
    const Status status =
        phases.run_parallel("p", tasks_of(10000, [&](std::size_t i) {
                              ran.fetch_add(1);
                              return i == 3 ? Status(StatusCode::kCorrupt, "three") : Status();
                            }));
    CHECK(status.code() == StatusCode::kCorrupt);
    CHECK(status.message() == "three");
    CHECK(ran < 10000);
  }
}

TEST_CASE("tasks and phases that the caller has stopped do not begin", "[recovery]") {
  for (const std::uint32_t threads : {1u, 4u}) {
    RecoveryReport report;
    std::stop_source source;
    Phases phases(report, threads,
                  {.progress =
                       [&](const Progress& p) {
                         if (p.done == 10) source.request_stop();
                       },
                   .stop = source.get_token()});
    std::atomic<std::size_t> ran{0};
    const Status status = phases.run_parallel("p", tasks_of(10000, [&](std::size_t) {
                                                ran.fetch_add(1);
                                                return Status();
                                              }));
    CHECK(status.code() == StatusCode::kCancelled);
    CHECK(ran >= 10);
    CHECK(ran < 10000);
    bool begun = false;
    CHECK(phases
              .run("next",
                   [&]() -> Result<std::uint64_t> {
                     begun = true;
                     return std::uint64_t{0};
                   })
              .code() == StatusCode::kCancelled);
    CHECK(!begun);
  }
}

TEST_CASE("no tasks are no work", "[recovery]") {
  RecoveryReport report;
  Phases phases(report, 4, {});
  CHECK(phases.run_parallel("p", {}).ok());
}

TEST_CASE("a large dictionary is rebuilt alike by any number of threads", "[recovery]") {
  test::TestColumn column(test::column_schema(Type::kInt64), std::size_t{32} << 20);
  constexpr std::int64_t kValues = 300000;
  columns::Unflushed unflushed;
  for (std::int64_t i = 0; i < kValues; ++i)
    REQUIRE(column->encode(Value::int64(i * i), unflushed, column.persister()).ok());
  unflushed.flush(column.persister(), "commit/1");
  column.persister().fence("commit/1");
  for (const std::uint32_t threads : {1u, 2u, 3u, 8u}) {
    REQUIRE(column.reopen(threads).ok());
    CHECK(column.report().dictionary_entries == kValues);
    CHECK(column->dictionary().verify().ok());
    CHECK(column->dictionary().find(Value::int64(1234 * 1234)) == 1234);
  }
}

}  // namespace flugs::recovery
