#include <fmt/format.h>
#include <xxhash.h>

#include <cstring>

#include "columns/main/main_column.h"

namespace flugs::columns {
namespace {

constexpr std::size_t kChecksummedBytes = offsetof(MainColumnLayout, checksum);

}  // namespace

// Checks one layout; errors say what is wrong, and where.
class MainColumnChecker {
 public:
  MainColumnChecker(const MainColumnLayout& layout, std::span<const std::byte> group,
                    const MainColumnOwner& owner)
      : layout_(layout), group_(group), owner_(owner) {}

  Status run() const {
    const std::uint64_t checksum = XXH3_64bits(&layout_, kChecksummedBytes);
    if (checksum != layout_.checksum)
      return wrong(fmt::format("checksum {:#x}", checksum), fmt::format("{:#x}", layout_.checksum));
    if (layout_.type != static_cast<std::uint8_t>(owner_.type))
      return wrong(fmt::format("type {}", static_cast<int>(owner_.type)),
                   fmt::format("{}", layout_.type));
    if (layout_.row_count != owner_.row_count || layout_.row_count == 0 ||
        layout_.row_count > MainColumnLayout::kRowsMax)
      return wrong(fmt::format("{} rows", owner_.row_count), fmt::format("{}", layout_.row_count));
    if (layout_.null_count > layout_.row_count)
      return wrong(fmt::format("at most {} NULLs", layout_.row_count),
                   fmt::format("{}", layout_.null_count));
    if (!shape_is_right())
      return wrong(
          "widths and counts of an encoding",
          fmt::format("encoding {}, {} bits, {} codes from {}, {} entries, {} runs, "
                      "{} NULLs",
                      layout_.encoding, layout_.code_bits, layout_.code_count, layout_.base,
                      layout_.entry_count, layout_.run_count, layout_.null_count));
    return check_place();
  }

  Status wrong(const std::string& expected, const std::string& found) const {
    const auto* at = reinterpret_cast<const std::byte*>(&layout_);
    const bool is_inside = at >= group_.data() && at < group_.data() + group_.size();
    const std::uint64_t offset =
        owner_.group_offset + (is_inside ? static_cast<std::uint64_t>(at - group_.data()) : 0);
    return Status(StatusCode::kCorrupt, fmt::format("{}: offset {}: expected {}, found {}",
                                                    owner_.name, offset, expected, found));
  }

 private:
  bool is_text() const { return is_text_type(owner_.type); }
  std::uint64_t first_code() const { return layout_.null_count != 0 ? 1 : 0; }

  Status check_place() const {
    const std::uint64_t bytes = MainColumnParts::of(layout_).bytes;
    if (layout_.parts_bytes != bytes)
      return wrong(fmt::format("{} bytes of parts", bytes), fmt::format("{}", layout_.parts_bytes));
    if (layout_.parts_offset % 64 != 0 || layout_.parts_offset > group_.size() ||
        bytes > group_.size() - layout_.parts_offset)
      return wrong(fmt::format("parts inside the {} bytes of the group", group_.size()),
                   fmt::format("{} bytes at {}", bytes, layout_.parts_offset));
    return {};
  }

  bool shape_is_right() const {
    const bool has_runs = layout_.run_count != 0;
    switch (static_cast<MainEncoding>(layout_.encoding)) {
      case MainEncoding::kConstant:
        return layout_.code_bits == 0 && layout_.code_count == 1 && layout_.entry_count == 0 &&
               !has_runs && (layout_.null_count == 0 || layout_.null_count == layout_.row_count);
      case MainEncoding::kPacked:
        return !has_runs && counts_from_base();
      case MainEncoding::kDictionary:
        return !has_runs && counts_entries();
      case MainEncoding::kRunLength:
        return has_runs && layout_.run_count <= layout_.row_count &&
               (layout_.entry_count != 0 ? counts_entries() : counts_from_base());
      case MainEncoding::kPlain:
        return layout_.code_bits == (is_text() ? 0 : 64) && layout_.code_count == 0 &&
               layout_.entry_count == 0 && !has_runs && layout_.null_count < layout_.row_count;
      case MainEncoding::kCompressed:
        return is_text() && is_code_width(layout_.code_bits) && layout_.code_bits <= 60 &&
               layout_.code_count == 0 && layout_.entry_count == 0 && !has_runs &&
               layout_.null_count < layout_.row_count &&
               layout_.symbol_count <= TextSymbols::kSymbolsMax &&
               layout_.text_bytes <= group_.size() && layout_.min[0] < layout_.row_count &&
               layout_.max[0] < layout_.row_count;
    }
    return false;
  }
  bool codes_fit(unsigned bits_max) const {
    return is_code_width(layout_.code_bits) && layout_.code_bits <= bits_max &&
           layout_.null_count < layout_.row_count && layout_.code_count > first_code() &&
           layout_.code_count - 1 <= PackedCodes{nullptr, layout_.code_bits}.mask();
  }
  bool counts_entries() const {
    return codes_fit(32) && layout_.entry_count == layout_.code_count && layout_.base == 0;
  }
  bool counts_from_base() const {
    return codes_fit(60) && !is_text() && owner_.type != Type::kDouble &&
           layout_.entry_count == 0 && layout_.base == layout_.min[0] - first_code() &&
           layout_.code_count == layout_.max[0] - layout_.base + 1;
  }

