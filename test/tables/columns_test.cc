// Added and dropped columns: older rows have the default, ids do not change, and the table agrees
// with a model after writing, merging and reopening.
#include <catch2/catch.hpp>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "flugs/merge.h"
#include "flugs/query.h"
#include "test/support/random.h"
#include "test/support/temporary_database.h"
#include "test/support/whole_pool.h"

namespace flugs::test {
namespace {

ColumnSchema column_of(std::string name, Type type, bool direct = false) {
  ColumnSchema column;
  column.name = std::move(name);
  column.type = type;
  column.encoding = direct ? Encoding::kDirect : Encoding::kDictionary;
  return column;
}

ColumnSchema with_default(ColumnSchema column, const Value& value) {
  column.default_value = Constant(value);
  column.nullable = false;
  return column;
}

std::string said(const Status& refused) { return std::string(refused.message()); }

const std::string kLongText(300, 'l');

/// A table of ids whose other columns come and go, and its expected content.
class AlteredTable {
 public:
  explicit AlteredTable(std::uint64_t seed) : random_(seed) {
    TableSchema schema("t");
    schema.column("id", seed % 2 == 0 ? Type::kInt64 : Type::kInt32).column("first", Type::kString);
    schema.primary_key({"id"});
    schema.key("by_first", {"first", "id"});
    table_ = must(database->create_table(schema));
    columns_ = {schema.columns[0], schema.columns[1]};
    dropped_.resize(2);
    defaults_.resize(2);
  }

  void take_turn() {
    switch (random_.below(13)) {
      case 0:
        return add();
      case 1:
        return columns_.size() > 3 && random_.below(2) == 0 ? drop() : change();
      case 2:
        static_cast<void>(must(database->merge(table_)));
        return;
      case 3:
        if (random_.below(3) != 0) return change();
        database.reopen();
        return;
      case 4:
        return random_.below(2) == 0 ? retype() : change();
      default:
        return change();
    }
  }

  void check() {
    Transaction t = must(database->begin(AccessMode::kReadOnly));
    std::size_t wrong = 0;
    std::vector<Value> all(columns_.size());
    for (const auto& [id, values] : rows_) {
      const Row row = must(t.get({table_, 0}, {id_of(id)}));
      row.get_all(all);
      for (std::size_t i = 0; i < columns_.size(); ++i) {
        const Value& expected = dropped_[i] ? kNull : values[i];
        wrong += all[i] == expected && row.get_unchecked(column(i)) == expected &&
                         row.is_null_unchecked(column(i)) == expected.is_null()
                     ? 0
                     : 1;
      }
    }
    for (std::size_t i = 0; i < columns_.size(); ++i)
      if (!dropped_[i]) wrong += scan_differs(t, i) + query_differs(t, i);
    CHECK(wrong == 0);
    CHECK(must(database->schema(table_)).columns.size() == columns_.size());
  }

  TemporaryDatabase database;

 private:
  using Model = std::map<std::int64_t, std::vector<Value>>;
  static inline const Value kNull = Value::null();
  static ColumnId column(std::size_t i) { return ColumnId(static_cast<std::uint16_t>(i)); }

  Value id_of(std::int64_t id) const {
    if (columns_[0].type == Type::kInt64) return Value::int64(id);
    return Value::int32(static_cast<std::int32_t>(id));
  }

  static Value as_type(Type type, const Value& value) {
    if (value.is_null()) return value;
    return type == Type::kString || type == Type::kBytes
               ? Value::from_bytes(type, value.as_string())
               : Value::from_raw(type, value.raw());
  }

  // Changes a column's type, or makes it direct, again and again.
  void retype() {
    const std::size_t i = random_.below(columns_.size());
    if (dropped_[i]) return;
    Type& type = columns_[i].type;
    if (type == Type::kInt32 && random_.below(2) == 0) {
      type = Type::kInt64;
    } else if (type == Type::kString || type == Type::kBytes) {
      type = type == Type::kString ? Type::kBytes : Type::kString;
    }
    must(database->change_type(table_, column(i), type));
    defaults_[i] = as_type(type, defaults_[i]);
    for (auto& [row, values] : rows_) values[i] = as_type(type, values[i]);
    CHECK(must(database->schema(table_)).columns[i].type == type);
  }

  Value value_of(Type type, std::uint64_t n) {
    switch (type) {
      case Type::kInt32:
        return Value::int32(static_cast<std::int32_t>(n));
      case Type::kDouble:
        return Value::real(static_cast<double>(n) / 2);
      case Type::kString:
      case Type::kBytes:
        texts_.push_back(n % 5 == 0 ? kLongText + std::to_string(n) : "x" + std::to_string(n));
        return Value::from_bytes(type, texts_.back());
      default:
        return Value::int64(static_cast<std::int64_t>(n) - 20);
    }
  }

