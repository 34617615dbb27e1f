#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "flugs/function_ref.h"
#include "query/operators/aggregate_state.h"
#include "query/operators/code_groups.h"
#include "query/operators/code_marks.h"
#include "query/operators/group_table.h"
#include "query/operators/record_parts.h"
#include "query/operators/row_records.h"
#include "query/scan/pipeline.h"

namespace flugs::query {

/// Groups rows by keys and computes aggregates. Each worker has a table of the groups that it met;
/// a table that grows beyond the cache is emptied into records, in parts by hash. If all groups
/// are few, the workers' tables are merged at the end, else the records, part by part, when the
/// groups are read. Words of
/// keys are payloads, codes, or a text's address and mark. Rows of row groups are grouped by their
/// codes there (CodeGroups), if there are few codes. Distinct values are bits if they lie close
/// enough together, else pairs of group and value, which are parted in the same way.
class GroupBySink : public Sink {
 public:
  /// `is_dependent`, by key: its value follows from those of the other keys, so it is taken from
  /// some row of the group.
  GroupBySink(RunContext& context, const Schema& input, const std::vector<Item>& keys,
              const std::vector<bool>& is_dependent, const std::vector<Aggregate>& aggregates,
              ExplainPtr explain);

  /// Call before the first row: uses what the source knows of its rows, if they are the source's
  /// own columns.
  void expect(const Source& source);
  void push(const Batch& batch, std::uint32_t worker) override;
  bool push_masked(const ScanUnit& unit, const std::vector<std::uint32_t>& columns,
                   std::uint32_t first, std::size_t count, const std::uint64_t* mask,
                   std::size_t selected, std::uint32_t worker) override;
  bool takes_units() const noexcept override { return is_of_columns_; }
  bool takes_headers() const noexcept override;
  const Schema& output_schema() const noexcept { return schema_; }
  /// Call after the last row. The source of the groups; it keeps the sink for as long as it needs
  /// it, but nothing of the sink's input.
  static std::unique_ptr<Source> finish(std::shared_ptr<GroupBySink> sink);

 private:
  class PartsSource;  // group_by_source.cc
  struct Key {
    BoundPtr expr;
    std::size_t word;  ///< place in the shape
    bool is_dependent = false;
    bool is_text() const noexcept { return expr->form == Form::kText; }
  };
  /// A worker's groups, or, after merging, those of some parts.
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
  /// Which rows go past a worker's table, or past a set of pairs, because few of them met a group
  /// or a pair that was there.
  struct Past {
    std::uint64_t taken = 0;  // rows, since the table was empty
    std::uint64_t left = 0;   // rows that go past it
    void note_emptied(std::uint64_t entries) noexcept;
    void pass(std::uint64_t rows) noexcept { left -= std::min(left, rows); }
  };
  struct Local {
    Local(const GroupBySink& sink, KeptMemory& kept);
    KeptMemory& kept;  // for states; it outlives this
    Evaluator evaluator;
    Groups groups;
    KeyWords words;
    std::vector<std::uint32_t> group_of;
    std::optional<CodeGroups> codes;
    std::vector<CodeMarks> marks;  // by aggregate
    std::uint64_t rows_by_codes = 0;
    std::uint64_t hand_overs = 0;
    // Records that did not stay in the cache. Null: there is none yet.
    std::unique_ptr<RecordParts> parts;               // groups
    std::unique_ptr<RecordParts> rows;                // that went past the table
    std::vector<std::unique_ptr<RecordParts>> pairs;  // by aggregate; of group and value
    std::uint64_t compact_at = 0;                     // bytes of groups and rows
    std::vector<std::uint64_t> compact_pairs_at;      // by aggregate
    std::size_t sample_at = 0;                        // part that the next sample begins with
    Past table_past;
    std::vector<Past> pairs_past;         // by aggregate
    std::vector<std::uint64_t> hashes;    // of rows that go past the table
    RowRecords row_records;               // the same rows
    std::vector<std::uint64_t> key_rows;  // of a batch of pairs
  };
  /// What merges parts: one for each worker.
  struct Merging {
    /// What states keep is in `lasting` or, if that is null, goes with this.
    Merging(const GroupBySink& sink, KeptMemory* lasting);
    void clear();
    KeptMemory own;
    KeptMemory& kept;
    Groups groups;
    RowRecords row_records;
    std::vector<std::uint32_t> numbers;
    std::vector<Vec> columns;
    Batch batch;
  };
  /// The distinct values that have a bit: codes of the column's domain below `count`, or `count`
  /// payloads from `low` on. 0: no value has one.
  struct BitDomain {
    std::uint64_t count = 0;
    std::int64_t low = 0;
  };
  /// A distinct value: a payload or code, or a text's address and mark.
  struct Distinct {
    std::uint64_t word = 0;
    std::uint64_t mark = 0;
  };

