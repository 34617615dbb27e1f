#include "columns/main/text_symbols.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace flugs::columns {

namespace {

constexpr std::size_t kSampleBytes = 16 << 10;
constexpr std::size_t kSampleTextBytesMax = 512;
constexpr int kRounds = 5;
// After kRoundsOfNoise rounds symbols have up to four bytes. Texts that still take more than
// kPercentOfNoise per cent of their bytes have no pattern.
constexpr int kRoundsOfNoise = 2;
constexpr std::uint64_t kPercentOfNoise = 70;
/// Codes of the counts: those of symbols, then one for each byte that has none.
constexpr std::size_t kCodes = 512;
constexpr std::size_t kFirstByteCode = 256;

std::uint64_t mask_of(std::size_t bytes) noexcept {
  FLUGS_DCHECK(bytes >= 1 && bytes <= 8);
  return ~std::uint64_t{0} >> (64 - 8 * bytes);
}

/// The first eight bytes; zeros where the text has fewer.
std::uint64_t word_at(const char* at, std::size_t bytes) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, at, std::min<std::size_t>(bytes, 8));
  return word;
}

/// Texts from all parts of the column.
std::vector<std::string_view> sample_of(std::span<const std::string_view> texts) {
  std::vector<std::string_view> sample;
  std::size_t bytes = 0;
  constexpr std::size_t kPieces = 512;
  const std::size_t step = std::max<std::size_t>(texts.size() / kPieces, 1);
  for (std::size_t begin = 0; begin < step && bytes < kSampleBytes; ++begin)
    for (std::size_t i = begin; i < texts.size() && bytes < kSampleBytes; i += step) {
      if (texts[i].empty()) continue;
      sample.push_back(texts[i].substr(0, kSampleTextBytesMax));
      bytes += sample.back().size();
    }
  return sample;
}

}  // namespace

/// How often codes follow each other in the sample.
class TextSymbols::Counts {
 public:
  Counts() : pairs_(kCodes * kCodes) {}
  void clear() {
    singles_.fill(0);
    std::fill(pairs_.begin(), pairs_.end(), std::uint16_t{0});
  }
  void note(std::size_t code) noexcept { ++singles_[code]; }
  void note(std::size_t code, std::size_t next) noexcept {
    std::uint16_t& pair = pairs_[code * kCodes + next];
    if (pair != 0xFFFF) ++pair;
  }
  std::uint32_t of(std::size_t code) const noexcept { return singles_[code]; }
  /// Bytes of the sample as it would be compressed.
  std::uint64_t bytes() const noexcept {
    std::uint64_t bytes = 0;
    for (std::size_t code = 0; code < kCodes; ++code)
      bytes += singles_[code] * std::uint64_t{code < kFirstByteCode ? 1u : 2u};
    return bytes;
  }
  std::uint32_t of(std::size_t code, std::size_t next) const noexcept {
    return pairs_[code * kCodes + next];
  }

 private:
  std::array<std::uint32_t, kCodes> singles_{};
  std::vector<std::uint16_t> pairs_;
};

TextSymbols::TextSymbols() : longs_(kLongSlots), shorts_(std::size_t{1} << 16) {}

bool TextSymbols::add(std::uint64_t symbol, std::uint8_t length) {
  FLUGS_DCHECK(count_ < kSymbolsMax && length >= 1 && length <= kSymbolBytesMax);
  if (length >= 3) {
    Long& slot = longs_[slot_of(symbol)];
    if (slot.mask != 0) return false;
    slot = {symbol, mask_of(length), static_cast<std::uint8_t>(count_), length};
  }
  symbols_[count_] = symbol;
  lengths_[count_] = length;
  ++count_;
  return true;
}

// A symbol of two bytes goes before one of the first byte alone.
void TextSymbols::index() {
  for (const std::uint8_t length : {std::uint8_t{1}, std::uint8_t{2}})
    for (std::size_t i = 0; i < count_; ++i) {
      if (lengths_[i] != length) continue;
      const Short found{static_cast<std::uint8_t>(i), length};
      if (length == 2) {
        shorts_[symbols_[i]] = found;
      } else {
        for (std::size_t second = 0; second < 256; ++second)
          shorts_[symbols_[i] | (second << 8)] = found;
      }
    }
}

TextSymbols::Short TextSymbols::find(std::uint64_t word, std::size_t bytes) const noexcept {
  const Long& slot = longs_[slot_of(word)];
  if (slot.mask != 0 && (word & slot.mask) == slot.symbol && slot.length <= bytes)
    return {slot.code, slot.length};
  const Short found = shorts_[word & 0xFFFF];
  if (found.length <= bytes) return found;
  // The text ends behind its first byte, and a zero byte is not in it.
  for (std::size_t i = 0; i < count_; ++i)
    if (lengths_[i] == 1 && symbols_[i] == (word & 0xFF)) return {static_cast<std::uint8_t>(i), 1};
  return {};
}

