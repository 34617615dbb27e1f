#include "tables/table/column_reclaim.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "tables/catalog/added_column.h"
#include "tables/data/table_data.h"
#include "tables/table/table_columns.h"

namespace flugs::engine {

namespace {

/// Bytes that a row would have instead of its code, at most.
std::uint64_t cell_bytes(const columns::Column& column) noexcept {
  if (!column.is_dictionary()) return 0;
  return column.is_text() ? 16 : 8;
}

}  // namespace

std::uint64_t ColumnReclaim::long_bytes(std::string_view text) noexcept {
  return text.size() <= columns::text_cell::kInlineBytesMax ? 0 : text.size();
}

std::uint64_t ColumnReclaim::bytes_owned(const columns::Column& column) {
  return column.bytes_in_pool() + column.dictionary().hint_bytes();
}

std::uint64_t ColumnReclaim::waste_bytes(const MergeOptions& options,
                                         std::uint64_t pool_bytes) noexcept {
  constexpr std::uint64_t kShare = 64;
  constexpr std::uint64_t kNever = ~std::uint64_t{0};
  const std::uint64_t bytes = options.waste_bytes;
  return bytes == kNever ? bytes : std::min(bytes, pool_bytes / kShare);
}

std::uint64_t ColumnReclaim::bytes_of_column(std::size_t i) const {
  return bytes_owned(*data_.columns[i]);
}

// Groups store numbers themselves, and compressed texts. For others they need the bytes of long
// ones in the column's heap, each text once. A column that begins anew makes the merge rewrite all
// groups with long texts there, so texts of rows that it leaves out do not count.
std::uint64_t ColumnReclaim::bytes_needed(std::size_t i, mvcc::TransactionSlots& slots,
                                          FunctionRef<bool(std::size_t chunk)> is_merged) const {
  const columns::Column& column = *data_.columns[i];
  std::uint64_t bytes = 0;
  for (std::size_t chunk = 0; chunk < data_.rows.chunk_count(); ++chunk) {
    if (const RowGroup* group = data_.rows.group(chunk); group != nullptr) {
      if (column.is_text() && i < group->column_count()) bytes += text_bytes_in_group(i, *group);
      continue;
    }
    if (column.is_text()) bytes += text_bytes_in_chunk(i, chunk, slots, false);
    if (!is_merged(chunk)) bytes += data_.rows.rows_of(chunk) * cell_bytes(column);
  }
  return bytes;
}

// Counts each long text once per row; also those of dead rows whose index entry needs the text.
std::uint64_t ColumnReclaim::bytes_copied(std::size_t i, mvcc::TransactionSlots& slots) const {
  const columns::Column& column = *data_.columns[i];
  if (!column.is_text()) return 0;
  const bool is_key = std::any_of(data_.keys.begin(), data_.keys.end(),
                                  [i](const KeyIndex* key) { return key->has_column(i); });
  std::uint64_t bytes = 0;
  for (std::size_t chunk = 0; chunk < data_.rows.chunk_count(); ++chunk) {
    const RowGroup* group = data_.rows.group(chunk);
    if (group == nullptr) {
      bytes += text_bytes_in_chunk(i, chunk, slots, is_key);
    } else if (i < group->column_count()) {
      bytes += text_bytes_in_group(i, *group);
    }
  }
  return bytes;
}

// Counts the long texts of rows that no merge can leave out yet: each once per row, but no more
// than the group has with each text once.
std::uint64_t ColumnReclaim::text_bytes_in_group(std::size_t i, const RowGroup& group) {
  const columns::MainColumn& column = group.column(i);
  const std::uint64_t bytes_once = column.long_text_bytes();
  if (bytes_once == 0 || !group.has_deletions()) return bytes_once;
  std::uint64_t bytes = 0;
  for (std::uint32_t offset = 0; offset < group.row_count(); ++offset) {
    const std::uint32_t place = group.place_of(offset);
    if (place == RowGroup::kNoPlace) continue;
    const mvcc::VersionLayout* version = group.stamped_version(offset);
    if (version == nullptr || mvcc::load_stamp(version->created) != mvcc::kNoStamp)
      bytes += long_bytes(column.text(place));
  }
  return std::min(bytes, bytes_once);
}

std::uint64_t ColumnReclaim::text_bytes_in_chunk(std::size_t i, std::size_t chunk,
                                                 mvcc::TransactionSlots& slots,
                                                 bool with_dead) const {
  const columns::Column& column = *data_.columns[i];
  FLUGS_CHECK(column.is_text() && data_.rows.group(chunk) == nullptr);
  const mvcc::SnapshotHold hold(slots);  // no thread writes to rows that it sees, or saw
  const mvcc::Visibility visibility = hold.visibility();
  const std::uint32_t first = data_.rows.first_row_of(chunk);
  const std::uint32_t end = std::min(first + data_.rows.rows_of(chunk), data_.rows.rows_end());
  std::uint64_t bytes = 0;
  for (std::uint32_t row = first; row < end; ++row) {
    const mvcc::VersionLayout& version = data_.rows.version(row);
    if (with_dead ? visibility.happened(version.created) : visibility.sees(version))
      bytes += long_bytes(data_.rows.view(row).text(column, i));
  }
  return bytes;
}

// A text of a group stays even if no row needs it: the group's columns are sorted by their texts.
// So does one of a dead row that indexes may name, as a key may have the column, or get it.
void ColumnReclaim::mark_texts(std::size_t i, const mvcc::Visibility& visibility,
                               columns::TextMarks& marks) const {
  const columns::Column& column = *data_.columns[i];
  FLUGS_CHECK(column.has_texts_of_rows());
  const auto mark = [&](std::string_view text, bool is_shared) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(text.data());
    if (long_bytes(text) != 0)
      marks.mark(static_cast<std::uint64_t>(bytes - data_.pool.base()), text.size(), is_shared);
  };
  if (column.has_constant()) mark(column.constant_value().as_string(), true);
  for (std::size_t chunk = 0; chunk < data_.rows.chunk_count(); ++chunk) {
    if (const RowGroup* group = data_.rows.group(chunk); group != nullptr) {
      const bool has_texts = i < group->column_count() && group->column(i).long_text_bytes() != 0;
      for (std::uint32_t place = 0; has_texts && place < group->stored_rows(); ++place)
        mark(group->column(i).text(place), true);
      continue;
    }
    const std::uint32_t first = data_.rows.first_row_of(chunk);
    const std::uint32_t end = std::min(first + data_.rows.rows_of(chunk), data_.rows.rows_end());
    for (std::uint32_t row = first; row < end; ++row)
      if (visibility.happened(data_.rows.version(row).created))
        mark(data_.rows.view(row).text(column, i), false);
  }
}

