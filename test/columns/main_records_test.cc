#include "columns/main/main_records.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <deque>

#include "test/support/main_column_group.h"

namespace flugs::test {
namespace {

using columns::MainColumn;
using columns::MainColumnLayout;
using columns::MainRecords;

/// Columns of every width, type and encoding, of the same number of rows, with their records.
class Wide {
 public:
  explicit Wide(std::size_t rows) : rows_(rows) {
    Random random(rows);
    for (unsigned bits = 1; bits <= 60; bits += 1 + random.below(4))
      add({Type::kInt64, rows, (std::uint64_t{1} << bits) - 1, -5, 1, bits % 3 == 0 ? 10u : 0u},
          random);
    for (const Type type : {Type::kString, Type::kDouble, Type::kBool, Type::kDate})
      for (const std::uint32_t null_percent : {0u, 20u, 100u})
        add({type, rows, 2, 0, 1 + random.below(40), null_percent}, random);
    add({Type::kInt64, rows, 0, 0, 1, 10}, random);         // every payload there is: plain
    add({Type::kString, rows, 1u << 30, 0, 1, 0}, random);  // plain text
    for (const MainColumnGroup& group : groups_) layouts_.push_back(group.layout());
    records_.emplace(layouts_);
    bytes_.resize(records_->bytes(static_cast<std::uint32_t>(rows)));
    for (std::size_t i = 0; i < groups_.size(); ++i)
      if (records_->has_field(i)) records_->write(i, groups_[i].column(), bytes_.data());
  }

  std::size_t columns() const { return groups_.size(); }
  const MainColumnGroup& group(std::size_t i) const { return groups_[i]; }
  const MainRecords& records() const { return *records_; }
  std::vector<std::byte>& bytes() { return bytes_; }
  /// Reads single rows from the records.
  MainColumn attached(std::size_t i) const {
    MainColumn column = groups_[i].column();
    records_->attach(i, column, bytes_.data());
    return column;
  }
  std::size_t rows() const { return rows_; }

 private:
  void add(const MainColumnShape& shape, Random& random) {
    groups_.emplace_back(shape.type, random_values(shape, random));
  }

  std::size_t rows_;
  std::deque<MainColumnGroup> groups_;
  std::vector<MainColumnLayout> layouts_;
  std::optional<MainRecords> records_;
  std::vector<std::byte> bytes_;
};

// Counts wrong values, read by the column, which reads its field, and by the decoder.
std::size_t wrong_values(Wide& wide, std::size_t i) {
  const MainColumn column = wide.attached(i);
  const columns::MainDecoder decoder = wide.records().decoder(i, column);
  std::size_t wrong = 0;
  for (std::uint32_t row = 0; row < wide.rows(); ++row) {
    const ModelValue& expected = wide.group(i).values()[row];
    wrong += ModelValue::of(column.type(), column.value(row)) == expected ? 0 : 1;
    if (decoder.kind == columns::MainDecoder::Kind::kOther) continue;
    const std::byte* record = wide.bytes().data() + row * std::size_t{wide.records().stride()};
    const Value decoded = decoder.decode(record, wide.group(i).memory());
    wrong += ModelValue::of(column.type(), decoded) == expected ? 0 : 1;
  }
  return wrong;
}

}  // namespace

TEST_CASE("rows read from records equal rows read from columns", "[columns]") {
  for (const std::size_t rows : {1, 63, 64, 65, 1000, 2000}) {
    Wide wide(rows);
    CHECK(wide.records().field_count() < wide.columns());  // not constant ones
    if (rows >= 1000) CHECK(wide.records().field_count() > 20);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < wide.columns(); ++i) {
      wrong += wrong_values(wide, i);
      if (wide.records().has_field(i))
        CHECK(wide.records().first_difference(i, wide.group(i).column(), wide.bytes().data()) ==
              rows);
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("a difference in a record is found", "[columns]") {
  Wide wide(300);
  for (std::size_t i = 0; i < wide.columns(); ++i) {
    if (!wide.records().has_field(i)) continue;
    const MainColumn column = wide.attached(i);
    // At least one bit of row 217's record belongs to this column.
    bool found = false;
    for (std::uint32_t bit = 0; bit < wide.records().stride() * 8 && !found; ++bit) {
      std::byte& byte = wide.bytes()[217 * std::size_t{wide.records().stride()} + bit / 8];
      byte ^= std::byte{1} << (bit % 8);
      found =
          wide.records().first_difference(i, wide.group(i).column(), wide.bytes().data()) == 217;
      // The code stays in the column's range, whatever the record holds.
      if (found && column.code_count() != 0) CHECK(column.code(217) < column.code_count());
      byte ^= std::byte{1} << (bit % 8);
    }
    CHECK(found);
  }
}

TEST_CASE("records are as wide as their fields", "[columns]") {
  const auto layout = [](unsigned bits) {
    MainColumnLayout made{};
    made.code_bits = static_cast<std::uint8_t>(bits);
    return made;
  };
  const std::vector<MainColumnLayout> narrow(10, layout(4));
  CHECK(MainRecords(narrow).stride() == 8);
  CHECK(MainRecords(narrow).bytes(7) == 64);
  CHECK(MainRecords(narrow).bytes(8) == 128);  // 8 bytes are read behind the last one
  // A field of 60 bits has to begin in the first five bits of a byte.
  const std::vector<MainColumnLayout> mixed{layout(5), layout(60), layout(64), layout(0)};
  CHECK(MainRecords(mixed).stride() == 24);
  CHECK_FALSE(MainRecords(mixed).has_field(3));
}

}  // namespace flugs::test
