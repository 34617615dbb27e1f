#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/stable_array.h"

namespace flugs::engine {

/// Which rows of a chunk the snapshots of now see, so that a scan need not read their stamps. For
/// chunks whose columns are apart: there stamps are most of the bytes that a query of few columns
/// reads.
///
/// A part has kRows rows. A scan that finds no tag among the part's stamps, and none above its own
/// snapshot, keeps which rows it sees. Every later snapshot sees the same rows until a transaction
/// stores its tag in the part. The transaction takes the answer back then (`note_tag`), behind the
/// store of its tag and before it commits. So a snapshot that sees the commit finds no answer from
/// before it.
///
/// A scan asks for a ticket before it reads stamps, and keeps its answer only if no tag was noted
/// since. If it misses a tag because it read the stamp before, `keep` refuses its ticket. A tag
/// that becomes a time-stamp changes no answer: an answer is kept only if no tag was found. A tag
/// that is taken back changes none, because the row is as it was before. A dead row whose `created`
/// becomes 0 changes none either.
///
/// Thread-safety: any thread.
class SeenParts {
 public:
  static constexpr std::uint32_t kRows = 1024;
  static constexpr std::size_t kWords = kRows / 64;
  static constexpr std::uint64_t kNone = 1;  ///< no ticket

  explicit SeenParts(std::uint32_t rows)
      : count_(rows / kRows), parts_(std::make_unique<Part[]>(count_)) {}

  /// Copies the bits of the rows that the snapshot sees. False: read the stamps.
  bool find(std::uint32_t part, std::uint64_t snapshot, std::uint64_t* mask) const noexcept;
  /// A ticket for `keep`, before the stamps are read; kNone: keep nothing.
  std::uint64_t ticket(std::uint32_t part) const noexcept;
  /// Keeps the bits that the snapshot and all later ones see.
  void keep(std::uint32_t part, std::uint64_t ticket, std::uint64_t snapshot,
            const std::uint64_t* mask) noexcept;
  /// A transaction has stored its tag in the stamps of the chunk's row `i`.
  void note_tag(std::uint32_t i) noexcept;

  std::uint32_t parts() const noexcept { return count_; }
  /// Whether scans may use the parts (SeenChunks::make_ready).
  bool is_ready() const noexcept { return is_ready_.load(std::memory_order_acquire); }
  void set_ready() noexcept { is_ready_.store(true, std::memory_order_release); }
  std::size_t bytes() const noexcept { return sizeof *this + count_ * sizeof(Part); }

 private:
  // Bits of `state`: whether the answer is valid, whether a scan is writing it, and above how many
  // tags were noted.
  static constexpr std::uint64_t kValid = 1;
  static constexpr std::uint64_t kBusy = 2;
  static constexpr std::uint64_t kTag = 4;
  struct Part {
    std::atomic<std::uint64_t> state{0};
    std::atomic<std::uint64_t> since{0};
    std::atomic<std::uint64_t> words[kWords] = {};
  };

  std::atomic<bool> is_ready_{false};
  std::uint32_t count_;
  std::unique_ptr<Part[]> parts_;
};

/// The SeenParts of a table's chunks. A chunk has none until a query reads the table.
///
/// A transaction that stores its tag in a chunk then looks for the chunk's parts, and passes the
/// light side of a barrier between (note_tag). A scan publishes the parts and passes the heavy side
/// before it calls them ready. So a transaction that found no parts has stored its tag before any
/// scan that uses them reads the stamps.
class SeenChunks {
 public:
  explicit SeenChunks(std::size_t chunks_max) : chunks_(chunks_max) {}
  ~SeenChunks();
  SeenChunks(const SeenChunks&) = delete;
  SeenChunks& operator=(const SeenChunks&) = delete;

  /// For a scan of the chunk, which has `rows` rows. The scan may use the parts when they are ready
  /// (make_ready).
  SeenParts& for_scan(std::size_t chunk, std::uint32_t rows);
  /// Makes parts that for_scan has given ready, those of several chunks at once.
  static void make_ready(std::span<SeenParts* const> parts) noexcept;
  /// A transaction has stored its tag in the stamps of row `i` of the chunk.
  void note_tag(std::size_t chunk, std::uint32_t i) const noexcept;
  /// The chunk's rows are no longer in it: the parts, for whoever frees them when no scan is left
  /// that has found them.
  std::unique_ptr<SeenParts> take(std::size_t chunk) noexcept;
  std::size_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

 private:
  StableArray<SeenParts*> chunks_;  // atomic
  std::atomic<std::size_t> begun_{0};
  std::atomic<std::size_t> bytes_{0};
};

}  // namespace flugs::engine
