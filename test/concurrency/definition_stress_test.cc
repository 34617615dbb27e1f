// Every kind of write runs beside columns and keys that are added, dropped and changed. Each
// statement uses one definition of its table. At the end, and in every snapshot, each row has in
// each column a written value or the default, and no statement fails because of a column that it
// did not name.
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "flugs/merge.h"
#include "test/support/complaint.h"
#include "test/support/random.h"
#include "test/support/temporary_database.h"

namespace flugs::test {
namespace {

constexpr std::int64_t kThings = 200;
constexpr std::int64_t kThingPlaces = 6;
constexpr std::size_t kThingColumns = 5;
constexpr ColumnId kThingNumber{0};
constexpr ColumnId kDoubled{1};
constexpr ColumnId kThingLabel{2};
constexpr ColumnId kThingPlace{3};
constexpr ColumnId kThingSerial{4};
constexpr std::size_t kThingColumnsMax = 900;

/// Rows with a number, its double, a text, a referenced place, and a serial number; then columns
/// that are added and dropped, of four kinds by their number. In such a column a row has the
/// default, or a written value: `written(i)`.
class AlteredWorld {
 public:
  AlteredWorld() {
    TableSchema places("places");
    places.column("id", Type::kInt64).column("visits", Type::kInt64).not_null();
    places.primary_key({"id"});
    place = must(database->create_table(places));
    TableSchema things("things");
    things.column("number", Type::kInt64).column("twice", Type::kInt32).not_null();
    things.column("label", Type::kString).not_null().with_default(Constant(Value::string("none")));
    things.column("place", Type::kInt64).column("serial", Type::kInt64).not_null().auto_increment();
    things.primary_key({"number"}).key("by_place", {"place"});
    things.check("doubled", Condition::compare("twice", Condition::Kind::kGreaterEqual,
                                               Constant(Value::int32(0))));
    things.foreign_key("at", {"place"}, "places", ReferenceAction::kSetNull,
                       ReferenceAction::kCascade);
    thing = must(database->create_table(things));
    Transaction t = must(database->begin());
    for (std::int64_t id = 0; id < kThingPlaces; ++id)
      must(t.insert(place, {Value::int64(id), Value::int64(0)}));
    for (std::int64_t n = 0; n < kThings; ++n) must(t.insert(thing, named(n, 0)));
    must(t.commit());
  }

  // ------------------------------------------------------------------------------ what rows have

  static Value twice(std::int64_t n) { return Value::int32(static_cast<std::int32_t>(2 * n)); }
  static bool is_text(std::size_t column) { return column % 4 == 1; }
  static bool is_nullable(std::size_t column) { return column % 4 == 2; }
  static std::string text_of(std::size_t column, bool is_default) {
    return fmt::format("{}{}{}", std::string(column % 8 == 1 ? 40 : 3, 't'), column,
                       is_default ? "" : " written");
  }
  static std::int64_t number_of(std::size_t column, bool is_default) {
    const auto number = static_cast<std::int64_t>(column);
    if (column % 4 != 3) return is_default ? -number : number + 1000;
    return (std::int64_t{1} << 40) + (is_default ? 0 : number);
  }
  /// The value written to the column, in the column's first type.
  Value written(std::size_t column) const {
    if (is_text(column)) return Value::string(texts_[column]);
    const std::int64_t number = number_of(column, false);
    return column % 4 == 3 ? Value::int64(number) : Value::int32(static_cast<std::int32_t>(number));
  }
  bool is_right(std::size_t column, const Value& value) const {
    if (column < kThingColumns) return column != kThingLabel.value() || !value.is_null();
    if (value.is_null()) return is_nullable(column) || dropped[column].load();
    if (is_text(column))
      return value.as_string() == text_of(column, true) || value.as_string() == texts_[column];
    return value.raw() == number_of(column, false) ||
           (!is_nullable(column) && value.raw() == number_of(column, true));
  }

  // ------------------------------------------------------------------------------------- writing

  static std::vector<ColumnValue> named(std::int64_t n, std::int64_t at) {
    return {{kThingPlace, Value::int64(at)}, {kThingNumber, Value::int64(n)}, {kDoubled, twice(n)}};
  }
  static std::vector<Value> row(std::int64_t n, std::int64_t at) {
    return {Value::int64(n), twice(n), Value::string("row"), Value::int64(at), Value::null()};
  }

