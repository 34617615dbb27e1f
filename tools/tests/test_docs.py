#!/usr/bin/env python3
"""The checks of tools/docs find what they should: each test breaks a small site or page."""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

import docs_check  # noqa: E402
import docs_hooks  # noqa: E402


class Checks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name

    def write(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def broken(self):
        return list(docs_check.broken_links(self.root))

    def test_link_to_a_missing_page(self):
        self.write("a.html", '<a href="b.html">b</a><a href="https://example.org/c">c</a>')
        self.assertEqual(len(self.broken()), 1)
        self.write("b.html", "b")
        self.assertEqual(self.broken(), [])

    def test_link_to_a_missing_anchor(self):
        self.write("a.html", '<a href="b.html#there">b</a><a href="#here">here</a>')
        self.write("b.html", '<h1 id="there">b</h1>')
        self.assertEqual(self.broken(), ["a.html: #here: there is no such anchor"])

    def test_missing_picture(self):
        self.write("a.html", '<img src="picture.svg">')
        self.assertEqual(len(self.broken()), 1)

    def test_words_that_are_no_prose(self):
        text = ("The `notaword` of a [page](notaword.md) in kNotFound, a2b and x_y.\n"
                "```cpp\nnotaword\n```\n    notaword\n<notaword>\n")
        self.assertNotIn("notaword", [word for _, word in docs_check.words_of(text)])

    def test_word_keeps_its_line(self):
        self.assertIn((3, "wrogn"), docs_check.words_of("a\n\nA wrogn word.\n"))

    def test_option_that_the_page_lacks_or_invents(self):
        for name in set(docs_check.OPTIONS.values()):
            structs = [key for key, header in docs_check.OPTIONS.items() if header == name]
            self.write(f"include/flugs/{name}", "".join(
                f"struct {struct} {{\n  /// One.\n  std::uint32_t one = 1;\n"
                "  std::chrono::milliseconds two{10};\n};\n" for struct in structs))
        page = "".join(f"## {struct}\n\n| option | default |\n|---|---|\n| `one`, `two` | 1 |\n\n"
                       for struct in docs_check.OPTIONS)
        self.write("docs/options.md", page)
        self.assertEqual(list(docs_check.wrong_options(self.root)), [])
        self.write("docs/options.md", page.replace("`one`, `two`", "`one`, `three`", 1))
        self.assertEqual(list(docs_check.wrong_options(self.root)),
                         ["docs/options.md: OpenOptions::two is missing",
                          "docs/options.md: OpenOptions has no three"])

    def test_code_without_a_paragraph(self):
        self.write("include/flugs/status.h", "  kOk = 0,\n  kGone = 1,  ///< gone\n")
        self.write("docs/errors.md", "### kGone (1)\n")
        self.assertEqual(list(docs_check.wrong_codes(self.root)), [])
        self.write("docs/errors.md", "### kGone (2)\n")
        self.assertEqual(len(list(docs_check.wrong_codes(self.root))), 2)

    def test_message_that_no_source_has(self):
        self.write("engine/a.cc", 'fmt::format("table {}: the row is "\n    "locked", name);\n')
        rows = "## Frequent messages\n\n| message | |\n|---|---|\n| `table T: the row is {}` | |\n"
        self.write("docs/errors.md", rows.format("locked"))
        self.assertEqual(list(docs_check.wrong_messages(self.root)), [])
        self.write("docs/errors.md", rows.format("away"))
        self.assertEqual(len(list(docs_check.wrong_messages(self.root))), 1)

    def test_constant_that_no_source_has(self):
        self.write("engine/a.h", "constexpr int kRowsMax = 3;\n")
        self.write("docs/limits.md", "| rows | 3 | `kRowsMax`, `engine/a.h` |\n")
        self.assertEqual(list(docs_check.wrong_limits(self.root)), [])
        self.write("docs/limits.md", "| rows | 3 | `kLinesMax`, `engine/a.h` |\n"
                                     "| rows | 3 | `kRowsMax`, `engine/b.h` |\n")
        self.assertEqual(len(list(docs_check.wrong_limits(self.root))), 3)

    def test_name_that_no_header_has(self):
        self.write("include/flugs/a.h", "class Row { int get(); }; constexpr int kOpen = 1;\n")
        for page in docs_check.USERS_PAGES:
            self.write(f"docs/{page}.md", "")
        self.write("docs/howto/rows.md", "`Row::get` of `kOpen`\n")
        self.assertEqual(list(docs_check.wrong_names(self.root)), [])
        self.write("docs/howto/rows.md", "`Row::find` of `kClosed`\n")
        self.assertEqual(list(docs_check.wrong_names(self.root)),
                         ["docs/howto/rows.md:1: no header has find",
                          "docs/howto/rows.md:1: no header has kClosed"])


class Hooks(unittest.TestCase):
    def test_links_lead_to_pages(self):
        text = ("[a](../include/flugs/try.h) [b](../examples/orders.cc) [c](../README.md#use-it) "
                "[d](../ARCHITECTURE.md) [e](decisions) [f](../tools/tidy.py) [g](guide.md#x)")
        self.assertEqual(docs_hooks.as_markdown(text, "docs/page.md", "page.md"),
                         "[a](api/try_8h.html) [b](examples/orders.md) [c](index.md) "
                         "[d](architecture.md) [e](decisions/README.md) f [g](guide.md#x)")

    def test_page_of_a_folder(self):
        self.assertEqual(
            docs_hooks.as_markdown("[a](../../include/flugs/pool_check.h)", "docs/howto/page.md",
                                   "howto/page.md"), "[a](../api/pool__check_8h.html)")

    def test_list_behind_a_line_of_text(self):
        self.assertEqual(docs_hooks.as_markdown("Text:\n* one\n* two\n", "docs/a.md", "a.md"),
                         "Text:\n\n* one\n* two\n")

    def test_code_stays_as_it_is(self):
        code = "```cpp\nfor (...)\n* p = [a](../x.h);\n```\n"
        self.assertEqual(docs_hooks.as_markdown(code, "docs/a.md", "a.md"), code)


if __name__ == "__main__":
    unittest.main()
