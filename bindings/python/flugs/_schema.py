"""How Python describes columns and keys."""

from __future__ import annotations

import dataclasses
from typing import Any, Iterable


@dataclasses.dataclass(frozen=True)
class Column:
    """A column's type and what holds for it. Each function returns a new one:

        flugs.int64.not_null().default(0)
    """

    type: str
    scale: int = 0
    nullable: bool = True
    is_auto_increment: bool = False
    is_unique: bool = False
    has_default: bool = False
    default_value: Any = None

    def not_null(self) -> Column:
        """The column takes no None."""
        return dataclasses.replace(self, nullable=False)

    def default(self, value: Any) -> Column:
        """What the column has in rows that give it no value."""
        return dataclasses.replace(self, has_default=True, default_value=value)

    def auto_increment(self) -> Column:
        """Rows that bring no number get the next one."""
        return dataclasses.replace(self, is_auto_increment=True, nullable=False)

    def unique(self) -> Column:
        """No two rows have the same value: the column is a unique key of its own name."""
        return dataclasses.replace(self, is_unique=True)


@dataclasses.dataclass(frozen=True)
class Key:
    """The columns of a key. An ordered key can be walked by prefix and range."""

    columns: str | Iterable[str]
    ordered: bool = False


@dataclasses.dataclass(frozen=True)
class ForeignKey:
    """Columns that refer to a row of `table` by its unique key `key`.

    The actions are "restrict", "cascade" and "set_null".
    """

    columns: str | Iterable[str]
    table: str
    key: str = "primary"
    on_delete: str = "restrict"
    on_update: str = "restrict"


boolean = Column("bool")
int32 = Column("int32")
int64 = Column("int64")
double = Column("double")
date = Column("date")
timestamp = Column("timestamp")
string = Column("string")
binary = Column("bytes")


def decimal(scale: int) -> Column:
    """Numbers with `scale` digits after the point, 64 bits in all."""
    return Column("decimal", scale)