  const MainColumnLayout& layout_;
  std::span<const std::byte> group_;
  const MainColumnOwner& owner_;
};

// Checks the parts in full, once the layout and the checksum of the parts are right. This also
// finds mistakes of the writer, for which the checksum would vouch.
class MainColumnAuditor {
 public:
  MainColumnAuditor(const MainColumnLayout& layout, const std::byte* group, TextMemory memory,
                    const MainColumnChecker& checker)
      : layout_(layout),
        memory_(memory),
        texts_(MainColumn::compressed_texts(layout, group)),
        column_(layout, group, memory, &read_texts_),
        checker_(checker) {
    read_texts_.begin(texts_, read_text_memory_);
  }

  Status run() const {
    if (Status s = check_runs(); !s.ok()) return s;
    if (Status s = check_entries(); !s.ok()) return s;
    if (column_.owns_texts())
      if (Status s = check_compressed(); !s.ok()) return s;
    return check_rows();
  }

 private:
  Status check_runs() const {
    std::uint32_t begin = 0;
    for (std::uint32_t run = 0; run < column_.runs().count(); ++run) {
      const std::uint32_t end = column_.runs().stored_end(run);
      if (end <= begin || end > column_.row_count())
        return checker_.wrong(fmt::format("an end of run {} behind row {}", run, begin),
                              fmt::format("{}", end));
      constexpr std::uint32_t kLog2 = MainColumnLayout::kRowsPerRunStartLog2;
      for (std::uint32_t step = (begin + (1u << kLog2) - 1) >> kLog2; step << kLog2 < end; ++step)
        if (column_.runs().stored_start(step) != run)
          return checker_.wrong(fmt::format("row {} in run {}", step << kLog2, run),
                                fmt::format("run {}", column_.runs().stored_start(step)));
      begin = end;
    }
    if (!column_.runs().empty() && begin != column_.row_count())
      return checker_.wrong(fmt::format("{} rows in runs", column_.row_count()),
                            fmt::format("{}", begin));
    return {};
  }

  Status check_entries() const {
    if (!column_.has_entries()) return {};
    for (std::uint64_t code = 0; code < column_.code_count(); ++code) {
      if (!is_plausible_entry(code))
        return checker_.wrong("text in the pool",
                              fmt::format("text outside the pool in entry {}", code));
      const std::uint64_t first = column_.has_nulls() ? 1 : 0;
      if (code > first && !is_less(column_.entry_value(code - 1), column_.entry_value(code)))
        return checker_.wrong("ascending entries",
                              fmt::format("entry {} not above the entry before it", code));
    }
    return {};
  }

  // Symbols have one to eight bytes, each text begins where the one before it ends, and each of its
  // codes has a symbol.
  Status check_compressed() const {
    const TextSymbolsView& symbols = texts_.symbols();
    for (std::uint32_t i = 0; i < symbols.count(); ++i)
      if (symbols.length(i) == 0 || symbols.length(i) > TextSymbols::kSymbolBytesMax)
        return checker_.wrong(fmt::format("symbol {} of 1 to 8 bytes", i),
                              fmt::format("{}", symbols.length(i)));
    std::uint64_t at = 0;
    for (std::uint32_t row = 0; row < texts_.row_count(); ++row) {
      if (row % kRowsPerTextStart == 0 && texts_.start(row / kRowsPerTextStart) != at)
        return checker_.wrong(fmt::format("text of row {} at {}", row, at),
                              fmt::format("{}", texts_.start(row / kRowsPerTextStart)));
      const std::uint64_t stored = texts_.stored_length(row);
      const std::uint64_t bytes = stored == 0 ? 0 : stored - 1;
      const std::span<const std::uint8_t> codes = texts_.all_codes();
      if (bytes > codes.size() - at || !has_symbols(codes.subspan(at, bytes)))
        return checker_.wrong(fmt::format("a text of known symbols in row {}", row),
                              fmt::format("{} bytes at {} of {}", bytes, at, codes.size()));
      at += bytes;
    }
    if (at != texts_.all_codes().size())
      return checker_.wrong(fmt::format("{} bytes of texts", texts_.all_codes().size()),
                            fmt::format("{}", at));
    return {};
  }
  bool has_symbols(std::span<const std::uint8_t> codes) const {
    for (std::size_t i = 0; i < codes.size(); ++i) {
      if (codes[i] == TextSymbols::kEscape) {
        if (++i == codes.size()) return false;
      } else if (codes[i] >= texts_.symbols().count()) {
        return false;
      }
    }
    return true;
  }

