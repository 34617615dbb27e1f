#include "bench/random/random_steps.h"

#include <algorithm>
#include <utility>

#include "bench/random/random_schema.h"
#include "bench/support/random.h"

namespace flugs::bench {

namespace {

constexpr std::uint32_t kWritesMax = 8;
constexpr std::uint32_t kShortTextMax = 24;
constexpr std::uint32_t kLongTextMax = 3000;
constexpr std::size_t kColumnsMax = 14;  // with those that were dropped
constexpr std::size_t kKeysMax = 5;

std::string random_text(Random& random) {
  const bool is_long = random.below(24) == 0;
  std::string text(random.below(is_long ? kLongTextMax : kShortTextMax), '\0');
  // Few first letters: many texts share a prefix, and short ones are often the same.
  for (char& c : text) c = static_cast<char>('a' + random.below(3));
  return text;
}

// The type that Database::change_type can give the column; if none, the same type, held directly
// from then on.
Type other_type(Type type) noexcept {
  if (type == Type::kInt32) return Type::kInt64;
  if (type == Type::kString) return Type::kBytes;
  return type == Type::kBytes ? Type::kString : type;
}

void change_type(ColumnSchema& column, Type type) {
  column.type = type;
  if (column.default_value.has_value())
    column.default_value = with_type(*column.default_value, type);
}

// Rows of one user, and of several, must not meet in it.
KeySchema random_key(std::string name, const TableSchema& schema, Random& random) {
  KeySchema key = draw_key(std::move(name), schema, random);
  if (!key.unique) return key;
  for (std::size_t i = 0; i < kRandomKeyColumns; ++i) {
    const std::string& part = schema.columns[i].name;
    if (std::find(key.columns.begin(), key.columns.end(), part) == key.columns.end())
      key.columns.push_back(part);
  }
  return key;
}

bool is_in_key(const TableSchema& schema, const std::string& column) {
  return std::any_of(schema.keys.begin(), schema.keys.end(), [&](const KeySchema& key) {
    return std::find(key.columns.begin(), key.columns.end(), column) != key.columns.end();
  });
}

RandomAlteration added_column(const TableSchema& schema, std::string name, Random& random) {
  RandomAlteration made;
  made.kind = RandomAlteration::Kind::kAddColumn;
  made.place = static_cast<std::uint16_t>(schema.columns.size());
  made.column = draw_column(std::move(name), random);
  // Rows may be there.
  if (!made.column.default_value.has_value()) made.column.nullable = true;
  return made;
}

// One of the keys behind the primary one; their places are the engine's to choose, so by name.
const KeySchema* some_key(const TableSchema& schema, Random& random) {
  std::vector<const KeySchema*> keys;
  for (std::size_t k = 1; k < schema.keys.size(); ++k)
    if (!schema.keys[k].dropped) keys.push_back(&schema.keys[k]);
  std::sort(keys.begin(), keys.end(),
            [](const KeySchema* a, const KeySchema* b) { return a->name < b->name; });
  const std::uint64_t number = random.next();
  return keys.empty() ? nullptr : keys[number % keys.size()];
}

RandomAlteration altered_key(const TableSchema& schema, std::string name, Random& random) {
  using Kind = RandomAlteration::Kind;
  RandomAlteration made;
  const auto there = static_cast<std::size_t>(std::count_if(
      schema.keys.begin(), schema.keys.end(), [](const KeySchema& key) { return !key.dropped; }));
  const std::uint32_t choice = random.below(5);
  const KeySchema* key = some_key(schema, random);
  if (choice < 2 && there < kKeysMax) {
    made.kind = Kind::kAddKey;
    made.key = random_key(std::move(name), schema, random);
  } else if (key != nullptr) {
    made.kind = choice == 4 ? Kind::kRenameKey : Kind::kDropKey;
    made.place = static_cast<std::uint16_t>(key - schema.keys.data());
    made.name = std::move(name);
  }
  return made;
}

}  // namespace

std::string random_table_name(std::uint32_t user, std::uint32_t table) {
  if (table == 0) return "shared";
  return "user " + std::to_string(user) + " table " + std::to_string(table);
}

TableSchema random_schema(std::string name, std::uint64_t seed) {
  Random random(seed);
  TableSchema schema(std::move(name));
  schema.column("owner", Type::kInt32).column("id", Type::kInt64);
  const std::uint32_t columns = random.between(1, 8);
  for (std::uint32_t i = 0; i < columns; ++i)
    schema.columns.push_back(draw_column("c" + std::to_string(i), random));
  schema.primary_key({"owner", "id"});
  if (random.below(2) == 0) schema.ordered();
  for (std::uint32_t i = random.below(4); i > 0; --i)
    schema.keys.push_back(random_key("k" + std::to_string(i), schema, random));
  return schema;
}

Value random_value(const ColumnSchema& column, std::uint64_t seed, std::deque<std::string>& texts) {
  Random random(seed);
  if (column.nullable && random.below(8) == 0) return Value::null();
  const std::uint64_t number = random.next() >> (33 + random.below(30));  // up to 31 bits
  switch (column.type) {
    case Type::kBool:
      return Value::boolean((number & 1) != 0);
    case Type::kDouble:
      return Value::real(static_cast<double>(number) / 8);
    case Type::kString:
    case Type::kBytes:
      return Value::from_bytes(column.type, texts.emplace_back(random_text(random)));
    default:
      return Value::from_raw(column.type, static_cast<std::int64_t>(number));
  }
}

RandomStep random_step(std::uint64_t seed, std::uint32_t user, std::uint64_t number) {
  Random random(mix64(mix64(seed) + user) + number);
  RandomStep step;
  const std::uint32_t kind = random.below(100);
  if (kind < 2) {
    step.kind = RandomStep::Kind::kToggle;
    step.table = random.between(1, kRandomTables - 1);
    step.schema_seed = random.next();
    return step;
  }
  if (kind < 5) {
    step.kind = RandomStep::Kind::kMerge;
    step.table = random.below(kRandomTables);
    return step;
  }
  if (kind < 8) {
    step.kind = RandomStep::Kind::kAlter;
    step.table = random.between(1, kRandomTables - 1);
    step.schema_seed = random.next();
    return step;
  }
  if (kind < 16) step.kind = RandomStep::Kind::kAbort;
  const std::uint32_t writes = random.between(1, kWritesMax);
  for (std::uint32_t i = 0; i < writes; ++i)
    step.writes.push_back({random.below(kRandomTables), random.below(kRandomKeys),
                           random.below(10) < 3, random.next()});
  return step;
}

RandomAlteration random_alteration(const TableSchema& schema, std::uint64_t seed) {
  using Kind = RandomAlteration::Kind;
  Random random(seed);
  const std::uint32_t choice = random.below(10);
  std::string name = "new " + std::to_string(seed % 1'000'000'007);
  if (choice > 5) return altered_key(schema, std::move(name), random);
  if (choice < 2 && schema.columns.size() < kColumnsMax)
    return added_column(schema, std::move(name), random);
  RandomAlteration made;
  const std::size_t place =
      random.between(kRandomKeyColumns, static_cast<std::uint32_t>(schema.columns.size()) - 1);
  const ColumnSchema& column = schema.columns[place];
  const auto there = std::count_if(schema.columns.begin(), schema.columns.end(),
                                   [](const ColumnSchema& c) { return !c.dropped; });
  if (column.dropped) return made;
  made.place = static_cast<std::uint16_t>(place);
  made.type = other_type(column.type);
  made.name = std::move(name);
  if (choice == 4) {
    made.kind = Kind::kChangeType;
  } else if (choice == 5) {
    made.kind = Kind::kRenameColumn;
  } else if (!is_in_key(schema, column.name) && there > 1 + std::ptrdiff_t{kRandomKeyColumns}) {
    made.kind = Kind::kDropColumn;
  }
  return made;
}

void apply_alteration(const RandomAlteration& alteration, TableSchema& schema) {
  switch (alteration.kind) {
    case RandomAlteration::Kind::kAddColumn:
      schema.columns.push_back(alteration.column);
      break;
    case RandomAlteration::Kind::kDropColumn:
      schema.columns[alteration.place].dropped = true;
      break;
    case RandomAlteration::Kind::kChangeType:
      change_type(schema.columns[alteration.place], alteration.type);
      break;
    case RandomAlteration::Kind::kAddKey:
      schema.keys.push_back(alteration.key);
      break;
    case RandomAlteration::Kind::kDropKey:
      schema.keys.erase(schema.keys.begin() + alteration.place);
      break;
    case RandomAlteration::Kind::kRenameColumn: {
      std::string& name = schema.columns[alteration.place].name;
      for (KeySchema& key : schema.keys)
        std::replace(key.columns.begin(), key.columns.end(), name, alteration.name);
      name = alteration.name;
      break;
    }
    case RandomAlteration::Kind::kRenameKey:
      schema.keys[alteration.place].name = alteration.name;
      break;
    case RandomAlteration::Kind::kNone:
      break;
  }
}

Constant with_type(const Constant& constant, Type type) {
  const Value value = constant.value();
  if (value.is_null()) return constant;
  if (type == Type::kString || type == Type::kBytes)
    return {Value::from_bytes(type, value.as_string())};
  return Value::from_raw(type, value.raw()).with_scale(value.scale());
}

RandomRow random_row(std::uint64_t seed, const TableSchema& schema) {
  RandomRow row;
  Random random(seed);
  const bool names_all = random.below(2) == 0;
  std::deque<std::string> texts;
  for (std::size_t c = 0; c < schema.columns.size(); ++c) {
    const ColumnSchema& column = schema.columns[c];
    const bool may_lack = column.nullable || column.default_value.has_value();
    const bool lacks = column.dropped || (!names_all && may_lack && random.below(2) == 0);
    row.named.push_back(!lacks);
    if (!lacks)
      row.values.emplace_back(
          random_value(column, column_seed(seed, c), texts).with_scale(column.scale));
    else if (column.default_value.has_value() && !column.dropped)
      row.values.push_back(*column.default_value);
    else
      row.values.emplace_back();
  }
  return row;
}

std::vector<std::uint16_t> random_changes(std::uint64_t seed, const TableSchema& schema) {
  std::vector<std::uint16_t> there;
  for (std::size_t c = kRandomKeyColumns; c < schema.columns.size(); ++c)
    if (!schema.columns[c].dropped) there.push_back(static_cast<std::uint16_t>(c));
  Random random(seed);
  std::vector<std::uint16_t> changed;
  const std::uint32_t count = random.between(1, 3);
  changed.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) changed.push_back(there[random.below(there.size())]);
  return changed;
}

}  // namespace flugs::bench
