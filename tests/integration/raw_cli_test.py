"""`trellis raw`, against a running server."""

import json
import os
import subprocess
import time
import unittest

from client_command import ClientTest, ScriptedServer, http_answer
from trellis_command import BINARY

EVERY_BYTE = bytes(range(256))


class OneKey(ClientTest):
    def test_put_get_delete(self):
        self.assertEqual(self.does("raw", "put", "greeting", "hello").out, "")
        self.assertEqual(self.does("raw", "get", "greeting").out, "hello")
        self.assertEqual(self.does("raw", "delete", "greeting").out, "")
        self.fails(1, "no such key", "raw", "get", "greeting")
        self.does("raw", "delete", "greeting")  # is as good as removed
        self.assertEqual(self.does("raw", "put", "k", "v", "--json").json, {"done": True})
        self.assertEqual(self.does("raw", "delete", "k", "--json").json, {"done": True})

    def test_values_are_bytes(self):
        for value in (b"", b"\n", b"{}", b"[1,2]", EVERY_BYTE, bytes(1 << 20)):
            self.does("raw", "put", "bytes", stdin=value)
            self.assertEqual(self.does("raw", "get", "bytes").bytes, value)
        self.does("raw", "put", "bytes", "-", stdin=b"from stdin")
        self.assertEqual(self.does("raw", "get", "bytes").out, "from stdin")
        for value in ("", "{}", "[1,2]", "%%", "a\nb", "straße"):
            self.does("raw", "put", "text", value, stdin=b"not this")
            self.assertEqual(self.does("raw", "get", "text").out, value)

    def test_keys_are_any_text(self):
        for key in (".", "..", "a/b/../c", "/", "//", "a b", "a%2Fb", "?x=1&y", "#", "straße", "\n",
                    "+", "id", "\\x00"):
            self.does("raw", "put", key, f"value of {key}")
            self.assertEqual(self.does("raw", "get", key).out, f"value of {key}", key)
        self.does("raw", "put", "--", "-k", "-v")
        self.assertEqual(self.does("raw", "get", "--", "-k").out, "-v")
        self.fails(2, "-k is not a flag", "raw", "get", "-k")

    def test_escaped(self):
        self.does("raw", "put", "--escaped", r"e\x00\xff", r"a\n\\")
        self.assertEqual(self.does("raw", "get", "--escaped", r"e\x00\xff").out, "a\n\\")
        entry = self.does("raw", "get", "--escaped", r"e\x00\xff", "--json").json
        self.assertEqual((entry["key_base64"], entry["value"]), ("ZQD/", "a\n\\"))
        self.fails(1, "no such key", "raw", "get", r"e\x00\xff")
        self.fails(2, "backslash", "raw", "get", "--escaped", r"e\q")
        self.fails(2, "at least one byte", "raw", "get", "")
        self.fails(2, "at least one byte", "raw", "put", "--escaped", '""', "v")

    def test_expiry(self):
        self.does("raw", "put", "short", "v", "--ttl", "10m")
        entry = self.does("raw", "get", "short", "--json").json
        left_s = entry["expires_at_ms"] / 1000 - time.time()
        self.assertTrue(500 < left_s < 700, left_s)
        self.does("raw", "put", "short", "v")
        self.assertNotIn("expires_at_ms", self.does("raw", "get", "short", "--json").json)
        self.fails(2, "length of time", "raw", "put", "short", "v", "--ttl", "10")
        self.fails(2, "no time", "raw", "put", "short", "v", "--ttl", "0s")

    def test_conditions(self):
        self.does("raw", "put", "once", "1", "--if-absent")
        self.fails(1, "condition", "raw", "put", "once", "2", "--if-absent")
        tag = self.does("raw", "get", "once", "--json").json["etag"]
        self.does("raw", "put", "once", "2", "--if-tag", tag)
        self.fails(1, "condition", "raw", "put", "once", "3", "--if-tag", tag)
        self.fails(1, "condition", "raw", "delete", "once", "--if-tag", tag.strip('"'))
        tag = self.does("raw", "get", "once", "--json").json["etag"]
        self.does("raw", "delete", "once", "--if-tag", tag.strip('"'))
        self.fails(2, "excludes", "raw", "put", "once", "3", "--if-tag", tag, "--if-absent")
        self.fails(2, "a tag has no", "raw", "put", "once", "3", "--if-tag", "a\r\nHost: x")

    def test_compare_and_set(self):
        self.does("raw", "cas", "cas", "--expect-absent", "--set", "")
        self.assertEqual(self.does("raw", "cas", "cas", "--expect", "", "--set", "b",
                                   "--json").json, {"done": True})
        self.fails(1, 'its value is "b"', "raw", "cas", "cas", "--expect", "a", "--set", "c")
        self.fails(1, 'its value is "b"', "raw", "cas", "cas", "--expect-absent", "--set", "c")
        self.does("raw", "cas", "cas", "--expect", "b", "--set", "-5", "--ttl", "1h")
        self.assertIn("expires_at_ms", self.does("raw", "get", "cas", "--json").json)
        self.does("raw", "cas", "--escaped", "cas", "--expect", r"\x2d5", "--set", r"\xff")
        self.assertEqual(self.does("raw", "get", "cas").bytes, b"\xff")
        self.fails(1, r'its value is "\xff"', "raw", "cas", "cas", "--expect", "x", "--delete")
        self.does("raw", "cas", "--escaped", "cas", "--expect", r"\xff", "--delete")
        self.fails(1, "the key is not there", "raw", "cas", "cas", "--expect", "x", "--delete")
        self.fails(2, "--expect-absent", "raw", "cas", "cas", "--set", "x")
        self.fails(2, "--set", "raw", "cas", "cas", "--expect", "x")
        self.fails(2, "excludes", "raw", "cas", "cas", "--expect", "x", "--set", "y", "--delete")
        self.fails(2, "excludes", "raw", "cas", "cas", "--expect", "x", "--delete", "--ttl", "1s")

    def test_too_large(self):
        self.does("raw", "put", "large", stdin=bytes((16 << 20) - 64))
        self.assertEqual(len(self.does("raw", "get", "large").bytes), (16 << 20) - 64)
        for size in (16 << 20, (16 << 20) + 1, 20 << 20):
            self.fails(1, "16.0 MiB", "raw", "put", "large", stdin=bytes(size))
        self.fails(1, "long keys go through `trellis raw batch`", "raw", "put", "k" * 70000, "v")
        self.does("raw", "delete", "large")


