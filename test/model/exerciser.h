#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bench/support/random.h"
#include "flugs/database.h"
#include "flugs/query.h"
#include "test/model/calls.h"
#include "test/model/model_database.h"
#include "test/support/random.h"
#include "test/support/temporary_database.h"

namespace flugs::test {

/// The parameters of one world; drawn from its seed.
struct WorldOptions {
  std::uint64_t records = 60;    ///< about as many live ones in a table
  std::size_t transactions = 6;  ///< open at one time at most
  std::uint64_t domain = 20;     ///< values that a column mostly takes
  std::size_t tables = 4;        ///< about as many
  std::uint64_t rest_every = 5000;
  bool crashes = false;  ///< no background thread writes, so that the file can be copied
  IndexPlace index_place = kDefaultIndexPlace;
  std::uint64_t segment_bytes = std::uint64_t{1} << 20;
};
WorldOptions draw_world(std::uint64_t seed);

/// Counts of the work done.
struct WorldFigures {
  std::uint64_t steps = 0;
  std::uint64_t schemas = 0;         ///< tables that were made
  std::uint64_t schema_changes = 0;  ///< that succeeded
  std::uint64_t openings = 0;
  std::uint64_t crashes = 0;
  std::uint64_t commits = 0;
  std::uint64_t merged_chunks = 0;
  std::vector<std::uint64_t> outcomes = std::vector<std::uint64_t>(16);

  void add(const WorldFigures& other);
  std::string to_string() const;
};

/// A database of random tables, and a model of it. Applies one random operation after the other to
/// both.
class Exerciser {
 public:
  explicit Exerciser(std::uint64_t seed);
  ~Exerciser();
  Exerciser(const Exerciser&) = delete;
  Exerciser& operator=(const Exerciser&) = delete;

  void step();
  /// Ends all transactions, checks everything, closes, and audits the pool.
  void finish_world();

  /// The first difference; empty as long as there is none.
  const std::string& complaint() const { return complaint_; }
  const CallCounts& calls() const { return calls_; }
  const WorldFigures& figures() const { return figures_; }

 private:
  struct Open {
    Transaction* real;
    ModelTransaction* model;
    std::unique_ptr<Transaction> owned = {};
    std::vector<Savepoint> savepoints = {};
  };
  using Step = void (Exerciser::*)(Open& open, ModelTable& table);
  struct WeighedStep {
    unsigned weight;  // of a thousand
    Step step;
  };
  static const std::vector<WeighedStep>& steps();

  // exerciser.cc: beginning and ending, statements.
  void begin();
  Outcomes finish(std::size_t index, bool commits);
  void settle(Open& open, RowId id, const char* what);
  void settle_cascades(Open& open);
  void settle_numbers(Open& open, ModelTable& table, std::span<const RowId> ids);
  void run(Open& open, ModelTable& table);
  void savepoint(Open& open, ModelTable& table);
  void misuse_savepoint(Open& open, ModelTable& table);

  // exerciser_writes.cc
  void insert(Open& open, ModelTable& table);
  void insert_named(Open& open, ModelTable& table);
  void insert_rows(Open& open, ModelTable& table);
  Status insert_columns(Open& open, const ModelTable& table, const std::vector<ModelRow>& rows,
                        std::span<RowId> ids);
  void insert_or_change(Open& open, ModelTable& table);
  void update(Open& open, ModelTable& table);
  void add(Open& open, ModelTable& table);
  void compare_and_set(Open& open, ModelTable& table);
  void remove(Open& open, ModelTable& table);
  void remove_range(Open& open, ModelTable& table);
  void break_rules(Open& open, ModelTable& table);
  void lock_row(Open& open, ModelTable& table);
  /// If a call has failed with kConflict, compares Transaction::conflict with the model.
  void look_at_conflict(const Open& open, StatusCode found);
  void do_update(Open& open, ModelTable& table, const SeenRow& seen,
                 const std::vector<std::size_t>& named, const ModelRow& row, Outcomes otherwise,
                 const std::function<Result<RowId>()>& call, const char* what);

  // exerciser_reads.cc
  void read(Open& open, ModelTable& table);
  void find(Open& open, ModelTable& table);
  void find_many(Open& open, ModelTable& table, std::size_t index);
  void expect_found(Open& open, ModelTable& table, std::size_t index, const ModelRow& wanted,
                    const Result<Row>& found);
  Result<Row> get_prepared(Open& open, KeyId key, std::span<const Value> values);
  void visit_rows(Open& open, ModelTable& table);
  void range(Open& open, ModelTable& table);
  void scan(Open& open, ModelTable& table);
  void compare_all(Open& open, ModelTable& table);
  void read_row(const ModelTable& table, const SeenRow& expected, const Row& found);
  bool is_same_checked(const Row& found, ColumnId id, const ColumnSchema& column,
                       const ModelValue& wanted);
  void read_batch(const ModelTable& table, const ScanBatch& batch, std::span<const ColumnId> of);

