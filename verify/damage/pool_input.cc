#include "verify/damage/pool_input.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "engine/audit/pool_audit.h"
#include "engine/database/database_core.h"
#include "pmem/medium/medium.h"
#include "verify/damage/exercise.h"

namespace flugs::damage {

namespace {

using engine::DatabaseCore;

OpenOptions options_of_opener(const std::string& path, bench::Random& random) {
  OpenOptions options;
  options.tuning.clock = CommitClock::kCounter;  // the same on every machine
  options.path = path;
  options.mode = OpenMode::kOpen;
  options.segment_bytes = std::uint64_t{64} << 10;
  options.tuning.grow_ahead_bytes = 0;
  options.slots_max = 8;
  options.tuning.recovery_threads = 1;
  // Mostly without threads that keep hints and merge, so that an input does the same when it is
  // repeated.
  const bool has_threads = random.below(8) == 0;
  options.tuning.hint_interval = std::chrono::milliseconds(has_threads ? 1 : 0);
  options.merge_policy.automatic = has_threads;
  options.merge_policy.interval = std::chrono::milliseconds(10);
  return options;
}

/// Writes the pages that are not all zero; the others stay holes.
Status write_sparse(const std::string& path, std::span<const std::byte> bytes) {
  using pmem::kPageBytes;
  static constexpr std::array<std::byte, kPageBytes> kZeros{};
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  bool good = fd >= 0 && ::ftruncate(fd, static_cast<off_t>(bytes.size())) == 0;
  for (std::size_t at = 0; good && at < bytes.size(); at += kPageBytes) {
    const std::size_t count = std::min(kPageBytes, bytes.size() - at);
    if (std::memcmp(bytes.data() + at, kZeros.data(), count) == 0) continue;
    good = ::pwrite(fd, bytes.data() + at, count, static_cast<off_t>(at)) ==
           static_cast<ssize_t>(count);
  }
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (good) return {};
  return Status(StatusCode::kIoError, fmt::format("{}: {}", path, std::strerror(error)));
}

std::string words_of(const Result<PoolCheckReport>& audit) {
  if (!audit.ok()) return audit.status().to_string();
  std::string words = fmt::format("{} damages, {} remarks", audit->damages, audit->remarks);
  for (const PoolFinding& finding : audit->findings) words += "\n  " + finding.message;
  return words;
}

}  // namespace

PoolInputs::PoolInputs(std::uint64_t seed, std::uint64_t file_every, std::string file,
                       std::vector<SamplePool> samples, std::vector<SamplePool> files)
    : seed_(seed),
      file_every_(file_every),
      file_(std::move(file)),
      samples_(std::move(samples)),
      files_(std::move(files)) {
  std::size_t bytes = 0;
  for (const SamplePool& sample : samples_) bytes = std::max(bytes, sample.bytes.size());
  buffer_ = std::make_unique<GuardedBuffer>(bytes);
  audited_ = std::make_unique<GuardedBuffer>(bytes);
}

Result<PoolInputs> PoolInputs::make(std::uint64_t seed, std::uint64_t file_every,
                                    const std::string& file) {
  Result<std::vector<SamplePool>> samples = make_memory_samples(seed);
  if (!samples.ok()) return samples.status();
  std::vector<SamplePool> files;
  if (file_every != 0) {
    Result<std::vector<SamplePool>> made = make_file_samples(seed, file);
    if (!made.ok()) return made.status();
    files = *std::move(made);
  }
  return PoolInputs(seed, file_every, file, *std::move(samples), std::move(files));
}

InputResult PoolInputs::run(std::uint64_t input) {
  bench::Random random(bench::mix64(seed_) ^ bench::mix64(input + 1));
  const bool in_file = file_every_ != 0 && input % file_every_ == 0;
  return in_file ? run_in_file(random) : run_in_memory(random);
}

InputResult PoolInputs::run_in_file(bench::Random& random) {
  const std::size_t index = random.below(files_.size());
  const SamplePool& sample = files_[index];
  std::vector<std::byte> pool = sample.bytes;
  const Corruption done = corrupt(pool, files_, index, random);
  pool.resize(done.bytes);
  InputResult result;
  result.in_file = true;
  result.is_vouched = done.is_vouched;
  if (before_use) before_use(fmt::format("pool '{}': {}", sample.name, done.words));
  if (Status s = write_sparse(file_, pool); !s.ok()) {
    result.words = s.to_string();
    return result;
  }
  const Result<PoolCheckReport> audit = check_pool({.path = file_, .progress = {}});
  result.is_noticed = !audit.ok() || !audit->is_clean() || audit->remarks != sample.remarks;
  Status status;
  for (std::uint32_t opening = 0; status.ok() && opening < 2; ++opening) {
    const auto core = DatabaseCore::open(options_of_opener(file_, random));
    status = core.status();
    if (!core.ok()) break;
    result.outcome = Outcome::kAnswered;
    exercise(**core, random);
  }
  remove_pool_file(file_);
  result.is_noticed |= !status.ok();
  result.words = fmt::format("opening: {}; check: {}", status.ok() ? "ok" : status.to_string(),
                             words_of(audit));
  return result;
}

InputResult PoolInputs::run_in_memory(bench::Random& random) {
  const std::size_t index = random.below(samples_.size());
  const SamplePool& sample = samples_[index];
  const std::span<std::byte> pool = buffer_->tail(sample.bytes.size());
  std::copy(sample.bytes.begin(), sample.bytes.end(), pool.begin());
  const Corruption done = corrupt(pool, samples_, index, random);
  InputResult result;
  result.is_vouched = done.is_vouched;
  if (before_use) before_use(fmt::format("pool '{}': {}", sample.name, done.words));
  // A shortened pool is put at the end of the buffer, so that a read behind it is caught.
  const std::span<std::byte> left = buffer_->tail(done.bytes);
  if (left.size() != pool.size()) std::memmove(left.data(), pool.data(), left.size());
  const std::span<std::byte> copy = audited_->tail(left.size());
  std::copy(left.begin(), left.end(), copy.begin());
  const Result<PoolCheckReport> audit = engine::check_pool_in_memory(copy);
  result.is_noticed = !audit.ok() || !audit->is_clean() || audit->remarks != sample.remarks;
  const Status status = open_and_exercise(left, random, result);
  result.words = fmt::format("opening: {}; check: {}", status.ok() ? "ok" : status.to_string(),
                             words_of(audit));
  return result;
}

Status PoolInputs::open_and_exercise(std::span<std::byte> pool, bench::Random& random,
                                     InputResult& result) {
  const OpenOptions options = options_of_opener("(memory)", random);
  const std::uint32_t openings = 1 + (random.below(4) == 0 ? 1 : 0);
  for (std::uint32_t i = 0; i < openings; ++i) {
    auto mapped = pmem::Pool::open_in_memory(pool, pmem::PoolOptions{});
    Result<std::unique_ptr<DatabaseCore>> core =
        mapped.ok() ? DatabaseCore::open(std::move(*mapped), false, options)
                    : Result<std::unique_ptr<DatabaseCore>>(mapped.status());
    if (!core.ok()) {
      result.is_noticed = true;
      return core.status();
    }
    result.outcome = Outcome::kAnswered;
    result.is_noticed |= (*core)->report().dictionary_entries_dropped != 0;
    exercise(**core, random);
  }
  return {};
}

}  // namespace flugs::damage
