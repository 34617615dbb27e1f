#include "bindings/sqlite/table.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

#include "bindings/sqlite/cursor.h"
#include "bindings/sqlite/definition.h"
#include "bindings/sqlite/errors.h"
#include "bindings/sqlite/names.h"
#include "flugs/try.h"

namespace flugs::sqlite {

VirtualTable::VirtualTable(Session& of, TableShape with, std::uint64_t as_of)
    : SessionTable(of),
      shape(std::move(with)),
      pool_(of.pool()),
      pool_path_(of.path()),
      definitions_(as_of) {}

VirtualTable::~VirtualTable() = default;

double VirtualTable::row_count() {
  if (calls_-- > 0) return row_count_;
  calls_ = 100;
  const Result<Database*> database = session.database();
  if (!database.ok()) return row_count_;
  const Result<TableStatistics> statistics = (*database)->table_statistics(shape.id);
  if (statistics.ok())
    row_count_ = static_cast<double>(statistics->rows_reserved -
                                     std::min(statistics->rows_free, statistics->rows_reserved));
  if (row_count_ < 10'000) calls_ = 10;
  return row_count_;
}

/// Reads the pool's definition.
Result<VirtualTable::Standing> VirtualTable::compare() {
  const std::uint64_t now = session.definitions();
  const std::shared_ptr<const Pool> known = pool_.lock();
  const std::shared_ptr<const Pool> pool = session.pool();
  // A pool in memory has no path.
  if (known != pool && (pool_path_.empty() || pool_path_ != pool->path))
    return Standing::kOtherPool;
  const Result<TableSchema> schema = pool->database.schema(shape.id);
  if (schema.code() == StatusCode::kNotFound) return Standing::kDropped;
  if (!schema.ok()) return schema.status();
  if (!shape.still_fits(TableShape::of(shape.id, *schema))) return Standing::kChanged;
  pool_ = pool;
  definitions_ = now;
  return Standing::kSame;
}

Result<VirtualTable::Standing> VirtualTable::standing() {
  FLUGS_TRY(session.database().status());
  if (session.definitions() == definitions_) return Standing::kSame;
  return compare();
}

Status VirtualTable::check_again() {
  FLUGS_ASSIGN(const Standing now, standing());
  switch (now) {
    case Standing::kSame:
      return {};
    case Standing::kOtherPool:
      return Status(StatusCode::kInvalidArgument,
                    "the pool of the table " + shape.name + " was closed, and another one is open");
    case Standing::kChanged:
    case Standing::kDropped:
      break;
  }
  return Status(StatusCode::kInvalidArgument, "the definition of " + shape.name +
                                                  " has changed: SELECT flugs_open('" +
                                                  session.path() + "')");
}

Status VirtualTable::check_names() {
  // A change that has begun may have been done before the names were looked up.
  const bool is_changing = session.is_definition_changing();
  if (!is_changing && session.definitions() == definitions_) return {};
  definitions_ = 0;
  return check();
}

void RowsRead::note_row(std::int64_t id, std::span<const Value> key) {
  std::vector<Part>& parts = keys_[id];
  parts.clear();
  for (const Value& value : key) {
    const bool is_text =
        !value.is_null() && (value.type() == Type::kString || value.type() == Type::kBytes);
    parts.push_back({value, is_text ? std::string(value.as_string()) : std::string()});
  }
}

std::vector<Value> RowsRead::key_of(std::int64_t id) const {
  std::vector<Value> key;
  if (const auto found = keys_.find(id); found != keys_.end())
    for (const auto& [value, text] : found->second) {
      const bool is_text =
          !value.is_null() && (value.type() == Type::kString || value.type() == Type::kBytes);
      key.push_back(is_text ? Value::from_bytes(value.type(), text) : value);
    }
  return key;
}

namespace {

VirtualTable& table_of(sqlite3_vtab* table) { return *static_cast<VirtualTable*>(table); }
Cursor& cursor_of(sqlite3_vtab_cursor* cursor) { return *static_cast<Cursor*>(cursor); }

/// The definition's table is there: that of CREATE VIRTUAL TABLE, or one to be shown. `creates`
/// says for which it is asked, and then whether the pool's table was made.
Result<TableShape> shape_of(Session& session, const Definition& definition, bool& creates) {
  FLUGS_ASSIGN(Database * database, session.database());
  creates = creates && !definition.schema.columns.empty();
  if (creates) {
    FLUGS_TRY(session.prepare_to_change_schema());
    const std::lock_guard names(session.names());
    FLUGS_TRY(check_new_table(*database, definition.schema.name));
    FLUGS_TRY(check_columns(definition.schema));
    const DefinitionChange change = session.change_definitions();
    FLUGS_TRY(database->create_table(definition.schema));
  }
  FLUGS_ASSIGN(const TableId id, database->find_table(definition.schema.name));
  FLUGS_ASSIGN(const TableSchema schema, database->schema(id));
  return TableShape::of(id, schema);
}

/// Drops a table that was made just now.
void take_back(Session& session, TableId table) {
  const Result<Database*> database = session.database();
  const DefinitionChange change = session.change_definitions();
  static_cast<void>((*database)->drop_table(table));
}

int make(sqlite3* db, void* context, int count, const char* const* words, sqlite3_vtab** table,
         char** error, bool creates) {
  return guarded([&] {
    Session& session = *static_cast<Session*>(context);
    const std::uint64_t definitions = session.definitions();
    Result<Definition> definition = read_definition(words[2], count - 3, words + 3);
    Result<TableShape> shape = definition.ok() ? shape_of(session, *definition, creates)
                                               : Result<TableShape>(definition.status());
    if (!shape.ok()) {
      *error = sqlite3_mprintf("%s", message_of(shape.status()).c_str());
      return code_of(shape.status());
    }
    if (const int code = sqlite3_declare_vtab(db, shape->declaration().c_str());
        code != SQLITE_OK) {
      *error = sqlite3_mprintf("SQLite cannot show the table %s: %s", shape->name.c_str(),
                               sqlite3_errmsg(db));
      if (creates) take_back(session, shape->id);
      return code;
    }
    // xUpdate looks at the conflict clause itself.
    sqlite3_vtab_config(db, SQLITE_VTAB_CONSTRAINT_SUPPORT, 1);
    *table = new VirtualTable(session, *std::move(shape), definitions);
    return SQLITE_OK;
  });
}

int create(sqlite3* db, void* context, int count, const char* const* words, sqlite3_vtab** table,
           char** error) {
  return make(db, context, count, words, table, error, true);
}

int connect(sqlite3* db, void* context, int count, const char* const* words, sqlite3_vtab** table,
            char** error) {
  return make(db, context, count, words, table, error, false);
}

int disconnect(sqlite3_vtab* table) {
  delete &table_of(table);
  return SQLITE_OK;
}

int destroy(sqlite3_vtab* base) {
  return guarded([&] {
    VirtualTable& table = table_of(base);
    if (!table.session.is_detaching) {
      const auto drop = [&]() -> Status {
        FLUGS_ASSIGN(Database * database, table.session.database());
        FLUGS_TRY(table.session.prepare_to_change_schema());
        FLUGS_ASSIGN(const VirtualTable::Standing standing, table.standing());
        // A table that is gone already is no failure: then SQLite forgets it, too.
        if (standing == VirtualTable::Standing::kOtherPool ||
            standing == VirtualTable::Standing::kDropped)
          return {};
        FLUGS_TRY(table.check());
        const DefinitionChange change = table.session.change_definitions();
        const Status dropped = database->drop_table(table.shape.id);
        return dropped.code() == StatusCode::kNotFound ? Status() : dropped;
      };
      if (const Status s = drop(); !s.ok()) return fail(base, s);
    }
    delete &table;
    return SQLITE_OK;
  });
}

int best_index(sqlite3_vtab* base, sqlite3_index_info* info) {
  return guarded([&] {
    VirtualTable& table = table_of(base);
    Plan plan = choose_plan(table.shape, table.row_count(), info);
    const auto known = std::find(table.plans.begin(), table.plans.end(), plan);
    info->idxNum = static_cast<int>(known - table.plans.begin());
    info->idxStr = sqlite3_mprintf("%s", describe(table.shape, plan).c_str());
    info->needToFreeIdxStr = 1;
    if (known == table.plans.end()) table.plans.push_back(std::move(plan));
    return SQLITE_OK;
  });
}

int open(sqlite3_vtab* base, sqlite3_vtab_cursor** cursor) {
  return guarded([&] {
    VirtualTable& table = table_of(base);
    if (table.spare.empty()) {
      *cursor = new Cursor(table);
    } else {
      *cursor = table.spare.back().release();
      table.spare.pop_back();
    }
    Cursor& opened = cursor_of(*cursor);
    opened.is_noted = table.shape.moves() && table.session.is_writing();
    if (opened.is_noted) table.rows_read.open_cursor();
    return SQLITE_OK;
  });
}

int close(sqlite3_vtab_cursor* base) {
  constexpr std::size_t kSpareMax = 4;
  return guarded([&] {
    std::unique_ptr<Cursor> cursor(&cursor_of(base));
    cursor->close();
    VirtualTable& table = table_of(base->pVtab);
    if (cursor->is_noted) table.rows_read.close_cursor();
    if (table.spare.size() < kSpareMax) table.spare.push_back(std::move(cursor));
    return SQLITE_OK;
  });
}

int filter(sqlite3_vtab_cursor* base, int number, const char*, int, sqlite3_value** arguments) {
  return guarded([&] {
    const Plan& plan = table_of(base->pVtab).plans[static_cast<std::size_t>(number)];
    const Status status = cursor_of(base).filter(plan, arguments);
    return status.ok() ? SQLITE_OK : fail(base->pVtab, status);
  });
}

int next(sqlite3_vtab_cursor* base) {
  return guarded([&] {
    const Status status = cursor_of(base).next();
    return status.ok() ? SQLITE_OK : fail(base->pVtab, status);
  });
}

int is_at_end(sqlite3_vtab_cursor* cursor) { return cursor_of(cursor).is_at_end() ? 1 : 0; }

int column(sqlite3_vtab_cursor* cursor, sqlite3_context* context, int number) {
  return guarded([&] {
    // What an UPDATE leaves as it is need not be read.
    if (sqlite3_vtab_nochange(context) != 0) return SQLITE_OK;
    const Cursor& reader = cursor_of(cursor);
    const auto place = static_cast<std::size_t>(number);
    if (reader.is_noted) table_of(cursor->pVtab).rows_read.note_column(place);
    reader.give_column(context, place);
    return SQLITE_OK;
  });
}

int row_id(sqlite3_vtab_cursor* cursor, sqlite3_int64* out) {
  return guarded([&] {
    *out = cursor_of(cursor).row_id();
    if (cursor_of(cursor).is_noted) cursor_of(cursor).note_row();
    return SQLITE_OK;
  });
}

int update(sqlite3_vtab* base, int count, sqlite3_value** arguments, sqlite3_int64* row) {
  return guarded([&] { return write_row(table_of(base), count, arguments, row); });
}

int rename(sqlite3_vtab* base, const char* name) {
  return guarded([&] {
    VirtualTable& table = table_of(base);
    const auto change = [&]() -> Status {
      FLUGS_ASSIGN(Database * database, table.session.database());
      if (sqlite3_get_autocommit(table.session.db()) == 0)
        return Status(StatusCode::kBusy,
                      "tables of flugs are changed outside of transactions: COMMIT first");
      FLUGS_TRY(table.check());
      const std::lock_guard names(table.session.names());
      FLUGS_TRY(check_new_table(*database, name, table.shape.id));
      const DefinitionChange renaming = table.session.change_definitions();
      FLUGS_TRY(database->rename_table(table.shape.id, name));
      table.shape.name = name;
      return {};
    };
    const Status status = change();
    return status.ok() ? SQLITE_OK : fail(base, status);
  });
}

}  // namespace

int make_table_module(sqlite3* db, Session* session, void (*destroy_session)(void*)) {
  static const sqlite3_module module = [] {
    sqlite3_module m{};
    set_transaction_calls(m);
    m.xCreate = create;
    m.xConnect = connect;
    m.xBestIndex = best_index;
    m.xDisconnect = disconnect;
    m.xDestroy = destroy;
    m.xOpen = open;
    m.xClose = close;
    m.xFilter = filter;
    m.xNext = next;
    m.xEof = is_at_end;
    m.xColumn = column;
    m.xRowid = row_id;
    m.xUpdate = update;
    m.xRename = rename;
    return m;
  }();
  return sqlite3_create_module_v2(db, "flugs", &module, session, destroy_session);
}

}  // namespace flugs::sqlite
