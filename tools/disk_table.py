"""The table of tools/disk-table: medians of runs, ratios to the best rival, and what was reached.

Results are a dictionary: "measurements" has the runs of each measurement by its name
(tools/disk_table_run.py), each with "exit_status", "why" and "result", the JSON of `flugs bench`.
"""

import dataclasses
import math
import statistics

OWN = "flugs-pool"  # indexes in the pool, the default
USERS = (1, 8, 16, 64)
SOON_USERS = (1, 2)
SUSTAINED_USERS = 2
SOON_MS = 10
DISTRIBUTIONS = ("uniform", "nurand")
TIMES_THE_MEMORY = 3.9  # what is taken for four times
HEAD = ("figure", "flugs", "best rival", "ratio", "floor", "goal", "reached?")


@dataclasses.dataclass(frozen=True)
class Bounds:
    """What the issue asks for: at least floor and goal, or at most."""
    floor: float
    goal: float
    unit: str = ""
    at_most: bool = False

    def text(self, bound):
        return ("at most " if self.at_most else "") + number(bound) + self.unit

    def reached(self, value):
        """Values are compared as they are printed, with three digits."""
        shown = rounded(value)
        for name, bound in (("goal", self.goal), ("floor", self.floor)):
            if shown <= bound if self.at_most else shown >= bound:
                return name
        return "no"


TPS_BOUNDS = {1: Bounds(1, 1.25, "x"), 8: Bounds(1.7, 2, "x"), 16: Bounds(2.5, 3.5, "x"),
              64: Bounds(1.8, 3, "x")}
ANSWER_BOUNDS = Bounds(60, 25, " ms", at_most=True)
SOON_BOUNDS = Bounds(60, 90, " %")
SUSTAINED_BOUNDS = Bounds(30, 50, " %")
WRITES_BOUNDS = Bounds(1, 1, "", at_most=True)
BYTES_BOUNDS = Bounds(750, 550, "", at_most=True)
PROCESSOR_BOUNDS = Bounds(600, 300, " ns", at_most=True)
CHECKPOINT_BOUNDS = Bounds(3, 1.5, "x", at_most=True)
MEMORY_BOUNDS = Bounds(0.5, 1, "x")


@dataclasses.dataclass
class Row:
    figure: str
    flugs: str = "-"
    rival: str = "-"
    ratio: str = "-"
    bounds: Bounds = None
    judged: float = None  # what is compared with the bounds
    why: str = ""  # it was not measured, or does not count

    def reached(self):
        if self.why:
            return self.why
        return self.bounds.reached(self.judged) if self.bounds else "-"

    def cells(self):
        bounds = self.bounds
        limits = (bounds.text(bounds.floor), bounds.text(bounds.goal)) if bounds else ("-", "-")
        return (self.figure, self.flugs, self.rival, self.ratio, *limits, self.reached())


def rounded(value):
    return value if math.isinf(value) else float(f"{value:.3g}")


def number(value):
    """Three digits: 1.15, 59.8, 1050."""
    if math.isinf(value):
        return "none"
    value = rounded(value)
    return f"{value:.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"


def per_second(value):
    return f"{number(value / 1000)} k/s" if value >= 10000 else f"{number(value)}/s"


def milliseconds(value):
    return "no answer" if math.isinf(value) else f"{number(value)} ms"


def spread(values, text):
    """The median, and between what the runs lie."""
    median = text(statistics.median(values))
    if len(values) == 1:
        return median
    return f"{median} ({text(min(values))} to {text(max(values))})"


def not_measured(why):
    return f"not measured: {why}"


class Results:
    def __init__(self, measurements):
        self._measurements = measurements

    def outcomes(self, name, statuses=(0,)):
        """The JSON of the runs that ended with one of these statuses."""
        return [run["result"] for run in self._measurements.get(name, ())
                if run["result"] and run["exit_status"] in statuses]

    def why(self, name):
        """Why a measurement has no outcome."""
        runs = self._measurements.get(name, ())
        return next((run["why"] for run in runs if run["why"]), "was not run")

    def failures(self):
        """Of runs: what failed, and why."""
        return [f"{name}, run {run['run']}: {run['why']}"
                for name, runs in self._measurements.items() for run in runs if run["why"]]

    def values(self, name, value_of):
        return [value_of(outcome) for outcome in self.outcomes(name)]


