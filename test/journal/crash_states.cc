#include "test/journal/crash_states.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

namespace flugs::test {

namespace {

constexpr std::uint32_t kDepthMax = 2;
constexpr std::uint64_t kLivesMax = 12;
constexpr std::uint64_t kStepsMax = 60;
constexpr unsigned kNestedStepsPercent = 15;
constexpr unsigned kOpenedStepsPercent = 80;  // of the life before, an opening is all
constexpr std::uint64_t kNestedStepsMax = 8;
/// One of so many states is the beginning of a nested life.
constexpr std::uint64_t kNestedOdds = 250;
constexpr std::uint64_t kNestedOddsOfOpening = 8;  // that was killed
/// Of so few pending sectors all subsets are built.
constexpr std::size_t kAllSubsetsMax = 4;
constexpr std::size_t kSinglesMax = 4;
constexpr std::size_t kDrawnSubsets = 5;

using Subset = std::vector<std::uint8_t>;

Begin begin_with(Bytes pool, Bytes journal, std::span<const std::byte> recovered,
                 std::uint64_t first_store) {
  return {SectorFile(std::move(pool), 1), SectorFile(std::move(journal), 1 + kPoolBytes),
          LineModel(recovered, first_store), Bytes()};
}

std::uint64_t mixed(std::uint64_t number) { return Random(number).next(); }

/// Without a crash ring nobody asks for more than a power cut leaves.
LineModel::Kept kept_by(Death death) {
  return death == Death::kKill ? LineModel::Kept::kEnded : LineModel::Kept::kPromised;
}

/// The pending sectors of both files: those of the pool's file come first.
struct PendingSectors {
  std::size_t of_pool;
  std::size_t count;
  bool may_be_garbled;  ///< those of the journal
};

/// A sector in part. What was in flight to the journal may also be garbled: its records and heads
/// have checksums, and there are two heads.
std::uint8_t drawn_part(const PendingSectors& pending, std::size_t sector, Random& random) {
  if (sector >= pending.of_pool) {
    if (!pending.may_be_garbled) return 0;
    if (random.chance(50)) return kGarbledSector;
  }
  return static_cast<std::uint8_t>(random.below(kWholeSector));
}

/// Few or many of each file; of some a part.
void draw(const PendingSectors& pending, Subset& chosen, Random& random) {
  const auto percent_pool = static_cast<unsigned>(random.below(101));
  const auto percent_journal = static_cast<unsigned>(random.below(101));
  const unsigned percent_torn = random.chance(50) ? 0 : 10;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const unsigned percent = i < pending.of_pool ? percent_pool : percent_journal;
    chosen[i] = random.chance(percent) ? kWholeSector : 0;
    if (random.chance(percent_torn)) chosen[i] = drawn_part(pending, i, random);
  }
}

template <typename Judge>
void for_all_subsets(const PendingSectors& pending, Random& random, Judge&& judge) {
  Subset chosen(pending.count, 0);
  for (std::uint64_t bits = 0; bits < std::uint64_t{1} << pending.count; ++bits) {
    for (std::size_t i = 0; i < chosen.size(); ++i) chosen[i] = (bits >> i & 1) * kWholeSector;
    judge(chosen);
  }
  if (chosen.empty()) return;
  draw(pending, chosen, random);
  const std::size_t single = random.below(chosen.size());
  chosen[single] = drawn_part(pending, single, random);
  judge(chosen);
}

template <typename Judge>
void for_some_subsets(const PendingSectors& pending, Random& random, Judge&& judge) {
  Subset chosen(pending.count, 0);
  for (int files = 0; files < 4; ++files) {
    const auto begin_of_journal = chosen.begin() + static_cast<std::ptrdiff_t>(pending.of_pool);
    std::fill(chosen.begin(), begin_of_journal, (files & 1) * kWholeSector);
    std::fill(begin_of_journal, chosen.end(), (files >> 1) * kWholeSector);
    judge(chosen);
  }
  for (std::size_t n = std::min(chosen.size(), kSinglesMax), i = 0; i < n; ++i) {
    const std::size_t single = n == chosen.size() ? i : random.below(chosen.size());
    for (const std::uint8_t others : {std::uint8_t{0}, kWholeSector}) {
      std::fill(chosen.begin(), chosen.end(), others);
      chosen[single] = kWholeSector - others;
      judge(chosen);
    }
  }
  for (std::size_t i = 0; i < kDrawnSubsets; ++i) {
    draw(pending, chosen, random);
    judge(chosen);
  }
}

}  // namespace

