// Key indexes of main, in the pool: they find rows of groups after a restart, whatever happens to
// the rows, the groups and the runs.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "flugs/merge.h"
#include "tables/keys/index_run.h"
#include "test/support/complaint.h"
#include "test/support/random.h"
#include "test/support/taken_space.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr ColumnId kPerson{0};
constexpr ColumnId kPersonCode{1};
constexpr ColumnId kName{2};
constexpr ColumnId kCity{3};

struct Person {
  std::int32_t code = 0;
  std::string name;
  int city = -1;  // -1: NULL
};
using People = std::map<std::int32_t, Person>;

Value city_of(int city) {
  if (city < 0) return Value::null();
  static const std::vector<std::string> kNames = {"Aachen", "Dresden an der Elbe",
                                                  "Dresden an der Elde", "Zwickau"};
  return Value::string(kNames[static_cast<std::size_t>(city) % kNames.size()]);
}

/// A table with keys of all kinds, and its expected content.
class Town {
 public:
  explicit Town(std::size_t pool_bytes = std::size_t{64} << 20)
      : database(pool_bytes, IndexPlace::kDram) {  // else runs have no hash tables
    TableSchema schema("people");
    schema.column("id", Type::kInt32).not_null().column("code", Type::kInt32).not_null();
    schema.column("name", Type::kString).not_null().column("city", Type::kString);
    schema.primary_key({"id"});
    schema.unique_key("by_code", {"code", "id"}).hash_prefix(1);
    schema.unique_key("by_name", {"name"}).ordered();
    schema.key("by_city", {"city", "code"});
    table = must(database->create_table(schema));
  }

  static Person person_of(std::int32_t id) {
    return {id % 97, "name " + std::to_string(id), id % 5 - 1};
  }
  static std::vector<Value> row_of(std::int32_t id, const Person& person) {
    return {Value::int32(id), Value::int32(person.code), Value::string(person.name),
            city_of(person.city)};
  }
  void insert(std::int32_t first, std::int32_t end) {
    Transaction t = must(database->begin(AccessMode::kReadWrite));
    for (std::int32_t id = first; id < end; ++id) {
      people[id] = person_of(id);
      must(t.insert(table, row_of(id, people[id])));
    }
    must(t.commit());
  }
  RowId find(Transaction& t, std::int32_t id) {
    return must(t.get({table, 0}, {Value::int32(id)})).id();
  }
  void change(Transaction& t, std::int32_t id, const Person& person) {
    must(t.update(table, find(t, id),
                  {{kPersonCode, Value::int32(person.code)},
                   {kName, Value::string(person.name)},
                   {kCity, city_of(person.city)}}));
  }
  void remove(std::int32_t first, std::int32_t end) {
    Transaction t = must(database->begin(AccessMode::kReadWrite));
    for (std::int32_t id = first; id < end; ++id) {
      must(t.remove(table, find(t, id)));
      people.erase(id);
    }
    must(t.commit());
  }
  MergeReport merge(MergeScope scope = MergeScope::kEverything) {
    MergeOptions options;
    options.scope = scope;
    options.dead_percent = 10;
    options.threads = 2;
    return must(database->merge(table, options));
  }
  /// Runs transactions until dead rows have left the indexes.
  void collect() {
    for (std::int32_t i = 0; i < 5000; ++i) {
      Transaction t = must(database->begin(AccessMode::kReadWrite));
      const RowId row = must(t.insert(table, row_of(-1, {-1, "nobody", -1})));
      must(t.remove(table, row));
      must(t.commit());
    }
  }
  TableStatistics statistics() { return must(database->statistics(table)); }

  void check(const People& wanted, Transaction& t);
  void check() {
    Transaction t = must(database->begin(AccessMode::kReadOnly));
    check(people, t);
  }
  void check_and_verify() {
    check();
    must(database->verify({}));
  }

  MemoryDatabase database;
  TableId table;
  People people;
};

