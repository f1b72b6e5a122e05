"""What walks much of the map in parts, with ranges cut meanwhile: exports and the collector."""

import json
import os
import signal
import unittest

import redis

from client_command import ClientTest, ScriptedServer, http_answer
from range_test import api, raw_key
from trellis_command import Server, TrellisTest, trellis
from trellis_http import eventually

STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(text):
    return b"%x\r\n%s\r\n" % (len(text), text)


def line(key, value="v"):
    return (json.dumps({"key": key, "value": value}, separators=(",", ":")) + "\n").encode()


class Exports(ClientTest):
    arguments = ("--engine", "memory")
    ENTRIES = 3_000

    def setUp(self):
        super().setUp()
        self.api = api(self, self.server)
        self.does("range", "pause")

    def fill(self, keyspace):
        """Its id, with ranges cut inside of it."""
        done = self.does("keyspace", "create", keyspace, "--json").json
        lines = b"".join(line(f"user/{i:05}", "x" * (i % 300)) for i in range(self.ENTRIES))
        self.does("raw", "import", "--keyspace", keyspace, stdin=lines)
        number = done["id"]
        self.does("range", "split", raw_key("", number))
        self.does("range", "recount")
        for i in (500, 501, 1_700, 2_900):
            self.does("range", "split", raw_key(f"user/{i:05}", number))
        return number, lines

    def scanned(self, keyspace):
        return b"".join(json.dumps(entry, separators=(",", ":")).encode() + b"\n"
                        for entry in self.does("raw", "scan", "--keyspace", keyspace, "--limit",
                                               self.ENTRIES, "--json").lines)

    def test_parts_are_one_whole_in_order(self):
        self.fill("beside")
        _, lines = self.fill("cut")
        borders = [b["key"] for b in self.api.get("/k/cut/v1/raw/parts").json["borders"]]
        self.assertGreaterEqual(len(borders), 3)
        self.assertEqual(borders, sorted(borders))
        self.assertTrue(all(key.startswith("user/") for key in borders), borders)
        self.assertEqual(self.api.get("/k/cut/v1/raw/parts").json["keys"], self.ENTRIES)
        for threads in (1, 4, 16):
            out = self.does("raw", "export", "--keyspace", "cut", "--threads", threads).bytes
            self.assertEqual(out, lines)
        self.assertEqual(self.scanned("cut"), lines)
        some = self.does("raw", "export", "--keyspace", "cut", "--prefix", "user/017").bytes
        self.assertEqual(some, b"".join(lines.splitlines(True)[1_700:1_800]))

    def test_a_lost_connection_is_made_again(self):
        parts = http_answer(200, '{"borders":[],"keys":3}')
        with ScriptedServer(parts,
                            STREAM + chunk(line("a") + line("b")[:5]),
                            STREAM + chunk(line("b") + line("c")) + b"0\r\n\r\n") as server:
            done = self.does("raw", "export", "--server", server.url)
        self.assertEqual(done.bytes, line("a") + line("b") + line("c"))

    def test_resumed(self):
        self.does("keyspace", "create", "again")
        self.does("raw", "import", "--keyspace", "again",
                  stdin=b"".join(map(line, ("a", "b", "c"))))
        path = self.folder / "again.jsonl"
        parts = http_answer(200, '{"borders":[],"keys":3}')
        broken = STREAM + chunk(b'{"key":')
        with ScriptedServer(parts, STREAM + chunk(line("a", "of another time") + b'{"key'),
                            *[broken] * 5) as server:
            self.fails(1, "go on with --resume", "raw", "export", "--keyspace", "again",
                       "--server", server.url, "--file", path)
        partial = path.with_name("again.jsonl.partial")
        self.assertEqual(partial.read_bytes(), line("a", "of another time"))
        self.assertFalse(path.exists())
        with partial.open("ab") as file:
            file.write(b'{"key":"zz')  # as a process that was killed leaves it
        self.fails(1, "remove it", "raw", "export", "--keyspace", "again", "--file", path,
                   "--prefix", "b", "--resume")
        done = self.does("raw", "export", "--keyspace", "again", "--file", path, "--resume",
                         "--json").json
        self.assertEqual(done["exported"], 3)
        self.assertEqual(path.read_bytes(), line("a", "of another time") + line("b") + line("c"))
        self.assertFalse(partial.exists())
        # Nothing to go on with: from the start.
        self.does("raw", "export", "--keyspace", "again", "--file", path, "--resume")
        self.assertEqual(path.read_bytes(), b"".join(map(line, ("a", "b", "c"))))
        partial.write_bytes(b"nonsense\n")
        self.fails(1, "remove it", "raw", "export", "--keyspace", "again", "--file", path,
                   "--resume")
        self.fails(2, "--resume needs --file", "raw", "export", "--resume")

    def test_killed_at_a_limited_speed_and_resumed_with_other_ranges(self):
        number, lines = self.fill("slow")
        path = self.folder / "slow.jsonl"
        partial = path.with_name("slow.jsonl.partial")
        export = self.start("raw", "export", "--keyspace", "slow", "--file", path, "--speed",
                            "150KiB", "--threads", 2)
        eventually(lambda: partial.exists() and partial.stat().st_size > 60_000, "some of it")
        self.assertLess(partial.stat().st_size, len(lines) / 2)  # it is slowed down
        export.send_signal(signal.SIGSTOP)
        export.send_signal(signal.SIGCONT)
        export.kill()
        export.wait()
        self.assertFalse(path.exists())
        self.does("range", "split", raw_key("user/01000", number))
        self.does("raw", "export", "--keyspace", "slow", "--file", path, "--resume")
        self.assertEqual(path.read_bytes(), lines)
        self.assertEqual(os.listdir(self.folder), [path.name])

    def test_over_the_rate(self):
        _, lines = self.fill("rated")
        self.does("keyspace", "quota", "rated", "--ops", 2)
        self.assertEqual(self.does("raw", "export", "--keyspace", "rated").bytes, lines)


