// Groups and distinct values that do not stay in the workers' tables: records in parts, in memory
// and in temporary files. A plain map says what must come out.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/hash.h"
#include "flugs/query.h"
#include "query/operators/aggregate_state.h"
#include "query/operators/group_table.h"
#include "test/support/random.h"
#include "test/support/temporary_database.h"

using namespace flugs;
using namespace flugs::query;
using namespace flugs::test;

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::int64_t kPartedRows = 5'000;
#else
constexpr std::int64_t kPartedRows = 12'000;
#endif

struct GroupedRow {
  std::optional<std::int64_t> few;    // 5 values
  std::optional<std::int64_t> many;   // nearly as many as rows; half of the rows have one of 8
  std::optional<std::string> name;    // equal prefixes, some empty
  std::optional<std::int64_t> value;  // as large as sums need 128 bits on the way
  std::optional<double> real;
};

GroupedRow random_row(Random& random) {
  const auto optional = [&](auto value) {
    return random.below(20) == 0 ? std::nullopt : std::make_optional(value);
  };
  GroupedRow row;
  row.few = optional(std::int64_t(random.below(5)));
  row.many = optional(std::int64_t(random.below(2) == 0 ? random.below(8) : random.below(1 << 30)));
  const std::string prefix(random.below(3) * 9, 'p');
  row.name = optional(prefix.empty() && random.below(9) == 0
                          ? std::string()
                          : fmt::format("{}{}", prefix, random.below(kPartedRows / 2)));
  row.value = optional(std::int64_t(random.below(1 << 14)) - 5000);
  row.real = optional(double(random.below(100)) / 4);
  return row;
}

std::string cell(const Value& value, bool is_real) {
  if (value.is_null()) return "NULL";
  return is_real ? fmt::format("{:.6f}", value.as_double()) : std::to_string(value.as_int64());
}
std::string cell(const std::optional<std::string>& text) { return text ? "'" + *text : "NULL"; }
std::string cell(const std::optional<std::int64_t>& number) {
  return number ? std::to_string(*number) : "NULL";
}

/// What the aggregates of grouped() are for one group.
struct Expected {
  std::int64_t rows = 0;
  std::optional<std::int64_t> sum;
  std::optional<std::int64_t> least;
  std::optional<std::string> greatest_name;
  std::vector<double> reals;
  std::multiset<std::int64_t> values;
  std::multiset<std::string> names;

  void add(const GroupedRow& row) {
    ++rows;
    if (row.value) {
      sum = sum.value_or(0) + *row.value;
      least = std::min(least.value_or(*row.value), *row.value);
      values.insert(*row.value);
    }
    if (row.name) {
      greatest_name = std::max(greatest_name.value_or(*row.name), *row.name);
      names.insert(*row.name);
    }
    if (row.real) reals.push_back(*row.real);
  }
  std::string text() const {
    double mean = 0;
    for (const double real : reals) mean += real / static_cast<double>(reals.size());
    double deviations = 0;
    for (const double real : reals) deviations += (real - mean) * (real - mean);
    const auto divisor = static_cast<double>(reals.size()) - 1;
    return fmt::format("{} {} {} {} {} {} {} {} {} {}", rows, cell(sum), cell(least),
                       cell(greatest_name), reals.empty() ? "NULL" : fmt::format("{:.6f}", mean),
                       reals.size() < 2 ? "NULL" : fmt::format("{:.6f}", deviations / divisor),
                       std::set(values.begin(), values.end()).size(),
                       std::set(names.begin(), names.end()).size(), median(), middle_name());
  }

 private:
  std::string median() const {
    if (values.empty()) return "NULL";
    const auto at = [&](std::size_t i) {
      return static_cast<double>(*std::next(values.begin(), std::ptrdiff_t(i)));
    };
    return fmt::format("{:.6f}", (at((values.size() - 1) / 2) + at(values.size() / 2)) / 2);
  }
  std::string middle_name() const {
    const auto half = std::ptrdiff_t(names.size() + 1) / 2;
    return names.empty() ? "NULL" : "'" + *std::next(names.begin(), half - 1);
  }
};

