#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "query/operators/hash_join.h"

namespace flugs::query {

namespace {

Schema concatenated(const Schema& left, const Schema& right) {
  Schema both = left;
  both.insert(both.end(), right.begin(), right.end());
  return both;
}

}  // namespace

JoinStage::Local::Local(const JoinStage& stage)
    : keys(stage.plan_.left_slots),
      also(stage.also_binder_ ? stage.also_binder_->slot_count() : 0),
      key_views(stage.plan_.left_keys.size()),
      hashes(kBatchRows),
      is_null(kBatchRows),
      is_matched(kBatchRows),
      left_rows(kBatchRows),
      right_rows(kBatchRows),
      chosen(kBatchRows),
      columns(stage.both_.size()),
      chosen_columns(stage.both_.size()) {}

JoinStage::JoinStage(RunContext& context, Plan plan)
    : context_(context), plan_(std::move(plan)), both_(concatenated(plan_.left, plan_.right)) {
  FLUGS_CHECK(plan_.table != nullptr && plan_.table->schema().size() == plan_.right.size());
  for (const BoundPtr& key : plan_.left_keys) forms_.push_back(form_of(lane_of(key->type)));
  if (plan_.also.is_given()) {
    also_binder_ = std::make_unique<Binder>(context.texts, both_);
    also_ = also_binder_->bind_condition(plan_.also);
  }
  locals_.resize(context.threads);
}

void JoinStage::push(const Batch& batch, std::uint32_t worker) {
  FLUGS_CHECK(worker < locals_.size());
  FLUGS_CHECK(batch.rows <= kBatchRows);
  if (!locals_[worker]) locals_[worker] = std::make_unique<Local>(*this);
  Local& local = *locals_[worker];
  for (std::size_t k = 0; k < plan_.left_keys.size(); ++k)
    local.key_views[k] = local.keys.evaluate(*plan_.left_keys[k], batch);
  hash_keys(local.key_views, forms_, batch.rows, local.hashes.data(), local.is_null.data());
  std::fill_n(local.is_matched.begin(), batch.rows, 0);
  probe(batch, local, worker);
  if (plan_.kind == JoinKind::kLeft) push_unmatched(batch, local, worker);
  if (plan_.kind == JoinKind::kSemi) push_chosen(batch, true, local, worker);
  if (plan_.kind == JoinKind::kAnti) push_chosen(batch, false, local, worker);
}

void JoinStage::probe(const Batch& batch, Local& local, std::uint32_t worker) {
  const JoinTable& table = *plan_.table;
  const bool one_is_enough = !is_pairing() && !also_;
  local.pairs = 0;
  for (std::size_t i = 0; i < batch.rows; ++i) {
    if (local.is_null[i] != 0) continue;
    for (std::uint32_t row = table.first(local.hashes[i]); row != kNoPosition;
         row = table.next(row)) {
      if (table.hash(row) != local.hashes[i] || !table.equals(row, local.key_views, i)) continue;
      if (one_is_enough) {
        local.is_matched[i] = 1;
        break;
      }
      FLUGS_DCHECK(local.pairs < kBatchRows);
      local.left_rows[local.pairs] = static_cast<std::uint32_t>(i);
      local.right_rows[local.pairs] = row;
      if (++local.pairs == kBatchRows) flush_pairs(batch, local, worker);
    }
  }
  flush_pairs(batch, local, worker);
}

void JoinStage::make_pairs(const Batch& batch, Local& local, bool optional) {
  local.joined.rows = local.pairs;
  local.joined.columns.resize(both_.size());
  const std::size_t left = plan_.left.size();
  for (std::size_t c = 0; c < left; ++c)
    local.joined.columns[c] = gather(batch.columns[c], both_[c].form(), local.left_rows.data(),
                                     local.pairs, local.columns[c]);
  for (std::size_t c = left; c < both_.size(); ++c)
    local.joined.columns[c] =
        gather(plan_.table->column(c - left), both_[c].form(), local.right_rows.data(), local.pairs,
               local.columns[c], optional);
}

void JoinStage::flush_pairs(const Batch& batch, Local& local, std::uint32_t worker) {
  if (local.pairs == 0) return;
  context_.check_stop();
  make_pairs(batch, local, false);
  if (!also_) {
    for (std::size_t p = 0; p < local.pairs; ++p) local.is_matched[local.left_rows[p]] = 1;
    if (is_pairing()) pass_on(local.joined, local, worker);
  } else {
    const std::size_t chosen = local.also.select(*also_, local.joined, local.chosen.data());
    for (std::size_t p = 0; p < chosen; ++p) local.is_matched[local.left_rows[local.chosen[p]]] = 1;
    if (is_pairing() && chosen != 0) {
      gather(local.joined, both_, local.chosen.data(), chosen, local.chosen_columns,
             local.chosen_batch);
      pass_on(local.chosen_batch, local, worker);
    }
  }
  local.pairs = 0;
}

void JoinStage::push_unmatched(const Batch& batch, Local& local, std::uint32_t worker) {
  FLUGS_CHECK(local.pairs == 0);
  for (std::size_t i = 0; i < batch.rows; ++i) {
    if (local.is_matched[i] != 0) continue;
    local.left_rows[local.pairs] = static_cast<std::uint32_t>(i);
    local.right_rows[local.pairs++] = kNoPosition;
  }
  if (local.pairs == 0) return;
  make_pairs(batch, local, true);
  local.pairs = 0;
  pass_on(local.joined, local, worker);
}

void JoinStage::push_chosen(const Batch& batch, bool matched, Local& local, std::uint32_t worker) {
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < batch.rows; ++i)
    if ((local.is_matched[i] != 0) == matched)
      local.chosen[chosen++] = static_cast<std::uint32_t>(i);
  if (chosen == 0) return;
  gather(batch, plan_.left, local.chosen.data(), chosen, local.chosen_columns, local.chosen_batch);
  pass_on(local.chosen_batch, local, worker);
}

void JoinStage::pass_on(const Batch& batch, Local& local, std::uint32_t worker) {
  local.rows_out += batch.rows;
  next().push(batch, worker);
}

void JoinStage::finish() {
  if (context_.is_dry || plan_.explain == nullptr) return;
  std::uint64_t rows = 0;
  for (const auto& local : locals_) rows += local ? local->rows_out : 0;
  plan_.explain->details.push_back(
      fmt::format("{} rows out{}", rows, expected_text(plan_.rows_expected)));
}

}  // namespace flugs::query
