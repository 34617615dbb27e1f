#pragma once

#include <sys/mman.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace flugs::pmem {

/// Where the pool lies. It decides what a returned commit survives. `PoolFile::detect_medium` finds
/// out the kind of a file.
enum class MediumKind : std::uint8_t {
  kDax,       ///< mapped with MAP_SYNC: flush + fence survive power loss
  kEmulated,  ///< tmpfs: the same instructions; survives the death of the process, not a reboot
  kFile,      ///< any other file system: a journal of lines; survives power loss
  kMemory,    ///< a plain buffer: survives nothing; for databases in memory, and for tests
  kPrivate,   ///< a private view of a file, which stays as it is: for reading only
};

/// What makes stores durable.
enum class FlushMethod : std::uint8_t {
  kInstructions,  ///< CLWB or the like, then SFENCE
  kJournal,       ///< images of the lines, in a journal beside the pool
  kNone,
};

/// How much of a pool a thread enters into the page tables after opening.
enum class Warming : std::uint8_t {
  kNone,
  kQuarterOfMemory,  ///< what is read in takes the place of other files' pages
  kAll,
};

/// All that the engine knows of a kind of medium.
struct MediumFacts {
  MediumKind kind;
  std::string_view name;
  std::string_view guarantee;       ///< a sentence: what a returned commit survives
  std::string_view guarantee_soon;  ///< the same of one that is durable soon; empty: the same
  FlushMethod flush;
  Warming warming;
  int map_flags;              ///< of mmap
  int populate_advice;        ///< of madvise
  bool writes_new_space;      ///< blocks are written once before their first store
  bool syncs_new_space;       ///< fsync makes blocks durable before their first store
  bool gathers_huge_pages;    ///< the kernel is asked for huge pages
  bool is_charged_for_reads;  ///< the emulated latency of SCM counts its lines
};

/// A row for each kind, in the order of their numbers.
inline constexpr std::array<MediumFacts, 5> kMediumFacts = {{
    {.kind = MediumKind::kDax,
     .name = "dax",
     .guarantee = "A commit that returned survives power loss.",
     .guarantee_soon = {},
     .flush = FlushMethod::kInstructions,
     .warming = Warming::kAll,
     .map_flags = MAP_SHARED_VALIDATE | MAP_SYNC,
     .populate_advice = MADV_POPULATE_WRITE,
     .writes_new_space = true,
     .syncs_new_space = true,
     .gathers_huge_pages = false,
     .is_charged_for_reads = true},
    {.kind = MediumKind::kEmulated,
     .name = "emulated",
     .guarantee = "A commit that returned survives the death of the process, but no reboot.",
     .guarantee_soon = {},
     .flush = FlushMethod::kInstructions,
     .warming = Warming::kAll,
     .map_flags = MAP_SHARED,
     .populate_advice = MADV_POPULATE_WRITE,
     .writes_new_space = false,
     .syncs_new_space = false,
     .gathers_huge_pages = true,
     .is_charged_for_reads = true},
    // Stores stay in this process; the journal's checkpoints write them to the file.
    {.kind = MediumKind::kFile,
     .name = "file",
     .guarantee = "A commit that returned survives power loss, by way of a journal.",
     .guarantee_soon =
         "A commit survives power loss when its token is durable. Until then a crash of the "
         "process takes it back, with all that came after it.",
     .flush = FlushMethod::kJournal,
     .warming = Warming::kQuarterOfMemory,
     .map_flags = MAP_PRIVATE | MAP_NORESERVE,
     .populate_advice = MADV_POPULATE_WRITE,
     .writes_new_space = false,
     .syncs_new_space = true,
     .gathers_huge_pages = false,
     .is_charged_for_reads = true},
    {.kind = MediumKind::kMemory,
     .name = "memory",
     .guarantee = "A commit that returned survives nothing: the pool is a buffer of this process.",
     .guarantee_soon = {},
     .flush = FlushMethod::kNone,
     .warming = Warming::kNone,
     .map_flags = 0,
     .populate_advice = MADV_POPULATE_WRITE,
     .writes_new_space = false,
     .syncs_new_space = false,
     .gathers_huge_pages = false,
     .is_charged_for_reads = false},
    {.kind = MediumKind::kPrivate,
     .name = "read-only",
     .guarantee = "The pool is open for reading only: its file stays as it is.",
     .guarantee_soon = {},
     .flush = FlushMethod::kNone,
     .warming = Warming::kNone,
     .map_flags = MAP_PRIVATE,
     .populate_advice = MADV_POPULATE_READ,
     .writes_new_space = false,
     .syncs_new_space = false,
     .gathers_huge_pages = false,
     .is_charged_for_reads = false},
}};

constexpr const MediumFacts& facts_of(MediumKind kind) noexcept {
  return kMediumFacts[static_cast<std::size_t>(kind)];
}
static_assert(
    [] {
      for (const MediumFacts& facts : kMediumFacts)
        if (&facts_of(facts.kind) != &facts) return false;
      return true;
    }(),
    "a row stands at the number of its kind");
static_assert(
    [] {
      for (const MediumFacts& facts : kMediumFacts) {
        const bool is_private = (facts.map_flags & MAP_TYPE) == MAP_PRIVATE;
        if (facts.flush == FlushMethod::kJournal && !is_private) return false;
        if (facts.flush == FlushMethod::kInstructions && is_private) return false;
      }
      return true;
    }(),
    "a store reaches the file of a journal's pool by checkpoints only, and others by a flush");

}  // namespace flugs::pmem
