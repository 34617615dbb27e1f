#include "verify/crash/exploration/mutations.h"

#include <fmt/format.h>

#include <chrono>

namespace flugs::crash {

namespace {

using Kind = Mutation::Kind;

constexpr std::uint64_t kImagesMax = 20000;
// Finding nothing takes the whole budget.
constexpr std::uint64_t kImagesMaxRemovable = 2500;

constexpr MutationCase hinted(Kind kind, std::string_view label, std::string_view protocol,
                              Region region = Region::kOther, std::string_view why_removable = {}) {
  return {kind, label, protocol, region, false, why_removable, true};
}

constexpr MutationCase late(Kind kind, std::string_view label, std::string_view protocol,
                            Region region = Region::kOther) {
  return {kind, label, protocol, region, false, {}, false, true};
}

constexpr MutationCase late_hinted(Kind kind, std::string_view label, std::string_view protocol) {
  return {kind, label, protocol, Region::kOther, false, {}, true, true};
}

constexpr std::string_view kSeenAgain = "recovery goes through the intents once more";
constexpr std::string_view kEarlierEnd =
    "an earlier durable_end makes opening look at more entries";
constexpr std::string_view kSameLine =
    "hint_change/1 of the split that wants the directory flushes the same line, and its fence "
    "comes before a word changes";
constexpr std::string_view kHalfIsWord =
    "here only: in a directory of a few words each half is a word, and a half that still names the "
    "replaced segment leads to all entries";
constexpr std::string_view kWordsAreLine =
    "here only: a directory of up to eight words is one line, which the next change flushes before "
    "it overwrites the record from which recovery would repeat this change";

constexpr std::string_view kNewSegment =
    "here only: a segment that was never used is zeros; in a reused segment `next` would do harm, "
    "old hints would not";
constexpr std::string_view kFreeSpace =
    "nobody reads free space, and it is zeroed before an extent is cut from it";
constexpr std::string_view kNextIsEntrys = "the writer of an entry there flushes `next` with it";

constexpr MutationCase kCases[] = {
    {Kind::kNoFlush, "commit/1", "large_commit", Region::kIntentBlock},
    {Kind::kNoFlush, "commit/1", "insert", Region::kRow},
    {Kind::kNoFlush, "commit/1", "new_values", Region::kDictionary},
    {Kind::kNoFlush, "commit/1", "long_texts", Region::kText},
    {Kind::kNoFlush, "commit/1", "shared_values", Region::kDictionary},
    {Kind::kNoFlush, "commit/1", "insert", Region::kSlotHalf, true},
    {Kind::kNoFence, "commit/1", "insert"},
    {Kind::kNoFlush, "commit/2", "insert"},
    {Kind::kNoFence, "commit/2", "insert"},
    {Kind::kNoFlush, "commit/4", "slot_turns"},
    {Kind::kNoFence, "commit/4", "forgotten_intents"},
    {Kind::kNoFlush, "forget_intents/1", "forgotten_intents", Region::kOther, false, kSeenAgain},
    {Kind::kNoFence, "forget_intents/1", "forgotten_intents", Region::kOther, false, kSeenAgain},
    {Kind::kNoFlush, "write_ahead/1", "large_commit"},
    {Kind::kNoFlush, "write_ahead/2", "large_commit"},
    {Kind::kNoFlush, "commit/1", "in_columns", Region::kRow},
    {Kind::kNoFlush, "commit/1", "in_groups", Region::kRow},
    {Kind::kNoFlush, "write_ahead/1", "large_in_columns"},
    {Kind::kNoFlush, "write_ahead/2", "large_in_columns"},
    {Kind::kNoFlush, "row_chunk/2", "layouts"},
    {Kind::kNoFlush, "intent_block/1", "large_commit"},
    {Kind::kNoFence, "intent_block/1", "large_commit"},
    {Kind::kNoFlush, "intent_block/2", "interleaved_intents"},
    {Kind::kNoFence, "intent_block/2", "interleaved_intents"},
    {Kind::kNoFlush, "generation/1", "generations"},
    {Kind::kNoFence, "generation/1", "generations"},
    {Kind::kNoFlush, "row_chunk/2", "row_chunks"},
    {Kind::kNoFlush, "string_heap/1", "long_texts"},
    {Kind::kNoFlush, "string_heap/3", "long_texts"},
    {Kind::kNoFence, "string_heap/3", "shared_reservation"},
    {Kind::kNoFence, "chunk_list/1", "used_space"},
    {Kind::kNoFlush, "chunk_list/2", "chunk_pages"},
    {Kind::kNoFence, "chunk_list/2", "chunk_pages", Region::kOther, false,
     "chunk_list/4 of the same append makes page and chunk reachable together"},
    {Kind::kNoFence, "chunk_list/3", "row_chunks"},
    {Kind::kNoFlush, "chunk_list/4", "row_chunks"},
    {Kind::kNoFence, "chunk_list/4", "chunk_lines"},
    {Kind::kNoFlush, "row_group/0", "change_type"},
    {Kind::kNoFlush, "row_group/1", "merge"},
    {Kind::kNoFence, "row_group/1", "merge"},
    {Kind::kNoFlush, "row_group/2", "merge_beside"},
    {Kind::kNoFlush, "chunk_replace/1", "merge_chunks"},
    {Kind::kNoFence, "chunk_replace/1", "merge_beside"},
    {Kind::kNoFlush, "chunk_replace/2", "merged_deletions"},
    {Kind::kNoFence, "chunk_replace/2", "merged_deletions"},
    {Kind::kNoFlush, "version_block/1", "merged_deletions"},
    {Kind::kNoFence, "version_block/1", "merged_deletions"},
    {Kind::kNoFlush, "version_block/2", "merged_deletions"},
    {Kind::kNoFence, "version_block/2", "merged_deletions"},
    {Kind::kLateFlush, "row_group/2", "merge_beside"},
    {Kind::kLateFlush, "chunk_replace/2", "merged_deletions"},
    {Kind::kLateFlush, "version_block/1", "merged_deletions"},
    {Kind::kLateFlush, "version_block/2", "merged_deletions"},
    {Kind::kShortFlush, "row_group/1", "merge", Region::kOther, false,
     "the last line is padding: zeros, as in the extent"},
    {Kind::kShortFlush, "row_group/2", "merge_beside"},
    {Kind::kShortFlush, "version_block/1", "merged_deletions"},
    {Kind::kEarlyStore, "chunk_replace/2", "merge_locked"},
    {Kind::kEarlyStore, "version_block/2", "merged_deletions"},
    {Kind::kNoFlush, "index_run/1", "index_runs"},
    {Kind::kNoFlush, "index_run/2", "index_runs"},
    {Kind::kNoFence, "index_run/2", "index_runs"},
    {Kind::kNoFlush, "index_run/3", "index_runs"},
    {Kind::kNoFence, "index_run/3", "index_runs"},
    {Kind::kLateFlush, "index_run/1", "index_runs"},
    {Kind::kLateFlush, "index_run/2", "index_runs"},
    {Kind::kLateFlush, "index_run/3", "index_runs"},
    {Kind::kShortFlush, "index_run/1", "index_runs"},
    {Kind::kShortFlush, "index_run/2", "index_runs"},
    {Kind::kEarlyStore, "index_run/3", "index_runs"},
    {Kind::kNoFlush, "extent-zero/1", "used_space"},
    {Kind::kNoFlush, "extent-touch/1", "row_chunks"},
    {Kind::kNoFence, "extent-touch/1", "row_chunks"},
    {Kind::kNoFlush, "segment-grow/2", "long_texts", Region::kOther, true},
    {Kind::kNoFence, "segment-grow/2", "long_texts", Region::kOther, true},
    {Kind::kNoFlush, "hole-count/1", "holes"},
    {Kind::kNoFence, "hole-count/1", "holes"},
    {Kind::kNoFlush, "hole-count/2", "holes"},
    {Kind::kNoFence, "hole-count/2", "holes"},
    {Kind::kNoFlush, "hole-punch/2", "holes", Region::kOther, false, kFreeSpace},
    {Kind::kNoFence, "hole-punch/2", "holes", Region::kOther, false, kFreeSpace},
    {Kind::kNoFlush, "pool-create/1", "create_database", Region::kOther, false,
     "the application root of a new pool is zero already, and the arenas share their line with the "
     "limits that segment-grow and extent-touch make durable"},
    {Kind::kNoFence, "pool-create/1", "create_database", Region::kOther, false, "as the flush"},
    {Kind::kNoFlush, "pool-create/2", "create_database"},
    {Kind::kNoFence, "pool-create/2", "create_database"},
    {Kind::kNoFlush, "create_database/1", "create_database", Region::kOther, false,
     "slot_array/2 flushes the same line"},
    {Kind::kNoFence, "create_database/1", "create_database", Region::kOther, false, "as the flush"},
    {Kind::kNoFlush, "create_database/3", "create_database"},
    {Kind::kNoFence, "create_database/3", "create_database"},
    {Kind::kNoFlush, "create_table/1", "create_drop_table"},
    {Kind::kNoFence, "create_table/1", "create_drop_table"},
    {Kind::kNoFlush, "create_table/2", "create_drop_table"},
    {Kind::kNoFence, "create_table/2", "create_drop_table"},
    {Kind::kNoFlush, "create_tables/2", "create_tables"},
    {Kind::kNoFence, "create_tables/2", "create_tables"},
    {Kind::kNoFlush, "create_tables/3", "create_tables"},
    {Kind::kNoFence, "create_tables/3", "create_tables"},
    {Kind::kNoFlush, "drop_table/1", "create_drop_table"},
    {Kind::kNoFence, "drop_table/1", "create_drop_table"},
    {Kind::kNoFlush, "alter_table/1", "alter_table"},
    {Kind::kNoFence, "alter_table/1", "alter_table"},
    {Kind::kNoFlush, "alter_table/2", "alter_table"},
    {Kind::kNoFence, "alter_table/2", "alter_table"},
    {Kind::kLateFlush, "alter_table/1", "alter_table"},
    {Kind::kLateFlush, "alter_table/2", "alter_table"},
    {Kind::kShortFlush, "alter_table/1", "alter_table"},
    {Kind::kEarlyStore, "alter_table/2", "alter_table"},
    {Kind::kNoFlush, "add_column/1", "add_drop_column"},
    {Kind::kNoFlush, "add_column/2", "add_drop_column"},
    {Kind::kNoFence, "add_column/2", "add_drop_column"},
    {Kind::kLateFlush, "add_column/1", "add_drop_column"},
    {Kind::kNoFlush, "auto_increment/1", "auto_increment"},
    {Kind::kLateFlush, "auto_increment/1", "auto_increment"},
    {Kind::kNoFlush, "slot_array/1", "slot_array"},
    {Kind::kNoFence, "slot_array/1", "slot_array"},
    {Kind::kNoFlush, "slot_array/2", "slot_array"},
    {Kind::kNoFence, "slot_array/2", "slot_array"},
    {Kind::kNoFlush, "resolve/1", "crashed_slots"},
    {Kind::kNoFence, "resolve/1", "crashed_slots"},
    {Kind::kNoFlush, "resolve/1", "killed_commit", Region::kSlotHalf},
    {Kind::kNoFlush, "commit/1", "reuse_text", Region::kText},
    {Kind::kNoFlush, "commit/2", "reuse_text"},
    {Kind::kNoFence, "commit/2", "reuse_text"},
    {Kind::kLateFlush, "commit/1", "reuse_text", Region::kText},
    {Kind::kShortFlush, "commit/1", "reuse_text", Region::kText},
    {Kind::kEarlyStore, "commit/2", "reuse_text"},
    {Kind::kNoFlush, "sweep/1", "sweep", Region::kOther, true},
    {Kind::kNoFence, "sweep/1", "sweep", Region::kOther, true},
    {Kind::kNoFlush, "sweep/1", "sweep_later", Region::kOther, true},
    {Kind::kNoFence, "sweep/1", "sweep_later", Region::kOther, true},
    {Kind::kNoFlush, "sweep/2", "sweep", Region::kOther, true,
     "a tag that was left behind is of a generation that is never used again"},
    {Kind::kNoFlush, "rebuild_dictionary/1", "killed"},
    {Kind::kNoFence, "rebuild_dictionary/1", "killed"},
    late(Kind::kNoFlush, "rebuild_dictionary/1", "killed"),
    late(Kind::kNoFence, "rebuild_dictionary/1", "killed"),
    late(Kind::kNoFlush, "commit/1", "killed", Region::kDictionary),
    {Kind::kNoFlush, "dictionary_null/1", "new_values"},
    {Kind::kNoFence, "dictionary_null/1", "new_values"},
    {Kind::kNoFlush, "rely/1", "killed_midway"},
    {Kind::kNoFence, "rely/1", "killed_midway"},
    {Kind::kLateFlush, "commit/1", "insert", Region::kRow},
    {Kind::kLateFlush, "commit/1", "in_columns", Region::kRow},
    {Kind::kLateFlush, "commit/1", "new_values", Region::kDictionary},
    {Kind::kLateFlush, "commit/1", "long_texts", Region::kText},
    {Kind::kLateFlush, "commit/1", "large_commit", Region::kIntentBlock},
    {Kind::kLateFlush, "commit/2", "insert"},
    {Kind::kLateFlush, "commit/4", "slot_turns", Region::kOther, false,
     "commit/2 of the same transaction makes the stamps durable, and their half is used a commit "
     "later"},
    {Kind::kLateFlush, "intent_block/1", "large_commit"},
    {Kind::kLateFlush, "intent_block/2", "interleaved_intents"},
    {Kind::kLateFlush, "generation/1", "generations"},
    {Kind::kLateFlush, "string_heap/1", "long_texts"},
    {Kind::kLateFlush, "string_heap/3", "shared_reservation"},
    {Kind::kLateFlush, "chunk_list/2", "chunk_pages", Region::kOther, false,
     "chunk_list/4 of the same append makes page and chunk reachable together"},
    {Kind::kLateFlush, "chunk_list/4", "chunk_lines"},
    {Kind::kLateFlush, "row_chunk/2", "row_chunks"},
    {Kind::kLateFlush, "extent-zero/1", "used_space"},
    {Kind::kLateFlush, "extent-touch/1", "row_chunks"},
    {Kind::kLateFlush, "segment-grow/2", "long_texts", Region::kOther, true},
    {Kind::kLateFlush, "pool-create/2", "create_database"},
    {Kind::kLateFlush, "create_database/3", "create_database"},
    {Kind::kLateFlush, "create_table/1", "create_drop_table"},
    {Kind::kLateFlush, "create_table/2", "create_drop_table"},
    {Kind::kLateFlush, "create_tables/2", "create_tables"},
    {Kind::kLateFlush, "create_tables/3", "create_tables"},
    {Kind::kLateFlush, "drop_table/1", "create_drop_table"},
    {Kind::kLateFlush, "slot_array/1", "slot_array"},
    {Kind::kLateFlush, "slot_array/2", "slot_array"},
    {Kind::kLateFlush, "resolve/1", "crashed_slots"},
    {Kind::kLateFlush, "sweep/1", "sweep", Region::kOther, true},
    {Kind::kShortFlush, "commit/1", "slot_turns", Region::kRow},
    {Kind::kShortFlush, "commit/1", "in_columns", Region::kRow},
    {Kind::kShortFlush, "commit/1", "in_groups", Region::kRow},
    {Kind::kShortFlush, "commit/1", "large_commit", Region::kIntentBlock},
    {Kind::kShortFlush, "commit/1", "long_texts", Region::kText},
    {Kind::kShortFlush, "row_chunk/2", "row_chunks"},
    {Kind::kShortFlush, "create_table/1", "create_drop_table"},
    {Kind::kShortFlush, "create_tables/2", "create_tables", Region::kOther, false,
     "the last line of a catalogue has the places of its last seven tables, which are free and so "
     "zero, as the new extent is"},
    {Kind::kShortFlush, "slot_array/1", "grown_generations"},
    {Kind::kShortFlush, "pool-create/2", "create_database", Region::kOther, false,
     "the other copy of the header counts, and opening repairs this one"},
    {Kind::kEarlyStore, "commit/2", "insert"},
    {Kind::kEarlyStore, "commit/4", "slot_turns"},
    {Kind::kEarlyStore, "forget_intents/1", "forgotten_intents"},
    {Kind::kEarlyStore, "intent_block/2", "interleaved_intents"},
    {Kind::kEarlyStore, "chunk_list/2", "chunk_pages"},
    {Kind::kEarlyStore, "chunk_list/4", "row_chunks"},
    {Kind::kEarlyStore, "create_table/2", "create_drop_table"},
    {Kind::kEarlyStore, "create_tables/3", "create_tables"},
    {Kind::kEarlyStore, "slot_array/2", "slot_array"},
    {Kind::kEarlyStore, "create_database/3", "create_database"},
    {Kind::kEarlyStore, "pool-create/2", "create_database", Region::kOther, false,
     "no reader needs the stores that pool-create/1 makes durable: the root is zero already, and "
     "the arenas share their line with limits that are flushed"},
    {Kind::kEarlyStore, "string_heap/3", "shared_reservation"},
    hinted(Kind::kNoFlush, "commit/1", "insert", Region::kHint),
    hinted(Kind::kNoFlush, "keep_entries/1", "kept_values"),
    hinted(Kind::kNoFence, "keep_entries/1", "threads_kept"),
    hinted(Kind::kNoFlush, "keep_hints/1", "hint_segments"),
    hinted(Kind::kNoFence, "keep_hints/1", "hint_segments"),
    hinted(Kind::kNoFlush, "keep_hints/2", "hint_segments", Region::kOther, kEarlierEnd),
    hinted(Kind::kNoFence, "keep_hints/2", "hint_segments", Region::kOther, kEarlierEnd),
    hinted(Kind::kLateFlush, "commit/1", "insert", Region::kHint),
    hinted(Kind::kNoFlush, "hint_begin/1", "create_drop_table"),
    hinted(Kind::kNoFence, "hint_begin/1", "create_drop_table"),
    hinted(Kind::kNoFlush, "hint_begin/2", "create_drop_table"),
    hinted(Kind::kNoFence, "hint_begin/2", "threads_tables"),
    hinted(Kind::kNoFlush, "hint_directory/1", "hint_segments"),
    hinted(Kind::kNoFence, "hint_directory/1", "hint_segments"),
    hinted(Kind::kNoFlush, "hint_directory/2", "hint_segments", Region::kOther, kSameLine),
    hinted(Kind::kNoFence, "hint_directory/2", "hint_segments", Region::kOther, kSameLine),
    hinted(Kind::kNoFlush, "hint_change/1", "hint_segments"),
    hinted(Kind::kNoFence, "hint_change/1", "hint_segments"),
    hinted(Kind::kNoFlush, "hint_change/2", "hint_segments", Region::kOther, kHalfIsWord),
    hinted(Kind::kNoFence, "hint_change/2", "hint_segments", Region::kOther, kHalfIsWord),
    hinted(Kind::kNoFlush, "hint_change/3", "hint_segments", Region::kOther, kWordsAreLine),
    hinted(Kind::kNoFence, "hint_change/3", "hint_segments", Region::kOther, kWordsAreLine),
    hinted(Kind::kNoFlush, "hint_go_on/1", "hint_chain", Region::kOther, kNewSegment),
    hinted(Kind::kNoFence, "hint_go_on/1", "hint_chain", Region::kOther, kNewSegment),
    hinted(Kind::kNoFlush, "hint_go_on/2", "hint_chain", Region::kOther, kNextIsEntrys),
    hinted(Kind::kNoFence, "hint_go_on/2", "hint_chain", Region::kOther, kNextIsEntrys),
    hinted(Kind::kNoFlush, "recover_dictionary/1", "killed"),
    hinted(Kind::kNoFence, "recover_dictionary/1", "killed"),
    late_hinted(Kind::kNoFlush, "keep_hints/1", "killed"),
    late_hinted(Kind::kNoFence, "keep_hints/1", "killed"),
    {Kind::kLateFence, "commit/2", "threads_commit"},
    {Kind::kLateFence, "create_table/2", "threads_tables"},
    {Kind::kOthersFlush, "commit/1", "threads_values", Region::kDictionary},
};

std::string_view to_string(Kind kind) {
  switch (kind) {
    case Kind::kNone:
      return "nothing";
    case Kind::kNoFlush:
      return "no flush";
    case Kind::kNoFence:
      return "no fence";
    case Kind::kLateFlush:
      return "flush behind its fence";
    case Kind::kShortFlush:
      return "last line not flushed";
    case Kind::kEarlyStore:
      return "stored a fence early";
    case Kind::kLateFence:
      return "fence over only when acknowledged";
    case Kind::kOthersFlush:
      return "no flush of what another has flushed";
  }
  return "unknown";
}

}  // namespace

std::span<const MutationCase> mutation_cases() { return kCases; }

std::string_view to_string(MutationVerdict verdict) {
  switch (verdict) {
    case MutationVerdict::kCaught:
      return "caught";
    case MutationVerdict::kRemovable:
      return "removable";
    case MutationVerdict::kMissed:
      return "missed";
    case MutationVerdict::kNeededAgain:
      return "found, but listed as removable";
  }
  return "unknown";
}

std::string to_string(const MutationCase& mutation) {
  const std::string region =
      mutation.region == Region::kOther ? "" : " (" + to_string(mutation.region) + ")";
  return fmt::format("{}: {}{}", mutation.label, to_string(mutation.kind), region);
}

Result<MutationResult> judge(const MutationCase& mutation, std::uint64_t seed) {
  const bool is_needed = mutation.why_removable.empty();
  const Exploration exploration{.protocol = std::string(mutation.protocol),
                                .seed = seed,
                                .hints = mutation.hints,
                                .late = mutation.late,
                                .tears_words = mutation.tears_words,
                                .nested_depth = 0,
                                .combinations_max = 64,
                                .images_max = is_needed ? kImagesMax : kImagesMaxRemovable,
                                .replay = {}};
  MutationResult result;
  const auto start = std::chrono::steady_clock::now();
  const Result<bool> is_found = finds(
      exploration, {mutation.kind, std::string(mutation.label), mutation.region}, result.found);
  if (!is_found.ok()) return is_found.status();
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (is_needed) {
    result.verdict = *is_found ? MutationVerdict::kCaught : MutationVerdict::kMissed;
  } else {
    result.verdict = *is_found ? MutationVerdict::kNeededAgain : MutationVerdict::kRemovable;
  }
  return result;
}

}  // namespace flugs::crash
