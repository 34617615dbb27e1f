#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flugs/value.h"

namespace flugs {

/// A value, or NULL, that owns its bytes. Schemas consist of such constants.
///
/// Thread-safety: a plain value type.
class Constant {
 public:
  /// NULL.
  Constant() = default;
  Constant(const Value& value)  // NOLINT(google-explicit-constructor)
      : raw_(value.raw()),
        text_(value.as_string()),
        type_(value.type()),
        scale_(value.scale()),
        present_(!value.is_null()) {}
  /// Anything that converts to a Value; text is copied.
  template <typename T>
    requires(std::constructible_from<Value, const T&> && !std::same_as<T, Value>)
  Constant(const T& value) : Constant(Value(value)) {}  // NOLINT(google-explicit-constructor)

  bool is_null() const noexcept { return !present_; }
  /// A view of this constant, which must outlive it.
  Value value() const noexcept;
  /// For people. A decimal has its point; a long text is cut off.
  std::string to_string() const;

 private:
  std::int64_t raw_ = 0;
  std::string text_;
  Type type_ = Type::kBool;
  std::uint8_t scale_ = 0;
  bool present_ = false;
};

/// A condition that every row must meet, in a form that a pool keeps: comparisons of a column with
/// a constant or with another column, lists, tests of texts, and combinations of these. It has
/// three truth values as in SQL: a comparison with NULL is unknown, and a row meets a check unless
/// the result is false.
///
/// An expression of a query (flugs/expression.h) of this kind converts to a condition:
///     schema.check("grown", col("age") >= 18 || col("guardian").is_not_null());
/// Building a condition never fails; Database::create_table reports errors in it.
///
/// Thread-safety: a plain value type.
class Condition {
 public:
  /// The numeric values are part of the pool format.
  enum class Kind : std::uint8_t {
    kEqual = 1,
    kNotEqual = 2,
    kLess = 3,
    kLessEqual = 4,
    kGreater = 5,
    kGreaterEqual = 6,
    kIn = 7,
    kIsNull = 8,
    kIsNotNull = 9,
    kStartsWith = 10,
    kEndsWith = 11,
    kContains = 12,
    kAll = 13,   ///< and
    kAny = 14,   ///< or
    kNone = 15,  ///< not; has one part
  };
  /// Largest number of comparisons and combinations in one condition.
  static constexpr std::size_t kNodesMax = 64;

  /// Nodes stand in reading order: kAll, kAny and kNone stand before their parts.
  struct Node {
    Kind kind = Kind::kIsNotNull;
    std::uint16_t parts = 0;          ///< number of parts of kAll, kAny and kNone, which use no
                                      ///< other field
    std::string column;               ///< the column to test
    std::string other;                ///< the column to compare with; empty: a constant
    std::vector<Constant> constants;  ///< one; for kIn any number; for kIsNull and kIsNotNull none
  };

  /// No condition; create_table refuses it as a check.
  Condition() = default;

  /// `kind` is one of the first six.
  static Condition compare(std::string column, Kind kind, Constant constant);
  static Condition compare_columns(std::string column, Kind kind, std::string other);
  static Condition between(const std::string& column, Constant low, Constant high);
  static Condition in(std::string column, std::vector<Constant> constants);
  static Condition is_null(std::string column);
  static Condition is_not_null(std::string column);
  /// The next three test a text (string or bytes) byte by byte.
  static Condition starts_with(std::string column, std::string_view prefix);
  static Condition ends_with(std::string column, std::string_view suffix);
  static Condition contains(std::string column, std::string_view part);
  static Condition all_of(const std::vector<Condition>& parts);
  static Condition any_of(const std::vector<Condition>& parts);
  static Condition negated(const Condition& part);
  /// A condition that create_table refuses with the reason `why`.
  static Condition wrong(std::string why);
  /// A condition made of `nodes`; Database::create_table says whether they fit each other.
  static Condition of(std::vector<Node> nodes);

  const std::vector<Node>& nodes() const noexcept { return nodes_; }
  const std::string& error() const noexcept { return error_; }
  /// For people: "age >= 18 or guardian is not null".
  std::string to_string() const;

 private:
  static Condition combined(Kind kind, const std::vector<Condition>& parts);

  std::vector<Node> nodes_;
  std::string error_;
};
static_assert(std::is_nothrow_move_constructible_v<Constant> &&
              std::is_nothrow_move_constructible_v<Condition>);

}  // namespace flugs
