// The program on the first page.
#include <cstdint>
#include <iostream>

#include "shop.h"

using namespace flugs;
using namespace flugs::query;

namespace snippets {

// --8<-- [start:front]
Status sell(const char* path) {
  OpenOptions options;
  options.path = path;  // in /dev/shm: lost at a reboot; on a disk it stays
  options.max_bytes = std::uint64_t{1} << 30;  // 1 GiB at most
  // Creates the pool, or reopens it.
  FLUGS_ASSIGN(Database database, Database::open(options));

  TableSchema schema("sales");
  schema.column("id", Type::kInt64).auto_increment().primary_key({"id"});
  schema.column("euros", Type::kDecimal).scale(2).not_null();
  FLUGS_ASSIGN(const Table sales, database.ensure_table(schema));
  FLUGS_ASSIGN(const ColumnId euros, sales.column("euros"));

  // Runs again after a conflict. ok: the sale is committed, and durable.
  FLUGS_TRY(database.run([&](Transaction& sale) -> Status {
    return sale.insert(sales, {{euros, Value::decimal("12.50")}}).status();
  }));

  FLUGS_ASSIGN(const Transaction reader, database.begin(AccessMode::kReadOnly));
  const Query sums = Query::table("sales").group_by(
      {}, {count().as("n"), sum("euros").as("sum")});
  FLUGS_ASSIGN(const QueryResult total, sums.run(reader));
  FLUGS_ASSIGN(const Value count, total.get(0, "n"));
  FLUGS_ASSIGN(const Value sum, total.get(0, "sum"));
  std::cout << count.to_string() << " sales, " << sum.to_string() << " euros\n";
  return {};
}
// --8<-- [end:front]

Status front(const char* path) {
  FLUGS_TRY(sell(path));
  return sell(path);
}

}  // namespace snippets
