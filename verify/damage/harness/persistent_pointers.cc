// A small pool with any bytes in the structures whose pointers are followed: chunk lists, string
// heap, dictionary. They are accepted or refused, and all accesses are inside the pool.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "columns/cells/column_layout.h"
#include "columns/column/column.h"
#include "pmem/pool/pool.h"
#include "pmem/pool/pool_format.h"
#include "verify/damage/guarded_buffer.h"

namespace {

using namespace flugs;

constexpr std::size_t kPoolBytes = std::size_t{64} << 10;
constexpr std::uint64_t kLayoutOffset = 8192;

/// A pool whose pages have all been touched, with a column's layout in it.
const damage::GuardedBuffer& pristine() {
  static const damage::GuardedBuffer buffer(kPoolBytes);
  static const bool made = [] {
    pmem::PoolOptions options;
    options.segment_bytes = kPoolBytes / 4096 * 4096;
    options.extent_unit_bytes = 512;
    auto pool = pmem::Pool::create_in_memory(buffer.span(), options);
    FLUGS_CHECK(pool.ok());
    pmem::Persister persister((*pool)->medium());
    while ((*pool)->allocator().allocate(4096, persister).ok()) continue;
    return true;
  }();
  FLUGS_CHECK(made);
  return buffer;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const damage::GuardedBuffer buffer(kPoolBytes);
  const auto pool_bytes = buffer.span();
  std::memcpy(pool_bytes.data(), pristine().span().data(), pool_bytes.size());
  if (size < 2) return 0;
  const std::size_t count = std::min(size - 1, pool_bytes.size() - kLayoutOffset);
  std::memcpy(&pool_bytes[kLayoutOffset], data + 1, count);
  auto pool = pmem::Pool::open_in_memory(pool_bytes, pmem::PoolOptions{});
  FLUGS_CHECK(pool.ok());
  auto& layout = *reinterpret_cast<columns::ColumnLayout*>(&pool_bytes[kLayoutOffset]);
  layout.type = static_cast<std::uint8_t>(1 + data[0] % 9);
  layout.encoding = 1;
  columns::Decoder decoder;
  columns::Column column(**pool, layout, nullptr, decoder, "c", "t");
  if (!column.load().ok()) return 0;
  columns::Dictionary& dictionary = column.dictionary();
  columns::Dictionary::RebuildCounts counts;
  pmem::Persister persister((*pool)->medium());
  if (!dictionary.begin_rebuild().ok()) return 0;
  columns::HashIndexBuilder builder(dictionary.index(), dictionary.rebuild_end(), 1);
  dictionary.rebuild_range(0, dictionary.rebuild_end(), builder.source(0), counts, persister);
  persister.fence("rebuild_dictionary/1");
  for (std::size_t group = 0; group < builder.groups(); ++group) builder.insert_group(group);
  static_cast<void>(dictionary.finish_rebuild(counts));
  std::size_t sum = 0;
  for (std::uint32_t code = 0; code < dictionary.count(); ++code)
    sum += dictionary.value(code).as_string().size();
  FLUGS_CHECK(sum <= pool_bytes.size() * std::uint64_t{dictionary.count()});
  return 0;
}
