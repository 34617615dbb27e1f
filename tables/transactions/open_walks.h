#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "tables/transactions/open_walk.h"

namespace flugs::engine {

/// The walks that a transaction has begun. Abandoned ones go when the next one begins, or when the
/// transaction writes.
/// Thread-safety: one thread at a time, that of the transaction or the one that ends it.
class OpenWalks final {
 public:
  bool empty() const noexcept { return walks_.empty(); }

  void add(std::shared_ptr<OpenWalk> walk) {
    forget_abandoned();
    walks_.push_back(std::move(walk));
  }
  /// Called before the transaction writes.
  void read_rest() {
    forget_abandoned();
    for (const std::shared_ptr<OpenWalk>& walk : walks_) walk->read_rest();
  }
  /// Ends the walks that began behind the first `writes` writes of the transaction.
  void end_since(std::size_t writes) noexcept {
    for (const std::shared_ptr<OpenWalk>& walk : walks_)
      if (walk->began_at() > writes) walk->end();
  }
  void end_all() noexcept {
    for (const std::shared_ptr<OpenWalk>& walk : walks_) walk->end();
    walks_.clear();
  }

 private:
  void forget_abandoned() {
    std::erase_if(walks_, [](const std::shared_ptr<OpenWalk>& walk) {
      return walk->is_abandoned() || walk->is_over();
    });
  }

  std::vector<std::shared_ptr<OpenWalk>> walks_;
};

}  // namespace flugs::engine
