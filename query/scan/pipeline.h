#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "query/scan/segment.h"
#include "query/vectors/rows.h"
#include "query/vectors/run_context.h"
#include "query/vectors/vec.h"

namespace flugs::query {

/// The rows that a sink wants: the first ones by one of the columns of its batches, NULL first in
/// ascending order. Integers only, as they are in int lanes.
struct FirstRows {
  std::uint32_t column = 0;
  bool descending = false;
};
/// How far such rows are still wanted.
struct LastWanted {
  std::int64_t value = 0;
  bool is_excluded = false;
};

/// Takes batches from many workers; each worker's calls come one after the other. What a batch
/// views need not outlive the call.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void push(const Batch& batch, std::uint32_t worker) = 0;
  /// `selected` rows of a segment, those whose bits are set (no mask: all), before a column of them
  /// is read: `columns` says which of the table's columns would be the batch's. True: taken.
  virtual bool push_masked(const Segment& /*segment*/,
                           const std::vector<std::uint32_t>& /*columns*/, std::uint32_t /*first*/,
                           std::size_t /*count*/, const std::uint64_t* /*mask*/,
                           std::size_t /*selected*/, std::uint32_t /*worker*/) {
    return false;
  }
  /// Whether push_masked had better be given all rows of a segment at once, if they are selected.
  virtual bool takes_segments() const noexcept { return false; }
  virtual std::optional<FirstRows> first_rows() const { return std::nullopt; }
  /// Nothing as long as every row is wanted. Any worker.
  virtual std::optional<LastWanted> last_wanted() const noexcept { return std::nullopt; }
  /// No more rows are wanted: sources may stop. Any worker.
  virtual bool is_satisfied() const noexcept { return false; }
};

/// Something that batches pass through on their way to the next.
class Stage : public Sink {
 public:
  void set_next(Sink& next) noexcept { next_ = &next; }
  bool is_satisfied() const noexcept override { return next_->is_satisfied(); }
  /// The column of the input that a column of the output is; nothing if it is computed, or if rows
  /// do not come out as they go in.
  virtual std::optional<std::uint32_t> input_column(std::uint32_t /*output*/) const {
    return std::nullopt;
  }
  std::optional<FirstRows> first_rows() const override;
  std::optional<LastWanted> last_wanted() const noexcept override { return next_->last_wanted(); }

 protected:
  Sink& next() const noexcept { return *next_; }

 private:
  Sink* next_ = nullptr;
};

/// Payloads from the least to the greatest, and how many rows they are of.
struct PayloadRange {
  std::int64_t least = 0;
  std::int64_t greatest = 0;
  std::uint64_t rows = 0;
};

/// Where batches come from, in morsels that workers take one by one.
class Source {
 public:
  virtual ~Source() = default;
  /// Before all else: which sink morsels will be run with.
  virtual void begin(const Sink& /*sink*/) {}
  virtual std::size_t morsel_count() const = 0;
  virtual void run(std::size_t morsel, std::uint32_t worker, Sink& sink) = 0;
  /// Rows must be taken in the order of morsels, by one worker.
  virtual bool is_ordered() const noexcept { return false; }
  /// About between which payloads a column's values lie, of rows of which something is known;
  /// nothing if there are none, or if it is not one of integers.
  virtual std::optional<PayloadRange> likely_range(std::uint32_t /*column*/) const {
    return std::nullopt;
  }
  /// Adds to the explanation what was done.
  virtual void finish() {}
};

/// A source and the stages behind it: what runs without holding rows.
struct Pipeline {
  std::unique_ptr<Source> source;
  std::vector<std::unique_ptr<Stage>> stages;
  Schema schema;  ///< of what comes out
  ExplainPtr explain;

  void add(std::unique_ptr<Stage> stage);
  /// Everything through to `sink`, in parallel.
  void run(RunContext& context, Sink& sink);
};

/// Rows that are held, as a source.
class RowsSource : public Source {
 public:
  RowsSource(RunContext& context, std::shared_ptr<const Rows> rows);
  std::size_t morsel_count() const override { return morsels_.size(); }
  void run(std::size_t morsel, std::uint32_t worker, Sink& sink) override;
  bool is_ordered() const noexcept override { return rows_->is_ordered; }

 private:
  struct Morsel {
    std::size_t part;
    std::size_t first;
    std::size_t rows;
  };
  RunContext& context_;
  std::shared_ptr<const Rows> rows_;
  std::vector<Morsel> morsels_;
};

/// Holds every row that comes.
class RowsSink : public Sink {
 public:
  RowsSink(RunContext& context, const Schema& schema, const std::string& owner);
  void push(const Batch& batch, std::uint32_t worker) override;
  Rows finish();

 private:
  struct Local {
    Rows rows;
    Charge charge;
  };
  Schema schema_;
  std::vector<Local> locals_;  // one per worker
};

}  // namespace flugs::query
