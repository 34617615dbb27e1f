#include "pmem/journal/journal_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace flugs::pmem {

namespace {

struct alignas(kPageBytes) Page {
  std::array<std::byte, kPageBytes> bytes{};
};

bool is_page_of_memory(const std::byte* begin) noexcept {
  return reinterpret_cast<std::uintptr_t>(begin) % kPageBytes == 0;
}

}  // namespace

std::string journal_path(const std::string& pool_path) { return pool_path + ".journal"; }

JournalFile::~JournalFile() = default;

Status JournalFile::failed(const char* what, int error) const {
  return file_error(path_, what, error);
}

Result<JournalFile> JournalFile::open_file(const std::string& path, int flags) {
  const ForkPause pause;
  JournalFile file(
      path, ::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, S_IRUSR | S_IWUSR));
  if (file.fd() < 0) return file.failed("cannot open the journal", errno);
  struct stat info{};
  if (::fstat(file.fd(), &info) != 0) return file.failed("fstat", errno);
  if (!S_ISREG(info.st_mode))
    return Status(StatusCode::kInvalidArgument, fmt::format("{}: not a regular file", path));
  file.id_ = {
      .device = info.st_dev, .inode = info.st_ino, .owner = info.st_uid, .group = info.st_gid};
  Status status = file.opened_->handle.enter_fork_rule();
  if (!status.ok()) return status;
  return file;
}

Result<std::array<JournalHead, 2>> JournalFile::read_heads() const {
  std::array<JournalHead, 2> copies{};
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const auto offset = static_cast<off_t>(i * kPageBytes);
    if (::pread(fd(), &copies[i], sizeof copies[i], offset) < 0)
      return failed("cannot read", errno);
  }
  return copies;
}

Status JournalFile::read_head() {
  struct stat info{};
  if (::fstat(fd(), &info) != 0) return failed("fstat", errno);
  const Result<std::array<JournalHead, 2>> copies = read_heads();
  if (!copies.ok()) return copies.status();
  const Result<JournalHead> head =
      choose_head(*copies, static_cast<std::uint64_t>(info.st_size), path_);
  if (!head.ok()) return head.status();
  head_ = *head;
  shape_ = {.data_bytes = head_.data_bytes, .segment_bytes = head_.segment_bytes};
  return {};
}

/// Against the process that still writes the journal of a pool that was moved away.
Status JournalFile::lock() const {
  const Result<bool> locked = opened_->handle.lock(F_WRLCK, path_);
  if (!locked.ok()) return locked.status();
  if (*locked) return {};
  return Status(StatusCode::kBusy,
                fmt::format("{}: an open pool, which was moved away, uses this journal: close that "
                            "pool, or give this one another name",
                            path_));
}

/// Whether the file has zeros only, but for a head that a power cut has torn. A new journal looks
/// so. It gets a record, and the other copy of its head, before a pool may need it. So nothing is
/// lost if it begins anew. A damaged journal that a pool needs has more. A head without the magic
/// may belong to any file.
Result<bool> JournalFile::has_only_torn_head(std::uint64_t file_bytes) const {
  std::array<Page, 16> part;
  std::uint64_t heads = 0;
  for (std::uint64_t at = 0; at < file_bytes;) {
    const std::size_t wanted = std::min<std::uint64_t>(sizeof part, file_bytes - at);
    const ssize_t got = ::pread(fd(), part.data(), wanted, static_cast<off_t>(at));
    if (got < 0) return failed("cannot read", errno);
    if (got == 0) break;
    std::span<std::byte> bytes(part.front().bytes.data(), static_cast<std::size_t>(got));
    for (const std::uint64_t head : {std::uint64_t{0}, kPageBytes}) {
      if (at != 0 || bytes.size() < head + sizeof(JournalHead)) continue;
      if (std::memcmp(bytes.data() + head, kJournalMagic.data(), kJournalMagic.size()) != 0)
        continue;
      std::memset(bytes.data() + head, 0, sizeof(JournalHead));
      ++heads;
    }
    const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
    if (!std::all_of(bytes.begin(), bytes.end(), is_zero)) return false;
    at += static_cast<std::uint64_t>(got);
  }
  return heads == 1;
}

