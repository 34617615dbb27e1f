#pragma once

#include <cstdint>
#include <string_view>

// The headers of exactly DuckDB 2.0.0 (tools/setup --tests). Each function of duckdb_v2.h is a
// macro that calls through `duckdb_ext_api`, a table that DuckDB fills when it loads the extension.
#include <duckdb_extension_v2.h>

DUCKDB_EXTENSION_EXTERN

namespace flugs::duckdb {

/// The version whose table of functions these headers describe.
inline constexpr std::string_view kVersion = "v2.0.0";

/// DuckDB's DECIMAL(18, s) has no more digits; ours has 63 bits.
inline constexpr std::int64_t kDecimalUnitsMax = 999'999'999'999'999'999;

inline duckdb_v2_str str_of(std::string_view text) noexcept { return {text.data(), text.size()}; }
inline std::string_view view_of(const duckdb_v2_str& text) noexcept {
  return text.len == 0 ? std::string_view() : std::string_view(text.ptr, text.len);
}

}  // namespace flugs::duckdb
