#include "engine/database/background_threads.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "base/check.h"
#include "base/usable_memory.h"
#include "pmem/space/warm_list.h"
#include "tables/catalog/key_kinds.h"
#include "tables/data/table_hints.h"
#include "tables/table/table.h"

namespace flugs::engine {

std::uint64_t BackgroundThreads::start(Catalog& catalog, TransactionManager& transactions,
                                       Mutex& ddl_mutex, IndexPlace index_place,
                                       std::span<const std::unique_ptr<Table>> tables) {
  FLUGS_CHECK(merger_ == nullptr && hint_keeper_ == nullptr);
  FLUGS_CHECK(sweeper_ == nullptr && warmer_ == nullptr);
  events_ = std::make_unique<EventQueue>(options_.on_event);
  if (options_.on_event)
    pool_.allocator().tell_growth([this](std::uint64_t bytes) {
      events_->post({.kind = EventKind::kPoolGrown, .text = "the pool has grown", .bytes = bytes});
    });
  merger_ = std::make_unique<Merger>(
      pool_, transactions.slots(), ddl_mutex, *events_,
      [&transactions] { transactions.reclaim_dead_rows(); }, options_.tuning.merge_niceness);
  for (const auto& table : tables) merger_->watch(*table, options_.merge_policy);
  if (is_in_pool(index_place) && options_.tuning.hint_interval.count() != 0)
    start_keeping_hints(catalog, ddl_mutex, tables);
  start_sweeping(tables);
  start_warming(tables);
  return std::uint64_t{1} + (hint_keeper_ != nullptr ? 1 : 0) + (warmer_ != nullptr ? 1 : 0) +
         (sweeper_ != nullptr ? 1 : 0);
}

void BackgroundThreads::stop() noexcept {
  warmer_.reset();
  sweeper_.reset();
  hint_keeper_.reset();
  merger_.reset();
  if (events_ == nullptr) return;
  pool_.allocator().tell_growth({});
  events_.reset();
}

void BackgroundThreads::take_in(Table& table) {
  set_hint_tail_max(table.columns(), hint_tail_max());
  if (merger_ != nullptr) merger_->watch(table, options_.merge_policy);
}

void BackgroundThreads::start_keeping_hints(Catalog& catalog, Mutex& ddl_mutex,
                                            std::span<const std::unique_ptr<Table>> tables) {
  hint_keeper_ = std::make_unique<HintKeeper>(catalog, pool_, options_.tuning.hint_interval);
  if (!hint_keeper_->is_running()) hint_keeper_.reset();
  const std::lock_guard guard(ddl_mutex);
  for (const auto& table : tables) set_hint_tail_max(table->columns(), hint_tail_max());
}

void BackgroundThreads::start_sweeping(std::span<const std::unique_ptr<Table>> tables) {
  FLUGS_CHECK(events_ != nullptr);
  std::vector<Table*> unswept;
  for (const auto& table : tables)
    if (table->row_sweep().unswept_rows() != 0 || has_much_to_check(table->data()) ||
        table->index_build().is_deferred())
      unswept.push_back(table.get());
  if (!options_.tuning.sweeps_in_background || unswept.empty()) return;
  for (Table* table : unswept)
    table->index_build().set_builds_later(true);  // the sweeper's thread reads it, too
  sweeper_ = std::make_unique<Sweeper>(unswept, *events_);
  if (sweeper_->is_running()) return;
  for (Table* table : unswept) table->index_build().set_builds_later(false);
}

void BackgroundThreads::start_warming(std::span<const std::unique_ptr<Table>> tables) {
  constexpr std::uint64_t kLittle = std::uint64_t{4} << 20;  // a thread costs more
  std::uint64_t bytes_max = options_.tuning.warm_bytes_max;
  const pmem::Warming warming = pool_.medium().facts().warming;
  if (warming == pmem::Warming::kQuarterOfMemory)
    bytes_max = std::min(bytes_max, usable_memory_bytes() / 4);
  if (bytes_max == 0 || warming == pmem::Warming::kNone ||
      pool_.allocator().space().used_bytes < kLittle)
    return;
  pmem::WarmList pages;
  for (const auto& table : tables) table->data().add_pages(pages);
  warmer_ = std::make_unique<Warmer>(pool_, pages.hottest(bytes_max));
}

// With the hint keeper's thread: how far it may fall behind before writers must help it.
std::uint32_t BackgroundThreads::hint_tail_max() const noexcept {
  constexpr std::uint32_t kBehindMax = 1u << 16;
  static_assert(kBehindMax > columns::DictionaryHints::kTailMax);
  return hint_keeper_ != nullptr ? kBehindMax : columns::DictionaryHints::kTailMax;
}

void BackgroundThreads::report(Statistics& statistics) const {
  if (warmer_ == nullptr) return;
  statistics.warmed_bytes = warmer_->warmed_bytes();
  statistics.warm_bytes_left = warmer_->bytes_left();
  statistics.warm_ms = warmer_->ms();
}

}  // namespace flugs::engine
