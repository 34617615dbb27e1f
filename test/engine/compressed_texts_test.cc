// Texts that a merge compresses: they read as they were, whatever happens to their rows.
#include <catch2/catch.hpp>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/database/database_access.h"
#include "flugs/expression.h"
#include "flugs/merge.h"
#include "flugs/pool_check.h"
#include "flugs/query.h"
#include "test/support/random.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr std::int64_t kStoryCount = 6000;
constexpr ColumnId kStory{1};
constexpr ColumnId kTimes{2};

MergeOptions all_merged() {
  MergeOptions options;
  options.scope = MergeScope::kEverything;
  options.threads = 2;
  options.waste_bytes = 0;
  return options;
}

/// A table with a text that compresses well, and its expected content.
class Stories {
 public:
  using Story = std::optional<std::string>;

  explicit Stories(bool has_dictionary = false) {
    TableSchema schema("stories");
    schema.column("id", Type::kInt64).column("story", Type::kString).column("times", Type::kInt32);
    schema.columns[1].encoding = has_dictionary ? Encoding::kDictionary : Encoding::kDirect;
    schema.primary_key({"id"});
    table = must(database->create_table(schema));
    Transaction t = must(database->begin());
    for (std::int64_t id = 0; id < kStoryCount; ++id) {
      const Story& story = rows[id] = story_of(id);
      must(t.insert(table, {Value::int64(id), value_of(story), Value::int32(0)}));
    }
    must(t.commit());
  }

  Story story_of(std::int64_t id) {
    static constexpr const char* kWords[] = {"furiously ", "regular ",  "deposits ", "the ",
                                             "sleep ",     "quickly, ", "accounts ", "a "};
    if (id % 97 == 0) return std::nullopt;
    std::string story = id % 89 == 0 ? "" : std::to_string(id) + " ";
    for (std::uint64_t i = random.below(12); i != 0; --i) story += kWords[random.below(8)];
    if (id % 500 == 1) story += random.noise(300);
    return story;
  }
  static Value value_of(const Story& story) {
    return story ? Value::string(std::string_view(*story)) : Value::null();
  }

  MergeReport merge() { return must(database->merge(table, all_merged())); }
  const engine::Table& in_dram() { return *engine::DatabaseAccess::core(*database).table(table); }
  /// Whether all groups with rows have the column compressed.
  bool is_compressed(std::size_t column) {
    bool all = true;
    in_dram().rows().for_each_group([&](const engine::RowGroup& group) {
      all &= group.stored_rows() == 0 || group.column(column).owns_texts();
    });
    return all;
  }

  void set_story(Transaction& t, std::int64_t id, Story story) {
    const Row row = must(t.get({table, 0}, {Value::int64(id)}));
    must(t.update(table, row.id(), {{kStory, value_of(story)}}));
    rows[id] = std::move(story);
  }

  void check() {
    Transaction t = must(database->begin(AccessMode::kReadOnly));
    check_scan(t);
    for (std::int64_t id = 0; id < kStoryCount; id += 7) {
      const Result<Row> row = t.get({table, 0}, {Value::int64(id)});
      REQUIRE(row.ok() == (rows.count(id) != 0));
      if (row.ok()) REQUIRE(row->get_unchecked(kStory) == value_of(rows.at(id)));
    }
    check_queries(t);
    t.abort();
    must(database->check());
  }

  TemporaryDatabase database;
  TableId table{};
  std::map<std::int64_t, Story> rows;
  Random random{1};

 private:
  void check_scan(const Transaction& t) {
    std::size_t found = 0;
    bool is_right = true;
    must(t.scan(table, {ColumnId(0), kStory}, [&](const ScanBatch& batch) {
      for (std::size_t i = 0; i < batch.row_count(); ++i, ++found) {
        const auto row = rows.find(batch.get_unchecked(0, i).as_int64());
        is_right &= row != rows.end() && batch.get_unchecked(1, i) == value_of(row->second);
      }
      return is_right;
    }));
    CHECK(is_right);
    CHECK(found == rows.size());
  }

  template <typename Holds>
  std::int64_t count_of(const Holds& holds) const {
    std::int64_t count = 0;
    for (const auto& [id, story] : rows) count += story && holds(*story) ? 1 : 0;
    return count;
  }
  std::int64_t asked(const Transaction& t, const query::Expr& condition) const {
    return static_cast<std::int64_t>(
        must(query::Query::table("stories").where(condition).select({"id"}).run(t)).row_count());
  }

