#include "flugs/query_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/names.h"
#include "query/expressions/bound_expr.h"
#include "query/expressions/expr_node.h"
#include "query/plan/result_data.h"

namespace flugs::query {

namespace {

// Copies the texts of one column of a part into one block.
void own_texts(std::string_view* texts, const std::uint8_t* nulls, std::size_t rows,
               ResultData& result, Charge& charge) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    if (nulls != nullptr && nulls[i] != 0) texts[i] = {};
    bytes += texts[i].size();
  }
  charge.add(bytes);
  auto block = std::make_unique_for_overwrite<char[]>(bytes);
  char* at = block.get();
  for (std::size_t i = 0; i < rows; ++i) {
    if (!texts[i].empty()) std::memcpy(at, texts[i].data(), texts[i].size());
    texts[i] = {at, texts[i].size()};
    at += texts[i].size();
  }
  FLUGS_CHECK(at == block.get() + bytes);
  result.texts.push_back(std::move(block));
}

// Users see 0 at a NULL.
void clear_nulls(Vec& column, Form form, const std::uint8_t* nulls, std::size_t rows) {
  if (nulls == nullptr || form == Form::kText) return;
  for (std::size_t i = 0; i < rows; ++i)
    if (nulls[i] != 0) column.ints(rows)[i] = 0;
}

}  // namespace

std::shared_ptr<ResultData> make_result(RunContext& context, Rows rows,
                                        const std::vector<std::string>& names) {
  auto result = std::make_shared<ResultData>();
  auto out = std::make_shared<Rows>();
  Binder binder(context.texts, rows.schema);
  std::vector<BoundPtr> columns;
  for (const std::string& name : names) {
    columns.push_back(binder.bind(col(name)));
    const DataType type = columns.back()->type;
    out->schema.push_back({name, type, nullptr});
    result->columns.push_back({name, type.type, type.scale});
  }
  Evaluator evaluator(binder.slot_count());
  Charge charge(context.budget, "result");
  Batch batch;
  Batch decoded;
  for (Rows::Part& part : rows.parts) {
    for (std::size_t first = 0; first < part.rows; first += kBatchRows) {
      context.check_stop();
      batch.rows = decoded.rows = std::min(kBatchRows, part.rows - first);
      batch.columns.clear();
      for (std::size_t c = 0; c < rows.schema.size(); ++c)
        batch.columns.push_back(part.view(c).from(first, rows.schema[c].form()));
      decoded.columns.clear();
      for (const BoundPtr& column : columns)
        decoded.columns.push_back(evaluator.evaluate(*column, batch));
      out->append(decoded, charge);
      Rows::Part& made = out->parts.back();
      FLUGS_CHECK(made.rows == batch.rows);
      for (std::size_t c = 0; c < columns.size(); ++c) {
        const std::uint8_t* nulls = made.view(c).nulls;
        clear_nulls(made.columns[c], columns[c]->form, nulls, made.rows);
        if (columns[c]->form == Form::kText)
          own_texts(made.columns[c].texts(made.rows), nulls, made.rows, *result, charge);
      }
    }
    part = Rows::Part();
  }
  FLUGS_CHECK(out->row_count == rows.row_count);
  out->is_ordered = rows.is_ordered;
  std::size_t at = 0;
  for (const Rows::Part& part : out->parts) {
    result->first_rows.push_back(at);
    at += part.rows;
  }
  result->rows = std::move(out);
  return result;
}

namespace {

// "2: id, name", for messages.
std::string names_of(const ResultData& data) {
  std::string names = fmt::format("{}", data.columns.size());
  for (std::size_t i = 0; i < data.columns.size(); ++i)
    names += (i == 0 ? ": " : ", ") + data.columns[i].name;
  return names;
}

Status misread(const ResultData& data, std::size_t column, detail::Wanted wanted, bool is_null) {
  if (column >= data.columns.size())
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("the result has no column {}: it has {}", column, names_of(data)));
  const ResultColumn& of = data.columns[column];
  if (is_null)
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("column {} ({}): holds NULL, read as {}: read it as std::optional or "
                              "Value",
                              column, of.name, wanted.name));
  return Status(StatusCode::kInvalidArgument,
                fmt::format("column {} ({}): is of type {}, read as {}", column, of.name,
                            to_string(of.type), wanted.name));
}

