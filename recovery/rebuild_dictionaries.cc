#include "recovery/rebuild_dictionaries.h"

#include <algorithm>

namespace flugs::recovery {

namespace {

// Below it a second thread costs more than it brings: every part reads all entries.
constexpr std::uint32_t kEntriesPerPartMin = 1u << 16;

struct Part {
  columns::Dictionary* dictionary;
  std::uint32_t part;
  std::uint32_t parts;
  columns::Dictionary::RebuildCounts counts;
};

}  // namespace

Result<std::uint64_t> rebuild_dictionaries(const std::vector<columns::Dictionary*>& dictionaries,
                                           pmem::Pool& pool, const std::string& phase,
                                           Phases& phases, RecoveryReport& report) {
  std::vector<std::function<Status()>> beginnings;
  beginnings.reserve(dictionaries.size());
  for (columns::Dictionary* dictionary : dictionaries)
    beginnings.emplace_back([dictionary] {
      dictionary->begin_rebuild();
      return Status();
    });
  if (Status s = phases.run_parallel(phase, beginnings); !s.ok()) return s;

  std::vector<Part> parts;
  for (columns::Dictionary* dictionary : dictionaries) {
    const bool large = dictionary->count() >= kEntriesPerPartMin;
    const std::uint32_t count = large ? dictionary->rebuild_parts(phases.threads()) : 1;
    for (std::uint32_t part = 0; part < count; ++part) parts.push_back({dictionary, part, count, {}});
  }
  // Large ones first, so that no thread is left with one at the end.
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    return a.dictionary->count() / a.parts > b.dictionary->count() / b.parts;
  });
  std::vector<std::function<Status()>> tasks;
  tasks.reserve(parts.size());
  for (Part& part : parts)
    tasks.emplace_back([&part, &pool] {
      pmem::Persister persister(pool.medium());
      part.dictionary->rebuild_part(part.part, part.parts, part.counts, persister);
      persister.fence("clear_torn/1");
      return Status();
    });
  if (Status s = phases.run_parallel(phase, tasks); !s.ok()) return s;

  std::uint64_t entries = 0;
  for (const Part& part : parts) {
    entries += part.counts.entries;
    report.dictionary_entries_dropped += part.counts.dropped;
  }
  for (columns::Dictionary* dictionary : dictionaries) dictionary->finish_rebuild();
  report.dictionary_entries = entries;
  return entries;
}

}  // namespace flugs::recovery
