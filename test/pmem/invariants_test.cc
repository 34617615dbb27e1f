// The checks of pmem/ fire.

#include "pmem/pool/found_words.h"
#include "pmem/pool/pool.h"
#include "pmem/space/chunk_list.h"
#include "pmem/space/claim_map.h"
#include "pmem/space/extent_allocator.h"
#include "pmem/space/free_map.h"
#include "test/support/check_fires.h"
#include "test/support/temporary_pool.h"

namespace flugs::test {

TEST_CASE("the checks of free and claimed space fire", "[pmem]") {
  using namespace pmem;
  FreeMap free;
  FLUGS_CHECK_FIRES("bytes != 0", free.take(0));
  FLUGS_CHECK_FIRES("piece.bytes != 0", free.add({64, 0}));
  ClaimMap claims;
  FLUGS_CHECK_FIRES("piece.bytes != 0", claims.add({64, 0}));
  FLUGS_CHECK_FIRES("- piece.offset", claims.add({64, ~std::uint64_t{0}}));
  FLUGS_CHECK_FIRES("begin <= end", claims.for_each_gap(2, 1, [](Extent) {}));
}

TEST_CASE("the checks of a pool fire", "[pmem]") {
  using namespace pmem;
  PoolBuffer buffer(std::size_t{4} << 20);
  PoolOptions options;
  options.segment_bytes = std::uint64_t{1} << 20;
  auto pool = Pool::create_in_memory(buffer.span(), options);
  REQUIRE(pool.ok());
  Persister persister((*pool)->medium());
  auto extent = (*pool)->allocator().allocate(4096, persister);
  REQUIRE(extent.ok());
  persister.fence("extent-zero/1");
  FLUGS_CHECK_FIRES("arena_of(extent) != nullptr",
                    (*pool)->allocator().release({std::uint64_t{3} << 20, 4096}));
  FLUGS_CHECK_FIRES("free_.add(extent)", [&] {
    (*pool)->allocator().release(*extent);
    (*pool)->allocator().release(*extent);
  }());
  FLUGS_CHECK_FIRES("has_unfenced_flushes", [&] {
    Persister other((*pool)->medium());
    other.flush((*pool)->base(), 8, "extent-zero/1");
  }());
  FLUGS_CHECK_FIRES("persisters_.empty()", pool->reset());
  FLUGS_CHECK_FIRES("found_words_ == nullptr", [&] {
    const FoundWords first(**pool);
    const FoundWords second(**pool);
  }());
  auto& layout = *reinterpret_cast<ChunkListLayout*>((*pool)->application_root());
  ChunkList list(**pool, layout, "a list");
  FLUGS_CHECK_FIRES("is_pointer", list.append({65, 64}, persister));
  FLUGS_CHECK_FIRES("is_pointer", list.append({0, 64}, persister));
  FLUGS_CHECK_FIRES("tags_ == Tags::kLikeBefore", list.append(*extent, persister, 1));
  FLUGS_CHECK_FIRES("index < count_", list.replace(0, *extent, persister));
  if (kHasDebugChecks) FLUGS_CHECK_FIRES("index <= count_", list.offset(1));
}

}  // namespace flugs::test
