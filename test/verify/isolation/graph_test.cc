#include "verify/isolation/checker/graph.h"

#include <catch2/catch.hpp>
#include <set>

#include "test/support/random.h"

namespace flugs::test {
namespace {

using isolation::Graph;

/// Whether a way leads from one node to the other, by search.
bool reaches(const Graph& graph, std::uint32_t from, std::uint32_t to) {
  std::set<std::uint32_t> seen = {from};
  std::vector<std::uint32_t> next = {from};
  while (!next.empty()) {
    const std::uint32_t node = next.back();
    next.pop_back();
    for (const Graph::Arc& arc : graph.arcs(node)) {
      if (arc.to == to) return true;
      if (seen.insert(arc.to).second) next.push_back(arc.to);
    }
  }
  return false;
}

}  // namespace

TEST_CASE("components are the nodes that reach each other, in random graphs", "[history]") {
  Random random(1);
  for (int round = 0; round < 300; ++round) {
    const auto nodes = static_cast<std::uint32_t>(1 + random.below(12));
    Graph graph(nodes);
    const std::uint64_t arcs = random.below(2 * nodes);
    for (std::uint32_t i = 0; i < arcs; ++i) {
      const auto from = static_cast<std::uint32_t>(random.below(nodes));
      const auto to = static_cast<std::uint32_t>(random.below(nodes));
      if (from != to) graph.add(from, to, i);
    }
    graph.finish();
    const isolation::Components components = isolation::components_of(graph);
    bool all_right = true;
    bool has_cycle = false;
    for (std::uint32_t a = 0; a < nodes; ++a)
      for (std::uint32_t b = 0; b < nodes; ++b) {
        if (a == b) continue;
        const bool together = reaches(graph, a, b) && reaches(graph, b, a);
        has_cycle |= together;
        all_right = all_right && together == (components.of[a] == components.of[b]);
      }
    REQUIRE(all_right);
    REQUIRE(components.has_cycle == has_cycle);
  }
}

TEST_CASE("the search returns a shortest way, and none beyond the bound", "[history]") {
  // 0 -> 1 -> 2 -> 3 -> 0, and a short cut 1 -> 3.
  Graph graph(4);
  for (const auto& [from, to] : {std::pair{0U, 1U}, {1U, 2U}, {2U, 3U}, {3U, 0U}, {1U, 3U}})
    graph.add(from, to, from * 10 + to);
  graph.finish();
  const isolation::Components components = isolation::components_of(graph);
  isolation::PathFinder finder(graph, components);
  std::uint64_t visited = 0;
  const auto way = finder.find(0, 3, 10, visited);
  REQUIRE(way.size() == 2);
  CHECK(way[0].label == 1);
  CHECK(way[1].label == 13);
  CHECK(finder.find(0, 3, 2, visited).size() == 2);
  CHECK(finder.find(0, 3, 1, visited).empty());
  CHECK(visited > 0);
}

TEST_CASE("a long chain does not exhaust the stack", "[history]") {
  constexpr std::uint32_t kNodes = 300'000;
  Graph graph(kNodes);
  for (std::uint32_t i = 0; i < kNodes; ++i) graph.add(i, (i + 1) % kNodes, i);
  graph.finish();
  const isolation::Components components = isolation::components_of(graph);
  CHECK(components.has_cycle);
  CHECK(components.is_cyclic.size() == 1);
}

}  // namespace flugs::test
