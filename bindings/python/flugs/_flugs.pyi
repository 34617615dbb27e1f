"""The engine of flugs. Made by bindings/python/tests/make_stubs.py."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeVar

import duckdb
import pandas
import polars
import pyarrow

from flugs._schema import Column, ForeignKey, Key

T = TypeVar("T")
Row = Mapping[str, Any] | tuple[Any, ...] | list[Any]

class _Stream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class _Array(Protocol):
    def __arrow_c_array__(
        self, requested_schema: object | None = None) -> tuple[object, object]: ...

Arrow = _Stream | _Array

class Expr:
    """
    A value computed for each row: a column, a constant, or a function of expressions. Combine conditions with & | ~.
    """

    def __eq__(self, other: Any) -> Expr: ...  # type: ignore[override]

    def __ne__(self, other: Any) -> Expr: ...  # type: ignore[override]

    def __lt__(self, other: Any) -> Expr: ...

    def __le__(self, other: Any) -> Expr: ...

    def __gt__(self, other: Any) -> Expr: ...

    def __ge__(self, other: Any) -> Expr: ...

    def __and__(self, other: Any) -> Expr: ...

    def __rand__(self, other: Any) -> Expr: ...

    def __or__(self, other: Any) -> Expr: ...

    def __ror__(self, other: Any) -> Expr: ...

    def __add__(self, other: Any) -> Expr: ...

    def __radd__(self, other: Any) -> Expr: ...

    def __sub__(self, other: Any) -> Expr: ...

    def __rsub__(self, other: Any) -> Expr: ...

    def __mul__(self, other: Any) -> Expr: ...

    def __rmul__(self, other: Any) -> Expr: ...

    def __truediv__(self, other: Any) -> Expr: ...

    def __rtruediv__(self, other: Any) -> Expr: ...

    def __mod__(self, other: Any) -> Expr: ...

    def __rmod__(self, other: Any) -> Expr: ...

    def __invert__(self) -> Expr: ...

    def __neg__(self) -> Expr: ...

    def __bool__(self) -> bool: ...

    def __repr__(self) -> str: ...

    def alias(self, name: str) -> Expr:
        """The same under another name."""

    def is_null(self) -> Expr: ...

    def is_not_null(self) -> Expr: ...

    def between(self, low: Any, high: Any) -> Expr:
        """low <= this and this <= high."""

    def is_in(self, values: Iterable[Any]) -> Expr: ...

    def starts_with(self, prefix: str) -> Expr: ...

    def ends_with(self, suffix: str) -> Expr: ...

    def contains(self, part: str) -> Expr: ...

    def substring(self, first: int, length: int) -> Expr:
        """Bytes of a text from `first` on, counted from 1."""

    def like(self, pattern: str, escape: str = '') -> Expr:
        """
        Whether all of a text matches: % is any number of bytes, _ one character. Behind `escape`, one byte, %, _ and itself stand for themselves.
        """

    def matches(self, pattern: str) -> Expr:
        """Whether some part of a text matches a regular expression of RE2."""

    def year(self) -> Expr: ...

    def quarter(self) -> Expr: ...

    def month(self) -> Expr: ...

    def day(self) -> Expr: ...

    def day_of_year(self) -> Expr: ...

    def weekday(self) -> Expr:
        """1 (Monday) to 7 (Sunday)."""

    def hour(self) -> Expr: ...

    def minute(self) -> Expr: ...

    def second(self) -> Expr: ...

    def truncate_time(self, unit: str) -> Expr:
        """
        The beginning of the year, quarter, month, week, day, hour, minute or second in which a time lies.
        """

    def add_months(self, months: Any) -> Expr:
        """So many months later, on the same day or the month's last one."""

    def to_date(self) -> Expr:
        """The day of a timestamp, or of a text like 2026-11-30."""

    def to_timestamp(self) -> Expr:
        """A date's midnight."""

    def length(self) -> Expr:
        """Characters; bytes in a column of bytes."""

    def byte_length(self) -> Expr: ...

    def lower(self) -> Expr:
        """With small letters for A to Z."""

    def upper(self) -> Expr:
        """With large letters for a to z."""

    def trim(self) -> Expr:
        """Without the spaces at both ends."""

    def trim_left(self) -> Expr: ...

    def trim_right(self) -> Expr: ...

    def position(self, part: Any) -> Expr:
        """
        The place of a part, counted in characters from 1; 0 if it is not there.
        """

    def regexp_extract(self, pattern: str, group: int = 0) -> Expr:
        """
        What the first match of a regular expression has for a group; 0: all of the match. Empty if nothing matches.
        """

    def regexp_replace(self, pattern: str, replacement: str, all: bool = False) -> Expr:
        """
        With the first match of a regular expression, or all, replaced. In the replacement a backslash and a digit stand for a group, and 0 for the match.
        """

    def to_text(self) -> Expr: ...

    def first_byte(self) -> Expr: ...

    def absolute(self) -> Expr: ...

    def floor(self) -> Expr: ...

    def ceiling(self) -> Expr: ...

    def round(self, places: int = 0) -> Expr:
        """To decimal places, half away from zero; -2: to hundreds."""

    def square_root(self) -> Expr: ...

    def logarithm(self) -> Expr:
        """The natural one."""

    def exponential(self) -> Expr: ...

    def power(self, exponent: Any) -> Expr: ...

    def quotient(self, divisor: Any) -> Expr:
        """Divides integers and drops the fraction: -7 by 2 is -3, but -4 by //."""

    def to_double(self) -> Expr:
        """A number, or a text that is one, as a double."""

    def to_int64(self) -> Expr:
        """A number without its fraction, or the integer that a text is."""

    def to_decimal(self, scale: int) -> Expr:
        """Rounded half away from zero."""

