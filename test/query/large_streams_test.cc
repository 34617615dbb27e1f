// Streams of many rows and of much text. Not under the thread sanitizer: it needs half a minute for
// them, and sees the same threads in stream_test.cc.
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "flugs/arrow_export.h"
#include "flugs/query.h"
#include "test/query/wares.h"

using namespace flugs;
using namespace flugs::query;
using flugs::test::must;
using flugs::test::rows_of;
using flugs::test::Wares;
using flugs::test::wares_all;
using flugs::test::with_threads;

TEST_CASE("a stream of many rows takes little memory") {
  Wares wares(600'000);
  wares.merge();
  Transaction t = must(wares.database->begin(AccessMode::kReadOnly));
  RunOptions options = with_threads(2);
  options.memory_bytes_max = std::uint64_t{24} << 20;
  ResultStream stream = must(wares_all().stream(t, options));
  CHECK(rows_of(stream) == 600'000);
  CHECK(stream.status().ok());
  CHECK(wares_all().run(t, options).code() == StatusCode::kOutOfMemory);
}

TEST_CASE("more than 2 GiB of text go out in arrays whose offsets fit 32 bits") {
  constexpr std::int64_t kRows = 36;
  constexpr std::size_t kBytes = std::size_t{60} << 20;
  test::TemporaryDatabase database;
  TableSchema large("large");
  large.column("one", Type::kInt64).column("text", Type::kString).direct();
  const TableId texts = must(database->create_table(large.primary_key({"one"})));
  TableSchema many("many");
  many.column("id", Type::kInt64).column("one", Type::kInt64);
  const TableId ids = must(database->create_table(many.primary_key({"id"})));
  Transaction t = must(database->begin());
  const std::string text(kBytes, 't');
  must(t.insert(texts, {Value::int64(1), Value::string(text)}));
  for (std::int64_t id = 0; id < kRows; ++id) must(t.insert(ids, {id, std::int64_t{1}}));
  const Query pairs = Query::table("many").join(
      Query::table("large").select({col("one").as("other"), "text"}), {{"one", "other"}});
  ArrowArrayStream arrow;
  to_arrow(must(pairs.select({"id", "text"}).stream(t)), arrow);
  std::uint64_t bytes = 0;
  std::int64_t rows = 0;
  for (;;) {
    ArrowArray batch;
    REQUIRE(arrow.get_next(&arrow, &batch) == 0);
    if (batch.release == nullptr) break;
    rows += batch.length;
    for (std::int64_t i = 0; i < batch.length; ++i) {
      const auto* offsets = static_cast<const std::int32_t*>(batch.children[1]->buffers[1]);
      const std::string_view found(
          static_cast<const char*>(batch.children[1]->buffers[2]) + offsets[i],
          static_cast<std::size_t>(offsets[i + 1] - offsets[i]));
      CHECK((found.size() == kBytes && found.front() == 't' && found.back() == 't'));
      bytes += found.size();
    }
    batch.release(&batch);
  }
  arrow.release(&arrow);
  CHECK(rows == kRows);
  CHECK(bytes > std::uint64_t{1} << 31);
}
