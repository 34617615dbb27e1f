#include "columns/main/main_encoding.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/check.h"
#include "columns/cells/cell.h"
#include "columns/main/main_kernels.h"

namespace flugs::columns {
namespace {

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
// Costs are in half bytes, so that a factor of 1.5 is a whole number.
constexpr std::uint64_t kPackedWeight = 2;
constexpr std::uint64_t kDictionaryWeight = 3;
constexpr std::uint64_t kRunLengthWeight = 4;

unsigned bits_for(std::uint64_t code_count) noexcept {
  FLUGS_DCHECK(code_count != 0);
  const auto bits = static_cast<unsigned>(std::bit_width(code_count - 1));
  return rounded_code_width(std::max(bits, 1u));
}

std::uint64_t bytes_of(const MainColumnFacts& facts, MainEncodingChoice choice) noexcept {
  MainColumnLayout layout{};
  layout.type = static_cast<std::uint8_t>(facts.type);
  layout.encoding = static_cast<std::uint8_t>(choice.encoding);
  layout.code_bits = static_cast<std::uint8_t>(choice.code_bits);
  layout.row_count = facts.rows;
  layout.null_count = facts.nulls;
  if (choice.has_entries) layout.entry_count = static_cast<std::uint32_t>(codes_for_entries(facts));
  if (choice.encoding == MainEncoding::kRunLength) layout.run_count = facts.runs;
  return MainColumnParts::of(layout).bytes;
}

// Keeps the cheapest of the offered encodings; of equal ones the first.
class Cheapest {
 public:
  Cheapest(const MainColumnFacts& facts, MainEncodings allowed) noexcept
      : facts_(facts), allowed_(allowed) {}

  void offer(MainEncoding encoding, bool has_entries, std::uint64_t code_count,
             std::uint64_t weight) noexcept {
    if (!allowed_.has(encoding)) return;
    const MainEncodingChoice choice{encoding, has_entries, bits_for(code_count)};
    consider(choice, bytes_of(facts_, choice) * weight);
  }
  void consider(MainEncodingChoice choice, std::uint64_t cost) noexcept {
    if (cost >= cost_) return;
    cost_ = cost;
    choice_ = choice;
  }
  const MainEncodingChoice& choice() const noexcept { return choice_; }
  std::uint64_t cost() const noexcept { return cost_; }

 private:
  const MainColumnFacts& facts_;
  MainEncodings allowed_;
  MainEncodingChoice choice_;
  std::uint64_t cost_ = kNever;
};

bool is_constant(const MainColumnFacts& facts, MainEncodings allowed) noexcept {
  if (facts.nulls == facts.rows) return true;
  return facts.runs == 1 && allowed.has(MainEncoding::kConstant);
}

Cheapest cheapest(const MainColumnFacts& facts, MainEncodings allowed) noexcept {
  Cheapest best(facts, allowed);
  const bool is_text = is_text_type(facts.type);
  if (const std::uint64_t codes = codes_for_payloads(facts); codes != 0) {
    best.offer(MainEncoding::kPacked, false, codes, kPackedWeight);
    best.offer(MainEncoding::kRunLength, false, codes, kRunLengthWeight);
  }
  if (facts.distinct != 0) {
    const std::uint64_t codes = codes_for_entries(facts);
    best.offer(MainEncoding::kDictionary, true, codes, is_text ? kPackedWeight : kDictionaryWeight);
    best.offer(MainEncoding::kRunLength, true, codes, kRunLengthWeight);
  }
  if (best.cost() == kNever || !allowed.is_only_one()) {
    const MainEncodingChoice plain{MainEncoding::kPlain, false, is_text ? 0u : 64u};
    best.consider(plain, bytes_of(facts, plain) * kPackedWeight);
  }
  FLUGS_CHECK(best.cost() != kNever);
  return best;
}

}  // namespace

std::uint64_t codes_for_entries(const MainColumnFacts& facts) noexcept {
  return facts.distinct + (facts.nulls != 0 ? 1 : 0);
}

std::uint64_t codes_for_payloads(const MainColumnFacts& facts) noexcept {
  if (is_text_type(facts.type) || facts.type == Type::kDouble) return 0;
  if (facts.spread >= (std::uint64_t{1} << 60) - 1) return 0;
  return facts.spread + 1 + (facts.nulls != 0 ? 1 : 0);
}

MainEncodingChoice choose_encoding(const MainColumnFacts& facts, MainEncodings allowed) noexcept {
  FLUGS_CHECK(facts.rows != 0 && facts.nulls <= facts.rows);
  FLUGS_CHECK(facts.runs != 0 && facts.runs <= facts.rows);
  if (is_constant(facts, allowed)) return {MainEncoding::kConstant, false, 0};
  return cheapest(facts, allowed).choice();
}

std::uint64_t distinct_limit(const MainColumnFacts& facts, MainEncodings allowed) noexcept {
  if (is_constant(facts, allowed)) return 0;
  if (!allowed.has(MainEncoding::kDictionary) && !allowed.has(MainEncoding::kRunLength)) return 0;
  if (allowed.is_only_one()) return facts.rows;
  // Entries alone must not cost as much as the best of the other encodings.
  MainColumnFacts uncounted = facts;
  uncounted.distinct = 0;
  const bool is_text = is_text_type(facts.type);
  const std::uint64_t weight = is_text ? kPackedWeight : kDictionaryWeight;
  const std::uint64_t limit = cheapest(uncounted, allowed).cost() / ((is_text ? 16 : 8) * weight);
  return std::min<std::uint64_t>(limit, facts.rows);
}

}  // namespace flugs::columns