/// What lies at the path may be another file, or the last changes of another pool. Zeros in place
/// of heads are left of a creation that was cut short.
Status JournalFile::check_free(const Status& head_found) const {
  if (head_found.code() == StatusCode::kIoError) return head_found;
  if (head_found.ok() && head_.is_closed != 0) return {};
  if (head_found.ok())
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{}: has the last changes of pool {:016x}, which was not closed: if "
                              "that pool was moved, move this file beside it; if it is gone, "
                              "remove this file",
                              path_, head_.pool_uuid));
  const Result<std::array<JournalHead, 2>> heads = read_heads();
  if (!heads.ok()) return heads.status();
  constexpr std::array<char, 8> kNoMagic{};
  if ((*heads)[0].magic == kNoMagic && (*heads)[1].magic == kNoMagic) return {};
  if (is_closed_journal(*heads)) return {};  // of another version
  struct stat info{};
  if (::fstat(fd(), &info) != 0) return failed("fstat", errno);
  const bool may_be_torn = head_found.code() == StatusCode::kCorrupt;
  const Result<bool> is_torn = may_be_torn
                                   ? has_only_torn_head(static_cast<std::uint64_t>(info.st_size))
                                   : Result<bool>(false);
  if (!is_torn.ok()) return is_torn.status();
  if (*is_torn) return {};
  return Status(
      StatusCode::kInvalidArgument,
      fmt::format("{}: exists, and is no journal that this program can use: move it away", path_));
}

Result<JournalFile> JournalFile::create(const std::string& path, std::uint64_t pool_uuid,
                                        std::uint64_t journal_id, JournalShape shape,
                                        FunctionRef<void(const JournalFile&)> replaces) {
  Result<JournalFile> file = open_file(path, O_RDWR | O_CREAT);
  if (!file.ok()) return file;
  if (Status s = file->lock(); !s.ok()) return s;
  const Status found = file->read_head();
  if (Status s = file->check_free(found); !s.ok()) return s;
  if (found.ok()) replaces(*file);
  const bool has_ring = found.ok() && file->head_.data_bytes == shape.data_bytes &&
                        file->head_.segment_bytes == shape.segment_bytes;
  Status status = has_ring ? Status() : file->write_zeros(kJournalDataOffset + shape.data_bytes);
  if (status.ok()) status = file->begin(pool_uuid, journal_id, shape);
  if (status.ok()) return file;
  if (!has_ring) ::unlink(path.c_str());
  return status;
}

Status JournalFile::begin(std::uint64_t pool_uuid, std::uint64_t journal_id, JournalShape shape) {
  use_direct_io();
  shape_ = shape;
  JournalHead head{};
  head.magic = kJournalMagic;
  head.version = kJournalVersion;
  head.head_bytes = sizeof head;
  head.pool_uuid = pool_uuid;
  head.journal_id = journal_id;
  head.sequence = head_.sequence;
  head.data_bytes = shape.data_bytes;
  head.segment_bytes = shape.segment_bytes;
  head.tail_epoch = 1;
  head.epoch = 1;
  head.is_closed = 1;  // no pool names it yet
  return write_head(head);
}

Result<JournalFile> JournalFile::open(const std::string& path, std::uint64_t pool_uuid,
                                      std::uint64_t journal_id, Use use) {
  Result<JournalFile> file = open_file(path, use == Use::kWrite ? O_RDWR : O_RDONLY);
  if (file.status().code() == StatusCode::kNotFound)
    return Status(StatusCode::kNotFound,
                  fmt::format("{}: not found, but the pool beside it needs it: it was not closed, "
                              "and its last changes are in this journal; put the journal back "
                              "beside the pool",
                              path));
  if (!file.ok()) return file;
  if (Status s = use == Use::kWrite ? file->lock() : Status(); !s.ok()) return s;
  if (Status s = file->settle_cache(); !s.ok()) return s;
  if (Status s = file->read_head(); !s.ok()) return s;
  if (file->head_.pool_uuid != pool_uuid || file->head_.journal_id != journal_id)
    return Status(
        StatusCode::kCorrupt,
        fmt::format("{}: the journal of another pool, or an older one of this pool: "
                    "expected pool {:016x}, journal {:016x}, found {:016x}, {:016x}",
                    path, pool_uuid, journal_id, file->head_.pool_uuid, file->head_.journal_id));
  file->use_direct_io();
  return file;
}

/// Bytes go to the device and come from it without a copy in the page cache, where the file system
/// can. The cache would have nothing of what was written so.
void JournalFile::use_direct_io() noexcept {
  const int flags = ::fcntl(fd(), F_GETFL);
  if (flags >= 0) ::fcntl(fd(), F_SETFL, flags | O_DIRECT);
}

/// For a file system whose pages have another size. False: the file uses the page cache already.
bool JournalFile::leave_direct_io() const noexcept {
  const int flags = ::fcntl(fd(), F_GETFL);
  return flags >= 0 && (flags & O_DIRECT) != 0 && ::fcntl(fd(), F_SETFL, flags & ~O_DIRECT) == 0;
}

