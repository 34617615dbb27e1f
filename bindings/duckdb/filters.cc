// Which conditions of DuckDB a scan of flugs tests.

#include <functional>
#include <optional>
#include <utility>

#include "bindings/duckdb/scan.h"

namespace flugs::duckdb {

namespace {

using query::Expr;

/// A condition in flugs' words. Not exact: it holds for more rows, so DuckDB must test again.
struct Translated {
  Expr condition;
  bool is_exact = true;
};
/// Nothing: flugs has no words for it, or they might mean something else.
using Translation = std::optional<Translated>;

/// Translates the conditions that DuckDB offers to a scan. Only what means the same for every value
/// is taken: both sides of a comparison have the column's own type, so there is no cast, and no
/// collation, which DuckDB writes as functions.
class Translator {
 public:
  Translator(const ScanBind& bind, std::vector<idx_t> columns)
      : bind_(bind), columns_(std::move(columns)) {}

  Result<Translation> condition(duckdb_v2_expression_handle node) const;

 private:
  Result<DUCKDB_V2_EXPRESSION_TYPE> kind(duckdb_v2_expression_handle node) const;
  Result<std::vector<duckdb_v2_expression_handle>> children(duckdb_v2_expression_handle node) const;
  Result<const ScanColumn*> column(duckdb_v2_expression_handle node) const;
  Result<std::optional<Expr>> constant(duckdb_v2_expression_handle node,
                                       const ScanColumn& of) const;
  Result<std::optional<Expr>> operand(duckdb_v2_expression_handle node, const ScanColumn& of) const;
  Result<Translation> comparison(DUCKDB_V2_EXPRESSION_TYPE kind,
                                 duckdb_v2_expression_handle node) const;
  Result<Translation> between(duckdb_v2_expression_handle node) const;
  Result<Translation> in_list(duckdb_v2_expression_handle node, bool negated) const;
  Result<Translation> null_test(duckdb_v2_expression_handle node, bool is_null) const;
  Result<Translation> combination(duckdb_v2_expression_handle node, bool all) const;
  Result<Translation> negation(duckdb_v2_expression_handle node) const;
  Result<Translation> text_test(duckdb_v2_expression_handle node) const;