def concat(*texts: Any) -> Expr:
    """The texts one behind the other."""

def col(name: str) -> Expr:
    """A column of the query's input."""

def lit(value: Any) -> Expr:
    """A constant."""

def case_when(cases: Iterable[tuple[Expr, Any]], otherwise: Any = None) -> Expr:
    """The value of the first case whose condition is true."""

class Aggregate:
    """One figure per group."""

    def alias(self, name: str) -> Aggregate:
        """The same under another name."""

    def where(self, condition: Expr) -> Aggregate:
        """
        The same over the rows for which the condition is true. alias() behind it names it.
        """

def count(of: str | Expr | None = None) -> Aggregate:
    """Counts rows, or the values that are not NULL."""

def count_distinct(of: str | Expr) -> Aggregate: ...

def sum(of: str | Expr) -> Aggregate: ...

def min(of: str | Expr) -> Aggregate: ...

def max(of: str | Expr) -> Aggregate: ...

def avg(of: str | Expr) -> Aggregate: ...

def variance(of: str | Expr) -> Aggregate: ...

def stddev(of: str | Expr) -> Aggregate: ...

def median(of: str | Expr) -> Aggregate: ...

def approx_count_distinct(of: str | Expr) -> Aggregate:
    """
    Counts different values with a standard error of 1.6 %, in little memory.
    """

def quantile(of: str | Expr, q: float) -> Aggregate:
    """
    The first value, in ascending order, with at least the part q of all values at it or before it.
    """

class Query:
    """
    A query: a table and the steps applied to its rows, in the order in which they are written. Each step returns a new query. It runs when its rows are asked for, each time anew.
    """

    def where(self, condition: Expr) -> Query:
        """The rows for which the condition is true."""

    def select(self, *outputs: str | Expr | Iterable[str | Expr]) -> Query:
        """The given outputs and no others."""

    def prefixed(self, prefix: str) -> Query:
        """All columns, their names preceded by `prefix` and a dot."""

    def group_by(self, *keys: str | Expr | Iterable[str | Expr], agg: Aggregate | Iterable[Aggregate]) -> Query:
        """A row for each combination of keys; without keys one row."""

    def distinct(self) -> Query:
        """Each row once."""

    def order_by(self, *keys: str | Expr | Iterable[str | Expr], descending: bool | Iterable[bool] = False) -> Query:
        """Sorts the rows."""

    def limit(self, rows: int, offset: int = 0) -> Query:
        """At most `rows` rows, after the first `offset`."""

    def join(self, right: Query, on: str | Iterable[str | tuple[str | Expr, str | Expr]], how: str = 'inner', also: Expr | None = None) -> Query:
        """
        Each row with each row of `right` that has equal keys. `how`: 'inner', 'left', 'semi' (rows with a partner) or 'anti' (rows without one).
        """

    def to_arrow(self) -> pyarrow.Table:
        """All rows as a pyarrow.Table."""

    def to_polars(self) -> polars.DataFrame:
        """All rows as a polars.DataFrame."""

    def to_pandas(self) -> pandas.DataFrame:
        """All rows as a pandas.DataFrame, by way of pyarrow."""

    def run(self, threads: int = 0, memory_bytes_max: int = 4294967296, temporary_folder: str = '', runs_as_written: bool = False) -> Result:
        """
        Begins to run the query: a Result gives its rows once, and can be told how to run it. What groups and sorted rows take beyond `memory_bytes_max` goes to files without names in `temporary_folder`; empty: the system's. Conditions go down to the tables, and inner joins run in the order that promises to be the fastest, unless `runs_as_written`.
        """

    def explain(self) -> str:
        """The plan, without running it."""

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows, as tuples."""

    def fetchone(self) -> tuple[Any, ...] | None:
        """The first row, or None."""

    def dicts(self) -> Iterator[dict[str, Any]]:
        """The rows as dicts, one by one."""

    def __iter__(self) -> Iterator[tuple[Any, ...]]: ...

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows for any library that reads Arrow."""