class Keyspaces(ClientTest):
    def test_which(self):
        self.does("keyspace", "create", "one")
        self.does("keyspace", "create", "two")
        self.does("raw", "put", "k", "1", "--keyspace", "one")
        self.does("raw", "put", "k", "2", TRELLIS_KEYSPACE="two")
        self.fails(1, "no such key", "raw", "get", "k")
        self.assertEqual(self.does("raw", "get", "k", TRELLIS_KEYSPACE="one").out, "1")
        self.assertEqual(
            self.does("raw", "get", "k", "--keyspace", "two", TRELLIS_KEYSPACE="one").out, "2")
        self.assertEqual(self.does("raw", "export", "--keyspace", "one").lines,
                         [{"key": "k", "value": "1"}])
        for name in ("nobody", "../one", "a b", "\r\nX: y"):
            self.fails(1, "does not exist", "raw", "get", "k", "--keyspace", name)

    def test_states(self):
        self.does("keyspace", "create", "shut")
        token = self.does("keyspace", "token", "create", "shut", "--role", "write").out.strip()
        self.does("raw", "put", "k", "v", TRELLIS_TOKEN=token)
        self.does("keyspace", "state", "shut", "disable")
        self.fails(1, "shut", "raw", "get", "k", TRELLIS_TOKEN=token)
        self.fails(1, "shut", "raw", "put", "k", "v", TRELLIS_TOKEN=token)


