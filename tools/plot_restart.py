#!/usr/bin/env python3
"""Draws what `flugs bench restart --figures DIR` measured: figure-7a, figure-7b, table-1, figure-8a
and figure-8b, as far as DIR has their data, as PNG and SVG beside them.

tools/plot_restart.py DIR

Needs the package matplotlib of PyPI; where python3 lacks it, a virtual environment in
.cache/plot_restart.py gets it the first time.
"""

import json
import math
import os
import subprocess
import sys

sys.dont_write_bytecode = True
import pypi  # beside this script

COLOURS = {"flugs-dram-no-key": "#0b3c6f", "flugs-dram": "#1f77b4", "flugs-pool": "#17becf",
           "lmdb": "#2ca02c", "rocksdb": "#d62728", "wiredtiger": "#8c564b",
           "sqlite": "#9467bd", "duckdb": "#ff7f0e"}
MARKERS = {"flugs-dram-no-key": "*", "flugs-dram": "o", "flugs-pool": "s", "lmdb": "^",
           "rocksdb": "v", "wiredtiger": "X", "sqlite": "D", "duckdb": "P"}
PAPER = "#555555"
VARIANTS = (("hash_map", "hash map", "--"), ("skip_list", "skip list", ":"))
AVERAGED_MS = 100  # a point of the curve of a whole run
FLOOR_TPS = 1  # where a curve is drawn while nothing is executed, on a logarithmic axis


def count(number):
    """1000000 is "1 M"."""
    for unit, name in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= unit:
            return f"{number / unit:.3g}{name}"
    return f"{number:.3g}"


def milliseconds(number):
    return f"{number:.0f} ms" if number >= 100 else f"{number:.1f} ms"


def spaced(first, last, steps=50):
    """Sizes from first to last, evenly spaced on a logarithmic axis."""
    return [first * (last / first) ** (step / steps) for step in range(steps + 1)]


def paper_ms(paper, variant, distinct):
    """The paper's restart time with so many distinct values a column: what it gives for one size,
    and that it is linear in it."""
    share = distinct / paper["distinct"]
    return paper[variant]["index_rebuild_ms"] * share + paper[variant]["rest_ms"]