  // exerciser_walks.cc
  struct Bounds {
    ModelRow low;
    ModelRow high;
    bool low_inclusive = true;
    bool high_inclusive = true;
    bool is_prefix = false;
  };
  void walk(Open& open, ModelTable& table);
  bool read_walk_batch(Open& open, const ModelTable& table, Rows& rows, std::vector<Row>& found,
                       const std::string& what);
  std::vector<SeenRow> expected_walk(Open& open, ModelTable& table, const ModelKey& key,
                                     const Bounds& bounds);
  Bounds draw_bounds(Open& open, ModelTable& table, const ModelKey& key);
  Rows begin_walk(Open& open, KeyId key, const Bounds& bounds);
  void write_meanwhile(Open& open, ModelTable& table);

  // exerciser_conditions.cc
  std::optional<std::size_t> pick_compared(const ModelTable& table);
  void scan_where(Open& open, ModelTable& table);
  void remove_where(Open& open, ModelTable& table);
  void update_where(Open& open, ModelTable& table);
  void break_update_where(Open& open, ModelTable& table);

  // exerciser_queries.cc
  void query(Open& open, ModelTable& table);
  void query_totals(Open& open, ModelTable& table);
  void query_groups(Open& open, ModelTable& table);
  void query_order(Open& open, ModelTable& table);
  void query_joins(Open& open, ModelTable& table);
  std::optional<query::QueryResult> ask(Open& open, const query::Query& query, Outcomes expected,
                                        const std::string& what);

  // exerciser_schemas.cc
  void change_schema(Open& open, ModelTable& table);
  void change_schema_alone();
  void make_table(bool refers);
  /// Two tables by one call, the second of which may refer to the first.
  void make_two_tables();
  void drop_table(ModelTable& table);
  void rename(ModelTable& table);
  void add_column(ModelTable& table);
  void drop_column(ModelTable& table);
  void change_type(ModelTable& table);
  void set_delta_layout(ModelTable& table);
  void add_key(ModelTable& table, bool expects_busy);
  void drop_key(ModelTable& table);
  void skip_numbers(ModelTable& table);

  // exerciser_constraints.cc
  void loosen(ModelTable& table);
  void tighten(ModelTable& table);
  void add_check(ModelTable& table);
  void drop_check(ModelTable& table);
  void set_not_null(ModelTable& table, bool not_null);
  void set_default(ModelTable& table);
  void add_foreign_key(ModelTable& table);
  void drop_foreign_key(ModelTable& table);
  bool has_room_for_key(const ModelTable& table, const ForeignKeySchema& foreign) const;
  void compare_schema(const ModelTable& table);
  std::string fresh_name(const char* prefix);
  std::string odd_name(const std::string& fresh, Outcomes& expected, const std::string& taken);
  void note_change(ModelTable& table, StatusCode code);

  // exerciser_openings.cc
  OpenOptions draw_options();
  void open_database(const char* what);
  void rest();
  void close_database();
  void reopen();
  void crash();
  void look_at_everything();
  void audit();

  // exerciser_watch.cc
  void merge(Open& open, ModelTable& table);
  void merge_table(ModelTable& table);
  void look_around(Open& open, ModelTable& table);
  void look_at_durability();
  void look_at_statistics(ModelTable& table);
  void look_names_up(ModelTable& table);
  void set_policy(ModelTable& table);
  void grow_pool();
  void end_from_outside(Open& open, ModelTable& table);

  // expectations.cc
  void expect(bool condition, const std::string& what);
  void expect_code(Outcomes expected, const Status& found, const std::string& what);
  void expect_row(const SeenRow& expected, const Row& found, const std::string& what);
  void expect_rows(const ModelTable& table, std::vector<SeenRow> expected,
                   const std::vector<Row>& found, const ModelKey* order, const std::string& what);

  // drawing.cc
  ModelRow random_row(Open& open, ModelTable& table);
  ModelValue random_cell(Open& open, ModelTable& table, std::size_t column);
  void refer(Open& open, ModelTable& table, ModelRow& row);
  std::vector<Value> views(const ModelTable& table, const ModelRow& row);
  ModelRow key_values(Open& open, ModelTable& table, const ModelKey& key, std::size_t count);
  std::optional<SeenRow> pick(Open& open, ModelTable& table);
  std::optional<std::size_t> pick_key(const ModelTable& table, bool unique, bool ordered);
  std::optional<std::size_t> pick_column(const ModelTable& table);
  ModelTable& pick_table();
  /// Values of the unique key of an existing row, without NULLs.
  std::optional<std::pair<SeenRow, ModelRow>> pick_by_key(Open& open, ModelTable& table,
                                                          std::size_t key);
  std::optional<std::size_t> numbered(const ModelTable& table) const;

  Random random_;
  bench::Random schema_random_;
  WorldOptions world_;
  std::optional<TemporaryPath> path_;
  std::optional<Database> database_;
  OpenOptions opened_with_;
  ModelDatabase model_;
  std::vector<std::unique_ptr<Open>> open_;
  std::vector<Savepoint> gone_;  // some that were released, rolled over, or whose transaction ended
  std::uint64_t last_commit_ = 0;
  std::uint64_t names_made_ = 0;
  std::uint64_t schema_changes_at_opening_ = 0;
  std::vector<std::int64_t> pending_numbers_;  // of rows being inserted: stand-ins for their
                                               // numbers
  std::int64_t next_pending_ = 0;
  CallCounts calls_;
  WorldFigures figures_;
  std::string complaint_;
};

}  // namespace flugs::test
