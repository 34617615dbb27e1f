"""The queries of a file of SQL."""

import os
import re
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
HEADING = re.compile(r"^-- (Q\d+): (.*); sorted( [\d ]+)?$", re.MULTILINE)


@dataclass(frozen=True)
class Query:
    name: str
    question: str  # in words
    sorted_by: tuple[int, ...]  # columns of the result, counted from 0
    sql: str


def read_queries(file, **values):
    """The queries of tpch.sql or ch.sql, in the order of their numbers. `values` take the place of
    names in braces."""
    with open(os.path.join(HERE, file), encoding="utf-8") as source:
        text = source.read()
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    parts = HEADING.split(text)[1:]
    return [Query(name, question, tuple(int(column) - 1 for column in (columns or "").split()),
                  sql.strip().removesuffix(";"))
            for name, question, columns, sql in zip(*(parts[i::4] for i in range(4)))]
