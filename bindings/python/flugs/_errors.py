"""The exceptions of flugs."""

from __future__ import annotations

from typing import Any


class Error(Exception):
    """What flugs could not do.

    `str(error)` is the engine's message, after the code. `table`: the name of the table that the
    failure is about. `key`, `foreign_key`, `check`, `column`: the name of the part that refused. If
    none did, `key` is the name of the key that the call used. `values`: the values of the key that
    the call was given. An attribute is None where the failure has no such thing.
    """

    code: str = "error"
    table: str | None = None
    key: str | None = None
    foreign_key: str | None = None
    check: str | None = None
    column: str | None = None
    values: Any = None


class NotFound(Error, LookupError):
    """No such table, column, key or row is visible to the transaction."""

    code = "not found"


class AlreadyExists(Error):
    """A table, or a row with this unique key, exists already."""

    code = "already exists"


class Conflict(Error):
    """Another transaction got there first: abort, and try again in another one."""

    code = "conflict"


class ConstraintViolated(Error):
    """A value breaks the schema."""

    code = "constraint violated"


class InvalidArgument(Error, ValueError):
    """The call itself is wrong."""

    code = "invalid argument"


class Closed(InvalidArgument, RuntimeError):
    """The database is closed, or was opened by the process from which this one was forked."""


class OutOfSpace(Error):
    """The pool or the medium is full."""

    code = "out of space"


class Corrupt(Error):
    """Bytes in the pool contradict the format."""

    code = "corrupt"


class Incompatible(Error):
    """No flugs pool, or one of another version."""

    code = "incompatible"


class Busy(Error):
    """Another process, transaction or thread holds what the call needs."""

    code = "busy"


class TooManyTransactions(Error):
    """Every transaction slot is taken."""

    code = "too many transactions"


class ReadOnly(Error):
    """A write in a read-only transaction, or to a read-only file."""

    code = "read only"


class IoError(Error):
    """The operating system refused."""

    code = "i/o error"


class Cancelled(Error):
    """The call was asked to stop."""

    code = "cancelled"


class OutOfMemory(Error, MemoryError):
    """The call reached a bound on memory."""

    code = "out of memory"


class Overflow(Error, ArithmeticError):
    """A computed number does not fit its type."""

    code = "overflow"


BY_CODE: dict[str, type[Error]] = {
    kind.code: kind
    for kind in (NotFound, AlreadyExists, Conflict, ConstraintViolated, InvalidArgument,
                 OutOfSpace, Corrupt, Incompatible, Busy, TooManyTransactions, ReadOnly, IoError,
                 Cancelled, OutOfMemory, Overflow)
}