/// The bytes of a journal lie in memory; its name and its size are looked for at its path.
CrashStates::CrashStates(std::uint64_t first_script) : script_(first_script) {
  for (std::uint32_t depth = 0; depth <= kDepthMax; ++depth) {
    pools_.emplace_back(kPoolBytes);
    const std::ofstream made(paths_.emplace_back().journal());
    std::filesystem::resize_file(paths_.back().journal(), kJournalBytes);
  }
}

void CrashStates::explore(std::uint64_t states) {
  states_max_ = states;
  for (; !is_over(); ++script_) run_script();
}

/// An empty pool. The ring has zeros, or bytes that were never written.
Begin CrashStates::first_begin() {
  const Bytes pool(kPoolBytes);
  Bytes journal(kJournalBytes);
  if (random_.chance(50))
    for (std::size_t at = pmem::kJournalDataOffset; at < kJournalBytes; ++at)
      journal[at] = static_cast<std::byte>(random_.next());
  return begin_with(pool, std::move(journal), pool, 1 + (script_ << 32));
}

void CrashStates::run_script() {
  random_ = Random(script_);
  seen_.clear();
  judged_.clear();
  next_ = first_begin();
  const std::uint64_t lives = 1 + random_.below(kLivesMax);
  for (life_ = 0; life_ < lives && !is_over(); ++life_) {
    const Begin begin = *std::exchange(next_, std::nullopt);
    candidates_ = 0;
    Life life(*this, random_, paths_[0], 0, begin);
    if (life.open()) life.do_steps(random_.below(kStepsMax));
    end_life(life);
  }
}

/// The next life begins with a state that this one has had, or with its end.
void CrashStates::end_life(Life& life) {
  if (is_over()) return;
  const bool is_closed = !life.is_ended() && random_.chance(20) && life.close();
  if (is_over()) return;
  const bool is_at_end =
      next_ == std::nullopt || is_closed || random_.chance(life.is_ended() ? 90 : 50);
  if (!is_at_end) {
    next_->model.skip_to(life.model().next_store());
    return;
  }
  const Subset all(life.pool_file().pending() + life.journal_file().pending(), kWholeSector);
  const bool is_kept = life.outlives_process() && !is_closed && random_.chance(60);
  const Death death = is_kept ? Death::kKill : Death::kPowerCut;
  if (const std::string fault = recover(life, death, all); !fault.empty())
    return wrong(life, "the end: " + fault);
  next_ = begin_from(life, death, all);
  if (is_kept || is_closed || life.has_failed() || random_.chance(30)) return;
  // Killed, without a ring: the power may still be cut.
  next_ = {life.pool_file(), life.journal_file(), life.model(), Bytes()};
  next_->model.kill(pools_[life.depth()].span(), LineModel::Kept::kPromised);
}

void CrashStates::cut(Life& life, const char* when) {
  if (is_over()) return;
  const std::size_t of_pool = life.pool_file().pending();
  const PendingSectors pending{.of_pool = of_pool,
                               .count = of_pool + life.journal_file().pending(),
                               .may_be_garbled = life.has_whole_head()};
  const auto judge_it = [&](const Subset& chosen) {
    if (!is_over()) judge(life, Death::kPowerCut, chosen, when);
  };
  if (pending.count <= kAllSubsetsMax)
    for_all_subsets(pending, random_, judge_it);
  else
    for_some_subsets(pending, random_, judge_it);
  kill(life, when);
}

/// The journal's sectors that are pending are in flight.
void CrashStates::kill(Life& life, const char* when) {
  if (!life.outlives_process()) return;
  const auto of_pool = static_cast<std::ptrdiff_t>(life.pool_file().pending());
  Subset chosen(life.pool_file().pending() + life.journal_file().pending(), kWholeSector);
  const std::span<std::uint8_t> in_flight = std::span(chosen).subspan(of_pool);
  const unsigned some = static_cast<unsigned>(1 + random_.below(99));
  for (const unsigned percent : {100U, 0U, some}) {
    for (std::uint8_t& sector : in_flight) sector = random_.chance(percent) ? kWholeSector : 0;
    if (!is_over()) judge(life, Death::kKill, chosen, when);
    if (in_flight.empty()) return;
  }
}

void CrashStates::wrong(const Life& life, const std::string& what) {
  if (!violation_.empty()) return;
  violation_ = fmt::format("script {}, life {}, depth {}, state {}: {}", script_, life_,
                           life.depth(), states_, what);
}

