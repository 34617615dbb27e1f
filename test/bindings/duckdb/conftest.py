"""Pools in shared memory, and DuckDB with the extension that FLUGS_DUCKDB_EXTENSION names."""

import os
import shutil
import tempfile

import duckdb
import pytest

import flugs

EXTENSION = os.environ["FLUGS_DUCKDB_EXTENSION"]


def connect(path=":memory:", **config):
    connection = duckdb.connect(path, config={"allow_unsigned_extensions": "true", **config})
    connection.load_extension(EXTENSION)
    return connection


@pytest.fixture
def folder():
    path = tempfile.mkdtemp(prefix="flugs_duckdb_", dir="/dev/shm")
    yield path
    shutil.rmtree(path)


@pytest.fixture
def con():
    with connect() as connection:
        yield connection


@pytest.fixture
def pool(folder):
    return os.path.join(folder, "test.pool")


def make(path, tables, rows):
    """A pool with tables, given as name: columns, and their rows, given as name: rows."""
    with flugs.open(path, max_bytes=1 << 28) as db:
        for name, columns in tables.items():
            db.create_table(name, columns).insert_rows(rows[name])
