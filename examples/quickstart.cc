// Opens a pool (a fresh one on /dev/shm, or the one named), makes a table, writes, reads, scans.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "flugs/flugs.h"

using namespace flugs;

namespace {

std::string made;  // the pool, if this program must remove it

// FLUGS_TRY and FLUGS_ASSIGN return the first failure to main, which prints it.
Result<bool> run(const std::string& path) {
  OpenOptions options;
  options.path = path;
  FLUGS_ASSIGN(Database database, Database::open(options));  // makes the pool, or recovers it

  TableSchema schema("cities");
  schema.column("id", Type::kInt64).column("name", Type::kString).not_null();
  schema.column("inhabitants", Type::kInt64).primary_key({"id"});
  FLUGS_ASSIGN(const Table cities, database.ensure_table(schema));
  FLUGS_ASSIGN(const KeyId by_id, cities.primary_key());
  FLUGS_ASSIGN(const ColumnId inhabitants, cities.column("inhabitants"));

  FLUGS_ASSIGN(Transaction writer, database.begin());
  FLUGS_TRY(writer.insert(cities, {1, "Dresden", 550000}));
  FLUGS_TRY(writer.insert(cities, {2, "Walldorf", nullptr}));
  FLUGS_TRY(writer.update(by_id, {2}, {{inhabitants, 15000}}));
  FLUGS_TRY(writer.commit());  // ok: the transaction is durable

  FLUGS_ASSIGN(const Transaction reader, database.begin(AccessMode::kReadOnly));
  FLUGS_ASSIGN(const Row dresden, reader.get(by_id, {1}));
  FLUGS_ASSIGN(const std::string name, dresden.get<std::string>("name"));
  std::printf("1 is %s\n", name.c_str());
  long long sum = 0;
  FLUGS_TRY(reader.scan(cities, {inhabitants}, [&sum](const ScanBatch& batch) {
    for (const std::int64_t value : batch.column_unchecked<std::int64_t>(0)) sum += value;
    return true;
  }));
  std::printf("%lld inhabitants; medium %s\n", sum, database.statistics().medium.c_str());
  return sum == 565000;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) made = "/dev/shm/flugs-quickstart-" + std::to_string(getpid());
  std::atexit([] { unlink(made.c_str()); });
  const Result<bool> done = run(argc < 2 ? made : argv[1]);
  if (!done.ok()) std::fprintf(stderr, "quickstart: %s\n", done.status().to_string().c_str());
  return done.ok() && *done ? 0 : 1;
}
