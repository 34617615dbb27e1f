#pragma once

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bench/support/random.h"
#include "pmem/journal/pool_journal.h"
#include "pmem/medium/persist.h"
#include "test/support/temporary_pool.h"

// A journal of a pool on a disk, without a pool: lines with version numbers.

namespace flugs::pmem {

inline constexpr std::uint64_t kUuid = 0x1234;
inline constexpr std::uint64_t kId = 0x5678;
inline constexpr std::uint64_t kLines = 4096;
inline constexpr std::uint64_t kPoolBytes = kLines * kLineBytes;
inline constexpr std::uint64_t kSector = 512;

using Bytes = std::vector<std::byte>;

inline Bytes read_file(const std::string& path) {
  Bytes bytes(std::filesystem::file_size(path));
  std::ifstream(path, std::ios::binary)
      .read(reinterpret_cast<char*>(bytes.data()), std::ssize(bytes));
  return bytes;
}

inline void write_file(const std::string& path, const Bytes& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

/// `before`, with some of the sectors in which `after` differs.
inline Bytes torn(const Bytes& before, const Bytes& after, bench::Random& random) {
  Bytes image = before;
  const std::uint32_t share = random.below(18);  // none, all, or some of them
  for (std::uint64_t at = 0; at + kSector <= after.size(); at += kSector) {
    if (std::memcmp(before.data() + at, after.data() + at, kSector) == 0) continue;
    if (random.below(17) < share) std::memcpy(image.data() + at, after.data() + at, kSector);
  }
  return image;
}

/// The pool's file: what was written, and what of it is durable. Its power is cut after some calls.
class FileWithPower final : public PageFile {
 public:
  Bytes cached = Bytes(kPoolBytes);
  Bytes durable = Bytes(kPoolBytes);
  std::uint64_t calls_left = ~std::uint64_t{0};
  std::function<void()> meanwhile;  ///< what others do during a write
  std::atomic<int> writes_through{0};

  Status write(std::uint64_t offset, std::span<const std::byte> pages) override {
    if (!has_power()) return Status(StatusCode::kIoError, "no power");
    std::memcpy(cached.data() + offset, pages.data(), pages.size());
    if (meanwhile) meanwhile();
    return {};
  }
  Status send(std::uint64_t, std::uint64_t) override {
    return has_power() ? Status() : Status(StatusCode::kIoError, "no power");
  }
  Status sync_data() override {
    if (!has_power()) return Status(StatusCode::kIoError, "no power");
    durable = cached;
    return {};
  }
  Status write_through(std::uint64_t offset, std::span<const std::byte> pages) override {
    writes_through += 1;
    if (Status s = write(offset, pages); !s.ok()) return s;
    if (!has_power()) return Status(StatusCode::kIoError, "no power");
    std::memcpy(durable.data() + offset, pages.data(), pages.size());
    return {};
  }
  Status show_again(std::uint64_t offset, std::span<std::byte> pages) const override {
    std::memcpy(pages.data(), cached.data() + offset, pages.size());
    return {};
  }

 private:
  bool has_power() { return calls_left != 0 && calls_left-- != 0; }
};

/// A pool of lines whose words all are the line's version.
class LinePool {
 public:
  explicit LinePool(std::uint64_t journal_bytes, bool has_crash_ring = false)
      : shape_(journal_shape(journal_bytes)), has_crash_ring_(has_crash_ring) {
    open(PoolJournal::create(path_.string(), kUuid, kId, shape_, target()));
  }

  /// After a power cut: `file` is what is left of the pool's file, `journal` of its journal.
  void restart(const Bytes& file, const Bytes& journal) {
    journal_.reset();
    write_file(path_.journal(), journal);
    restart(file);
  }
  /// After the death of the process: the journal's file is as it was.
  void restart(const Bytes& file) {
    journal_.reset();
    file_.cached = file_.durable = file;
    file_.calls_left = ~std::uint64_t{0};
    std::memcpy(memory_.span().data(), file.data(), file.size());
    open(PoolJournal::recover(path_.string(), kUuid, kId, target()));
  }

  std::uint64_t* words(std::uint64_t line) {
    return reinterpret_cast<std::uint64_t*>(memory_.span().data() + line * kLineBytes);
  }
  /// Stores `version` into lines and appends them.
  void store(std::uint64_t line, std::uint64_t lines, std::uint64_t version) {
    for (std::uint64_t* word = words(line); word != words(line + lines); ++word) *word = version;
    const LineRun run{memory_.span().data() + line * kLineBytes, lines};
    journal().append({&run, 1});
  }
  Journal& journal() { return journal_->journal(); }
  void remove_ring() { journal_->remove_ring(); }
  Checkpointer& checkpointer() { return journal_->checkpointer(); }
  DirectWriter& direct_writer() { return journal_->direct_writer(); }
  FileWithPower& file() { return file_; }
  Bytes journal_bytes() const { return read_file(path_.journal()); }
  const test::TemporaryPath& path() const { return path_; }
  std::span<std::byte> memory() { return memory_.span(); }

 private:
  PoolJournal::Target target() {
    return {.pool = memory_.span(),
            .pool_bytes_max = kPoolBytes,
            .file = file_,
            .replay_ns = ~std::uint64_t{0},
            .has_crash_ring = has_crash_ring_};
  }
  void open(Result<std::unique_ptr<PoolJournal>> opened) {
    INFO(opened.status().to_string());
    REQUIRE(opened.ok());
    journal_ = *std::move(opened);
  }

  JournalShape shape_;
  bool has_crash_ring_;
  test::TemporaryPath path_;
  test::PoolBuffer memory_{kPoolBytes};
  FileWithPower file_;
  std::unique_ptr<PoolJournal> journal_;
};

/// Stores the journal of `pool` into `view`, which is as the pool's file is.
inline Status replay_into(Bytes& view, const LinePool& pool) {
  const Bytes file = view;
  const auto ignore = [](std::uint64_t, std::uint64_t) {};
  const auto show_again = [&](std::uint64_t offset, std::uint64_t bytes) {
    std::memcpy(view.data() + offset, file.data() + offset, bytes);
    return Status();
  };
  return replay_into_view(pool.path().string(), kUuid, kId, {view, ignore, show_again});
}

/// What each step stored, to judge what a power cut has left: version n is step n.
class LineSteps {
 public:
  explicit LineSteps(LinePool& pool) : pool_(pool) {}

  void store_some(bench::Random& random) {
    const std::uint64_t line = random.below(kLines);
    const std::uint32_t most = random.below(20) == 0 ? 60 : 3;
    const std::uint64_t lines = std::min(std::uint64_t{1} + random.below(most), kLines - line);
    made_.push_back({line, lines});
    pool_.store(line, lines, made_.size());
  }
  void all_durable() { durable_ = made_.size(); }
  /// The same steps, of which none need be durable, to judge another pool.
  LineSteps of(LinePool& other) const {
    LineSteps steps(other);
    steps.made_ = made_;
    return steps;
  }

  /// The lines are those after some step that is not before the last durable one. Later steps never
  /// were: their numbers are given again.
  void judge() {
    std::uint64_t last = durable_;
    for (std::uint64_t line = 0; line < kLines; ++line) last = std::max(last, version(line));
    REQUIRE(last <= made_.size());
    std::vector<std::uint64_t> expected(kLines);
    for (std::uint64_t step = 0; step < last; ++step)
      for (std::uint64_t i = 0; i < made_[step].second; ++i)
        expected[made_[step].first + i] = step + 1;
    for (std::uint64_t line = 0; line < kLines; ++line) {
      const std::uint64_t* const words = pool_.words(line);
      if (std::count(words, words + kLineBytes / 8, expected[line]) == kLineBytes / 8) continue;
      INFO("line " << line << ", last step " << last << ", durable " << durable_);
      REQUIRE(version(line) == expected[line]);
      FAIL("the line is torn");
    }
    made_.resize(last);
    durable_ = last;
  }

 private:
  std::uint64_t version(std::uint64_t line) { return pool_.words(line)[0]; }

  LinePool& pool_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> made_;
  std::uint64_t durable_ = 0;
};

}  // namespace flugs::pmem
