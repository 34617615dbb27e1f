#include "bench/scan/scan_totals.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <string>
#include <utility>

namespace flugs::bench {

namespace {

constexpr std::array<std::uint32_t, 3> kPercents = {1, 10, 50};

/// A result of one row.
Json one_row(Json cell) { return Json::array({Json::array({std::move(cell)})}); }

}  // namespace

void ScanTotals::add(const ScanRow& row) {
  const std::int32_t a = row.integers[0];
  const std::int32_t b = row.integers[1];
  for (std::size_t i = 0; i < kScanIntegers; ++i) sums_[i].add(row.integers[i]);
  for (std::size_t i = 0; i < kPercents.size(); ++i)
    if (a < data_->below(kPercents[i])) below_[i].add(b);
  if (row.text == data_->wanted_text()) of_text_.add(b);
  by_low_[static_cast<std::uint32_t>(row.low)].add(a);
  by_text_[row.text].add(a);
  a_[static_cast<std::uint32_t>(a) / 64] |= std::uint64_t{1} << (a % 64);
  of_a_.add({a, a});
  if (a < data_->below(10)) of_b_below_.add({b, b});
  if (a >= data_->range_low() && a <= data_->range_high()) ++in_range_;
  if (a == data_->wanted()) found_.push_back(row);
  if (greatest_.size() < kGreatest || a > greatest_.front()) add_greatest(a);
}

void ScanTotals::add(const ScanTotals& other) {
  for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i].add(other.sums_[i]);
  for (std::size_t i = 0; i < below_.size(); ++i) below_[i].add(other.below_[i]);
  of_text_.add(other.of_text_);
  for (std::size_t i = 0; i < by_low_.size(); ++i) by_low_[i].add(other.by_low_[i]);
  for (std::size_t i = 0; i < by_text_.size(); ++i) by_text_[i].add(other.by_text_[i]);
  for (std::size_t i = 0; i < a_.size(); ++i) a_[i] |= other.a_[i];
  of_a_.add(other.of_a_);
  of_b_below_.add(other.of_b_below_);
  in_range_ += other.in_range_;
  found_.insert(found_.end(), other.found_.begin(), other.found_.end());
  for (const std::int32_t value : other.greatest_) add_greatest(value);
}

void ScanTotals::add_greatest(std::int32_t value) {
  greatest_.insert(std::upper_bound(greatest_.begin(), greatest_.end(), value), value);
  if (greatest_.size() > kGreatest) greatest_.erase(greatest_.begin());
}

std::uint64_t ScanTotals::distinct_a() const noexcept {
  std::uint64_t distinct = 0;
  for (const std::uint64_t word : a_) distinct += static_cast<std::uint64_t>(std::popcount(word));
  return distinct;
}

Json ScanTotals::expected() const {
  Json by_low = Json::array();
  for (std::size_t i = 0; i < by_low_.size(); ++i)
    if (by_low_[i].rows > 0) by_low.push_back({i, by_low_[i].sum});
  std::map<std::string, std::int64_t> sorted;
  for (std::uint32_t i = 0; i < kScanTexts; ++i)
    if (by_text_[i].rows > 0) sorted[std::string(data_->text(i))] = by_text_[i].sum;
  Json by_text = Json::array();
  for (const auto& [text, sum] : sorted) by_text.push_back(Json::array({text, sum}));
  Json greatest = Json::array();
  for (auto value = greatest_.rbegin(); value != greatest_.rend(); ++value)
    greatest.push_back(Json::array({*value}));
  std::vector<std::pair<std::array<std::int32_t, kScanIntegers + 1>, std::string>> rows;
  rows.reserve(found_.size());
  for (const ScanRow& row : found_)
    rows.push_back({{row.integers[0], row.integers[1], row.integers[2], row.integers[3], row.low},
                    std::string(data_->text(row.text))});
  std::sort(rows.begin(), rows.end());
  Json found = Json::array();
  for (const auto& [numbers, text] : rows)
    found.push_back({numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], text});
  return {{"sum", one_row(sums_[0].json())},
          {"sum4", Json::array({Json::array(
                       {sums_[0].json(), sums_[1].json(), sums_[2].json(), sums_[3].json()})})},
          {"filter_1", one_row(below_[0].json())},
          {"filter_10", one_row(below_[1].json())},
          {"filter_50", one_row(below_[2].json())},
          {"filter_string", one_row(of_text_.json())},
          {"group_int", std::move(by_low)},
          {"group_string", std::move(by_text)},
          {"count_distinct_int", one_row(distinct_a())},
          {"count_distinct_string", one_row(sorted.size())},
          {"min_max", Json::array({of_a_.json()})},
          {"min_max_filtered", Json::array({of_b_below_.json()})},
          {"top10", std::move(greatest)},
          {"point", std::move(found)},
          {"range", one_row(in_range_)}};
}

}  // namespace flugs::bench
