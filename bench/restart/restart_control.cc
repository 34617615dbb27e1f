#include "bench/restart/restart_control.h"

#include <new>
#include <utility>

namespace flugs::bench {

namespace {

constexpr std::uint64_t kControlMagic = 0x31747261'74736572u;  // "restart1"
/// Transactions of one writer in one life: many more than there is time for before it is killed.
constexpr std::uint64_t kLogEntries = std::uint64_t{1} << 22;
constexpr std::uint64_t kSampleBytes = whole_pages(kRestartSamplesMax * sizeof(std::uint32_t));
constexpr std::uint64_t kLogBytes = whole_pages(kLogEntries * sizeof(RestartEntry));

}  // namespace

// The file: header, samples, the writers' logs.
struct RestartControl::Header {
  std::uint64_t magic = 0;
  RestartPlan plan;
  RestartStatus status;
};

Result<RestartControl> RestartControl::create(const std::string& path, const RestartPlan& plan) {
  if (plan.writers > kRestartWritersMax)
    return Status(StatusCode::kInvalidArgument, "at most 16 writers");
  Result<SharedFile> file = SharedFile::create(
      path, whole_pages(sizeof(Header)) + kSampleBytes + plan.writers * kLogBytes);
  if (!file.ok()) return std::move(file).status();
  RestartControl control;
  control.file_ = std::move(file).value();
  auto* header = new (control.file_.data()) Header;
  header->plan = plan;
  header->magic = kControlMagic;
  return control;
}

Result<RestartControl> RestartControl::open(const std::string& path) {
  Result<SharedFile> file = SharedFile::open(path, sizeof(Header));
  if (!file.ok()) return std::move(file).status();
  RestartControl control;
  control.file_ = std::move(file).value();
  if (control.header().magic != kControlMagic)
    return Status(StatusCode::kIncompatible, path + " is not a file of the restart benchmark");
  return control;
}

const RestartPlan& RestartControl::plan() const noexcept { return header().plan; }

RestartStatus& RestartControl::status() const noexcept { return header().status; }

std::span<std::uint32_t> RestartControl::samples() const noexcept {
  return {reinterpret_cast<std::uint32_t*>(file_.data() + whole_pages(sizeof(Header))),
          plan().samples()};
}

std::span<RestartEntry> RestartControl::log(std::uint32_t writer) const noexcept {
  std::byte* begin = file_.data() + whole_pages(sizeof(Header)) + kSampleBytes + writer * kLogBytes;
  return {reinterpret_cast<RestartEntry*>(begin), kLogEntries};
}

}  // namespace flugs::bench
