// Columns that begin anew at a merge: the pool gets the space of their dictionaries and texts back,
// while rows, keys and queries give the same results.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "flugs/merge.h"
#include "flugs/query.h"
#include "test/support/temporary_database.h"
#include "test/support/whole_pool.h"

namespace flugs::test {
namespace {

constexpr std::int64_t kRenewedRows = 200;
constexpr ColumnId kBody{1};
constexpr ColumnId kTag{2};
constexpr ColumnId kNoteAmount{3};

MergeOptions thrifty(MergeScope scope = MergeScope::kEverything) {
  MergeOptions options;
  options.scope = scope;
  options.waste_bytes = 16 << 10;
  return options;
}

/// RenewedNotes whose texts and amounts change all the time: `bodies` are long and direct, tags and
/// amounts have dictionaries.
struct RenewedNotes {
  RenewedNotes() {
    TableSchema schema("notes");
    schema.column("id", Type::kInt64).column("body", Type::kString).column("tag", Type::kString);
    schema.column("amount", Type::kInt64);
    schema.columns[1].encoding = Encoding::kDirect;
    schema.columns[1].nullable = true;
    schema.columns[2].encoding = Encoding::kDictionary;
    schema.columns[3].encoding = Encoding::kDictionary;
    schema.primary_key({"id"});
    schema.key("by_tag", {"tag", "id"});
    schema.keys[1].ordered = true;
    table = must(database->create_table(schema));
    Transaction t = must(database->begin());
    for (std::int64_t n = 0; n < kRenewedRows; ++n)
      must(t.insert(
          table, {Value::int64(n), body(n), Value::string(std::string_view(tag(n))), amount(n)}));
    must(t.commit());
  }

  std::string text(std::int64_t n) const {
    return std::string(400, 'b') + std::to_string(n) + "." + std::to_string(round);
  }
  Value body(std::int64_t n) {
    texts.push_back(text(n));
    return n % 7 == 0 ? Value::null() : Value::string(texts.back());
  }
  std::string tag(std::int64_t n) const {
    return std::string(40, 't') + std::to_string(n % 50) + "." + std::to_string(round);
  }
  Value amount(std::int64_t n) const { return Value::int64(n * 1000 + round); }

  void update_all() {
    ++round;
    texts.clear();
    texts.reserve(kRenewedRows);
    Transaction t = must(database->begin());
    for (std::int64_t n = 0; n < kRenewedRows; ++n) {
      const std::string of_row = tag(n);
      const Row row = must(t.get({table, 0}, {Value::int64(n)}));
      must(t.update(table, row.id(),
                    {{kBody, body(n)}, {kTag, Value::string(of_row)}, {kNoteAmount, amount(n)}}));
    }
    must(t.commit());
  }

  /// Updates the bodies of the first rows to the same values.
  void update_bodies(std::int64_t rows) {
    Transaction t = must(database->begin());
    for (std::int64_t n = 0; n < rows; ++n) {
      const std::string of_row = text(n);
      const Row row = must(t.get({table, 0}, {Value::int64(n)}));
      if (n % 7 != 0) must(t.update(table, row.id(), {{kBody, Value::string(of_row)}}));
    }
    must(t.commit());
  }

