// Streams as structs of the Arrow C data interface, read by hand as the specification says.
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flugs/arrow_export.h"
#include "flugs/query.h"
#include "test/support/complaint.h"
#include "test/support/temporary_database.h"

using namespace flugs;
using namespace flugs::query;
using flugs::test::must;

namespace {

// More than a batch, but for the thread sanitizer: one thread makes arrays and reads them.
#ifdef __SANITIZE_THREAD__
constexpr std::int64_t kManyRows = 1'000;
#else
constexpr std::int64_t kManyRows = test::rounds_of(100'000, 66'000);
#endif

const std::vector<std::pair<const char*, Type>> kColumns = {
    {"id", Type::kInt64},     {"flag", Type::kBool},     {"small", Type::kInt32},
    {"real", Type::kDouble},  {"money", Type::kDecimal}, {"day", Type::kDate},
    {"at", Type::kTimestamp}, {"kind", Type::kString},   {"name", Type::kString},
    {"blob", Type::kBytes}};
const std::map<std::string, std::string> kFormats = {
    {"id", "l"},    {"flag", "b"},  {"small", "i"}, {"real", "g"}, {"money", "d:19,3"},
    {"day", "tdD"}, {"at", "tsu:"}, {"kind", "i"},  {"name", "u"}, {"blob", "z"}};

/// A table with a column of each type, `kind` with a dictionary. Every column but the id is NULL in
/// some rows, or in all of them.
class EveryType {
 public:
  EveryType(std::int64_t rows, bool all_null) {
    TableSchema schema("every");
    for (const auto& [name, type] : kColumns) {
      if (type == Type::kDecimal)
        schema.column(name, type, {.scale = 3});
      else
        schema.column(name, type);
      if (std::string_view(name) == "name" || type == Type::kBytes) schema.direct();
    }
    table_ = must(database->create_table(schema.primary_key({"id"})));
    Transaction writer = must(database->begin());
    for (std::int64_t id = 0; id < rows; ++id) {
      std::vector<std::string> texts(kColumns.size());
      std::vector<Value> row;
      for (std::size_t c = 0; c < kColumns.size(); ++c)
        row.push_back(c != 0 && (all_null || is_null(id, c)) ? Value::null()
                                                             : value(id, c, texts[c]));
      must(writer.insert(table_, row));
    }
    must(writer.commit());
  }
  void merge() {
    MergeOptions everything;
    everything.scope = MergeScope::kEverything;
    static_cast<void>(must(database->merge(table_, everything)));
  }

  static bool is_null(std::int64_t id, std::size_t column) { return (id + column) % 5 == 0; }
  static Value value(std::int64_t id, std::size_t column, std::string& text) {
    switch (kColumns[column].second) {
      case Type::kBool:
        return Value::boolean(id % 3 == 0);
      case Type::kInt32:
        return Value::int32(static_cast<std::int32_t>(-id));
      case Type::kInt64:
        return Value::int64(id);
      case Type::kDouble:
        return Value::real(double(id) / 4);
      case Type::kDecimal:
        return Value::decimal(id % 2 == 0 ? -id : id * 1000, 3);
      case Type::kDate:
        return Value::date(static_cast<std::int32_t>(id - 5000));
      case Type::kTimestamp:
        return Value::timestamp(id * 1'000'003);
      case Type::kString:
        text = kColumns[column].first + std::to_string(column == 7 ? id % 9 : id);
        return Value::string(text);
      case Type::kBytes:
        text = std::string(static_cast<std::size_t>(id % 40), static_cast<char>(id));
        return Value::bytes(text);
    }
    return {};
  }

  test::TemporaryDatabase database;

