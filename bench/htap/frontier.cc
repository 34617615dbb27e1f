#include "bench/htap/frontier.h"

#include <algorithm>

namespace flugs::bench {

namespace {

using Point = Frontier::Point;

/// The points to which no other is superior, x ascending.
std::vector<Point> envelope(std::vector<Point> points) {
  // The highest point comes first among those with the same x.
  std::sort(points.begin(), points.end(),
            [](const Point& a, const Point& b) { return a.x != b.x ? a.x > b.x : a.y > b.y; });
  std::vector<Point> kept;
  for (const Point& point : points)
    if (kept.empty() || point.y > kept.back().y) kept.push_back(point);
  std::reverse(kept.begin(), kept.end());
  return kept;
}

}  // namespace

std::optional<Frontier> make_frontier(std::span<const RatePoint> runs) {
  Frontier frontier;
  for (const RatePoint& run : runs) {
    if (run.streams == 0)
      frontier.transactions_alone = std::max(frontier.transactions_alone, run.transactions);
    if (run.users == 0) frontier.queries_alone = std::max(frontier.queries_alone, run.queries);
  }
  if (frontier.transactions_alone <= 0 || frontier.queries_alone <= 0) return std::nullopt;
  std::vector<Point> mixed;
  for (const RatePoint& run : runs)
    if (run.users > 0 && run.streams > 0)
      mixed.push_back({std::min(run.transactions / frontier.transactions_alone, 1.0),
                       std::min(run.queries / frontier.queries_alone, 1.0)});
  frontier.points.push_back({0, 1});
  for (const Point& point : envelope(std::move(mixed))) frontier.points.push_back(point);
  frontier.points.push_back({1, 0});
  for (std::size_t i = 1; i < frontier.points.size(); ++i) {
    const Point& left = frontier.points[i - 1];
    const Point& right = frontier.points[i];
    frontier.area += (right.x - left.x) * (left.y + right.y) / 2;
  }
  return frontier;
}

}  // namespace flugs::bench