  void check_queries(const Transaction& t) {
    using query::col;
    const std::string some = *rows.rbegin()->second;
    CHECK(asked(t, col("story") == some) ==
          count_of([&](const std::string& story) { return story == some; }));
    CHECK(asked(t, col("story") < "3") ==
          count_of([](const std::string& story) { return story < "3"; }));
    CHECK(asked(t, col("story").contains("quickly, a")) == count_of([](const std::string& story) {
            return story.find("quickly, a") != std::string::npos;
          }));
    CHECK(asked(t, col("story").is_null()) ==
          static_cast<std::int64_t>(rows.size()) -
              count_of([](const std::string&) { return true; }));
    std::optional<std::string> least;
    std::map<std::string, std::int64_t> groups;
    for (const auto& [id, story] : rows) {
      if (!story) continue;
      if (!least || *story < *least) least = story;
      ++groups[*story];
    }
    const query::QueryResult ends =
        must(query::Query::table("stories")
                 .group_by({}, {query::min(col("story")).as("least"),
                                query::count_distinct(col("story")).as("n")})
                 .run(t));
    CHECK(ends.get_unchecked(0, 0).as_string() == *least);
    CHECK(ends.get_unchecked(0, 1).as_int64() == static_cast<std::int64_t>(groups.size()));
    const query::QueryResult sorted = must(query::Query::table("stories")
                                               .where(!col("story").is_null())
                                               .select({"story"})
                                               .order_by({query::asc("story")})
                                               .run(t));
    std::size_t row = 0;
    for (const auto& [story, times] : groups)
      for (std::int64_t i = 0; i < times; ++i, ++row)
        REQUIRE(sorted.get_unchecked(row, 0).as_string() == story);
    CHECK(row == sorted.row_count());
  }
};

}  // namespace

TEST_CASE("compressed texts read as they were", "[engine]") {
  Stories stories(GENERATE(false, true));
  stories.merge();
  CHECK(stories.is_compressed(1));
  stories.check();
  // Rows go back to the delta, some with another text, and some die.
  Transaction t = must(stories.database->begin());
  for (std::int64_t id = 0; id < kStoryCount; id += 3) {
    const Row row = must(t.get({stories.table, 0}, {Value::int64(id)}));
    if (id % 2 == 0)
      must(t.update(stories.table, row.id(), {{kTimes, Value::int32(1)}}));
    else
      stories.set_story(t, id, stories.story_of(id));
  }
  for (std::int64_t id = 1; id < kStoryCount; id += 10) {
    must(t.remove({stories.table, 0}, {Value::int64(id)}));
    stories.rows.erase(id);
  }
  must(t.commit());
  stories.check();
  stories.database.reopen();
  stories.check();
  // Groups are compressed again, without the rows that left them.
  CHECK(stories.merge().groups_merged != 0);
  CHECK(stories.is_compressed(1));
  stories.check();
  stories.database.close();
  CHECK(must(check_pool({stories.database.options.path, {}})).is_clean());
}

TEST_CASE("the column's heap is given back once its texts are compressed", "[engine]") {
  Stories stories;
  const std::uint64_t before = stories.in_dram().columns()[1]->bytes_in_pool();
  const MergeReport report = stories.merge();
  CHECK(report.columns_rewritten != 0);
  CHECK(report.bytes_given_back >= before / 2);
  CHECK(stories.in_dram().columns()[1]->bytes_in_pool() < before / 4);
  CHECK(stories.merge().columns_rewritten == 0);
  stories.check();
}

TEST_CASE("a text of a row group stays until its transaction ends", "[engine]") {
  Stories stories;
  stories.merge();
  MergeOptions impatient = all_merged();
  impatient.patience = std::chrono::milliseconds(1);
  Transaction t = must(stories.database->begin(AccessMode::kReadOnly));
  std::vector<std::pair<std::int64_t, Value>> found;
  for (std::int64_t id = 0; id < kStoryCount; id += 11)
    found.emplace_back(id,
                       must(t.get({stories.table, 0}, {Value::int64(id)})).get_unchecked(kStory));
  CHECK(stories.in_dram().read_text_bytes() != 0);
  {
    MergePolicy policy;
    policy.read_text_bytes_max = 0;
    policy.interval = std::chrono::milliseconds(10);
    must(stories.database->set_merge_policy(stories.table, policy));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  for (const auto& [id, value] : found) REQUIRE(value == Stories::value_of(stories.rows[id]));
  t.abort();
  for (int i = 0; i < 1000 && stories.in_dram().read_text_bytes() != 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(stories.in_dram().read_text_bytes() == 0);
  stories.check();
}

TEST_CASE("a query that only tests texts takes no memory for them beyond the limit", "[engine]") {
  Stories stories;
  stories.merge();
  MergePolicy policy;
  policy.automatic = false;
  policy.read_text_bytes_max = 0;
  must(stories.database->set_merge_policy(stories.table, policy));
  const Transaction t = must(stories.database->begin(AccessMode::kReadOnly));
  CHECK(must(query::Query::table("stories")
                 .where(query::col("story").contains("furiously a"))
                 .group_by({}, {query::count().as("n")})
                 .run(t))
            .get_unchecked(0, 0)
            .as_int64() > 0);
  CHECK(stories.in_dram().read_text_bytes() == 0);
}

TEST_CASE("texts of a key are not compressed, and a key may come later", "[engine]") {
  Stories stories;
  must(stories.database->add_key(stories.table, KeySchema{"by_story", {"story", "id"}, true}));
  stories.merge();
  CHECK_FALSE(stories.is_compressed(1));
  must(stories.database->drop_key({stories.table, 1}));
  Stories later;
  later.merge();
  CHECK(later.is_compressed(1));
  const KeyId key =
      must(later.database->add_key(later.table, KeySchema{"by_story", {"story", "id"}, true}));
  later.check();
  later.database.reopen();
  const Transaction t = must(later.database->begin(AccessMode::kReadOnly));
  for (const auto& [id, story] : later.rows)
    if (story)
      REQUIRE(t.get(key, {Value::string(std::string_view(*story)), Value::int64(id)}).ok());
}

}  // namespace flugs::test
