/* The C ABI of flugs: docs/c_api.md. Made from bindings/c/api_spec by bindings/c/api.py. */
/* clang-format off */
#pragma once

#include "flugs/arrow_abi.h"
#include "flugs/c/types.h"

/* A function is "stable" or a "draft". A stable one keeps its name, its parameters and what it does
 * as long as the library is libflugs_c.so.0. A draft may change or go with any version; it is
 * declared only for programs that define FLUGS_DRAFTS. */
#define FLUGS_API __attribute__((visibility("default")))
#define FLUGS_MUST_USE __attribute__((warn_unused_result))
#define FLUGS_DEPRECATED(instead) __attribute__((deprecated(instead)))

#ifdef __cplusplus
extern "C" {
#endif

/* The library and its errors. */

/** The version of the library, such as "0.1.0". */
FLUGS_API const char* flugs_version(void);

/** The version of the pools that the library makes and opens. */
FLUGS_API uint32_t flugs_pool_format_version(void);

/** NULL has FLUGS_OK. */
FLUGS_API flugs_code flugs_error_code(const flugs_error* error);

/** For people, never NULL: the name of the code, and what is wrong, if that says more. Valid
 * until the error is freed, as the names that the next four return. */
FLUGS_API const char* flugs_error_message(const flugs_error* error);

/** The name of the table that the failure is about; NULL: none, or not known. */
FLUGS_API const char* flugs_error_table(const flugs_error* error);

/** The name of the key that refused; if no part of the table did, of the key by which the call
 * looked. NULL: none, or not known. */
FLUGS_API const char* flugs_error_key(const flugs_error* error);

/** The name of the column that refused; NULL: none. */
FLUGS_API const char* flugs_error_column(const flugs_error* error);

/** The name of the foreign key or check that refused; NULL: none. */
FLUGS_API const char* flugs_error_constraint(const flugs_error* error);

/** NULL is allowed, as in every function whose name ends in `_free`. */
FLUGS_API void flugs_error_free(flugs_error* error);

/** Such as "conflict"; "unknown" for a number that is no code. */
FLUGS_API const char* flugs_code_name(flugs_code code);

/** Frees a text that a function gave to its caller by a `char** out`. */
FLUGS_API void flugs_text_free(char* text);

/* Values. */

/* Options and databases. */

/** Makes options without any. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_options_create(flugs_options** out);

/** Sets an option. Both texts are copied. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_options_set(
    flugs_options* options, const char* name, const char* value);

/** Frees them. */
FLUGS_API void flugs_options_free(flugs_options* options);

/** Opens a pool, or makes it. NULL as path: a database in memory, which ends with the process.
 * Options: mode (open, create, open-or-create, read-only) [open-or-create], max_bytes,
 * segment_bytes, index_place (pool, dram), ready (first-answer, indexes-built),
 * accept_lost_lines, crash_ring, slots_max, threads (that rebuild indexes), merge (true, false),
 * grow_ahead_bytes, warm_bytes_max, journal_bytes, clock (automatic, counter, processors).
 * docs/options.md explains them. Fails as Database::open does. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_database_open(
    const char* path, const flugs_options* options, flugs_database** out);

/** Closes the pool. Open transactions of this handle are ended first, without effect; streams
 * and walks of theirs fail from then on. A call that another thread is making is cancelled, if
 * it belongs to a transaction, or waited for. All handles stay valid until they are freed: their
 * functions fail. Fails with: FLUGS_BUSY (the call comes from within a stream that an insert of
 * this thread is reading), FLUGS_INVALID_ARGUMENT (closed before). */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_database_close(flugs_database* database);

/** Closes the pool if it is open, and frees the handle. No other thread may be in a call with
 * it. Handles of its transactions, look-ups and walks stay valid until they are freed. */
FLUGS_API void flugs_database_free(flugs_database* database);

/** Returns when all that is committed now is durable. Only commits with the option `durability`
 * need it. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_database_sync(flugs_database* database);

#ifdef FLUGS_DRAFTS
/** Moves rows of a table to the read-optimised main store and gives space back. `out`, unless it
 * is NULL, gets a report in JSON. Options: scope (full-chunks, everything) [full-chunks],
 * threads, dead_percent, patience_ms, ends_old_transactions. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_database_merge(
    flugs_database* database, uint32_t table, const flugs_options* options, char** out);
#endif

/** Checks every entry, row and key. Takes long; no thread may write meanwhile. Fails with:
 * FLUGS_CORRUPT (the message says what and where), FLUGS_BUSY (transactions are open). */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_database_check(flugs_database* database);

#ifdef FLUGS_DRAFTS
/** Counters and sizes in JSON: an object with the fields of flugs::Statistics, and a list
 * `tables` with those of flugs::TableStatistics. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_database_statistics(
    flugs_database* database, char** out);
#endif

/* Tables. */

/** A table of this name without columns. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_schema_create(const char* table, flugs_schema** out);

/** Adds a column, which may be NULL. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_schema_column(
    flugs_schema* schema, const char* name, flugs_type type);

/** Of the last column. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_schema_not_null(flugs_schema* schema);

/** Of the last column, a decimal: digits after the point, 0 to 18. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_schema_scale(flugs_schema* schema, int32_t digits);

/** Of the last column: what a row gets that is inserted without it. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_schema_default(
    flugs_schema* schema, const flugs_value* value);

/** Of the last column, an integer: rows that are inserted with NULL get numbers. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_schema_auto_increment(flugs_schema* schema);

/** Of the last column. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_schema_encoding(
    flugs_schema* schema, flugs_encoding encoding);

/** Of the last column: about how many distinct values it will have. A hint. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_schema_expect_distinct(
    flugs_schema* schema, uint32_t values);

/** Its columns become NOT NULL. The key's name is "primary". */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_schema_primary_key(
    flugs_schema* schema, const char* const* columns, size_t column_count);

/** A key that finds at most one row. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_schema_unique_key(
    flugs_schema* schema, const char* name, const char* const* columns, size_t column_count);

/** A key that is not unique, and ordered. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_schema_key(
    flugs_schema* schema, const char* name, const char* const* columns, size_t column_count);

/** Of the last key: it can also be walked in order. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_schema_ordered(flugs_schema* schema);

/** Of the last key: only its first columns are hashed. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_schema_hash_prefix(
    flugs_schema* schema, uint32_t columns);

/** A condition that every row must meet. Takes over `condition` (flugs_expr). */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_schema_check(
    flugs_schema* schema, const char* name, flugs_expr* condition);

/** Refers to a unique key of a table; `key` NULL: its primary key. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_schema_foreign_key(
    flugs_schema* schema, const char* name, const char* const* columns, size_t column_count, const
    char* table, const char* key, flugs_reference_action on_delete, flugs_reference_action
    on_update);

#ifdef FLUGS_DRAFTS
/** Sets the layout of the table's delta. The default is FLUGS_DELTA_ROWS. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_schema_delta_layout(
    flugs_schema* schema, flugs_delta_layout layout);
#endif

#ifdef FLUGS_DRAFTS
/** Adds a group of columns, which lie side by side in the delta, and sets the layout
 * FLUGS_DELTA_COLUMNS. Each column is in one group at most. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_schema_column_group(
    flugs_schema* schema, const char* const* columns, size_t column_count);
#endif

/** Frees it. */
FLUGS_API void flugs_schema_free(flugs_schema* schema);

/** Makes the table, durably, and gives its id, by which other functions name it until it is
 * dropped or the database is closed. Ids start at 1. `out` may be NULL. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_table_create(
    flugs_database* database, const flugs_schema* schema, uint32_t* out);

/** The table of this name, which must have what the schema says; else makes it. A program may
 * call it at each start. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_table_ensure(
    flugs_database* database, const flugs_schema* schema, uint32_t* out);

/** Waits up to one second for all open transactions, then fails with FLUGS_BUSY. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_table_drop(flugs_database* database, uint32_t table);

#ifdef FLUGS_DRAFTS
/** Sets the layout of chunks that are begun from then on. Rows in older chunks, and rows that
 * take free places there, keep theirs until a merge moves them to main. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_table_set_delta_layout(
    flugs_database* database, uint32_t table, flugs_delta_layout layout);
#endif

#ifdef FLUGS_DRAFTS
/** As flugs_table_set_delta_layout with FLUGS_DELTA_COLUMNS, with the groups of columns of this
 * schema. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_table_set_column_groups(
    flugs_database* database, uint32_t table, const flugs_schema* groups);
#endif

/** The id of the table of this name. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_table_find(
    flugs_database* database, const char* name, uint32_t* out);

/** The ids of all tables, in the order of creation: `out` gets their number, and `tables` the
 * first ones, as far as `capacity` allows. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_table_list(
    flugs_database* database, uint32_t* tables, size_t capacity, size_t* out);

#ifdef FLUGS_DRAFTS
/** The schema in JSON: name, delta_layout, column_groups, columns, keys, checks and foreign
 * keys. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_table_describe(
    flugs_database* database, uint32_t table, char** out);
#endif

/** The schema of a stream of all columns: a struct. Its caller releases it. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_table_arrow_schema(
    flugs_database* database, uint32_t table, struct ArrowSchema* out);

/* Transactions. */

/** Fails with: FLUGS_TOO_MANY_TRANSACTIONS, FLUGS_READ_ONLY. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_transaction_begin(
    flugs_database* database, flugs_access access, flugs_isolation isolation, flugs_transaction**
    out);

/** Makes all writes durable, then visible. Ends the transaction, also when it fails: then
 * nothing took effect. Only an option that is wrong leaves it open. Options: durability
 * (on-return, soon, process-crash) [on-return], soon_ms. Fails with: FLUGS_CONFLICT,
 * FLUGS_OUT_OF_SPACE, FLUGS_CANCELLED. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_transaction_commit(
    flugs_transaction* transaction, const flugs_options* options);

/** Ends the transaction without effect. Nothing happens if it has ended. Fails with: FLUGS_BUSY
 * (a call with it is running). */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_transaction_abort(flugs_transaction* transaction);

/** Asks the transaction to end, from any thread, also while a call with it is running: that
 * call, or the next one, fails with FLUGS_CANCELLED. The handle must not be freed meanwhile.
 * Fails with: FLUGS_NOT_FOUND (it has ended). */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_transaction_cancel(flugs_transaction* transaction);

/** Ends the transaction without effect if it is open, and frees the handle. Streams and walks of
 * it stay valid until they are freed, and fail. Do not call it from within a stream that an
 * insert of this transaction reads: nothing happens then. */
FLUGS_API void flugs_transaction_free(flugs_transaction* transaction);

/* Rows. */

/** Adds a row: a value for each column, in the order of the schema. `out`, unless it is NULL,
 * gets the number of the row in the auto-increment column, or 0. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_insert(
    flugs_transaction* transaction, uint32_t table, const flugs_value* row, size_t column_count,
    int64_t* out);

/** Adds many rows, which lie one after the other, or none. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_insert_rows(
    flugs_transaction* transaction, uint32_t table, const flugs_value* rows, size_t column_count,
    size_t row_count);

/** Adds all rows that an Arrow stream gives, column by column, or none. Fields go to the columns
 * of their names; flugs/arrow_import.h has the types. The stream is released before the call
 * returns, also when it fails. It may be a stream of the same transaction. `out`, unless it is
 * NULL, gets the number of rows. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_insert_arrow(
    flugs_transaction* transaction, uint32_t table, struct ArrowArrayStream* stream, uint64_t* out);

/** `key` is the name of a unique key; NULL: the primary key. The columns are those that the
 * calls below read or write, in this order. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_lookup_create(
    flugs_database* database, uint32_t table, const char* key, const char* const* columns, size_t
    column_count, flugs_lookup** out);

/** Frees it. */
FLUGS_API void flugs_lookup_free(flugs_lookup* lookup);

/** Reads the columns of the row whose key has these values. When it fails, `out` is as before.
 * Fails with: FLUGS_NOT_FOUND. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_find(
    flugs_transaction* transaction, const flugs_lookup* lookup, const flugs_value* key, size_t
    key_count, flugs_value* out, size_t column_count);

/** Gives the columns of the row new values. Fails as flugs_remove does. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_update(
    flugs_transaction* transaction, const flugs_lookup* lookup, const flugs_value* key, size_t
    key_count, const flugs_value* columns, size_t column_count);

/** Adds a whole row; if one with its key exists, gives the columns of the look-up (without any:
 * all outside of the key) the values of `row`. `out`, unless it is NULL, gets 1 if the row was
 * added. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_upsert(
    flugs_transaction* transaction, const flugs_lookup* lookup, const flugs_value* row, size_t
    column_count, int32_t* out);

/** Deletes the row. Fails with: FLUGS_NOT_FOUND, FLUGS_CONFLICT. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_remove(
    flugs_transaction* transaction, const flugs_lookup* lookup, const flugs_value* key, size_t
    key_count);

#ifdef FLUGS_DRAFTS
/** Changes every row for which `where` is true; `values` are computed from the row as it was.
 * Takes over the expressions. `out` may be NULL, or gets the number of rows. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_update_where(
    flugs_transaction* transaction, uint32_t table, flugs_expr* where, const char* const* columns,
    flugs_expr* const* values, size_t column_count, uint64_t* out);
#endif

#ifdef FLUGS_DRAFTS
/** Deletes every row for which `where` is true. As flugs_update_where. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_remove_where(
    flugs_transaction* transaction, uint32_t table, flugs_expr* where, uint64_t* out);
#endif

/** `key` NULL: the primary key; `range` NULL: all rows. The values of the range are copied. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_walk_create(
    flugs_transaction* transaction, uint32_t table, const char* key, const flugs_range* range,
    const char* const* columns, size_t column_count, flugs_walk** out);

/** Puts up to `row_capacity` rows of the walk's columns one after the other into `values`, and
 * their number into `out`; 0: there are no more. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_walk_next(
    flugs_walk* walk, flugs_value* values, size_t row_capacity, size_t* out);

/** Frees it. */
FLUGS_API void flugs_walk_free(flugs_walk* walk);

/* Expressions. */

/** A column of the input, by name. */
FLUGS_API flugs_expr* flugs_expr_column(const char* name);

/** A constant; its text is copied. */
FLUGS_API flugs_expr* flugs_expr_constant(const flugs_value* value);

/** An operation. Takes over the arguments, but not the array. */
FLUGS_API flugs_expr* flugs_expr_op(
    flugs_op op, flugs_expr* const* arguments, size_t argument_count);

/** The same with one argument. */
FLUGS_API flugs_expr* flugs_expr_unary(flugs_op op, flugs_expr* argument);

/** The same with two. */
FLUGS_API flugs_expr* flugs_expr_binary(flugs_op op, flugs_expr* left, flugs_expr* right);

/** The same expression under another name, which a result's column gets. Takes it over. */
FLUGS_API flugs_expr* flugs_expr_named(flugs_expr* expression, const char* name);

/** The same expression once more. */
FLUGS_API flugs_expr* flugs_expr_copy(const flugs_expr* expression);

#ifdef FLUGS_DRAFTS
/** For people. Does not take the expression over. Fails with what is wrong in it. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_expr_text(const flugs_expr* expression, char** out);
#endif

/** Frees one that nothing has taken over. */
FLUGS_API void flugs_expr_free(flugs_expr* expression);

/* Queries and Arrow streams. */

/** All rows and columns of a table. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_query_table(const char* table, flugs_query** out);

/** The same query once more, to which other steps may be added. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_query_copy(const flugs_query* query, flugs_query** out);

/** Adds a step: the rows for which the condition is true. After a group: HAVING. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_query_where(flugs_query* query, flugs_expr* condition);

/** Adds a step: these outputs, and no others. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_query_select(
    flugs_query* query, flugs_expr* const* outputs, size_t output_count);

/** The same for columns by name. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_query_select_columns(
    flugs_query* query, const char* const* columns, size_t column_count);

/** Adds a step: all columns, their names preceded by the prefix and a dot. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_query_as(flugs_query* query, const char* prefix);

/** Adds a step: joins with the rows of `right`, as it is now, by equal keys; `also`, unless it
 * is NULL, must be true as well. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_query_join(
    flugs_query* query, flugs_join kind, const flugs_query* right, flugs_expr* const* left_keys,
    flugs_expr* const* right_keys, size_t key_count, flugs_expr* also);

/** Adds a step: a row for each combination of keys; without keys one row. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_query_group_by(
    flugs_query* query, flugs_expr* const* keys, size_t key_count, const flugs_aggregate*
    aggregates, size_t aggregate_count);

/** Adds a step: equal rows come once. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_query_distinct(flugs_query* query);

/** Adds a step: sorts. `descending` has a 1 for each key to sort downwards; NULL: none. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_query_order_by(
    flugs_query* query, flugs_expr* const* keys, const uint8_t* descending, size_t key_count);

/** Adds a step: at most `rows` rows, after the first `offset` rows. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_query_limit(
    flugs_query* query, uint64_t rows, uint64_t offset);

/** Begins to run the query, whose rows the caller pulls from an Arrow stream, and releases it at
 * the end. flugs/arrow_export.h has the types. A call with the stream is a call with the
 * transaction: EBUSY if another thread is in one. The stream fails with EINVAL when the
 * transaction has ended; arrays that it gave stay valid. Options: threads, memory_bytes_max,
 * temporary_folder (for the files of groups and of rows to sort beyond that memory). Fails with:
 * FLUGS_NOT_FOUND, FLUGS_INVALID_ARGUMENT, FLUGS_OVERFLOW, FLUGS_OUT_OF_MEMORY, FLUGS_IO_ERROR
 * (a temporary file), FLUGS_CANCELLED. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_query_stream(
    const flugs_query* query, flugs_transaction* transaction, const flugs_options* options, struct
    ArrowArrayStream* out);

#ifdef FLUGS_DRAFTS
/** The plan for people, without running it. */
FLUGS_API FLUGS_MUST_USE flugs_error* flugs_query_explain(
    const flugs_query* query, flugs_transaction* transaction, const flugs_options* options, char**
    out);
#endif

/** Frees it; streams of it go on. */
FLUGS_API void flugs_query_free(flugs_query* query);

#ifdef __cplusplus
}
#endif
