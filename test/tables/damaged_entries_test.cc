// Damage in a dictionary entry, whose proof then does not fit: which calls report it.

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>

#include "test/support/temporary_database.h"

namespace flugs::test {

namespace {

constexpr std::int64_t kRowsOfDamaged = 20'000;  // more than opening sweeps and indexes at once
constexpr std::int64_t kWideColumn = 0;
constexpr std::int64_t kNarrowColumn = 1;
constexpr std::int64_t kTextColumn = 2;

std::string text_of_entry(std::int64_t i) {
  return "a text that stands in the heap " + std::to_string(i);
}

/// A table of three dictionary columns, each with 1,000 values; no thread checks anything by
/// itself.
struct Damaged {
  MemoryDatabase database;
  TableId table;

  explicit Damaged(IndexPlace mode)
      : database(std::size_t{48} << 20, mode, std::chrono::milliseconds(0)) {
    database.options.tuning.sweeps_in_background = false;
    TableSchema schema("t");
    schema.column("wide", Type::kInt64).dictionary();
    schema.column("narrow", Type::kInt32).dictionary();
    schema.column("text", Type::kString).dictionary();
    table = must(database->create_table(schema));
    Transaction t = must(database->begin(AccessMode::kReadWrite));
    for (std::int64_t i = 0; i < kRowsOfDamaged; ++i) {
      const std::int64_t value = i < 1'000 ? i : 0;
      must(t.insert(table, {Value::int64(value), Value::int32(static_cast<std::int32_t>(value)),
                            Value::string(std::string_view(text_of_entry(value)))}));
    }
    must(t.commit());
  }

  engine::Table& rows() { return *database->table(table); }
  void keep_all_hints() {
    pmem::Persister persister(database->pool().medium());
    for (int i = 0; i < 100; ++i) database->catalog().keep_hints(persister);
  }
  /// Damages the entry of value 500 in this column; one row has the value.
  void flip_bit(std::int64_t column) {
    const columns::Dictionary& dictionary =
        rows().columns()[static_cast<std::size_t>(column)]->dictionary();
    const std::string text = text_of_entry(500);
    const Value value = column == kWideColumn     ? Value::int64(500)
                        : column == kNarrowColumn ? Value::int32(500)
                                                  : Value::string(text);
    const std::uint32_t code = dictionary.find(value);
    REQUIRE(code != columns::Dictionary::kNone);
    auto* bytes =
        column == kTextColumn
            ? const_cast<char*>(dictionary.text(code).data())
            : reinterpret_cast<char*>(
                  dictionary.chunk_bases(dictionary.count())[columns::Dictionary::chunk_of(code)] +
                  std::uint64_t{code} * dictionary.entry_bytes());
    bytes[0] = static_cast<char>(bytes[0] ^ 4);
  }
  void check(const Status& status, std::int64_t column) {
    INFO(status.to_string());
    CHECK(status.code() == StatusCode::kCorrupt);
    const std::string name = column == kWideColumn     ? "wide"
                             : column == kNarrowColumn ? "narrow"
                                                       : "text";
    CHECK(status.message().find("table t") != std::string::npos);
    CHECK(status.message().find("column " + name) != std::string::npos);
    CHECK(status.message().find("expected") != std::string::npos);
  }
};

}  // namespace

TEST_CASE("a damaged entry is reported after opening", "[engine][recovery]") {
  for (const std::int64_t column : {kWideColumn, kNarrowColumn, kTextColumn}) {
    INFO("column " << column);
    Damaged damaged(IndexPlace::kPool);
    damaged.keep_all_hints();
    damaged.flip_bit(column);
    damaged.database.reopen();
    damaged.check(damaged.database->merge(damaged.table, {}).status(), column);
    damaged.check(damaged.database->finish_opening(), column);
    damaged.check(damaged.database->finish_opening(), column);
    damaged.check(damaged.database->verify(), column);
  }
}

// Opening takes the entry for one torn by a power cut, which no row can name.
TEST_CASE("a row with an entry damaged before its hint was kept is reported",
          "[engine][recovery]") {
  for (const std::int64_t column : {kWideColumn, kNarrowColumn, kTextColumn}) {
    INFO("column " << column);
    Damaged damaged(IndexPlace::kPool);
    damaged.flip_bit(column);
    damaged.database.reopen();
    damaged.check(damaged.database->finish_opening(), column);
    damaged.check(damaged.database->verify(), column);
  }
}

TEST_CASE("rebuilding indexes reports a row with a damaged entry", "[engine][recovery]") {
  for (const std::int64_t column : {kWideColumn, kNarrowColumn, kTextColumn}) {
    INFO("column " << column);
    Damaged damaged(IndexPlace::kDram);
    damaged.flip_bit(column);
    damaged.database.reopen();
    damaged.check(damaged.database->finish_opening(), column);
    damaged.check(damaged.database->verify(), column);
  }
}

}  // namespace flugs::test
