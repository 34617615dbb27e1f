// A key is begun during an update: after the update has read the keys and before it locks the row.
#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <utility>

#include "engine/database/transaction_access.h"
#include "tables/table/key_build.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

/// Does `work` once, at the next fence, in the middle of the thread's operation.
class AtNextFence final : public pmem::PersistObserver {
 public:
  AtNextFence(pmem::Medium& medium, std::function<void()> work)
      : medium_(medium), work_(std::move(work)) {
    medium_.set_observer(this);
  }
  ~AtNextFence() override { medium_.set_observer(nullptr); }
  bool is_done() const noexcept { return work_ == nullptr; }
  void on_flush(const void* /*address*/, std::size_t /*bytes*/, pmem::Label /*label*/) override {}
  void on_fence(pmem::Label /*label*/) override {
    if (const auto work = std::exchange(work_, nullptr)) work();
  }

 private:
  pmem::Medium& medium_;
  std::function<void()> work_;
};

constexpr ColumnId kNote{2};
constexpr ColumnId kText{3};

struct Notes {
  // No background thread flushes.
  MemoryDatabase database{std::size_t{32} << 20, test_index_place(), std::chrono::hours(1)};
  TableId id;
  KeySchema by_value;

  Notes() {
    TableSchema schema("t");
    schema.column("id", Type::kInt64).column("value", Type::kInt64);
    schema.column("note", Type::kInt64).column("text", Type::kString).primary_key({"id"});
    id = must(database->create_table(schema));
    by_value.name = "by_value";
    by_value.columns = {"value"};
    by_value.unique = true;
    by_value.hashed_columns = 1;
    Transaction t = begin();
    for (std::int64_t row = 0; row < 10; ++row)
      must(t.insert(id, {Value::int64(row), Value::int64(row + 100), Value::int64(row % 3),
                         Value::string(std::string_view(text('a' + static_cast<char>(row))))}));
    must(t.commit());
  }
  Transaction begin() { return must(database->begin(AccessMode::kReadWrite)); }
  /// So long that each new one is appended to the column's texts with a fence.
  static std::string text(char letter) { return std::string(3000, letter); }
  Status change(Transaction& t, std::int64_t row, ColumnId column, const Value& value) const {
    const RowId found = must(t.get({id, 0}, {Value::int64(row)})).id();
    return t.update(id, found, {{column, value}}).status();
  }
  /// Enters rows, as add_key does when no earlier transaction is open.
  void make_key() {
    engine::Table& table = *database->table(id);
    Transaction snapshot = begin();
    engine::KeyBuild build(table.data(), table.index_build(), 1);
    const std::atomic<bool> stops{false};
    must(build.enter_rows(engine::TransactionAccess::context(snapshot)->visibility, stops));
    snapshot.abort();
    Transaction now = begin();
    must(build.settle_doubts(engine::TransactionAccess::context(now)->visibility));
    now.abort();
    engine::StoredSchema next = table.table_columns().stored();
    next.schema.keys.push_back(by_value);
    must(table.table_columns().finish_key(1, std::move(next)));
  }
};

}  // namespace

// When the other update is undone, it enters the row into the key: the row existed before the
// transaction that updates it now, so that transaction must remove the entry.
TEST_CASE("an update removes its row from a key that was begun during it", "[engine]") {
  Notes notes;
  engine::Table& table = *notes.database->table(notes.id);
  const bool is_undone_by_savepoint = GENERATE(false, true);
  Transaction writer = notes.begin();
  must(notes.change(writer, 7, kNote, Value::int64(0)));  // has begun to write
  AtNextFence begin_key(notes.database->pool().medium(), [&] {
    table.table_columns().begin_key(1, notes.by_value);
    Transaction other = notes.begin();
    const Savepoint before = must(other.savepoint());
    must(notes.change(other, 1, kNote, Value::int64(0)));
    if (is_undone_by_savepoint) must(other.rollback_to(before));
    other.abort();
  });
  const std::string text = Notes::text('z');
  must(notes.change(writer, 1, kText, Value::string(text)));
  REQUIRE(begin_key.is_done());
  must(writer.commit());
  notes.make_key();
  columns::Candidates found;
  const Value wanted = Value::int64(101);
  CHECK(table.keys()[1]->entries().lookup(std::span(&wanted, 1), found));
  CHECK(found.view().size() == 1);
  must(notes.database->verify({}));
  // Rows are reused, also that of the first version.
  for (std::int64_t i = 0; i < 10'000; ++i) {
    Transaction t = notes.begin();
    must(notes.change(t, 1, kNote, Value::int64(i % 3)));
    must(t.commit());
    if (i > 2'000) must(notes.database->verify({}));
  }
}

}  // namespace flugs::test
