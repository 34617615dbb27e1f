#include "tables/table/table_references.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/shown.h"
#include "tables/catalog/schema_checks.h"
#include "tables/catalog/schema_codec.h"
#include "tables/table/table.h"
#include "tables/transactions/read_set.h"

namespace flugs::engine {

namespace {

using KeyValues = std::array<Value, kKeyColumnsMax>;

std::string words_of(const ForeignKey& foreign, std::span<const Value> values) {
  std::string words;
  for (std::size_t i = 0; i < values.size(); ++i)
    words +=
        fmt::format("{}{} = {}", i == 0 ? "" : ", ", foreign.schema().columns[i], shown(values[i]));
  return words;
}

Status no_parent(const ForeignKey& foreign, std::span<const Value> values) {
  return Status(StatusCode::kConstraintViolated, part_of(foreign),
                fmt::format("{} is not in table {}, key {}", words_of(foreign, values),
                            foreign.parent.name(), foreign.schema().key));
}

}  // namespace

SchemaPart part_of(const ForeignKey& foreign) {
  return SchemaPart::foreign_key(foreign.child.name(), foreign.schema().name);
}

Status in_between(const ForeignKey& foreign) {
  return Status(StatusCode::kConflict, part_of(foreign),
                "the foreign key is being created or dropped");
}

// ------------------------------------------------------------------------- links between tables

void TableReferences::add(std::size_t index, Table& parent) {
  FLUGS_CHECK(index < table_.schema().foreign_keys.size());
  const ForeignKeySchema& foreign = table_.schema().foreign_keys[index];
  const std::size_t child_key = key_for(table_.schema(), foreign.columns);
  FLUGS_CHECK(child_key < table_.schema().keys.size());  // complete_foreign_keys has seen to it
  const auto leading = table_.data().keys[child_key]->columns().first(foreign.columns.size());
  std::vector<std::uint16_t> columns(leading.begin(), leading.end());
  add(std::make_unique<ForeignKey>(table_, parent, std::move(columns), child_key, foreign, false));
}

ForeignKey& TableReferences::begin(const ForeignKeySchema& schema,
                                   std::vector<std::uint16_t> columns, std::size_t child_key,
                                   Table& parent) {
  FLUGS_CHECK(table_.data().keys[child_key] != nullptr);
  return add(
      std::make_unique<ForeignKey>(table_, parent, std::move(columns), child_key, schema, true));
}

ForeignKey& TableReferences::add(std::unique_ptr<ForeignKey> foreign) {
  ForeignKey& added = *foreign;
  owned_.push_back(std::move(foreign));
  std::vector<ForeignKey*> foreign_keys(this->foreign_keys().begin(), this->foreign_keys().end());
  foreign_keys.push_back(&added);
  set_foreign_keys(std::move(foreign_keys));
  std::vector<const ForeignKey*> referrers;
  if (const auto* known = added.parent.references().referrers(); known != nullptr)
    referrers = *known;
  referrers.push_back(&added);
  added.parent.references().set_referrers(std::move(referrers));
  return added;
}

void TableReferences::remove(const ForeignKey& foreign) {
  FLUGS_CHECK(&foreign.child == &table_);
  std::vector<ForeignKey*> foreign_keys(this->foreign_keys().begin(), this->foreign_keys().end());
  FLUGS_CHECK(std::erase(foreign_keys, &foreign) == 1);
  set_foreign_keys(std::move(foreign_keys));
  FLUGS_CHECK(foreign.parent.references().referrers() != nullptr);
  std::vector<const ForeignKey*> referrers = *foreign.parent.references().referrers();
  std::erase(referrers, &foreign);
  foreign.parent.references().set_referrers(std::move(referrers));
}

const ForeignKey* TableReferences::with_name(std::string_view name) const noexcept {
  for (const ForeignKey* foreign : foreign_keys())
    if (!foreign->is_pending() && foreign->schema().name == name) return foreign;
  return nullptr;
}

Status TableReferences::link(std::size_t index, FunctionRef<Table*(TableId id)> find) {
  const ForeignKeySchema& foreign = table_.schema().foreign_keys[index];
  Table* parent = find(foreign.referenced.table);
  if (parent == nullptr)
    return Status(
        StatusCode::kCorrupt,
        fmt::format("{}: table {}, foreign key {}: refers to table id {}, which does not exist",
                    table_.data().pool.path(), table_.name(), foreign.name,
                    foreign.referenced.table.value()));
  if (Status s = check_reference(table_.schema(), foreign, parent->schema()); !s.ok())
    return Status(StatusCode::kCorrupt,
                  fmt::format("{}: {}", table_.data().pool.path(), s.message()));
  add(index, *parent);
  return {};
}

void TableReferences::forget_parents() {
  for (const ForeignKey* foreign : foreign_keys()) {
    FLUGS_CHECK(foreign->parent.references().referrers() != nullptr);
    std::vector<const ForeignKey*> left;
    for (const ForeignKey* other : *foreign->parent.references().referrers())
      if (&other->child != &table_) left.push_back(other);
    foreign->parent.references().set_referrers(std::move(left));
  }
}

// Replaced lists may still be read, and stay; one is made whenever a foreign key comes or goes.
void TableReferences::set_foreign_keys(std::vector<ForeignKey*> foreign_keys) {
  const bool is_any = !foreign_keys.empty();
  lists_.push_back(std::make_unique<const std::vector<ForeignKey*>>(std::move(foreign_keys)));
  foreign_keys_.store(lists_.back().get(), std::memory_order_release);
  if (is_any) {
    table_.data().constraints.add(RowConstraints::kReferring);
  } else {
    table_.data().constraints.remove(RowConstraints::kReferring);
  }
}

void TableReferences::set_referrers(std::vector<const ForeignKey*> referrers) {
  const bool is_any = !referrers.empty();
  referrer_lists_.push_back(
      std::make_unique<const std::vector<const ForeignKey*>>(std::move(referrers)));
  referrers_.store(referrer_lists_.back().get(), std::memory_order_release);
  if (is_any) {
    table_.data().constraints.add(RowConstraints::kReferenced);
  } else {
    table_.data().constraints.remove(RowConstraints::kReferenced);
  }
}

// Whether the row was made from a row of another transaction with the same reference: a transaction
// that deletes the parent must have checked that row.
bool TableReferences::keeps_reference(const ForeignKey& foreign, std::uint32_t row,
                                      const mvcc::Visibility& visibility) const noexcept {
  const std::uint32_t before = table_.data().rows.previous(row);
  if (before == kNoRow ||
      mvcc::load_stamp(table_.data().rows.version(before).created) == visibility.own_tag())
    return false;
  const RowView now = table_.data().rows.view(row);
  const RowView then = table_.data().rows.view(before);
  return std::all_of(foreign.columns.begin(), foreign.columns.end(), [&](std::uint16_t column) {
    return now.value(*table_.data().columns[column], column) ==
           then.value(*table_.data().columns[column], column);
  });
}

void TableReferences::take_names_over() {
  for (ForeignKey* foreign : foreign_keys()) {
    ForeignKeySchema now = foreign->schema();
    for (std::size_t i = 0; i < now.columns.size(); ++i)
      now.columns[i] = table_.schema().columns[foreign->columns[i]].name;
    now.table = foreign->parent.name();
    now.key = foreign->parent.schema().keys[foreign->parent_key].name;
    const ForeignKeySchema& known = foreign->schema();
    if (now.columns != known.columns || now.table != known.table || now.key != known.key)
      foreign->rename(std::move(now));
  }
}

void TableReferences::name_parents() {
  if (foreign_keys().empty()) return;
  take_names_over();
  StoredSchema named = table_.data().definition().stored;
  bool is_other = false;
  for (ForeignKeySchema& schema : named.schema.foreign_keys) {
    const ForeignKey* foreign = with_name(schema.name);
    if (foreign == nullptr) continue;  // an audit goes on without a damaged one
    const ForeignKeySchema& now = foreign->schema();
    is_other |= schema.table != now.table || schema.key != now.key;
    schema.table = now.table;
    schema.key = now.key;
  }
  if (is_other) table_.data().define(std::move(named));
}

// ------------------------------------------------------------------------------------- asking

Result<bool> TableReferences::check_parents(std::uint32_t row, const mvcc::Visibility& visibility,
                                            ReadSet* reads) const {
  if (!visibility.sees(table_.data().rows.version(row))) return false;
  bool is_referring = false;
  KeyValues room;
  std::vector<std::uint32_t> found;
  for (const ForeignKey* foreign : foreign_keys()) {
    const std::span<Value> values(room.data(), foreign->columns.size());
    if (!table_.reader().values_of(row, foreign->columns, values)) continue;
    if (keeps_reference(*foreign, row, visibility)) continue;
    is_referring = true;
    if (Status s =
            foreign->parent.reader().collect(foreign->parent_key, values, visibility, 1, found);
        !s.ok())
      return s;
    if (!found.empty()) continue;
    if (reads != nullptr) reads->add_lookup(foreign->parent, foreign->parent_key, values);
    return no_parent(*foreign, values);
  }
  return is_referring;
}

Status TableReferences::check_parent(const ForeignKey& foreign, std::uint32_t row,
                                     const mvcc::Visibility& visibility) const {
  KeyValues room;
  const std::span<Value> values(room.data(), foreign.columns.size());
  if (!table_.reader().values_of(row, foreign.columns, values)) return {};
  std::vector<std::uint32_t> found;
  if (Status s = foreign.parent.reader().collect(foreign.parent_key, values, visibility, 1, found);
      !s.ok())
    return s;
  return found.empty() ? no_parent(foreign, values) : Status();
}

// For a row that the transaction has deleted or replaced.
Result<bool> TableReferences::check_children(std::uint32_t row, const mvcc::Visibility& visibility,
                                             ReadSet* reads) const {
  bool is_referenced = false;
  KeyValues room;
  std::vector<std::uint32_t> found;
  for (const ForeignKey* foreign : *referrers()) {
    FLUGS_DCHECK(&foreign->parent == &table_);
    const std::span<const std::uint16_t> columns =
        table_.data().keys[foreign->parent_key]->columns();
    const std::span<Value> values(room.data(), columns.size());
    if (!table_.reader().values_of(row, columns, values)) continue;
    if (Status s = table_.reader().collect(foreign->parent_key, values, visibility, 1, found);
        !s.ok())
      return s;
    if (!found.empty()) continue;
    if (foreign->child.is_dropped()) return in_between(*foreign);
    is_referenced = true;
    if (Status s =
            foreign->child.reader().collect(foreign->child_key, values, visibility, 1, found);
        !s.ok())
      return s;
    if (found.empty()) continue;
    if (reads != nullptr) reads->add_lookup(foreign->child, foreign->child_key, values);
    return Status(StatusCode::kConstraintViolated, part_of(*foreign),
                  fmt::format("rows with {} refer to table {}, key {}", words_of(*foreign, values),
                              table_.name(), foreign->schema().key));
  }
  return is_referenced;
}

Result<bool> TableReferences::check(const mvcc::Write& write, const mvcc::Visibility& visibility,
                                    ReadSet* reads) const {
  if (!write.deletes)
    return foreign_keys().empty() ? false : check_parents(write.row, visibility, reads);
  return referrers() == nullptr ? false : check_children(write.row, visibility, reads);
}

// ---------------------------------------------------------------------------------------- audits

Status TableReferences::check_column_unused(const StoredSchema& stored, std::size_t column) const {
  FLUGS_CHECK(column < stored.schema.columns.size());
  const std::string& name = stored.schema.columns[column].name;
  const auto used_by = [&](const std::string& what) {
    return Status(StatusCode::kConstraintViolated, SchemaPart::column(table_.name(), name), what);
  };
  for (const ForeignKeySchema& foreign : stored.schema.foreign_keys)
    if (names(foreign.columns, name))
      return used_by(fmt::format("foreign key {} uses it", foreign.name));
  if (referrers() != nullptr)
    for (const ForeignKey* foreign : *referrers())
      if (names(stored.schema.keys[foreign->parent_key].columns, name))
        return used_by(fmt::format("foreign key {} of table {} refers to it",
                                   foreign->schema().name, foreign->child.name()));
  return {};
}

Status TableReferences::verify(const mvcc::Visibility& visibility) const {
  if (foreign_keys().empty()) return {};
  const std::uint32_t end = table_.data().rows.rows_end();
  KeyValues room;
  std::vector<std::uint32_t> found;
  for (std::uint32_t row = 0; row < end; ++row) {
    if (!visibility.sees(table_.data().rows.version(row))) continue;
    for (const ForeignKey* foreign : foreign_keys()) {
      if (foreign->is_pending()) continue;
      const std::span<Value> values(room.data(), foreign->columns.size());
      if (!table_.reader().values_of(row, foreign->columns, values)) continue;
      if (Status s =
              foreign->parent.reader().collect(foreign->parent_key, values, visibility, 1, found);
          !s.ok())
        return s;
      if (found.empty()) return unreferenced(*foreign, row);
    }
  }
  return {};
}

Status TableReferences::unreferenced(const ForeignKey& foreign, std::uint32_t row) const {
  KeyValues room;
  const std::span<Value> values(room.data(), foreign.columns.size());
  table_.reader().values_of(row, foreign.columns, values);
  return Status(
      StatusCode::kCorrupt,
      fmt::format("{}: {}: row {}: {} is not in table {}, key {}", table_.data().pool.path(),
                  to_string(part_of(foreign)), row, words_of(foreign, values),
                  foreign.parent.name(), foreign.schema().key));
}

}  // namespace flugs::engine
