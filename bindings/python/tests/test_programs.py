"""Whole programs: kills, the notebook, the types that checkers see."""

import json
import os
import re
import subprocess
import sys

import flugs
import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
NOTEBOOK = os.path.join(HERE, "..", "examples", "shop.ipynb")


def run_kills(kills, *arguments):
    ended = subprocess.run([sys.executable, os.path.join(HERE, "kill_inserts.py"), "--kills",
                            str(kills), *arguments],
                           capture_output=True, text=True, timeout=600, check=False)
    assert ended.stdout, ended.stderr
    return ended.returncode, json.loads(ended.stdout)


def test_nothing_that_was_acknowledged_is_lost_by_kills():
    pytest.importorskip("pyarrow")
    kills = int(os.environ.get("FLUGS_KILLS", "40"))
    status, report = run_kills(kills)
    assert status == 0 and report["lost_acknowledged"] == 0, report
    assert report["acknowledged"] > kills
    assert report["kills_in_arrow"] > 0 and report["kills_in_opening"] > 0


@pytest.mark.parametrize("damage", ["row", "old", "update", "deletion", "batch", "part"])
def test_the_audit_after_a_kill_finds_what_is_lost(damage):
    pytest.importorskip("pyarrow")
    status, report = run_kills(25, "--damage", damage)
    assert status == 1 and report["lost_acknowledged"] == report["damaged"] > 0, report


def test_the_module_looks_for_no_library_in_the_working_directory(tmp_path):
    module = os.path.abspath(flugs._flugs.__file__)
    looked = subprocess.run([sys.executable, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1])",
                             module], env={**os.environ, "LD_DEBUG": "libs"}, cwd=tmp_path,
                            capture_output=True, text=True, timeout=60, check=False).stderr
    tried = re.findall(r"trying file=(.*)", looked)
    assert any("libstdc++" in name for name in tried), looked
    assert [name for name in tried if not name.startswith("/")] == []


def test_the_notebook_runs(tmp_path):
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3",
                            resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in notebook.cells if cell.cell_type == "code"
             for output in cell.outputs]
    assert shown and all(output.output_type != "error" for output in shown)


def blocks_of(page):
    """The examples in Python of a page."""
    with open(os.path.join(HERE, "..", "..", "..", page), encoding="utf-8") as file:
        text = file.read()
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", ["docs/python.md", "bindings/python/README.md"])
def test_the_examples_of_the_pages_run(page, path):
    duckdb = pytest.importorskip("duckdb")
    polars = pytest.importorskip("polars")
    names = {"duckdb": duckdb, "polars": polars}
    # The page closes its database before it shows the rest.
    text = "\n".join(blocks_of(page)).replace("\ndb.close()", "")
    exec(text.replace("/dev/shm/shop.pool", path), names)  # pylint: disable=exec-used
    if "db" in names:
        names["db"].close()


def test_the_stubs_are_those_of_the_module():
    pytest.importorskip("nanobind")
    ended = subprocess.run([sys.executable, os.path.join(HERE, "make_stubs.py"), "--check"],
                           capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr
    package = os.path.dirname(flugs.__file__)
    assert os.path.exists(os.path.join(package, "py.typed"))
    with open(os.path.join(package, "_flugs.pyi"), encoding="utf-8") as file:
        text = file.read()
    compile(text, "_flugs.pyi", "exec")
    assert "*args" not in text and "def get(self, table: str | Table" in text


def run_mypy(folder, *what):
    """The errors of mypy --strict. That pyarrow and pandas have no stubs is not ours."""
    ended = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--disable-error-code=import-untyped",
         "--no-error-summary", "--hide-error-context", "--cache-dir", str(folder / "cache"), *what],
        capture_output=True, text=True, timeout=300, check=False, cwd=folder,
        env=dict(os.environ, MYPYPATH=os.path.join(HERE, "..")))
    assert ended.returncode in (0, 1) and not ended.stderr, ended.stdout + ended.stderr
    return [line for line in ended.stdout.splitlines() if ": error:" in line]


PROGRAM = """\
import flugs

with flugs.open(":memory:") as db:
    table: flugs.Table = db.create_table("t", {"a": flugs.int64}, primary_key="a")
    count: int = table.update_where(flugs.col("a") == 1, {"a": 2})
    row: dict[str, object] | None = table.get(1)
    number: int = db.run(lambda t: t.delete_where("t", flugs.col("a") != 1))
    plan: str = db.query("t").run().explain()
"""


def test_mypy_finds_nothing_in_the_package_nor_in_a_program(tmp_path):
    pytest.importorskip("mypy")
    assert not run_mypy(tmp_path, "-p", "flugs")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    assert not run_mypy(tmp_path, "program.py")
    program.write_text(PROGRAM.replace("count: int", "count: str") + "table.nothing()\n")
    errors = run_mypy(tmp_path, "program.py")
    assert len(errors) == 2 and "program.py:5:" in errors[0] and "nothing" in errors[1], errors
