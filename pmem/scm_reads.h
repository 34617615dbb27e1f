#pragma once

#include <cstddef>
#include <cstdint>

// How the reads of emulated SCM are charged (docs/decisions/0028-scm-reads.md). In a build with
// FLUGS_SCM (preset "scm") the compiler puts a check before every load and store. Where the address
// lies in a pool, the check calls scm_reads.cc. Every other build does nothing here.

namespace flugs::pmem {

struct Latency;

/// Lines of a pool that tasks touched for the first time, by loads or stores.
struct ScmReads {
  std::uint64_t lines = 0;             ///< charged with the whole latency
  std::uint64_t sequential_lines = 0;  ///< behind two touched lines: charged with a part of it
};

#ifdef FLUGS_SCM

inline constexpr bool kSeesScmReads = true;

/// A task begins in this thread: a transaction, a worker of a query, a task of recovery, of a merge
/// or of a thread in the background. From now on no line counts as touched, unless
/// Latency::keeps_lines says of all open pools that lines stay in the cache.
void begin_scm_task() noexcept;

/// Charges what the compiler does not check: masked loads, gathers, libraries, system calls. The
/// address may be anywhere.
void touch_scm(const void* address, std::size_t bytes) noexcept;

/// What Medium registers: the pool is mapped, and no longer. Ranges must not overlap.
void enter_scm_range(const std::byte* base, std::size_t bytes, const Latency& latency) noexcept;
void leave_scm_range(const std::byte* base, std::size_t bytes) noexcept;

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
inline ScmReads scm_reads_of(const std::byte* /*base*/) noexcept { return {}; }
inline bool is_touched_scm(const void* /*address*/) noexcept { return false; }

#endif

}  // namespace flugs::pmem
