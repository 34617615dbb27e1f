#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace flugs::isolation {

/// A directed graph of numbered nodes with labelled arcs. First arcs are added, then `finish` sorts
/// them by their origin, then the graph is searched. Linear in nodes and arcs.
class Graph {
 public:
  struct Arc {
    std::uint32_t from;
    std::uint32_t to;
    std::uint32_t label;
  };

  explicit Graph(std::uint32_t nodes) : first_(nodes + 1, 0) {}

  std::uint32_t nodes() const noexcept { return static_cast<std::uint32_t>(first_.size() - 1); }
  void add(std::uint32_t from, std::uint32_t to, std::uint32_t label) {
    arcs_.push_back({from, to, label});
  }
  void finish();
  std::span<const Arc> arcs() const noexcept { return arcs_; }
  std::span<const Arc> arcs(std::uint32_t from) const noexcept {
    return std::span(arcs_).subspan(first_[from], first_[from + 1] - first_[from]);
  }

 private:
  std::vector<Arc> arcs_;
  std::vector<std::uint32_t> first_;
};

/// The strongly connected components, by Tarjan's algorithm: a number per node, which is the same
/// for two nodes that can reach each other. `is_cyclic`, by number: the component has more than one
/// node.
struct Components {
  std::vector<std::uint32_t> of;
  std::vector<std::uint8_t> is_cyclic;
  bool has_cycle = false;
};
Components components_of(const Graph& graph);

/// Finds shortest paths, without clearing its memory for each search.
class PathFinder {
 public:
  PathFinder(const Graph& graph, const Components& components);

  /// The arcs of a shortest path within a component, empty when it would have more than
  /// `length_max`. `visited` grows by the number of nodes visited.
  std::vector<Graph::Arc> find(std::uint32_t from, std::uint32_t to, std::size_t length_max,
                               std::uint64_t& visited);

 private:
  const Graph& graph_;
  const Components& components_;
  std::vector<std::uint32_t> round_;    // by node: the search that has reached it
  std::vector<Graph::Arc> reached_by_;  // by node
  std::vector<std::uint32_t> depth_;    // by node
  std::uint32_t searches_ = 0;
  std::vector<std::uint32_t> queue_;
};

}  // namespace flugs::isolation
