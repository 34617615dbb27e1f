#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flugs/database.h"
#include "test/model/model_database.h"
#include "test/model/random.h"
#include "test/support/temporary_database.h"

namespace flugs::test {

struct ExerciserOptions {
  std::uint64_t records = 150;   ///< about as many live ones in a table
  std::size_t transactions = 6;  ///< open at one time at most
  std::uint64_t domain = 40;     ///< values that a column mostly takes
};

/// Does one random operation after the other to a database and to its model.
class Exerciser {
 public:
  explicit Exerciser(std::uint64_t seed, ExerciserOptions options = {});

  void step();
  /// Ends all transactions, verifies, perhaps makes or drops a table; closes and opens again.
  void rest(bool reopens);

  std::uint64_t steps() const { return steps_; }
  /// What differed first; empty as long as nothing did.
  const std::string& complaint() const { return complaint_; }
  std::string summary() const;

 private:
  struct Open {
    Transaction real;
    ModelTransaction* model;
    bool read_only;
    struct Mark {
      Savepoint real;
      std::map<const ModelTable*, OwnRows> model;
    };
    std::vector<Mark> savepoints = {};
  };

  void begin();
  void finish(std::size_t index, bool commits);
  void insert(Open& open, ModelTable& table);
  void update(Open& open, ModelTable& table);
  void remove(Open& open, ModelTable& table);
  void break_rules(Open& open, ModelTable& table);
  void savepoint(Open& open);
  void misuse_savepoint(Open& open);
  void read(Open& open, ModelTable& table);
  void find(Open& open, ModelTable& table);
  void find_all(Open& open, ModelTable& table);
  void range(Open& open, ModelTable& table);
  void scan(Open& open, ModelTable& table);
  void merge();
  void compare_all(Open& open, ModelTable& table);

  void make_table(const TableSchema& schema);
  void expect(bool condition, const std::string& what);
  void expect_code(StatusCode expected, StatusCode found, const std::string& what);
  void expect_row(const SeenRow& expected, const Row& found, const std::string& what);
  void expect_rows(const ModelTable& table, std::vector<SeenRow> expected,
                   const std::vector<Row>& found, const ModelKey* order, const std::string& what);
  ModelRow random_row(const ModelTable& table);
  std::vector<Value> views(const ModelTable& table, const ModelRow& row);
  ModelRow key_values(Open& open, const ModelTable& table, const ModelKey& key, std::size_t count);
  const SeenRow* pick(Open& open, const ModelTable& table);

  Random random_;
  ExerciserOptions options_;
  TemporaryDatabase database_;
  ModelDatabase model_;
  std::vector<Open> open_;
  std::vector<Savepoint> gone_;  // some that were released, rolled over, or whose transaction ended
  std::uint64_t steps_ = 0;
  std::uint64_t last_commit_ = 0;
  std::uint64_t tables_made_ = 0;
  std::uint64_t merged_chunks_ = 0;
  std::vector<std::uint64_t> outcomes_ = std::vector<std::uint64_t>(16);
  SeenRow picked_{};
  std::string complaint_;
};

/// Tables with all types in both encodings, and keys of every kind with 1 to 3 columns.
TableSchema wide_schema(const std::string& name);
TableSchema pair_schema(const std::string& name);
TableSchema triple_schema(const std::string& name);
TableSchema keyless_schema(const std::string& name);

}  // namespace flugs::test
