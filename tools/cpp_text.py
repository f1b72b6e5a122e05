"""Reads C++ as text: finds functions by matching brackets, which clang-formatted code allows."""
import re

TOKEN = re.compile(r"""
    //(?:\\\n|[^\n])* | /\*.*?\*/                                       # comment
  | ^[ \t]*\#(?:\\\n|//[^\n]*|/\*.*?\*/|[^\n])*                         # preprocessor
  | (?P<number>\b\d(?:'?[\w.])*)                                        # 1'000 is no character
  | (?P<literal>R"(?P<end>[^(\s]*)\(.*?\)(?P=end)" | "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*')
""", re.VERBOSE | re.DOTALL | re.MULTILINE)
BRACKET = re.compile(r"[(){}]")


def blank(text):
    """C++ without comments, literals and preprocessor; what is left keeps its line numbers."""
    def replace(token):
        if token.lastgroup == "number":
            return token[0]
        return ('""' if token.lastgroup == "literal" else "") + "\n" * token[0].count("\n")
    return TOKEN.sub(replace, text)


def line_at(code, at):
    return code.count("\n", 0, at) + 1


def skip_group(code, at):
    """The end of the bracketed group that begins at `at`."""
    depth = 0
    for bracket in BRACKET.finditer(code, at):
        depth += 1 if bracket[0] in "({" else -1
        if depth == 0:
            return bracket.end()
    raise ValueError("a bracket that is not closed")


def flatten(head, opening, closing):
    """f(a(b))(c) -> f()(): the content of every group goes."""
    out, depth = [], 0
    for char in head:
        depth -= char == closing and depth > 0
        if depth == 0:
            out.append(char)
        depth += char == opening
    return "".join(out)


def what_begins(head):
    """What the `{` after this text begins: a ("function", name), a "scope" or a "value"."""
    flat = flatten(flatten(head, "(", ")"), "{", "}").strip()
    if flat.startswith("template"):
        flat = flatten(flat.replace("->", "  "), "<", ">")
    flat = re.sub(r"\b(?:alignas|decltype|explicit|noexcept|requires)\s*\(\)", " ", flat)
    flat = re.sub(r"\boperator\s*(?:\(\)|[^\s\w(]+)", "operator_", flat)
    if "(" not in flat and "=" not in flat:
        is_scope = re.search(r"\b(?:namespace|class|struct|union|extern)\b", flat)
        return ("scope" if is_scope else "value"), None
    if re.search(r"\)\s*:(?!:).*[\w>]$", flat, re.DOTALL):
        return "value", None  # of a member, in Foo() : a_{1} {}
    if variable := re.search(r"(\w+)\s*=", flat):
        return ("function" if re.search(r"\]\s*\(", flat) else "value"), variable[1]
    if test := re.match(r"\s*(?:TYPED_TEST|TEST|RC_GTEST)\w*\((\w+),\s*(\w+)", head):
        return "function", f"{test[1]}.{test[2]}"
    name = re.search(r"([\w~:]+)\s*\(", flat)
    return ("function" if name else "value"), name and name[1].lstrip(":")


def functions(text):
    """(name, first line, number of lines) of each function; ValueError if brackets do not match."""
    code, found = blank(text), []
    at = head = depth = 0
    while mark := re.compile(r"[(){};]").search(code, at):
        at = mark.end()
        if mark[0] == "(":
            at = skip_group(code, mark.start())
        elif mark[0] != "{":
            depth -= mark[0] == "}"
            head = at
        else:
            head += re.match(r"(?:\s|(?:public|private|protected)\s*:)*", code[head:at]).end()
            kind, name = what_begins(code[head:mark.start()])
            if kind == "scope":
                depth, head = depth + 1, at
                continue
            at = skip_group(code, mark.start())
            if kind == "function":
                first = line_at(code, head)
                found.append((name, first, line_at(code, at) - first + 1))
                head = at
    if depth != 0:
        raise ValueError("braces that do not match")
    return found