  void check() {
    const Transaction t = must(database->begin(AccessMode::kReadOnly));
    check_in(t, round);
    const auto sums = must(query::Query::table("notes")
                               .group_by({}, {query::sum(query::col("amount")).as("s"),
                                              query::count_distinct(query::col("tag")).as("d")})
                               .run(t));
    CHECK(sums.get_unchecked(0, 0).raw() ==
          kRenewedRows * (kRenewedRows - 1) / 2 * 1000 + kRenewedRows * round);
    CHECK(sums.get_unchecked(0, 1).raw() == 50);
    const auto tagged = must(query::Query::table("notes")
                                 .where(query::col("tag") == tag(3))
                                 .select({"id", "body"})
                                 .run(t));
    CHECK(tagged.row_count() == kRenewedRows / 50);
    std::size_t in_order = 0;
    must(t.rows({table, 1}, {}, {}, [&](const Row& row) {
      in_order += row.get_unchecked<std::string_view>(kTag) ==
                          tag(row.get_unchecked<std::int64_t>(ColumnId(0)))
                      ? 1
                      : 0;
      return true;
    }));
    CHECK(in_order == kRenewedRows);
  }
  void check_in(const Transaction& t, int of_round) {
    const int now = std::exchange(round, of_round);
    for (std::int64_t n = 0; n < kRenewedRows; ++n) {
      const Row row = must(t.get({table, 0}, {Value::int64(n)}));
      CHECK(row.is_null_unchecked(kBody) == (n % 7 == 0));
      if (n % 7 != 0) CHECK(row.get_unchecked<std::string_view>(kBody) == text(n));
      CHECK(row.get_unchecked<std::string_view>(kTag) == tag(n));
      CHECK(row.get_unchecked(kNoteAmount) == amount(n));
    }
    round = now;
  }
  std::uint64_t used() { return database->statistics().pool_used_bytes; }
  MergeReport merge(const MergeOptions& options = thrifty()) {
    return must(database->merge(table, options));
  }

