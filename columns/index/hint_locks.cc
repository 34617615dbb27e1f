#include "columns/index/hint_locks.h"

#include <algorithm>
#include <bit>
#include <new>
#include <type_traits>

#include "base/processors.h"
#include "base/shared_words.h"
#include "base/zeroed_memory.h"

namespace flugs::columns {

std::size_t HintLocks::count() noexcept {
  constexpr std::size_t kLocksMin = 64;
  constexpr std::size_t kLocksMax = 16'384;
  constexpr std::size_t kLocksPerProcessor = 16;
  static const std::size_t count =
      std::bit_ceil(std::clamp(kLocksPerProcessor * processors(), kLocksMin, kLocksMax));
  return count;
}

HintLocks::Lock* HintLocks::take() {
  static_assert(std::is_trivially_destructible_v<Lock>);
  void* memory = try_take_zeroed(count() * sizeof(Lock));
  if (memory == nullptr) throw std::bad_alloc();
  return static_cast<Lock*>(memory);
}

void HintLocks::GiveBack::operator()(Lock* locks) const noexcept {
  give_back_zeroed(locks, count() * sizeof(Lock), 0);  // all are free, so all is zero
}

HintLock::HintLock(const HintDirectory& directory, HintLocks& locks,
                   std::uint32_t fingerprint) noexcept {
  for (;;) {
    HintDirectory::Copy* copy = directory.current();
    const std::size_t place = copy == nullptr ? 0 : copy->index_of(fingerprint);
    word_ = copy == nullptr ? 0 : directory.word_of(*copy, place);
    lock_ = &locks.of(word_);
    note_write(SharedWord::kHintLock, lock_);
    lock_->lock();
    if (directory.current() == copy &&
        (copy == nullptr || hint_slot::load(copy->word(place)) == word_))
      return;
    lock_->unlock();
  }
}

}  // namespace flugs::columns
