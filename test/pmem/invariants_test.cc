// The checks of pmem/ fire.

#include <fcntl.h>

#include "pmem/journal/batch_waiters.h"
#include "pmem/journal/record_images.h"
#include "pmem/kinds/address_space.h"
#include "pmem/kinds/memory_pool.h"
#include "pmem/kinds/object_maker.h"
#include "pmem/kinds/pool_file.h"
#include "pmem/kinds/private_pools.h"
#include "pmem/medium/file_view.h"
#include "pmem/pool/found_words.h"
#include "pmem/pool/pool.h"
#include "pmem/space/chunk_list.h"
#include "pmem/space/claim_map.h"
#include "pmem/space/extent_allocator.h"
#include "pmem/space/free_map.h"
#include "test/pmem/line_pool.h"
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
  FLUGS_CHECK_FIRES("is_chunk", list.append({65, 64}, persister));
  FLUGS_CHECK_FIRES("is_chunk", list.append({0, 64}, persister));
  FLUGS_CHECK_FIRES("chunk.bytes != 0", list.append(ChunkList::kNothing, persister));
  FLUGS_CHECK_FIRES("chunks_ == Chunks::kRows", list.append(*extent, persister, 1));
  FLUGS_CHECK_FIRES("index < count_", list.replace(0, *extent, persister));
  if (kHasDebugChecks) FLUGS_CHECK_FIRES("index <= count_", list.offset(1));
}

TEST_CASE("the checks of a journal's memory fire", "[pmem][journal]") {
  using namespace pmem;
  FLUGS_CHECK_FIRES("bytes != 0", DirtyPages::reserve(0, "nowhere"));
  RecordRing ring = RecordRing::own(kPageBytes);
  FLUGS_CHECK_FIRES("place % kPageBytes == 0", ring.note_durable(8));
  FLUGS_CHECK_FIRES("head_ != nullptr",
                    ring.for_each_record({}, [](auto, auto) { return Status(); }));
  BatchWaiters waiters;
  std::mutex mutex;
  FLUGS_CHECK_FIRES("done.returning <= done.sleepers + 1", [&] {
    BatchWaiters::Lock lock(mutex);
    for (int i = 0; i < 3; ++i) waiters.begin_write(BatchWaiters::Returns::kSoon);
    waiters.end_write(lock, false);
  }());
  LinePool pool(64 << 10);
  FLUGS_CHECK_FIRES("!pages.empty()", pool.direct_writer().write(pool.memory().first(0)));
  FLUGS_CHECK_FIRES("end <= pages_max_", pool.checkpointer().write_now(kPoolBytes, kPageBytes));
  if (!kHasDebugChecks) return;
  const LineRun inside_line{pool.memory().data() + 8, 1};
  FLUGS_CHECK_FIRES("offset % kLineBytes == 0", pool.journal().append({&inside_line, 1}));
  const std::span<std::byte> memory = pool.memory();
  FLUGS_CHECK_FIRES("bytes % sizeof(__m128i) == 0",
                    copy_words(memory.data(), memory.data() + kPageBytes, 8));
}

TEST_CASE("the checks of a journal's file fire", "[pmem][journal]") {
  using namespace pmem;
  const TemporaryPath path;
  const JournalShape shape = journal_shape(64 << 10);
  auto file = JournalFile::create(path.journal(), 1, 2, shape, [](const JournalFile&) {});
  REQUIRE(file.ok());
  JournalHead other_shape = file->head();
  other_shape.data_bytes += shape.segment_bytes;
  FLUGS_CHECK_FIRES("next.data_bytes == shape_.data_bytes", file->write_head(other_shape));
  JournalHead needs_nothing = file->head();
  needs_nothing.tail = kPageBytes;
  FLUGS_CHECK_FIRES("next.tail <= next.needed", file->write_head(needs_nothing));
  const PoolBuffer buffer(2 * kPageBytes);
  const std::span<std::byte> behind = buffer.span().subspan(kLineBytes, kPageBytes);
  FLUGS_CHECK_FIRES("is_page_of_memory", file->write(0, behind));
  FLUGS_CHECK_FIRES("is_page_of_memory", file->read(0, behind));
  if (!kHasDebugChecks) return;
  FLUGS_CHECK_FIRES("<= shape_.segment_bytes",
                    file->read(shape.segment_bytes - kPageBytes, buffer.span()));
}

