#include "pmem/journal/record_ring.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/fork.h"

namespace flugs::pmem {

namespace {

constexpr std::array<char, 8> kRingMagic = {'f', 'l', 'u', 'g', 's', 'R', 'G', '\n'};
constexpr std::uint32_t kRingVersion = 1;

/// Another one each time that the system starts. Empty: unknown.
using BootId = std::array<char, 40>;

BootId boot_id() noexcept {
  BootId id{};
  const FileHandle file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  if (file.fd() < 0 || ::read(file.fd(), id.data(), id.size() - 1) <= 0) return {};
  return id;
}

/// A copy of the journal has another one.
std::string ring_path(const JournalFile& journal) {
  return fmt::format("/dev/shm/flugs-{:016x}-{:x}-{:x}.ring", journal.head().journal_id,
                     journal.id().device, journal.id().inode);
}

/// Opening must not take it for a pool that is not there.
Status ring_error(const std::string& path, const char* what, int error) {
  Status status = file_error(path, what, error);
  if (status.code() == StatusCode::kOutOfSpace) return status;
  return Status(StatusCode::kIoError, std::string(status.message()));
}

Status no_boot_id(const std::string& path) {
  return Status(StatusCode::kIoError,
                fmt::format("{}: /proc/sys/kernel/random/boot_id cannot be read, so it is not "
                            "known whether this crash ring is of this start of the system",
                            path));
}

}  // namespace

struct RecordRing::Head {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t head_bytes;
  BootId boot;
  std::uint64_t journal_id;
  std::uint64_t epoch;  // of the opening whose records wait
  std::uint64_t segment_bytes;
  std::uint64_t checksum;             // XXH3, 64 bits, of all fields before
  std::atomic<JournalPlace> durable;  // release by note_durable; read by the next process

