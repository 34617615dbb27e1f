#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "query/operators/aggregate_state.h"
#include "query/operators/code_groups.h"
#include "query/operators/code_marks.h"
#include "query/operators/group_table.h"
#include "query/scan/pipeline.h"

namespace flugs::query {

/// Groups rows by keys and computes aggregates: first per worker, then merged by parts of the
/// hashes. Keys are words: payloads or codes. Text without codes gets codes of a pool, so no table
/// compares text. Rows of row groups are grouped by their codes there (CodeGroups), if there are
/// few codes. Distinct values are bits if they lie close enough together.
class GroupBySink : public Sink {
 public:
  GroupBySink(RunContext& context, const Schema& input, const std::vector<Item>& keys,
              const std::vector<Aggregate>& aggregates, ExplainPtr explain);

  /// Call before the first row: uses what the source knows of its rows, if they are the source's
  /// own columns.
  void expect(const Source& source);
  void push(const Batch& batch, std::uint32_t worker) override;
  bool push_masked(const Segment& segment, const std::vector<std::uint32_t>& columns,
                   std::uint32_t first, std::size_t count, const std::uint64_t* mask,
                   std::size_t selected, std::uint32_t worker) override;
  bool takes_segments() const noexcept override { return is_of_columns_; }
  bool takes_headers() const noexcept override;
  const Schema& output_schema() const noexcept { return schema_; }
  Rows finish();

 private:
  struct Key {
    BoundPtr expr;
    std::shared_ptr<TextPool> pool;  // text without codes
  };
  /// A worker's groups, or, after merging, the groups of a part of the hashes.
  struct Groups {
    Groups(const GroupBySink& sink, std::vector<std::uint32_t> ranges);
    GroupTable table;
    std::vector<AggregateState> states;  // as many per group as there are aggregates
    std::vector<DistinctSet> distinct;   // by aggregate; only for count distinct
    /// The same without keys, for aggregates with bits: see BitDomain.
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
    std::optional<CodeGroups> codes;
    std::vector<CodeMarks> marks;  // by aggregate
    std::uint64_t rows_by_codes = 0;
    std::uint64_t hand_overs = 0;
  };
  /// The distinct values that have a bit: codes of the column's domain below `count`, or `count`
  /// payloads from `low` on. 0: no value has one.
  struct BitDomain {
    std::uint64_t count = 0;
    std::int64_t low = 0;
  };

  void bind_aggregate(const Aggregate& aggregate);
  bool is_of_columns() const noexcept;
  std::vector<std::uint32_t> ranges() const;
  std::vector<std::uint32_t> columns_of_keys() const;
  void choose_bits();
  bool fits_bits(std::uint64_t count, std::uint64_t rows) const noexcept;
  Local& local_of(std::uint32_t worker);
  bool push_by_codes(const Segment& segment, const std::vector<std::uint32_t>& columns,
                     std::uint32_t first, std::size_t count, const std::uint64_t* mask,
                     std::size_t selected, Local& local) const;
  static std::uint64_t bytes_of(const Local& local) noexcept;
  void hand_over(Local& local) const;
  void hand_over_codes(Local& local) const;
  static std::uint64_t key_word(const Key& key, const Segment& segment, const CodeGroups::Key& of,
                                std::uint64_t code);
  void note_distinct(std::size_t aggregate, std::uint32_t group, std::uint64_t word,
                     Groups& into) const;
  bool mark_distinct(std::size_t aggregate, const Segment& segment, std::uint32_t column,
                     std::uint32_t first, std::size_t count, const std::uint64_t* mask,
                     Local& local) const;
  void hand_over_marks(std::size_t aggregate, Local& local) const;
  void find_groups(const Batch& batch, Local& local) const;
  void put_key(std::size_t key, ColumnView values, std::size_t rows, KeyWords& words) const;
  void count_distinct(std::size_t aggregate, ColumnView values, const std::uint32_t* groups,
                      std::size_t rows, Groups& into) const;
  void merge_part(std::size_t part, std::size_t parts, Groups& into) const;
  void merge_distinct(std::size_t aggregate, const Groups& from,
                      const std::vector<std::uint32_t>& renumbered, Groups& into) const;
  void emit(const Groups& groups, Rows& rows, Charge& charge) const;
  void explain(const std::vector<Groups>& all, bool is_array);
  ColumnView emit_key(std::size_t key, const Groups& groups, std::size_t first, std::size_t count,
                      Vec& out) const;
  void count_bits(Groups& groups) const;
  std::vector<Groups> merged();

  RunContext& context_;
  Binder binder_;
  std::vector<Key> keys_;
  std::vector<BoundAggregate> aggregates_;
  std::vector<BitDomain> bit_domains_;  // by aggregate
  bool is_of_columns_ = false;          // no keys, and every argument is a column
  bool is_by_codes_ = false;            // keys and arguments are columns that CodeGroups accepts
  Schema schema_;
  std::vector<std::unique_ptr<Local>> locals_;
  ExplainPtr explain_;
};

}  // namespace flugs::query
