#include "bench/tatp/witness.h"

#include <algorithm>
#include <new>
#include <utility>

namespace flugs::bench {

namespace {

constexpr std::uint64_t kWitnessMagic = 0x31737365'6e746977u;  // "witness1"

std::uint32_t value_of(const TatpRequest& request) noexcept {
  switch (request.type) {
    case TatpType::kUpdateLocation:
      return request.vlr_location;
    case TatpType::kUpdateSubscriberData:
      return std::uint32_t{request.bit} << 8 | request.data_a;
    case TatpType::kInsertCallForwarding:
      return TatpState::slot_value(request.end_time, request.numberx);
    default:
      return 0;
  }
}

}  // namespace

// The file: header, two bases, the users' logs. Untouched space takes no memory.
struct Witness::Header {
  std::uint64_t magic = 0;
  CrashPlan plan;
  CrashStatus status;
  std::atomic<std::uint32_t> life{0};
  /// Which of the two bases counts (bit 32), and up to which life it goes (lower half).
  std::atomic<std::uint64_t> base{0};
  UserStatus users[kUsersMax];

  std::uint64_t base_bytes() const noexcept {
    return whole_pages((std::uint64_t{plan.population.subscribers} + 1) * sizeof(TatpState));
  }
  std::uint64_t log_bytes() const noexcept {
    return whole_pages(plan.log_entries * sizeof(WitnessEntry));
  }
};

Result<Witness> Witness::create(const std::string& path, const CrashPlan& plan) {
  if (plan.users == 0 || plan.users > kUsersMax)
    return Status(StatusCode::kInvalidArgument, "users must be 1 to 64");
  if (plan.population.subscribers > TatpState::kSubscribersMax)
    return Status(StatusCode::kInvalidArgument, "too many subscribers for the witness");
  Header sizes;
  sizes.plan = plan;
  const std::uint64_t bytes =
      whole_pages(sizeof(Header)) + 2 * sizes.base_bytes() + plan.users * sizes.log_bytes();
  Result<SharedFile> file = SharedFile::create(path, bytes);
  if (!file.ok()) return std::move(file).status();
  Witness witness;
  witness.file_ = std::move(file).value();
  auto* header = new (witness.file_.data()) Header;
  header->plan = plan;
  header->magic = kWitnessMagic;
  return witness;
}

Result<Witness> Witness::open(const std::string& path) {
  Result<SharedFile> file = SharedFile::open(path, sizeof(Header));
  if (!file.ok()) return std::move(file).status();
  Witness witness;
  witness.file_ = std::move(file).value();
  if (witness.header().magic != kWitnessMagic)
    return Status(StatusCode::kIncompatible, path + " is not a witness");
  return witness;
}

const CrashPlan& Witness::plan() const noexcept { return header().plan; }

CrashStatus& Witness::status() const noexcept { return header().status; }

UserStatus& Witness::user(std::uint32_t index) const noexcept { return header().users[index]; }

std::uint64_t Witness::executed() const noexcept {
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < plan().users; ++i)
    sum += user(i).executed.load(std::memory_order_relaxed);
  return sum;
}

std::uint64_t Witness::first_answer_ns() const noexcept {
  std::uint64_t first = 0;
  for (std::uint32_t i = 0; i < plan().users; ++i) {
    const std::uint64_t time = user(i).first_answer_ns.load(std::memory_order_relaxed);
    if (time != 0 && (first == 0 || time < first)) first = time;
  }
  return first;
}

std::uint32_t Witness::begin_life() noexcept {
  for (std::uint32_t i = 0; i < plan().users; ++i)
    user(i).first_answer_ns.store(0, std::memory_order_relaxed);
  return header().life.fetch_add(1) + 1;
}

std::uint32_t Witness::life() const noexcept { return header().life.load(); }

std::uint32_t Witness::base_life() const noexcept {
  return static_cast<std::uint32_t>(header().base.load());
}

TatpState* Witness::base_buffer(std::uint32_t index) const noexcept {
  return reinterpret_cast<TatpState*>(file_.data() + whole_pages(sizeof(Header)) +
                                      index * header().base_bytes());
}

const TatpState& Witness::base(std::uint32_t s_id) const noexcept {
  const std::uint64_t word = header().base.load();
  return base_buffer(static_cast<std::uint32_t>(word >> 32))[s_id];
}

void Witness::store_next_base(std::uint32_t s_id, const TatpState& state) noexcept {
  const std::uint64_t word = header().base.load();
  base_buffer(static_cast<std::uint32_t>(word >> 32) ^ 1u)[s_id] = state;
}

void Witness::publish_next_base() noexcept {
  const std::uint64_t index = (header().base.load() >> 32) ^ 1u;
  header().base.store(index << 32 | (header().life.load() - 1));
}

WitnessEntry* Witness::log_begin(std::uint32_t user_index) const noexcept {
  return reinterpret_cast<WitnessEntry*>(file_.data() + whole_pages(sizeof(Header)) +
                                         2 * header().base_bytes() +
                                         user_index * header().log_bytes());
}

// Entries since the base come first; behind them stands an empty one, and then only history: so the
// end is found without reading the log, which would delay a restart that is being measured.
std::span<const WitnessEntry> Witness::log(std::uint32_t user_index) const noexcept {
  const WitnessEntry* begin = log_begin(user_index);
  const std::uint32_t history = base_life();
  const WitnessEntry* end =
      std::partition_point(begin, begin + plan().log_entries, [history](const WitnessEntry& entry) {
        return entry.state != WitnessEntry::kNothing && entry.life > history;
      });
  return {begin, end};
}

std::span<WitnessEntry> Witness::log_space(std::uint32_t user_index) noexcept {
  return {log_begin(user_index), plan().log_entries};
}

WitnessLog::WitnessLog(Witness& witness, std::uint32_t user) noexcept
    : space_(witness.log_space(user)), next_(witness.log(user).size()), life_(witness.life()) {}

void WitnessLog::begin(const TatpRequest& request) noexcept {
  WitnessEntry& entry = space_[next_];
  entry.state = WitnessEntry::kNothing;  // may be history: not to be taken for ours half-written
  keep_order();
  entry.commit_timestamp = 0;
  entry.s_id = request.s_id;
  entry.value = value_of(request);
  entry.life = life_;
  entry.type = request.type;
  entry.sf_type = request.sub_type;
  entry.start_time = request.start_time;
  keep_order();
  entry.state = WitnessEntry::kBegun;
  keep_order();
}

void WitnessLog::acknowledge(std::uint64_t commit_timestamp) noexcept {
  space_[next_].commit_timestamp = commit_timestamp;
  keep_order();
  space_[next_].state = WitnessEntry::kAcknowledged;
  keep_order();
  ++next_;
}

void WitnessLog::forget() noexcept {
  space_[next_].state = WitnessEntry::kNothing;
  keep_order();
}

}  // namespace flugs::bench
