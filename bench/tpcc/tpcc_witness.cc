#include "bench/tpcc/tpcc_witness.h"

#include <algorithm>
#include <new>
#include <utility>

#include "bench/tpcc/tpcc_driver.h"

namespace flugs::bench {

namespace {

constexpr std::uint64_t kTpccWitnessMagic = 0x31636370'746e6977u;  // "wintpcc1"

}  // namespace

// The file: header, the users' logs. Untouched space takes no memory.
struct TpccWitness::Header {
  std::uint64_t magic = 0;
  Plan plan;
  std::atomic<std::uint32_t> life{0};
  std::atomic<std::uint32_t> is_running{0};

  std::uint64_t log_bytes() const noexcept {
    return whole_pages(plan.log_entries * sizeof(TpccEntry));
  }
};

Result<TpccWitness> TpccWitness::create(const std::string& path, const Plan& plan) {
  if (plan.users == 0 || plan.users > kTpccUsersMax)
    return Status(StatusCode::kInvalidArgument, "users must be 1 to 64");
  Header sizes;
  sizes.plan = plan;
  Result<SharedFile> file =
      SharedFile::create(path, whole_pages(sizeof(Header)) + plan.users * sizes.log_bytes());
  if (!file.ok()) return std::move(file).status();
  TpccWitness witness;
  witness.file_ = std::move(file).value();
  auto* header = new (witness.file_.data()) Header;
  header->plan = plan;
  header->magic = kTpccWitnessMagic;
  return witness;
}

Result<TpccWitness> TpccWitness::open(const std::string& path) {
  Result<SharedFile> file = SharedFile::open(path, sizeof(Header));
  if (!file.ok()) return std::move(file).status();
  TpccWitness witness;
  witness.file_ = std::move(file).value();
  if (witness.header().magic != kTpccWitnessMagic)
    return Status(StatusCode::kIncompatible, path + " is not a witness of TPC-C");
  return witness;
}

const TpccWitness::Plan& TpccWitness::plan() const noexcept { return header().plan; }
std::atomic<std::uint32_t>& TpccWitness::life() const noexcept { return header().life; }
std::atomic<std::uint32_t>& TpccWitness::is_running() const noexcept { return header().is_running; }

std::span<TpccEntry> TpccWitness::log_space(std::uint32_t user) noexcept {
  std::byte* const begin = file_.data() + whole_pages(sizeof(Header)) + user * header().log_bytes();
  return {reinterpret_cast<TpccEntry*>(begin), plan().log_entries};
}

std::span<const TpccEntry> TpccWitness::log(std::uint32_t user) const noexcept {
  const std::byte* const begin =
      file_.data() + whole_pages(sizeof(Header)) + user * header().log_bytes();
  const std::span<const TpccEntry> all = {reinterpret_cast<const TpccEntry*>(begin),
                                          plan().log_entries};
  const auto end = std::find_if(all.begin(), all.end(), [](const TpccEntry& entry) {
    return entry.state == TpccEntry::kNothing;
  });
  return all.first(static_cast<std::size_t>(end - all.begin()));
}

void TpccWitness::clear_logs() noexcept {
  for (std::uint32_t user = 0; user < plan().users; ++user) {
    const std::size_t used = log(user).size();
    // One more: an entry that was forgotten, or begun by halves.
    for (TpccEntry& entry : log_space(user).first(std::min(used + 1, log_space(user).size())))
      entry = TpccEntry();
  }
}

std::int64_t TpccWitness::first_time_us() const noexcept {
  std::int64_t first = INT64_MAX;
  for (std::uint32_t user = 0; user < plan().users; ++user)
    for (const TpccEntry& entry : log(user)) first = std::min(first, entry.time_us);
  return first;
}

void TpccLog::begin(const TpccRequest& request) noexcept {
  TpccEntry& entry = space_[next_];
  entry.time_us = request.time_us;
  entry.amount = request.amount;
  entry.w = request.w;
  entry.d = request.d;
  entry.customer_w = request.customer_w;
  entry.customer_d = request.customer_d;
  const bool by_name = request.type == TpccType::kPayment && request.by_name;
  entry.customer = by_name ? 0 : request.customer;
  entry.line_count = request.line_count;
  entry.carrier = request.carrier;
  entry.type = request.type;
  keep_order();
  entry.state = TpccEntry::kBegun;
  keep_order();
}

void TpccLog::acknowledge(const TpccReceipt& receipt) noexcept {
  TpccEntry& entry = space_[next_];
  entry.order = receipt.order;
  if (entry.type == TpccType::kPayment) entry.customer = receipt.customer;
  entry.delivered = receipt.delivered;
  keep_order();
  entry.state = TpccEntry::kAcknowledged;
  keep_order();
  ++next_;
}

void TpccLog::forget() noexcept {
  space_[next_].state = TpccEntry::kNothing;
  keep_order();
}

}  // namespace flugs::bench