  int round = 0;
  std::vector<std::string> texts;
  TemporaryDatabase database;
  TableId table;
};

}  // namespace

TEST_CASE("the pool gets back texts and values that no row has any more", "[engine]") {
  RenewedNotes notes;
  for (int i = 0; i < 40; ++i) notes.update_all();
  const std::uint64_t before = notes.used();
  const MergeReport report = notes.merge();
  CHECK(report.columns_rewritten == 3);
  CHECK_FALSE(report.releases_later);
  // 41 rounds of texts of 400 bytes: one round is left, and the texts that it was copied from.
  CHECK(report.bytes_given_back > 40 * kRenewedRows * 6 / 7 * 400);
  CHECK(notes.used() + 36 * kRenewedRows * 6 / 7 * 400 < before);
  notes.check();
  const MergeReport again = notes.merge();  // values of keys stay as long as dead rows do
  CHECK(again.columns_rewritten <= 1);
  notes.check();
  const std::uint64_t used = notes.used();
  check_pool_is_whole(notes.database);
  notes.check();
  CHECK(notes.used() <= used);
  notes.update_all();
  notes.check();
  check_pool_is_whole(notes.database);
  notes.check();
}

TEST_CASE("a column may begin anew more often than there are edition numbers", "[engine]") {
  RenewedNotes notes;
  notes.update_all();
  notes.merge();
  std::uint32_t renewed = 0;
  for (int i = 0; i < 400 && renewed < 270; ++i) {
    for (int update = 0; update < 5; ++update) notes.update_bodies(80);
    renewed += notes.merge().columns_rewritten;
  }
  CHECK(renewed >= 270);
  std::uint64_t bytes = 0;
  for (const ColumnStatistics& column : must(notes.database->table_statistics(notes.table)).columns)
    bytes += column.dictionary_bytes;
  CHECK(bytes < std::uint64_t{1} << 19);
  notes.check();
  check_pool_is_whole(notes.database);
  notes.check();
}

TEST_CASE("groups keep a dictionary's numbers when the dictionary is given back", "[engine]") {
  TemporaryDatabase database;
  TableSchema schema("numbers");
  schema.column("id", Type::kInt64).column("n", Type::kInt32).column("m", Type::kInt64);
  schema.columns[1].encoding = Encoding::kDictionary;
  schema.columns[1].nullable = true;
  schema.columns[2].encoding = Encoding::kDictionary;
  schema.primary_key({"id"});
  const TableId table = must(database->create_table(schema));
  const auto insert = [&](std::int64_t first, std::int64_t end) {
    Transaction t = must(database->begin());
    for (std::int64_t i = first; i < end; ++i)
      must(t.insert(table,
                    {Value::int64(i),
                     i % 10 == 0 ? Value::null() : Value::int32(static_cast<std::int32_t>(-3 * i)),
                     Value::int64(i << 33)}));
    must(t.commit());
  };
  const auto check = [&](std::int64_t end) {
    const Transaction t = must(database->begin(AccessMode::kReadOnly));
    for (std::int64_t i = 0; i < end; i += 13) {
      const Row row = must(t.get({table, 0}, {Value::int64(i)}));
      CHECK(row.is_null_unchecked(ColumnId(1)) == (i % 10 == 0));
      CHECK((i % 10 == 0 || row.get_unchecked<std::int32_t>(ColumnId(1)) == -3 * i));
      CHECK(row.get_unchecked<std::int64_t>(ColumnId(2)) == i << 33);
    }
    const auto distinct = must(query::Query::table("numbers")
                                   .group_by({}, {query::count_distinct(query::col("m")).as("m"),
                                                  query::count(query::col("n")).as("n")})
                                   .run(t));
    CHECK(distinct.get_unchecked(0, 0).raw() == end);
    CHECK(distinct.get_unchecked(0, 1).raw() == end - (end + 9) / 10);
    const auto groups = must(query::Query::table("numbers")
                                 .group_by({"m"}, {query::sum(query::col("n")).as("s")})
                                 .run(t));
    CHECK(groups.row_count() == static_cast<std::size_t>(end));
  };
  insert(0, 5000);
  MergeOptions never = thrifty();
  never.waste_bytes = ~std::uint64_t{0};
  CHECK(must(database->merge(table, never)).columns_rewritten == 0);
  check(5000);
  const MergeReport report = must(database->merge(table, thrifty()));
  CHECK(report.columns_rewritten == 2);
  CHECK(report.groups_merged == 0);
  CHECK(report.bytes_given_back > 5000 * 16);
  check(5000);
  insert(5000, 6000);
  check(6000);
  check_pool_is_whole(database);
  check(6000);
  CHECK(must(database->merge(table, thrifty())).columns_rewritten == 0);
  check(6000);
  must(database->change_type(table, ColumnId(1), Type::kInt64));
  must(database->merge(table, thrifty()));
  check_pool_is_whole(database);
  for (const ColumnStatistics& column : must(database->table_statistics(table)).columns)
    CHECK(column.dictionary_bytes == 0);
}

TEST_CASE("a later merge gives back what an open transaction may read", "[engine]") {
  RenewedNotes notes;
  for (int i = 0; i < 10; ++i) notes.update_all();
  must(notes.merge().chunks_merged > 0 ? Status() : Status(StatusCode::kBusy, "nothing merged"));
  for (int i = 0; i < 10; ++i) notes.update_all();
  MergeOptions impatient = thrifty();
  impatient.patience = std::chrono::milliseconds(0);
  impatient.progress = [](const Progress&) {};
  const int seen = notes.round;
  {
    const Transaction reader = must(notes.database->begin(AccessMode::kReadOnly));
    notes.update_all();
    const Result<MergeReport> report = notes.database->merge(notes.table, impatient);
    CHECK(report.status().code() == StatusCode::kBusy);  // nothing moves while it is open
    notes.check_in(reader, seen);
    notes.update_all();
    notes.check_in(reader, seen);
  }
  notes.check();
  const MergeReport report = notes.merge();
  CHECK(report.bytes_given_back > 10 * kRenewedRows * 6 / 7 * 400);
  notes.check();
  check_pool_is_whole(notes.database);
}

TEST_CASE("texts that a reader found during a merge stay until the reader ends", "[engine]") {
  RenewedNotes notes;
  for (int i = 0; i < 20; ++i) notes.update_all();
  MergeOptions options = thrifty();
  options.threads = 1;
  options.patience = std::chrono::milliseconds(20);
  std::optional<Transaction> reader;
  std::vector<std::string_view> seen;
  // Texts of chunks that the merge has not reached.
  options.progress = [&](const Progress&) {
    if (reader) return;
    reader.emplace(must(notes.database->begin(AccessMode::kReadOnly)));
    for (std::int64_t n = 1; n < 7; ++n)
      for (const ColumnId column : {kBody, kTag})
        seen.push_back(must(reader->get({notes.table, 0}, {Value::int64(n)}))
                           .get_unchecked<std::string_view>(column));
  };
  const MergeReport report = notes.merge(options);
  REQUIRE(reader.has_value());
  CHECK(report.columns_rewritten == 3);
  CHECK(report.releases_later);
  CHECK(report.bytes_given_back == 0);
  int round = notes.round;
  for (int i = 0; i < 20; ++i) notes.update_all();  // into any free space
  std::swap(notes.round, round);
  for (std::size_t i = 0; i < seen.size(); i += 2) {
    const auto n = static_cast<std::int64_t>(1 + i / 2);
    CHECK(seen[i] == notes.text(n));
    CHECK(seen[i + 1] == notes.tag(n));
  }
  std::swap(notes.round, round);
  reader.reset();
  CHECK(notes.merge().bytes_given_back > 20 * kRenewedRows * 6 / 7 * 400);
  notes.check();
  check_pool_is_whole(notes.database);
}

TEST_CASE("columns of foreign keys begin anew as well", "[engine]") {
  TemporaryDatabase database;
  TableSchema parents("parents");
  parents.column("code", Type::kString).column("n", Type::kInt64);
  parents.columns[0].encoding = Encoding::kDictionary;
  parents.primary_key({"code"});
  const TableId parent = must(database->create_table(parents));
  TableSchema children("children");
  children.column("id", Type::kInt64).column("code", Type::kString);
  children.columns[1].encoding = Encoding::kDictionary;
  children.primary_key({"id"});
  children.foreign_key("of", {"code"}, "parents", ReferenceAction::kCascade);
  const TableId child = must(database->create_table(children));
  const auto code = [](std::int64_t n) { return std::string(60, 'c') + std::to_string(n); };
  const auto remove_parent = [&](Transaction& t, std::int64_t n) {
    const std::string of_row = code(n);
    must(t.remove(parent, must(t.get({parent, 0}, {Value::string(of_row)})).id()));
  };
  for (std::int64_t n = 0; n < 1000; ++n) {
    Transaction t = must(database->begin());
    must(t.insert(parent, {Value::string(std::string_view(code(n))), Value::int64(n)}));
    must(t.insert(child, {Value::int64(n), Value::string(std::string_view(code(n)))}));
    if (n >= 100) remove_parent(t, n - 100);
    must(t.commit());
  }
  for (const TableId table : {parent, child}) {
    const MergeReport report = must(database->merge(table, thrifty()));
    CHECK(report.columns_rewritten >= 1);
    CHECK(report.bytes_given_back > 900 * 60);
  }
  check_pool_is_whole(database);
  Transaction t = must(database->begin());
  CHECK(t.insert(child, {Value::int64(5000), Value::string(std::string_view(code(5)))})
            .status()
            .code() == StatusCode::kConstraintViolated);
  remove_parent(t, 950);
  CHECK(t.get({child, 0}, {Value::int64(950)}).status().code() == StatusCode::kNotFound);
  must(t.get({child, 0}, {Value::int64(951)}).status());
  must(t.insert(child, {Value::int64(5001), Value::string(std::string_view(code(951)))}).status());
  must(t.commit());
  check_pool_is_whole(database);
}

TEST_CASE("a table merged by policy does not grow by former values", "[engine]") {
  RenewedNotes notes;
  MergePolicy policy;
  policy.automatic = true;
  policy.interval = std::chrono::milliseconds(10);
  policy.waste_bytes = std::uint64_t{1} << 20;
  must(notes.database->set_merge_policy(notes.table, policy));
  // 80 KB of texts exist at any time; 40 MB are written.
  std::uint64_t most = 0;
  for (int i = 0; i < 500; ++i) {
    notes.update_all();
    most = std::max(most, notes.used());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK(most < std::uint64_t{24} << 20);
  notes.check();
  policy.automatic = false;
  must(notes.database->set_merge_policy(notes.table, policy));
  check_pool_is_whole(notes.database);
  notes.check();
}

TEST_CASE("shares of waste out of range are refused", "[engine]") {
  RenewedNotes notes;
  MergeOptions options;
  MergePolicy policy;
  for (const std::uint32_t percent : {0u, 101u}) {
    options.waste_percent = policy.waste_percent = percent;
    CHECK(notes.database->merge(notes.table, options).status().code() ==
          StatusCode::kInvalidArgument);
    CHECK(notes.database->set_merge_policy(notes.table, policy).code() ==
          StatusCode::kInvalidArgument);
  }
}

}  // namespace flugs::test
