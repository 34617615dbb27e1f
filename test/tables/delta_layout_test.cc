// Tables whose columns are apart in the delta (decision 0065), alone and beside chunks of rows.
#include <catch2/catch.hpp>
#include <list>
#include <map>
#include <string>
#include <vector>

#include "bench/support/random.h"
#include "engine/database/database_access.h"
#include "engine/database/database_core.h"
#include "flugs/merge.h"
#include "flugs/pool_check.h"
#include "flugs/query.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

using query::col;

TableSchema things_schema() {
  TableSchema schema("things");
  schema.column("id", Type::kInt64);
  schema.column("flag", Type::kBool);
  schema.column("small", Type::kInt32);
  schema.column("number", Type::kInt64).direct();
  schema.column("real", Type::kDouble);
  schema.column("word", Type::kString);
  schema.column("note", Type::kString).direct();
  schema.primary_key({"id"});
  return schema.key("by_small", {"small", "id"});
}

using Groups = std::vector<std::vector<std::string>>;
const Groups kGroups = {{"id", "number", "note"}, {"flag", "small"}};

/// A table, and the rows that it should have.
class Things {
 public:
  explicit Things(DeltaLayout layout, std::uint64_t seed, const Groups& groups = {})
      : random_(seed) {
    TableSchema schema = things_schema();
    schema.delta_layout = layout;
    schema.column_groups = groups;
    table_ = must(database->create_table(schema));
  }

  void insert(std::int64_t first, std::int64_t end) {
    Transaction t = must(database->begin());
    for (std::int64_t id = first; id < end; ++id) {
      rows_[id] = row_of(id);
      must(t.insert(table_, rows_[id]));
    }
    must(t.commit());
  }
  /// Updates some rows, twice in one transaction, and deletes others.
  void change() {
    Transaction t = must(database->begin());
    for (auto row = rows_.begin(); row != rows_.end();) {
      const RowId id = must(t.get({table_, 0}, {row->second[0]})).id();
      const std::uint64_t what = random_.below(4);
      if (what == 0) {
        must(t.remove(table_, id));
        row = rows_.erase(row);
        continue;
      }
      if (what == 1) {
        const std::vector<Value> fresh = row_of(row->first);
        const RowId first = must(t.update(table_, id, {{ColumnId(3), Value::int64(-1)}}));
        must(t.update(table_, first, {{ColumnId(3), fresh[3]}, {ColumnId(6), fresh[6]}}));
        row->second[3] = fresh[3];
        row->second[6] = fresh[6];
      }
      ++row;
    }
    must(t.commit());
  }
  void set_layout(DeltaLayout layout, const Groups& groups = {}) {
    must(database->set_delta_layout(table_, layout, groups));
  }
  TableId table() const { return table_; }
  DeltaLayout layout() { return must(database->schema(table_)).delta_layout; }
  Groups groups() { return must(database->schema(table_)).column_groups; }

  /// How many chunks of rows have the shape.
  std::size_t chunks(columns::RowShape shape) {
    const engine::RowStore& rows =
        engine::DatabaseAccess::core(*database).table(table_)->data().rows;
    std::size_t count = 0;
    for (std::size_t i = 0; i < rows.chunk_count(); ++i)
      if (rows.group(i) == nullptr && rows.layout(rows.first_row_of(i)).shape() == shape) ++count;
    return count;
  }

  /// How many chunks of rows have some records, or all cells apart.
  std::size_t chunks_with_records(bool has_records) {
    const engine::RowStore& rows =
        engine::DatabaseAccess::core(*database).table(table_)->data().rows;
    std::size_t count = 0;
    for (std::size_t i = 0; i < rows.chunk_count(); ++i) {
      if (rows.group(i) != nullptr) continue;
      const columns::RowLayout& layout = rows.layout(rows.first_row_of(i));
      bool has_some = false;
      for (std::size_t c = 0; c < layout.cells().size(); ++c) has_some |= layout.group(c) != 0;
      count += layout.is_in_columns() && has_some == has_records ? 1 : 0;
    }
    return count;
  }

