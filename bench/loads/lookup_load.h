#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "bench/support/histogram.h"
#include "flugs/database.h"

namespace flugs::bench {

/// The table of the look-ups' figures: id (int64, the primary key), balance (int64), kind (int32).
struct LookupLoad {
  std::uint64_t rows = 1'000'000;
  bool is_scattered = false;  ///< rows are inserted in random order, not in the order of the id
  bool merges = true;         ///< the rows end in main
  std::uint64_t seed = 1;
};

struct LookupTable {
  KeyId key{};
  std::uint64_t rows = 0;  ///< their ids are the numbers below it
};
/// One thread inserts the rows. Fails as create_table, Transaction::insert, commit and merge.
Result<LookupTable> load_lookup_table(Database& database, const LookupLoad& load);

/// How keys are looked up.
enum class LookupForm : std::uint8_t {
  kGet,       ///< Transaction::get, a call for each key
  kPrepared,  ///< Prepared::read, a call for each key
  kGetMany,   ///< Transaction::get_many, a call for `batch` keys
};
inline constexpr std::array kLookupForms = {LookupForm::kGet, LookupForm::kPrepared,
                                            LookupForm::kGetMany};
std::string_view to_string(LookupForm form) noexcept;

/// The order in which ids are looked up.
enum class LookupOrder : std::uint8_t {
  kKey,     ///< ascending; after the largest id comes the smallest
  kRandom,  ///< uniform, drawn anew for each look-up
};

struct LookupPlan {
  std::uint32_t batch = 16;  ///< keys in a call of get_many, more than 0
  LookupOrder order = LookupOrder::kRandom;
  std::uint64_t keys = 2'000'000;  ///< that each form looks up in a run, at least
  std::uint32_t runs = 3;
  std::uint64_t seed = 1;
};

/// Figures of one form. The run that does not count is in `rows`, `missing` and `wrong` only.
struct LookupFigures {
  std::vector<double> row_ns;         ///< of each run: elapsed time for a key
  std::vector<double> thread_row_ns;  ///< the same: processor time of the thread
  Histogram call_ns;                  ///< of calls that are timed one by one; not in these times
  std::uint64_t rows = 0;             ///< looked up
  std::uint64_t missing = 0;          ///< those of `rows` that were not found
  std::uint64_t wrong = 0;            ///< those found with values other than the loaded ones
};
using LookupResult = std::array<LookupFigures, kLookupForms.size()>;

/// Looks keys up in each form by turns of some thousand keys. Each turn has keys of its own and a
/// transaction of its own, which begins before the time is taken. A look-up reads balance and kind.
/// There is one run more than `runs`: the first does not count. Fails as Database::begin, prepare,
/// and the calls of the forms; but a row that is not found is counted.
Result<LookupResult> run_lookups(Database& database, const LookupTable& table,
                                 const LookupPlan& plan);

}  // namespace flugs::bench
