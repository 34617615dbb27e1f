#!/usr/bin/env python3
"""The specification of the C ABI, api_spec/*.json, and what is made of it: the headers and the
version script of the shared library (docs/decisions/0050-c-abi.md).

bindings/c/api.py                   writes include/flugs.h, include/flugs/c/types.h and flugs_c.map
bindings/c/api.py --check LIBRARY   compares them, and what LIBRARY exports, with the specification,
                                    and that with api_frozen.txt; exit status 1 if anything differs
bindings/c/api.py --freeze          adds what is stable to api_frozen.txt: for a release
"""

import argparse
import difflib
import glob
import json
import os
import re
import subprocess
import sys
import textwrap

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SPECIFICATION = os.path.join(HERE, "api_spec")
HEADER = os.path.join(ROOT, "include", "flugs.h")
TYPES = os.path.join(ROOT, "include", "flugs", "c", "types.h")
SCRIPT = os.path.join(HERE, "flugs_c.map")
FROZEN = os.path.join(HERE, "api_frozen.txt")
WIDTH = 100
LIVES = ("draft", "stable", "deprecated")
KINDS = ("handle", "enum", "struct", "inline", "function")
# The keys that an item must have, besides its kind and "doc".
KEYS = {
    "handle": set(), "enum": {"values"}, "struct": {"body"}, "inline": {"code"},
    "function": {"since", "life", "returns", "parameters"},
}
DRAFT_VERSION = "FLUGS_DRAFT"

HEAD_OF_TYPES = """\
/* The types of the C ABI: docs/c_api.md. Made from bindings/c/api_spec by bindings/c/api.py. */
/* clang-format off */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
"""
HEAD = """\
/* The C ABI of flugs: docs/c_api.md. Made from bindings/c/api_spec by bindings/c/api.py. */
/* clang-format off */
#pragma once

#include "flugs/arrow_abi.h"
#include "flugs/c/types.h"

/* A function is "stable" or a "draft". A stable one keeps its name, its parameters and what it does
 * as long as the library is libflugs_c.so.0. A draft may change or go with any version; it is
 * declared only for programs that define FLUGS_DRAFTS. */
#define FLUGS_API __attribute__((visibility("default")))
#define FLUGS_MUST_USE __attribute__((warn_unused_result))
#define FLUGS_DEPRECATED(instead) __attribute__((deprecated(instead)))

#ifdef __cplusplus
extern "C" {
#endif
"""
TAIL = """
#ifdef __cplusplus
}
#endif
"""


def kind_of(item):
    kinds = [kind for kind in KINDS if kind in item]
    if len(kinds) != 1:
        raise ValueError(f"an item must be one of {', '.join(KINDS)}: {item}")
    return kinds[0]


def version_of(text):
    return tuple(int(part) for part in text.split("."))


def project_version():
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
        return re.search(r"project\(flugs VERSION (\d+\.\d+)", file.read())[1]


def check_item(item):
    """Raises ValueError if an item of the specification is not as the others are."""
    kind = kind_of(item)
    name = item[kind]
    missing = (KEYS[kind] | {"doc"}) - set(item)
    known = KEYS[kind] | {"doc", kind, "deprecated_since", "instead"}
    if missing or set(item) - known:
        raise ValueError(f"{name}: missing {missing}, unknown {set(item) - known}")
    if kind != "function":
        return
    if item["life"] not in LIVES:
        raise ValueError(f"{name}: no life cycle is called {item['life']}")
    if version_of(item["since"]) > version_of(project_version()):
        raise ValueError(f"{name}: since {item['since']}, which is to come")
    if (item["life"] == "deprecated") != ("deprecated_since" in item and "instead" in item):
        raise ValueError(f"{name}: a deprecated function says since when, and what to use instead")
    if not re.fullmatch(r"flugs_[a-z_]+", name):
        raise ValueError(f"{name}: names begin with flugs_")


