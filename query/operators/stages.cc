#include "query/operators/stages.h"

#include "base/check.h"
#include "query/expressions/expr_node.h"

namespace flugs::query {

FilterStage::Local::Local(const FilterStage& stage)
    : evaluator(stage.binder_.slot_count()), positions(kBatchRows), columns(stage.schema_.size()) {}

FilterStage::FilterStage(RunContext& context, const Schema& schema, const Expr& condition)
    : schema_(schema),
      binder_(context.texts, schema_),
      condition_(binder_.bind_condition(condition)) {
  locals_.resize(context.threads);
}

void FilterStage::push(const Batch& batch, std::uint32_t worker) {
  FLUGS_CHECK(worker < locals_.size());
  if (!locals_[worker]) locals_[worker] = std::make_unique<Local>(*this);
  Local& local = *locals_[worker];
  const std::size_t chosen = local.evaluator.select(*condition_, batch, local.positions.data());
  if (chosen == 0) return;
  if (chosen == batch.rows) return next().push(batch, worker);
  gather(batch, schema_, local.positions.data(), chosen, local.columns, local.out);
  next().push(local.out, worker);
}

ProjectStage::ProjectStage(RunContext& context, const Schema& input,
                           const std::vector<Item>& outputs)
    : input_(input), binder_(context.texts, input_) {
  for (const Item& item : outputs) {
    outputs_.push_back(binder_.bind(item.expr(), true));
    are_columns_ = are_columns_ && outputs_.back()->op == Op::kColumn;
    output_.push_back(
        {output_name(item.expr()), outputs_.back()->type, outputs_.back()->result_domain});
  }
  evaluators_.resize(context.threads);
}

std::optional<std::uint32_t> ProjectStage::input_column(std::uint32_t output) const {
  FLUGS_CHECK(output < outputs_.size());
  if (outputs_[output]->op != Op::kColumn) return std::nullopt;
  return outputs_[output]->column;
}

bool ProjectStage::push_masked(const ScanUnit& unit, const std::vector<std::uint32_t>& columns,
                               std::uint32_t first, std::size_t count, const std::uint64_t* mask,
                               std::size_t selected, std::uint32_t worker) {
  if (!are_columns_) return false;
  std::vector<std::uint32_t> outputs;
  outputs.reserve(outputs_.size());
  for (const BoundPtr& output : outputs_) outputs.push_back(columns[output->column]);
  return next().push_masked(unit, outputs, first, count, mask, selected, worker);
}

void ProjectStage::push(const Batch& batch, std::uint32_t worker) {
  FLUGS_CHECK(worker < evaluators_.size());
  if (!evaluators_[worker]) evaluators_[worker] = std::make_unique<Evaluator>(binder_.slot_count());
  if (lets_texts_go_) evaluators_[worker]->forget_kept_texts();
  Batch out;
  out.rows = batch.rows;
  for (const BoundPtr& expr : outputs_)
    out.columns.push_back(evaluators_[worker]->evaluate(*expr, batch));
  next().push(out, worker);
}

}  // namespace flugs::query
