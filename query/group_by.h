#pragma once

#include <memory>
#include <string>
#include <vector>

#include "query/aggregate_state.h"
#include "query/group_table.h"
#include "query/pipeline.h"

namespace flugs::query {

/// Groups rows by keys and computes aggregates: per worker first, then merged by parts of the
/// hashes. Keys are carried as words: payloads or codes; text without codes is given codes of a
/// pool, so that no text is compared in a table.
class GroupBySink : public Sink {
 public:
  GroupBySink(RunContext& context, const Schema& input, const std::vector<Item>& keys,
              const std::vector<Aggregate>& aggregates, ExplainPtr explain);

  void push(const Batch& batch, std::uint32_t worker) override;
  bool push_masked(const Segment& segment, const std::vector<std::uint32_t>& columns,
                   std::uint32_t first, std::size_t count, const std::uint64_t* mask,
                   std::size_t selected, std::uint32_t worker) override;
  const Schema& output_schema() const noexcept { return schema_; }
  Rows finish();

 private:
  struct Key {
    BoundPtr expr;
    std::shared_ptr<TextPool> pool;  // text without codes
  };
  /// A worker's groups, or those of a part of the hashes after merging.
  struct Groups {
    Groups(const GroupBySink& sink, std::vector<std::uint32_t> ranges);
    GroupTable table;
    std::vector<AggregateState> states;  // as many per group as there are aggregates
    std::vector<DistinctSet> distinct;   // by aggregate, used by count distinct alone
    /// The same for codes of few values without keys: a bit per code.
    std::vector<std::vector<std::uint64_t>> bits;
    Charge charge;

    void grow_states(std::size_t aggregates);
    std::uint64_t bytes() const noexcept;
  };
  struct Local {
    Local(const GroupBySink& sink);
    Evaluator evaluator;
    Groups groups;
    KeyWords words;
    std::vector<std::uint32_t> group_of;
  };

  void bind_aggregate(const Aggregate& aggregate);
  bool is_of_columns() const noexcept;
  std::vector<std::uint32_t> ranges() const;
  bool uses_bits(const BoundAggregate& aggregate) const noexcept;
  void put_key(std::size_t key, ColumnView values, std::size_t rows, KeyWords& words) const;
  void count_distinct(std::size_t aggregate, ColumnView values, const std::uint32_t* groups,
                      std::size_t rows, Groups& into) const;
  void merge_part(std::size_t part, std::size_t parts, Groups& into) const;
  void merge_distinct(std::size_t aggregate, const Groups& from,
                      const std::vector<std::uint32_t>& renumbered, Groups& into) const;
  void emit(const Groups& groups, Rows& rows, Charge& charge) const;
  ColumnView emit_key(std::size_t key, const Groups& groups, std::size_t first, std::size_t count,
                      Vec& out) const;
  void count_bits(Groups& groups) const;
  std::vector<Groups> merged();

  RunContext& context_;
  Binder binder_;
  std::vector<Key> keys_;
  std::vector<BoundAggregate> aggregates_;
  bool is_of_columns_ = false;  // no keys, and every argument is a column
  Schema schema_;
  std::vector<std::unique_ptr<Local>> locals_;
  ExplainPtr explain_;
};

}  // namespace flugs::query
