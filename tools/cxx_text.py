"""Just enough understanding of C++ text for tidy.py: comments, literals, calls, functions."""

import functools
import re

# One alternative per thing that has to be skipped as a whole, tried in this order.
_TOKEN = re.compile(
    r"""(?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)
      | (?P<raw>R"(?P<tag>[^()\s\\"]*)\(.*?\)(?P=tag)")
      | (?P<string>"(?:\\.|[^"\\\n])*")
      | (?P<char>(?<![0-9a-zA-Z_])'(?:\\.|[^'\\\n])+')""",
    re.DOTALL | re.VERBOSE,
)


def _blank(text):
    """Spaces instead of `text`, its line ends kept, so that positions stay what they were."""
    return re.sub(r"[^\n]", " ", text)


@functools.cache
def without_comments(text):
    """The text with comments blanked out."""
    return _TOKEN.sub(lambda m: _blank(m[0]) if m["comment"] else m[0], text)


@functools.cache
def code_only(text):
    """The text with comments and the insides of literals blanked out."""

    def replace(match):
        if match["comment"]:
            return _blank(match[0])
        return match[0][0] + _blank(match[0][1:-1]) + match[0][-1]

    return _TOKEN.sub(replace, text)


def literals(text):
    """(position, content) of every ordinary string literal."""
    return [(m.start(), m[0][1:-1]) for m in _TOKEN.finditer(text) if m["string"]]


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def calls(code, name_pattern):
    """(start, end) of the arguments of each call of a function whose name matches; `code` is the
    result of code_only()."""
    for match in re.finditer(r"\b(?:%s)\s*\(" % name_pattern, code):
        depth = 1
        end = match.end()
        while depth and end < len(code):
            depth += {"(": 1, ")": -1}.get(code[end], 0)
            end += 1
        yield match.end(), end - 1


def _without_template_head(head):
    match = re.match(r"\s*template\s*<", head)
    if not match:
        return head
    depth = 1
    end = match.end()
    while depth and end < len(head):
        depth += {"<": 1, ">": -1}.get(head[end], 0)
        end += 1
    return _without_template_head(head[end:])


def _is_function_head(head):
    """Whether a brace after `head`, outside any function, opens a function body."""
    head = _without_template_head(head)
    before_arguments, parenthesis, _ = head.partition("(")
    if not parenthesis:
        return False
    if re.search(r"\b(class|struct|union|enum|namespace)\b", before_arguments):
        return False
    return not head.rstrip().endswith(("=", ","))


def _code_of_scopes(text):
    """code_only() without preprocessor lines, which may hold unbalanced braces."""
    return re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", lambda m: _blank(m[0]), code_only(text),
                  flags=re.MULTILINE)


def functions(text):
    """(first line, last line) of every function body outside other functions. A function begins
    with the first line of its signature; lambdas count as part of what they stand in."""
    code = _code_of_scopes(text)
    found = []
    stack = []  # per open brace: position where the function begins, or None
    head_start = 0
    inside = False
    for match in re.finditer(r"[{};]", code):
        position = match.start()
        if match[0] == "{":
            head = code[head_start:position]
            begins = not inside and _is_function_head(head)
            stack.append(head_start + len(head) - len(head.lstrip()) if begins else None)
            inside = inside or begins
        elif match[0] == "}" and stack:
            start = stack.pop()
            if start is not None:
                found.append((line_of(text, start), line_of(text, position)))
                inside = False
        if not inside:
            head_start = position + 1
    return found


_LABELS = re.compile(r"^\s*(?:(?:public|protected|private)\s*:(?!:)\s*)+")
_CLASS = re.compile(r"\s*(?:class|struct|union)\b(?:\s*alignas\s*\([^)]*\))?\s*(\w*)[^()]*$")
_NO_FUNCTION = re.compile(r"\s*(?:using|typedef|friend|static_assert|enum|class|struct|union)\b")


def _declares_function(head):
    """Whether a declaration in a class, up to its ";" or its body, is a function of the class."""
    if _NO_FUNCTION.match(head) or re.search(r"=\s*delete\s*$", head):
        return False
    head = re.sub(r"\boperator\s*(?:\(\s*\)|[^\s\w(]+)", "operator_", head)
    head = re.sub(r"\b(?:alignas|decltype|explicit|requires)\s*\([^()]*\)|\[\[.*?\]\]", "", head)
    # Without template arguments: a FunctionRef<void(int)> is a variable.
    before = None
    while before != head:
        before, head = head, re.sub(r"(?<=\w)<[^<>]*>", "", head)
    return re.match(r"[^=({,]*\w\s*\((?!\s*\*)", head) is not None


def class_functions(text):
    """[name, line, number of functions] of every class outside functions. A class inside another
    one counts for itself; friends and deleted functions do not count."""
    code = _code_of_scopes(text)
    found = []
    open_braces = []  # per open brace: the class that it opens, None of a namespace, or "skipped"
    head_start = 0
    for match in re.finditer(r"[{};]", code):
        outside = "skipped" not in open_braces
        head = code[head_start:match.start()]
        line = line_of(code, match.start() - len(head.lstrip()))
        head = _without_template_head(_LABELS.sub("", head))
        inside = open_braces[-1] if open_braces else None
        if match[0] == "}":
            if open_braces:
                open_braces.pop()
        elif outside and inside is not None and _declares_function(head):
            inside[2] += 1
        if match[0] == "{":
            opened = "skipped"
            if outside and (named := _CLASS.match(head)):
                opened = [named[1], line, 0]
                found.append(opened)
            elif outside and re.match(r"\s*(?:(?:inline\s+)?namespace|extern)\b", head):
                opened = None
            open_braces.append(opened)
        if "skipped" not in open_braces:
            head_start = match.end()
    return found
