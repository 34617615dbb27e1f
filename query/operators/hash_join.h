#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "query/expressions/bound_expr.h"
#include "query/operators/query_node.h"
#include "query/scan/pipeline.h"

namespace flugs::query {

/// Key columns of both sides of a join, made comparable: integers of one scale, doubles, or text.
struct JoinKeys {
  std::vector<BoundPtr> left;
  std::vector<BoundPtr> right;
};

/// The right side of a join: its rows, and a hash table over their keys. Rows with a NULL key are
/// in no chain.
class JoinTable {
 public:
  JoinTable(RunContext& context, Rows rows, const std::vector<BoundPtr>& keys,
            std::uint32_t slot_count);

  const Schema& schema() const noexcept { return rows_.schema; }
  std::size_t row_count() const noexcept { return rows_.row_count; }
  ColumnView column(std::size_t i) const noexcept {
    FLUGS_DCHECK(rows_.parts.size() == 1 && i < rows_.schema.size());
    return rows_.parts[0].view(i);
  }

  std::uint32_t first(std::uint64_t hash) const noexcept { return heads_[hash & mask_]; }
  std::uint32_t next(std::uint32_t row) const noexcept {
    FLUGS_DCHECK(row < next_.size());
    return next_[row];
  }
  std::uint64_t hash(std::uint32_t row) const noexcept { return hashes_[row]; }
  bool equals(std::uint32_t row, const std::vector<ColumnView>& keys,
              std::size_t i) const noexcept {
    FLUGS_DCHECK(keys.size() == keys_.size());
    for (std::size_t k = 0; k < keys.size(); ++k) {
      if (forms_[k] == Form::kText) {
        if (keys_[k].view(false).texts()[row] != keys[k].texts()[i]) return false;
      } else if (keys_[k].view(false).ints()[row] != keys[k].ints()[i]) {
        return false;
      }
    }
    return true;
  }

 private:
  void fill_keys(RunContext& context, const std::vector<BoundPtr>& keys, std::uint32_t slot_count);
  void link(RunContext& context);

  Rows rows_;  // flat: one part
  std::vector<Vec> keys_;
  std::vector<Form> forms_;
  std::vector<std::uint64_t> hashes_;
  std::vector<std::uint8_t> is_null_;  // some key of the row is
  std::vector<std::uint32_t> heads_;
  std::vector<std::uint32_t> next_;
  std::uint64_t mask_ = 0;
  Charge charge_;
};

/// Hashes of the keys of a batch; marks the rows with a NULL among their keys.
void hash_keys(const std::vector<ColumnView>& keys, const std::vector<Form>& forms,
               std::size_t rows, std::uint64_t* hashes, std::uint8_t* is_null);

/// Combines the left side's batches with the right side's rows.
class JoinStage : public Stage {
 public:
  struct Plan {
    JoinKind kind = JoinKind::kInner;
    std::vector<BoundPtr> left_keys;
    std::uint32_t left_slots = 0;
    Schema left;
    Schema right;
    std::shared_ptr<const JoinTable> table;
    Expr also;  ///< optional
    ExplainPtr explain;
    double rows_expected = -1;  ///< below 0: unknown
  };
  JoinStage(RunContext& context, Plan plan);
  void push(const Batch& batch, std::uint32_t worker) override;
  void finish() override;

 private:
  struct Local {
    Local(const JoinStage& stage);
    Evaluator keys;
    Evaluator also;
    std::vector<ColumnView> key_views;
    std::vector<std::uint64_t> hashes;
    std::vector<std::uint8_t> is_null;
    std::vector<std::uint8_t> is_matched;
    std::vector<std::uint32_t> left_rows;  // pairs that were found and not yet passed on
    std::vector<std::uint32_t> right_rows;
    std::vector<std::uint32_t> chosen;
    std::size_t pairs = 0;
    std::uint64_t rows_out = 0;
    std::vector<Vec> columns;
    std::vector<Vec> chosen_columns;
    Batch joined;
    Batch chosen_batch;
  };

  bool is_pairing() const noexcept {
    return plan_.kind == JoinKind::kInner || plan_.kind == JoinKind::kLeft;
  }
  void probe(const Batch& batch, Local& local, std::uint32_t worker);
  void flush_pairs(const Batch& batch, Local& local, std::uint32_t worker);
  void push_unmatched(const Batch& batch, Local& local, std::uint32_t worker);
  void push_chosen(const Batch& batch, bool matched, Local& local, std::uint32_t worker);
  void pass_on(const Batch& batch, Local& local, std::uint32_t worker);
  void make_pairs(const Batch& batch, Local& local, bool optional);

  RunContext& context_;
  Plan plan_;
  Schema both_;
  std::vector<Form> forms_;
  std::unique_ptr<Binder> also_binder_;
  BoundPtr also_;
  std::vector<std::unique_ptr<Local>> locals_;
};

}  // namespace flugs::query