  bool is_plausible_entry(std::uint64_t code) const {
    if (!column_.is_text())
      return code != 0 || !column_.has_nulls() || column_.entry_integer(0) == 0;
    const std::byte* cell = column_.domain().entries() + code * 16;
    return is_plausible_cell(cell) &&
           (!column_.entry_is_null(code) || column_.entry_text(code).empty());
  }
  bool is_plausible_cell(const std::byte* cell) const {
    std::uint64_t words[2];
    std::memcpy(words, cell, 16);
    return text_cell::is_plausible(words[0], words[1], memory_.bytes());
  }
  static bool is_null_cell(const std::byte* cell) {
    return cell[15] == std::byte{MainColumnLayout::kNullTag};
  }
  bool is_less(const Value& a, const Value& b) const {
    if (column_.is_text()) return a.as_string() < b.as_string();
    return column_.domain().ordered(a) < column_.domain().ordered(b);
  }

  Status check_rows() const {
    std::uint32_t nulls = 0;
    Value min;
    Value max;
    for (std::uint32_t row = 0; row < column_.row_count(); ++row) {
      if (!is_plausible_row(row))
        return checker_.wrong("a valid code or cell", fmt::format("an invalid one in row {}", row));
      if (column_.is_null(row)) {
        ++nulls;
        continue;
      }
      const Value value = column_.value(row);
      if (min.is_null() || is_less(value, min)) min = value;
      if (max.is_null() || is_less(max, value)) max = value;
    }
    if (nulls != column_.null_count())
      return checker_.wrong(fmt::format("{} NULLs", column_.null_count()),
                            fmt::format("{}", nulls));
    if (!(min == column_.min()) || !(max == column_.max()))
      return checker_.wrong(
          fmt::format("values from {} to {}", column_.min().to_string(), column_.max().to_string()),
          fmt::format("{} to {}", min.to_string(), max.to_string()));
    return {};
  }

  bool is_plausible_row(std::uint32_t row) const {
    if (column_.encoding() == MainEncoding::kConstant)
      return !column_.is_text() ||
             is_plausible_cell(reinterpret_cast<const std::byte*>(layout_.min));
    if (column_.cells() != nullptr)
      return is_null_cell(column_.cells() + std::size_t{row} * 16) ||
             is_plausible_cell(column_.cells() + std::size_t{row} * 16);
    if (column_.code_count() == 0) return true;
    const std::uint32_t position = !column_.runs().empty() ? column_.runs().of(row) : row;
    return column_.packed()[position] < column_.code_count();
  }

  const MainColumnLayout& layout_;
  const TextMemory memory_;
  const CompressedTexts texts_;
  ReadTextMemory read_text_memory_;
  mutable ReadTexts read_texts_;
  const MainColumn column_;
  const MainColumnChecker& checker_;
};

Status MainColumn::check(const MainColumnLayout& layout, std::span<const std::byte> group,
                         const MainColumnOwner& owner) {
  return MainColumnChecker(layout, group, owner).run();
}

Status MainColumn::audit(const MainColumnLayout& layout, std::span<const std::byte> group,
                         const MainColumnOwner& owner, TextMemory memory) {
  const MainColumnChecker checker(layout, group, owner);
  if (Status s = checker.run(); !s.ok()) return s;
  const std::uint64_t checksum =
      XXH3_64bits(group.data() + layout.parts_offset, layout.parts_bytes);
  if (checksum != layout.parts_checksum)
    return checker.wrong(
        fmt::format("parts at {} with checksum {:#x}", owner.group_offset + layout.parts_offset,
                    layout.parts_checksum),
        fmt::format("{:#x}", checksum));
  return MainColumnAuditor(layout, group.data(), memory, checker).run();
}

}  // namespace flugs::columns
