#!/usr/bin/env python3
"""Bytes that no honest Redis client sends, and honest ones in numbers, against the real server.

What is no RESP is answered as redis-server answers it, byte for byte. After every case the server
must answer others, and have taken no more memory than it may.
"""

import os
import pathlib
import re
import resource
import socket
import struct
import sys
import threading
import time
import unittest

from trellis_command import SOURCE
from trellis_http import (QuietServer, ServerTest, Wire, eventually, said, scaled,
                          seeded_random)

sys.path.insert(0, str(SOURCE / "tests/redis"))
from arguments import MALFORMED  # noqa: E402
from resp_client import Address, Connection, encode  # noqa: E402
from servers import RedisServer  # noqa: E402

LONG = os.environ.get("TRELLIS_TEST_SCALE") == "long"
MIB = 1024 * 1024
PING = encode([b"PING"])
VALUE_MAX = 16 * MIB - 64
TOO_LONG = b"-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n"


def place(server):
    host, port = server.resp.rsplit(":", 1)
    return host, int(port)


def peak_bytes(server):
    """The most memory that it ever had."""
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(r"^VmHWM:\s+(\d+) kB$", status, re.M)[1]) * 1024


class HostileResp(ServerTest):
    arguments = ("--cache-bytes", "8MiB")
    peak_bytes_max = 250 * MIB

    def setUp(self):
        self.client = self.connect_resp()

    def tearDown(self):
        self.assertEqual(self.connect_resp().call(b"PING"), b"+PONG\r\n")
        self.assertLess(peak_bytes(self.server), self.server.rss_bytes_max(self.peak_bytes_max))

    def connect_resp(self, server=None, timeout_s=60):
        connection = Connection(Address((server or self.server).resp), timeout_s)
        self.addCleanup(connection.close)
        return connection

    def serve(self, *arguments):
        server = QuietServer("--engine", "memory", *arguments).__enter__()
        self.addCleanup(server.__exit__)
        return server


class AsRedis(HostileResp):
    """The same bytes to redis-server and to Trellis."""

    # Without NUL in lines: redis-server, written in C, waits for ever for the end of such a line.
    INPUTS = [
        *MALFORMED, b"*-2147483649\r\n", b"*9223372036854775808\r\n",
        b"*2\r\n$3\r\nGET\r\n$-1\r\n", b"*1\r\n$536870913\r\n", b"*1\r\n$9223372036854775808\r\n",
        b"*1\r\n$ 4\r\nPING\r\n", b"*1\r\n$4 \r\nPING\r\n", b"*1\r\n\r\n", b"*1\r\n*1\r\n",
        b"*1\r\n:1\r\n", b"*1\r\n$4\r\nPINGxx", b"*1\r\n\xff4\r\nPING\r\n",
        b"*2\r\n$4\r\nPING\r\n+a\r\n", b"*1x\r\n", b"*\r", b"*1\r\n$" + b"4" * 70000,
        b"x" * 65536 + b"\r\n", b"x" * 65537 + b"\r\n", b"ECHO " + b"y" * 65000 + b"\r\n", b"'",
        b"\"\r\n", b"ECHO \"\\x4\"\r\n", b"ECHO \"\\\r\n", b"ECHO '\\\\'\r\n",
        b"ECHO \"a\\\"b\"\r\n", b"ECHO 'a\"b'\r\n", b"ECHO a'b'\r\n", b"ECHO a\"b\" \r\n",
        b"\tPING\t\r\n", b"PING\r\r\n", b"\x0bPING\r\n", b"*0\r\n*-1\r\nPING\r\n",
        b"*1\r\n$4\r\nPI\r\n\r\n", b"*1\r\n$4\r\nQUIT\r\n" + PING, b"QUIT\r\nECHO no\r\n",
        b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$99999999\r\nshort",
    ]

    def compare(self, redis, ours, inputs):
        for data in inputs:
            for before in (b"", encode([b"ECHO", b"first"])):
                whole = before + data + PING + encode([b"QUIT"])
                with self.subTest(data=data[:80], before=before):
                    self.assertEqual(said(ours, whole), said(redis, whole))

    def test_what_is_no_resp(self):
        with RedisServer() as redis:
            self.compare((redis.host, redis.port), place(self.server), self.INPUTS)

    def test_strangers_may_send_little(self):
        self.admin = self.folder / "admin"
        server = self.serve("--auth", "required", "--admin-token-file", self.admin)
        inputs = [b"*10\r\n", b"*11\r\n", b"*1000000\r\n",
                  b"*1\r\n$16384\r\n" + b"a" * 16384 + b"\r\n",
                  b"*1\r\n$16385\r\n", b"*2\r\n$3\r\nGET\r\n$1000000000\r\n", b"x" * 70000,
                  b"*2147483648\r\n", *self.INPUTS[:10]]
        with RedisServer("--requirepass", "secret") as redis:
            self.compare((redis.host, redis.port), place(server), inputs)
        # In one piece with who it is.
        token = self.admin.read_text().strip().encode()
        client = self.connect_resp(server)
        client.send(encode([b"AUTH", token]) + encode([b"ECHO", b"a" * 100_000])
                    + encode([b"DEL"] + [b"a"] * 100))
        self.assertEqual([len(reply) for reply in client.replies(3)], [5, 100_011, 4])

    def test_browsers_are_turned_away(self):
        body = encode([b"SET", b"hidden", b"1"])
        for head in (b"POST / HTTP/1.1\r\nHost: localhost:7379\r\n\r\n", b"Host: x\r\n"):
            self.assertEqual(said(place(self.server), head + body).count(b"\r\n"), 1)
        self.assertEqual(self.client.call(b"EXISTS", b"hidden"), b":0\r\n")


