#include "query/plan/join_order.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"

namespace flugs::query {

namespace {

/// A cost stays a number, however many inputs are joined by keys that have one value.
constexpr double kRowsOfSetMax = 1e100;

/// Inputs, a bit for each.
using Set = std::uint64_t;

/// With more inputs, looking at all orders takes longer than it saves.
constexpr std::size_t kInputsOfAllOrders = 10;
constexpr std::size_t kInputsMax = 64;
/// The part of the cost of the user's order that another order must not exceed: estimates err.
constexpr double kWorthIt = 0.8;

// Nanoseconds, roughly, for each row.
constexpr double kHoldNs = 60;        // copied, hashed, linked
constexpr double kProbeNs = 5;        // a table in the caches
constexpr double kProbeLargeNs = 20;  // one that is not
constexpr double kPassNs = 3;
constexpr double kRowsInCaches = 100'000;

double join_cost(double streamed, double held, double out) noexcept {
  const double probe = held > kRowsInCaches ? kProbeLargeNs : kProbeNs;
  return held * kHoldNs + streamed * probe + out * kPassNs;
}

/// Rows of sets of inputs, and which sets have a key in common.
class JoinGraph {
 public:
  JoinGraph(const std::vector<JoinInput>& inputs, const std::vector<JoinLink>& links)
      : inputs_(inputs), count_(inputs.size()), parts_(count_ * count_, 1), neighbours_(count_) {
    FLUGS_CHECK(count_ >= 2 && count_ <= kInputsMax);
    std::vector<double> values(count_ * count_, 1);  // of all keys of input i that link it to j
    std::vector<const JoinLink*> only(count_ * count_, nullptr);  // the key, if there is only one
    for (const JoinLink& link : links) {
      FLUGS_CHECK(link.a < count_ && link.b < count_ && link.a != link.b);
      const std::size_t pair = pair_of(link.a, link.b);
      only[pair] = are_linked(Set{1} << link.a, Set{1} << link.b) ? nullptr : &link;
      neighbours_[link.a] |= Set{1} << link.b;
      neighbours_[link.b] |= Set{1} << link.a;
      values[link.a * count_ + link.b] *= std::max(link.a_values, 1.0);
      values[link.b * count_ + link.a] *= std::max(link.b_values, 1.0);
    }
    for (std::size_t i = 0; i < count_; ++i)
      for (std::size_t j = i + 1; j < count_; ++j) {
        if ((neighbours_[i] >> j & 1) == 0) continue;
        const double a = keys_of(i, values[i * count_ + j]);
        const double b = keys_of(j, values[j * count_ + i]);
        parts_[i * count_ + j] = parts_[j * count_ + i] =
            1 / keys_of_both(only[pair_of(i, j)], i, a, b);
      }
  }

  std::size_t count() const noexcept { return count_; }
  bool are_linked(Set a, Set b) const noexcept {
    for (Set left = a; left != 0; left &= left - 1)
      if ((neighbours_[static_cast<std::size_t>(std::countr_zero(left))] & b) != 0) return true;
    return false;
  }
  double rows(Set set) const noexcept {
    double rows = 1;
    Set before = 0;
    for (Set left = set; left != 0; left &= left - 1) {
      const auto i = static_cast<std::size_t>(std::countr_zero(left));
      rows *= std::max(inputs_[i].rows, 1.0);
      for (Set with = before & neighbours_[i]; with != 0; with &= with - 1)
        rows *= parts_[i * count_ + static_cast<std::size_t>(std::countr_zero(with))];
      before |= Set{1} << i;
    }
    return std::min(rows, kRowsOfSetMax);
  }

 private:
  std::size_t pair_of(std::size_t a, std::size_t b) const noexcept {
    return std::min(a, b) * count_ + std::max(a, b);
  }
  /// The number of values by which the pairs of two inputs are divided. If the key is unique on one
  /// side only, that side's count is exact. Several columns depend on each other, so the product of
  /// their values is too large, and the smaller product is taken.
  static double keys_of_both(const JoinLink* only, std::size_t i, double a, double b) noexcept {
    if (only == nullptr) return std::min(a, b);
    const bool is_unique_in_i = only->a == i ? only->is_unique_in_a : only->is_unique_in_b;
    const bool is_unique_in_j = only->a == i ? only->is_unique_in_b : only->is_unique_in_a;
    if (is_unique_in_i == is_unique_in_j) return std::max(a, b);
    return is_unique_in_i ? a : b;
  }
  /// Several columns have no more combinations of values than there are rows.
  double keys_of(std::size_t i, double values) const noexcept {
    return std::max(1.0, std::min(values, inputs_[i].rows_all));
  }

