#include "fuzz/pool_input.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/database_core.h"
#include "fuzz/exercise.h"

namespace flugs::fuzz {

namespace {

using engine::DatabaseCore;

OpenOptions options_of_opener(const std::string& path) {
  OpenOptions options;
  options.path = path;
  options.mode = OpenMode::kOpen;
  options.segment_bytes = std::uint64_t{64} << 10;
  options.grow_ahead_bytes = 0;
  options.slots_max = 8;
  options.recovery_threads = 1;
  return options;
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
  return PoolInputs(seed, file_every, file, *std::move(samples), std::move(files));
}

InputResult PoolInputs::run(std::uint64_t input) {
  bench::Random random(bench::mix64(seed_) ^ bench::mix64(input + 1));
  return run_in_memory(random);
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
  const Status status = open_and_exercise(pool.first(done.bytes), random, result);
  result.words = status.ok() ? "answered" : status.to_string();
  return result;
}

Status PoolInputs::open_and_exercise(std::span<std::byte> pool, bench::Random& random,
                                     InputResult& result) {
  const OpenOptions options = options_of_opener("(memory)");
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

}  // namespace flugs::fuzz
