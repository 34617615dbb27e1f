#include "tables/table/key_build.h"

#include <fmt/format.h>

#include <array>
#include <span>

#include "base/check.h"
#include "base/long_call.h"
#include "tables/catalog/schema_codec.h"
#include "tables/data/table_data.h"
#include "tables/opening/index_build.h"
#include "tables/table/row_reader.h"

namespace flugs::engine {

namespace {

constexpr std::uint32_t kRowsBetweenStops = 4096;
// Entries that are sorted at a time: 16 MB.
constexpr std::size_t kEntriesPerBatch = std::size_t{1} << 20;

}  // namespace

KeyBuild::KeyBuild(const TableData& data, const IndexBuild& build, std::size_t place) noexcept
    : data_(data), build_(build), key_(*data.keys[place]), place_(place) {}

// Whether the row is committed and no transaction is deleting it.
bool KeyBuild::is_there(std::uint32_t row, const mvcc::Visibility& snapshot) const {
  using Fate = mvcc::Visibility::Fate;
  const mvcc::VersionLayout& version = data_.rows.version(row);
  return snapshot.resolve(version.created).fate == Fate::kCommitted &&
         snapshot.resolve(version.deleted).fate == Fate::kNothing;
}

Status KeyBuild::is_repeated(std::span<const Value> values) const {
  return Status(StatusCode::kConstraintViolated, SchemaPart::key(data_.name(), key_.name()),
                fmt::format("more than one row has {}", key_.describe(values)));
}

void KeyBuild::note_doubt(std::uint32_t row) {
  std::vector<Constant> values;
  for (const std::uint16_t column : key_.columns())
    values.emplace_back(data_.rows.view(row).value(*data_.columns[column], column));
  doubts_.push_back(std::move(values));
}

Status KeyBuild::may_go_on(std::uint32_t row, std::uint32_t end, const std::atomic<bool>& stops,
                           LongCall& call) const {
  if (data_.is_dropped()) return no_table();
  if (stops.load(std::memory_order_relaxed))
    return Status(StatusCode::kCancelled, SchemaPart::of(data_.name()),
                  "the database is being closed");
  if (!call.goes_on(row, end))
    return stopped_by_caller(fmt::format("table {}, key {}", data_.name(), key_.name()));
  return {};
}

Status KeyBuild::enter_rows(const mvcc::Visibility& snapshot, const std::atomic<bool>& stops,
                            const CallOptions& options) {
  FLUGS_CHECK(doubts_.empty());
  LongCall call(options, "add_key");
  std::vector<std::uint32_t> met;
  std::vector<columns::OrderedEntry> entries;
  const std::uint32_t end = data_.rows.rows_end();
  for (std::uint32_t row = 0; row < end; ++row) {
    if (row % kRowsBetweenStops == 0)
      if (Status s = may_go_on(row, end, stops, call); !s.ok()) return s;
    if (!snapshot.sees(data_.rows.version(row))) continue;
    if (key_.is_ordered()) entries.push_back(key_.ordered_entry(row));
    if (entries.size() == kEntriesPerBatch) key_.entries().add_existing_ordered(entries);
    met.clear();
    key_.entries().add_existing(
        row, key_.hash_of(row),
        [&](std::uint32_t newer, std::uint32_t older) {
          return build_.leads_to(key_, newer, older, snapshot);
        },
        [&](std::uint32_t other) { met.push_back(other); });
    if (met.empty()) continue;
    for (const std::uint32_t other : met)
      if (is_there(row, snapshot) && is_there(other, snapshot)) {
        std::array<Value, kKeyColumnsMax> values;
        const std::size_t count = key_.columns().size();
        RowReader(data_, build_).values_of(row, key_.columns(), std::span(values.data(), count));
        return is_repeated(std::span(values.data(), count));
      }
    note_doubt(row);
  }
  if (key_.is_ordered()) key_.entries().add_existing_ordered(entries);
  call.tell(end, end);
  return {};
}

Status KeyBuild::settle_doubts(const mvcc::Visibility& now) const {
  std::vector<Value> values;
  for (const std::vector<Constant>& doubt : doubts_) {
    FLUGS_DCHECK(doubt.size() == key_.columns().size());
    values.clear();
    for (const Constant& constant : doubt) values.push_back(constant.value());
    if (RowReader(data_, build_).is_key_twice(place_, values, now)) return is_repeated(values);
  }
  return {};
}

}  // namespace flugs::engine
