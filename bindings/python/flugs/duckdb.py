"""SQL by DuckDB on what this process has open."""

from __future__ import annotations

import os

import duckdb

import flugs
from flugs import _flugs

# DuckDB takes the name of an extension from its file.
EXTENSION = os.path.join(os.path.dirname(os.path.abspath(__file__)), "flugs.duckdb_extension")


def _quoted(name: str, mark: str = '"') -> str:
    return mark + name.replace(mark, mark + mark) + mark


def load(con: duckdb.DuckDBPyConnection) -> None:
    """Loads the extension of flugs into DuckDB. From then on its functions, and `FROM 'x.pool'`,
    show the databases that this process has open, as they are at the moment of each query; they
    open other pools themselves."""
    if not hasattr(_flugs, "_serve_duckdb"):
        raise ImportError("this module of flugs was built without the headers of DuckDB")
    _flugs._serve_duckdb(os.fsencode(EXTENSION))
    con.execute(f"LOAD {_quoted(EXTENSION, chr(39))}")


def show(source: flugs.Database | flugs.Transaction, con: duckdb.DuckDBPyConnection | None,
         name: str | None) -> duckdb.DuckDBPyConnection:
    """A view for each table: Database.to_duckdb, Transaction.to_duckdb."""
    if con is None:
        con = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    load(con)
    views, kind = "", "VIEW"
    if name is not None:
        con.execute(f"ATTACH IF NOT EXISTS ':memory:' AS {_quoted(name)}")
        views = _quoted(name) + ".main."
    elif con.execute("SELECT path FROM duckdb_databases() WHERE database_name = current_database()"
                     " AND path IS NOT NULL").fetchall():
        kind = "TEMP VIEW"  # a file would keep it, and what it names is gone then
    lent, tables = _flugs._lend(source)
    for table in tables:
        con.execute(f"CREATE OR REPLACE {kind} {views}{_quoted(table)} AS FROM "
                    f"flugs_scan({_quoted(lent, chr(39))}, {_quoted(table, chr(39))})")
    return con
