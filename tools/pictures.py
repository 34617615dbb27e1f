#!/usr/bin/env python3
"""Draws the pictures of the documentation, docs/pictures/*.svg, from the data beside them.

tools/pictures.py [--check]            draws them; with --check only says which are out of date
tools/pictures.py --take DIRECTORY     first takes what `flugs bench restart --figures` wrote

A picture has its colours in a style sheet of its own, for light and for dark pages, and a width
of 480 units, so that its text can still be read on the 360 pixels of a phone.
"""

import argparse
import html
import json
import math
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HOME = os.path.join(ROOT, "docs", "pictures")
WIDTH = 480
FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"

# Names and colours of the lines: (light page, dark page).
ENGINES = {
    "flugs-pool": ("flugs", "#b3261e", "#ff8a80"),
    "lmdb": ("LMDB", "#1b6e3c", "#7bd88f"),
    "sqlite": ("SQLite", "#5b3fa0", "#b9a3ff"),
    "rocksdb": ("RocksDB", "#8a5a00", "#f0b849"),
    "duckdb": ("DuckDB", "#00607a", "#62cbe6"),
}
STYLE = """
  text { font: 15px FONT; fill: #1f2328; }
  .small { font-size: 13px; }
  .title { font-size: 17px; font-weight: 600; }
  .quiet { fill: #59636e; }
  .axis { stroke: #59636e; stroke-width: 1; fill: none; }
  .grid { stroke: #d1d9e0; stroke-width: 1; fill: none; }
  .line { stroke-width: 2.5; fill: none; stroke-linejoin: round; }
  .box { fill: #f6f8fa; stroke: #59636e; stroke-width: 1.2; }
  .room { fill: #ffffff; stroke: #59636e; stroke-width: 1.2; }
  .way { stroke: #b3261e; stroke-width: 2; fill: none; }
  .ask { stroke: #00607a; stroke-width: 2; fill: none; }
  .way-text { fill: #b3261e; } .ask-text { fill: #00607a; }
  .way-head { fill: #b3261e; } .ask-head { fill: #00607a; } .axis-head { fill: #59636e; }
LIGHT
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .quiet { fill: #9198a1; }
    .axis { stroke: #9198a1; } .grid { stroke: #3d444d; }
    .box { fill: #151b23; stroke: #9198a1; } .room { fill: #0d1117; stroke: #9198a1; }
    .way { stroke: #ff8a80; } .ask { stroke: #62cbe6; }
    .way-text { fill: #ff8a80; } .ask-text { fill: #62cbe6; }
    .way-head { fill: #ff8a80; } .ask-head { fill: #62cbe6; } .axis-head { fill: #9198a1; }
DARK
  }
"""


def style():
    rules = {"LIGHT": [], "DARK": []}
    for key, (_, light, dark) in ENGINES.items():
        for theme, colour in (("LIGHT", light), ("DARK", dark)):
            rules[theme] += [f"  .{key} {{ stroke: {colour}; }}",
                             f"  .{key}-text {{ fill: {colour}; }}"]
    sheet = STYLE.replace("FONT", FONT)
    for theme, lines in rules.items():
        sheet = sheet.replace(theme, "\n".join(lines))
    return sheet


class Picture:
    """An SVG of that height, with what is told to those who cannot see it."""

    def __init__(self, height, title, description):
        self.height = height
        self.parts = [f"<title>{html.escape(title)}</title>",
                      f"<desc>{html.escape(description)}</desc>", f"<style>{style()}</style>"]

    def text(self, x, y, words, kind="", anchor="start"):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">'
                          f"{html.escape(words)}</text>")

    def path(self, points, kind):
        places = " L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        self.parts.append(f'<path d="M{places}" class="{kind}"/>')

    def box(self, x, y, width, height, kind="box"):
        self.parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" '
                          f'class="{kind}"/>')

    def arrow(self, points, kind):
        """A line with a head at its end."""
        self.path(points, kind)
        (x0, y0), (x, y) = points[-2:]
        length = math.hypot(x - x0, y - y0)
        dx, dy = (x - x0) / length, (y - y0) / length
        corners = ((x + dx * 2, y + dy * 2), (x - dx * 8 - dy * 5, y - dy * 8 + dx * 5),
                   (x - dx * 8 + dy * 5, y - dy * 8 - dx * 5))
        places = " ".join(f"{px:.1f},{py:.1f}" for px, py in corners)
        self.parts.append(f'<polygon points="{places}" class="{kind}-head"/>')

    def svg(self):
        body = "\n".join(self.parts)
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" '
                f'width="{WIDTH}" height="{self.height}" role="img">\n{body}\n</svg>\n')


