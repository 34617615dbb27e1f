#include "pmem/journal/journal_format.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"

namespace flugs::pmem {

namespace {

constexpr std::uint64_t kSegmentBytesMin = 4 * kPageBytes;
constexpr std::uint64_t kSegmentBytesMax = std::uint64_t{4} << 20;
constexpr std::uint64_t kSegmentsMin = 4;
static_assert(std::has_single_bit(kSegmentBytesMin) && std::has_single_bit(kSegmentBytesMax));
static_assert(kSegmentBytesMin % kPageBytes == 0);

std::uint64_t seed_of(const RecordIdentity& identity) noexcept {
  // Odd factors: no two close places of close epochs have one seed.
  return identity.journal_id ^ (identity.place * 0x9E3779B97F4A7C15u) ^
         (identity.epoch * 0xC2B2AE3D27D4EB4Fu);
}

Status bad_journal(const std::string& where, const std::string& what) {
  return Status(StatusCode::kCorrupt, fmt::format("{}: {}", where, what));
}

}  // namespace

std::uint64_t checksum_of(const JournalHead& head) noexcept {
  return XXH3_64bits(&head, offsetof(JournalHead, checksum));
}

std::uint64_t checksum_of(std::span<const std::byte> record,
                          const RecordIdentity& identity) noexcept {
  FLUGS_DCHECK(record.size() >= sizeof(RecordHead));
  RecordHead head;
  std::memcpy(&head, record.data(), sizeof head);
  const std::size_t covered = head.kind == RecordKind::kPad ? sizeof head : record.size();
  constexpr std::size_t kFirst = sizeof head.checksum;
  return XXH3_64bits_withSeed(record.data() + kFirst, covered - kFirst, seed_of(identity));
}

bool is_record(std::span<const std::byte> bytes, const RecordIdentity& identity) noexcept {
  RecordHead head;
  if (bytes.size() < sizeof head) return false;
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.bytes < sizeof head || head.bytes % kRecordStep != 0 || head.bytes > bytes.size())
    return false;
  return head.checksum == checksum_of(bytes.first(head.bytes), identity);
}

JournalShape journal_shape(std::uint64_t wanted) noexcept {
  const std::uint64_t segment = std::clamp(std::bit_floor(std::max<std::uint64_t>(wanted, 1) / 8),
                                           kSegmentBytesMin, kSegmentBytesMax);
  const std::uint64_t segments = std::max((wanted + segment - 1) / segment, kSegmentsMin);
  return {.data_bytes = segments * segment, .segment_bytes = segment};
}

namespace {

/// The whole copy with the greater sequence; null: no copy is whole.
const JournalHead* newest_of(const std::array<JournalHead, 2>& copies) noexcept {
  const JournalHead* best = nullptr;
  for (const JournalHead& copy : copies) {
    if (copy.magic != kJournalMagic || copy.checksum != checksum_of(copy)) continue;
    if (best == nullptr || copy.sequence > best->sequence) best = &copy;
  }
  return best;
}

}  // namespace

bool is_closed_journal(const std::array<JournalHead, 2>& copies) noexcept {
  const JournalHead* const head = newest_of(copies);
  return head != nullptr && head->head_bytes == sizeof(JournalHead) && head->is_closed == 1;
}

Result<JournalHead> choose_head(const std::array<JournalHead, 2>& copies, std::uint64_t file_bytes,
                                const std::string& where) {
  const JournalHead* const best = newest_of(copies);
  if (best == nullptr)
    return bad_journal(where, fmt::format("no intact head: checksums expected {:016x} and {:016x}, "
                                          "found {:016x} and {:016x}",
                                          checksum_of(copies[0]), checksum_of(copies[1]),
                                          copies[0].checksum, copies[1].checksum));
  if (best->version != kJournalVersion || best->head_bytes != sizeof(JournalHead))
    return Status(StatusCode::kIncompatible,
                  fmt::format("{}: journal version {}, but this program reads version {}: open and "
                              "close the pool with the flugs that wrote it",
                              where, best->version, kJournalVersion));
  const JournalShape shape{best->data_bytes, best->segment_bytes};
  const bool is_shape = std::has_single_bit(shape.segment_bytes) &&
                        shape.segment_bytes >= kSegmentBytesMin &&
                        shape.segment_bytes <= kSegmentBytesMax &&
                        shape.data_bytes % shape.segment_bytes == 0 && shape.data_bytes != 0;
  if (!is_shape || shape.data_bytes > file_bytes ||
      file_bytes - shape.data_bytes < kJournalDataOffset)
    return bad_journal(where,
                       fmt::format("a ring of {} bytes in segments of {}, expected a multiple "
                                   "inside the file of {} bytes",
                                   shape.data_bytes, shape.segment_bytes, file_bytes));
  if (best->tail % kRecordStep != 0 || best->needed < best->tail ||
      best->needed - best->tail > shape.data_bytes || best->tail_epoch > best->epoch)
    return bad_journal(
        where,
        fmt::format("head: replay from {} to {} at least, in a ring of {} bytes; "
                    "epochs {} and {}",
                    best->tail, best->needed, shape.data_bytes, best->tail_epoch, best->epoch));
  if (best->needed >= kJournalCountMax || best->epoch >= kJournalCountMax ||
      best->sequence >= kJournalCountMax)
    return bad_journal(
        where, fmt::format("head: place {}, epoch {}, sequence {}: all are below {}", best->needed,
                           best->epoch, best->sequence, kJournalCountMax));
  return *best;
}

}  // namespace flugs::pmem
