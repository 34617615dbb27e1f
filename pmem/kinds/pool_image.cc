#include "pmem/kinds/pool_image.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "pmem/kinds/file_journal.h"
#include "pmem/kinds/object_format.h"
#include "pmem/kinds/pool_file.h"

namespace flugs::pmem {

namespace {

/// A smaller pool holds no database: the catalogue alone has 4 KB. A larger one has room for each
/// structure, so no single structure can seem larger than the pool.
constexpr std::uint64_t kPoolBytesMin = std::uint64_t{16} << 10;
constexpr std::uint64_t kFallbackUnitBytes = 64;
constexpr std::uint64_t kFallbackSegmentBytes = std::uint64_t{1} << 20;
static_assert(kPoolBytesMin >= root_bytes(1) + kFallbackUnitBytes);
static_assert(kFallbackUnitBytes % kLineBytes == 0);
static_assert(kFallbackSegmentBytes % kFallbackUnitBytes == 0);

bool has_magic(std::span<const std::byte> pool, std::uint64_t root) noexcept {
  if (root > pool.size() || pool.size() - root < sizeof(PoolRoot)) return false;
  for (std::uint64_t copy = 0; copy < 2; ++copy)
    if (std::memcmp(pool.data() + root + copy * sizeof(PoolHeader), kPoolMagic.data(),
                    kPoolMagic.size()) == 0)
      return true;
  return false;
}

/// Finds the root: where libpmemobj's descriptor says, or else where a header of ours is in the
/// first chunks, in which creation puts it. 0: not found.
std::uint64_t find_root(std::span<const std::byte> file) noexcept {
  if (file.size() < kDescriptorBytes) return 0;
  std::uint64_t root = 0;
  std::memcpy(&root, file.data() + kRootOffsetOffset, sizeof root);
  if (root < file.size()) {
    root = (root + kLineBytes - 1) / kLineBytes * kLineBytes;
    if (has_magic(file, root)) return root;
  }
  const std::uint64_t first = kZonesOffset + kZoneMetadataBytes;
  for (root = first; root < std::min<std::uint64_t>(first + 4 * kChunkBytes, file.size());
       root += kLineBytes)
    if (has_magic(file, root)) return root;
  return 0;
}

/// The part of the file that libpmemobj knows: growing makes a file longer, and leaves libpmemobj's
/// metadata as creation made it.
std::span<const std::byte> created_part(std::span<const std::byte> file, std::uint64_t root,
                                        const std::string& path) {
  std::array<PoolHeader, 2> copies;
  std::memcpy(&copies, file.data() + root, sizeof copies);
  const Result<PoolHeader> header = choose_header(copies, file.size(), path);
  return header.ok() ? file.first(created_bytes_of(*header)) : file;
}

void inspect_objects(std::span<const std::byte> file, const std::string& path,
                     std::vector<ImageFinding>& findings) {
  const Status truncated(StatusCode::kCorrupt, path + ": truncated");
  findings.push_back({"libpmemobj's lanes",
                      file.size() < kZonesOffset ? truncated : check_object_lanes(file, path)});
  findings.push_back({"libpmemobj's heap", file.size() < kZonesOffset + kZoneMetadataBytes
                                               ? truncated
                                               : check_object_heap(file, path)});
}

}  // namespace

Status PoolImage::provide(std::uint64_t /*offset*/, std::uint64_t /*bytes*/) {
  return Status(StatusCode::kReadOnly,
                fmt::format("{}: the pool is open for inspection only", path()));
}

Status PoolImage::punch(std::uint64_t offset, std::uint64_t bytes) {
  return provide(offset, bytes);
}

Result<std::unique_ptr<PoolImage>> PoolImage::of_file(const std::string& path,
                                                      std::vector<ImageFinding>& findings,
                                                      Depth depth) {
  const Result<PoolFile> file =
      depth == Depth::kHead ? PoolFile::open_to_peek(path) : PoolFile::open_to_read(path);
  if (!file.ok()) return file.status();
  Result<FileView> view = file->view();
  if (!view.ok()) return view.status();
  const std::span<std::byte> bytes = view->bytes();
  if (Status s = replay_into_view(*file, journal_needed_by(bytes), bytes); !s.ok()) return s;
  const Status head = check_object_head(bytes, path);
  const std::uint64_t root = find_root(bytes);
  if (root == 0)
    return head.ok()
               ? Status(
                     StatusCode::kCorrupt,
                     fmt::format("{}: found no pool header, neither at the root object nor near it",
                                 path))
               : head;
  const std::span<const std::byte> created = created_part(bytes, root, path);
  findings.push_back(
      {"libpmemobj's head", head.ok() ? check_object_descriptor(created, path) : head});
  if (depth == Depth::kAudit) inspect_objects(created, path, findings);
  std::unique_ptr<PoolImage> image(new PoolImage(path, *std::move(view), depth));
  const Status status = image->inspect(bytes, root, findings);
  if (!status.ok()) return status;
  return image;
}

Result<std::unique_ptr<PoolImage>> PoolImage::of_buffer(std::span<std::byte> pool,
                                                        std::vector<ImageFinding>& findings) {
  if (pool.size() < kPoolBytesMin)
    return Status(StatusCode::kCorrupt,
                  fmt::format("(memory): truncated: expected at least {} bytes, found {}",
                              kPoolBytesMin, pool.size()));
  std::unique_ptr<PoolImage> image(new PoolImage("(memory)", std::nullopt, Depth::kAudit));
  const Status status = image->inspect(pool, 0, findings);
  if (!status.ok()) return status;
  return image;
}

/// An audit fails only with kIncompatible: this version cannot judge what another version wrote.
Status PoolImage::inspect_header(std::uint64_t bytes, std::uint64_t root_offset, PoolHeader& header,
                                 std::vector<ImageFinding>& findings) {
  const std::array<PoolHeader, 2>& copies = root()->headers;
  const Result<PoolHeader> chosen = choose_header(copies, bytes, path());
  if (!chosen.ok() && (depth_ != Depth::kAudit || chosen.code() == StatusCode::kIncompatible))
    return chosen.status();
  Status status = chosen.ok() ? Status() : chosen.status();
  for (std::size_t i = 0; chosen.ok() && i < copies.size(); ++i) {
    if (std::memcmp(&copies[i], &*chosen, sizeof header) == 0) continue;
    status = Status(StatusCode::kCorrupt,
                    fmt::format("{}: pool header, copy {} at offset {}: checksum expected {:016x}, "
                                "found {:016x}; the other copy is intact",
                                path(), i, root_offset + i * sizeof(PoolHeader),
                                checksum_of(copies[i]), copies[i].checksum));
  }
  findings.push_back({"pool header", status});
  header = chosen.ok() ? *chosen : PoolHeader{};
  return {};
}

Status PoolImage::check_untouched(std::span<const std::byte> pool,
                                  std::span<const ArenaRecord> arenas) const {
  for (const ArenaRecord& arena : arenas) {
    const auto rest =
        pool.subspan(arena.touched_limit, arena.allocated_limit - arena.touched_limit);
    const auto found =
        std::find_if(rest.begin(), rest.end(), [](std::byte b) { return b != std::byte{0}; });
    if (found == rest.end()) continue;
    return Status(
        StatusCode::kCorrupt,
        fmt::format(
            "{}: offset {}: expected 0 in the unused bytes from offset {} to {}, found {:#x}",
            path(), arena.touched_limit + (found - rest.begin()), arena.touched_limit,
            arena.allocated_limit, static_cast<unsigned>(*found)));
  }
  return {};
}

Status PoolImage::inspect(std::span<std::byte> file, std::uint64_t root_offset,
                          std::vector<ImageFinding>& findings) {
  auto* const root_in_file = reinterpret_cast<PoolRoot*>(file.data() + root_offset);
  const Result<PoolHeader> chosen = choose_header(root_in_file->headers, file.size(), path());
  const std::span<std::byte> pool = chosen.ok() ? file.first(chosen->max_bytes) : file;
  attach(MediumKind::kMemory, pool, PoolOptions{}, root_in_file);
  PoolHeader header;
  Status status = inspect_header(pool.size(), root_offset, header, findings);
  if (!status.ok()) return status;
  const std::uint64_t room = pool.size() - root_offset;
  if (header.arena_count != 0 && root_bytes(header.arena_count) <= room) {
    const std::span<ArenaRecord> arenas(root()->arenas(), header.arena_count);
    status = check_arenas(header, arenas, root_offset + root_bytes(header.arena_count), path());
    const bool are_usable = status.ok();
    if (status.ok() && depth_ == Depth::kAudit) status = check_untouched(pool, arenas);
    findings.push_back({"arenas", status});
    if (are_usable) {
      take_as(arenas, shape_of(header, arenas.back()));
      return {};
    }
  }
  if (depth_ != Depth::kAudit)
    return status.ok() ? Status(StatusCode::kCorrupt,
                                fmt::format("{}: {} arenas, which lie outside the file", path(),
                                            header.arena_count))
                       : status;
  const std::uint64_t begin = (root_offset + root_bytes(1) + kFallbackUnitBytes - 1) /
                              kFallbackUnitBytes * kFallbackUnitBytes;
  const std::uint64_t end = pool.size() / kFallbackUnitBytes * kFallbackUnitBytes;
  if (begin >= end)
    return Status(
        StatusCode::kCorrupt,
        fmt::format("{}: the file ends at the root object: it has no space for data", path()));
  whole_ = {.offset = begin, .bytes = end - begin, .allocated_limit = end, .touched_limit = end};
  take_as({&whole_, 1},
          {.end = end, .segment_bytes = kFallbackSegmentBytes, .unit_bytes = kFallbackUnitBytes});
  return {};
}

}  // namespace flugs::pmem
