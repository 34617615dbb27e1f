#pragma once

#include <cstdint>

#include "base/mutex.h"
#include "columns/column/column_array.h"
#include "columns/dictionary/dictionary_hints.h"
#include "flugs/status.h"
#include "pmem/medium/persist.h"

namespace flugs::engine {

struct TableData;

// Work on hint indexes and dictionaries that opening and writers leave for threads in the
// background.

// Checks of what opening has not looked at. `build_mutex` is the table's (IndexBuild): no thread
// makes indexes, or frees what editions of columns own, while one of these works.
/// Whether the checks take so long that a thread should make them.
bool has_much_to_check(const TableData& data) noexcept;
/// Checks some entries of dictionaries; true: there are more.
bool check_more_entries(const TableData& data, Mutex& build_mutex);
/// Checks all of them, and hints. Fails with kCorrupt.
Status check_hints(const TableData& data, Mutex& build_mutex);

// These call the function of that name of all dictionaries of a table (Dictionary::keep_hints,
// enter_left_hints, set_hint_tail_max).
/// At most `at_most` of each; true: there are more.
bool keep_hints(const columns::ColumnArray& columns, pmem::Persister& persister,
                std::uint32_t at_most = columns::DictionaryHints::kKeptMax) noexcept;
bool enter_left_hints(const columns::ColumnArray& columns, pmem::Persister& persister,
                      std::uint32_t at_most) noexcept;
void set_hint_tail_max(const columns::ColumnArray& columns, std::uint32_t entries) noexcept;

}  // namespace flugs::engine
