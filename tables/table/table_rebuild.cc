// What opening and garbage collection do to a table, and the table's way into and out of the pool.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tables/table/table.h"

namespace flugs::engine {

void Table::release_replaced() {
  data_.rows.release_replaced();
  settle_editions();
  data_.runs.release_replaced();
  for (const std::size_t chunk : data_.runs.take_emptied()) {
    std::vector<std::uint32_t> ids(data_.rows.rows_of(chunk));
    std::iota(ids.begin(), ids.end(), data_.rows.first_row_of(chunk));
    free_rows_.add(ids);
  }
}

// Protocol recycle: a committed dead row becomes reusable.
//   step  store             made durable by                    power cut just after it: recovery
//   1     created := 0      flush with commit/1 of the         sweep finds the row dead either way
//                           slot's next commit; at once, as
//                           commit/4, when the pool is full
//   2     cells and stamps  commit/1 of who reuses the row     created is 0 or a tag that is not
//         of a new row                                         committed: the row is not there
// Must hold:  1 durable before 2, else the old time-stamps with new cells could look like a row.
//             No snapshot as old as step 1 may be left at step 2: a reader could hold the row id.
mvcc::VersionLayout* Table::unlink_dead(const DeadRow& dead) {
  for (const std::size_t k : KeyPlaces(data_.keys.kept())) {
    if ((dead.changed_keys & (1u << k)) != 0) {
      data_.keys[k]->erase(dead.row);
    } else {
      data_.keys[k]->erase_superseded(dead.row, dead.hash_of_key(k));
    }
  }
  // The merge may move the entry meanwhile, and have read it before: then once more, where it is.
  for (;;) {
    mvcc::VersionLayout* version = data_.rows.stamped_version(dead.row);
    if (version == nullptr) return nullptr;
    mvcc::store_stamp(version->created, mvcc::kNoStamp);
    if (data_.rows.is_still(dead.row, version)) return version;
    data_.rows.wait_for_move(dead.row);
  }
}

void Table::prefetch_unlinking(const DeadRow& dead) const noexcept {
  __builtin_prefetch(&data_.rows.version(dead.row), 1);
  constexpr KeyMask kWithHash = (1U << DeadRow::kHashesKept) - 1;
  for (const std::size_t k : KeyPlaces(static_cast<KeyMask>(data_.keys.kept() & kWithHash)))
    if (const auto hash = dead.hash_of_key(k)) data_.keys[k]->prefetch_for_erase(*hash);
}

bool Table::has_much_to_check() const noexcept {
  bool has_much = false;
  data_.columns.for_each_used([&](columns::Column& column) {
    const columns::Dictionary& dictionary = column.dictionary();
    has_much |= dictionary.has_entries_to_check() || dictionary.has_much_to_check();
  });
  return has_much || std::any_of(data_.keys.begin(), data_.keys.end(),
                                 [](const auto& key) { return key->has_much_to_check(); });
}

// Some milliseconds' work, as who drops the table waits for it. What is found wrong is found again
// by check_hints.
bool Table::check_more_entries() {
  constexpr std::uint32_t kAtATime = 1u << 16;
  const std::lock_guard guard(build_mutex_);
  bool has_more = false;
  if (is_dropped()) return false;
  data_.columns.for_each_used([&](columns::Column& column) {
    if (!has_more) static_cast<void>(column.dictionary().check_entries(kAtATime, has_more));
  });
  return has_more;
}

// Not while one of them goes (DatabaseCore::retire_key).
Status Table::check_hints() {
  while (check_more_entries()) {
  }
  const std::lock_guard guard(build_mutex_);
  Status first;
  if (is_dropped()) return first;
  const auto note = [&](Status status) {
    if (first.ok()) first = std::move(status);
  };
  bool has_more = false;
  data_.columns.for_each_used([&](columns::Column& column) {
    note(column.dictionary().check_entries(1, has_more));
    note(column.dictionary().check_hints());
  });
  for (KeyIndex* key : data_.keys) note(key->check_hints());
  return first;
}

// Of hints that opening left one column's at a time: each takes long.
bool Table::keep_hints(pmem::Persister& persister, std::uint32_t at_most) noexcept {
  bool has_more = false;
  std::uint32_t left_at_most = columns::Dictionary::kHintsEnteredMax;
  data_.columns.for_each_used([&](columns::Column& column) {
    columns::Dictionary& dictionary = column.dictionary();
    const bool is_left = dictionary.has_hints_left();
    if (is_left && left_at_most == 0) {
      has_more = true;
      return;
    }
    const bool is_more = dictionary.keep_hints(persister, at_most, left_at_most);
    if (is_left && is_more) left_at_most = 0;
    has_more |= is_more;
  });
  return has_more;
}

bool Table::enter_left_hints(pmem::Persister& persister, std::uint32_t at_most) noexcept {
  bool has_more = false;
  data_.columns.for_each_used([&](columns::Column& column) {
    has_more |= column.dictionary().enter_left_hints(persister, at_most);
  });
  return has_more;
}

void Table::set_hint_tail_max(std::uint32_t entries) noexcept {
  data_.columns.for_each_used(
      [&](columns::Column& column) { column.dictionary().set_hint_tail_max(entries); });
}

void Table::add_pages(pmem::WarmList& pages) const {
  for (const KeyIndex* key : data_.keys) key->add_pages(pages);
  data_.runs.add_pages(pages);
  data_.columns.for_each_used([&](const columns::Column& column) { column.add_pages(pages); });
  data_.rows.add_pages(pages);
}

void Table::release_all() {
  release_opening();
  unswept_.forget();
  if (const pmem::Extent block = schema_block_of(data_.pool, data_.layout); block.bytes != 0)
    data_.pool.allocator().release(block);
  data_.columns.for_each_used([](columns::Column& column) { column.release_all(); });
  release_added_columns();
  data_.runs.release_all();
  data_.rows.release_all();
  data_.keys.release_all();
  free_rows_.release_all();
}

}  // namespace flugs::engine
