// Checks of a dictionary's entries after opening: whether their proofs fit.

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "columns/dictionary/dictionary.h"

namespace flugs::columns {

Status Dictionary::torn_entry(std::uint32_t id) const {
  return Status(StatusCode::kCorrupt,
                fmt::format("{}: {}: ValueID {} at offset {}: expected an entry whose proof fits, "
                            "found another one",
                            pool_.path(), owner_, id, entry(id) - pool_.base()));
}

Status Dictionary::check_entries(std::uint32_t at_most, bool& has_more) {
  const std::uint32_t first = unchecked_.load(std::memory_order_relaxed);
  FLUGS_CHECK(first <= unchecked_end_ && unchecked_end_ <= count());
  const std::uint32_t end = first + std::min(at_most, unchecked_end_ - first);
  for (std::uint32_t id = first; id < end; ++id) {
    std::uint64_t hash = 0;
    if (prove(id, hash) != Proof::kTorn) continue;
    unchecked_.store(id, std::memory_order_release);  // the next call must find it again
    return torn_entry(id);
  }
  unchecked_.store(end, std::memory_order_release);
  has_more = end < unchecked_end_;
  return {};
}

Status Dictionary::verify() const {
  const std::uint32_t end = count();
  std::uint64_t values = 0;
  for (std::uint32_t id = 0; id < end; ++id) {
    std::uint64_t hash = 0;
    const Proof proof = prove(id, hash);
    if (proof == Proof::kTorn) return torn_entry(id);
    if (proof == Proof::kValue) {
      ++values;
      if (const std::uint32_t found = find(value(id), hash); found != id)
        return Status(StatusCode::kCorrupt,
                      fmt::format("{}: {}: the value {} of ValueID {} is indexed under ValueID {}",
                                  pool_.path(), owner_, value(id).to_string(), id, found));
    }
  }
  if (!index_) return {};
  if (const std::size_t indexed = index_->size(); indexed != values)
    return Status(StatusCode::kCorrupt, fmt::format("{}: {}: {} entries, but {} in the index",
                                                    pool_.path(), owner_, values, indexed));
  return {};
}

}  // namespace flugs::columns