def load(folder=SPECIFICATION):
    """[(topic, items)] in the order of the files' names."""
    topics = []
    for path in sorted(glob.glob(os.path.join(folder, "*.json"))):
        with open(path, encoding="utf-8") as file:
            topic = json.load(file)
        for item in topic["items"]:
            check_item(item)
        topics.append((topic["topic"], topic["items"]))
    names = [function["function"] for function in functions(topics)]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"twice: {', '.join(sorted(twice))}")
    return topics


def functions(topics):
    return [item for _, items in topics for item in items if "function" in item]


def symbol_version(function):
    """A draft has a version of its own: a program that uses one shows it to everybody."""
    if function["life"] == "draft":
        return DRAFT_VERSION
    return "FLUGS_" + function["since"]


def comment(doc, indent=""):
    text = doc if isinstance(doc, str) else " ".join(doc)
    if len(indent) + len(text) + 8 <= WIDTH:
        return f"{indent}/** {text} */\n"
    lines = textwrap.fill(text, WIDTH - 3, initial_indent=f"{indent}/** ",
                          subsequent_indent=f"{indent} * ", break_on_hyphens=False)
    return lines + " */\n"


def text_of_enum(item):
    """Numbers have a type of fixed width: what an enum of C is made of differs by compiler."""
    values = [(f"{name} = {number},", doc) for name, number, doc in item["values"]]
    width = max(len(value) for value, _ in values)
    lines = [f"  {value:{width}}" + f"  /**< {doc} */" * bool(doc) for value, doc in values]
    return (comment(item["doc"]) + f"typedef int32_t {item['enum']};\nenum {{\n" +
            "".join(line.rstrip() + "\n" for line in lines) + "};\n")


def text_of_function(item):
    attributes = "FLUGS_API"
    if item["returns"] == "flugs_error*":
        attributes += " FLUGS_MUST_USE"
    if item["life"] == "deprecated":
        attributes += f' FLUGS_DEPRECATED("{item["instead"]}")'
    declaration = f"{attributes} {item['returns']} {item['function']}("
    parameters = ", ".join(item["parameters"]) or "void"
    if len(declaration) + len(parameters) + 2 > WIDTH:
        parameters = "\n" + textwrap.fill(parameters, WIDTH - 2, initial_indent="    ",
                                          subsequent_indent="    ")
    text = comment(item["doc"]) + declaration + parameters + ");\n"
    if item["life"] == "draft":
        text = f"#ifdef FLUGS_DRAFTS\n{text}#endif\n"
    return text


def text_of(item):
    kind = kind_of(item)
    if kind == "handle":
        return comment(item["doc"]) + f"typedef struct {item[kind]} {item[kind]};\n"
    if kind == "enum":
        return text_of_enum(item)
    if kind == "struct":
        body = "".join(f"  {line}\n" for line in item["body"])
        return (comment(item["doc"]) +
                f"typedef struct {item[kind]} {{\n{body}}} {item[kind]};\n")
    if kind == "inline":
        return comment(item["doc"]) + "".join(line + "\n" for line in item["code"])
    return text_of_function(item)


def types_header(topics):
    """Handles are declared first, so that a topic may use those of later ones."""
    parts = [HEAD_OF_TYPES]
    for _, items in topics:
        parts += ["\n" + text_of(item) for item in items if "handle" in item]
    for topic, items in topics:
        others = [item for item in items if not {"handle", "function"} & set(item)]
        parts += [f"\n/* {topic}. */\n"] * bool(others) + ["\n" + text_of(i) for i in others]
    return "".join(parts) + TAIL


def header(topics):
    parts = [HEAD]
    for topic, items in topics:
        parts.append(f"\n/* {topic}. */\n")
        parts += ["\n" + text_of(item) for item in items if "function" in item]
    return "".join(parts) + TAIL


def version_script(topics):
    """Each version lists its functions; all that no version lists stays inside."""
    versions = {}
    for function in functions(topics):
        versions.setdefault(symbol_version(function), []).append(function["function"])
    text = "# Made from bindings/c/api_spec by bindings/c/api.py.\n"
    released = sorted((v for v in versions if v != DRAFT_VERSION),
                      key=lambda v: version_of(v.removeprefix("FLUGS_")))
    before = ""
    for version in released + [DRAFT_VERSION] * (DRAFT_VERSION in versions):
        names = "".join(f"    {name};\n" for name in versions[version])
        inside = "  local:\n    *;\n" if version == released[0] else ""
        text += f"{version} {{\n  global:\n{names}{inside}}}{before};\n"
        before = f" {version}"
    return text


