#include "bindings/sqlite/statistics.h"

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "bindings/fields/statistics_fields.h"
#include "bindings/sqlite/errors.h"
#include "bindings/sqlite/session_table.h"
#include "flugs/try.h"

namespace flugs::sqlite {

namespace {

struct Figure {
  std::string table;  ///< empty: of the pool
  const char* name;
  std::variant<std::uint64_t, double, std::string> value;
};
using Figures = std::vector<Figure>;

/// Takes the fields of a struct of figures.
auto collector(const std::string& table, Figures& out) {
  return [&](const char* name, auto value) {
    if constexpr (std::is_convertible_v<decltype(value), std::string_view>)
      out.push_back({table, name, std::string(value)});
    else if constexpr (std::is_floating_point_v<decltype(value)>)
      out.push_back({table, name, static_cast<double>(value)});
    else
      out.push_back({table, name, static_cast<std::uint64_t>(value)});
  };
}

void add_pool(const Database& database, Figures& out) {
  static const std::string kNoTable;
  const auto collect = collector(kNoTable, out);
  collect("path", database.path());
  fields::each_field(database.statistics(), collect);
}

struct StatisticsCursor : public sqlite3_vtab_cursor {
  StatisticsCursor() : sqlite3_vtab_cursor() {}
  Figures figures;
  std::size_t at = 0;
};

StatisticsCursor& figures_of(sqlite3_vtab_cursor* cursor) {
  return *static_cast<StatisticsCursor*>(cursor);
}

int make_figures(sqlite3* db, void* context, int, const char* const*, sqlite3_vtab** table,
                 char**) {
  return guarded([&] {
    const int code = sqlite3_declare_vtab(db, "CREATE TABLE x(\"table\" TEXT, name TEXT, value)");
    if (code != SQLITE_OK) return code;
    *table = new SessionTable(*static_cast<Session*>(context));
    return SQLITE_OK;
  });
}

int drop_figures(sqlite3_vtab* table) {
  delete static_cast<SessionTable*>(table);
  return SQLITE_OK;
}

int plan_figures(sqlite3_vtab*, sqlite3_index_info* info) {
  info->estimatedCost = 1000;
  info->estimatedRows = 100;
  return SQLITE_OK;
}

int open_figures(sqlite3_vtab*, sqlite3_vtab_cursor** cursor) {
  return guarded([&] {
    *cursor = new StatisticsCursor;
    return SQLITE_OK;
  });
}

int close_figures(sqlite3_vtab_cursor* cursor) {
  delete &figures_of(cursor);
  return SQLITE_OK;
}

int filter_figures(sqlite3_vtab_cursor* base, int, const char*, int, sqlite3_value**) {
  return guarded([&] {
    StatisticsCursor& cursor = figures_of(base);
    cursor.figures.clear();
    cursor.at = 0;
    const auto collect = [&]() -> Status {
      FLUGS_ASSIGN(Database * database,
                   static_cast<SessionTable*>(base->pVtab)->session.database());
      add_pool(*database, cursor.figures);
      for (const auto& [table, reason] : static_cast<SessionTable*>(base->pVtab)->session.not_shown)
        cursor.figures.push_back({table, "not_shown", reason});
      for (const TableId table : database->tables())
        if (const Result<TableStatistics> of = database->table_statistics(table); of.ok())
          fields::each_field(*of, collector(of->name, cursor.figures));
      return {};
    };
    const Status status = collect();
    return status.ok() ? SQLITE_OK : fail(base->pVtab, status);
  });
}

int next_figure(sqlite3_vtab_cursor* cursor) {
  ++figures_of(cursor).at;
  return SQLITE_OK;
}

int at_end_of_figures(sqlite3_vtab_cursor* base) {
  const StatisticsCursor& cursor = figures_of(base);
  return cursor.at >= cursor.figures.size() ? 1 : 0;
}

int column_of_figure(sqlite3_vtab_cursor* base, sqlite3_context* context, int column) {
  const StatisticsCursor& cursor = figures_of(base);
  const Figure& figure = cursor.figures[cursor.at];
  const auto text = [&](const std::string& of) {
    sqlite3_result_text64(context, of.data(), of.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  };
  if (column == 0 && figure.table.empty())
    sqlite3_result_null(context);
  else if (column == 0)
    text(figure.table);
  else if (column == 1)
    text(figure.name);
  else if (const auto* number = std::get_if<std::uint64_t>(&figure.value))
    sqlite3_result_int64(context, static_cast<sqlite3_int64>(*number));
  else if (const auto* real = std::get_if<double>(&figure.value))
    sqlite3_result_double(context, *real);
  else
    text(std::get<std::string>(figure.value));
  return SQLITE_OK;
}

int row_id_of_figure(sqlite3_vtab_cursor* cursor, sqlite3_int64* out) {
  *out = static_cast<sqlite3_int64>(figures_of(cursor).at);
  return SQLITE_OK;
}

int refuse_write(sqlite3_vtab* table, int, sqlite3_value**, sqlite3_int64*) {
  return guarded([&] {
    return fail(table, Status(StatusCode::kReadOnly, "flugs_statistics only gives figures"));
  });
}

}  // namespace

int make_statistics_module(sqlite3* db, Session* session) {
  static const sqlite3_module module = [] {
    sqlite3_module m{};
    set_transaction_calls(m);
    m.xCreate = make_figures;
    m.xConnect = make_figures;
    m.xBestIndex = plan_figures;
    m.xDisconnect = drop_figures;
    m.xDestroy = drop_figures;
    m.xOpen = open_figures;
    m.xClose = close_figures;
    m.xFilter = filter_figures;
    m.xNext = next_figure;
    m.xEof = at_end_of_figures;
    m.xColumn = column_of_figure;
    m.xRowid = row_id_of_figure;
    m.xUpdate = refuse_write;
    return m;
  }();
  return sqlite3_create_module_v2(db, "flugs_statistics", &module, session, nullptr);
}

}  // namespace flugs::sqlite
