#include "bench/scan/scan_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "bench/support/random.h"

namespace flugs::bench {

namespace {

constexpr std::size_t kRowsPerWrite = 1000;
constexpr std::uint32_t kScanLow = kScanIntegers;
constexpr std::uint32_t kScanText = kScanIntegers + 1;

// A hash that SQL can say: products stay below 2^63.
constexpr std::uint64_t kFactor = 1'540'483'477;
static_assert(kFactor < std::uint64_t{1} << 31);
constexpr std::uint64_t kHashes = std::uint64_t{1} << 32;

constexpr std::uint64_t kUpdateKey = 1;
constexpr std::uint64_t kDeleteKey = 2;
constexpr std::uint64_t kColumnsKey = 3;

std::uint64_t position_hash(std::uint64_t position, std::uint64_t key) noexcept {
  std::uint64_t hash = (position * 4 + key) % kHashes * kFactor % kHashes;
  hash = (hash ^ (hash >> 15)) * kFactor % kHashes;
  return hash ^ (hash >> 13);
}

std::string hash_sql(std::uint64_t key) {
  const auto folded = [](const std::string& hash, unsigned bits) {
    return fmt::format("xor({0}, {0} >> {1})", hash, bits);
  };
  const std::string first =
      fmt::format("((rowid * 4 + {}) % {} * {} % {})", key, kHashes, kFactor, kHashes);
  return folded(fmt::format("({} * {} % {})", folded(first, 15), kFactor, kHashes), 13);
}

std::uint64_t share_of(double percent, std::uint64_t of) noexcept {
  return static_cast<std::uint64_t>(std::llround(static_cast<double>(of) * percent / 100));
}

/// The row at a place of a batch of all columns; false: the text is none of the data's.
bool read_row(const ScanBatch& batch, std::size_t i,
              const std::unordered_map<std::string_view, std::uint32_t>& texts, ScanRow& row) {
  for (std::size_t c = 0; c < kScanIntegers; ++c)
    row.integers[c] = static_cast<std::int32_t>(batch.column_unchecked<std::int64_t>(c)[i]);
  row.low = static_cast<std::int32_t>(batch.column_unchecked<std::int64_t>(kScanLow)[i]);
  const auto text = texts.find(batch.column_unchecked<std::string_view>(kScanText)[i]);
  if (text == texts.end() || row.low < 0 || static_cast<std::uint32_t>(row.low) >= kScanLowDistinct)
    return false;
  row.text = text->second;
  return true;
}

}  // namespace

void change_scan_row(const ScanData& data, std::uint32_t columns, ScanRow& row) noexcept {
  const auto greatest = static_cast<std::int32_t>(data.distinct() - 1);
  for (std::size_t c = 0; c < kScanIntegers; ++c)
    if ((columns >> c & 1) != 0) row.integers[c] = greatest - row.integers[c];
  if ((columns >> kScanLow & 1) != 0)
    row.low = static_cast<std::int32_t>(kScanLowDistinct) - 1 - row.low;
  if ((columns >> kScanText & 1) != 0) row.text = kScanTexts - 1 - row.text;
}

ScanChanges::ScanChanges(const ScanData& data, const ScanChangesOptions& options)
    : data_(data),
      columns_(options.columns & kScanAllColumns),
      updated_{options.updated, kUpdateKey, data.rows() / 3},
      deleted_{options.deleted, kDeleteKey, data.rows() / 3 * 2},
      after_updates_(data),
      after_deletions_(data) {}

// Rows that stand together: those of a ring, which goes on with the first row behind the last.
bool ScanChanges::Chosen::has(const ScanData& data, std::uint64_t position) const noexcept {
  if (share.percent <= 0) return false;
  if (!share.together) return position_hash(position, key) < share_of(share.percent, kHashes);
  const std::uint64_t count = std::max<std::uint64_t>(share_of(share.percent, data.rows()), 1);
  return (position + data.rows() - first) % data.rows() < count;
}

std::string ScanChanges::Chosen::sql(const ScanData& data) const {
  if (!share.together)
    return fmt::format("{} < {}", hash_sql(key), share_of(share.percent, kHashes));
  return fmt::format("(rowid + {}) % {} < {}", data.rows() - first, data.rows(),
                     std::max<std::uint64_t>(share_of(share.percent, data.rows()), 1));
}

std::uint32_t ScanChanges::columns_of(std::uint64_t position) const noexcept {
  if (columns_ != 0) return columns_;
  return 1 + static_cast<std::uint32_t>(position_hash(position, kColumnsKey) % kScanAllColumns);
}

void ScanChanges::choose(std::uint64_t position, RowId id, const ScanRow& row) {
  Choice choice{id, updated_.has(data_, position) ? columns_of(position) : 0,
                deleted_.has(data_, position), row};
  ScanRow changed = row;
  change_scan_row(data_, choice.columns, changed);
  after_updates_.add(changed);
  if (!choice.is_deleted) after_deletions_.add(changed);
  if (choice.columns != 0 || choice.is_deleted) choices_.push_back(choice);
}

Status ScanChanges::plan(Database& database, TableId table) {
  std::unordered_map<std::string_view, std::uint32_t> texts;
  for (std::uint32_t i = 0; i < kScanTexts; ++i) texts[data_.text(i)] = i;
  std::vector<ColumnId> columns;
  columns.reserve(kScanColumns);
  for (std::uint32_t c = 0; c < kScanColumns; ++c)
    columns.push_back(ColumnId{static_cast<std::uint16_t>(c)});
  const Result<Transaction> reader = database.begin(AccessMode::kReadOnly);
  if (!reader.ok()) return reader.status();
  std::uint64_t position = 0;
  bool is_known = true;
  Status read = reader->scan(table, columns, Predicate::all(), [&](const ScanBatch& batch) {
    for (std::size_t i = 0; i < batch.row_count() && is_known; ++i) {
      ScanRow row;
      is_known = read_row(batch, i, texts, row);
      if (is_known) choose(position++, batch.row_ids()[i], row);
    }
    return is_known;
  });
  if (!read.ok()) return read;
  if (!is_known || position != data_.rows())
    return Status(StatusCode::kCorrupt,
                  fmt::format("the table has other rows than were loaded, from row {} of {} on",
                              position, data_.rows()));
  Random random(data_.rows());
  for (std::size_t i = choices_.size(); i > 1; --i)
    std::swap(choices_[i - 1], choices_[random.below(i)]);
  return {};
}

template <typename Write>
Result<std::uint64_t> ScanChanges::write(Database& database, bool (*is_wanted)(const Choice&),
                                         const Write& write_row) {
  std::uint64_t written = 0;
  for (std::size_t next = 0; next < choices_.size();) {
    Result<Transaction> writer = database.begin();
    if (!writer.ok()) return std::move(writer).status();
    for (std::size_t rows = 0; next < choices_.size() && rows < kRowsPerWrite; ++next) {
      if (!is_wanted(choices_[next])) continue;
      if (Status status = write_row(*writer, choices_[next]); !status.ok()) return status;
      ++rows;
      ++written;
    }
    if (Status committed = writer->commit(); !committed.ok()) return committed;
  }
  return written;
}

Result<std::uint64_t> ScanChanges::update(Database& database, TableId table) {
  const auto is_updated = [](const Choice& choice) { return choice.columns != 0; };
  return write(database, is_updated, [&](Transaction& writer, Choice& choice) -> Status {
    ScanRow row = choice.row;
    change_scan_row(data_, choice.columns, row);
    std::vector<ColumnValue> values;
    for (std::uint32_t c = 0; c < kScanColumns; ++c) {
      if ((choice.columns >> c & 1) == 0) continue;
      values.push_back({ColumnId{static_cast<std::uint16_t>(c)},
                        c == kScanText  ? Value::string(data_.text(row.text))
                        : c == kScanLow ? Value::int32(row.low)
                                        : Value::int32(row.integers[c])});
    }
    Result<RowId> updated = writer.update(table, choice.id, values);
    if (!updated.ok()) return std::move(updated).status();
    choice.id = *updated;
    return {};
  });
}

Result<std::uint64_t> ScanChanges::remove(Database& database, TableId table) {
  return write(
      database, [](const Choice& choice) { return choice.is_deleted; },
      [&](Transaction& writer, Choice& choice) { return writer.remove(table, choice.id); });
}

std::string ScanChanges::update_sql() const {
  const auto changed = [](std::uint32_t c) {
    if (c == kScanText) return std::string("$texts[$text_count + 1 - list_position($texts, s)]");
    return fmt::format("{} - {}", c == kScanLow ? "$low_greatest" : "$greatest",
                       kScanColumnNames[c]);
  };
  std::string sql;
  for (std::uint32_t c = 0; c < kScanColumns; ++c) {
    if (columns_ != 0 && (columns_ >> c & 1) == 0) continue;
    sql += sql.empty() ? "update r set " : ", ";
    sql += columns_ != 0
               ? fmt::format("{} = {}", kScanColumnNames[c], changed(c))
               : fmt::format(
                     "{0} = case when (((1 + {1} % {2}) >> {3}) & 1) = 1 then {4} else {0} end",
                     kScanColumnNames[c], hash_sql(kColumnsKey), kScanAllColumns, c, changed(c));
  }
  return sql + " where " + updated_.sql(data_);
}

std::string ScanChanges::delete_sql() const { return "delete from r where " + deleted_.sql(data_); }

Json scan_change_parameters(const ScanData& data) {
  Json texts = Json::array();
  for (std::uint32_t i = 0; i < kScanTexts; ++i) texts.push_back(data.text(i));
  return {{"greatest", data.distinct() - 1},
          {"low_greatest", kScanLowDistinct - 1},
          {"text_count", kScanTexts},
          {"texts", std::move(texts)}};
}

}  // namespace flugs::bench
