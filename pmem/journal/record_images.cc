#include "pmem/journal/record_images.h"

#include <emmintrin.h>

#include <cstring>
#include <limits>

#include "base/check.h"
#include "pmem/journal/journal_format.h"
#include "pmem/medium/persist.h"

namespace flugs::pmem {

// The sanitizer would report the race, which is harmless: the engine's words are atomic, and any
// version of a line that it held after its flush is allowed on the medium.
__attribute__((no_sanitize("thread"), noinline)) void copy_words(std::byte* to,
                                                                 const std::byte* from,
                                                                 std::uint64_t bytes) noexcept {
  FLUGS_DCHECK(reinterpret_cast<std::uintptr_t>(from) % sizeof(__m128i) == 0);
  FLUGS_DCHECK(bytes % sizeof(__m128i) == 0);
  for (std::uint64_t at = 0; at < bytes; at += sizeof(__m128i)) {
    const __m128i words = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + at), words);
  }
}

std::uint64_t record_bytes(std::span<const LineRun> runs) noexcept {
  std::uint64_t bytes = sizeof(RecordHead);
  for (const LineRun& run : runs) bytes += sizeof(RunHead) + run.lines * kLineBytes;
  return (bytes + kRecordStep - 1) / kRecordStep * kRecordStep;
}

void write_record(std::byte* to, std::span<const LineRun> runs, const std::byte* base) noexcept {
  FLUGS_DCHECK(runs.size() <= std::numeric_limits<decltype(RecordHead::runs)>::max());
  const RecordHead head{.checksum = 0,
                        .bytes = static_cast<std::uint32_t>(record_bytes(runs)),
                        .kind = RecordKind::kLines,
                        .runs = static_cast<std::uint16_t>(runs.size())};
  std::memcpy(to, &head, sizeof head);
  std::byte* at = to + sizeof head;
  for (const LineRun& run : runs) {
    FLUGS_DCHECK(run.begin >= base);
    const auto offset = static_cast<std::uint64_t>(run.begin - base);
    FLUGS_DCHECK(offset % kLineBytes == 0);
    const RunHead run_head{.line = offset / kLineBytes, .lines = run.lines};
    std::memcpy(at, &run_head, sizeof run_head);
    at += sizeof run_head;
    copy_words(at, run.begin, run.lines * kLineBytes);
    at += run.lines * kLineBytes;
  }
  if (at != to + head.bytes) std::memset(at, 0, sizeof(RunHead));
}

}  // namespace flugs::pmem
