#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/check.h"
#include "query/expressions/expr_node.h"
#include "query/expressions/like_pattern.h"
#include "query/vectors/integer_set.h"
#include "query/vectors/key_filter.h"
#include "query/vectors/text_store.h"
#include "query/vectors/vec.h"

namespace flugs::query {

struct BoundExpr;
class RegularExpression;
/// Fails with kOverflow: a result of the expression does not fit its type.
[[noreturn]] void fail_by_overflow(const BoundExpr& expr);

/// The value of an expression of one column, for each code of the column's domain.
struct LookupTable {
  std::once_flag once;
  bool by_value =
      false;  ///< evaluation failed for an entry, which perhaps no row has, or for lack of memory
  // The last entry, behind those of all codes, is NULL's.
  std::vector<std::uint8_t> nulls;
  bool has_nulls = false;
  std::vector<std::int64_t> ints;  ///< doubles as bits, too
  std::vector<std::string_view> texts;
  std::vector<std::uint32_t> codes;  ///< codes of the texts, in the node's result domain
};

/// An expression whose columns are positions in a schema and whose types are known. Its result is
/// in the Evaluator of the worker that evaluates it, in the slot of the node.
struct BoundExpr {
  Op op = Op::kConstant;
  DataType type;
  Form form = Form::kInt;
  std::vector<std::unique_ptr<BoundExpr>> args;
  std::uint32_t slot = 0;
  std::string label;  ///< the user's text, for messages

  std::uint32_t column = 0;                         ///< kColumn, kLookup
  std::shared_ptr<const CodeDomain> domain;         ///< domain of that column's codes, if it has
                                                    ///< codes
  std::shared_ptr<const CodeDomain> result_domain;  ///< domain of a result of form kCode
  Value value;                                      ///< kConstant; a text is in a TextStore
  Vec constant;                                     ///< kConstant, kBatchRows times
  bool is_untyped_null = false;                     ///< kConstant
  std::string text;                                 ///< patterns
  std::uint32_t first = 0, length = 0;              ///< as in ExprNode; kRescale: the exponent
  std::int64_t factors[2] = {1, 1};                 ///< comparisons of different units; kCoarsen;
                                                    ///< rounding: the divisor, the factor behind
  std::shared_ptr<const LikePattern> like;          ///< kLike
  std::shared_ptr<const RegularExpression> regexp;  ///< kMatches, kRegexpExtract, kRegexpReplace
  TextStore* texts_kept = nullptr;                  ///< of functions that compute texts
  std::shared_ptr<const KeyFilter> keys;            ///< kIsKey
  IntegerSet ints;                                  ///< kIn; doubles by their bits
  std::unordered_set<std::string_view> texts;       ///< kIn
  bool in_has_null = false;
  // kCase: the columns that its branches need, and their forms; each has a slot.
  std::vector<std::uint32_t> columns;
  std::vector<Form> column_forms;
  std::uint32_t first_slot = 0;
  std::unique_ptr<LookupTable> lookup;
};
using BoundPtr = std::unique_ptr<BoundExpr>;

/// Turns expressions into bound ones. All expressions of one Evaluator come from one Binder.
class Binder {
 public:
  /// The texts of constants go to `texts`, and later copies of computed ones. An expression of one
  /// coded column is evaluated once per code if the domain has at most `lookup_codes_max` codes.
  Binder(TextStore& texts, const Schema& schema, std::uint32_t lookup_codes_max = kLookupCodesMax)
      : texts_(texts), schema_(schema), lookup_codes_max_(lookup_codes_max) {}

  /// Fails with kInvalidArgument: no such column, types that do not fit. The result is in the lane
  /// of its type or, if `may_be_coded`, in codes where that costs nothing.
  BoundPtr bind(const Expr& expr, bool may_be_coded = false);
  /// Must be of type bool.
  BoundPtr bind_condition(const Expr& expr);
  /// The condition that a column of integers may have a key of a join's right side. Each key of the
  /// left side has to fulfil it.
  BoundPtr bind_is_key(std::uint32_t column, std::shared_ptr<const KeyFilter> keys,
                       std::string label);
  std::uint32_t slot_count() const noexcept { return slots_; }

