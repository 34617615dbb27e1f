#include "bench/ycsb/ycsb_request.h"

namespace flugs::bench {

namespace {

bool has_inserts(const YcsbMix& mix) noexcept {
  return mix.percent[index_of(YcsbType::kInsert)] > 0;
}

/// YCSB draws from the rows that a run will have at its end, and draws again if one is not there
/// yet. A run by time does not know that number: it draws from a quarter more than are loaded.
std::uint64_t items_of(const YcsbRows& rows, const YcsbMix& mix) noexcept {
  return has_inserts(mix) ? rows.records + rows.records / 4 : rows.records;
}

}  // namespace

YcsbMix ycsb_mix(YcsbWorkload workload) noexcept {
  switch (workload) {
    case YcsbWorkload::kA:
      return {.percent = {50, 50, 0, 0, 0}};
    case YcsbWorkload::kB:
      return {.percent = {95, 5, 0, 0, 0}};
    case YcsbWorkload::kC:
      return {.percent = {100, 0, 0, 0, 0}};
    case YcsbWorkload::kD:
      return {.percent = {95, 0, 5, 0, 0}, .distribution = YcsbDistribution::kLatest};
    case YcsbWorkload::kE:
      return {.percent = {0, 0, 5, 95, 0}};
    case YcsbWorkload::kF:
      return {.percent = {50, 0, 0, 0, 50}};
    case YcsbWorkload::kSilor:
      break;
  }
  return {.percent = {70, 30, 0, 0, 0}, .distribution = YcsbDistribution::kUniform};
}

YcsbRows ycsb_rows(YcsbWorkload workload, std::uint64_t records) noexcept {
  YcsbRows rows{.records = records};
  if (workload == YcsbWorkload::kSilor) {
    rows.fields = 1;
    rows.keys = YcsbKeys::kInteger;
  }
  return rows;
}

YcsbInserts::YcsbInserts(std::uint64_t records) : next_(records), there_(records) {}

void YcsbInserts::acknowledge(std::uint64_t number) {
  const std::lock_guard guard(mutex_);
  acknowledged_.insert(number);
  std::uint64_t there = there_.load(std::memory_order_relaxed);
  while (!acknowledged_.empty() && *acknowledged_.begin() == there) {
    acknowledged_.erase(acknowledged_.begin());
    ++there;
  }
  there_.store(there, std::memory_order_release);
}

YcsbGenerator::YcsbGenerator(const YcsbRows& rows, const YcsbMix& mix, YcsbInserts& inserts,
                             std::uint64_t seed, std::uint32_t user)
    : rows_(rows),
      mix_(mix),
      inserts_(inserts),
      random_(mix64(seed) + mix64(user)),
      numbers_(mix.distribution, rows.records, items_of(rows, mix)),
      version_(std::uint64_t{user} << kVersionBitsOfUser) {}

void YcsbGenerator::next(YcsbRequest& request) {
  std::uint32_t roll = random_.below(100);
  std::size_t type = 0;
  while (type + 1 < kYcsbTypes && roll >= mix_.percent[type]) roll -= mix_.percent[type++];
  request.type = static_cast<YcsbType>(type);
  request.version = ++version_;
  if (request.type == YcsbType::kInsert) {
    request.number = inserts_.take();
    return;
  }
  request.number = numbers_.next(random_, inserts_.there());
  if (request.type == YcsbType::kScan)
    request.length = random_.between(1, mix_.scan_max);
  else
    request.field = random_.below(rows_.fields);
}

}  // namespace flugs::bench
