// Functions of texts, and of values as texts.

#include <algorithm>

#include "base/check.h"
#include "query/expressions/bound_expr.h"
#include "query/expressions/regular_expression.h"

namespace flugs::query {

namespace {

std::string_view trimmed(std::string_view text, Sides sides) noexcept {
  const auto has = [&](Sides side) {
    return (static_cast<unsigned>(sides) & static_cast<unsigned>(side)) != 0;
  };
  while (has(Sides::kLeft) && !text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (has(Sides::kRight) && !text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

char lower_letter(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}
char upper_letter(char c) noexcept {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - ('a' - 'A')) : c;
}

std::string_view with_letters(std::string_view text, bool are_lower, TextArena& arena) {
  if (text.empty()) return {};
  char* const made = arena.add(text.size());
  std::transform(text.begin(), text.end(), made, are_lower ? lower_letter : upper_letter);
  return {made, text.size()};
}

std::size_t characters_of(std::string_view text, DataType type) noexcept {
  return type.type == Type::kBytes ? text.size() : count_characters(text);
}

bool is_null(const ColumnView& view, std::size_t row) noexcept {
  return view.nulls != nullptr && view.nulls[row] != 0;
}

}  // namespace

ColumnView Evaluator::text_measure(const BoundExpr& expr, const Batch& batch) {
  const ColumnView a = evaluate(*expr.args[0], batch);
  const DataType type = expr.args[0]->type;
  std::int64_t* result = out(expr).ints(batch.rows);
  for (std::size_t i = 0; i < batch.rows; ++i) {
    const std::string_view text = a.texts()[i];
    if (expr.op == Op::kFirstByte)
      result[i] = text.empty() ? 0 : static_cast<unsigned char>(text[0]);
    else
      result[i] = static_cast<std::int64_t>(expr.op == Op::kLength ? characters_of(text, type)
                                                                   : text.size());
  }
  return {result, a.nulls};
}

ColumnView Evaluator::text_position(const BoundExpr& expr, const Batch& batch) {
  const ColumnView a = evaluate(*expr.args[0], batch);
  const ColumnView b = evaluate(*expr.args[1], batch);
  const DataType type = expr.args[0]->type;
  std::int64_t* result = out(expr).ints(batch.rows);
  for (std::size_t i = 0; i < batch.rows; ++i) {
    const std::string_view text = a.texts()[i];
    const std::size_t place = text.find(b.texts()[i]);
    result[i] = place == std::string_view::npos
                    ? 0
                    : static_cast<std::int64_t>(characters_of(text.substr(0, place), type)) + 1;
  }
  return {result, merged_nulls(expr, a.nulls, b.nulls, batch.rows)};
}

ColumnView Evaluator::text_part(const BoundExpr& expr, const Batch& batch) {
  const ColumnView a = evaluate(*expr.args[0], batch);
  std::string_view* result = out(expr).texts(batch.rows);
  if (expr.op == Op::kTrim) {
    for (std::size_t i = 0; i < batch.rows; ++i)
      result[i] = trimmed(a.texts()[i], static_cast<Sides>(expr.first));
    return {result, a.nulls};
  }
  FLUGS_DCHECK(expr.op == Op::kSubstring && expr.first >= 1);
  for (std::size_t i = 0; i < batch.rows; ++i) {
    const std::string_view text = a.texts()[i];
    result[i] =
        text.size() < expr.first ? std::string_view() : text.substr(expr.first - 1, expr.length);
  }
  return {result, a.nulls};
}

ColumnView Evaluator::computed_text(const BoundExpr& expr, const Batch& batch) {
  const BoundExpr& from = *expr.args[0];
  const ColumnView a = evaluate(from, batch);
  TextArena& texts = arena(expr);
  std::string_view* result = out(expr).texts(batch.rows);
  if (expr.op != Op::kToText) {
    for (std::size_t i = 0; i < batch.rows; ++i)
      result[i] = with_letters(a.texts()[i], expr.op == Op::kLower, texts);
    return {result, a.nulls};
  }
  FLUGS_DCHECK(from.form != Form::kText && from.form != Form::kCode);
  for (std::size_t i = 0; i < batch.rows; ++i) {
    result[i] = {};
    if (is_null(a, i)) continue;
    const Value value = Value::from_raw(from.type.type, a.ints()[i]);  // doubles by their bits
    result[i] = texts.keep(value.with_scale(from.type.scale).to_string());
  }
  return {result, a.nulls};
}

ColumnView Evaluator::regexp_test(const BoundExpr& expr, const Batch& batch) {
  const ColumnView a = evaluate(*expr.args[0], batch);
  std::int64_t* result = out(expr).ints(batch.rows);
  for (std::size_t i = 0; i < batch.rows; ++i)
    result[i] = !is_null(a, i) && expr.regexp->matches(a.texts()[i]) ? 1 : 0;
  return {result, a.nulls};
}

ColumnView Evaluator::regexp_part(const BoundExpr& expr, const Batch& batch) {
  const ColumnView a = evaluate(*expr.args[0], batch);
  std::string_view* result = out(expr).texts(batch.rows);
  for (std::size_t i = 0; i < batch.rows; ++i)
    result[i] = is_null(a, i) ? std::string_view() : expr.regexp->extract(a.texts()[i]);
  return {result, a.nulls};
}

ColumnView Evaluator::regexp_replaced(const BoundExpr& expr, const Batch& batch) {
  const ColumnView a = evaluate(*expr.args[0], batch);
  TextArena& texts = arena(expr);
  GrowingText made(expr.texts_kept->budget());
  std::string_view* result = out(expr).texts(batch.rows);
  for (std::size_t i = 0; i < batch.rows; ++i) {
    result[i] = is_null(a, i) ? std::string_view() : a.texts()[i];
    if (!is_null(a, i) && expr.regexp->replace(a.texts()[i], made))
      result[i] = texts.keep(made.view());
  }
  return {result, a.nulls};
}

ColumnView Evaluator::concatenation(const BoundExpr& expr, const Batch& batch) {
  std::vector<ColumnView> parts;
  const std::uint8_t* nulls = nullptr;
  for (const BoundPtr& arg : expr.args) {
    parts.push_back(evaluate(*arg, batch));
    nulls = merged_nulls(expr, nulls, parts.back().nulls, batch.rows);
  }
  TextArena& texts = arena(expr);
  std::string_view* result = out(expr).texts(batch.rows);
  for (std::size_t i = 0; i < batch.rows; ++i) {
    result[i] = {};
    if (nulls != nullptr && nulls[i] != 0) continue;
    std::size_t bytes = 0;
    for (const ColumnView& part : parts) bytes += part.texts()[i].size();
    if (bytes == 0) continue;
    char* const made = texts.add(bytes);
    char* next = made;
    for (const ColumnView& part : parts) {
      const std::string_view text = part.texts()[i];
      next = std::copy(text.begin(), text.end(), next);
    }
    result[i] = {made, bytes};
  }
  return {result, nulls};
}

ColumnView Evaluator::kept_text(const BoundExpr& expr, const Batch& batch) {
  const ColumnView a = evaluate(*expr.args[0], batch);
  if (kept_ == nullptr) kept_ = &expr.texts_kept->new_arena();
  std::string_view* result = out(expr).texts(batch.rows);
  for (std::size_t i = 0; i < batch.rows; ++i) result[i] = kept_->keep(a.texts()[i]);
  return {result, a.nulls};
}

}  // namespace flugs::query
