#include "flugs/query_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/names.h"
#include "query/expressions/expr_node.h"
#include "query/plan/result_data.h"

namespace flugs::query {

namespace {

// The texts of a batch, one view for each row.
void view_texts(const TextColumn& texts, Vec& out) {
  std::string_view* views = out.texts(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) views[i] = texts[i];
}

}  // namespace

std::shared_ptr<ResultData> make_result(RunContext& context, BatchSink& sink, bool is_ordered) {
  auto result = std::make_shared<ResultData>();
  auto rows = std::make_shared<Rows>();
  result->columns = sink.columns();
  for (const ResultColumn& column : result->columns)
    rows->schema.push_back({column.name, {column.type, column.scale}, nullptr});
  Charge charge(context.budget, "result");
  std::vector<Charge> charges;
  while (std::optional<ReadyBatch> ready = sink.take()) {
    context.check_stop();
    charges.push_back(std::move(ready->charge));
    BatchData& data = *ready->data;
    FLUGS_CHECK(data.rows != 0);  // get_unchecked finds a part by its first row
    FLUGS_CHECK(data.columns.size() == rows->schema.size());
    Rows::Part part;
    part.rows = data.rows;
    for (std::size_t c = 0; c < data.columns.size(); ++c) {
      BatchValues& from = data.columns[c];
      part.has_nulls.push_back(from.has_nulls);
      Vec& to = part.columns.emplace_back();
      if (rows->schema[c].form() != Form::kText) {
        to = std::move(from.values);
        continue;
      }
      charge.add(data.rows * sizeof(std::string_view));
      view_texts(data.texts(c), to);
      if (from.has_nulls) std::memcpy(to.nulls(data.rows), from.nulls(data.rows).data(), data.rows);
      from.values = Vec();
    }
    result->first_rows.push_back(rows->row_count);
    rows->row_count += part.rows;
    rows->parts.push_back(std::move(part));
    result->batches.push_back(std::move(ready->data));
  }
  rows->is_ordered = is_ordered;
  result->rows = std::move(rows);
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
