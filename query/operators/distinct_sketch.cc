#include "query/operators/distinct_sketch.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <new>

#include "base/check.h"

namespace flugs::query {

namespace {

// An entry is the number of a register, and its rank in the lower byte.
constexpr unsigned kRankBits = 8;
constexpr std::uint32_t kRankMask = (1u << kRankBits) - 1;
constexpr std::uint32_t kFirstEntries = 4;
// More entries would take more than a quarter of the registers' bytes, and more time than these.
constexpr std::uint32_t kEntriesMax = DistinctSketch::kRegisters / 16;
static_assert(DistinctSketch::kRankMax <= kRankMask && kFirstEntries % 2 == 0);

std::uint32_t entry_of(std::uint64_t hash) noexcept {
  const std::uint64_t rest = hash << DistinctSketch::kIndexBits;
  const auto rank =
      rest == 0 ? DistinctSketch::kRankMax : static_cast<unsigned>(std::countl_zero(rest)) + 1;
  return static_cast<std::uint32_t>(hash >> (64 - DistinctSketch::kIndexBits)) << kRankBits | rank;
}

void raise(DistinctSketch& dense, std::uint32_t entry) noexcept {
  std::uint8_t& rank = dense.registers()[entry >> kRankBits];
  rank = std::max(rank, static_cast<std::uint8_t>(entry & kRankMask));
}

DistinctSketch* sparse(std::uint32_t room, KeptMemory& memory) {
  return new (memory.add(sizeof(DistinctSketch) + room * sizeof(std::uint32_t)))
      DistinctSketch{0, room};
}

DistinctSketch* dense_of(const DistinctSketch& from, KeptMemory& memory) {
  auto* const made =
      new (memory.add(sizeof(DistinctSketch) + DistinctSketch::kRegisters)) DistinctSketch{0, 0};
  std::fill_n(made->registers(), DistinctSketch::kRegisters, std::uint8_t{0});
  for (std::uint32_t i = 0; i < from.used; ++i) raise(*made, from.entries()[i]);
  return made;
}

void note_entry(DistinctSketch*& sketch, std::uint32_t entry, KeptMemory& memory) {
  if (sketch == nullptr) sketch = sparse(kFirstEntries, memory);
  if (sketch->is_dense()) return raise(*sketch, entry);
  std::uint32_t* const end = sketch->entries() + sketch->used;
  std::uint32_t* at = std::lower_bound(sketch->entries(), end, entry & ~kRankMask);
  if (at != end && *at >> kRankBits == entry >> kRankBits) {
    *at = std::max(*at, entry);
    return;
  }
  if (sketch->used == sketch->room) {
    if (sketch->room >= kEntriesMax) {
      sketch = dense_of(*sketch, memory);
      return raise(*sketch, entry);
    }
    DistinctSketch* const wider = sparse(2 * sketch->room, memory);
    wider->used = sketch->used;
    std::copy_n(sketch->entries(), sketch->used, wider->entries());
    at = wider->entries() + (at - sketch->entries());
    sketch = wider;
  }
  std::copy_backward(at, sketch->entries() + sketch->used, sketch->entries() + sketch->used + 1);
  *at = entry;
  ++sketch->used;
}

// Otmar Ertl, "New cardinality estimation algorithms for HyperLogLog sketches", 2017, algorithm 6:
// unbiased for small and large numbers, without tables.
double sigma(double x) noexcept {
  if (x == 1) return HUGE_VAL;
  double y = 1;
  double z = x;
  for (double before = -1; z != before;) {
    x *= x;
    before = z;
    z += x * y;
    y += y;
  }
  return z;
}

double tau(double x) noexcept {
  if (x == 0 || x == 1) return 0;
  double y = 1;
  double z = 1 - x;
  for (double before = -1; z != before;) {
    x = std::sqrt(x);
    before = z;
    y *= 0.5;
    z -= (1 - x) * (1 - x) * y;
  }
  return z / 3;
}

}  // namespace

void note_hash(DistinctSketch*& sketch, std::uint64_t hash, KeptMemory& memory) {
  note_entry(sketch, entry_of(hash), memory);
}

void merge_sketches(DistinctSketch* from, DistinctSketch*& into, KeptMemory& memory) {
  if (from == nullptr || from == into) return;
  if (into == nullptr) {
    into = from;
    return;
  }
  if (!from->is_dense()) {
    for (std::uint32_t i = 0; i < from->used; ++i) note_entry(into, from->entries()[i], memory);
    return;
  }
  if (!into->is_dense()) into = dense_of(*into, memory);
  std::uint8_t* const to = into->registers();
  const std::uint8_t* const other = from->registers();
  for (std::size_t i = 0; i < DistinctSketch::kRegisters; ++i) to[i] = std::max(to[i], other[i]);
}

std::int64_t estimate_of(const DistinctSketch* sketch) noexcept {
  if (sketch == nullptr) return 0;
  constexpr double kAll = DistinctSketch::kRegisters;
  std::array<std::uint32_t, DistinctSketch::kRankMax + 1> of_rank{};  // registers
  if (sketch->is_dense()) {
    for (std::size_t i = 0; i < DistinctSketch::kRegisters; ++i) ++of_rank[sketch->registers()[i]];
  } else {
    of_rank[0] = static_cast<std::uint32_t>(DistinctSketch::kRegisters) - sketch->used;
    for (std::uint32_t i = 0; i < sketch->used; ++i) ++of_rank[sketch->entries()[i] & kRankMask];
  }
  double z = kAll * tau(1 - of_rank[DistinctSketch::kRankMax] / kAll);
  for (unsigned rank = DistinctSketch::kRankMax - 1; rank >= 1; --rank)
    z = 0.5 * (z + of_rank[rank]);
  z += kAll * sigma(of_rank[0] / kAll);
  const double estimate = kAll / (2 * std::log(2.0)) * kAll / z;
  return estimate < 9e18 ? std::llround(estimate) : std::numeric_limits<std::int64_t>::max();
}

}  // namespace flugs::query