void TextSymbols::compress(std::string_view text, std::vector<std::uint8_t>& out) const {
  const std::size_t begin = out.size();
  out.resize(begin + 2 * text.size());
  std::uint8_t* to = out.data() + begin;
  const char* from = text.data();
  std::size_t left = text.size();
  while (left != 0) {
    const Short found = find(word_at(from, left), left);
    *to++ = found.length != 0 ? found.code : kEscape;
    if (found.length == 0) *to++ = static_cast<std::uint8_t>(*from);
    const std::size_t bytes = std::max<std::size_t>(found.length, 1);
    from += bytes;
    left -= bytes;
  }
  out.resize(static_cast<std::size_t>(to - out.data()));
}

void TextSymbols::store(std::byte* at) const noexcept {
  std::memcpy(at, symbols_.data(), count_ * sizeof symbols_[0]);
  std::memcpy(at + count_ * sizeof symbols_[0], lengths_.data(), count_);
}

void TextSymbols::count(std::string_view text, Counts& counts) const {
  std::size_t before = kCodes;
  for (std::size_t i = 0; i < text.size();) {
    const Short found = find(word_at(text.data() + i, text.size() - i), text.size() - i);
    const std::size_t code =
        found.length != 0 ? found.code : kFirstByteCode + static_cast<std::uint8_t>(text[i]);
    counts.note(code);
    if (before != kCodes) counts.note(before, code);
    before = code;
    i += std::max<std::size_t>(found.length, 1);
  }
}

// The symbols that would have saved most, among the present ones, single bytes, and what two of
// them make together. A byte that gets no symbol costs two codes, so single bytes count more.
TextSymbols TextSymbols::next(const Counts& counts) const {
  struct Candidate {
    std::uint64_t gain;
    std::uint64_t symbol;
    std::uint8_t length;
  };
  std::vector<Candidate> candidates;
  const auto symbol_of = [&](std::size_t code) -> std::pair<std::uint64_t, std::uint8_t> {
    if (code >= kFirstByteCode) return {code - kFirstByteCode, 1};
    return {symbols_[code], lengths_[code]};
  };
  const auto offer = [&](std::uint64_t symbol, std::uint8_t length, std::uint64_t times) {
    constexpr std::uint64_t kByteWeight = 8;
    candidates.push_back({times * (length == 1 ? kByteWeight : length), symbol, length});
  };
  std::vector<std::size_t> codes;
  for (std::size_t code = 0; code < kCodes; ++code)
    if (counts.of(code) != 0) codes.push_back(code);
  for (const std::size_t code : codes) {
    const auto [symbol, length] = symbol_of(code);
    offer(symbol, length, counts.of(code));
    if (length == kSymbolBytesMax) continue;
    for (const std::size_t after : codes) {
      if (counts.of(code, after) <= 1) continue;
      const auto [more, more_bytes] = symbol_of(after);
      const auto both = static_cast<std::uint8_t>(
          std::min<std::size_t>(std::size_t{length} + more_bytes, kSymbolBytesMax));
      offer((symbol | more << (8 * length)) & mask_of(both), both, counts.of(code, after));
    }
  }
  const auto is_same = [](const Candidate& a, const Candidate& b) {
    return a.symbol == b.symbol && a.length == b.length;
  };
  std::ranges::sort(candidates, [](const Candidate& a, const Candidate& b) {
    return std::pair(a.symbol, a.length) < std::pair(b.symbol, b.length);
  });
  std::vector<Candidate> joined;
  for (const Candidate& one : candidates) {
    if (!joined.empty() && is_same(joined.back(), one))
      joined.back().gain += one.gain;
    else
      joined.push_back(one);
  }
  std::ranges::sort(joined, [](const Candidate& a, const Candidate& b) {
    if (a.gain != b.gain) return a.gain > b.gain;
    return std::pair(a.symbol, a.length) < std::pair(b.symbol, b.length);
  });
  TextSymbols better;
  for (const Candidate& one : joined) {
    if (better.count_ == kSymbolsMax) break;
    better.add(one.symbol, one.length);
  }
  better.index();
  return better;
}

TextSymbols TextSymbols::of(std::span<const std::string_view> texts) {
  const std::vector<std::string_view> sample = sample_of(texts);
  std::uint64_t bytes = 0;
  for (const std::string_view text : sample) bytes += text.size();
  TextSymbols symbols;
  Counts counts;
  for (int round = 0; round < kRounds; ++round) {
    counts.clear();
    for (const std::string_view text : sample) symbols.count(text, counts);
    if (round == kRoundsOfNoise && counts.bytes() * 100 > bytes * kPercentOfNoise) break;
    symbols = symbols.next(counts);
  }
  return symbols;
}

std::uint64_t TextSymbolsView::bytes_of(std::span<const std::uint8_t> codes) const noexcept {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    if (codes[i] != TextSymbols::kEscape) {
      bytes += safe_length(codes[i]);
    } else if (++i < codes.size()) {
      ++bytes;
    }
  }
  return bytes;
}

char* TextSymbolsView::decode(std::span<const std::uint8_t> codes, char* out) const noexcept {
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const std::uint8_t code = codes[i];
    if (__builtin_expect(code != TextSymbols::kEscape, 1)) {
      const std::size_t length = safe_length(code);
      if (length == 0) continue;
      std::memcpy(out, words_ + std::size_t{code} * 8, 8);
      out += length;
    } else if (++i < codes.size()) {
      *out++ = static_cast<char>(codes[i]);
    }
  }
  return out;
}

}  // namespace flugs::columns