 private:
  TableId table_;
};

bool bit(const void* bits, std::int64_t i) {
  return (static_cast<const std::uint8_t*>(bits)[i / 8] >> (i % 8) & 1) != 0;
}
template <typename T>
T at(const ArrowArray& array, std::int64_t i) {
  return static_cast<const T*>(array.buffers[1])[i];
}
std::string_view text_at(const ArrowArray& array, std::int64_t i) {
  const auto* offsets = static_cast<const std::int32_t*>(array.buffers[1]);
  return {static_cast<const char*>(array.buffers[2]) + offsets[i],
          static_cast<std::size_t>(offsets[i + 1] - offsets[i])};
}

/// Whether the value at row i of a column's array is the one that was inserted.
bool is_value(const ArrowArray& array, std::int64_t i, const Value& expected, std::size_t column) {
  switch (kColumns[column].second) {
    case Type::kBool:
      return bit(array.buffers[1], i) == expected.as_bool();
    case Type::kInt32:
    case Type::kDate:
      return at<std::int32_t>(array, i) == expected.raw();
    case Type::kDouble:
      return at<double>(array, i) == expected.as_double();
    case Type::kDecimal:
      return at<std::int64_t>(array, 2 * i) == expected.raw() &&
             at<std::int64_t>(array, 2 * i + 1) == (expected.raw() < 0 ? -1 : 0);
    case Type::kString:
    case Type::kBytes:
      if (array.dictionary == nullptr) return text_at(array, i) == expected.as_string();
      return text_at(*array.dictionary, at<std::int32_t>(array, i)) == expected.as_string();
    default:
      return at<std::int64_t>(array, i) == expected.raw();
  }
}

/// Whether a batch of all columns has what was inserted; adds its rows.
bool is_right(const ArrowArray& batch, bool all_null, std::int64_t& rows) {
  bool right = batch.n_children == std::int64_t(kColumns.size()) && batch.n_buffers == 1 &&
               batch.null_count == 0 && batch.offset == 0;
  rows += batch.length;
  for (std::size_t c = 0; right && c < kColumns.size(); ++c) {
    const ArrowArray& array = *batch.children[c];
    right = array.length == batch.length && array.offset == 0;
    std::int64_t nulls = 0;
    for (std::int64_t i = 0; right && i < batch.length; ++i) {
      const std::int64_t id = at<std::int64_t>(*batch.children[0], i);
      const bool is_null = array.buffers[0] != nullptr && !bit(array.buffers[0], i);
      nulls += is_null ? 1 : 0;
      std::string text;
      right = is_null == (c != 0 && (all_null || EveryType::is_null(id, c))) &&
              (is_null || is_value(array, i, EveryType::value(id, c, text), c));
    }
    right = right && nulls == array.null_count;
  }
  return right;
}

ArrowArrayStream arrow_of(const EveryType& every, Transaction& t) {
  static_cast<void>(every);
  RunOptions options;
  options.threads = 2;
  std::vector<Item> columns;
  for (const auto& [name, type] : kColumns) columns.emplace_back(name);
  ArrowArrayStream arrow;
  to_arrow(must(Query::table("every").select(columns).stream(t, options)), arrow);
  return arrow;
}

}  // namespace

TEST_CASE("a schema names every column with its Arrow type") {
  EveryType every(10, false);
  Transaction t = must(every.database->begin(AccessMode::kReadOnly));
  ArrowArrayStream arrow = arrow_of(every, t);
  ArrowSchema schema;
  REQUIRE(arrow.get_schema(&arrow, &schema) == 0);
  CHECK(std::string_view(schema.format) == "+s");
  REQUIRE(schema.n_children == std::int64_t(kColumns.size()));
  for (std::size_t c = 0; c < kColumns.size(); ++c) {
    const ArrowSchema& field = *schema.children[c];
    const std::string name = kColumns[c].first;
    CHECK(field.name == name);
    CHECK(field.format == kFormats.at(name));
    CHECK(field.flags == ARROW_FLAG_NULLABLE);
    CHECK((field.dictionary != nullptr) == (name == "kind"));
    if (field.dictionary != nullptr) CHECK(std::string_view(field.dictionary->format) == "u");
  }
  // A consumer may move a child and keep it.
  ArrowSchema kept = *schema.children[7];
  schema.children[7]->release = nullptr;
  schema.release(&schema);
  CHECK(schema.release == nullptr);
  CHECK(std::string_view(kept.name) == "kind");
  CHECK(std::string_view(kept.dictionary->format) == "u");
  kept.release(&kept);
  arrow.release(&arrow);
  CHECK(arrow.release == nullptr);
}

