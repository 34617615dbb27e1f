"""Processes of Python are killed while they insert, update and open; the audit compares all rows.

kill_inserts.py [--kills N] [--seed S] [--pool PATH] [--json FILE] [--damage HOW]

After each kill the pool must hold what all processes before acknowledged, row by row and text by
text. A transaction that had begun is there whole or not at all. Prints a JSON object, and writes it
to FILE. Exit status 1: something is lost.

--damage spoils the pool before each audit. It shows that the audit finds this.
"""

import argparse
import json
import mmap
import os
import random
import signal
import struct
import sys
import tempfile
import time

import flugs
import pyarrow

ROW, ROWS, ROWS_AND_UPDATE, UPDATE, DELETE, BATCH, BATCHES = range(7)
KINDS = (ROW, ROWS, ROWS_AND_UPDATE, UPDATE, DELETE, BATCH, BATCHES)
ARROW = (BATCH, BATCHES)
SIZES = {ROW: 1, ROWS: 7, ROWS_AND_UPDATE: 7, UPDATE: 1, DELETE: 1, BATCH: 500, BATCHES: 1500}
CHUNKS = 3  # of BATCHES
WEIGHTS = (40, 30, 30, 40, 10, 4, 2)
WEIGHTS_OF_ARROW = (4, 2, 2, 4, 1, 20, 20)
TYPES = pyarrow.schema({"id": pyarrow.int64(), "first": pyarrow.int64(), "text": pyarrow.string()})
ROWS_MAX = 12_000
ROWS_KEPT = 500  # of the first ones: they stay through all lives
DAMAGES = ("row", "old", "update", "deletion", "batch", "part")


class Log:
    """What a process begins and has done, in memory that stays when it is killed."""

    RECORD = struct.Struct("=3Q")
    RECORDS_MAX = 100_000

    def __init__(self):
        self._memory = mmap.mmap(-1, 64 + self.RECORDS_MAX * self.RECORD.size)
        self._numbers = memoryview(self._memory)[:64].cast("Q")

    def _number(index):  # pylint: disable=no-self-argument
        def write(self, value):
            self._numbers[index] = value
        return property(lambda self: self._numbers[index], write)

    starts = _number(0)  # the process is about to open
    is_open = _number(1)
    begun = _number(2)
    done = _number(3)

    def clear(self):
        self.starts = self.is_open = self.begun = self.done = 0

    def begin(self, work):
        self.RECORD.pack_into(self._memory, 64 + self.begun * self.RECORD.size, *work)
        self.begun += 1

    def works(self):
        return [self.RECORD.unpack_from(self._memory, 64 + i * self.RECORD.size)
                for i in range(self.begun)]


def changes_of(work, rows):
    """{number: (first, text), or None} that a transaction makes of `rows`."""
    kind, number, version = work
    if kind == UPDATE:
        return {number: (rows[number][0], f"version {version} of {number}")}
    if kind == DELETE:
        return {number: None}
    changes = {number + k: (number, f"text {number} {k % 9}") for k in range(SIZES[kind])}
    if kind == ROWS_AND_UPDATE:
        changes[number] = (number, f"again {number}")
    return changes


def apply(changes, rows):
    for number, row in changes.items():
        if row is None:
            del rows[number]
        else:
            rows[number] = row


def choose(numbers, rows, last, weights):
    """A transaction. Updates and deletes are of any row, also of an earlier life."""
    kind = numbers.choices(KINDS, weights)[0]
    if kind in (UPDATE, DELETE):
        for _ in range(20):
            number = numbers.randint(1, last + 1)
            if number in rows:
                return kind, number, numbers.getrandbits(32)
        kind = ROW
    return kind, last + 1, 0


def arrow_of(kind, changes):
    ids = list(changes)
    columns = [pyarrow.array(ids), pyarrow.array([first for first, _ in changes.values()]),
               pyarrow.array([text for _, text in changes.values()])]
    batch = pyarrow.RecordBatch.from_arrays(columns, schema=TYPES)
    if kind == BATCH:
        return batch
    size = len(ids) // CHUNKS
    return pyarrow.Table.from_batches([batch.slice(i * size, size) for i in range(CHUNKS)])


def run(db, work, changes, arrow):
    kind, number, _ = work
    table = db["t"]
    if kind == ROW:
        table.insert((number, *changes[number]))
    elif kind == UPDATE:
        table.update(number, {"text": changes[number][1]})
    elif kind == DELETE:
        table.delete(number)
    elif kind == BATCH:
        table.insert_rows(arrow)
    else:
        with db.begin() as t:
            if kind == BATCHES:
                t.insert_rows("t", arrow)
            else:
                t.insert_rows("t", [(k, number, f"text {number} {(k - number) % 9}")
                                    for k in changes])
            if kind == ROWS_AND_UPDATE:
                t.update("t", number, {"text": changes[number][1]})


def write(path, log, rows, numbers, weights):
    """The child: transactions without end. `log` has each before it begins and after its commit."""
    log.starts = 1
    with flugs.open(path, max_bytes=1 << 28) as db:
        last = max(rows, default=0)
        log.is_open = 1
        while log.begun < log.RECORDS_MAX:
            work = choose(numbers, rows, last, weights)
            changes = changes_of(work, rows)
            arrow = arrow_of(work[0], changes) if work[0] in ARROW else None
            log.begin(work)
            run(db, work, changes, arrow)
            log.done += 1
            apply(changes, rows)
            last = max(last, max(changes))
        signal.pause()