TEST_CASE("the checks of a pool's file fire", "[pmem]") {
  using namespace pmem;
  const TemporaryPath path;
  write_file(path.string(), Bytes(kPageBytes));
  auto file = PoolFile::open_to_peek(path.string());
  REQUIRE(file.ok());
  FLUGS_CHECK_FIRES("was_created_", file->discard());
  FLUGS_CHECK_FIRES("was_created_", file->publish());
  FLUGS_CHECK_FIRES("bytes != 0", file->send(0, 0));
  const PoolBuffer buffer(2 * kPageBytes);
  FLUGS_CHECK_FIRES("pages.size() % kPageBytes == 0", file->write(0, buffer.span().first(8)));
  FLUGS_CHECK_FIRES("pages.size() % kPageBytes == 0", file->show_again(0, buffer.span().first(8)));
  FLUGS_CHECK_FIRES("memory.data() != nullptr", file->map(MAP_PRIVATE, {}, 0));
  FLUGS_CHECK_FIRES("kind == F_RDLCK", FileHandle(-1).lock(F_UNLCK, path.string()));
  FLUGS_CHECK_FIRES("begin_ != nullptr", [&] {
    auto view = file->view();
    const FileView moved = *std::move(view);
    view->bytes();
  }());
  FLUGS_CHECK_FIRES("max_bytes >= PMEMOBJ_MIN_POOL", make_objects(path.string(), {}, kPageBytes));
}

TEST_CASE("the checks of a pool's memory fire", "[pmem]") {
  using namespace pmem;
  auto space = AddressSpace::reserve(kPageBytes, kPageBytes, "nowhere");
  REQUIRE(space.ok());
  FLUGS_CHECK_FIRES("offset <= bytes_", space->cut(space->bytes() + 1));
  const PoolBuffer buffer(std::size_t{4} << 20);
  auto in_buffer = Pool::create_in_memory(buffer.span(), {});
  REQUIRE(in_buffer.ok());
  FLUGS_CHECK_FIRES("has_range(offset, bytes)",
                    static_cast<MemoryPool&>(**in_buffer).punch(buffer.span().size(), 64));
  PoolOptions options;
  options.max_bytes = std::uint64_t{16} << 20;
  auto in_own = Pool::create_in_own_memory(options);
  REQUIRE(in_own.ok());
  auto& own = static_cast<OwnMemoryPool&>(**in_own);
  FLUGS_CHECK_FIRES("has_range(offset, bytes)", own.punch(options.max_bytes, kPageBytes));
  FLUGS_CHECK_FIRES("bytes % kPageBytes == 0", own.punch(options.max_bytes / 2, 64));
}

TEST_CASE("the checks of a medium fire", "[pmem][persist]") {
  using namespace pmem;
  struct NoWriter final : PageWriter {
    bool write(std::span<std::byte>) noexcept override { return false; }
  } writer;
  const PoolBuffer buffer(2 * kPageBytes);
  std::byte* const base = buffer.span().data();
  FLUGS_CHECK_FIRES("% kLineBytes == 0", Medium(MediumKind::kMemory, base + 8, kPageBytes, {}));
  Medium medium(MediumKind::kFile, base + kPageBytes, kPageBytes, {});
  FLUGS_CHECK_FIRES("journal_ != nullptr", medium.set_page_writer(&writer, kDirectBytesMin));
  if (!kHasDebugChecks) return;
  Persister persister(medium);
  FLUGS_CHECK_FIRES("address >= medium_.base()", persister.flush_unshared(base, 8, "test/1"));
  FLUGS_CHECK_FIRES("label != nullptr", [&] {
    persister.flush(medium.base(), 8, "test/1");
    persister.fence(nullptr);
  }());
  LinePool pool(64 << 10);
  medium.set_journal(&pool.journal());
  FLUGS_CHECK_FIRES("medium_.journal_ != nullptr", [&] {
    persister.flush(medium.base(), 8, "test/1");
    medium.set_journal(nullptr);
    persister.fence("test/1");
  }());
}

}  // namespace flugs::test
