#include "pmem/kinds/object_format.h"

#include <fmt/format.h>
#include <libpmemobj/base.h>
#include <libpmemobj/pool_base.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "pmem/pool/pool_format.h"

namespace flugs::pmem {

namespace {

// check_object_head lets no smaller file pass.
static_assert(PMEMOBJ_MIN_POOL >= kZonesOffset + kZoneMetadataBytes + kChunkBytes);

template <typename T>
T load(std::span<const std::byte> bytes, std::uint64_t offset) noexcept {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

/// The first bytes as readable text.
std::string printable(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    const char c = static_cast<char>(byte);
    text += c >= ' ' && c <= '~' ? c : '.';
  }
  return text;
}

struct ExpectedWord {
  const char* what;
  std::uint64_t offset;
  std::uint64_t value;
};

Status corrupt_word(const std::string& where, const std::string& what, std::uint64_t offset,
                    std::uint64_t expected, std::uint64_t found) {
  return Status(StatusCode::kCorrupt,
                fmt::format("{}: {} at offset {}: expected {:#x}, found {:#x}", where, what, offset,
                            expected, found));
}

Status check_words(std::span<const std::byte> file, std::span<const ExpectedWord> words,
                   const std::string& where) {
  for (const ExpectedWord& word : words) {
    const auto found = load<std::uint64_t>(file, word.offset);
    if (found != word.value) return corrupt_word(where, word.what, word.offset, word.value, found);
  }
  return {};
}

// A lane has three logs, each with a header of 64 bytes (checksum, next, capacity, generation,
// flags, unused) and its entries. Before libpmemobj checks the checksum at opening, it walks the
// entries up to the capacity until one begins with 0, and an entry of an unknown kind never lets it
// return. A log that was never used has no entry; a processed redo log has a capacity of 0.
struct LaneLog {
  const char* name;
  std::uint64_t offset;
  std::uint64_t capacity;
  bool keeps_capacity;
};
constexpr std::array<LaneLog, 3> kLaneLogs = {{{"internal redo log", 0, 192, false},
                                               {"external redo log", 256, 640, false},
                                               {"undo log", 960, 2048, true}}};
constexpr std::uint64_t kLogHeaderBytes = 64;
static_assert(
    [] {
      std::uint64_t end = 0;
      for (const LaneLog& log : kLaneLogs) {
        if (log.offset != end) return false;
        end = log.offset + kLogHeaderBytes + log.capacity;
      }
      return end == kLaneBytes;
    }(),
    "the logs fill a lane without gaps");

Status check_lane_log(std::span<const std::byte> file, std::uint64_t lane, const LaneLog& log,
                      const std::string& where) {
  const std::uint64_t at = kDescriptorBytes + lane * kLaneBytes + log.offset;
  const auto words = load<std::array<std::uint64_t, 5>>(file, at);
  const bool fits = words[2] == log.capacity || (words[2] == 0 && !log.keeps_capacity);
  const auto first_entry = load<std::uint64_t>(file, at + kLogHeaderBytes);
  if (words[0] == 0 && words[1] == 0 && fits && words[4] == 0 &&
      (words[2] == 0 || first_entry == 0)) {
    return {};
  }
  return Status(StatusCode::kCorrupt,
                fmt::format("{}: lane {} of libpmemobj, {} at offset {}: expected an idle log "
                            "(0, 0, {}, any, 0), found {:#x}, {:#x}, {}, {}, {:#x}, first entry "
                            "{:#x}",
                            where, lane, log.name, at, log.capacity, words[0], words[1], words[2],
                            words[3], words[4], first_entry));
}

// A chunk in libpmemobj's heap, as in its header: 16 bits of kind, 16 of flags, 32 of size.
enum ChunkKind : std::uint16_t { kFree = 2, kUsed = 3, kRun = 4 };
constexpr std::uint32_t kZoneMagic = 0xC3F0A2D2u;

struct ChunkHeader {
  std::uint16_t kind;
  std::uint16_t flags;
  std::uint32_t chunks;
};
static_assert(sizeof(ChunkHeader) == 8);

/// Walks the chunks of one zone. The run, which holds the root object, is the first chunk of the
/// first zone.
Status check_zone(std::span<const std::byte> file, std::uint64_t zone, const std::string& where) {
  const std::uint64_t at = kZonesOffset + zone * kZoneBytes;
  // The last zone also takes the space behind it, if that is too little for another zone.
  const std::uint64_t chunks_max = (file.size() - at - kZoneMetadataBytes) / kChunkBytes;
  const std::uint64_t chunks_min = std::min(chunks_max, kZoneChunks);
  const auto magic = load<std::uint32_t>(file, at);
  const auto chunks = load<std::uint32_t>(file, at + 4);
  const std::string name = fmt::format("zone {} of libpmemobj's heap", zone);
  // A zone without any allocation so far has no header yet.
  if (magic == 0 && chunks == 0 && zone != 0) return {};
  if (magic != kZoneMagic) return corrupt_word(where, name + ": magic", at, kZoneMagic, magic);
  if (chunks < chunks_min || chunks > chunks_max)
    return corrupt_word(where, name + ": chunks", at + 4, chunks_min, chunks);
  std::uint32_t chunk = 0;
  while (chunk < chunks) {
    const std::uint64_t header_at = at + kZoneHeaderBytes + std::uint64_t{chunk} * 8;
    const auto header = load<ChunkHeader>(file, header_at);
    const bool is_run = header.kind == kRun && zone == 0 && chunk == 0;
    if ((header.kind != kFree && header.kind != kUsed && !is_run) || header.flags >= 16 ||
        header.chunks == 0 || header.chunks > chunks - chunk) {
      return Status(
          StatusCode::kCorrupt,
          fmt::format("{}: {}, chunk {}, header at offset {}: expected a free or used "
                      "chunk{} of at most {}, found kind {}, flags {:#x}, {} chunks",
                      where, name, chunk, header_at, zone == 0 ? ", or the run of the root," : "",
                      chunks - chunk, header.kind, header.flags, header.chunks));
    }
    chunk += header.chunks;
  }
  return {};
}

}  // namespace

Status check_object_head(std::span<const std::byte> file, const std::string& where) {
  const std::uint64_t bytes = file.size();
  const auto known = file.first(std::min<std::uint64_t>(bytes, kDescriptorBytes));
  if (std::all_of(known.begin(), known.end(), [](std::byte b) { return b == std::byte{0}; })) {
    return Status(
        StatusCode::kCorrupt,
        fmt::format("{}: {}: the creation of the pool was interrupted, or its header is lost",
                    where, bytes == 0 ? "is empty" : "begins with zeros only"));
  }
  if (bytes < kObjectSignature.size() || load<std::array<char, 8>>(file, 0) != kObjectSignature) {
    return Status(StatusCode::kIncompatible,
                  fmt::format("{}: not a flugs pool: it begins with \"{}\", expected \"PMEMOBJ.\"",
                              where, printable(known.first(std::min<std::size_t>(8, bytes)))));
  }
  if (bytes < PMEMOBJ_MIN_POOL) {
    return Status(StatusCode::kCorrupt,
                  fmt::format("{}: truncated: {} bytes, the smallest pool has {}", where, bytes,
                              PMEMOBJ_MIN_POOL));
  }
  const auto major = load<std::uint32_t>(file, kObjectMajorOffset);
  if (major != kObjectMajor) {
    return Status(StatusCode::kIncompatible,
                  fmt::format("{}: libpmemobj layout version {}, this program reads {}", where,
                              major, kObjectMajor));
  }
  const auto root = load<std::uint64_t>(file, kRootOffsetOffset);
  // Creation writes these in this order: the signature, the layout's name, the root.
  if (root == 0 || file[kLayoutNameOffset] == std::byte{0}) {
    return Status(StatusCode::kCorrupt,
                  fmt::format("{}: has no {}: the creation of the pool was interrupted, and the "
                              "file can be removed, or its header is damaged",
                              where, root == 0 ? "root object" : "layout name"));
  }
  static_assert(std::string_view(kObjectLayoutName) == "flugs");
  if (std::memcmp(file.data() + kLayoutNameOffset, kObjectLayoutName, sizeof("flugs")) != 0) {
    return Status(
        StatusCode::kIncompatible,
        fmt::format("{}: not a flugs pool: its libpmemobj layout is \"{}\", expected \"{}\"", where,
                    printable(file.subspan(kLayoutNameOffset, 16)), kObjectLayoutName));
  }
  if (root < kDescriptorBytes || root > bytes - sizeof(PoolRoot) - kLineBytes) {
    return Status(StatusCode::kCorrupt,
                  fmt::format("{}: root at offset {}, expected between {} and {}", where, root,
                              kDescriptorBytes, bytes));
  }
  return {};
}

Status check_object_descriptor(std::span<const std::byte> file, const std::string& where) {
  const std::array<ExpectedWord, 4> words = {
      {{"libpmemobj's offset of lanes", 5120, kDescriptorBytes},
       {"libpmemobj's number of lanes", 5128, kLanesCount},
       {"libpmemobj's offset of the heap", 5136, kHeapOffset},
       {"libpmemobj's size of the heap", 6176, file.size() - kHeapOffset}}};
  if (Status s = check_words(file, words, where); !s.ok()) return s;
  const std::uint64_t first = kZonesOffset + kZoneMetadataBytes;
  const auto root = load<std::uint64_t>(file, kRootOffsetOffset);
  const auto root_bytes = load<std::uint64_t>(file, kRootBytesOffset);
  if (root < first || root_bytes > file.size() || root > file.size() - root_bytes) {
    return Status(StatusCode::kCorrupt,
                  fmt::format("{}: root object: {} bytes at offset {}, expected between {} and {}",
                              where, root_bytes, root, first, file.size()));
  }
  return {};
}

Status check_object_lanes(std::span<const std::byte> file, const std::string& where) {
  for (std::uint64_t lane = 0; lane < kLanesCount; ++lane)
    for (const LaneLog& log : kLaneLogs)
      if (Status s = check_lane_log(file, lane, log, where); !s.ok()) return s;
  return {};
}

Status check_object_heap(std::span<const std::byte> file, const std::string& where) {
  const std::array<ExpectedWord, 5> words = {
      {{"libpmemobj's heap signature", kHeapOffset, 0x485f59524f4d454du},    // "MEMORY_H"
       {"libpmemobj's heap signature", kHeapOffset + 8, 0x5244485f504145u},  // "EAP_HDR"
       {"libpmemobj's heap version", kHeapOffset + 16, 1},
       {"libpmemobj's chunk size", kHeapOffset + 40, kChunkBytes},
       {"libpmemobj's chunks of a zone", kHeapOffset + 48, kZoneChunks}}};
  if (Status s = check_words(file, words, where); !s.ok()) return s;
  const std::uint64_t smallest = kZoneMetadataBytes + kChunkBytes;
  for (std::uint64_t zone = 0; kZonesOffset + zone * kZoneBytes + smallest <= file.size(); ++zone)
    if (Status s = check_zone(file, zone, where); !s.ok()) return s;
  return {};
}

}  // namespace flugs::pmem