class Engine:
    """What the runs of one engine gave in Figure 8b or in figure memory."""

    def __init__(self, runs):
        self.name = runs[-1]["name"]
        self.runs = runs

    def values(self, key):
        """A time that never came is longer than all others."""
        return [math.inf if run[key] is None else run[key] for run in self.runs]

    def median(self, key):
        return statistics.median(self.values(key))

    def text(self, key, text):
        return f"{self.name}: {spread(self.values(key), text)}"

    def wrong(self):
        """What it lost or answered wrongly; empty: nothing."""
        lost = sum(run["lost_acknowledged"] for run in self.runs)
        if lost:
            return f"lost {lost} acknowledged transactions"
        return "" if all(run["audit_ok"] for run in self.runs) else "failed the audit"


def engines_of(outcomes, entries, keep=lambda run: True):
    """Engines by their key, in the order of the first run."""
    runs = {}
    for outcome in outcomes:
        for entry in outcome[entries]:
            if keep(entry):
                runs.setdefault(entry["key"], []).append(entry)
    return {key: Engine(list_of_runs) for key, list_of_runs in runs.items()}


def crash_engines(results, users):
    """A run in which an engine was wrong has status 1, and its figures."""
    return engines_of(results.outcomes(f"rivals-{users}", (0, 1)), "curves")


def rivals_of(engines):
    return [engine for key, engine in engines.items() if not key.startswith("flugs")]


def best(engines, key, choose=max):
    """An engine that lost what it had acknowledged is not compared with."""
    right = [engine for engine in engines if not engine.wrong()]
    return choose(right, key=lambda engine: engine.median(key), default=None)


def left_out(results, name):
    """Engines that are not there: {engine: why}."""
    return {entry["engine"]: entry["why"] for outcome in results.outcomes(name, (0, 1))
            for entry in outcome["left_out"]}


def tps_row(results, users):
    row = Row(f"TATP on the disk, {count_of(users, 'user')}, transactions/s",
              bounds=TPS_BOUNDS[users])
    engines = crash_engines(results, users)
    if OWN not in engines:
        row.why = not_measured(results.why(f"rivals-{users}"))
        return row
    own, rival = engines[OWN], best(rivals_of(engines), "before_tps")
    row.flugs = spread(own.values("before_tps"), per_second)
    if rival is None:
        row.why = not_measured("there is no rival")
    else:
        row.judged = own.median("before_tps") / max(rival.median("before_tps"), 1e-9)
        row.rival = rival.text("before_tps", per_second)
        row.ratio = number(row.judged)
    if own.wrong():
        row.why = f"no: flugs {own.wrong()}"
    return row


def answer_row(results, users):
    row = Row(f"first answer after SIGKILL, {count_of(users, 'user')}", bounds=ANSWER_BOUNDS)
    engines = crash_engines(results, users)
    if OWN not in engines:
        row.why = not_measured(results.why(f"rivals-{users}"))
        return row
    own, rival = engines[OWN], best(rivals_of(engines), "first_answer_ms", min)
    row.judged = own.median("first_answer_ms")
    row.flugs = spread(own.values("first_answer_ms"), milliseconds)
    if rival is not None:
        its = rival.median("first_answer_ms")
        row.rival = rival.text("first_answer_ms", milliseconds)
        if not math.isinf(row.judged) and not math.isinf(its):
            row.ratio = number(row.judged / its)
    if own.wrong():
        row.why = f"no: flugs {own.wrong()}"
    return row


def soon_row(results, figure, name, users, bounds):
    """A run on the disk beside the short ones on tmpfs with as many users."""
    row = Row(figure, bounds=bounds)
    base = f"tatp-tmpfs-soon-{users}"
    disk, memory = (results.values(of, lambda run: run["executed_tps"]) for of in (name, base))
    if disk:
        late = statistics.median(results.values(name, lambda run: run["durability"]["late_share"]))
        row.flugs = (f"{spread(disk, per_second)}, {number(100 * late)} % later than "
                     f"{SOON_MS} ms")
    if memory:
        row.rival = f"flugs on tmpfs: {spread(memory, per_second)}"
    if not disk or not memory:
        row.why = not_measured(results.why(base if disk else name))
    else:
        row.judged = 100 * statistics.median(disk) / statistics.median(memory)
        row.ratio = f"{number(row.judged)} %"
    return row


