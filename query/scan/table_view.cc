#include "query/scan/table_view.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "base/check.h"
#include "columns/main/main_blocks.h"
#include "query/scan/delta_scan_unit.h"
#include "query/scan/main_scan_unit.h"

namespace flugs::query {

namespace {

/// The rows of a group that a transaction sees, by their places in the columns.
class GroupRows : public MainScanUnit::Rows {
 public:
  GroupRows(const engine::RowGroup& group, std::uint32_t first_row,
            const mvcc::Visibility& visibility) noexcept
      : group_(group), first_row_(first_row), visibility_(visibility) {}

  SeenMask seen() noexcept override {
    // Without deletions there is nothing to keep, and a call_once makes a system call.
    if (!group_.has_deletions()) return {};
    std::call_once(once_, [this] {
      std::uint64_t read = 0;
      seen_ = group_.seen_rows(visibility_, read);
      if (read != 0) entries_read_.fetch_add(read, std::memory_order_relaxed);
    });
    if (seen_ == nullptr) return {};
    return {seen_->words.data(), seen_->count};
  }
  std::size_t visible(std::uint32_t first, std::size_t count, std::uint64_t* mask) override {
    FLUGS_DCHECK(first % 64 == 0);
    if (const SeenMask known = seen(); known.words != nullptr) {
      std::copy_n(known.words + first / 64, (count + 63) / 64, mask);
      if (count % 64 != 0) mask[count / 64] &= columns::low_bits(static_cast<unsigned>(count % 64));
      return columns::count_bits(mask, 0, count);
    }
    const std::uint64_t read = group_.visible(first, count, visibility_, mask);
    if (read != 0) entries_read_.fetch_add(read, std::memory_order_relaxed);
    return columns::count_bits(mask, 0, count);
  }
  columns::ExtremePlaces* extreme_places(std::uint32_t column) const noexcept override {
    return group_.has_deletions() ? group_.extreme_places(column) : nullptr;
  }
  std::atomic<std::uint32_t>* kept_codes(std::uint32_t column) const override {
    return group_.kept_codes(column);
  }
  std::uint32_t id(std::uint32_t place) const noexcept override {
    return first_row_ + group_.offset_of(place);
  }
  bool are_all_visible() const noexcept override { return !group_.has_deletions(); }
  std::uint64_t entries_read() const noexcept override {
    return entries_read_.load(std::memory_order_relaxed);
  }

 private:
  const engine::RowGroup& group_;
  const std::uint32_t first_row_;
  const mvcc::Visibility& visibility_;
  std::atomic<std::uint64_t> entries_read_{0};
  std::once_flag once_;
  std::shared_ptr<const engine::SeenRows> seen_;
};

}  // namespace

void TableView::add_group(const engine::RowGroup& group, std::uint32_t first_row,
                          const mvcc::Visibility& visibility) {
  groups_.push_back(&group);
  std::vector<const columns::MainColumn*> columns;
  columns.reserve(schema_.size());
  for (std::size_t c = 0; c < schema_.size(); ++c) columns.push_back(&group.column(c));
  units_.push_back(std::make_unique<MainScanUnit>(
      table_.name(), schema_, std::move(columns), group.stored_rows(),
      std::make_unique<GroupRows>(group, first_row, visibility)));
  row_positions_ += group.stored_rows();
  main_row_positions_ += group.stored_rows();
}

void TableView::add_columns() {
  const TableSchema& now = table_.schema();
  for (std::size_t i = 0; i < now.columns.size(); ++i) {
    const columns::Column& column = *table_.columns[i];
    ColumnInfo info{now.columns[i].name, {column.type(), now.columns[i].scale}, nullptr};
    info.is_dropped = now.columns[i].dropped;
    info.edition = column.edition();
    editions_ += column.mark();
    if (column.is_dictionary())
      info.domain = std::make_shared<DictionaryDomain>(column.dictionary(), column.type());
    schema_.push_back(std::move(info));
  }
  FLUGS_CHECK(schema_.size() <= table_.columns.size());
}

// An edition that a chunk names stays as long as a thread reads the chunk.
void TableView::add_formers(const columns::RowLayout& layout) {
  if (layout.editions() == editions_) return;
  for (std::size_t i = 0; i < schema_.size(); ++i) {
    ColumnInfo& info = schema_[i];
    const std::uint16_t edition = layout.edition(i);
    const auto is_it = [&](const ColumnInfo::Former& former) { return former.edition == edition; };
    if (edition == info.edition || std::ranges::any_of(info.formers, is_it)) continue;
    const columns::Column* column = table_.columns[i]->at_edition(edition);
    if (column == nullptr || column->is_dropped()) continue;
    if (column->is_dictionary() && !column->is_text())
      info.formers.push_back(
          {edition, std::make_shared<DictionaryDomain>(column->dictionary(), column->type())});
  }
}

void TableView::add_units(const mvcc::Visibility& visibility, std::uint32_t rows_end) {
  const std::size_t chunks = table_.rows.chunk_count();
  std::vector<engine::SeenParts*> fresh;
  for (std::size_t i = 0; i < chunks; ++i) {
    if (const engine::RowGroup* group = table_.rows.group(i); group != nullptr) {
      if (group->stored_rows() != 0) add_group(*group, table_.rows.first_row_of(i), visibility);
      continue;
    }
    const engine::RowStore::ChunkView chunk = table_.rows.chunk(i, rows_end, true);
    if (chunk.row_count == 0) continue;
    if (chunk.seen != nullptr && !chunk.seen->is_ready()) fresh.push_back(chunk.seen);
    add_formers(*chunk.layout);
    units_.push_back(std::make_unique<DeltaScanUnit>(table_, schema_, visibility, chunk));
    row_positions_ += chunk.row_count;
  }
  engine::SeenChunks::make_ready(fresh);
}

TableView::TableView(const engine::TableData& table, const mvcc::Visibility& visibility)
    : table_(table) {
  const std::uint32_t end = table.rows.rows_end();
  // Columns and units must be of the same editions. A change stores the column first and the sum
  // of editions then. So the columns found here are compared with the sum; two equal sums could
  // both be from before the change although a column is from after it.
  for (bool is_same = false; !is_same;) {
    editions_ = 0;
    units_.clear();
    groups_.clear();
    schema_.clear();
    row_positions_ = main_row_positions_ = 0;
    add_columns();
    add_units(visibility, end);
    is_same = table.columns.editions() == editions_;
  }
  // If a column was dropped since then, a merged chunk may have no values of it.
  for (std::size_t i = 0; i < schema_.size(); ++i)
    schema_[i].is_dropped = schema_[i].is_dropped || table.columns[i]->is_dropped();
}

bool TableView::keeps_codes(std::uint32_t column) const noexcept {
  return std::ranges::all_of(
      groups_, [&](const engine::RowGroup* group) { return group->keeps_codes(column); });
}

std::optional<PayloadRange> TableView::likely_range(std::uint32_t column) const {
  FLUGS_CHECK(column < schema_.size());
  if (lane_of(schema_[column].type) != Lane::kInt) return std::nullopt;
  std::optional<PayloadRange> all;
  for (const auto& unit : units_) {
    Value least;
    Value greatest;
    if (!unit->likely_extremes(column, least, greatest)) continue;
    if (!all) all = PayloadRange{least.raw(), greatest.raw(), 0};
    all->least = std::min(all->least, least.raw());
    all->greatest = std::max(all->greatest, greatest.raw());
    all->rows += unit->row_count();
  }
  return all;
}

}  // namespace flugs::query
