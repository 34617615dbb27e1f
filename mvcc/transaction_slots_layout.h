#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/check.h"

namespace flugs::mvcc {

/// One written row, in one word so that it cannot be torn: bit 63 set, bit 62 deleted (else
/// inserted), bit 61 clear, table (29 bits), row (32 bits). 0 is no entry. In a block, bit 61 says
/// that the next word is a mask: bit i stands for row + i, and the row is a multiple of 64. An
/// intent is only a hint: recovery touches a row only if its stamp is the very tag of the committed
/// transaction.
using Intent = std::uint64_t;

constexpr Intent make_intent(bool deletes, std::uint32_t table, std::uint32_t row) noexcept {
  FLUGS_DCHECK(table <= 0x1FFFFFFFu);
  return (Intent{1} << 63) | (Intent{deletes} << 62) | (Intent{table & 0x1FFFFFFFu} << 32) | row;
}
constexpr bool is_intent(Intent intent) noexcept { return (intent >> 63) != 0; }
constexpr bool intent_deletes(Intent intent) noexcept { return ((intent >> 62) & 1) != 0; }
constexpr std::uint32_t intent_table(Intent intent) noexcept {
  return static_cast<std::uint32_t>(intent >> 32) & 0x1FFFFFFFu;
}
constexpr std::uint32_t intent_row(Intent intent) noexcept {
  return static_cast<std::uint32_t>(intent);
}
constexpr bool has_mask(Intent intent) noexcept { return ((intent >> 61) & 1) != 0; }
constexpr Intent with_mask(Intent intent) noexcept { return intent | (Intent{1} << 61); }
constexpr Intent without_mask(Intent intent) noexcept { return intent & ~(Intent{1} << 61); }
static_assert(is_intent(make_intent(false, 0, 0)) && !intent_deletes(make_intent(false, 0, 0)));
static_assert(intent_deletes(make_intent(true, 0x1FFFFFFF, 0xFFFFFFFF)));
static_assert(intent_table(make_intent(true, 0x1FFFFFFF, 0)) == 0x1FFFFFFF);
static_assert(intent_row(make_intent(true, 0x1FFFFFFF, 0xFFFFFFFF)) == 0xFFFFFFFF);

/// In the pool: all that one transaction needs to commit, in one line. It is committed if and only
/// if `commit_check` fits generation and time-stamp.
struct SlotHalfLayout {
  static constexpr std::uint32_t kInlineIntents = 4;
  std::uint64_t commit_generation;
  std::uint64_t commit_timestamp;
  std::uint64_t commit_check;
  std::uint64_t overflow;  ///< offset of the first IntentBlockLayout, 0: none yet
  /// Or three intents, and in the last word, with bit 63 clear, the number of words in its blocks.
  Intent intents[kInlineIntents];
};
static_assert(sizeof(SlotHalfLayout) == 64);
static_assert(offsetof(SlotHalfLayout, commit_check) == 16);
static_assert(offsetof(SlotHalfLayout, intents) == 32);

/// In the pool: a slot. Its transactions use the halves in turn. So the stamps of a transaction are
/// durable (by the next one's first fence) before its half is used again.
struct TransactionSlotLayout {
  SlotHalfLayout half[2];
};
static_assert(sizeof(TransactionSlotLayout) == 128);

/// In the pool: more intents, in an extent of their own, or in a chain of extents.
struct IntentBlockLayout {
  static constexpr std::uint64_t kMagic = 0x544e45544e494c46u;  // "FLINTENT"
  std::uint64_t magic;
  std::uint64_t bytes;     ///< of the extent, this header included
  std::uint64_t next;      ///< offset of the block with the words behind those here, 0: none
  std::uint64_t checksum;  ///< XXH3-64 of the three words above
  std::uint64_t reserved[4];
  // Intents follow.
};
static_assert(sizeof(IntentBlockLayout) == 64);

/// In the pool: the slot array's header; generation limits (8 bytes per slot, padded to a line) and
/// the slots follow.
struct SlotArrayLayout {
  static constexpr std::uint64_t kMagic = 0x53544f4c53474c46u;  // "FLGSLOTS"
  std::uint64_t magic;
  std::uint64_t slot_count;
  std::uint64_t timestamp_floor;  ///< no time-stamp up to it will be given out again
  std::uint64_t checksum;         ///< XXH3-64 of the three words above
  std::uint64_t reserved[4];
};
static_assert(sizeof(SlotArrayLayout) == 64);
static_assert(offsetof(SlotArrayLayout, checksum) == 24);
static_assert(std::is_trivially_copyable_v<SlotArrayLayout> &&
              std::is_trivially_copyable_v<TransactionSlotLayout>);

}  // namespace flugs::mvcc
