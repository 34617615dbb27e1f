#include "verify/crash/exploration/scheduled_exploration.h"

#include <algorithm>
#include <ctime>

#include "mvcc/transaction_slots.h"

namespace flugs::crash {

namespace {

// Many schedules with some images each find more than few schedules with all images.
constexpr std::uint64_t kSchedulesWanted = 80;
constexpr std::uint64_t kImagesPerScheduleMin = 120;
constexpr std::uint64_t kCombinationsMax = 24;
constexpr std::uint32_t kRandomImagesMax = 4;
constexpr std::uint64_t kSchedulesMax = 5000;

void add(ExplorationResult& sum, ExplorerReport&& report,
         const std::map<UnflushedSite, std::uint64_t>& unflushed) {
  sum.report.crash_points += report.crash_points;
  sum.report.images_checked += report.images_checked;
  sum.report.images_skipped += report.images_skipped;
  sum.report.sampled_points += report.sampled_points;
  sum.report.nested_images += report.nested_images;
  sum.report.digest += report.digest;
  sum.report.lines_uncertain_max =
      std::max(sum.report.lines_uncertain_max, report.lines_uncertain_max);
  sum.report.failure_count += report.failure_count;
  for (CrashFailure& failure : report.failures) sum.report.failures.push_back(std::move(failure));
  for (const auto& [site, counts] : report.sites) sum.report.sites[site] += counts;
  for (const auto& [site, lines] : unflushed) sum.unflushed[site] += lines;
}

/// Whether the schedule has one switch: mistakes show soon after it.
bool is_enumerated(const Exploration& exploration, std::uint64_t index, const TurnOwners& turns,
                   std::uint32_t threads) {
  return exploration.round == 0 && index % 2 == 1 && index / 2 < turns.size() * (threads - 1);
}

Schedule schedule_of(const Exploration& exploration, std::uint64_t index, const TurnOwners& turns,
                     std::uint32_t threads) {
  if (index == 0) return {};
  if (is_enumerated(exploration, index, turns, threads))
    return one_switch(index / 2, turns, threads);
  return draw_schedule(
      (exploration.seed * 0x9e3779b97f4a7c15u) ^ (std::uint64_t{exploration.round} << 32) ^ index,
      static_cast<std::uint32_t>(turns.size()), threads);
}

std::uint64_t images_for(const Exploration& exploration, bool is_enumerated) {
  const std::uint64_t share =
      std::max(exploration.images_max / kSchedulesWanted, kImagesPerScheduleMin);
  return is_enumerated ? std::max(share / 4, kImagesPerScheduleMin / 2) : share;
}

}  // namespace

ExplorationResult explore_schedules(const Exploration& exploration, const Protocol& protocol,
                                    const Mutation& mutation) {
  const std::clock_t start = std::clock();
  const mvcc::OtherThread self(0);  // makes a run independent of what this process did before
  ExplorationResult result;
  const bool is_given = !exploration.schedule.empty() || !exploration.replay.empty();
  Exploration one = exploration;
  one.combinations_max = std::min(exploration.combinations_max, kCombinationsMax);
  one.random_images = std::min(exploration.random_images, kRandomImagesMax);
  TurnOwners turns;
  for (std::uint64_t index = 0; index < (is_given ? 1 : kSchedulesMax); ++index) {
    RigOptions options;
    Result<Schedule> schedule =
        is_given ? read_schedule(exploration.schedule.empty() ? "none" : exploration.schedule)
                 : Result(schedule_of(exploration, index, turns, protocol.threads));
    if (schedule.ok()) options.schedule = *schedule;
    one.schedule = to_string(options.schedule);
    const std::uint64_t left = exploration.images_max - result.report.images_checked;
    if (!is_given)
      one.images_max = std::min(
          left,
          images_for(exploration, is_enumerated(exploration, index, turns, protocol.threads)));
    Result<ExplorerOptions> explorer = explorer_options(one);
    if (!schedule.ok() || !explorer.ok()) {
      result.outcome = schedule.ok() ? explorer.status() : schedule.status();
      break;
    }
    options.pool_bytes = pool_bytes(exploration, protocol);
    options.gives_back = protocol.gives_back;
    options.index_place = exploration.hints ? IndexPlace::kPool : IndexPlace::kDram;
    options.slots = std::max(exploration.slots, protocol.threads);
    options.mutes_script = true;
    options.turns_seed = exploration.round % 4 < 2 ? 0 : exploration.seed + exploration.round;
    options.explorer = std::move(*explorer);
    options.mutation = mutation;
    CrashRig rig(options);
    protocol.script(rig);
    if (index == 0) turns = rig.turns();
    add(result, rig.report(), rig.unflushed_at_acknowledgement());
    result.outcome = rig.outcome();
    result.report.used_up = result.report.images_checked >= exploration.images_max;
    if (!result.report.failures.empty())
      result.replay = replay_words(one, result.report.failures[0]);
    else if (!result.outcome.ok())
      result.replay = replay_words(one);
    if (!result.outcome.ok() || result.report.used_up) break;
  }
  result.seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  return result;
}

}  // namespace flugs::crash
