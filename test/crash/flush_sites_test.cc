// Tests of the tests: each flush and each fence is taken out in turn, and the explorer must find
// something wrong, or the table says why nobody needs it.
//
// A fence that is taken out here still counts its flushes as fenced in their Persister, so that a
// next fence of it with nothing new to wait for does not happen: "needed" may therefore mean that
// this fence does the work of a later one.

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "test/crash/scenarios.h"

namespace flugs::test {
namespace {

struct Site {
  std::string name;  // "flush <label>" or "fence <label>"
  Script script = nullptr;
  Region region = Region::kOther;
  bool tears_words = false;
  const char* why_removable = nullptr;
};

constexpr std::uint64_t kImagesMax = 20000;
// To find nothing takes the whole budget.
constexpr std::uint64_t kImagesMaxRemovable = 2500;

std::vector<Site> sites_of_transactions() {
  return {
      {"flush commit/1", script_large_transactions, Region::kIntentBlock},
      {"flush commit/1", script_inserts, Region::kRow},
      {"flush commit/1", script_new_values, Region::kDictionary},
      {"flush commit/1", script_long_texts, Region::kText},
      {"flush commit/1", script_shared_values, Region::kDictionary},
      // The commit record shares the line of the intents and is flushed later: only words that
      // arrive apart show the difference.
      {"flush commit/1", script_inserts, Region::kSlotHalf, true},
      {"fence commit/1", script_inserts},
      {"flush commit/2", script_inserts},
      {"fence commit/2", script_inserts},
      {"flush commit/4", script_slot_turns},
      {"fence commit/4", script_large_transactions, Region::kOther, false,
       "the fence of commit/1 of the slot's next transaction comes before the half is used again, "
       "and recovery stamps what a slot that is not used again left"},
      {"flush intent_block/1", script_large_transactions},
      {"fence intent_block/1", script_large_transactions},
      {"flush intent_block/2", script_interleaved_intents},
      {"fence intent_block/2", script_interleaved_intents},
      {"flush generation/1", script_generations},
      {"fence generation/1", script_generations},
  };
}

std::vector<Site> sites_of_growth() {
  return {
      {"flush row_chunk/2", script_row_chunks},
      {"flush string_heap/1", script_long_texts},
      {"flush string_heap/3", script_long_texts},
      {"fence string_heap/3", script_shared_reservation},
      {"fence chunk_list/1", script_used_space},
      {"flush chunk_list/2", script_chunk_pages},
      {"fence chunk_list/2", script_chunk_pages, Region::kOther, false,
       "chunk_list/4 of the same append makes page and chunk reachable together"},
      {"fence chunk_list/3", script_row_chunks},
      {"flush chunk_list/4", script_row_chunks},
      {"fence chunk_list/4", script_chunk_lines},
      {"flush extent-zero/1", script_used_space},
      {"flush extent-touch/1", script_row_chunks},
      {"fence extent-touch/1", script_row_chunks},
      {"flush segment-grow/2", script_long_texts, Region::kOther, true},
      {"fence segment-grow/2", script_long_texts, Region::kOther, true},
  };
}

std::vector<Site> sites_of_tables_and_recovery() {
  return {
      {"flush pool-create/1", script_creation, Region::kOther, false,
       "the application root of a new pool is zero already, and the arenas share their line with "
       "the limits that segment-grow and extent-touch make durable"},
      {"fence pool-create/1", script_creation, Region::kOther, false, "as the flush"},
      {"flush pool-create/2", script_creation},
      {"fence pool-create/2", script_creation},
      {"flush create_database/1", script_creation, Region::kOther, false,
       "slot_array/2 flushes the same line"},
      {"fence create_database/1", script_creation, Region::kOther, false, "as the flush"},
      {"flush create_database/3", script_creation},
      {"fence create_database/3", script_creation},
      {"flush create_table/1", script_tables},
      {"fence create_table/1", script_tables},
      {"flush create_table/2", script_tables},
      {"fence create_table/2", script_tables},
      {"flush drop_table/1", script_tables},
      {"fence drop_table/1", script_tables},
      {"flush slot_array/1", script_slot_array},
      {"fence slot_array/1", script_slot_array},
      {"flush slot_array/2", script_slot_array},
      {"fence slot_array/2", script_slot_array},
      {"flush resolve/1", script_crashed_slots},
      {"fence resolve/1", script_crashed_slots},
      {"flush sweep/1", script_sweeping, Region::kOther, true},
      {"fence sweep/1", script_sweeping, Region::kOther, true},
      {"flush sweep/2", script_sweeping, Region::kOther, true,
       "a tag that was left behind is of a generation that is never used again"},
      {"flush clear_torn/1", script_new_values, Region::kOther, true,
       "an entry that is torn stays torn; zeros only keep its bytes from being read"},
      {"fence clear_torn/1", script_new_values, Region::kOther, true, "as the flush"},
  };
}

Exploration exploration_of(const Site& site) {
  return {.name = site.name,
          .script = site.script,
          .tears_words = site.tears_words,
          .nested_depth = 0,
          .images_max = site.why_removable == nullptr ? kImagesMax : kImagesMaxRemovable,
          .combinations_max = 64};
}

void judge(const Site& site) {
  Mutation mutation;
  const bool is_flush = site.name.starts_with("flush ");
  (is_flush ? mutation.flush : mutation.fence) = site.name.substr(6);
  mutation.region = site.region;
  std::string found;
  const auto start = std::chrono::steady_clock::now();
  const bool is_needed = is_found(exploration_of(site), mutation, found);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("without %s: %s, %.1f s\n", site.name.c_str(), is_needed ? "found" : "not found",
              seconds);
  INFO(site.name << ", region " << static_cast<int>(site.region) << ": " << found);
  CHECK(is_needed == (site.why_removable == nullptr));
}

TEST_CASE("each flush and fence of a transaction is needed", "[crash]") {
  for (const Site& site : sites_of_transactions()) judge(site);
}

TEST_CASE("each flush and fence of growing is needed", "[crash]") {
  for (const Site& site : sites_of_growth()) judge(site);
}

TEST_CASE("each flush and fence of tables and of recovery is needed or known not to be",
          "[crash]") {
  for (const Site& site : sites_of_tables_and_recovery()) judge(site);
}

TEST_CASE("no flush and no fence that the scripts pass is forgotten", "[crash]") {
  for (const Script script : {script_inserts,
                              script_updates,
                              script_large_transactions,
                              script_interleaved_intents,
                              script_slot_turns,
                              script_crashed_slots,
                              script_new_values,
                              script_shared_values,
                              script_dictionary_chunks,
                              script_long_texts,
                              script_shared_reservation,
                              script_row_chunks,
                              script_chunks_of_two,
                              script_widening,
                              script_chunk_pages,
                              script_chunk_lines,
                              script_creation,
                              script_tables,
                              script_used_space,
                              script_slot_array,
                              script_generations,
                              script_recycling,
                              script_sweeping}) {
    RigOptions options;
    options.pool_bytes = std::size_t{512} << 10;
    options.watches_creation = script == script_creation;
    options.explorer.replay = {{~std::uint64_t{0}, 0}};  // no crash point is this one
    CrashRig rig(options);
    script(rig);
    INFO(rig.outcome().to_string());
    CHECK(rig.outcome().ok());
  }
  std::set<std::string> judged;
  for (const auto& sites :
       {sites_of_transactions(), sites_of_growth(), sites_of_tables_and_recovery()})
    for (const Site& site : sites) judged.insert(site.name);
  for (const std::string& site : watched_sites()) {
    INFO(site);
    CHECK(judged.contains(site));
  }
}

}  // namespace
}  // namespace flugs::test