  void add() {
    if (columns_.size() >= 14) return;
    const Type types[] = {Type::kInt32, Type::kInt64, Type::kDouble, Type::kString};
    ColumnSchema fresh = column_of("c" + std::to_string(columns_.size()), types[random_.below(4)],
                                   random_.below(2) == 0);
    Value given = Value::null();
    if (random_.below(3) != 0) {
      given = value_of(fresh.type, random_.below(40));
      fresh = with_default(fresh, given);
      fresh.nullable = random_.below(2) == 0;
    }
    const ColumnId id = must(database->add_column(table_, fresh));
    CHECK(id == column(columns_.size()));
    CHECK(must(database->find_column(table_, fresh.name)) == id);
    columns_.push_back(fresh);
    defaults_.push_back(given);
    dropped_.push_back(false);
    for (auto& [row, values] : rows_) values.push_back(given);
  }

  void drop() {
    const std::size_t i = 2 + random_.below(columns_.size() - 2);
    if (dropped_[i]) return;
    must(database->drop_column(table_, column(i)));
    dropped_[i] = true;
  }

  Value drawn(std::size_t i) {
    if (dropped_[i]) return kNull;
    if (columns_[i].nullable && random_.below(4) == 0) return kNull;
    return value_of(columns_[i].type, random_.below(60));
  }

  void change() {
    Transaction t = must(database->begin());
    Model after = rows_;
    for (std::uint64_t n = 1 + random_.below(8); n > 0; --n) {
      const auto id = static_cast<std::int64_t>(random_.below(150));
      const auto there = after.find(id);
      if (there == after.end()) {
        // Now and then as if no column had been added.
        const std::size_t width =
            random_.below(4) == 0 ? 2 + random_.below(columns_.size() - 1) : columns_.size();
        std::vector<Value> values{id_of(id)};
        for (std::size_t i = 1; i < width; ++i) values.push_back(drawn(i));
        must(t.insert(table_, values));
        for (std::size_t i = width; i < columns_.size(); ++i)
          values.push_back(dropped_[i] ? kNull : defaults_[i]);
        after[id] = values;
        continue;
      }
      const Row row = must(t.get({table_, 0}, {id_of(id)}));
      if (random_.below(4) == 0) {
        must(t.remove(table_, row.id()));
        after.erase(there);
        continue;
      }
      const std::size_t i = 1 + random_.below(columns_.size() - 1);
      if (dropped_[i]) continue;
      there->second[i] = drawn(i);
      must(t.update(table_, row.id(), {{column(i), there->second[i]}}));
    }
    if (random_.below(6) == 0) return t.abort();
    must(t.commit());
    rows_ = std::move(after);
  }

  std::size_t scan_differs(const Transaction& t, std::size_t i) {
    std::size_t wrong = 0;
    std::size_t rows = 0;
    must(t.scan(table_, {column(0), column(i)}, [&](const ScanBatch& batch) {
      for (std::size_t r = 0; r < batch.row_count(); ++r, ++rows)
        wrong += batch.get_unchecked(1, r) == rows_.at(batch.get_unchecked(0, r).raw())[i] ? 0 : 1;
      return true;
    }));
    return wrong + (rows == rows_.size() ? 0 : 1);
  }

  static query::Expr constant(const Value& value) {
    if (value.type() == Type::kString || value.type() == Type::kBytes) return value.as_string();
    if (value.type() == Type::kDouble) return value.as_double();
    return value.raw();
  }

  // Compares the number of rows per value, and of one value by a condition.
  std::size_t query_differs(const Transaction& t, std::size_t i) {
    const std::string& name = columns_[i].name;
    std::map<std::string, std::int64_t> counts;
    for (const auto& [id, values] : rows_) ++counts[values[i].to_string()];
    const query::QueryResult groups =
        must(query::Query::table("t").group_by({name.c_str()}, {query::count().as("n")}).run(t));
    std::size_t wrong = groups.row_count() == counts.size() ? 0 : 1;
    for (std::size_t r = 0; r < groups.row_count(); ++r)
      wrong +=
          counts[groups.get_unchecked(r, 0).to_string()] == groups.get_unchecked(r, 1).as_int64()
              ? 0
              : 1;
    if (rows_.empty()) return wrong;
    const Value wanted = rows_.begin()->second[i];
    const auto condition =
        wanted.is_null() ? query::col(name).is_null() : query::col(name) == constant(wanted);
    const query::QueryResult some =
        must(query::Query::table("t").where(condition).select({"id"}).run(t));
    return wrong +
           (static_cast<std::int64_t>(some.row_count()) == counts[wanted.to_string()] ? 0 : 1);
  }

