#include "columns/column/column.h"

#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <string>

#include "test/support/model_value.h"
#include "test/support/test_column.h"

namespace flugs::test {
namespace {

// A row with one cell, as wide as the column needs.
struct OneCellRow {
  columns::RowLayout layout;
  alignas(64) std::array<std::byte, 64> bytes{};

  OneCellRow(columns::Column& column, const columns::Cell& cell)
      : layout(make(column.need(column.bits_for(cell)))) {
    layout.store(bytes.data(), 0, cell);
  }
  static columns::RowLayout make(const columns::CellNeed& need) {
    auto layout = columns::RowLayout::make(std::span(&need, 1));
    REQUIRE(layout.ok());
    return std::move(layout).value();
  }
};

}  // namespace

TEST_CASE("a value comes back through a row, in every type and encoding", "[columns]") {
  for (const Encoding encoding : {Encoding::kDictionary, Encoding::kDirect})
    for (int type = 1; type <= 9; ++type) {
      const ColumnSchema schema = column_schema(static_cast<Type>(type), encoding);
      TestColumn column(schema);
      Random random(static_cast<std::uint64_t>(type));
      std::size_t wrong = 0;
      for (int i = 0; i < 2000; ++i) {
        const ModelValue wanted = random_value(schema, 100, random);
        const ModelValue other = random_value(schema, 3, random);
        const auto cell = column.encode(wanted.view());
        REQUIRE(cell.ok());
        const OneCellRow row(*column, *cell);
        const Value found = column->value(row.layout, row.bytes.data(), 0);
        wrong += found == wanted.view() ? 0 : 1;
        wrong += column->is_null(row.layout, row.bytes.data(), 0) == wanted.null ? 0 : 1;
        wrong += column->equals(row.layout, row.bytes.data(), 0, wanted.view()) ? 0 : 1;
        wrong += column->equals(row.layout, row.bytes.data(), 0, other.view()) == (other == wanted)
                     ? 0
                     : 1;
        wrong += column->is_plausible(row.layout, row.bytes.data(), 0) ? 0 : 1;
      }
      INFO(to_string(schema.type) << (encoding == Encoding::kDirect ? ", direct" : ""));
      CHECK(wrong == 0);
    }
}

TEST_CASE("a cell that is encoded at once is the one that encode makes", "[columns]") {
  for (const Encoding encoding : {Encoding::kDictionary, Encoding::kDirect})
    for (int type = 1; type <= 9; ++type) {
      const ColumnSchema schema = column_schema(static_cast<Type>(type), encoding);
      TestColumn column(schema);
      Random random(static_cast<std::uint64_t>(type));
      std::size_t wrong = 0;
      std::size_t at_once = 0;
      for (int i = 0; i < 1000; ++i) {
        const ModelValue value = random_value(schema, 40, random);
        columns::Cell cell;
        std::uint8_t bits = 0;
        if (!column->encode_at_once(value.view(), cell, bits)) {
          REQUIRE(column.encode(value.view()).ok());
          continue;
        }
        ++at_once;
        const auto wanted = column.encode(value.view());
        REQUIRE(wanted.ok());
        wrong += cell.low == wanted->low && cell.high == wanted->high ? 0 : 1;
        wrong += cell.is_null == wanted->is_null ? 0 : 1;
        wrong += bits == column->bits_for(*wanted) ? 0 : 1;
      }
      INFO(to_string(schema.type) << (encoding == Encoding::kDirect ? ", direct" : ""));
      CHECK(wrong == 0);
      const bool is_text = schema.type == Type::kString || schema.type == Type::kBytes;
      const bool is_normal = schema.type != Type::kBool && schema.type != Type::kDouble;
      CHECK((at_once > 300) == (is_normal && !(is_text && encoding == Encoding::kDictionary)));
    }
}

TEST_CASE("a column accepts its own type, and what stands for its values exactly", "[columns]") {
  for (int type = 1; type <= 9; ++type)
    for (int given = 1; given <= 9; ++given) {
      TestColumn column(column_schema(static_cast<Type>(type)));
      const auto of = static_cast<Type>(given);
      const bool text = of == Type::kString || of == Type::kBytes;
      const Value value = text ? Value::from_bytes(of, "x") : Value::from_raw(of, 1);
      const auto to = column->type();
      const bool is_integer = of == Type::kInt32 || of == Type::kInt64;
      const bool takes_integers =
          to == Type::kInt32 || to == Type::kInt64 || to == Type::kDecimal || to == Type::kDouble;
      const bool fits = to == of || (is_integer && takes_integers) ||
                        (of == Type::kDate && to == Type::kTimestamp) ||
                        (of == Type::kString && to == Type::kBytes);
      CHECK(column->check(value, column->type()).code() ==
            (fits ? StatusCode::kOk : StatusCode::kConstraintViolated));
    }
  ColumnSchema schema = column_schema(Type::kInt64);
  schema.nullable = false;
  TestColumn column(schema);
  const Status status = column->check(Value::null(), column->type());
  CHECK(status.code() == StatusCode::kConstraintViolated);
  CHECK(std::string(status.message()).find("table t, column c") != std::string::npos);
}

TEST_CASE("zeros and NaNs have one form", "[columns]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(columns::normalised(Value::real(-0.0), Type::kDouble) == Value::real(0.0));
  CHECK(columns::normalised(Value::real(-nan), Type::kDouble) ==
        columns::normalised(Value::real(nan), Type::kDouble));
  CHECK(columns::normalised(Value::real(std::nan("7")), Type::kDouble) ==
        columns::normalised(Value::real(nan), Type::kDouble));
  CHECK(columns::normalised(Value::real(1.5), Type::kDouble) == Value::real(1.5));
  CHECK(columns::normalised(Value::int32(-7), Type::kInt64) == Value::int64(-7));
  CHECK(columns::normalised(Value::null(), Type::kDouble).is_null());
}

// A payload made with from_raw may be wider than its type. The extra bits must not reach
// neighbouring cells, nor make a dictionary entry that looks torn.
TEST_CASE("payloads beyond the type are cut to it", "[columns]") {
  CHECK(columns::normalised(Value::from_raw(Type::kBool, 6), Type::kBool) == Value::boolean(true));
  const std::int64_t wide = (std::int64_t{5} << 32) | 7;
  CHECK(columns::normalised(Value::from_raw(Type::kInt32, wide), Type::kInt32) == Value::int32(7));
  CHECK(columns::normalised(Value::from_raw(Type::kDate, wide), Type::kDate) == Value::date(7));
  CHECK(columns::normalised(Value::from_raw(Type::kInt32, wide), Type::kInt64) == Value::int64(7));
}

TEST_CASE("cells are as narrow as the value allows", "[columns]") {
  TestColumn integer(column_schema(Type::kInt64, Encoding::kDirect));
  const auto bits_of = [](TestColumn& column, const Value& value) {
    return static_cast<int>(column->bits_for(*column.encode(value)));
  };
  CHECK(bits_of(integer, Value::null()) == 24);
  CHECK(bits_of(integer, Value::int64(0)) == 24);
  for (int bits = 24; bits < 64; bits += 8) {
    CHECK(bits_of(integer, Value::int64((std::int64_t{1} << bits) - 1)) == bits);
    CHECK(bits_of(integer, Value::int64(std::int64_t{1} << bits)) == bits + 8);
  }
  CHECK(bits_of(integer, Value::int64(-1)) == 64);
  TestColumn narrow(column_schema(Type::kInt32, Encoding::kDirect));
  CHECK(bits_of(narrow, Value::int32(0xFFFFFF)) == 24);
  CHECK(bits_of(narrow, Value::int32(0x1000000)) == 32);
  CHECK(bits_of(narrow, Value::int32(-1)) == 32);
  for (const Type type : {Type::kDouble, Type::kTimestamp}) {
    TestColumn whole(column_schema(type, Encoding::kDirect));
    CHECK(bits_of(whole, Value::from_raw(type, 1)) == 64);
  }
  TestColumn text(column_schema(Type::kString, Encoding::kDirect));
  CHECK(text->bits_for(*text.encode(Value::string(""))) == 128);
  TestColumn codes(column_schema(Type::kInt64));
  CHECK(codes->bits_for(*codes.encode(Value::int64(-1))) == 1);
  CHECK(codes->bits_for(*codes.encode(Value::int64(-2))) == 1);
  CHECK(codes->bits_for(*codes.encode(Value::int64(-3))) == 2);
}

TEST_CASE("integers of any size come back from cells of every width that they fit", "[columns]") {
  for (const Type type : {Type::kInt32, Type::kDate, Type::kInt64, Type::kDecimal}) {
    TestColumn column(column_schema(type, Encoding::kDirect));
    const bool is_narrow = type == Type::kInt32 || type == Type::kDate;
    const int most = is_narrow ? 32 : 64;
    for (int shift = 0; shift < most; ++shift)
      for (const std::int64_t near : {-1, 0, 1})
        for (const bool negative : {false, true}) {
          const std::uint64_t size = (std::uint64_t{1} << shift) + static_cast<std::uint64_t>(near);
          auto raw = static_cast<std::int64_t>(negative ? 0 - size : size);
          if (is_narrow) raw = static_cast<std::int32_t>(raw);
          const Value value = Value::from_raw(type, raw);
          const columns::Cell cell = *column.encode(value);
          for (unsigned more = 0; more <= 40; more += 4) {
            const columns::CellNeed need = column->need(column->bits_for(cell), more);
            CHECK(need.bits <= most);
            const columns::RowLayout layout = OneCellRow::make(need);
            alignas(64) std::array<std::byte, 64> row{};
            layout.store(row.data(), 0, cell);
            if (column->value(layout, row.data(), 0) != value ||
                column->integer(layout, row.data(), 0) != raw)
              FAIL(to_string(type) << " " << raw << " in " << int{need.bits} << " bits");
          }
        }
  }
}

TEST_CASE("a foretold number of values gives the width", "[columns]") {
  ColumnSchema schema = column_schema(Type::kInt64);
  schema.expected_distinct = 4;
  TestColumn column(schema);
  CHECK(column->need(1).bits == 2);
  for (int i = 0; i < 5; ++i) REQUIRE(column.encode(Value::int64(i)).ok());
  CHECK(column->need(4).bits >= 8);  // foretold wrong: room to grow
}

TEST_CASE("a column gives all its extents back", "[columns]") {
  TestColumn column(column_schema(Type::kString));
  for (int i = 0; i < 1000; ++i)
    REQUIRE(column
                .encode(Value::string(
                    std::string_view("a rather long text, number " + std::to_string(i))))
                .ok());
  CHECK(column.pool().allocator().space().used_bytes >= column->bytes_in_pool());
  CHECK(column->bytes_in_pool() > 40000);
  column->release_all();
  CHECK(column.pool().allocator().space().used_bytes == 0);
}

}  // namespace flugs::test
