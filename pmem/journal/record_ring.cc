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

#include "base/check.h"

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
      head_(std::exchange(other.head_, nullptr)) {}

RecordRing::~RecordRing() {
  static_assert(sizeof(Head) <= kPageBytes);
  static_assert(std::atomic<JournalPlace>::is_always_lock_free);
  if (head_ != nullptr) {
    ::munmap(head_, kPageBytes + bytes_);
  } else {
    ::operator delete(ring_, std::align_val_t{kPageBytes});
  }
}

bool RecordRing::map(int fd) noexcept {
  void* const mapped =
      ::mmap(nullptr, kPageBytes + bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) return false;
  head_ = static_cast<Head*>(mapped);
  ring_ = static_cast<std::byte*>(mapped) + kPageBytes;
  return true;
}

Result<RecordRing> RecordRing::named(const JournalFile& journal, JournalPlace durable) {
  const std::string path = ring_path(journal);
  const BootId boot = boot_id();
  if (boot == BootId{})
    return Status(StatusCode::kIoError,
                  "/proc/sys/kernel/random/boot_id cannot be read, so a file on /dev/shm cannot "
                  "outlive the process: open the database without OpenOptions::crash_ring");
  remove_ring(journal);
  RecordRing ring(journal.head().segment_bytes);
  constexpr int kFlags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  const FileHandle file(::open(path.c_str(), kFlags, S_IRUSR | S_IWUSR));
  if (file.fd() < 0) return file_error(path, "cannot make the crash ring", errno);
  // With all of its memory: a store must not find /dev/shm full.
  const int error = ::posix_fallocate(file.fd(), 0, static_cast<off_t>(kPageBytes + ring.bytes_));
  if (error != 0 || !ring.map(file.fd())) {
    const Status status =
        file_error(path, "cannot allocate the crash ring", error != 0 ? error : errno);
    ::unlink(path.c_str());
    return status;
  }
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

std::optional<RecordRing> RecordRing::left(const JournalFile& journal) {
  const JournalHead& wanted = journal.head();
  const std::string path = ring_path(journal);
  const FileHandle file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  RecordRing ring(wanted.segment_bytes);
  struct stat info{};
  if (file.fd() < 0 || ::fstat(file.fd(), &info) != 0 || !S_ISREG(info.st_mode) ||
      info.st_uid != ::geteuid() ||
      static_cast<std::uint64_t>(info.st_size) != kPageBytes + ring.bytes_ || !ring.map(file.fd()))
    return std::nullopt;
  const Head& head = *ring.head_;
  const bool is_ours = head.magic == kRingMagic && head.version == kRingVersion &&
                       head.head_bytes == sizeof(Head) && head.checksum == head.sum() &&
                       head.boot == boot_id() && head.journal_id == wanted.journal_id &&
                       head.epoch == wanted.epoch && head.segment_bytes == wanted.segment_bytes &&
                       ring.durable() % kPageBytes == 0;
  if (!is_ours) return std::nullopt;
  return ring;
}

void RecordRing::note_durable(JournalPlace place) noexcept {
  if (head_ != nullptr) head_->durable.store(place, std::memory_order_release);
}

JournalPlace RecordRing::durable() const noexcept {
  FLUGS_CHECK(head_ != nullptr);
  return head_->durable.load(std::memory_order_acquire);
}

JournalPlace RecordRing::for_each_record(
    const JournalHead& head,
    FunctionRef<void(JournalPlace place, std::span<const std::byte> record)> use) const {
  const JournalPlace begin = durable();
  JournalPlace end = begin;
  while (end - begin < bytes_) {
    const std::span<const std::byte> rest(at(end), segment_bytes_ - end % segment_bytes_);
    if (!is_record(rest, {head.journal_id, end, head.epoch})) break;
    RecordHead record;
    std::memcpy(&record, rest.data(), sizeof record);
    use(end, rest.first(record.bytes));
    end += record.bytes;
  }
  return end;
}

// Protocol journal-ring. At an opening, before the journal is replayed. The ring outlived the
// process that appended to it.
//   step  store                         made durable by     killed, or power cut, just after it:
//                                                           recovery
//   1     the pages of the records      their own writes    killed: writes the same pages again;
//         that wait                                         power cut: those records that arrived
//   2     the head: epoch + 1           protocol            does not read the ring any more
//                                       journal-resume
//   3     the ring's file is removed    -                   -
// Must hold:  1 before 2. The ring of another epoch, of another start of the system, and of a copy
//             of the journal not be read: their records would stand behind a gap, or where later
//             ones were.
//             The killed process note in the ring what is durable before it uses the memory again:
//             else 1 would overwrite durable pages with later ones.
// Need not:   know how far the killed process's last write came: 1 writes the same bytes.
Status write_left_records(JournalFile& journal) {
  const std::optional<RecordRing> ring = RecordRing::left(journal);
  if (!ring.has_value()) return {};
  const JournalPlace end =
      ring->for_each_record(journal.head(), [](JournalPlace, std::span<const std::byte>) {});
  const std::uint64_t segment_bytes = journal.head().segment_bytes;
  for (JournalPlace place = ring->durable(); place < end;) {
    const JournalPlace part = std::min(page_end(end), (place / segment_bytes + 1) * segment_bytes);
    if (Status s = journal.write(place, {ring->at(place), part - place}); !s.ok()) return s;
    place = part;
  }
  return {};
}

void remove_ring(const JournalFile& journal) {
  const std::string path = ring_path(journal);
  struct stat info{};
  if (::lstat(path.c_str(), &info) == 0 && info.st_uid == ::geteuid()) ::unlink(path.c_str());
}

}  // namespace flugs::pmem
