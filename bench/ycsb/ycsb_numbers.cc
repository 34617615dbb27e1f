#include "bench/ycsb/ycsb_numbers.h"

#include <cmath>

#include "bench/ycsb/ycsb_rows.h"

namespace flugs::bench {

namespace {

// The constants of YCSB's ScrambledZipfianGenerator.
constexpr std::uint64_t kScrambledItems = 10'000'000'000;
constexpr double kScrambledZeta = 26.46902820178302;

double zeta_terms(std::uint64_t from, std::uint64_t to) noexcept {
  double sum = 0;
  for (std::uint64_t i = from; i < to; ++i)
    sum += std::pow(static_cast<double>(i + 1), -Zipf::kTheta);
  return sum;
}

/// Uniform in [0, 1).
double fraction(Random& random) noexcept {
  constexpr double kUnit = 1.0 / static_cast<double>(std::uint64_t{1} << 53);
  return static_cast<double>(random.next() >> 11) * kUnit;
}

Zipf zipf_of(YcsbDistribution distribution, std::uint64_t records) noexcept {
  if (distribution == YcsbDistribution::kScrambled) return {kScrambledItems, kScrambledZeta};
  if (distribution == YcsbDistribution::kUniform) return {1, 1.0};
  return Zipf(records);
}

}  // namespace

Zipf::Zipf(std::uint64_t n) noexcept : Zipf(n, zeta_terms(0, n)) {}

Zipf::Zipf(std::uint64_t n, double zeta) noexcept : n_(n), zeta_(zeta) {
  eta_ = (1 - std::pow(2.0 / static_cast<double>(n), 1 - kTheta)) / (1 - zeta_terms(0, 2) / zeta);
}

std::uint64_t Zipf::next(Random& random) const noexcept {
  const double u = fraction(random);
  const double scaled = u * zeta_;
  if (scaled < 1 || n_ < 2) return 0;
  if (scaled < 1 + std::pow(0.5, kTheta) || n_ < 3) return 1;
  const double rank = static_cast<double>(n_) * std::pow(eta_ * u - eta_ + 1, 1 / (1 - kTheta));
  const auto whole = static_cast<std::uint64_t>(rank);
  return whole < n_ ? whole : n_ - 1;  // u next to 1 is rounded up to n
}

void Zipf::grow(std::uint64_t n) noexcept {
  zeta_ += zeta_terms(n_, n);
  n_ = n;
}

YcsbNumbers::YcsbNumbers(YcsbDistribution distribution, std::uint64_t records,
                         std::uint64_t items) noexcept
    : distribution_(distribution), items_(items), zipf_(zipf_of(distribution, records)) {}

std::uint64_t YcsbNumbers::next(Random& random, std::uint64_t there) noexcept {
  for (;;) {
    const std::uint64_t number = draw(random, there);
    if (number < there) return number;
  }
}

std::uint64_t YcsbNumbers::draw(Random& random, std::uint64_t there) noexcept {
  switch (distribution_) {
    case YcsbDistribution::kScrambled:
      return ycsb_hash(zipf_.next(random)) % items_;
    case YcsbDistribution::kUniform:
      return random.next() % items_;
    case YcsbDistribution::kPlain:
      return zipf_.next(random);
    case YcsbDistribution::kLatest:
      break;
  }
  zipf_.grow(there);
  return there - 1 - zipf_.next(random);
}

}  // namespace flugs::bench
