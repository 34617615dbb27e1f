// The threads' steps where no script gives them: drawn from a seed.

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include "verify/crash/rig/probe.h"
#include "verify/crash/scripts/tables.h"
#include "verify/crash/scripts/threads.h"

namespace flugs::crash {

namespace {

/// A row whose columns without a key have values that other rows have, too.
std::vector<Value> drawn_row(const TableSchema& schema, std::int32_t id, std::uint32_t salt) {
  std::vector<Value> row = probe_row(schema, id, salt);
  const std::vector<Value> common = probe_row(schema, 1, salt);
  for (std::size_t i = 1; i < row.size(); ++i) {
    const bool has_key = std::any_of(schema.keys.begin(), schema.keys.end(), [&](const auto& key) {
      return std::find(key.columns.begin(), key.columns.end(), schema.columns[i].name) !=
             key.columns.end();
    });
    if (!has_key) row[i] = common[i];
  }
  return row;
}

class ScriptDrawer {
 public:
  ScriptDrawer(CrashRig& rig, std::uint64_t seed) : rig_(rig), random_(seed) {}

  ThreadScript draw(std::uint32_t thread) {
    ThreadScript script;
    thread_ = thread;
    std::string own;  // a table that the thread itself has made
    const std::uint32_t steps = 2 + below(2);
    for (std::uint32_t i = 0; i < steps; ++i) {
      const std::uint32_t kind = below(12);
      if (kind == 0) {
        script.push_back(reads());
      } else if (kind == 1 && own.empty()) {
        own = fmt::format("own{}", thread);
        script.push_back(creates(log_schema(own)));
        script.push_back(commits({insert(own, log_entry(1, thread))}));
      } else if (kind == 1) {
        script.push_back(drops(std::exchange(own, {})));
      } else {
        script.push_back(kind == 2 ? aborts(writes()) : commits(writes()));
      }
    }
    return script;
  }

 private:
  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(random_() % bound); }

  Writes writes() {
    const DatabaseState& state = rig_.state();
    Writes drawn;
    std::set<std::pair<std::string, std::int32_t>> rows;
    const std::uint32_t count = 1 + below(3);
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto& [name, known] =
          *std::next(state.begin(), below(static_cast<std::uint32_t>(state.size())));
      const TableSchema& schema = rig_.core().table(*rig_.core().find_table(name))->schema();
      const std::uint32_t salt = 100 + below(3);
      const bool is_new = known.empty() || below(2) == 0;
      const std::int32_t id =
          is_new ? new_id(schema)
                 : std::next(known.begin(), below(std::min<std::uint32_t>(
                                                3, static_cast<std::uint32_t>(known.size()))))
                       ->first;
      if (!rows.emplace(name, id).second) continue;
      if (is_new) {
        drawn.push_back(insert(name, drawn_row(schema, id, salt)));
        drawn.back().by_column = below(3) == 0;
      } else if (below(3) == 0) {
        drawn.push_back(remove(name, id));
      } else if (std::vector<ColumnValue> changes = probe_changes(schema, id, salt);
                 !changes.empty()) {
        drawn.push_back(update(name, id, std::move(changes)));
      }
    }
    return drawn;
  }

  /// An id that other threads insert, too, if a key makes it unique.
  std::int32_t new_id(const TableSchema& schema) {
    constexpr std::int32_t kNewId = 70000;
    if (schema.has_primary_key && schema.keys[0].columns == std::vector{schema.columns[0].name})
      return kNewId + static_cast<std::int32_t>(below(3));
    return kNewId + 100 * static_cast<std::int32_t>(thread_ + 1) + next_id_++;
  }

  CrashRig& rig_;
  std::mt19937_64 random_;
  std::uint32_t thread_ = 0;
  std::int32_t next_id_ = 0;
};

}  // namespace

std::vector<ThreadScript> draw_scripts(CrashRig& rig, std::uint64_t seed, std::uint32_t threads) {
  ScriptDrawer drawer(rig, seed);
  std::vector<ThreadScript> scripts;
  scripts.reserve(threads);
  for (std::uint32_t thread = 0; thread < threads; ++thread) scripts.push_back(drawer.draw(thread));
  return scripts;
}

}  // namespace flugs::crash