// Protocol change_type with the present type: the new edition owns nothing at first.
Status ColumnReclaim::rewrite_column(std::size_t number) {
  return columns_.begin_edition(number, data_.columns[number]->type());
}

// A group that has its texts needs nothing of its edition, but names its number. Too many of them
// would use the numbers up.
bool ColumnReclaim::names_one_of_many(const RowGroup& group) const {
  constexpr int kEditionsMax = 8;
  for (std::size_t i = 0; i < std::min(group.column_count(), data_.columns.size()); ++i) {
    const columns::Column& column = *data_.columns[i];
    if (column.is_dropped() || group.edition(i) == column.edition()) continue;
    int editions = 0;
    bool is_first = false;
    for (const columns::Column* former = column.former(); former != nullptr;
         former = former->former()) {
      ++editions;
      is_first = former->former() == nullptr && group.edition(i) == former->edition();
    }
    if (editions >= kEditionsMax && !is_first) return true;
  }
  return false;
}

bool ColumnReclaim::keeps_former(std::size_t chunk, std::uint64_t bytes) const {
  if (const RowGroup* group = data_.rows.group(chunk); group != nullptr)
    return !group->is_up_to_date() || names_one_of_many(*group);
  const columns::RowLayout& layout = data_.rows.layout(data_.rows.first_row_of(chunk));
  if (layout.editions() == data_.columns.editions()) return false;
  for (std::size_t i = 0; i < data_.columns.size(); ++i) {
    const columns::Column* of_cells = data_.columns[i]->at_edition(layout.edition(i));
    const bool is_former = of_cells != nullptr && of_cells != data_.columns[i];
    if (is_former && of_cells->is_used() && bytes_owned(*of_cells) >= bytes) return true;
  }
  return false;
}