  const std::vector<JoinInput>& inputs_;
  const std::size_t count_;
  std::vector<double> parts_;  // the part of the pairs of two inputs whose keys are equal
  std::vector<Set> neighbours_;
};

struct Priced {
  double cost = std::numeric_limits<double>::infinity();
  double rows = 0;
  Set streamed = 0;
};

std::unique_ptr<JoinTree> tree_of(const std::vector<Priced>& best, Set set) {
  std::unique_ptr<JoinTree> tree;
  if (std::has_single_bit(set)) {
    tree = JoinTree::of(static_cast<std::size_t>(std::countr_zero(set)));
  } else {
    const Set streamed = best[set].streamed;
    FLUGS_CHECK(streamed != 0);
    tree = JoinTree::join(tree_of(best, streamed), tree_of(best, set & ~streamed));
  }
  tree->rows = best[set].rows;
  return tree;
}

/// Dynamic programming over all sets of inputs that links connect.
std::unique_ptr<JoinTree> best_of_all(const JoinGraph& graph, double& cost) {
  const Set all = (Set{1} << graph.count()) - 1;
  std::vector<Priced> best(all + 1);
  for (Set set = 1; set <= all; ++set) {
    Priced& here = best[set];
    if (std::has_single_bit(set)) {
      here = {0, graph.rows(set), 0};
      continue;
    }
    for (Set streamed = (set - 1) & set; streamed != 0; streamed = (streamed - 1) & set) {
      const Set held = set & ~streamed;
      const double inputs = best[streamed].cost + best[held].cost;
      if (!(inputs < here.cost) || !graph.are_linked(streamed, held)) continue;
      if (here.rows == 0) here.rows = graph.rows(set);
      const double price = inputs + join_cost(best[streamed].rows, best[held].rows, here.rows);
      if (price < here.cost) {
        here.cost = price;
        here.streamed = streamed;
      }
    }
  }
  cost = best[all].cost;
  FLUGS_CHECK(std::isfinite(cost));
  return tree_of(best, all);
}

/// Joins the two parts next whose join is the cheapest.
std::unique_ptr<JoinTree> best_one_by_one(const JoinGraph& graph, double& cost) {
  struct Part {
    Set set;
    std::unique_ptr<JoinTree> tree;
  };
  std::vector<Part> parts;
  for (std::size_t i = 0; i < graph.count(); ++i) {
    parts.push_back({Set{1} << i, JoinTree::of(i)});
    parts.back().tree->rows = graph.rows(parts.back().set);
  }
  cost = 0;
  while (parts.size() > 1) {
    Priced next;
    std::size_t streamed = 0;
    std::size_t held = 0;
    for (std::size_t a = 0; a < parts.size(); ++a)
      for (std::size_t b = 0; b < parts.size(); ++b) {
        if (a == b || !graph.are_linked(parts[a].set, parts[b].set)) continue;
        const double rows = graph.rows(parts[a].set | parts[b].set);
        const double price = join_cost(parts[a].tree->rows, parts[b].tree->rows, rows);
        if (price >= next.cost) continue;
        next = {price, rows, 0};
        streamed = a;
        held = b;
      }
    FLUGS_CHECK(streamed != held);  // the links connect all inputs
    cost += next.cost;
    parts[streamed].tree =
        JoinTree::join(std::move(parts[streamed].tree), std::move(parts[held].tree));
    parts[streamed].tree->rows = next.rows;
    parts[streamed].set |= parts[held].set;
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(held));
  }
  return std::move(parts.front().tree);
}

/// Sets the rows of the tree; gives its inputs, and adds the cost of its joins.
Set price(const JoinGraph& graph, JoinTree& tree, double& cost) {
  Set set = 0;
  if (tree.input != JoinTree::kJoin) {
    set = Set{1} << tree.input;
  } else {
    set = price(graph, *tree.streamed, cost) | price(graph, *tree.held, cost);
  }
  tree.rows = graph.rows(set);
  if (tree.input == JoinTree::kJoin)
    cost += join_cost(tree.streamed->rows, tree.held->rows, tree.rows);
  return set;
}

}  // namespace

std::unique_ptr<JoinTree> JoinTree::of(std::size_t input) {
  auto tree = std::make_unique<JoinTree>();
  tree->input = input;
  return tree;
}

std::unique_ptr<JoinTree> JoinTree::join(std::unique_ptr<JoinTree> streamed,
                                         std::unique_ptr<JoinTree> held) {
  FLUGS_CHECK(streamed != nullptr && held != nullptr);
  auto tree = std::make_unique<JoinTree>();
  tree->streamed = std::move(streamed);
  tree->held = std::move(held);
  return tree;
}

std::unique_ptr<JoinTree> choose_join_order(const std::vector<JoinInput>& inputs,
                                            const std::vector<JoinLink>& links,
                                            std::unique_ptr<JoinTree> written) {
  FLUGS_CHECK(written != nullptr);
  if (inputs.size() > kInputsMax) return written;
  const JoinGraph graph(inputs, links);
  double cost_written = 0;
  price(graph, *written, cost_written);
  double cost = 0;
  std::unique_ptr<JoinTree> best =
      inputs.size() <= kInputsOfAllOrders ? best_of_all(graph, cost) : best_one_by_one(graph, cost);
  return cost < cost_written * kWorthIt ? std::move(best) : std::move(written);
}

}  // namespace flugs::query