  Random random_;
  TableId table_;
  std::vector<ColumnSchema> columns_;
  std::vector<bool> dropped_;
  std::vector<Value> defaults_;
  std::deque<std::string> texts_;
  Model rows_;
};

TableSchema items_schema() {
  TableSchema schema("items");
  schema.column("id", Type::kInt64).column("kind", Type::kString).column("price", Type::kInt32);
  schema.primary_key({"id"}).key("by_kind", {"kind"});
  schema.check("dear",
               Condition::compare("price", Condition::Kind::kGreater, Constant(Value::int32(0))));
  return schema;
}

struct Items {
  TemporaryDatabase database;
  TableId table = must(database->create_table(items_schema()));

  void insert(std::int64_t first, std::int64_t end) {
    Transaction t = must(database->begin());
    for (std::int64_t id = first; id < end; ++id)
      must(t.insert(table, {Value::int64(id), Value::string("k"), Value::int32(5)}));
    must(t.commit());
  }
};

}  // namespace

TEST_CASE("columns come and go, and each row keeps its values", "[engine]") {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    AlteredTable table(seed);
    for (int turn = 0; turn < 120; ++turn) {
      table.take_turn();
      if (turn % 10 == 9) table.check();
    }
    check_pool_is_whole(table.database);
    table.check();
  }
}

TEST_CASE("rows from before a column was added have its default, in an open transaction too",
          "[engine]") {
  Items items;
  items.insert(0, 100);
  static_cast<void>(must(items.database->merge(items.table)));
  items.insert(100, 200);
  Transaction open = must(items.database->begin());
  const Row in_main = must(open.get({items.table, 0}, {Value::int64(5)}));
  const Row in_delta = must(open.get({items.table, 0}, {Value::int64(105)}));
  const ColumnId tax = must(items.database->add_column(
      items.table, with_default(column_of("tax", Type::kInt64, true), Value::int64(-7))));
  const ColumnId note = must(items.database->add_column(
      items.table, with_default(column_of("note", Type::kString, true), Value::string(kLongText))));
  const ColumnId size = must(items.database->add_column(items.table, column_of("s", Type::kDate)));
  for (const Row& row : {in_main, in_delta}) {
    CHECK(row.get_unchecked(tax) == Value::int64(-7));
    CHECK(row.get_unchecked<std::string_view>(note) == kLongText);
    CHECK(row.is_null_unchecked(size));
    std::vector<Value> few(3);
    row.get_all(few);
    CHECK(few[2] == Value::int32(5));
  }
  // The open transaction writes the new columns, and rows in their former form.
  must(open.update(items.table, in_main.id(), {{tax, Value::int64(1)}}));
  must(open.update(items.table, in_delta.id(), {{size, Value::date(3)}}));
  must(open.insert(items.table, {Value::int64(900), Value::string("k"), Value::int32(1)}));
  const std::vector<Value> two{Value::int64(901), Value::string("a"), Value::int32(1),
                               Value::int64(902), Value::string("b"), Value::int32(1)};
  std::vector<RowId> ids(2);
  must(open.insert_rows(items.table, two, ids));
  must(open.commit());
}

TEST_CASE("an impossible column is refused, with table and column", "[engine]") {
  Items items;
  const auto add = [&](const ColumnSchema& column) {
    return items.database->add_column(items.table, column).status();
  };
  ColumnSchema strict = column_of("strict", Type::kInt64);
  strict.nullable = false;
  must(add(strict));  // no row was ever there
  Transaction t = must(items.database->begin());
  CHECK(
      said(
          t.insert(items.table, {Value::int64(1), Value::string("k"), Value::int32(1)}).status()) ==
      "table items, column strict: no value is given, it has no default, "
      "and NULL is not allowed");
  must(t.insert(items.table,
                {Value::int64(1), Value::string("k"), Value::int32(1), Value::int64(1)}));
  must(t.commit());
  strict.name = "other";
  CHECK(said(add(strict)) ==
        "table items, column other: a NOT NULL column needs a default, because the table has or "
        "had rows");
  CHECK(add(strict).code() == StatusCode::kConstraintViolated);
  CHECK(said(add(column_of("kind", Type::kInt32))) == "table items: column 'kind' exists");
  CHECK(add(column_of("kind", Type::kInt32)).code() == StatusCode::kAlreadyExists);
  CHECK(add(column_of("", Type::kInt32)).code() == StatusCode::kInvalidArgument);
  ColumnSchema numbered = column_of("n", Type::kInt64);
  numbered.auto_increment = true;
  CHECK(said(add(numbered)) == "table items, column n: an auto-increment column cannot be added");
  CHECK(add(with_default(column_of("d", Type::kInt32), Value::string("x"))).code() ==
        StatusCode::kInvalidArgument);
  CHECK(items.database->add_column(TableId(99), strict).code() == StatusCode::kNotFound);
  CHECK(must(items.database->schema(items.table)).columns.size() == 4);
}

