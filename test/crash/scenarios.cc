#include "test/crash/scenarios.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace flugs::test {

TableSchema people_schema() {
  TableSchema schema("people");
  schema.column("id", Type::kInt32)
      .column("name", Type::kString)
      .column("city", Type::kString)
      .column("age", Type::kInt32)
      .column("amount", Type::kInt64)
      .direct()
      .column("note", Type::kString)
      .direct()
      .primary_key({"id"})
      .unique_key("by_name", {"name"})
      .key("by_city", {"city"});
  return schema;
}

std::vector<Value> person(std::int32_t id, std::string_view name, std::string_view city,
                          std::int64_t amount, std::string_view note) {
  const Value age = id % 4 == 3 ? Value::null() : Value::int32(20 + id % 7);
  return {Value::int32(id),     Value::string(name), Value::string(city), age,
          Value::int64(amount), Value::string(note)};
}

TableSchema orders_schema() {
  TableSchema schema("orders");
  schema.column("id", Type::kInt32)
      .column("customer", Type::kInt32)
      .column("number", Type::kInt32)
      .column("note", Type::kString)
      .primary_key({"customer", "number"});
  return schema;
}

std::vector<Value> order(std::int32_t id, std::int32_t customer, std::string_view note) {
  return {Value::int32(id), Value::int32(customer), Value::int32(id), Value::string(note)};
}

TableSchema log_schema(std::string name) {
  TableSchema schema(std::move(name));
  schema.column("id", Type::kInt32)
      .direct()
      .not_null()
      .column("amount", Type::kInt64)
      .direct()
      .not_null();
  return schema;
}

std::vector<Value> log_entry(std::int32_t id, std::int64_t amount) {
  return {Value::int32(id), Value::int64(amount)};
}

void fill_with_dead_rows(CrashRig& rig) {
  constexpr std::uint32_t kRowsSwept = 1U << 13;  // as in engine/database_open.cc
  const engine::Table& table = *rig.core().table(*rig.core().find_table("log"));
  while (table.rows().rows_end() < kRowsSwept + 256) {
    Writes inserts;
    Writes removes;
    for (std::int32_t id = 10000; id < 10064; ++id) {
      inserts.push_back(insert("log", log_entry(id, id)));
      removes.push_back(remove("log", id));
    }
    rig.commit(inserts);
    rig.commit(removes);
  }
}

TableSchema wide_schema() {
  TableSchema schema("wide");
  schema.column("id", Type::kInt32).primary_key({"id"});
  for (int i = 0; i < 14; ++i)
    schema.column(fmt::format("t{}", i), Type::kString).direct().not_null();
  return schema;
}

std::vector<Value> wide_row(std::int32_t id) {
  std::vector<Value> row = {Value::int32(id)};
  for (int i = 0; i < 14; ++i) row.push_back(Value::string(keep(fmt::format("w{}", id * 20 + i))));
  return row;
}

ColumnValue set(std::uint16_t column, Value value) { return {ColumnId(column), value}; }

