#include <utility>

#include "bindings/c/database.h"
#include "bindings/c/expressions.h"
#include "bindings/c/schema.h"
#include "bindings/c/values.h"

namespace flugs::c {

static_assert(static_cast<int>(Encoding::kAuto) == FLUGS_ENCODING_AUTO);
static_assert(static_cast<int>(Encoding::kDictionary) == FLUGS_ENCODING_DICTIONARY);
static_assert(static_cast<int>(Encoding::kDirect) == FLUGS_ENCODING_DIRECT);
static_assert(static_cast<int>(ReferenceAction::kRestrict) == FLUGS_RESTRICT);
static_assert(static_cast<int>(ReferenceAction::kCascade) == FLUGS_CASCADE);
static_assert(static_cast<int>(ReferenceAction::kSetNull) == FLUGS_SET_NULL);

flugs_error* names_from_c(const char* const* names, std::size_t count,
                          std::vector<std::string>& out) {
  if (names == nullptr && count > 0) return no_pointer("columns");
  out.clear();
  for (std::size_t i = 0; i < count; ++i) {
    if (names[i] == nullptr) return misuse("columns: name " + std::to_string(i) + " is NULL");
    out.emplace_back(names[i]);
  }
  return nullptr;
}

namespace {

template <typename Work>
flugs_error* with_schema(flugs_schema* schema, Work&& work) noexcept {
  return guarded([&]() -> flugs_error* {
    if (!is_handle(schema)) return no_handle("schema");
    return std::forward<Work>(work)(*schema);
  });
}

template <typename Work>
flugs_error* with_last_column(flugs_schema* schema, Work&& work) noexcept {
  return with_schema(schema, [&](flugs_schema& s) -> flugs_error* {
    if (s.core.columns.empty()) return misuse("schema: it has no column");
    return std::forward<Work>(work)(s.core.columns.back());
  });
}

/// The primary key stands before all others, so the last one is found by its name.
template <typename Work>
flugs_error* with_last_key(flugs_schema* schema, Work&& work) noexcept {
  return with_schema(schema, [&](flugs_schema& s) -> flugs_error* {
    for (KeySchema& key : s.core.keys)
      if (key.name == s.last_key) return std::forward<Work>(work)(key);
    return misuse("schema: it has no key");
  });
}

enum class KeyKind : std::uint8_t { kPrimary, kUnique, kOrdered };

flugs_error* add_key(flugs_schema* schema, KeyKind kind, const char* name,
                     const char* const* columns, std::size_t count) noexcept {
  return with_schema(schema, [&](flugs_schema& s) -> flugs_error* {
    if (name == nullptr) return no_pointer("name");
    for (const KeySchema& key : s.core.keys)
      if (key.name == name) return misuse("schema: it has a key " + std::string(name));
    std::vector<std::string> names;
    if (flugs_error* error = names_from_c(columns, count, names)) return error;
    if (kind == KeyKind::kPrimary) s.core.primary_key(std::move(names));
    if (kind == KeyKind::kUnique) s.core.unique_key(name, std::move(names));
    if (kind == KeyKind::kOrdered) s.core.key(name, std::move(names));
    s.last_key = name;
    return nullptr;
  });
}

template <typename Work>
flugs_error* make_table(flugs_database* database, const flugs_schema* schema, std::uint32_t* out,
                        Work&& work) noexcept {
  if (out != nullptr) *out = 0;
  return with_database(database, [&](Database& core) -> flugs_error* {
    if (!is_handle(schema)) return no_handle("schema");
    const Result<TableId> table = std::forward<Work>(work)(core, schema->core);
    if (!table.ok()) return to_c(table.status(), {schema->core.name, {}});
    if (out != nullptr) *out = table->value();
    return nullptr;
  });
}

}  // namespace

}  // namespace flugs::c

using flugs::c::misuse;
using flugs::c::no_pointer;
using flugs::c::with_last_column;
using flugs::c::with_schema;

