// A unique key after opening. Its index in DRAM is made of the existing rows. While transactions
// run meanwhile, rows that the index lacks are found by a search of those rows (decision 0020).

#include <algorithm>
#include <array>
#include <functional>
#include <vector>

#include "base/check.h"
#include "tables/catalog/schema_codec.h"
#include "tables/keys/hash_entries.h"
#include "tables/keys/key_scan.h"

namespace flugs::engine {

namespace {

// Row positions per task that gathers entries.
constexpr std::uint32_t kRowsPerSource = 1u << 16;
// Row positions that are entered at a time: an eighth of the table, so that look-ups soon have
// fewer rows to search; at most 32 MB of entries.
constexpr std::uint32_t kRowsEnteredMax = 1u << 22;
constexpr std::uint32_t kRowsEnteredMin = 1u << 12;
constexpr std::uint32_t kPartsWished = 8;

std::uint64_t sources_for(const recovery::Phases& phases, std::uint64_t rows) noexcept {
  return std::min<std::uint64_t>(std::uint64_t{phases.threads()} * 4, rows / kRowsPerSource + 1);
}

Status insert_groups(const columns::HashIndexBuilder& builder, recovery::Phases& phases,
                     const char* phase, FunctionRef<void(std::size_t group)> insert) {
  std::vector<std::function<Status()>> tasks;
  tasks.reserve(builder.groups());
  for (std::size_t group = 0; group < builder.groups(); ++group)
    tasks.emplace_back([insert, group] {
      insert(group);
      return Status();
    });
  return phases.run_parallel(phase, tasks);
}

}  // namespace

// All threads gather entries of those rows that no run serves, hashed and wanted.
template <typename Wants>
Status HashEntries::gather(columns::HashIndexBuilder& builder, std::uint64_t sources, RowSpan rows,
                           recovery::Phases& phases, const char* phase, Wants&& wants) const {
  const std::uint64_t count = rows.end - rows.first;
  std::vector<std::function<Status()>> tasks;
  tasks.reserve(sources);
  for (std::uint64_t i = 0; i < sources; ++i)
    tasks.emplace_back([&, i] {
      columns::HashIndexBuilder::Source& source = builder.source(i);
      runs_.for_each_unserved(rows.first + static_cast<std::uint32_t>(count * i / sources),
                              rows.first + static_cast<std::uint32_t>(count * (i + 1) / sources),
                              [&](std::uint32_t row) {
                                if (wants(row) && key_.is_hashed(row))
                                  source.add(key_.hash_of(row), row);
                              });
      return Status();
    });
  return phases.run_parallel(phase, tasks);
}

Status HashEntries::rebuild(recovery::Phases& phases, const char* phase) {
  const std::uint64_t count = runs_.unserved_rows();
  const std::uint64_t sources = sources_for(phases, count);
  columns::HashIndexBuilder builder(index_, count, sources);
  const auto wants = [](std::uint32_t) { return true; };
  if (Status s = gather(builder, sources, {0, rows_.rows_end()}, phases, phase, wants); !s.ok())
    return s;
  return insert_groups(builder, phases, phase,
                       [&](std::size_t group) { builder.insert_group(group); });
}

void HashEntries::defer_rows(std::uint32_t end, std::uint64_t opened_at) {
  FLUGS_CHECK(key_.is_unique() && deferred_rows_ == nullptr);
  deferred_rows_ = std::make_unique<DeferredRows>(end, opened_at);
  is_finished_.store(false, std::memory_order_release);
}

// Enters the next of those rows that were there at opening, even if they were deleted or replaced
// since: none leaves the indexes before all are in (keep_opening), so that every snapshot finds
// them. Writers enter the rows that they write. If a writer replaced a row and entered the
// replacement, the replacement leads to it.
Status HashEntries::enter_deferred(recovery::Phases& phases, const char* phase, LeadsTo leads_to) {
  FLUGS_CHECK(deferred_rows() != nullptr);
  DeferredRows& deferred = *deferred_rows_;
  const std::uint32_t first = deferred.entered();
  if (first == 0) index_.make_room(runs_.unserved_rows());
  const std::uint32_t rows =
      std::min(std::clamp(deferred.end() / kPartsWished, kRowsEnteredMin, kRowsEnteredMax),
               deferred.end() - first);
  const std::uint64_t sources = sources_for(phases, rows);
  columns::HashIndexBuilder builder(columns::HashIndexBuilder::InUse(), index_, rows, sources);
  const auto wants = [&](std::uint32_t row) { return deferred.has(rows_.version(row)); };
  if (Status s = gather(builder, sources, {first, first + rows}, phases, phase, wants); !s.ok())
    return s;
  Status s = insert_groups(builder, phases, phase, [&](std::size_t group) {
    builder.for_each_in_group(group, [&](std::uint64_t hash, std::uint32_t row) {
      add_existing(row, hash, leads_to, [](std::uint32_t) {});
    });
  });
  if (s.ok()) deferred.note_entered(first + rows);
  return s;
}

// Visits rows that the index may lack and that have the values, until `visit` returns false. Reads
// first how far the index has come: rows entered after that are searched here as well.
void HashEntries::for_each_deferred(const DeferredRows& deferred, std::span<const Value> values,
                                    std::uint32_t like,
                                    FunctionRef<bool(std::uint32_t row)> visit) const {
  std::uint32_t first = deferred.entered();
  KeyScan scan(rows_, columns_, key_.columns(), values, like);
  while (first < deferred.end()) {
    const std::uint32_t end = std::min(deferred.end(), rows_.end_of_chunk_with(first));
    if (!runs_.serves(first) && !scan.visit(first, end, [&](std::uint32_t row) {
          return !deferred.has(rows_.version(row)) || !key_.matches(row, values) || visit(row);
        }))
      return;
    first = end;
  }
}

// The row with the same key (no NULL). At most one row present at opening has it. The index may
// have it, too.
std::uint32_t HashEntries::deferred_row_like(std::uint32_t row) const {
  const DeferredRows* rows = deferred_rows();
  if (rows == nullptr) return kNoRow;
  std::array<Value, kKeyColumnsMax> values;
  const std::size_t count = key_.columns().size();
  for (std::size_t i = 0; i < count; ++i) values[i] = key_.value(row, i);
  std::uint32_t found = kNoRow;
  for_each_deferred(*rows, std::span(values.data(), count), row, [&](std::uint32_t other) {
    found = other;
    return false;
  });
  return found;
}

bool HashEntries::lookup(std::span<const Value> values, columns::Candidates& out) const {
  const DeferredRows* rows = deferred_rows();
  if (__builtin_expect(rows == nullptr, 1)) return lookup(key_.hash_of(values), out);
  const bool is_one = values.size() == key_.columns().size() &&
                      std::none_of(values.begin(), values.end(),
                                   [](const Value& value) { return value.is_null(); });
  columns::Candidates deferred;
  for_each_deferred(*rows, values, kNoRow, [&](std::uint32_t row) {
    deferred.push(row);
    return !is_one;
  });
  const bool is_whole = lookup(key_.hash_of(values), out);
  for (const std::uint32_t row : deferred.view()) {
    const std::span<const std::uint32_t> known = out.view();
    if (std::find(known.begin(), known.end(), row) == known.end()) out.push(row);
  }
  return is_whole;
}

}  // namespace flugs::engine
