#include <cmath>
#include <limits>
#include <optional>

#include "test/support/main_column_group.h"

namespace flugs::test {
namespace {

using columns::MainColumn;
using columns::MainRange;
using columns::Match;
using columns::ValueBounds;

bool bit(const std::vector<std::uint64_t>& words, std::size_t i) {
  return ((words[i / 64] >> (i % 64)) & 1) != 0;
}

// Compares a column with its values, question by question.
class Comparison {
 public:
  Comparison(const MainColumnGroup& group, Random& random)
      : values_(group.values()), column_(group.column()), random_(random) {}

  std::string run() {
    if (!single_rows()) return "one row " + place_;
    for (int i = 0; i < 6; ++i) {
      choose_rows(i);
      if (!batches()) return "batch " + place_;
      first_ &= ~63u;
      choose_mask();
      if (!aggregates()) return "aggregate " + place_;
      for (int j = 0; j < 4; ++j)
        if (!range_filters()) return "range " + place_;
      if (!other_filters()) return "filter " + place_;
      if (!first_found()) return "find " + place_;
    }
    return {};
  }

 private:
  bool differs(std::size_t row, const std::string& what) {
    place_ = what + " of row " + std::to_string(row) + ", rows from " + std::to_string(first_) +
             ", " + std::to_string(count_) + " of " + std::to_string(values_.size());
    return false;
  }
  const ModelValue& value(std::size_t i) const { return values_[first_ + i]; }

  bool single_rows() {
    std::uint32_t nulls = 0;
    const ModelValue* least = nullptr;
    const ModelValue* greatest = nullptr;
    for (std::uint32_t row = 0; row < values_.size(); ++row) {
      const ModelValue& wanted = values_[row];
      if (column_.is_null(row) != wanted.null) return differs(row, "is_null");
      if (!(column_.value(row) == wanted.view())) return differs(row, "value");
      if (column_.is_text() ? column_.text(row) != wanted.text
                            : column_.integer(row) != (wanted.null ? 0 : wanted.raw))
        return differs(row, "payload");
      if (column_.code_count() != 0) {
        const std::uint64_t code = column_.code(row);
        if (code >= column_.code_count()) return differs(row, "code");
        if (!(column_.entry_value(code) == wanted.view())) return differs(row, "entry");
        if (column_.code_of(wanted.view()) != code) return differs(row, "code_of");
      }
      if (wanted.null) {
        ++nulls;
        continue;
      }
      if (least == nullptr || compare(wanted, *least) < 0) least = &wanted;
      if (greatest == nullptr || compare(wanted, *greatest) > 0) greatest = &wanted;
    }
    if (nulls != column_.null_count()) return differs(nulls, "null_count");
    if (!(column_.min() == (least != nullptr ? least->view() : Value::null())))
      return differs(0, "min");
    if (!(column_.max() == (greatest != nullptr ? greatest->view() : Value::null())))
      return differs(0, "max");
    return true;
  }

  void choose_rows(int turn) {
    const auto rows = static_cast<std::uint32_t>(values_.size());
    first_ = turn == 0 ? 0 : random_.below(rows);
    if (turn % 2 == 0) first_ &= ~63u;
    count_ = turn < 2 ? rows - first_ : random_.below(rows - first_ + 1);
  }
  void choose_mask() {
    count_ = std::min<std::uint32_t>(count_, static_cast<std::uint32_t>(values_.size()) - first_);
    mask_.assign(count_ / 64 + 1, 0);
    const std::uint32_t kind = random_.below(4);
    for (std::uint64_t& word : mask_) {
      word = random_.next();
      if (kind == 0) word = ~std::uint64_t{0};
      if (kind == 1 && random_.below(2) == 0) word = 0;
      if (kind == 2) word &= random_.next() & random_.next() & random_.next();
    }
  }

  bool batches() {
    std::vector<std::uint64_t> nulls(count_ / 64 + 1, ~std::uint64_t{0});
    if (column_.is_text()) {
      std::vector<std::string_view> texts(count_);
      column_.texts(first_, count_, texts.data(), nulls.data());
      for (std::size_t i = 0; i < count_; ++i)
        if (texts[i] != value(i).text) return differs(i, "texts");
    } else {
      std::vector<std::int64_t> payloads(count_);
      column_.integers(first_, count_, payloads.data(), nulls.data());
      for (std::size_t i = 0; i < count_; ++i)
        if (payloads[i] != (value(i).null ? 0 : value(i).raw)) return differs(i, "integers");
    }
    for (std::size_t i = 0; i < count_; ++i)
      if (bit(nulls, i) != value(i).null) return differs(i, "null_bits");
    return chosen() && rest_of_batches(nulls);
  }

