#include "verify/isolation/checker/graph.h"

#include <algorithm>

namespace flugs::isolation {

void Graph::finish() {
  for (const Arc& arc : arcs_) ++first_[arc.from + 1];
  for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
  std::vector<Arc> sorted(arcs_.size());
  std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
  for (const Arc& arc : arcs_) sorted[next[arc.from]++] = arc;
  arcs_.swap(sorted);
}

namespace {

constexpr std::uint32_t kUnseen = 0xFFFFFFFFu;

/// Tarjan's algorithm with its own stack: histories are deeper than the stack of a thread.
class Tarjan {
 public:
  Tarjan(const Graph& graph, Components& out) : graph_(graph), out_(out) {
    index_.assign(graph.nodes(), kUnseen);
    low_.assign(graph.nodes(), 0);
    out_.of.assign(graph.nodes(), kUnseen);
  }

  void run() {
    for (std::uint32_t node = 0; node < graph_.nodes(); ++node)
      if (index_[node] == kUnseen) visit(node);
  }

 private:
  struct Frame {
    std::uint32_t node;
    std::uint32_t next;  // arc
  };

  void enter(std::uint32_t node) {
    index_[node] = low_[node] = count_++;
    open_.push_back(node);
    frames_.push_back({node, 0});
  }

  void leave(std::uint32_t node) {
    if (low_[node] != index_[node]) return;
    const auto component = static_cast<std::uint32_t>(out_.is_cyclic.size());
    const bool is_cyclic = open_.back() != node;
    std::uint32_t member = kUnseen;
    do {
      member = open_.back();
      open_.pop_back();
      out_.of[member] = component;
    } while (member != node);
    out_.is_cyclic.push_back(is_cyclic ? 1 : 0);
    out_.has_cycle |= is_cyclic;
  }

  void visit(std::uint32_t root) {
    enter(root);
    while (!frames_.empty()) {
      Frame& frame = frames_.back();
      const std::uint32_t node = frame.node;
      const auto arcs = graph_.arcs(node);
      if (frame.next == arcs.size()) {
        frames_.pop_back();
        leave(node);
        if (!frames_.empty())
          low_[frames_.back().node] = std::min(low_[frames_.back().node], low_[node]);
        continue;
      }
      const std::uint32_t to = arcs[frame.next++].to;
      if (index_[to] == kUnseen) {
        enter(to);
      } else if (out_.of[to] == kUnseen) {
        low_[node] = std::min(low_[node], index_[to]);
      }
    }
  }

  const Graph& graph_;
  Components& out_;
  std::vector<std::uint32_t> index_;
  std::vector<std::uint32_t> low_;
  std::vector<std::uint32_t> open_;
  std::vector<Frame> frames_;
  std::uint32_t count_ = 0;
};

}  // namespace

Components components_of(const Graph& graph) {
  Components components;
  Tarjan(graph, components).run();
  return components;
}

PathFinder::PathFinder(const Graph& graph, const Components& components)
    : graph_(graph),
      components_(components),
      round_(graph.nodes(), 0),
      reached_by_(graph.nodes()),
      depth_(graph.nodes(), 0) {}

std::vector<Graph::Arc> PathFinder::find(std::uint32_t from, std::uint32_t to,
                                         std::size_t length_max, std::uint64_t& visited) {
  const std::uint32_t round = ++searches_;
  queue_.assign(1, from);
  round_[from] = round;
  depth_[from] = 0;
  for (std::size_t i = 0; i < queue_.size() && round_[to] != round; ++i) {
    const std::uint32_t node = queue_[i];
    if (depth_[node] == length_max) break;
    for (const Graph::Arc& arc : graph_.arcs(node)) {
      if (components_.of[arc.to] != components_.of[from] || round_[arc.to] == round) continue;
      round_[arc.to] = round;
      reached_by_[arc.to] = arc;
      depth_[arc.to] = depth_[node] + 1;
      queue_.push_back(arc.to);
    }
  }
  visited += queue_.size();
  std::vector<Graph::Arc> way;
  if (round_[to] != round) return way;
  for (std::uint32_t node = to; node != from; node = reached_by_[node].from)
    way.push_back(reached_by_[node]);
  std::reverse(way.begin(), way.end());
  return way;
}

}  // namespace flugs::isolation
