// The owners and lifetimes of a text's bytes in a query: see RunContext. Run it under the address
// sanitizer, which sees every read through a view of freed bytes.

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "flugs/query.h"
#include "query/vectors/run_context.h"
#include "test/support/temporary_database.h"

using namespace flugs;
using namespace flugs::query;
using flugs::test::must;

namespace {

const std::string kLong = "a text of a constant that is too long to stand in a string or a cell";
const std::string kOther = "another text of a constant that is too long to stand in a string";
constexpr std::int64_t kThings = 20'000;

/// `things`: id, `kind` with four texts, and `name`, held directly. Half of the rows are in main.
class Things {
 public:
  Things() {
    TableSchema schema("things");
    schema.column("id", Type::kInt64).column("kind", Type::kString);
    schema.column("name", Type::kString).direct();
    table_ = must(database_->create_table(schema.primary_key({"id"})));
    fill(0, kThings / 2);
    MergeOptions everything;
    everything.scope = MergeScope::kEverything;
    static_cast<void>(must(database_->merge(table_, everything)));
    fill(kThings / 2, kThings);
    reader_ = must(database_->begin(AccessMode::kReadOnly));
  }

  test::TemporaryDatabase& database() { return database_; }
  TableId table() const { return table_; }
  Transaction& reader() { return reader_; }
  QueryResult run(const Query& query, std::uint32_t threads) {
    RunOptions options;
    options.threads = threads;
    return must(query.run(reader_, options));
  }
  /// Destroys everything.
  void close() {
    reader_ = Transaction();
    database_.close();
  }

  static std::string kind(std::int64_t id) { return "kind " + std::to_string(id % 4); }
  static std::string name(std::int64_t id) { return "a name that is long, " + std::to_string(id); }

 private:
  void fill(std::int64_t first, std::int64_t end) {
    Transaction writer = must(database_->begin());
    for (std::int64_t id = first; id < end; ++id) {
      const std::string of_kind = kind(id);
      const std::string of_name = name(id);
      must(writer.insert(table_,
                         {Value::int64(id), Value::string(of_kind), Value::string(of_name)}));
    }
    must(writer.commit());
  }