namespace {

/// As small as can be: each state is a copy of it.
std::size_t pool_bytes_of(Script script) {
  std::size_t kilobytes = 128;
  if (script == script_creation) kilobytes = 48;
  if (script == script_used_space || script == script_chunk_lines) kilobytes = 256;
  if (script == script_recycling || script == script_generations) kilobytes = 512;
  return kilobytes << 10;
}

RigOptions rig_options(const Exploration& exploration) {
  const std::uint64_t factor = crash_states_factor();
  RigOptions options;
  options.pool_bytes = pool_bytes_of(exploration.script);
  options.slots = exploration.slots;
  options.watches_creation = exploration.script == script_creation;
  options.explorer.tears_words = exploration.tears_words;
  options.explorer.nested_depth = exploration.nested_depth;
  options.explorer.nested_one_in = static_cast<std::uint32_t>(
      exploration.nested_one_in / std::min<std::uint64_t>(factor, exploration.nested_one_in));
  options.explorer.images_max = exploration.images_max * factor;
  options.explorer.combinations_max = exploration.combinations_max * factor;
  options.explorer.random_images = static_cast<std::uint32_t>(exploration.random_images * factor);
  return options;
}

std::string key_of(const Exploration& exploration) {
  return fmt::format("{}{}", exploration.name, exploration.tears_words ? "+torn" : "");
}

/// FLUGS_CRASH_REPLAY is "<key>:<point>,<image>[;<point>,<image>]..." as explore() printed it.
/// False when it names another exploration.
bool take_replay(const Exploration& exploration, ExplorerOptions& options) {
  const char* wanted = std::getenv("FLUGS_CRASH_REPLAY");
  if (wanted == nullptr) return true;
  const std::string key = key_of(exploration) + ":";
  const std::string_view text(wanted);
  if (!text.starts_with(key)) return false;
  const char* at = wanted + key.size();
  while (*at != 0) {
    char* end = nullptr;
    const std::uint64_t point = std::strtoull(at, &end, 10);
    const std::uint64_t image = *end == ',' ? std::strtoull(end + 1, &end, 10) : 0;
    options.replay.emplace_back(point, image);
    at = *end == ';' ? end + 1 : end;
    if (*end != ';' && *end != 0) break;
  }
  return true;
}

std::string replay_line(const Exploration& exploration, const CrashFailure& failure) {
  std::string points;
  for (const auto& [point, image] : failure.replay)
    points += fmt::format("{}{},{}", points.empty() ? "" : ";", point, image);
  return fmt::format(
      "to replay: FLUGS_CRASH_STATES={} FLUGS_CRASH_REPLAY='{}:{}' flugs_crash_test "
      "'{}'",
      crash_states_factor(), key_of(exploration), points,
      Catch::getResultCapture().getCurrentTestName());
}

}  // namespace

void explore(const Exploration& exploration) {
  RigOptions options = rig_options(exploration);
  if (!take_replay(exploration, options.explorer)) return;
  const auto start = std::chrono::steady_clock::now();
  CrashRig rig(options);
  exploration.script(rig);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const ExplorerReport report = rig.report();
  std::printf("%s: %llu crash points, %llu states, %llu of them nested, %.1f s%s\n",
              key_of(exploration).c_str(), static_cast<unsigned long long>(report.crash_points),
              static_cast<unsigned long long>(report.images_checked),
              static_cast<unsigned long long>(report.nested_images), seconds,
              report.used_up ? ", budget used up" : "");
  const Status outcome = rig.outcome();
  INFO(outcome.to_string());
  if (!report.failures.empty()) UNSCOPED_INFO(replay_line(exploration, report.failures[0]));
  CHECK(outcome.ok());
  if (options.explorer.replay.empty()) CHECK(report.images_checked > 50);
}

bool is_found(const Exploration& exploration, const Mutation& mutation, std::string& found) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGALRM}) ::signal(signal, SIG_DFL);
    std::freopen("/dev/null", "w", stderr);
    RigOptions options = rig_options(exploration);
    options.mutation = mutation;
    CrashRig rig(options);
    exploration.script(rig);
    const std::string words = rig.outcome().to_string();
    const bool is_ok = rig.outcome().ok();
    const bool is_written = ::write(ends[1], words.data(), words.size()) >= 0;
    ::_exit(is_ok && is_written ? 0 : 1);
  }
  ::close(ends[1]);
  std::array<char, 4096> words{};
  found.clear();
  for (ssize_t n = 0; (n = ::read(ends[0], words.data(), words.size())) > 0;)
    found.append(words.data(), static_cast<std::size_t>(n));
  ::close(ends[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(found.find("out of space") == std::string::npos);  // the script needs a larger pool
  if (WIFSIGNALED(status)) found += fmt::format(" ended by signal {}", WTERMSIG(status));
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

}  // namespace flugs::test
