#include "tables/transactions/auto_increment.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>

#include "base/shared_words.h"

namespace flugs::engine {

namespace {

std::int64_t greatest(Type type) noexcept {
  return type == Type::kInt32 ? std::numeric_limits<std::int32_t>::max()
                              : std::numeric_limits<std::int64_t>::max();
}

}  // namespace

AutoIncrement::AutoIncrement(pmem::Pool& pool, std::uint64_t& last_taken, Type type,
                             std::string owner)
    : pool_(pool), last_taken_(last_taken), max_(greatest(type)), owner_(std::move(owner)) {}

void AutoIncrement::set_type(Type type) noexcept {
  max_.store(greatest(type), std::memory_order_relaxed);
}

Status AutoIncrement::load() {
  if (last_taken_ <= static_cast<std::uint64_t>(max_.load())) return {};
  return Status(StatusCode::kCorrupt,
                fmt::format("{}: {}: last value taken: expected at most {}, found {}", pool_.path(),
                            owner_.get(), max_.load(), last_taken_));
}

// Protocol auto_increment. A row with a number of the block is committed after step 1.
//   step  store                      made durable by     power cut just after it: recovery
//   1     last_taken: the last       flush; the fence    gives numbers behind it: numbers of the
//         number of the block, or    commit/1 of the     block that no row has are a gap
//         the last to be skipped     slot's next commit
// Must hold:  1 before commit/2 of a transaction with such a number, else it could be given twice.
//             The block is the slot's: each of its commits waits for what the slot has flushed.
//             A skip fences at once.
void AutoIncrement::store_last_taken(std::int64_t last, pmem::Persister& persister) noexcept {
  std::atomic_ref(last_taken_).store(static_cast<std::uint64_t>(last), std::memory_order_relaxed);
  persister.flush(&last_taken_, sizeof last_taken_, "auto_increment/1");
}

Status AutoIncrement::refill(ValueBlock& block, std::int64_t skipped, pmem::Persister& persister) {
  if (block.left != 0 && block.next <= skipped) {
    const std::int64_t passed = std::min<std::int64_t>(skipped - block.next + 1, block.left);
    block.next += passed;
    block.left -= static_cast<std::uint32_t>(passed);
    if (block.left != 0) return {};
  }
  const std::lock_guard guard(mutex_);
  note_write(SharedWord::kNumbers, &mutex_);
  note_write(SharedWord::kNumbers, &last_taken_);
  const auto last = static_cast<std::int64_t>(last_taken_);
  const std::int64_t max = max_.load(std::memory_order_relaxed);
  if (last == max)
    return Status(StatusCode::kOutOfSpace,
                  fmt::format("{}: all numbers up to {} have been taken", owner_.get(), max));
  const std::uint32_t wanted = block.size == 0 ? kBlockMin : std::min(block.size * 2, kBlockMax);
  const auto size = static_cast<std::uint32_t>(std::min<std::int64_t>(wanted, max - last));
  store_last_taken(last + size, persister);
  block = {last + 1, size, wanted};
  return {};
}

Status AutoIncrement::skip(std::int64_t last, pmem::Persister& persister) {
  const std::int64_t max = max_.load(std::memory_order_relaxed);
  if (last < 0 || last > max)
    return Status(
        StatusCode::kInvalidArgument,
        fmt::format("{}: numbers up to {}, allowed are 0 to {}", owner_.get(), last, max));
  const std::lock_guard guard(mutex_);
  // A slot may have stored a higher value that is not durable yet.
  store_last_taken(std::max(last, static_cast<std::int64_t>(last_taken_)), persister);
  persister.fence("auto_increment/1");
  if (Status s = persister.wait_durable(); !s.ok()) return s;
  if (last > skipped_.load(std::memory_order_relaxed))
    skipped_.store(last, std::memory_order_release);
  return {};
}

}  // namespace flugs::engine
