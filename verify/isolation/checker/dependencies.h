#pragma once

#include <cstdint>
#include <vector>

#include "flugs/status.h"
#include "verify/isolation/checker/anomaly.h"
#include "verify/isolation/checker/history.h"

namespace flugs::isolation {

/// Why one transaction comes before another.
enum class Edge : std::uint8_t {
  kWw,  ///< it wrote the version that the other transaction replaced
  kWr,  ///< it wrote the version that the other transaction read
  kRw,  ///< it read the version that the other transaction replaced: an anti-dependency
};

struct Dependency {
  std::uint32_t from = 0;  ///< transactions, by position in the history
  std::uint32_t to = 0;
  std::uint32_t key = 0;
  std::uint32_t before = 0;  ///< the version that was replaced, or read; 0: there was none
  std::uint32_t value = 0;   ///< the version that replaced it; for kWr the version that was read
  Edge edge = Edge::kWw;
  bool is_predicate = false;
};

/// An anomaly that needs no cycle.
struct Finding {
  Anomaly anomaly = Anomaly::kGarbage;
  std::uint32_t transaction = 0;  ///< the transaction that saw it
  std::uint32_t other = 0;        ///< the writer of what it saw, or should have seen; kNobody
  std::uint32_t key = 0;
  std::uint32_t value = 0;
};
inline constexpr std::uint32_t kNobody = 0xFFFFFFFFu;

/// The writer of each value.
struct Writers {
  std::vector<std::uint32_t> transaction;     ///< by value; kNobody
  std::vector<std::uint32_t> operation;       ///< by value: position in the history
  std::vector<std::uint8_t> is_intermediate;  ///< by value: written over by the same transaction

  std::uint32_t of(std::uint32_t value) const noexcept {
    return value < transaction.size() ? transaction[value] : kNobody;
  }
};

/// Conclusions from a history that hold at any isolation level.
struct Dependencies {
  Writers writers;
  /// By transaction: committed, or killed before the answer and seen by one that happened.
  std::vector<std::uint8_t> happened;
  std::uint64_t unknown_happened = 0;
  std::vector<Dependency> edges;
  std::vector<Finding> findings;
};

/// Finds out which transactions happened, the order of each object's versions, and from both the
/// dependencies.
///
/// The order of a list's versions is that of the elements in its longest read, as in Elle
/// (Kingsbury and Alvaro, VLDB 2020). A register's version comes after the version that its writer
/// had read or written before. A version that was written blindly has no place in the order, only
/// readers.
///
/// Fails with: kInvalidArgument (a value is written twice, or is 0; a key is a list and a register;
/// values are not numbered closely: above 64 times the number of operations).
Result<Dependencies> infer(const History& history);

}  // namespace flugs::isolation