def journal_row(results, figure, key, bounds):
    values = results.values("tatp-disk-1", lambda run: run["journal_per_write_txn"][key])
    if not values:
        return Row(figure, bounds=bounds, why=not_measured(results.why("tatp-disk-1")))
    return Row(figure, spread(values, number), bounds=bounds, judged=statistics.median(values))


def checkpoint_row(results):
    times, without = (results.values(name, lambda run: run["latency_ns"]["update_location"]["p999"])
                      for name in ("tatp-disk-1", "tatp-no-checkpoint"))
    row = Row("p99.9 of UPDATE_LOCATION, 1 user, with checkpoints against without",
              bounds=CHECKPOINT_BOUNDS)
    if times:
        row.flugs = spread([time / 1e6 for time in times], milliseconds)
    if without:
        row.rival = f"flugs without: {spread([time / 1e6 for time in without], milliseconds)}"
    if times and without:
        row.judged = statistics.median(times) / statistics.median(without)
        row.ratio = number(row.judged)
    else:
        row.why = not_measured(results.why("tatp-no-checkpoint" if times else "tatp-disk-1"))
    return row


def nanoseconds(value):
    return f"{number(value)} ns"


def processor_row(results):
    """What a write transaction takes more with a journal than without, both on a tmpfs."""
    row = Row("processor time of the journal a write transaction, on tmpfs, 1 user",
              bounds=PROCESSOR_BOUNDS)
    times = {(name, part): results.values(name, lambda run, p=part: sum(
        run["processor_ns_per_write_txn"][one] for one in p))
        for name in ("journal-cpu", "journal-cpu-tmpfs")
        for part in (("user", "system"), ("system",))}
    both, kernel = (times["journal-cpu", part] for part in (("user", "system"), ("system",)))
    without, its_kernel = (times["journal-cpu-tmpfs", part]
                           for part in (("user", "system"), ("system",)))
    if both:
        row.flugs = (f"{spread(both, nanoseconds)}, of it "
                     f"{nanoseconds(statistics.median(kernel))} in the kernel")
    if without:
        row.rival = (f"flugs without: {spread(without, nanoseconds)}, of it "
                     f"{nanoseconds(statistics.median(its_kernel))} in the kernel")
    if both and without:
        row.judged = statistics.median(both) - statistics.median(without)
        row.ratio = f"{nanoseconds(row.judged)} more"
    else:
        row.why = not_measured(results.why("journal-cpu-tmpfs" if both else "journal-cpu"))
    return row


def memory_row(results, distribution):
    """LMDB is the rival of the bounds; if another one is better, the cell says so."""
    row = Row(f"reads with a quarter of the database's memory, {distribution} ids",
              bounds=MEMORY_BOUNDS)
    engines = engines_of(results.outcomes("memory"), "runs",
                         lambda run: run["distribution"] == distribution)
    own, lmdb = engines.get(OWN), engines.get("lmdb")
    rivals = rivals_of(engines)
    first = max(rivals, key=lambda engine: engine.median("reads_per_second"), default=None)
    row.rival = "; ".join(engine.text("reads_per_second", per_second)
                          for engine in dict.fromkeys([lmdb, first]) if engine) or "-"
    if own is None:
        row.why = not_measured(results.why("memory"))
        return row
    row.flugs = spread(own.values("reads_per_second"), per_second)
    size = own.median("database_bytes") / own.median("memory_bytes")
    if lmdb is None:
        row.why = not_measured("LMDB was left out: " + next(
            (why for engine, why in left_out(results, "memory").items()
             if engine.startswith("lmdb")), "it was not asked for"))
        return row
    row.judged = own.median("reads_per_second") / max(lmdb.median("reads_per_second"), 1e-9)
    row.ratio = number(row.judged)
    if size < TIMES_THE_MEMORY:
        row.why = not_measured(f"the database was {number(size)} times the memory")
    return row


