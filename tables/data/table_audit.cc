#include "tables/data/table_audit.h"

#include <fmt/format.h>

#include <span>

#include "base/long_call.h"
#include "tables/data/cell_checks.h"
#include "tables/data/index_run_audit.h"
#include "tables/data/table_data.h"

namespace flugs::engine {

namespace {

constexpr std::uint32_t kRowsBetweenLooks = 4096;

}  // namespace

Status TableAudit::stopped() const { return stopped_by_caller("table " + data_.name()); }

// Everything but the rows.
Status TableAudit::check_parts(FunctionRef<bool(std::uint32_t rows)> goes_on) const {
  Status whole;
  data_.columns.for_each_used([&](columns::Column& column) {
    if (whole.ok() && !goes_on(0)) whole = stopped();
    if (whole.ok()) whole = column.dictionary().verify();
  });
  return whole.ok() ? check_groups(goes_on) : whole;
}

Status TableAudit::run(const mvcc::Visibility& visibility,
                       FunctionRef<bool(std::uint32_t rows)> goes_on) const {
  if (Status s = check_parts(goes_on); !s.ok()) return s;
  std::uint64_t live = 0;
  std::uint64_t live_in_dram = 0;
  columns::Candidates candidates;
  const std::uint32_t end = data_.rows.rows_end();
  for (std::uint32_t row = 0; row < end; ++row) {
    if (row % kRowsBetweenLooks == 0 && !goes_on(row)) return stopped();
    if (data_.rows.group_with(row) == nullptr)
      if (Status s = data_.rows.check_header(row); !s.ok()) return s;
    if (!visibility.sees(data_.rows.version(row))) continue;
    ++live;
    live_in_dram += data_.runs.serves(row) ? 0 : 1;
    if (Status s = check_cells(data_, row); !s.ok()) return s;
    if (Status s = check_conditions(row); !s.ok()) return s;
    for (const KeyIndex* key : data_.keys)
      if (Status s = check_entries(*key, row, visibility, candidates); !s.ok()) return s;
  }
  for (const KeyIndex* key : data_.keys) {
    const std::uint64_t expected = key->entries().runs().is_used() ? live_in_dram : live;
    if (Status s = key->entries().check_ordered(key->name(), expected); !s.ok()) return s;
  }
  return IndexRunAudit(data_, data_.pool.path()).run();
}

Status TableAudit::check_entries(const KeyIndex& key, std::uint32_t row,
                                 const mvcc::Visibility& visibility,
                                 columns::Candidates& candidates) const {
  if (!key.is_hashed(row)) return {};
  key.entries().lookup(key.hash_of(row), candidates);
  std::size_t found = 0;
  std::size_t others = 0;
  for (const std::uint32_t candidate : candidates.view()) {
    found += candidate == row ? 1 : 0;
    others += candidate != row && visibility.sees(data_.rows.version(candidate)) &&
                      !key.has_null(row) && key.same_key(candidate, row)
                  ? 1
                  : 0;
  }
  if (key.entries().may_have(found) && others == 0) return {};
  return Status(
      StatusCode::kCorrupt,
      fmt::format("{}: table {}, key {}, row {}: expected one entry and no other row with "
                  "this key, found {} and {}",
                  data_.pool.path(), data_.name(), key.name(), row, found, others));
}

Status TableAudit::check_groups(FunctionRef<bool(std::uint32_t rows)> goes_on) const {
  Status first;
  data_.rows.for_each_group([&](const RowGroup& group) {
    if (first.ok() && !goes_on(0)) first = stopped();
    if (!first.ok()) return;
    group.audit([&](std::size_t, const Status& status) {
      if (first.ok()) first = status;
    });
  });
  return first;
}

Status TableAudit::check_conditions(std::uint32_t row) const {
  const RowView view = data_.rows.view(row);
  const auto value = [&](std::size_t column) { return view.value(*data_.columns[column], column); };
  const TableDefinition& definition = data_.definition();
  for (std::size_t i = 0; i < definition.schema().columns.size(); ++i) {
    const ColumnSchema& column = definition.schema().columns[i];
    const columns::Column& held = *data_.columns[i];
    if (column.nullable || column.dropped || !held.nullable() || !value(i).is_null()) continue;
    return Status(StatusCode::kCorrupt,
                  fmt::format("{}: table {}, row {}, column {}: expected a value in a column that "
                              "is NOT NULL, found NULL",
                              data_.pool.path(), data_.name(), row, column.name));
  }
  for (const CheckConstraint& check :
       std::span(definition.checks).first(definition.schema().checks.size()))
    if (!check.holds(value))
      return Status(StatusCode::kCorrupt, fmt::format("{}: row {}: {}", data_.pool.path(), row,
                                                      check.violated_by(value).message()));
  return {};
}

}  // namespace flugs::engine
