// Query::share and GROUP BY over selects of plain columns, in any order and repeated, against the
// same queries over a held result, whose rows come in batches.
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "flugs/query.h"
#include "flugs/stream.h"
#include "test/support/complaint.h"
#include "test/support/random.h"
#include "test/support/temporary_database.h"

using namespace flugs;
using namespace flugs::query;
using flugs::test::must;

namespace {

using SelectedLines = std::vector<std::string>;

constexpr int kSpreads = 7;  // ways in which values of a column are spread

TableSchema numbers_schema(test::Random& random) {
  TableSchema schema("numbers");
  schema.column("id", Type::kInt64);
  const Type types[] = {Type::kBool,    Type::kInt32, Type::kInt64,    Type::kDouble,
                        Type::kDecimal, Type::kDate,  Type::kTimestamp};
  for (std::size_t c = 0; c < 9; ++c) {
    schema.column("c" + std::to_string(c), types[c < 7 ? c : random.below(7)]);
    if (schema.columns.back().type == Type::kDecimal) schema.scale(2);
    if (random.chance(40)) schema.direct();
  }
  return schema.primary_key({"id"});
}

Value value_of(Type type, std::uint64_t kind, std::int64_t id, test::Random& random) {
  if (kind == 5) return Value::null();
  if (kind == 4 ? id / 5000 % 2 == 0 : kind != 6 && random.chance(15)) return Value::null();
  std::int64_t n = 0;
  if (kind == 0) n = static_cast<std::int64_t>(random.next());
  if (kind == 1) n = static_cast<std::int64_t>(random.below(20)) - 10;
  if (kind == 2) n = id / 700;
  if (kind == 3) n = static_cast<std::int64_t>(random.below(50)) * 1'000'003;
  if (kind >= 4) n = 42;
  if (type == Type::kBool) return Value::boolean(n % 2 != 0);
  if (type == Type::kDouble) return Value::real(static_cast<double>(n % 1'000'000) / 8);
  if (type == Type::kInt32) return Value::int32(static_cast<std::int32_t>(n));
  if (type == Type::kDecimal) return Value::decimal_units(n % 1'000'000'000);
  if (type == Type::kDate) return Value::from_raw(type, n % 10'000);
  if (type == Type::kTimestamp) return Value::from_raw(type, n % 1'000'000'000'000);
  return Value::int64(kind == 0 ? n >> random.below(60) : n);
}

/// Merged groups with and without deleted rows, and rows of the delta.
struct SelectedNumbers {
  explicit SelectedNumbers(std::uint64_t seed, std::int64_t rows) : random(seed) {
    schema = numbers_schema(random);
    table = must(database->create_table(schema));
    for (std::size_t c = 0; c < schema.columns.size(); ++c) kinds.push_back(random.below(kSpreads));
    const std::int64_t merged = rows * 3 / 4 + static_cast<std::int64_t>(random.below(200));
    load(0, merged / 2);
    merge();
    change(0, merged / 2, 3);
    load(merged / 2, merged);
    merge();
    change(merged / 2, merged / 2 + 3000, 20);
    load(merged, rows);
    change(merged, rows, 10);
  }
  void merge() {
    MergeOptions everything;
    everything.scope = MergeScope::kEverything;
    static_cast<void>(must(database->merge(table, everything)));
  }
  std::vector<Value> row_of(std::int64_t id) {
    std::vector<Value> values{Value::int64(id)};
    for (std::size_t c = 1; c < schema.columns.size(); ++c)
      values.push_back(value_of(schema.columns[c].type, kinds[c], id, random));
    return values;
  }
  void load(std::int64_t first, std::int64_t last) {
    Transaction writer = must(database->begin());
    bool is_right = true;
    for (std::int64_t id = first; id < last; ++id)
      is_right = writer.insert(table, row_of(id)).ok() && is_right;
    REQUIRE(is_right);
    must(std::move(writer).commit());
  }
  void change(std::int64_t first, std::int64_t last, unsigned times) {
    Transaction writer = must(database->begin());
    for (unsigned i = 0; i < times; ++i) {
      const Value id = Value::int64(
          first + static_cast<std::int64_t>(random.below(std::uint64_t(last - first))));
      if (writer.get(KeyId{table, 0}, {id}).code() == StatusCode::kNotFound) continue;
      if (random.chance(50))
        must(writer.remove(KeyId{table, 0}, {id}));
      else
        static_cast<void>(must(writer.update(KeyId{table, 0}, {id},
                                             {ColumnValue{ColumnId(1), Value::boolean(true)}})));
    }
    must(std::move(writer).commit());
  }
  std::string column() { return schema.columns[random.below(schema.columns.size())].name; }

  test::TemporaryDatabase database;
  test::Random random;
  TableSchema schema;
  TableId table;
  std::vector<std::uint64_t> kinds;
};

void add_lines(const StreamBatch& batch, const std::vector<ResultColumn>& columns,
               SelectedLines& lines) {
  const std::size_t first = lines.size();
  lines.resize(first + batch.row_count());
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const auto nulls = batch.nulls(c);
    // None: no NULL.
    CHECK((nulls.empty() || std::ranges::count(nulls, 0) != std::ssize(nulls)));
    const auto add = [&](auto values) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto raw = std::bit_cast<std::int64_t>(values[i]);
        const bool is_null = !nulls.empty() && nulls[i] != 0;
        lines[first + i] += !is_null   ? std::to_string(raw) + " "
                            : raw == 0 ? "NULL "
                                       : "NULL with a value ";
      }
    };
    if (columns[c].type == Type::kDouble)
      add(must(batch.column<double>(c)));
    else
      add(must(batch.column<std::int64_t>(c)));
  }
}

