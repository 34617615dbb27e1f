// Changing the type of a column of a table in use (decision 0025), and rewriting a column (0026).

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "tables/catalog/added_column.h"
#include "tables/catalog/schema_checks.h"
#include "tables/catalog/schema_codec.h"
#include "tables/data/table_data.h"
#include "tables/data/table_layout.h"
#include "tables/table/table_columns.h"
#include "tables/table/table_references.h"

namespace flugs::engine {

namespace {

Constant constant_of_type(const Constant& constant, Type type) {
  return columns::with_type(constant.value(), type);
}

/// The condition, with its constants for `column` as values of the type.
Condition with_constants_of_type(const Condition& condition, const std::string& column, Type type) {
  std::vector<Condition::Node> nodes = condition.nodes();
  for (Condition::Node& node : nodes) {
    if (node.column != column) continue;
    for (Constant& constant : node.constants) constant = constant_of_type(constant, type);
  }
  return Condition::of(std::move(nodes));
}

}  // namespace

std::unique_ptr<columns::Column> TableColumns::make_added(std::uint64_t offset,
                                                          const std::string& called,
                                                          columns::Decoder& decoder) {
  auto& added = *data_.pool.at(pmem::OffsetPtr<AddedColumnLayout>{offset});
  auto made = std::make_unique<columns::Column>(data_.pool, column_layout_of(added),
                                                hints_of(added), decoder, called, data_.name());
  if (added.constant != AddedColumnLayout::kNone) made->set_constant(constant_of(added));
  return made;
}

// Opening: makes the later editions of the columns, in the order in which they came.
void TableColumns::make_editions() {
  for (const ChangedColumnLayout& changed : changed_) {
    const std::size_t i = changed.column;
    data_.columns[i]->set_used(false);
    auto decoder = std::make_unique<columns::Decoder>();
    auto made = make_added(changed.layout, data_.columns[i]->name(), *decoder);
    made->own_decoder(std::move(decoder));
    data_.columns.change(i, std::move(made), changed.edition);
  }
}

// Opening, when the rows are known: loads the former editions that rows have.
Status TableColumns::load_former_editions() {
  for (std::size_t i = 0; i < data_.columns.size(); ++i) {
    columns::Column* former = data_.columns[i]->former();
    for (; former != nullptr; former = former->former()) {
      if (!data_.rows.has_values_of(i, former->edition(), needs_groups(*former))) continue;
      if (Status s = former->load(); !s.ok()) return s;
      former->set_used(true);
    }
  }
  settle_editions();
  return {};
}

// When no row has a former edition of a column any more, its cells are read like those of any other
// column. Called at opening, or under merge_mutex() when no reader of replaced chunks is left.
void TableColumns::settle_editions() noexcept {
  for (std::size_t i = 0; i < data_.columns.size(); ++i) {
    const columns::Column& column = *data_.columns[i];
    if (column.former() == nullptr || column.is_dropped()) continue;
    bool is_any = false;
    const columns::Column* former = column.former();
    for (; former != nullptr && !is_any; former = former->former())
      is_any = data_.rows.is_read_as(i, former->edition(),
                                     needs_groups(column) || former->type() != column.type());
    columns::Decoder& decoder = data_.decoders[i];
    if (is_any) {
      decoder.kind.store(columns::DecodeKind::kChanged, std::memory_order_relaxed);
    } else {
      column.describe(decoder);
      // A drop that came in between stores its kind after its mark: our kind must not overwrite it.
      if (column.is_dropped())
        decoder.kind.store(columns::DecodeKind::kDropped, std::memory_order_relaxed);
    }
  }
}

Status TableColumns::check_change(const StoredSchema& stored, std::size_t number, Type type) const {
  const ColumnSchema& column = stored.schema.columns[number];
  const auto refused = [&](StatusCode code, const std::string& why) {
    return Status(code, SchemaPart::column(data_.name(), column.name), why);
  };
  if (!columns::keeps_payloads(column.type, type))
    return refused(StatusCode::kInvalidArgument,
                   fmt::format("{} cannot become {}: only int32 can become int64, string bytes, "
                               "and bytes string; instead add a column, fill it and drop this one",
                               to_string(column.type), to_string(type)));
  if (column.type != type) {
    if (Status s = references_.check_column_unused(stored, number); !s.ok()) return s;
  }
  if (const Status s = check_room_for_edition(stored, number); !s.ok())
    return refused(s.code(), std::string(s.message()));
  return {};
}

// Protocol change_type. Chunks that are begun, and groups that are written, from step 2 on hold the
// column under its new type.
//   step  store                           made durable by  power cut just after it: recovery
//   1     layout of the column's next     add_column/2     extent unreachable: free space
//         edition; what rows have that
//         lack the column, as a value of
//         the new type
//   2     the table's schema, with the    alter_table/2    loads the edition, and those before it
//         new type, and in its list of                     of which there are rows; these are read
//         changes the edition                              as values of the new type
// Must hold:  1 before 2, else the schema would name noise; 2 before any chunk or group with cells
//             of the edition, else they are of one that the table does not have.
// Need not:   anything of the rows that are there: the next merge of theirs gives them the type.
Status TableColumns::change_type(ColumnId id, Type type) {
  if (!data_.has_column(id)) return data_.no_column(id).with_code(StatusCode::kNotFound);
  const std::size_t number = id.value();
  const ColumnSchema& column = data_.schema().columns[number];
  if (column.type == type && column.encoding == Encoding::kDirect) return {};
  return begin_edition(number, type);
}

// An edition that could be NULL is followed by others that can, because rows with NULL may be left
// that only older snapshots see. So a column that becomes NOT NULL keeps its editions, and one that
// was NULL before needs no new edition to become so again.
Status TableColumns::set_nullable(std::size_t number, bool nullable) {
  FLUGS_CHECK(number < data_.columns.size());
  if (nullable && !data_.columns[number]->nullable())
    return begin_edition(number, data_.columns[number]->type(), true);
  StoredSchema next = stored();
  next.schema.columns[number].nullable = nullable;
  return alter(std::move(next));
}

Status TableColumns::begin_edition(std::size_t number, Type type, bool admits_null) {
  FLUGS_CHECK(number < data_.columns.size());
  StoredSchema next = stored();
  ColumnSchema& column = next.schema.columns[number];
  if (Status s = check_change(next, number, type); !s.ok()) return s;
  const columns::Column& former = *data_.columns[number];
  const std::uint16_t edition = free_edition(next, number);
  FLUGS_CHECK(edition != 0);  // check_change has found one
  next.changed_columns.push_back({0, static_cast<std::uint16_t>(number),
                                  static_cast<std::uint8_t>(column.type),
                                  static_cast<std::uint8_t>(column.encoding), edition, 0});
  const bool has_other_type = column.type != type;
  column.type = type;
  column.encoding = Encoding::kDirect;
  column.nullable |= admits_null;
  const Value constant =
      former.has_constant() ? columns::with_type(former.constant_value(), type) : Value::null();
  if (column.default_value.has_value())
    column.default_value = constant_of_type(*column.default_value, type);
  for (CheckSchema& check : next.schema.checks)
    check.condition = with_constants_of_type(check.condition, column.name, type);
  Result<TableSchema> complete = complete_schema(std::move(next.schema));
  if (!complete.ok()) return std::move(complete).status();
  next.schema = *std::move(complete);
  if (Status s = check_widest_row(next.schema); !s.ok()) return s;
  auto decoder = std::make_unique<columns::Decoder>();
  NewColumn made(data_.pool);
  ColumnSchema of_edition = next.schema.columns[number];
  of_edition.nullable |= former.nullable();
  if (Status s = made.make(data_.layout.table_id, data_.name(), number, of_edition, false,
                           former.has_constant() ? &constant : nullptr, *decoder);
      !s.ok())
    return s;
  next.changed_columns.back().layout = made.offset();
  // From here until the edition is the column's newest no chunk is made.
  RowStore::ColumnsChange change(data_.rows);
  return alter(std::move(next), [&] {
    if (numbers_ != nullptr && numbered_ == number) numbers_->set_type(type);
    for (const std::size_t place : KeySet(data_.keys.kept()))
      if (data_.keys[place]->has_column(number)) {
        if (has_other_type) data_.keys[place]->set_needs_normalising();
        if (of_edition.nullable) data_.keys[place]->note_nullable(number);
      }
    // A reader of cells of an edition that it does not know asks the column.
    data_.decoders[number].kind.store(columns::DecodeKind::kChanged, std::memory_order_release);
    std::unique_ptr<columns::Column> kept = made.keep();
    kept->own_decoder(std::move(decoder));
    change.change(data_.columns, number, std::move(kept), edition);
  });
}

}  // namespace flugs::engine
