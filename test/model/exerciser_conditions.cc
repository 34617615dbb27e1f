// Calls that find their rows by an expression.
#include <algorithm>
#include <map>

#include "test/model/exerciser.h"

namespace flugs::test {

namespace {

// The rows in which the column has the value, NULL included.
query::Expr equals(const ColumnSchema& column, const ModelValue& value) {
  const query::Expr of = query::col(column.name);
  if (value.null) return of.is_null();
  return of == query::constant(value.view().with_scale(column.scale));
}

}  // namespace

// A column whose values compare in queries as in the model: NaN equals nothing there.
std::optional<std::size_t> Exerciser::pick_compared(const ModelTable& table) {
  const auto column = pick_column(table);
  if (column && table.schema.columns[*column].type == Type::kDouble) return std::nullopt;
  return column;
}

void Exerciser::scan_where(Open& open, ModelTable& table) {
  const auto column = pick_compared(table);
  const auto other = pick_column(table);
  if (!column || !other) return;
  const ModelValue wanted = random_cell(open, table, *column);
  model_.note_read(*open.model, table);
  std::map<std::uint32_t, const ModelRow*> expected;
  for (const SeenRow& row : model_.see_all(*open.model, table))
    if ((*row.row)[*column] == wanted) expected[row.id.value()] = row.row;
  const std::vector<ColumnId> columns = {column_id(*other), column_id(*column)};
  calls_.add(Call::kScanExpression);
  const Status status = open.real->scan(
      table.id, columns, equals(table.schema.columns[*column], wanted),
      [&](const ScanBatch& batch) {
        for (std::size_t i = 0; i < batch.row_count(); ++i) {
          const auto row = expected.find(batch.row_ids()[i].value());
          expect(row != expected.end(), "scan by an expression: a row too many");
          if (row == expected.end()) return false;
          const bool is_same = batch.get_unchecked(0, i) == (*row->second)[*other].view() &&
                               batch.get_unchecked(1, i) == (*row->second)[*column].view();
          expect(is_same, "scan by an expression: another value");
          expected.erase(row);
        }
        return true;
      });
  expect_code({}, status, "scan by an expression");
  expect(expected.empty() || !complaint_.empty(),
         "scan by an expression of " + table.schema.name + ": rows are missing");
}

void Exerciser::remove_where(Open& open, ModelTable& table) {
  const auto column = pick_compared(table);
  if (!column) return;
  const ModelValue wanted = random_cell(open, table, *column);
  std::vector<SeenRow> rows;
  for (const SeenRow& seen : model_.see_all(*open.model, table))
    if ((*seen.row)[*column] == wanted) rows.push_back(seen);
  constexpr std::size_t kRowsMax = 5;  // the model's tables must not run empty
  if (rows.size() > kRowsMax) return;
  calls_.add(Call::kRemoveWhere);
  const std::size_t count = rows.size();
  model_.note_read(*open.model, table);
  const Outcomes expected = model_.remove(*open.model, table, rows);
  if (expected.is_untold()) return;
  const Result<std::uint64_t> removed =
      open.real->remove_where(table.id, equals(table.schema.columns[*column], wanted));
  expect_code(expected, removed.status(), "remove_where");
  if (!removed.ok() || !expected.ok()) return;
  expect(*removed == count, "remove_where: another number of rows");
  settle_cascades(open);
}

// One row, by a unique key: the outcome of several would hang on their order.
void Exerciser::update_where(Open& open, ModelTable& table) {
  const auto key = pick_key(table, true, false);
  const auto column = pick_column(table);
  if (!key || !column) return;
  const auto found = pick_by_key(open, table, *key);
  if (!found) return;
  const auto& [seen, values] = *found;
  query::Expr condition;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const ColumnSchema& of = table.schema.columns[table.keys[*key].columns[i]];
    if (of.type == Type::kDouble) return;
    const query::Expr part = equals(of, values[i]);
    condition = condition.is_given() ? condition && part : part;
  }
  const ColumnSchema& changed = table.schema.columns[*column];
  const ModelValue fresh = random_cell(open, table, *column);
  ModelRow row = *seen.row;
  row[*column] = fresh;
  calls_.add(Call::kUpdateWhere);
  model_.note_read(*open.model, table);
  do_update(
      open, table, seen, {*column}, row, {},
      [&, condition]() -> Result<RowId> {
        const Result<std::uint64_t> count = open.real->update_where(
            table.id, condition,
            {{changed.name, query::constant(fresh.view().with_scale(changed.scale))}});
        if (!count.ok()) return count.status();
        expect(*count == 1, "update_where: " + std::to_string(*count) + " rows instead of 1");
        return kUnknownRow;
      },
      "update_where");
}

// Several rows, of which one gets a value that does not fit: rows that were changed before it must
// be as they were. The column is in no key, so that own rows could be changed in place.
void Exerciser::break_update_where(Open& open, ModelTable& table) {
  const auto column = pick_column(table);
  if (!column || table.schema.columns[*column].type != Type::kInt32) return;
  const bool is_in_key = std::any_of(table.keys.begin(), table.keys.end(), [&](const auto& key) {
    return std::find(key.columns.begin(), key.columns.end(), *column) != key.columns.end();
  });
  if (is_in_key || table.schema.columns[*column].auto_increment) return;
  const std::vector<SeenRow> rows = model_.see_all(*open.model, table);
  const auto value = [&](const SeenRow& seen) { return (*seen.row)[*column]; };
  const auto own = std::find_if(rows.begin(), rows.end(), [&](const SeenRow& seen) {
    return seen.record->writer == open.model && !value(seen).null;
  });
  if (own == rows.end()) return;
  const auto bad = std::find_if(rows.begin(), rows.end(), [&](const SeenRow& seen) {
    return !value(seen).null && !(value(seen) == value(*own)) && seen.id.value() > own->id.value();
  });
  if (bad == rows.end()) return;
  calls_.add(Call::kUpdateWhereFails);
  model_.note_read(*open.model, table);
  const ColumnSchema& changed = table.schema.columns[*column];
  const query::Expr is_bad = equals(changed, value(*bad));
  const query::Expr fresh =
      query::case_when({{is_bad, std::int64_t{1} << 40}}, query::col(changed.name) - 1);
  const Result<std::uint64_t> done = open.real->update_where(
      table.id, equals(changed, value(*own)) || is_bad, {{changed.name, fresh}});
  expect(!done.ok(), "update_where of rows that cannot be changed succeeded");
  look_at_conflict(open, done.code());
  if (open.real->is_open()) compare_all(open, table);
}

}  // namespace flugs::test
