"""What tables, queries and results become in other libraries. Each is imported when it is used."""

from __future__ import annotations

from typing import Any


def to_arrow(self: Any) -> Any:
    """All rows as a pyarrow.Table."""
    import pyarrow
    return pyarrow.table(self)


def to_polars(self: Any) -> Any:
    """All rows as a polars.DataFrame."""
    import polars
    return polars.DataFrame(self)


def to_pandas(self: Any) -> Any:
    """All rows as a pandas.DataFrame, by way of pyarrow."""
    return to_arrow(self).to_pandas()


def lazy(self: Any) -> Any:
    """The table as a polars.LazyFrame."""
    from flugs import lazy as module
    return module.scan(self)
