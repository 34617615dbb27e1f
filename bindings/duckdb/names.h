#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace flugs::duckdb {

/// ASCII letters made small. DuckDB takes names that differ only in their case for the same one.
std::string lower_case(std::string_view name);

/// The ending of a file that FROM takes for a pool.
inline constexpr std::string_view kPoolEnding = ".pool";

/// A path as in FROM: the pool, and behind a slash the table.
struct PoolName {
  std::string path;
  std::optional<std::string> table;
};
/// Nothing: the name means no pool. A folder may have such a name as well.
std::optional<PoolName> read_pool_name(std::string_view name);

}  // namespace flugs::duckdb
