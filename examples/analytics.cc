// Analytic queries on rows that were committed a moment ago: sales by product and by year. All run
// on one snapshot, while another transaction continues to write.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "flugs/database.h"
#include "flugs/query.h"

using namespace flugs;
using namespace flugs::query;

namespace {

std::string pool;

template <typename T>
T check(Result<T> result) {
  if (result.ok()) return std::move(result).value();
  std::fprintf(stderr, "analytics: %s\n", result.status().to_string().c_str());
  std::exit(1);
}
void check(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "analytics: %s\n", status.to_string().c_str());
  std::exit(1);
}

void print(const QueryResult& result) {
  for (const ResultColumn& column : result.columns()) std::printf("%-14s", column.name.c_str());
  std::printf("\n");
  for (std::size_t row = 0; row < result.row_count(); ++row) {
    for (std::size_t column = 0; column < result.columns().size(); ++column)
      std::printf("%-14s", result.get_unchecked(row, column).to_string().c_str());
    std::printf("\n");
  }
}

void populate(Database& database) {
  TableSchema products("product");
  products.column("product_id", Type::kInt32).column("name", Type::kString).not_null();
  const TableId product = check(database.create_table(products.primary_key({"product_id"})));
  TableSchema sales("sale");
  sales.column("product", Type::kInt32).column("day", Type::kDate).not_null();
  sales.column("quantity", Type::kInt32).column("price", Type::kDecimal).scale(2);
  const TableId sale = check(database.create_table(sales));
  Transaction writer = check(database.begin());
  const char* const names[] = {"anvil", "bucket", "crowbar", "drill"};
  for (std::int32_t i = 0; i < 4; ++i)
    check(writer.insert(product, {Value::int32(i), Value::string(names[i])}));
  for (std::int32_t i = 0; i < 10'000; ++i)
    check(writer.insert(sale, {Value::int32(i % 5), Value::date(19'000 + i % 900),
                               Value::int32(1 + i % 7), Value::decimal_units(100 + i % 1000)}));
  check(writer.commit());
}

}  // namespace

int main() {
  pool = "/dev/shm/flugs-analytics-" + std::to_string(getpid());
  std::atexit([] { unlink(pool.c_str()); });
  OpenOptions options;
  options.path = pool;
  Database database = check(Database::open(options));
  populate(database);

  const Query sales = Query::table("sale").where(col("quantity") >= 2);
  const Query by_product =
      sales.join(Query::table("product"), {{"product", "product_id"}})
          .group_by({"name", year(col("day")).as("year")},
                    {sum(col("price") * col("quantity")).as("revenue"), count().as("sales")})
          .order_by({"name", desc("year")});
  const Query unknown_products =
      sales.anti_join(Query::table("product"), {{"product", "product_id"}})
          .group_by({"product"}, {count().as("sales")});

  const Transaction reader = check(database.begin(AccessMode::kReadOnly));
  const QueryResult result = check(by_product.run(reader));
  print(result);
  print(check(unknown_products.run(reader)));

  // A result can be the input of other queries, and one of its cells a constant in them.
  const Query of_result = Query::of(result);
  const QueryResult best = check(of_result.group_by({}, {max("revenue")}).run(reader));
  print(check(of_result.where(col("revenue") == best.constant(0, 0)).run(reader)));

  std::printf("\n%s", result.explain().c_str());
  return result.row_count() == 12 ? 0 : 1;
}
