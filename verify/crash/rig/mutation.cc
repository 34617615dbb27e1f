#include "verify/crash/rig/mutation.h"

#include "columns/cells/column_layout.h"
#include "columns/index/hint_index_layout.h"
#include "mvcc/transaction_slots_layout.h"
#include "pmem/pool/pool_format.h"
#include "tables/catalog/catalog_layout.h"

namespace flugs::crash {

namespace {

/// Reads the pool as a map; structures that are not complete yet are left out.
class PoolMap {
 public:
  explicit PoolMap(std::span<const std::byte> memory) : memory_(memory) {}

  template <typename T>
  const T* at(std::uint64_t offset) const {
    if (offset == 0 || offset > memory_.size() - sizeof(T)) return nullptr;
    return reinterpret_cast<const T*>(memory_.data() + offset);
  }

  /// Offset of the chunk of the list that `offset` is in or behind; 0: none.
  std::uint64_t chunk_before(const pmem::ChunkListLayout& list, std::uint64_t offset) const {
    std::uint64_t best = 0;
    const auto consider = [&](std::uint64_t pointer) {
      const std::uint64_t chunk = pointer & pmem::ChunkListLayout::kOffsetMask;
      if (chunk <= offset && chunk > best) best = chunk;
    };
    for (const std::uint64_t chunk : list.inline_chunks) consider(chunk);
    const auto* leaves = at<std::uint64_t>(list.root_page);
    if (leaves == nullptr) return best;
    for (std::size_t i = 0; i < pmem::ChunkListLayout::kPagePointers; ++i) {
      const auto* chunks = at<std::uint64_t>(leaves[i]);
      if (chunks == nullptr) break;
      for (std::size_t j = 0; j < pmem::ChunkListLayout::kPagePointers; ++j) consider(chunks[j]);
    }
    return best;
  }

  Region slot_region(std::uint64_t array_offset, std::uint64_t offset) const {
    const auto* array = at<mvcc::SlotArrayLayout>(array_offset);
    if (array == nullptr) return Region::kOther;
    const std::uint64_t limits = (array->slot_count * 8 + 63) / 64 * 64;
    const std::uint64_t first = array_offset + sizeof *array + limits;
    const std::uint64_t count = array->slot_count * 2;
    if (offset >= first && offset < first + count * sizeof(mvcc::SlotHalfLayout))
      return Region::kSlotHalf;
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto* half = at<mvcc::SlotHalfLayout>(first + i * sizeof(mvcc::SlotHalfLayout));
      if (half == nullptr) break;
      std::uint64_t begin = half->overflow;
      for (const auto* block = at<mvcc::IntentBlockLayout>(begin); block != nullptr;
           block = at<mvcc::IntentBlockLayout>(begin = block->next))
        if (offset >= begin && offset < begin + block->bytes) return Region::kIntentBlock;
    }
    return Region::kOther;
  }

  /// The chunk nearest before the address, among those of all lists, tells its region.
  Region table_region(const engine::CatalogLayout& catalog, std::uint64_t offset) const {
    std::uint64_t best = 0;
    Region region = Region::kOther;
    const auto consider = [&](const pmem::ChunkListLayout& list, Region kind) {
      const std::uint64_t chunk = chunk_before(list, offset);
      if (chunk > best) {
        best = chunk;
        region = kind;
      }
    };
    for (const std::uint64_t entry : catalog.tables) {
      const auto* table = at<engine::TableLayout>(entry);
      if (table == nullptr) continue;
      consider(table->row_chunks, Region::kRow);
      const auto* columns = reinterpret_cast<const columns::ColumnLayout*>(table + 1);
      for (std::size_t i = 0; i < table->column_count; ++i) {
        consider(columns[i].dictionary.chunks, Region::kDictionary);
        consider(columns[i].heap.chunks, Region::kText);
      }
      if (table->hints_offset == 0) continue;
      const auto* hints = at<columns::HintIndexLayout>(entry + table->hints_offset);
      const auto* end = reinterpret_cast<const std::byte*>(table) + table->bytes;
      for (; hints != nullptr && reinterpret_cast<const std::byte*>(hints + 1) <= end; ++hints)
        consider(hints->slabs, Region::kHint);
    }
    return region;
  }

 private:
  std::span<const std::byte> memory_;
};

}  // namespace

std::string to_string(Region region) {
  switch (region) {
    case Region::kOther:
      return "other";
    case Region::kSlotHalf:
      return "slot";
    case Region::kIntentBlock:
      return "intents";
    case Region::kRow:
      return "row";
    case Region::kDictionary:
      return "dictionary";
    case Region::kText:
      return "text";
    case Region::kHint:
      return "hint";
  }
  return "unknown";
}

Region region_of(std::span<const std::byte> memory, const void* address) {
  const PoolMap map(memory);
  const auto offset =
      static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - memory.data());
  const auto& root = *reinterpret_cast<const engine::DatabaseLayout*>(
      reinterpret_cast<const pmem::PoolRoot*>(memory.data())->application_root.data());
  const Region slots = map.slot_region(root.slot_array, offset);
  if (slots != Region::kOther) return slots;
  const auto* catalog = map.at<engine::CatalogLayout>(root.catalog);
  return catalog == nullptr ? Region::kOther : map.table_region(*catalog, offset);
}

}  // namespace flugs::crash
