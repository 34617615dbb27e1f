// Reading and writing single rows.

#include "bindings/c/expressions.h"
#include "bindings/c/schema.h"
#include "bindings/c/transaction.h"
#include "bindings/c/values.h"
#include "flugs/expression.h"
#include "flugs/prepared.h"

struct flugs_lookup : flugs::c::Handle<flugs::c::Kind::kLookup> {
  flugs::Prepared core;
  std::vector<flugs::ColumnId> columns;
  flugs::c::About about;
};

namespace flugs::c {

namespace {

/// An error of a call with a look-up, whose names need not be looked for.
flugs_error* lookup_failed(const flugs_transaction& transaction, const Status& status,
                           const flugs_lookup& lookup) {
  if (status.code() == StatusCode::kConflict)
    return failed(transaction, status, lookup.core.key().table);
  return to_c(status, lookup.about);
}

/// `work(transaction, lookup, key)`.
template <typename Work>
flugs_error* with_lookup(flugs_transaction* transaction, const flugs_lookup* lookup,
                         const flugs_value* key, std::size_t key_count, Work&& work) noexcept {
  return with_transaction(transaction, [&](flugs_transaction& t) -> flugs_error* {
    if (!is_handle(lookup)) return no_handle("lookup");
    ValueBuffer buffer;
    std::span<const Value> values;
    if (Status s = buffer.take(key, key_count, values); !s.ok()) return to_c(s, lookup->about);
    return std::forward<Work>(work)(t, *lookup, values);
  });
}

Result<flugs_lookup*> make_lookup(Database& core, TableId table, const char* key,
                                  const std::vector<std::string>& columns) {
  Result<KeyId> key_id = core.find_key(table, key);
  if (!key_id.ok()) return std::move(key_id).status();
  auto lookup = std::make_unique<flugs_lookup>();
  for (const std::string& name : columns) {
    Result<ColumnId> column = core.find_column(table, name);
    if (!column.ok()) return std::move(column).status();
    lookup->columns.push_back(*column);
  }
  Result<Prepared> prepared = core.prepare(*key_id, lookup->columns);
  if (!prepared.ok()) return std::move(prepared).status();
  lookup->core = *std::move(prepared);
  lookup->about = about(core, *key_id);
  return lookup.release();
}

}  // namespace

}  // namespace flugs::c

using flugs::c::no_pointer;
using flugs::c::to_c;
using flugs::c::with_lookup;
using flugs::c::with_transaction;