  /// The type in which values of both types compare; false: none.
  static bool common_type(DataType a, DataType b, DataType& common);
  /// Converts to a type that common_type gave.
  void convert_to(BoundPtr& expr, DataType type);
  /// Converts an expression of this binder and one of another one so that they are equal where
  /// their values are, for all values: a value without an equal one of the other type becomes NULL.
  /// False: they do not compare.
  bool make_equatable(BoundPtr& own, BoundPtr& others, Binder& other);

  static constexpr std::uint32_t kLookupCodesMax = 1u << 16;

 private:
  BoundPtr node(Op op, DataType type, std::string label);
  BoundPtr bind_node(const Expr& expr);
  BoundPtr bind_column(const ExprNode& from);
  BoundPtr bind_constant(const Value& value, DataType type, std::string label);
  BoundPtr bind_literal(const Literal& literal, std::string label);
  BoundPtr bind_comparison(const ExprNode& from, std::string label);
  static void compare_with_constant(BoundExpr& comparison, BoundExpr& constant, bool is_left,
                                    DataType other);
  BoundPtr bind_logic(const ExprNode& from, std::string label);
  BoundPtr bind_in(const ExprNode& from, std::string label);
  /// Adds a value of an IN-list to the texts of `in`, or to `ints`.
  void add_member(BoundExpr& in, const Literal& literal, std::vector<std::int64_t>& ints);
  BoundPtr bind_text_predicate(const ExprNode& from, std::string label);
  BoundPtr bind_arithmetic(const ExprNode& from, std::string label);
  BoundPtr bind_time_arithmetic(Op op, BoundPtr a, BoundPtr b, std::string label);
  BoundPtr bind_subject(const Expr& from, DataType type_of_null);
  BoundPtr bind_function(const ExprNode& from, std::string label);
  BoundPtr bind_time_function(const ExprNode& from, std::string label);
  BoundPtr bind_text_function(const ExprNode& from, std::string label);
  BoundPtr bind_regexp(const ExprNode& from, std::string label);
  BoundPtr bind_concat(const ExprNode& from, std::string label);
  BoundPtr bind_to_text(BoundPtr subject, std::string label);
  BoundPtr bind_number_function(const ExprNode& from, std::string label);
  BoundPtr bind_real_function(const ExprNode& from, std::string label);
  BoundPtr bind_quotient(const ExprNode& from, std::string label);
  BoundPtr bind_rounding(const ExprNode& from, BoundPtr subject, std::string label);
  BoundPtr bind_to_decimal(BoundPtr subject, std::uint8_t scale, std::string label);
  BoundPtr with_argument(Op op, DataType type, BoundPtr argument, std::string label);
  BoundPtr kept(BoundPtr text);
  BoundPtr bind_case(const ExprNode& from, std::string label);
  BoundPtr convert(Op op, DataType type, BoundPtr from);
  BoundPtr with_lookups(BoundPtr expr);
  static void encode_lookup(BoundExpr& expr);
  void unify(BoundPtr& a, BoundPtr& b, std::string_view what);
  BoundPtr rescaled(BoundPtr expr, std::uint8_t scale);
  BoundPtr coarsened(BoundPtr expr, DataType type);
  static void give_type(BoundPtr& null, DataType type);
  static void fill(BoundExpr& constant);

  TextStore& texts_;
  const Schema& schema_;
  std::uint32_t lookup_codes_max_;
  std::uint32_t slots_ = 0;
};

/// The columns that an expression names, each once. Tells which columns an input must provide.
void collect_columns(const Expr& expr, std::vector<std::string>& names);
/// The columns of a bound expression, by position, each once.
void collect_columns(const BoundExpr& expr, std::vector<std::uint32_t>& columns);
/// Evaluates a lookup's expression once for each code; from any thread.
void fill_lookup(const BoundExpr& expr);

/// Evaluates bound expressions for one worker.
class Evaluator {
 public:
  explicit Evaluator(std::uint32_t slot_count) : slots_(slot_count) {}

  /// The result is valid until the expression is evaluated again, and may view the batch's own
  /// columns. Fails with kOverflow, or with kOutOfMemory if computed texts exceed the budget.
  ColumnView evaluate(const BoundExpr& expr, const Batch& batch);
  /// Writes the positions of the rows for which the condition is true, ascending; returns their
  /// number.
  std::size_t select(const BoundExpr& condition, const Batch& batch, std::uint32_t* positions);