std::vector<Aggregate> aggregates() {
  return {count().as("rows"),
          sum("value").as("sum"),
          query::min("value").as("least"),
          query::max("name").as("greatest"),
          avg("real").as("mean"),
          variance("real").as("variance"),
          count_distinct("value").as("values"),
          count_distinct("name").as("names"),
          median("value").as("median"),
          quantile("name", 0.5).as("middle")};
}

/// The rows of a table, first as they were inserted, then merged.
class PartedTable {
 public:
  PartedTable() {
    TableSchema schema("t");
    schema.column("id", Type::kInt64);
    schema.column("few", Type::kInt64);
    schema.column("many", Type::kInt64).direct();
    schema.column("name", Type::kString);
    schema.column("value", Type::kInt64);
    schema.column("real", Type::kDouble);
    schema.primary_key({"id"});
    table_ = must(database_->create_table(schema));
    Random random(34);
    Transaction t = must(database_->begin(AccessMode::kReadWrite));
    for (std::int64_t id = 0; id < kPartedRows; ++id) {
      const GroupedRow row = rows_.emplace_back(random_row(random));
      const Value name = row.name ? Value::string(*row.name) : Value();
      const auto number = [](std::optional<std::int64_t> v) {
        return v ? Value::int64(*v) : Value();
      };
      must(t.insert(table_, {Value::int64(id), number(row.few), number(row.many), name,
                             number(row.value), row.real ? Value::real(*row.real) : Value()}));
    }
    must(t.commit());
  }
  void merge() {
    MergeOptions options;
    options.scope = MergeScope::kEverything;
    must(database_->merge(table_, options));
  }
  Result<QueryResult> run(const Query& query, const RunOptions& options) {
    const Transaction t = must(database_->begin(AccessMode::kReadOnly));
    return query.run(t, options);
  }
  const std::vector<GroupedRow>& rows() const noexcept { return rows_; }

 private:
  MemoryDatabase database_{std::size_t{256} << 20};
  TableId table_{};
  std::vector<GroupedRow> rows_;
};

using Keys = std::vector<std::string>;  // names of columns

std::string key_of(const GroupedRow& row, const Keys& keys) {
  std::string text;
  for (const std::string& key : keys)
    text += (key == "name"   ? cell(row.name)
             : key == "few"  ? cell(row.few)
             : key == "many" ? cell(row.many)
                             : cell(row.value)) +
            "|";
  return text;
}

std::map<std::string, std::string> expected(const PartedTable& table, const Keys& keys) {
  std::map<std::string, Expected> groups;
  for (const GroupedRow& row : table.rows()) groups[key_of(row, keys)].add(row);
  std::map<std::string, std::string> texts;
  for (const auto& [key, group] : groups) texts[key] = group.text();
  return texts;
}

std::map<std::string, std::string> found(const QueryResult& result, const Keys& keys) {
  std::map<std::string, std::string> texts;
  const auto text = [](const Value& value) {
    return value.is_null() ? std::string("NULL") : cell(std::string(value.as_string()));
  };
  for (std::size_t row = 0; row < result.row_count(); ++row) {
    std::string key;
    std::size_t c = 0;
    for (; c < keys.size(); ++c) {
      const Value value = result.get_unchecked(row, c);
      key += (keys[c] == "name" ? text(value) : cell(value, false)) + "|";
    }
    const auto at = [&](std::size_t i) { return result.get_unchecked(row, c + i); };
    const bool is_new =
        texts
            .emplace(key, fmt::format("{} {} {} {} {} {} {} {} {} {}", cell(at(0), false),
                                      cell(at(1), false), cell(at(2), false), text(at(3)),
                                      cell(at(4), true), cell(at(5), true), cell(at(6), false),
                                      cell(at(7), false), cell(at(8), true), text(at(9))))
            .second;
    if (!is_new) texts[key] += " twice";
  }
  return texts;
}

Query grouped(const Keys& keys) {
  std::vector<Item> items;
  for (const std::string& key : keys) items.emplace_back(key);
  return Query::table("t").group_by(items, aggregates());
}

/// How often each way was gone.
struct Ways {
  int in_parts = 0;
  int in_files = 0;
};

using Answers = std::map<Keys, std::map<std::string, std::string>>;

Answers answers(const PartedTable& table) {
  const std::vector<Keys> all = {{},       {"few"},          {"many"},
                                 {"name"}, {"many", "name"}, {"few", "value", "name"}};
  Answers answers;
  for (const Keys& keys : all) answers[keys] = expected(table, keys);
  return answers;
}

