#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace flugs::bench {

/// Rates of one run with these users and streams, per second.
struct RatePoint {
  std::uint32_t users = 0;
  std::uint32_t streams = 0;
  double transactions = 0;
  double queries = 0;
};

/// A throughput frontier (Milkai et al., "How Good is My HTAP System?", SIGMOD 2022), by the most
/// that users alone did (x) and that streams alone did (y).
struct Frontier {
  struct Point {
    double x = 0;
    double y = 0;
  };
  double transactions_alone = 0;
  double queries_alone = 0;
  /// From (0, 1) to (1, 0), x ascending and y descending: the runs of both kinds, but for those to
  /// which another run is at least equal in both rates. What is above 1, by chance, counts as 1.
  std::vector<Point> points;
  /// Below the straight lines between the points: 0.5 if users and streams take from each other
  /// what they get, as they do when they share processors; 1 if they do not hinder each other.
  double area = 0;
};

/// Nothing without a run of users alone and one of streams alone that got something done.
std::optional<Frontier> make_frontier(std::span<const RatePoint> runs);

}  // namespace flugs::bench
