// Rows beyond the memory of a sort: each worker writes its rows, sorted, as runs of a temporary
// file, and the runs are merged when the rows are read.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "query/operators/sort.h"
#include "query/vectors/failure.h"

namespace flugs::query {

namespace {

// Records of a run that are read at a time, and the least that is worth a read.
constexpr std::size_t kRunRecordsMax = 2 * kBatchRows;
constexpr std::size_t kRunRecordsMin = 16;

}  // namespace

// Sorting rows in memory takes them twice, and the result once more.
std::uint64_t SortSink::held_bytes_max() const noexcept { return context_.budget.bytes_max() / 4; }

// The workers with the most rows write theirs first.
void SortSink::limit_memory(Local& local) {
  const std::uint64_t own = local.charge.bytes();
  FLUGS_CHECK(own >= local.counted_bytes);
  const std::uint64_t added = own - std::exchange(local.counted_bytes, own);
  const std::uint64_t all = held_bytes_.fetch_add(added, std::memory_order_relaxed) + added;
  if (all > held_bytes_max() && own * context_.threads * 2 >= all) spill(local);
}

void SortSink::recount(Local& local) noexcept {
  held_bytes_.fetch_sub(std::exchange(local.counted_bytes, 0), std::memory_order_relaxed);
}

void SortSink::spill(Local& local) {
  if (local.rows.row_count == 0) return;
  const auto wanted = static_cast<std::size_t>(
      std::min<std::uint64_t>(rows_max_.value_or(local.rows.row_count), local.rows.row_count));
  const std::vector<std::uint32_t> order = sorted(local.rows, wanted);
  if (!local.file) local.file = std::make_unique<SpillFile>(context_.temporary_folder);
  local.runs.push_back({local.file->bytes(), order.size()});
  Batch from;
  for (std::size_t c = 0; c < extended_.size(); ++c)
    from.columns.push_back(local.rows.parts[0].view(c));
  Charge charge(context_.budget, "order by");
  const std::size_t record_bytes = codec_.words() * sizeof(std::uint64_t);
  charge.set(std::min(kBatchRows, order.size()) * record_bytes);
  std::vector<std::uint64_t> records(std::min(kBatchRows, order.size()) * codec_.words());
  std::vector<Vec> scratch(extended_.size());
  Batch batch;
  for (std::size_t first = 0; first < order.size(); first += kBatchRows) {
    context_.check_stop();
    const std::size_t rows = std::min(kBatchRows, order.size() - first);
    gather(from, extended_, order.data() + first, rows, scratch, batch);
    codec_.write(batch, records.data());
    local.file->append(records.data(), rows * record_bytes);
  }
  local.rows = Rows();
  local.rows.schema = extended_;
  local.charge.set(0);
  recount(local);  // not before: other workers would take the memory
}

/// The runs of all workers, merged.
class SortSink::RunsSource : public Source {
 public:
  explicit RunsSource(std::shared_ptr<SortSink> sink)
      : sink_(std::move(sink)), charge_(sink_->context_.budget, "order by") {
    for (const auto& local : sink_->locals_)
      if (local)
        for (const Run& run : local->runs) {
          cursors_.push_back({local->file.get(), run.offset, run.rows, {}, 0, 0});
          left_ += run.rows;
        }
    if (sink_->rows_max_) left_ = std::min<std::uint64_t>(left_, *sink_->rows_max_);
    morsels_ = static_cast<std::size_t>((left_ + kMorselRows - 1) / kMorselRows);
    columns_.resize(sink_->schema_.size());
  }

  std::size_t morsel_count() const override { return morsels_; }
  bool is_ordered() const noexcept override { return true; }

  void run(std::size_t, std::uint32_t worker, Sink& sink) override {
    if (records_.empty()) open_runs();
    const std::size_t words = sink_->codec_.words();
    for (std::size_t done = 0; done < kMorselRows && left_ != 0; done += kBatchRows) {
      sink_->context_.check_stop();
      if (sink.is_satisfied()) return;
      const auto rows = static_cast<std::size_t>(std::min<std::uint64_t>(kBatchRows, left_));
      for (std::size_t i = 0; i < rows; ++i) take(records_.data() + i * words);
      left_ -= rows;
      sink_->codec_.read(records_.data(), rows, columns_, batch_);
      sink_->context_.batches.fetch_add(1, std::memory_order_relaxed);
      sink.push(batch_, worker);
    }
  }

 private:
  struct Cursor {
    const SpillFile* file;
    std::uint64_t offset;  // of the records that were not read yet
    std::uint64_t left;    // their number
    std::vector<std::uint64_t> records;
    std::size_t at = 0;  // of the next record, in words
    std::size_t end = 0;
  };

  const std::uint64_t* next_of(std::uint32_t cursor) const noexcept {
    return cursors_[cursor].records.data() + cursors_[cursor].at;
  }

