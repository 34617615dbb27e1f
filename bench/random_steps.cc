#include "bench/random_steps.h"

#include <utility>

#include "bench/random.h"

namespace flugs::bench {

namespace {

constexpr std::uint32_t kWritesMax = 8;
constexpr std::uint32_t kShortTextMax = 24;
constexpr std::uint32_t kLongTextMax = 3000;
constexpr std::size_t kColumnsMax = 14;  // with those that were dropped
constexpr const char* kAddedKey = "by added";

std::string random_text(Random& random) {
  const bool is_long = random.below(24) == 0;
  std::string text(random.below(is_long ? kLongTextMax : kShortTextMax), '\0');
  // Few first letters: many texts share a prefix, and short ones are often the same.
  for (char& c : text) c = static_cast<char>('a' + random.below(3));
  return text;
}

ColumnSchema random_column(std::string name, Random& random) {
  static constexpr Type kTypes[] = {Type::kBool,      Type::kInt32,   Type::kInt64,
                                    Type::kDouble,    Type::kDecimal, Type::kDate,
                                    Type::kTimestamp, Type::kString,  Type::kBytes};
  ColumnSchema column;
  column.name = std::move(name);
  column.type = kTypes[random.below(std::size(kTypes))];
  column.nullable = random.below(2) == 0;
  column.encoding = static_cast<Encoding>(random.below(3));
  if (column.type == Type::kDecimal) column.scale = 2;
  return column;
}

// What Database::change_type can make of it; else itself, held directly from then on.
Type other_type(Type type) noexcept {
  if (type == Type::kInt32) return Type::kInt64;
  if (type == Type::kString) return Type::kBytes;
  return type == Type::kBytes ? Type::kString : type;
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
  const std::uint32_t columns = random.between(1, 6);
  for (std::uint32_t i = 0; i < columns; ++i)
    schema.columns.push_back(random_column("c" + std::to_string(i), random));
  schema.primary_key({"owner", "id"});
  if (random.below(2) == 0) schema.ordered();
  if (random.below(2) == 0) schema.key("by_c0", {"c0"});
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
  const std::uint32_t choice = random.below(6);
  RandomAlteration made;
  made.seed = random.next();
  if (choice < 2 && schema.columns.size() < kColumnsMax) {
    made.kind = Kind::kAddColumn;
    made.place = static_cast<std::uint16_t>(schema.columns.size());
    made.column = random_column("added " + std::to_string(made.place), random);
    std::deque<std::string> texts;
    const Value value = random_value(made.column, made.seed, texts);
    if (!value.is_null()) made.column.default_value = Constant(value, made.column.scale);
  } else if (choice == 2) {
    // The last that is there, and never the first: a key may name that.
    for (std::size_t c = kRandomKeyColumns + 1; c < schema.columns.size(); ++c)
      if (!schema.columns[c].dropped) made.place = static_cast<std::uint16_t>(c);
    if (made.place != 0) made.kind = Kind::kDropColumn;
  } else if (choice == 3) {
    made.place = static_cast<std::uint16_t>(
        random.between(kRandomKeyColumns, static_cast<std::uint32_t>(schema.columns.size()) - 1));
    const ColumnSchema& column = schema.columns[made.place];
    made.type = other_type(column.type);
    if (!column.dropped) made.kind = Kind::kChangeType;
  } else if (choice > 3) {
    for (std::size_t k = 1; k < schema.keys.size(); ++k)
      if (schema.keys[k].name == kAddedKey) made.place = static_cast<std::uint16_t>(k);
    if (made.place != 0) {
      made.kind = Kind::kDropKey;
    } else {
      made.kind = Kind::kAddKey;
      made.key.name = kAddedKey;
      made.key.columns = {schema.columns[kRandomKeyColumns].name, schema.columns[0].name};
      made.key.ordered = random.below(2) == 0;
    }
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
      schema.columns[alteration.place].type = alteration.type;
      break;
    case RandomAlteration::Kind::kAddKey:
      schema.keys.push_back(alteration.key);
      break;
    case RandomAlteration::Kind::kDropKey:
      schema.keys.erase(schema.keys.begin() + alteration.place);
      break;
    case RandomAlteration::Kind::kNone:
      break;
  }
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