  /// Forgets the copies (kKeepText) of earlier batches. No view of them may be left.
  void forget_kept_texts() noexcept {
    if (kept_ != nullptr) kept_->clear();
  }
  /// The same, and frees the memory.
  void give_up_kept_texts() noexcept {
    if (kept_ != nullptr) kept_->give_up();
  }

 private:
  ColumnView column(const BoundExpr& expr, const Batch& batch);
  ColumnView lookup(const BoundExpr& expr, const Batch& batch);
  ColumnView comparison(const BoundExpr& expr, const Batch& batch);
  ColumnView logic(const BoundExpr& expr, const Batch& batch);
  ColumnView negation(const BoundExpr& expr, const Batch& batch);
  ColumnView null_test(const BoundExpr& expr, const Batch& batch);
  ColumnView membership(const BoundExpr& expr, const Batch& batch);
  ColumnView key_test(const BoundExpr& expr, const Batch& batch);
  ColumnView text_predicate(const BoundExpr& expr, const Batch& batch);
  ColumnView arithmetic(const BoundExpr& expr, const Batch& batch);
  ColumnView integer_arithmetic(const BoundExpr& expr, ColumnView a, ColumnView b, std::size_t n);
  ColumnView real_arithmetic(const BoundExpr& expr, ColumnView a, ColumnView b, std::size_t n);
  ColumnView conversion(const BoundExpr& expr, const Batch& batch);
  ColumnView coarsened(const BoundExpr& expr, const Batch& batch);
  ColumnView function(const BoundExpr& expr, const Batch& batch);
  ColumnView number_function(const BoundExpr& expr, const Batch& batch);
  ColumnView integer_function(const BoundExpr& expr, const Batch& batch);
  ColumnView real_function(const BoundExpr& expr, const Batch& batch);
  ColumnView integer_of_real(const BoundExpr& expr, const Batch& batch);
  ColumnView quotient(const BoundExpr& expr, const Batch& batch);
  ColumnView power(const BoundExpr& expr, const Batch& batch);
  ColumnView parsed(const BoundExpr& expr, const Batch& batch);
  ColumnView calendar(const BoundExpr& expr, const Batch& batch);
  ColumnView time_of_day(const BoundExpr& expr, const Batch& batch);
  ColumnView truncated_time(const BoundExpr& expr, const Batch& batch);
  ColumnView day_of_moment(const BoundExpr& expr, const Batch& batch);
  ColumnView months_later(const BoundExpr& expr, const Batch& batch);
  ColumnView text_measure(const BoundExpr& expr, const Batch& batch);
  ColumnView text_position(const BoundExpr& expr, const Batch& batch);
  ColumnView text_part(const BoundExpr& expr, const Batch& batch);
  ColumnView computed_text(const BoundExpr& expr, const Batch& batch);
  ColumnView regexp_test(const BoundExpr& expr, const Batch& batch);
  ColumnView regexp_part(const BoundExpr& expr, const Batch& batch);
  ColumnView regexp_replaced(const BoundExpr& expr, const Batch& batch);
  ColumnView concatenation(const BoundExpr& expr, const Batch& batch);
  ColumnView kept_text(const BoundExpr& expr, const Batch& batch);
  ColumnView case_when(const BoundExpr& expr, const Batch& batch);
  Batch subset(const BoundExpr& expr, const Batch& batch, const std::vector<std::uint32_t>& rows);

  /// NULL where either operand is; null when no value is NULL.
  const std::uint8_t* merged_nulls(const BoundExpr& expr, const std::uint8_t* a,
                                   const std::uint8_t* b, std::size_t n);
  Vec& out(const BoundExpr& expr) noexcept {
    FLUGS_DCHECK(expr.slot < slots_.size());
    return slots_[expr.slot];
  }

  /// Empty memory for the texts of a node, until it is evaluated again.
  TextArena& arena(const BoundExpr& expr);

  std::vector<Vec> slots_;
  std::vector<std::unique_ptr<TextArena>> arenas_;  // by slot, those that compute texts
  TextArena* kept_ = nullptr;                       // in the run's TextStore
};

}  // namespace flugs::query