extern "C" {

flugs_error* flugs_insert(flugs_transaction* transaction, uint32_t table, const flugs_value* row,
                          size_t column_count, int64_t* out) {
  if (out != nullptr) *out = 0;
  return with_transaction(transaction, [&](flugs_transaction& t) -> flugs_error* {
    flugs::c::ValueBuffer buffer;
    std::span<const flugs::Value> values;
    const flugs::TableId id(table);
    if (flugs::Status s = buffer.take(row, column_count, values); !s.ok())
      return flugs::c::failed(t, s, id);
    const flugs::Result<flugs::Inserted> inserted = t.core.insert(id, values);
    if (!inserted.ok()) return flugs::c::failed(t, inserted.status(), id);
    if (out != nullptr) *out = inserted->number;
    return nullptr;
  });
}

flugs_error* flugs_insert_rows(flugs_transaction* transaction, uint32_t table,
                               const flugs_value* rows, size_t column_count, size_t row_count) {
  return with_transaction(transaction, [&](flugs_transaction& t) -> flugs_error* {
    if (column_count > 1024) return flugs::c::misuse("column_count: at most 1024");
    if (row_count > (std::size_t{1} << 40)) return flugs::c::misuse("row_count: too many");
    flugs::c::ValueBuffer buffer;
    std::span<const flugs::Value> values;
    const flugs::TableId id(table);
    const flugs::Result<flugs::TableSchema> schema = t.database->core.schema(id);
    if (!schema.ok()) return to_c(schema.status());
    if (column_count != schema->columns.size())
      return to_c(flugs::Status(flugs::StatusCode::kInvalidArgument,
                                "column_count: the table has " +
                                    std::to_string(schema->columns.size()) + " columns"),
                  {schema->name, {}});
    if (flugs::Status s = buffer.take(rows, column_count * row_count, values); !s.ok())
      return flugs::c::failed(t, s, id);
    return flugs::c::failed(t, t.core.insert_rows(id, values), id);
  });
}

flugs_error* flugs_lookup_create(flugs_database* database, uint32_t table, const char* key,
                                 const char* const* columns, size_t column_count,
                                 flugs_lookup** out) {
  if (out != nullptr) *out = nullptr;
  return flugs::c::with_database(database, [&](flugs::Database& core) -> flugs_error* {
    if (out == nullptr) return no_pointer("out");
    std::vector<std::string> names;
    if (flugs_error* error = flugs::c::names_from_c(columns, column_count, names)) return error;
    const char* const name = key == nullptr ? "primary" : key;
    const flugs::TableId id(table);
    flugs::Result<flugs_lookup*> lookup = flugs::c::make_lookup(core, id, name, names);
    if (!lookup.ok()) {
      flugs::c::About what = flugs::c::about(core, id);
      what.key = name;
      return to_c(lookup.status(), std::move(what));
    }
    *out = *lookup;
    return nullptr;
  });
}

void flugs_lookup_free(flugs_lookup* lookup) {
  if (flugs::c::is_handle(lookup)) delete lookup;
}

flugs_error* flugs_find(flugs_transaction* transaction, const flugs_lookup* lookup,
                        const flugs_value* key, size_t key_count, flugs_value* out,
                        size_t column_count) {
  return with_lookup(transaction, lookup, key, key_count,
                     [&](flugs_transaction& t, const flugs_lookup& l, auto values) -> flugs_error* {
                       if (out == nullptr && column_count > 0) return no_pointer("out");
                       flugs::c::ValueBuffer buffer;
                       const std::span<flugs::Value> found = buffer.make(column_count);
                       if (flugs::Status s = l.core.read(t.core, values, found); !s.ok())
                         return flugs::c::lookup_failed(t, s, l);
                       for (std::size_t i = 0; i < column_count; ++i) out[i] = to_c(found[i]);
                       return nullptr;
                     });
}

flugs_error* flugs_update(flugs_transaction* transaction, const flugs_lookup* lookup,
                          const flugs_value* key, size_t key_count, const flugs_value* columns,
                          size_t column_count) {
  return with_lookup(transaction, lookup, key, key_count,
                     [&](flugs_transaction& t, const flugs_lookup& l, auto values) -> flugs_error* {
                       flugs::c::ValueBuffer buffer;
                       std::span<const flugs::Value> changed;
                       if (flugs::Status s = buffer.take(columns, column_count, changed); !s.ok())
                         return flugs::c::lookup_failed(t, s, l);
                       return flugs::c::lookup_failed(
                           t, l.core.update(t.core, values, changed).status(), l);
                     });
}

flugs_error* flugs_upsert(flugs_transaction* transaction, const flugs_lookup* lookup,
                          const flugs_value* row, size_t column_count, int32_t* out) {
  if (out != nullptr) *out = 0;
  return with_lookup(transaction, lookup, row, column_count,
                     [&](flugs_transaction& t, const flugs_lookup& l, auto values) -> flugs_error* {
                       std::vector<flugs::ColumnValue> changes;
                       for (const flugs::ColumnId column : l.columns)
                         if (column.value() < values.size())
                           changes.push_back({column, values[column.value()]});
                       const flugs::Result<flugs::Upserted> done =
                           t.core.upsert(l.core.key(), values, changes);
                       if (!done.ok()) return flugs::c::lookup_failed(t, done.status(), l);
                       if (out != nullptr) *out = done->inserted ? 1 : 0;
                       return nullptr;
                     });
}

flugs_error* flugs_remove(flugs_transaction* transaction, const flugs_lookup* lookup,
                          const flugs_value* key, size_t key_count) {
  return with_lookup(transaction, lookup, key, key_count,
                     [&](flugs_transaction& t, const flugs_lookup& l, auto values) {
                       return flugs::c::lookup_failed(t, l.core.remove(t.core, values), l);
                     });
}

flugs_error* flugs_update_where(flugs_transaction* transaction, uint32_t table, flugs_expr* where,
                                const char* const* columns, flugs_expr* const* values,
                                size_t column_count, uint64_t* out) {
  if (out != nullptr) *out = 0;
  return flugs::c::guarded([&] {
    flugs::c::TakenExpressions taken(&where, 1);
    taken.add(values, column_count);
    return with_transaction(transaction, [&](flugs_transaction& t) -> flugs_error* {
      if (flugs_error* error = taken.error()) return error;
      std::vector<std::string> names;
      if (flugs_error* error = flugs::c::names_from_c(columns, column_count, names)) return error;
      std::vector<flugs::query::Assignment> changes;
      for (std::size_t i = 0; i < names.size(); ++i)
        changes.push_back({std::move(names[i]), taken.expression(i + 1)});
      const flugs::TableId id(table);
      const flugs::Result<std::uint64_t> rows =
          t.core.update_where(id, taken.expression(0), changes);
      if (!rows.ok()) return flugs::c::failed(t, rows.status(), id);
      if (out != nullptr) *out = *rows;
      return nullptr;
    });
  });
}

flugs_error* flugs_remove_where(flugs_transaction* transaction, uint32_t table, flugs_expr* where,
                                uint64_t* out) {
  if (out != nullptr) *out = 0;
  return flugs::c::guarded([&] {
    const flugs::c::TakenExpressions taken(&where, 1);
    return with_transaction(transaction, [&](flugs_transaction& t) -> flugs_error* {
      if (flugs_error* error = taken.error()) return error;
      const flugs::TableId id(table);
      const flugs::Result<std::uint64_t> rows = t.core.remove_where(id, taken.expression(0));
      if (!rows.ok()) return flugs::c::failed(t, rows.status(), id);
      if (out != nullptr) *out = *rows;
      return nullptr;
    });
  });
}
}
