#include "verify/crash/rig/explorer.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <string>

#include "pmem/medium/medium.h"
#include "pmem/medium/persist.h"
#include "verify/crash/rig/pool_buffer.h"

namespace flugs::crash {
namespace {

using pmem::Medium;
using pmem::MediumKind;
using pmem::Persister;

// A toy protocol: a record of sixteen words over several lines is written to one of two places,
// then a word names the place. Recovery reads the named one, and counts itself in a separate word.
constexpr std::size_t kWords = 16;

struct Record {
  std::uint64_t words[kWords];
};
struct Toy {
  alignas(64) std::uint64_t current;  // 0 or 1
  alignas(64) Record records[2];
  alignas(64) std::uint64_t recovery_step;  // 0 idle
};

enum class Mistake : std::uint8_t {
  kNone,
  kMissingFlush,
  kMissingFence,
  kWrongOrder,
  kBadRecovery
};

class ToyStore {
 public:
  ToyStore(Medium& medium, Mistake mistake)
      : toy_(*reinterpret_cast<Toy*>(medium.base())), persister_(medium), mistake_(mistake) {}
  ~ToyStore() { persister_.fence("end/1"); }

  void write(std::uint64_t value) {
    const std::uint64_t next = 1 - toy_.current;
    Record& record = toy_.records[next];
    if (mistake_ == Mistake::kWrongOrder) name(next);
    for (std::uint64_t& word : record.words) word = value;
    const std::size_t bytes = mistake_ == Mistake::kMissingFlush ? 64 : sizeof record;
    persister_.flush(&record, bytes, "toy/1");
    if (mistake_ != Mistake::kMissingFence) persister_.fence("toy/1");
    if (mistake_ != Mistake::kWrongOrder) name(next);
  }

  /// Doubles the current record in place, step by step, so that it can be cut short. A correct
  /// recovery must not do so, unless it keeps count.
  void recover() {
    if (mistake_ != Mistake::kBadRecovery) return;
    for (std::uint64_t& word : toy_.records[toy_.current].words) {
      word ^= 1;
      persister_.persist(&word, sizeof word, "recover/1");
    }
    for (std::uint64_t& word : toy_.records[toy_.current].words) {
      word ^= 1;
      persister_.persist(&word, sizeof word, "recover/2");
    }
  }

  /// The value of the record, or an error when it is torn.
  Result<std::uint64_t> read() const {
    const Record& record = toy_.records[toy_.current];
    for (const std::uint64_t word : record.words) {
      if (word != record.words[0]) return Status(StatusCode::kCorrupt, "torn record");
    }
    return record.words[0];
  }

 private:
  void name(std::uint64_t next) {
    toy_.current = next;
    persister_.persist(&toy_.current, sizeof toy_.current, "toy/2");
  }

