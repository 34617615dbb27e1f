// The checks of columns/ fire.

#include <array>
#include <vector>

#include "columns/cells/row_layout.h"
#include "columns/cells/unflushed.h"
#include "columns/column/column_array.h"
#include "columns/index/hash_index_builder.h"
#include "columns/index/ordered_index.h"
#include "columns/main/main_blocks.h"
#include "columns/main/main_column_builder.h"
#include "columns/main/main_distinct.h"
#include "columns/main/main_encoding.h"
#include "test/support/check_fires.h"

namespace flugs::test {

TEST_CASE("the checks of row layouts and columns fire", "[columns]") {
  using namespace columns;
  const std::array<CellNeed, 1> code = {{{CellKind::kCode, 33, false, 0}}};
  FLUGS_CHECK_FIRES("is_possible_width", RowLayout::make(code));
  const std::array<CellNeed, 1> text = {{{CellKind::kText, 64, false, 0}}};
  FLUGS_CHECK_FIRES("is_possible_width", RowLayout::make(text));
  ColumnArray none;
  FLUGS_CHECK_FIRES("i < owned_.size()", none.set_dropped(0));
  FLUGS_CHECK_FIRES("next != nullptr", none.change(0, nullptr, 1));
  FLUGS_CHECK_FIRES("column != nullptr", none.add(nullptr));
  if (!kHasDebugChecks) return;
  Unflushed unflushed;
  FLUGS_CHECK_FIRES("bytes != 0", unflushed.add(&unflushed, 0));
  FLUGS_CHECK_FIRES("index < entries_.size()", unflushed.entries(0));
  FLUGS_CHECK_FIRES("i < size()", none[0]);
  FLUGS_CHECK_FIRES("kInlineBytesMax", text_cell::make_inline("a text of 16 b.."));
}

TEST_CASE("the checks of a main column's builder fire", "[columns]") {
  using namespace columns;
  const std::vector<std::int64_t> payloads = {1, 2, 3};
  const std::vector<std::uint8_t> nulls = {0, 0};
  MainColumnBuilder builder = MainColumnBuilder::of_integers(Type::kInt64, payloads, {});
  alignas(64) std::array<std::byte, 256> group{};
  MainColumnLayout layout{};
  FLUGS_CHECK_FIRES("edition <= 0xFF", builder.set_edition(256));
  FLUGS_CHECK_FIRES("parts_offset % 64", builder.write(group.data(), 8, layout));
  FLUGS_CHECK_FIRES("(group) % 64", builder.write(group.data() + 8, 64, layout));
  FLUGS_CHECK_FIRES("nulls.size()", DistinctValues::of_integers(payloads, nulls, 3));
  FLUGS_CHECK_FIRES("facts.rows != 0", choose_encoding({}, MainEncodings::all()));
  MainColumnFacts facts;
  facts.rows = 3;
  facts.nulls = 4;
  FLUGS_CHECK_FIRES("facts.nulls <= facts.rows", choose_encoding(facts, MainEncodings::all()));
  if (!kHasDebugChecks) return;
  FLUGS_CHECK_FIRES("count <= 64", low_bits(65));
  FLUGS_CHECK_FIRES("bits >= 1", PackedCodes{nullptr, 0}.mask());
  const std::uint64_t words[2] = {};
  FLUGS_CHECK_FIRES("first % 64 == 0", for_blocks(1, 64, words, [](auto...) {}));
}

TEST_CASE("the checks of indexes fire", "[columns]") {
  using namespace columns;
  HashIndex index;
  FLUGS_CHECK_FIRES("!sources_.empty()", HashIndexBuilder(index, 1, 0));
  HashIndexBuilder builder(index, 1, 2);
  FLUGS_CHECK_FIRES("i < sources_.size()", builder.source(2));
  FLUGS_CHECK_FIRES("group < groups()", builder.insert_group(builder.groups()));
  FLUGS_CHECK_FIRES("payload != 0xFFFFFFFFu",
                    index.edit(1, [](HashIndex::Editor& editor) { editor.insert(0xFFFFFFFFu); }));
  OrderedIndex ordered(nullptr);
  ordered.insert({1, 1});
  FLUGS_CHECK_FIRES("!is_there", ordered.insert({1, 1}));
  if (!kHasDebugChecks) return;
  FLUGS_CHECK_FIRES("builder_ != nullptr", HashIndexBuilder::Source().add(1, 1));
  VersionLock lock;
  FLUGS_CHECK_FIRES("is_locked()", lock.unlock());
  Leaf leaf;
  FLUGS_CHECK_FIRES("lock.is_locked()", leaf.insert(0, {1, 1}));
  FLUGS_CHECK_FIRES("i < kCapacity", leaf.set_entry(kLeafEntries, {1, 1}));
}

}  // namespace flugs::test