extern "C" {

flugs_error* flugs_schema_create(const char* table, flugs_schema** out) {
  return flugs::c::guarded([&]() -> flugs_error* {
    if (out == nullptr) return no_pointer("out");
    *out = nullptr;
    if (table == nullptr) return no_pointer("table");
    *out = new flugs_schema(table);
    return nullptr;
  });
}

flugs_error* flugs_schema_column(flugs_schema* schema, const char* name, flugs_type type) {
  return with_schema(schema, [&](flugs_schema& s) -> flugs_error* {
    if (name == nullptr) return no_pointer("name");
    flugs::Type converted{};
    if (!flugs::c::type_of(type, converted))
      return misuse("type: no type of a column has the number " + std::to_string(type));
    s.core.column(name, converted);
    return nullptr;
  });
}

flugs_error* flugs_schema_not_null(flugs_schema* schema) {
  return with_last_column(schema, [](flugs::ColumnSchema& column) -> flugs_error* {
    column.nullable = false;
    return nullptr;
  });
}

flugs_error* flugs_schema_scale(flugs_schema* schema, int32_t digits) {
  return with_last_column(schema, [&](flugs::ColumnSchema& column) -> flugs_error* {
    if (digits < 0 || digits > flugs::Value::kScaleMax) return misuse("digits: 0 to 18");
    column.scale = static_cast<std::uint8_t>(digits);
    return nullptr;
  });
}

flugs_error* flugs_schema_default(flugs_schema* schema, const flugs_value* value) {
  return with_last_column(schema, [&](flugs::ColumnSchema& column) -> flugs_error* {
    if (value == nullptr) return no_pointer("value");
    flugs::Value converted;
    if (flugs_error* error = flugs::c::to_c(flugs::c::from_c(*value, 0, converted))) return error;
    column.default_value = flugs::Constant(converted);
    return nullptr;
  });
}

flugs_error* flugs_schema_auto_increment(flugs_schema* schema) {
  return with_last_column(schema, [](flugs::ColumnSchema& column) -> flugs_error* {
    column.auto_increment = true;
    return nullptr;
  });
}

flugs_error* flugs_schema_encoding(flugs_schema* schema, flugs_encoding encoding) {
  return with_last_column(schema, [&](flugs::ColumnSchema& column) -> flugs_error* {
    if (encoding < FLUGS_ENCODING_AUTO || encoding > FLUGS_ENCODING_DIRECT)
      return misuse("encoding: no such number");
    column.encoding = static_cast<flugs::Encoding>(encoding);
    return nullptr;
  });
}

flugs_error* flugs_schema_expect_distinct(flugs_schema* schema, uint32_t values) {
  return with_last_column(schema, [&](flugs::ColumnSchema& column) -> flugs_error* {
    column.expected_distinct = values;
    return nullptr;
  });
}

flugs_error* flugs_schema_primary_key(flugs_schema* schema, const char* const* columns,
                                      size_t column_count) {
  return flugs::c::add_key(schema, flugs::c::KeyKind::kPrimary, "primary", columns, column_count);
}

flugs_error* flugs_schema_unique_key(flugs_schema* schema, const char* name,
                                     const char* const* columns, size_t column_count) {
  return flugs::c::add_key(schema, flugs::c::KeyKind::kUnique, name, columns, column_count);
}

flugs_error* flugs_schema_key(flugs_schema* schema, const char* name, const char* const* columns,
                              size_t column_count) {
  return flugs::c::add_key(schema, flugs::c::KeyKind::kOrdered, name, columns, column_count);
}

flugs_error* flugs_schema_ordered(flugs_schema* schema) {
  return flugs::c::with_last_key(schema, [](flugs::KeySchema& key) -> flugs_error* {
    key.ordered = true;
    return nullptr;
  });
}

flugs_error* flugs_schema_hash_prefix(flugs_schema* schema, uint32_t columns) {
  return flugs::c::with_last_key(schema, [&](flugs::KeySchema& key) -> flugs_error* {
    if (columns > key.columns.size()) return misuse("columns: more than the key has");
    key.hashed_columns = static_cast<std::uint8_t>(columns);
    return nullptr;
  });
}

flugs_error* flugs_schema_check(flugs_schema* schema, const char* name, flugs_expr* condition) {
  return flugs::c::guarded([&] {
    flugs::c::TakenExpressions taken(&condition, 1);
    return with_schema(schema, [&](flugs_schema& s) -> flugs_error* {
      if (name == nullptr) return no_pointer("name");
      if (flugs_error* error = taken.error()) return error;
      s.core.check(name, taken.expression(0));
      return nullptr;
    });
  });
}

flugs_error* flugs_schema_foreign_key(flugs_schema* schema, const char* name,
                                      const char* const* columns, size_t column_count,
                                      const char* table, const char* key,
                                      flugs_reference_action on_delete,
                                      flugs_reference_action on_update) {
  return with_schema(schema, [&](flugs_schema& s) -> flugs_error* {
    if (name == nullptr) return no_pointer("name");
    if (table == nullptr) return no_pointer("table");
    for (const flugs_reference_action action : {on_delete, on_update})
      if (action < FLUGS_RESTRICT || action > FLUGS_SET_NULL)
        return misuse("on_delete, on_update: no such number");
    flugs::ForeignKeySchema foreign;
    if (flugs_error* error = flugs::c::names_from_c(columns, column_count, foreign.columns))
      return error;
    foreign.name = name;
    foreign.table = table;
    if (key != nullptr) foreign.key = key;
    foreign.on_delete = static_cast<flugs::ReferenceAction>(on_delete);
    foreign.on_update = static_cast<flugs::ReferenceAction>(on_update);
    s.core.foreign_keys.push_back(std::move(foreign));
    return nullptr;
  });
}

flugs_error* flugs_schema_delta_layout(flugs_schema* schema, flugs_delta_layout layout) {
  return with_schema(schema, [&](flugs_schema& s) -> flugs_error* {
    if (layout < FLUGS_DELTA_ROWS || layout > FLUGS_DELTA_COLUMNS)
      return misuse("layout: no such number");
    s.core.delta_layout = static_cast<flugs::DeltaLayout>(layout);
    return nullptr;
  });
}

flugs_error* flugs_schema_column_group(flugs_schema* schema, const char* const* columns,
                                       size_t column_count) {
  return with_schema(schema, [&](flugs_schema& s) -> flugs_error* {
    std::vector<std::string> names;
    if (flugs_error* error = flugs::c::names_from_c(columns, column_count, names)) return error;
    s.core.delta_layout = flugs::DeltaLayout::kColumns;
    s.core.column_groups.push_back(std::move(names));
    return nullptr;
  });
}

void flugs_schema_free(flugs_schema* schema) {
  if (flugs::c::is_handle(schema)) delete schema;
}

flugs_error* flugs_table_create(flugs_database* database, const flugs_schema* schema,
                                uint32_t* out) {
  return flugs::c::make_table(database, schema, out, [](auto& core, const auto& wanted) {
    return core.create_table(wanted);
  });
}

flugs_error* flugs_table_ensure(flugs_database* database, const flugs_schema* schema,
                                uint32_t* out) {
  return flugs::c::make_table(database, schema, out,
                              [](auto& core, const auto& wanted) -> flugs::Result<flugs::TableId> {
                                const flugs::Result<flugs::Table> table = core.ensure_table(wanted);
                                if (!table.ok()) return table.status();
                                return table->id();
                              });
}
}
