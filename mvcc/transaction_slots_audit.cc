// What an audit says of commit records and intents.

#include <fmt/format.h>

#include "mvcc/commit.h"
#include "mvcc/transaction_slots.h"

namespace flugs::mvcc {

void TransactionSlots::audit(FunctionRef<void(bool damaged, const std::string& words)> visit) {
  for (std::uint32_t slot = 0; slot < array_slots_; ++slot) {
    for (std::uint32_t index = 0; index < 2; ++index) {
      const SlotHalfLayout& half = slot_layout(slot).half[index];
      const std::string where =
          fmt::format("{}: slot {}, half {} at offset {}", pool_.path(), slot, index,
                      reinterpret_cast<const std::byte*>(&half) - pool_.base());
      const bool is_used =
          (half.commit_generation | half.commit_timestamp | half.commit_check) != 0;
      if (is_used && !Commit::is_committed(slot, half)) {
        visit(false,
              fmt::format("{}: commit record of generation {}, time-stamp {}: check expected "
                          "{:016x}, found {:016x}: torn by a crash, or damaged",
                          where, half.commit_generation, half.commit_timestamp,
                          Commit::check_of(slot, half.commit_generation, half.commit_timestamp),
                          half.commit_check));
      } else if (is_used && (half.commit_generation >= generation_limit(slot) ||
                             (half.commit_generation & 1) != index)) {
        visit(true, fmt::format("{}: committed generation expected below {} and of this half, "
                                "found {}",
                                where, generation_limit(slot), half.commit_generation));
      }
      const std::uint64_t last = half.intents[SlotHalfLayout::kInlineIntents - 1];
      const std::uint64_t capacity = blocks_[slot * 2 + index].capacity();
      if (!is_intent(last) && last > capacity)
        visit(true, fmt::format("{}: intents in its blocks expected at most {}, found {}", where,
                                capacity, last));
    }
  }
}

}  // namespace flugs::mvcc
