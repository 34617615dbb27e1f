#!/usr/bin/env python3
"""Plants each violation that tidy.py promises to find in a small tree, and a clean tree beside."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

import cxx_text  # noqa: E402
import tidy  # noqa: E402

CLEAN = {
    "CMakeLists.txt": "project(planted)\n",
    "pmem/pool/CMakeLists.txt": "flugs_layer(pmem/pool SOURCES pool.cc)\n",
    "columns/column/CMakeLists.txt": "flugs_layer(columns/column SOURCES column.cc)\n",
    "test/pmem/CMakeLists.txt": "flugs_test(pmem SOURCES pool_test.cc LABELS fast)\n",
    "include/flugs/value.h": "#pragma once\n\n#include <cstdint>\n",
    "include/flugs/database.h": '#pragma once\n\n#include "flugs/value.h"\n',
    "pmem/pool/pool.h": '#pragma once\n\n#include <libpmemobj.h>\n\n#include "flugs/value.h"\n',
    "pmem/pool/pool.cc": (
        '#include "pmem/pool/pool.h"\n\n'
        "// Protocol pool. Created after step 2.\n"
        "//   step  store      made durable by   recovery\n"
        "//   1     header     flush             refuses\n"
        "//   2     magic      persist           opens\n"
        "void create(Persister& p, char* header) {\n"
        '  p.flush(header, 64, "pool/1");\n'
        '  p.persist(header, 8, "pool/2");\n'
        "}\n"),
    "columns/column/column.cc": '#include "pmem/pool/pool.h"\n\nint column() { return 1; }\n',
    "test/pmem/pool_test.cc": (
        '#include <catch2/catch.hpp>\n\n#include "pmem/pool/pool.h"\n\n'
        'TEST_CASE("a pool opens again", "[pmem]") { _mm_sfence(); }\n'),
    "docs/persistence.md": "pool/1 header, pool/2 magic\n",
}


class PlantedTree(unittest.TestCase):
    """check() answers which rules fire where in CLEAN with some files replaced or added. Each
    folder has a README, unless the test writes it."""

    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)

    def check(self, files=None):
        planted = {**CLEAN, **(files or {})}
        readmes = {f"{folder}/README.md": f"# {folder}\n"
                   for path in planted for folder in tidy.folders_above(path)}
        for path, content in {**readmes, **planted}.items():
            full = os.path.join(self.root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as file:
                file.write(content)
        return [(v.path, v.rule) for v in tidy.Tidy(self.root).run()]

    def assert_fires(self, path, content, rule):
        self.assertEqual(self.check(files={path: content}), [(path, rule)])

    def test_a_clean_tree_passes(self):
        self.assertEqual(self.check(), [])

    def test_long_line(self):
        self.assert_fires("columns/column/column.cc", "// " + "x" * 98 + "\n", "line")
        self.assertEqual(self.check(
            files={"columns/column/column.cc": "// " + "x" * 97 + "\n"}), [])

    def test_long_file(self):
        self.assert_fires("columns/column/column.cc", "//\n" * 601, "file")
        self.assertEqual(self.check(files={"columns/column/column.cc": "//\n" * 600}), [])

    def test_long_function(self):
        body = "  step();\n"
        self.assert_fires("columns/column/column.cc", "int f() {\n" + body * 59 + "}\n", "function")
        self.assertEqual(self.check(
            files={"columns/column/column.cc": "int f() {\n" + body * 58 + "}\n"}), [])

    def test_class_with_many_functions(self):
        path = "columns/column/column.h"
        begin = "#pragma once\nclass Column {\n"
        function = "  int f();\n"
        self.assert_fires(path, begin + function * 81 + "};\n", "class")
        self.assertEqual(self.check(files={path: begin + function * 80 + "};\n"}), [])

    def test_unfinished_work(self):
        for phrase in ("TO" "DO: more", "FIX" "ME", "XX" "X", "good enough for " "now",
                       "Not " "implemented"):
            self.assert_fires("columns/column/column.cc", f"// {phrase}\n", "unfinished")

    def test_missing_pragma_once(self):
        self.assert_fires("columns/column/column.h", "int column();\n", "pragma-once")

    def test_layering(self):
        for path, name in (("pmem/pool/pool.cc", "columns/column/column.h"),
                           ("columns/column/column.cc", "mvcc/stamps.h"),
                           ("columns/column/column.cc", "flugs/database.h"),
                           ("include/flugs/value.h", "pmem/pool/pool.h")):
            self.assert_fires(path, f'#pragma once\n#include "{name}"\n', "layering")
        self.assert_fires("include/flugs/value.h", "#pragma once\n#include <fmt/core.h>\n",
                          "layering")

    def test_layering_of_the_c_abi(self):
        self.assertEqual(self.check(files={
            "include/flugs.h": '#pragma once\n#include "flugs/c/types.h"\n',
            "bindings/c/CMakeLists.txt": "add_library(flugs_c SHARED rows.cc)\n",
            "bindings/c/rows.cc": '#include "flugs.h"\n#include "flugs/database.h"\n'}), [])
        self.assert_fires("bindings/c/rows.cc", '#include "pmem/pool/pool.h"\n', "layering")
        self.assert_fires("bindings/c/rows.cc", '#include "tables/rows/row.h"\n', "layering")
        os.remove(os.path.join(self.root, "bindings/c/rows.cc"))
        self.assert_fires("columns/column/column.cc", '#include "flugs.h"\n', "layering")
        self.assert_fires("test/pmem/other.c", "int other(void);\n", "listed")

    def test_layering_of_sub_folders(self):
        for path, name in (("tables/rows/row.h", "tables/keys/key.h"),
                           ("tables/keys/key.h", "tables/transactions/transaction.h"),
                           ("tables/table/table.h", "engine/merge/merge.h"),
                           ("engine/merge/merge.h", "engine/database/database.h"),
                           ("query/scan/scan.h", "query/operators/sort.h"),
                           ("columns/cells/cell.h", "columns/index/index.h"),
                           ("columns/column/column.h", "columns/main/main_column.h"),
                           ("columns/column/column.h", "tables/rows/row.h")):
            self.assert_fires(path, f'#pragma once\n#include "{name}"\n', "layering")
            os.remove(os.path.join(self.root, path))
        self.assert_fires("tables/table.h", "#pragma once\n", "layering")
        os.remove(os.path.join(self.root, "tables/table.h"))
        self.assertEqual(self.check(files={
            "tables/rows/row.h": "#pragma once\n",
            "tables/table/table.h": '#pragma once\n#include "tables/rows/row.h"\n',
            "engine/merge/merge.h": '#pragma once\n#include "tables/table/table.h"\n'}), [])

    def test_layering_of_folders_three_deep(self):
        for path, name in (("verify/isolation/checker/graph.h", "pmem/pool/pool.h"),
                           ("verify/crash/rig/rig.h", "verify/crash/scripts/scripts.h"),
                           ("verify/crash/scripts/scripts.h", "bench/support/random.h"),
                           ("verify/damage/pool_map.h", "tools/support/command.h")):
            self.assert_fires(path, f'#pragma once\n#include "{name}"\n', "layering")
            os.remove(os.path.join(self.root, path))
        self.assert_fires("verify/crash/rig.h", "#pragma once\n", "layering")

    def test_folder_with_many_sources(self):
        files = {f"columns/column/part{i}.h": "#pragma once\n" for i in range(39)}
        self.assertEqual(self.check(files=files), [])
        files["columns/column/one_more.h"] = "#pragma once\n"
        self.assertEqual(self.check(files=files), [("columns/column", "flat")])

    def test_folder_with_many_scripts(self):
        files = {f"tools/part{i}.py": '"""A part."""\n' for i in range(40)}
        files["tools/README.md"] = "# tools\n"
        self.assertEqual(self.check(files=files), [])
        start = os.path.join(self.root, "tools", "start")
        with open(start, "w", encoding="utf-8") as out:
            out.write("#!/bin/sh\ntrue\n")
        os.chmod(start, 0o755)
        self.assertEqual(self.check(files=files), [("tools", "flat")])

    def test_folder_without_readme(self):
        for path in ("columns/column/column.h", "include/flugs/c/types.h", "bench/tatp/tatp.h",
                     "verify/damage/map.h", "tools/dax_vm/machine.py"):
            text = "#pragma once\n" if path.endswith(".h") else "TIMEOUT_S = 1\n"
            readmes = [folder + "/README.md" for folder in tidy.folders_above(path)]
            self.assertEqual(self.check(files={path: text}), [])
            for readme in readmes:
                self.assertEqual(self.check(files={path: text, readme: ""}),
                                 [(os.path.dirname(readme), "readme")])
            os.remove(os.path.join(self.root, path))
        for path in ("test/model/model.h", "columns/pictures/picture.txt"):
            readme = os.path.dirname(path) + "/README.md"
            self.assertEqual(self.check(files={path: "#pragma once\n", readme: ""}), [])

    def test_long_readme(self):
        path = "columns/column/README.md"
        self.assert_fires(path, "A line.\n" * 26, "readme")
        self.assertEqual(self.check(files={path: "A line.\n" * 25}), [])

    def test_header_with_many_of_ours(self):
        path = "pmem/pool/wide.h"
        includes = [f'#include "pmem/pool/part{i}.h"\n' for i in range(13)]
        text = "#pragma once\n#include <vector>\n"
        self.assert_fires(path, text + "".join(includes), "includes")
        self.assertEqual(self.check(files={path: text + "".join(includes[1:])}), [])
        os.remove(os.path.join(self.root, path))
        path = "test/pmem/wide.h"  # tests and programs may know many headers
        self.assertEqual(self.check(files={path: text + "".join(includes)}), [])

    def test_header_that_many_include(self):
        header = "tables/table/table.h"
        include = f'#pragma once\n#include "{header}"\n'
        files = {f"test/tables/part{i}.h": include for i in range(20)}
        files[header] = "#pragma once\n"
        self.assertEqual(self.check(files=files), [])
        files["test/tables/one_more.h"] = include
        self.assertEqual(self.check(files=files), [(header, "includers")])

    def test_header_that_many_include_is_gone(self):
        files = {"tables/table/other.h": "#pragma once\n"}
        self.assertEqual(self.check(files=files), [("tables/table", "includers")])

    def test_folder_with_few_checks(self):
        lines = "#pragma once\n" + "// A line.\n" * 550
        checks = "void f() {\n" + "  FLUGS_CHECK(true);\n" * 15 + "}\n"
        paths = "mvcc/first.h", "mvcc/second.h"
        self.assertEqual(self.check(files={paths[0]: lines, paths[1]: lines + checks}), [])
        self.assertEqual(self.check(files={paths[1]: lines + checks.replace("CHECK", "TEST")}),
                         [("mvcc", "checks")])
        os.remove(os.path.join(self.root, paths[0]))  # a small folder need not have many
        self.assertEqual(self.check(files={paths[1]: lines}), [])

    def test_folders_that_include_each_other(self):
        files = {"test/model/model.h": '#pragma once\n#include "test/support/rows.h"\n',
                 "test/support/rows.h": "#pragma once\n",
                 "test/support/pools.h": '#pragma once\n#include "test/pmem/pools.h"\n'}
        self.assertEqual(self.check(files=files), [])
        files["test/support/pools.h"] = '#pragma once\n#include "test/model/model.h"\n'
        self.assertEqual(self.check(files=files), [("test/model/model.h", "mutual")])

    def test_arrows_have_no_cycle(self):
        rest = {name: {other for other in tidy.MAY_INCLUDE for wish in may
                       if other != name and (other == wish or other.startswith(wish + "/"))}
                for name, may in tidy.MAY_INCLUDE.items() if name != "test"}
        while ready := [name for name, may in rest.items() if not may & rest.keys()]:
            for name in ready:
                del rest[name]
        self.assertEqual(rest, {})

    def test_commented_include_is_none(self):
        text = '/*\n#include "mvcc/stamps.h"\n*/\n'
        self.assertEqual(self.check(files={"columns/column/column.cc": text}), [])

    def test_include_without_folder(self):
        self.assert_fires("columns/column/column.cc", '#include "column.h"\n', "include")
        self.assert_fires("columns/column/column.cc", "#include <pmem/pool/pool.h>\n", "include")

    def test_persistence_outside_pmem(self):
        for code in ("_mm_clwb(p);", "_mm_sfence();", "pmemobj_alloc();", "pmem_persist(p, 8);",
                     "msync(p, 8, 0);", 'asm volatile("clwb %0" : "+m"(*p));'):
            self.assert_fires("columns/column/column.cc", f"void f(char* p) {{ {code} }}\n",
                              "persistence")
        self.assert_fires("columns/column/column.cc", "#include <libpmem.h>\n", "persistence")
        harmless = '// msync() and _mm_sfence()\nauto text = "pmem_persist msync()";\n'
        self.assertEqual(self.check(files={"columns/column/column.cc": harmless}), [])

    def test_threads_outside_their_starter(self):
        for code in ("std::thread t(run);", "std::vector<std::thread> all;",
                     "std::jthread t(run);", "auto t = std::jthread{run};",
                     "std::async(run);", "pthread_create(&t, 0, run, 0);"):
            self.assert_fires("columns/column/column.cc", f"void f() {{ {code} }}\n", "thread")
        self.assert_fires("columns/column/column.cc", "#include <tbb/parallel_for.h>\n", "thread")
        harmless = "std::jthread thread_;\nauto n = std::thread::hardware_concurrency();\n"
        self.assertEqual(self.check(files={
            "columns/column/column.cc": harmless,
            "base/CMakeLists.txt": "flugs_layer(base SOURCES thread.cc)\n",
            "base/thread.cc": "std::jthread start() { return std::jthread(run); }\n"}), [])

    def test_unlisted_source(self):
        path = "test/pmem/lost_test.cc"
        self.assert_fires(path, 'TEST_CASE("lost") {}\n', "listed")

    def test_listed_under_a_longer_name_is_not_listed(self):
        self.assert_fires("columns/column/umn.cc", "int umn();\n", "listed")

    def test_label_without_table(self):
        text = CLEAN["pmem/pool/pool.cc"].replace("//   2 ", "//   3 ")
        self.assert_fires("pmem/pool/pool.cc", text, "label")

    def test_label_not_in_the_document(self):
        fired = self.check(files={"docs/persistence.md": "pool/1 and pool/22\n"})
        self.assertEqual(fired, [("pmem/pool/pool.cc", "label")])

    def test_malformed_label(self):
        text = CLEAN["pmem/pool/pool.cc"] + 'void f(Persister& p) { p.fence("oops"); }\n'
        self.assert_fires("pmem/pool/pool.cc", text, "label")

    def test_label_in_a_constant(self):
        text = 'constexpr Label kStep = "column/1";\n'
        fired = self.check(files={"columns/column/column.cc": text})
        self.assertEqual(fired, [("columns/column/column.cc", "label")] * 2)

    def test_disabled_test(self):
        for tag in ("[.]", "[.slow]", "[!hide]", "[!mayfail]"):
            self.assert_fires("test/pmem/pool_test.cc", f'TEST_CASE("x", "{tag}") {{}}\n',
                              "disabled")
        self.assert_fires("columns/column/column.cc", "#if 0\n#endif\n", "disabled")


class Formatting(unittest.TestCase):
    @unittest.skipUnless(shutil.which(tidy.CLANG_FORMAT), tidy.CLANG_FORMAT + " is missing")
    def test_unformatted_source(self):
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, "pmem"))
            with open(os.path.join(root, ".clang-format"), "w", encoding="utf-8") as file:
                file.write("BasedOnStyle: Google\n")
            with open(os.path.join(root, "pmem/a.h"), "w", encoding="utf-8") as file:
                file.write("#pragma once\nint   a( );\n")
            tree = tidy.Tidy(root)
            tree.check_format()
            self.assertEqual([(v.path, v.rule) for v in tree.violations], [("pmem/a.h", "format")])


@unittest.skipUnless(shutil.which("git"), "git is missing")
class Commits(unittest.TestCase):
    """Which rules fire for the commits of a repository without files."""

    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)

    def git(self, *arguments):
        settings = ["-c", "user.name=Tester", "-c", "user.email=tester@example.com",
                    "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", self.root, *settings, *arguments], check=True,
                       capture_output=True)

    def commit(self, *paragraphs):
        messages = [word for paragraph in paragraphs for word in ("-m", paragraph)]
        self.git("commit", "--allow-empty", "--no-verify", *messages)

    def found(self):
        tree = tidy.Tidy(self.root)
        tree.check_commits()
        return [(v.rule, v.message.split(":")[0]) for v in tree.violations]

    def test_a_tree_without_history_passes(self):
        self.assertEqual(self.found(), [])
        self.git("init", "-q")
        self.assertEqual(self.found(), [])

    def test_title_and_body_of_the_last_commit(self):
        self.git("init", "-q")
        self.commit("t" * 73, "Why.")
        self.assertEqual(self.found(), [("commit", "a title of 73 characters, at most 72")])
        self.commit("A title")
        self.assertEqual(self.found(), [("commit", "no body")])
        self.commit("A title", "Signed-off-by: Tester <tester@example.com>")
        self.assertEqual(self.found(), [("commit", "no body")])
        self.commit("\u00e4" * 72, "The reason: it counts characters, not bytes.")
        self.assertEqual(self.found(), [])  # and those before it are not looked at

    def test_all_commits_since_origin_main(self):
        self.git("init", "-q")
        self.commit("A title")
        self.git("update-ref", "refs/remotes/origin/main", "HEAD")
        self.assertEqual(self.found(), [("commit", "no body")])  # HEAD is always looked at
        self.commit("t" * 73, "Why.")
        self.commit("A title")
        self.commit("A title", "Why.\n\nAnd a second paragraph.")
        self.assertEqual(self.found(), [("commit", "no body"),
                                        ("commit", "a title of 73 characters, at most 72")])

    def test_a_merge_passes(self):
        self.git("init", "-q", "-b", "main")
        self.commit("A title", "Why.")
        self.git("checkout", "-q", "-b", "side")
        self.commit("Another title", "Why.")
        self.git("checkout", "-q", "main")
        self.git("merge", "-q", "--no-ff", "-m", "m" * 80, "side")
        self.assertEqual(self.found(), [])

    def test_the_history_of_a_folder_above_is_not_ours(self):
        self.git("init", "-q")
        self.commit("t" * 80)
        self.root = os.path.join(self.root, "inside")
        os.mkdir(self.root)
        self.assertEqual(self.found(), [])


class CxxText(unittest.TestCase):
    """What counts as a function, where text is hard to read."""

    def assert_functions(self, text, expected):
        self.assertEqual(cxx_text.functions(text), expected)

    def test_scopes_that_are_no_functions(self):
        self.assert_functions("namespace a {\nclass alignas(64) B {\n int c_ = f(2);\n};\n}\n", [])
        self.assert_functions("enum class E { kA };\nconst int t[] = {f(1),\n f(2)};\n", [])

    def test_functions_in_scopes(self):
        self.assert_functions("class A {\n void f() {\n  if (x) {\n  }\n }\n};\n", [(2, 5)])

    def test_templates_and_initialisers(self):
        self.assert_functions("template <class T>\nvoid f(T) {\n}\n", [(1, 3)])
        self.assert_functions("A::A(int b) : b_(b) {\n}\n", [(1, 2)])

    def test_literals_do_not_confuse(self):
        self.assert_functions("char f() {\n return '{'; // {\n}\n", [(1, 3)])
        self.assert_functions('auto f() {\n return R"x(}})x" "\\"}";\n}\n', [(1, 3)])
        self.assert_functions("int f() {\n return 1'000'000;\n}\n", [(1, 3)])

    def assert_class_functions(self, text, expected):
        found = [(name, count) for name, _, count in cxx_text.class_functions(text)]
        self.assertEqual(found, expected)

    def test_functions_of_a_class(self):
        self.assert_class_functions(
            "class A {\n public:\n  A() : a_{1}, b_(2) {}\n  ~A() { free(b_); }\n"
            "  A(const A&) = delete;\n  A& operator=(A&&) = default;\n"
            "  bool operator()(int) const;\n private:\n  template <typename F>\n"
            "  void walk(F&& f) const {\n    if (f()) g();\n  }\n"
            "  static std::vector<int> all(int (*f)(int));\n};\n", [("A", 6)])

    def test_what_is_no_function_of_a_class(self):
        self.assert_class_functions(
            "class A;\nnamespace n {\nvoid f();\nstruct alignas(64) A : B {\n"
            "  using F = std::function<void(int)>;\n  static_assert(f(1) == 2);\n"
            "  friend void swap(A&, A&);\n  enum class E { kA = f(1) };\n"
            "  std::function<void(int)> f_;\n  void (*g_)(int) = nullptr;\n  int c_ = f(2);\n"
            "  std::unique_ptr<int> d_{take()};\n  alignas(64) int e_ = 0;\n};\n}\n", [("A", 0)])

    def test_classes_in_classes_and_functions(self):
        self.assert_class_functions(
            "class A {\n  void f() {\n    struct B { int g(); };\n  }\n"
            "  struct C { int g(); int h(); };\n  int i();\n};\n", [("A", 2), ("C", 2)])

    def test_test_cases_are_functions(self):
        self.assert_functions('TEST_CASE("x") {\n SECTION("y") {\n }\n}\n', [(1, 4)])


if __name__ == "__main__":
    unittest.main()
