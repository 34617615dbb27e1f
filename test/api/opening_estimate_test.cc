// The estimate before opening agrees with the report of opening.

#include <catch2/catch.hpp>
#include <cstdint>
#include <fstream>
#include <string>

#include "flugs/opening_estimate.h"
#include "pmem/kinds/object_format.h"
#include "pmem/pool/pool_format.h"
#include "test/support/temporary_database.h"

namespace flugs::test {

namespace {

constexpr std::int64_t kTowns = 30'000;

/// Inserts rows and removes half of them.
void fill(Database& database) {
  TableSchema schema("towns");
  schema.column("id", Type::kInt64).column("name", Type::kString).primary_key({"id"});
  const TableId table = must(database.create_table(schema));
  Transaction t = must(database.begin());
  for (std::int64_t id = 0; id < kTowns; ++id)
    must(t.insert(table,
                  {Value::int64(id), Value::string(std::string_view("t" + std::to_string(id)))}));
  must(t.commit());
  t = must(database.begin());
  for (std::int64_t id = 0; id < kTowns; id += 2)
    must(t.remove(table, must(t.get({table, 0}, {Value::int64(id)})).id()));
  must(t.commit());
}

}  // namespace

TEST_CASE("an estimate counts the work of opening", "[api]") {
  const IndexPlace mode = GENERATE(IndexPlace::kDram, IndexPlace::kPool);
  const Ready ready = GENERATE(Ready::kFirstAnswer, Ready::kIndexesBuilt);
  TemporaryDatabase database([&](OpenOptions& o) {
    o.index_place = mode;
    o.ready = ready;
  });
  fill(*database);
  CHECK(estimate_opening(database.options).code() == StatusCode::kBusy);
  const std::uint64_t positions =
      must(database->table_statistics(must(database->find_table("towns")))).rows_reserved;
  database.close();
  const OpeningEstimate estimate = must(estimate_opening(database.options));
  CHECK(estimate.index_place == mode);
  CHECK(estimate.tables == 1);
  CHECK(estimate.chunks > 1);
  CHECK(estimate.threads == 2);
  CHECK(estimate.open_ms > 1);
  CHECK(estimate.ordered_entries == 0);
  CHECK(estimate.rows_swept + estimate.rows_unswept <= positions);
  CHECK((estimate.hint_bytes != 0) == (mode == IndexPlace::kPool));
  database.options.tuning.sweeps_in_background = false;
  database.reopen();
  const RecoveryReport& report = database->recovery_report();
  CHECK(estimate.dictionary_entries == report.dictionary_entries);
  CHECK(estimate.rows_unswept == database->statistics().rows_unswept);
  CHECK(estimate.dictionary_entries_left + estimate.key_entries_left ==
        database->statistics().index_entries_left);
  const bool is_later = ready == Ready::kFirstAnswer;
  CHECK((estimate.rows_unswept > kTowns / 2) == is_later);
  CHECK((estimate.key_entries_left > kTowns / 2) == (is_later && mode == IndexPlace::kDram));
  CHECK((estimate.hash_entries != 0) == (!is_later && mode == IndexPlace::kDram));
  if (!is_later) CHECK(estimate.rows_swept == report.rows_live + report.rows_recycled);
  if (estimate.hash_entries != 0) CHECK(estimate.hash_entries == estimate.rows_swept);
}

TEST_CASE("an estimate of a file that is no pool fails and says so", "[api]") {
  const TemporaryPath path;
  const OpenOptions options = small_options(path.string());
  CHECK(estimate_opening(options).code() == StatusCode::kNotFound);
  std::ofstream(path.string()) << "no pool at all";
  CHECK(estimate_opening(options).code() == StatusCode::kIncompatible);
}

TEST_CASE("an estimate fails where opening fails", "[api]") {
  TemporaryDatabase database;
  fill(*database);
  database.close();
  std::fstream file(database.options.path, std::ios::in | std::ios::out | std::ios::binary);
  std::uint64_t root = 0;
  file.seekg(static_cast<std::streamoff>(pmem::kRootOffsetOffset));
  file.read(reinterpret_cast<char*>(&root), sizeof root);
  const std::string nothing(GENERATE(1, 2) * sizeof(pmem::PoolHeader), '\0');
  file.seekp(static_cast<std::streamoff>(pmem::round_up(root, 64)));
  file.write(nothing.data(), static_cast<std::streamsize>(nothing.size()));
  file.close();
  const Status estimated = estimate_opening(database.options).status();
  CHECK(estimated.ok() == (nothing.size() == sizeof(pmem::PoolHeader)));
  CHECK(estimated.code() == Database::open(database.options).code());
}

}  // namespace flugs::test