// Whether nothing needs what the edition owns any more. Its dictionary may still lack the index
// that opening has left for later: the thread that makes indexes has the build mutex meanwhile, and
// passes over editions that own nothing.
bool ColumnReclaim::is_left_over(std::size_t i, const columns::Column& former) const noexcept {
  return former.is_used() &&
         !data_.rows.is_read_as(i, former.edition(), TableColumns::needs_groups(former));
}

// Whether the list of changes can do without the editions between the column's first and its
// newest: no group names one of them, and all cells are of the newest, so no reader looks for one.
// A group with only NULLs needs nothing of its edition, but names its number: opening must find
// that number in the list, and no other edition may get it.
bool ColumnReclaim::has_middle_to_forget(std::size_t i) const noexcept {
  const columns::Column* former = data_.columns[i]->former();
  if (former == nullptr || former->former() == nullptr || data_.columns[i]->is_dropped())
    return false;
  for (; former != nullptr; former = former->former()) {
    const bool is_first = former->former() == nullptr;
    if (former->is_used() || data_.rows.names_edition(i, former->edition(), !is_first))
      return false;
  }
  return true;
}

bool ColumnReclaim::has_left_over() const noexcept {
  for (std::size_t i = 0; i < data_.columns.size(); ++i) {
    for (const columns::Column* former = data_.columns[i]->former(); former != nullptr;
         former = former->former())
      if (is_left_over(i, *former)) return true;
    if (has_middle_to_forget(i)) return true;
  }
  return false;
}

// No step of it is in the pool: after a crash, opening frees what nothing leads to.
std::uint64_t ColumnReclaim::release_former_editions() {
  // A check of hints uses the editions' hints, so it must not run now. Do not wait for a build of
  // indexes.
  const std::unique_lock guard(build_mutex_, std::try_to_lock);
  if (!guard.owns_lock()) return 0;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < data_.columns.size(); ++i) {
    for (columns::Column* former = data_.columns[i]->former(); former != nullptr;
         former = former->former()) {
      if (!is_left_over(i, *former)) continue;
      former->set_used(false);
      bytes += bytes_owned(*former);
      former->release_all();
    }
  }
  data_.rows.release_former();
  forget_editions();
  return bytes;
}

// Protocol forget_editions.
//   step  store                           made durable by  power cut just after it: recovery
//   1     the table's schema, without     alter_table/2    the editions' layouts are free space
//         editions that no row is of in
//         its list of changes
// Must hold:  no chunk is left with cells of them, nor a group that says their number, be its rows
//             all NULL, or it could not be opened; what replaced the last is durable. Their numbers
//             are given again only after that.
void ColumnReclaim::forget_editions() {
  StoredSchema next = columns_.stored();
  std::vector<std::size_t> shortened;
  std::vector<pmem::Extent> layouts;
  for (std::size_t i = 0; i < data_.columns.size(); ++i) {
    if (!has_middle_to_forget(i)) continue;
    shortened.push_back(i);
    const auto is_middle = [&](const ChangedColumnLayout& changed) {
      return changed.column == i && changed.edition != data_.columns[i]->edition();
    };
    auto& changes = next.changed_columns;
    for (auto at = std::find_if(changes.begin(), changes.end(), is_middle); at != changes.end();
         at = std::find_if(changes.begin(), changes.end(), is_middle)) {
      const pmem::OffsetPtr<AddedColumnLayout> layout{at->layout};
      layouts.push_back(extent_of(data_.pool, *data_.pool.at(layout)));
      forget_edition(next, static_cast<std::size_t>(at - changes.begin()));
    }
  }
  if (shortened.empty()) return;
  const Status altered = columns_.alter(std::move(next), [&] {
    for (const std::size_t i : shortened) data_.columns[i]->forget_middle_editions();
  });
  if (!altered.ok()) return;  // a full pool: the list keeps its length until the next merge
  for (const pmem::Extent& layout : layouts) data_.pool.allocator().release(layout);
}

}  // namespace flugs::engine