class Axis:
    """Places on a logarithmic or linear axis."""

    def __init__(self, low, high, begin, end, is_log):
        self.low, self.high, self.begin, self.end, self.is_log = low, high, begin, end, is_log

    def at(self, value):
        value = min(max(value, self.low), self.high)
        low, high = self.low, self.high
        if self.is_log:
            value, low, high = math.log(value), math.log(low), math.log(high)
        return self.begin + (value - low) / (high - low) * (self.end - self.begin)


def spread(wanted, gap):
    """Heights near those wanted (name: y) that are at least `gap` apart."""
    names = sorted(wanted, key=wanted.get)
    places = [wanted[name] for name in names]
    for _ in range(200):
        for i in range(1, len(places)):
            lack = gap - (places[i] - places[i - 1])
            if lack > 0:
                places[i - 1] -= lack / 2
                places[i] += lack / 2
    return dict(zip(names, places))


def count(number):
    for unit, name in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= unit:
            return f"{number / unit:.3g}{name}"
    return f"{number:.3g}"


def versions(data):
    return ", ".join(engine["version"] for engine in data["engines"])


def footnote(picture, data, y, width=62):
    words = (f"{versions(data)}. {data['conditions']} {data['machine']}, {data['date']}.").split()
    line = ""
    for word in words + [None]:
        if word is None or len(line) + len(word) + 1 > width:
            picture.text(8, y, line, "small quiet")
            y += 17
            line = ""
        if word is not None:
            line = f"{line} {word}".strip()


