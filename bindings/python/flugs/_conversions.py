"""What tables, queries and results become in other libraries. Each is imported when it is used."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator

from flugs import _flugs


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Ctrl-C ends a stream, of which another library makes an error of its own."""
    try:
        yield
    except Exception:
        _flugs._check_signals()
        raise


def to_arrow(self: Any) -> Any:
    """All rows as a pyarrow.Table."""
    import pyarrow
    with _interruptible():
        return pyarrow.table(self)


def to_polars(self: Any) -> Any:
    """All rows as a polars.DataFrame."""
    import polars
    with _interruptible():
        return polars.DataFrame(self)


def to_pandas(self: Any) -> Any:
    """All rows as a pandas.DataFrame, by way of pyarrow."""
    return to_arrow(self).to_pandas()


def lazy(self: Any) -> Any:
    """The table as a polars.LazyFrame."""
    from flugs import lazy as module
    return module.scan(self)


def to_duckdb(self: Any, con: Any, name: Any) -> Any:
    """Views of the tables in DuckDB."""
    from flugs import duckdb as module
    return module.show(self, con, name)
