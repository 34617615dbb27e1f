// Transaction::scan with an expression: a query of one step whose batches go to a visitor.

#include <algorithm>
#include <new>
#include <vector>

#include "base/check.h"
#include "engine/database/database_core.h"
#include "engine/database/transaction_access.h"
#include "flugs/query.h"
#include "flugs/transaction.h"
#include "query/expressions/bound_expr.h"
#include "query/operators/query_node.h"
#include "query/plan/planner.h"
#include "query/vectors/failure.h"

namespace flugs {

namespace {

using query::Batch;
using query::ColumnView;
using query::Schema;

// Takes batches whose first column has the ids of the rows, and whose others are those wanted, and
// shows them as ScanBatches. One worker.
class VisitorSink : public query::Sink {
 public:
  VisitorSink(query::RunContext& context, const Schema& schema, std::span<const std::string> names,
              FunctionRef<bool(const ScanBatch&)> visit)
      : binder_(context.texts, schema), visit_(visit) {
    for (const std::string& name : names) columns_.push_back(binder_.bind(query::col(name)));
    FLUGS_CHECK(!columns_.empty());  // the first one has the ids
    evaluator_.emplace(binder_.slot_count());
    shown_.columns().resize(columns_.size() - 1);
    for (std::size_t i = 1; i < columns_.size(); ++i) {
      shown_.columns()[i - 1].type = columns_[i]->type.type;
      shown_.columns()[i - 1].scale = columns_[i]->type.scale;
    }
  }

  void push(const Batch& batch, std::uint32_t worker) override {
    FLUGS_CHECK(worker == 0);
    if (is_done_) return;
    views_.clear();
    for (const query::BoundPtr& column : columns_)
      views_.push_back(evaluator_->evaluate(*column, batch));
    for (std::size_t first = 0; first < batch.rows && !is_done_; first += ScanBatch::kRowsMax)
      show_rows(first, std::min(ScanBatch::kRowsMax, batch.rows - first));
  }
  bool is_satisfied() const noexcept override { return is_done_; }

 private:
  void show_rows(std::size_t first, std::size_t rows) {
    const std::int64_t* const ids = views_[0].ints() + first;
    shown_.row_id_buffer().clear();
    for (std::size_t i = 0; i < rows; ++i)
      shown_.row_id_buffer().emplace_back(static_cast<std::uint32_t>(ids[i]));
    for (std::size_t i = 1; i < columns_.size(); ++i)
      show(views_[i].from(first, columns_[i]->form), *columns_[i], rows, shown_.columns()[i - 1]);
    shown_.set_row_count(rows);
    is_done_ = !visit_(shown_);
  }

  static void show(const ColumnView& from, const query::BoundExpr& expr, std::size_t rows,
                   ScanBatch::Column& to) {
    to.nulls.assign(rows, 0);
    if (from.nulls != nullptr) std::copy(from.nulls, from.nulls + rows, to.nulls.begin());
    to.has_nulls = std::find(to.nulls.begin(), to.nulls.end(), 1) != to.nulls.end();
    const auto copy = [&](const auto* values, auto& out) {
      out.assign(values, values + rows);
      for (std::size_t i = 0; to.has_nulls && i < rows; ++i)
        if (to.nulls[i] != 0) out[i] = {};
    };
    switch (expr.form) {
      case query::Form::kText:
        return copy(from.texts(), to.strings);
      case query::Form::kReal:
        return copy(from.reals(), to.doubles);
      default:
        FLUGS_DCHECK(expr.form == query::Form::kInt);
        return copy(from.ints(), to.integers);
    }
  }

  query::Binder binder_;
  std::vector<query::BoundPtr> columns_;
  std::optional<query::Evaluator> evaluator_;
  std::vector<ColumnView> views_;  // of the batch, by column
  FunctionRef<bool(const ScanBatch&)> visit_;
  ScanBatch shown_;
  bool is_done_ = false;
};

// Runs the query in this thread. kCancelled: the transaction must end.
Status show_rows(const query::Query& rows, std::span<const std::string> names,
                 const Transaction& transaction, engine::TransactionContext& context,
                 FunctionRef<bool(const ScanBatch&)> visit) {
  query::RunOptions options;
  options.threads = 1;
  query::RunContext run(rows.node(), transaction, options, 1);
  const engine::Visit visiting(context);
  try {
    query::Pipeline pipeline = query::Planner(run).open();
    VisitorSink sink(run, pipeline.schema, names, visit);
    pipeline.run(run, sink);
  } catch (const query::Failure& failure) {
    return failure.status;
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::kOutOfMemory, "the process has no more memory");
  }
  return {};
}

}  // namespace

Status Transaction::scan(TableId table, std::span<const ColumnId> columns, const query::Expr& where,
                         FunctionRef<bool(const ScanBatch&)> visit) const {
  const engine::Call call(context_);
  if (!is_usable()) return unusable();
  const engine::Table* target = database_->table(table);
  if (target == nullptr) return engine::no_table();
  std::vector<query::Item> outputs = {query::row_id()};
  std::vector<std::string> names = {query::row_id_name()};
  for (const ColumnId id : columns) {
    if (!target->has_column(id)) return target->no_column(id);
    names.push_back(target->schema().columns[id.value()].name);
    if (std::find(names.begin(), names.end() - 1, names.back()) == names.end() - 1)
      outputs.emplace_back(names.back());
  }
  const query::Query rows =
      query::Query::table(target->name()).where(where).select(std::move(outputs));
  if (!rows.node()->error.empty()) return Status(StatusCode::kInvalidArgument, rows.node()->error);
  Status done = show_rows(rows, names, *this, *context_, visit);
  return done.code() == StatusCode::kCancelled ? unusable() : done;
}

}  // namespace flugs