  test::TemporaryDatabase database_;
  TableId table_;
  Transaction reader_;
};

Query things() { return Query::table("things"); }
Query few() { return things().where(col("id") < 50); }

std::set<std::string> texts(const QueryResult& result, const char* column) {
  std::set<std::string> found;
  const std::size_t c = result.find(column).value();
  for (std::size_t b = 0; b < result.batch_count(); ++b)
    for (const std::string_view text : result.batch(b).column_unchecked<std::string_view>(c))
      found.emplace(text);
  for (std::size_t row = 0; row < result.row_count(); row += 997)
    if (const Value value = result.get_unchecked(row, c); !value.is_null())
      found.emplace(value.as_string());
  return found;
}

// The query is destroyed before its result is read.
struct Position {
  const char* what;
  Query query;
  std::set<std::string> texts;  // of column t
};

std::set<std::string> names(int count, const std::string& before) {
  std::set<std::string> all;
  for (int id = 0; id < count; ++id) all.insert(before + std::to_string(id));
  return all;
}
std::set<std::string> kinds(const std::string& before) { return names(4, before); }

Expr sized() { return case_when({{col("id") < 100, kLong}}, "short"); }
Expr by_kind() { return case_when({{col("kind") == "kind 1", kLong}}, kOther); }

std::vector<Position> positions_of_constants() {
  const Query constant = few().select({"id", Expr(kLong).as("t")});
  const Query right =
      things().where(col("id") < 3).select({col("id").as("r"), Expr(kLong).as("t")});
  return {
      {"select", constant, {kLong}},
      {"select, of a short text", things().select({Expr("A").as("t")}), {"A"}},
      {"case", things().select({sized().as("t")}), {kLong, "short"}},
      {"case on codes", things().select({by_kind().as("t")}), {kLong, kOther}},
      {"coalesce",
       few().select({case_when({{col("id") < 0, col("name")}}, kLong).as("t")}),
       {kLong}},
      {"part of a constant",
       few().select({substring(Expr(kLong), 3, 50).as("t")}),
       {kLong.substr(2, 50)}},
      {"least", things().group_by({}, {min(Expr(kLong)).as("t")}), {kLong}},
      {"least by key", things().group_by({"kind"}, {min(sized()).as("t")}), {kLong}},
      {"key", things().group_by({sized().as("t")}, {count()}), {kLong, "short"}},
      {"key on codes", things().group_by({by_kind().as("t"), "kind"}, {count()}), {kLong, kOther}},
      {"key that is a constant", things().group_by({Expr(kLong).as("t")}, {count()}), {kLong}},
      {"distinct", things().select({by_kind().as("t")}).distinct(), {kLong, kOther}},
      {"order", things().select({sized().as("t")}).order_by({"t"}), {kLong, "short"}},
      {"order, first rows", constant.order_by({desc("t"), "id"}).limit(7), {kLong}},
      {"right side of a join", few().join(right, {{"id", "r"}}), {kLong}},
      {"right side of a left join", few().left_join(right, {{"id", "r"}}), {kLong, ""}},
      {"left side of a join", constant.join(few().as("o"), {{"id", "o.id"}}), {kLong}},
      {"behind a join",
       few().join(right.select({"r"}), {{"id", "r"}}).select({sized().as("t")}),
       {kLong}},
      {"groups of groups",
       things().group_by({sized().as("t"), "kind"}, {count()}).group_by({"t"}, {max("kind")}),
       {kLong, "short"}},
      {"where behind it",
       constant.where(col("t") == kLong && col("t").in({kLong, kOther})),
       {kLong}},
  };
}

std::vector<Position> positions_of_computed() {
  return {
      {"computed", few().select({lower(col("name")).as("t")}), names(50, "a name that is long, ")},
      {"computed on codes", things().select({upper(col("kind")).as("t")}), kinds("KIND ")},
      {"computed key",
       things().group_by({concat({col("kind"), Expr(kLong)}).as("t")}, {count()}),
       {"kind 0" + kLong, "kind 1" + kLong, "kind 2" + kLong, "kind 3" + kLong}},
      {"computed key of few",
       few().group_by({upper(col("name")).as("t")}, {min(lower(col("name")))}),
       names(50, "A NAME THAT IS LONG, ")},
      {"least computed",
       things().group_by({}, {min(to_text(col("id") + 100'000)).as("t")}),
       {"100000"}},
      {"computed in order",
       few().select({concat({col("name"), Expr("!")}).as("t")}).order_by({desc("t")}).limit(2),
       {"a name that is long, 9!", "a name that is long, 8!"}},
      {"computed by a case",
       things().select(
           {case_when({{col("id") < 2, lower(Expr(kLong))}}, upper(col("kind"))).as("t")}),
       {kLong, "KIND 0", "KIND 1", "KIND 2", "KIND 3"}},
      {"part of a computed one",
       few().select({substring(lower(trim(col("name"))), 1, 6).as("t")}),
       {"a name"}},
      {"join by a computed one",
       few()
           .select({lower(col("name")).as("t")})
           .join(few().select({concat({col("name")}).as("other")}), {{"t", "other"}}),
       names(50, "a name that is long, ")},
  };
}

std::vector<Position> positions() {
  std::vector<Position> all = positions_of_constants();
  std::vector<Position> computed = positions_of_computed();
  for (Position& position : computed) all.push_back(std::move(position));
  return all;
}

}  // namespace

TEST_CASE("a result keeps the texts of constants when everything else is gone") {
  for (const std::uint32_t threads : {1u, 2u}) {
    Things world;
    std::vector<QueryResult> results;
    for (const Position& position : positions())
      results.push_back(world.run(position.query, threads));
    world.close();
    const std::vector<Position> expected = positions();
    for (std::size_t i = 0; i < results.size(); ++i) {
      INFO(expected[i].what << ", " << threads << " threads");
      CHECK(texts(results[i], "t") == expected[i].texts);
    }
  }
}

TEST_CASE("results of results keep their texts when the first ones are gone") {
  for (const std::uint32_t threads : {1u, 2u}) {
    std::vector<QueryResult> last;
    std::vector<QueryResult> scalars;
    {
      Things world;
      for (const Position& position : positions()) {
        const QueryResult first = world.run(position.query, threads);
        const Query of = Query::of(first);
        const Expr least = world.run(of.group_by({}, {min("t")}), threads).constant(0, 0);
        scalars.push_back(world.run(few().select({least.as("t")}), threads));
        const Query both = of.where(col("t").is_not_null()).select({"t"});
        last.push_back(world.run(
            both.join(Query::of(first).group_by({"t"}, {}).as("o"), {{"t", "o.t"}}), threads));
      }
    }
    const std::vector<Position> expected = positions();
    for (std::size_t i = 0; i < last.size(); ++i) {
      INFO(expected[i].what << ", " << threads << " threads");
      std::set<std::string> found = expected[i].texts;
      found.erase("");  // NULLs of the left join
      CHECK(texts(last[i], "o.t") == found);
      CHECK(texts(scalars[i], "t") == std::set<std::string>{*found.begin()});
    }
  }
}

TEST_CASE("computed texts take memory for a batch only, unless an operator holds them") {
  Things world;
  const Expr long_text = concat({col("name"), Expr(std::string(1000, 'x'))});
  RunOptions options;
  options.threads = 1;
  options.memory_bytes_max = std::uint64_t{16} << 20;  // all would be 20 MB
  // Beginnings only: how many rows a batch has depends on the machine's speed.
  const auto beginning = [](const Expr& text) { return substring(text, 1, 30).as("t"); };
  ResultStream stream = must(things()
                                 .select({long_text.as("t")})
                                 .select({beginning(col("t"))})
                                 .stream(world.reader(), options));
  std::int64_t rows = 0;
  while (const StreamBatch* batch = stream.next()) rows += std::int64_t(batch->row_count());
  CHECK(stream.status().to_string() == "ok");
  CHECK(rows == kThings);
  ResultStream behind = must(things()
                                 .select({long_text.as("t"), "id"})
                                 .where(col("id") >= 0 && length(col("t")) > 0)
                                 .select({upper(col("t")).as("u")})
                                 .select({beginning(col("u"))})
                                 .stream(world.reader(), options));
  rows = 0;
  while (const StreamBatch* batch = behind.next()) rows += std::int64_t(batch->row_count());
  CHECK(behind.status().to_string() == "ok");
  CHECK(rows == kThings);
  const Result<QueryResult> held =
      things().group_by({long_text.as("t")}, {count()}).run(world.reader(), options);
  REQUIRE(held.code() == StatusCode::kOutOfMemory);
  INFO(held.status().message());
  CHECK(held.status().message().find("computed texts") != std::string::npos);
}

TEST_CASE("a computed text of a dictionary that lacks memory is computed for the rows instead") {
  Things world;
  RunOptions options;
  options.threads = 1;
  options.memory_bytes_max = std::uint64_t{8} << 20;
  const Expr kind = concat({col("kind"), Expr(std::string(3 << 20, 'x'))});
  const Result<QueryResult> found =
      things().where(col("id") == 5).select({length(kind).as("n")}).run(world.reader(), options);
  CHECK(found.status().to_string() == "ok");
  CHECK(found->get_unchecked(0, 0) == Value::int64((3 << 20) + 6));
}

TEST_CASE("memory of computed texts of all sizes is used again") {
  MemoryBudget budget(std::uint64_t{1} << 30);
  {
    TextArena arena(&budget);
    for (int round = 0; round < 200; ++round) {
      for (int i = 0; i < 100; ++i) {
        const std::size_t size = static_cast<std::size_t>((i * 37 + round * 11) % 100) * 2000;
        char* const place = arena.add(size);
        std::fill_n(place, size, static_cast<char>(i));
      }
      arena.clear();
    }
    CHECK(budget.peak() < 4 * 100 * 100'000);  // four times the largest round
    arena.give_up();
    CHECK(budget.try_take(std::uint64_t{1} << 30));
    budget.give_back(std::uint64_t{1} << 30);
  }
}

TEST_CASE("a result keeps its texts when their rows, column and table are gone") {
  Things world;
  const Query query = things().where(col("id") % 1000 == 7);
  const QueryResult rows = world.run(query, 2);
  const QueryResult groups = world.run(query.group_by({"name", "kind"}, {max("name")}), 2);
  const QueryResult joined = world.run(query.join(query.as("o"), {{"name", "o.name"}}), 2);
  world.reader() = Transaction();
  Transaction writer = must(world.database()->begin());
  std::vector<RowId> all;
  must(writer.scan(world.table(), {ColumnId(0)}, [&](const ScanBatch& batch) {
    all.insert(all.end(), batch.row_ids().begin(), batch.row_ids().end());
    return true;
  }));
  for (const RowId row : all) must(writer.remove(world.table(), row));
  must(writer.commit());
  MergeOptions everything;
  everything.scope = MergeScope::kEverything;
  static_cast<void>(must(world.database()->merge(world.table(), everything)));
  must(world.database()->drop_column(world.table(), ColumnId(2)));
  static_cast<void>(must(world.database()->merge(world.table(), everything)));
  must(world.database()->drop_table(world.table()));
  const auto check = [](const QueryResult& result) {
    REQUIRE(result.row_count() == 20);
    for (const char* column : {"name", "kind"})
      for (const std::string& text : texts(result, column))
        CHECK((text == "kind 3" || text.starts_with("a name that is long, ")));
  };
  for (const QueryResult* result : {&rows, &groups, &joined}) check(*result);
  world.close();
  for (const QueryResult* result : {&rows, &groups, &joined}) check(*result);
}