class Large(HostileResp):
    arguments = ("--cache-bytes", "128MiB")
    peak_bytes_max = (2_000 if LONG else 900) * MIB

    def test_a_million_arguments(self):
        count = 1_000_000 if LONG else 100_000
        keys = [b"key:%07d" % i for i in range(count)]
        for words, reply in (([b"SADD", b"set", *keys], b":%d" % count),
                             ([b"DEL", b"set"], b":1"),
                             ([b"MSET", *keys], b"+OK"),
                             ([b"DBSIZE"], b":%d" % (count // 2)),
                             ([b"DEL", *keys], b":%d" % (count // 2)),
                             ([b"DBSIZE"], b":0")):
            with self.subTest(words[0]):
                began = time.monotonic()
                self.assertEqual(self.client.call(*words)[:len(reply)], reply)
                took_s = time.monotonic() - began
                print(f"{words[0].decode()} of {len(words)} words: {took_s:.1f} s, "
                      f"peak {peak_bytes(self.server) // MIB} MiB", file=sys.stderr)

    def test_too_many_arguments(self):
        self.client.send(b"*1048577\r\n$3\r\nDEL\r\n" + b"$1\r\na\r\n" * 1048576 + PING)
        self.assertEqual(self.client.replies(2), [
            b"-ERR a command has at most 1048576 arguments: send several\r\n", b"+PONG\r\n"])

    def test_values_up_to_the_limit_and_over_it(self):
        client = self.client
        self.assertIn(b"\r\n%d\r\n" % VALUE_MAX,
                      client.call(b"CONFIG", b"GET", b"proto-max-bulk-len"))
        self.assertEqual(client.call(b"SET", b"large", b"a" * VALUE_MAX), b"+OK\r\n")
        self.assertEqual(client.call(b"STRLEN", b"large"), b":%d\r\n" % VALUE_MAX)
        self.assertEqual(client.call(b"SET", b"large", b"a" * (VALUE_MAX + 1)), TOO_LONG)
        self.assertEqual(client.call(b"APPEND", b"large", b"a"), TOO_LONG)
        self.assertEqual(client.call(b"STRLEN", b"large"), b":%d\r\n" % VALUE_MAX)
        # What is queued before it is not run.
        self.assertEqual(client.call(b"MULTI"), b"+OK\r\n")
        self.assertEqual(client.call(b"SET", b"large", b"1"), b"+QUEUED\r\n")
        self.assertEqual(client.call(b"SET", b"large", b"a" * (VALUE_MAX + 1)), TOO_LONG)
        self.assertIn(b"-EXECABORT", client.call(b"EXEC"))
        client.call(b"DEL", b"large")

    def test_512_megabytes_are_read_and_dropped(self):
        before = self.server.rss_bytes()
        piece = b"a" * MIB
        self.client.sock.sendall(PING + b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n" % (512 * MIB))
        for _ in range(512):
            self.client.sock.sendall(piece)
        self.client.sock.sendall(b"\r\n" + PING)
        self.assertEqual(self.client.replies(3), [b"+PONG\r\n", TOO_LONG, b"+PONG\r\n"])
        self.assertLess(self.server.rss_bytes(), before + 16 * MIB)
        self.assertEqual(said(place(self.server), b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870913\r\n"),
                         b"-ERR Protocol error: invalid bulk length\r\n")

    def test_commands_that_are_long_in_all(self):
        args = [b"a" * MIB] * 70
        reply = (b"-ERR a command has at most 67108864 bytes (client-query-buffer-limit): "
                 b"send several\r\n")
        self.assertEqual(self.client.call(b"DEL", *args), reply)
        self.assertEqual(self.client.call(b"DEL", *args[:60]), b":0\r\n")

    def test_what_multi_queues(self):
        self.client.call(b"MULTI")
        command = encode([b"ECHO", b"a" * 60_000])
        for _ in range(12):
            self.client.send(command * 100)
            replies = self.client.replies(100)
        self.assertEqual(replies[-1], b"-ERR MULTI queues at most 67108864 bytes "
                                      b"(client-query-buffer-limit)\r\n")
        self.assertIn(b"-EXECABORT", self.client.call(b"EXEC"))

    def test_what_is_watched(self):
        keys = [b"key:%07d" % i for i in range(100_000)]
        self.assertEqual(self.client.call(b"WATCH", *keys), b"+OK\r\n")
        self.client.send(encode([b"WATCH", b"one"]) * 10_000)
        self.assertEqual(set(self.client.replies(10_000)), {b"+OK\r\n"})
        for i in range(1, 4):
            reply = self.client.call(b"WATCH", *[b"%d" % i + key for key in keys])
        self.assertEqual(reply, b"-ERR too many keys are watched (client-query-buffer-limit)\r\n")
        self.assertEqual(self.connect_resp().call(b"SET", keys[0], b"1"), b"+OK\r\n")
        self.client.send(encode([b"MULTI"]) + encode([b"DEL", keys[0]]) + encode([b"EXEC"]))
        self.assertEqual(self.client.replies(3)[2], b"*-1\r\n")
        self.assertEqual(self.client.call(b"DEL", keys[0]), b":1\r\n")

    def test_replies_that_are_too_large(self):
        self.client.call(b"SET", b"v", b"a" * (15 * MIB))
        self.assertEqual(self.client.call(b"MGET", *[b"v"] * 20),
                         b"-ERR the reply has more than 268435456 bytes: ask for less at once\r\n")
        self.assertEqual(len(self.client.call(b"MGET", *[b"v"] * 3)), 3 * (15 * MIB + 13) + 4)
        self.client.call(b"DEL", b"v")


class Pace(HostileResp):
    def test_one_byte_at_a_time(self):
        data = encode([b"SET", b"slow", b"a\r\nb"]) + b"GET slow\r\n" + b"*0\r\n" + PING
        for i in range(len(data)):
            self.client.sock.sendall(data[i:i + 1])
        self.assertEqual(self.client.replies(3), [b"+OK\r\n", b"$4\r\na\r\nb\r\n", b"+PONG\r\n"])

    def test_half_a_connection_is_enough_for_all_replies(self):
        count = 200_000
        pipeline = b"".join(encode([b"ECHO", b"%d" % i]) for i in range(count))
        answers = b"".join(b"$%d\r\n%d\r\n" % (len(str(i)), i) for i in range(count))
        sender = threading.Thread(target=lambda: (self.client.sock.sendall(pipeline),
                                                  self.client.sock.shutdown(socket.SHUT_WR)))
        sender.start()
        self.assertTrue(self.client.read_to_end() == answers)
        sender.join()

    def test_who_does_not_read_is_not_served_ahead(self):
        """Far more is asked for than the server may hold, by one who reads when it likes."""
        size, count = 10 * MIB, 60
        self.client.call(b"SET", b"ten", b"a" * size)
        reader = self.connect_resp()
        reader.send(encode([b"GET", b"ten"]) * count + PING)
        self.assertEqual(self.client.call(b"GET", b"none"), b"$-1\r\n")
        expected = count * (size + 13) + len(b"+PONG\r\n")
        left, last = expected, b""
        while left > 0:
            last = reader.sock.recv(4 * MIB)
            left -= len(last)
        self.assertEqual((left, last[-7:]), (0, b"+PONG\r\n"))
        self.client.call(b"DEL", b"ten")

    def test_who_never_reads_is_closed(self):
        server = self.serve("--resp-send-timeout", "1s")
        reader = self.connect_resp(server)
        reader.call(b"SET", b"one", b"a" * MIB)
        reader.send(encode([b"GET", b"one"]) * 100)
        eventually(lambda: any("resp-send-timeout" in line for line in server.log), "it is closed")
        self.assertEqual(self.connect_resp(server).call(b"PING"), b"+PONG\r\n")

    def test_who_says_nothing_is_closed_if_so_told(self):
        server = self.serve("--resp-idle-timeout", "1s")
        silent = self.connect_resp(server)
        self.assertEqual(silent.call(b"CONFIG", b"GET", b"timeout"),
                         b"*2\r\n$7\r\ntimeout\r\n$1\r\n1\r\n")
        self.assertEqual(silent.read_to_end(), b"")


class Numbers(HostileResp):
    def test_too_many_clients(self):
        server = self.serve("--resp-clients-max", "2")
        clients = [self.connect_resp(server) for _ in range(2)]
        for client in clients:
            self.assertEqual(client.call(b"PING"), b"+PONG\r\n")
        self.assertEqual(said(place(server), PING), b"-ERR max number of clients reached\r\n")
        self.assertIn(b"\r\n2\r\n", clients[0].call(b"CONFIG", b"GET", b"maxclients"))
        refusal = clients[0].call(b"CONFIG", b"SET", b"maxclients", b"3")
        self.assertIn(b"--resp-clients-max", refusal)
        clients.pop().close()
        eventually(lambda: said(place(server), PING) == b"+PONG\r\n", "there is a place again")

    def test_open_files_are_raised(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard))
        try:
            server = self.serve()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        clients = [self.connect_resp(server) for _ in range(200)]
        self.assertEqual({client.call(b"PING") for client in clients}, {b"+PONG\r\n"})

    def test_memory_of_all_clients(self):
        """The largest go, the others stay."""
        server = self.serve("--resp-memory-bytes", "64MiB")
        small = [self.connect_resp(server) for _ in range(20)]
        for client in small:
            client.sock.sendall(b"*2\r\n$3\r\nGET\r\n$1000\r\nabc")
        half = b"*2\r\n$3\r\nDEL\r\n$10000000\r\n" + b"a" * 9_999_999
        hogs = [Wire(place(server)) for _ in range(20)]
        for hog in hogs:
            hog.send(half)
        eventually(lambda: sum("resp-memory-bytes" in line for line in server.log) >= 10,
                   "hogs are closed")
        for client in small:
            client.sock.sendall(b"a" * 997 + b"\r\n" + PING)
            self.assertEqual(client.replies(2), [b"$-1\r\n", b"+PONG\r\n"])
        for hog in hogs:
            hog.close()
        self.assertLess(peak_bytes(server), server.rss_bytes_max(200 * MIB))

    def test_memory_of_all_replies(self):
        """Many ask at once for what fits none of their sockets, and nobody reads."""
        server = self.serve("--resp-memory-bytes", "64MiB")
        small = self.connect_resp(server)
        small.call(b"SET", b"large", b"a" * (15 * MIB))
        hogs = [self.connect_resp(server) for _ in range(100)]
        for hog in hogs:
            hog.send(encode([b"GET", b"large"]))
        eventually(lambda: sum("resp-memory-bytes" in line for line in server.log) >= 50,
                   "hogs are closed")
        self.assertEqual(small.call(b"STRLEN", b"large"), b":%d\r\n" % (15 * MIB))
        print(f"peak {peak_bytes(server) // MIB} MiB", file=sys.stderr)
        self.assertLess(peak_bytes(server), server.rss_bytes_max(400 * MIB))

    def test_who_comes_and_goes(self):
        random = seeded_random()
        files = pathlib.Path(f"/proc/{self.server.process.pid}/fd")
        before = len(list(files.iterdir()))
        endings = (b"", b"*", PING[:7], PING, PING * 50, b"SUBSCR", b"QUIT\r\n",
                   b"*2\r\n$3\r\nGET\r\n$9999\r\n")
        for _ in range(scaled(3_000)):
            with socket.create_connection(place(self.server)) as wire:
                wire.sendall(random.choice(endings))
                if random.random() < 0.5:  # with a reset
                    wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        eventually(lambda: len(list(files.iterdir())) <= before + 2, "their files are closed")

    def test_ten_thousand_at_once(self):
        count = 9_900
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard < count + 200:
            self.skipTest(f"this user may open only {hard} files")
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        before = self.server.rss_bytes()
        clients = []
        try:
            for _ in range(count):
                clients.append(socket.create_connection(place(self.server)))
            for active in (1, 2):  # all at once, and each of them twice
                worst_s = self.latency(lambda: [client.sendall(PING) for client in clients])
                for client in clients:
                    self.assertEqual(client.recv(100), b"+PONG\r\n")
                print(f"round {active}: another client waited for {worst_s * 1000:.0f} ms at most",
                      file=sys.stderr)
                self.assertLess(worst_s, 2)

            def bytes_each():
                return (self.server.rss_bytes() - before) / count
            print(f"{bytes_each():.0f} bytes for each", file=sys.stderr)
            eventually(lambda: bytes_each() < 6_000, "silent ones cost next to nothing")
            print(f"{bytes_each():.0f} bytes for each that is silent", file=sys.stderr)
        finally:
            for client in clients:
                client.close()

    def latency(self, work):
        """The longest that a command of another client took while this was done."""
        thread = threading.Thread(target=work)
        thread.start()
        worst_s = 0
        while thread.is_alive():
            began = time.monotonic()
            self.assertEqual(self.client.call(b"INCR", b"beat")[:1], b":")
            worst_s = max(worst_s, time.monotonic() - began)
        thread.join()
        return worst_s


if __name__ == "__main__":
    unittest.main()
