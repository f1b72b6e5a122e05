#!/usr/bin/env python3
"""Every check of tidy.py can fail, says where, and lets good code pass."""
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
import tidy  # noqa: E402
from cpp_text import blank, functions  # noqa: E402


def function(name, lines):
    return f"void {name}() {{\n" + "  step();\n" * (lines - 2) + "}\n"


UNFINISHED = "TO" + "DO"

# check: (path, what it must refuse, the lines that it must name)
BAD = {
    "include path": ("src/a/a.cc", '#include "a/a.h"\n#include "../b/b.h"\n', [2]),
    "pragma once": ("src/a/a.h", "// #pragma once\nint a();\n", [1]),
    "function length": ("src/a/a.cc", "\n" + function("f", 70) + function("g", 71), [72]),
    "ratchet": (tidy.RATCHET, "# why\nsrc/long.cc gone 90\nsrc/long.cc f 81\nsrc/no.cc f 80\n",
                [2, 3, 4]),
    "file length": ("src/a/a.cc", "int a;\n" * 901, [901]),
    "line length": ("src/a/a.cc", "// " + "é" * 97 + "\n// " + "é" * 98 + "\n", [2]),
    "white space": ("notes.txt", "a \nb\tc\r\nd", [1, 2, 2, 3]),
    "co_await": ("src/a/a.cc", "void f() {\n  if (co_await a()) return;\n"
                 "  co_return co_await b();\n  x = co_await c();\n  g(co_await d());\n"
                 "  auto y = co_await e({1, 2});\n"
                 "  co_await h([&] { return 1; });\n  for (;; co_await i()) {\n  }\n}\n",
                 [2, 3, 4, 5, 6, 7, 8]),
    "sleep": ("src/a/a.cc", "// sleep(1)\nvoid f() { std::this_thread::sleep_for(x); }\n", [2]),
    "unfinished": ("docs/a.md", f"{UNFINISHED.lower()} {UNFINISHED}S XXXXXX\n{UNFINISHED}: this\n",
                   [2]),
}

GOOD = {
    "src/a/a.h": "// What it is.\n#pragma once\n\n#include \"a/b.h\"\nint a();\n",
    "src/a/a.cc": "void f() {\n  auto x = co_await a(b);\n  const auto [c, d] = co_await e();\n"
                  "  co_await g(x);\n  if (x) {\n    co_await h();\n  }\n}\n",
    "src/base/clock.h": "#pragma once\nvoid pause() { std::this_thread::sleep_for(x); }\n",
    "tests/a_test.cc": "void f() { usleep(1); }\n",
    "docs/a.md": "x" * 200 + "\n",
    "fuzz/corpus/a/1": "\tseed ",
    "empty.txt": "",
    tidy.RATCHET: "# why\nsrc/long.cc f 80\n",
    "src/long.cc": function("f", 80),
}


def run(files):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        (Path(folder) / "binary").write_bytes(b"\0 \t")
        (Path(folder) / "latin1").write_bytes(b"\xe9 ")
        return tidy.run(Path(folder))


class Checks(unittest.TestCase):
    def test_every_check_has_a_bad_example(self):
        self.assertEqual(set(BAD), set(tidy.all_checks({})))

    def test_good_files_pass_all_checks(self):
        for name, (passed, failed, messages) in run(GOOD).items():
            self.assertEqual((failed, messages), (0, []), name)
            self.assertGreater(passed, 0, name)

    def test_bad_files_fail_their_check_at_their_lines(self):
        for name, (path, text, lines) in BAD.items():
            with self.subTest(name):
                _, failed, messages = run({**GOOD, path: text})[name]
                self.assertEqual(failed, 1)
                self.assertEqual([m.split(": ")[0] for m in messages],
                                 [f"{path}:{line}" for line in lines])

    def test_ratchet_refuses_growth_and_follows_shrinking(self):
        grown = run({**GOOD, "src/long.cc": function("f", 81)})
        self.assertIn("over 80", grown["function length"][2][0])
        shrunk = run({**GOOD, "src/long.cc": function("f", 79)})
        self.assertIn("lower its number to 79", shrunk["ratchet"][2][0])
        split = run({**GOOD, "src/long.cc": function("f", 70)})
        self.assertIn("remove this line", split["ratchet"][2][0])

    def test_unmatched_braces_are_refused(self):
        for text in ("void f() {\n", "}\n", "namespace a {\n"):
            self.assertEqual(run({"a.cc": text})["function length"][1], 1, text)


class Functions(unittest.TestCase):
    def assert_found(self, text, *expected):
        self.assertEqual(functions(text), list(expected))

    def test_blank_keeps_code_and_lines(self):
        self.assertEqual(blank("a // {\nb /* {\n */ c '{' \"\\\"{\" 1'000 R\"x({\n)\")x\" d\n"
                               "#define E { \\\n  {\nf\n"),
                         'a \nb \n c "" "" 1\'000 ""\n d\n\n\nf\n')

    def test_names_and_lines(self):
        self.assert_found("namespace a {\n\n// Why.\nint f(int x = g({1})) {\n  return x;\n}\n}\n",
                          ("f", 4, 3))
        self.assert_found("template <class T = int, int n = 3>\nauto A<T>::b() -> C<T> {\n}\n",
                          ("b", 1, 3))
        self.assert_found("class A final : public B {\n public:\n  A() : a_{1}, b_{2} {}\n"
                          "  bool operator==(const A& a) const {\n    return true;\n  }\n"
                          "  int operator()(int x) { return x; }\n\n private:\n  int a_{0};\n};\n",
                          ("A", 3, 1), ("operator_", 4, 3), ("operator_", 7, 1))
        self.assert_found("TEST(Suite, Name) {\n  auto f = [] { return 1; };\n}\n",
                          ("Suite.Name", 1, 3))
        self.assert_found('extern "C" int f(int a) { return 0; }\n', ("f", 1, 1))
        self.assert_found("const auto f = [](int x) {\n  return x;\n};\n", ("f", 1, 3))

    def test_data_is_no_function(self):
        self.assert_found("constexpr A table[] = {\n    {1, f(2)},\n    {3},\n};\nint x{1};\n"
                          "enum class E : char { a, b };\nstruct S {\n  int y = 0;\n};\n")


if __name__ == "__main__":
    unittest.main()
