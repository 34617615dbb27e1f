// Opens a pool (a fresh one on /dev/shm, or the one named), makes a table, writes, reads, scans.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "flugs/database.h"

using flugs::ColumnId, flugs::Database, flugs::Row, flugs::TableSchema, flugs::Transaction,
    flugs::Type, flugs::Value;

// What failed stands in the status. Here it ends the program.
template <typename T>
T check(flugs::Result<T> result) {
  if (result.ok()) return std::move(result).value();
  std::fprintf(stderr, "quickstart: %s\n", result.status().to_string().c_str());
  std::exit(1);
}

int main(int argc, char** argv) {
  const bool ours = argc < 2;
  flugs::OpenOptions options;
  options.path = ours ? "/dev/shm/flugs-quickstart-" + std::to_string(getpid()) : argv[1];
  {
    Database database = check(Database::open(options));  // makes the pool, or recovers it

    TableSchema schema("cities");
    schema.column("id", Type::kInt64).column("name", Type::kString).not_null();
    schema.column("inhabitants", Type::kInt64).primary_key({"id"});
    const auto cities = check(database.create_table(schema));
    const auto by_id = check(database.find_key(cities, "primary"));
    const auto inhabitants = check(database.find_column(cities, "inhabitants"));

    Transaction writer = check(database.begin());
    check(writer.insert(cities, {Value::int64(1), Value::string("Dresden"), Value::int64(550000)}));
    check(writer.insert(cities, {Value::int64(2), Value::string("Walldorf"), Value::null()}));
    const Row walldorf = check(writer.find(by_id, {Value::int64(2)}));
    check(writer.update(cities, walldorf.id(), {{inhabitants, Value::int64(15000)}}));
    if (const flugs::Status status = writer.commit(); !status.ok()) return 1;  // ok: durable

    Transaction reader = check(database.begin(flugs::AccessMode::kReadOnly));
    const Row dresden = check(reader.find(by_id, {Value::int64(1)}));
    std::printf("%s\n", std::string(dresden.get_string(ColumnId{1})).c_str());
    std::int64_t sum = 0;
    const auto status = reader.scan(cities, {inhabitants}, [&](const flugs::ScanBatch& batch) {
      for (const std::int64_t value : batch.integers(0)) sum += value;
      return true;
    });
    std::printf("%lld inhabitants, medium %s\n", static_cast<long long>(sum),
                database.statistics().medium.c_str());
    if (!status.ok() || sum != 565000) return 1;
  }
  if (ours) unlink(options.path.c_str());
  return 0;
}
