// Threads change long texts, whose places later texts take (decision 0038), while others read old
// snapshots and a thread merges.
#include <atomic>
#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "test/support/complaint.h"
#include "test/support/random.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr ColumnId kPageText{1};
constexpr std::int64_t kPages = 40;

/// A text that says of which page it is, and of which every byte follows from its beginning.
std::string page_text(std::int64_t page, std::uint64_t number) {
  std::string text = std::to_string(page) + "/" + std::to_string(number) + "/";
  const std::size_t bytes = 20 + number % 100;
  while (text.size() < bytes) text += static_cast<char>('a' + (text.size() + number) % 26);
  return text;
}

bool is_page_text(std::int64_t page, std::string_view text) {
  const std::string begin = std::to_string(page) + "/";
  if (!text.starts_with(begin)) return false;
  std::uint64_t number = 0;
  for (const char c : text.substr(begin.size())) {
    if (c == '/') break;
    if (c < '0' || c > '9') return false;
    number = number * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return text == page_text(page, number);
}

struct Pages {
  TemporaryDatabase database;
  TableId table;
  KeyId id;
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> ends{false};
  Complaint complaint;

  Pages() : Pages([](OpenOptions&) {}) {}
  template <typename Change>
  explicit Pages(Change&& change) : database(std::forward<Change>(change)) {
    TableSchema schema("pages");
    schema.column("id", Type::kInt64).column("text", Type::kString).direct();
    schema.column("count", Type::kInt64).direct().primary_key({"id"});
    table = must(database->create_table(schema));
    id = KeyId(table, 0);
    Transaction t = must(database->begin());
    for (std::int64_t page = 0; page < kPages; ++page) {
      const std::string text = page_text(page, 0);
      must(t.insert(table, {Value::int64(page), Value::string(text), Value::int64(0)}));
    }
    must(t.commit());
  }

  /// Until the pool has no room for a row.
  void fill_pool() {
    TableSchema schema("filler");
    schema.column("number", Type::kInt64).direct();
    const TableId filler = must(database->create_table(schema));
    for (Status s; s.ok();) {
      Transaction t = must(database->begin());
      for (int i = 0; i < 100 && s.ok(); ++i) s = t.insert(filler, {Value::int64(i)}).status();
      if (s.ok()) must(t.commit());
    }
  }
  /// Writers, readers, and a thread that merges each `pause`. A merge looks at columns that take
  /// `waste_bytes`.
  void run(int writes, std::chrono::milliseconds pause, std::uint64_t waste_bytes);

  /// Changes some pages; a part of it, or all, may be undone.
  void write(Random& random) {
    Result<Transaction> begun = database->begin();
    if (!complaint.expect(begun.ok(), "begin")) return;
    Transaction t = std::move(*begun);
    for (int i = 0; i < 3; ++i) {
      const Result<Savepoint> savepoint = t.savepoint();
      if (!complaint.expect(savepoint.ok(), "savepoint")) return;
      if (!change(t, static_cast<std::int64_t>(random.below(kPages)), random)) return;
      if (random.chance(20)) complaint.expect(t.rollback_to(*savepoint).ok(), "rollback_to");
    }
    if (random.chance(85)) complaint.expect(t.commit().ok(), "commit");
  }
  bool change(Transaction& t, std::int64_t page, Random& random) {
    const Result<Row> row = t.get(id, {Value::int64(page)});
    if (!row.ok()) return false;
    const std::string text = page_text(page, next.fetch_add(1, std::memory_order_relaxed));
    if (random.chance(20))
      return t.update(table, row->id(), {{ColumnId(2), Value::int64(page)}}).ok();
    if (random.chance(10))
      return t.remove(table, row->id()).ok() &&
             t.insert(table, {Value::int64(page), Value::string(text), Value::int64(0)}).ok();
    return t.update(table, row->id(), {{kPageText, Value::string(text)}}).ok();
  }
  /// A snapshot that stays a while: its texts are right, and stay the same.
  void read(Random& random) {
    Result<Transaction> t = database->begin(AccessMode::kReadOnly);
    if (!complaint.expect(t.ok(), "begin")) return;
    std::vector<std::string_view> views;
    std::vector<std::string> copies;
    const auto look = [&](bool is_first) {
      for (std::int64_t page = 0; page < kPages; ++page) {
        const Result<Row> row = t->get(id, {Value::int64(page)});
        if (!complaint.expect(row.ok(), "get")) return;
        const std::string_view text = row->get_unchecked<std::string_view>(kPageText);
        complaint.expect(is_page_text(page, text), "no text of the page: " + std::string(text));
        if (is_first) {
          views.push_back(text);
          copies.emplace_back(text);
        } else {
          const auto at = static_cast<std::size_t>(page);
          complaint.expect(text == copies[at] && views[at] == copies[at], "the text has changed");
        }
      }
    };
    look(true);
    for (std::uint64_t i = random.below(50); i > 0; --i) std::this_thread::yield();
    look(false);
  }
};

void Pages::run(int writes, std::chrono::milliseconds pause, std::uint64_t waste_bytes) {
  std::vector<std::thread> threads;
  std::atomic<int> writers{3};
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    threads.emplace_back([this, &writers, seed, writes] {
      Random random(seed);
      for (int i = 0; i < writes; ++i) write(random);
      if (writers.fetch_sub(1) == 1) ends = true;
    });
  for (std::uint64_t seed = 11; seed <= 12; ++seed)
    threads.emplace_back([this, seed] {
      Random random(seed);
      while (!ends) read(random);
    });
  threads.emplace_back([this, pause, waste_bytes] {
    MergeOptions options;
    options.scope = MergeScope::kEverything;
    options.dead_percent = 1;
    options.waste_bytes = waste_bytes;
    while (!ends) {
      const Status merged = database->merge(table, options).status();
      complaint.expect(merged.ok() || merged.code() == StatusCode::kBusy,
                       "merge: " + merged.to_string());
      std::this_thread::sleep_for(pause);
    }
  });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

TEST_CASE("no reader sees the text of another row in the place of its own", "[concurrency]") {
  Pages pages;
  pages.run(rounds_of(20000, 5000), std::chrono::milliseconds(300), MergeOptions().waste_bytes);
  INFO(pages.complaint.what());
  CHECK(pages.complaint.what().empty());
  Random random(1);
  pages.read(random);
  CHECK(pages.complaint.what().empty());
  const ColumnStatistics column = must(pages.database->table_statistics(pages.table)).columns[1];
  CHECK(column.text_bytes_reusable > 0);
  must(pages.database->check());
}

// Each merge of a full pool looks for texts that no row has.
TEST_CASE("no reader sees another text where a sweep has found a place", "[concurrency]") {
  constexpr std::uint64_t kPoolBytes = std::uint64_t{12} << 20;
  Pages pages([](OpenOptions& options) {
    options.max_bytes = kPoolBytes;
    options.merge_policy.automatic = false;  // the pool stays full
  });
  pages.fill_pool();
  pages.run(rounds_of(60000, 10000), std::chrono::milliseconds(0), 4096);
  INFO(pages.complaint.what());
  CHECK(pages.complaint.what().empty());
  Random random(1);
  pages.read(random);
  CHECK(pages.complaint.what().empty());
  CHECK(pages.database->statistics().pool_left_bytes < kPoolBytes / 8);
  must(pages.database->check());
}

}  // namespace flugs::test
