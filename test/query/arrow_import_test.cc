// insert_arrow takes what Arrow producers give, and survives what they should not give.
#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "flugs/arrow_export.h"
#include "flugs/arrow_import.h"
#include "flugs/query.h"
#include "test/support/arrow_builder.h"
#include "test/support/random.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

using query::insert_arrow;
using Columns = std::vector<ArrowColumn>;

/// A table with one nullable column "c", and what Arrow columns make of it.
class OneColumn {
 public:
  explicit OneColumn(Type type, std::uint8_t scale = 0) {
    TableSchema schema("t");
    schema.column("c", type);
    if (type == Type::kDecimal) schema.scale(scale);
    table_ = must(database_->create_table(schema));
  }
  Result<std::uint64_t> insert(ArrowColumn column, std::int64_t offset = 0) {
    column.name = "c";
    ArrowMaker maker(releases_);
    maker.rows = column.length - offset;
    maker.offset = offset;
    ArrowSchema schema = maker.schema({column});
    ArrowArray array = maker.array({column});
    Transaction t = must(database_->begin(AccessMode::kReadWrite));
    Result<std::uint64_t> rows = insert_arrow(t, table_, &schema, &array);
    ++calls_;
    CHECK(releases_.schemas == calls_);
    CHECK(releases_.arrays == calls_);
    CHECK(schema.release == nullptr);
    CHECK(array.release == nullptr);
    found_.clear();
    const ColumnId first(0);
    must(t.scan(table_, std::span(&first, 1), Predicate::all(), [&](const ScanBatch& batch) {
      for (std::size_t i = 0; i < batch.row_count(); ++i)
        found_.push_back(batch.get_unchecked(0, i).to_string());
      return true;
    }));
    return rows;
  }
  /// Inserts the column; what the table then has.
  std::vector<std::string> taken(const ArrowColumn& column, std::int64_t offset = 0) {
    const Result<std::uint64_t> rows = insert(column, offset);
    INFO(column.format << ": " << rows.status().to_string());
    CHECK(rows.ok());
    return found_;
  }
  void refused(const ArrowColumn& column, StatusCode code, const std::string& why) {
    const Result<std::uint64_t> rows = insert(column);
    INFO(column.format << ": " << rows.status().to_string());
    CHECK(rows.code() == code);
    CHECK(rows.status().message().find(why) != std::string::npos);
    CHECK(found_.empty());
  }

 private:
  MemoryDatabase database_;
  TableId table_;
  ArrowReleases releases_;
  int calls_ = 0;
  std::vector<std::string> found_;
};

using Texts = std::vector<std::string>;

template <typename T>
ArrowColumn numbers(const char* format, const std::vector<T>& values) {
  return ArrowColumn::numbers("c", format, values);
}

ArrowColumn bits(const std::vector<bool>& values) {
  ArrowColumn column{"c", "b", static_cast<std::int64_t>(values.size()), 0, 0, {}};
  column.buffers = {nullptr, ArrowColumn::bits_of(values)};
  return column;
}

}  // namespace

