"""flugs: an embedded database that is back at once after a crash.

    import flugs

    with flugs.open("shop.pool") as db:
        db.create_table("sales", {"id": flugs.int64.auto_increment(), "euros": flugs.decimal(2)},
                        primary_key="id", if_not_exists=True)
        db["sales"].insert({"euros": Decimal("12.50")})
        print(db.query("sales").group_by(agg=flugs.sum("euros")).fetchall())

docs/python.md says more.
"""

# pylint: disable=redefined-builtin
from flugs._errors import (AlreadyExists, Busy, Cancelled, Closed, Conflict, ConstraintViolated,
                           Corrupt, Error, Incompatible, InvalidArgument, IoError, NotFound,
                           OutOfMemory, OutOfSpace, Overflow, ReadOnly, TooManyTransactions)
from flugs._flugs import (Aggregate, Database, Expr, Query, Result, Rows, Savepoint, Table,
                          Transaction, approx_count_distinct, avg, case_when, col, concat, count,
                          count_distinct, lit, max, median, min, open, quantile, stddev, sum,
                          variance)
from flugs._schema import (Column, ForeignKey, Key, binary, boolean, date, decimal, double, int32,
                           int64, string, timestamp)

__version__ = "0.1.0"

__all__ = [
    "Aggregate", "AlreadyExists", "Busy", "Cancelled", "Closed", "Column", "Conflict",
    "ConstraintViolated", "Corrupt", "Database", "Error", "Expr", "ForeignKey", "Incompatible",
    "InvalidArgument", "IoError", "Key", "NotFound", "OutOfMemory", "OutOfSpace", "Overflow",
    "Query", "ReadOnly", "Result", "Rows", "Savepoint", "Table", "TooManyTransactions",
    "Transaction", "approx_count_distinct", "avg", "binary", "boolean", "case_when", "col",
    "concat", "count", "count_distinct", "date", "decimal", "double", "int32", "int64", "lit",
    "max", "median", "min", "open", "quantile", "stddev", "string", "sum", "timestamp", "variance",
]
