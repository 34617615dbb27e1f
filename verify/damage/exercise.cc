#include "verify/damage/exercise.h"

#include <algorithm>
#include <string>
#include <vector>

namespace flugs::damage {

namespace {

using engine::DatabaseCore;

class Exercise {
 public:
  Exercise(DatabaseCore& core, bench::Random& random) : core_(core), random_(random) {}

  std::uint64_t run() {
    const std::vector<TableId> tables = core_.tables();
    for (const TableId table : tables) measure(table);
    for (const TableId table : tables) read(table);
    note(core_.verify({}));
    for (const TableId table : tables) write(table);
    for (const TableId table : tables) read(table);
    change_tables(tables);
    note(core_.verify({}));
    sum_ += core_.statistics().pool_used_bytes;
    return sum_;
  }

 private:
  void note(const Status& status) { sum_ += status.message().size(); }
  void add(std::string_view text) {
    for (const char c : text) sum_ += static_cast<unsigned char>(c);
  }
  void add(const Value& value) {
    sum_ += static_cast<std::uint64_t>(value.raw());
    add(value.as_string());
  }

  std::vector<ColumnId> all_columns(TableId table) {
    std::vector<ColumnId> columns;
    const std::size_t count = core_.table(table)->columns().size();
    columns.reserve(count);
    for (std::size_t i = 0; i < count; ++i) columns.emplace_back(static_cast<std::uint16_t>(i));
    return columns;
  }

  void measure(TableId table) {
    if (const Result<TableStatistics> space = core_.statistics(table); space.ok())
      sum_ += space->pool_bytes;
    if (const Result<MergeEstimate> estimate = core_.estimate_merge(table); estimate.ok())
      sum_ += estimate->bytes();
  }

  void read(TableId table) {
    Result<Transaction> begun = core_.begin(AccessMode::kReadOnly);
    if (!begun.ok()) return;
    const std::vector<ColumnId> columns = all_columns(table);
    std::vector<RowId> rows;
    note(begun->scan(table, columns, Predicate::all(), [&](const ScanBatch& batch) {
      for (std::size_t r = 0; r < batch.row_count(); ++r) {
        rows.push_back(batch.row_ids()[r]);
        for (std::size_t c = 0; c < columns.size(); ++c) add(batch.get_unchecked(c, r));
      }
      return true;
    }));
    read_by_keys(*begun, table, rows);
    if (rows.empty()) return;
    const auto column = ColumnId(static_cast<std::uint16_t>(random_.below(columns.size())));
    const Result<Row> row = begun->get(table, rows[random_.below(rows.size())]);
    if (!row.ok()) return;
    note(begun->scan(table, columns, Predicate::equal(column, row->get_unchecked(column)),
                     [&](const ScanBatch& batch) {
                       sum_ += batch.row_count();
                       return true;
                     }));
  }

  void read_by_keys(Transaction& transaction, TableId table, const std::vector<RowId>& rows) {
    const auto& schema = core_.table(table)->schema();
    std::vector<Value> values(schema.columns.size());
    for (std::uint16_t k = 0; k < schema.keys.size(); ++k) {
      if (schema.keys[k].dropped) continue;
      const KeyId key{table, k};
      const std::size_t step = 1 + rows.size() / 32;
      for (std::size_t i = 0; i < rows.size(); i += step) {
        const Result<Row> row = transaction.get(table, rows[i]);
        if (!row.ok()) continue;
        row->get_all(values);
        std::vector<Value> wanted;
        for (const auto position : core_.table(table)->keys()[k]->columns())
          wanted.push_back(values[position]);
        if (schema.keys[k].unique) {
          const Result<Row> found = transaction.get(key, wanted);
          if (found.ok()) add(found->get_unchecked(ColumnId(0)));
        }
        note(transaction.rows(key, wanted, [&](const Row& each) {
          add(each.get_unchecked(ColumnId(0)));
          return true;
        }));
      }
      if (!schema.keys[k].ordered) continue;
      note(transaction.rows(key, {}, {}, [&](const Row& each) {
        each.get_all(values);
        for (const Value& value : values) add(value);
        return true;
      }));
    }
  }

  /// The row's own values with some changes, so that keys meet the keys in the indexes.
  std::vector<Value> varied(const TableSchema& schema, std::vector<Value> values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (random_.below(3) != 0 && !values[i].is_null()) continue;
      const Type type = schema.columns[i].type;
      if (type == Type::kString || type == Type::kBytes) {
        values[i] = Value::from_bytes(type, random_.below(2) == 0 ? "short" : kLongText);
      } else if (type == Type::kBool) {
        values[i] = Value::boolean(random_.below(2) == 0);
      } else if (type == Type::kInt32 || type == Type::kDate) {
        values[i] = Value::from_raw(type, static_cast<std::int32_t>(random_.next()));
      } else {
        values[i] = Value::from_raw(type, static_cast<std::int64_t>(random_.next()));
      }
    }
    return values;
  }

  void write(TableId table) {
    std::vector<RowId> rows;
    if (Result<Transaction> all = core_.begin(AccessMode::kReadOnly); all.ok())
      note(all->scan(table, {}, [&](const ScanBatch& batch) {
        rows.insert(rows.end(), batch.row_ids().begin(), batch.row_ids().end());
        return true;
      }));
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      Result<Transaction> begun = core_.begin(AccessMode::kReadWrite);
      if (!begun.ok()) return;
      const std::uint32_t writes = round == kRounds - 1 ? 16 : 1 + random_.below(4);
      for (std::uint32_t i = 0; i < writes; ++i) write_once(*begun, table, rows);
      if (random_.below(4) == 0) {
        begun->abort();
      } else {
        note(begun->commit());
      }
    }
  }

  void write_once(Transaction& transaction, TableId table, std::vector<RowId>& rows) {
    const TableSchema& schema = core_.table(table)->schema();
    std::vector<Value> values(schema.columns.size());
    if (!rows.empty()) {
      const Result<Row> row = transaction.get(table, rows[random_.below(rows.size())]);
      if (row.ok()) row->get_all(values);
    }
    values = varied(schema, std::move(values));
    const std::uint32_t kind = rows.empty() ? 0 : random_.below(3);
    if (kind == 0) {
      const Result<RowId> row = transaction.insert(table, values);
      if (row.ok()) rows.push_back(*row);
      return note(row.status());
    }
    const std::size_t victim = random_.below(rows.size());
    if (kind == 1) return note(transaction.remove(table, rows[victim]));
    const std::uint32_t column = random_.below(values.size());
    const ColumnValue change{ColumnId(static_cast<std::uint16_t>(column)), values[column]};
    const Result<RowId> row = transaction.update(table, rows[victim], {change});
    if (row.ok()) rows[victim] = *row;
    note(row.status());
  }

  void change_tables(const std::vector<TableId>& tables) {
    if (!tables.empty()) note(core_.drop_table(tables[random_.below(tables.size())]));
    TableSchema schema("another");
    schema.column("id", Type::kInt32).column("text", Type::kString).primary_key({"id"});
    const Result<TableId> made = core_.create_table(schema);
    if (!made.ok()) return note(made.status());
    write(*made);
    read(*made);
  }

  static constexpr std::uint32_t kRounds = 6;
  static constexpr std::string_view kLongText = "a text of more than fifteen bytes";
  DatabaseCore& core_;
  bench::Random& random_;
  std::uint64_t sum_ = 0;
};

}  // namespace

std::uint64_t exercise(DatabaseCore& core, bench::Random& random) {
  return Exercise(core, random).run();
}

}  // namespace flugs::damage