TEST_CASE("a dropped column's name is free and its number is not", "[engine]") {
  Items items;
  items.insert(0, 50);
  const ColumnId extra = must(items.database->add_column(
      items.table, with_default(column_of("extra", Type::kString), Value::string("e"))));
  const auto drop = [&](ColumnId column) {
    return items.database->drop_column(items.table, column);
  };
  CHECK(said(drop(ColumnId(0))) == "table items, column id: key primary uses it");
  CHECK(said(drop(ColumnId(1))) == "table items, column kind: key by_kind uses it");
  CHECK(said(drop(ColumnId(2))) == "table items, column price: check dear uses it");
  CHECK(drop(ColumnId(2)).code() == StatusCode::kConstraintViolated);
  CHECK(drop(ColumnId(9)).code() == StatusCode::kNotFound);
  must(drop(extra));
  CHECK(drop(extra).code() == StatusCode::kNotFound);
  CHECK(items.database->find_column(items.table, "extra").code() == StatusCode::kNotFound);
  CHECK(items.database->find_column(items.table, "").code() == StatusCode::kNotFound);
  const ColumnId again =
      must(items.database->add_column(items.table, column_of("extra", Type::kInt32)));
  CHECK(again == ColumnId(4));
  for (int opened = 0; opened < 2; ++opened) {
    Transaction t = must(items.database->begin());
    const Row row = must(t.get({items.table, 0}, {Value::int64(3)}));
    CHECK(row.get_unchecked(extra).is_null());
    CHECK(row.get_unchecked<std::string_view>(extra).empty());
    CHECK(row.get_unchecked(again).is_null());
    const std::string gone = "table items: column 3 was dropped";
    CHECK(said(t.update(items.table, row.id(), {{extra, Value::null()}}).status()) == gone);
    CHECK(said(t.scan(items.table, {extra}, [](const ScanBatch&) { return true; })) == gone);
    CHECK(said(t.insert(items.table, {Value::int64(60), Value::string("k"), Value::int32(1),
                                      Value::string("e"), Value::null()})
                   .status()) == "table items, column 3 was dropped");
    CHECK(query::Query::table("items").select({query::col("")}).run(t).code() ==
          StatusCode::kInvalidArgument);
    t.abort();
    items.database.reopen();
  }
  CHECK(must(items.database->schema(items.table)).columns[3].dropped);
  CHECK(items.database->create_table(must(items.database->schema(items.table))).code() ==
        StatusCode::kInvalidArgument);
  check_pool_is_whole(items.database);
}

TEST_CASE(
    "a row's constant of a dropped column is not copied into a cell that is too narrow for it",
    "[engine]") {
  TemporaryDatabase database;
  TableSchema schema("narrow");
  schema.column("id", Type::kInt64).column("a", Type::kInt32).column("b", Type::kInt32);
  schema.primary_key({"id"});
  schema.columns[1].encoding = Encoding::kDirect;
  const TableId table = must(database->create_table(schema));
  Transaction t = must(database->begin());
  for (std::int64_t id = 0; id < 10; ++id)
    must(t.insert(table, {Value::int64(id), Value::int32(1), Value::int32(2)}));
  must(t.commit());
  const ColumnId wide = must(database->add_column(
      table, with_default(column_of("wide", Type::kInt64, true), Value::int64(-17))));
  t = must(database->begin());
  must(t.insert(table, {Value::int64(10), Value::int32(1), Value::int32(2), Value::int64(1)}));
  must(t.commit());  // in a chunk whose cells of `wide` have 32 bits, the bit for NULL behind them
  must(database->drop_column(table, wide));
  t = must(database->begin());
  for (std::int64_t id = 0; id < 10; ++id)
    must(t.update(table, must(t.get({table, 0}, {Value::int64(id)})).id(),
                  {{ColumnId(2), Value::int32(3)}}));
  for (std::int64_t id = 0; id <= 10; ++id)
    CHECK(must(t.get({table, 0}, {Value::int64(id)})).get_unchecked(ColumnId(1)) ==
          Value::int32(1));
  must(t.commit());
}

