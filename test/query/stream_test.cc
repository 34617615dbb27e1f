// Query::stream: what a stream shows while its transaction, others and merges go on.
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "flugs/column_batch.h"
#include "flugs/query.h"
#include "flugs/stream.h"
#include "test/query/wares.h"
#include "test/support/complaint.h"

using namespace flugs;
using namespace flugs::query;
using flugs::test::must;
using flugs::test::rows_of;
using flugs::test::SeenIds;
using flugs::test::Wares;
using flugs::test::wares_all;
using flugs::test::with_threads;

namespace {

/// Rows of more than two batches, and of more than one.
constexpr std::int64_t kBatches = test::rounds_of(200'000, 140'000);
constexpr std::int64_t kTwoBatches = test::rounds_of(200'000, 70'000);

}  // namespace

TEST_CASE("a stream gives every row once, with codes, texts and NULLs") {
  const std::int64_t rows = kBatches;
  Wares wares(rows);
  for (const bool is_merged : {false, true}) {
    if (is_merged) wares.merge();
    for (const std::uint32_t workers : {1u, 2u}) {
      Transaction t = must(wares.database->begin(AccessMode::kReadOnly));
      ResultStream stream = must(wares_all().stream(t, with_threads(workers)));
      CHECK(stream.columns().size() == 4);
      CHECK(stream.has_dictionary(1));
      CHECK_FALSE(stream.has_dictionary(2));
      CHECK_FALSE(stream.has_dictionary(4));
      SeenIds ids;
      std::set<const TextDictionary*> dictionaries;
      std::size_t batches = 0;
      for (const StreamBatch& batch : stream) {
        REQUIRE(batch.row_count() <= StreamBatch::kRowsMax);
        REQUIRE(wares.is_right(batch, ids));
        CHECK(must(batch.texts(1)).dictionary()->size() <= 8);
        CHECK(must(batch.texts(1)).codes().size() == batch.row_count());
        dictionaries.insert(batch.dictionary(1).get());
        CHECK(batch.dictionary(2) == nullptr);
        ++batches;
      }
      CHECK(stream.status().ok());
      CHECK(ids.size() == std::size_t(rows));
      CHECK(batches >= 3);
      CHECK(batches <= 40);
      CHECK(stream.next() == nullptr);
      CHECK(stream.statistics().rows_selected == std::uint64_t(rows));
    }
  }
}

// One thread: the address sanitizer's build has it.
#ifndef __SANITIZE_THREAD__
TEST_CASE("batches share the dictionary once it has paid") {
  Wares wares(kBatches, 100);
  Transaction t = must(wares.database->begin(AccessMode::kReadOnly));
  ResultStream stream = must(Query::table("wares").select({"kind"}).stream(t, with_threads(1)));
  std::vector<StreamBatch> kept;
  for (const StreamBatch& batch : stream) kept.push_back(batch);
  REQUIRE(kept.size() >= 3);
  CHECK(kept[1].dictionary(0) == kept[2].dictionary(0));
  CHECK(kept.back().dictionary(0) == kept[1].dictionary(0));
  // One row does not make a copy of all texts.
  ResultStream one = must(Query::table("wares").where(col("id") == 5).select({"kind"}).stream(t));
  const StreamBatch* batch = one.next();
  REQUIRE(batch != nullptr);
  CHECK(must(batch->texts(0)).dictionary()->size() == 1);
  CHECK(must(batch->texts(0))[0] == "kind 5");
}
#endif

TEST_CASE("texts of many values leave main as they are, and the delta as codes") {
  constexpr std::int64_t kCodesMax = 12 * 1024;  // of the planner
  // NULL is a value, too.
  for (const std::int64_t kinds : {kCodesMax - 1, kCodesMax}) {
    Wares wares(2 * kinds, kinds);
    for (const bool is_merged : {false, true}) {
      INFO(kinds << " texts, merged " << is_merged);
      if (is_merged) wares.merge();
      Transaction t = must(wares.database->begin(AccessMode::kReadOnly));
      const bool has_codes = !is_merged || kinds < kCodesMax;
      for (const Query& query : {wares_all(), wares_all().where(col("id") >= 10)}) {
        ResultStream stream = must(query.stream(t));
        CHECK(stream.has_dictionary(1) == has_codes);
        SeenIds ids;
        for (const StreamBatch& batch : stream) REQUIRE(wares.is_right(batch, ids));
        CHECK(stream.status().ok());
        CHECK(ids.size() >= std::size_t(kinds));
      }
      // Rows that are kept for a while have the codes of the table.
      CHECK(must(wares_all().order_by({"id"}).stream(t)).has_dictionary(1));
    }
  }
}

