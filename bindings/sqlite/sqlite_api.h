#pragma once

#include <sqlite3ext.h>

// SQLite's functions: in the loadable extension those of the program that loads it, with
// SQLITE_CORE those of the library that is linked.
#ifndef SQLITE_CORE
SQLITE_EXTENSION_INIT3
#endif

/// The entry of the extension `flugs_sqlite`; with SQLITE_CORE a program calls it itself, and
/// `api` may be null.
extern "C" int sqlite3_flugssqlite_init(sqlite3* db, char** error, const sqlite3_api_routines* api);
