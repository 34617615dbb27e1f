#include "engine/database/key_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/long_call.h"
#include "tables/table/key_build.h"

namespace flugs::engine {

namespace {

// Long enough for usual transactions.
constexpr std::chrono::milliseconds kReleasePatience{100};

Status no_key(const Table& table, std::size_t index) {
  return Status(StatusCode::kNotFound, SchemaPart::of(table.name()),
                fmt::format("no key {}", index));
}

// The schema with the key in that place.
StoredSchema with_key(StoredSchema next, std::size_t place, KeySchema key) {
  FLUGS_CHECK(place < kKeysMax);
  if (place >= next.schema.keys.size()) next.schema.keys.resize(place + 1);
  next.schema.keys[place] = std::move(key);
  return next;
}

}  // namespace

// The place of a dropped key, or a new place behind the last.
Result<std::size_t> KeyChanges::place_for_key(Table& table, const KeySchema& key) {
  table.keys().release_withdrawn(transactions_.slots().oldest_snapshot());
  const std::vector<KeySchema>& keys = table.schema().keys;
  bool is_one_left = false;
  for (std::size_t place = 0; place < kKeysMax; ++place) {
    if (place < keys.size() && !keys[place].dropped) continue;
    if (table.keys().is_free(place)) return place;
    is_one_left = true;
  }
  if (is_one_left)
    return Status(StatusCode::kBusy, SchemaPart::key(table.name(), key.name),
                  "a transaction is open that may use the key dropped from the same place");
  return Status(StatusCode::kInvalidArgument, SchemaPart::key(table.name(), key.name),
                fmt::format("{} keys, at most {}", kKeysMax, kKeysMax));
}

// From here on no thread makes indexes of the table, or reads rows that opening left.
Status KeyChanges::prepare(Table& table, const CallOptions& options) {
  if (Status s = table.index_build().build(DeferredIndexes::kAllIndexes); !s.ok()) return s;
  while (!options.stop.stop_requested() && table.row_sweep().sweep_more()) {
  }
  if (options.stop.stop_requested())
    return stopped_by_caller(fmt::format("table {}", table.name()));
  return table.row_sweep().sweep_all();
}

Result<std::size_t> KeyChanges::begin_key(Table& table, const KeySchema& wanted) {
  Result<std::size_t> place = place_for_key(table, wanted);
  if (!place.ok()) return place;
  Result<TableSchema> completed =
      complete_schema(with_key(table.table_columns().stored(), *place, wanted).schema);
  if (!completed.ok()) return std::move(completed).status();
  table.table_columns().begin_key(*place, completed->keys[*place]);
  return place;
}

// Columns of the key are found by position: they may have been renamed meanwhile.
Status KeyChanges::finish_key(Table& table, std::size_t place, const KeySchema& wanted,
                              StoredSchema next) {
  if (table.is_dropped()) return no_table();
  KeySchema key = wanted;
  const auto columns = table.keys()[place]->columns();
  FLUGS_CHECK(columns.size() == key.columns.size());
  for (std::size_t i = 0; i < key.columns.size(); ++i)
    key.columns[i] = table.schema().columns[columns[i]].name;
  return table.table_columns().finish_key(place, with_key(std::move(next), place, std::move(key)));
}

void KeyChanges::give_up_key(Table& table, std::size_t place, StatusCode why) {
  {
    const std::lock_guard guard(catalog_.ddl_mutex());
    withdraw_key(table, place);
  }
  if (why != StatusCode::kBusy) release_key(table);  // kBusy: still in use
}

Result<KeyId> KeyChanges::add_key(TableId id, const KeySchema& wanted, const CallOptions& options) {
  Table* altered = catalog_.table(id);
  if (altered == nullptr) return no_table();
  if (wanted.dropped)
    return Status(StatusCode::kInvalidArgument, SchemaPart::of(altered->name()),
                  "a dropped key cannot be added");
  const std::lock_guard no_merge(altered->merge_mutex());
  if (Status s = prepare(*altered, options); !s.ok()) return s;
  Result<std::size_t> place = no_table();
  {
    const std::lock_guard guard(catalog_.ddl_mutex());
    if (altered->is_dropped()) return no_table();
    place = begin_key(*altered, wanted);
    if (!place.ok()) return place.status();
  }
  Status made = make_key(*altered, *place, options);
  if (made.ok()) {
    const std::lock_guard guard(catalog_.ddl_mutex());
    made = finish_key(*altered, *place, wanted, altered->table_columns().stored());
  }
  if (!made.ok()) {
    give_up_key(*altered, *place, made.code());
    return made;
  }
  return KeyId{id, static_cast<std::uint16_t>(*place)};
}

// Writers have maintained the key since before this call. No transaction may be left that wrote
// rows before them, or that reads from before all rows are in.
Status KeyChanges::make_key(Table& table, std::size_t place, const CallOptions& options) {
  const auto given_up = [&] {
    return transactions_.waited_too_long(
        fmt::format("table {}, key {}", table.name(), table.keys()[place]->name()), options.stop);
  };
  FLUGS_CHECK(table.keys()[place] != nullptr && !table.keys().can_find(place));
  if (!transactions_.wait_for_all(options.stop)) return given_up();
  KeyBuild build(table.data(), table.index_build(), place);
  std::uint64_t snapshot = 0;
  {
    const Result<TransactionContext*> context =
        transactions_.begin(AccessMode::kReadOnly, Isolation::kSnapshot);
    if (!context.ok()) return context.status();
    snapshot = (*context)->visibility.snapshot();
    Status entered;
    {
      const Visit visiting(**context);
      entered = build.enter_rows((*context)->visibility, catalog_.is_closing(), options);
    }
    transactions_.abort(**context);
    if (!entered.ok()) return entered;
  }
  if (build.has_doubts() ? !transactions_.wait_for_all(options.stop)
                         : !transactions_.wait_for_snapshots(
                               snapshot, TransactionManager::kPatience, options.stop))
    return given_up();
  if (!build.has_doubts()) return {};
  const Result<TransactionContext*> context =
      transactions_.begin(AccessMode::kReadOnly, Isolation::kSnapshot);
  if (!context.ok()) return context.status();
  Status settled = build.settle_doubts((*context)->visibility);
  transactions_.abort(**context);
  return settled;
}

Status KeyChanges::drop_key(KeyId key) {
  Table* altered = catalog_.table(key.table);
  if (altered == nullptr) return no_table();
  const std::lock_guard no_merge(altered->merge_mutex());
  if (Status s = altered->index_build().build(DeferredIndexes::kAllIndexes); !s.ok()) return s;
  {
    const std::lock_guard guard(catalog_.ddl_mutex());
    if (altered->is_dropped()) return no_table();
    if (!altered->keys().can_find(key.index)) return no_key(*altered, key.index);
    if (Status s = check_droppable(*altered, key.index); !s.ok()) return s;
    KeySchema dropped;
    dropped.dropped = true;
    if (Status s = altered->table_columns().alter(
            with_key(altered->table_columns().stored(), key.index, std::move(dropped)));
        !s.ok())
      return s;
    withdraw_key(*altered, key.index);
  }
  release_key(*altered);
  return {};
}

Status KeyChanges::check_droppable(const Table& table, std::size_t index) {
  FLUGS_CHECK(index < table.schema().keys.size() && !table.schema().keys[index].dropped);
  const SchemaPart part = SchemaPart::key(table.name(), table.schema().keys[index].name);
  const auto refused = [&](std::string_view why) {
    return Status(StatusCode::kConstraintViolated, part, why);
  };
  if (index == 0 && table.schema().has_primary_key) return refused("is the primary key");
  for (const ForeignKey* foreign : table.references().foreign_keys())
    if (foreign->child_key == index)
      return refused(
          fmt::format("foreign key {} uses it to find its rows", foreign->schema().name));
  if (table.references().referrers() == nullptr) return {};
  for (const ForeignKey* foreign : *table.references().referrers())
    if (foreign->parent_key == index)
      return refused(fmt::format("foreign key {} of table {} refers to it", foreign->schema().name,
                                 foreign->child.name()));
  return {};
}

// Under catalog_.ddl_mutex().
void KeyChanges::withdraw_key(Table& table, std::size_t place) {
  if (table.keys().can_find(place)) table.runs().drop_key(place);
  table.keys().withdraw(place);
  FLUGS_CHECK(!table.keys().can_find(place) && !table.keys().is_free(place));
  table.keys().keep_until(place, transactions_.slots().advance());
}

// A key that a transaction may still use is not freed here, but when the next key of the table is
// added or dropped.
void KeyChanges::release_key(Table& table) {
  static_cast<void>(
      transactions_.wait_for_snapshots(transactions_.slots().advance(), kReleasePatience));
  table.index_build().wait();  // then no thread reads its hints (Table::check_hints)
  const std::lock_guard guard(catalog_.ddl_mutex());
  if (!table.is_gone()) table.keys().release_withdrawn(transactions_.slots().oldest_snapshot());
}

}  // namespace flugs::engine