bool fits(const ResultData& data, std::size_t column, detail::Wanted wanted) noexcept {
  return column < data.columns.size() && wanted.admits(data.columns[column].type);
}

}  // namespace

Status QueryResult::no_column(std::string_view name) const {
  return Status(StatusCode::kNotFound,
                fmt::format("the result has no column '{}': it has {}", name, names_of(*data_)));
}

Status ResultBatch::check(std::size_t column, detail::Wanted wanted) const {
  return fits(*data_, column, wanted) ? Status() : misread(*data_, column, wanted, false);
}

template <>
std::span<const std::int64_t> ResultBatch::column_unchecked(std::size_t column) const noexcept {
  return {data_->rows->parts[index_].view(column).ints(), row_count_};
}
template <>
std::span<const double> ResultBatch::column_unchecked(std::size_t column) const noexcept {
  return {data_->rows->parts[index_].view(column).reals(), row_count_};
}
template <>
std::span<const std::string_view> ResultBatch::column_unchecked(std::size_t column) const noexcept {
  return {data_->rows->parts[index_].view(column).texts(), row_count_};
}
std::span<const std::uint8_t> ResultBatch::nulls(std::size_t column) const noexcept {
  if (column >= data_->columns.size()) return {};
  const std::uint8_t* nulls = data_->rows->parts[index_].view(column).nulls;
  return nulls == nullptr ? std::span<const std::uint8_t>()
                          : std::span<const std::uint8_t>(nulls, row_count_);
}

QueryResult::QueryResult(std::shared_ptr<const ResultData> data) noexcept
    : data_(std::move(data)) {}

const std::vector<ResultColumn>& QueryResult::columns() const noexcept { return data_->columns; }

std::optional<std::size_t> QueryResult::find(std::string_view column) const noexcept {
  for (std::size_t i = 0; i < data_->columns.size(); ++i)
    if (data_->columns[i].name == column) return i;
  return std::nullopt;
}

std::size_t QueryResult::row_count() const noexcept { return data_->rows->row_count; }
std::size_t QueryResult::batch_count() const noexcept { return data_->rows->parts.size(); }

ResultBatch QueryResult::batch(std::size_t index) const noexcept {
  return {data_.get(), index, data_->rows->parts[index].rows};
}

Status QueryResult::read(std::size_t row, std::size_t column, detail::Wanted wanted,
                         Value& out) const {
  if (row >= row_count())
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("row {} of a result with {}", row, counted(row_count(), "row")));
  if (!fits(*data_, column, wanted)) return misread(*data_, column, wanted, false);
  out = get_unchecked(row, column);
  return out.is_null() && !wanted.takes_null ? misread(*data_, column, wanted, true) : Status();
}

Value QueryResult::get_unchecked(std::size_t row, std::size_t column) const noexcept {
  const auto& firsts = data_->first_rows;
  const auto part = static_cast<std::size_t>(std::upper_bound(firsts.begin(), firsts.end(), row) -
                                             firsts.begin() - 1);
  const ColumnView view = data_->rows->parts[part].view(column);
  const std::size_t i = row - firsts[part];
  if (view.nulls != nullptr && view.nulls[i] != 0) return Value::null();
  const Type type = data_->columns[column].type;
  switch (lane_of(type)) {
    case Lane::kText:
      return Value::from_bytes(type, view.texts()[i]);
    case Lane::kReal:
      return Value::real(view.reals()[i]);
    case Lane::kInt:
      break;
  }
  return Value::from_raw(type, view.ints()[i]).with_scale(data_->columns[column].scale);
}

Expr QueryResult::constant(std::size_t row, std::size_t column) const {
  const Result<Value> value = get(row, column);
  return value.ok() ? query::constant(*value) : wrong(std::string(value.status().message()));
}

const QueryStatistics& QueryResult::statistics() const noexcept { return data_->statistics; }
const std::string& QueryResult::explain() const noexcept { return data_->explain; }

}  // namespace flugs::query