def stable_lines(topics):
    """What programs rely on, each function, type and number in a line."""
    lines = []
    for _, items in topics:
        for item in items:
            kind = kind_of(item)
            if kind == "handle":
                lines.append(f"handle {item[kind]}")
            elif kind == "enum":
                lines += [f"{item[kind]} {name} = {number}" for name, number, _ in item["values"]]
            elif kind == "struct":
                body = re.sub(r"/\*.*?\*/", "", " ".join(item["body"]))
                lines.append(f"struct {item[kind]} {{ {' '.join(body.split())} }}")
            elif kind == "function" and item["life"] != "draft":
                parameters = ", ".join(item["parameters"]) or "void"
                lines.append(f"{symbol_version(item)} {item['returns']} {item[kind]}({parameters})")
    return lines


def frozen():
    with open(FROZEN, encoding="utf-8") as file:
        return [line for line in file.read().splitlines() if not line.startswith("#")]


def changes_of_frozen(topics, lines):
    """Lines that say what is no longer as it was released, or was released and is not frozen."""
    now = stable_lines(topics)
    name = os.path.basename(FROZEN)
    yield from (f"{name}: the specification has no more: {line}"
                for line in lines if line not in now)
    before = [f"FLUGS_{f['since']} " for f in functions(topics)
              if version_of(f["since"]) < version_of(project_version())]
    yield from (f"{name}: is without what an earlier version has: {line}"
                for line in now if line not in lines and line.startswith(tuple(before)))


def freeze(topics):
    """Adds to the frozen lines, and changes none of them."""
    lines = frozen()
    gone = [line for line in lines if line not in stable_lines(topics)]
    if gone:
        sys.exit("\n".join(["frozen, and not in the specification:", *gone]))
    lines += [line for line in stable_lines(topics) if line not in lines]
    with open(FROZEN, "w", encoding="utf-8") as file:
        file.write("# What is stable in the C ABI of released versions, kept by api.py --freeze. "
                   "No line changes or goes.\n" + "".join(line + "\n" for line in lines))


def made(topics):
    """The files that are made of the specification, with their texts."""
    return ((TYPES, types_header(topics)), (HEADER, header(topics)),
            (SCRIPT, version_script(topics)))


def exported(library):
    """{"name@@VERSION", ...}: what the dynamic linker finds in a shared library."""
    out = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", library],
                         capture_output=True, text=True, check=True).stdout
    symbols = [line.split() for line in out.splitlines()]
    # The versions themselves are absolute symbols.
    return {name for _, kind, name in symbols if kind != "A"}


def differences(topics, library):
    """Lines that say what is not as the specification has it."""
    for path, wanted in made(topics):
        with open(path, encoding="utf-8") as file:
            found = file.read()
        name = os.path.relpath(path, ROOT)
        yield from (line.rstrip("\n") for line in difflib.unified_diff(
            found.splitlines(), wanted.splitlines(), name, name + " of the specification", n=0))
    wanted = {f"{f['function']}@@{symbol_version(f)}" for f in functions(topics)}
    found = exported(library)
    yield from (f"{library}: does not export {name}" for name in sorted(wanted - found))
    yield from (f"{library}: exports {name}, which is not in the specification"
                for name in sorted(found - wanted))
    yield from changes_of_frozen(topics, frozen())


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", metavar="LIBRARY")
    parser.add_argument("--freeze", action="store_true")
    options = parser.parse_args()
    topics = load()
    if options.check:
        found = list(differences(topics, options.check))
        print("\n".join(found), end="\n" if found else "")
        print(f"C ABI: {len(functions(topics))} functions, {len(found)} differences")
        return 1 if found else 0
    if options.freeze:
        freeze(topics)
        return 0
    for path, text in made(topics):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
