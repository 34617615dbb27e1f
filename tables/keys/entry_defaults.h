#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/check.h"
#include "flugs/function_ref.h"
#include "flugs/status.h"
#include "tables/catalog/key_kinds.h"

namespace flugs::pmem {
class Persister;
class Pool;
class WarmList;
}  // namespace flugs::pmem

namespace flugs::columns {
class ColumnArray;
}  // namespace flugs::columns

namespace flugs::recovery {
class Phases;
}  // namespace flugs::recovery

// Each kind of index has a class with the functions that KeyEntries calls. Here are those that a
// whole group of kinds answers alike.
namespace flugs::engine {

class DeferredRows;
class IndexRuns;
class KeyColumns;
class KeyRuns;
class RowStore;

/// The hash of a row's key, if known: the key may be out of the caches when it is wanted.
using KnownHash = std::optional<std::uint64_t>;
/// Whether a newer row in the index leads to the row that is about to be entered.
using LeadsTo = FunctionRef<bool(std::uint32_t newer, std::uint32_t row)>;

/// Where the entries of a key are found, or made of.
struct KeyParts {
  pmem::Pool& pool;
  std::byte* room;  ///< of the key, in the table's extent; null: its entries are not in the pool
  const RowStore& rows;
  const columns::ColumnArray& columns;
  const IndexRuns& runs;
  std::size_t number;  ///< of the key in the table
};
/// What the class of each kind is constructed from.
struct EntriesOrigin {
  const KeyColumns& key;
  const KeyRuns& runs;
  const KeyParts& parts;
  std::string owner;  ///< for messages
  bool is_finished;   ///< false: the key is being made of existing rows
};

/// The answer for a row without the entry that it must have. Its key comes from bytes in the pool,
/// which do not change while the row lives, unless data that opening cannot check is damaged.
Status missing_entry(std::uint32_t row);

/// Base of entries in DRAM: nothing of them is in the pool.
struct EntriesInDram {
  static Status load() { return {}; }
  static void recover(pmem::Persister&) noexcept {}
  static bool is_loaded() noexcept { return false; }
  static Status damage() { return {}; }
  static Status check_unread() { return {}; }
  static bool has_much_to_check() noexcept { return false; }
  static void add_pages(pmem::WarmList&) noexcept {}
  static std::uint64_t bytes_in_pool() noexcept { return 0; }
};

/// Base of entries in the pool: complete after each opening, and never made of existing rows.
struct EntriesInPool {
  static Status rebuild(recovery::Phases&, const char*) { return {}; }
  static void defer_rows(std::uint32_t, std::uint64_t) noexcept {}
  static DeferredRows* deferred_rows() noexcept { return nullptr; }
  static Status enter_deferred(recovery::Phases&, const char*, LeadsTo) { return {}; }
  static void add_existing(std::uint32_t, std::uint64_t, LeadsTo,
                           FunctionRef<void(std::uint32_t other)>) noexcept {
    FLUGS_CHECK(is_in_pool(kModeOfAddedKeys));  // an added key would need it
  }
  static void finish() noexcept {}
  static std::size_t memory_bytes() noexcept { return 0; }
};

}  // namespace flugs::engine