  static std::string_view label_of(std::int64_t n) {
    static constexpr std::array<std::string_view, 3> kLabels{
        "short", "a label that does not stand in the row itself", "a label"};
    return kLabels[static_cast<std::size_t>(n) % kLabels.size()];
  }

  /// The write names only the first columns, unless it sets `names_added`.
  Status write(Transaction& t, std::int64_t n, Random& random, bool& names_added) {
    const auto at = static_cast<std::int64_t>(random.below(kThingPlaces));
    const Result<Row> found = t.get({thing, 0}, {Value::int64(n)});
    if (!found.ok())
      return found.code() == StatusCode::kNotFound ? insert(t, random, n, at, names_added)
                                                   : found.status();
    const std::size_t last = column_count.load(std::memory_order_acquire) - 1;
    const ColumnId added(static_cast<std::uint16_t>(last));
    switch (random.below(9)) {
      case 0:
      case 1:
        if (Status s = t.remove(thing, found->id()); !s.ok()) return s;
        return random.chance(20) ? Status() : insert(t, random, n, at, names_added);
      case 2:
        return t
            .update(thing, found->id(),
                    {{kThingLabel, Value::string(std::string_view(label_of(n)))}})
            .status();
      case 3:
        return t.update(thing, found->id(), {{kThingPlace, Value::int64(at)}}).status();
      case 4:
        return t.upsert({thing, 0}, row(n, at)).status();
      case 5:
        return t
            .compare_and_set({thing, 0}, {Value::int64(n)}, {{kDoubled, twice(n)}},
                             {{kDoubled, twice(n)}, {kThingLabel, Value::string("set")}})
            .status();
      case 6:
        return visit_place(t, at, random);
      default:
        if (last < kThingColumns) return {};
        names_added = true;
        return t.update(thing, found->id(), {{added, written(last)}}).status();
    }
  }

  Status insert(Transaction& t, Random& random, std::int64_t n, std::int64_t at,
                bool& names_added) {
    const std::size_t last = column_count.load(std::memory_order_acquire) - 1;
    std::vector<ColumnValue> some = named(n, at);
    std::vector<Value> all = row(n, at);
    std::array<RowId, 1> id{};
    switch (random.below(5)) {
      case 0:
        return t.insert(thing, all).status();
      case 1:
        return t.insert_rows(thing, all, id);
      case 2:
        return t.insert_if_absent({thing, 0}, all).status();
      case 3:
        names_added = last >= kThingColumns;
        if (names_added)
          some.push_back({ColumnId(static_cast<std::uint16_t>(last)), written(last)});
        return t.insert(thing, some).status();
      default:
        return t.insert(thing, some).status();
    }
  }

  /// Rows that refer to the place are deleted with it, or refer to none.
  Status visit_place(Transaction& t, std::int64_t at, Random& random) {
    if (Status s = t.add({place, 0}, {Value::int64(at)}, ColumnId(1), Value::int64(1)).status();
        !s.ok() || random.chance(80))
      return s;
    const Result<Row> there = t.get({place, 0}, {Value::int64(at)});
    if (!there.ok()) return there.status();
    if (random.chance(50)) {
      if (Status s = t.remove(place, there->id()); !s.ok()) return s;
      return t.insert(place, {Value::int64(at), Value::int64(0)}).status();
    }
    const Result<RowId> moved =
        t.update(place, there->id(), {{ColumnId(0), Value::int64(at + kThingPlaces)}});
    if (!moved.ok()) return moved.status();
    return t.update(place, *moved, {{ColumnId(0), Value::int64(at)}}).status();
  }

  /// Allowed errors for a named column that was dropped or got another type meanwhile.
  static bool is_of_added(const Status& s) {
    return s.message().ends_with("dropped") ||
           s.message().find("expected bytes, found string") != std::string_view::npos;
  }