  // Buffers take an eighth of the budget at most, if runs are not far too many.
  void open_runs() {
    const std::uint64_t record_bytes = sink_->codec_.words() * sizeof(std::uint64_t);
    const std::uint64_t each = sink_->context_.budget.bytes_max() / 8 / cursors_.size();
    buffer_records_ = static_cast<std::size_t>(
        std::clamp<std::uint64_t>(each / record_bytes, kRunRecordsMin, kRunRecordsMax));
    charge_.set((buffer_records_ * cursors_.size() + kBatchRows) * record_bytes);
    records_.resize(kBatchRows * sink_->codec_.words());
    for (std::uint32_t cursor = 0; cursor < cursors_.size(); ++cursor) {
      fill(cursors_[cursor]);
      heap_.push_back(cursor);
    }
    for (std::size_t i = heap_.size(); i-- > 0;) sift_down(i);
  }

  void fill(Cursor& cursor) const {
    const std::size_t words = sink_->codec_.words();
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>(buffer_records_, cursor.left));
    cursor.records.resize(buffer_records_ * words);
    cursor.file->read(cursor.offset, cursor.records.data(), count * words * sizeof(std::uint64_t));
    cursor.offset += count * words * sizeof(std::uint64_t);
    cursor.left -= count;
    cursor.at = 0;
    cursor.end = count * words;
  }

  // Copies the first record of all runs.
  void take(std::uint64_t* to) {
    FLUGS_DCHECK(!heap_.empty());
    Cursor& cursor = cursors_[heap_[0]];
    const std::size_t words = sink_->codec_.words();
    std::copy_n(cursor.records.data() + cursor.at, words, to);
    cursor.at += words;
    if (cursor.at == cursor.end && cursor.left != 0) fill(cursor);
    if (cursor.at == cursor.end) {
      heap_[0] = heap_.back();
      heap_.pop_back();
    }
    if (!heap_.empty()) sift_down(0);
  }

  // The cursor at a place goes down, below all that come before it.
  void sift_down(std::size_t place) {
    const std::uint32_t moved = heap_[place];
    for (;;) {
      std::size_t child = 2 * place + 1;
      if (child >= heap_.size()) break;
      if (child + 1 < heap_.size() &&
          sink_->is_before(next_of(heap_[child + 1]), next_of(heap_[child])))
        ++child;
      if (!sink_->is_before(next_of(heap_[child]), next_of(moved))) break;
      heap_[place] = heap_[child];
      place = child;
    }
    heap_[place] = moved;
  }

  std::shared_ptr<SortSink> sink_;
  Charge charge_;
  std::vector<Cursor> cursors_;
  std::vector<std::uint32_t> heap_;  // of cursors; that with the first record is the first
  std::size_t buffer_records_ = 0;
  std::uint64_t left_ = 0;  // rows
  std::size_t morsels_ = 0;
  std::vector<std::uint64_t> records_;  // of a batch
  std::vector<Vec> columns_;
  Batch batch_;
};

bool SortSink::is_before(const std::uint64_t* a, const std::uint64_t* b) const noexcept {
  for (std::size_t k = 0; k < keys_.size(); ++k) {
    const std::size_t column = schema_.size() + k;
    const bool null_a = codec_.is_null(a, column);
    const bool null_b = codec_.is_null(b, column);
    int order = 0;
    if (null_a || null_b) {
      order = (null_b ? 1 : 0) - (null_a ? 1 : 0);
    } else {
      switch (extended_[column].form()) {
        case Form::kText:
          order = codec_.text(a, column).compare(codec_.text(b, column));
          break;
        case Form::kReal:
          order = compare_reals(std::bit_cast<double>(codec_.word(a, column)),
                                std::bit_cast<double>(codec_.word(b, column)));
          break;
        default:
          order = compare_ints(static_cast<std::int64_t>(codec_.word(a, column)),
                               static_cast<std::int64_t>(codec_.word(b, column)));
      }
    }
    if (order != 0) return keys_[k].descending ? order > 0 : order < 0;
  }
  return false;
}

std::unique_ptr<Source> SortSink::finish(std::shared_ptr<SortSink> sink) {
  FLUGS_CHECK(sink != nullptr);
  const bool has_runs = std::any_of(sink->locals_.begin(), sink->locals_.end(),
                                    [](const auto& local) { return local && local->file; });
  if (!has_runs)
    return std::make_unique<RowsSource>(sink->context_,
                                        std::make_shared<const Rows>(sink->sort_held()));
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;
  std::size_t runs = 0;
  for (const auto& local : sink->locals_) {
    if (!local) continue;
    sink->spill(*local);
    runs += local->runs.size();
    if (local->file) bytes += local->file->bytes();
    for (const Run& run : local->runs) rows += run.rows;
  }
  sink->explain_->details.push_back(
      fmt::format("{} rows sorted in {} runs, {:.1f} MB in temporary "
                  "files",
                  rows, runs, static_cast<double>(bytes) / 1e6));
  return std::make_unique<RunsSource>(std::move(sink));
}

}  // namespace flugs::query
