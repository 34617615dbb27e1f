#pragma once

#include <cstdint>
#include <string>

#include "bench/support/json.h"
#include "bench/support/random.h"

namespace flugs::bench {

inline constexpr std::uint32_t kGroupValues = 1'000'000;  ///< of column v
inline constexpr std::uint32_t kGroupFew = 100;           ///< of column few

/// A row of the group benchmark's table.
struct GroupRow {
  std::int64_t k = 0;
  std::int32_t v = 0;
  std::int32_t few = 0;
};

/// The content of the group benchmark's table g(k, t, v, few). `k` is uniform over {0 .. G-1}; the
/// first G rows have each of these values once, so that G is exact. `t` is the same as a text of 19
/// letters; all texts have 9 letters in common. Rows stand in no order. Every value is a pure
/// function of its row.
class GroupData {
 public:
  /// 1 <= groups <= rows, groups below 2^31.
  GroupData(std::uint64_t rows, std::uint64_t groups, std::uint64_t seed);

  std::uint64_t rows() const noexcept { return rows_; }
  std::uint64_t groups() const noexcept { return groups_; }
  GroupRow row(std::uint64_t row) const noexcept;
  static std::string text(std::int64_t k);

  /// By the name of each query, its rows as tools/duckdb gives them: added up here from the rows,
  /// in code that shares nothing with the engine.
  Json expected() const;

 private:
  Json expected_sort(std::uint64_t first, std::uint64_t count) const;

  std::uint64_t rows_;
  std::uint64_t groups_;
  std::uint64_t key_;
  Permutation first_;
};

}  // namespace flugs::bench
