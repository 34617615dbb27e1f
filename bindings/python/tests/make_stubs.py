"""Makes bindings/python/flugs/_flugs.pyi, the types of the module as checkers see them.

make_stubs.py [--check]   with --check: exit status 1 if the file is another
"""

import os
import re
import sys

from nanobind.stubgen import StubGen

HERE = os.path.dirname(os.path.abspath(__file__))
STUB = os.path.join(HERE, "..", "flugs", "_flugs.pyi")
HEADER = '''"""The engine of flugs. Made by bindings/python/tests/make_stubs.py."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeVar

import duckdb
import pandas
import polars
import pyarrow

from flugs._schema import Column, ForeignKey, Key

T = TypeVar("T")
Row = Mapping[str, Any] | tuple[Any, ...] | list[Any]

class _Stream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class _Array(Protocol):
    def __arrow_c_array__(
        self, requested_schema: object | None = None) -> tuple[object, object]: ...

Arrow = _Stream | _Array

'''


END = '''
def _check_signals() -> None: ...

def _lend(source: Database | Transaction) -> tuple[str, list[str]]: ...

def _serve_duckdb(extension: bytes) -> None: ...
'''


def make():
    from flugs import _flugs
    maker = StubGen(module=_flugs)
    maker.put(_flugs)
    text = maker.get()
    # Comparisons of an Expr give a condition, not a truth.
    text = re.sub(r"(def __(?:eq|ne)__\(self, other: Any\) -> Expr: \.\.\.)",
                  r"\1  # type: ignore[override]", text)
    return HEADER + text[text.index("class "):] + END


def main():
    text = make()
    if sys.argv[1:] == ["--check"]:
        with open(STUB, encoding="utf-8") as file:
            if file.read() != text:
                sys.exit(f"{STUB} is not what make_stubs.py makes: run it")
        return
    with open(STUB, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