class ManyKeys(ClientTest):
    def test_batch(self):
        self.does("keyspace", "create", "batch")
        lines = b'{"put":{"key":"a","value":"1"}}\n\n{"put":{"key_base64":"/w==","value":"2"}}\n'
        self.assertEqual(self.does("raw", "batch", "--keyspace", "batch", stdin=lines).out,
                         "2 operations done\n")
        answer = self.does("raw", "batch", "--keyspace", "batch", "--json",
                           stdin=b'{"delete":{"key":"a"}}').json
        self.assertEqual(answer, {"applied": 1})
        self.assertEqual(self.does("raw", "scan", "--keyspace", "batch", "--json").lines,
                         [{"key_base64": "/w==", "value": "2"}])
        for lines, message in [(b"", "no operations"), (b"\n", "no operations"),
                               (b'{"put":{}}\nnope\n', "line 2 is not a JSON object"),
                               (b'[1]', "line 1"), (b'{"put":{"key":"a"}}', "needs a key"),
                               (b'{"set":{"key":"a"}}', "set")]:
            self.fails(1, message, "raw", "batch", "--keyspace", "batch", stdin=lines)

    def test_scan(self):
        self.does("keyspace", "create", "scan")
        keyspace = ["--keyspace", "scan"]
        lines = "".join(json.dumps({"put": {"key": f"k{i:04}", "value": str(i)}}) + "\n"
                        for i in range(1100))
        self.does("raw", "batch", *keyspace, stdin=lines.encode())
        self.does("raw", "put", *keyspace, "--escaped", r"z\x00\xff", r"\x1b[31m", "--ttl", "1h")
        self.does("raw", "put", *keyspace, "zz", "x" * 100)
        everything = self.does("raw", "scan", *keyspace, "--json").lines
        self.assertEqual([entry["key"] for entry in everything[:1100]],
                         [f"k{i:04}" for i in range(1100)])
        self.assertEqual(len(everything), 1102)
        table = self.does("raw", "scan", *keyspace, "--prefix", "z").out
        self.assertRegex(table, r"^KEY +VALUE +SIZE  EXPIRES\n")
        self.assertRegex(table, r"(?m)^z\\x00\\xff  \\x1b\[31m +5 B  \S+Z \(in \d+ \S+\)$")
        self.assertRegex(table, r"(?m)^zz +x{57}\.\.\. +100 B$")
        escaped = table.splitlines()[1].split()[0]  # is what --escaped takes
        self.assertEqual(self.does("raw", "get", *keyspace, "--escaped", escaped).bytes,
                         b"\x1b[31m")
        keys = self.does("raw", "scan", *keyspace, "--begin", "k0010", "--end", "k0600",
                         "--reverse", "--keys-only", "--json").lines
        self.assertEqual(keys, [{"key": f"k{i:04}"} for i in range(599, 9, -1)])
        self.assertEqual(
            self.does("raw", "scan", *keyspace, "--keys-only", "--limit", 2).out,
            "KEY\nk0000\nk0001\n")
        self.assertEqual(len(self.does("raw", "scan", *keyspace, "--limit", 700).rows), 700)
        self.assertEqual(self.does("raw", "scan", *keyspace, "--prefix", "none").out.split(),
                         ["KEY", "VALUE", "SIZE", "EXPIRES"])
        by_bytes = self.does("raw", "scan", *keyspace, "--escaped", "--prefix", r"z\x00", "--json")
        self.assertEqual(by_bytes.lines[0]["key_base64"], "egD/")
        self.fails(2, "too small", "raw", "scan", "--limit", 0)