TEST_CASE("a scan of a column dropped meanwhile fails before it returns other data", "[engine]") {
  Items items;
  ColumnSchema size = column_of("size", Type::kInt64);
  size.nullable = false;
  const ColumnId extra = must(items.database->add_column(items.table, size));
  Transaction load = must(items.database->begin());
  for (std::int64_t id = 0; id < 4000; ++id)
    must(load.insert(items.table, {Value::int64(id), Value::string("k"), Value::int32(1),
                                   Value::int64(1'000'000 + id)}));
  must(load.commit());
  const Transaction reader = must(items.database->begin(AccessMode::kReadOnly));
  std::int64_t batches = 0;
  const Status scanned = reader.scan(items.table, {extra}, [&](const ScanBatch& batch) {
    for (std::size_t r = 0; r < batch.row_count(); ++r)
      CHECK(batch.get_unchecked(0, r).raw() >= 1'000'000);
    if (++batches == 1) {
      must(items.database->drop_column(items.table, extra));
      CHECK(items.database->merge(items.table).code() == StatusCode::kBusy);  // for this reader
    }
    return true;
  });
  CHECK(said(scanned) == "table items: column 3 was dropped");
  CHECK(batches == 1);
}

TEST_CASE("rows are inserted by name after columns with a default were dropped", "[engine]") {
  TemporaryDatabase database;
  TableSchema schema("t");
  schema.column("id", Type::kInt64).column("serial", Type::kInt64).not_null().auto_increment();
  schema.column("first", Type::kInt32).not_null().with_default(Constant(Value::int32(7)));
  schema.primary_key({"id"});
  const TableId table = must(database->create_table(schema));
  const ColumnId added = must(database->add_column(
      table, with_default(column_of("added", Type::kString), Value::string("there"))));
  const ColumnId last = must(
      database->add_column(table, with_default(column_of("last", Type::kInt64), Value::int64(9))));
  std::int64_t id = 0;
  const auto insert = [&] {
    Transaction t = must(database->begin());
    must(t.insert(table, {{ColumnId(0), Value::int64(++id)}}));
    must(t.commit());
    Transaction reader = must(database->begin(AccessMode::kReadOnly));
    std::vector<Value> values(5);
    must(reader.get({table, 0}, {Value::int64(id)})).get_all(values);
    return values;
  };
  const Value none;
  CHECK(insert() == std::vector<Value>{Value::int64(1), Value::int64(1), Value::int32(7),
                                       Value::string("there"), Value::int64(9)});
  must(database->drop_column(table, added));
  CHECK(insert() == std::vector<Value>{Value::int64(2), Value::int64(2), Value::int32(7), none,
                                       Value::int64(9)});
  must(database->drop_column(table, ColumnId(2)));
  must(database->drop_column(table, ColumnId(1)));
  const std::vector<Value> left{Value::int64(3), none, none, none, Value::int64(9)};
  CHECK(insert() == left);
  database.reopen();
  CHECK(insert().back() == Value::int64(9));
  Transaction t = must(database->begin());
  CHECK(said(t.insert(table, {{ColumnId(0), Value::int64(0)}, {added, Value::string("x")}})
                 .status()) == "table t: column 3 was dropped");
  CHECK(t.insert(table, {{last, Value::int64(0)}}).code() == StatusCode::kConstraintViolated);
}

TEST_CASE("merges and the next opening give back a dropped column's space", "[engine]") {
  Items items;
  const ColumnId extra =
      must(items.database->add_column(items.table, column_of("x", Type::kString)));
  Transaction t = must(items.database->begin());
  std::string text;
  for (std::int64_t id = 0; id < 2000; ++id) {
    text = kLongText + std::to_string(id);
    must(t.insert(items.table,
                  {Value::int64(id), Value::string("k"), Value::int32(1), Value::string(text)}));
  }
  must(t.commit());
  static_cast<void>(must(items.database->merge(items.table)));
  const std::uint64_t before = items.database->statistics().pool_used_bytes;
  must(items.database->drop_column(items.table, extra));
  items.database.reopen();
  // The groups still have the column.
  CHECK(items.database->statistics().pool_used_bytes + 100'000 > before);
  merge_everything(items.database, items.table);
  items.database.reopen();
  CHECK(items.database->statistics().pool_used_bytes + 2000 * 300 < before);
  check_pool_is_whole(items.database);
  items.insert(5000, 5100);  // reuses the space
  must(items.database->check());
}

}  // namespace flugs::test
