#include "test/faults/power_cuts.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <optional>
#include <vector>

#include "bench/support/random.h"
#include "test/faults/system_calls.h"
#include "test/support/temporary_database.h"

namespace flugs::test {

namespace {

constexpr std::uint64_t kPageBytes = 4096;
constexpr std::uint64_t kSectorBytes = 512;
constexpr std::uint64_t kCutSeed = 11;
/// Exit statuses of the working process.
constexpr int kNoDevice = 2;
constexpr int kHasFailed = 3;

/// A file's contents in the page cache, and those that are certainly on the medium.
class DeviceFile {
 public:
  explicit DeviceFile(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDONLY);
    REQUIRE(file >= 0);
    bytes_ = static_cast<std::uint64_t>(::lseek(file, 0, SEEK_END));
    void* mapped = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, file, 0);
    ::close(file);
    REQUIRE(mapped != MAP_FAILED);
    cached_ = static_cast<const std::byte*>(mapped);
    durable_.assign(cached_, cached_ + bytes_);
  }
  ~DeviceFile() { ::munmap(const_cast<std::byte*>(cached_), bytes_); }
  DeviceFile(const DeviceFile&) = delete;
  DeviceFile& operator=(const DeviceFile&) = delete;

  void synced(std::uint64_t offset, std::uint64_t bytes) {
    const std::uint64_t end = bytes == 0 ? bytes_ : offset + bytes;
    std::memcpy(durable_.data() + offset, cached_ + offset, end - offset);
  }

  /// Offsets of the sectors that may or may not have reached the medium.
  std::vector<std::uint64_t> uncertain() const {
    std::vector<std::uint64_t> sectors;
    for (std::uint64_t page = 0; page < bytes_; page += kPageBytes) {
      if (std::memcmp(durable_.data() + page, cached_ + page, kPageBytes) == 0) continue;
      for (std::uint64_t at = page; at < page + kPageBytes; at += kSectorBytes)
        if (std::memcmp(durable_.data() + at, cached_ + at, kSectorBytes) != 0)
          sectors.push_back(at);
    }
    return sectors;
  }

  /// Writes the image in which exactly `arrived` are on the medium, over an earlier image: a file
  /// that was truncated would have to get each of its pages anew, which takes much longer.
  void write_image(const std::string& path, const std::vector<std::uint64_t>& arrived) const {
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
    REQUIRE(file >= 0);
    REQUIRE(::ftruncate(file, static_cast<off_t>(bytes_)) == 0);
    REQUIRE(::write(file, durable_.data(), bytes_) == static_cast<ssize_t>(bytes_));
    for (const std::uint64_t at : arrived)
      REQUIRE(::pwrite(file, cached_ + at, kSectorBytes, static_cast<off_t>(at)) ==
              static_cast<ssize_t>(kSectorBytes));
    ::close(file);
  }

 private:
  const std::byte* cached_;
  std::uint64_t bytes_ = 0;
  std::vector<std::byte> durable_;
};

struct Device {
  explicit Device(const std::string& path) : pool(path), journal(path + ".journal") {}
  DeviceFile& file(const FileEvent& event) { return event.is_journal ? journal : pool; }

  DeviceFile pool;
  DeviceFile journal;
};

class PowerCut {
 public:
  PowerCut(Device& device, PowerCutScenario& scenario, std::uint32_t images_per_point)
      : device_(device), scenario_(scenario), images_per_point_(images_per_point) {}

  void begun() { in_flight_ = true; }
  void acknowledged() {
    scenario_.acknowledge(steps_++);
    in_flight_ = false;
    cut("acknowledged");
  }
  /// Checks images of a cut at this moment.
  void cut(const char* when) {
    const std::vector<std::uint64_t> pool = device_.pool.uncertain();
    const std::vector<std::uint64_t> journal = device_.journal.uncertain();
    check(when, {}, {});
    if (pool.empty() && journal.empty()) return;
    check(when, pool, journal);
    for (std::uint32_t i = 0; i < images_per_point_; ++i)
      check(when, some_of(pool), some_of(journal));
  }
  std::uint64_t images() const { return images_; }

 private:
  /// Mostly arrived, mostly not, or anything.
  std::vector<std::uint64_t> some_of(const std::vector<std::uint64_t>& sectors) {
    const std::uint32_t share = 1 + random_.below(16);
    std::vector<std::uint64_t> arrived;
    for (const std::uint64_t at : sectors)
      if (random_.below(17) < share) arrived.push_back(at);
    return arrived;
  }

