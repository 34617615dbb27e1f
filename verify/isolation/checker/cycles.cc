#include "verify/isolation/checker/cycles.h"

#include <algorithm>
#include <limits>

#include "verify/isolation/checker/graph.h"

namespace flugs::isolation {

namespace {

// Labels of arcs that are no dependency.
constexpr std::uint32_t kInside = 0xFFFFFFFFu;   // from a transaction's start to its commit
constexpr std::uint32_t kTimeArc = 0xFFFFFFFEu;  // from, between and to moments
constexpr std::uint32_t kNoTransaction = 0xFFFFFFFFu;

// Limits: arcs of a knot that are tried for a shortest cycle through them, and nodes visited in all
// knots, because a knot can be the whole history.
constexpr std::size_t kArcsTriedMax = 256;
constexpr std::uint64_t kVisitsMax = 4'000'000;

/// What a search looks at. A cycle must have what `needs` says: other searches find other cycles.
struct Search {
  enum class Needs : std::uint8_t { kAny, kWr, kRw, kRealTime };
  bool wr;
  bool rw;
  bool is_split;  ///< starts and commits are separate nodes: for snapshot isolation
  bool real_time;
  Needs needs;
};
constexpr Search kWrites = {false, false, false, false, Search::Needs::kAny};
constexpr Search kWritesAndReads = {true, false, false, false, Search::Needs::kWr};
constexpr Search kSnapshots = {true, true, true, false, Search::Needs::kRw};
constexpr Search kSnapshotsInTime = {true, true, true, true, Search::Needs::kRealTime};
constexpr Search kEverything = {true, true, false, false, Search::Needs::kRw};
constexpr Search kEverythingInTime = {true, true, false, true, Search::Needs::kRealTime};

class CycleSearch {
 public:
  CycleSearch(const History& history, const Dependencies& dependencies, const Search& search)
      : history_(history), dependencies_(dependencies), search_(search), graph_(make_graph()) {}

  bool has_cycle() const noexcept { return components_.has_cycle; }

  /// At most one cycle per knot.
  std::vector<Cycle> run() {
    std::vector<Cycle> cycles;
    if (!has_cycle()) return cycles;
    // The arcs of each knot that will be tried.
    std::vector<std::vector<Graph::Arc>> tried(components_.is_cyclic.size());
    for (const Graph::Arc& arc : graph_.arcs()) {
      const std::uint32_t component = components_.of[arc.from];
      if (components_.of[arc.to] == component && is_needed(arc.label) &&
          tried[component].size() < kArcsTriedMax)
        tried[component].push_back(arc);
    }
    PathFinder finder(graph_, components_);
    for (const std::vector<Graph::Arc>& arcs : tried) {
      const std::vector<Graph::Arc> shortest = shortest_of(arcs, finder);
      if (!shortest.empty()) cycles.push_back(cycle_of(shortest));
    }
    return cycles;
  }

 private:
  std::uint32_t start_of(std::uint32_t transaction) const noexcept {
    return search_.is_split ? transaction * 2 : transaction;
  }
  std::uint32_t commit_of(std::uint32_t transaction) const noexcept {
    return search_.is_split ? transaction * 2 + 1 : transaction;
  }
  std::uint32_t moments_begin() const noexcept {
    const auto count = static_cast<std::uint32_t>(history_.transactions().size());
    return search_.is_split ? count * 2 : count;
  }
  /// kNoTransaction for a moment.
  std::uint32_t transaction_of(std::uint32_t node) const noexcept {
    if (node >= moments_begin()) return kNoTransaction;
    return search_.is_split ? node / 2 : node;
  }

  Graph make_graph() {
    const auto count = static_cast<std::uint32_t>(history_.transactions().size());
    Graph graph(moments_begin() + (search_.real_time ? count : 0));
    if (search_.is_split)
      for (std::uint32_t t = 0; t < count; ++t) graph.add(start_of(t), commit_of(t), kInside);
    for (std::uint32_t i = 0; i < dependencies_.edges.size(); ++i) {
      const Dependency& edge = dependencies_.edges[i];
      if (edge.edge == Edge::kRw) {
        // It only says that `from` began before `to` committed.
        if (search_.rw) graph.add(start_of(edge.from), commit_of(edge.to), i);
      } else if (edge.edge == Edge::kWw || search_.wr) {
        graph.add(commit_of(edge.from), start_of(edge.to), i);
      }
    }
    if (search_.real_time) add_real_time(graph);
    graph.finish();
    components_ = components_of(graph);
    return graph;
  }

