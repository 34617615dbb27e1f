#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "flugs/database.h"
#include "test/support/random.h"
#include "test/support/temporary_database.h"

namespace flugs::test {

/// One drawn case of a pool that gets full: a table with a drawn schema is filled, rows are
/// deleted, and the same rows are inserted again.
///
/// What must hold, however full the pool is: rows can be deleted, a merge succeeds, and the pool
/// has room for the rows that it had before. In a table with texts it may lack that room: texts of
/// deleted rows stay until a merge has room for a second copy of the others (decision 0041).
class FullPoolCase {
 public:
  enum class Columns : std::uint8_t { kNumbers, kAny };
  FullPoolCase(std::uint64_t seed, Columns columns);

  /// Ok if everything held; otherwise the status of the call that failed, or kCorrupt with what was
  /// found.
  Status run();
  /// The draws, for messages.
  std::string words() const;
  std::uint64_t rows_deleted() const noexcept { return gone_.size(); }
  std::uint64_t rows_left_out() const noexcept { return left_out_; }

 private:
  TableSchema draw_schema();
  std::vector<Value> row(std::uint64_t number);
  Value value(std::uint64_t number, std::size_t column);
  Status fill();
  Status insert(const std::vector<std::uint64_t>& numbers);
  bool may_leave_out(std::uint64_t inserted) const;
  Status insert_again();
  Status remove();
  Status remove_batch(const std::vector<std::uint64_t>& numbers);
  Status merge();
  Status compare();

  std::uint64_t seed_;
  const Columns columns_;
  Random random_;
  OpenOptions options_;
  TableSchema schema_;
  TemporaryPath path_;
  TableId table_;
  std::optional<Database> database_;
  std::uint64_t count_ = 0;           // rows 0 to count_ - 1 fit into the pool
  std::vector<std::uint64_t> gone_;   // of these, in drawn order
  std::uint64_t left_out_ = 0;        // of these, for lack of room
  std::uint64_t fill_percent_ = 100;  // of the pool's size
  bool removes_all_ = false;
  bool removes_at_once_ = false;
  bool reopens_ = false;
  std::vector<std::string> texts_;  // keeps what the values of a row refer to
};

}  // namespace flugs::test