/// False: this script has had the case. Notes it.
bool CrashStates::is_new_case(Life& life, Death death, Chosen chosen) {
  const bool is_kill = death == Death::kKill;
  const Chosen of_journal = chosen.subspan(life.pool_file().pending());
  std::uint64_t hash = life.pool_file().hash(chosen) + life.journal_file().hash(of_journal);
  if (is_kill) hash += mixed(XXH3_64bits(life.ring().data(), life.ring().size()));
  const LineModel& model = life.model();
  const bool is_new = seen_.insert(hash);
  // What was promised meanwhile makes the same state another case.
  const std::uint64_t kept = is_kill ? ~model.ended() : model.promised();
  if (!judged_.insert(hash ^ mixed(kept + (model.first_store() << 20)))) return false;
  states_ += is_new ? 1 : 0;
  nested_ += is_new && life.depth() != 0 ? 1 : 0;
  killed_ += is_new && is_kill ? 1 : 0;
  return true;
}

void CrashStates::judge(Life& life, Death death, Chosen chosen, const char* when) {
  if (!is_new_case(life, death, chosen)) return;
  const std::string fault = recover(life, death, chosen);
  if (!fault.empty()) {
    const char* const how = death == Death::kKill ? "killed, " : "";
    return wrong(life, fmt::format("{}{}: {}", how, when, fault));
  }
  if (life.depth() == 0 && random_.below(++candidates_) == 0)
    next_ = begin_from(life, death, chosen);
  const bool is_in_opening = death == Death::kKill && !life.is_open();
  const std::uint64_t odds = is_in_opening ? kNestedOddsOfOpening : kNestedOdds;
  if (life.depth() < kDepthMax && random_.below(odds) == 0) begin_nested(life, death, chosen);
}

/// Recovers a state into the buffer of this depth. What is wrong with it; empty: nothing.
std::string CrashStates::recover(Life& life, Death death, Chosen chosen) {
  const Chosen of_journal = chosen.subspan(life.pool_file().pending());
  const std::span<std::byte> pool = pools_[life.depth()].span();
  const auto read_file = [&](std::span<std::byte> into) {
    if (death != Death::kKill) return life.pool_file().put_image(chosen, into);
    const Bytes cached = life.pool_file().cached();
    std::copy(cached.begin(), cached.end(), into.begin());
  };
  read_file(pool);
  if (const std::uint64_t id = journal_id_of(pool); id != 0) {
    life.journal_file().exchange(of_journal);
    const auto ignore = [](std::uint64_t, std::uint64_t) {};
    const auto show_again = [&](std::uint64_t offset, std::uint64_t bytes) {
      Bytes file(kPoolBytes);
      read_file(file);
      std::copy_n(file.data() + offset, bytes, pool.data() + offset);
      return Status();
    };
    life.judge_as(death);
    const Status status =
        pmem::replay_into_view(life.path().string(), kPoolUuid, id, {pool, ignore, show_again});
    life.judge_as(std::nullopt);
    life.journal_file().exchange(of_journal);
    if (!status.ok()) return status.to_string();
  }
  return life.model().judge(pool, kept_by(death));
}

/// The state was recovered just now.
Begin CrashStates::begin_from(Life& life, Death death, Chosen chosen) {
  const std::span<std::byte> recovered = pools_[life.depth()].span();
  const Chosen of_journal = chosen.subspan(life.pool_file().pending());
  if (death == Death::kKill) {
    Begin begin{life.pool_file(), life.journal_file(), life.model(),
                Bytes(life.ring().begin(), life.ring().end())};
    begin.journal.end_writes(of_journal);
    begin.model.kill(recovered, kept_by(death));
    return begin;
  }
  Bytes pool(kPoolBytes);
  Bytes journal(kJournalBytes);
  life.pool_file().put_image(chosen, pool);
  life.journal_file().put_image(of_journal, journal);
  return begin_with(std::move(pool), std::move(journal), recovered, life.model().next_store());
}

void CrashStates::begin_nested(Life& life, Death death, Chosen chosen) {
  const Begin begin = begin_from(life, death, chosen);
  Life nested(*this, random_, paths_[life.depth() + 1], life.depth() + 1, begin);
  const unsigned percent = life.is_open() ? kNestedStepsPercent : kOpenedStepsPercent;
  if (nested.open() && random_.chance(percent)) nested.do_steps(1 + random_.below(kNestedStepsMax));
}

}  // namespace flugs::test
