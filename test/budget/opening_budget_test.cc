// The cost of each further table for an opening: page faults, which are most of its time. They do
// not depend on how fast or how busy the machine is.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <string>

#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

long faults_so_far() {
  ::rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt + usage.ru_majflt;
}

void make_tables(const OpenOptions& options, int count) {
  Database database = must(Database::open(options));
  for (int i = 0; i < count; ++i) {
    TableSchema schema("t" + std::to_string(i));
    schema.column("id", Type::kInt64).direct().not_null().primary_key({"id"});
    for (const char* name : {"a", "b", "c", "d"})
      schema.column(name, Type::kInt32).dictionary().not_null();
    const TableId table = must(database.create_table(schema));
    Transaction t = must(database.begin(AccessMode::kReadWrite));
    for (int row = 0; row < 10; ++row)
      must(t.insert(table, {Value::int64(row), Value::int32(row), Value::int32(row),
                            Value::int32(row), Value::int32(row)}));
    must(t.commit());
  }
}

// In a process of its own, whose memory no other code has touched: even the pages of its heap
// become its own only when it writes to them. -1: the database cannot be opened.
long faults_of_opening(const OpenOptions& options) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const ::pid_t child = ::fork();
  if (child == 0) {
    const long before = faults_so_far();
    const Result<Database> database = Database::open(options);
    const long faults = database.ok() ? faults_so_far() - before : -1;
    ::_exit(::write(ends[1], &faults, sizeof faults) == sizeof faults ? 0 : 1);
  }
  ::close(ends[1]);
  long faults = -1;
  const bool is_told = ::read(ends[0], &faults, sizeof faults) == sizeof faults;
  ::close(ends[0]);
  int status = 0;
  const bool has_ended = child > 0 && ::waitpid(child, &status, 0) == child && status == 0;
  return is_told && has_ended ? faults : -1;
}

// Without threads that would touch memory meanwhile.
OpenOptions quiet_options(const TemporaryPath& path) {
  OpenOptions options = small_options(path.string());
  options.index_place = IndexPlace::kPool;
  options.tuning.hint_interval = std::chrono::milliseconds(0);
  options.tuning.recovery_threads = 1;
  options.tuning.sweeps_in_background = false;
  options.tuning.warm_bytes_max = 0;
  return options;
}

}  // namespace

// The address sanitizer pads and keeps memory that was freed: some seven pages more for each table.
#ifdef __SANITIZE_ADDRESS__
constexpr double kFaultsMax = 24;
#else
constexpr double kFaultsMax = 12;
#endif

TEST_CASE("a table costs opening a dozen page faults", "[budget]") {
  constexpr int kFew = 50;
  constexpr int kMany = 250;
  const TemporaryPath few;
  const TemporaryPath many;
  make_tables(quiet_options(few), kFew);
  make_tables(quiet_options(many), kMany);
  const long with_few = faults_of_opening(quiet_options(few));
  const long with_many = faults_of_opening(quiet_options(many));
  REQUIRE(with_few > 0);
  REQUIRE(with_many > with_few);
  const double per_table = static_cast<double>(with_many - with_few) / (kMany - kFew);
  INFO(per_table << " page faults for each table");
  CHECK(per_table <= kFaultsMax);
}

}  // namespace flugs::test
