// Opens a pool (a fresh one on /dev/shm, or the one named), makes a table, writes, reads, scans.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "flugs/database.h"

using namespace flugs;

namespace {

std::string made;  // the pool, if this program must remove it

// The status says what failed. Here it ends the program.
template <typename T>
T check(Result<T> result) {
  if (result.ok()) return std::move(result).value();
  std::fprintf(stderr, "quickstart: %s\n", result.status().to_string().c_str());
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) made = "/dev/shm/flugs-quickstart-" + std::to_string(getpid());
  std::atexit([] { unlink(made.c_str()); });
  OpenOptions options;
  options.path = argc < 2 ? made : argv[1];
  Database database = check(Database::open(options));  // makes the pool, or recovers it

  TableSchema schema("cities");
  schema.column("id", Type::kInt64).column("name", Type::kString).not_null();
  schema.column("inhabitants", Type::kInt64).primary_key({"id"});
  const TableId cities = check(database.create_table(schema));
  const KeyId by_id = check(database.find_key(cities, "primary"));
  const ColumnId inhabitants = check(database.find_column(cities, "inhabitants"));

  Transaction writer = check(database.begin());
  check(writer.insert(cities, {Value::int64(1), Value::string("Dresden"), Value::int64(550000)}));
  check(writer.insert(cities, {Value::int64(2), Value::string("Walldorf"), Value::null()}));
  const Row walldorf = check(writer.find(by_id, {Value::int64(2)}));
  check(writer.update(cities, walldorf.id(), {{inhabitants, Value::int64(15000)}}));
  if (!writer.commit().ok()) return 1;  // ok: the transaction is durable

  Transaction reader = check(database.begin(AccessMode::kReadOnly));
  const Row dresden = check(reader.find(by_id, {Value::int64(1)}));
  std::printf("1 is %s\n", std::string(dresden.get_string(ColumnId{1})).c_str());
  long long sum = 0;
  const Status status = reader.scan(cities, {inhabitants}, [&sum](const ScanBatch& batch) {
    for (const std::int64_t value : batch.integers(0)) sum += value;
    return true;
  });
  std::printf("%lld inhabitants; medium %s\n", sum, database.statistics().medium.c_str());
  return status.ok() && sum == 565000 ? 0 : 1;
}