TEST_CASE("numbers of every Arrow width become values of wider columns", "[query][arrow]") {
  OneColumn wide(Type::kInt64);
  CHECK(wide.taken(numbers<std::int8_t>("c", {-1, 127})) == Texts{"-1", "127"});
  CHECK(wide.taken(numbers<std::uint8_t>("C", {255})) == Texts{"255"});
  CHECK(wide.taken(numbers<std::int16_t>("s", {-300})) == Texts{"-300"});
  CHECK(wide.taken(numbers<std::uint16_t>("S", {65'535})) == Texts{"65535"});
  CHECK(wide.taken(numbers<std::int32_t>("i", {-70'000})) == Texts{"-70000"});
  CHECK(wide.taken(numbers<std::uint32_t>("I", {4'000'000'000u})) == Texts{"4000000000"});
  CHECK(wide.taken(numbers<std::int64_t>("l", {INT64_MIN})) == Texts{std::to_string(INT64_MIN)});
  CHECK(wide.taken(numbers<std::uint64_t>("L", {INT64_MAX})) == Texts{std::to_string(INT64_MAX)});
  wide.refused(numbers<std::uint64_t>("L", {1, UINT64_MAX}), StatusCode::kConstraintViolated,
               "row 1 of the batch");
  OneColumn narrow(Type::kInt32);
  CHECK(narrow.taken(numbers<std::int64_t>("l", {-5, INT32_MAX})) == Texts{"-5", "2147483647"});
  narrow.refused(numbers<std::int64_t>("l", {0, 0, std::int64_t{INT32_MAX} + 1}),
                 StatusCode::kConstraintViolated, "row 2 of the batch");
  narrow.refused(numbers<double>("g", {1.0}), StatusCode::kConstraintViolated, "row 0");
  OneColumn truth(Type::kBool);
  CHECK(truth.taken(bits({true, false, true})) == Texts{"true", "false", "true"});
  OneColumn real(Type::kDouble);
  CHECK(real.taken(numbers<float>("f", {1.5F})) == Texts{"1.5"});
  CHECK(real.taken(numbers<double>("g", {-0.25})) == Texts{"-0.25"});
  CHECK(real.taken(numbers<std::uint16_t>("e", {0x3C00, 0xC100, 0x0001})) ==
        Texts{"1", "-2.5", Value::real(5.9604644775390625e-08).to_string()});
  CHECK(real.taken(numbers<std::int32_t>("i", {7})) == Texts{"7"});
}

TEST_CASE("decimals keep their scale or are refused", "[query][arrow]") {
  OneColumn money(Type::kDecimal, 2);
  const auto wide = [](std::int64_t low, std::int64_t high) {
    return numbers<std::int64_t>("d:19,2", {low, high}).part(0, 1);
  };
  CHECK(money.taken(wide(-1234, -1)) == Texts{"-12.34"});
  CHECK(money.taken(numbers<std::int64_t>("d:18,2,64", {1234})) == Texts{"12.34"});
  CHECK(money.taken(numbers<std::int32_t>("d:9,1,32", {5})) == Texts{"0.50"});
  CHECK(money.taken(numbers<std::int8_t>("c", {3})) == Texts{"3.00"});
  money.refused(wide(-1234, 0), StatusCode::kConstraintViolated, "out of the range");
  money.refused(numbers<std::int64_t>("d:18,3,64", {1}), StatusCode::kConstraintViolated, "row 0");
  for (const char* format : {"d:40,2,256", "d:5,-1", "d:5", "d:5,19", "d:x,1"})
    money.refused(numbers<std::int64_t>(format, {1, 1}), StatusCode::kInvalidArgument, format);
}

TEST_CASE("dates and timestamps of every unit are taken when they are exact", "[query][arrow]") {
  OneColumn day(Type::kDate);
  CHECK(day.taken(numbers<std::int32_t>("tdD", {0, 20'000})) == Texts{"1970-01-01", "2024-10-04"});
  CHECK(day.taken(numbers<std::int64_t>("tdm", {86'400'000})) == Texts{"1970-01-02"});
  day.refused(numbers<std::int64_t>("tdm", {0, 86'400'001}), StatusCode::kConstraintViolated,
              "value 1: 86400001 is no exact date");
  day.refused(numbers<std::int64_t>("tdm", {std::int64_t{1} << 40}).part(0, 1),
              StatusCode::kConstraintViolated, "no exact");
  OneColumn moment(Type::kTimestamp);
  const std::string second = Value::timestamp(1'000'000).to_string();
  CHECK(moment.taken(numbers<std::int64_t>("tss:", {1})) == Texts{second});
  CHECK(moment.taken(numbers<std::int64_t>("tsm:UTC", {1000})) == Texts{second});
  CHECK(moment.taken(numbers<std::int64_t>("tsu:Europe/Berlin", {1'000'000})) == Texts{second});
  CHECK(moment.taken(numbers<std::int64_t>("tsn:", {1'000'000'000})) == Texts{second});
  CHECK(moment.taken(numbers<std::int32_t>("tdD", {0})) == Texts{Value::timestamp(0).to_string()});
  moment.refused(numbers<std::int64_t>("tsn:", {1}), StatusCode::kConstraintViolated, "value 0");
  moment.refused(numbers<std::int64_t>("tss:", {INT64_MAX}), StatusCode::kConstraintViolated,
                 "value 0");
  moment.refused(numbers<std::int64_t>("tDs", {1}), StatusCode::kInvalidArgument, "tDs");
  moment.refused(numbers<std::int32_t>("tts", {1}), StatusCode::kInvalidArgument, "tts");
}

TEST_CASE("texts and bytes of every layout are taken", "[query][arrow]") {
  const Texts texts = {"", "short", "a text that is longer than a cell", "", "x"};
  OneColumn string(Type::kString);
  Texts shown;
  for (const std::string& text : texts) shown.push_back(Value::string(text).to_string());
  CHECK(string.taken(ArrowColumn::texts<std::int32_t>("c", "u", texts)) == shown);
  CHECK(string.taken(ArrowColumn::texts<std::int64_t>("c", "U", texts)) == shown);
  CHECK(string.taken(ArrowColumn::views("c", "vu", texts)) == shown);
  string.refused(ArrowColumn::texts<std::int32_t>("c", "z", texts), StatusCode::kConstraintViolated,
                 "row 0");
  string.refused(ArrowColumn::texts<std::int32_t>("c", "+l", texts), StatusCode::kInvalidArgument,
                 "+l");
  string.refused(ArrowColumn::texts<std::int32_t>("c", "+r", texts), StatusCode::kInvalidArgument,
                 "run-end");
  OneColumn bytes(Type::kBytes);
  Texts hex;
  for (const std::string& text : texts) hex.push_back(Value::bytes(text).to_string());
  CHECK(bytes.taken(ArrowColumn::texts<std::int32_t>("c", "z", texts)) == hex);
  CHECK(bytes.taken(ArrowColumn::texts<std::int64_t>("c", "Z", texts)) == hex);
  CHECK(bytes.taken(ArrowColumn::views("c", "vz", texts)) == hex);
  CHECK(bytes.taken(ArrowColumn::texts<std::int32_t>("c", "u", texts)) == hex);
  ArrowColumn fixed = numbers<std::int16_t>("w:2", {0x4142, 0x4344, 0x4546});
  CHECK(bytes.taken(fixed.part(1, 2)) == Texts{"x'4443'", "x'4645'"});
}

TEST_CASE("NULLs, offsets of arrays and offsets of the struct count together", "[query][arrow]") {
  std::vector<bool> valid;
  std::vector<std::int64_t> values;
  Texts wanted;
  for (std::int64_t i = 0; i < 1000; ++i) {
    valid.push_back(i % 3 != 0);
    values.push_back(i * 1'000'000);
    if (i >= 13 + 7)
      wanted.push_back(i % 3 != 0 ? Value::timestamp(i * 1'000'000).to_string() : "NULL");
  }
  for (const char* format : {"tsu:", "tss:"}) {
    std::vector<std::int64_t> in_unit = values;
    for (std::int64_t& value : in_unit) value /= format[2] == 's' ? 1'000'000 : 1;
    OneColumn moment(Type::kTimestamp);
    ArrowColumn column = numbers(format, in_unit);
    CHECK(moment.taken(column.nulls(valid).part(13, 987), 7) == wanted);
  }
  OneColumn nothing(Type::kInt32);
  CHECK(nothing.taken({"c", "n", 3, 0, 3, {}}) == Texts{"NULL", "NULL", "NULL"});
}

TEST_CASE("dictionaries of any index and of any type are taken", "[query][arrow]") {
  const auto entries = std::make_shared<ArrowColumn>(
      ArrowColumn::texts<std::int32_t>("", "u", {"left out", "red", "green", "unused"}));
  entries->part(1, 3);
  const Texts wanted = {"'red'", "'green'", "NULL", "'red'"};
  const auto coded = [&](ArrowColumn codes) {
    codes.dictionary = entries;
    codes.nulls({true, true, false, true});
    return codes;
  };
  OneColumn color(Type::kString);
  CHECK(color.taken(coded(numbers<std::int8_t>("c", {0, 1, 99, 0}))) == wanted);
  CHECK(color.taken(coded(numbers<std::uint16_t>("S", {0, 1, 99, 0}))) == wanted);
  CHECK(color.taken(coded(numbers<std::int64_t>("l", {0, 1, 99, 0}))) == wanted);
  color.refused(coded(numbers<std::int32_t>("i", {0, 3, 0, 0})), StatusCode::kInvalidArgument,
                "code 3 of a dictionary of 3 entries");
  color.refused(coded(numbers<double>("g", {0, 0, 0, 0})), StatusCode::kInvalidArgument, "indices");
  ArrowColumn against = coded(numbers<std::int32_t>("i", {0, 1, 0, 0}));
  against.has_schema_dictionary = false;
  color.refused(against, StatusCode::kInvalidArgument, "against the schema");
  OneColumn number(Type::kInt64);
  ArrowColumn codes = numbers<std::int32_t>("i", {1, 0, 1});
  codes.dictionary = std::make_shared<ArrowColumn>(numbers<std::int16_t>("s", {-7, 300}));
  CHECK(number.taken(codes) == Texts{"300", "-7", "300"});
  codes.dictionary->nulls({false, true});
  CHECK(number.taken(codes) == Texts{"300", "NULL", "300"});
}

namespace {

/// A stream of batches into a table of two columns, one of which must be there.
struct Streamed {
  Streamed() {
    TableSchema schema("streamed");
    schema.column("id", Type::kInt64).not_null().column("text", Type::kString);
    table = must(database->create_table(schema.primary_key({"id"})));
  }
  ArrowArray batch(std::int64_t first, std::int64_t rows) {
    std::vector<std::int64_t> ids;
    for (std::int64_t i = 0; i < rows; ++i) ids.push_back(first + i);
    maker.rows = rows;
    return maker.array({columns[0] = numbers("l", ids), columns[1] = texts(rows)});
  }
  static ArrowColumn texts(std::int64_t rows) {
    return ArrowColumn::texts<std::int32_t>("text", "u",
                                            Texts(static_cast<std::size_t>(rows), "some text"));
  }
  Result<std::uint64_t> insert(std::vector<ArrowArray> arrays, int error = 0) {
    columns[0].name = "id";
    schemas += transaction.is_open() ? 1 : 0;  // else nobody asks for it
    const auto count = static_cast<int>(arrays.size());
    ArrowArrayStream stream = maker.stream(columns, std::move(arrays), error);
    Result<std::uint64_t> rows = insert_arrow(transaction, table, &stream);
    CHECK(stream.release == nullptr);
    CHECK(releases.streams == ++streams);
    batches += count;
    CHECK(releases.arrays == batches);
    CHECK(releases.schemas == schemas);
    return rows;
  }
  std::uint64_t rows() {
    const ColumnId id(0);
    std::uint64_t count = 0;
    must(transaction.scan(table, std::span(&id, 1), Predicate::all(), [&](const ScanBatch& batch) {
      count += batch.row_count();
      return true;
    }));
    return count;
  }

  MemoryDatabase database;
  TableId table;
  Transaction transaction = must(database->begin(AccessMode::kReadWrite));
  ArrowReleases releases;
  ArrowMaker maker{releases};
  Columns columns = Columns(2);
  int streams = 0;
  int schemas = 0;
  int batches = 0;
};

}  // namespace

TEST_CASE("a stream is inserted whole or not at all, and released once", "[query][arrow]") {
  Streamed to;
  CHECK(must(to.insert({to.batch(0, 1000), to.batch(1000, 0), to.batch(1000, 500)})) == 1500);
  CHECK(to.rows() == 1500);
  const Result<std::uint64_t> taken = to.insert({to.batch(5000, 300), to.batch(1400, 300)});
  CHECK(taken.code() == StatusCode::kAlreadyExists);
  CHECK(taken.status().message() ==
        "batch 1 of the stream: row 0 of the batch: table streamed, key primary: id = 1400 exists");
  CHECK(to.rows() == 1500);
  const Result<std::uint64_t> broken = to.insert({to.batch(5000, 300)}, EIO);
  CHECK(broken.code() == StatusCode::kInvalidArgument);
  CHECK(broken.status().message().find("the source is gone") != std::string::npos);
  CHECK(to.insert({to.batch(5000, 300)}, ECANCELED).code() == StatusCode::kCancelled);
  CHECK(to.rows() == 1500);
  CHECK(must(to.insert({})) == 0);
  ArrowArrayStream gone = {};
  CHECK(insert_arrow(to.transaction, to.table, &gone).code() == StatusCode::kInvalidArgument);
  CHECK(insert_arrow(to.transaction, to.table, nullptr).code() == StatusCode::kInvalidArgument);
  CHECK(to.insert({to.batch(6000, 1)}).ok());
  must(to.transaction.commit());
  CHECK(to.insert({to.batch(7000, 1)}).code() == StatusCode::kInvalidArgument);
}

TEST_CASE("fields must have the names of columns, each once", "[query][arrow]") {
  Streamed to;
  const auto insert = [&](const Columns& columns) {
    to.maker.rows = 1;
    ArrowSchema schema = to.maker.schema(columns);
    ArrowArray array = to.maker.array(columns);
    return insert_arrow(to.transaction, to.table, &schema, &array);
  };
  ArrowColumn id = ArrowColumn::numbers<std::int64_t>("id", "l", {1});
  ArrowColumn other = ArrowColumn::numbers<std::int64_t>("name", "l", {1});
  CHECK(insert({id, other}).status().message() ==
        "Arrow stream: table streamed has no column name; it has id, text");
  CHECK(insert({id, id}).code() == StatusCode::kInvalidArgument);
  CHECK(insert({Streamed::texts(1)}).code() == StatusCode::kConstraintViolated);
  CHECK(must(insert({id})) == 1);
  CHECK(to.rows() == 1);
  CHECK(to.releases.schemas == 4);
  CHECK(to.releases.arrays == 4);
}

TEST_CASE("what to_arrow gives of a table comes back by insert_arrow", "[query][arrow]") {
  Streamed from;
  must(from.insert({from.batch(0, 5000)}));
  must(from.transaction.commit());
  TableSchema copy("copy");
  copy.column("id", Type::kInt64).not_null().column("text", Type::kString).primary_key({"id"});
  const TableId table = must(from.database->create_table(copy));
  const Transaction reader = must(from.database->begin(AccessMode::kReadOnly));
  ArrowArrayStream stream = {};
  query::to_arrow(must(query::Query::table("streamed").stream(reader)), stream);
  Transaction writer = must(from.database->begin(AccessMode::kReadWrite));
  CHECK(must(insert_arrow(writer, table, &stream)) == 5000);
}

namespace {

template <typename T>
void spoil(const std::shared_ptr<std::string>& buffer, Random& random, T value) {
  if (!buffer || buffer->size() < sizeof(T)) return;
  const std::size_t place = random.below(buffer->size() / sizeof(T));
  std::memcpy(buffer->data() + place * sizeof(T), &value, sizeof(T));
}

/// Damages one thing that the interface lets a consumer notice.
void spoil(ArrowColumn& column, Random& random) {
  const std::array<std::int64_t, 6> wrong = {-1, INT64_MIN, INT64_MAX, -77, INT64_MAX - 3, 1};
  switch (random.below(9)) {
    case 0:
      column.length = wrong[random.below(4) % 3];
      break;
    case 1:
      column.offset = wrong[random.below(5)];
      break;
    case 2:
      column.null_count = wrong[random.below(wrong.size())];
      break;
    case 3:
      column.buffers[random.below(column.buffers.size())] = nullptr;
      break;
    case 4:
      column.buffers.resize(random.below(5));
      break;
    case 5:
      column.length -= static_cast<std::int64_t>(1 + random.below(5));
      break;
    case 6:
      if (column.dictionary) return spoil(*column.dictionary, random);
      break;
    case 7:
      // Indices, lengths, offsets and numbers of buffers: too small or too large for any buffer.
      if (column.dictionary)
        spoil<std::int32_t>(column.buffers.at(1), random, random.chance(50) ? -1 : 1'000'000);
      else if (column.format == "u")
        spoil<std::int32_t>(column.buffers.at(1), random,
                            -static_cast<std::int32_t>(random.below(9)));
      else if (column.format == "vu")
        spoil<std::int32_t>(column.buffers.at(1), random, static_cast<std::int32_t>(random.next()));
      break;
    default:
      column.format = std::string(1, static_cast<char>('a' + random.below(26)));
      if (column.format == "z" || column.format == "u" || column.buffers.size() != 3)
        column.format = "w";
      break;
  }
}

}  // namespace

TEST_CASE("damaged arrays are refused or read, and never more than released", "[query][arrow]") {
  TableSchema schema("spoilt");
  schema.column("id", Type::kInt64).column("text", Type::kString).column("view", Type::kString);
  schema.column("code", Type::kString).column("at", Type::kTimestamp);
  MemoryDatabase database;
  const TableId table = must(database->create_table(schema));
  ArrowReleases releases;
  int refused = 0;
  constexpr int kRounds = 4000;
  for (int round = 0; round < kRounds; ++round) {
    INFO("round " << round);
    Random random(static_cast<std::uint64_t>(round));
    const auto rows = static_cast<std::size_t>(1 + random.below(20));
    const Texts texts(rows, random.chance(50) ? "short" : "a text that is longer than a view");
    Columns columns = {ArrowColumn::numbers("id", "l", std::vector<std::int64_t>(rows, 5)),
                       ArrowColumn::texts<std::int32_t>("text", "u", texts),
                       ArrowColumn::views("view", "vu", texts),
                       ArrowColumn::numbers("code", "i", std::vector<std::int32_t>(rows, 1)),
                       ArrowColumn::numbers("at", "tsn:", std::vector<std::int64_t>(rows, 7000))};
    columns[3].dictionary = std::make_shared<ArrowColumn>(
        ArrowColumn::texts<std::int32_t>("", "u", {"first", "second"}));
    spoil(columns[random.below(columns.size())], random);
    ArrowMaker maker(releases);
    maker.rows = static_cast<std::int64_t>(rows);
    if (random.chance(3)) maker.null_count = 1, maker.validity = ArrowColumn::bits_of({false});
    if (random.chance(3)) maker.offset = random.chance(50) ? -1 : INT64_MAX;
    ArrowSchema made = maker.schema(columns);
    ArrowArray array = maker.array(columns);
    if (random.chance(3)) --array.n_children;
    Transaction t = must(database->begin(AccessMode::kReadWrite));
    const Result<std::uint64_t> inserted = insert_arrow(t, table, &made, &array);
    refused += inserted.ok() ? 0 : 1;
    if (inserted.ok()) CHECK(*inserted == rows);
    REQUIRE(releases.arrays == round + 1);
    REQUIRE(releases.schemas == round + 1);
  }
  CHECK(refused > kRounds / 2);
  CHECK(refused < kRounds);
}

}  // namespace flugs::test
