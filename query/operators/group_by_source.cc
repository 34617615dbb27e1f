// Groups in parts, which are merged when they are read.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/check.h"
#include "query/operators/group_by.h"

namespace flugs::query {

namespace {

// Records that a task merges, so that its start and its results are worth it.
constexpr std::uint64_t kTaskRecords = 16 * kBatchRows;

}  // namespace

GroupBySink::Merging::Merging(const GroupBySink& sink, KeptMemory* lasting)
    : own(sink.context_.budget),
      kept(lasting != nullptr ? *lasting : own),
      groups(sink, {}),
      row_records(sink.shape_, sink.aggregates_),
      numbers(kBatchRows),
      columns(sink.schema_.size()) {}

void GroupBySink::Merging::clear() {
  groups.table.clear();
  groups.states.clear();
  own.clear();
}

void GroupBySink::merge_states(const std::uint64_t* records, std::size_t count,
                               Merging& into) const {
  const std::size_t stride = aggregates_.size();
  Groups& groups = into.groups;
  groups.table.find_rows(records, record_words_, count, into.numbers.data());
  groups.grow_states(stride);
  groups.charge.set(groups.bytes());
  for (std::size_t a = 0; a < stride; ++a)
    merge_packed(aggregates_[a], records + state_at_[a], record_words_, count, into.numbers.data(),
                 groups.states.data(), stride, a, into.kept);
}

void GroupBySink::merge_rows(std::uint64_t* records, std::size_t count, Merging& into) const {
  Groups& groups = into.groups;
  into.row_records.open(records, count);
  groups.table.find_rows(records, into.row_records.words(), count, into.numbers.data());
  groups.grow_states(aggregates_.size());
  groups.charge.set(groups.bytes());
  into.row_records.accumulate(records, count, into.numbers.data(), groups.states.data(), into.kept);
  into.row_records.close(records, count);  // they stay if merging them frees too little
}

void GroupBySink::merge_part(std::size_t part, Merging& into) const {
  for (const auto& local : locals_) {
    if (!local) continue;
    if (local->parts) {
      local->parts->visit(part, [&](const std::uint64_t* records, std::size_t count) {
        merge_states(records, count, into);
        context_.check_stop();
      });
      local->parts->release(part);
    }
    if (local->rows) {
      local->rows->visit(part, [&](std::uint64_t* records, std::size_t count) {
        merge_rows(records, count, into);
        context_.check_stop();
      });
      local->rows->release(part);
    }
  }
}

std::uint64_t GroupBySink::records_of(std::size_t part) const {
  std::uint64_t records = 0;
  for (const auto& local : locals_) {
    if (!local) continue;
    if (local->parts) records += local->parts->records(part);
    if (local->rows) records += local->rows->records(part);
  }
  return records;
}

/// Each morsel merges some parts into a table, and passes their groups on: no more of them are in
/// memory at a time than one table for each worker has.
class GroupBySink::PartsSource : public Source {
 public:
  explicit PartsSource(std::shared_ptr<GroupBySink> sink)
      : sink_(std::move(sink)), workers_(sink_->context_.threads) {
    std::uint64_t records = 0;
    for (std::size_t part = 0; part < RecordParts::kParts; ++part)
      records += sink_->records_of(part);
    const std::uint64_t of_task =
        std::min(kTaskRecords, sink_->local_bytes_max(false) / sink_->bytes_of_group());
    while (parts_ < RecordParts::kParts && records * parts_ < of_task * RecordParts::kParts)
      parts_ *= 2;
  }

  std::size_t morsel_count() const override { return RecordParts::kParts / parts_; }

  void run(std::size_t morsel, std::uint32_t worker, Sink& sink) override {
    FLUGS_CHECK(worker < workers_.size() && morsel < morsel_count());
    if (!workers_[worker]) workers_[worker] = std::make_unique<Merging>(*sink_, nullptr);
    Merging& merging = *workers_[worker];
    merging.clear();
    std::uint64_t records = 0;
    for (std::size_t part = morsel * parts_; part < (morsel + 1) * parts_; ++part)
      records += sink_->records_of(part);
    make_room(records, merging.groups);
    for (std::size_t part = morsel * parts_; part < (morsel + 1) * parts_; ++part)
      sink_->merge_part(part, merging);
    records_.fetch_add(records, std::memory_order_relaxed);
    groups_.fetch_add(merging.groups.table.size(), std::memory_order_relaxed);
    sink_->emit(merging.groups, merging.columns, merging.batch, [&](const Batch& batch) {
      sink_->context_.check_stop();
      if (sink.is_satisfied()) return false;
      sink_->context_.batches.fetch_add(1, std::memory_order_relaxed);
      sink.push(batch, worker);
      return true;
    });
    done_.fetch_add(1, std::memory_order_relaxed);
  }

  void finish() override {
    if (done_.load(std::memory_order_relaxed) == morsel_count())
      sink_->explain(groups_.load(std::memory_order_relaxed));
    workers_.clear();
  }

 private:
  // As many groups for each record as the parts before had: a table that need not grow.
  void make_room(std::uint64_t records, Groups& groups) const {
    const std::uint64_t known = records_.load(std::memory_order_relaxed);
    if (known == 0) return;
    const double share =
        static_cast<double>(groups_.load(std::memory_order_relaxed)) / static_cast<double>(known);
    const auto expected =
        static_cast<std::size_t>(std::min(1.0, share * 1.05) * static_cast<double>(records));
    groups.table.reserve(expected);
    groups.states.reserve(expected * sink_->aggregates_.size());
    groups.charge.set(groups.bytes());
  }

  std::shared_ptr<GroupBySink> sink_;
  std::vector<std::unique_ptr<Merging>> workers_;
  std::size_t parts_ = 1;  // of a morsel
  std::atomic<std::uint64_t> records_{0};
  std::atomic<std::uint64_t> groups_{0};
  std::atomic<std::size_t> done_{0};
};

std::unique_ptr<Source> GroupBySink::finish(std::shared_ptr<GroupBySink> sink) {
  FLUGS_CHECK(sink != nullptr);
  if (!sink->part())
    return std::make_unique<RowsSource>(sink->context_,
                                        std::make_shared<const Rows>(sink->all_rows()));
  for (Local* local : sink->used_locals()) {
    sink->empty_groups(*local);
    local->groups = Groups(*sink, {});
  }
  sink->explain_parts();
  return std::make_unique<PartsSource>(std::move(sink));
}

}  // namespace flugs::query
