#include "bench/groups/group_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "bench/groups/group_queries.h"

namespace flugs::bench {

GroupData::GroupData(std::uint64_t rows, std::uint64_t groups, std::uint64_t seed)
    : rows_(rows), groups_(groups), key_(mix64(seed ^ 0x67726f757073)), first_(groups, key_) {}

GroupRow GroupData::row(std::uint64_t row) const noexcept {
  const std::uint64_t hash = mix64(key_ ^ row);
  const std::uint64_t group = row < groups_ ? first_(row) : (hash >> 32) * groups_ >> 32;
  const std::uint64_t other = mix64(hash + 1);
  return {static_cast<std::int64_t>(group),
          static_cast<std::int32_t>((other >> 32) * kGroupValues >> 32),
          static_cast<std::int32_t>((other & 0xffffffff) * kGroupFew >> 32)};
}

std::string GroupData::text(std::int64_t k) { return fmt::format("Customer#{:010}", k); }

Json GroupData::expected() const {
  std::vector<std::uint32_t> counts(groups_);
  std::vector<std::uint64_t> pairs((groups_ * kGroupFew + 63) / 64);
  std::int64_t sum = 0;
  std::int64_t weighted = 0;
  for (std::uint64_t i = 0; i < rows_; ++i) {
    const GroupRow one = row(i);
    const auto k = static_cast<std::uint64_t>(one.k);
    ++counts[k];
    sum += one.v;
    weighted += one.k;
    const std::uint64_t pair = k * kGroupFew + static_cast<std::uint64_t>(one.few);
    pairs[pair / 64] |= std::uint64_t{1} << pair % 64;
  }
  std::uint64_t distinct = 0;
  for (const std::uint64_t word : pairs) distinct += static_cast<unsigned>(std::popcount(word));
  std::uint64_t few = 0;
  for (std::uint32_t f = 0; f < kGroupFew; ++f)
    for (std::uint64_t k = 0; k < groups_; ++k) {
      const std::uint64_t pair = k * kGroupFew + f;
      if ((pairs[pair / 64] >> pair % 64 & 1) == 0) continue;
      ++few;
      break;
    }
  const std::uint32_t most = *std::max_element(counts.begin(), counts.end());
  std::vector<std::pair<std::int64_t, std::int64_t>> top;  // less the count, key
  top.reserve(groups_);
  for (std::uint64_t k = 0; k < groups_; ++k)
    top.emplace_back(-std::int64_t{counts[k]}, static_cast<std::int64_t>(k));
  const std::size_t wanted = std::min(kGroupTop, top.size());
  std::partial_sort(top.begin(), top.begin() + static_cast<std::ptrdiff_t>(wanted), top.end());
  Json top_rows = Json::array();
  for (std::size_t i = 0; i < wanted; ++i)
    top_rows.push_back(Json::array({top[i].second, -top[i].first}));
  const auto last = static_cast<std::int64_t>(groups_ - 1);
  return {{"int", Json::array({Json::array({groups_, rows_, most, sum, weighted})})},
          {"text", Json::array({Json::array({groups_, rows_, most, sum, text(0), text(last)})})},
          {"distinct", Json::array({Json::array({few, distinct})})},
          {"top", std::move(top_rows)},
          {"sort", expected_sort(rows_ / 2, kGroupTop)}};
}

Json GroupData::expected_sort(std::uint64_t first, std::uint64_t count) const {
  std::vector<std::pair<std::int32_t, std::int64_t>> sorted;
  sorted.reserve(rows_);
  for (std::uint64_t i = 0; i < rows_; ++i) {
    const GroupRow one = row(i);
    sorted.emplace_back(one.v, one.k);
  }
  const auto begin = sorted.begin() + static_cast<std::ptrdiff_t>(first);
  const auto end = begin + static_cast<std::ptrdiff_t>(std::min(count, rows_ - first));
  std::nth_element(sorted.begin(), begin, sorted.end());
  std::partial_sort(begin, end, sorted.end());
  Json rows = Json::array();
  for (auto one = begin; one != end; ++one) rows.push_back(Json::array({one->first, one->second}));
  return rows;
}

}  // namespace flugs::bench
