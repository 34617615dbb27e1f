"""Figures of a run: medians, ratios, and the table for people."""

import math
import statistics
from dataclasses import dataclass, field

LIVE, OWN, HELD = "live", "own", "held"
API = "api"  # flugs' own query API, without DuckDB
HYPER = "hyper"  # Hyper, with tables of its own


@dataclass
class Times:
    """Of one query, in milliseconds."""

    query: object
    ms: dict = field(default_factory=lambda: {LIVE: [], OWN: [], API: [], HYPER: []})
    rows: int = 0

    def median(self, side):
        """None: the query does not run on this side."""
        return statistics.median(self.ms[side]) if self.ms[side] else None

    def ratio(self, side=LIVE):
        """To DuckDB's own tables."""
        return self.median(side) / self.median(OWN) if self.ms[side] else None

    def ratio_to_best(self):
        """Of flugs' own API to the better of DuckDB's own tables and Hyper. None without Hyper:
        the better of one would look like the better of two."""
        if not self.ms[API] or not self.ms[HYPER]:
            return None
        return self.median(API) / min(self.median(OWN), self.median(HYPER))

    def entry(self):
        return {"name": self.query.name, "question": self.query.question, "rows": self.rows,
                "flugs_ms": self.median(LIVE), "own_ms": self.median(OWN), "ratio": self.ratio(),
                "api_ms": self.median(API), "api_ratio": self.ratio(API),
                "hyper_ms": self.median(HYPER), "api_ratio_to_best": self.ratio_to_best()}


def geometric_mean(values):
    """None of no values."""
    values = list(values)
    return math.exp(statistics.fmean(map(math.log, values))) if values else None


def summary(times):
    """The queries, and what their ratios come to."""
    to_best = {t.query.name: t.ratio_to_best() for t in times if t.ratio_to_best() is not None}
    worst = max(to_best, key=to_best.get, default=None)
    return {"queries": [t.entry() for t in times],
            "geometric_mean_ratio": geometric_mean(t.ratio() for t in times),
            "api_geometric_mean_ratio": geometric_mean(t.ratio(API) for t in times if t.ms[API]),
            "api_geometric_mean_ratio_to_best": geometric_mean(to_best.values()),
            "api_worst_ratio_to_best": to_best.get(worst), "api_worst_query": worst}


def _cell(value, width):
    return " " * width if value is None else f"{value:{width}.2f}"


def table(report):
    """The lines of a report. Where a side did not run, its columns are empty."""
    yield f"{report['title']}; pool: {report['guarantee']}"
    if report["transactions"]:
        yield f"{report['transactions_per_second']:.0f} transactions a second meanwhile"
    yield (f"{'query':5}  {'':48}  {'rows':>6}  {'flugs ms':>8}  {'own ms':>8}  {'ratio':>5}"
           f"  {'API ms':>8}  {'ratio':>5}  {'Hyper ms':>8}  {'to best':>7}")
    for query in report["queries"]:
        yield (f"{query['name']:5}  {query['question'][:48]:48}  {query['rows']:6}"
               f"  {_cell(query['flugs_ms'], 8)}  {_cell(query['own_ms'], 8)}"
               f"  {_cell(query['ratio'], 5)}  {_cell(query['api_ms'], 8)}"
               f"  {_cell(query['api_ratio'], 5)}  {_cell(query['hyper_ms'], 8)}"
               f"  {_cell(query['api_ratio_to_best'], 7)}").rstrip()
    line = f"geometric mean of the ratios {report['geometric_mean_ratio']:.2f}"
    if report["api_geometric_mean_ratio"] is not None:
        line += f", of flugs' API {report['api_geometric_mean_ratio']:.2f}"
    if report["api_worst_query"] is not None:
        line += (f", to the better of DuckDB and Hyper"
                 f" {report['api_geometric_mean_ratio_to_best']:.2f},"
                 f" at most {report['api_worst_ratio_to_best']:.2f}"
                 f" ({report['api_worst_query']})")
    yield line + "; results " + ("are equal" if not report["problems"] else "ARE NOT EQUAL")
