#!/usr/bin/env python3
"""Plants differences between the specification of the C ABI, its headers and its library, and looks
whether bindings/c/api.py finds them.

test_api.py LIBRARY
"""

import copy
import json
import os
import re
import sys
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
sys.path.insert(0, os.path.join(ROOT, "bindings", "c"))

import api  # noqa: E402

LIBRARY = None


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


class Specification(unittest.TestCase):
    def setUp(self):
        self.topics = copy.deepcopy(api.load())

    def found(self):
        return "\n".join(api.differences(self.topics, LIBRARY))

    def function(self, name):
        return next(f for f in api.functions(self.topics) if f["function"] == name)

    def test_no_difference(self):
        self.assertEqual(self.found(), "")

    def test_a_function_that_the_specification_does_not_have(self):
        for _, items in self.topics:
            items[:] = [item for item in items if item.get("function") != "flugs_find"]
        found = self.found()
        self.assertIn("exports flugs_find@@FLUGS_0.1, which is not in the specification", found)
        self.assertRegex(found, r"(?m)^-.*flugs_find\($")

    def test_a_function_that_the_library_does_not_have(self):
        other = dict(self.function("flugs_find"), function="flugs_find_all")
        self.topics[0][1].append(other)
        found = self.found()
        self.assertIn("does not export flugs_find_all@@FLUGS_0.1", found)
        self.assertIn("+    flugs_find_all;", found)

    def test_another_signature(self):
        self.function("flugs_find")["parameters"].append("int32_t more")
        self.assertRegex(self.found(), r"(?m)^\+.*int32_t more")

    def test_another_number(self):
        codes = next(item for item in self.topics[0][1] if item.get("enum") == "flugs_code")
        codes["values"][3][1] = 33
        self.assertRegex(self.found(), r"(?m)^\+ *FLUGS_CONFLICT = 33")

    def test_another_life(self):
        self.function("flugs_find")["life"] = "draft"
        found = self.found()
        self.assertIn("does not export flugs_find@@FLUGS_DRAFT", found)
        self.assertIn("exports flugs_find@@FLUGS_0.1", found)

    def test_a_draft_has_no_version_of_a_release(self):
        self.assertEqual(api.symbol_version(self.function("flugs_find")), "FLUGS_0.1")
        self.assertEqual(api.symbol_version(self.function("flugs_query_explain")), "FLUGS_DRAFT")

    def test_a_deprecated_function_says_what_to_use_instead(self):
        function = self.function("flugs_find")
        function.update(life="deprecated", deprecated_since="0.1", instead="flugs_get")
        api.check_item(function)
        self.assertIn('FLUGS_DEPRECATED("flugs_get")', api.text_of(function))
        self.assertEqual(api.symbol_version(function), "FLUGS_0.1")

    def test_versions_build_on_each_other(self):
        self.function("flugs_find")["since"] = "0.2"
        script = api.version_script(self.topics)
        self.assertRegex(script, r"FLUGS_0\.2 \{\n  global:\n    flugs_find;\n\} FLUGS_0\.1;")
        self.assertTrue(script.rstrip().endswith("} FLUGS_0.2;"))

    def test_items_that_are_not_as_the_others(self):
        function = self.function("flugs_find")
        for change in ({"life": "old"}, {"since": "99.0"}, {"function": "other_find"},
                       {"life": "deprecated"}, {"author": "me"}):
            with self.assertRaises(ValueError):
                api.check_item({**function, **change})
        with self.assertRaises(ValueError):
            api.check_item({key: value for key, value in function.items() if key != "since"})
        with tempfile.TemporaryDirectory() as folder:
            for name in ("1.json", "2.json"):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    json.dump({"topic": name, "items": [function]}, file)
            with self.assertRaisesRegex(ValueError, "twice: flugs_find"):
                api.load(folder)

    def test_every_option_is_in_the_documentation_of_its_call(self):
        for source, names in (("database.cc", ("flugs_database_open", "flugs_database_merge")),
                              ("transaction.cc", ("flugs_transaction_commit",)),
                              ("queries.cc", ("flugs_query_stream",))):
            options = re.findall(r'reader\.\w+\(\s*"(\w+)"', read("bindings", "c", source))
            self.assertGreater(len(options), 1)
            text = " ".join(str(self.function(name)["doc"]) for name in names)
            self.assertEqual([o for o in options if not re.search(rf"\b{o}\b", text)], [])

    def test_every_stable_function_is_called_from_c(self):
        """A test, or the program of the documentation, calls it."""
        tests = os.path.join("test", "bindings", "c")
        text = "".join(read(tests, name) for name in os.listdir(os.path.join(ROOT, tests))
                       if name.endswith(".c"))
        missing = [f["function"] for f in api.functions(self.topics)
                   if not re.search(rf"\b{f['function']}\(", text)]
        self.assertEqual(missing, [])


