// Constants and conditions in a schema: defaults of columns, and checks.

#include "tables/catalog/schema_checks.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <utility>

#include "base/exact_value.h"
#include "base/types.h"
#include "columns/column/column.h"

namespace flugs::engine {

namespace {

using Kind = Condition::Kind;

constexpr std::size_t kNameBytesMax = 63;
constexpr std::size_t kConstantsMax = 1024;
constexpr std::size_t kConstantBytesMax = 4096;
static_assert(kNameBytesMax <= 0xFF);  // the length of a name is a byte
static_assert(kConstantsMax <= 0xFFFF && Condition::kNodesMax <= 0xFFFF);

Status unfit(const std::string& message) { return Status(StatusCode::kInvalidArgument, message); }

bool may_compare(const ColumnSchema& a, const ColumnSchema& b) noexcept {
  if (is_integer_type(a.type) && is_integer_type(b.type)) return true;
  return a.type == b.type && a.scale == b.scale;
}

Status check_leaf(const TableSchema& schema, Condition::Node& node, const std::string& where) {
  const std::size_t position = position_of(schema, node.column);
  if (position == schema.columns.size())
    return unfit(fmt::format("{}: no column '{}'", where, node.column));
  const ColumnSchema& column = schema.columns[position];
  const bool is_comparison = node.kind <= Kind::kGreaterEqual;
  const bool is_of_text = node.kind >= Kind::kStartsWith;
  if (is_of_text && !is_text_type(column.type))
    return unfit(fmt::format("{}: column {} is of type {}, expected string or bytes", where,
                             column.name, to_string(column.type)));
  if (!node.other.empty()) {
    const std::size_t other = position_of(schema, node.other);
    if (other == schema.columns.size())
      return unfit(fmt::format("{}: no column '{}'", where, node.other));
    if (!is_comparison || !node.constants.empty() || !may_compare(column, schema.columns[other]))
      return unfit(fmt::format("{}: column {} of type {} cannot be compared with {} of type {}",
                               where, column.name, to_string(column.type), node.other,
                               to_string(schema.columns[other].type)));
    return {};
  }
  const bool has_none = node.kind == Kind::kIsNull || node.kind == Kind::kIsNotNull;
  const std::size_t count = node.constants.size();
  if (has_none ? count != 0 : count == 0 || (count != 1 && node.kind != Kind::kIn))
    return unfit(fmt::format("{}: column {}: {} constants", where, column.name, count));
  for (Constant& constant : node.constants) {
    if (constant.is_null())
      return unfit(
          fmt::format("{}: column {}: a comparison with NULL is never false", where, column.name));
    Result<Constant> fitting = fit_constant(column, constant, where);
    if (!fitting.ok()) return std::move(fitting).status();
    constant = *std::move(fitting);
  }
  return {};
}

}  // namespace

Status check_name(const char* what, const std::string& name) {
  if (name.empty() || name.size() > kNameBytesMax)
    return unfit(fmt::format("{} name '{}' has {} bytes, allowed are 1 to {}", what,
                             name.substr(0, kNameBytesMax), name.size(), kNameBytesMax));
  if (name.find('\0') != std::string::npos)
    return unfit(fmt::format("{} name contains a zero byte", what));
  if (name == kRowIdName)
    return unfit(fmt::format("{} name '{}' is kept for the ids of rows", what, name));
  return {};
}

std::size_t position_of(const TableSchema& schema, const std::string& column) noexcept {
  for (std::size_t i = 0; i < schema.columns.size(); ++i)
    if (schema.columns[i].name == column && !schema.columns[i].dropped) return i;
  return schema.columns.size();
}

bool names(const std::vector<std::string>& columns, const std::string& column) {
  return std::find(columns.begin(), columns.end(), column) != columns.end();
}

Result<Constant> fit_constant(const ColumnSchema& column, const Constant& constant,
                              const std::string& where) {
  if (constant.is_null()) return constant;
  const Value given = constant.value();
  const std::optional<Value> exact = exact_value(given, column.type, column.scale);
  if (!exact.has_value())
    return unfit(fmt::format("{}: column {} of type {}: {} {} does not fit{}", where, column.name,
                             to_string(column.type), to_string(given.type()), constant.to_string(),
                             column.type == Type::kDecimal && given.type() == Type::kDouble
                                 ? ": give Value::decimal(\"12.34\")"
                                 : ""));
  const Value value = columns::normalised(*exact, column.type).with_scale(column.scale);
  if (value.as_string().size() > kConstantBytesMax)
    return unfit(fmt::format("{}: column {}: a constant of {} bytes, at most {}", where,
                             column.name, value.as_string().size(), kConstantBytesMax));
  return Constant(value);
}

Status complete_auto_increment(TableSchema& schema) {
  const ColumnSchema* first = nullptr;
  for (ColumnSchema& column : schema.columns) {
    if (!column.auto_increment) continue;
    const auto refused = [&](std::string_view why) {
      return Status(StatusCode::kInvalidArgument, SchemaPart::column(schema.name, column.name),
                    why);
    };
    if (!is_integer_type(column.type))
      return refused(fmt::format("auto-increment of type {}, allowed are int32 and int64",
                                 to_string(column.type)));
    if (column.default_value.has_value())
      return refused("an auto-increment column cannot have a default");
    if (first != nullptr)
      return refused(fmt::format("column {} is auto-increment already, a table can have only one",
                                 first->name));
    first = &column;
    column.nullable = false;
  }
  return {};
}

Status complete_default(const TableSchema& schema, ColumnSchema& column) {
  if (!column.default_value.has_value()) return {};
  const std::string where = fmt::format("table {}, default", schema.name);
  if (column.default_value->is_null() && !column.nullable)
    return unfit(fmt::format("{}: column {}: NULL is not allowed", where, column.name));
  Result<Constant> fitting = fit_constant(column, *column.default_value, where);
  if (!fitting.ok()) return std::move(fitting).status();
  column.default_value = *std::move(fitting);
  return {};
}

Status complete_check(const TableSchema& schema, CheckSchema& check) {
  const std::string where = fmt::format("table {}, check {}", schema.name, check.name);
  if (!check.condition.error().empty())
    return unfit(fmt::format("{}: {}", where, check.condition.error()));
  std::vector<Condition::Node> nodes = check.condition.nodes();
  if (nodes.empty())
    return unfit(fmt::format("{}: 0 comparisons and combinations, allowed are 1 to {}", where,
                             Condition::kNodesMax));
  std::size_t wanted = 1;
  std::size_t constants = 0;
  for (Condition::Node& node : nodes) {
    if (wanted == 0) return unfit(fmt::format("{}: parts that are in no combination", where));
    --wanted;
    if (node.kind < Kind::kEqual || node.kind > Kind::kNone)
      return unfit(fmt::format("{}: unknown kind {}", where, static_cast<int>(node.kind)));
    if (node.kind >= Kind::kAll) {
      const bool has_operands =
          !node.column.empty() || !node.other.empty() || !node.constants.empty();
      if (has_operands || node.parts == 0 || (node.kind == Kind::kNone && node.parts != 1))
        return unfit(fmt::format("{}: a combination of {} parts", where, node.parts));
      wanted += node.parts;
      continue;
    }
    node.parts = 0;
    if (Status s = check_leaf(schema, node, where); !s.ok()) return s;
    constants += node.constants.size();
  }
  if (wanted != 0) return unfit(fmt::format("{}: {} parts are missing", where, wanted));
  if (constants > kConstantsMax)
    return unfit(fmt::format("{}: {} constants, at most {}", where, constants, kConstantsMax));
  check.condition = Condition::of(std::move(nodes));
  return {};
}

void encode_constant(SchemaWriter& out, const Constant& constant) {
  const Value value = constant.value();
  out.u8(value.is_null() ? 0 : static_cast<std::uint8_t>(value.type()));
  if (value.is_null()) return;
  if (is_text_type(value.type())) {
    out.text(value.as_string());
  } else {
    out.u64(static_cast<std::uint64_t>(value.raw()));
  }
}

Constant decode_constant(SchemaReader& in, const ColumnSchema& column) {
  const std::uint8_t type = in.u8();
  if (type == 0) return {};
  if (is_text_type(static_cast<Type>(type))) {
    const std::string text = in.text();
    return Value::from_bytes(static_cast<Type>(type), text);
  }
  const auto raw = static_cast<std::int64_t>(in.u64());
  return Value::from_raw(static_cast<Type>(type), raw).with_scale(column.scale);
}

void encode_check(SchemaWriter& out, const TableSchema& schema, const CheckSchema& check) {
  out.name(check.name);
  out.u16(static_cast<std::uint16_t>(check.condition.nodes().size()));
  for (const Condition::Node& node : check.condition.nodes()) {
    out.u8(static_cast<std::uint8_t>(node.kind));
    if (node.kind >= Kind::kAll) {
      out.u16(node.parts);
      continue;
    }
    out.u16(static_cast<std::uint16_t>(position_of(schema, node.column)));
    out.u8(node.other.empty() ? 0 : 1);
    if (!node.other.empty()) {
      out.u16(static_cast<std::uint16_t>(position_of(schema, node.other)));
      continue;
    }
    out.u16(static_cast<std::uint16_t>(node.constants.size()));
    for (const Constant& constant : node.constants) encode_constant(out, constant);
  }
}

Result<CheckSchema> decode_check(SchemaReader& in, const TableSchema& schema) {
  CheckSchema check;
  check.name = in.name();
  const auto corrupt = [&](const char* what, std::size_t found) {
    return Status(StatusCode::kCorrupt,
                  fmt::format("schema in the pool: check {}: {} {}", check.name, what, found));
  };
  const std::size_t count = in.u16();
  if (count > Condition::kNodesMax) return corrupt("nodes", count);
  std::vector<Condition::Node> nodes;
  for (std::size_t i = 0; i < count && !in.failed(); ++i) {
    Condition::Node node;
    node.kind = static_cast<Kind>(in.u8());
    if (node.kind >= Kind::kAll) {
      node.parts = in.u16();
      nodes.push_back(std::move(node));
      continue;
    }
    const std::size_t column = in.u16();
    if (column >= schema.columns.size()) return corrupt("column", column);
    node.column = schema.columns[column].name;
    const std::uint8_t form = in.u8();
    if (form > 1) return corrupt("form", form);
    const std::size_t operand = in.u16();
    if (form == 1) {
      if (operand >= schema.columns.size()) return corrupt("column", operand);
      node.other = schema.columns[operand].name;
    } else {
      if (operand > kConstantsMax) return corrupt("constants", operand);
      for (std::size_t k = 0; k < operand && !in.failed(); ++k)
        node.constants.push_back(decode_constant(in, schema.columns[column]));
    }
    nodes.push_back(std::move(node));
  }
  check.condition = Condition::of(std::move(nodes));
  return check;
}

}  // namespace flugs::engine
