#pragma once

#include <cstdint>
#include <vector>

#include "flugs/database.h"
#include "verify/isolation/sessions/history_plan.h"

namespace flugs::sessions {

/// The objects of a history, stored in tables by the public API: lists with a row per element,
/// lists in one value of bytes, and registers. The key of an object decides its kind and its table.
class HistoryTables {
 public:
  enum class Kind : std::uint8_t { kRows, kBytes, kRegister };

  /// Makes the tables of a plan.
  static Status create(Database& database, const HistoryPlan& plan);
  /// Finds them. Fails with kNotFound.
  static Result<HistoryTables> find(Database& database, const HistoryPlan& plan);

  Kind kind_of(std::uint32_t key) const noexcept;
  std::vector<TableId> tables() const;

  /// How a read is done, if its object knows several ways: by points, by a range, by a scan.
  enum class Way : std::uint8_t { kPoint, kRange, kScan };

  /// Clears `elements` first. `is_predicate`: what was not found was looked for, too.
  Status read_list(const Transaction& transaction, std::uint32_t key, Way way,
                   std::vector<std::uint32_t>& elements, bool& is_predicate) const;
  Status append(Transaction& transaction, std::uint32_t key, std::uint32_t value) const;

  struct Register {
    std::uint32_t key;
    std::uint32_t value;  ///< 0: there is none
  };
  Status read_register(const Transaction& transaction, std::uint32_t key,
                       std::uint32_t& value) const;
  /// Reads all registers of the group of `key` below `key_limit`, by the index over groups or by a
  /// scan.
  Status read_group(const Transaction& transaction, std::uint32_t key, std::uint32_t key_limit,
                    Way way, std::vector<Register>& registers) const;
  Status write_register(Transaction& transaction, std::uint32_t key, std::uint32_t value) const;

 private:
  struct Place {
    TableId rows;
    TableId bytes;
    TableId registers;
  };
  const Place& place_of(std::uint32_t key) const noexcept;
  Status read_rows(const Transaction& transaction, std::uint32_t key, Way way,
                   std::vector<std::uint32_t>& elements) const;

  HistoryWorkload workload_ = HistoryWorkload::kMixed;
  std::vector<Place> places_;
};

}  // namespace flugs::sessions
