// Checks in the model.
#include <algorithm>

#include "test/model/model_database.h"

namespace flugs::test {

namespace {

using Kind = Condition::Kind;

enum class Truth : std::uint8_t { kFalse, kUnknown, kTrue };

Truth truth(bool is_true) { return is_true ? Truth::kTrue : Truth::kFalse; }

bool compares(Kind kind, int order) {
  switch (kind) {
    case Kind::kEqual:
      return order == 0;
    case Kind::kNotEqual:
      return order != 0;
    case Kind::kLess:
      return order < 0;
    case Kind::kLessEqual:
      return order <= 0;
    case Kind::kGreater:
      return order > 0;
    default:
      return order >= 0;
  }
}

Truth truth_of_leaf(const TableSchema& schema, const Condition::Node& node, const ModelRow& row) {
  const std::size_t column = position_of(schema, node.column);
  const ModelValue& left = row[column];
  if (node.kind == Kind::kIsNull) return truth(left.null);
  if (node.kind == Kind::kIsNotNull) return truth(!left.null);
  if (left.null) return Truth::kUnknown;
  const auto constant = [&](const Constant& c) { return ModelValue::of(left.type, c.value()); };
  if (node.kind == Kind::kIn)
    return truth(std::any_of(node.constants.begin(), node.constants.end(),
                             [&](const Constant& c) { return compare(left, constant(c)) == 0; }));
  const ModelValue right =
      node.other.empty() ? constant(node.constants[0]) : row[position_of(schema, node.other)];
  if (right.null) return Truth::kUnknown;
  if (node.kind == Kind::kStartsWith) return truth(left.text.starts_with(right.text));
  if (node.kind == Kind::kEndsWith) return truth(left.text.ends_with(right.text));
  if (node.kind == Kind::kContains) return truth(left.text.find(right.text) != std::string::npos);
  return truth(compares(node.kind, compare(left, right)));
}

Truth truth_of(const TableSchema& schema, const std::vector<Condition::Node>& nodes,
               std::size_t& next, const ModelRow& row) {
  const Condition::Node& node = nodes[next++];
  if (node.kind < Kind::kAll) return truth_of_leaf(schema, node, row);
  if (node.kind == Kind::kNone) {
    const Truth part = truth_of(schema, nodes, next, row);
    return part == Truth::kUnknown ? part : truth(part == Truth::kFalse);
  }
  Truth all = node.kind == Kind::kAll ? Truth::kTrue : Truth::kFalse;
  for (std::uint16_t i = 0; i < node.parts; ++i) {
    const Truth part = truth_of(schema, nodes, next, row);
    all = node.kind == Kind::kAll ? std::min(all, part) : std::max(all, part);
  }
  return all;
}

}  // namespace

bool holds(const TableSchema& schema, const Condition& condition, const ModelRow& row) {
  std::size_t next = 0;
  return truth_of(schema, condition.nodes(), next, row) != Truth::kFalse;
}

bool looks_at(const TableSchema& schema, const Condition& condition, std::size_t column) {
  const std::string& name = schema.columns[column].name;
  return std::any_of(condition.nodes().begin(), condition.nodes().end(),
                     [&](const Condition::Node& node) {
                       return node.kind < Kind::kAll && (node.column == name || node.other == name);
                     });
}

}  // namespace flugs::test