  bool chosen() {
    std::vector<std::uint32_t> places;
    for (std::uint32_t i = 0; i < count_; ++i)
      if (random_.below(5) == 0) places.push_back(i);
    std::vector<std::string_view> texts(places.size());
    std::vector<std::int64_t> payloads(places.size());
    if (column_.is_text())
      column_.texts_at(first_, places, texts.data());
    else
      column_.integers_at(first_, places, payloads.data());
    for (std::size_t i = 0; i < places.size(); ++i) {
      const ModelValue& wanted = value(places[i]);
      if (column_.is_text() && texts[i] != wanted.text) return differs(places[i], "texts_at");
      if (!column_.is_text() && !wanted.null && payloads[i] != wanted.raw)
        return differs(places[i], "integers_at");
    }
    return true;
  }

  bool rest_of_batches(const std::vector<std::uint64_t>& nulls) {
    if (count_ % 64 != 0 && (nulls[count_ / 64] >> (count_ % 64)) != 0)
      return differs(count_, "null_bits behind the end");
    if (column_.code_count() == 0 || column_.code_count() > 0xFFFFFFFF) return true;
    std::vector<std::uint32_t> codes(count_);
    column_.codes(first_, count_, codes.data());
    for (std::size_t i = 0; i < count_; ++i)
      if (codes[i] != column_.code(first_ + static_cast<std::uint32_t>(i)))
        return differs(i, "codes");
    return true;
  }

  bool aggregates() {
    for (const std::uint64_t* mask : {static_cast<const std::uint64_t*>(nullptr),
                                      static_cast<const std::uint64_t*>(mask_.data())}) {
      columns::Int128 sum = 0;
      double real_sum = 0;
      std::uint64_t count = 0;
      const ModelValue* least = nullptr;
      const ModelValue* greatest = nullptr;
      for (std::size_t i = 0; i < count_; ++i) {
        if (value(i).null || (mask != nullptr && !bit(mask_, i))) continue;
        ++count;
        sum += value(i).raw;
        real_sum += std::bit_cast<double>(value(i).raw);
        if (least == nullptr || compare(value(i), *least) < 0) least = &value(i);
        if (greatest == nullptr || compare(value(i), *greatest) > 0) greatest = &value(i);
      }
      const columns::MainExtremes extremes = column_.extremes(first_, count_, mask);
      if (!(extremes.min == (least != nullptr ? least->view() : Value::null())) ||
          !(extremes.max == (greatest != nullptr ? greatest->view() : Value::null())))
        return differs(0, "extremes " + extremes.min.to_string() + extremes.max.to_string());
      if (column_.is_text()) continue;
      const columns::MainSum found = column_.sum(first_, count_, mask);
      if (found.sum != sum || found.count != count) return differs(0, "sum");
      if (column_.type() != Type::kDouble) continue;
      const columns::MainRealSum real = column_.real_sum(first_, count_, mask);
      const bool is_equal = std::isnan(real_sum)
                                ? std::isnan(real.sum)
                                : std::abs(real.sum - real_sum) <= 1e-9 * std::abs(real_sum) + 1e-6;
      if (!is_equal || real.count != count) return differs(0, "real_sum");
    }
    return true;
  }

  // A bound: a value of the column, a neighbour of one, or none.
  ModelValue random_bound() {
    ModelValue bound = values_[random_.below(values_.size())];
    if (bound.null) return integer_bound(bound, static_cast<std::int64_t>(random_.next()));
    if (random_.below(3) != 0) return bound;
    if (column_.is_text()) {
      bound.text += random_.below(2) == 0 ? "0" : "";
      if (!bound.text.empty() && random_.below(2) == 0) bound.text.pop_back();
      return bound;
    }
    return integer_bound(bound, static_cast<std::int64_t>(static_cast<std::uint64_t>(bound.raw) +
                                                          random_.below(3) - 1));
  }
  ModelValue integer_bound(ModelValue bound, std::int64_t raw) const {
    bound.null = false;
    bound.type = column_.type();
    bound.raw = column_.type() == Type::kDouble ? std::bit_cast<std::int64_t>(12.5) : raw;
    return bound;
  }

