#include "tables/data/check_constraint.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/shown.h"
#include "tables/catalog/schema_checks.h"
#include "tables/keys/key_compare.h"

namespace flugs::engine {

using NodeKind = Condition::Kind;

CheckConstraint::CheckConstraint(const TableSchema& schema, const CheckSchema& check)
    : schema_(schema), check_(check) {
  for (const Condition::Node& node : check.condition.nodes()) {
    Step step{node.kind, node.parts, kNoColumn, kNoColumn, {}};
    if (node.kind < NodeKind::kAll) {
      step.column = static_cast<std::uint16_t>(position_of(schema, node.column));
      FLUGS_CHECK(step.column < schema.columns.size());
      columns_.push_back(step.column);
    }
    if (!node.other.empty()) {
      step.other = static_cast<std::uint16_t>(position_of(schema, node.other));
      FLUGS_CHECK(step.other < schema.columns.size());
      columns_.push_back(step.other);
    }
    for (const Constant& constant : node.constants) step.constants.push_back(constant.value());
    steps_.push_back(std::move(step));
  }
  std::sort(columns_.begin(), columns_.end());
  columns_.erase(std::unique(columns_.begin(), columns_.end()), columns_.end());
}

bool CheckConstraint::looks_at(std::size_t column) const noexcept {
  return std::find(columns_.begin(), columns_.end(), column) != columns_.end();
}

bool CheckConstraint::holds(FunctionRef<Value(std::size_t column)> value) const {
  std::size_t next = 0;
  const Truth truth = truth_of(next, value);
  FLUGS_DCHECK(next == steps_.size());
  return truth != Truth::kFalse;
}

Status CheckConstraint::violated_by(FunctionRef<Value(std::size_t column)> value,
                                    std::string_view place) const {
  std::string found;
  for (const std::uint16_t column : columns_)
    found += fmt::format("{}{} = {}", found.empty() ? "" : ", ", schema_.columns[column].name,
                         shown(value(column).with_scale(schema_.columns[column].scale)));
  return Status(
      StatusCode::kConstraintViolated, SchemaPart::check(schema_.name, check_.name),
      fmt::format("{} does not hold for {}{}", check_.condition.to_string(), found, place));
}

// The least of the parts of kAll, the greatest of kAny. Skips parts that no longer matter.
CheckConstraint::Truth CheckConstraint::truth_of(
    std::size_t& next, FunctionRef<Value(std::size_t column)> value) const {
  FLUGS_DCHECK(next < steps_.size());
  const Step& step = steps_[next++];
  switch (step.kind) {
    case NodeKind::kAll:
    case NodeKind::kAny: {
      Truth truth = step.kind == NodeKind::kAll ? Truth::kTrue : Truth::kFalse;
      for (std::uint16_t i = 0; i < step.parts; ++i) {
        const Truth part = truth_of(next, value);
        truth = step.kind == NodeKind::kAll ? std::min(truth, part) : std::max(truth, part);
      }
      return truth;
    }
    case NodeKind::kNone: {
      const Truth part = truth_of(next, value);
      if (part == Truth::kUnknown) return part;
      return part == Truth::kTrue ? Truth::kFalse : Truth::kTrue;
    }
    default:
      return truth_of_leaf(step, value);
  }
}

CheckConstraint::Truth CheckConstraint::truth_of_leaf(
    const Step& step, FunctionRef<Value(std::size_t column)> value) {
  const auto truth = [](bool is_true) { return is_true ? Truth::kTrue : Truth::kFalse; };
  FLUGS_DCHECK(step.column != kNoColumn);
  const Value left = value(step.column);
  if (step.kind == NodeKind::kIsNull) return truth(left.is_null());
  if (step.kind == NodeKind::kIsNotNull) return truth(!left.is_null());
  if (left.is_null()) return Truth::kUnknown;
  if (step.kind == NodeKind::kIn)
    return truth(std::any_of(step.constants.begin(), step.constants.end(),
                             [&](const Value& one) { return compare_values(left, one) == 0; }));
  FLUGS_DCHECK(step.other != kNoColumn || !step.constants.empty());
  const Value right = step.other == kNoColumn ? step.constants[0] : value(step.other);
  if (right.is_null()) return Truth::kUnknown;
  switch (step.kind) {
    case NodeKind::kStartsWith:
      return truth(left.as_string().starts_with(right.as_string()));
    case NodeKind::kEndsWith:
      return truth(left.as_string().ends_with(right.as_string()));
    case NodeKind::kContains:
      return truth(left.as_string().find(right.as_string()) != std::string_view::npos);
    default:
      break;
  }
  const int order = compare_values(left, right);
  switch (step.kind) {
    case NodeKind::kEqual:
      return truth(order == 0);
    case NodeKind::kNotEqual:
      return truth(order != 0);
    case NodeKind::kLess:
      return truth(order < 0);
    case NodeKind::kLessEqual:
      return truth(order <= 0);
    case NodeKind::kGreater:
      return truth(order > 0);
    default:
      return truth(order >= 0);
  }
}

}  // namespace flugs::engine
