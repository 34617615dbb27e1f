#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flugs/condition.h"
#include "flugs/function_ref.h"
#include "flugs/schema.h"
#include "flugs/status.h"
#include "flugs/value.h"

namespace flugs::engine {

/// A check of a table, with its columns resolved: the condition that each written row must fulfil.
///
/// Thread-safety: immutable.
class CheckConstraint {
 public:
  /// The schema must have passed complete_schema; schema and check must outlive the constraint.
  CheckConstraint(const TableSchema& schema, const CheckSchema& check);

  const std::string& name() const noexcept { return check_.name; }
  /// Whether the check uses the column.
  bool looks_at(std::size_t column) const noexcept;
  /// Whether the check is not false for a row whose columns are `value(column)`, normalised.
  bool holds(FunctionRef<Value(std::size_t column)> value) const;
  /// kConstraintViolated with the message "table t, check c: age >= 18 does not hold for age = 12",
  /// which ends with `place`.
  Status violated_by(FunctionRef<Value(std::size_t column)> value,
                     std::string_view place = {}) const;

 private:
  enum class Truth : std::uint8_t { kFalse, kUnknown, kTrue };
  struct Step {
    Condition::Kind kind;
    std::uint16_t parts;
    std::uint16_t column;
    std::uint16_t other;  // kNoColumn: constants
    std::vector<Value> constants;
  };
  static constexpr std::uint16_t kNoColumn = 0xFFFF;

  Truth truth_of(std::size_t& next, FunctionRef<Value(std::size_t column)> value) const;
  static Truth truth_of_leaf(const Step& step, FunctionRef<Value(std::size_t column)> value);

  const TableSchema& schema_;
  const CheckSchema& check_;
  std::vector<Step> steps_;  // constants are views of those in the schema
  std::vector<std::uint16_t> columns_;
};

}  // namespace flugs::engine