void check_all(PartedTable& table, const Answers& answers, const RunOptions& options, Ways& ways) {
  for (const auto& [keys, answer] : answers) {
    const Result<QueryResult> result = table.run(grouped(keys), options);
    INFO(fmt::format("{} first of {} keys, {} threads, {} bytes", keys.empty() ? "" : keys[0],
                     keys.size(), options.threads, options.memory_bytes_max));
    REQUIRE(result.status().message() == "");
    const bool is_equal = found(*result, keys) == answer;
    CHECK(is_equal);
    CHECK(result->statistics().memory_bytes_peak <= options.memory_bytes_max);
    ways.in_parts += result->explain().find(" parts") != std::string::npos;
    ways.in_files += result->explain().find(" temporary files") != std::string::npos;
  }
}

}  // namespace

TEST_CASE("groups in parts and in temporary files are those of a plain map", "[query]") {
  PartedTable table;
  const Answers right = answers(table);
  for (const bool is_merged : {false, true}) {
    if (is_merged) table.merge();
    for (const std::uint32_t threads : {1u, 3u}) {
      RunOptions options;
      options.threads = threads;
      Ways ways;
      check_all(table, right, options, ways);
      CHECK(ways.in_files == 0);
      Ways scarce;
      options.memory_bytes_max = kPartedRows * 900;
      check_all(table, right, options, scarce);
      CHECK(scarce.in_parts >= 3);
      CHECK(scarce.in_files >= 3);
    }
  }
}

TEST_CASE("records do not grow with the rows when the table has room for the groups", "[query]") {
  constexpr std::int64_t kManyRows = 60'000;
  constexpr std::int64_t kGroups = 1500;  // more than a table has before its store is filling up
  MemoryDatabase database(std::size_t{64} << 20);
  TableSchema schema("t");
  schema.column("id", Type::kInt64).column("key", Type::kInt64).direct();
  schema.primary_key({"id"});
  const TableId table = must(database->create_table(schema));
  Transaction t = must(database->begin(AccessMode::kReadWrite));
  Random random(5);
  for (std::int64_t id = 0; id < kManyRows; ++id)
    must(t.insert(table, {Value::int64(id), Value::int64(std::int64_t(random.below(kGroups)))}));
  RunOptions options;
  options.threads = 1;
  options.memory_bytes_max = std::uint64_t{2} << 20;
  const QueryResult result = must(Query::table("t").group_by({"key"}, {sum("id")}).run(t, options));
  CHECK(result.row_count() == kGroups);
  const std::string plan = result.explain();
  INFO(plan);
  const std::size_t end = plan.find(" records of groups");
  REQUIRE(end != std::string::npos);
  const std::size_t begin = plan.find_last_not_of("0123456789", end - 1) + 1;
  const std::int64_t records = std::stoll(plan.substr(begin, end - begin));
  CHECK(records > kGroups);  // so the store was filling up
  CHECK(records < kManyRows / 2);
}

TEST_CASE("a group by in parts can be stopped, and fails without a folder for its file",
          "[query]") {
  PartedTable table;
  RunOptions options;
  options.threads = 2;
  options.memory_bytes_max = kPartedRows * 900;
  options.temporary_folder = "/dev/null/no folder";
  const Keys keys = {"many", "name"};
  const Result<QueryResult> refused = table.run(grouped(keys), options);
  REQUIRE(refused.status().code() == StatusCode::kIoError);
  CHECK(refused.status().message().find("/dev/null/no folder") != std::string::npos);

  options.temporary_folder.clear();
  std::stop_source stop;
  options.stop = stop.get_token();
  options.progress = [&](const Progress& progress) {
    if (progress.done != 0) stop.request_stop();
  };
  CHECK(table.run(grouped(keys), options).status().code() == StatusCode::kCancelled);

  options.stop = {};
  options.progress = {};
  options.memory_bytes_max = 100'000;  // not even the result fits
  CHECK(table.run(grouped(keys), options).status().code() == StatusCode::kOutOfMemory);
}