  /// Compares look-ups, a walk of the ordered key, and a query with the rows.
  void check() {
    Transaction t = must(database->begin(AccessMode::kReadOnly));
    std::size_t wrong = 0;
    std::int64_t sum = 0;
    for (const auto& [id, expected] : rows_) {
      const Row row = must(t.get({table_, 0}, {expected[0]}));
      for (std::uint16_t i = 0; i < expected.size(); ++i)
        wrong += row.get_unchecked(ColumnId(i)) == expected[i] ? 0 : 1;
      sum += expected[3].is_null() ? 0 : expected[3].as_int64();
    }
    CHECK(wrong == 0);
    std::size_t walked = 0;
    must(t.rows({table_, 1}, {}, {}, [&](const Row&) { return ++walked != 0; }));
    CHECK(walked == rows_.size());
    const query::QueryResult totals =
        must(query::Query::table("things")
                 .group_by({}, {query::count(), query::sum(col("number"))})
                 .run(t));
    CHECK(must(totals.get<std::int64_t>(0, 0)) == static_cast<std::int64_t>(rows_.size()));
    CHECK(must(totals.get<std::int64_t>(0, 1)) == sum);
  }

  TemporaryDatabase database;

 private:
  std::vector<Value> row_of(std::int64_t id) {
    const auto some = static_cast<std::int64_t>(random_.below(1000));
    notes_.push_back("a note that is too long for its cell " + std::to_string(some));
    words_.push_back("w" + std::to_string(some % 7));
    return {Value::int64(id),
            some % 5 == 0 ? Value::null() : Value::boolean(some % 2 == 0),
            some % 11 == 0 ? Value::null() : Value::int32(static_cast<std::int32_t>(some - 500)),
            some % 7 == 0 ? Value::null() : Value::int64(some << (some % 40)),
            Value::real(static_cast<double>(some) / 8),
            some % 3 == 0 ? Value::null() : Value::string(words_.back()),
            some % 2 == 0 ? Value::null() : Value::string(notes_.back())};
  }

  bench::Random random_;
  TableId table_;
  std::map<std::int64_t, std::vector<Value>> rows_;
  std::list<std::string> notes_;
  std::list<std::string> words_;
};

}  // namespace

TEST_CASE("rows in columns are found, changed, merged, and there after reopening", "[engine]") {
  const Groups groups = GENERATE(Groups{}, kGroups);
  Things things(DeltaLayout::kColumns, 1, groups);
  CHECK(things.layout() == DeltaLayout::kColumns);
  for (int round = 0; round < 4; ++round) {
    things.insert(round * 5000, round * 5000 + 3000);
    things.change();
    things.check();
    if (round == 1) must(things.database->merge(things.table()));
    if (round % 2 == 0) things.database.reopen();
    things.check();
  }
  CHECK(things.chunks(columns::RowShape::kColumns) > 0);
  CHECK(things.chunks(columns::RowShape::kRows) == 0);
  CHECK(things.layout() == DeltaLayout::kColumns);
  CHECK(things.groups() == groups);
  CHECK((things.chunks_with_records(true) > 0) == !groups.empty());
}

TEST_CASE("groups of columns change, and follow names and columns that go", "[engine]") {
  Things things(DeltaLayout::kColumns, 5);
  things.insert(0, 2000);
  things.set_layout(DeltaLayout::kColumns, kGroups);
  things.insert(2000, 4000);
  things.change();
  things.check();
  CHECK(things.chunks_with_records(true) > 0);
  CHECK(things.chunks_with_records(false) > 0);
  must(things.database->rename_column(things.table(), ColumnId(6), "remark"));
  CHECK(things.groups() == Groups{{"id", "number", "remark"}, {"flag", "small"}});
  things.database.reopen();
  CHECK(things.groups() == Groups{{"id", "number", "remark"}, {"flag", "small"}});
  must(things.database->rename_column(things.table(), ColumnId(6), "note"));
  things.check();
  // A column that was added is in no group until it is told so.
  ColumnSchema later;
  later.name = "later";
  CHECK(must(things.database->add_column(things.table(), later)) == ColumnId(7));
  must(things.database->drop_column(things.table(), ColumnId(1)));
  CHECK(things.groups() == Groups{{"id", "number", "note"}, {"small"}});
  things.database.reopen();
  CHECK(things.groups() == Groups{{"id", "number", "note"}, {"small"}});
  things.set_layout(DeltaLayout::kColumns, {{"later", "note"}, {"id"}});
  things.set_layout(DeltaLayout::kRows);
  CHECK(things.groups().empty());
}

