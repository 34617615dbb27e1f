#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/spin_lock.h"
#include "columns/index/hint_directory.h"
#include "columns/index/hint_slot.h"

namespace flugs::columns {

/// The locks that the segments of a hint index share; innermost, one at a time. There are many
/// indexes, and few are written to, so a page of locks takes memory only when the first of them is
/// taken.
class HintLocks {
 public:
  struct alignas(64) Lock : SpinLock {};  // free when all of it is zero

  HintLocks() = default;
  /// The lock of the segment that a word of the directory names.
  Lock& of(std::uint64_t word) noexcept {
    return locks_[hint_word::offset_of(word) / sizeof(HintSegmentLayout) & mask_];
  }

 private:
  struct GiveBack {
    void operator()(Lock* locks) const noexcept;
  };
  /// 16 per processor, so two threads that write to different segments seldom need the same lock.
  static std::size_t count() noexcept;
  static Lock* take();

  const std::size_t mask_ = count() - 1;
  const std::unique_ptr<Lock[], GiveBack> locks_{take()};
};

/// Holds the lock of the segment of a fingerprint. Meanwhile no other thread changes the segment's
/// entries or its word of the directory. Short-lived; one at a time per index and thread.
class HintLock {
 public:
  HintLock(const HintDirectory& directory, HintLocks& locks, std::uint32_t fingerprint) noexcept;
  ~HintLock() { lock_->unlock(); }
  HintLock(const HintLock&) = delete;
  HintLock& operator=(const HintLock&) = delete;

  /// 0: the index is empty, or the word is damaged.
  std::uint64_t word() const noexcept { return word_; }

 private:
  HintLocks::Lock* lock_;
  std::uint64_t word_;
};

}  // namespace flugs::columns
