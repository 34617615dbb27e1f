#include "bench/growth/text_updates.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "bench/support/clock.h"
#include "bench/support/random.h"

namespace flugs::bench {

namespace {

constexpr ColumnId kText{1};
constexpr std::uint64_t kTextsPerLoad = 1000;

/// Unlike any other, but for chance.
void draw_text(Random& random, std::string& text) {
  for (std::size_t i = 0; i < text.size(); i += 8) {
    std::uint64_t word = random.next();
    for (std::size_t k = i; k < std::min(text.size(), i + 8); ++k, word >>= 8)
      text[k] = static_cast<char>('a' + word % 26);
  }
}

struct User {
  Status failure;
  std::uint64_t updates = 0;
  std::uint64_t conflicts = 0;
  Histogram latency;
};

void run_user(Database& database, TableId table, const TextUpdates& plan, std::uint32_t number,
              const std::atomic<bool>& is_over, User& user) {
  Random random(plan.seed * 1000 + number);
  std::string text(plan.text_bytes, ' ');
  while (!is_over.load(std::memory_order_relaxed)) {
    const auto id = static_cast<std::int64_t>(random.below(plan.rows));
    draw_text(random, text);
    const std::uint64_t begin = monotonic_ns();
    for (;;) {
      Result<Transaction> t = database.begin();
      Status done = t.status();
      if (t.ok())
        done =
            t->update(KeyId(table, 0), {Value::int64(id)}, {{kText, Value::string(text)}}).status();
      if (done.ok()) done = t->commit();
      if (done.ok()) break;
      if (done.code() != StatusCode::kConflict) {
        user.failure = done;
        return;
      }
      ++user.conflicts;
    }
    user.latency.add(monotonic_ns() - begin);
    ++user.updates;
  }
}

}  // namespace

Result<TableId> load_texts(Database& database, const TextUpdates& plan) {
  TableSchema schema("texts");
  schema.column("id", Type::kInt64);
  schema.column("text", Type::kString, {.not_null = true, .encoding = plan.encoding});
  schema.primary_key({"id"});
  Result<TableId> table = database.create_table(schema);
  if (!table.ok()) return table;
  Random random(plan.seed);
  std::string text(plan.text_bytes, ' ');
  for (std::uint64_t first = 0; first < plan.rows; first += kTextsPerLoad) {
    Result<Transaction> t = database.begin();
    if (!t.ok()) return t.status();
    for (std::uint64_t i = first; i < std::min(plan.rows, first + kTextsPerLoad); ++i) {
      draw_text(random, text);
      const Result<RowId> row =
          t->insert(*table, {Value::int64(static_cast<std::int64_t>(i)), Value::string(text)});
      if (!row.ok()) return row.status();
    }
    if (Status s = t->commit(); !s.ok()) return s;
  }
  return table;
}

TextUpdatesResult update_texts(Database& database, TableId table, const TextUpdates& plan) {
  std::vector<User> users(plan.users);
  std::atomic<bool> is_over{false};
  const std::uint64_t begin = monotonic_ns();
  std::vector<std::thread> threads;
  threads.reserve(plan.users);
  for (std::uint32_t i = 0; i < plan.users; ++i)
    threads.emplace_back([&, i] { run_user(database, table, plan, i, is_over, users[i]); });
  while (seconds_since(begin) < plan.seconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (plan.progress) plan.progress(seconds_since(begin));
  }
  is_over = true;
  for (std::thread& thread : threads) thread.join();
  TextUpdatesResult result;
  result.seconds = seconds_since(begin);
  for (const User& user : users) {
    if (result.failure.ok()) result.failure = user.failure;
    result.updates += user.updates;
    result.conflicts += user.conflicts;
    result.latency.merge(user.latency);
  }
  return result;
}

}  // namespace flugs::bench