  void bind_aggregate(const Aggregate& aggregate);
  void check_type(const BoundAggregate& aggregate) const;
  bool is_of_columns() const noexcept;
  std::vector<std::uint32_t> ranges() const;
  std::vector<std::uint32_t> columns_of_keys() const;
  void choose_bits();
  bool fits_bits(std::uint64_t count, std::uint64_t rows) const noexcept;
  Local& local_of(std::uint32_t worker);
  bool push_by_codes(const ScanUnit& unit, const std::vector<std::uint32_t>& columns,
                     std::uint32_t first, std::size_t count, const std::uint64_t* mask,
                     std::size_t selected, Local& local) const;
  static std::uint64_t bytes_of(const Local& local) noexcept;
  void hand_over(Local& local) const;
  void hand_over_codes(Local& local) const;
  void put_entry(std::size_t key, const ScanUnit& unit, const CodeGroups::Key& of,
                 std::uint64_t code, std::size_t row, KeyWords& words) const;
  void note_distinct(std::size_t aggregate, std::uint32_t group, Distinct value,
                     Local& local) const;
  bool mark_distinct(std::size_t aggregate, const ScanUnit& unit, std::uint32_t column,
                     std::uint32_t first, std::size_t count, const std::uint64_t* mask,
                     Local& local) const;
  void hand_over_marks(std::size_t aggregate, Local& local) const;
  void put_keys(const Batch& batch, Local& local) const;
  void find_groups(const Batch& batch, Local& local) const;
  void put_key(std::size_t key, ColumnView values, std::size_t rows, KeyWords& words) const;
  Distinct distinct_of(std::size_t aggregate, ColumnView values, std::size_t row) const;
  void count_distinct(std::size_t aggregate, ColumnView values, std::size_t rows,
                      Local& local) const;

  // Groups and pairs beyond the cache: group_by_parts.cc.
  KeyShape pair_shape(std::size_t aggregate) const;
  std::uint64_t stores() const noexcept;
  std::uint64_t store_bytes_max() const noexcept;
  std::uint64_t local_bytes_max(bool is_array) const noexcept;
  std::uint64_t bytes_of_group() const noexcept;
  RecordParts& parts_of(Local& local) const;
  RecordParts& rows_of(Local& local) const;
  RecordParts& pairs_of(std::size_t aggregate, Local& local) const;
  void empty_if_full(Local& local) const;
  void empty_groups(Local& local) const;
  void empty_pairs(std::size_t aggregate, Local& local) const;
  void put_group(const Groups& groups, std::uint32_t group, std::uint64_t* record) const;
  void add_pair(std::size_t aggregate, const std::uint64_t* key_row, Distinct value,
                Local& local) const;
  void push_past_table(const Batch& batch, Local& local) const;
  void put_distinct_rows(std::size_t aggregate, ColumnView values, std::size_t rows,
                         Local& local) const;
  void count_pairs(std::size_t aggregate);
  void count_pairs_of(std::size_t aggregate, const std::vector<RecordParts*>& sources,
                      std::size_t part, GroupTable& pairs, Local& local) const;
  void count_new_pairs(std::size_t aggregate, const GroupTable& pairs, std::uint32_t first,
                       Local& local) const;

  // Records that are merged before the end: group_by_compact.cc.
  std::uint64_t compact_at_first() const noexcept;
  std::uint64_t compact_at_most() const noexcept;
  void limit_records(Local& local) const;
  static void spill_records(Local& local);
  void limit_pairs(std::size_t aggregate, Local& local) const;
  std::uint64_t next_limit(std::uint64_t limit, bool pays, std::uint64_t held) const noexcept;
  bool compact(std::size_t part, Merging& merging, Local& local) const;
  bool compact_pairs(std::size_t part, GroupTable& table, RecordParts& pairs) const;
  template <typename CompactPart>
  bool compact_if_it_pays(std::size_t& sample_at, CompactPart&& compact_part) const;

  // Parts that are merged at the end: group_by_source.cc.
  void merge_rows(std::uint64_t* records, std::size_t count, Merging& into) const;
  void merge_states(const std::uint64_t* records, std::size_t count, Merging& into) const;
  void merge_part(std::size_t part, Merging& into) const;
  std::uint64_t records_of(std::size_t part) const;

  std::vector<Local*> used_locals() const;
  bool is_parted() const;
  bool part();
  void merge_groups(const Groups& from, Groups& into);
  void emit(const Groups& groups, std::vector<Vec>& columns, Batch& batch,
            FunctionRef<bool(const Batch&)> take) const;
  Rows all_rows();
  void explain(std::uint64_t groups) const;
  void explain_parts() const;
  ColumnView emit_key(std::size_t key, const Groups& groups, std::size_t first, std::size_t count,
                      Vec& out) const;
  ColumnView emit_aggregate(std::size_t aggregate, const Groups& groups, std::size_t first,
                            std::size_t count, Vec& out) const;
  void count_bits(Groups& groups) const;
  Groups merged();

  RunContext& context_;
  Binder binder_;
  std::vector<Key> keys_;
  KeyShape shape_;
  std::vector<BoundAggregate> aggregates_;
  std::vector<std::size_t> state_at_;   // by aggregate: its first word in the record of a group
  std::size_t record_words_ = 0;        // key row and packed states
  std::vector<BitDomain> bit_domains_;  // by aggregate
  bool is_of_columns_ = false;          // no keys, and every argument is a column
  bool is_by_codes_ = false;            // keys and arguments are columns that CodeGroups accepts
  bool keeps_values_ = false;           // some states have values or a sketch beside them
  Schema schema_;
  std::deque<KeptMemory> kept_;  // by worker
  std::vector<std::unique_ptr<Local>> locals_;
  ExplainPtr explain_;
};

}  // namespace flugs::query