  void transact(Random& random, Complaint& complaint) {
    Result<Transaction> t =
        database->begin(AccessMode::kReadWrite, static_cast<Isolation>(random.below(3)));
    if (!complaint.expect(t.ok(), "begin: " + t.status().to_string())) return;
    const auto drawn = [&] { return static_cast<std::int64_t>(random.below(kThings)); };
    const std::int64_t favourite = drawn();  // written more than once
    for (std::uint64_t left = 1 + random.below(5); left != 0; --left) {
      const Result<Savepoint> before = t->savepoint();
      bool names_added = false;
      Status s = write(*t, random.chance(60) ? favourite : drawn(), random, names_added);
      steps.fetch_add(1, std::memory_order_relaxed);
      const bool is_known = s.ok() || s.code() == StatusCode::kConflict ||
                            s.code() == StatusCode::kNotFound ||  // read committed
                            (names_added && is_of_added(s)) ||
                            (s.code() == StatusCode::kConstraintViolated &&
                             s.message().find("foreign key at") != std::string_view::npos) ||
                            (s.code() == StatusCode::kAlreadyExists &&
                             s.message().find("key primary") != std::string_view::npos);
      if (!complaint.expect(is_known, "write: " + s.to_string())) return;
      if (s.code() == StatusCode::kConflict) return;
      if (!s.ok() || random.chance(30)) s = t->rollback_to(*before);
      complaint.expect(s.ok(), "rollback_to: " + s.to_string());
    }
    if (random.chance(25)) return;
    const Status s = t->commit();
    complaint.expect(s.ok() || s.code() == StatusCode::kConflict, "commit: " + s.to_string());
  }

  // ------------------------------------------------------------------------------------ altering

  ColumnSchema schema_of(std::size_t column) const {
    ColumnSchema schema;
    schema.name = fmt::format("c{}", column);
    schema.type = is_text(column) ? Type::kString : column % 4 == 3 ? Type::kInt64 : Type::kInt32;
    schema.nullable = is_nullable(column);
    schema.encoding = column % 3 == 0 ? Encoding::kDictionary : Encoding::kDirect;
    if (is_text(column))
      schema.default_value = Constant(Value::string(std::string_view(text_of(column, true))));
    else if (column % 4 == 3)
      schema.default_value = Constant(Value::int64(number_of(column, true)));
    else if (!is_nullable(column))
      schema.default_value =
          Constant(Value::int32(static_cast<std::int32_t>(number_of(column, true))));
    return schema;
  }

  void alter(Complaint& complaint, Random& random) {
    const auto expect = [&](const Status& s, const char* what) {
      complaint.expect(s.ok(), fmt::format("{}: {}", what, s.to_string()));
    };
    const std::size_t column = column_count.load();
    texts_[column] = text_of(column, false);
    expect(database->add_column(thing, schema_of(column)).status(), "add_column");
    column_count.store(column + 1, std::memory_order_release);
    const ColumnId younger(static_cast<std::uint16_t>(column - 1));
    if (column > kThingColumns + 2 && column % 4 != 0 && !dropped[column - 1])
      expect(
          database->change_type(thing, younger, is_text(column - 1) ? Type::kBytes : Type::kInt64),
          "change_type");
    if (column % 3 == 0)
      expect(database->rename_column(thing, kDoubled, fmt::format("twice{}", column)), "rename");
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(1500)));
    const std::size_t old = column - 2;
    if (old < kThingColumns) return;
    dropped[old].store(true);
    const Status gone = database->drop_column(thing, ColumnId(static_cast<std::uint16_t>(old)));
    const bool is_in_key = gone.code() == StatusCode::kConstraintViolated;
    complaint.expect(gone.ok() || is_in_key, "drop_column: " + gone.to_string());
    if (column != kThingColumns + 10) return;
    dropped[kThingSerial.value()].store(true);
    expect(database->drop_column(thing, kThingSerial), "drop_column");
  }