class Collecting(TrellisTest):
    def setUp(self):
        super().setUp()
        self.folder_of_store = self.folder / "store"
        self.start_server()

    def start_server(self):
        self.server = Server("--data", self.folder_of_store, "--gc-life-time", "1s").__enter__()
        self.addCleanup(self.server.__exit__)

    def does(self, *arguments):
        code, out, err = trellis(*arguments, "--server", self.server.url)
        self.assertEqual(code, 0, err)
        return out

    def flushed(self):
        host, port = self.server.resp.split(":")
        client = redis.Redis(host, int(port))
        pipe = client.pipeline(transaction=False)
        for i in range(3_000):
            pipe.set(f"key:{i:05}", b"x" * 100)
            pipe.hset(f"hash:{i % 50:05}", f"{i}", b"x" * 100)
        pipe.execute()
        self.does("range", "recount")
        for i in (700, 1_500, 2_300):
            key = trellis("key", "encode", "redis.metadata", "keyspace=0", "namespace=0",
                          f"key=key:{i:05}")[1].split()[0]
            self.does("range", "split", key)
        client.flushdb()
        return client

    def shown(self, name="DEFAULT"):
        return json.loads(self.does("keyspace", "show", name, "--json"))

    def test_paused_over_a_restart(self):
        self.assertIn("paused", self.does("keyspace", "gc", "pause"))
        self.does("keyspace", "gc", "pace", "--speed", "100MiB", "--threads", "3")
        client = self.flushed()
        full = self.shown()["figures"]["bytes"]
        self.assertGreater(full, 600_000)
        self.does("keyspace", "create", "doomed")
        self.does("raw", "put", "--keyspace", "doomed", "a", "1")
        for state in ("disable", "archive"):
            self.does("keyspace", "state", "doomed", state)
        self.does("keyspace", "purge", "doomed", "--yes")
        client.close()
        self.server.stop()
        self.start_server()
        pace = json.loads(self.does("keyspace", "gc", "pace", "--json"))
        self.assertEqual((pace["paused"], pace["bytes_per_second"], pace["threads"]),
                         (True, 100 << 20, 3))
        self.assertIn("paused", self.does("keyspace", "gc", "explain", "DEFAULT"))
        self.assertEqual(json.loads(self.does("keyspace", "show", "--id", "1", "--json"))
                         ["purge"]["state"], "paused")
        self.assertGreaterEqual(self.shown()["figures"]["bytes"], full)
        self.does("keyspace", "gc", "resume")
        eventually(lambda: self.shown()["figures"]["bytes"] < 1_000, "what was flushed is gone")
        eventually(lambda: json.loads(self.does("keyspace", "show", "--id", "1", "--json"))
                   ["purge"]["state"] == "done", "the burial")
        self.assertEqual(self.shown()["figures"]["keys"], 0)

    def test_advance_and_wait(self):
        self.does("keyspace", "create", "shop")
        for i in range(20):
            self.does("raw", "put", "--keyspace", "shop", str(i), "v", "--ttl", "1ms")
        self.does("keyspace", "gc", "advance", "shop", "--wait")
        self.assertEqual(self.shown("shop")["figures"], {"bytes": 0, "live_bytes": 0,
                                                         "waiting_bytes": 0, "keys": 0})


if __name__ == "__main__":
    unittest.main()