  bool range_filters() {
    const ModelValue low = random_bound();
    const ModelValue high = random_.below(4) == 0 ? low : random_bound();
    ValueBounds bounds;
    if (random_.below(4) != 0) bounds.low = low.view();
    if (random_.below(4) != 0) bounds.high = high.view();
    bounds.low_excluded = random_.below(3) == 0;
    bounds.high_excluded = random_.below(3) == 0;
    const auto is_within = [&](const ModelValue& x) {
      if (x.null) return false;
      if (bounds.low && compare(x, low) < (bounds.low_excluded ? 1 : 0)) return false;
      return !bounds.high || compare(x, high) <= (bounds.high_excluded ? -1 : 0);
    };
    return range_filter(column_.within(bounds), is_within, "within") &&
           range_filter(
               column_.outside(bounds),
               [&](const ModelValue& x) { return !x.null && !is_within(x); }, "outside");
  }

  template <typename Matches>
  bool range_filter(const MainRange& range, const Matches& matches, const std::string& name) {
    for (std::size_t row = 0; row < values_.size() && range.match != Match::kSome; ++row)
      if (matches(values_[row]) != (range.match == Match::kAll)) return differs(row, name + " all");
    std::vector<std::uint64_t> mask = mask_;
    column_.filter(first_, count_, range, mask.data());
    return filtered(mask, matches, name);
  }

  template <typename Matches>
  bool filtered(const std::vector<std::uint64_t>& mask, const Matches& matches,
                const std::string& name) {
    for (std::size_t i = 0; i < mask.size() * 64; ++i) {
      const bool wanted = i < count_ ? bit(mask_, i) && matches(value(i)) : bit(mask_, i);
      if (bit(mask, i) != wanted) return differs(i, name);
    }
    return true;
  }

  bool other_filters() {
    std::vector<std::uint64_t> mask = mask_;
    column_.filter(first_, count_, column_.not_null(), mask.data());
    if (!filtered(mask, [](const ModelValue& x) { return !x.null; }, "not null")) return false;
    mask = mask_;
    column_.filter_is_null(first_, count_, mask.data());
    if (!filtered(mask, [](const ModelValue& x) { return x.null; }, "is null")) return false;
    if (column_.code_count() == 0 || column_.code_count() > 100000) return true;
    std::vector<std::uint64_t> wanted(column_.code_count() / 64 + 1);
    for (std::uint64_t& word : wanted) word = random_.next();
    mask = mask_;
    column_.filter_codes(first_, count_, wanted.data(), mask.data());
    const auto is_wanted = [&](const ModelValue& x) {
      return bit(wanted, *column_.code_of(x.view()));
    };
    return filtered(mask, is_wanted, "codes");
  }

  // Finds the value of a random row, among many or few rows of the group.
  bool first_found() {
    std::vector<std::uint64_t> mask(values_.size() / 64 + 1);
    const bool is_sparse = random_.chance(50);
    for (std::uint64_t& word : mask)
      word = is_sparse ? random_.next() & random_.next() & random_.next() : random_.next();
    const ModelValue& wanted = values_[random_.below(values_.size())];
    if (wanted.null) return true;
    std::optional<std::uint32_t> first;
    for (std::uint32_t row = 0; row < values_.size() && !first; ++row)
      if (bit(mask, row) && !values_[row].null && compare(values_[row], wanted) == 0) first = row;
    if (column_.find(wanted.view(), mask.data()) == first) return true;
    return differs(first.value_or(0), "find");
  }

  const std::vector<ModelValue>& values_;
  MainColumn column_;
  Random& random_;
  std::uint32_t first_ = 0;
  std::uint32_t count_ = 0;
  std::vector<std::uint64_t> mask_;
  std::string place_;
};

}  // namespace

std::string first_difference(const MainColumnGroup& group, Random& random) {
  if (const Status s = group.check(); !s.ok()) return s.to_string();
  if (const Status s = group.audit(); !s.ok()) return s.to_string();
  return Comparison(group, random).run();
}

}  // namespace flugs::test
