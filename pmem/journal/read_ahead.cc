#include "pmem/journal/read_ahead.h"

#include <algorithm>
#include <new>

#include "base/thread.h"

namespace flugs::pmem {

namespace {

/// What is read at a time. A usual restart has a few MB to replay.
constexpr std::uint64_t kStepBytes = std::uint64_t{256} << 10;
constexpr std::uint64_t kStepsAhead = 2;
static_assert(kStepBytes % kPageBytes == 0);

}  // namespace

void ReadAhead::Memory::operator()(std::byte* bytes) const noexcept {
  ::operator delete(bytes, std::align_val_t{kPageBytes});
}

ReadAhead::ReadAhead(const JournalFile& journal, JournalPlace begin)
    : journal_(journal),
      segment_bytes_(journal.head().segment_bytes),
      memory_(static_cast<std::byte*>(
          ::operator new(2 * segment_bytes_, std::align_val_t{kPageBytes}))),
      wanted_(begin / kPageBytes * kPageBytes),
      read_(wanted_) {
  Result<std::jthread> started =
      start_thread("flugs-replay", [this](const std::stop_token& stop) { run(stop); });
  if (started.ok()) thread_ = *std::move(started);
}

ReadAhead::~ReadAhead() = default;

void ReadAhead::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (moved_.wait(lock, stop, [this] { return read_ < wanted_ && status_.ok(); }))
    read_step(lock);
}

/// Reads one step, as far as its segment goes.
void ReadAhead::read_step(std::unique_lock<std::mutex>& lock) {
  const JournalPlace begin = read_;
  const JournalPlace end = std::min(begin + kStepBytes, segment_end(begin));
  lock.unlock();
  Status status = journal_.read(begin, {at(begin), end - begin});
  lock.lock();
  if (status.ok()) read_ = end;
  status_ = std::move(status);
  moved_.notify_all();
}

Result<std::span<std::byte>> ReadAhead::from(JournalPlace place, std::uint64_t wanted) {
  const JournalPlace end = std::min(page_end(place + wanted), segment_end(place));
  std::unique_lock lock(mutex_);
  // The segment before the one of `place` is not needed any more.
  const JournalPlace ahead =
      std::min(end + kStepsAhead * kStepBytes, segment_end(place) + segment_bytes_);
  if (ahead >= wanted_ + kStepBytes || end > wanted_) {
    wanted_ = std::max(wanted_, ahead);
    moved_.notify_all();
  }
  while (read_ < end && status_.ok()) {
    if (thread_.joinable()) {
      moved_.wait(lock);
    } else {
      read_step(lock);
    }
  }
  if (read_ < end) return status_;
  return std::span<std::byte>(at(place), std::min(read_, segment_end(place)) - place);
}

}  // namespace flugs::pmem
