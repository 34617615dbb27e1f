#include "bindings/duckdb/moments.h"

#include <map>
#include <tuple>
#include <utility>

#include "flugs/try.h"

namespace flugs::duckdb {

namespace {

struct KnownMoments {
  std::mutex mutex;  // protects `moments`
  std::map<std::tuple<const void*, std::uint64_t, const Pool*>, std::weak_ptr<Moment>> moments;
};

/// Never destroyed: DuckDB may be in use after the destructors of this library.
KnownMoments& known_moments() {
  static KnownMoments& instance = *new KnownMoments;
  return instance;
}

}  // namespace

void Moment::bind(const void* scan) {
  const std::lock_guard lock(mutex_);
  bound_.insert(scan);
}

void Moment::unbind(const void* scan) noexcept {
  const std::lock_guard lock(mutex_);
  bound_.erase(scan);
  seen_.erase(scan);
}

std::size_t Moment::scan_count() {
  const std::lock_guard lock(mutex_);
  return bound_.size();
}

Result<std::shared_ptr<Guest>> Moment::enter(const void* scan) {
  const std::lock_guard lock(mutex_);
  const bool is_over = guest_ == nullptr || (running_ == 0 && seen_.contains(scan));
  if (is_over) {
    FLUGS_ASSIGN(guest_, pool_->begin(AccessMode::kReadOnly));
    seen_.clear();
  }
  seen_.insert(scan);
  ++running_;
  return guest_;
}

void Moment::leave() noexcept {
  const std::lock_guard lock(mutex_);
  if (--running_ == 0 && seen_.size() >= bound_.size()) guest_.reset();
}

std::shared_ptr<Moment> moment_of(const void* instance, std::uint64_t statement,
                                  const std::shared_ptr<Pool>& pool) {
  KnownMoments& known = known_moments();
  const std::lock_guard lock(known.mutex);
  std::erase_if(known.moments, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<Moment>& found = known.moments[{instance, statement, pool.get()}];
  std::shared_ptr<Moment> moment = found.lock();
  if (moment == nullptr) {
    moment = std::make_shared<Moment>(pool);
    found = moment;
  }
  return moment;
}

}  // namespace flugs::duckdb
