#include <fmt/format.h>

#include "base/names.h"
#include "flugs/stream.h"
#include "query/stream/batch_data.h"
#include "query/vectors/data_type.h"

namespace flugs::query {

namespace {

Status check_lane(const BatchData* data, std::size_t column, Lane lane, std::string_view wanted) {
  const std::size_t count = data == nullptr ? 0 : data->columns.size();
  if (column >= count)
    return Status(StatusCode::kInvalidArgument, fmt::format("the batch has no column {}: it has {}",
                                                            column, counted(count, "column")));
  const ResultColumn& of = (*data->schema)[column];
  if (lane_of(of.type) == lane) {
    if (data->columns[column].ints == IntForm::kInt64) return {};
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("column {} ({}): the stream gives it in the form of Arrow only",
                              column, of.name));
  }
  return Status(StatusCode::kInvalidArgument,
                fmt::format("column {} ({}): is of type {}, read as {}", column, of.name,
                            to_string(of.type), wanted));
}

}  // namespace

std::size_t StreamBatch::row_count() const noexcept { return data_ == nullptr ? 0 : data_->rows; }

template <>
Result<std::span<const std::int64_t>> StreamBatch::column(std::size_t column) const {
  if (Status s = check_lane(data_.get(), column, Lane::kInt, "int64"); !s.ok()) return s;
  return std::span(data_->columns[column].values.view(false).ints(), data_->rows);
}
template <>
Result<std::span<const double>> StreamBatch::column(std::size_t column) const {
  if (Status s = check_lane(data_.get(), column, Lane::kReal, "double"); !s.ok()) return s;
  return std::span(data_->columns[column].values.view(false).reals(), data_->rows);
}
Result<TextColumn> StreamBatch::texts(std::size_t column) const {
  if (Status s = check_lane(data_.get(), column, Lane::kText, "text"); !s.ok()) return s;
  return data_->texts(column);
}
std::span<const std::uint8_t> StreamBatch::nulls(std::size_t column) const noexcept {
  if (data_ == nullptr || column >= data_->columns.size()) return {};
  return data_->columns[column].nulls(data_->rows);
}
std::shared_ptr<const TextDictionary> StreamBatch::dictionary(std::size_t column) const noexcept {
  if (data_ == nullptr || column >= data_->columns.size()) return {};
  return data_->columns[column].dictionary;
}

}  // namespace flugs::query