SelectedLines shared_lines(const Query& query, const Transaction& t) {
  RunOptions options;
  options.threads = 2;
  SharedStream stream = must(query.share(t, options));
  SelectedLines lines;
  std::vector<StreamBatch> kept;
  std::uint32_t turn = 0;
  unsigned ended = 0;
  while (ended != 3) {
    const std::uint32_t thread = turn++ % 2;
    const StreamBatch* batch = must(stream.next(thread));
    if (batch == nullptr) {
      ended |= 1u << thread;
      continue;
    }
    if (turn % 3 == 0)
      kept.push_back(*batch);
    else
      add_lines(*batch, stream.columns(), lines);
  }
  // What is kept is not written again.
  for (const StreamBatch& batch : kept) add_lines(batch, stream.columns(), lines);
  std::ranges::sort(lines);
  return lines;
}

SelectedLines run_lines(const Query& query, const Transaction& t) {
  const QueryResult result = must(query.run(t));
  SelectedLines lines;
  for (std::size_t row = 0; row < result.row_count(); ++row) {
    std::string line;
    for (std::size_t c = 0; c < result.columns().size(); ++c) {
      const Value value = result.get(row, c).value();
      if (value.is_null())
        line += "NULL ";
      else if (result.columns()[c].type == Type::kDouble)
        line += std::to_string(std::bit_cast<std::int64_t>(value.as_double())) + " ";
      else
        line += std::to_string(value.raw()) + " ";
    }
    lines.push_back(std::move(line));
  }
  std::ranges::sort(lines);
  return lines;
}

std::vector<Item> some_columns(SelectedNumbers& numbers, std::vector<std::string>& names,
                               const std::vector<std::string>& from) {
  std::vector<Item> items;
  names.clear();
  const std::size_t count = 1 + numbers.random.below(6);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string of =
        from.empty() ? numbers.column() : from[numbers.random.below(from.size())];
    names.push_back("o" + std::to_string(i));
    items.push_back(col(of).as(names.back()));
  }
  return items;
}

Query filtered(const Query& query, const std::string& column, SelectedNumbers& numbers) {
  switch (numbers.random.below(4)) {
    case 0:
      return query.where(col(column).is_not_null());
    case 1:
      return query.where(col(column).is_null());
    default:
      return query;
  }
}

Query some_select(SelectedNumbers& numbers, std::vector<std::string>& names) {
  test::Random& random = numbers.random;
  Query query = Query::table("numbers");
  if (random.chance(50)) query = query.where(col("id") >= std::int64_t(random.below(20'000)));
  query = filtered(query, numbers.column(), numbers);
  query = query.select(some_columns(numbers, names, {}));
  if (random.chance(40)) query = filtered(query, names[0], numbers);
  if (random.chance(50)) {
    const std::vector<std::string> inner = names;
    query = query.select(some_columns(numbers, names, inner));
  }
  return query;
}

/// Groups of the columns `names`, or all rows as one.
struct SomeGroups {
  SomeGroups(test::Random& random, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      aggregates.push_back(count(col(name)).as("count " + name));
      aggregates.push_back(min(col(name)).as("min " + name));
      aggregates.push_back(max(col(name)).as("max " + name));
    }
    const bool has_keys = random.chance(70);
    if (!has_keys || random.chance(30))
      for (const std::string& name : names)
        aggregates.push_back(count_distinct(col(name)).as("distinct " + name));
    if (!has_keys) return;
    keys.push_back(col(names[random.below(names.size())]).as("k"));
    if (random.chance(50)) keys.push_back(col(names[random.below(names.size())]).as("l"));
  }
  Query of(const Query& rows) const { return rows.group_by(keys, aggregates); }

  std::vector<Aggregate> aggregates{count().as("n")};
  std::vector<Item> keys;
};

}  // namespace

TEST_CASE("selects of plain columns, shared and grouped, agree with rows in batches") {
  for (int seed = 1; seed <= test::rounds_of(2, 1); ++seed) {
    SelectedNumbers numbers(std::uint64_t(seed), 24'000);
    const Transaction t = must(numbers.database->begin(AccessMode::kReadOnly));
    for (int i = 0; i < 10; ++i) {
      INFO("seed " << seed << ", query " << i);
      std::vector<std::string> names;
      const Query query = some_select(numbers, names);
      const QueryResult held = must(query.run(t));
      const Query again = Query::of(held);
      const SelectedLines rows = run_lines(again, t);
      CHECK((shared_lines(query, t) == rows));
      const SomeGroups groups(numbers.random, names);
      CHECK((run_lines(groups.of(query), t) == run_lines(groups.of(again), t)));
      const auto first = [&](const Query& of) {
        return of.order_by({desc(names[0])}).limit(500).select({names[0]});
      };
      CHECK((run_lines(first(query), t) == run_lines(first(again), t)));
    }
  }
}