TEST_CASE("approximate counts of groups in files are those of groups in memory", "[query]") {
  PartedTable table;
  const RunOptions plenty{.threads = 1};
  const RunOptions scarce{.threads = 3, .memory_bytes_max = kPartedRows * 400};
  int in_files = 0;
  for (const Keys& keys : {Keys{}, {"few"}, {"many"}, {"name"}, {"many", "name"}}) {
    std::vector<Item> items;
    for (const std::string& key : keys) items.emplace_back(key);
    const std::vector<Aggregate> counts = {approx_count_distinct("value").as("values"),
                                           approx_count_distinct("name").as("names"),
                                           count_distinct("value").as("exact")};
    const Query groups = Query::table("t").group_by(items, counts);
    const QueryResult right = must(table.run(groups, plenty));
    const QueryResult found = must(table.run(groups, scarce));
    in_files += found.explain().find(" temporary files") != std::string::npos;
    REQUIRE(found.row_count() == right.row_count());
    const auto lines = [&](const QueryResult& result) {
      std::multiset<std::string> all;
      for (std::size_t row = 0; row < result.row_count(); ++row) {
        std::string line;
        for (std::size_t c = 0; c < keys.size() + counts.size(); ++c)
          line += result.get_unchecked(row, c).to_string() + "|";
        all.insert(line);
      }
      return all;
    };
    const bool is_equal = lines(found) == lines(right);
    CHECK(is_equal);
  }
  CHECK(in_files >= 2);
}

TEST_CASE("the values of a quantile count for the query's memory", "[query]") {
  PartedTable table;
  const Query all = Query::table("t").group_by({}, {median("id")});
  const RunOptions enough{.threads = 2, .memory_bytes_max = kPartedRows * 32};
  const QueryResult result = must(table.run(all, enough));
  CHECK(must(result.get<double>(0, 0)) == static_cast<double>(kPartedRows - 1) / 2);
  CHECK(result.statistics().memory_bytes_peak > kPartedRows * 8);
  const Status status =
      table.run(all, {.threads = 2, .memory_bytes_max = kPartedRows * 8}).status();
  CHECK(status.code() == StatusCode::kOutOfMemory);
  CHECK(status.message().find("group by") != std::string::npos);
}

TEST_CASE("texts with the same mark are different groups and values", "[query]") {
  // Two texts of 7 letters with the same half of a hash: of 200,000 some have it.
  std::map<std::uint64_t, std::string> by_mark;
  std::string first;
  std::string second;
  for (int i = 0; i < 400'000 && second.empty(); ++i) {
    std::string text = fmt::format("{:07}", i);
    const auto [at, is_new] = by_mark.try_emplace(text_mark(text), text);
    if (is_new) continue;
    first = at->second;
    second = text;
  }
  REQUIRE(!second.empty());
  REQUIRE(text_mark(first) == text_mark(second));

  KeyShape shape;
  CHECK(shape.add(true) == 0);
  GroupTable table(shape, {});
  KeyWords words(shape.words());
  const std::string copy = first;  // equal bytes at another address
  const std::vector<std::string_view> texts = {first, second, copy, "", first};
  for (std::size_t i = 0; i < texts.size(); ++i) words.put_text(0, i, texts[i]);
  words.keys[0][4] = words.keys[1][4] = 0;
  words.note_null(0, 4);
  std::vector<std::uint32_t> groups(texts.size());
  table.find(words, texts.size(), groups.data());
  CHECK(groups == std::vector<std::uint32_t>{0, 1, 0, 2, 3});

  DistinctSet set(true);
  const auto insert = [&](std::string_view text) {
    return set.insert(0, reinterpret_cast<std::uint64_t>(text.data()), text_mark(text));
  };
  CHECK(insert(first));
  CHECK(insert(second));
  CHECK(!insert(copy));
  CHECK(set.size() == 2);
}

TEST_CASE("deviations of values whose squares are not finite survive a merge", "[query]") {
  BoundAggregate variance;
  variance.kind = AggregateKind::kVariance;
  AggregateState from;
  from.count = 2;
  from.mean = 1e200;
  AggregateState into;
  MemoryBudget budget(1 << 20);
  KeptMemory memory(budget);
  merge(variance, from, into, memory);
  CHECK(into.count == 2);
  CHECK(into.mean == 1e200);
  CHECK(into.real == 0);
}
