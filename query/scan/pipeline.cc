#include "query/scan/pipeline.h"

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "pmem/medium/scm_reads.h"

namespace flugs::query {

void Pipeline::add(std::unique_ptr<Stage> stage) {
  FLUGS_CHECK(stage != nullptr);
  if (!stages.empty()) stages.back()->set_next(*stage);
  stages.push_back(std::move(stage));
}

std::optional<FirstRows> Stage::first_rows() const {
  std::optional<FirstRows> wanted = next().first_rows();
  if (!wanted) return wanted;
  const std::optional<std::uint32_t> column = input_column(wanted->column);
  if (!column) return std::nullopt;
  wanted->column = *column;
  return wanted;
}

void Pipeline::run(RunContext& context, Sink& sink) {
  FLUGS_CHECK(source != nullptr && explain != nullptr);
  if (context.is_dry) return;
  const auto begin = std::chrono::steady_clock::now();
  if (!stages.empty()) stages.back()->set_next(sink);
  Sink& first = stages.empty() ? sink : *stages.front();
  source->begin(first);
  const std::size_t morsels = source->morsel_count();
  const auto workers = static_cast<std::uint32_t>(
      source->is_ordered() ? 1
                           : std::clamp<std::size_t>(source->workers_max(), 1, context.threads));
  context.check_stop();
  const bool tells = context.progress.is_wanted();
  if (tells) context.progress.begin(morsels);
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  context.crew.run(workers, [&](std::uint32_t worker) {
    FLUGS_CHECK(worker < workers);  // sinks keep an element per worker
    pmem::begin_scm_task();
    try {
      for (;;) {
        if (failed.load(std::memory_order_relaxed) || first.is_satisfied()) return;
        const std::size_t morsel = next.fetch_add(1, std::memory_order_relaxed);
        if (morsel >= morsels) return;
        source->run(morsel, worker, first);
        if (tells) context.progress.add_done();
      }
    } catch (...) {
      failed.store(true, std::memory_order_relaxed);
      throw;
    }
  });
  if (tells) context.progress.finish();
  source->finish();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  explain->seconds = seconds.count();
}

RowsSource::RowsSource(RunContext& context, std::shared_ptr<const Rows> rows)
    : context_(context), rows_(std::move(rows)) {
  FLUGS_CHECK(rows_ != nullptr);
  for (std::size_t p = 0; p < rows_->parts.size(); ++p)
    for (std::size_t first = 0; first < rows_->parts[p].rows; first += kMorselRows)
      morsels_.push_back({p, first, std::min(kMorselRows, rows_->parts[p].rows - first)});
}

void RowsSource::run(std::size_t morsel, std::uint32_t worker, Sink& sink) {
  FLUGS_CHECK(morsel < morsels_.size());
  const auto [p, first, rows] = morsels_[morsel];
  const Rows::Part& part = rows_->parts[p];
  FLUGS_CHECK(part.columns.size() == rows_->schema.size());
  Batch batch;
  batch.columns.resize(rows_->schema.size());
  for (std::size_t done = 0; done < rows; done += kBatchRows) {
    context_.check_stop();
    if (sink.is_satisfied()) return;
    batch.rows = std::min(kBatchRows, rows - done);
    for (std::size_t c = 0; c < batch.columns.size(); ++c)
      batch.columns[c] = part.view(c).from(first + done, rows_->schema[c].form());
    context_.batches.fetch_add(1, std::memory_order_relaxed);
    sink.push(batch, worker);
  }
}

RowsSink::RowsSink(RunContext& context, const Schema& schema, const std::string& owner)
    : schema_(schema), locals_(context.threads) {
  for (Local& local : locals_) {
    local.rows.schema = schema;
    local.charge = Charge(context.budget, owner);
  }
}

void RowsSink::push(const Batch& batch, std::uint32_t worker) {
  FLUGS_CHECK(worker < locals_.size());
  locals_[worker].rows.append(batch, locals_[worker].charge);
}

Rows RowsSink::finish() {
  Rows all;
  all.schema = schema_;
  for (Local& local : locals_) {
    local.rows.charges.push_back(std::move(local.charge));
    all.take(std::move(local.rows));
  }
  return all;
}

}  // namespace flugs::query
