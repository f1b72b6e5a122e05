#!/usr/bin/env python3
"""Two tenants that do everything with the same names at the same time, each as if it were alone."""
import json
import os
import random
import subprocess
import sys
import threading
import unittest

from trellis_command import SOURCE, Server, TrellisTest, trellis
from trellis_http import scaled, seeded_random

sys.path.insert(0, str(SOURCE / "tests/redis"))
from resp_client import Address, Connection, decode, encode  # noqa: E402

ORACLE = SOURCE / "tests/redis/oracle.py"
TENANTS = ("shop", "bank")


class Isolation(TrellisTest):
    def setUp(self):
        super().setUp()
        self.server = Server("--data", self.folder / "store", "--auth", "required",
                             "--admin-token-file", self.folder / "admin", "--durability", "off")
        self.server.__enter__()
        self.addCleanup(self.server.__exit__)
        admin = (self.folder / "admin").read_text().strip()

        def made(*arguments):
            code, out, err = trellis(*arguments, "--json", TRELLIS_SERVER=self.server.url,
                                     TRELLIS_TOKEN=admin)
            self.assertEqual(code, 0, err)
            return json.loads(out)

        self.addresses = {}
        for name in TENANTS:
            made("keyspace", "create", name)
            token = made("keyspace", "token", "create", name, "--role", "admin")["token"]
            self.addresses[name] = f"{name}:{token}@{self.server.resp}"

    def connect(self, name, database=0):
        connection = Connection(Address(self.addresses[name]), 60)
        self.addCleanup(connection.close)
        if database:
            self.assertEqual(connection.call(b"SELECT", b"%d" % database), b"+OK\r\n")
        return connection

    def pairs(self):
        """Connections that must not see each other: of two tenants, of two databases of one."""
        return {"tenants": (self.connect("shop"), self.connect("bank")),
                "databases": (self.connect("shop", 3), self.connect("shop", 4))}

    def test_each_is_as_redis_server_is_alone(self):
        """The oracle for both at once: the same generator, so the same names, FLUSHALL included."""
        seed = int(os.environ.get("TRELLIS_TEST_SEED", "7"))
        runs = [subprocess.Popen(
            [sys.executable, ORACLE, "--reference", "start", "--subject", self.addresses[name],
             "--commands", str(scaled(15_000)), "--seed", str(seed + i),
             "--skip", "SWAPDB,RESET"],  # RESET also forgets who the client is
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for i, name in enumerate(TENANTS)]
        for run in runs:
            out, _ = run.communicate(timeout=270 if not os.environ.get("TRELLIS_TEST_SCALE")
                                     else None)
            self.assertEqual(run.returncode, 0, out.decode(errors="replace")[-4000:])

    def test_watch(self):
        for what, (one, other) in self.pairs().items():
            with self.subTest(what):
                one.call(b"SET", b"k", b"1")
                self.assertEqual(one.call(b"WATCH", b"k", b"absent"), b"+OK\r\n")
                for args in ([b"SET", b"k", b"2"], [b"SET", b"absent", b"2"], [b"DEL", b"k"],
                             [b"FLUSHDB"], [b"LPUSH", b"k", b"1"], [b"EXPIRE", b"k", b"100"]):
                    other.call(*args)
                one.call(b"MULTI")
                one.call(b"INCR", b"k")
                self.assertEqual(one.call(b"EXEC"), b"*1\r\n:2\r\n")
                # And of its own it is told.
                one.call(b"WATCH", b"k")
                one.call(b"SET", b"k", b"3")
                one.call(b"MULTI")
                self.assertEqual(one.call(b"EXEC"), b"*-1\r\n")

    def test_watch_and_flushall_of_another_tenant(self):
        one, other = self.connect("shop"), self.connect("bank")
        one.call(b"SET", b"k", b"1")
        one.call(b"WATCH", b"k")
        other.call(b"SET", b"k", b"1")
        self.assertEqual(other.call(b"FLUSHALL"), b"+OK\r\n")
        one.call(b"MULTI")
        one.call(b"GET", b"k")
        self.assertEqual(one.call(b"EXEC"), b"*1\r\n$1\r\n1\r\n")

    def test_cursors_given_to_another(self):
        """A cursor is a place in an order, never a door: it shows keys of the caller only."""
        for what, (one, other) in self.pairs().items():
            with self.subTest(what):
                for i in range(500):
                    one.send(encode([b"SET", b"one:%d" % i, b"1"]))
                    one.replies(1)
                    other.send(encode([b"HSET", b"other:%d" % i, b"f", b"1"]))
                    other.replies(1)
                cursor, seen = b"0", set()
                for turn in range(1000):
                    connection, mine = ((one, b"one:"), (other, b"other:"))[turn % 2]
                    cursor, keys = decode(connection.call(b"SCAN", cursor, b"COUNT", b"20"))
                    for key in keys:
                        self.assertTrue(key.startswith(mine), key)
                    seen.update(keys)
                    if cursor == b"0":
                        break
                self.assertGreater(len(seen), 0)
                # HSCAN with the cursor of another's hash of the same name.
                for connection, mine in ((one, b"o"), (other, b"p")):
                    args = [part for i in range(1000) for part in (mine + b"%d" % i, b"1")]
                    connection.call(b"HSET", b"big", *args)
                cursor, _ = decode(one.call(b"HSCAN", b"big", b"0", b"COUNT", b"10"))
                _, fields = decode(other.call(b"HSCAN", b"big", cursor, b"COUNT", b"10"))
                self.assertTrue(all(field.startswith(b"p") for field in fields[::2]), fields)

    def test_counts_and_random_keys(self):
        for what, (one, other) in self.pairs().items():
            with self.subTest(what):
                one.call(b"MSET", b"a", b"1", b"b", b"1")
                for i in range(100):
                    other.call(b"SET", b"x%d" % i, b"1")
                self.assertEqual(one.call(b"DBSIZE"), b":2\r\n")
                self.assertEqual(other.call(b"DBSIZE"), b":100\r\n")
                for _ in range(50):
                    self.assertIn(decode(one.call(b"RANDOMKEY")), (b"a", b"b"))
                self.assertEqual(sorted(decode(one.call(b"KEYS", b"*"))), [b"a", b"b"])
                self.assertEqual(other.call(b"FLUSHDB"), b"+OK\r\n")
                self.assertEqual(one.call(b"DBSIZE"), b":2\r\n")

    def test_what_the_server_tells(self):
        one, other = self.connect("shop"), self.connect("bank")
        one.call(b"CONFIG", b"SET", b"maxmemory-policy", b"allkeys-lru")
        self.assertEqual(decode(one.call(b"CONFIG", b"GET", b"maxmemory-policy"))[1],
                         b"allkeys-lru")
        self.assertEqual(decode(other.call(b"CONFIG", b"GET", b"maxmemory-policy"))[1],
                         b"noeviction")
        for i in range(200):
            one.call(b"SET", b"secret-%d" % i, b"1")
        self.assertIn(b"db0:keys=200", one.call(b"INFO"))
        told = other.call(b"INFO", b"everything")
        self.assertNotIn(b"db0", told)
        self.assertIn(b"used_memory:0\r\n", told)
        self.assertNotIn(b"secret", told)
        one.call(b"CLIENT", b"SETNAME", b"secret-name")
        for args in ([b"CLIENT", b"LIST"], [b"CLIENT", b"INFO"], [b"SLOWLOG", b"GET"]):
            reply = other.call(*args)  # or that there is no such command
            self.assertNotIn(b"secret", reply, args)

    def test_moves_stay_inside(self):
        """MOVE and COPY DB go to databases of the caller's keyspace."""
        one, other = self.connect("shop"), self.connect("bank")
        other.call(b"SELECT", b"5")
        one.call(b"SET", b"k", b"1")
        self.assertEqual(one.call(b"COPY", b"k", b"k", b"DB", b"5"), b":1\r\n")
        self.assertEqual(one.call(b"MOVE", b"k", b"6"), b":1\r\n")
        self.assertEqual(other.call(b"EXISTS", b"k"), b":0\r\n")
        one.call(b"SELECT", b"5")
        self.assertEqual(one.call(b"GET", b"k"), b"$1\r\n1\r\n")

    def test_all_at_once(self):
        """The same random commands by both, one a step behind: the same replies for both."""
        rng = seeded_random()
        steps = []
        for _ in range(scaled(3_000)):
            key = b"k%d" % rng.randrange(5)
            number = b"%d" % rng.randrange(100)
            steps.append(rng.choice([
                [b"SET", key, number], [b"INCR", key], [b"DEL", key], [b"LPUSH", key, number],
                [b"LPOP", key], [b"HSET", key, number, number], [b"HLEN", key], [b"GET", key],
                [b"ZADD", key, number, number], [b"ZRANGE", key, b"0", b"-1"], [b"DBSIZE"],
                [b"SADD", key, number], [b"SCARD", key], [b"FLUSHDB"] if rng.random() < 0.05
                else [b"TYPE", key], [b"RENAME", key, b"k%d" % rng.randrange(5)],
                [b"SELECT", b"%d" % rng.randrange(2)]]))
        replies = {}

        def run(who, connection, seed):
            pause, out, at = random.Random(seed), [], 0
            while at < len(steps):  # in pipelines of their own lengths
                part = steps[at:at + pause.randint(1, 20)]
                connection.send(b"".join(map(encode, part)))
                out += connection.replies(len(part))
                at += len(part)
            replies[who] = out

        threads = [threading.Thread(target=run, args=(name, self.connect(name), rng.random()))
                   for name in TENANTS]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for step, one, other in zip(steps, replies["shop"], replies["bank"]):
            self.assertEqual(one, other, step)


if __name__ == "__main__":
    unittest.main()
