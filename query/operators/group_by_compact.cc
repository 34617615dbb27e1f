// Records of a worker that are merged before the end, so that they grow with the groups and not
// with the rows.
#include <algorithm>

#include "base/check.h"
#include "query/operators/group_by.h"

namespace flugs::query {

namespace {

// A worker's records are looked at for the first time when they take as many bytes. With fewer,
// merging them once, at the end, costs less.
constexpr std::uint64_t kCompactFrom = std::uint64_t{64} << 20;
// Parts that say whether merging the others pays: it does if it frees a quarter of the bytes.
constexpr std::size_t kSampleParts = 8;
constexpr std::uint64_t kPaysPercent = 75;
static_assert(RecordParts::kParts % kSampleParts == 0);

bool pays(std::uint64_t bytes_before, std::uint64_t bytes_after) noexcept {
  return bytes_after * 100 < bytes_before * kPaysPercent;
}

}  // namespace

std::uint64_t GroupBySink::compact_at_first() const noexcept {
  return std::min(kCompactFrom, store_bytes_max() / 2);
}

// Above it a store might go to its file in the middle of a batch.
std::uint64_t GroupBySink::compact_at_most() const noexcept { return store_bytes_max() / 4 * 3; }

// After a sample: twice what is left if merging paid, so that each record is merged twice at most
// on the average; else twice the old limit, so that samples stay cheap.
std::uint64_t GroupBySink::next_limit(std::uint64_t limit, bool has_paid,
                                      std::uint64_t held) const noexcept {
  return std::clamp(2 * (has_paid ? held : limit), compact_at_first(), compact_at_most());
}

// Merges the records of a sample of parts, and those of the others if that paid.
template <typename CompactPart>
bool GroupBySink::compact_if_it_pays(std::size_t& sample_at, CompactPart&& compact_part) const {
  std::size_t paid = 0;
  const std::size_t first = sample_at;
  sample_at = (sample_at + kSampleParts) % RecordParts::kParts;
  for (std::size_t part = first; part < first + kSampleParts; ++part) paid += compact_part(part);
  if (paid * 2 < kSampleParts) return false;
  for (std::size_t part = 0; part < RecordParts::kParts; ++part)
    if (part < first || part >= first + kSampleParts) compact_part(part);
  return true;
}

void GroupBySink::limit_records(Local& local) const {
  const auto held = [&] {
    return (local.parts ? local.parts->held_bytes() : 0) +
           (local.rows ? local.rows->held_bytes() : 0);
  };
  if (local.compact_at == 0) local.compact_at = compact_at_first();
  if (held() <= local.compact_at) return;
  if (keeps_values_) {
    // Values of rows take no less memory in lists and sketches of groups, which cannot go to a
    // file.
    if (held() > compact_at_most()) spill_records(local);
    return;
  }
  bool has_paid = false;
  {
    Merging merging(*this, &local.kept);
    has_paid = compact_if_it_pays(local.sample_at,
                                  [&](std::size_t part) { return compact(part, merging, local); });
  }
  const bool is_last = local.compact_at == compact_at_most();
  local.compact_at = next_limit(local.compact_at, has_paid, held());
  if (held() * 2 <= compact_at_most() || (!is_last && held() <= local.compact_at)) return;
  spill_records(local);
}

void GroupBySink::spill_records(Local& local) {
  if (local.parts) local.parts->spill();
  if (local.rows) local.rows->spill();
}

// Puts one record for each group in the place of a part's groups and rows in memory. False: that
// would free too little, and was not done.
bool GroupBySink::compact(std::size_t part, Merging& merging, Local& local) const {
  const std::uint64_t groups = local.parts ? local.parts->held_records(part) : 0;
  const std::uint64_t rows = local.rows ? local.rows->held_records(part) : 0;
  if (groups + rows == 0) return false;
  merging.clear();
  if (local.parts)
    local.parts->visit_held(part, [&](const std::uint64_t* records, std::size_t count) {
      merge_states(records, count, merging);
    });
  if (local.rows)
    local.rows->visit_held(part, [&](std::uint64_t* records, std::size_t count) {
      merge_rows(records, count, merging);
    });
  context_.check_stop();
  const std::uint32_t merged = merging.groups.table.size();
  if (!pays(groups * record_words_ + rows * local.row_records.words(), merged * record_words_))
    return false;
  if (local.parts) local.parts->release_held(part);
  if (local.rows) local.rows->release_held(part);
  RecordParts& parts = parts_of(local);
  for (std::uint32_t group = 0; group < merged; ++group)
    put_group(merging.groups, group, parts.add_to(part));
  return true;
}

void GroupBySink::limit_pairs(std::size_t a, Local& local) const {
  if (!local.pairs[a]) return;
  RecordParts& pairs = *local.pairs[a];
  std::uint64_t& limit = local.compact_pairs_at[a];
  if (limit == 0) limit = compact_at_first();
  if (pairs.held_bytes() <= limit) return;
  bool has_paid = false;
  {
    GroupTable table(pair_shape(a), {});
    has_paid = compact_if_it_pays(
        local.sample_at, [&](std::size_t part) { return compact_pairs(part, table, pairs); });
  }
  const bool is_last = limit == compact_at_most();
  limit = next_limit(limit, has_paid, pairs.held_bytes());
  if (pairs.held_bytes() * 2 > compact_at_most() && (is_last || pairs.held_bytes() > limit))
    pairs.spill();
}

// The same for pairs of group and value.
bool GroupBySink::compact_pairs(std::size_t part, GroupTable& table, RecordParts& pairs) const {
  const std::uint64_t records = pairs.held_records(part);
  if (records == 0) return false;
  table.clear();
  Charge charge(context_.budget, "group by");
  std::vector<std::uint32_t> numbers(kBatchRows);
  pairs.visit_held(part, [&](const std::uint64_t* rows, std::size_t count) {
    table.find_rows(rows, pairs.words(), count, numbers.data());
    charge.set(table.bytes());
  });
  context_.check_stop();
  if (!pays(records, table.size())) return false;
  pairs.release_held(part);
  for (std::uint32_t pair = 0; pair < table.size(); ++pair)
    std::copy_n(table.key_row(pair), pairs.words(), pairs.add_to(part));
  return true;
}

}  // namespace flugs::query