class Frozen(unittest.TestCase):
    """Changes of the specification that its headers and its library may have followed."""

    def setUp(self):
        self.topics = copy.deepcopy(api.load())
        self.lines = api.frozen()

    def found(self, lines=None):
        return list(api.changes_of_frozen(self.topics, lines or self.lines))

    def item(self, name):
        return next(item for _, items in self.topics for item in items
                    if item[api.kind_of(item)] == name)

    def test_all_that_is_stable_is_frozen(self):
        self.assertEqual(self.found(), [])
        self.assertGreater(len(self.lines), 100)
        self.assertIn("FLUGS_0.1 const char* flugs_version(void)", self.lines)

    def test_what_is_frozen_does_not_change(self):
        for change in (lambda: self.item("flugs_find")["parameters"].append("int32_t more"),
                       lambda: self.item("flugs_find")["parameters"].reverse(),
                       lambda: self.item("flugs_find").update(returns="void"),
                       lambda: self.item("flugs_find").update(function="flugs_find_row"),
                       lambda: self.item("flugs_find").update(life="draft"),
                       lambda: self.item("flugs_code")["values"][3].__setitem__(1, 33),
                       lambda: self.item("flugs_code")["values"].pop(),
                       lambda: self.item("flugs_value")["body"].insert(0, "int32_t more;"),
                       lambda: self.topics.pop(0)):
            self.setUp()
            change()
            self.assertRegex("\n".join(self.found()), "has no more: ")

    def test_another_version_of_a_symbol_is_another_symbol(self):
        function = self.item("flugs_find")
        function["since"] = "0.0"
        self.assertRegex("\n".join(self.found()), r"has no more: FLUGS_0\.1 .* flugs_find\(")

    def test_what_may_happen(self):
        """New functions and numbers, comments, drafts that change or go, a deprecation."""
        self.topics[0][1].append(dict(self.item("flugs_find"), function="flugs_find_all"))
        self.item("flugs_code")["values"].append(["FLUGS_NEW", 99, "New."])
        self.item("flugs_value")["body"][0] += "  /* of the value */"
        self.item("flugs_find")["doc"] = "Finds."
        self.item("flugs_find").update(life="deprecated", deprecated_since="0.1", instead="other")
        self.item("flugs_query_explain")["parameters"].append("int32_t more")
        self.assertEqual(self.found(), [])

    def test_what_an_earlier_version_has_must_be_frozen(self):
        new = dict(self.item("flugs_find"), function="flugs_find_all", since="0.0")
        self.topics[0][1].append(new)
        self.assertRegex("\n".join(self.found()), r"earlier version has: .* flugs_find_all\(")

    def test_freezing_adds_and_changes_nothing(self):
        path = api.FROZEN
        self.topics[0][1].append(dict(self.item("flugs_find"), function="flugs_find_all"))
        with tempfile.TemporaryDirectory() as folder:
            api.FROZEN = os.path.join(folder, "frozen.txt")
            try:
                with open(api.FROZEN, "w", encoding="utf-8") as file:
                    file.write("\n".join(self.lines))
                api.freeze(self.topics)
                now = api.frozen()
                self.assertEqual(now[:-1], self.lines)
                self.assertIn("flugs_find_all(", now[-1])
                self.item("flugs_find")["parameters"].pop()
                with self.assertRaises(SystemExit):
                    api.freeze(self.topics)
                self.assertEqual(api.frozen(), now)
            finally:
                api.FROZEN = path


class Statistics(unittest.TestCase):
    """Fields of structs of C++ that JSON must have."""

    def members(self, header, struct):
        body = re.search(rf"struct {struct} \{{(.*?)\n\}};", read("include", "flugs", header), re.S)
        lines = [line.split("///")[0] for line in body[1].split("\n")]
        found = [re.match(r"\s*[\w:<>]+ (\w+)( = .*|\{.*)?;", line) for line in lines]
        return [match[1] for match in found if match]

    STRUCTS = (("database.h", "Statistics", 45), ("database.h", "TableStatistics", 20),
               ("database.h", "ColumnStatistics", 6), ("merge.h", "MergeReport", 20))

    def written(self, struct, fields, lists):
        """The names that the functions for the struct write: its figures, and its lists."""
        names = []
        for text, head, name in ((fields, rf"each_\w+\(const {struct}&", r'see\("(\w+)"'),
                                 (lists, rf"\w+\(Json& json, const {struct}&", r'key\("(\w+)"')):
            for body in re.findall(rf"(?ms)^void {head} \w+.*?^\}}", text):
                names += re.findall(name, body)
        return sorted(names)

    def test_json_has_every_field(self):
        fields = read("bindings", "fields", "statistics_fields.h")
        lists = read("bindings", "c", "statistics.cc")
        for header, struct, count in self.STRUCTS:
            members = self.members(header, struct)
            self.assertGreater(len(members), count - 1)
            self.assertEqual(self.written(struct, fields, lists), sorted(members))

    def test_a_field_of_another_struct_does_not_count(self):
        fields = read("bindings", "fields", "statistics_fields.h")
        lists = read("bindings", "c", "statistics.cc")
        at = fields.index("const ColumnStatistics&")
        line = '  see("dictionary_bytes", s.dictionary_bytes);\n'
        self.assertEqual(fields.count(line), 2)  # of columns and of tables
        without = fields[:at] + fields[at:].replace(line, "", 1)
        self.assertNotIn("dictionary_bytes", self.written("ColumnStatistics", without, lists))
        self.assertIn("dictionary_bytes", self.written("TableStatistics", without, lists))


if __name__ == "__main__":
    LIBRARY = sys.argv.pop(1)
    unittest.main()
