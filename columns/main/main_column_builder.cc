#include "columns/main/main_column_builder.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "base/check.h"
#include "columns/main/main_blocks.h"
#include "columns/main/main_distinct.h"
#include "columns/main/main_kernels.h"
#include "columns/main/text_compressor.h"

namespace flugs::columns {

struct MainColumnBuilder::Plan {
  MainColumnFacts facts;
  MainEncodingChoice choice;
  MainColumnLayout layout{};  // all fields but the offsets of the parts and the checksums
  std::span<const std::int64_t> payloads;
  std::span<const std::uint8_t> nulls;
  std::span<const Cell> cells;
  TextMemory memory;
  std::optional<DistinctValues> distinct;  // sorted, if codes have entries
  std::unique_ptr<TextCompressor> compressed;
  std::size_t min_row = 0;  // of texts
  std::size_t max_row = 0;

  bool is_text() const noexcept { return is_text_type(facts.type); }
  bool is_null(std::size_t row) const noexcept {
    return is_text() ? cells[row].is_null : !nulls.empty() && nulls[row] != 0;
  }
  bool equals_previous(std::size_t row) const noexcept {
    FLUGS_DCHECK(row != 0 && row < facts.rows);
    const bool null = is_null(row);
    if (null || is_null(row - 1)) return null && is_null(row - 1);
    return is_text() ? is_same_text(cells[row], cells[row - 1], memory)
                     : payloads[row] == payloads[row - 1];
  }
  // The code of a row, with any encoding that has codes.
  std::uint64_t code(std::size_t row) const noexcept {
    if (choice.has_entries) return distinct->rows()[row];
    return is_null(row) ? 0 : static_cast<std::uint64_t>(payloads[row]) - layout.base;
  }

  void look_at_integers() noexcept;
  void look_at_texts() noexcept;
  void choose(MainEncodings allowed);
  void compress(bool whatever_it_costs);
  void write_entries(std::byte* at) const noexcept;
  void write_runs(std::byte* ends, std::byte* starts) const noexcept;
  void write_codes(std::byte* at) const noexcept;
  void write_plain_codes(std::byte* at) const noexcept;
  void write_cells(std::byte* at) const noexcept;
  void write_null_bits(std::byte* at) const noexcept;
  void write_compressed(std::byte* begin, const MainColumnParts& parts) const noexcept;
};

namespace {

// Packs codes LSB first, one behind the other.
class Packer {
 public:
  Packer(std::byte* at, unsigned bits) noexcept : at_(at), bits_(bits) {
    FLUGS_CHECK(is_code_width(bits) && bits < 64);
  }
  void append(std::uint64_t code) noexcept {
    FLUGS_DCHECK(code >> bits_ == 0);
    word_ |= code << used_;
    used_ += bits_;
    if (used_ < 64) return;
    put();
    used_ -= 64;
    word_ = used_ != 0 ? code >> (bits_ - used_) : 0;
  }
  void finish() noexcept {
    if (used_ != 0) put();
  }

 private:
  void put() noexcept {
    std::memcpy(at_, &word_, 8);
    at_ += 8;
  }