  // Each answer gives a moment, in their order. Arcs lead from a transaction to its moment, from
  // each moment to the next, and from the last moment before a transaction began to that
  // transaction.
  void add_real_time(Graph& graph) const {
    const auto transactions = history_.transactions();
    std::vector<std::uint32_t> by_end;
    std::vector<std::uint32_t> by_begin;
    for (std::uint32_t t = 0; t < transactions.size(); ++t) {
      if (dependencies_.happened[t] == 0) continue;
      by_end.push_back(t);
      by_begin.push_back(t);
    }
    std::sort(by_end.begin(), by_end.end(), [&](std::uint32_t a, std::uint32_t b) {
      return transactions[a].end_ns < transactions[b].end_ns;
    });
    std::sort(by_begin.begin(), by_begin.end(), [&](std::uint32_t a, std::uint32_t b) {
      return transactions[a].begin_ns < transactions[b].begin_ns;
    });
    const std::uint32_t moments = moments_begin();
    for (std::uint32_t i = 0; i < by_end.size(); ++i) {
      graph.add(commit_of(by_end[i]), moments + i, kTimeArc);
      if (i > 0) graph.add(moments + i - 1, moments + i, kTimeArc);
    }
    std::uint32_t ended = 0;
    for (const std::uint32_t t : by_begin) {
      while (ended < by_end.size() && transactions[by_end[ended]].end_ns < transactions[t].begin_ns)
        ++ended;
      if (ended > 0) graph.add(moments + ended - 1, start_of(t), kTimeArc);
    }
  }

  bool is_needed(std::uint32_t label) const noexcept {
    if (search_.needs == Search::Needs::kRealTime) return label == kTimeArc;
    if (label == kInside || label == kTimeArc) return false;
    const Edge edge = dependencies_.edges[label].edge;
    switch (search_.needs) {
      case Search::Needs::kWr:
        return edge == Edge::kWr;
      case Search::Needs::kRw:
        return edge == Edge::kRw;
      default:
        return true;
    }
  }

  std::vector<Graph::Arc> shortest_of(const std::vector<Graph::Arc>& arcs, PathFinder& finder) {
    std::vector<Graph::Arc> shortest;
    for (const Graph::Arc& arc : arcs) {
      if (!shortest.empty() && visited_ > kVisitsMax) break;
      const std::size_t length_max =
          shortest.empty() ? std::numeric_limits<std::size_t>::max() : shortest.size() - 2;
      std::vector<Graph::Arc> way = finder.find(arc.to, arc.from, length_max, visited_);
      if (way.empty()) continue;
      way.push_back(arc);
      if (shortest.empty() || way.size() < shortest.size()) shortest.swap(way);
    }
    return shortest;
  }

  // Arcs between transactions become steps; arcs inside a transaction and between moments are left
  // out.
  Cycle cycle_of(std::vector<Graph::Arc> arcs) const {
    // Begin with a transaction, not with an arc between moments.
    const auto first = std::find_if(arcs.begin(), arcs.end(), [&](const Graph::Arc& arc) {
      return transaction_of(arc.from) != kNoTransaction && arc.label != kInside;
    });
    std::rotate(arcs.begin(), first, arcs.end());
    Cycle cycle;
    std::uint32_t from = kNoTransaction;
    for (const Graph::Arc& arc : arcs) {
      if (arc.label == kInside) continue;
      if (transaction_of(arc.from) != kNoTransaction) from = transaction_of(arc.from);
      if (transaction_of(arc.to) == kNoTransaction) continue;
      const bool is_real_time = arc.label == kTimeArc;
      cycle.steps.push_back(
          {from, transaction_of(arc.to), is_real_time, is_real_time ? 0 : arc.label});
    }
    classify(cycle);
    return cycle;
  }

  const Dependency& dependency(const Cycle::Step& step) const {
    return dependencies_.edges[step.dependency];
  }

  void classify(Cycle& cycle) const {
    std::size_t rw = 0;
    std::size_t wr = 0;
    bool is_adjacent = false;
    bool is_predicate = false;
    const auto is_rw = [&](const Cycle::Step& step) {
      return !step.is_real_time && dependency(step).edge == Edge::kRw;
    };
    for (std::size_t i = 0; i < cycle.steps.size(); ++i) {
      const Cycle::Step& step = cycle.steps[i];
      cycle.in_real_time |= step.is_real_time;
      if (step.is_real_time) continue;
      wr += dependency(step).edge == Edge::kWr ? 1 : 0;
      if (!is_rw(step)) continue;
      ++rw;
      is_predicate |= dependency(step).is_predicate;
      const std::size_t next = (i + 1) % cycle.steps.size();
      is_adjacent |= next != i && is_rw(cycle.steps[next]);
    }
    if (rw == 0) {
      cycle.anomaly = wr == 0 ? Anomaly::kG0 : Anomaly::kG1c;
    } else if (rw == 1) {
      cycle.anomaly = kind_of_single(cycle);
    } else if (is_adjacent) {
      cycle.anomaly = is_predicate ? Anomaly::kG2 : Anomaly::kG2Item;
    } else {
      cycle.anomaly = Anomaly::kGNonadjacent;
    }
  }

