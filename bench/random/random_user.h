#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "bench/random/random_steps.h"
#include "flugs/database.h"

namespace flugs::bench {

/// Creates the table that the users share.
Status create_random_tables(Database& database, std::uint64_t seed);

/// Executes one user's steps on a database.
/// Thread-safety: one thread at a time; users run beside each other.
class RandomUser {
 public:
  RandomUser(Database& database, std::uint64_t seed, std::uint32_t user)
      : database_(database), seed_(seed), user_(user) {}

  /// Returns when the step is durable. No error is expected.
  Status execute(std::uint64_t number);

 private:
  Status toggle(const RandomStep& step);
  Status merge(const RandomStep& step);
  Status alter(const RandomStep& step);
  Status write(Transaction& transaction, const RandomWrite& write);
  Status insert(Transaction& transaction, TableId table, const TableSchema& schema,
                const RandomWrite& write) const;
  Status change(Transaction& transaction, const Row& row, TableId table, const TableSchema& schema,
                const RandomWrite& write) const;
  Status remove(Transaction& transaction, const Row& row, TableId table, const TableSchema& schema,
                const RandomWrite& write) const;

  Database& database_;
  std::uint64_t seed_;
  std::uint32_t user_;
};

/// The expected content of a user's tables after some of its steps.
class RandomModel {
 public:
  RandomModel(std::uint64_t seed, std::uint32_t user);

  void apply(std::uint64_t number);
  /// ok, or kCorrupt with the first difference.
  Status compare(Database& database) const;

 private:
  struct Table {
    TableSchema schema;
    std::map<std::int64_t, std::vector<Constant>> rows;  ///< by id: the value of each column
  };
  static void alter(Table& table, std::uint64_t seed);
  void write(Table& table, const RandomWrite& write) const;
  Status compare_table(Database& database, TableId id, const Table& table) const;

  std::uint64_t seed_;
  std::uint32_t user_;
  std::array<std::optional<Table>, kRandomTables> tables_;
};

}  // namespace flugs::bench