class Batch:
    """Some rows of a result, for a library that reads Arrow."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

class Batches:
    """The batches of a result."""

    def __iter__(self) -> Iterator[Batch]: ...

    def __next__(self) -> Batch: ...

class Result:
    """
    The rows of a query, which are given once: as an iterator of tuples, or to a library that reads Arrow.
    """

    def to_arrow(self) -> pyarrow.Table:
        """All rows as a pyarrow.Table."""

    def to_polars(self) -> polars.DataFrame:
        """All rows as a polars.DataFrame."""

    def to_pandas(self) -> pandas.DataFrame:
        """All rows as a pandas.DataFrame, by way of pyarrow."""

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that are left."""

    def fetchmany(self, size: int = 1) -> list[tuple[Any, ...]]:
        """The next rows, at most `size`."""

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row, or None."""

    def __iter__(self) -> Iterator[tuple[Any, ...]]: ...

    def __next__(self) -> tuple[Any, ...]: ...

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows for any library that reads Arrow."""

    def batches(self) -> Iterator[Batch]:
        """
        The rows in batches of up to 65,536, each with `__arrow_c_array__`. A batch whose rows were taken one by one is taken to its end first.
        """

    def explain(self) -> str:
        """
        The plan, with figures of what has been done so far, also after the last row. Empty if the result was closed, or its transaction ended, before that.
        """

    def close(self) -> None:
        """Gives up the rows that are left."""

    def __enter__(self) -> Result: ...

    def __exit__(self, type: object, value: object, traceback: object) -> bool: ...

class Rows:
    """Rows of a key, one by one, as dicts."""

    def __iter__(self) -> Iterator[dict[str, Any]]: ...

    def __next__(self) -> dict[str, Any]: ...

class Table:
    """A table. Each call has a transaction of its own."""

    @property
    def name(self) -> str: ...

    @property
    def schema(self) -> dict[str, Column]:
        """The columns by name."""

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""

    @property
    def keys(self) -> dict[str, tuple[str, ...]]:
        """The names of the keys, and their columns."""

    @property
    def layout(self) -> str | list[list[str]]:
        """Where rows lie that are not merged yet: 'rows' or 'columns'."""

    def __repr__(self) -> str: ...

    def get(self, values: Any, key: str | None = None) -> dict[str, Any] | None:
        """The row whose unique key has these values, or None."""

    def find(self, values: Any, key: str | None = None) -> dict[str, Any]:
        """As get; raises NotFound if there is no such row."""

    def get_many(self, keys: Iterable[Any], key: str | None = None) -> list[dict[str, Any] | None]:
        """For each of the keys what get gives: see Transaction.get_many."""

    def rows(self, key: str | None = None, *, prefix: Any = None, lower: Any = None, upper: Any = None, reverse: bool = False, limit: int | None = None) -> Rows:
        """Rows as dicts; see Transaction.rows."""

    def query(self) -> Query:
        """All rows of the table."""

    def __len__(self) -> int: ...

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """All rows, for any library that reads Arrow."""

    def insert(self, row: Row) -> int | None:
        """
        Adds a row, and commits. Returns its number, if the table gives numbers.
        """

    def insert_rows(self, rows: Iterable[Row] | Arrow) -> int:
        """
        Adds all rows or, if one fails, none, and commits: see Transaction.insert_rows.
        """

    def update(self, values: Any, changes: Mapping[str, Any], key: str | None = None) -> None:
        """Changes the row with these values of a unique key, and commits."""

    def delete(self, values: Any, key: str | None = None) -> None:
        """Deletes the row with these values of a unique key, and commits."""

    def upsert(self, row: Row, changes: Mapping[str, Any] | None = None, key: str | None = None) -> bool:
        """
        Inserts the row or changes the one that is there, and commits. Whether it inserted.
        """

    def add(self, values: Any, column: str, amount: Any, key: str | None = None) -> Any:
        """
        Adds to an integer or decimal column, and commits. Returns the sum, which is durable then. Any thread may call it. Raises NotFound, Overflow, Conflict, and what a commit raises.
        """

    def update_where(self, where: Expr, changes: Mapping[str, Any]) -> int:
        """
        Changes every row for which the condition is true or, if one fails, none, and commits: see Transaction.update_where. Returns the number of rows, whose changes are durable then. Any thread may call it; others run meanwhile. Raises Conflict, ConstraintViolated, AlreadyExists, Overflow, and what a commit raises.
        """

    def delete_where(self, where: Expr) -> int:
        """
        Deletes every row for which the condition is true or, if one fails, none, and commits. Returns their number; they are durably gone then. Any thread may call it; others run meanwhile. Raises Conflict, ConstraintViolated, and what a commit raises.
        """

    def to_arrow(self) -> pyarrow.Table:
        """All rows as a pyarrow.Table."""

    def to_polars(self) -> polars.DataFrame:
        """All rows as a polars.DataFrame."""

    def to_pandas(self) -> pandas.DataFrame:
        """All rows as a pandas.DataFrame, by way of pyarrow."""

    def lazy(self) -> polars.LazyFrame:
        """
        The table as a polars.LazyFrame, which DuckDB reads, too: columns and filters that it is asked for are left to flugs. Each collect has a transaction of its own.
        """

