// The basis of docs/scaling.md: which thread has which line, the model, the clocks, a long writer.
#include <catch2/catch.hpp>
#include <memory>
#include <thread>
#include <vector>

#include "base/shared_words.h"
#include "bench/loads/starvation_load.h"
#include "bench/scaling/scaling_model.h"
#include "engine/database/database_core.h"
#include "mvcc/clock.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr std::size_t kWordsPerLine = 8;

TableSchema numbers_schema() {
  TableSchema schema("numbers");
  schema.column("id", Type::kInt64).not_null().direct();
  schema.primary_key({"id"});
  return schema;
}

std::uint64_t insert_number(Database& database, std::int64_t number) {
  const TableId table = must(database.find_table("numbers"));
  Transaction t = must(database.begin());
  must(t.insert(table, {Value::int64(number)}));
  must(t.commit());
  return t.commit_timestamp();
}

bench::ScalingInputs some_inputs() {
  bench::ScalingInputs inputs;
  inputs.transaction_ns = 500;
  inputs.write_share = 0.2;
  inputs.lines_of_two = 1;
  inputs.line_ns = 50;
  inputs.remote_line_ns = 300;
  inputs.line_read_ns = 10;
  inputs.processor_clock_ns = 10;
  return inputs;
}

}  // namespace

TEST_CASE("a line is contended when another thread has had it since", "[scaling]") {
  LineWatch watch(12);
  LineWatch::Reader one(1);
  LineWatch::Reader two(2);
  alignas(64) std::uint64_t words[2 * kWordsPerLine] = {};
  std::uint64_t* const line = words;
  std::uint64_t* const other = words + kWordsPerLine;
  SECTION("a line written in turns") {
    CHECK_FALSE(watch.write(one, line));
    CHECK_FALSE(watch.write(one, line));
    CHECK(watch.write(two, line));
    CHECK_FALSE(watch.write(two, line));
    CHECK(watch.write(one, line));
  }
  SECTION("words of one line are one line, those of another are not") {
    watch.write(one, line);
    CHECK_FALSE(watch.write(two, other));
    CHECK(watch.write(two, line + 7));
  }
  SECTION("a line read once after each write") {
    CHECK_FALSE(watch.read(one, line));
    watch.write(two, line);
    CHECK(watch.read(one, line));
    CHECK_FALSE(watch.read(one, line));
    CHECK_FALSE(watch.read(two, line));
    watch.write(two, line);
    CHECK(watch.read(one, line));
  }
  SECTION("a line written again after others have read it") {
    watch.write(one, line);
    CHECK_FALSE(watch.write(one, line));
    watch.read(two, line);
    CHECK(watch.write(one, line));
    CHECK_FALSE(watch.write(one, line));
  }
}

TEST_CASE("counts of shared words are of the thread, and nothing in other builds", "[scaling]") {
  const SharedWordCounts before = shared_word_counts();
  std::uint64_t word = 0;
  note_write(SharedWord::kClock, &word);
  note_read(SharedWord::kRowStamps, &word);
  const SharedWordCounts counts = shared_word_counts() - before;
  CHECK(counts[SharedWord::kClock].writes == (kCountsSharedWords ? 1 : 0));
  CHECK(counts[SharedWord::kRowStamps].reads == (kCountsSharedWords ? 1 : 0));
  count_write(SharedWord::kSpace, &word);
  CHECK((shared_word_counts() - before)[SharedWord::kSpace].writes == 1);
  for (std::size_t i = 0; i < kSharedWords; ++i)
    CHECK_FALSE(to_string(static_cast<SharedWord>(i)).empty());
}

