"""Checks of the documentation site: links and anchors of its pages, and spelling."""

import functools
import html.parser
import os
import re
import subprocess
import urllib.parse

FENCE = re.compile(r"^(?:```|~~~).*?^(?:```|~~~)", re.MULTILINE | re.DOTALL)
# What is no prose: code, targets of links, tags, addresses.
NO_PROSE = re.compile(r"``[^`]*``|`[^`]*`|\]\([^)]*\)|<[^>]*>|https?://\S+|\{[^}]*\}")
# Words with digits, underscores or capitals inside are names.
WORD = re.compile(r"(?<![\w.])[A-Za-z][a-z]+(?:'[a-z]+)?(?![\w]|\.[a-z])")
OF_ROOT = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")


def pages(site):
    """Every page, as a path from the site's folder."""
    found = []
    for folder, _, names in os.walk(site):
        found += [os.path.relpath(os.path.join(folder, name), site) for name in names
                  if name.endswith(".html")]
    return sorted(found)


class Page(html.parser.HTMLParser):
    """The links and anchors of a page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = set(), set()
        with open(path, encoding="utf-8", errors="replace") as file:
            self.feed(file.read())

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        for name in ("href", "src", "poster"):
            if values.get(name):
                self.links.add(values[name])
        for name in ("id", "name"):
            if values.get(name) and (name == "id" or tag == "a"):
                self.anchors.add(values[name])


def broken_links(site):
    """Links of the site's pages to a file or an anchor that is not there. Doxygen itself lists
    friends that it shows nowhere: anchors within its pages are not checked."""
    page_of = functools.cache(lambda path: Page(path))
    for page in pages(site):
        path = os.path.join(site, page)
        for link in sorted(page_of(path).links):
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc or link.startswith("javascript:"):
                if parts.scheme not in ("http", "https", "mailto", "data", "javascript"):
                    yield f"{page}: {link}: of an unknown kind"
                continue
            target = path
            if parts.path:
                target = os.path.normpath(os.path.join(os.path.dirname(path),
                                                       urllib.parse.unquote(parts.path)))
            if page == "404.html":
                target = os.path.join(site, urllib.parse.unquote(parts.path).lstrip("/"))
            if os.path.isdir(target):
                target = os.path.join(target, "index.html")
            if not os.path.exists(target):
                yield f"{page}: {link}: there is no such file"
            elif parts.fragment and target.endswith(".html") and not page.startswith("api/"):
                if urllib.parse.unquote(parts.fragment) not in page_of(target).anchors:
                    yield f"{page}: {link}: there is no such anchor"


def documents(root):
    found = [name for name in OF_ROOT if os.path.exists(os.path.join(root, name))]
    for folder, _, names in os.walk(os.path.join(root, "docs")):
        found += [os.path.relpath(os.path.join(folder, name), root) for name in names
                  if name.endswith(".md")]
    return sorted(found)


def words_of(text):
    """The words of a Markdown text with the lines in which they stand."""
    blank = FENCE.sub(lambda code: "\n" * code[0].count("\n"), text)
    for number, line in enumerate(blank.splitlines(), 1):
        if line.startswith(("    ", "\t", "--8<--")) and not line.strip().startswith(("*", "-")):
            continue
        for word in WORD.findall(NO_PROSE.sub(" ", line)):
            yield number, word


def misspelt(root):
    """Words of the documents that neither the dictionary nor docs/site/words.txt has."""
    places = {}
    for document in documents(root):
        with open(os.path.join(root, document), encoding="utf-8") as file:
            for number, word in words_of(file.read()):
                places.setdefault(word, f"{document}:{number}")
    own = os.path.join(root, "docs", "site", "words.txt")
    done = subprocess.run(["hunspell", "-l", "-d", "en_GB", "-p", own], text=True,
                          input="\n".join(sorted(places)) + "\n", capture_output=True, check=True)
    for word in done.stdout.split():
        yield f"{places.get(word, '?')}: '{word}' is in no word list (docs/site/words.txt)"


# ------------------------------------------------------------------ what pages say about the code

OPTIONS = {"OpenOptions": "open_options.h", "Tuning": "tuning.h", "MergePolicy": "merge.h",
           "MergeOptions": "merge.h", "RunOptions": "query.h", "CallOptions": "progress.h",
           "RetryOptions": "retry.h"}
FIELD = re.compile(r"^  [\w:<>(), *&]+?\s(\w+)(?:\{[^;]*\})?(?: = [^;]*)?;", re.MULTILINE)
LAYERS = ("base", "pmem", "columns", "mvcc", "recovery", "tables", "engine", "query", "include")


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def section(text, heading):
    """The text of a section, from its heading to the next of its level."""
    found = re.search(rf"^(#+) {re.escape(heading)}$(.*?)(?=^\1 |\Z)", text,
                      re.MULTILINE | re.DOTALL)
    return found[2] if found else ""


def fields(root, struct):
    header = read(root, f"include/flugs/{OPTIONS[struct]}")
    body = re.search(rf"^struct {struct} \{{$(.*?)^\}};$", header, re.MULTILINE | re.DOTALL)[1]
    return FIELD.findall(re.sub(r"//.*", "", body))


def wrong_options(root):
    """Options of the structs that docs/options.md lacks, and those that are no options."""
    page = read(root, "docs/options.md")
    for struct in OPTIONS:
        rows = re.findall(r"^\| (`[^|]*) \|", section(page, struct), re.MULTILINE)
        shown = set(re.findall(r"`(\w+)`", " ".join(rows)))
        known = set(fields(root, struct))
        for name in sorted(known - shown):
            yield f"docs/options.md: {struct}::{name} is missing"
        for name in sorted(shown - known):
            yield f"docs/options.md: {struct} has no {name}"


def wrong_codes(root):
    """Status codes without a paragraph in docs/errors.md, and paragraphs without a code."""
    known = set(re.findall(r"^  (k\w+) = (\d+),", read(root, "include/flugs/status.h"),
                           re.MULTILINE)) - {("kOk", "0")}
    shown = set(re.findall(r"^### (k\w+) \((\d+)\)$", read(root, "docs/errors.md"), re.MULTILINE))
    for name, number in sorted(known ^ shown):
        yield f"docs/errors.md: {name} ({number}) is only in the code, or only on the page"


def library_texts(root):
    """All string literals of the library, those side by side joined, with NUL for each {}."""
    texts = []
    for layer in LAYERS:
        for folder, _, names in os.walk(os.path.join(root, layer)):
            for name in names:
                if name.endswith((".cc", ".h")):
                    code = re.sub(r'"\s*\n\s*"', "", read(root, os.path.join(folder, name)))
                    texts += re.findall(r'"((?:[^"\\\n]|\\.)*)"', code)
    return [re.sub(r"\{[^}]*\}", "\0", text.replace('\\"', '"')) for text in texts]


def wrong_messages(root):
    """Messages of docs/errors.md of which the library has no text with the same words."""
    rows = re.findall(r"^\| `([^`]*)` \|", section(read(root, "docs/errors.md"),
                                                   "Frequent messages"), re.MULTILINE)
    texts = library_texts(root)
    for row in rows:
        parts = [part.strip(" :;,()'") for part in
                 re.split(r"\b[A-Z]\b|\.\.\.|'x'|\ba, b, c\b", row)]
        for part in parts:
            if len(part) > 3 and not any(part in text for text in texts):
                yield f"docs/errors.md: no message has '{part}' (of '{row}')"


def wrong_limits(root):
    """Constants and files of docs/limits.md that do not exist."""
    for line in read(root, "docs/limits.md").splitlines():
        if not line.startswith("| "):
            continue
        names = re.findall(r"`(\w[\w/.]*)`", line.rsplit("|", 2)[-2])
        files = [name for name in names if "/" in name]
        for path in files:
            if not os.path.exists(os.path.join(root, path)):
                yield f"docs/limits.md: {path} does not exist"
        code = "".join(read(root, path) for path in files
                       if os.path.exists(os.path.join(root, path)))
        for name in names:
            if "/" not in name and not re.search(rf"\b{re.escape(name)}\b", code):
                yield f"docs/limits.md: {' and '.join(files)} has no {name}"


# Pages for users, whose names must be those of the public headers.
USERS_PAGES = ("comparison", "concepts", "errors", "guide", "index", "losing-data", "missing",
               "operations", "options", "tutorial")


def wrong_names(root):
    """Names in code, `Class::member` and `kName`, that no public header has."""
    folder = os.path.join(root, "include", "flugs")
    known = set(re.findall(r"\w+", "".join(read(root, f"include/flugs/{name}")
                                          for name in os.listdir(folder) if name.endswith(".h"))))
    pages_of_users = [f"docs/{name}.md" for name in USERS_PAGES]
    pages_of_users += [name for name in documents(root) if name.startswith("docs/howto/")]
    for page in pages_of_users:
        for number, line in enumerate(read(root, page).splitlines(), 1):
            for code in re.findall(r"`([^`]+)`", line):
                names = re.findall(r"\bk[A-Z]\w+", code)
                for owner, member in re.findall(r"\b([A-Z]\w+)::(\w+)", code):
                    names += [owner, member]
                for name in names:
                    if name not in known:
                        yield f"{page}:{number}: no header has {name}"


def faults(root, site):
    yield from broken_links(site)
    yield from misspelt(root)
    for check in (wrong_options, wrong_codes, wrong_messages, wrong_limits, wrong_names):
        yield from check(root)
