"""What the tests share: pools on tmpfs, which are gone after the test."""

import glob
import itertools
import os
import tempfile

import flugs
import pytest

_NUMBERS = itertools.count()


@pytest.fixture(name="path")
def path_of_pool():
    folder = "/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir()
    path = os.path.join(folder, f"flugs_python_{os.getpid()}_{next(_NUMBERS)}.pool")
    yield path
    for left in glob.glob(path + "*"):
        os.remove(left)


@pytest.fixture(name="db")
def database(path):
    with flugs.open(path, max_bytes=1 << 28) as db:
        yield db


@pytest.fixture(name="sales")
def table_of_sales(db):
    return db.create_table(
        "sales", {"id": flugs.int64.auto_increment(), "item": flugs.string.not_null(),
                  "price": flugs.decimal(2), "count": flugs.int32.not_null().default(1)},
        primary_key=flugs.Key("id", ordered=True), keys={"by_item": "item"})


ALL_TYPES = {"k": flugs.int64, "b": flugs.boolean, "i": flugs.int32, "l": flugs.int64,
             "f": flugs.double, "m": flugs.decimal(3), "d": flugs.date, "t": flugs.timestamp,
             "s": flugs.string, "y": flugs.binary}


@pytest.fixture(name="everything")
def table_of_all_types(db):
    return db.create_table("everything", ALL_TYPES, primary_key="k")
