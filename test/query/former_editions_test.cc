// Queries on columns that have begun a new edition: some rows of the delta have cells of a former
// edition, some of the newest, and others are in row groups.
#include <catch2/catch.hpp>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "columns/column/column.h"
#include "engine/database/database_access.h"
#include "test/query/naive.h"
#include "test/support/complaint.h"
#include "test/support/random.h"
#include "test/support/temporary_database.h"

using namespace flugs;
using namespace flugs::query;
using namespace flugs::test;

namespace {

constexpr std::size_t kRowsBetweenChanges = rounds_of(400, 150);
// Integers, decimals and truth values with dictionaries, and texts; all but `id` get an edition.
const std::vector<std::string> kChangedColumns = {"n", "m", "x", "b", "s", "u"};

/// A table whose columns change while it has rows in groups and in the delta.
class EditedTable {
 public:
  explicit EditedTable(std::uint64_t seed) : random_(seed) {
    TableSchema schema("t");
    schema.column("id", Type::kInt64).not_null();
    schema.column("n", Type::kInt32).dictionary().column("m", Type::kInt64).dictionary();
    schema.column("x", Type::kDecimal).scale(2).dictionary();
    schema.column("b", Type::kBool).dictionary();
    schema.column("s", Type::kString).dictionary().column("u", Type::kString).direct();
    for (const ColumnSchema& column : schema.columns) types_.push_back(column.type);
    table_ = must(database_->create_table(schema));
    for (int i = 0; i < 12; ++i)
      texts_.push_back((i % 2 == 0 ? "text " : "a text of more than fifteen bytes ") +
                       std::to_string(i));
  }

  void insert() {
    Transaction writer = must(database_->begin());
    for (std::size_t i = 0; i < kRowsBetweenChanges; ++i) {
      std::vector<Value> values{Value::int64(next_++)};
      for (std::size_t c = 1; c < types_.size(); ++c)
        values.push_back(random_.chance(8) ? Value::null() : some_value(types_[c]));
      must(writer.insert(table_, values));
    }
    must(std::move(writer).commit());
    ++inserts_;  // later rows have values that no earlier one has, and in another order
  }
  void merge() {
    MergeOptions options;
    options.scope = MergeScope::kEverything;
    must(database_->merge(table_, options));
  }
  void change(std::size_t column, Type type) {
    must(database_->change_type(table_, ColumnId(static_cast<std::uint16_t>(column)), type));
    types_[column] = type;
  }
  void change_all() {
    change(1, Type::kInt64);
    for (const std::size_t same : {2u, 3u, 4u}) change(same, types_[same]);
    for (const std::size_t text : {5u, 6u})
      change(text, types_[text] == Type::kString ? Type::kBytes : Type::kString);
  }

  /// Runs the query with one and two threads, and naively on what a scan gives.
  void check(const Query& query) {
    const Transaction reader = must(database_->begin(AccessMode::kReadOnly));
    const Relation all = scanned(reader);
    const std::string expected = text_of(
        run_naively(*query.node(), [&](const std::string&) -> const Relation& { return all; }),
        false);
    for (const std::uint32_t threads : {1u, 2u}) {
      RunOptions options;
      options.threads = threads;
      const QueryResult result = must(query.run(reader, options));
      INFO(result.explain());
      REQUIRE(text_of(relation_of(result), false) == expected);
    }
  }

  /// Puts a payload in the place of `value` in the dictionary of the column's first edition.
  void damage_entry(std::size_t column, const Value& value, std::int64_t payload) {
    const engine::Table& table = *engine::DatabaseAccess::core(*database_).table(table_);
    const columns::Column* first = table.columns()[column];
    while (first->former() != nullptr) first = first->former();
    const columns::Dictionary& dictionary = first->dictionary();
    const std::uint32_t code = dictionary.find(value);
    REQUIRE(code != columns::Dictionary::kNone);
    const std::vector<std::uint64_t> bases = dictionary.chunk_bases(dictionary.count());
    auto* entry = reinterpret_cast<void*>(bases[columns::Dictionary::chunk_of(code)] +
                                          std::uint64_t{code} * dictionary.entry_bytes());
    std::memcpy(entry, &payload, sizeof payload);
  }
  QueryResult run(const Query& query) {
    return must(query.run(must(database_->begin(AccessMode::kReadOnly))));
  }

