// Tables that are dropped: what waits for it, and what is left of them.
#include <catch2/catch.hpp>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "test/engine/texts_schema.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr bool kFreedIsGone = false;  // it keeps returned memory for a while
#else
constexpr bool kFreedIsGone = true;
#endif

std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t all = 0;
  std::size_t resident = 0;
  std::size_t shared = 0;
  statm >> all >> resident >> shared;
  return (resident - shared) * 4096;
}

}  // namespace

TEST_CASE("transactions that a drop waits for may look tables up and create others", "[engine]") {
  TemporaryDatabase database;
  const TableId table = must(database->create_table(texts_schema()));
  Transaction open = must(database->begin());
  Status dropped;
  std::thread dropper([&] { dropped = database->drop_table(table); });
  while (open.get(table, RowId(0)).status().message().find("no such table") == std::string::npos)
    std::this_thread::yield();
  CHECK(database->find_table("rows").code() == StatusCode::kNotFound);
  CHECK(database->create_table(texts_schema()).code() == StatusCode::kAlreadyExists);
  TableSchema other = texts_schema();
  other.name = "others";
  const TableId made = must(database->create_table(other));
  must(open.insert(made, {Value::int64(1), Value::string("while the drop waits")}));
  must(open.commit());
  dropper.join();
  must(dropped);
  must(database->create_table(texts_schema()));
}

// Their DRAM was kept until the database was closed.
TEST_CASE("indexes of dropped tables take no memory", "[engine]") {
  TemporaryDatabase database;
  TableSchema schema("rows");
  schema.column("id", Type::kInt64).column("text", Type::kString).primary_key({"id"}).ordered();
  schema.key("by_text", {"text"});
  constexpr std::int64_t kRows = 50'000;
  std::vector<std::string> texts;
  for (std::int64_t id = 0; id < kRows; ++id) texts.push_back(std::to_string(id));
  std::vector<Value> rows;
  for (std::int64_t id = 0; id < kRows; ++id)
    rows.insert(rows.end(), {Value::int64(id), Value::string(texts[static_cast<std::size_t>(id)])});
  std::size_t after_first = 0;
  for (int round = 0; round < 10; ++round) {
    const TableId table = must(database->create_table(schema));
    Transaction t = must(database->begin());
    must(t.insert_rows(table, rows));
    must(t.commit());
    must(database->drop_table(table));
    CHECK(database->statistics().dram_index_bytes == 0);
    if (round == 0) after_first = resident_bytes();
  }
  if (kFreedIsGone) CHECK(resident_bytes() < after_first + (std::size_t{10} << 20));
}

}  // namespace flugs::test