/// Where the file system has no direct writes, a process that died may have left a head or records
/// in the page cache that are not on the device: a write was on its way, or has failed. What can be
/// made durable is, and the rest is forgotten, so that replay does not go on behind records that a
/// power cut takes back.
Status JournalFile::settle_cache() const {
  if (::fdatasync(fd()) != 0) return failed("fdatasync", errno);
  static_cast<void>(::posix_fadvise(fd(), 0, 0, POSIX_FADV_DONTNEED));
  return {};
}

/// A device writes blocks that were written before in half the time of new ones.
Status JournalFile::write_zeros(std::uint64_t bytes) {
  if (::ftruncate(fd(), 0) != 0) return failed("ftruncate", errno);
  static constexpr std::array<std::byte, 64 * kPageBytes> kZeros{};
  for (std::uint64_t at = 0; at < bytes;) {
    const std::size_t step = std::min<std::uint64_t>(kZeros.size(), bytes - at);
    const ssize_t written = ::pwrite(fd(), kZeros.data(), step, static_cast<off_t>(at));
    if (written < 0 && errno != EINTR)
      return failed(fmt::format("cannot write the {} bytes of the journal", bytes).c_str(), errno);
    at += written > 0 ? static_cast<std::uint64_t>(written) : 0;
  }
  if (::fsync(fd()) != 0) return failed("fsync", errno);
  return sync_folder_of(path_);
}

/// An opening refuses a head that fails these checks.
Status JournalFile::write_head(JournalHead next) {
  FLUGS_CHECK(next.data_bytes == shape_.data_bytes && next.segment_bytes == shape_.segment_bytes);
  FLUGS_CHECK(next.tail <= next.needed && next.needed - next.tail <= shape_.data_bytes);
  next.sequence = head_.sequence + 1;
  next.checksum = checksum_of(next);
  Page page;
  std::memcpy(page.bytes.data(), &next, sizeof next);
  Status status = write_durably(next.sequence % 2 * kPageBytes, page.bytes);
  if (status.ok()) head_ = next;
  return status;
}

Status JournalFile::write(JournalPlace place, std::span<const std::byte> bytes) {
  FLUGS_DCHECK(place % kPageBytes == 0 && bytes.size() % kPageBytes == 0);
  FLUGS_DCHECK(place % shape_.segment_bytes + bytes.size() <= shape_.segment_bytes);
  FLUGS_CHECK(is_page_of_memory(bytes.data()));  // else direct writes would be left for good
  return write_durably(kJournalDataOffset + place % shape_.data_bytes, bytes);
}

Status JournalFile::write_durably(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const bool has_dsync = opened_->has_dsync.load(std::memory_order_relaxed);
    const iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
    const ssize_t written =
        ::pwritev2(fd(), &part, 1, static_cast<off_t>(offset), has_dsync ? RWF_DSYNC : 0);
    if (written > 0) {
      if (!has_dsync && ::fdatasync(fd()) != 0) return failed("fdatasync", errno);
      offset += static_cast<std::uint64_t>(written);
      bytes = bytes.subspan(static_cast<std::size_t>(written));
      continue;
    }
    const int error = written == 0 ? EIO : errno;
    if (error == EINTR) continue;
    if (error == EOPNOTSUPP && has_dsync) {
      opened_->has_dsync.store(false, std::memory_order_relaxed);
    } else if (error != EINVAL || !leave_direct_io()) {
      return failed(fmt::format("cannot write {} bytes", bytes.size()).c_str(), error);
    }
  }
  return {};
}

Status JournalFile::read(JournalPlace place, std::span<std::byte> bytes) const {
  FLUGS_DCHECK(place % shape_.segment_bytes + bytes.size() <= shape_.segment_bytes);
  FLUGS_CHECK(is_page_of_memory(bytes.data()));
  std::uint64_t offset = kJournalDataOffset + place % shape_.data_bytes;
  while (!bytes.empty()) {
    const ssize_t got = ::pread(fd(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (got < 0 && (errno == EINTR || (errno == EINVAL && leave_direct_io()))) continue;
    if (got < 0) return failed("cannot read", errno);
    if (got == 0)
      return Status(StatusCode::kCorrupt, fmt::format("{}: ends at {}, expected {} bytes more",
                                                      path_, offset, bytes.size()));
    offset += static_cast<std::uint64_t>(got);
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

}  // namespace flugs::pmem
