#include "bench/random_steps.h"

#include <utility>

#include "bench/random.h"

namespace flugs::bench {

namespace {

constexpr std::uint32_t kWritesMax = 8;
constexpr std::uint32_t kShortTextMax = 24;
constexpr std::uint32_t kLongTextMax = 3000;

std::string random_text(Random& random) {
  const bool is_long = random.below(24) == 0;
  std::string text(random.below(is_long ? kLongTextMax : kShortTextMax), '\0');
  // Few first letters: many texts share a prefix, and short ones are often the same.
  for (char& c : text) c = static_cast<char>('a' + random.below(3));
  return text;
}

}  // namespace

std::string random_table_name(std::uint32_t user, std::uint32_t table) {
  if (table == 0) return "shared";
  return "user " + std::to_string(user) + " table " + std::to_string(table);
}

TableSchema random_schema(std::string name, std::uint64_t seed) {
  static constexpr Type kTypes[] = {Type::kBool,      Type::kInt32,   Type::kInt64,
                                    Type::kDouble,    Type::kDecimal, Type::kDate,
                                    Type::kTimestamp, Type::kString,  Type::kBytes};
  Random random(seed);
  TableSchema schema(std::move(name));
  schema.column("owner", Type::kInt32).column("id", Type::kInt64);
  const std::uint32_t columns = random.between(1, 6);
  for (std::uint32_t i = 0; i < columns; ++i) {
    schema.column("c" + std::to_string(i), kTypes[random.below(std::size(kTypes))]);
    ColumnSchema& column = schema.columns.back();
    column.nullable = random.below(2) == 0;
    column.encoding = static_cast<Encoding>(random.below(3));
    if (column.type == Type::kDecimal) column.scale = 2;
  }
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
  if (kind < 15) step.kind = RandomStep::Kind::kAbort;
  const std::uint32_t writes = random.between(1, kWritesMax);
  for (std::uint32_t i = 0; i < writes; ++i)
    step.writes.push_back({random.below(kRandomTables), random.below(kRandomKeys),
                           random.below(10) < 3, random.next()});
  return step;
}

std::vector<std::uint16_t> random_changes(std::uint64_t seed, std::size_t columns) {
  Random random(seed);
  std::vector<std::uint16_t> changed;
  const std::uint32_t count = random.between(1, 3);
  changed.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i)
    changed.push_back(static_cast<std::uint16_t>(2 + random.below(columns - 2)));
  return changed;
}

}  // namespace flugs::bench
