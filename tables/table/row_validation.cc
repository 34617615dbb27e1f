#include "tables/table/row_validation.h"

#include <fmt/format.h>

#include <string>

#include "base/long_call.h"
#include "tables/data/table_data.h"
#include "tables/table/table_references.h"

namespace flugs::engine {

namespace {

constexpr std::uint32_t kRowsBetweenPauses = 4096;

}  // namespace

Status RowValidation::each_row(FunctionRef<Status(std::uint32_t row)> judge) const {
  const std::uint32_t end = data_.rows.rows_end();
  for (std::uint32_t row = 0; row < end; ++row) {
    if (row % kRowsBetweenPauses == 0) {
      if (data_.is_dropped()) return no_table();
      if (stops_.load(std::memory_order_relaxed))
        return Status(StatusCode::kCancelled, SchemaPart::of(data_.name()),
                      "the database is being closed");
      if (!call_.goes_on(row, end)) return stopped_by_caller(fmt::format("table {}", data_.name()));
    }
    if (!snapshot_.sees(data_.rows.version(row))) continue;
    if (Status s = judge(row); !s.ok()) return s;
  }
  call_.tell(end, end);
  return {};
}

// For messages.
std::string RowValidation::name_of(std::uint32_t row) const {
  return data_.schema().has_primary_key ? data_.keys[0]->describe(row) : fmt::format("id {}", row);
}

Status RowValidation::check(const CheckConstraint& check) const {
  return each_row([&](std::uint32_t row) {
    const RowView view = data_.rows.view(row);
    const auto value = [&](std::size_t column) {
      return view.value(*data_.columns[column], column);
    };
    if (check.holds(value)) return Status();
    return check.violated_by(value, fmt::format(" in the row with {}", name_of(row)));
  });
}

Status RowValidation::not_null(std::size_t column) const {
  return each_row([&](std::uint32_t row) {
    const columns::Column& checked = *data_.columns[column];
    if (checked.is_dropped() || !data_.rows.view(row).value(checked, column).is_null())
      return Status();
    return Status(StatusCode::kConstraintViolated, SchemaPart::column(data_.name(), checked.name()),
                  fmt::format("NULL is not allowed, but the row with {} has it", name_of(row)));
  });
}

Status RowValidation::foreign_key(const ForeignKey& foreign) const {
  return each_row(
      [&](std::uint32_t row) { return references_.check_parent(foreign, row, snapshot_); });
}

}  // namespace flugs::engine
