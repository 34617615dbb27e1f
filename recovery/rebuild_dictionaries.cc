#include "recovery/rebuild_dictionaries.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace flugs::recovery {

namespace {

// ValueIDs per task: enough to be worth a task, few enough to keep all threads busy.
constexpr std::uint32_t kEntriesPerTask = 1u << 18;
// Fewer entries are done before threads have started. Right after a crash, starting threads may
// take milliseconds, until a processor has released the memory of the process that died.
constexpr std::uint64_t kEntriesWorthThreads = 1u << 14;
// For each dictionary with hints opening reads only a page or two.
constexpr std::size_t kHintedPerTask = 64;
constexpr std::size_t kHintedWorthThreads = 512;

struct Range {
  std::uint32_t first;
  std::uint32_t end;
  columns::Dictionary::RebuildCounts counts;
};

std::vector<Range> ranges_of(std::uint32_t entries) {
  std::vector<Range> ranges;
  for (std::uint32_t first = 0; first < entries;
       first += std::min(kEntriesPerTask, entries - first))
    ranges.push_back({first, first + std::min(kEntriesPerTask, entries - first), {}});
  if (ranges.empty()) ranges.push_back({0, 0, {}});
  return ranges;
}

// Rebuilds one dictionary with all threads.
Status rebuild_large(columns::Dictionary& dictionary, pmem::Pool& pool, const std::string& phase,
                     Phases& phases, columns::Dictionary::RebuildCounts& counts) {
  std::vector<Range> ranges = ranges_of(dictionary.rebuild_end());
  columns::HashIndexBuilder builder(dictionary.index(), dictionary.rebuild_end(), ranges.size());
  std::vector<std::function<Status()>> tasks;
  tasks.reserve(std::max(ranges.size(), builder.groups()));
  for (std::size_t i = 0; i < ranges.size(); ++i)
    tasks.emplace_back([&, i] {
      pmem::Persister persister(pool.medium());
      dictionary.rebuild_range(ranges[i].first, ranges[i].end, builder.source(i), ranges[i].counts,
                               persister);
      persister.fence("rebuild_dictionary/1");
      return Status();
    });
  if (Status s = phases.run_parallel(phase, tasks); !s.ok()) return s;
  tasks.clear();
  for (std::size_t group = 0; group < builder.groups(); ++group)
    tasks.emplace_back([&, group] {
      builder.insert_group(group);
      return Status();
    });
  if (Status s = phases.run_parallel(phase, tasks); !s.ok()) return s;
  for (const Range& range : ranges) {
    if (range.counts.misplaced != columns::Dictionary::kNone)
      counts.misplaced = range.counts.misplaced;
    counts.entries += range.counts.entries;
    counts.dropped += range.counts.dropped;
  }
  return {};
}

void rebuild_small(columns::Dictionary& dictionary, pmem::Pool& pool,
                   columns::Dictionary::RebuildCounts& counts) {
  pmem::Persister persister(pool.medium());
  columns::HashIndexBuilder builder(dictionary.index(), dictionary.rebuild_end(), 1);
  dictionary.rebuild_range(0, dictionary.rebuild_end(), builder.source(0), counts, persister);
  persister.fence("rebuild_dictionary/1");
  for (std::size_t group = 0; group < builder.groups(); ++group) builder.insert_group(group);
}

}  // namespace

Result<std::uint64_t> rebuild_dictionaries(const std::vector<columns::Dictionary*>& dictionaries,
                                           pmem::Pool& pool, const std::string& phase,
                                           Phases& phases, RecoveryReport& report) {
  std::vector<columns::Dictionary::RebuildCounts> counts(dictionaries.size());
  std::vector<std::function<Status()>> small;
  std::vector<std::size_t> hinted;  // positions of dictionaries with hints
  std::uint64_t entries_left = 0;
  for (std::size_t i = 0; i < dictionaries.size(); ++i) {
    entries_left += dictionaries[i]->count_unproven();
    if (dictionaries[i]->has_hints()) {
      hinted.push_back(i);
      continue;
    }
    if (dictionaries[i]->is_indexed()) continue;
    if (dictionaries[i]->rebuild_end() <= kEntriesPerTask) {
      small.emplace_back([&, i] {
        rebuild_small(*dictionaries[i], pool, counts[i]);
        return Status();
      });
    } else if (Status s = rebuild_large(*dictionaries[i], pool, phase, phases, counts[i]);
               !s.ok()) {
      return s;
    }
  }
  for (std::size_t first = 0; first < hinted.size(); first += kHintedPerTask)
    small.emplace_back([&, first] {
      pmem::Persister persister(pool.medium());
      Status s;
      for (std::size_t i = first; s.ok() && i < std::min(first + kHintedPerTask, hinted.size());
           ++i)
        s = dictionaries[hinted[i]]->hints()->recover(counts[hinted[i]], persister);
      persister.fence("recover_dictionary/1");
      return s;
    });
  const bool is_little = entries_left < kEntriesWorthThreads && hinted.size() < kHintedWorthThreads;
  const Status status =
      is_little ? phases.run_in_turn(phase, small) : phases.run_parallel(phase, small);
  if (!status.ok()) return status;

  std::uint64_t entries = 0;
  for (std::size_t i = 0; i < dictionaries.size(); ++i) {
    if (Status s = dictionaries[i]->finish_rebuild(counts[i]); !s.ok()) return s;
    entries += counts[i].entries;
    report.dictionary_entries_dropped += counts[i].dropped;
  }
  report.dictionary_entries += entries;
  return entries;
}

Status enter_hints(const std::vector<columns::Dictionary*>& dictionaries, pmem::Pool& pool,
                   const std::string& phase, Phases& phases) {
  std::vector<std::function<Status()>> tasks;
  std::uint64_t entries = 0;
  for (columns::Dictionary* dictionary : dictionaries) {
    columns::DictionaryHints* const hints = dictionary->hints();
    if (hints == nullptr || !hints->has_left()) continue;
    entries += hints->count_unproven();
    tasks.emplace_back([hints, &pool, &phases] {
      pmem::Persister persister(pool.medium());
      Status s;
      while (s.ok() && hints->enter_left(persister)) s = phases.stopped();
      return s;
    });
  }
  return entries < kEntriesWorthThreads ? phases.run_in_turn(phase, tasks)
                                        : phases.run_parallel(phase, tasks);
}

}  // namespace flugs::recovery
