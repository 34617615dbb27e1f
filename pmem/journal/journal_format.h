#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include "flugs/status.h"
#include "pmem/medium/line_journal.h"
#include "pmem/medium/medium.h"

namespace flugs::pmem {

// The file of a journal. It begins with two copies of its head, each in a page of its own. Behind
// them lies a ring of segments: the byte at place p of the journal lies at p % data_bytes of the
// ring. A record does not cross the end of a segment. docs/format.md draws the file.

inline constexpr std::array<char, 8> kJournalMagic = {'f', 'l', 'u', 'g', 's', 'J', 'L', '\n'};
inline constexpr std::uint32_t kJournalVersion = 2;
inline constexpr std::uint64_t kJournalDataOffset = 2 * kPageBytes;
/// Places, epochs and sequences of every journal are below this number. A head with a greater one
/// is damaged, even if its checksum is right. Sums of smaller numbers do not overflow.
inline constexpr std::uint64_t kJournalCountMax = std::uint64_t{1} << 62;

/// The first page that begins at `place` or behind it.
constexpr JournalPlace page_end(JournalPlace place) noexcept {
  return (place + kPageBytes - 1) / kPageBytes * kPageBytes;
}

/// The end of the segment that has `place`.
constexpr JournalPlace segment_end(JournalPlace place, std::uint64_t segment_bytes) noexcept {
  return (place / segment_bytes + 1) * segment_bytes;
}

/// Each of the two copies is written in turn; the greater sequence of whole copies counts.
struct JournalHead {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t head_bytes;  ///< sizeof(JournalHead)
  std::uint64_t pool_uuid;
  std::uint64_t journal_id;  ///< random, not 0; another one each time that the ring begins anew
  std::uint64_t sequence;
  std::uint64_t data_bytes;     ///< of the ring, a multiple of segment_bytes
  std::uint64_t segment_bytes;  ///< a power of two
  std::uint64_t tail;           ///< replay begins here: all before it is in the pool's file
  std::uint64_t tail_epoch;     ///< of the record there
  std::uint64_t needed;         ///< the pool's file needs the records up to here
  std::uint64_t epoch;          ///< the number of openings; no record has a greater one
  std::uint64_t is_closed;      ///< 1: no pool needs the journal; 0: the pool that names it may
  std::array<std::uint64_t, 3> reserved;
  std::uint64_t checksum;  ///< XXH3, 64 bits, of all fields before
};
static_assert(sizeof(JournalHead) == 128);
static_assert(sizeof(JournalHead) <= kPageBytes);
static_assert(std::has_unique_object_representations_v<JournalHead>);  // no gap has a checksum
static_assert(offsetof(JournalHead, checksum) + sizeof(std::uint64_t) == sizeof(JournalHead));

enum class RecordKind : std::uint16_t {
  kLines = 1,   ///< runs of lines: a RunHead each, then the images
  kPad = 2,     ///< nothing, up to the next record
  kResume = 3,  ///< a ResumeBody: the first record of an opening
  kRevoke = 4,  ///< runs of lines, a RunHead each: whole pages that the pool's file has newer
};

struct RecordHead {
  std::uint64_t
      checksum;         ///< XXH3, 64 bits, of the rest, seeded; of a pad: of the rest of the head
  std::uint32_t bytes;  ///< of the whole record, a multiple of kRecordStep
  RecordKind kind;
  std::uint16_t runs;
};
static_assert(sizeof(RecordHead) == 16);
static_assert(offsetof(RecordHead, checksum) == 0);  // the checksum covers what is behind it
inline constexpr std::uint64_t kRecordStep = 16;
// The least pad up to the end of a page has room for its head.
static_assert(sizeof(RecordHead) <= kRecordStep && kPageBytes % kRecordStep == 0);

struct RunHead {
  std::uint64_t line : 44;  ///< offset in the pool / kLineBytes
  std::uint64_t lines : 20;
};
/// The most lines that a run in a record of kind kRevoke has.
inline constexpr std::uint64_t kRevokedLinesMax = std::uint64_t{1} << 19;
static_assert(kRevokedLinesMax * kLineBytes % kPageBytes == 0);  // replay takes whole pages
static_assert(RunHead{.line = 0, .lines = kRevokedLinesMax}.lines == kRevokedLinesMax);
static_assert(sizeof(RunHead) == 8);

struct ResumeBody {
  std::uint64_t continues;  ///< the place where the records before it end
  std::uint64_t epoch;
};
static_assert(sizeof(ResumeBody) == 16);

/// What distinguishes a record from one that lay at its place before.
struct RecordIdentity {
  std::uint64_t journal_id;
  JournalPlace place;
  std::uint64_t epoch;
};

std::uint64_t checksum_of(const JournalHead& head) noexcept;
/// `record` has as many bytes as its head says.
std::uint64_t checksum_of(std::span<const std::byte> record,
                          const RecordIdentity& identity) noexcept;
/// Whether a whole record of this identity begins `bytes`, which end with the segment.
bool is_record(std::span<const std::byte> bytes, const RecordIdentity& identity) noexcept;

/// Sizes of a journal for which `wanted` bytes are asked: the ring, and its segments.
struct JournalShape {
  std::uint64_t data_bytes;
  std::uint64_t segment_bytes;
};
JournalShape journal_shape(std::uint64_t wanted) noexcept;

/// Whether a whole copy, of any version, says that no pool needs the journal, and no whole copy
/// that counts more says otherwise.
bool is_closed_journal(const std::array<JournalHead, 2>& copies) noexcept;

/// The copy that counts. kCorrupt: none is whole, or it contradicts itself; kIncompatible: it is of
/// another version.
Result<JournalHead> choose_head(const std::array<JournalHead, 2>& copies, std::uint64_t file_bytes,
                                const std::string& where);

}  // namespace flugs::pmem