def rows_of(results):
    rows = [tps_row(results, users) for users in USERS]
    rows += [soon_row(results, f"durable within {SOON_MS} ms beside tmpfs, "
                               f"{count_of(users, 'user')}", f"tatp-disk-soon-{users}", users,
                      SOON_BOUNDS if users == 2 else None) for users in SOON_USERS]
    rows += [soon_row(results, f"the same sustained, {count_of(SUSTAINED_USERS, 'user')}, one run",
                      "tatp-disk-sustained", SUSTAINED_USERS, SUSTAINED_BOUNDS),
             journal_row(results, "journal writes a write transaction, 1 user", "writes",
                         WRITES_BOUNDS),
             journal_row(results, "journal bytes a write transaction, 1 user", "record_bytes",
                         BYTES_BOUNDS),
             processor_row(results)]
    rows += [answer_row(results, users) for users in USERS]
    return rows + [checkpoint_row(results)] + [memory_row(results, d) for d in DISTRIBUTIONS]


def count_of(count, noun):
    return f"1 {noun}" if count == 1 else f"{count} {noun}s"


def row_json(row):
    result = dict(zip(HEAD, row.cells()))
    result["judged"] = None if row.judged is None or math.isinf(row.judged) else row.judged
    return result


def engine_lines(results):
    """What each engine's commit guarantees, and its figures with each number of users."""
    by_users = {users: crash_engines(results, users) for users in USERS}
    by_users = {users: engines for users, engines in by_users.items() if engines}
    keys = dict.fromkeys(key for engines in by_users.values() for key in engines)
    for key in keys:
        engines = {users: of[key] for users, of in by_users.items() if key in of}
        last = engines[max(engines)]
        speeds = ", ".join(per_second(e.median("before_tps")) for e in engines.values())
        answers = ", ".join(milliseconds(e.median("first_answer_ms")) for e in engines.values())
        lost = sum(run["lost_acknowledged"] for e in engines.values() for run in e.runs)
        writers = "1 writer" if last.runs[-1]["writers"] == 1 < max(engines) else "all users write"
        yield (f"{last.name}: {last.runs[-1]['guarantee'].rstrip('.')}; {writers}; "
               f"users {', '.join(map(str, engines))}: {speeds}, first answer {answers}; "
               f"acknowledged and lost: {lost}")


def left_out_lines(results):
    names = [f"rivals-{users}" for users in USERS] + ["memory"]
    return list(dict.fromkeys(f"{engine} is left out: {why}" for name in names
                              for engine, why in left_out(results, name).items()))


def soon_line(results):
    outcomes = results.outcomes("tatp-disk-soon-2")
    return [f"flugs, --durable-within {SOON_MS}: {outcomes[-1]['guarantee']}"] if outcomes else []


def device_text(latency):
    """Of the medians before and after all runs."""
    whys = [one["why"] for one in latency if one.get("why")]
    if whys or not latency:
        return not_measured((whys or ["was not run"])[0])
    return ", ".join(f"{number(one['median_us'])} us {one['when']}" for one in latency)


def condition_lines(data):
    machine, sizes = data["machine"], data["sizes"]
    yield f"`{data['command']}`"
    yield (f"commit {data['commit']}, {data['date']}, {machine['cpu']}, "
           f"{count_of(machine['cores'], 'processor')}, {machine['kernel']}; load average before "
           f"{data['load']:.2f}")
    yield (f"medium {data['medium']}; a synchronous write of 4 KB takes the device "
           f"{device_text(data['device'])} (O_DIRECT, O_DSYNC, medians of "
           f"{sizes['device_writes']})")
    yield (f"{sizes['subscribers']} subscribers, {number(sizes['seconds'])} s a run, sustained "
           f"{number(sizes['sustained'])} s; memory: {sizes['memory_subscribers']} subscribers, "
           f"{count_of(sizes['memory_users'], 'user')}; {count_of(sizes['runs'], 'run')} of each "
           "figure, medians")
    yield ("flugs has its indexes in the pool (the default); in brackets the least and the most "
           "of the runs; 1x is as much as the rival")
    if sizes["quick"]:
        yield "a quick run: its figures are too small to say anything"


def markdown(data):
    """The table and what belongs to it."""
    results = Results(data["measurements"])
    lines = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    lines += ["| " + " | ".join(cell.replace("|", "/") for cell in row.cells()) + " |"
              for row in rows_of(results)]
    lines.append("")
    for text in (*condition_lines(data), *engine_lines(results), *soon_line(results),
                 *left_out_lines(results), *results.failures()):
        lines.append("* " + text)
    return "\n".join(lines)


def is_wrong(data):
    """Whether a check failed: a lost transaction, a wrong answer, a broken invariant."""
    return any(run["exit_status"] == 1 for runs in data["measurements"].values() for run in runs)