/// Compares by every key: points, prefixes, whole walks and parts of them.
void Town::check(const People& wanted, Transaction& t) {
  std::size_t wrong = 0;
  std::map<std::int32_t, std::multiset<std::int32_t>> by_code;
  for (const auto& [id, person] : wanted) {
    const auto by_id = t.get({table, 0}, {Value::int32(id)});
    const auto by_name = t.get({table, 2}, {Value::string(person.name)});
    const bool right = by_id.ok() && by_name.ok() &&
                       by_id->get_unchecked<std::int32_t>(kPersonCode) == person.code &&
                       by_id->get_unchecked<std::string_view>(kName) == person.name &&
                       by_id->get_unchecked(kCity) == city_of(person.city) &&
                       by_name->get_unchecked<std::int32_t>(kPerson) == id;
    wrong += right ? 0 : 1;
    by_code[person.code].insert(id);
  }
  CHECK(wrong == 0);
  for (std::int32_t code = 0; code < 97; ++code) {
    std::multiset<std::int32_t> found;
    must(t.rows({table, 1}, {Value::int32(code)}, [&](const Row& row) {
      found.insert(row.get_unchecked<std::int32_t>(kPerson));
      return true;
    }));
    wrong += found == by_code[code] ? 0 : 1;
  }
  CHECK(wrong == 0);
  std::vector<std::string> names;
  for (const auto& [id, person] : wanted) names.push_back(person.name);
  std::sort(names.begin(), names.end());
  std::vector<std::string> walked;
  must(t.rows({table, 2}, {}, {}, [&](const Row& row) {
    walked.emplace_back(row.get_unchecked<std::string_view>(kName));
    return true;
  }));
  CHECK(walked == names);
  for (int city = -1; city < 4; ++city) {
    std::multiset<std::pair<std::int32_t, std::int32_t>> expected;
    for (const auto& [id, person] : wanted)
      if (person.city == city && person.code >= 20 && person.code < 60)
        expected.insert({person.code, id});
    std::vector<std::pair<std::int32_t, std::int32_t>> found;
    const std::vector<Value> low{city_of(city), Value::int32(20)};
    const std::vector<Value> high{city_of(city), Value::int32(60)};
    must(t.rows({table, 3}, {low, true}, {high, false}, [&](const Row& row) {
      found.emplace_back(row.get_unchecked<std::int32_t>(kPersonCode),
                         row.get_unchecked<std::int32_t>(kPerson));
      return true;
    }));
    wrong += std::is_sorted(found.begin(), found.end(),
                            [](const auto& a, const auto& b) { return a.first < b.first; })
                 ? 0
                 : 1;
    wrong += std::multiset(found.begin(), found.end()) == expected ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("index runs find rows of main, and opening indexes none of them", "[engine]") {
  Town town;
  town.insert(0, 6000);
  const MergeReport report = town.merge();
  CHECK(report.index_rows == 6000);
  CHECK(report.index_bytes > 6000 * 20);
  town.check_and_verify();
  CHECK(town.statistics().index_runs == 1);
  const std::uint64_t dram = town.statistics().key_index_bytes;
  const std::uint64_t used = town.database->pool().allocator().space().used_bytes;
  for (int i = 0; i < 2; ++i) {
    town.database.reopen();
    CHECK(town.database->report().rows_live == 0);
    CHECK(town.statistics().key_index_bytes < dram / 3);
    CHECK(town.database->pool().allocator().space().used_bytes == used);
    town.check_and_verify();
  }
  town.insert(6000, 6500);
  town.check_and_verify();
  town.database.reopen();
  CHECK(town.database->report().rows_live == 500);
  town.check_and_verify();
}

TEST_CASE("rows that index runs serve are changed and deleted", "[engine]") {
  Town town;
  town.insert(0, 3000);
  town.merge();
  town.database.reopen();
  const People before = town.people;
  Transaction old = must(town.database->begin(AccessMode::kReadOnly));
  for (int round = 0; round < 3; ++round) {
    Transaction t = must(town.database->begin(AccessMode::kReadWrite));
    for (std::int32_t id = round; id < 3000; id += 7) {
      Person& person = town.people[id];
      person.city = (person.city + 2) % 4;
      if (id % 2 == 0) person.code = (person.code + 13) % 97;
      if (id % 3 == 0) person.name += " changed";
      town.change(t, id, person);
    }
    town.check(town.people, t);
    must(t.commit());
    town.check();
  }
  town.remove(1000, 1400);
  town.check();
  town.insert(1200, 1300);  // once more
  town.check();
  town.check(before, old);
  old.abort();
  town.check_and_verify();
  town.database.reopen();
  town.check_and_verify();
}

TEST_CASE("aborted changes leave rows in index runs unchanged", "[engine]") {
  Town town;
  town.insert(0, 500);
  town.merge();
  town.database.reopen();
  for (int round = 0; round < 2; ++round) {
    Transaction t = must(town.database->begin(AccessMode::kReadWrite));
    for (std::int32_t id = 0; id < 500; ++id) {
      if (id % 3 == 0) town.change(t, id, {id % 11, "other " + std::to_string(id), 2});
      if (id % 3 == 1) town.change(t, id, {id % 97, Town::person_of(id).name, 3});
      if (id % 3 == 2) must(t.remove(town.table, town.find(t, id)));
    }
    must(t.insert(town.table, Town::row_of(2, {1, "name 2", 1})));
    t.abort();
    town.check_and_verify();
  }
}

TEST_CASE("a key in an index run is taken until its row is deleted", "[engine]") {
  Town town;
  town.insert(0, 100);
  town.merge();
  town.database.reopen();
  Transaction t = must(town.database->begin(AccessMode::kReadWrite));
  CHECK(t.insert(town.table, Town::row_of(5, {1, "new", 1})).code() == StatusCode::kAlreadyExists);
  CHECK(t.insert(town.table, Town::row_of(500, {1, "name 7", 1})).code() ==
        StatusCode::kAlreadyExists);
  const std::string long_name(100, 'n');  // checks keys before it stores the text
  CHECK(t.insert(town.table, Town::row_of(5, {1, long_name, 1})).code() ==
        StatusCode::kAlreadyExists);
  must(t.remove(town.table, town.find(t, 5)));
  Transaction other = must(town.database->begin(AccessMode::kReadWrite));
  CHECK(other.insert(town.table, Town::row_of(5, {1, "new", 1})).code() == StatusCode::kConflict);
  other.abort();
  must(t.insert(town.table, Town::row_of(5, {5, "name 5", 1})));
  must(t.commit());
  town.people[5] = {5, "name 5", 1};
  town.check_and_verify();
  town.database.reopen();
  town.check_and_verify();
}

TEST_CASE("runs are combined, so few remain", "[engine]") {
  Town town;
  std::int32_t next = 0;
  for (int round = 0; round < rounds_of(24, 12); ++round) {
    const std::int32_t rows = round % 6 == 0 ? 1500 : 70;
    town.insert(next, next + rows);
    next += rows;
    town.merge(round % 3 == 0 ? MergeScope::kEverything : MergeScope::kFullChunks);
    if (round % 4 == 3) town.database.reopen();
    town.check_and_verify();
    CHECK(town.statistics().index_runs <= 6);
  }
  town.merge();
  const std::uint64_t used = town.database->pool().allocator().space().used_bytes;
  town.database.reopen();
  CHECK(town.database->report().rows_live == 0);
  CHECK(town.database->pool().allocator().space().used_bytes == used);
  town.check_and_verify();
}

TEST_CASE("rewritten groups stay in their run, emptied ones leave it", "[engine]") {
  Town town;
  std::uint64_t reserved = 0;
  for (int round = 0; round < rounds_of(8, 2); ++round) {
    town.insert(0, 8000);
    town.merge();
    town.database.reopen();
    town.check();
    if (round % 2 == 0) {
      town.remove(0, 5000);
      town.remove(6000, 6700);
      town.collect();
    } else {
      Transaction old = must(town.database->begin(AccessMode::kReadOnly));
      const People before = town.people;
      town.remove(0, 5000);
      town.check(before, old);
      old.abort();
      town.remove(6000, 6700);
      town.database.reopen();  // the slot that removed them may not be used again
    }
    const MergeReport report = town.merge();
    CHECK(report.groups_merged >= 1);
    town.check_and_verify();
    std::uint32_t emptied = report.chunks_emptied;
    town.insert(10000, 14000);  // at ids that the run names
    town.check_and_verify();
    if (round % 3 == 0) town.database.reopen();
    // The rows have taken what was free, so groups without rows become chunks again.
    emptied += town.merge().chunks_emptied;
    CHECK(emptied >= 1);
    town.database.reopen();
    town.check_and_verify();
    town.remove(5000, 6000);
    town.remove(6700, 8000);
    town.remove(10000, 14000);
    town.database.reopen();
    town.merge();
    town.check_and_verify();
    const std::uint64_t rows = town.statistics().rows_reserved;
    if (round < 3) reserved = rows;
    CHECK(rows <= 2 * reserved);
  }
}

TEST_CASE("row ids of an emptied chunk are given out when no reader is left", "[engine]") {
  Town town;
  town.insert(0, 8000);
  town.merge();
  town.database.reopen();
  town.remove(0, 6000);
  town.database.reopen();
  const std::uint64_t free_before = town.statistics().rows_free;
  // Begins during the merge: it may have read the list of runs that names the rows.
  std::vector<Transaction> readers;
  MergeOptions options;
  options.scope = MergeScope::kEverything;
  options.threads = 1;
  options.patience = std::chrono::milliseconds(5);
  options.progress = [&](const Progress&) {
    if (readers.empty()) readers.push_back(must(town.database->begin(AccessMode::kReadOnly)));
  };
  const MergeReport report = must(town.database->merge(town.table, options));
  REQUIRE(report.chunks_emptied >= 2);
  CHECK(report.releases_later);
  CHECK(town.statistics().rows_free == free_before);
  town.check(town.people, readers[0]);
  readers.clear();
  town.merge();
  // An eighth of the table's row ids.
  CHECK(town.statistics().rows_free >= free_before + 1000);
  town.insert(20000, 26000);
  town.check_and_verify();
}

TEST_CASE("a pool without space for a run goes on without it", "[engine]") {
  Town town(std::size_t{3} << 19);
  std::int32_t next = 0;
  int without_run = 0;
  Status status;
  while (status.ok()) {
    Transaction t = must(town.database->begin(AccessMode::kReadWrite));
    People added;
    for (std::int32_t id = next; id < next + 50 && status.ok(); ++id) {
      added[id] = Town::person_of(id);
      status = t.insert(town.table, Town::row_of(id, added[id])).status();
    }
    if (status.ok()) status = t.commit();
    if (!status.ok()) break;
    town.people.insert(added.begin(), added.end());
    next += 50;
    if (next % 1000 == 0) {
      MergeOptions options;
      const auto merged = town.database->merge(town.table, options);
      if (!merged.ok()) CHECK(merged.code() == StatusCode::kOutOfSpace);
      without_run += merged.ok() && merged->chunks_merged != 0 && merged->index_rows == 0 ? 1 : 0;
    }
    REQUIRE(next < 1000000);
  }
  CHECK(status.code() == StatusCode::kOutOfSpace);
  CHECK(without_run > 0);
  town.check_and_verify();
  town.database.reopen();
  town.check_and_verify();
}

TEST_CASE("a run is written again when many of its rows are gone", "[engine]") {
  Town town;
  town.insert(0, 8000);
  town.merge();
  const bool serves = GENERATE(false, true);
  if (serves) town.database.reopen();
  const std::uint64_t bytes = town.statistics().index_run_bytes;
  town.remove(0, 1500);
  town.merge();
  CHECK(town.statistics().index_run_bytes == bytes);  // too few
  town.remove(1500, 7000);
  town.merge(MergeScope::kFullChunks);
  CHECK(town.statistics().index_runs == 1);
  CHECK(town.statistics().index_run_bytes < bytes / 4);
  town.check_and_verify();
  town.insert(100, 200);
  town.check_and_verify();
  town.database.reopen();
  town.check_and_verify();
}

TEST_CASE("a merge of everything gives up runs in a full pool, but for those that serve",
          "[engine]") {
  Town town;
  town.insert(0, 8000);
  town.merge();
  REQUIRE(town.statistics().index_runs > 0);
  const bool serves = GENERATE(false, true);
  if (serves) town.database.reopen();
  pmem::ExtentAllocator& allocator = town.database->pool().allocator();
  const std::vector<pmem::Extent> all = take_all_space(town.database->pool());
  const std::uint64_t free = allocator.free_bytes();
  town.merge(MergeScope::kFullChunks);
  CHECK(town.statistics().index_runs > 0);
  town.merge();
  CHECK((town.statistics().index_runs > 0) == serves);
  CHECK((allocator.free_bytes() > free) == !serves);
  town.check();
  for (const pmem::Extent& extent : all) allocator.release(extent);
  town.database.reopen();
  town.check_and_verify();
  town.merge();
  CHECK(town.statistics().index_runs > 0);
}

/// The word of the table's pointer to its list, and the list.
struct Pool {
  explicit Pool(Town& town) : core(*town.database) {
    const auto& root =
        *reinterpret_cast<const engine::DatabaseLayout*>(core.pool().application_root());
    const auto& catalog = *core.pool().at(pmem::OffsetPtr<engine::CatalogLayout>{root.catalog});
    table = core.pool().at(pmem::OffsetPtr<engine::TableLayout>{catalog.tables[0]});
    list = core.pool().at(pmem::OffsetPtr<engine::IndexRunListLayout>{table->index_runs});
    const auto run_offset = *reinterpret_cast<const std::uint64_t*>(list + 1);
    run = core.pool().at(pmem::OffsetPtr<engine::IndexRunLayout>{run_offset});
    keys = reinterpret_cast<engine::IndexRunKeyLayout*>(run + 1);
  }
  engine::DatabaseCore& core;
  engine::TableLayout* table;
  engine::IndexRunListLayout* list;
  engine::IndexRunLayout* run;
  engine::IndexRunKeyLayout* keys;
};

TEST_CASE("a damaged list or header of a run is reported with its place", "[engine]") {
  struct Case {
    const char* what;
    void (*damage)(Pool&);
  };
  const std::vector<Case> cases = {
      {"magic", [](Pool& pool) { pool.list->magic ^= 1; }},
      {"checksum", [](Pool& pool) { pool.list->chunk_count ^= 64; }},
      {"offset", [](Pool& pool) { pool.table->index_runs += 8; }},
      {"offset", [](Pool& pool) { pool.table->index_runs = std::uint64_t{1} << 40; }},
      {"magic", [](Pool& pool) { pool.run->magic ^= 1; }},
      {"checksum", [](Pool& pool) { pool.keys[0].home_lines += 1; }},
      {"slots of key 0",
       [](Pool& pool) {
         pool.keys[0].slot_count = std::uint64_t{1} << 61;
         pool.run->checksum = engine::IndexRun::checksum_of(*pool.run);
       }},
      {"ordered entries of key 3",
       [](Pool& pool) {
         pool.keys[3].rows_offset = pool.run->bytes - 64;
         pool.run->checksum = engine::IndexRun::checksum_of(*pool.run);
       }},
  };
  for (const Case& each : cases) {
    Town town;
    town.insert(0, 1000);
    town.merge();
    Pool pool(town);
    each.damage(pool);
    const Status opened = town.database.try_reopen();
    INFO(opened.to_string());
    CHECK(opened.code() == StatusCode::kCorrupt);
    CHECK_THAT(std::string(opened.message()), Catch::Contains(each.what));
    CHECK_THAT(std::string(opened.message()), Catch::Contains("table people, index runs"));
  }
}

TEST_CASE("damaged entries of a run give no wrong result, and an audit finds them", "[engine]") {
  Random random(5);
  for (int round = 0; round < 40; ++round) {
    Town town;
    town.insert(0, 1000);
    town.merge();
    Pool pool(town);
    auto* base = reinterpret_cast<std::byte*>(pool.run);
    for (int i = 0; i < 20; ++i) {
      auto& slot = reinterpret_cast<std::uint64_t*>(
          base + pool.keys[0].slots_offset)[random.below(pool.keys[0].slot_count)];
      slot ^= std::uint64_t{1} << random.below(64);
      auto& row = reinterpret_cast<std::uint32_t*>(
          base + pool.keys[3].rows_offset)[random.below(pool.keys[3].ordered_entries)];
      row ^= std::uint32_t{1} << random.below(32);
    }
    town.database.reopen();
    Transaction t = must(town.database->begin(AccessMode::kReadWrite));
    for (std::int32_t id = 0; id < 1000; ++id) {
      const auto row = t.get({town.table, 0}, {Value::int32(id)});
      if (row.ok()) CHECK(row->get_unchecked<std::int32_t>(kPerson) == id);
    }
    must(t.rows({town.table, 3}, {}, {}, [](const Row&) { return true; }));
    t.abort();
    CHECK(town.database->verify({}).code() == StatusCode::kCorrupt);
  }
}

TEST_CASE("random transactions, merges and restarts keep every key right", "[engine]") {
  for (int seed = 1; seed <= rounds_of(6, 2); ++seed) {
    Random random(static_cast<std::uint64_t>(seed));
    Town town;
    for (int step = 0; step < 160; ++step) {
      INFO("seed " << seed << ", step " << step);
      People next = town.people;
      Transaction t = must(town.database->begin(AccessMode::kReadWrite));
      for (int i = 0; i < 40; ++i) {
        const auto id = static_cast<std::int32_t>(random.below(900));
        const auto found = next.find(id);
        Person person = Town::person_of(id);
        person.code = static_cast<std::int32_t>(random.below(97));
        person.city = static_cast<int>(random.below(5)) - 1;
        if (random.below(4) == 0) person.name += "'";
        if (found == next.end()) {
          must(t.insert(town.table, Town::row_of(id, person)));
          next[id] = person;
        } else if (random.below(3) == 0) {
          must(t.remove(town.table, town.find(t, id)));
          next.erase(id);
        } else {
          if (random.below(2) == 0) person.name = found->second.name;
          if (random.below(2) == 0) person.code = found->second.code;
          town.change(t, id, person);
          next[id] = person;
        }
      }
      if (random.below(4) == 0) {
        t.abort();
      } else {
        must(t.commit());
        town.people = next;
      }
      if (random.below(9) == 0) town.merge();
      if (random.below(9) == 0) town.database.reopen();
      if (random.below(4) == 0) town.check();
    }
    town.check_and_verify();
    town.database.reopen();
    town.check_and_verify();
  }
}

}  // namespace
}  // namespace flugs::test
