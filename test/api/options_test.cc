// Initialising option structs, and the value of a temporary Result. That this compiles without a
// warning is most of the test: -Wextra warns of each omitted member without an initial value.
#include <catch2/catch.hpp>
#include <concepts>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "flugs/merge.h"
#include "flugs/pool_check.h"
#include "flugs/query.h"
#include "flugs/retry.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

using Strings = Result<std::vector<std::string>>;

// A temporary Result gives its whole value, or does not compile.
static_assert(std::same_as<decltype(std::declval<Strings>().value()), std::vector<std::string>>);
static_assert(std::same_as<decltype(*std::declval<Strings>()), std::vector<std::string>>);
static_assert(std::same_as<decltype(std::declval<Strings&>().value()), std::vector<std::string>&>);
template <typename R>
concept GivesPointer = requires(R&& result) { std::forward<R>(result).operator->(); };
static_assert(!GivesPointer<Strings> && !GivesPointer<const Strings>);
static_assert(GivesPointer<Strings&> && GivesPointer<const Strings&>);
template <typename R>
concept GivesValue = requires(R&& result) { std::forward<R>(result).value(); };
static_assert(!GivesValue<const Strings>);

}  // namespace

TEST_CASE("any members of option structs may be initialised by name", "[api]") {
  CHECK(OpenOptions{.mode = OpenMode::kOpen}.path.empty());
  CHECK(OpenOptions{.path = "p"}.mode == OpenMode::kOpenOrCreate);
  CHECK(!OpenOptions{.merge_policy = {.automatic = true}}.progress);
  CHECK(MergePolicy{.threads = 2}.dead_percent == MergePolicy().dead_percent);
  CHECK(!MergeOptions{.scope = MergeScope::kEverything}.progress);
  CHECK(MergeOptions{.progress = [](const Progress&) {}}.threads == 0);
  CHECK(RetryOptions{.pause_max = std::chrono::microseconds(9)}.pause_max.count() == 9);
  CHECK(PoolCheckOptions{.path = "p"}.path == "p");
  CHECK(PoolCheckOptions{.progress = [](const Progress&) {}}.path.empty());
  CHECK(query::RunOptions{.threads = 2}.memory_bytes_max == query::RunOptions().memory_bytes_max);
  CHECK(query::RunOptions{.memory_bytes_max = 1}.threads == 0);
  CHECK(OpenOptions{.tuning = {.merge_niceness = 5}}.tuning.clock == CommitClock::kAutomatic);
  CHECK(!CallOptions{.stop = std::stop_source().get_token()}.progress);
  CHECK(ColumnSchema{.type = Type::kInt32}.name.empty());
  CHECK(ColumnSchema{.name = "c"}.nullable);
  CHECK(KeySchema{.columns = {"c"}}.name.empty());
  CHECK(KeySchema{.name = "k"}.columns.empty());
  CHECK(CheckSchema{.name = "c"}.name == "c");
  CHECK(ForeignKeySchema{.table = "t"}.key == "primary");
  CHECK(ForeignKeySchema{.name = "f", .columns = {"c"}}.table.empty());
  CHECK(KeyBound{.inclusive = false}.values.empty());
  CHECK(ColumnValue{.value = Value::int32(1)}.column == ColumnId());
  CHECK(LockWait{.limit = std::chrono::milliseconds(1)}.limit.count() == 1);
}

TEST_CASE("a loop over the value of a Result does not outlive the value", "[api]") {
  TemporaryDatabase database;
  TableSchema schema("wide");
  for (int i = 0; i < 100; ++i) schema.column("column " + std::to_string(i), Type::kInt32);
  const TableId table = must(database->create_table(schema));
  std::size_t named = 0;
  // NOLINTNEXTLINE(bugprone-unchecked-optional-access)
  for (const ColumnSchema& column : database->schema(table).value().columns)
    named += column.name.starts_with("column ") ? 1 : 0;
  CHECK(named == 100);
}

}  // namespace flugs::test
