#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

#include "base/check.h"
#include "base/shared_words.h"
#include "columns/index/hint_index_layout.h"

#if defined(__SSE2__) && !defined(__SANITIZE_THREAD__)
#include <emmintrin.h>
#define FLUGS_HINT_LINE_SSE2 1
#else
#define FLUGS_HINT_LINE_SSE2 0
#endif

namespace flugs::columns {

/// The slots of a line of a hint index, each as it was at some time during the call of
/// `read_hint_line`, and sets of slots: bit i is slot i.
struct HintLine {
  static constexpr std::uint32_t kSlots = HintSegmentLayout::kSlots;
  static_assert(kSlots % 4 == 0);  // vectors of four are read
  std::array<std::uint64_t, kSlots> values;
  std::uint32_t matching;  ///< entries with the fingerprint
  std::uint32_t free;      ///< slots for a new entry
  std::uint32_t unused;    ///< the free slots that end a look-up

  /// Calls visit(slot number, value) for each of `matching` until it returns true; true if one did.
  template <typename F>
  bool any(F&& visit) const {
    for (std::uint32_t left = matching; left != 0; left &= left - 1) {
      const auto i = static_cast<std::uint32_t>(std::countr_zero(left));
      if (visit(i, values[i])) return true;
    }
    return false;
  }
};

/// Reads slot by slot.
inline HintLine read_hint_slots(const std::uint64_t* slots, std::uint32_t fingerprint) noexcept {
  HintLine line{};
  for (std::uint32_t i = 0; i < HintLine::kSlots; ++i) {
    const std::uint64_t slot = __atomic_load_n(&slots[i], __ATOMIC_ACQUIRE);
    const bool is_free = static_cast<std::uint32_t>(slot) == 0;
    const bool has_fingerprint = (slot >> 32) == fingerprint;
    line.values[i] = slot;
    line.matching |= static_cast<std::uint32_t>(has_fingerprint && !is_free) << i;
    line.free |= static_cast<std::uint32_t>(is_free) << i;
    line.unused |= static_cast<std::uint32_t>(slot == 0) << i;
  }
  return line;
}

#if FLUGS_HINT_LINE_SSE2
// Other threads store eight bytes at a time to slots while this reads. x86-64 reads each aligned
// eight bytes of a vector at once, and loads in order; the fence makes the compiler keep that
// order. The thread sanitizer knows neither, and gets the loop.
inline HintLine read_hint_vectors(const std::uint64_t* slots, std::uint32_t fingerprint) noexcept {
  HintLine line{};
  const __m128i wanted = _mm_set1_epi32(static_cast<int>(fingerprint));
  const __m128i zero = _mm_setzero_si128();
  const auto bits = [](__m128i lanes) {
    return static_cast<std::uint32_t>(_mm_movemask_ps(_mm_castsi128_ps(lanes)));
  };
  for (std::uint32_t i = 0; i < HintLine::kSlots; i += 4) {
    const __m128i first = _mm_load_si128(reinterpret_cast<const __m128i*>(slots + i));
    const __m128i second = _mm_load_si128(reinterpret_cast<const __m128i*>(slots + i + 2));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(&line.values[i]), first);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(&line.values[i + 2]), second);
    const __m128 a = _mm_castsi128_ps(first);
    const __m128 b = _mm_castsi128_ps(second);
    const __m128i payloads = _mm_castps_si128(_mm_shuffle_ps(a, b, _MM_SHUFFLE(2, 0, 2, 0)));
    const __m128i fingerprints = _mm_castps_si128(_mm_shuffle_ps(a, b, _MM_SHUFFLE(3, 1, 3, 1)));
    const __m128i is_free = _mm_cmpeq_epi32(payloads, zero);
    const __m128i matches = _mm_cmpeq_epi32(fingerprints, wanted);
    line.matching |= bits(_mm_andnot_si128(is_free, matches)) << i;
    line.free |= bits(is_free) << i;
    line.unused |= bits(_mm_and_si128(is_free, _mm_cmpeq_epi32(fingerprints, zero))) << i;
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  return line;
}
#endif

/// Reads a line, aligned to 64 bytes, that other threads may write to. What a writer stored before
/// it stored a slot's value is visible afterwards.
inline HintLine read_hint_line(const std::uint64_t* slots, std::uint32_t fingerprint) noexcept {
  FLUGS_DCHECK(reinterpret_cast<std::uintptr_t>(slots) % 64 == 0);
  note_read(SharedWord::kHintLine, slots);
#if FLUGS_HINT_LINE_SSE2
  return read_hint_vectors(slots, fingerprint);
#else
  return read_hint_slots(slots, fingerprint);
#endif
}

}  // namespace flugs::columns
