#include "tables/data/table_hints.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "tables/data/table_data.h"

namespace flugs::engine {

bool has_much_to_check(const TableData& data) noexcept {
  bool has_much = false;
  data.columns.for_each_used([&](columns::Column& column) {
    const columns::DictionaryHints* hints = column.dictionary().hints();
    has_much |= hints != nullptr && (hints->has_entries_to_check() || hints->has_much_to_check());
  });
  return has_much || std::any_of(data.keys.begin(), data.keys.end(), [](const auto& key) {
           return key->entries().has_much_to_check();
         });
}

// Works for some milliseconds at most, because a drop of the table waits for it. check_hints finds
// again any damage found here.
bool check_more_entries(const TableData& data, Mutex& build_mutex) {
  constexpr std::uint32_t kAtATime = 1u << 16;
  const std::lock_guard guard(build_mutex);
  bool has_more = false;
  if (data.is_dropped()) return false;
  data.columns.for_each_used([&](columns::Column& column) {
    columns::DictionaryHints* hints = column.dictionary().hints();
    if (hints != nullptr && !has_more) static_cast<void>(hints->check_entries(kAtATime, has_more));
  });
  return has_more;
}

// Must not run while a key is dropped (DatabaseCore::retire_key).
Status check_hints(const TableData& data, Mutex& build_mutex) {
  while (check_more_entries(data, build_mutex)) {
  }
  const std::lock_guard guard(build_mutex);
  Status first;
  if (data.is_dropped()) return first;
  const auto note = [&](Status status) {
    if (first.ok()) first = std::move(status);
  };
  bool has_more = false;
  data.columns.for_each_used([&](columns::Column& column) {
    columns::DictionaryHints* hints = column.dictionary().hints();
    if (hints == nullptr) return;
    note(hints->check_entries(1, has_more));
    note(hints->check_index());
  });
  for (KeyIndex* key : data.keys) note(key->entries().check_unread());
  return first;
}

// Enters the hints that opening left for one column at a time, as each column takes long.
bool keep_hints(const columns::ColumnArray& columns, pmem::Persister& persister,
                std::uint32_t at_most) noexcept {
  bool has_more = false;
  std::uint32_t left_at_most = columns::DictionaryHints::kEnteredMax;
  columns.for_each_used([&](columns::Column& column) {
    columns::DictionaryHints* hints = column.dictionary().hints();
    if (hints == nullptr) return;
    const bool is_left = hints->has_left();
    if (is_left && left_at_most == 0) {
      has_more = true;
      return;
    }
    const bool is_more = hints->keep(persister, at_most, left_at_most);
    if (is_left && is_more) left_at_most = 0;
    has_more |= is_more;
  });
  return has_more;
}

bool enter_left_hints(const columns::ColumnArray& columns, pmem::Persister& persister,
                      std::uint32_t at_most) noexcept {
  bool has_more = false;
  columns.for_each_used([&](columns::Column& column) {
    columns::DictionaryHints* hints = column.dictionary().hints();
    has_more |= hints != nullptr && hints->enter_left(persister, at_most);
  });
  return has_more;
}

void set_hint_tail_max(const columns::ColumnArray& columns, std::uint32_t entries) noexcept {
  columns.for_each_used([&](columns::Column& column) {
    if (column.dictionary().has_hints()) column.dictionary().hints()->set_tail_max(entries);
  });
}

}  // namespace flugs::engine