  void change_keys(Complaint& complaint, Random& random) {
    const std::vector<ColumnSchema> columns = schema().columns;
    KeySchema key;
    key.name = fmt::format("k{}", columns.size());
    key.columns = {columns[random.chance(50) ? kDoubled.value() : kThingNumber.value()].name};
    const ColumnSchema& other = columns[random.below(columns.size())];
    const bool stays = other.name != "serial";  // no key may prevent this one from being dropped
    if (random.chance(60) && !other.dropped && stays && other.name != key.columns[0])
      key.columns.insert(key.columns.begin(), other.name);
    key.unique = random.chance(80);
    key.ordered = random.chance(50);
    const Result<KeyId> added = database->add_key(thing, key);
    // A column may have been renamed or dropped meanwhile.
    const bool may_fail =
        added.code() == StatusCode::kBusy || added.code() == StatusCode::kInvalidArgument;
    if (!complaint.expect(added.ok() || may_fail, "add_key: " + added.status().to_string())) return;
    if (!added.ok()) return;
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(2000)));
    const Status gone = database->drop_key(*added);
    complaint.expect(gone.ok(), "drop_key: " + gone.to_string());
  }

  TableSchema schema() {
    Result<TableSchema> found = database->schema(thing);
    return found.ok() ? *std::move(found) : TableSchema();
  }

  // ------------------------------------------------------------------------------------- reading

  void check(Complaint& complaint) {
    const Result<Transaction> t = database->begin(AccessMode::kReadOnly);
    if (!t.ok()) return;
    std::vector<Value> values(column_count.load(std::memory_order_acquire));
    for (std::int64_t n = 0; n < kThings; ++n) {
      const Result<Row> found = t->get({thing, 0}, {Value::int64(n)});
      if (!found.ok()) continue;
      found->get_all(values);
      complaint.expect(values[1] == Value::int64(2 * n) || values[1] == twice(n),
                       fmt::format("{}: twice is {}", n, values[1].to_string()));
      complaint.expect(!values[4].is_null() || dropped[4], fmt::format("{}: no serial", n));
      for (std::size_t i = 0; i < values.size(); ++i)
        complaint.expect(is_right(i, values[i]),
                         fmt::format("row {}: column {} is {}", n, i, values[i].to_string()));
    }
  }

  TemporaryDatabase database{
      [](OpenOptions& options) { options.max_bytes = std::uint64_t{1} << 30; }};
  TableId place;
  TableId thing;
  std::atomic<std::size_t> column_count{kThingColumns};
  std::array<std::atomic<bool>, kThingColumnsMax> dropped{};
  std::atomic<std::uint64_t> steps{0};

 private:
  std::vector<std::string> texts_ = std::vector<std::string>(kThingColumnsMax);
};

void merge_again(AlteredWorld& world, Complaint& complaint) {
  MergeOptions everything;
  everything.scope = MergeScope::kEverything;
  const auto merged = world.database->merge(world.thing, everything);
  complaint.expect(merged.ok() || merged.code() == StatusCode::kBusy,
                   "merge: " + merged.status().to_string());
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

/// One life of the database: writers, a reader, merges, and keys, while columns are altered.
void live(AlteredWorld& world, std::uint64_t seed, int alterations, Complaint& complaint) {
  std::atomic<bool> stops{false};
  std::vector<std::thread> threads;
  const auto repeat = [&](auto&& work) {
    threads.emplace_back([&, work, number = threads.size()] {
      Random random(seed * 16 + number);
      while (!stops && !complaint.failed()) work(random);
    });
  };
  for (int writer = 0; writer < 3; ++writer)
    repeat([&](Random& random) { world.transact(random, complaint); });
  repeat([&](Random&) { world.check(complaint); });
  repeat([&](Random&) { merge_again(world, complaint); });
  repeat([&](Random& random) { world.change_keys(complaint, random); });
  Random random(seed);
  for (int i = 0; i < alterations && !complaint.failed(); ++i) world.alter(complaint, random);
  stops = true;
  for (std::thread& thread : threads) thread.join();
  INFO("seed " << seed << ": " << complaint.what());
  REQUIRE_FALSE(complaint.failed());
  must(world.database->check());
  world.database.reopen();
  must(world.database->check());
  world.check(complaint);
  INFO(complaint.what());
  REQUIRE_FALSE(complaint.failed());
}

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* given = std::getenv(variable);
  return given == nullptr ? otherwise : std::strtoull(given, nullptr, 10);
}

}  // namespace

// Runs for any time: FLUGS_OPERATIONS is the number of writes, FLUGS_SEED the first seed.
TEST_CASE("each statement uses one definition of its table", "[concurrency]") {
  const std::uint64_t wanted = number_from("FLUGS_OPERATIONS", 1);
  const int openings = wanted == 1 ? 3 : 8;
  const int alterations = wanted == 1 ? 3 * kEffort : 80;
  std::uint64_t seed = number_from("FLUGS_SEED", 1);
  Complaint complaint;
  for (std::uint64_t steps = 0; steps < wanted;) {
    AlteredWorld world;
    for (int i = 0; i < openings; ++i) live(world, seed++, alterations, complaint);
    steps += world.steps;
    if (wanted != 1) WARN(steps << " writes, next FLUGS_SEED=" << seed);
  }
}

}  // namespace flugs::test