TEST_CASE("the model limits the counter clock, and not cores that share nothing", "[scaling]") {
  const bench::ScalingInputs inputs = some_inputs();
  const auto counter = [&](unsigned cores) {
    return bench::predict(inputs, cores, CommitClock::kCounter);
  };
  const auto processors = [&](unsigned cores) {
    return bench::predict(inputs, cores, CommitClock::kProcessors);
  };
  CHECK(counter(1).per_second == Approx(1e9 / 500));
  CHECK(processors(1).per_second == Approx(1e9 / 510));
  CHECK(counter(2).line_ns == 50);
  CHECK(counter(2).lines == Approx(1));
  CHECK(counter(1000).lines == Approx(2).epsilon(0.01));
  CHECK(counter(1000).line_ns == Approx(300).epsilon(0.02));
  // Never above the bound of the line, and near to it with enough cores.
  for (const unsigned cores : {2U, 16U, 240U, 1000U}) {
    CHECK(counter(cores).per_second <= counter(cores).bound * 1.0001);
    CHECK(counter(cores).per_second < processors(cores).per_second * 1.05);
  }
  CHECK(counter(1000).per_second == Approx(counter(1000).bound).epsilon(0.02));
  CHECK(processors(1000).per_second > 50 * counter(1000).per_second);
  CHECK(processors(1000).per_core() == Approx(1e9 / (510 + 2 * 300)).epsilon(0.03));
}

TEST_CASE("a pool may be opened with one clock and then with the other", "[scaling]") {
  if (const Status usable = mvcc::Clock::check_processors(); !usable.ok()) {
    WARN(usable.message());
    return;
  }
  TemporaryDatabase database;
  must(database->create_table(numbers_schema()));
  std::uint64_t last = insert_number(*database, 0);
  std::int64_t number = 1;
  for (const CommitClock clock :
       {CommitClock::kProcessors, CommitClock::kCounter, CommitClock::kProcessors}) {
    database.close();
    database.options.tuning.clock = clock;
    database.reopen();
    {
      const Transaction reader = must(database->begin(AccessMode::kReadOnly));
      CHECK(reader.snapshot() >= last);
    }
    for (int i = 0; i < 3; ++i) {
      const std::uint64_t timestamp = insert_number(*database, number++);
      CHECK(timestamp > last);
      last = timestamp;
      const Transaction reader = must(database->begin(AccessMode::kReadOnly));
      CHECK(reader.snapshot() >= last);
    }
    must(database->check());
  }
}

TEST_CASE("a long writer succeeds among short ones that write the same rows", "[scaling]") {
  TemporaryDatabase database;
  bench::StarvationOptions options;
  options.rows = 2000;
  options.runs = 3;
  options.pause_seconds = 0.02;
  must(bench::create_starvation_rows(*database, options));
  for (const bench::LongWriter how : {bench::LongWriter::kRuns, bench::LongWriter::kLocks}) {
    const bench::StarvationFigures figures = must(bench::run_starvation(*database, options, how));
    CHECK(figures.committed() == options.runs);
    CHECK(figures.lost == 0);
    CHECK(figures.attempts_max() >= 1);
    if (how == bench::LongWriter::kLocks) CHECK(figures.attempts_max() == 1);
    for (const bench::StarvationRun& run : figures.runs) CHECK(run.short_alone_per_second > 0);
  }
}

TEST_CASE("the default clock follows the number of processors", "[api]") {
  const auto in_use = &engine::DatabaseCore::clock_in_use;
  CHECK(in_use(CommitClock::kAutomatic, kProcessorsForClock - 1) == CommitClock::kCounter);
  const bool is_usable = mvcc::Clock::check_processors().ok();
  CHECK(in_use(CommitClock::kAutomatic, kProcessorsForClock) ==
        (is_usable ? CommitClock::kProcessors : CommitClock::kCounter));
  CHECK(in_use(CommitClock::kCounter, 1000) == CommitClock::kCounter);
  CHECK(in_use(CommitClock::kProcessors, 1) == CommitClock::kProcessors);
  TemporaryDatabase database;
  database.close();
  database.options.tuning.clock = CommitClock::kAutomatic;
  database.reopen();
  CHECK(database->statistics().clock ==
        in_use(CommitClock::kAutomatic, std::thread::hardware_concurrency()));
}

}  // namespace flugs::test
