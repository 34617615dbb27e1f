// A program that has a database open and lends it to DuckDB, as the Python module does: a library
// that a test calls by ctypes. The functions give 0 if all went well.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bindings/duckdb/adapter.h"
#include "bindings/duckdb/pools.h"
#include "flugs/flugs.h"

namespace {

struct Lender {
  std::string path;
  std::shared_ptr<flugs::Database> database;
  std::shared_ptr<flugs::duckdb::Pool> pool;
};

Lender& lender_of(void* handle) { return *static_cast<Lender*>(handle); }

int result_of(const flugs::Status& status) {
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.to_string().c_str());
  return status.ok() ? 0 : 1;
}

}  // namespace

#define FLUGS_SHOWN extern "C" __attribute__((visibility("default")))

FLUGS_SHOWN void lender_start(duckdb_v2_extension_input* input) { flugs::duckdb::start(input); }

/// A new pool with the table t(id, g), which is lent; null: it cannot be made.
FLUGS_SHOWN void* lender_open(const char* path) {
  using namespace flugs;
  Result<Database> database = Database::open({.path = path, .max_bytes = 1 << 28});
  if (result_of(database.status()) != 0) return nullptr;
  TableSchema schema("t");
  schema.column("id", Type::kInt64).column("g", Type::kInt32).primary_key({"id"});
  if (result_of(database->create_table(schema).status()) != 0) return nullptr;
  auto lender = std::make_unique<Lender>();
  lender->path = path;
  lender->database = std::make_shared<Database>(*std::move(database));
  lender->pool = duckdb::lend_pool({.name = std::string(duckdb::kLentPrefix) + path,
                                    .path = path,
                                    .database = lender->database,
                                    .transaction = nullptr});
  return lender.release();
}

FLUGS_SHOWN int lender_insert(void* handle, std::int64_t first, std::int64_t count) {
  using namespace flugs;
  return result_of(lender_of(handle).database->run([&](Transaction& transaction) -> Status {
    FLUGS_ASSIGN(const TableId table, lender_of(handle).database->find_table("t"));
    std::vector<Value> rows;
    for (std::int64_t id = first; id < first + count; ++id) {
      rows.emplace_back(id);
      rows.emplace_back(static_cast<std::int32_t>(id % 10));
    }
    return transaction.insert_rows(table, rows);
  }));
}

FLUGS_SHOWN int lender_drop_column(void* handle) {
  using namespace flugs;
  Database& database = *lender_of(handle).database;
  const Result<Table> table = database.table("t");
  if (!table.ok()) return 1;
  const Result<ColumnId> column = table->column("g");
  return result_of(column.ok() ? database.drop_column(*table, *column) : column.status());
}

FLUGS_SHOWN int lender_rename(void* handle) {
  using namespace flugs;
  Database& database = *lender_of(handle).database;
  const Result<TableId> table = database.find_table("t");
  return result_of(table.ok() ? database.rename_table(*table, "other") : table.status());
}

FLUGS_SHOWN void lender_take_back(void* handle) {
  lender_of(handle).pool->take_back();
  lender_of(handle).pool.reset();
}

/// The number of transactions that are open.
FLUGS_SHOWN int lender_transactions(void* handle) {
  return static_cast<int>(lender_of(handle).database->transactions().size());
}

FLUGS_SHOWN void lender_close(void* handle) { delete static_cast<Lender*>(handle); }
