#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "pmem/medium/persist.h"

namespace flugs::columns {

class Dictionary;

/// Stores to the pool by a transaction, and entries that it relies on, that may not be durable yet.
/// They are flushed together just before the transaction's first fence, because a locked
/// instruction behind a flush would wait for it.
class Unflushed {
 public:
  struct Range {
    const void* address;
    std::size_t bytes;
  };

  void add(const void* address, std::size_t bytes) {
    FLUGS_DCHECK(address != nullptr && bytes != 0);
    ranges_.push_back({address, bytes});
  }

  /// Dictionary entries [first, end) that the transaction refers to and that no known fence covers.
  /// They are flushed with everything else, whichever transaction wrote them.
  struct Entries {
    Dictionary* dictionary;
    std::uint32_t first;
    std::uint32_t end;
  };
  /// The state of the list for one dictionary.
  struct Last {
    const Dictionary* dictionary;
    std::size_t index;           ///< of the range that was added last
    std::uint32_t helped_until;  ///< other transactions' entries below it are on the list
  };
  Last* last(const Dictionary& dictionary) noexcept {
    for (Last& candidate : last_)
      if (candidate.dictionary == &dictionary) return &candidate;
    return nullptr;
  }
  Entries& entries(std::size_t index) noexcept {
    FLUGS_DCHECK(index < entries_.size());
    return entries_[index];
  }
  void add_entries(Dictionary& dictionary, std::uint32_t first, std::uint32_t end) {
    FLUGS_DCHECK(first < end);
    entries_.push_back({&dictionary, first, end});
    if (Last* known = last(dictionary); known != nullptr) {
      known->index = entries_.size() - 1;
    } else {
      last_.push_back({&dictionary, entries_.size() - 1, 0});
    }
  }

  void flush(pmem::Persister& persister, pmem::Label label) const noexcept;
  /// Call it when everything flushed before is durable.
  void mark_durable() noexcept;
  /// Call it then: keeps hints of dictionaries that have too many unkept ones.
  void keep_hints(pmem::Persister& persister) const noexcept;
  void clear() noexcept {
    ranges_.clear();
    entries_.clear();
    last_.clear();
  }
  bool empty() const noexcept { return ranges_.empty() && entries_.empty(); }

 private:
  std::vector<Range> ranges_;
  std::vector<Entries> entries_;
  std::vector<Last> last_;  // one per dictionary
};

}  // namespace flugs::columns