TEST_CASE("batches outlive the stream, the transaction and the database") {
  std::vector<StreamBatch> kept;
  {
    Wares wares(20'000);
    Transaction t = must(wares.database->begin(AccessMode::kReadOnly));
    ResultStream stream = must(wares_all().stream(t));
    for (const StreamBatch& batch : stream) kept.push_back(batch);
    t = Transaction();
    wares.database.close();
  }
  Wares other(10);
  SeenIds ids;
  for (const StreamBatch& batch : kept) CHECK(other.is_right(batch, ids));
  CHECK(ids.size() == 20'000);
}

TEST_CASE("a column is read as its type only") {
  Wares wares(10);
  Transaction t = must(wares.database->begin(AccessMode::kReadOnly));
  ResultStream stream = must(wares_all().stream(t));
  const StreamBatch& batch = *stream.next();
  CHECK(batch.column<double>(0).code() == StatusCode::kInvalidArgument);
  CHECK(batch.column<std::int64_t>(3).code() == StatusCode::kInvalidArgument);
  CHECK(batch.column<std::int64_t>(1).code() == StatusCode::kInvalidArgument);
  CHECK(batch.texts(0).code() == StatusCode::kInvalidArgument);
  CHECK(batch.texts(4).code() == StatusCode::kInvalidArgument);
  CHECK(batch.nulls(4).empty());
  CHECK(batch.texts(0).status().message() == "column 0 (id): is of type int64, read as text");
  CHECK(StreamBatch().row_count() == 0);
  CHECK(StreamBatch().texts(0).code() == StatusCode::kInvalidArgument);
}

TEST_CASE("a batch holds no more text than its limit, but for one text alone") {
  test::TemporaryDatabase database;
  TableSchema schema("long");
  schema.column("id", Type::kInt64).column("text", Type::kString).direct();
  schema.column("coded", Type::kString);
  const TableId table = must(database->create_table(schema.primary_key({"id"})));
  Transaction writer = must(database->begin());
  const std::string big(9 << 20, 'b');
  const std::string giant(17 << 20, 'g');
  for (std::int64_t id = 0; id < 6; ++id) {
    const std::string coded = std::string(7 << 20, 'c') + std::to_string(id);
    must(writer.insert(table, {Value::int64(id),
                               Value::string(id == 3   ? giant
                                             : id == 5 ? ""
                                                       : big),
                               Value::string(coded)}));
  }
  must(writer.commit());
  for (const char* column : {"text", "coded"}) {
    Transaction t = must(database->begin(AccessMode::kReadOnly));
    ResultStream stream =
        must(Query::table("long").select({"id", column}).stream(t, with_threads(1)));
    std::vector<std::size_t> rows;
    std::int64_t id = 0;
    for (const StreamBatch& batch : stream) {
      rows.push_back(batch.row_count());
      for (std::size_t i = 0; i < batch.row_count(); ++i, ++id) {
        CHECK(must(batch.column<std::int64_t>(0))[i] == id);
        const std::string_view text = must(batch.texts(1))[i];
        if (std::string_view(column) == "coded")
          CHECK((text.size() == (7 << 20) + 1 && text.back() == char('0' + id)));
        else
          CHECK(text == (id == 3 ? giant : id == 5 ? "" : big));
      }
    }
    CHECK(id == 6);
    if (std::string_view(column) == "coded")
      CHECK(rows == std::vector<std::size_t>{2, 2, 2});
    else
      CHECK(rows == std::vector<std::size_t>{1, 1, 1, 1, 2});
  }
}

namespace {

/// What a transaction does before the stream begins: writes rows, and tries writes that fail or are
/// undone.
struct Before {
  bool writes;
  bool tries;
};

/// A stream of `rows` wares in a transaction that writes before it and after its first batch.
void check_later_writes(Wares& wares, std::int64_t rows, Before before) {
  Transaction t = must(wares.database->begin());
  if (before.tries) {
    const std::string name = Wares::name(5);
    CHECK(
        t.insert(wares.table, {Value::int64(5), Value::null(), Value::string(name), Value::null()})
            .code() == StatusCode::kAlreadyExists);
    const Savepoint savepoint = must(t.savepoint());
    wares.insert(t, rows + 1);
    must(t.rollback_to(savepoint));
  }
  if (before.writes) {
    must(t.remove(wares.key(), {Value::int64(0)}));
    wares.insert(t, rows);
  }
  ResultStream stream = must(wares_all().stream(t));
  SeenIds ids;
  REQUIRE(wares.is_right(*stream.next(), ids));
  for (std::int64_t id = 1; id < rows; id += 1000) {
    must(t.remove(wares.key(), {Value::int64(id)}));
    wares.insert(t, rows + id);
  }
  const ColumnId name = must(wares.database->find_column(wares.table, "name"));
  must(t.update(wares.key(), {Value::int64(7)}, {{name, Value::string("another name")}}));
  for (const StreamBatch& batch : stream) REQUIRE(wares.is_right(batch, ids));
  CHECK(stream.status().ok());
  CHECK(ids.size() == std::size_t(rows));
  CHECK(ids.contains(0) == !before.writes);
  CHECK(ids.contains(rows) == before.writes);
  t.abort();
}

}  // namespace

TEST_CASE("a stream shows nothing that its transaction writes later") {
  Wares wares(kTwoBatches);
  for (const bool is_merged : {false, true}) {
    if (is_merged) wares.merge();
    for (const bool writes : {false, true})
      for (const bool tries : {false, true}) {
        INFO("merged " << is_merged << ", writes " << writes << ", tries " << tries);
        check_later_writes(wares, kTwoBatches, {writes, tries});
      }
  }
}

TEST_CASE("a stream that cannot keep its rows fails, and the write goes on") {
  const std::int64_t rows = test::rounds_of(300'000, 150'000);
  Wares wares(rows);
  Transaction t = must(wares.database->begin());
  wares.insert(t, rows);
  RunOptions options;
  options.memory_bytes_max = std::uint64_t(rows) * 35;
  options.threads = 1;
  ResultStream stream = must(wares_all().stream(t, options));
  REQUIRE(stream.next() != nullptr);
  wares.insert(t, rows + 1);
  CHECK(stream.next() == nullptr);
  CHECK(stream.status().code() == StatusCode::kOutOfMemory);
  CHECK(stream.status().message().find("RunOptions::memory_bytes_max") != std::string::npos);
  must(t.commit());
}

TEST_CASE("a stream ends with its transaction") {
  Wares wares(kTwoBatches);
  Transaction t = must(wares.database->begin());
  ResultStream stream = must(wares_all().stream(t));
  ResultStream unread = must(wares_all().stream(t));
  REQUIRE(stream.next() != nullptr);
  SECTION("commit") { must(t.commit()); }
  SECTION("abort") { t.abort(); }
  SECTION("destroyed, with its database") {
    t = Transaction();
    wares.database.close();
  }
  for (ResultStream* each : {&stream, &unread}) {
    CHECK(each->next() == nullptr);
    CHECK(each->status().code() == StatusCode::kInvalidArgument);
    CHECK(each->status().message() ==
          "the transaction of this stream has ended, or has undone writes from before the stream "
          "began");
  }
}

TEST_CASE("a cancelled transaction ends its streams") {
  Wares wares(kTwoBatches);
  Transaction t = must(wares.database->begin());
  ResultStream stream = must(wares_all().stream(t));
  REQUIRE(stream.next() != nullptr);
  must(wares.database->cancel(t.id()));
  CHECK(stream.next() == nullptr);
  CHECK(stream.status().code() == StatusCode::kCancelled);
  CHECK(t.commit().code() == StatusCode::kCancelled);
}

TEST_CASE("a stream stops when it is asked to, and the transaction goes on") {
  Wares wares(kBatches);
  Transaction t = must(wares.database->begin());
  std::stop_source stop;
  RunOptions options;
  options.stop = stop.get_token();
  ResultStream stream = must(wares_all().stream(t, options));
  REQUIRE(stream.next() != nullptr);
  stop.request_stop();
  while (stream.next() != nullptr) {
  }
  CHECK(stream.status().code() == StatusCode::kCancelled);
  CHECK(wares_all().stream(t, options).code() == StatusCode::kCancelled);
  must(t.get(wares.key(), {Value::int64(1)}));
  must(t.commit());
}

TEST_CASE("a stream tells its progress when the options that asked for it are gone") {
  Wares wares(kBatches);
  const auto seen = std::make_shared<std::atomic<std::uint64_t>>(0);
  Transaction reader = must(wares.database->begin());
  std::optional<RunOptions> options(std::in_place);
  options->threads = 1;
  options->progress = [seen](const Progress& progress) { *seen = progress.done; };
  ResultStream stream = must(Query::table("wares").stream(reader, *options));
  options.reset();
  CHECK(seen.use_count() == 2);  // the stream has a copy
  while (stream.next() != nullptr) continue;
  must(stream.status());
  CHECK(*seen > 0);
}

TEST_CASE("rollback_to ends the streams that began behind the savepoint's writes") {
  Wares wares(kTwoBatches);
  Transaction t = must(wares.database->begin());
  ResultStream before = must(wares_all().stream(t));
  const Savepoint savepoint = must(t.savepoint());
  wares.insert(t, kTwoBatches);
  ResultStream behind = must(wares_all().stream(t));
  must(t.rollback_to(savepoint));
  CHECK(rows_of(before) == kTwoBatches);
  CHECK(before.status().ok());
  CHECK(behind.next() == nullptr);
  CHECK(behind.status().code() == StatusCode::kInvalidArgument);
}

TEST_CASE("a stream of sorted rows is in order, and one of few rows in few batches") {
  Wares wares(kTwoBatches);
  wares.merge();
  Transaction t = must(wares.database->begin(AccessMode::kReadOnly));
  ResultStream sorted = must(wares_all().order_by({desc("id")}).stream(t, with_threads(2)));
  std::int64_t expected = kTwoBatches;
  bool right = true;
  for (const StreamBatch& batch : sorted)
    for (const std::int64_t id : must(batch.column<std::int64_t>(0))) right &= id == --expected;
  CHECK(right);
  CHECK(expected == 0);
  ResultStream groups = must(Query::table("wares").group_by({"kind"}, {count()}).stream(t));
  const StreamBatch* batch = groups.next();
  REQUIRE(batch != nullptr);
  CHECK(batch->row_count() == 8);
  CHECK(groups.next() == nullptr);
  ResultStream none = must(wares_all().where(col("id") < 0).stream(t));
  CHECK(none.next() == nullptr);
  CHECK(none.status().ok());
  ResultStream no_columns = must(Query::table("wares").select({}).stream(t));
  CHECK(rows_of(no_columns) == kTwoBatches);
}

TEST_CASE("errors come before the first batch, or where they happen") {
  Wares wares(kTwoBatches);
  Transaction t = must(wares.database->begin());
  CHECK(Query::table("none").stream(t).code() == StatusCode::kNotFound);
  CHECK(Query::table("wares").select({"none"}).stream(t).code() == StatusCode::kInvalidArgument);
  const Expr huge = constant(Value::int64(std::int64_t{1} << 62));
  ResultStream stream = must(
      Query::table("wares").select({(col("id") * huge).as("product")}).stream(t, with_threads(1)));
  while (stream.next() != nullptr) {
  }
  CHECK(stream.status().code() == StatusCode::kOverflow);
  CHECK(stream.next() == nullptr);
  must(t.commit());
  CHECK(wares_all().stream(t).code() == StatusCode::kInvalidArgument);
}

TEST_CASE("streams keep their snapshot while rows are written and merged") {
  const std::int64_t rows = 60'000;
  Wares wares(rows);
  std::atomic<bool> stops{false};
  std::thread writer([&] {
    const ColumnId name = wares.database->find_column(wares.table, "name").value();
    for (std::int64_t id = 0; !stops; id = (id + 7) % rows) {
      Transaction t = wares.database->begin().value();
      const std::string same = Wares::name(id);
      static_cast<void>(t.update(wares.key(), {Value::int64(id)}, {{name, Value::string(same)}}));
      static_cast<void>(t.commit());
    }
  });
  std::thread merger([&] {
    MergeOptions everything;
    everything.scope = MergeScope::kEverything;
    while (!stops) static_cast<void>(wares.database->merge(wares.table, everything));
  });
  int wrong = 0;
  for (int round = 0; round < 8; ++round) {
    Transaction t = must(wares.database->begin());
    ResultStream stream = must(wares_all().stream(t, with_threads(2)));
    SeenIds ids;
    for (const StreamBatch& batch : stream) {
      wrong += wares.is_right(batch, ids) ? 0 : 1;
      if (round % 2 == 0) wares.insert(t, rows + 2 * std::int64_t(ids.size()));
    }
    wrong += stream.status().ok() && ids.size() == std::size_t(rows) ? 0 : 1;
    t.abort();
  }
  stops = true;
  writer.join();
  merger.join();
  CHECK(wrong == 0);
}

TEST_CASE("a stream goes on while columns are dropped, change their type, and are merged") {
  const std::int64_t rows = kBatches;
  Wares wares(rows);
  if (GENERATE(false, true)) wares.merge();
  Transaction t = must(wares.database->begin(AccessMode::kReadOnly));
  ResultStream stream = must(wares_all().stream(t, with_threads(2)));
  SeenIds ids;
  REQUIRE(wares.is_right(*stream.next(), ids));
  std::thread changes([&] {
    Database& database = *wares.database;
    const auto change = [&](const char* column) {
      return database.drop_column(wares.table, database.find_column(wares.table, column).value());
    };
    static_cast<void>(change("kind"));
    static_cast<void>(change("name"));
    static_cast<void>(change("size"));
    MergeOptions everything;
    everything.scope = MergeScope::kEverything;
    static_cast<void>(database.merge(wares.table, everything));
  });
  for (const StreamBatch& batch : stream) REQUIRE(wares.is_right(batch, ids));
  CHECK(stream.status().ok());
  CHECK(ids.size() == std::size_t(rows));
  t.abort();
  changes.join();
}
