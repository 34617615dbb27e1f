#include "bench/random/random_schema.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "base/types.h"
#include "bench/random/random_steps.h"

namespace flugs::bench {

namespace {

using ConditionKind = Condition::Kind;

constexpr std::uint32_t kKeyColumnsDrawn = 4;

bool is_of_text(Type type) noexcept { return type == Type::kString || type == Type::kBytes; }

std::vector<std::size_t> columns_there(const TableSchema& schema) {
  std::vector<std::size_t> there;
  for (std::size_t i = 0; i < schema.columns.size(); ++i)
    if (!schema.columns[i].dropped) there.push_back(i);
  return there;
}

/// One to `count_max` of the columns that are there, in any order.
std::vector<std::string> draw_columns(const TableSchema& schema, std::uint32_t count_max,
                                      Random& random) {
  std::vector<std::size_t> there = columns_there(schema);
  const auto most = std::min<std::size_t>(there.size(), count_max);
  const std::uint32_t count = random.between(1, static_cast<std::uint32_t>(most));
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < count; ++i) {
    std::swap(there[i], there[i + random.below(there.size() - i)]);
    names.push_back(schema.columns[there[i]].name);
  }
  return names;
}

const ColumnSchema& column_of(const TableSchema& schema, const std::string& name) {
  return *std::find_if(schema.columns.begin(), schema.columns.end(),
                       [&](const ColumnSchema& c) { return c.name == name && !c.dropped; });
}

/// Whether enough different values fit that a unique key does not fill up with a few rows.
bool is_wide(const TableSchema& schema, const std::vector<std::string>& columns) {
  return std::any_of(columns.begin(), columns.end(), [&](const std::string& name) {
    return column_of(schema, name).type != Type::kBool;
  });
}

Constant number_for(const ColumnSchema& column, std::int64_t number) {
  if (column.type == Type::kDouble) return {Value::real(static_cast<double>(number))};
  return Value::from_raw(column.type, number).with_scale(column.scale);
}

/// One comparison that most values of the column fulfil.
Condition draw_comparison(const TableSchema& schema, const ColumnSchema& column, Random& random) {
  constexpr std::int64_t kLarge = 1 << 30;
  const std::string& name = column.name;
  const std::uint32_t choice = random.below(6);
  if (choice == 0)
    return Condition::any_of({Condition::is_null(name), Condition::is_not_null(name)});
  if (choice == 1)
    for (const ColumnSchema& other : schema.columns)
      if (!other.dropped && !other.auto_increment && other.name != name &&
          other.type == column.type && other.scale == column.scale && column.type != Type::kBool)
        return Condition::compare_columns(name, ConditionKind::kNotEqual, other.name);
  if (is_of_text(column.type)) {
    const auto text = [&](std::string_view v) {
      return Constant(Value::from_bytes(column.type, v));
    };
    if (choice == 2) return Condition::negated(Condition::starts_with(name, "v3"));
    if (choice == 3) return Condition::negated(Condition::ends_with(name, "77"));
    if (choice == 4) return Condition::negated(Condition::contains(name, "v29"));
    return Condition::compare(name, ConditionKind::kNotEqual, text("v5"));
  }
  if (column.type == Type::kBool)
    return Condition::in(name, {Constant(Value::boolean(true)), Constant(Value::boolean(false))});
  const auto number = [&](std::int64_t v) { return number_for(column, v); };
  if (choice == 2) return Condition::compare(name, ConditionKind::kLessEqual, number(kLarge));
  if (choice == 3) return Condition::compare(name, ConditionKind::kGreaterEqual, number(-kLarge));
  if (choice == 4) return Condition::negated(Condition::in(name, {number(3), number(5)}));
  return Condition::between(name, number(-kLarge), number(kLarge));
}

/// A column that may refer to `to`: one that is there, or a new one.
std::string draw_referring(TableSchema& schema, const ColumnSchema& to, bool may_be_null,
                           const std::vector<std::string>& taken, Random& random) {
  for (const ColumnSchema& column : schema.columns) {
    const bool fits = column.type == to.type && column.scale == to.scale &&
                      !column.auto_increment && (column.nullable || !may_be_null);
    const bool is_taken = std::find(taken.begin(), taken.end(), column.name) != taken.end();
    if (fits && !is_taken && random.below(2) == 0) return column.name;
  }
  const std::string name = "r" + std::to_string(schema.columns.size());
  schema.column(name, to.type).scale(to.scale);
  if (!may_be_null && random.below(3) == 0) schema.not_null();
  if (random.below(2) == 0) schema.direct();
  return name;
}

void add_foreign_key(TableSchema& schema, const SchemaWishes& wishes, Random& random) {
  const std::uint32_t choice = random.below(wishes.parents.size() + 1);
  const TableSchema parent = choice == wishes.parents.size() ? schema : *wishes.parents[choice];
  std::vector<const KeySchema*> keys;
  for (const KeySchema& key : parent.keys)
    if (key.unique && !key.dropped && key.columns.size() <= kKeyColumnsDrawn) keys.push_back(&key);
  if (keys.empty()) return;
  const KeySchema& key = *keys[random.below(keys.size())];
  ForeignKeySchema foreign;
  foreign.name = "f" + std::to_string(schema.foreign_keys.size());
  foreign.table = parent.name;
  foreign.key = key.name;
  foreign.on_delete = static_cast<ReferenceAction>(random.below(3));
  foreign.on_update = static_cast<ReferenceAction>(random.below(3));
  const bool may_be_null = foreign.on_delete == ReferenceAction::kSetNull ||
                           foreign.on_update == ReferenceAction::kSetNull;
  for (const std::string& name : key.columns)
    foreign.columns.push_back(
        draw_referring(schema, column_of(parent, name), may_be_null, foreign.columns, random));
  schema.foreign_keys.push_back(std::move(foreign));
}

void add_keys(TableSchema& schema, const SchemaWishes& wishes, Random& random) {
  if (random.below(10) < 7) {
    const std::vector<std::string> columns = draw_columns(schema, kKeyColumnsDrawn, random);
    if (is_wide(schema, columns)) {
      schema.primary_key(columns);
      if (random.below(2) == 0) schema.ordered();
      if (random.below(3) == 0)
        schema.hash_prefix(static_cast<std::uint8_t>(
            random.between(1, static_cast<std::uint32_t>(columns.size()))));
    }
  }
  const std::uint32_t keys = random.below(wishes.keys_max + 1);
  for (std::uint32_t i = 0; i < keys; ++i)
    schema.keys.push_back(draw_key("k" + std::to_string(i), schema, random));
}

}  // namespace

