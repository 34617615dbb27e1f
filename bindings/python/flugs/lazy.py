"""Tables as polars.LazyFrame. DuckDB reads these, too."""

from __future__ import annotations

import json
from typing import Any, Callable, Iterator

import polars

import flugs

_TYPES: dict[str, Any] = {
    "bool": polars.Boolean, "int32": polars.Int32, "int64": polars.Int64, "double": polars.Float64,
    "date": polars.Date, "timestamp": polars.Datetime("us"), "string": polars.String,
    "bytes": polars.Binary,
}

_OPERATORS: dict[str, Callable[[Any, Any], flugs.Expr]] = {
    "Eq": lambda a, b: a == b, "NotEq": lambda a, b: a != b,
    "Lt": lambda a, b: a < b, "LtEq": lambda a, b: a <= b,
    "Gt": lambda a, b: a > b, "GtEq": lambda a, b: a >= b,
}
_COMBINATIONS: dict[str, Callable[[flugs.Expr, flugs.Expr], flugs.Expr]] = {
    "And": lambda a, b: a & b, "Or": lambda a, b: a | b,
    "LogicalAnd": lambda a, b: a & b, "LogicalOr": lambda a, b: a | b,
}
_TEXT_TESTS: dict[str, Callable[[flugs.Expr, Any], flugs.Expr]] = {
    "StartsWith": lambda a, b: a.starts_with(b), "EndsWith": lambda a, b: a.ends_with(b),
}
# Well below what flugs takes: 65,536 parts of an expression and 1000 levels.
_PARTS_MAX = 10_000
_LEVELS_MAX = 200
_BOUNDS = {"Both": (">=", "<="), "Left": (">=", "<"), "Right": (">", "<="), "None": (">", "<")}


class _Foreign(Exception):
    """A part of a predicate that flugs is not asked to evaluate."""


class _Table:
    """The columns of a table, and how large the conditions may still become."""

    def __init__(self, columns: dict[str, flugs.Column]) -> None:
        self.columns = columns
        self.left = _PARTS_MAX
        self.levels = 0

    def take(self, parts: int) -> None:
        """Raises _Foreign if that is too much."""
        self.left -= parts
        if self.left < 0:
            raise _Foreign


def _type_of(column: flugs.Column) -> Any:
    if column.type == "decimal":
        return polars.Decimal(19, column.scale)
    return _TYPES[column.type]


def _literal(node: Any) -> Any:
    """The value of a constant, or the values of a list of them; polars itself reads it."""
    if not isinstance(node, dict) or "Literal" not in node:
        raise _Foreign
    text = json.dumps(node).encode()
    value = polars.select(polars.Expr.deserialize(text, format="json")).to_series()
    values = value.to_list()
    if len(values) == 1 and isinstance(values[0], list):
        return values[0]
    return values[0] if len(values) == 1 else values


def _is_plain(value: Any) -> bool:
    # NULL and NaN compare in a way of their own in each system.
    return value is not None and value == value  # pylint: disable=comparison-with-itself


def _operand(node: Any, table: _Table) -> Any:
    table.take(1)
    if isinstance(node, dict) and "Column" in node:
        if node["Column"] not in table.columns:
            raise _Foreign
        return flugs.col(node["Column"])
    value = _literal(node)
    if not _is_plain(value) or isinstance(value, list):
        raise _Foreign
    return value


def _comparison(node: dict[str, Any], table: _Table) -> flugs.Expr:
    left, right = _operand(node["left"], table), _operand(node["right"], table)
    if not isinstance(left, flugs.Expr) and not isinstance(right, flugs.Expr):
        raise _Foreign
    return _OPERATORS[node["op"]](left, right)


def _between(column: flugs.Expr, low: Any, high: Any, closed: str) -> flugs.Expr:
    from_bound, to_bound = _BOUNDS[closed]
    lower: flugs.Expr = column >= low if from_bound == ">=" else column > low
    upper: flugs.Expr = column <= high if to_bound == "<=" else column < high
    return lower & upper


def _function(node: dict[str, Any], table: _Table) -> flugs.Expr:
    inputs, function = node["input"], node["function"]
    kind, what = next(iter(function.items()))
    if kind == "Boolean" and what == "Not":
        return ~_condition(inputs[0], table)
    column = _operand(inputs[0], table)
    if not isinstance(column, flugs.Expr):
        raise _Foreign
    if kind == "Boolean":
        if what == "IsNull":
            return column.is_null()
        if what == "IsNotNull":
            return column.is_not_null()
        if isinstance(what, dict) and "IsBetween" in what:
            low, high = (_operand(one, table) for one in inputs[1:])
            return _between(column, low, high, what["IsBetween"]["closed"])
        if isinstance(what, dict) and what.get("IsIn") == {"nulls_equal": False}:
            values = _literal(inputs[1])
            values = values if isinstance(values, list) else [values]
            table.take(len(values))
            if values and all(map(_is_plain, values)):
                return column.is_in(values)
    if kind == "StringExpr":
        if isinstance(what, str) and what in _TEXT_TESTS:
            return _TEXT_TESTS[what](column, _operand(inputs[1], table))
        if isinstance(what, dict) and what.get("Contains", {}).get("literal"):
            return column.contains(_operand(inputs[1], table))
    raise _Foreign


