"""What MkDocs does not do by itself for the site of docs/ (mkdocs.yml): pages from files that lie
outside of docs/, the API reference, and lists as code hosts read them."""

import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Files in the root that are pages of the site, too.
OF_ROOT = {"ARCHITECTURE.md": "architecture.md", "CHANGELOG.md": "changelog.md",
           "CONTRIBUTING.md": "contributing.md"}
EXAMPLES = "examples"
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```.*?^```[ \t]*$)", re.MULTILINE | re.DOTALL)
LIST_BEHIND_TEXT = re.compile(r"^([^\s*>|#-].*)\n((?:[*-]|\d+\.) )", re.MULTILINE)


def api_page(header):
    """The page that Doxygen makes of a header."""
    name = header.replace("_", "__").replace(".", "_8")
    return f"api/{name}.html"


def place_of(target):
    """Where the site has what `target`, a path from the root, is; None: it is not there."""
    path, _, anchor = target.partition("#")
    tail = "#" + anchor if anchor else ""
    if path == "README.md":
        return "index.md"
    if path in OF_ROOT:
        return OF_ROOT[path] + tail
    if path in ("include/flugs", "include/flugs/"):
        return "api/index.html"
    if path.startswith("include/flugs/"):
        return api_page(os.path.basename(path))
    if path in ("docs/decisions", "docs/decisions/"):
        return "decisions/README.md"
    if path.startswith("docs/"):
        return path.removeprefix("docs/") + tail
    if path.startswith(EXAMPLES + "/") and path.endswith(".cc"):
        return path.removesuffix(".cc") + ".md"
    return None


def with_links(text, source, page):
    """`text` of the file `source`, a path from the root, as the page `page` of the site."""
    def replaced(match):
        words, target = match.groups()
        if re.match(r"[a-z]+:|#", target):
            return match[0]
        path, _, anchor = target.partition("#")
        from_root = os.path.normpath(os.path.join(os.path.dirname(source), path))
        place = place_of(from_root + ("#" + anchor if anchor else ""))
        if place is None:
            if os.path.exists(os.path.join(ROOT, from_root)):
                return words  # a file that the site does not show
            return match[0]  # MkDocs reports it
        path, _, anchor = place.partition("#")
        path = os.path.relpath(path, os.path.dirname(page) or ".")
        return f"[{words}]({path}{'#' + anchor if anchor else ''})"
    return LINK.sub(replaced, text)


def as_markdown(text, source, page):
    """The same text for MkDocs: links lead to pages, and a list may follow a line of text."""
    parts = FENCE.split(text)
    for i in range(0, len(parts), 2):
        parts[i] = LIST_BEHIND_TEXT.sub(r"\1\n\n\2", with_links(parts[i], source, page))
    return "".join(parts)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def examples():
    return [name for name in sorted(os.listdir(os.path.join(ROOT, EXAMPLES)))
            if name.endswith(".cc")]


def decisions():
    """The pages of the decisions, with their numbers, for the menu."""
    names = sorted(os.listdir(os.path.join(ROOT, "docs", "decisions")))
    return [f"decisions/{name}" for name in names if re.match(r"\d{4}-", name)]


def on_config(config):
    for section in config["nav"]:
        for entries in section.values():
            for entry in entries:
                if entry == {"Decisions": []}:
                    entry["Decisions"] = ["decisions/README.md"] + decisions()
    return config


def on_nav(nav, **_):
    from mkdocs.structure.nav import Link  # most of this file is of use without MkDocs
    for section in nav.items:
        if section.title == "Reference":
            section.children.append(Link("API reference", "api/index.html"))
    return nav


def on_files(files, config):
    from mkdocs.structure.files import File
    for source, page in OF_ROOT.items():
        files.append(File.generated(config, page, content=read(source)))
    for name in examples():
        text = read(f"{EXAMPLES}/{name}")
        files.append(File.generated(config, f"{EXAMPLES}/{name.removesuffix('.cc')}.md",
                                    content=f"# {EXAMPLES}/{name}\n\n````cpp\n{text}````\n"))
    api = os.environ["FLUGS_API"]
    for folder, _, names in os.walk(api):
        for name in names:
            path = os.path.join(folder, name)
            files.append(File(os.path.relpath(path, os.path.dirname(api)), os.path.dirname(api),
                              config["site_dir"], use_directory_urls=False))
    return files


def on_page_markdown(markdown, page, **_):
    name = page.file.src_uri
    if name.startswith(EXAMPLES + "/"):
        return markdown
    source = next((path for path, there in OF_ROOT.items() if there == name), f"docs/{name}")
    return as_markdown(markdown, source, name)
