"""Processes of Python are killed in the middle of inserts; what they acknowledged must be there.

kill_inserts.py [--kills N] [--seed S] [--pool PATH] [--json FILE]

Prints a JSON object, and writes it to FILE. Exit status 1: something is lost.
"""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time

import flugs

ROWS_AT_ONCE = 7


def write(path, acknowledge, seed):
    """The child: transactions of one row and of several, each acknowledged after its commit."""
    numbers = random.Random(seed)
    with flugs.open(path, max_bytes=1 << 28) as db:
        table = db["t"]
        last = table.rows("primary", reverse=True, limit=1)
        number = max((row["id"] for row in last), default=0)
        os.write(acknowledge, b"o")
        while True:
            number += 1
            kind = numbers.randrange(3)
            if kind == 0:
                table.insert((number, number, f"text {number}"))
            else:
                with db.begin() as t:
                    t.insert_rows("t", [(number + k, number, f"text {number}")
                                        for k in range(ROWS_AT_ONCE)])
                    if kind == 2:
                        t.update("t", number, {"text": f"again {number}"})
                number += ROWS_AT_ONCE - 1
            os.write(acknowledge, number.to_bytes(8, "little"))


def audit(path, acknowledged):
    """The number of rows that should be there and are not, or are there in part."""
    lost = 0
    with flugs.open(path) as db:
        groups = {}
        for number, first, text in db.query("t").select("id", "first", "text"):
            groups.setdefault(first, []).append((number, text))
        present = sorted(number for rows in groups.values() for number, _ in rows)
        lost += sum(1 for expected, number in enumerate(present, 1) if expected != number)
        lost += max(0, acknowledged - len(present))
        for first, rows in groups.items():
            texts = {text for _, text in rows}
            whole = len(rows) in (1, ROWS_AT_ONCE)
            right = texts <= {f"text {first}", f"again {first}"}
            lost += not (whole and right)
        db.check()
        if len(present) > 5_000:
            with db.begin() as t:
                t.delete_where("t", flugs.col("id") > 0)
            present = []
    return lost, len(present)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pool")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    folder = "/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir()
    path = arguments.pool or os.path.join(folder, f"flugs_python_kills_{os.getpid()}.pool")
    numbers = random.Random(arguments.seed)
    with flugs.open(path, exclusive=True, max_bytes=1 << 28) as db:
        db.create_table("t", {"id": flugs.int64, "first": flugs.int64, "text": flugs.string},
                        primary_key=flugs.Key("id", ordered=True))
    lost = acknowledged_rows = 0
    for kill in range(arguments.kills):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            write(path, writing, arguments.seed * 1_000_003 + kill)
        os.close(writing)
        assert os.read(reading, 1) == b"o"
        time.sleep(numbers.random() * 0.02)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        answers = b""
        while piece := os.read(reading, 1 << 16):
            answers += piece
        os.close(reading)
        last = len(answers) // 8 * 8
        acknowledged = int.from_bytes(answers[last - 8:last], "little") if last else 0
        acknowledged_rows += len(answers) // 8
        missing, _ = audit(path, acknowledged)
        lost += missing
    os.remove(path)
    result = json.dumps({"kills": arguments.kills, "acknowledged": acknowledged_rows,
                         "lost_acknowledged": lost})
    print(result)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            file.write(result)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