TEST_CASE("a table that gets another layout has chunks of both until a merge", "[engine]") {
  Things things(GENERATE(DeltaLayout::kRows, DeltaLayout::kColumns), 2);
  const bool is_to_columns = things.layout() == DeltaLayout::kRows;
  things.insert(0, 2000);
  {
    // A transaction that is open meanwhile goes on.
    Transaction open = must(things.database->begin());
    must(open.insert(things.table(), {Value::int64(-1), Value::null(), Value::null(), Value::null(),
                                      Value::null(), Value::null(), Value::null()}));
    things.set_layout(is_to_columns ? DeltaLayout::kColumns : DeltaLayout::kRows);
    must(open.insert(things.table(), {Value::int64(-2), Value::null(), Value::null(), Value::null(),
                                      Value::null(), Value::null(), Value::null()}));
    open.abort();
  }
  things.insert(2000, 4000);
  things.change();
  things.check();
  CHECK(things.chunks(columns::RowShape::kRows) > 0);
  CHECK(things.chunks(columns::RowShape::kColumns) > 0);
  things.database.reopen();
  things.check();
  things.change();
  MergeOptions everything;
  everything.scope = MergeScope::kEverything;
  must(things.database->merge(things.table(), everything));
  things.check();
  // No row is left in either, but free places of a chunk without rows may be used again.
  const std::size_t left =
      things.chunks(columns::RowShape::kRows) + things.chunks(columns::RowShape::kColumns);
  CHECK(left <= 2);
  things.insert(4000, 5000);
  things.check();
}

TEST_CASE("a change of layout that cannot be is refused", "[engine]") {
  TemporaryDatabase database;
  CHECK(database->set_delta_layout(TableId(7), DeltaLayout::kColumns).code() ==
        StatusCode::kNotFound);
  const TableId table = must(database->create_table(things_schema()));
  const Status unknown = database->set_delta_layout(table, static_cast<DeltaLayout>(9));
  CHECK(unknown.code() == StatusCode::kInvalidArgument);
  CHECK(unknown.message().find("layout") != std::string_view::npos);
  const auto refused = [&](const Groups& groups, std::string_view word,
                           DeltaLayout layout = DeltaLayout::kColumns) {
    const Status status = database->set_delta_layout(table, layout, groups);
    INFO(status.to_string());
    CHECK(status.code() == StatusCode::kInvalidArgument);
    CHECK(status.message().find(word) != std::string_view::npos);
    TableSchema schema = things_schema();
    schema.name = "other";
    schema.delta_layout = layout;
    schema.column_groups = groups;
    CHECK(database->create_table(schema).code() == StatusCode::kInvalidArgument);
  };
  refused({{"id", "nothing"}}, "'nothing'");
  refused({{"id", ""}}, "''");
  refused({{"id", "flag"}, {"flag"}}, "'flag'");
  refused({{"id", "id"}}, "'id'");
  refused({{"id"}}, "kColumns", DeltaLayout::kRows);
  refused(Groups(256), "256");
  CHECK(must(database->schema(table)).column_groups.empty());
  CHECK(Database().set_delta_layout(table, DeltaLayout::kRows).code() ==
        StatusCode::kInvalidArgument);
  TableSchema wrong = things_schema();
  wrong.name = "wrong";
  wrong.delta_layout = static_cast<DeltaLayout>(2);
  CHECK(database->create_table(wrong).code() == StatusCode::kInvalidArgument);
}

TEST_CASE("rows in columns are read by an opening that may only read", "[engine]") {
  Things things(DeltaLayout::kColumns, 4);
  things.insert(0, 3000);
  things.change();
  things.database.options.mode = OpenMode::kReadOnly;
  things.database.reopen();
  things.check();
}

TEST_CASE("the audit finds nothing wrong with rows in columns", "[engine]") {
  Things things(DeltaLayout::kColumns, 3);
  things.insert(0, 1500);
  things.change();
  things.set_layout(DeltaLayout::kRows);
  things.insert(1500, 2000);
  things.database.close();
  const PoolCheckReport report = must(check_pool({.path = things.database.options.path}));
  CHECK(report.is_clean());
}

}  // namespace flugs::test
