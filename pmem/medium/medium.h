#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <vector>

#include "flugs/status.h"
#include "pmem/medium/line_journal.h"
#include "pmem/medium/medium_kind.h"
#include "pmem/medium/nvdimms.h"
#include "pmem/medium/page_writer.h"
#include "pmem/medium/persist.h"
#include "pmem/medium/scm_reads.h"

namespace flugs::pmem {

/// Page size of memory and of files, for checkpoints and populating.
inline constexpr std::uint64_t kPageBytes = 4096;
static_assert(kPageBytes % kLineBytes == 0);

/// Latency of the emulated SCM in nanoseconds; 0 leaves the machine's own.
///
/// `read_ns` and `write_ns` are total latencies as in SOFORT, section 5.1, where DRAM has 90 ns. A
/// task that touches a line for the first time waits read_ns - 90 longer, in a build that sees
/// reads (kSeesScmReads). A fence with flushed lines waits write_ns longer. For each further line
/// that is flushed, or read in sequence, a thread waits a `lines_in_flight`-th of that. The model
/// is docs/decisions/0028-scm-reads.md.
struct Latency {
  std::uint32_t read_ns = 0;
  std::uint32_t write_ns = 0;
  std::uint32_t lines_in_flight = 8;
  bool keeps_lines = false;  ///< touched lines stay so when a task begins
};

/// Is called for every flush and fence; the crash-state explorer is one.
class PersistObserver {
 public:
  virtual ~PersistObserver() = default;
  virtual void on_flush(const void* address, std::size_t bytes, Label label) = 0;
  /// Called before the fence takes effect.
  virtual void on_fence(Label label) = 0;

  /// The same with the Persister that acts. A fence makes only those flushes certain that its own
  /// Persister made; observers that need to know override these. They are what is called.
  virtual void on_flush_by(const Persister& /*by*/, const void* address, std::size_t bytes,
                           Label label) {
    on_flush(address, bytes, label);
  }
  virtual void on_fence_by(const Persister& /*by*/, Label label) { on_fence(label); }
};

/// One mapped pool, and how stores to it become durable. The Pool owns the mapping.
class Medium {
 public:
  Medium(MediumKind kind, std::byte* base, std::size_t bytes, Latency latency);
  Medium(const Medium&) = delete;
  Medium& operator=(const Medium&) = delete;
  /// No Persister may outlive its medium (checked).
  ~Medium();

  MediumKind kind() const noexcept { return kind_; }
  const MediumFacts& facts() const noexcept { return facts_of(kind_); }
  /// A sentence: what a commit survives that has returned before it was durable.
  std::string_view guarantee_soon() const noexcept;
  /// The flush instruction: "clwb", "clflushopt", "clflush", "eadr" (none is needed), "journal" or
  /// "none".
  std::string_view flush_name() const noexcept;
  std::byte* base() const noexcept { return base_; }
  /// Bytes of the pool. A thread that has an offset in the pool sees a number that includes it, if
  /// it calls this after it has got the offset.
  std::size_t bytes() const noexcept { return bytes_.load(std::memory_order_acquire); }
  /// The same number, for those that must not know a Medium; it stays at its place.
  const std::atomic<std::uint64_t>& bytes_word() const noexcept { return bytes_; }
  /// The pool has grown: this many bytes from base() on are mapped. Thread-safety: one thread at a
  /// time; others use the medium meanwhile.
  void grow(std::size_t bytes) noexcept;
  Latency latency() const noexcept { return latency_; }
  /// Fences append to `journal` from now on, for FlushMethod::kJournal. Without a journal they make
  /// nothing durable. nullptr: no longer. Call it only while no thread flushes.
  void set_journal(LineJournal* journal) noexcept;
  /// Persister::flush_unshared goes through `writer` from now on, for `bytes_min` or more, which is
  /// at least kDirectBytesMin. nullptr: no longer. Call it only while no thread flushes.
  void set_page_writer(PageWriter* writer, std::uint64_t bytes_min) noexcept;
  /// Returns when all fences that have returned, of any Persister, are durable. Thread-safety: any
  /// thread. Fails as LineJournal::wait_durable.
  Status wait_durable() { return journal_ == nullptr ? Status() : journal_->wait_all_durable(); }
  /// What fences append to; null: they make durable themselves. Thread-safety: any thread, from
  /// opening to closing.
  LineJournal* journal() const noexcept { return journal_; }
  /// As LineJournal::check_writable.
  Status check_writable(std::uint64_t bytes = 0) {
    return journal_ == nullptr ? Status() : journal_->check_writable(bytes);
  }
  /// The pool lies on these devices. If their caches are durable, nothing is flushed from now on.
  /// Call it only while no thread flushes.
  void set_nvdimms(Nvdimms nvdimms);
  const Nvdimms& nvdimms() const noexcept { return nvdimms_; }
  /// nullptr to stop observing. Call it only while no thread flushes.
  void set_observer(PersistObserver* observer) noexcept;

  /// Lines that were charged for reads so far; none unless kSeesScmReads. Thread-safety: any
  /// thread.
  ScmReads scm_reads() const noexcept { return scm_reads_of(base_); }

  /// Sum over all Persisters of this medium, existing and destroyed. Thread-safety: any thread.
  PersistCounters counters() const noexcept;

 private:
  friend class Persister;
  void enter(const Persister& persister);
  void leave(const Persister& persister) noexcept;

  FlushRoute route_;
  MediumKind kind_;
  Latency latency_;
  Nvdimms nvdimms_;
  std::byte* base_;
  std::atomic<std::uint64_t> bytes_;  // release in grow(), partner bytes()
  PersistObserver* observer_ = nullptr;
  LineJournal* journal_ = nullptr;
  PageWriter* page_writer_ = nullptr;
  std::uint64_t page_writer_min_ = 0;

  mutable std::mutex persisters_mutex_;  // protects the two below; held alone
  std::vector<const Persister*> persisters_;
  PersistCounters gone_;
};

}  // namespace flugs::pmem