def averaged(curve, width_ms):
    """A curve's throughput over windows of that width: (middle in s, transactions/s)."""
    windows = {}
    for before, sample in zip(curve, curve[1:]):
        span = sample["ms"] - before["ms"]
        total = windows.setdefault(sample["ms"] // width_ms, [0.0, 0.0])
        total[0] += sample["tps"] * span
        total[1] += span
    return [((window + 0.5) * width_ms / 1000, done / span)
            for window, (done, span) in sorted(windows.items()) if span > 0]


def near_ms(curves):
    """How much after the kill is looked at closely: twice the time to full speed, or 400 ms."""
    times = [curve["full_speed_ms"] or curve["first_answer_ms"] or 0 for curve in curves]
    return max(400, 2 * max(times))


def near_width_ms(curve):
    """What is averaged in the close look, in whole samples of 10 ms: 50 ms, or that in which full
    speed is looked for."""
    return 10 * math.ceil(max(50, curve["full_speed_window_ms"]) / 10)


def crash_label(curve):
    """An engine's line in the legend: what it did, and how many it lets write."""
    after = [f"{name} " + ("not reached" if curve[key] is None else milliseconds(curve[key]))
             for name, key in (("first answer", "first_answer_ms"),
                               ("full speed", "full_speed_ms"))]
    writers = "1 writer" if curve["writers"] == 1 else f"{curve['writers']} writers"
    return (f"{curve['name']}, {writers}: {', '.join(after)}; "
            f"{count(curve['before_tps'])} transactions/s before")


def parts(engine):
    """(what its first part is, that part in ms, the rest in ms) of an engine's only point."""
    point = engine["points"][0]
    answer = point["first_answer_ms"]["median"]
    if engine["key"].startswith("flugs"):
        return "rebuild", point["index_rebuild_ms"]["median"], point["rest_ms"]["median"]
    opening = point["open_ms"]["median"]
    return "opening", opening, answer - opening


def caption(data):
    """Machine, commit and conditions, below each plot."""
    machine = data["machine"]
    lines = [f"{machine['cpu']}, {machine['cores']} cores, {machine['kernel']}; "
             f"flugs {data['commit']}"]
    if "engines" in data:
        stop = ("SIGKILL under updates" if data["stop"] == "kill" else "clean stop")
        lines.append(f"New process each time, from exec to the first right answer "
                     f"(point select by key, if there is one); {stop}; databases on tmpfs;\n"
                     f"median of {data['runs']} restarts"
                     + (", bar up to the 90th percentile" if data["figure"] != "table-1" else ""))
    else:
        first = data["curves"][0]
        lines.append(f"TATP, {count(first['subscribers'])} subscribers, {first['users']} users; "
                     "medium and what a commit guarantees:")
        for curve in data["curves"]:
            name = curve["name"].split(",")[0]
            line = f"{name}: medium {curve['medium']}, {curve['guarantee']}"
            if line not in lines:
                lines.append(line)
    if data["left_out"]:
        lines.append("Left out: " + "; ".join(entry["engine"] for entry in data["left_out"]))
    return "\n".join(lines)


class Plots:
    """Draws into one directory."""

    def __init__(self, directory, pyplot):
        self.directory = directory
        self.pyplot = pyplot

    def draw(self, name):
        """Draws a figure if its data are there; says whether they are."""
        path = os.path.join(self.directory, name + ".json")
        if not os.path.exists(path):
            return False
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
        kind = {"figure-7a": self.by_rows, "figure-7b": self.by_distinct,
                "table-1": self.breakdown}.get(name, self.through_a_crash)
        figure = kind(data)
        figure.text(0.01, 0.005, caption(data), fontsize=7, va="bottom", wrap=True)
        for ending in ("png", "svg"):
            figure.savefig(os.path.join(self.directory, f"{name}.{ending}"), dpi=150)
        self.pyplot.close(figure)
        return True

    def restart_axes(self, data, title, size):
        """Lines of all engines over `size`; gives the figure, its axes, and the sizes."""
        figure, axes = self.pyplot.subplots(figsize=(10, 6))
        figure.subplots_adjust(left=0.08, right=0.68, bottom=0.2, top=0.92)
        for engine in data["engines"]:
            points = engine["points"]
            if not points:
                continue
            medians = [point["first_answer_ms"]["median"] for point in points]
            above = [point["first_answer_ms"]["p90"] - median
                     for point, median in zip(points, medians)]
            axes.errorbar([point[size] for point in points], medians,
                          yerr=[[0] * len(points), above], label=engine["name"], capsize=3,
                          color=COLOURS.get(engine["key"]), marker=MARKERS.get(engine["key"]))
        axes.set_yscale("log")
        axes.set_ylabel("restart: exec to first answer, ms")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set_title(title, fontsize=11)
        axes.grid(True, which="both", alpha=0.25)
        sizes = sorted({point[size] for engine in data["engines"] for point in engine["points"]})
        return figure, axes, sizes

    @staticmethod
    def finish_axes(axes, label):
        axes.set_xlabel(label)
        axes.xaxis.set_major_formatter(lambda value, _: count(value))
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), fontsize=8)

    def by_rows(self, data):
        distinct = data["engines"][0]["points"][0]["distinct"]
        title = f"Figure 7a: restart by rows, {count(distinct)} distinct values in each column"
        figure, axes, sizes = self.restart_axes(data, title, "rows")
        paper = data["paper"]
        for key, name, style in VARIANTS:
            axes.axhline(paper_ms(paper, key, paper["distinct"]), color=PAPER, linestyle=style,
                         label=f"{paper['label']},\n{name}, {count(paper['distinct'])} distinct, "
                               f"up to {count(paper['rows'])} rows")
        axes.set_xlim(0, sizes[-1] * 1.05)
        self.finish_axes(axes, "rows")
        return figure

    def by_distinct(self, data):
        rows = data["engines"][0]["points"][0]["rows"]
        title = f"Figure 7b: restart by distinct values in each column, {count(rows)} rows"
        figure, axes, sizes = self.restart_axes(data, title, "distinct")
        paper = data["paper"]
        line = spaced(sizes[0], paper["distinct"])
        for key, name, style in VARIANTS:
            axes.plot(line, [paper_ms(paper, key, size) for size in line], color=PAPER,
                      linestyle=style, marker="x", markevery=[-1],
                      label=f"{paper['label']},\n{name}: x as printed, line as the text says")
        axes.set_xscale("log")
        self.finish_axes(axes, "distinct values in each of 4 columns")
        return figure

    def breakdown(self, data):
        engines = [engine for engine in data["engines"] if engine["points"]]
        paper = data["paper"]
        rows = [(f"{paper['label']},\n{name}, {count(paper['rows'])} rows, "
                 f"{count(paper['distinct'])} distinct", "rebuild",
                 paper[key]["index_rebuild_ms"], paper[key]["rest_ms"], PAPER)
                for key, name, _ in VARIANTS]
        rows += [(engine["name"], *parts(engine), COLOURS.get(engine["key"]))
                 for engine in engines]
        figure, axes = self.pyplot.subplots(figsize=(10, 6.5))
        figure.subplots_adjust(left=0.26, right=0.97, bottom=0.2, top=0.92)
        for place, (_, kind, first, rest, colour) in enumerate(rows):
            words = {"rebuild": "index rebuild", "opening": "opening"}[kind]
            for offset, value, hatch, what in ((-0.2, first, "", words), (0.2, rest, "//", "rest")):
                axes.barh(place + offset, max(value, 0.01), 0.36, color=colour, hatch=hatch,
                          alpha=1 if not hatch else 0.45, edgecolor="white")
                axes.annotate(f"{what} {milliseconds(value)}", (max(value, 0.1), place + offset),
                              xytext=(4, 0), textcoords="offset points", va="center", fontsize=7)
        axes.set_xscale("log")
        axes.set_xlim(0.1, 12 * max(max(row[2:4]) for row in rows))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set_yticks(range(len(rows)),
                        [f"{name}\n{milliseconds(first + rest)} in all"
                         for name, _, first, rest, _ in rows], fontsize=8)
        axes.invert_yaxis()
        axes.set_xlabel("ms; the other engines' first part is opening, replay of a log included")
        point = engines[0]["points"][0]
        axes.set_title(f"Table 1: restart time, its parts; {count(point['rows'])} rows, "
                       f"{count(point['distinct'])} distinct values in each column", fontsize=11)
        axes.grid(True, axis="x", which="both", alpha=0.25)
        return figure

    def through_a_crash(self, data):
        figure, (whole, near) = self.pyplot.subplots(1, 2, figsize=(13, 7.5),
                                                     width_ratios=(3, 2))
        figure.subplots_adjust(left=0.07, right=0.98, bottom=0.42, top=0.93, wspace=0.16)
        paper = data["paper"]
        for curve in data["curves"]:
            colour = COLOURS.get(curve["key"])
            seconds, rates = zip(*averaged(curve["curve"], AVERAGED_MS))
            whole.plot(seconds, [max(rate, FLOOR_TPS) for rate in rates], color=colour,
                       label=crash_label(curve))
            seconds, rates = zip(*averaged(curve["curve"], near_width_ms(curve)))
            full = max(curve["before_tps"], FLOOR_TPS)
            near.plot([1000 * second for second in seconds],
                      [100 * rate / full for rate in rates], color=colour, linewidth=1)
        whole.axvspan(0, paper["full_speed_s"], color=PAPER, alpha=0.15,
                      label=f"{paper['label']}, {paper['variant']}: full throughput "
                            f"about {paper['full_speed_s']} s after the crash")
        whole.set_yscale("log")
        whole.set_xlabel("s since SIGKILL")
        whole.set_ylabel("transactions/s")
        whole.set_title(f"Figure {data['figure']}: {data['title']}", fontsize=11)
        whole.yaxis.set_major_formatter(lambda value, _: count(value))
        end = near_ms(data["curves"])
        near.set_xlim(-end / 4, end)
        near.set_ylim(0, 150)
        near.set_xlabel("ms since SIGKILL")
        near.set_ylabel("percent of the mean before")
        near.set_title("around the crash, over 50 ms or 100 transactions", fontsize=11)
        for axes in (whole, near):
            axes.axvline(0, color="black", linewidth=0.8)
            axes.grid(True, alpha=0.25)
        figure.legend(loc="upper left", bbox_to_anchor=(0.05, 0.345), fontsize=8)
        return figure


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    try:
        (matplotlib,) = pypi.import_packages("plot_restart.py", ["matplotlib"])
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"tools/plot_restart.py: matplotlib is not available: {error}")
    matplotlib.use("Agg")
    from matplotlib import pyplot  # after the choice of what draws
    plots = Plots(sys.argv[1], pyplot)
    names = ("figure-7a", "figure-7b", "table-1", "figure-8a", "figure-8b")
    drawn = [name for name in names if plots.draw(name)]
    if not drawn:
        sys.exit(f"tools/plot_restart.py: {sys.argv[1]} has no data of flugs bench restart "
                 "--figures")
    print(f"{sys.argv[1]}: {', '.join(drawn)} as .json, .png and .svg")


if __name__ == "__main__":
    main()
