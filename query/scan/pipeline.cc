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
  PipelineRun run(context, *this, sink);
  run.advance([] { return false; });
  run.finish();
}

namespace {

Sink& first_sink(Pipeline& pipeline, Sink& last) {
  if (pipeline.stages.empty()) return last;
  pipeline.stages.back()->set_next(last);
  return *pipeline.stages.front();
}

}  // namespace

void Source::add_keys(std::uint32_t /*column*/, std::shared_ptr<const KeyFilter> /*keys*/) {
  FLUGS_CHECK(false);  // takes_keys
}

PipelineRun::PipelineRun(RunContext& context, Pipeline& pipeline, Sink& sink)
    : context_(context),
      pipeline_(pipeline),
      first_(first_sink(pipeline, sink)),
      tells_(context.progress.is_wanted()) {
  const auto begin = std::chrono::steady_clock::now();
  if (sink.copies_texts())  // a batch is through all stages when the source makes the next one
    for (const auto& stage : pipeline.stages) stage->let_texts_go();
  Source& source = *pipeline.source;
  source.begin(first_);
  morsels_ = source.morsel_count();
  workers_ = static_cast<std::uint32_t>(
      source.is_ordered() ? 1 : std::clamp<std::size_t>(source.workers_max(), 1, context.threads));
  context.check_stop();
  if (tells_) context.progress.begin(morsels_);
  spent_ = std::chrono::steady_clock::now() - begin;
}

void PipelineRun::work(std::uint32_t worker, FunctionRef<bool()> is_enough) {
  FLUGS_CHECK(worker < workers_);  // sinks keep an element per worker
  pmem::begin_scm_task();
  try {
    for (;;) {
      if (has_failed_.load(std::memory_order_relaxed) || first_.is_satisfied()) return;
      if (is_enough()) return;
      const std::size_t morsel = next_.fetch_add(1, std::memory_order_relaxed);
      if (morsel >= morsels_) return;
      pipeline_.source->run(morsel, worker, first_);
      if (tells_) context_.progress.add_done();
    }
  } catch (...) {
    has_failed_.store(true, std::memory_order_relaxed);
    throw;
  }
}

bool PipelineRun::advance(FunctionRef<bool()> is_enough) {
  FLUGS_CHECK(!has_failed_.load(std::memory_order_relaxed));
  const auto begin = std::chrono::steady_clock::now();
  context_.crew.run(workers_, [&](std::uint32_t worker) { work(worker, is_enough); });
  spent_ += std::chrono::steady_clock::now() - begin;
  return next_.load(std::memory_order_relaxed) < morsels_ && !first_.is_satisfied();
}

bool PipelineRun::run_one(std::uint32_t worker) {
  const std::uint32_t workers = pipeline_.source->is_ordered() ? 1 : context_.threads;
  if (worker >= workers || has_failed_.load(std::memory_order_relaxed) || first_.is_satisfied())
    return false;
  const std::size_t morsel = next_.fetch_add(1, std::memory_order_relaxed);
  if (morsel >= morsels_) return false;
  pmem::begin_scm_task();
  try {
    pipeline_.source->run(morsel, worker, first_);
  } catch (...) {
    has_failed_.store(true, std::memory_order_relaxed);
    throw;
  }
  if (tells_) context_.progress.add_done();
  return true;
}

void PipelineRun::finish() {
  if (tells_) context_.progress.finish();
  const auto begin = std::chrono::steady_clock::now();
  pipeline_.source->finish();
  for (const auto& stage : pipeline_.stages) stage->finish();
  spent_ += std::chrono::steady_clock::now() - begin;
  pipeline_.explain->seconds = std::chrono::duration<double>(spent_).count();
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

RowsSink::RowsSink(RunContext& context, const Schema& schema, const std::string& owner,
                   std::uint64_t bytes_max)
    : schema_(schema), locals_(context.threads), budget_(context.budget), bytes_max_(bytes_max) {
  for (Local& local : locals_) {
    local.rows.schema = schema;
    local.charge = Charge(context.budget, owner);
  }
}

bool RowsSink::is_too_much(const Batch& batch) {
  if (bytes_max_ == std::numeric_limits<std::uint64_t>::max()) return false;
  std::uint64_t bytes = 0;
  for (std::size_t c = 0; c < schema_.size(); ++c)
    bytes += batch.rows * (bytes_of(schema_[c].form()) + 1);
  const std::uint64_t all = bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (all > bytes_max_ || bytes > budget_.left() / 2)
    is_full_.store(true, std::memory_order_relaxed);
  return is_satisfied();
}

void RowsSink::push(const Batch& batch, std::uint32_t worker) {
  FLUGS_CHECK(worker < locals_.size());
  if (is_too_much(batch)) return;
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