 private:
  Value some_value(Type type) {
    const std::uint64_t small = (random_.below(9) + 3 * inserts_) % 23;
    const auto number = static_cast<std::int64_t>(small) - 4;
    switch (type) {
      case Type::kInt32:
        return Value::int32(static_cast<std::int32_t>(number));
      case Type::kDecimal:
        return Value::decimal_units(number * 25);
      case Type::kBool:
        return Value::boolean(number % 2 == 0);
      case Type::kString:
        return Value::string(texts_[small % texts_.size()]);
      case Type::kBytes:
        return Value::bytes(texts_[small % texts_.size()]);
      default:
        return Value::int64(number);
    }
  }
  Relation scanned(const Transaction& reader) {
    Relation all;
    std::vector<ColumnId> columns;
    const TableSchema schema = must(database_->schema(table_));
    for (std::size_t c = 0; c < schema.columns.size(); ++c) {
      columns.emplace_back(static_cast<std::uint16_t>(c));
      all.names.push_back(schema.columns[c].name);
      all.types.push_back({schema.columns[c].type, schema.columns[c].scale});
    }
    must(reader.scan(table_, columns, Predicate::all(), [&](const ScanBatch& batch) {
      for (std::size_t row = 0; row < batch.row_count(); ++row) {
        std::vector<Cell> cells;
        for (std::size_t c = 0; c < columns.size(); ++c)
          cells.push_back(Cell::of(all.types[c], batch.get_unchecked(c, row)));
        all.rows.push_back(std::move(cells));
      }
      return true;
    }));
    return all;
  }

  TemporaryDatabase database_;
  Random random_;
  TableId table_;
  std::vector<Type> types_;
  std::vector<std::string> texts_;
  std::int64_t next_ = 0;
  std::uint64_t inserts_ = 0;
};

Query all_rows() { return Query::table("t"); }

Expr equals_some(const std::string& column, bool is_bytes) {
  if (column == "s" || column == "u")
    return col(column) == constant(is_bytes ? Value::bytes("text 4") : Value::string("text 4"));
  if (column == "b") return col("b");
  return col(column) == 5;
}

void check_column(EditedTable& table, const std::string& column, bool is_bytes) {
  INFO("column " << column);
  table.check(all_rows().group_by({column}, {count(), sum("id"), count_distinct("m"), min("n")}));
  table.check(all_rows().group_by({column, col("b").as("b2")}, {count()}));
  table.check(all_rows().group_by({}, {min(column), max(column), count(column)}));
  table.check(all_rows().group_by({}, {count_distinct(column)}));
  table.check(all_rows().select({column}).distinct());
  table.check(all_rows().where(equals_some(column, is_bytes)).select({"id", column}));
  table.check(all_rows().where(!equals_some(column, is_bytes)).select({"id", column}));
  table.check(all_rows().where(col(column).is_null()).select({"id"}));
  table.check(
      all_rows().where(col(column).is_null() || col("id") % 7 == 3).group_by({column}, {count()}));
  const Query few = all_rows().where(col("id") % 97 == 5);
  table.check(
      all_rows().join(few.as("r"), {{column, "r." + column}}).group_by({column}, {count()}));
  table.check(all_rows().semi_join(few.as("r"), {{column, "r." + column}}).select({"id"}));
}

}  // namespace

TEST_CASE("queries find the same as scans while rows have former editions of columns", "[query]") {
  for (const bool begins_in_main : {false, true}) {
    EditedTable table(begins_in_main ? 2 : 1);
    table.insert();
    if (begins_in_main) {
      table.merge();
      table.insert();
    }
    for (const int round : {1, 2, 3}) {
      INFO("main " << begins_in_main << ", round " << round);
      table.change_all();
      for (const std::string& column : kChangedColumns) check_column(table, column, round % 2 != 0);
      table.insert();
      for (const std::string& column : kChangedColumns) check_column(table, column, round % 2 != 0);
    }
    table.merge();
    for (const std::string& column : kChangedColumns) check_column(table, column, true);
  }
}

TEST_CASE("a damaged truth value in a former edition is grouped as one of the two", "[query]") {
  EditedTable table(3);
  table.insert();
  table.change(4, Type::kBool);
  table.insert();
  const QueryResult before = table.run(all_rows().group_by({"b"}, {count()}).order_by({"b"}));
  const QueryResult pairs = table.run(all_rows().group_by({"b", col("b").as("b2")}, {count()}));
  REQUIRE(before.row_count() == 3);
  REQUIRE(pairs.row_count() == 3);
  table.damage_entry(4, Value::boolean(true), 1'000'000);
  const QueryResult after = table.run(all_rows().group_by({"b"}, {count()}).order_by({"b"}));
  REQUIRE(after.row_count() == 3);
  for (std::size_t row = 0; row < 3; ++row) {
    CHECK(after.get_unchecked(row, 0) == before.get_unchecked(row, 0));
    CHECK(after.get_unchecked(row, 1) == before.get_unchecked(row, 1));
  }
  CHECK(table.run(all_rows().group_by({"b", col("b").as("b2")}, {count()})).row_count() == 3);
  CHECK(table.run(all_rows().select({"b"}).distinct()).row_count() == 3);
}
