#include "bindings/c/database.h"

#include "bindings/c/json.h"
#include "bindings/c/options.h"
#include "bindings/c/statistics.h"
#include "bindings/c/transaction.h"

namespace flugs::c {

About about(const Database& database, TableId table) {
  const Result<TableSchema> schema = database.schema(table);
  return schema.ok() ? About{schema->name, {}} : About();
}

About about(const Database& database, KeyId key) {
  const Result<TableSchema> schema = database.schema(key.table);
  if (!schema.ok() || key.index >= schema->keys.size()) return about(database, key.table);
  return {schema->name, schema->keys[key.index].name};
}

namespace {

Status read_open_options(const flugs_options* given, OpenOptions& out) {
  OptionReader reader(given);
  reader.choice("mode",
                {{"open", OpenMode::kOpen},
                 {"create", OpenMode::kCreate},
                 {"open-or-create", OpenMode::kOpenOrCreate},
                 {"read-only", OpenMode::kReadOnly}},
                out.mode);
  reader.number("max_bytes", out.max_bytes);
  reader.number("segment_bytes", out.segment_bytes);
  reader.choice("index_place", {{"pool", IndexPlace::kPool}, {"dram", IndexPlace::kDram}},
                out.index_place);
  reader.choice("ready",
                {{"first-answer", Ready::kFirstAnswer}, {"indexes-built", Ready::kIndexesBuilt}},
                out.ready);
  reader.truth("crash_ring", out.crash_ring);
  reader.truth("accept_lost_lines", out.accept_lost_lines);
  reader.number("slots_max", out.slots_max);
  reader.number("threads", out.tuning.recovery_threads);
  reader.truth("merge", out.merge_policy.automatic);
  reader.number("grow_ahead_bytes", out.tuning.grow_ahead_bytes);
  reader.number("warm_bytes_max", out.tuning.warm_bytes_max);
  reader.number("journal_bytes", out.tuning.journal_bytes);
  reader.choice("clock",
                {{"automatic", CommitClock::kAutomatic},
                 {"counter", CommitClock::kCounter},
                 {"processors", CommitClock::kProcessors}},
                out.tuning.clock);
  return reader.finish();
}

Status read_merge_options(const flugs_options* given, MergeOptions& out) {
  OptionReader reader(given);
  reader.choice("scope",
                {{"full-chunks", MergeScope::kFullChunks}, {"everything", MergeScope::kEverything}},
                out.scope);
  reader.number("threads", out.threads);
  reader.number("dead_percent", out.dead_percent);
  reader.milliseconds("patience_ms", out.patience);
  reader.truth("ends_old_transactions", out.ends_old_transactions);
  return reader.finish();
}

/// Whether this thread is in a call with a transaction of the database.
bool is_used_by_this_thread(flugs_database& database) {
  for (Shard& shard : database.shards) {
    const std::lock_guard<std::mutex> lock(shard.mutex);
    for (const flugs_transaction* t = shard.first; t != nullptr; t = t->next)
      if (is_used_here(*t)) return true;
  }
  return false;
}

/// Keeps transactions from beginning. False: an earlier call has done that.
bool close_shards(flugs_database& database) {
  bool was_open = true;
  for (Shard& shard : database.shards) {
    const std::lock_guard<std::mutex> lock(shard.mutex);
    if (&shard == &database.shards.front()) was_open = !shard.is_closed;
    shard.is_closed = true;
  }
  return was_open;
}

flugs_error* close(flugs_database& database) {
  if (is_used_by_this_thread(database))
    return to_c(Status(StatusCode::kBusy, "database: this thread is in a call with a transaction"));
  if (!close_shards(database)) return misuse("database: it is closed");
  end_all(database);
  const std::unique_lock<std::shared_mutex> alone(database.calls);
  database.is_closed = true;
  return to_c(database.core.close());
}

}  // namespace

}  // namespace flugs::c

using flugs::c::guarded;
using flugs::c::no_handle;
using flugs::c::no_pointer;
using flugs::c::to_c;
using flugs::c::with_database;

extern "C" {

flugs_error* flugs_database_open(const char* path, const flugs_options* options,
                                 flugs_database** out) {
  return guarded([&]() -> flugs_error* {
    if (out == nullptr) return no_pointer("out");
    *out = nullptr;
    flugs::OpenOptions open;
    open.in_memory = path == nullptr;
    if (path != nullptr) open.path = path;
    if (flugs_error* error = to_c(flugs::c::read_open_options(options, open))) return error;
    flugs::Result<flugs::Database> database = flugs::Database::open(open);
    if (!database.ok()) return to_c(database.status());
    *out = new flugs_database(*std::move(database));
    return nullptr;
  });
}

flugs_error* flugs_database_close(flugs_database* database) {
  return guarded([&]() -> flugs_error* {
    if (!flugs::c::is_handle(database)) return no_handle("database");
    if (!database->origin.is_here()) return flugs::c::of_parent("database");
    return flugs::c::close(*database);
  });
}

void flugs_database_free(flugs_database* database) {
  if (!flugs::c::is_handle(database) || !database->origin.is_here()) return;
  flugs_error* error = flugs_database_close(database);
  const bool is_in_use = flugs_error_code(error) == FLUGS_BUSY && !database->is_closed;
  flugs_error_free(error);
  if (!is_in_use) delete database;
}

flugs_error* flugs_database_sync(flugs_database* database) {
  return with_database(database, [](flugs::Database& core) {
    return to_c(core.wait_durable(core.durable_token()));
  });
}

flugs_error* flugs_database_merge(flugs_database* database, uint32_t table,
                                  const flugs_options* options, char** out) {
  if (out != nullptr) *out = nullptr;
  return with_database(database, [&](flugs::Database& core) -> flugs_error* {
    flugs::MergeOptions how;
    if (flugs_error* error = to_c(flugs::c::read_merge_options(options, how))) return error;
    const flugs::TableId id(table);
    const flugs::Result<flugs::MergeReport> report = core.merge(id, how);
    if (!report.ok()) return to_c(report.status(), flugs::c::about(core, id));
    if (out != nullptr) *out = flugs::c::copy_of(flugs::c::json_of(*report));
    return nullptr;
  });
}

flugs_error* flugs_database_check(flugs_database* database) {
  return with_database(database, [](flugs::Database& core) { return to_c(core.check()); });
}

flugs_error* flugs_database_statistics(flugs_database* database, char** out) {
  if (out != nullptr) *out = nullptr;
  return with_database(database, [&](flugs::Database& core) -> flugs_error* {
    if (out == nullptr) return no_pointer("out");
    *out = flugs::c::copy_of(flugs::c::json_of_statistics(core));
    return nullptr;
  });
}
}