ColumnSchema draw_column(std::string name, Random& random) {
  ColumnSchema column;
  column.name = std::move(name);
  column.type = kAllTypes[random.below(std::size(kAllTypes))];
  column.nullable = random.below(3) != 0;
  column.encoding = static_cast<Encoding>(random.below(3));
  if (column.type == Type::kDecimal)
    column.scale = static_cast<std::uint8_t>(random.below(4) == 0 ? 18 : random.below(5));
  if (random.below(8) == 0) column.expected_distinct = random.between(1, 300);
  if (random.below(3) == 0) {
    std::deque<std::string> texts;
    const Value value = random_value(column, random.next(), texts);
    if (!value.is_null()) column.default_value = Constant(value.with_scale(column.scale));
  }
  return column;
}

KeySchema draw_key(std::string name, const TableSchema& schema, Random& random) {
  KeySchema key;
  key.name = std::move(name);
  key.columns = draw_columns(schema, kKeyColumnsDrawn, random);
  key.unique = random.below(2) == 0 && is_wide(schema, key.columns);
  key.ordered = random.below(2) == 0;
  if (key.unique && random.below(3) == 0)
    key.hashed_columns = static_cast<std::uint8_t>(
        random.between(1, static_cast<std::uint32_t>(key.columns.size())));
  return key;
}

CheckSchema draw_check(std::string name, const TableSchema& schema, Random& random) {
  // The database chooses the number, so no one can foretell whether it fulfils a check.
  std::vector<std::size_t> there = columns_there(schema);
  std::erase_if(there, [&](std::size_t i) { return schema.columns[i].auto_increment; });
  const auto one = [&] {
    return draw_comparison(schema, schema.columns[there[random.below(there.size())]], random);
  };
  CheckSchema check;
  check.name = std::move(name);
  switch (random.below(4)) {
    case 0:
      check.condition = Condition::any_of({one(), one()});
      break;
    case 1:
      check.condition = Condition::all_of({one(), one()});
      break;
    default:
      check.condition = one();
  }
  return check;
}

// Some columns in up to three groups; no groups in half of the cases.
std::vector<std::vector<std::string>> draw_groups(const TableSchema& schema, Random& random) {
  std::vector<std::vector<std::string>> groups(random.below(2) * random.between(1, 3));
  for (const std::size_t column : columns_there(schema))
    if (!groups.empty() && random.below(3) != 0)
      groups[random.below(static_cast<std::uint32_t>(groups.size()))].push_back(
          schema.columns[column].name);
  return groups;
}

TableSchema draw_schema(std::string name, const SchemaWishes& wishes, Random& random) {
  TableSchema schema(std::move(name));
  const bool is_broad = random.below(4) == 0;
  const std::uint32_t columns =
      random.between(1, is_broad ? wishes.columns_max : std::min(wishes.columns_max, 7U));
  for (std::uint32_t i = 0; i < columns; ++i)
    schema.columns.push_back(draw_column("c" + std::to_string(i), random));
  if (wishes.has_numbers && random.below(5) == 0)
    schema.column("number", random.below(2) == 0 ? Type::kInt32 : Type::kInt64)
        .not_null()
        .auto_increment();
  add_keys(schema, wishes, random);
  if (wishes.refers)
    for (std::uint32_t i = random.below(3); i > 0; --i) add_foreign_key(schema, wishes, random);
  for (std::uint32_t i = random.below(5) < 2 ? random.between(1, 3) : 0; i > 0; --i)
    schema.checks.push_back(draw_check("h" + std::to_string(i), schema, random));
  if (random.below(4) == 0) schema.in_column_groups(draw_groups(schema, random));
  return schema;
}

}  // namespace flugs::bench
