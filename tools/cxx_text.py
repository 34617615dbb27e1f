"""Just enough understanding of C++ text for tidy.py: comments, literals, calls, functions."""

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


def without_comments(text):
    """The text with comments blanked out."""
    return _TOKEN.sub(lambda m: _blank(m[0]) if m["comment"] else m[0], text)


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


def functions(text):
    """(first line, last line) of every function body outside other functions. A function begins
    with the first line of its signature; lambdas count as part of what they stand in."""
    code = code_only(text)
    # Preprocessor lines may hold unbalanced braces.
    code = re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", lambda m: _blank(m[0]), code, flags=re.MULTILINE)
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
