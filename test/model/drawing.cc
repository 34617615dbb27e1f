// Draws the arguments of the random model's calls: tables, rows, keys.
#include <algorithm>

#include "test/model/exerciser.h"

namespace flugs::test {

ModelTable& Exerciser::pick_table() {
  return *model_.tables()[random_.below(model_.tables().size())];
}

std::optional<std::size_t> Exerciser::numbered(const ModelTable& table) const {
  for (std::size_t i = 0; i < table.schema.columns.size(); ++i)
    if (table.schema.columns[i].auto_increment) return i;
  return {};
}

// Numbers that rows bring with them are below those that the database gives.
ModelValue Exerciser::random_cell(Open&, ModelTable& table, std::size_t column) {
  const ColumnSchema& schema = table.schema.columns[column];
  if (schema.dropped) return {};
  if (schema.auto_increment) {
    const auto number = -static_cast<std::int64_t>(random_.below(world_.records * 4));
    return ModelValue::of(schema.type, Value::from_raw(schema.type, number));
  }
  // Enough keys for all records, but so few that they collide.
  const bool is_unique = std::any_of(table.keys.begin(), table.keys.end(), [&](const auto& key) {
    return key.unique && !key.dropped && key.columns.size() < 3 &&
           std::find(key.columns.begin(), key.columns.end(), column) != key.columns.end();
  });
  return random_value(schema, is_unique ? world_.records * 2 : world_.domain, random_);
}

// Mostly to an existing row.
void Exerciser::refer(Open& open, ModelTable& table, ModelRow& row) {
  for (const ModelForeignKey& foreign : table.foreign_keys) {
    if (random_.chance(15)) continue;
    const auto parent = pick(open, *foreign.parent);
    const ModelKey& key = foreign.parent->keys[foreign.parent_key];
    for (std::size_t i = 0; i < foreign.columns.size(); ++i) {
      const std::size_t column = foreign.columns[i];
      if (table.schema.columns[column].auto_increment) continue;
      ModelValue value;
      if (parent && !random_.chance(10)) value = (*parent->row)[key.columns[i]];
      value.type = table.schema.columns[column].type;
      if (!value.null || table.schema.columns[column].nullable) row[column] = value;
    }
  }
  // Never to a number that is still to be given: it is unknown whether the row itself gets it.
  for (const ModelForeignKey& foreign : table.foreign_keys) {
    const ModelKey& key = foreign.parent->keys[foreign.parent_key];
    for (std::size_t i = 0; i < foreign.columns.size(); ++i) {
      ModelValue& value = row[foreign.columns[i]];
      const bool is_to_come = foreign.parent->schema.columns[key.columns[i]].auto_increment &&
                              value.raw > 0 && !foreign.parent->numbers.contains(value.raw);
      if (is_to_come) value.raw = -value.raw;
    }
  }
}

ModelRow Exerciser::random_row(Open& open, ModelTable& table) {
  ModelRow row;
  row.reserve(table.schema.columns.size());
  for (std::size_t i = 0; i < table.schema.columns.size(); ++i)
    row.push_back(random_cell(open, table, i));
  if (!table.foreign_keys.empty()) refer(open, table, row);
  return row;
}

std::vector<Value> Exerciser::views(const ModelTable& table, const ModelRow& row) {
  std::vector<Value> values;
  values.reserve(row.size());
  for (std::size_t i = 0; i < row.size(); ++i) {
    Value value = row[i].view();
    const bool is_small = row[i].raw == static_cast<std::int32_t>(row[i].raw);
    if (i < table.schema.columns.size() && table.schema.columns[i].type == Type::kInt64 &&
        !row[i].null && is_small && random_.chance(20))
      value = Value::int32(static_cast<std::int32_t>(row[i].raw));  // is widened
    values.push_back(value);
  }
  return values;
}

std::optional<SeenRow> Exerciser::pick(Open& open, ModelTable& table) {
  if (table.records.empty()) return {};
  for (int tries = 0; tries < 6; ++tries)
    if (const auto seen =
            model_.see(*open.model, *table.records[random_.below(table.records.size())]))
      return seen;
  const std::vector<SeenRow> rows = model_.see_all(*open.model, table);
  if (rows.empty()) return {};
  return rows[random_.below(rows.size())];
}

// Values for a look-up: mostly those of an existing row.
ModelRow Exerciser::key_values(Open& open, ModelTable& table, const ModelKey& key,
                               std::size_t count) {
  const auto seen = random_.chance(70) ? pick(open, table) : std::nullopt;
  ModelRow values;
  for (std::size_t i = 0; i < count; ++i)
    values.push_back(seen ? (*seen->row)[key.columns[i]]
                          : random_cell(open, table, key.columns[i]));
  return values;
}

std::optional<std::size_t> Exerciser::pick_key(const ModelTable& table, bool unique, bool ordered) {
  std::vector<std::size_t> fit;
  for (std::size_t i = 0; i < table.keys.size(); ++i) {
    const ModelKey& key = table.keys[i];
    if (!key.dropped && (!unique || key.unique) && (!ordered || key.ordered)) fit.push_back(i);
  }
  if (fit.empty()) return {};
  return fit[random_.below(fit.size())];
}

std::optional<std::size_t> Exerciser::pick_column(const ModelTable& table) {
  const std::size_t count = table.schema.columns.size();
  for (int tries = 0; tries < 20; ++tries)
    if (const std::size_t column = random_.below(count); !table.schema.columns[column].dropped)
      return column;
  return {};
}

std::optional<std::pair<SeenRow, ModelRow>> Exerciser::pick_by_key(Open& open, ModelTable& table,
                                                                   std::size_t key) {
  const auto seen = pick(open, table);
  if (!seen || key_has_null(table.keys[key], *seen->row)) return {};
  return std::make_pair(*seen, key_of(table.keys[key].columns, *seen->row));
}

}  // namespace flugs::test
