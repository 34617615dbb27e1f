// Readers of compressed texts while the merger lets go of them, groups are merged, and rows change.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "flugs/expression.h"
#include "flugs/merge.h"
#include "flugs/query.h"
#include "test/support/complaint.h"
#include "test/support/random.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr std::int64_t kStories = 4000;
constexpr ColumnId kVersion{1};
constexpr ColumnId kStoryText{2};

/// Rows of which one text follows from the id and a number that writers change.
class ChangingStories {
 public:
  ChangingStories() {
    TableSchema schema("stories");
    schema.column("id", Type::kInt64).column("version", Type::kInt64);
    schema.column("story", Type::kString).direct().primary_key({"id"});
    table = must(database->create_table(schema));
    Transaction t = must(database->begin());
    for (std::int64_t id = 0; id < kStories; ++id) {
      const std::string story = story_of(id, 0);
      must(t.insert(table, {Value::int64(id), Value::int64(0), Value::string(story)}));
    }
    must(t.commit());
    MergePolicy policy;
    policy.read_text_bytes_max = 0;
    policy.dead_percent = 1;
    policy.written_percent = 100;
    policy.interval = std::chrono::milliseconds(10);
    must(database->set_merge_policy(table, policy));
  }

  static std::string story_of(std::int64_t id, std::int64_t version) {
    std::string story = "a story of " + std::to_string(id) + ":";
    for (std::int64_t i = 0; i < (id + version) % 9; ++i) story += " and then it went on";
    return story + " " + std::to_string(version);
  }

  void merge() {
    MergeOptions options;
    options.scope = MergeScope::kEverything;
    options.patience = std::chrono::milliseconds(20);
    static_cast<void>(database->merge(table, options));  // it may be busy
  }

  void write(Random& random, Complaint& complaint) {
    Result<Transaction> t = database->begin();
    if (!t.ok()) return;
    const auto id = static_cast<std::int64_t>(random.below(kStories));
    const Result<Row> row = t->get({table, 0}, {Value::int64(id)});
    if (!row.ok()) {
      complaint.expect(false, row.status().to_string());
      return;
    }
    const std::int64_t version = row->get_unchecked<std::int64_t>(kVersion) + 1;
    const std::string story = story_of(id, version);
    Status s = t->update(table, row->id(),
                         {{kVersion, Value::int64(version)}, {kStoryText, Value::string(story)}})
                   .status();
    if (s.ok()) s = t->commit();
    if (!s.ok() && s.code() != StatusCode::kConflict && s.code() != StatusCode::kBusy)
      complaint.expect(false, s.to_string());
  }

  // Texts are compared after all were read, and once more at the end of the transaction.
  void read(Random& random, Complaint& complaint) {
    const Result<Transaction> t = database->begin(AccessMode::kReadOnly);
    if (!t.ok()) return;
    struct Read {
      std::int64_t id;
      std::int64_t version;
      std::string_view story;
    };
    std::vector<Read> all;
    for (int i = 0; i < 40; ++i) {
      const auto id = static_cast<std::int64_t>(random.below(kStories));
      const Result<Row> row = t->get({table, 0}, {Value::int64(id)});
      if (!row.ok()) {
        complaint.expect(false, row.status().to_string());
        return;
      }
      all.push_back({id, row->get_unchecked<std::int64_t>(kVersion),
                     row->get_unchecked<std::string_view>(kStoryText)});
    }
    for (const Read& one : all)
      if (one.story != story_of(one.id, one.version))
        complaint.expect(false, "a row has another text: " + std::string(one.story));
  }

  void ask(Complaint& complaint) {
    const Result<Transaction> t = database->begin(AccessMode::kReadOnly);
    if (!t.ok()) return;
    const Result<query::QueryResult> found = query::Query::table("stories")
                                                 .where(query::col("story").contains("a story of"))
                                                 .select({"id", "version", "story"})
                                                 .run(*t);
    if (!found.ok()) {
      complaint.expect(false, found.status().to_string());
      return;
    }
    if (found->row_count() != kStories) complaint.expect(false, "rows are missing");
    for (std::size_t i = 0; i < found->row_count(); ++i)
      if (found->get_unchecked(i, 2).as_string() !=
          story_of(found->get_unchecked(i, 0).as_int64(), found->get_unchecked(i, 1).as_int64()))
        complaint.expect(false, "a row of a query has another text");
  }

  TemporaryDatabase database;
  TableId table{};
};

}  // namespace

TEST_CASE("texts that a reader has stay while the merger lets go of them", "[concurrency]") {
  ChangingStories stories;
  stories.merge();
  Complaint complaint;
  std::atomic<bool> ends{false};
  std::atomic<std::uint64_t> reads{0};
  std::vector<std::jthread> threads;
  for (std::uint64_t i = 0; i < 2; ++i)
    threads.emplace_back([&, i] {
      Random random(i);
      while (!ends.load()) {
        stories.read(random, complaint);
        ++reads;
      }
    });
  threads.emplace_back([&] {
    Random random(7);
    while (!ends.load()) stories.write(random, complaint);
  });
  threads.emplace_back([&] {
    while (!ends.load()) stories.ask(complaint);
  });
  const std::uint64_t wanted = static_cast<std::uint64_t>(rounds_of(4000, 300));
  while (reads.load() < wanted && !complaint.failed()) {
    stories.merge();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  ends.store(true);
  threads.clear();
  CHECK(complaint.what() == "");
  must(stories.database->check());
}

}  // namespace flugs::test
