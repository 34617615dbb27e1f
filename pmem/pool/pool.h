#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "flugs/status.h"
#include "pmem/medium/medium.h"
#include "pmem/medium/offset_ptr.h"
#include "pmem/medium/persist.h"

namespace flugs::pmem {

class ExtentAllocator;
struct Extent;
class FoundWords;

/// Size of the engine's own root in the pool, zero in a new pool, 64-byte aligned.
inline constexpr std::size_t kApplicationRootBytes = 2048;
static_assert(kApplicationRootBytes % kLineBytes == 0);

inline constexpr std::uint64_t kPoolBytesDefault = std::uint64_t{64} << 30;

struct PoolOptions {
  std::string path;
  /// Largest size of the pool. The file is sparse: space is taken from the medium a segment at a
  /// time. 0: kPoolBytesDefault for a new pool (in a buffer: all of it), and the size that it has
  /// for an existing one. An existing pool with less grows while it is opened.
  std::uint64_t max_bytes = 0;
  /// Size of a segment, the step in which the pool grows; a larger allocation gets a larger
  /// segment.
  std::uint64_t segment_bytes = std::uint64_t{64} << 20;
  /// Smallest size and alignment of every extent; a power of two from 64 to 65536; fixed at
  /// creation.
  std::uint32_t extent_unit_bytes = 4096;
  /// The most free space that a background thread keeps allocated and touched ahead of the writers:
  /// a quarter of the used space, at least 4 MB, but never more than this. 0: no such thread, and
  /// the pool grows in the thread that needs space.
  std::uint64_t grow_ahead_bytes = std::uint64_t{64} << 20;
  /// Whether free space may go back to the file system.
  bool gives_back = true;
  /// On a disk: size of the journal beside the pool, at its creation; 0: a sixteenth of the pool's
  /// size, from 4 MB to 64 MB. An existing journal that is needed keeps its size.
  std::uint64_t journal_bytes = 0;
  /// On a disk, a checkpoint begins when the replay after a crash would take so many nanoseconds.
  std::uint64_t replay_ns = 20'000'000;
  /// On a disk: pieces from this size on, which only their writer can reach, are written past the
  /// journal (Persister::flush_unshared); kDirectBytesMin or more; 0: none.
  std::uint64_t direct_write_bytes = std::uint64_t{64} << 10;
  /// On a disk: whether what the journal has not written yet outlives the process, in a file on
  /// /dev/shm.
  bool has_crash_ring = false;
  /// Whether a pool is opened all the same whose devices may have lost lines that had been promised
  /// durable (check_shutdowns).
  bool accepts_lost_lines = false;
  std::string sysfs = "/sys";  ///< the kernel's tree of devices; for tests
  Latency latency;
  /// Is called for every flush and fence from the first one on; for tests. Must outlive the pool or
  /// be removed with Medium::set_observer.
  PersistObserver* observer = nullptr;
};

/// One pool of persistent memory: identity, medium, space. Nothing moves while it is open.
///
/// Everything that is not reachable from the application root is free. Allocation writes nothing to
/// the pool, so a crash at any point leaks nothing. After opening, the owner of the root claims all
/// that it reaches (`ExtentAllocator::claim`) and ends with `finish_claims`.
class Pool {
 public:
  /// Creates a pool; fails with kAlreadyExists when the path exists, kInvalidArgument for sizes out
  /// of range, kOutOfSpace when the medium cannot hold the first segment, kIoError.
  static Result<std::unique_ptr<Pool>> create(const PoolOptions& options);
  /// Opens an existing pool for reading and writing; `options` needs path, max_bytes,
  /// grow_ahead_bytes and latency, the rest is read from the pool. Fails with kNotFound (no file),
  /// kBusy (a second opener), kIncompatible (not a flugs pool, a newer version, unknown
  /// incompatible feature bits), kCorrupt (checksum, truncated), kReadOnly (no permission to
  /// write), kIoError; if the pool must grow, as `grow`.
  static Result<std::unique_ptr<Pool>> open(const PoolOptions& options);
  /// Opens an existing pool that no process has open for writing. What recovery and later work
  /// write stays in this process; the file stays as it is. Fails as `open`, also on a pool that may
  /// only be read; kBusy: it is open for writing. kReadOnly: max_bytes is not the size that it has.
  static Result<std::unique_ptr<Pool>> open_to_read(const PoolOptions& options);
  /// A new pool in memory of its own; `options` needs no path.
  static Result<std::unique_ptr<Pool>> create_in_own_memory(const PoolOptions& options);
  /// The same on a plain buffer (4096-byte aligned, kept alive by the caller), medium kMemory. The
  /// pool never gets larger than the buffer.
  static Result<std::unique_ptr<Pool>> create_in_memory(std::span<std::byte> buffer,
                                                        const PoolOptions& options);
  static Result<std::unique_ptr<Pool>> open_in_memory(std::span<std::byte> buffer,
                                                      const PoolOptions& options);
  virtual ~Pool() = default;

  virtual Medium& medium() noexcept = 0;
  virtual ExtentAllocator& allocator() noexcept = 0;
  virtual std::byte* application_root() noexcept = 0;
  virtual const std::string& path() const noexcept = 0;  ///< "(memory)" for a buffer
  virtual std::uint64_t uuid() const noexcept = 0;
  virtual std::uint32_t format_version() const noexcept = 0;

  /// Makes the largest size of the pool `max_bytes`, rounded down to whole pages; durable when it
  /// returns ok. Nothing moves, and others use the pool meanwhile. Nothing happens if it has that
  /// size. Thread-safety: any thread.
  /// Fails with: kInvalidArgument (less than it has, more than 16 TB, or more than there is address
  /// space behind the pool in this process; the message has both figures), kOutOfSpace (the file
  /// system allows no file of this size), kReadOnly, kIoError. Then the pool is as before.
  virtual Status grow(std::uint64_t max_bytes);

  std::byte* base() noexcept { return medium().base(); }

  /// Makes the kernel enter the pages of an extent in use into the process's page tables, and read
  /// them in where the medium does not hold them in memory. Otherwise the first reader of a page
  /// waits for that. False: the kernel refuses, or there is nothing to enter.
  /// Thread-safety: any thread.
  virtual bool warm(Extent extent) noexcept;

  /// These bytes will be read soon, most of them. In a pool that is larger than memory, pages are
  /// read in one by one, when a thread needs them; this has many read in at once. Elsewhere it does
  /// nothing. Thread-safety: any thread.
  virtual void read_ahead(std::span<const std::byte> bytes) noexcept;

  /// Opening: declares that it relies on these bytes from now on. They become durable before
  /// anything is written that needs them. Does nothing when no FoundWords exists. Thread-safety:
  /// any thread.
  void rely_on(const void* address, std::size_t bytes);

  /// Address of the object that `p` names. `p` must have been checked (`resolve`) or made in this
  /// process.
  template <typename T>
  T* at(OffsetPtr<T> p) noexcept {
    return reinterpret_cast<T*>(base() + p.offset);
  }
  template <typename T>
  OffsetPtr<T> offset_of(const T* address) noexcept {
    return {static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(address) - base())};
  }

 private:
  friend class FoundWords;
  FoundWords* found_words_ = nullptr;
};

}  // namespace flugs::pmem
