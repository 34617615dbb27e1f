#pragma once

#include <cstdint>

#include "bench/support/random.h"

namespace flugs::bench {

/// Zipf's distribution over {0 .. n-1} with exponent 0.99, by the generator of Gray et al.
/// ("Quickly Generating Billion-Record Synthetic Databases", SIGMOD 1994), as YCSB has it.
class Zipf {
 public:
  static constexpr double kTheta = 0.99;

  /// Adds up n terms.
  explicit Zipf(std::uint64_t n) noexcept;
  /// With zeta(n) known.
  Zipf(std::uint64_t n, double zeta) noexcept;

  std::uint64_t next(Random& random) const noexcept;
  /// From now on over {0 .. n-1}, n not smaller than before: adds up what is missing. As in YCSB
  /// eta stays that of the first n.
  void grow(std::uint64_t n) noexcept;

 private:
  std::uint64_t n_;
  double zeta_;
  double eta_;
};

enum class YcsbDistribution : std::uint8_t {
  kScrambled,  ///< YCSB's "zipfian": ranks of 10^10 items, hashed to those there are
  kPlain,      ///< Zipf over the rows there are, rank 0 is row 0: hotter
  kUniform,
  kLatest,  ///< Zipf, rank 0 is the row that was inserted last
};

/// Draws the number of a row.
class YcsbNumbers {
 public:
  /// `records`: rows at the beginning. `items`: what kScrambled and kUniform draw from, so that
  /// rows that are inserted later are drawn, too; not below `records`.
  YcsbNumbers(YcsbDistribution distribution, std::uint64_t records, std::uint64_t items) noexcept;

  /// Below `there`, the number of rows whose inserts have been acknowledged, which never falls.
  std::uint64_t next(Random& random, std::uint64_t there) noexcept;

 private:
  std::uint64_t draw(Random& random, std::uint64_t there) noexcept;

  YcsbDistribution distribution_;
  std::uint64_t items_;
  Zipf zipf_;
};

}  // namespace flugs::bench