  const ScanBind& bind_;
  const std::vector<idx_t> columns_;  // those of the table that the scan's list has
};

Result<DUCKDB_V2_EXPRESSION_TYPE> Translator::kind(duckdb_v2_expression_handle node) const {
  DUCKDB_V2_EXPRESSION_TYPE type = DUCKDB_V2_EXPRESSION_TYPE_INVALID;
  FLUGS_TRY(ask(duckdb_v2_expression_get_type, node, &type));
  return type;
}

Result<std::vector<duckdb_v2_expression_handle>> Translator::children(
    duckdb_v2_expression_handle node) const {
  idx_t count = 0;
  FLUGS_TRY(ask(duckdb_v2_expression_get_child_count, node, &count));
  std::vector<duckdb_v2_expression_handle> all(count);
  for (idx_t i = 0; i < count; ++i)
    FLUGS_TRY(ask(duckdb_v2_expression_get_child, node, i, &all[i]));
  return all;
}

// Null: the node is no column of the table.
Result<const ScanColumn*> Translator::column(duckdb_v2_expression_handle node) const {
  const ScanColumn* const none = nullptr;
  FLUGS_ASSIGN(const DUCKDB_V2_EXPRESSION_TYPE type, kind(node));
  if (type != DUCKDB_V2_EXPRESSION_TYPE_BOUND_COLUMN_REF) return none;
  idx_t index = 0;
  FLUGS_TRY(ask(duckdb_v2_expression_column_ref_get_index, node, &index));
  if (index >= columns_.size() || columns_[index] >= bind_.columns.size()) return none;
  return &bind_.columns[columns_[index]];
}

template <typename T, typename Get>
Result<T> payload(Get* get, duckdb_v2_value_handle value) {
  T out{};
  FLUGS_TRY(ask(get, value, &out));
  return out;
}

Result<std::optional<Expr>> value_of(duckdb_v2_value_handle value, const ScanColumn& of) {
  using Found = std::optional<Expr>;
  switch (of.type) {
    case Type::kBool: {
      FLUGS_ASSIGN(const bool v, payload<bool>(duckdb_v2_value_get_bool, value));
      return Found(v);
    }
    case Type::kInt32: {
      FLUGS_ASSIGN(const std::int32_t v, payload<std::int32_t>(duckdb_v2_value_get_int, value));
      return Found(v);
    }
    case Type::kInt64: {
      FLUGS_ASSIGN(const std::int64_t v, payload<std::int64_t>(duckdb_v2_value_get_bigint, value));
      return Found(v);
    }
    case Type::kDouble: {
      FLUGS_ASSIGN(const double v, payload<double>(duckdb_v2_value_get_double, value));
      return Found(v);
    }
    case Type::kDecimal: {
      duckdb_v2_hugeint_t units = {0, 0};
      std::uint8_t width = 0;
      std::uint8_t scale = 0;
      FLUGS_TRY(ask(duckdb_v2_value_get_decimal, value, &units, &width, &scale));
      const auto low = static_cast<std::int64_t>(units.lower);
      if (scale != of.scale || units.upper != (low < 0 ? -1 : 0)) return Found();
      return Found(Value::decimal(low, scale));
    }
    case Type::kDate: {
      FLUGS_ASSIGN(const std::int32_t v, payload<std::int32_t>(duckdb_v2_value_get_date, value));
      return Found(Value::date(v));
    }
    case Type::kTimestamp: {
      FLUGS_ASSIGN(const std::int64_t v,
                   payload<std::int64_t>(duckdb_v2_value_get_timestamp, value));
      return Found(Value::timestamp(v));
    }
    case Type::kString: {
      FLUGS_ASSIGN(const duckdb_v2_str v,
                   payload<duckdb_v2_str>(duckdb_v2_value_get_varchar, value));
      return Found(Value::string(view_of(v)));
    }
    case Type::kBytes: {
      FLUGS_ASSIGN(const duckdb_v2_str v, payload<duckdb_v2_str>(duckdb_v2_value_get_blob, value));
      return Found(Value::bytes(view_of(v)));
    }
  }
  return Found();
}

// Nothing: the node is no constant of the column's type.
Result<std::optional<Expr>> Translator::constant(duckdb_v2_expression_handle node,
                                                 const ScanColumn& of) const {
  FLUGS_ASSIGN(const DUCKDB_V2_EXPRESSION_TYPE type, kind(node));
  if (type != DUCKDB_V2_EXPRESSION_TYPE_VALUE_CONSTANT) return std::optional<Expr>();
  OwnedValue value;
  FLUGS_TRY(ask(duckdb_v2_expression_constant_get_value, node, value.out()));
  OwnedType held;
  FLUGS_TRY(ask(duckdb_v2_value_get_logical_type, value.get(), held.out()));
  DUCKDB_V2_LOGICAL_TYPE_ID id = DUCKDB_V2_LOGICAL_TYPE_ID_INVALID;
  FLUGS_TRY(ask(duckdb_v2_logical_type_get_id, held.get(), &id));
  if (id != type_id_of(of.type)) return std::optional<Expr>();
  FLUGS_ASSIGN(const bool null, is_null(value.get()));
  if (null) return std::optional<Expr>(query::constant(Value::null()));
  return value_of(value.get(), of);
}

// A constant of the column's type, or another column of that type.
Result<std::optional<Expr>> Translator::operand(duckdb_v2_expression_handle node,
                                                const ScanColumn& of) const {
  FLUGS_ASSIGN(const ScanColumn* const other, column(node));
  if (other == nullptr) return constant(node, of);
  if (other->type != of.type || other->scale != of.scale) return std::optional<Expr>();
  return std::optional<Expr>(query::col(other->name));
}

Expr compared(DUCKDB_V2_EXPRESSION_TYPE kind, const Expr& a, const Expr& b) {
  switch (kind) {
    case DUCKDB_V2_EXPRESSION_TYPE_COMPARE_EQUAL:
      return a == b;
    case DUCKDB_V2_EXPRESSION_TYPE_COMPARE_NOTEQUAL:
      return a != b;
    case DUCKDB_V2_EXPRESSION_TYPE_COMPARE_LESSTHAN:
      return a < b;
    case DUCKDB_V2_EXPRESSION_TYPE_COMPARE_GREATERTHAN:
      return a > b;
    case DUCKDB_V2_EXPRESSION_TYPE_COMPARE_LESSTHANOREQUALTO:
      return a <= b;
    default:
      return a >= b;
  }
}

// The same comparison with its sides changed.
DUCKDB_V2_EXPRESSION_TYPE turned(DUCKDB_V2_EXPRESSION_TYPE kind) {
  switch (kind) {
    case DUCKDB_V2_EXPRESSION_TYPE_COMPARE_LESSTHAN:
      return DUCKDB_V2_EXPRESSION_TYPE_COMPARE_GREATERTHAN;
    case DUCKDB_V2_EXPRESSION_TYPE_COMPARE_GREATERTHAN:
      return DUCKDB_V2_EXPRESSION_TYPE_COMPARE_LESSTHAN;
    case DUCKDB_V2_EXPRESSION_TYPE_COMPARE_LESSTHANOREQUALTO:
      return DUCKDB_V2_EXPRESSION_TYPE_COMPARE_GREATERTHANOREQUALTO;
    case DUCKDB_V2_EXPRESSION_TYPE_COMPARE_GREATERTHANOREQUALTO:
      return DUCKDB_V2_EXPRESSION_TYPE_COMPARE_LESSTHANOREQUALTO;
    default:
      return kind;
  }
}

Result<Translation> Translator::comparison(DUCKDB_V2_EXPRESSION_TYPE kind,
                                           duckdb_v2_expression_handle node) const {
  FLUGS_ASSIGN(auto sides, children(node));
  if (sides.size() != 2) return Translation();
  FLUGS_ASSIGN(const ScanColumn* left, column(sides[0]));
  if (left == nullptr) {
    std::swap(sides[0], sides[1]);
    kind = turned(kind);
    FLUGS_ASSIGN(left, column(sides[0]));
    if (left == nullptr) return Translation();
  }
  FLUGS_ASSIGN(const std::optional<Expr> right, operand(sides[1], *left));
  if (!right) return Translation();
  return Translation(Translated{compared(kind, query::col(left->name), *right)});
}

// DuckDB makes BETWEEN of two comparisons, and does not say which of the bounds belong to it. So
// the scan leaves both in, and DuckDB tests again.
Result<Translation> Translator::between(duckdb_v2_expression_handle node) const {
  FLUGS_ASSIGN(const auto parts, children(node));
  if (parts.size() != 3) return Translation();
  FLUGS_ASSIGN(const ScanColumn* const tested, column(parts[0]));
  if (tested == nullptr) return Translation();
  FLUGS_ASSIGN(const std::optional<Expr> low, operand(parts[1], *tested));
  FLUGS_ASSIGN(const std::optional<Expr> high, operand(parts[2], *tested));
  if (!low || !high) return Translation();
  return Translation(Translated{query::col(tested->name).between(*low, *high), false});
}

Result<Translation> Translator::in_list(duckdb_v2_expression_handle node, bool negated) const {
  FLUGS_ASSIGN(const auto parts, children(node));
  if (parts.size() < 2) return Translation();
  FLUGS_ASSIGN(const ScanColumn* const tested, column(parts[0]));
  if (tested == nullptr) return Translation();
  std::vector<Expr> constants;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    FLUGS_ASSIGN(std::optional<Expr> one, constant(parts[i], *tested));
    if (!one) return Translation();
    constants.push_back(*std::move(one));
  }
  const Expr found = query::col(tested->name).in(std::move(constants));
  return Translation(Translated{negated ? !found : found});
}

Result<Translation> Translator::null_test(duckdb_v2_expression_handle node, bool is_null) const {
  FLUGS_ASSIGN(const auto parts, children(node));
  if (parts.size() != 1) return Translation();
  FLUGS_ASSIGN(const ScanColumn* const tested, column(parts[0]));
  if (tested == nullptr) return Translation();
  const Expr of = query::col(tested->name);
  return Translation(Translated{is_null ? of.is_null() : of.is_not_null()});
}

// A part of an AND that is left out lets more rows through. An OR needs all its parts.
Result<Translation> Translator::combination(duckdb_v2_expression_handle node, bool all) const {
  FLUGS_ASSIGN(const auto parts, children(node));
  Translation whole;
  bool is_exact = true;
  for (duckdb_v2_expression_handle part : parts) {
    FLUGS_ASSIGN(const Translation one, condition(part));
    is_exact = is_exact && one && one->is_exact;
    if (!one && !all) return Translation();
    if (!one) continue;
    if (!whole)
      whole = one;
    else
      whole->condition =
          all ? whole->condition && one->condition : whole->condition || one->condition;
  }
  if (whole) whole->is_exact = is_exact;
  return whole;
}

Result<Translation> Translator::negation(duckdb_v2_expression_handle node) const {
  FLUGS_ASSIGN(const auto parts, children(node));
  if (parts.size() != 1) return Translation();
  FLUGS_ASSIGN(const Translation one, condition(parts[0]));
  if (!one || !one->is_exact) return Translation();
  return Translation(Translated{!one->condition});
}

// DuckDB makes functions of LIKE with a constant at one end or in the middle. They compare bytes.
Result<Translation> Translator::text_test(duckdb_v2_expression_handle node) const {
  duckdb_v2_identifier_t name = {nullptr, 0};
  FLUGS_TRY(ask(duckdb_v2_expression_function_get_name, node, &name));
  FLUGS_ASSIGN(const auto parts, children(node));
  if (parts.size() != 2) return Translation();
  FLUGS_ASSIGN(const ScanColumn* const tested, column(parts[0]));
  if (tested == nullptr || tested->type != Type::kString) return Translation();
  FLUGS_ASSIGN(const DUCKDB_V2_EXPRESSION_TYPE type, kind(parts[1]));
  if (type != DUCKDB_V2_EXPRESSION_TYPE_VALUE_CONSTANT) return Translation();
  OwnedValue value;
  FLUGS_TRY(ask(duckdb_v2_expression_constant_get_value, parts[1], value.out()));
  FLUGS_ASSIGN(const bool null, is_null(value.get()));
  if (null) return Translation();
  FLUGS_ASSIGN(const std::string part, text_of(value.get()));
  const Expr of = query::col(tested->name);
  const std::string_view function = view_of(name);
  if (function == "prefix" || function == "starts_with" || function == "^@")
    return Translation(Translated{of.starts_with(part)});
  if (function == "suffix" || function == "ends_with")
    return Translation(Translated{of.ends_with(part)});
  if (function == "contains") return Translation(Translated{of.contains(part)});
  return Translation();
}

Result<Translation> Translator::condition(duckdb_v2_expression_handle node) const {
  FLUGS_ASSIGN(const DUCKDB_V2_EXPRESSION_TYPE type, kind(node));
  switch (type) {
    case DUCKDB_V2_EXPRESSION_TYPE_COMPARE_EQUAL:
    case DUCKDB_V2_EXPRESSION_TYPE_COMPARE_NOTEQUAL:
    case DUCKDB_V2_EXPRESSION_TYPE_COMPARE_LESSTHAN:
    case DUCKDB_V2_EXPRESSION_TYPE_COMPARE_GREATERTHAN:
    case DUCKDB_V2_EXPRESSION_TYPE_COMPARE_LESSTHANOREQUALTO:
    case DUCKDB_V2_EXPRESSION_TYPE_COMPARE_GREATERTHANOREQUALTO:
      return comparison(type, node);
    case DUCKDB_V2_EXPRESSION_TYPE_COMPARE_BETWEEN:
      return between(node);
    case DUCKDB_V2_EXPRESSION_TYPE_COMPARE_IN:
      return in_list(node, false);
    case DUCKDB_V2_EXPRESSION_TYPE_COMPARE_NOT_IN:
      return in_list(node, true);
    case DUCKDB_V2_EXPRESSION_TYPE_OPERATOR_IS_NULL:
      return null_test(node, true);
    case DUCKDB_V2_EXPRESSION_TYPE_OPERATOR_IS_NOT_NULL:
      return null_test(node, false);
    case DUCKDB_V2_EXPRESSION_TYPE_CONJUNCTION_AND:
      return combination(node, true);
    case DUCKDB_V2_EXPRESSION_TYPE_CONJUNCTION_OR:
      return combination(node, false);
    case DUCKDB_V2_EXPRESSION_TYPE_OPERATOR_NOT:
      return negation(node);
    case DUCKDB_V2_EXPRESSION_TYPE_BOUND_FUNCTION:
      return text_test(node);
    case DUCKDB_V2_EXPRESSION_TYPE_BOUND_COLUMN_REF: {
      FLUGS_ASSIGN(const ScanColumn* const flag, column(node));
      if (flag == nullptr || flag->type != Type::kBool) return Translation();
      return Translation(Translated{query::col(flag->name) == Expr(true)});
    }
    default:
      return Translation();
  }
}

Status push_all(duckdb_v2_table_function_filter_pushdown_info_handle info) {
  FLUGS_ASSIGN(SharedBind* const kept_bind,
               kept<SharedBind>(duckdb_v2_table_function_filter_pushdown_get_bind_data, info));
  const SharedBind& bind = *kept_bind;
  idx_t count = 0;
  FLUGS_TRY(ask(duckdb_v2_table_function_filter_pushdown_get_column_count, info, &count));
  std::vector<idx_t> columns(count);
  for (idx_t i = 0; i < count; ++i)
    FLUGS_TRY(ask(duckdb_v2_table_function_filter_pushdown_get_column_index, info, i, &columns[i]));
  // DuckDB orders joins by estimates, in which a condition counts that it tests itself. One that it
  // has handed over does not, and the scan seems to give all rows of the table. So among several
  // scans it tests the rows that are left again.
  const bool tests_again = bind->moment->scan_count() > 1;
  const Translator translator(*bind, std::move(columns));
  bind->helpers.clear();  // what helped before is offered again
  FLUGS_TRY(ask(duckdb_v2_table_function_filter_pushdown_get_filter_count, info, &count));
  for (idx_t i = 0; i < count; ++i) {
    duckdb_v2_expression_handle filter = nullptr;
    FLUGS_TRY(ask(duckdb_v2_table_function_filter_pushdown_get_filter, info, i, &filter));
    FLUGS_ASSIGN(Translation found, translator.condition(filter));
    if (!found) continue;
    if (!found->is_exact || tests_again) {
      bind->helpers.push_back(std::move(found->condition));
      continue;
    }
    bind->filters.push_back(std::move(found->condition));
    FLUGS_TRY(ask(duckdb_v2_table_function_filter_pushdown_accept, info, i));
  }
  return {};
}

}  // namespace

void push_filters(duckdb_v2_table_function_filter_pushdown_info_handle info,
                  duckdb_v2_context_handle /*context*/, duckdb_v2_error_info_handle* err) {
  guarded(err, [&] { return push_all(info); });
}

}  // namespace flugs::duckdb
