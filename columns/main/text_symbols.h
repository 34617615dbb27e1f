#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace flugs::columns {

/// A table of up to 255 symbols of one to eight bytes, made for the texts of one column of a row
/// group, and the texts as codes of a byte each. A code is a symbol's number, or kEscape before a
/// byte that begins no symbol. Each text is compressed for itself, so one text is read without its
/// neighbours. Source: FSST (Boncz, Neumann, Leis; VLDB 2020).
/// Thread-safety: one thread makes a table; then any thread.
class TextSymbols {
 public:
  static constexpr std::size_t kSymbolsMax = 255;
  static constexpr std::size_t kSymbolBytesMax = 8;
  static constexpr std::uint8_t kEscape = 255;

  /// Symbols that make texts like these short. Reads a sample of them.
  static TextSymbols of(std::span<const std::string_view> texts);

  std::size_t count() const noexcept { return count_; }
  /// Bytes of a table of so many symbols in a pool.
  static constexpr std::uint64_t stored_bytes(std::uint64_t count) noexcept {
    return count * (kSymbolBytesMax + 1);
  }
  /// Writes the table as TextSymbolsView reads it.
  void store(std::byte* at) const noexcept;

  /// Appends the codes of a text.
  void compress(std::string_view text, std::vector<std::uint8_t>& out) const;

 private:
  /// A symbol of three bytes or more, found by its first three bytes.
  struct Long {
    std::uint64_t symbol = 0;
    std::uint64_t mask = 0;  ///< of its bytes; 0: none
    std::uint8_t code = 0;
    std::uint8_t length = 0;
  };
  /// The symbol of at most two bytes that texts with these two first bytes begin with.
  struct Short {
    std::uint8_t code = kEscape;
    std::uint8_t length = 0;  ///< 0: none
  };
  class Counts;
  static constexpr std::size_t kLongSlots = 4096;
  static std::size_t slot_of(std::uint64_t symbol) noexcept {
    return ((symbol & 0xFFFFFF) * 0x9E3779B97F4A7C15u) >> 52;
  }

  TextSymbols();
  /// False: a better symbol has its place.
  bool add(std::uint64_t symbol, std::uint8_t length);
  void index();
  /// The longest symbol that `word` begins with, whose first `bytes` bytes count; length 0: none.
  Short find(std::uint64_t word, std::size_t bytes) const noexcept;
  TextSymbols next(const Counts& counts) const;
  void count(std::string_view text, Counts& counts) const;

  std::array<std::uint64_t, kSymbolsMax> symbols_{};
  std::array<std::uint8_t, kSymbolsMax> lengths_{};
  std::size_t count_ = 0;
  std::vector<Long> longs_;
  std::vector<Short> shorts_;
};

/// A table of symbols in a pool, and the reading of compressed texts. Bytes of the pool are not
/// trusted: a code without a symbol stands for no byte.
/// Thread-safety: any thread.
class TextSymbolsView {
 public:
  TextSymbolsView() = default;
  /// `words` are `count` symbols of eight bytes; behind them are their lengths, a byte each.
  TextSymbolsView(const std::byte* words, std::uint32_t count) noexcept
      : words_(words), count_(count) {}

  /// The number of bytes that the codes stand for.
  std::uint64_t bytes_of(std::span<const std::uint8_t> codes) const noexcept;
  /// Writes them; up to kSlack bytes behind them are overwritten as well. Returns their end.
  char* decode(std::span<const std::uint8_t> codes, char* out) const noexcept;
  static constexpr std::size_t kSlack = TextSymbols::kSymbolBytesMax;

  std::uint32_t count() const noexcept { return count_; }
  std::uint8_t length(std::uint32_t i) const noexcept {
    return static_cast<std::uint8_t>(words_[std::size_t{count_} * 8 + i]);
  }

 private:
  std::size_t safe_length(std::uint8_t code) const noexcept {
    if (code >= count_) return 0;
    const std::uint8_t length = this->length(code);
    return length <= TextSymbols::kSymbolBytesMax ? length : 0;
  }

  const std::byte* words_ = nullptr;
  std::uint32_t count_ = 0;
};

}  // namespace flugs::columns