def open_only(path, log):
    """The child that is killed while it opens."""
    log.starts = 1
    with flugs.open(path, max_bytes=1 << 28):
        log.is_open = 1
        signal.pause()


def killed(log, child, is_late, seconds):
    """Forks a process that runs `child`, and kills it `seconds` after `is_late` is true."""
    log.clear()
    process = os.fork()
    if process == 0:
        try:
            child()
        except BaseException as error:  # pylint: disable=broad-exception-caught
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        os._exit(1)
    while not is_late():
        ended, _ = os.waitpid(process, os.WNOHANG)
        if ended:
            sys.exit("a process ended before it was killed")
        time.sleep(0.00005)
    time.sleep(seconds)
    os.kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    if not os.WIFSIGNALED(status):
        sys.exit("a process ended before it was killed")


def read(db):
    return {number: (first, text) for number, first, text in
            db.query("t").select("id", "first", "text")}


def difference(expected, found):
    """The number of rows that are missing, too many, or other than they should be."""
    if expected == found:
        return 0
    return sum(1 for number in expected.keys() | found.keys()
               if expected.get(number) != found.get(number))


def damage(path, how, before, works, done):
    """Changes one row in a way that no kill may. Returns whether there was one to change."""
    rows = dict(before)
    written, former = {}, {}  # number -> kind of the last transaction that wrote it; row before
    for work in works[:done]:
        changes = changes_of(work, rows)
        for number, row in changes.items():
            written[number] = work[0]
            if number in rows:
                former[number] = rows[number]
        apply(changes, rows)
    in_flight = changes_of(works[done], rows) if done < len(works) else {}
    kinds = {"row": (ROW, ROWS), "update": (UPDATE,), "deletion": (DELETE,), "batch": ARROW}
    if how == "old":
        victims = before.keys() & rows.keys() - written.keys()
    elif how == "part":
        victims = in_flight.keys() if works[done:] and works[done][0] in ARROW else ()
    else:
        victims = {number for number, kind in written.items() if kind in kinds[how]}
    victims = sorted(set(victims) - (set() if how == "part" else in_flight.keys()))
    if not victims:
        return False
    victim = victims[len(victims) // 2]
    with flugs.open(path) as db:
        table = db["t"]
        if how == "update":
            table.update(victim, {"text": former[victim][1]})
        elif how == "deletion":
            table.insert((victim, *former[victim]))
        elif table.get(victim) is not None:
            table.delete(victim)
        else:
            table.insert((victim, *in_flight[victim]))
    return True


def audit(path, rows, works, done):
    """Brings `rows` up to what the pool has. Returns the number of rows that are not as they
    should be, and how long opening took."""
    for work in works[:done]:
        apply(changes_of(work, rows), rows)
    begin = time.perf_counter()
    with flugs.open(path) as db:
        seconds = time.perf_counter() - begin
        found = read(db)
        lost = difference(rows, found)
        if lost and done < len(works):
            whole = dict(rows)
            apply(changes_of(works[done], rows), whole)
            lost = min(lost, difference(whole, found))
        db.check()
        if len(found) > ROWS_MAX:
            with db.begin() as t:
                t.delete_where("t", flugs.col("id") > ROWS_KEPT)
            found = {number: row for number, row in found.items() if number <= ROWS_KEPT}
    rows.clear()
    rows.update(found)
    return lost, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pool")
    parser.add_argument("--json")
    parser.add_argument("--damage", choices=DAMAGES)
    arguments = parser.parse_args()
    folder = "/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir()
    path = arguments.pool or os.path.join(folder, f"flugs_python_kills_{os.getpid()}.pool")
    numbers = random.Random(arguments.seed)
    with flugs.open(path, exclusive=True, max_bytes=1 << 28) as db:
        db.create_table("t", {"id": flugs.int64, "first": flugs.int64, "text": flugs.string},
                        primary_key=flugs.Key("id", ordered=True))
    figures = dict.fromkeys(("kills", "acknowledged", "lost_acknowledged", "kills_in_call",
                             "kills_in_arrow", "kills_in_opening", "damaged"), 0)
    log, rows, seconds = Log(), {}, 0.005
    arrow_of(BATCH, {1: (1, "")})  # what pyarrow imports at its first call, children have
    try:
        while figures["kills"] < arguments.kills:
            weights = numbers.choice((WEIGHTS, WEIGHTS, WEIGHTS_OF_ARROW))
            killed(log, lambda: write(path, log, rows, random.Random(numbers.random()), weights),
                   lambda: log.is_open, numbers.random() * 0.012)
            figures["kills"] += 1
            works, done = log.works(), log.done
            figures["acknowledged"] += done
            figures["kills_in_call"] += done < len(works)
            figures["kills_in_arrow"] += done < len(works) and works[done][0] in ARROW
            # Opening after a kill, which mends what the kill left, is killed as well.
            while figures["kills"] < arguments.kills and numbers.randrange(3) == 0:
                killed(log, lambda: open_only(path, log), lambda: log.starts,
                       numbers.random() * seconds)
                figures["kills"] += 1
                figures["kills_in_opening"] += not log.is_open
            if arguments.damage:
                figures["damaged"] += damage(path, arguments.damage, rows, works, done)
            lost, seconds = audit(path, rows, works, done)
            figures["lost_acknowledged"] += lost
    finally:
        os.remove(path)
    result = json.dumps(figures)
    print(result)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            file.write(result)
    return 1 if figures["lost_acknowledged"] else 0


if __name__ == "__main__":
    sys.exit(main())
