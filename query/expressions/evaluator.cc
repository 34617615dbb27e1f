#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "query/expressions/bound_expr.h"
#include "query/vectors/failure.h"

namespace flugs::query {

ColumnView Evaluator::evaluate(const BoundExpr& expr, const Batch& batch) {
  FLUGS_CHECK(batch.rows <= kBatchRows);  // a constant has no more values
  switch (expr.op) {
    case Op::kColumn:
      return column(expr, batch);
    case Op::kConstant:
      return expr.constant.view(expr.value.is_null());
    case Op::kLookup:
      return lookup(expr, batch);
    case Op::kEqual:
    case Op::kNotEqual:
    case Op::kLess:
    case Op::kLessEqual:
      return comparison(expr, batch);
    case Op::kAnd:
    case Op::kOr:
      return logic(expr, batch);
    case Op::kNot:
      return negation(expr, batch);
    case Op::kIsNull:
    case Op::kIsNotNull:
      return null_test(expr, batch);
    case Op::kIn:
      return membership(expr, batch);
    case Op::kIsKey:
      return key_test(expr, batch);
    case Op::kStartsWith:
    case Op::kEndsWith:
    case Op::kContains:
    case Op::kLike:
      return text_predicate(expr, batch);
    case Op::kRescale:
    case Op::kToInstant:
      return conversion(expr, batch);
    case Op::kToDouble:
      return expr.args[0]->form == Form::kText ? parsed(expr, batch) : conversion(expr, batch);
    case Op::kCoarsen:
      return coarsened(expr, batch);
    case Op::kCase:
      return case_when(expr, batch);
    case Op::kAdd:
    case Op::kSubtract:
    case Op::kMultiply:
    case Op::kDivide:
    case Op::kRemainder:
      return arithmetic(expr, batch);
    default:
      return function(expr, batch);
  }
}

ColumnView Evaluator::function(const BoundExpr& expr, const Batch& batch) {
  switch (expr.op) {
    case Op::kYear:
    case Op::kQuarter:
    case Op::kMonth:
    case Op::kDay:
    case Op::kDayOfYear:
    case Op::kWeekday:
      return calendar(expr, batch);
    case Op::kHour:
    case Op::kMinute:
    case Op::kSecond:
      return time_of_day(expr, batch);
    case Op::kTruncateTime:
      return truncated_time(expr, batch);
    case Op::kAddMonths:
      return months_later(expr, batch);
    case Op::kToDate:
      return expr.args[0]->form == Form::kText ? parsed(expr, batch) : day_of_moment(expr, batch);
    case Op::kSubstring:
    case Op::kTrim:
      return text_part(expr, batch);
    case Op::kFirstByte:
    case Op::kLength:
    case Op::kByteLength:
      return text_measure(expr, batch);
    case Op::kPosition:
      return text_position(expr, batch);
    case Op::kLower:
    case Op::kUpper:
    case Op::kToText:
      return computed_text(expr, batch);
    case Op::kConcat:
      return concatenation(expr, batch);
    case Op::kMatches:
      return regexp_test(expr, batch);
    case Op::kRegexpExtract:
      return regexp_part(expr, batch);
    case Op::kRegexpReplace:
      return regexp_replaced(expr, batch);
    case Op::kKeepText:
      return kept_text(expr, batch);
    case Op::kQuotient:
      return quotient(expr, batch);
    case Op::kPower:
      return power(expr, batch);
    default:
      return number_function(expr, batch);
  }
}

TextArena& Evaluator::arena(const BoundExpr& expr) {
  if (arenas_.size() <= expr.slot) arenas_.resize(expr.slot + 1);
  std::unique_ptr<TextArena>& own = arenas_[expr.slot];
  if (own == nullptr) own = std::make_unique<TextArena>(expr.texts_kept->budget());
  own->clear();
  return *own;
}

const std::uint8_t* Evaluator::merged_nulls(const BoundExpr& expr, const std::uint8_t* a,
                                            const std::uint8_t* b, std::size_t n) {
  if (a == nullptr) return b;
  if (b == nullptr) return a;
  std::uint8_t* nulls = out(expr).nulls(n);
  for (std::size_t i = 0; i < n; ++i) nulls[i] = a[i] | b[i];
  return nulls;
}

ColumnView Evaluator::column(const BoundExpr& expr, const Batch& batch) {
  FLUGS_DCHECK(expr.column < batch.columns.size());
  const ColumnView view = batch.columns[expr.column];
  if (!expr.domain || expr.form == Form::kCode) return view;
  const std::size_t n = batch.rows;
  const CodeDomain& domain = *expr.domain;
  const std::uint32_t* codes = view.codes();
  const std::uint8_t* nulls = view.nulls;
  if (expr.form == Form::kText) {
    std::string_view* texts = out(expr).texts(n);
    for (std::size_t i = 0; i < n; ++i)
      texts[i] = nulls != nullptr && nulls[i] != 0 ? std::string_view() : domain.text(codes[i]);
    return {texts, nulls};
  }
  std::int64_t* ints = out(expr).ints(n);  // doubles by their bits
  if (const std::int64_t* all = domain.integers(); all != nullptr && nulls == nullptr) {
    for (std::size_t i = 0; i < n; ++i) ints[i] = all[codes[i]];
  } else {
    for (std::size_t i = 0; i < n; ++i)
      ints[i] = nulls != nullptr && nulls[i] != 0 ? 0 : domain.integer(codes[i]);
  }
  return {ints, nulls};
}

void fill_lookup(const BoundExpr& expr) {
  LookupTable& table = *expr.lookup;
  std::call_once(table.once, [&] {
    const std::uint32_t count = expr.domain->count();
    const std::uint32_t null_code = expr.domain->null_code();
    const BoundExpr& of = *expr.args[0];
    Evaluator evaluator(expr.slot);
    std::vector<std::uint32_t> codes(kBatchRows);
    std::vector<std::uint8_t> nulls(kBatchRows);
    Batch batch;
    batch.columns.resize(expr.column + 1);
    batch.columns[expr.column] = {codes.data(), nulls.data()};
    table.nulls.reserve(count + 1);
    try {
      for (std::uint64_t first = 0; first <= count; first += kBatchRows) {
        const std::size_t n = std::min<std::uint64_t>(kBatchRows, count + 1 - first);
        std::iota(codes.begin(), codes.end(), static_cast<std::uint32_t>(first));
        for (std::size_t i = 0; i < n; ++i)
          nulls[i] = codes[i] == null_code || codes[i] == count ? 1 : 0;
        batch.rows = n;
        const ColumnView result = evaluator.evaluate(of, batch);
        for (std::size_t i = 0; i < n; ++i) {
          table.nulls.push_back(result.nulls == nullptr ? 0 : result.nulls[i]);
          table.has_nulls |= table.nulls.back() != 0;
        }
        if (of.form == Form::kText)
          table.texts.insert(table.texts.end(), result.texts(), result.texts() + n);
        else
          table.ints.insert(table.ints.end(), result.ints(), result.ints() + n);
      }
    } catch (const Failure&) {
      table.texts = {};
      evaluator.give_up_kept_texts();
      table.by_value = true;
    }
    FLUGS_CHECK(table.by_value || table.nulls.size() == std::size_t{count} + 1);
  });
}

ColumnView Evaluator::lookup(const BoundExpr& expr, const Batch& batch) {
  fill_lookup(expr);
  const LookupTable& table = *expr.lookup;
  if (table.by_value) return evaluate(*expr.args[0], batch);
  FLUGS_DCHECK(expr.column < batch.columns.size());
  const std::size_t n = batch.rows;
  const ColumnView view = batch.columns[expr.column];
  const std::uint32_t* codes = view.codes();
  const std::uint32_t null_entry = static_cast<std::uint32_t>(table.nulls.size() - 1);
  const auto entry = [&](std::size_t i) {
    FLUGS_DCHECK((view.nulls != nullptr && view.nulls[i] != 0) || codes[i] < null_entry);
    return view.nulls != nullptr && view.nulls[i] != 0 ? null_entry : codes[i];
  };
  Vec& result = out(expr);
  if (table.has_nulls) {
    std::uint8_t* nulls = result.nulls(n);
    for (std::size_t i = 0; i < n; ++i) nulls[i] = table.nulls[entry(i)];
  }
  if (expr.form == Form::kCode) {
    std::uint32_t* to = result.codes(n);
    for (std::size_t i = 0; i < n; ++i) to[i] = table.codes[entry(i)];
  } else if (expr.form == Form::kText) {
    std::string_view* to = result.texts(n);
    for (std::size_t i = 0; i < n; ++i) to[i] = table.texts[entry(i)];
  } else {
    std::int64_t* to = result.ints(n);
    for (std::size_t i = 0; i < n; ++i) to[i] = table.ints[entry(i)];
  }
  return result.view(table.has_nulls);
}

std::size_t Evaluator::select(const BoundExpr& condition, const Batch& batch,
                              std::uint32_t* positions) {
  FLUGS_DCHECK(condition.type.type == Type::kBool);
  const ColumnView truth = evaluate(condition, batch);
  const std::int64_t* ints = truth.ints();
  std::size_t selected = 0;
  if (truth.nulls == nullptr) {
    for (std::size_t i = 0; i < batch.rows; ++i) {
      positions[selected] = static_cast<std::uint32_t>(i);
      selected += ints[i] != 0 ? 1 : 0;
    }
  } else {
    for (std::size_t i = 0; i < batch.rows; ++i) {
      positions[selected] = static_cast<std::uint32_t>(i);
      selected += ints[i] != 0 && truth.nulls[i] == 0 ? 1 : 0;
    }
  }
  return selected;
}

Batch Evaluator::subset(const BoundExpr& expr, const Batch& batch,
                        const std::vector<std::uint32_t>& rows) {
  FLUGS_DCHECK(expr.first_slot + expr.columns.size() <= slots_.size());
  FLUGS_DCHECK(rows.empty() || rows.back() < batch.rows);  // ascending
  Batch part;
  part.rows = rows.size();
  part.columns.resize(batch.columns.size());
  for (std::size_t c = 0; c < expr.columns.size(); ++c) {
    const std::uint32_t column = expr.columns[c];
    part.columns[column] = gather(batch.columns[column], expr.column_forms[c], rows.data(),
                                  rows.size(), slots_[expr.first_slot + c]);
  }
  return part;
}

// A branch is evaluated just for the rows that take it, because it may fail for others.
ColumnView Evaluator::case_when(const BoundExpr& expr, const Batch& batch) {
  const std::size_t n = batch.rows;
  Vec& result = out(expr);
  result.reserve(n * bytes_of(expr.form));
  std::uint8_t* nulls = result.nulls(n);
  bool has_nulls = false;
  std::vector<std::uint32_t> rest(n);
  std::iota(rest.begin(), rest.end(), 0u);
  std::vector<std::uint32_t> taken;
  const auto put = [&](const BoundExpr& branch, const std::vector<std::uint32_t>& rows) {
    if (rows.empty()) return;
    const ColumnView value = evaluate(branch, rows.size() == n ? batch : subset(expr, batch, rows));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      nulls[rows[i]] = value.nulls == nullptr ? 0 : value.nulls[i];
      has_nulls |= nulls[rows[i]] != 0;
    }
    if (expr.form == Form::kText) {
      for (std::size_t i = 0; i < rows.size(); ++i) result.texts(n)[rows[i]] = value.texts()[i];
    } else {
      std::int64_t* to = result.ints(n);
      for (std::size_t i = 0; i < rows.size(); ++i) to[rows[i]] = value.ints()[i];
    }
  };
  for (std::size_t a = 0; a + 1 < expr.args.size() && !rest.empty(); a += 2) {
    std::vector<std::uint32_t> chosen(rest.size());
    chosen.resize(
        select(*expr.args[a], rest.size() == n ? batch : subset(expr, batch, rest), chosen.data()));
    taken.clear();
    std::vector<std::uint32_t> others;
    std::size_t c = 0;
    for (std::size_t i = 0; i < rest.size(); ++i) {
      const bool is_chosen = c < chosen.size() && chosen[c] == i;
      (is_chosen ? taken : others).push_back(rest[i]);
      c += is_chosen ? 1 : 0;
    }
    FLUGS_DCHECK(taken.size() == chosen.size());
    put(*expr.args[a + 1], taken);
    rest.swap(others);
  }
  put(*expr.args.back(), rest);
  return result.view(has_nulls);
}

}  // namespace flugs::query
