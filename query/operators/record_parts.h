#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "flugs/function_ref.h"
#include "query/operators/spill_file.h"
#include "query/vectors/run_context.h"

namespace flugs::query {

/// Records of `words` words each, in parts by the upper bits of a hash. Records with equal keys are
/// in the same part, so parts can be worked on one by one. Records beyond `bytes_max`, or beyond
/// the query's budget, go to a temporary file.
///
/// Thread-safety: one worker adds; then several may visit and release parts, each one of its own.
class RecordParts {
 public:
  static constexpr unsigned kPartBits = 8;
  static constexpr std::size_t kParts = std::size_t{1} << kPartBits;
  static constexpr std::size_t part_of(std::uint64_t hash) noexcept {
    return hash >> (64 - kPartBits);
  }

  RecordParts(std::size_t words, RunContext& context, std::string owner, std::uint64_t bytes_max);
  RecordParts(const RecordParts&) = delete;
  RecordParts& operator=(const RecordParts&) = delete;
  ~RecordParts();

  std::size_t words() const noexcept { return words_; }
  /// A new record, to be written before the next call. Fails with kOutOfMemory, or with kIoError
  /// when the temporary file cannot be written.
  std::uint64_t* add(std::uint64_t hash) { return add_to(part_of(hash)); }
  /// The same in a part.
  std::uint64_t* add_to(std::size_t part_index) {
    Part& part = parts_[part_index];
    if (part.next == part.end) grow(part);
    std::uint64_t* record = part.next;
    part.next += words_;
    return record;
  }
  /// Calls `take` with all records of a part, kBatchRows at most each time, which it may change.
  /// Fails with kIoError.
  void visit(std::size_t part, FunctionRef<void(std::uint64_t* records, std::size_t count)> take);
  /// The same with those in memory only.
  void visit_held(std::size_t part,
                  FunctionRef<void(std::uint64_t* records, std::size_t count)> take);
  void release(std::size_t part) noexcept;
  /// Forgets the part's records in memory. Only while records are added, by their worker.
  void release_held(std::size_t part) noexcept;
  /// Writes all records in memory to the temporary file. Fails with kIoError.
  void spill();
  std::uint64_t records() const noexcept;
  std::uint64_t records(std::size_t part) const noexcept;
  std::uint64_t held_records(std::size_t part) const noexcept;
  /// Bytes in memory. For the worker that adds.
  std::uint64_t held_bytes() const noexcept { return bytes_; }
  /// Bytes that went to the temporary file.
  std::uint64_t spilled_bytes() const noexcept { return file_ ? file_->bytes() : 0; }

 private:
  struct Chunk {
    std::unique_ptr<std::uint64_t[]> words;
    std::size_t word_count;
  };
  struct ScanUnit {
    std::uint64_t offset;
    std::size_t word_count;
  };
  struct Part {
    std::uint64_t* next = nullptr;
    std::uint64_t* end = nullptr;
    std::vector<Chunk> chunks;  // all but the last one are full
    std::vector<ScanUnit> units;
    std::uint64_t bytes = 0;  // of chunks, taken from the budget
  };
  static std::size_t used(const Part& part, const Chunk& chunk) noexcept;
  void grow(Part& part);

  RunContext& context_;
  std::string owner_;
  std::size_t words_;
  std::uint64_t bytes_max_;
  std::size_t first_records_;  // of a part's first chunk
  std::size_t chunk_records_;  // of its largest ones
  std::uint64_t bytes_ = 0;    // of all parts, while records are added
  std::array<Part, kParts> parts_;
  std::optional<SpillFile> file_;
};

}  // namespace flugs::query