  Toy& toy_;
  Persister persister_;
  Mistake mistake_;
};

/// Writes 10, 20, ... and recovers every crash state: it must have the last acknowledged value, or
/// the one being written.
ExplorerReport explore(Mistake mistake, ExplorerOptions options = {}) {
  const PoolBuffer buffer(8192);
  std::uint64_t acknowledged = 0;
  std::uint64_t in_flight = 0;
  const CrashCheck check = [&](std::span<std::byte> image, ExplorerContext& context) {
    Medium medium(MediumKind::kMemory, image.data(), image.size(), {});
    medium.set_observer(context.observer());
    ToyStore store(medium, mistake);
    store.recover();
    context.crash_now("recovered");
    medium.set_observer(nullptr);
    const Result<std::uint64_t> value = store.read();
    if (!value.ok()) return value.status();
    if (*value == acknowledged || *value == in_flight) return Status();
    return Status(StatusCode::kCorrupt, "found " + std::to_string(*value));
  };
  Medium medium(MediumKind::kMemory, buffer.span().data(), buffer.span().size(), {});
  CrashExplorer explorer(buffer.span(), check, std::move(options));
  medium.set_observer(&explorer);
  {
    ToyStore store(medium, mistake);
    for (std::uint64_t value = 10; value <= 50; value += 10) {
      in_flight = value;
      store.write(value);
      acknowledged = value;
      explorer.crash_now("acknowledged");
    }
  }
  return explorer.report();
}

TEST_CASE("the explorer finds no error in a correct protocol", "[pmem][crash]") {
  ExplorerOptions options;
  options.tears_words = GENERATE(false, true);
  options.nested_depth = GENERATE(0U, 1U);
  const ExplorerReport report = explore(Mistake::kNone, options);
  INFO(report.to_string());
  CHECK(report.ok());
  CHECK(report.images_checked > 20);
  CHECK(report.lines_uncertain_max >= 2);
}

TEST_CASE("the explorer catches each mistake planted in a protocol", "[pmem][crash]") {
  const Mistake mistake =
      GENERATE(Mistake::kMissingFlush, Mistake::kMissingFence, Mistake::kWrongOrder);
  const ExplorerReport report = explore(mistake);
  INFO(report.to_string());
  CHECK_FALSE(report.ok());
}

TEST_CASE("the explorer catches an ignored flush or fence", "[pmem][crash]") {
  ExplorerOptions options;
  SECTION("a flush") { options.ignored_flush = GENERATE("toy/1", "toy/2"); }
  SECTION("a fence") { options.ignored_fence = GENERATE("toy/1", "toy/2"); }
  const ExplorerReport report = explore(Mistake::kNone, options);
  INFO(report.to_string());
  CHECK_FALSE(report.ok());
}

TEST_CASE("only a crash inside recovery shows that recovery cannot be cut short", "[pmem][crash]") {
  CHECK(explore(Mistake::kBadRecovery).ok());
  ExplorerOptions options;
  options.nested_depth = 1;
  const ExplorerReport report = explore(Mistake::kBadRecovery, options);
  INFO(report.to_string());
  CHECK_FALSE(report.ok());
  CHECK(report.nested_images > 0);
  CHECK(report.failures.at(0).label.find(" > recover/") != std::string::npos);
}

TEST_CASE("the words of a report repeat its failure", "[pmem][crash]") {
  ExplorerOptions options;
  options.nested_depth = 1;
  const Mistake mistake = GENERATE(Mistake::kMissingFence, Mistake::kBadRecovery);
  const ExplorerReport first = explore(mistake, options);
  REQUIRE_FALSE(first.ok());
  options.replay = first.failures.at(0).replay;
  const ExplorerReport again = explore(mistake, options);
  REQUIRE_FALSE(again.ok());
  CHECK(again.failures.at(0).to_string() == first.failures.at(0).to_string());
  CHECK(again.images_checked <= 2);
}

TEST_CASE("exploring stops at its budget, and samples large sets of states", "[pmem][crash]") {
  ExplorerOptions options;
  SECTION("budget") {
    options.images_max = 5;
    const ExplorerReport report = explore(Mistake::kNone, options);
    CHECK(report.images_checked == 5);
    CHECK(report.used_up);
  }
  SECTION("sampling") {
    options.tears_words = true;
    options.combinations_max = 10;
    const ExplorerReport report = explore(Mistake::kNone, options);
    INFO(report.to_string());
    CHECK(report.ok());
    CHECK(report.sampled_points > 0);
    CHECK_FALSE(explore(Mistake::kMissingFlush, options).ok());
  }
}

TEST_CASE("a fence makes certain only what its own persister flushed", "[pmem][crash]") {
  const PoolBuffer buffer(4096);
  Medium medium(MediumKind::kMemory, buffer.span().data(), buffer.span().size(), {});
  bool has_seen_old = false;
  CrashExplorer explorer(buffer.span(), [&](std::span<std::byte> image, ExplorerContext&) {
    has_seen_old = has_seen_old || image[0] == std::byte{0};
    return Status();
  });
  medium.set_observer(&explorer);
  Persister one(medium);
  Persister other(medium);
  medium.base()[0] = std::byte{1};
  one.flush(medium.base(), 1, "one/1");
  medium.base()[128] = std::byte{1};
  other.persist(medium.base() + 128, 1, "other/1");
  has_seen_old = false;
  explorer.crash_now("after the other fence");
  CHECK(has_seen_old);
  one.fence("one/1");
  has_seen_old = false;
  explorer.crash_now("after its own fence");
  CHECK_FALSE(has_seen_old);
}

TEST_CASE("a flushed content may become durable although it was overwritten since",
          "[pmem][crash]") {
  const PoolBuffer buffer(4096);
  Medium medium(MediumKind::kMemory, buffer.span().data(), buffer.span().size(), {});
  std::string seen;
  CrashExplorer explorer(buffer.span(), [&](std::span<std::byte> image, ExplorerContext&) {
    seen += static_cast<char>('0' + static_cast<int>(image[0]));
    return Status();
  });
  medium.set_observer(&explorer);
  Persister persister(medium);
  medium.base()[0] = std::byte{1};
  persister.flush(medium.base(), 1, "a/1");
  medium.base()[0] = std::byte{2};
  explorer.crash_now("three contents");
  CHECK(seen == "012");
  persister.fence("a/1");
  seen.clear();
  explorer.crash_now("the flushed or the newest");
  CHECK(seen == "12");
}

TEST_CASE("contents between two flushes are tried when flushes are crash points", "[pmem][crash]") {
  for (const bool at_flushes : {false, true}) {
    const PoolBuffer buffer(4096);
    Medium medium(MediumKind::kMemory, buffer.span().data(), buffer.span().size(), {});
    bool has_seen_one = false;
    ExplorerOptions options;
    options.at_flushes = at_flushes;
    CrashExplorer explorer(
        buffer.span(),
        [&](std::span<std::byte> image, ExplorerContext&) {
          has_seen_one = has_seen_one || image[0] == std::byte{1};
          return Status();
        },
        options);
    medium.set_observer(&explorer);
    Persister persister(medium);
    medium.base()[0] = std::byte{1};
    persister.flush(medium.base() + 128, 1, "b/1");
    medium.base()[0] = std::byte{2};
    persister.flush(medium.base(), 1, "a/1");
    persister.fence("a/1");
    CHECK(has_seen_one == at_flushes);
  }
}

}  // namespace
}  // namespace flugs::crash