def restart(data):
    picture = Picture(430, "Restart time against rows",
                      "Time from the start of the process to the first right answer, after SIGKILL "
                      "under updates, by number of rows: " + "; ".join(
                          f"{ENGINES[e['key']][0]} {e['points'][-1]['ms']:.1f} ms at "
                          f"{count(e['points'][-1]['rows'])} rows" for e in data["engines"]))
    picture.text(8, 22, "Killed, started again: time to the first answer", "title")
    rows = [point["rows"] for point in data["engines"][0]["points"]]
    across = Axis(rows[0], rows[-1], 62, 372, True)
    up = Axis(1, 1000, 310, 50, True)
    for tick, name in ((1, "1 ms"), (10, "10 ms"), (100, "100 ms"), (1000, "1 s")):
        picture.path([(62, up.at(tick)), (372, up.at(tick))], "grid")
        picture.text(56, up.at(tick) + 5, name, "small quiet", "end")
    for tick in sorted({rows[0], rows[len(rows) // 2], rows[-1]}):
        picture.text(across.at(tick), 330, count(tick), "small quiet", "middle")
    picture.text(217, 350, "rows", "small quiet", "middle")
    ends = {}
    for engine in data["engines"]:
        picture.path([(across.at(p["rows"]), up.at(p["ms"])) for p in engine["points"]],
                     f"line {engine['key']}")
        ends[engine["key"]] = up.at(engine["points"][-1]["ms"]) + 5
    for key, y in spread(ends, 18).items():
        last = next(e for e in data["engines"] if e["key"] == key)["points"][-1]["ms"]
        shown = f"{last:.0f}" if last >= 20 else f"{last:.1f}"
        picture.text(378, y, f"{ENGINES[key][0]} {shown}", f"small {key}-text")
    footnote(picture, data, 376)
    return picture.svg()


def crash(data):
    picture = Picture(450, "TATP through a SIGKILL",
                      "Transactions per second before and after a process is killed and started "
                      "again, on a logarithmic scale: " + "; ".join(
                          f"{ENGINES[e['key']][0]} {count(e['before_tps'])}/s before, first answer "
                          f"{e['first_answer_ms']:.0f} ms after" for e in data["engines"]))
    picture.text(8, 22, "TATP transactions a second, killed at 0", "title")
    across = Axis(-200, 600, 52, 356, False)
    up = Axis(100, 1e7, 330, 50, True)
    for tick in (100, 1e3, 1e4, 1e5, 1e6, 1e7):
        picture.path([(52, up.at(tick)), (356, up.at(tick))], "grid")
        picture.text(46, up.at(tick) + 5, count(tick) if tick > 100 else "< 100",
                     "small quiet", "end")
    for tick in (-200, 0, 200, 400, 600):
        picture.text(across.at(tick), 350, str(tick), "small quiet", "middle")
    picture.text(204, 368, "ms after the SIGKILL (at the lines: first answer)", "small quiet",
                 "middle")
    picture.path([(across.at(0), 44), (across.at(0), 330)], "axis")
    picture.text(across.at(0) + 4, 60, "SIGKILL", "small quiet")
    ends = {}
    for engine in data["engines"]:
        curve = [(ms, tps) for ms, tps in engine["curve"] if -200 <= ms <= 600]
        picture.path([(across.at(ms), up.at(max(tps, 1))) for ms, tps in curve],
                     f"line {engine['key']}")
        ends[engine["key"]] = up.at(max(1, curve[-1][1])) + 5
    for key, y in spread(ends, 18).items():
        first = next(e for e in data["engines"] if e["key"] == key)["first_answer_ms"]
        picture.text(362, y, f"{ENGINES[key][0]} {first:.0f} ms", f"small {key}-text")
    footnote(picture, data, 394)
    return picture.svg()


def engine():
    picture = Picture(560, "How flugs is made",
                      "A program calls the library. Transactions write new rows into the delta "
                      "in the pool; a commit waits for two fences; a merge moves rows to main; a "
                      "query reads main and delta on one snapshot. DRAM holds only what can be "
                      "lost.")
    picture.box(10, 10, 460, 50)
    picture.text(240, 41, "your program: transactions and queries", "", "middle")
    picture.box(10, 92, 460, 96)
    picture.text(56, 122, "DRAM", "title")
    picture.text(56, 144, "lost in a crash,", "small quiet")
    picture.text(56, 162, "made again", "small quiet")
    picture.box(176, 104, 118, 72, "room")
    picture.text(235, 135, "snapshots, state", "small", "middle")
    picture.text(235, 153, "of transactions", "small", "middle")
    picture.box(304, 104, 118, 72, "room")
    picture.text(363, 135, "ordered keys", "small", "middle")
    picture.text(363, 153, "of the delta", "small", "middle")
    picture.box(10, 222, 460, 328)
    picture.text(56, 246, "pool: one file", "title")
    picture.text(56, 266, "on NVDIMM, tmpfs or disk", "small quiet")
    picture.box(24, 282, 206, 254, "room")
    picture.text(36, 304, "delta", "title")
    for y, words in ((326, "new rows, row by row"), (346, "times of every version"),
                     (366, "dictionaries"), (386, "hash indexes")):
        picture.text(36, y, words, "small")
    picture.box(36, 404, 182, 118)
    picture.text(46, 425, "transaction slots", "small")
    picture.text(46, 447, "1. rows, list of writes", "small way-text")
    picture.text(60, 465, "first fence", "small way-text")
    picture.text(46, 487, "2. commit record", "small way-text")
    picture.text(60, 505, "second fence: durable", "small way-text")
    picture.box(286, 282, 172, 254, "room")
    picture.text(298, 304, "main", "title")
    for y, words in ((326, "columns, packed"), (346, "min, max of each group"),
                     (366, "sorted dictionaries"), (386, "key indexes"),
                     (406, "times of deletion")):
        picture.text(298, y, words, "small")
    picture.arrow([(232, 470), (282, 470)], "axis")
    picture.text(257, 460, "merge", "small quiet", "middle")
    picture.arrow([(40, 60), (40, 278)], "way")
    picture.text(48, 210, "commit", "small way-text")
    picture.arrow([(440, 280), (440, 64)], "ask")
    picture.path([(231, 330), (262, 330), (262, 205), (440, 205)], "ask")
    picture.text(434, 198, "query", "small ask-text", "end")
    return picture.svg()


def taken(directory):
    """Data of the two charts from what `flugs bench restart --figures DIRECTORY` wrote."""
    found = {}
    for figure in ("7a", "8a"):
        with open(os.path.join(directory, f"figure-{figure}.json"), encoding="utf-8") as file:
            found[figure] = json.load(file)
    return {"restart": restart_data(found["7a"]), "crash": crash_data(found["8a"])}


def common(data):
    machine = data["machine"]
    return {"command": data["command"], "commit": data["commit"],
            "machine": f"{machine['cpu']}, {machine['cores']} cores, tmpfs"}


def version(name):
    return name.split(",")[0].replace("DuckDB v", "DuckDB ")


def restart_data(data):
    engines = [{"key": engine["key"], "version": version(engine["name"]), "points": [
        {"rows": point["rows"], "ms": round(point["first_answer_ms"]["median"], 2)}
        for point in engine["points"]]} for engine in data["engines"] if engine["key"] in ENGINES]
    distinct = count(data["engines"][0]["points"][0]["distinct"])
    return common(data) | {"conditions": "From the start of a process to a right look-up by key; "
                           f"{distinct} distinct values in each of 4 columns; "
                           f"median of {data['runs']}.",
                           "engines": engines}


def crash_data(data):
    engines = []
    for curve in data["curves"]:
        key = curve.get("engine", curve.get("key", ""))
        if key in ENGINES:
            engines.append({"key": key, "version": version(curve["name"]),
                            "before_tps": round(curve["before_tps"]),
                            "first_answer_ms": round(curve["first_answer_ms"], 1),
                            "curve": smoothed(curve["curve"])})
    first = data["curves"][0]
    return common(data) | {"conditions": f"TATP, {count(first['subscribers'])} subscribers, "
                           f"{first['users']} users, every commit synced; 20 ms a point.",
                           "engines": engines}


def smoothed(curve, width_ms=20):
    """Means over windows, from 0.3 s before the kill to 0.7 s after it."""
    windows = {}
    for before, sample in zip(curve, curve[1:]):
        span = sample["ms"] - before["ms"]
        total = windows.setdefault(math.floor(sample["ms"] / width_ms), [0.0, 0.0])
        total[0] += sample["tps"] * span
        total[1] += span
    return [[(window + 0.5) * width_ms, round(done / span)]
            for window, (done, span) in sorted(windows.items())
            if span > 0 and -300 <= window * width_ms <= 700]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--take", metavar="DIRECTORY")
    parser.add_argument("--date", help="date of the measurement, with --take: YYYY-MM-DD")
    options = parser.parse_args()
    if options.take:
        if not options.date:
            parser.error("--take needs --date")
        for name, data in taken(options.take).items():
            with open(os.path.join(HOME, name + ".json"), "w", encoding="utf-8") as file:
                json.dump({"date": options.date} | data, file, indent=1)
                file.write("\n")
    drawn = {"engine": engine()}
    for name, draw in (("restart", restart), ("crash", crash)):
        path = os.path.join(HOME, name + ".json")
        if os.path.exists(path):  # as soon as it was measured
            with open(path, encoding="utf-8") as file:
                drawn[name] = draw(json.load(file))
    stale = []
    for name, text in drawn.items():
        path = os.path.join(HOME, name + ".svg")
        if not os.path.exists(path) or open(path, encoding="utf-8").read() != text:
            stale.append(name)
            if not options.check:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
    if options.check and stale:
        print("out of date, run tools/pictures.py:", ", ".join(stale))
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