TEST_CASE("arrays have the rows of the stream, in every type, with NULLs") {
  const std::int64_t rows = GENERATE(0, 1, 7, 64, kManyRows);
  const bool all_null = GENERATE(false, true);
  EveryType every(rows, all_null);
  for (const bool is_merged : {false, true}) {
    if (is_merged) every.merge();
    Transaction t = must(every.database->begin(AccessMode::kReadOnly));
    ArrowArrayStream arrow = arrow_of(every, t);
    std::int64_t found = 0;
    for (;;) {
      ArrowArray batch;
      REQUIRE(arrow.get_next(&arrow, &batch) == 0);
      if (batch.release == nullptr) break;
      REQUIRE(is_right(batch, all_null, found));
      batch.release(&batch);
    }
    CHECK(found == rows);
    CHECK(arrow.get_last_error(&arrow) == nullptr);
    arrow.release(&arrow);
  }
}

TEST_CASE("batches become arrays whether or not the stream was made for Arrow") {
  EveryType every(kManyRows, false);
  Transaction t = must(every.database->begin(AccessMode::kReadOnly));
  std::vector<Item> columns;
  for (const auto& [name, type] : kColumns) columns.emplace_back(name);
  const Query all = Query::table("every").select(columns);
  for (const int prefers : {0, 1, 2}) {  // 2: when there has been a batch
    ResultStream stream = must(all.stream(t));
    if (prefers == 1) prefer_arrow(stream);
    std::int64_t rows = 0;
    for (const StreamBatch& batch : stream) {
      if (prefers == 2) prefer_arrow(stream);
      ArrowArray array;
      to_arrow(batch, array);
      REQUIRE(is_right(array, false, rows));
      array.release(&array);
      for (std::size_t c = 0; c < kColumns.size(); ++c) {
        const Type type = kColumns[c].second;
        const bool has_other_form =
            type == Type::kInt32 || type == Type::kDate || type == Type::kDecimal;
        if (type == Type::kDouble || type == Type::kString || type == Type::kBytes) continue;
        const auto integers = batch.column<std::int64_t>(c);
        REQUIRE(integers.ok() == (prefers != 1 || !has_other_form));
        if (!integers.ok())
          REQUIRE(integers.status().message().find("in the form of Arrow") != std::string::npos);
      }
    }
    must(stream.status());
    CHECK(rows == kManyRows);
  }
}

#ifndef __SANITIZE_THREAD__  // one thread with a full batch
TEST_CASE("arrays and their columns outlive everything else") {
  std::vector<ArrowArray> columns;
  ArrowArray whole;
  {
    EveryType every(70'000, false);
    Transaction t = must(every.database->begin(AccessMode::kReadOnly));
    ArrowArrayStream arrow = arrow_of(every, t);
    ArrowArray batch;
    REQUIRE(arrow.get_next(&arrow, &batch) == 0);
    REQUIRE(arrow.get_next(&arrow, &whole) == 0);
    for (std::int64_t c = 0; c < batch.n_children; ++c) {
      columns.push_back(*batch.children[c]);
      batch.children[c]->release = nullptr;  // moved
    }
    batch.release(&batch);
    arrow.release(&arrow);
  }
  std::int64_t rows = 0;
  CHECK(is_right(whole, false, rows));
  whole.release(&whole);
  const ArrowArray ids = columns[0];
  for (std::size_t c = 1; c < columns.size(); ++c) {
    std::string text;
    for (std::int64_t i = 0; i < columns[c].length; i += 999) {
      const std::int64_t id = at<std::int64_t>(ids, i);
      if (!EveryType::is_null(id, c))
        CHECK(is_value(columns[c], i, EveryType::value(id, c, text), c));
    }
    columns[c].release(&columns[c]);
  }
  columns[0].release(&columns[0]);
}
#endif

TEST_CASE("a stream that fails says so to the consumer") {
  EveryType every(100, false);
  Transaction t = must(every.database->begin());
  ArrowArrayStream arrow = arrow_of(every, t);
  t.abort();
  ArrowArray batch;
  CHECK(arrow.get_next(&arrow, &batch) == EINVAL);
  CHECK(batch.release == nullptr);
  CHECK(std::string_view(arrow.get_last_error(&arrow)).find("the transaction of this stream") !=
        std::string_view::npos);
  ArrowSchema schema;
  REQUIRE(arrow.get_schema(&arrow, &schema) == 0);
  schema.release(&schema);
  arrow.release(&arrow);
}
