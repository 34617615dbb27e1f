#include "tables/data/index_run_audit.h"

#include <fmt/format.h>

#include <bit>

#include "base/check.h"
#include "tables/data/table_data.h"

namespace flugs::engine {

Status IndexRunAudit::corrupt(const IndexRuns::Member& member, const KeyIndex& key,
                              const std::string& what, const char* expected) const {
  return Status(
      StatusCode::kCorrupt,
      fmt::format(
          "{}: table {}, index run at offset {}, key {}, {}: expected {}, found something else",
          pool_, table_.name(), member.run->extent().offset, key.name(), what, expected));
}

// Whether the row is created, and in a chunk that the run covers.
bool IndexRunAudit::is_covered(const IndexRuns::Member& member, std::uint32_t row) const noexcept {
  return member.covered.has(table_.rows.chunk_of(row)) && table_.runs.is_created(row);
}

namespace {

template <typename Visit>
Status for_each_covered(const TableData& table, const IndexRuns::Member& member, Visit&& visit) {
  const RowStore& rows = table.rows;
  for (std::size_t chunk = 0; chunk < rows.chunk_count(); ++chunk) {
    if (!member.covered.has(chunk)) continue;
    const std::uint32_t first = rows.first_row_of(chunk);
    for (std::uint32_t i = 0; i < rows.rows_of(chunk); ++i)
      if (table.runs.is_created(first + i))
        if (Status s = visit(first + i); !s.ok()) return s;
  }
  return {};
}

}  // namespace

Status IndexRunAudit::audit_hashed(const IndexRuns::Member& member, std::size_t index) const {
  const KeyIndex& key = *table_.keys[index];
  FLUGS_DCHECK(key.entries().is_hashed_in_runs());
  std::uint64_t expected = 0;
  Status status = for_each_covered(table_, member, [&](std::uint32_t row) -> Status {
    if (!key.is_hashed(row)) return {};
    ++expected;
    const auto is_it = [&](std::uint32_t found) { return found == row; };
    if (member.run->any(index, key.hash_of(row), is_it)) return {};
    return corrupt(member, key, fmt::format("row {}", row), "an entry under its hash");
  });
  if (!status.ok()) return status;
  for (const std::uint64_t slot : member.run->slots(index))
    if (slot != 0 && is_covered(member, IndexRun::row_of(slot)))
      if (expected-- == 0)
        return corrupt(member, key, fmt::format("row {}", IndexRun::row_of(slot)),
                       "no second entry");
  return {};
}

Status IndexRunAudit::audit_ordered(const IndexRuns::Member& member, std::size_t index) const {
  const KeyIndex& key = *table_.keys[index];
  FLUGS_DCHECK(key.entries().is_ordered_in_runs());
  std::uint64_t expected = 0;
  Status counted = for_each_covered(table_, member, [&](std::uint32_t) -> Status {
    ++expected;
    return {};
  });
  if (!counted.ok()) return counted;
  columns::OrderedEntry last{};
  bool has_last = false;
  for (std::size_t i = 0; i < member.run->ordered_rows(index).size(); ++i) {
    const columns::OrderedEntry entry{member.run->prefixes(index)[i],
                                      member.run->ordered_rows(index)[i]};
    if (!is_covered(member, entry.row)) continue;
    const auto where = [&] { return fmt::format("entry {}, row {}", i, entry.row); };
    if (expected-- == 0) return corrupt(member, key, where(), "no second entry");
    if (key.ordered_entry(entry.row) != entry)
      return corrupt(member, key, where(), "its own prefix");
    if (has_last && !columns::precedes(&key, last, entry))
      return corrupt(member, key, where(), "a key above that of the entry before");
    last = entry;
    has_last = true;
  }
  if (expected != 0)
    return corrupt(member, key, fmt::format("{} rows", expected), "an entry of each");
  return {};
}

Status IndexRunAudit::run_checksums() const {
  for (const IndexRuns::Member& member : table_.runs.list().members)
    if (Status s = member.run->audit(); !s.ok()) return s;
  return {};
}

Status IndexRunAudit::run() const {
  if (Status s = run_checksums(); !s.ok()) return s;
  for (const IndexRuns::Member& member : table_.runs.list().members) {
    for (const std::size_t i : KeySet(table_.keys.kept())) {
      if (!table_.runs.has_key(member, i)) continue;
      if (table_.keys[i]->entries().is_hashed_in_runs())
        if (Status s = audit_hashed(member, i); !s.ok()) return s;
      if (table_.keys[i]->entries().is_ordered_in_runs())
        if (Status s = audit_ordered(member, i); !s.ok()) return s;
    }
  }
  return {};
}

}  // namespace flugs::engine