  std::byte* at_;
  std::uint64_t word_ = 0;
  unsigned used_ = 0;
  unsigned bits_;
};

}  // namespace

void MainColumnBuilder::Plan::look_at_integers() noexcept {
  const bool is_double = facts.type == Type::kDouble;
  std::int64_t min = std::numeric_limits<std::int64_t>::max();
  std::int64_t max = std::numeric_limits<std::int64_t>::min();
  facts.runs = 1;
  for (std::size_t row = 0; row < payloads.size(); ++row) {
    if (row != 0) facts.runs += equals_previous(row) ? 0 : 1;
    if (is_null(row)) {
      ++facts.nulls;
      continue;
    }
    const std::int64_t x = is_double ? ordered_double(payloads[row]) : payloads[row];
    min = std::min(min, x);
    max = std::max(max, x);
  }
  if (facts.nulls == facts.rows) return;
  facts.spread = static_cast<std::uint64_t>(max) - static_cast<std::uint64_t>(min);
  layout.min[0] = static_cast<std::uint64_t>(is_double ? ordered_double(min) : min);
  layout.max[0] = static_cast<std::uint64_t>(is_double ? ordered_double(max) : max);
}

void MainColumnBuilder::Plan::look_at_texts() noexcept {
  const Cell* min = nullptr;
  const Cell* max = nullptr;
  std::uint64_t min_prefix = 0;
  std::uint64_t max_prefix = 0;
  facts.runs = 1;
  for (std::size_t row = 0; row < cells.size(); ++row) {
    const bool is_repeated = row != 0 && equals_previous(row);
    if (row != 0 && !is_repeated) ++facts.runs;
    facts.nulls += is_null(row) ? 1 : 0;
    if (is_repeated || is_null(row)) continue;
    const std::string_view text = text_of(cells[row], memory);
    const std::uint64_t prefix = prefix_of(text);
    if (min == nullptr || prefix < min_prefix ||
        (prefix == min_prefix && text < text_of(*min, memory))) {
      min = &cells[row];
      min_prefix = prefix;
    }
    if (max == nullptr || prefix > max_prefix ||
        (prefix == max_prefix && text > text_of(*max, memory))) {
      max = &cells[row];
      max_prefix = prefix;
    }
  }
  if (min == nullptr) return;
  min_row = static_cast<std::size_t>(min - cells.data());
  max_row = static_cast<std::size_t>(max - cells.data());
  layout.min[0] = min->low;
  layout.min[1] = min->high;
  layout.max[0] = max->low;
  layout.max[1] = max->high;
}

void MainColumnBuilder::Plan::choose(MainEncodings allowed) {
  if (const std::uint64_t limit = distinct_limit(facts, allowed); limit != 0) {
    distinct = is_text() ? DistinctValues::of_texts(cells, memory, limit)
                         : DistinctValues::of_integers(payloads, nulls, limit);
    facts.distinct = distinct ? distinct->count() : 0;
  }
  choice = choose_encoding(facts, allowed);
  FLUGS_CHECK(!choice.has_entries || distinct.has_value());
  FLUGS_CHECK(choice.code_bits == 0 || is_code_width(choice.code_bits));
  if (choice.has_entries)
    distinct->sort(facts.type, memory, facts.nulls != 0);
  else
    distinct.reset();
  if (is_text() && choice.encoding == MainEncoding::kPlain &&
      allowed.has(MainEncoding::kCompressed))
    compress(allowed.is_only_one());
  layout.type = static_cast<std::uint8_t>(facts.type);
  layout.encoding = static_cast<std::uint8_t>(choice.encoding);
  layout.code_bits = static_cast<std::uint8_t>(choice.code_bits);
  layout.row_count = facts.rows;
  layout.null_count = facts.nulls;
  if (choice.encoding == MainEncoding::kRunLength) layout.run_count = facts.runs;
  if (choice.encoding == MainEncoding::kConstant) {
    layout.code_count = 1;
    layout.base = is_text() ? 0 : layout.min[0];
  } else if (choice.has_entries) {
    layout.code_count = codes_for_entries(facts);
    layout.entry_count = static_cast<std::uint32_t>(layout.code_count);
  } else if (choice.encoding != MainEncoding::kPlain) {
    layout.code_count = codes_for_payloads(facts);
    layout.base = layout.min[0] - (facts.nulls != 0 ? 1 : 0);
  }
  layout.parts_bytes = MainColumnParts::of(layout).bytes;
}

// Compressed texts are read more slowly than cells, so they must save much.
void MainColumnBuilder::Plan::compress(bool whatever_it_costs) {
  constexpr std::uint64_t kPercentMax = 40;
  auto made = whatever_it_costs ? TextCompressor::of(cells, memory)
                                : TextCompressor::of(cells, memory, kPercentMax);
  if (made == nullptr) return;
  compressed = std::move(made);
  choice = {MainEncoding::kCompressed, false, compressed->length_bits()};
  layout.symbol_count = static_cast<std::uint32_t>(compressed->symbols().count());
  layout.text_bytes = compressed->text_bytes();
  layout.min[0] = min_row;
  layout.max[0] = max_row;
  layout.min[1] = layout.max[1] = 0;
}

void MainColumnBuilder::Plan::write_compressed(std::byte* begin,
                                               const MainColumnParts& parts) const noexcept {
  compressed->symbols().store(begin + parts.symbols);
  Packer packer(begin + parts.codes, choice.code_bits);
  std::uint64_t at = 0;
  for (std::size_t row = 0; row < facts.rows; ++row) {
    if (row % kRowsPerTextStart == 0)
      std::memcpy(begin + parts.starts + row / kRowsPerTextStart * 8, &at, 8);
    const std::uint64_t length = compressed->length(row);
    packer.append(length);
    at += length == 0 ? 0 : length - 1;
  }
  packer.finish();
  FLUGS_CHECK(at == layout.text_bytes);
  if (at != 0) std::memcpy(begin + parts.texts, compressed->texts().data(), at);
}

void MainColumnBuilder::Plan::write_entries(std::byte* at) const noexcept {
  const std::size_t entry_bytes = is_text() ? 16 : 8;
  const auto put = [&](const Cell& cell) {
    std::memcpy(at, &cell, entry_bytes);
    at += entry_bytes;
  };
  FLUGS_CHECK(layout.entry_count == distinct->count() + (facts.nulls != 0 ? 1 : 0));
  if (facts.nulls != 0) put({});
  for (const Cell& entry : distinct->entries()) put(entry);
}

void MainColumnBuilder::Plan::write_runs(std::byte* ends, std::byte* starts) const noexcept {
  std::uint32_t run = 0;
  const auto put = [](std::byte* words, std::size_t i, std::uint32_t word) {
    std::memcpy(words + i * 4, &word, 4);
  };
  for (std::uint32_t row = 0; row < facts.rows; ++row) {
    if (row != 0 && !equals_previous(row)) put(ends, run++, row);
    constexpr std::uint32_t kLog2 = MainColumnLayout::kRowsPerRunStartLog2;
    if (row % (1u << kLog2) == 0) put(starts, row >> kLog2, run);
  }
  put(ends, run, facts.rows);
  FLUGS_CHECK(run + 1 == facts.runs);
}

void MainColumnBuilder::Plan::write_codes(std::byte* at) const noexcept {
  Packer packer(at, choice.code_bits);
  if (choice.encoding == MainEncoding::kRunLength) {
    for (std::size_t row = 0; row < facts.rows; ++row)
      if (row == 0 || !equals_previous(row)) packer.append(code(row));
  } else if (choice.has_entries) {
    for (const std::uint32_t code : distinct->rows()) packer.append(code);
  } else if (nulls.empty()) {
    for (const std::int64_t payload : payloads)
      packer.append(static_cast<std::uint64_t>(payload) - layout.base);
  } else {
    for (std::size_t row = 0; row < facts.rows; ++row) packer.append(code(row));
  }
  packer.finish();
}

void MainColumnBuilder::Plan::write_plain_codes(std::byte* at) const noexcept {
  for (std::size_t row = 0; row < facts.rows; ++row) {
    std::int64_t payload = is_null(row) ? 0 : payloads[row];
    if (facts.type == Type::kDouble) payload = ordered_double(payload);
    std::memcpy(at + row * 8, &payload, 8);
  }
}

void MainColumnBuilder::Plan::write_cells(std::byte* at) const noexcept {
  for (const Cell& cell : cells) {
    const Cell null{0, std::uint64_t{MainColumnLayout::kNullTag} << 56, true};
    std::memcpy(at, cell.is_null ? &null : &cell, 16);
    at += 16;
  }
}

void MainColumnBuilder::Plan::write_null_bits(std::byte* at) const noexcept {
  for (std::size_t row = 0; row < facts.rows; row += 64) {
    std::uint64_t word = 0;
    for (std::size_t i = row; i < std::min<std::size_t>(row + 64, facts.rows); ++i)
      word |= std::uint64_t{is_null(i)} << (i - row);
    std::memcpy(at + row / 8, &word, 8);
  }
}

MainColumnBuilder MainColumnBuilder::of_integers(Type type, std::span<const std::int64_t> payloads,
                                                 std::span<const std::uint8_t> nulls,
                                                 MainEncodings allowed) {
  FLUGS_CHECK(!is_text_type(type) && !payloads.empty());
  FLUGS_CHECK(payloads.size() <= MainColumnLayout::kRowsMax);
  FLUGS_CHECK(nulls.empty() || nulls.size() == payloads.size());
  auto plan = std::make_unique<Plan>();
  plan->facts.type = type;
  plan->facts.rows = static_cast<std::uint32_t>(payloads.size());
  plan->payloads = payloads;
  plan->nulls = nulls;
  plan->look_at_integers();
  plan->choose(allowed);
  return MainColumnBuilder(std::move(plan));
}

MainColumnBuilder MainColumnBuilder::of_texts(Type type, std::span<const Cell> cells,
                                              TextMemory memory, MainEncodings allowed) {
  FLUGS_CHECK(is_text_type(type) && !cells.empty());
  FLUGS_CHECK(cells.size() <= MainColumnLayout::kRowsMax);
  auto plan = std::make_unique<Plan>();
  plan->facts.type = type;
  plan->facts.rows = static_cast<std::uint32_t>(cells.size());
  plan->cells = cells;
  plan->memory = memory;
  plan->look_at_texts();
  plan->choose(allowed);
  return MainColumnBuilder(std::move(plan));
}

MainColumnBuilder::MainColumnBuilder(std::unique_ptr<Plan> plan) noexcept
    : plan_(std::move(plan)) {}
MainColumnBuilder::MainColumnBuilder(MainColumnBuilder&&) noexcept = default;
MainColumnBuilder& MainColumnBuilder::operator=(MainColumnBuilder&&) noexcept = default;
MainColumnBuilder::~MainColumnBuilder() = default;

MainEncoding MainColumnBuilder::encoding() const noexcept { return plan_->choice.encoding; }
const MainColumnLayout& MainColumnBuilder::layout() const noexcept { return plan_->layout; }
std::uint64_t MainColumnBuilder::parts_bytes() const noexcept { return plan_->layout.parts_bytes; }

void MainColumnBuilder::set_edition(std::uint16_t edition) noexcept {
  FLUGS_CHECK(edition <= 0xFF);
  plan_->layout.edition = static_cast<std::uint8_t>(edition);
}

void MainColumnBuilder::write(std::byte* group, std::uint64_t parts_offset,
                              MainColumnLayout& layout) const {
  FLUGS_CHECK(parts_offset % 64 == 0 && reinterpret_cast<std::uintptr_t>(group) % 64 == 0);
  const Plan& plan = *plan_;
  MainColumnLayout written = plan.layout;
  written.parts_offset = parts_offset;
  std::byte* const begin = group + parts_offset;
  std::memset(begin, 0, written.parts_bytes);
  const MainColumnParts parts = MainColumnParts::of(written);
  if (written.entry_count != 0) plan.write_entries(begin + parts.entries);
  if (written.run_count != 0) plan.write_runs(begin + parts.run_ends, begin + parts.run_starts);
  if (plan.compressed != nullptr) {
    plan.write_compressed(begin, parts);
  } else if (plan.choice.encoding != MainEncoding::kPlain) {
    if (written.code_bits != 0) plan.write_codes(begin + parts.codes);
  } else if (plan.is_text()) {
    plan.write_cells(begin + parts.cells);
  } else {
    plan.write_plain_codes(begin + parts.codes);
    if (written.null_count != 0) plan.write_null_bits(begin + parts.null_bits);
  }
  written.parts_checksum = XXH3_64bits(begin, written.parts_bytes);
  written.checksum = XXH3_64bits(&written, offsetof(MainColumnLayout, checksum));
  std::memcpy(&layout, &written, sizeof layout);
}

}  // namespace flugs::columns
