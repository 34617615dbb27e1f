"""Whether two results are equal."""

import math
from decimal import ROUND_HALF_UP, Decimal

# Sums of doubles depend on the order in which threads add them.
RELATIVE_ERROR = 1e-9


def is_equal(a, b):
    """Doubles are equal but for rounding, everything else exactly."""
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=RELATIVE_ERROR) or (math.isnan(a) and math.isnan(b))
    return type(a) is type(b) and a == b


def _order(row):
    """A key that sorts rows of equal results alike, although doubles differ by rounding: they come
    last, and count with six digits only."""
    exact = tuple((type(value).__name__, 0 if value is None else value)
                  for value in row if not isinstance(value, float))
    return exact, tuple(float(f"{value:.6g}") for value in row if isinstance(value, float))


def difference(ours, theirs, sorted_by=()):
    """The first difference in words, or "". Rows with equal values in the columns `sorted_by` may
    come in any order."""
    if len(ours) != len(theirs):
        return f"{len(ours)} rows instead of {len(theirs)}"
    for number, (a, b) in enumerate(zip(ours, theirs)):
        for column in sorted_by:
            if not is_equal(a[column], b[column]):
                return f"row {number} is sorted by {a[column]!r} instead of {b[column]!r}"
    for a, b in zip(sorted(ours, key=_order), sorted(theirs, key=_order)):
        if len(a) != len(b) or not all(map(is_equal, a, b)):
            return f"{a!r} instead of {b!r}"
    return ""


def rounded(rows, scales):
    """The rows with decimals in place of doubles, in those columns that have so many digits behind
    the point on another side. `scales` has None for other columns."""
    def value(of_row, scale):
        if scale is None or not isinstance(of_row, float) or not math.isfinite(of_row):
            return of_row
        return Decimal(of_row).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
    return [tuple(map(value, row, scales)) for row in rows]
