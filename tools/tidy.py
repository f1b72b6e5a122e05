#!/usr/bin/env python3
"""The rules of the repository that neither the compiler nor clang-format checks.

tools/tidy.py              checks every file that git knows or would add; exit 1 if one fails
tools/tidy.py --self-test  makes sure that every check can fail
"""
import os
import re
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
from cpp_text import blank, functions, line_at  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
RATCHET = "tools/tidy_ratchet.txt"
CLOCK = "src/base/clock.h"  # the one place that may sleep
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 900
COLUMNS_MAX = 100

# --- the checks: each gives (line, message) for what is wrong in one file ---


def lines_with(pattern, message):
    """A check that no line has the pattern."""
    def check(_, text):
        for number, line in enumerate(text.split("\n"), 1):
            if found := re.search(pattern, line):
                yield number, message.format(found[0])
    return check


def in_code(check):
    return lambda path, text: check(path, blank(text))


def check_function_length(path, text, ratchet):
    try:
        for name, line, lines in functions(text):
            allowed = ratchet.get((path, name), FUNCTION_LINES_MAX)
            if lines > allowed:
                yield line, f"{name} has {lines} lines, over {allowed}: split it"
    except ValueError as error:
        yield 1, f"{error}: make them match within each #if branch"


def read_ratchet(text):
    for number, line in enumerate(text.split("\n"), 1):
        if line and not line.startswith("#"):
            path, name, lines = line.split()
            yield number, path, name, int(lines)


def check_ratchet(_, text, files):
    for number, path, name, allowed in read_ratchet(text):
        lines = max((f[2] for f in functions(files.get(path, "")) if f[0] == name), default=0)
        if lines <= FUNCTION_LINES_MAX:
            yield number, f"{path} {name} is no longer over the limit: remove this line"
        elif lines < allowed:
            yield number, f"{path} {name} has shrunk: lower its number to {lines}"


def check_whitespace(_, text):
    for number, line in enumerate(text.split("\n"), 1):
        if line != line.rstrip():
            yield number, "white space at the end of the line: remove it"
        if "\t" in line:
            yield number, "a tab: use spaces"
    if text and not text.endswith("\n"):
        yield text.count("\n") + 1, "no newline at the end of the file: add one"


def check_file_length(_, text):
    if (lines := text.count("\n")) > FILE_LINES_MAX:
        yield lines, f"the file has {lines} lines, over {FILE_LINES_MAX}: split it by subject"


def check_co_await(_, text):
    code = blank(text)
    for found in re.finditer(r"\bco_await\b", code):
        before = re.split(r"[;{}]", code[:found.start()])[-1].strip()
        after = code[found.end():].split(";")[0]
        is_named = re.fullmatch(r"(?:const )?auto(?:&&?)? (?:\w+|\[[\w\s,]+\]) =", before)
        if (before and not is_named) or re.search(r"[{}]|\bco_await\b", after):
            yield line_at(code, found.start()), (
                "g++ 12 miscompiles this: write `auto x = co_await f(named, arguments);` or "
                "`co_await f(named, arguments);` as a statement in braces, without lambda or {}")


def is_cpp(path):
    return path.endswith((".h", ".cc"))


def is_code(path):
    return is_cpp(path) or path.endswith((".py", ".sh", ".cmake", "CMakeLists.txt")) \
        or path in ("dev", ".ci/run")


def all_checks(files):
    ratchet = {(p, n): lines for _, p, n, lines in read_ratchet(files.get(RATCHET, ""))}
    return {  # name: (which files, check)
        "include path": (is_cpp, lines_with(r'^\s*#\s*include\s+"\.\./.*', "{}: name the header "
                                            "from its module, \"module/header.h\"")),
        "pragma once": (lambda p: p.endswith(".h"), lambda _, text: [] if re.search(
            r"^#pragma once$", text, re.M) else [(1, "add #pragma once after the first comment")]),
        "function length": (is_cpp, lambda p, text: check_function_length(p, text, ratchet)),
        "ratchet": (lambda p: p == RATCHET, lambda p, text: check_ratchet(p, text, files)),
        "file length": (is_code, check_file_length),
        "line length": (is_code, lines_with(f"^.{{{COLUMNS_MAX + 1},}}", "over "
                                            f"{COLUMNS_MAX} columns: break the line")),
        "white space": (lambda p: True, check_whitespace),
        "co_await": (is_cpp, check_co_await),
        "sleep": (lambda p: is_cpp(p) and p.startswith("src/") and p != CLOCK, in_code(lines_with(
            r"\b(?:sleep_for|sleep_until|usleep|nanosleep|sleep)\s*\(",
            "{}: wait for the event itself, or take a Clock"))),
        "unfinished": (lambda p: True, lines_with(
            r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b", "{}: do it now, or open an issue")),
    }


def read_files(root):
    """path: text of all that is ours, new files included; fuzz inputs and binary files are not."""
    git = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                         cwd=root, capture_output=True, text=True, check=False)
    paths = git.stdout.split("\0")[:-1]
    if git.returncode != 0:  # an unpacked archive
        paths = [str((Path(folder) / name).relative_to(root)) for folder, _, names in os.walk(root)
                 for name in names]
        paths = [p for p in paths if not p.startswith((".git/", "build/", "trellis-data/"))]
    files = {}
    for path in sorted(set(paths)):
        full = root / path
        if full.is_file() and not full.is_symlink() and not path.startswith("fuzz/corpus/"):
            data = full.read_bytes()
            try:
                files[path] = data.decode() if b"\0" not in data else None
            except UnicodeDecodeError:
                pass
    return {path: text for path, text in files.items() if text is not None}


def run(root):
    """name of check: (files that pass, "path:line: message" of each failure, files that fail)"""
    files, results = read_files(root), {}
    for name, (applies, check) in all_checks(files).items():
        failures = {path: list(check(path, text)) for path, text in files.items() if applies(path)}
        bad = {path: found for path, found in failures.items() if found}
        messages = [f"{path}:{line}: {text}" for path in bad for line, text in bad[path]]
        results[name] = (len(failures) - len(bad), len(bad), messages)
    return results


def main():
    if sys.argv[1:] == ["--self-test"]:
        return subprocess.call([sys.executable, "-B", str(ROOT / "tools/tidy_test.py")])
    if sys.argv[1:]:
        print(__doc__, file=sys.stderr)
        return 2
    results = run(ROOT)
    for name, (passed, failed, messages) in results.items():
        print(f"tidy: {name:16} {passed:4} passed, {failed} failed", *messages, sep="\n")
    return 1 if any(failed for _, failed, _ in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
