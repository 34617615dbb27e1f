// Changes of tables in the model: they belong to no snapshot, so all versions change.
#include <algorithm>

#include "test/model/model_database.h"

namespace flugs::test {

template <typename Change>
void ModelDatabase::change_rows(ModelTable& table, Change&& change) {
  const auto change_own = [&](OwnRow& own) {
    if (!own.row.empty()) change(own.row);
    for (ModelRow& row : own.superseded) change(row);
  };
  for (const auto& record : table.records) {
    for (ModelVersion& version : record->versions) change(version.row);
    if (record->writer != nullptr) change_own(record->own);
  }
  for (const auto& transaction : open_)
    for (ModelWrite& write : transaction->writes_) {
      if (write.table != &table) continue;
      if (write.had_writer) change_own(write.before);
      if (write.old) change(*write.old);
      if (write.made) change(*write.made);
    }
}

void ModelDatabase::add_column(ModelTable& table, const ColumnSchema& column,
                               const ModelValue& value) {
  table.schema.columns.push_back(column);
  change_rows(table, [&](ModelRow& row) { row.push_back(value); });
}

void ModelDatabase::rename_column(ModelTable& table, std::size_t column, const std::string& name) {
  TableSchema& schema = table.schema;
  const std::string before = schema.columns[column].name;
  const auto rename = [&](std::vector<std::string>& names) {
    std::replace(names.begin(), names.end(), before, name);
  };
  schema.columns[column].name = name;
  for (KeySchema& key : schema.keys) rename(key.columns);
  for (std::vector<std::string>& group : schema.column_groups) rename(group);
  for (ForeignKeySchema& foreign : schema.foreign_keys) rename(foreign.columns);
  for (CheckSchema& check : schema.checks) {
    std::vector<Condition::Node> nodes = check.condition.nodes();
    for (Condition::Node& node : nodes) {
      if (node.column == before) node.column = name;
      if (node.other == before) node.other = name;
    }
    check.condition = Condition::of(std::move(nodes));
  }
}

void ModelDatabase::rename_key(ModelTable& table, std::size_t place, const std::string& name) {
  table.schema.keys[place].name = name;
  for (const auto& [child, index] : table.referrers)
    if (child->foreign_keys[index].parent_key == place)
      child->schema.foreign_keys[index].key = name;
}

void ModelDatabase::rename_table(ModelTable& table, const std::string& name) {
  table.schema.name = name;
  for (const auto& [child, index] : table.referrers) child->schema.foreign_keys[index].table = name;
}

void ModelDatabase::drop_column(ModelTable& table, std::size_t column) {
  ColumnSchema& schema = table.schema.columns[column];
  for (std::vector<std::string>& group : table.schema.column_groups) std::erase(group, schema.name);
  schema.name.clear();
  schema.default_value.reset();
  schema.auto_increment = false;
  schema.dropped = true;
  change_rows(table, [&](ModelRow& row) { row[column] = ModelValue(); });
}

void ModelDatabase::change_type(ModelTable& table, std::size_t column, Type type) {
  ColumnSchema& schema = table.schema.columns[column];
  const auto with_type = [&](const Constant& constant) {
    const Value value = constant.value();
    return Constant(is_text(type) ? Value::from_bytes(type, value.as_string())
                                  : Value::from_raw(type, value.raw()).with_scale(value.scale()));
  };
  schema.type = type;
  schema.encoding = Encoding::kDirect;
  if (schema.default_value && !schema.default_value->is_null())
    schema.default_value = with_type(*schema.default_value);
  for (CheckSchema& check : table.schema.checks) {
    std::vector<Condition::Node> nodes = check.condition.nodes();
    for (Condition::Node& node : nodes)
      if (node.column == schema.name)
        for (Constant& constant : node.constants) constant = with_type(constant);
    check.condition = Condition::of(std::move(nodes));
  }
  change_rows(table, [&](ModelRow& row) { row[column].type = type; });
}

void ModelDatabase::add_key(ModelTable& table, std::size_t place, const KeySchema& key) {
  if (table.schema.keys.size() <= place) table.schema.keys.resize(place + 1);
  if (table.keys.size() <= place) table.keys.resize(place + 1);
  if (table.indexes.size() <= place) table.indexes.resize(place + 1);
  KeySchema& schema = table.schema.keys[place];
  schema = key;
  if (!schema.unique) schema.ordered = true;
  if (schema.unique && schema.hashed_columns == 0)
    schema.hashed_columns = static_cast<std::uint8_t>(schema.columns.size());
  ModelKey& model = table.keys[place];
  model = {{}, schema.hashed_columns, schema.unique, schema.ordered, schema.dropped};
  for (const std::string& name : schema.columns)
    model.columns.push_back(position_of(table.schema, name));
  for (const auto& record : table.records) enter_again(table, *record);
}

void ModelDatabase::drop_key(ModelTable& table, std::size_t place) {
  for (const auto& record : table.records)
    std::erase_if(record->entries, [&](const auto& entry) { return entry.first == place; });
  table.schema.keys[place] = {};
  table.schema.keys[place].dropped = true;
  table.keys[place] = {};
  table.keys[place].dropped = true;
  table.indexes[place].clear();
}

void ModelDatabase::drop_foreign_key(ModelTable& table, std::size_t number) {
  const auto place = static_cast<std::ptrdiff_t>(number);
  auto& referrers = table.foreign_keys[number].parent->referrers;
  std::erase(referrers, std::pair(&table, number));
  table.foreign_keys.erase(table.foreign_keys.begin() + place);
  table.schema.foreign_keys.erase(table.schema.foreign_keys.begin() + place);
  for (const auto& other : tables_)
    for (auto& [child, index] : other->referrers)
      if (child == &table && index > number) --index;
}

namespace {

template <typename F>
bool any_alive(const ModelTable& table, F&& is_wanted) {
  for (const auto& record : table.records)
    for (const ModelVersion& version : record->versions)
      if (version.end == kAlive && is_wanted(version.row)) return true;
  return false;
}

}  // namespace

bool ModelDatabase::has_null(const ModelTable& table, std::size_t column) const {
  return any_alive(table, [&](const ModelRow& row) { return row[column].null; });
}

bool ModelDatabase::breaks(const ModelTable& table, const Condition& condition) const {
  return any_alive(table,
                   [&](const ModelRow& row) { return !holds(table.schema, condition, row); });
}

bool ModelDatabase::lacks_parent(const ModelTable& table, const std::vector<std::size_t>& columns,
                                 const ModelTable& parent, std::size_t parent_key) const {
  const ModelKey& key = parent.keys[parent_key];
  return any_alive(table, [&](const ModelRow& row) {
    const ModelRow values = key_of(columns, row);
    if (std::any_of(values.begin(), values.end(), [](const ModelValue& v) { return v.null; }))
      return false;
    return !any_alive(parent,
                      [&](const ModelRow& other) { return compare_key(key, other, values) == 0; });
  });
}

void ModelDatabase::note_schema_change(const ModelTable& table) {
  for (const auto& transaction : open_)
    if (transaction->touched_.contains(&table)) transaction->may_conflict_ = true;
}

bool ModelDatabase::has_duplicates(const ModelTable& table,
                                   const std::vector<std::size_t>& columns) const {
  std::vector<ModelRow> keys;
  for (const auto& record : table.records)
    for (const ModelVersion& version : record->versions) {
      if (version.end != kAlive) continue;
      ModelRow key = key_of(columns, version.row);
      const bool is_any_null =
          std::any_of(key.begin(), key.end(), [](const ModelValue& v) { return v.null; });
      if (!is_any_null) keys.push_back(std::move(key));
    }
  const auto is_less = [](const ModelRow& a, const ModelRow& b) {
    for (std::size_t i = 0; i < a.size(); ++i)
      if (const int order = compare(a[i], b[i]); order != 0) return order < 0;
    return false;
  };
  std::sort(keys.begin(), keys.end(), is_less);
  return std::adjacent_find(keys.begin(), keys.end(), [&](const ModelRow& a, const ModelRow& b) {
           return !is_less(a, b) && !is_less(b, a);
         }) != keys.end();
}

void ModelDatabase::settle_number(ModelTable& table, ModelRecord& record, std::size_t column,
                                  std::int64_t raw) {
  record.own.row[column].raw = raw;
  enter_again(table, record);
}

}  // namespace flugs::test
