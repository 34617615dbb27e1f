// Heap allocations of steady-state transactions: none. Counts by replacing operator new.
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <new>
#include <string>

#include "test/support/temporary_database.h"

namespace {

std::atomic<std::uint64_t> allocations{0};

void* count_and_allocate(std::size_t bytes, std::size_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  void* memory = nullptr;
  if (::posix_memalign(&memory, alignment < 16 ? 16 : alignment, bytes) != 0) std::abort();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return count_and_allocate(bytes, 16); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return count_and_allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return count_and_allocate(bytes, 16);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace flugs::test {
namespace {

struct Prepared {
  // Without the thread that keeps hints, because allocations of all threads are counted.
  MemoryDatabase database{std::size_t{64} << 20, test_index_place(), std::chrono::milliseconds(0)};
  TableId table;
  KeyId primary;
  KeyId by_group;
  std::uint64_t failures = 0;  // Catch's macros would allocate

  Prepared() {
    TableSchema schema("rows");
    schema.column("id", Type::kInt64).column("group", Type::kInt32).column("text", Type::kString);
    schema.column("amount", Type::kDouble).primary_key({"id"}).key("by_group", {"group"});
    table = must(database->create_table(schema));
    primary = {table, 0};
    by_group = {table, 1};
    Transaction t = must(database->begin(AccessMode::kReadWrite));
    for (int i = 0; i < 1000; ++i)
      must(t.insert(table, {Value::int64(i), Value::int32(i % 10),
                            Value::string("a longer text here"), Value::real(i)}));
    must(t.commit());
  }

  void read(std::int64_t id) {
    auto t = database->begin(AccessMode::kReadOnly);
    const auto row = t->get(primary, {Value::int64(id)});
    if (!row.ok() || row->get_unchecked<std::string_view>(ColumnId{2}).empty() ||
        row->get_unchecked<std::int32_t>(ColumnId{1}) != id % 10)
      ++failures;
    if (t->get(primary, {Value::int64(-1)}).ok()) ++failures;
    if (!t->get(table, row->id()).ok()) ++failures;
    if (!t->commit().ok()) ++failures;
  }
  void update(std::int64_t id, double amount) {
    auto t = database->begin(AccessMode::kReadWrite);
    const auto row = t->get(primary, {Value::int64(id)});
    if (!row.ok() || !t->update(table, row->id(), {{ColumnId{3}, Value::real(amount)}}).ok() ||
        !t->commit().ok())
      ++failures;
  }
};

}  // namespace

TEST_CASE("a point read allocates nothing", "[budget]") {
  Prepared prepared;
  prepared.read(1);
  const std::uint64_t before = allocations.load();
  for (int i = 0; i < 10000; ++i) prepared.read(i % 1000);
  CHECK(allocations.load() == before);
  CHECK(prepared.failures == 0);
}

TEST_CASE("a steady update allocates nothing", "[budget]") {
  Prepared prepared;
  for (int i = 0; i < 30000; ++i) prepared.update(i % 1000, i % 50);
  const std::uint64_t before = allocations.load();
  for (int i = 0; i < 20000; ++i) prepared.update(i % 1000, i % 50);
  const std::uint64_t during = allocations.load() - before;
  CHECK(prepared.failures == 0);
  CHECK(during == 0);
}

TEST_CASE("a conflict allocates nothing", "[budget]") {
  Prepared prepared;
  Transaction holder = must(prepared.database->begin(AccessMode::kReadWrite));
  const RowId row = must(holder.get(prepared.primary, {Value::int64(5)})).id();
  must(holder.update(prepared.table, row, {{ColumnId{3}, Value::real(1)}}));
  const auto meet = [&] {
    auto t = prepared.database->begin(AccessMode::kReadWrite);
    if (t->update(prepared.table, row, {{ColumnId{3}, Value::real(2)}}).code() !=
        StatusCode::kConflict)
      ++prepared.failures;
    t->abort();
  };
  for (int i = 0; i < 10; ++i) meet();
  const std::uint64_t before = allocations.load();
  for (int i = 0; i < 1000; ++i) meet();
  CHECK(allocations.load() == before);
  CHECK(prepared.failures == 0);
}

}  // namespace flugs::test