  // The cycles with one anti-dependency that have a name of their own.
  Anomaly kind_of_single(const Cycle& cycle) const {
    if (cycle.in_real_time) return Anomaly::kGSingle;
    const auto missed = std::find_if(cycle.steps.begin(), cycle.steps.end(), [&](const auto& step) {
      return dependency(step).edge == Edge::kRw;
    });
    const Dependency& rw = dependency(*missed);
    if (cycle.steps.size() == 2) {
      const Dependency& back = dependency(cycle.steps[missed == cycle.steps.begin() ? 1 : 0]);
      if (back.edge == Edge::kWw && back.key == rw.key) return Anomaly::kLostUpdate;
      if (back.edge == Edge::kWr && !rw.is_predicate && reads_first(rw, back)) return Anomaly::kOtv;
    }
    return rw.is_predicate ? Anomaly::kPmp : Anomaly::kGSingle;
  }

  // Whether the reader saw a write of the other transaction before it missed this one.
  bool reads_first(const Dependency& missed, const Dependency& seen) const {
    const auto operations = history_.operations(history_.transactions()[missed.from]);
    for (const Operation& operation : operations) {
      if (is_write(operation.kind)) continue;
      if (operation.key == seen.key && saw(operation, seen.value)) return true;
      if (operation.key == missed.key && !saw(operation, missed.value)) return false;
    }
    return false;
  }
  bool saw(const Operation& read, std::uint32_t value) const {
    if (read.kind == OperationKind::kReadRegister) return read.value == value;
    const auto elements = history_.elements(read);
    return std::find(elements.begin(), elements.end(), value) != elements.end();
  }

  const History& history_;
  const Dependencies& dependencies_;
  const Search search_;
  Components components_;  // made with the graph
  const Graph graph_;
  std::uint64_t visited_ = 0;
};

/// The searches that find the cycles that a level forbids; the first search contains all others.
std::vector<Search> searches_of(Level level) {
  switch (level) {
    case Level::kReadCommitted:
      return {kWritesAndReads, kWrites};
    case Level::kSnapshot:
      return {kSnapshots, kWrites, kWritesAndReads};
    case Level::kStrongSnapshot:
      return {kSnapshotsInTime, kWrites, kWritesAndReads, kSnapshots};
    case Level::kSerializable:
      return {kEverything, kWrites, kWritesAndReads, kSnapshots};
    case Level::kStrictSerializable:
      return {kEverythingInTime, kWrites,     kWritesAndReads,
              kSnapshots,        kEverything, kSnapshotsInTime};
  }
  return {};
}

}  // namespace

std::vector<Cycle> find_cycles(const History& history, const Dependencies& dependencies,
                               Level level, bool reports_allowed) {
  std::vector<Cycle> cycles;
  // Cycles that a narrower search has already found are not reported again.
  const auto add = [&](const Search& search, std::vector<Cycle> found) {
    for (Cycle& cycle : found) {
      const bool is_g2 = cycle.anomaly == Anomaly::kG2 || cycle.anomaly == Anomaly::kG2Item;
      if (search.is_split || !search.rw || is_g2) cycles.push_back(std::move(cycle));
    }
  };
  const std::vector<Search> searches = searches_of(level);
  CycleSearch widest(history, dependencies, searches.front());
  if (widest.has_cycle()) {
    for (std::size_t i = 1; i < searches.size(); ++i)
      add(searches[i], CycleSearch(history, dependencies, searches[i]).run());
    add(searches.front(), widest.run());
  }
  const bool covers_all = level == Level::kSerializable || level == Level::kStrictSerializable;
  if (reports_allowed && level == Level::kReadCommitted)
    add(kSnapshots, CycleSearch(history, dependencies, kSnapshots).run());
  if (reports_allowed && !covers_all)
    add(kEverything, CycleSearch(history, dependencies, kEverything).run());
  return cycles;
}

}  // namespace flugs::isolation
