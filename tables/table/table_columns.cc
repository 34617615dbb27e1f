#include "tables/table/table_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/types.h"
#include "tables/catalog/added_column.h"
#include "tables/catalog/schema_checks.h"
#include "tables/catalog/schema_codec.h"
#include "tables/data/table_data.h"
#include "tables/data/table_layout.h"
#include "tables/table/table_references.h"

namespace flugs::engine {

namespace {

bool has_changed(const std::vector<ChangedColumnLayout>& changes, std::size_t column) {
  return std::any_of(changes.begin(), changes.end(),
                     [&](const ChangedColumnLayout& changed) { return changed.column == column; });
}

bool uses(const CheckSchema& check, const std::string& column) {
  const auto& nodes = check.condition.nodes();
  return std::any_of(nodes.begin(), nodes.end(), [&](const Condition::Node& node) {
    return node.column == column || node.other == column;
  });
}

// Names what needs the column, like "key k"; empty: nothing does.
std::string user_of(const TableSchema& schema, const PendingConstraint& pending,
                    const std::string& column) {
  for (const KeySchema& key : schema.keys)
    if (names(key.columns, column)) return fmt::format("key {}", key.name);
  for (const ForeignKeySchema& foreign : schema.foreign_keys)
    if (names(foreign.columns, column)) return fmt::format("foreign key {}", foreign.name);
  for (const CheckSchema& check : schema.checks)
    if (uses(check, column)) return fmt::format("check {}", check.name);
  if (pending.check.has_value() && uses(*pending.check, column))
    return fmt::format("check {}", pending.check->name);
  return {};
}

}  // namespace

TableColumns::TableColumns(TableData& data, TableReferences& references,
                           std::vector<ChangedColumnLayout> changed)
    : data_(data), references_(references), changed_(std::move(changed)) {}

// Makes the columns that the schema names, when the table is created or opened.
void TableColumns::make() {
  FLUGS_CHECK(data_.columns.size() == 0);
  const StoredSchema& stored = data_.definition().stored;
  auto* created = reinterpret_cast<columns::ColumnLayout*>(&data_.layout + 1);
  std::uint8_t altered = stored.added_columns.empty() ? 0 : RowConstraints::kAltered;
  for (std::size_t i = 0; i < stored.schema.columns.size(); ++i) {
    const ColumnSchema& column = stored.schema.columns[i];
    const std::string called = column.dropped ? std::to_string(i) : column.name;
    auto* decoder = new (&data_.decoders.begin(i)) columns::Decoder;
    std::unique_ptr<columns::Decoder> owned;
    if (has_changed(changed_, i)) {
      owned = std::make_unique<columns::Decoder>();
      decoder = owned.get();
    }
    auto made =
        i < data_.layout.column_count
            ? std::make_unique<columns::Column>(data_.pool, created[i], hints_of(data_.layout, i),
                                                *decoder, called, data_.name())
            : make_added(stored.added_columns[i - data_.layout.column_count], called, *decoder);
    made->own_decoder(std::move(owned));
    data_.columns.add(std::move(made));
  }
  make_editions();
  for (std::size_t i = 0; i < stored.schema.columns.size(); ++i) {
    if (!stored.schema.columns[i].dropped) continue;
    data_.columns.set_dropped(i);
    data_.decoders[i].kind.store(columns::DecodeKind::kDropped, std::memory_order_relaxed);
    data_.dropped_columns = true;
    altered = RowConstraints::kAltered;
  }
  data_.constraints.add(altered);
  make_numbers();
}

void TableColumns::make_numbers() {
  for (std::size_t i = 0; i < data_.columns.size(); ++i) {
    if (!data_.schema().columns[i].auto_increment) continue;
    auto* created = reinterpret_cast<columns::ColumnLayout*>(&data_.layout + 1);
    numbered_ = i;
    numbers_ = std::make_unique<AutoIncrement>(
        data_.pool, created[i].last_taken, data_.columns[i]->type(),
        fmt::format("table {}, column {}", data_.name(), data_.columns[i]->name()));
    data_.constraints.add(RowConstraints::kNumbered);
  }
}

// The extents of added columns, and of later editions, which check_layout has checked.
std::vector<pmem::Extent> TableColumns::added_extents() const {
  std::vector<std::uint64_t> layouts = data_.definition().stored.added_columns;
  for (const ChangedColumnLayout& changed : changed_) layouts.push_back(changed.layout);
  std::vector<pmem::Extent> extents;
  extents.reserve(layouts.size());
  for (const std::uint64_t layout : layouts)
    extents.push_back(
        extent_of(data_.pool, *data_.pool.at(pmem::OffsetPtr<AddedColumnLayout>{layout})));
  return extents;
}

std::uint64_t TableColumns::description_bytes() const {
  std::uint64_t bytes = data_.layout.bytes + schema_block_of(data_.pool, data_.layout).bytes;
  for (const pmem::Extent& extent : added_extents()) bytes += extent.bytes;
  return bytes;
}

// Called at opening.
Status TableColumns::claim_added() {
  for (const pmem::Extent& extent : added_extents()) {
    const auto& added = *data_.pool.at(pmem::OffsetPtr<AddedColumnLayout>{extent.offset});
    const std::string owner = fmt::format("table {}, column {}", data_.name(), added.column);
    if (Status s = data_.pool.allocator().claim(extent, owner); !s.ok()) return s;
    data_.pool.rely_on(data_.pool.base() + extent.offset, extent.bytes);
  }
  return {};
}

bool TableColumns::has_later_layouts() const noexcept {
  return !data_.definition().stored.added_columns.empty() || !changed_.empty();
}

void TableColumns::release_added() {
  for (const pmem::Extent& extent : added_extents()) data_.pool.allocator().release(extent);
}

// Called at opening, when the rows are known. The extents of a dropped column are claimed as long
// as a chunk or a group has values of it; otherwise nothing leads to them, and they are free space.
Status TableColumns::load_dropped(std::size_t number) {
  columns::Column& column = *data_.columns[number];
  FLUGS_CHECK(column.is_dropped());
  if (data_.rows.has_values_of(number, column.edition())) return column.load();
  for (const columns::Column* former = column.former(); former != nullptr;
       former = former->former())
    if (former->is_used()) return {};
  Forgotten forgotten;
  forgotten.layout = std::make_unique<columns::ColumnLayout>();
  forgotten.layout->type = static_cast<std::uint8_t>(column.type());
  forgotten.layout->encoding = static_cast<std::uint8_t>(Encoding::kDirect);
  forgotten.layout->nullable = column.nullable() ? 1 : 0;
  auto made = std::make_unique<columns::Column>(
      data_.pool, *forgotten.layout, nullptr, data_.decoders[number], column.name(), data_.name());
  if (column.has_constant()) {
    columns::Cell null = columns::text_cell::make_inline({});
    null.is_null = true;
    made->set_constant(null);
  }
  made->stand_in_for(column);
  made->set_dropped();
  forgotten.column = data_.columns.replace(number, std::move(made));
  forgotten_.push_back(std::move(forgotten));
  return {};
}

Status TableColumns::load(bool dropped) {
  if (dropped && !data_.has_dropped_columns()) return {};
  for (std::size_t i = 0; i < data_.columns.size(); ++i) {
    if (data_.columns[i]->is_dropped() != dropped) continue;
    if (Status s = dropped ? load_dropped(i) : data_.columns[i]->load(); !s.ok()) return s;
  }
  return {};
}

Status TableColumns::check_widest_row(TableSchema schema) const {
  for (std::size_t i = 0; i < data_.columns.size(); ++i)
    schema.columns[i].nullable |= data_.columns[i]->nullable();
  const Result<std::uint32_t> widest = widest_row(schema);
  return widest.ok() ? Status() : widest.status();
}

Result<ColumnId> TableColumns::add_column(const ColumnSchema& wanted, std::uint32_t hint_tail_max) {
  StoredSchema next = stored();
  const std::size_t number = next.schema.columns.size();
  FLUGS_CHECK(number == data_.columns.size());
  if (wanted.auto_increment || wanted.dropped)
    return Status(StatusCode::kInvalidArgument, SchemaPart::column(data_.name(), wanted.name),
                  fmt::format("{} column cannot be added",
                              wanted.dropped ? "a dropped" : "an auto-increment"));
  if (position_of(next.schema, wanted.name) != number)
    return Status(StatusCode::kAlreadyExists, SchemaPart::of(data_.name()),
                  fmt::format("column '{}' exists", wanted.name));
  next.schema.columns.push_back(wanted);
  Result<TableSchema> complete = complete_schema(std::move(next.schema));
  if (!complete.ok()) return std::move(complete).status();
  next.schema = *std::move(complete);
  if (Status s = check_widest_row(next.schema); !s.ok()) return s;
  const ColumnSchema column = next.schema.columns[number];
  const bool has_constant = column.nullable || column.default_value.has_value();
  const Value constant =
      column.default_value.has_value() ? column.default_value->value() : Value::null();
  NewColumn made(data_.pool);
  auto* decoder = new (&data_.decoders.begin(number)) columns::Decoder;
  if (Status s =
          made.make(data_.layout.table_id, data_.name(), number, column,
                    data_.layout.hints_offset != 0, has_constant ? &constant : nullptr, *decoder);
      !s.ok())
    return s;
  next.added_columns.push_back(made.offset());
  // From here until the column is added no chunk is made.
  RowStore::ColumnsChange change(data_.rows);
  if (!has_constant && data_.rows.chunk_count() != 0)
    return Status(StatusCode::kConstraintViolated, SchemaPart::column(data_.name(), wanted.name),
                  "a NOT NULL column needs a default, because the table has or had rows");
  Status altered = alter(std::move(next), [&] {
    std::unique_ptr<columns::Column> kept = made.keep();
    if (kept->dictionary().has_hints()) kept->dictionary().hints()->set_tail_max(hint_tail_max);
    data_.constraints.add(RowConstraints::kAltered);
    change.add(data_.columns, std::move(kept));
  });
  if (!altered.ok()) return altered;
  return ColumnId(static_cast<std::uint16_t>(number));
}

namespace {

// Other groups keep their numbers, which chunks know: a group stays even if it is empty.
void take_out_of_groups(TableSchema& schema, const std::string& column) {
  for (std::vector<std::string>& group : schema.column_groups)
    group.erase(std::remove(group.begin(), group.end(), column), group.end());
}

}  // namespace

// Protocol drop_column: alter_table, with a schema in which the column has no name and is dropped.
// Its values in rows stay where they are, and are no longer shown; chunks made from then on have no
// cells of it, groups no values.
Status TableColumns::drop_column(ColumnId id) {
  if (!data_.has_column(id)) return data_.no_column(id).with_code(StatusCode::kNotFound);
  StoredSchema next = stored();
  ColumnSchema& column = next.schema.columns[id.value()];
  if (const std::string user = user_of(next.schema, data_.pending, column.name); !user.empty())
    return Status(StatusCode::kConstraintViolated, SchemaPart::column(data_.name(), column.name),
                  fmt::format("{} uses it", user));
  // A key that is being added, and is not in the schema yet.
  for (const std::size_t place : KeySet(data_.keys.kept()))
    if (data_.keys[place]->has_column(id.value()))
      return Status(StatusCode::kConstraintViolated, SchemaPart::column(data_.name(), column.name),
                    fmt::format("key {} uses it", data_.keys[place]->name()));
  const auto there = std::count_if(next.schema.columns.begin(), next.schema.columns.end(),
                                   [](const ColumnSchema& other) { return !other.dropped; });
  if (there == 1)
    return Status(StatusCode::kConstraintViolated, SchemaPart::column(data_.name(), column.name),
                  "it is the only column of the table");
  const bool was_numbered = column.auto_increment;
  take_out_of_groups(next.schema, column.name);
  column.name.clear();
  column.default_value.reset();
  column.auto_increment = false;
  column.dropped = true;
  return alter(std::move(next), [&] {
    data_.dropped_columns.store(true, std::memory_order_release);
    data_.columns.set_dropped(id.value());
    data_.decoders[id.value()].kind.store(columns::DecodeKind::kDropped, std::memory_order_relaxed);
    data_.constraints.add(RowConstraints::kAltered);
    if (was_numbered) data_.constraints.remove(RowConstraints::kNumbered);
  });
}

}  // namespace flugs::engine