class Transaction:
    """
    A unit of work on one snapshot of the database. As a context manager it commits at the end of the block, and aborts when an exception leaves it.
    """

    def commit(self, durability: str = 'on_return', soon: float = 0.01) -> None:
        """
        Makes all writes durable, then visible. Ends the transaction, also when it fails.
        """

    def abort(self) -> None:
        """Ends the transaction without effect, if it has not ended."""

    def __enter__(self) -> Transaction: ...

    def __exit__(self, type: object, value: object, traceback: object) -> bool: ...

    def set_time_limit(self, seconds: float) -> None:
        """Cancels the transaction if it is still open then."""

    @property
    def state(self) -> str:
        """'open', 'committed', 'aborted' or 'closed'."""

    @property
    def snapshot(self) -> int:
        """The time-stamp of the state that it reads."""

    def to_duckdb(self, con: duckdb.DuckDBPyConnection | None = None, *, name: str | None = None) -> duckdb.DuckDBPyConnection:
        """
        As Database.to_duckdb, but the views show what the transaction sees, its own writes included, until it ends.
        """

    def query(self, table: str | Table) -> Query:
        """All rows of a table, as this transaction sees it."""

    def rows(self, table: str | Table, key: str | None = None, *, prefix: Any = None, lower: Any = None, upper: Any = None, reverse: bool = False, limit: int | None = None) -> Rows:
        """
        Rows as dicts: by a key, those whose key begins with `prefix`, or lies from `lower` on and before `upper`; without a key all rows, in no order.
        """

    def get(self, table: str | Table, values: Any, key: str | None = None) -> dict[str, Any] | None:
        """The row whose unique key has these values, or None."""

    def find(self, table: str | Table, values: Any, key: str | None = None) -> dict[str, Any]:
        """As get; raises NotFound if there is no such row."""

    def get_many(self, table: str | Table, keys: Iterable[Any], key: str | None = None) -> list[dict[str, Any] | None]:
        """
        For each of the keys what get gives. Quicker than many calls of get, and other threads run meanwhile.
        """

    def insert(self, table: str | Table, row: Row) -> int | None:
        """
        Adds a row: a dict, or a tuple with a value for each column. Returns its number if the table has an auto-increment column.
        """

    def insert_rows(self, table: str | Table, rows: Iterable[Row] | Arrow) -> int:
        """
        Adds all rows or, if one fails, none: an iterable of rows, or anything that gives Arrow, such as a frame of polars, column by column. Returns their number.
        """

    def update(self, table: str | Table, values: Any, changes: Mapping[str, Any], key: str | None = None) -> None:
        """Gives columns of the row with these values of a unique key new values."""

    def delete(self, table: str | Table, values: Any, key: str | None = None) -> None:
        """Deletes the row with these values of a unique key."""

    def upsert(self, table: str | Table, row: Row, changes: Mapping[str, Any] | None = None, key: str | None = None) -> bool:
        """
        Inserts the row, or makes the changes to the one that has its key: without changes, the columns of the row that are given. Whether it inserted.
        """

    def lock(self, table: str | Table, values: Any, key: str | None = None, wait: float = 1.0) -> dict[str, Any]:
        """
        As find, and locks the row until the transaction ends. Waits `wait` seconds for it at most.
        """

    def add(self, table: str | Table, values: Any, column: str, amount: Any, key: str | None = None) -> Any:
        """Adds to an integer or decimal column, and returns the sum."""

    def update_where(self, table: str | Table, where: Expr, changes: Mapping[str, Any]) -> int:
        """
        Changes every row for which the condition is true; values may be expressions of the row's columns. Returns the number of rows.
        """

    def delete_where(self, table: str | Table, where: Expr) -> int:
        """
        Deletes every row for which the condition is true. Returns their number.
        """

    def savepoint(self) -> Savepoint:
        """Names this moment."""