def _guarded(node: dict[str, Any], table: _Table) -> flugs.Expr:
    """NULL if a column is NULL, otherwise whether it is in a list: so DuckDB writes `in`. `is_in`
    gives the same by itself."""
    guard, inner = node["predicate"]["Function"], node["falsy"]["Function"]
    what = inner["function"]["Boolean"]
    if (guard["function"] != {"Boolean": "IsNull"} or guard["input"] != inner["input"][:1]
            or not isinstance(what, dict) or "IsIn" not in what
            or _literal(node["truthy"]) is not None):
        raise _Foreign
    return _function(inner, table)


def _condition(node: Any, table: _Table) -> flugs.Expr:
    """The condition as flugs evaluates it. Raises _Foreign if it does not."""
    table.take(1)
    table.levels += 1
    if table.levels > _LEVELS_MAX:
        raise _Foreign
    condition = _condition_of(node, table)
    table.levels -= 1
    return condition


def _condition_of(node: Any, table: _Table) -> flugs.Expr:
    if not isinstance(node, dict):
        raise _Foreign
    if "Function" in node:
        return _function(node["Function"], table)
    if "Ternary" in node:
        return _guarded(node["Ternary"], table)
    if "BinaryExpr" not in node:
        raise _Foreign
    binary = node["BinaryExpr"]
    if binary["op"] in _COMBINATIONS:
        return _COMBINATIONS[binary["op"]](_condition(binary["left"], table),
                                           _condition(binary["right"], table))
    if binary["op"] in _OPERATORS:
        return _comparison(binary, table)
    raise _Foreign


def _parts(node: Any) -> Iterator[Any]:
    """The parts that `and` joins."""
    binary = node.get("BinaryExpr") if isinstance(node, dict) else None
    if binary and binary["op"] == "And":
        yield from _parts(binary["left"])
        yield from _parts(binary["right"])
    else:
        yield node


def translate(predicate: polars.Expr,
              columns: dict[str, flugs.Column]) -> tuple[list[flugs.Expr], bool]:
    """The parts of a predicate that flugs can evaluate, and whether these are all.

    A predicate is known only by its text in JSON, whose form polars does not promise: what looks
    unlike what is expected is left to polars.
    """
    try:
        tree = json.loads(predicate.meta.serialize(format="json"))
        parts = list(_parts(tree))
    except (polars.exceptions.PolarsError, ValueError, TypeError, KeyError, RecursionError):
        return [], False
    conditions = []
    is_whole = True
    table = _Table(columns)
    for part in parts:
        left = table.left
        try:
            conditions.append(_condition(part, table))
        except (_Foreign, KeyError, TypeError, IndexError, AttributeError, ValueError,
                OverflowError, StopIteration, RecursionError, polars.exceptions.PolarsError):
            is_whole = False
            table.left, table.levels = left, 0
    return conditions, is_whole


def _frame(batch: Any) -> polars.DataFrame:
    frame = polars.DataFrame(batch)
    coded = [name for name, kind in frame.schema.items() if kind == polars.Categorical]
    return frame.with_columns(polars.col(coded).cast(polars.String)) if coded else frame


def scan(table: flugs.Table) -> polars.LazyFrame:
    """The table as a LazyFrame: columns, filters and limits are left to flugs where it can."""
    columns = table.schema

    def source(with_columns: list[str] | None, predicate: polars.Expr | None, n_rows: int | None,
               _batch_size: int | None) -> Iterator[polars.DataFrame]:
        query = table.query()
        is_whole = True
        if predicate is not None:
            conditions, is_whole = translate(predicate, columns)
            for condition in conditions:
                query = query.where(condition)
        wanted = list(columns) if with_columns is None else list(with_columns)
        read = wanted
        if predicate is not None and not is_whole:
            read = list(dict.fromkeys(wanted + predicate.meta.root_names()))
        query = query.select(*(read or list(columns)[:1]))
        if n_rows is not None and is_whole:
            query = query.limit(n_rows)
        left = n_rows
        with query.run() as result:
            for batch in result.batches():
                frame = _frame(batch)
                if predicate is not None and not is_whole:
                    frame = frame.filter(predicate)
                frame = frame.select(wanted)
                if left is not None:
                    frame = frame.head(left)
                    left -= frame.height
                if frame.height:
                    yield frame
                if left == 0:
                    return

    schema = {name: _type_of(column) for name, column in columns.items()}
    return polars.io.plugins.register_io_source(source, schema=schema)
