#pragma once

#include <cstddef>
#include <cstdint>

// Charges the reads of emulated SCM (docs/decisions/0028-scm-reads.md). In a build with FLUGS_SCM
// (preset "scm") the compiler puts a check before every load and store. Where the address lies in a
// pool, the check calls scm_reads.cc. In every other build nothing here does anything.

namespace flugs::pmem {

struct Latency;

/// Lines of a pool that tasks touched for the first time, by loads or stores.
struct ScmReads {
  std::uint64_t lines = 0;             ///< charged with the whole latency
  std::uint64_t sequential_lines = 0;  ///< behind two touched lines: charged with a part of the
                                       ///< latency
};

#ifdef FLUGS_SCM

inline constexpr bool kSeesScmReads = true;

/// A task begins in this thread: a transaction, a worker of a query, a task of recovery, of a merge
/// or of a background thread. From now on no line counts as touched, unless Latency::keeps_lines of
/// all open pools says that lines stay in the cache.
void begin_scm_task() noexcept;

/// Charges reads that the compiler does not check: masked loads, gathers, libraries, system calls.
/// The address may lie anywhere.
void touch_scm(const void* address, std::size_t bytes) noexcept;

/// Called by Medium when the pool is mapped, and before it is unmapped. Ranges must not overlap.
void enter_scm_range(const std::byte* base, std::size_t bytes, const Latency& latency) noexcept;
void leave_scm_range(const std::byte* base, std::size_t bytes) noexcept;
/// The range at `base` becomes longer, while threads use it.
void grow_scm_range(const std::byte* base, std::size_t before, std::size_t bytes) noexcept;

/// Sum over all threads since the range at `base` was entered.
ScmReads scm_reads_of(const std::byte* base) noexcept;

/// Whether this thread's task has touched the line at `address`.
bool is_touched_scm(const void* address) noexcept;

#else

inline constexpr bool kSeesScmReads = false;

inline void begin_scm_task() noexcept {}
inline void touch_scm(const void* /*address*/, std::size_t /*bytes*/) noexcept {}
inline void enter_scm_range(const std::byte* /*base*/, std::size_t /*bytes*/,
                            const Latency& /*latency*/) noexcept {}
inline void leave_scm_range(const std::byte* /*base*/, std::size_t /*bytes*/) noexcept {}
inline void grow_scm_range(const std::byte* /*base*/, std::size_t /*before*/,
                           std::size_t /*bytes*/) noexcept {}
inline ScmReads scm_reads_of(const std::byte* /*base*/) noexcept { return {}; }
inline bool is_touched_scm(const void* /*address*/) noexcept { return false; }

#endif

}  // namespace flugs::pmem
