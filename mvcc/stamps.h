#pragma once

#include <cstdint>
#include <type_traits>

#include "base/shared_words.h"

namespace flugs::mvcc {

/// The content of a row's created or deleted word.
///   0                  never created / not deleted: a zero-filled chunk holds no rows
///   bit 63 clear       the commit time-stamp, 1 to 2^63 - 1
///   bit 63 set         in flight: slot (12 bits) and generation (51 bits) of the transaction
/// A slot never uses a generation twice, also not after a crash, so a tag that was left behind is
/// never taken for a later transaction's.
///
/// Source: SOFORT (DaMoN 2014), section 2 (CTS, DTS, TXID), with generations against reuse.
using Stamp = std::uint64_t;

inline constexpr Stamp kNoStamp = 0;
inline constexpr int kGenerationBits = 51;  // 2^51 / (3 M transactions/s) = 23 years per slot
inline constexpr int kSlotBits = 12;
inline constexpr std::uint32_t kSlotsMax = (1u << kSlotBits) - 96;  // 4000, the documented bound
inline constexpr std::uint64_t kGenerationMax = (std::uint64_t{1} << kGenerationBits) - 1;
inline constexpr std::uint64_t kTimestampMax = (std::uint64_t{1} << 63) - 1;
static_assert(1 + kSlotBits + kGenerationBits == 64);

constexpr bool is_tag(Stamp stamp) noexcept { return (stamp >> 63) != 0; }
constexpr Stamp make_tag(std::uint32_t slot, std::uint64_t generation) noexcept {
  return (Stamp{1} << 63) | (Stamp{slot} << kGenerationBits) | generation;
}
constexpr std::uint32_t slot_of(Stamp tag) noexcept {
  return static_cast<std::uint32_t>(tag >> kGenerationBits) & ((1u << kSlotBits) - 1);
}
constexpr std::uint64_t generation_of(Stamp tag) noexcept { return tag & kGenerationMax; }
static_assert(kSlotsMax <= (1u << kSlotBits));
static_assert(is_tag(make_tag(0, 0)) && !is_tag(kTimestampMax));
static_assert(slot_of(make_tag(kSlotsMax - 1, kGenerationMax)) == kSlotsMax - 1);
static_assert(generation_of(make_tag(kSlotsMax - 1, kGenerationMax)) == kGenerationMax);

/// In the pool, the first 16 bytes of every row: its MVCC entry (CTS and DTS in the paper).
struct VersionLayout {
  Stamp created;
  Stamp deleted;
};
static_assert(sizeof(VersionLayout) == 16 && std::is_trivially_copyable_v<VersionLayout>);

inline Stamp load_stamp(const Stamp& stamp) noexcept {
  note_read(SharedWord::kRowStamps, &stamp);
  return __atomic_load_n(&stamp, __ATOMIC_ACQUIRE);
}
inline void store_stamp(Stamp& stamp, Stamp value) noexcept {
  note_write(SharedWord::kRowStamps, &stamp);
  __atomic_store_n(&stamp, value, __ATOMIC_RELEASE);
}
/// Seq_cst, because the caller may look afterwards whether the row is locked
/// (tables/transactions/row_locks.h). The instruction is the same.
inline bool exchange_stamp(Stamp& stamp, Stamp expected, Stamp desired) noexcept {
  note_write(SharedWord::kRowStamps, &stamp);
  return __atomic_compare_exchange_n(&stamp, &expected, desired, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_ACQUIRE);
}

}  // namespace flugs::mvcc