class Savepoint:
    """
    A moment within a transaction, to which it can go back. As a context manager: an exception in the block undoes what the block wrote.
    """

    def rollback(self) -> None:
        """Undoes all writes of the transaction since then. The savepoint stays."""

    def release(self) -> None:
        """Forgets the savepoint, and keeps the writes."""

    def __enter__(self) -> Savepoint: ...

    def __exit__(self, type: object, value: object, traceback: object) -> bool: ...

class Database:
    """
    An open database. As a context manager it is closed at the end of the block.
    """

    def table(self, name: str) -> Table: ...

    def __getitem__(self, name: str) -> Table: ...

    def __contains__(self, name: str) -> bool: ...

    def tables(self) -> list[str]:
        """The names of all tables."""

    def to_duckdb(self, con: duckdb.DuckDBPyConnection | None = None, *, name: str | None = None) -> duckdb.DuckDBPyConnection:
        """
        Shows the tables to DuckDB, in a connection that it has or makes: a view for each, by its name alone, or in the catalogue `name`. Each query sees what is committed when it begins.
        """

    def begin(self, *, read_only: bool = False, isolation: str = 'snapshot') -> Transaction:
        """
        Begins a transaction: `with db.begin() as t:` commits at the end of the block.
        """

    def run(self, work: Callable[[Transaction], T], *, read_only: bool = False, isolation: str = 'snapshot', time_limit: float = 10.0) -> T:
        """Calls `work` with a transaction, and commits; again after a conflict."""

    def query(self, table: str | Table) -> Query:
        """All rows of a table."""

    def merge(self, table: str | Table, *, everything: bool = True, patience: float = 1.0) -> dict[str, int]:
        """Moves the rows of a table into the packed columns of main."""

    def statistics(self) -> dict[str, Any]: ...

    def check(self) -> None:
        """Checks every table; no transaction may be open."""

    def close(self) -> None:
        """
        Ends all transactions and results, and closes the database. What came from it raises Closed from then on.
        """

    @property
    def is_open(self) -> bool: ...

    @property
    def path(self) -> str: ...

    def __enter__(self) -> Database: ...

    def __exit__(self, type: object, value: object, traceback: object) -> bool: ...

    def create_table(self, name: str, columns: Mapping[str, Column], *, if_not_exists: bool = False, primary_key: str | Iterable[str] | Key | None = None, unique: Mapping[str, str | Iterable[str] | Key] | None = None, keys: Mapping[str, str | Iterable[str] | Key] | None = None, checks: Mapping[str, Expr] | None = None, foreign_keys: Mapping[str, ForeignKey] | None = None, layout: str | Iterable[Iterable[str]] = 'rows') -> Table:
        """
        Creates a table. With `if_not_exists` a table that is there must have these columns and keys. With `layout` 'columns', rows that are not merged yet have their columns apart, which queries of few columns read faster. With `layout` [['a', 'b'], ['c', 'd']] the columns of each group lie side by side, and all others apart.
        """

    def drop_table(self, table: str | Table) -> None: ...

    def rename_table(self, table: str | Table, name: str) -> None: ...

    def set_layout(self, table: str | Table, layout: str | Iterable[Iterable[str]]) -> None:
        """
        Sets the layout of chunks that are begun from then on: see create_table.
        """

    def add_column(self, table: str | Table, name: str, column: Column) -> None:
        """Existing rows have the default of the column, or None."""

    def drop_column(self, table: str | Table, column: str) -> None: ...

    def rename_column(self, table: str | Table, column: str, name: str) -> None: ...

    def add_key(self, table: str | Table, name: str, columns: str | Iterable[str] | Key, unique: bool = False) -> None: ...

    def drop_key(self, table: str | Table, name: str) -> None: ...

def open(path: str | os.PathLike[str], *, create: bool = True, exclusive: bool = False, read_only: bool = False, max_bytes: int = 0, segment_bytes: int | None = None, slots_max: int = 128, wait: bool = False, crash_ring: bool = False, accept_lost_lines: bool = False, automatic_merges: bool = True) -> Database:
    """
    Opens a pool, and creates it if it is not there; ':memory:' is a database in memory.
    """

def _check_signals() -> None: ...

def _lend(source: Database | Transaction) -> tuple[str, list[str]]: ...

def _serve_duckdb(extension: bytes) -> None: ...
