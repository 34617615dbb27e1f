"""More than 2 GiB of text at once, into flugs and out of it. By night: it takes 6 GB of memory.

pytest names this file: see CMakeLists.txt. FLUGS_TEXTS says how many texts of 1 MiB there are.
"""

import gc
import os
import random
import resource

import flugs
import pytest

pyarrow = pytest.importorskip("pyarrow")

SIZE = 1 << 20  # of a text
TEXTS = int(os.environ.get("FLUGS_TEXTS", "2253"))
BYTES_OF_PROCESS_MAX = 7 << 30  # with the pages of the pool
LETTERS = bytes(random.Random(1).choices(b"abcdefghijklmnopqrstuvwxyz", k=SIZE))


def text(k):
    return b"%08d" % k + LETTERS[8 + k:] + LETTERS[:k]


def memory_is_there():
    with open("/proc/meminfo", encoding="utf-8") as file:
        fields = dict(line.split(":") for line in file)
    return int(fields["MemAvailable"].split()[0]) << 10 > BYTES_OF_PROCESS_MAX


def batch_of_large_texts():
    """One array, whose last offsets are above 2^31."""
    data = bytearray(TEXTS * SIZE)
    for k in range(TEXTS):
        data[k * SIZE:(k + 1) * SIZE] = text(k)
    offsets = pyarrow.array(range(0, (TEXTS + 1) * SIZE, SIZE), pyarrow.int64()).buffers()[1]
    texts = pyarrow.LargeStringArray.from_buffers(TEXTS, offsets, pyarrow.py_buffer(data))
    return pyarrow.record_batch({"id": pyarrow.array(range(TEXTS), pyarrow.int64()), "s": texts})


def audit(arrow):
    """Full validation, and every text. Offsets of 32 bits do for each array, not for all."""
    arrow.validate(full=True)
    assert arrow.num_rows == TEXTS and arrow.schema.field("s").type == pyarrow.string()
    seen = set()
    for ids, texts in zip(arrow["id"].chunks, arrow["s"].chunks):
        for k, held in zip(ids.to_pylist(), texts):
            assert held.as_buffer().equals(pyarrow.py_buffer(text(k))), k
            seen.add(k)
    assert len(seen) == TEXTS


@pytest.fixture(name="db")
def large_database(path):
    if not memory_is_there():
        pytest.skip(f"it takes {BYTES_OF_PROCESS_MAX >> 30} GiB of memory")
    with flugs.open(path, max_bytes=6 << 30) as db:
        yield db


def test_more_than_2_gib_of_text_in_and_out(db):
    table = db.create_table("t", {"id": flugs.int64, "s": flugs.string}, primary_key="id")
    batch = batch_of_large_texts()
    assert batch.schema.field("s").type == pyarrow.large_string()
    assert table.insert_rows(batch) == TEXTS
    del batch
    gc.collect()
    audit(table.to_arrow())
    gc.collect()
    db.merge("t")
    audit(table.query().order_by("id").to_arrow())
    gc.collect()
    audit(table.to_arrow())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    print(f"{peak >> 20} MiB at most")
    assert peak < BYTES_OF_PROCESS_MAX