class Transfer(ClientTest):
    ENTRIES = 20_000

    def fill(self, name):
        self.does("keyspace", "create", name)
        lines = [json.dumps({"key": f"user/{i:06}", "value": f"value {i}"})
                 for i in range(self.ENTRIES)]
        lines += ['{"key_base64":"/wA=","value_base64":"/v8="}',
                  '{"key":"x","value":"1","expires_at_ms":9000000000000}']
        return "".join(line + "\n" for line in lines).encode()

    def test_there_and_back(self):
        lines = self.fill("from")
        done = self.does("raw", "import", "--keyspace", "from", stdin=lines)
        self.assertEqual(done.out, f"{self.ENTRIES + 2} entries imported\n")
        exported = self.does("raw", "export", "--keyspace", "from").bytes
        self.assertEqual(sorted(map(json.loads, exported.splitlines()), key=str),
                         sorted(map(json.loads, lines.splitlines()), key=str))
        path = self.folder / "all.jsonl"
        done = self.does("raw", "export", "--keyspace", "from", "--file", path)
        self.assertRegex(done.out, rf"^{self.ENTRIES + 2} entries exported, [\d.]+ KiB\n$")
        self.assertEqual(path.read_bytes(), exported)
        self.assertEqual(list(self.folder.iterdir()), [path])
        self.does("keyspace", "create", "to")
        answer = self.does("raw", "import", "--keyspace", "to", "--file", path, "--json").json
        self.assertEqual(answer, {"imported": self.ENTRIES + 2})
        self.assertEqual(self.does("raw", "export", "--keyspace", "to").bytes, exported)
        answer = self.does("raw", "export", "--keyspace", "from", "--prefix", "user/00000",
                           "--file", path, "--json").json
        self.assertEqual(answer["exported"], 10)
        self.assertEqual(len(path.read_bytes().splitlines()), 10)

    def test_from_pipe_to_pipe(self):
        lines = self.fill("left")
        self.does("raw", "import", "--keyspace", "left", stdin=lines)
        self.does("keyspace", "create", "right")
        export = self.start("raw", "export", "--keyspace", "left")
        done = subprocess.run([BINARY, "raw", "import", "--keyspace", "right"],
                              stdin=export.stdout, capture_output=True, timeout=120,
                              env=self.environment())
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertEqual(self.does("raw", "export", "--keyspace", "right").bytes,
                         self.does("raw", "export", "--keyspace", "left").bytes)

    def test_the_reader_leaves(self):
        self.does("raw", "import", "--keyspace", "piped", stdin=self.fill("piped"))
        for command in (["export"], ["scan"], ["scan", "--json"]):
            export = self.start("raw", *command, "--keyspace", "piped")
            export.stdout.readline()
            export.stdout.close()
            self.assertEqual((export.wait(timeout=60), export.stderr.read()), (0, ""))
        with open("/dev/full", "wb") as full:
            export = self.start("raw", "export", "--keyspace", "piped", stdout=full)
        self.assertEqual(export.wait(timeout=60), 1)
        self.assertIn("No space left", export.stderr.read())

    def test_progress_on_a_terminal(self):
        path = self.folder / "in.jsonl"
        path.write_bytes(self.fill("shown"))
        code, shown = self.on_terminal("raw", "import", "--keyspace", "shown", "--file", path)
        self.assertEqual(code, 0, shown)
        self.assertRegex(shown, r"importing: \d+ entries, .*/s, \d+%")
        self.assertIn(f"{self.ENTRIES + 2} entries imported", shown)
        code, shown = self.on_terminal("raw", "export", "--keyspace", "shown", "--file",
                                       self.folder / "out.jsonl")
        self.assertEqual(code, 0, shown)
        self.assertRegex(shown, r"exporting: \d+ entries")

    def test_wrong_lines(self):
        self.does("keyspace", "create", "wrong")
        done = self.fails(1, "line 2", "raw", "import", "--keyspace", "wrong",
                          stdin=b'{"key":"a","value":"1"}\nnope\n')
        self.assertNotIn("imported\n", done.out)
        self.fails(1, "line 1", "raw", "import", "--keyspace", "wrong", stdin=b'{"kee":"a"}\n')
        self.assertEqual(self.does("raw", "import", "--keyspace", "wrong").out,
                         "0 entries imported\n")
        self.fails(1, "none.jsonl", "raw", "import", "--file", self.folder / "none.jsonl")
        self.fails(1, "Is a directory", "raw", "import", "--file", self.folder)

    def test_half_an_export_is_none(self):
        path = self.folder / "half.jsonl"
        path.write_text("before\n")
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        answers = [http_answer(200, '{"borders":[],"keys":2}'), *[head + b"2\r\n{}\r\n"] * 5]
        with ScriptedServer(*answers) as server:
            self.fails(1, "broke off", "raw", "export", "--server", server.url, "--file", path)
        self.assertEqual(path.read_text(), "before\n")
        self.assertEqual(list(self.folder.iterdir()), [path])
        with ScriptedServer(*answers) as server:
            done = self.fails(1, "broke off", "raw", "export", "--server", server.url)
        self.assertEqual(done.out, "")  # whole lines only
        self.fails(1, "No such file", "raw", "export", "--file", self.folder / "no" / "such")
        done = self.does("raw", "export", "--file", "/dev/null")
        self.assertIn("entries exported", done.out)
        self.assertTrue(os.path.exists("/dev/null") and not os.path.isfile("/dev/null"))

    def test_a_quota_ends_an_import(self):
        self.does("keyspace", "create", "tight")
        self.does("keyspace", "quota", "tight", "--keys", 10)
        lines = "".join(json.dumps({"key": str(i), "value": ""}) + "\n" for i in range(1000))
        self.fails(1, "quota", "raw", "import", "--keyspace", "tight", stdin=lines.encode())


class Usage(ClientTest):
    def test_help_and_unknown_things(self):
        for command in ("get", "put", "delete", "cas", "batch", "scan", "export", "import"):
            with self.subTest(command=command):
                out = self.does("raw", command, "--help").out
                for text in ("Example", "--server", "--keyspace", "--token", "--json", "--ca",
                             "--timeout", "TRELLIS_KEYSPACE", "can see arguments"):
                    self.assertIn(text, out)
                self.fails(2, "", "raw", command, "--no-such-option")
        self.assertIn("export", self.does("raw", "--help").out)
        self.fails(2, "is not a command", "raw", "head")
        self.fails(2, "KEY", "raw", "get")
        self.fails(2, "not expected", "raw", "get", "a", "b")

    def test_errors_of_the_server(self):
        limited = http_answer(429, json.dumps({"code": "rate_exceeded", "message": "too fast"}))
        limited = limited.replace(b"Connection", b"Retry-After: 3\r\nConnection")
        with ScriptedServer(limited) as server:
            self.fails(1, "too fast; try again in 3 s", "raw", "get", "k", "--server", server.url)
        with ScriptedServer(b"") as server:
            self.fails(1, "no answer", "raw", "batch", "--server", server.url,
                       stdin=b'{"delete":{"key":"a"}}')


if __name__ == "__main__":
    unittest.main()
