// shop: sells coffee, until it is killed.
#include <cstdint>
#include <iostream>

#include "flugs/flugs.h"

using namespace flugs;
using namespace flugs::query;

namespace {

Status run(const char* path) {
  OpenOptions options;
  options.path = path;
  options.max_bytes = std::uint64_t{1} << 30;  // 1 GiB at most
  // Creates the pool, or reopens it.
  FLUGS_ASSIGN(Database database, Database::open(options));

  TableSchema schema("sales");
  schema.column("id", Type::kInt64).auto_increment().primary_key({"id"});
  schema.column("what", Type::kString).not_null();
  schema.column("euros", Type::kDecimal).scale(2).not_null();
  FLUGS_ASSIGN(const Table sales, database.ensure_table(schema));
  FLUGS_ASSIGN(const ColumnId what, sales.column("what"));
  FLUGS_ASSIGN(const ColumnId euros, sales.column("euros"));

  FLUGS_ASSIGN(Transaction reader, database.begin(AccessMode::kReadOnly));
  const Query all = Query::table("sales").group_by(
      {}, {count().as("n"), sum("euros").as("sum")});
  FLUGS_ASSIGN(const QueryResult total, all.run(reader));
  FLUGS_ASSIGN(const Value n, total.get(0, "n"));
  FLUGS_ASSIGN(const Value sum, total.get(0, "sum"));
  std::cout << n.to_string() << " sales are there, " << sum.to_string()
            << " euros; opened in "
            << database.recovery_report().total_us / 1000 << " ms\n";
  reader.abort();  // it has read all that it wanted

  for (int sold = 1; sold <= 5'000'000; ++sold) {
    FLUGS_TRY(database.run([&](Transaction& t) -> Status {
      return t
          .insert(sales, {{what, "coffee"}, {euros, Value::decimal("2.50")}})
          .status();
    }));  // ok: the sale is committed
    if (sold % 100'000 == 0) std::cout << sold << " sold" << std::endl;
  }
  return database.close();
}

}  // namespace

int main(int argc, char** argv) {
  const Status status = run(argc > 1 ? argv[1] : "/dev/shm/shop.pool");
  if (!status.ok()) std::cerr << "shop: " << status.to_string() << '\n';
  return status.ok() ? 0 : 1;
}
