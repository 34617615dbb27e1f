#include "query/stream/batch_sink.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace flugs::query {

namespace {

// With keep_apart, and without a filter: batches of a few columns stay in the second-level cache
// until their user has read them, and the next ones have the same memory.
constexpr std::uint32_t kApartRows = 4 * kBatchRows;

bool is_number(const BoundExpr& expr) noexcept {
  return expr.op == Op::kColumn && expr.domain == nullptr &&
         (expr.form == Form::kInt || expr.form == Form::kReal);
}

}  // namespace

BatchSink::BatchSink(RunContext& context, const Schema& schema,
                     const std::vector<std::string>& names)
    : context_(context), binder_(context.texts, schema), locals_(context.threads) {
  std::vector<ResultColumn> result;
  for (const std::string& name : names) {
    BoundPtr expr = binder_.bind(col(name), true);
    const bool is_text = lane_of(expr->type) == Lane::kText;
    if (expr->form == Form::kCode && !is_text) expr = binder_.bind(col(name));
    StreamColumn column{expr->form, IntForm::kInt64, nullptr};
    if (expr->form == Form::kCode)
      column.texts = std::make_shared<DomainTexts>(expr->result_domain);
    result.push_back({name, expr->type.type, expr->type.scale});
    are_numbers_ = are_numbers_ && is_number(*expr);
    columns_.push_back(std::move(column));
    exprs_.push_back(std::move(expr));
  }
  result_schema_ = std::make_shared<const std::vector<ResultColumn>>(std::move(result));
}

BatchSink::Local& BatchSink::local_of(std::uint32_t worker) {
  FLUGS_CHECK(worker < locals_.size());
  if (!locals_[worker])
    locals_[worker] =
        std::make_unique<Local>(Local{Evaluator(binder_.slot_count()),
                                      BatchBuilder(context_, columns_, result_schema_),
                                      {},
                                      {},
                                      {}});
  if (is_apart_) locals_[worker]->builder.keep_room();
  return *locals_[worker];
}

void BatchSink::prefer_arrow() noexcept {
  if (std::any_of(locals_.begin(), locals_.end(), [](const auto& local) { return bool(local); }))
    return;
  for (std::size_t c = 0; c < columns_.size(); ++c)
    if (columns_[c].form == Form::kInt) columns_[c].ints = arrow_form((*result_schema_)[c].type);
}

void BatchSink::add_ready(ReadyBatch batch) {
  const std::uint64_t before = rows_.fetch_sub(batch.data->rows, std::memory_order_relaxed);
  FLUGS_CHECK(before >= batch.data->rows);
  const std::lock_guard guard(mutex_);
  ready_bytes_.fetch_add(batch.charge.bytes(), std::memory_order_relaxed);
  ready_count_.fetch_add(1, std::memory_order_relaxed);
  ready_.push_back(std::move(batch));
}

void BatchSink::push(const Batch& batch, std::uint32_t worker) {
  Local& local = local_of(worker);
  local.batch.rows = batch.rows;
  local.batch.columns.clear();
  for (const BoundPtr& expr : exprs_)
    local.batch.columns.push_back(local.evaluator.evaluate(*expr, batch));
  if (!is_apart_) rows_.fetch_add(batch.rows, std::memory_order_relaxed);
  for (std::size_t done = 0; done < batch.rows;) {
    done += local.builder.append(local.batch, done);
    if (done == batch.rows && !local.builder.is_full()) break;
    hand_over(local);
  }
}

// The worker's batch is full, or its texts are.
void BatchSink::hand_over(Local& local) {
  if (is_apart_)
    local.ready.push_back(local.builder.take());
  else
    add_ready(local.builder.take());
}

std::uint32_t BatchSink::morsel_rows_max() const noexcept {
  return is_apart_ ? kApartRows : Sink::morsel_rows_max();
}

// Numbers of packed columns are unpacked where they stay, if all rows are wanted.
bool BatchSink::push_masked(const ScanUnit& unit, const std::vector<std::uint32_t>& columns,
                            std::uint32_t first, std::size_t count, const std::uint64_t* mask,
                            std::size_t /*selected*/, std::uint32_t worker) {
  if (!are_numbers_ || mask != nullptr) return false;
  Local& local = local_of(worker);
  local.packed.clear();
  for (const BoundPtr& expr : exprs_) {
    local.packed.push_back(unit.packed(columns[expr->column]));
    if (local.packed.back() == nullptr) return false;
  }
  if (!is_apart_) rows_.fetch_add(count, std::memory_order_relaxed);
  for (std::size_t done = 0; done < count;) {
    done += local.builder.append_packed(local.packed, first + static_cast<std::uint32_t>(done),
                                        count - done);
    if (local.builder.is_full()) hand_over(local);
  }
  return true;
}

std::size_t BatchSink::own_rows(std::uint32_t worker) const noexcept {
  if (!locals_[worker]) return 0;
  const Local& local = *locals_[worker];
  return local.ready.empty() ? local.builder.rows() : local.ready.front().data->rows;
}

std::optional<ReadyBatch> BatchSink::take_own(std::uint32_t worker) {
  FLUGS_CHECK(is_apart_ && worker < locals_.size());
  if (own_rows(worker) == 0) return std::nullopt;
  Local& local = *locals_[worker];
  if (local.ready.empty()) return local.builder.take();
  ReadyBatch batch = std::move(local.ready.front());
  local.ready.pop_front();
  return batch;
}

void BatchSink::give_back(std::uint32_t worker, std::shared_ptr<BatchData> batch) {
  FLUGS_CHECK(is_apart_ && worker < locals_.size() && locals_[worker]);
  if (batch.use_count() != 1 || locals_[worker]->builder.rows() != 0) return;
  // Others may have had copies, and let them go. Counting once more, up and down, orders what they
  // have read before what is written now; use_count alone does not.
  std::shared_ptr<BatchData>(batch).reset();
  locals_[worker]->builder.reuse(std::move(batch->columns));
}

void BatchSink::close_all() {
  for (const std::unique_ptr<Local>& local : locals_)
    if (local != nullptr && local->builder.rows() != 0) add_ready(local->builder.take());
}

std::optional<ReadyBatch> BatchSink::take() {
  const std::lock_guard guard(mutex_);
  if (ready_.empty()) return std::nullopt;
  ReadyBatch batch = std::move(ready_.front());
  ready_.pop_front();
  ready_count_.fetch_sub(1, std::memory_order_relaxed);
  ready_bytes_.fetch_sub(batch.charge.bytes(), std::memory_order_relaxed);
  return batch;
}

}  // namespace flugs::query