  void check(const char* when, const std::vector<std::uint64_t>& pool,
             const std::vector<std::uint64_t>& journal) {
    ++images_;
    // Memory is faster; some images go on with a journal of their own.
    const TemporaryPath& image = images_ % 64 == 0 ? image_on_disk_ : image_;
    device_.pool.write_image(image.string(), pool);
    device_.journal.write_image(image.journal(), journal);
    Result<Database> opened = Database::open(scenario_.options(image.string()));
    INFO("step " << steps_ << ", " << when << ", image " << images_ << ", " << pool.size()
                 << " sectors of the pool arrived, " << journal.size()
                 << " of the journal: " << opened.status().to_string());
    REQUIRE(opened.ok());
    must(opened->check());
    Status difference = scenario_.compare(*opened, false);
    if (!difference.ok() && in_flight_ && scenario_.compare(*opened, true).ok()) difference = {};
    must(difference);
  }

  Device& device_;
  PowerCutScenario& scenario_;
  std::uint32_t images_per_point_;
  bench::Random random_{kCutSeed};
  TemporaryPath image_;
  TemporaryPath image_on_disk_{"/var/tmp"};
  std::uint64_t steps_ = 0;
  std::uint64_t images_ = 0;
  bool in_flight_ = false;
};

/// From the working process to the judging one; the sender waits for an answer.
struct Message {
  enum class Kind : std::uint8_t { kReady, kBegun, kAcknowledged, kFile };
  Kind kind;
  FileEvent event = {};
};

[[noreturn]] void end_with(const std::string& what) {
  std::fprintf(stderr, "the working process: %s\n", what.c_str());
  ::_exit(kHasFailed);
}

/// Works on the pool at `path` and never returns. Another process judges the images, because a pool
/// must not be open twice in one process.
[[noreturn]] void work(PowerCutScenario& scenario, const std::string& path, std::uint64_t steps,
                       int messages, int answers) {
  std::mutex mutex;  // checkpoints have a thread of their own
  const auto tell = [&](const Message& message) {
    const std::lock_guard lock(mutex);
    char answer = 0;
    if (::write(messages, &message, sizeof message) != sizeof message ||
        ::read(answers, &answer, 1) != 1)
      ::_exit(1);
  };
  {
    Result<Database> database = Database::open(scenario.options(path));
    if (!database.ok() || database->statistics().medium != "file") ::_exit(kNoDevice);
    if (const Status s = scenario.create(*database); !s.ok()) end_with(s.to_string());
  }
  tell({Message::Kind::kReady});
  observe_files(path, [&](const FileEvent& event) { tell({Message::Kind::kFile, event}); });
  Result<Database> database = Database::open(scenario.options(path));
  if (!database.ok()) end_with(database.status().to_string());
  for (std::uint64_t step = 0; step < steps; ++step) {
    tell({Message::Kind::kBegun});
    if (const Status s = scenario.do_step(*database, step); !s.ok()) end_with(s.to_string());
    tell({Message::Kind::kAcknowledged});
  }
  if (const std::string wrong = scenario.finish(*database); !wrong.empty()) end_with(wrong);
  // Protocol journal-end, step by step.
  database = Status(StatusCode::kCancelled);
  // No thread that checkpoints waits for an answer now.
  const std::lock_guard lock(mutex);
  ::_exit(0);
}

}  // namespace

std::uint64_t run_power_cuts(PowerCutScenario& scenario, std::uint64_t steps,
                             std::uint32_t images_per_point) {
  const TemporaryPath path("/var/tmp");
  int messages[2];
  int answers[2];
  REQUIRE((::pipe(messages) == 0 && ::pipe(answers) == 0));
  const pid_t worker = ::fork();
  if (worker == 0) {
    ::close(messages[0]);
    ::close(answers[1]);
    work(scenario, path.string(), steps, messages[1], answers[0]);
  }
  ::close(messages[1]);
  ::close(answers[0]);

  std::optional<Device> device;
  std::optional<PowerCut> power;
  for (Message message; ::read(messages[0], &message, sizeof message) == sizeof message;) {
    switch (message.kind) {
      case Message::Kind::kReady:
        device.emplace(path.string());
        power.emplace(*device, scenario, images_per_point);
        break;
      case Message::Kind::kBegun:
        power->begun();
        break;
      case Message::Kind::kAcknowledged:
        power->acknowledged();
        break;
      case Message::Kind::kFile:
        if (message.event.kind == FileEvent::Kind::kSynced)
          device->file(message.event).synced(message.event.offset, message.event.bytes);
        else
          power->cut(message.event.is_journal ? "journal" : "pool");
        break;
    }
    REQUIRE(::write(answers[1], "", 1) == 1);
  }
  ::close(messages[0]);
  ::close(answers[1]);
  int status = 0;
  REQUIRE(::waitpid(worker, &status, 0) == worker);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoDevice) {
    WARN("not tested: /var/tmp is no file system on a device here");
    return 0;
  }
  CHECK(status == 0);
  std::printf("%llu images\n", static_cast<unsigned long long>(power->images()));
  return power->images();
}

}  // namespace flugs::test
