#!/usr/bin/env python3
"""Makes a loadable extension of DuckDB of a shared library: appends what DuckDB reads at its end.

footer.py LIBRARY EXTENSION DUCKDB_VERSION EXTENSION_VERSION
"""

import platform
import sys

FIELD_BYTES = 32
SIGNATURE_BYTES = 256  # zeros: the extension is not signed
MACHINES = {"x86_64": "linux_amd64", "aarch64": "linux_arm64"}
# A section of WebAssembly, which readers of such files skip: its name and size.
SECTION = b"\x00\x93\x04\x10duckdb_signature\x80\x04"


def main():
    library, extension, duckdb, version = sys.argv[1:]
    # From the last field of the file to the first.
    fields = ["4", MACHINES[platform.machine()], duckdb, version, "C_STRUCT_UNSTABLE", "", "", ""]
    footer = b"".join(field.encode().ljust(FIELD_BYTES, b"\x00") for field in reversed(fields))
    with open(library, "rb") as file:
        content = file.read()
    with open(extension, "wb") as file:
        file.write(content + SECTION + footer + bytes(SIGNATURE_BYTES))


if __name__ == "__main__":
    main()
