#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string_view>
#include <type_traits>

namespace flugs {

/// How far a long call has come, in steps of unlike length. Within a phase `done` never decreases;
/// it is at most `total`, which may grow but never shrinks, and is 0 while it is unknown.
struct Progress {
  /// The work that is counted: a phase of RecoveryReport, "check" (rows), a part of a pool
  /// (check_pool), "add_key" (rows), "constraint" (rows), "insert_rows", "insert_columns",
  /// "update_where" and "remove_where" (rows; "remove_where" also counts rows that foreign keys
  /// demand to write), "merge" (chunks) or "query" (pieces of tables and of other inputs). Valid
  /// during the call that gets it.
  std::string_view phase;
  std::uint64_t done = 0;
  std::uint64_t total = 0;
};
static_assert(std::is_trivially_copyable_v<Progress>);

/// The options of a long call that has no others. A long call with options of its own has these
/// two among them, with the same meaning (docs/decisions/0037-progress-and-stopping.md).
struct CallOptions {
  /// Called now and then, from any thread, one call at a time. Must not throw, and must not use the
  /// database.
  std::function<void(const Progress&)> progress = {};
  /// Asks the call to stop, from any thread, also from within `progress`. The call then fails soon
  /// with kCancelled and has changed nothing, unless its function says otherwise. A call that is
  /// nearly done may still succeed.
  std::stop_token stop = {};
};

}  // namespace flugs
