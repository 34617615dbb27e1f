#pragma once

#include <memory>
#include <vector>

#include "query/expressions/bound_expr.h"
#include "query/scan/pipeline.h"

namespace flugs::query {

/// Passes on the rows for which a condition is true.
class FilterStage : public Stage {
 public:
  FilterStage(RunContext& context, const Schema& schema, const Expr& condition);
  void push(const Batch& batch, std::uint32_t worker) override;
  std::optional<std::uint32_t> input_column(std::uint32_t output) const override { return output; }

 private:
  struct Local {
    explicit Local(const FilterStage& stage);
    Evaluator evaluator;
    std::vector<std::uint32_t> positions;
    std::vector<Vec> columns;
    Batch out;
  };
  Schema schema_;
  Binder binder_;
  BoundPtr condition_;
  std::vector<std::unique_ptr<Local>> locals_;
};

/// Computes the columns of its output.
class ProjectStage : public Stage {
 public:
  ProjectStage(RunContext& context, const Schema& input, const std::vector<Item>& outputs);
  const Schema& output_schema() const noexcept { return output_; }
  void push(const Batch& batch, std::uint32_t worker) override;
  bool push_masked(const ScanUnit& unit, const std::vector<std::uint32_t>& columns,
                   std::uint32_t first, std::size_t count, const std::uint64_t* mask,
                   std::size_t selected, std::uint32_t worker) override;
  std::uint32_t morsel_rows_max() const noexcept override { return next().morsel_rows_max(); }
  void let_texts_go() noexcept override { lets_texts_go_ = true; }
  std::optional<std::uint32_t> input_column(std::uint32_t output) const override;

 private:
  Schema input_;
  Schema output_;
  Binder binder_;
  std::vector<BoundPtr> outputs_;
  bool are_columns_ = true;  // all outputs are columns of the input
  bool lets_texts_go_ = false;
  std::vector<std::unique_ptr<Evaluator>> evaluators_;
};

}  // namespace flugs::query