  std::uint64_t sum() const noexcept { return XXH3_64bits(this, offsetof(Head, checksum)); }
};

RecordRing RecordRing::own(std::uint64_t segment_bytes) {
  RecordRing ring(segment_bytes);
  ring.ring_ = static_cast<std::byte*>(::operator new(ring.bytes_, std::align_val_t{kPageBytes}));
  return ring;
}

RecordRing::RecordRing(RecordRing&& other) noexcept
    : segment_bytes_(other.segment_bytes_),
      bytes_(other.bytes_),
      ring_(std::exchange(other.ring_, nullptr)),
      head_(std::exchange(other.head_, nullptr)),
      waits_from_(other.waits_from_) {}

RecordRing::~RecordRing() {
  static_assert(sizeof(Head) <= kPageBytes);
  static_assert(std::atomic<JournalPlace>::is_always_lock_free);
  static_assert(offsetof(Head, checksum) == 80);  // without gaps
  if (head_ != nullptr) {
    ::munmap(head_, kPageBytes + bytes_);
  } else {
    ::operator delete(ring_, std::align_val_t{kPageBytes});
  }
}

bool RecordRing::map(int fd, int protection) noexcept {
  void* const mapped = ::mmap(nullptr, kPageBytes + bytes_, protection, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) return false;
  ::madvise(mapped, kPageBytes + bytes_, MADV_DONTFORK);
  head_ = static_cast<Head*>(mapped);
  ring_ = static_cast<std::byte*>(mapped) + kPageBytes;
  return true;
}

Result<RecordRing> RecordRing::named(const JournalFile& journal, JournalPlace durable) {
  const std::string path = ring_path(journal);
  const BootId boot = boot_id();
  if (boot == BootId{}) return no_boot_id(path);
  remove_ring_of(journal);
  const ForkPause pause;
  RecordRing ring(journal.head().segment_bytes);
  constexpr int kFlags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  const FileHandle file(::open(path.c_str(), kFlags, S_IRUSR | S_IWUSR));
  if (file.fd() < 0)
    return ring_error(path, "cannot make the crash ring (OpenOptions::crash_ring)", errno);
  // With all of its memory: a store must not find /dev/shm full.
  int error = 0;
  do error = ::posix_fallocate(file.fd(), 0, static_cast<off_t>(kPageBytes + ring.bytes_));
  while (error == EINTR);
  if (error != 0 || !ring.map(file.fd(), PROT_READ | PROT_WRITE)) {
    const std::string what = fmt::format(
        "cannot allocate the {} bytes of the crash ring (OpenOptions::crash_ring)", ring.bytes_);
    const Status status = ring_error(path, what.c_str(), error != 0 ? error : errno);
    ::unlink(path.c_str());
    return status;
  }
  // Root may work for the journal's owner, whose process opens it next.
  if (journal.id().owner != ::geteuid())
    static_cast<void>(::fchown(file.fd(), journal.id().owner, journal.id().group));
  ring.head_->magic = kRingMagic;
  ring.head_->version = kRingVersion;
  ring.head_->head_bytes = sizeof(Head);
  ring.head_->boot = boot;
  ring.head_->journal_id = journal.head().journal_id;
  ring.head_->epoch = journal.head().epoch;
  ring.head_->segment_bytes = ring.segment_bytes_;
  ring.note_durable(durable);
  ring.head_->checksum = ring.head_->sum();
  return ring;
}

bool RecordRing::fits(const JournalHead& journal) const noexcept {
  return head_->magic == kRingMagic && head_->version == kRingVersion &&
         head_->head_bytes == sizeof(Head) && head_->checksum == head_->sum() &&
         head_->boot == boot_id() && head_->journal_id == journal.journal_id &&
         head_->epoch == journal.epoch && head_->segment_bytes == journal.segment_bytes &&
         waits_from_ % kPageBytes == 0;
}

Result<std::optional<RecordRing>> RecordRing::left(const JournalFile& journal) {
  constexpr const char* kUnread =
      "may have the last commits, but cannot be read (open the database as the user who ran it "
      "before, or remove this file)";
  const std::string path = ring_path(journal);
  const ForkPause pause;
  const FileHandle file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.fd() < 0 && errno == ENOENT) return std::optional<RecordRing>();
  struct stat info{};
  if (file.fd() < 0 || ::fstat(file.fd(), &info) != 0) return ring_error(path, kUnread, errno);
  const bool is_known =
      info.st_uid == ::geteuid() || info.st_uid == journal.id().owner || info.st_uid == 0;
  if (!is_known) return ring_error(path, kUnread, EACCES);
  if (boot_id() == BootId{}) return no_boot_id(path);
  RecordRing ring(journal.head().segment_bytes);
  if (!S_ISREG(info.st_mode) ||
      static_cast<std::uint64_t>(info.st_size) != kPageBytes + ring.bytes_)
    return std::optional<RecordRing>();
  if (!ring.map(file.fd(), PROT_READ)) return ring_error(path, kUnread, errno);
  ring.waits_from_ = ring.head_->durable.load(std::memory_order_acquire);
  if (!ring.fits(journal.head())) return std::optional<RecordRing>();
  return std::optional<RecordRing>(std::move(ring));
}

void RecordRing::note_durable(JournalPlace place) noexcept {
  FLUGS_CHECK(place % kPageBytes == 0);  // else the next opening does not take the ring
  if (head_ != nullptr) head_->durable.store(place, std::memory_order_release);
}

Result<JournalPlace> RecordRing::for_each_record(
    const JournalHead& head,
    FunctionRef<Status(JournalPlace place, std::span<const std::byte> record)> use) const {
  FLUGS_CHECK(head_ != nullptr);  // else nothing was ever stored in the memory
  JournalPlace end = waits_from_;
  std::vector<std::byte> copy;
  while (end - waits_from_ < bytes_) {
    const std::span<const std::byte> rest(at(end), segment_bytes_ - end % segment_bytes_);
    RecordHead record{};
    if (rest.size() >= sizeof record) std::memcpy(&record, rest.data(), sizeof record);
    copy.assign(rest.begin(), rest.begin() + std::min<std::size_t>(record.bytes, rest.size()));
    if (!is_record(copy, {head.journal_id, end, head.epoch})) break;
    if (Status s = use(end, copy); !s.ok()) return s;
    end += copy.size();
  }
  return end;
}

void remove_ring_of(const JournalFile& journal) noexcept { ::unlink(ring_path(journal).c_str()); }

}  // namespace flugs::pmem
