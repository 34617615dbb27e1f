#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "flugs/stream.h"
#include "query/vectors/code_domain.h"

namespace flugs::query {

/// The texts of a column's codes, as batches show them. A batch has a dictionary of the codes in
/// it. But once as many rows have come as the domain has codes, all batches share one copy of the
/// whole domain, unless it is large.
///
/// Thread-safety: any thread.
class DomainTexts {
 public:
  explicit DomainTexts(std::shared_ptr<const CodeDomain> domain) noexcept
      : domain_(std::move(domain)) {}

  const CodeDomain& domain() const noexcept { return *domain_; }
  void count_rows(std::size_t rows) noexcept { rows_.fetch_add(rows, std::memory_order_relaxed); }
  /// The copy of the whole domain; null: not yet, or never.
  std::shared_ptr<const TextDictionary> shared();

 private:
  // A larger dictionary takes longer to copy than the first batch may wait for.
  static constexpr std::uint32_t kCodesMax = 1u << 16;
  static constexpr std::size_t kBytesMax = std::size_t{4} << 20;

  void copy();

  std::shared_ptr<const CodeDomain> domain_;
  std::atomic<std::uint64_t> rows_{0};
  std::once_flag once_;
  std::shared_ptr<const TextDictionary> copy_;  // by once_; null: it would be too large
};

}  // namespace flugs::query
