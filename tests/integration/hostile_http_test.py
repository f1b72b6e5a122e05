"""Bytes that no honest client sends, against the real server.

After every case it must answer as before, hold no more memory than it may, and a canary must live:
a key that many of the cases try to delete with a request hidden in another one's body.
"""

import json
import select
import socket
import struct
import threading
import time
import unittest

from trellis_http import KEYSPACES, ServerTest, Wire, eventually, said, scaled, seeded_random

MIB = 1024 * 1024
CANARY = "/v1/raw/keys/canary"
HIDDEN = f"DELETE {CANARY} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def request(method="GET", target="/healthz", *headers, body=b"", version="HTTP/1.1"):
    lines = [f"{method} {target} {version}", "Host: localhost", *headers]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def put(*headers, body=b""):
    return request("PUT", "/v1/raw/keys/smuggled", *headers, body=body)


def statuses(received):
    """Of all responses in what came over a connection."""
    return [int(part[:3]) for part in received.split(b"HTTP/1.1 ")[1:]]


class HostileTest(ServerTest):
    arguments = ("--cache-bytes", "8MiB")
    rss_bytes_max = 200 * MIB

    def setUp(self):
        super().setUp()
        self.assertEqual(self.api.put(CANARY, b"alive").status, 204)

    def tearDown(self):
        self.api = self.connect()  # the one before may have been idle for too long
        self.check_server()
        self.assertEqual(self.api.get(CANARY).body, b"alive")
        self.api.delete("/v1/raw/keys/smuggled")

    def check_server(self):
        api = self.connect()
        self.assertEqual(api.get("/healthz").json, {"status": "ok"})
        api.close()
        self.assertLess(self.server.rss_bytes(), self.server.rss_bytes_max(self.rss_bytes_max))

    def exchange(self, data):
        return said(self.server.address, data)

    def refused(self, data, *expected):
        """One error, and the end of the connection before ours: nothing behind it was read as a
        request."""
        with Wire(self.server.address) as wire:
            wire.send(data)
            received = wire.rest()
        self.assertEqual(len(statuses(received)), 1, received)
        status = statuses(received)[0]
        self.assertIn(status, expected or (400, 417, 501, 505), received)
        self.assertIn(b"\r\nConnection: close\r\n", received)
        return received


class Smuggling(HostileTest):
    def test_two_lengths(self):
        body = b"0\r\n\r\n" + HIDDEN
        length = f"Content-Length: {len(body)}"
        for headers in ((length, "Transfer-Encoding: chunked"),
                        ("Transfer-Encoding: chunked", length),
                        ("Content-Length: 5", length), (length, "Content-Length: 5"),
                        (length, length), ("Content-Length: 5", "content-length: 5"),
                        ("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
                        ("Transfer-Encoding: chunked", "Transfer-Encoding: identity"),
                        ("Content-Length: 5", "Transfer-Encoding : chunked")):
            with self.subTest(headers=headers):
                self.refused(put(*headers, body=body), 400, 501)

    def test_lengths_that_are_none(self):
        for value in ("+5", "-5", "5 5", "5,5", "5, 5", "0x5", "5;", "", "5\x0b", "5.0", "1e1",
                      "\xb2", "18446744073709551616", "99999999999999999999999", "five",
                      "\u0665".encode().decode("latin-1"), "05 ", "5\x00"):
            with self.subTest(value=value):
                if value == "05 ":  # white space around it is nobody's business
                    got = self.exchange(put(f"Content-Length: {value}", body=b"12345"))
                    self.assertIn(statuses(got), ([204], [400]))
                else:
                    self.refused(put(f"Content-Length: {value}", body=b"12345" + HIDDEN))
        for header in ("Content-Length : 5", "Content-Length\t: 5", " Content-Length: 5",
                       "Content-Length:\r\n 5", "Content-Length: 5\r\n\t6", "Content Length: 5"):
            with self.subTest(header=header):
                self.refused(put(header, body=b"12345" + HIDDEN))
        self.refused(put(f"Content-Length: {2**64 - 1}", body=HIDDEN), 400, 413)
        self.refused(put(f"Content-Length: {2**63}", body=HIDDEN), 400, 413)

    def test_encodings_that_are_not_known(self):
        body = b"0\r\n\r\n" + HIDDEN
        for value in ("identity", "gzip", "gzip, chunked", "chunked, identity", "chunked, chunked",
                      "xchunked", "chunkedx", '"chunked"', "chunked;q=1", "", ",", "chunked,",
                      "chunked\x0b", "\x0bchunked", "cow"):
            with self.subTest(value=value):
                self.refused(put(f"Transfer-Encoding: {value}", body=body), 400, 501)
        old = request("PUT", "/v1/raw/keys/smuggled", "Transfer-Encoding: chunked",
                      version="HTTP/1.0", body=body)
        self.assertIn(statuses(self.exchange(old)), ([400], [501]))

    def test_chunks_that_are_none(self):
        chunked = "Transfer-Encoding: chunked"
        for body in (b"FFFFFFFFFFFFFFFFF\r\nx", b"10000000000000000\r\nx",
                     b"FFFFFFFFFFFFFFFF\r\nx", b"7FFFFFFFFFFFFFFF\r\nx", b"-1\r\nx",
                     b"+1\r\nx\r\n", b"0x1\r\nx\r\n", b"g\r\nx", b"\r\n\r\n", b"1\nx\n0\n\n",
                     b" 1\r\nx\r\n", b"1\r\nxx\r\n0\r\n\r\n", b"1\r\nx0\r\n\r\n",
                     b"1\r\nx\n\r\n0\r\n\r\n", b"1;a\x00b\r\nx\r\n0\r\n\r\n", b"1,1\r\nx\r\n",
                     b'1;a="\r\nx\r\n0\r\n\r\n"\r\nx', b"0\r\nbad trailer\r\n\r\n",
                     b"0\r\n folded: x\r\n\r\n", b"1;" + b"e" * 20_000 + b"\r\nx\r\n0\r\n\r\n",
                     b"0\r\n" + b"t: x\r\n" * 10_000 + b"\r\n", b"0" * 20_000 + b"1\r\nx\r\n"):
            with self.subTest(body=body[:40]):
                self.refused(put(chunked, body=body + HIDDEN), 400, 413)
        self.assertEqual(self.api.get("/v1/raw/keys/smuggled").status, 404)
        good = put(chunked, body=b"5;ext=1\r\n12345\r\n0001\r\n6\r\n000\r\nTrailer: x\r\n\r\n")
        self.assertEqual(statuses(self.exchange(good + request())), [204, 200])
        self.assertEqual(self.api.get("/v1/raw/keys/smuggled").body, b"123456")

    def test_a_body_where_none_is_wanted(self):
        body = HIDDEN
        length = f"Content-Length: {len(body)}"
        for method, target in (("GET", "/healthz"), ("GET", "/v1/raw/keys/a"), ("GET", "/nowhere"),
                               ("DELETE", "/v1/raw/keys/a"), ("PUT", "/healthz"), ("HEAD", "/"),
                               ("OPTIONS", "/healthz"), ("POST", "/v1/keyspaces/DEFAULT/undo")):
            with self.subTest(method=method, target=target):
                received = self.exchange(request(method, target, length, body=body))
                self.assertEqual(len(statuses(received)), 1, received)

    def test_lines_that_are_none(self):
        for data in (b"GET /healthz HTTP/1.1\nHost: localhost\n\n" + HIDDEN,
                     b"GET /healthz HTTP/1.1\r\nHost: localhost\n\r\n" + HIDDEN,
                     b"GET /healthz HTTP/1.1\rHost: localhost\r\r" + HIDDEN,
                     request("GET", "/healthz", "A: b\rC: d"), request("GET", "/healthz", "A: b\0"),
                     request("GET", "/healthz", "A\0: b"), request("GET", "/healthz", "A b: c"),
                     request("GET", "/healthz", "no colon"), request("GET", "/healthz", ": empty"),
                     request("GET", "/healthz", " folded: x"),
                     request("GET", "/healthz", "A: b\x7f"),
                     request("GET", "/healthz", "A: b\r\n folded"), request("GET", "/healthz", "("),
                     b"GET  /healthz HTTP/1.1\r\nHost: l\r\n\r\n",
                     b"GET\t/healthz HTTP/1.1\r\nHost: l\r\n\r\n",
                     b" GET /healthz HTTP/1.1\r\nHost: l\r\n\r\n",
                     b"GET /healthz  HTTP/1.1\r\nHost: l\r\n\r\n",
                     b"GET /healthz HTTP/1.1 \r\nHost: l\r\n\r\n", b"GET /healthz\r\n\r\n",
                     b"GET /healthz http/1.1\r\nHost: l\r\n\r\n",
                     b"GET /healthz HTTP/1.1\r\n\r\n", b"GET HTTP/1.1\r\nHost: l\r\n\r\n",
                     b"G\x00T /healthz HTTP/1.1\r\nHost: l\r\n\r\n",
                     b"GET /heal\x00thz HTTP/1.1\r\nHost: l\r\n\r\n",
                     b"GET healthz HTTP/1.1\r\nHost: l\r\n\r\n",
                     b"GET * HTTP/1.1\r\nHost: l\r\n\r\n",
                     b"GET /healthz#x HTTP/1.1\r\nHost: l\r\n\r\n",
                     b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
                     b"GET /healthz HTTP/1.1\r\nHost: a b\r\n\r\n",
                     b"GET /healthz HTTP/1.1\r\nHost: a,b\r\n\r\n",
                     b"GET /healthz HTTP/1.1\r\nHost: a/b\r\n\r\n",
                     b"GET /healthz HTTP/1.1\r\nHost: u@b\r\n\r\n",
                     request("GET", "/healthz", "Expect: miracles")):
            with self.subTest(data=data[:80]):
                self.refused(data)
        for version in ("HTTP/2.0", "HTTP/0.9", "HTTP/1.2", "HTTP/9.9"):
            with self.subTest(version=version):
                self.refused(request(version=version), 400, 505)
        for method in ("TRACE", "CONNECT", "PROPFIND", "BREW", "get"):
            with self.subTest(method=method):
                self.refused(request(method), 400, 501)
        self.refused(b"CONNECT localhost:80 HTTP/1.1\r\nHost: l\r\n\r\n", 400, 501)


class NotHttp(HostileTest):
    def test_other_protocols(self):
        for data in (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
                     b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03" + bytes(200),
                     b"\0\0\0\x08\x04\xd2\x16\x2f", b"EHLO example.org\r\n\r\n",
                     b"\r\n\r\n\r\n\r\n", b"\n\n\n\n", bytes(1000), b"{}\r\n\r\n", b"[]\n"):
            with self.subTest(data=data[:20]):
                self.refused(data)
        # One line of these could still become a request.
        for data in (b"*1\r\n$4\r\nPING\r\n", b"SSH-2.0-OpenSSH_9.2\r\n", b"QUIT\r\n"):
            with self.subTest(data=data):
                self.assertIn(statuses(self.exchange(data)), ([], [400]))

    def test_random_bytes(self):
        random = seeded_random()
        for _ in range(scaled(1000)):
            self.exchange(random.randbytes(random.choice((1, 10, 1000, 30_000))))
        self.check_server()

    def test_requests_with_mistakes(self):
        random = seeded_random()
        seeds = [request(), put("Content-Length: 5", body=b"12345"),
                 put("Transfer-Encoding: chunked", body=b"5\r\n12345\r\n0\r\n\r\n"),
                 request("POST", KEYSPACES, "Content-Length: 13", body=b'{"name":"f1"}'),
                 request("GET", "/v1/raw/keys?prefix=a&limit=3&reverse=true"),
                 request("POST", "/v1/raw/import", "Content-Length: 25",
                         body=b'{"key":"smuggled","value":')]
        for _ in range(scaled(3000)):
            data = bytearray(random.choice(seeds) + random.choice(seeds))
            for _ in range(random.randrange(1, 6)):
                at = random.randrange(len(data))
                match random.randrange(4):
                    case 0: data[at] = random.randrange(256)
                    case 1: del data[at:at + random.randrange(8)]
                    case 2: data[at:at] = random.randbytes(random.randrange(8))
                    case 3: data[at:at] = random.choice((b"\r\n", b"\0", b"%", b" ", b":", b"0"))
            received = self.exchange(bytes(data))
            self.assertNotIn(500, statuses(received), bytes(data))


class Large(HostileTest):
    def send_until_answered(self, begin, piece, status, bytes_max):
        """What comes is refused when it is too much, not when all of it is there."""
        with Wire(self.server.address) as wire:
            wire.send(begin)
            sent = 0
            while sent < 100 * MIB and not select.select([wire.socket], [], [], 0)[0]:
                self.assertTrue(wire.send(piece))
                sent += len(piece)
            answer = wire.answer()
            self.assertEqual(answer[0], status)
            self.assertEqual(answer[1]["Connection"], "close")
        # What the two sockets hold comes on top.
        self.assertLess(sent, bytes_max + 12 * MIB)

    def test_endless_lines(self):
        for begin, more, status in ((b"GET /", b"a" * 65536, 414), (b"", b"G" * 65536, 414),
                                    (b"GET / HTTP/1.1\r\nHost: ", b"a" * 65536, 431),
                                    (b"GET / HTTP/1.1\r\n", b"A" * 65536, 431),
                                    (b"GET / HTTP/1.1\r\n", b"A: b\r\n" * 10_000, 431)):
            with self.subTest(begin=begin):
                self.send_until_answered(begin, more, status, 0)

    def test_who_goes_on_is_cut(self):
        with Wire(self.server.address) as wire:
            wire.send(b"GET /")
            eventually(lambda: not wire.send(b"a" * 65536), "nothing more is taken", 10)

    def test_headers_at_their_limit(self):
        self.assertEqual(statuses(self.exchange(request("GET", "/healthz", "A: " + "b" * 39_000))),
                         [200])
        self.refused(request("GET", "/healthz", "A: " + "b" * 40_960), 431)
        self.refused(request("GET", "/v1/raw/keys/" + "k" * 40_960), 414, 431)

    def test_100_mib_are_refused_early(self):
        piece = b"x" * 65536
        chunk = b"10000\r\n" + piece + b"\r\n"
        for method, target, bytes_max in (("PUT", "/v1/raw/keys/smuggled", 16 * MIB),
                                          ("POST", KEYSPACES, MIB),
                                          ("POST", "/v1/raw/batch", None)):
            length = f"Content-Length: {100 * MIB}"
            for headers in ([length], [length, "Expect: 100-continue"]):
                with self.subTest(target=target), Wire(self.server.address) as wire:
                    wire.send(request(method, target, *headers))  # and nothing of the body
                    self.assertEqual(wire.answer()[0], 413)
            with self.subTest(target=target, sent=True):
                self.send_until_answered(request(method, target, length), piece, 413, 0)
            if bytes_max is not None:
                with self.subTest(target=target, chunked=True):
                    self.send_until_answered(request(method, target, "Transfer-Encoding: chunked"),
                                             chunk, 413, bytes_max)

    def test_an_import_of_one_endless_line(self):
        # It reads on for 16 MiB, for clients that look for the answer when they have sent all.
        chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
        self.send_until_answered(request("POST", "/v1/raw/import", "Transfer-Encoding: chunked"),
                                 chunk, 413, 40 * MIB)

    def test_many_tiny_chunks(self):
        body = b"1\r\nx\r\n" * 100_000 + b"0\r\n\r\n"
        received = self.exchange(put("Transfer-Encoding: chunked", body=body))
        self.assertEqual(statuses(received), [204])
        self.assertEqual(len(self.api.get("/v1/raw/keys/smuggled").body), 100_000)


class ManyBodies(HostileTest):
    rss_bytes_max = 512 * MIB

    def test_bodies_that_are_held_have_a_budget(self):
        # 30 * 15 MiB, all but the last byte of each: more than the server holds at once.
        size, begin = 15 * MIB, time.monotonic()
        wires = []
        for _ in range(30):
            wire = Wire(self.server.address)
            self.addCleanup(wire.close)
            wires.append(wire)
            wire.send(put(f"Content-Length: {size}") + bytes(size - 1))
        self.check_server()
        answered = [wire for wire in wires if select.select([wire.socket], [], [], 0)[0]]
        wires[0].send(b"x")  # the first had room
        first = wires[0].answer()[0]
        if time.monotonic() - begin > 8:
            self.skipTest("too slow a machine: bodies that do not go on for 10 s are let go")
        self.assertEqual(first, 204)
        self.assertTrue(0 < len(answered) < len(wires))
        status, headers, _ = answered[0].answer()
        self.assertEqual((status, headers["Retry-After"]), (503, "1"))
        for wire in wires:
            wire.close()
        # And what it held it holds no more.
        eventually(lambda: self.api.put("/v1/raw/keys/smuggled", bytes(size)).status == 204,
                   "there is room again")


class BadJson(HostileTest):
    def targets(self):
        yield "POST", KEYSPACES
        yield "POST", f"{KEYSPACES}/id"
        yield "PATCH", f"{KEYSPACES}/DEFAULT/config"
        yield "PUT", f"{KEYSPACES}/DEFAULT/state"
        yield "PUT", "/v1/keyspaces/DEFAULT/quota"
        yield "POST", "/v1/keyspaces/DEFAULT/tokens"
        yield "POST", "/v1/keyspaces/DEFAULT/rename"
        yield "PUT", "/pd/api/v2/gc/safepoint/0"
        yield "PUT", "/pd/api/v2/gc/service_safepoint/0/s"
        yield "POST", "/v1/raw/batch"
        yield "POST", "/v1/raw/cas"
        yield "POST", "/v1/raw/import"

    def test_for_every_path(self):
        bodies = (b"[" * 1_000_000, b'{"a":' * 150_000, b"[" * 200 + b"]" * 200,
                  b'{"name":' + b"[" * 40 + b"]" * 40 + b"}", b"1e999999", b"9" * 500_000,
                  b"-", b"-0", b"1E400", b"0.1e", b"NaN", b"Infinity",
                  b"[" + b"1," * 400_000 + b"1]",
                  b"{" + b",".join(b'"%d":1' % i for i in range(60_000)) + b"}",
                  b'{"' + b"k" * 900_000 + b'":1}', b'"' + b"\\u0000" * 100_000 + b'"',
                  b'{"name":"\xc0\x80"}', b'{"name":"\xed\xa0\x80"}', b'{"name":"\\ud800\\ud800"}',
                  b"\xef\xbb\xbf{}", b"\0", b"{}\0", b"{\0}", b"\xff" * 100_000, b" " * 900_000,
                  b'{"name":"a","name":"b"}', b'{"__proto__":{}}', b"tru", b"nul", b"'")
        for method, target in self.targets():
            for body in bodies:
                if target.endswith("import") and not body.strip():
                    continue
                with self.subTest(target=target, body=body[:30]):
                    answer = self.api.call(method, target, body)
                    self.assertIn(answer.status, (400, 413), answer)
                    json.loads(answer.body)
        self.check_server()

    def test_huge_numbers(self):
        for text in (str(2**64), "9" * 1000, "-1", "1.5", "1e3", "1e400", "-0.0"):
            for method, target, body in (
                    ("POST", f"{KEYSPACES}/id", f'{{"id":{text},"name":"h"}}'),
                    ("PUT", "/v1/keyspaces/DEFAULT/quota", f'{{"bytes":{text}}}'),
                    ("POST", "/v1/keyspaces/DEFAULT/tokens",
                     f'{{"role":"read","ttl_seconds":{text}}}'),
                    ("PUT", "/pd/api/v2/gc/txn_safepoint/0", f'{{"safe_point":{text}}}'),
                    ("POST", "/v1/raw/import",
                     f'{{"key":"a","value":"b","expires_at_ms":{text}}}')):
                with self.subTest(target=target, text=text):
                    self.assertEqual(self.api.call(method, target, body).status, 400)
            query = text.replace("+", "%2B")
            for target in (f"{KEYSPACES}?limit={query}", f"/v1/audit?since={query}",
                           f"/v1/raw/keys?limit={query}", f"/v1/watch/keyspaces?since={query}",
                           f"{KEYSPACES}/id/{query}"):
                with self.subTest(target=target):
                    self.assertEqual(self.api.get(target).status, 400)

    def test_percent_encoding(self):
        for path in ("%", "%2", "%zz", "%G0", "%-1", "a%", "%%", "%0", "% 1", "%u0041"):
            for base in ("/v1/raw/keys/", "/v1/raw/keys?prefix=", f"{KEYSPACES}/", "/k/"):
                if " " in path:
                    continue
                with self.subTest(target=base + path):
                    tail = "/v1/raw/keys" if base == "/k/" else ""
                    answer = self.exchange(request("GET", base + path + tail))
                    self.assertEqual(statuses(answer), [400])
        # Whatever can be written twice is one key.
        for path in ("%63%61%6e%61%72%79", "c%61nary", "%63anar%79"):
            self.assertEqual(self.api.get(f"/v1/raw/keys/{path}").body, b"alive")
        for path in ("/v1/raw/keys/%00", "/v1/raw/keys/..%2f..%2fetc%2fpasswd",
                     "/v1/raw/keys/../../../etc/passwd", "/../../etc/passwd", "//healthz",
                     "/healthz/", "/healthz/../healthz", "/./healthz", "/%2e%2e/healthz",
                     "/healthz%00", "/v1/../healthz"):
            with self.subTest(path=path):
                self.assertEqual(statuses(self.exchange(request("GET", path))), [404])


class Connections(HostileTest):
    def test_garbage_behind_a_request(self):
        for garbage in (b"\0\0\0\0", b"garbage\r\n\r\n", b"\r\n\r\n\r\n\r\nx", b"12345"):
            with self.subTest(garbage=garbage):
                received = self.exchange(request() + garbage)
                self.assertEqual(statuses(received)[0], 200)
                self.assertTrue(set(statuses(received)[1:]) <= {400, 501}, received)
        received = self.exchange(put("Content-Length: 5", body=b"12345XX" + HIDDEN[6:]))
        self.assertEqual(statuses(received)[0], 204)

    def test_pipelined_requests_are_answered_in_order(self):
        data = b""
        for i in range(100):
            data += put("Content-Length: 3", body=b"%03d" % i)
            data += request("GET", "/v1/raw/keys/smuggled")
        received = self.exchange(data)
        self.assertEqual(statuses(received), [204, 200] * 100)
        values = [part.split(b"\r\n\r\n")[1][:3] for part in received.split(b"HTTP/1.1 200")[1:]]
        self.assertEqual(values, [b"%03d" % i for i in range(100)])

    def test_a_client_that_asks_and_does_not_read(self):
        self.api.put("/v1/raw/keys/smuggled", bytes(MIB))
        wires = [Wire(self.server.address, timeout_s=0.5) for _ in range(8)]
        for wire in wires:  # a GiB in all, if it were made before anybody takes it
            wire.send(request("GET", "/v1/raw/keys/smuggled") * 128)
        self.check_server()
        for wire in wires:
            wire.close()

    def test_watchers_that_do_not_read(self):
        wires = [Wire(self.server.address) for _ in range(50)]
        for wire in wires:
            wire.send(request("GET", "/v1/watch/keyspaces"))
        config = {"k": "v" * 10_000}
        for i in range(100):
            made = self.api.post(KEYSPACES, {"name": f"watched-{i}", "config": config})
            self.assertEqual(made.status, 200)
        self.check_server()
        for wire in wires:
            wire.close()

    def test_half_closed(self):
        self.assertEqual(statuses(self.exchange(request())), [200])
        whole = put("Content-Length: 5", body=b"12345")
        for end in range(1, len(whole), 7):
            with self.subTest(end=end):
                received = self.exchange(whole[:end])
                self.assertTrue(set(statuses(received)) <= {400, 408}, received)
        self.assertEqual(self.api.get("/v1/raw/keys/smuggled").status, 404)
        self.assertEqual(self.exchange(b""), b"")

    def reset(self, data, read=0):
        wire = Wire(self.server.address)
        wire.send(data)
        if read:
            wire.socket.recv(read)
        wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        wire.close()

    def test_resets(self):
        for i in range(100):
            self.api.put(f"/v1/raw/keys/bulk-{i}", b"v" * 10_000)
        for data, read in ((request(), 0), (request(), 10), (b"GET /hea", 0),
                           (put("Content-Length: 100000", body=b"x" * 5000), 0),
                           (request("GET", "/v1/raw/export"), 100),
                           (request("GET", "/v1/watch/keyspaces"), 50),
                           (request("POST", "/v1/raw/import", "Content-Length: 100000",
                                    body=b'{"key":"smuggled","value":"x"}\n'), 0),
                           (request("POST", "/v1/raw/batch", "Content-Length: 100000", body=b"{"),
                            0)):
            for _ in range(15):
                self.reset(data, read)
        def only_ours():
            text = self.api.get("/metrics").body.decode()
            line = next(x for x in text.splitlines() if x.startswith("trellis_http_connections "))
            return float(line.split()[1]) <= 2
        eventually(only_ours, "the connections are gone")

    def test_500_idle_connections(self):
        before = self.server.rss_bytes()
        wires = [Wire(self.server.address) for _ in range(500)]
        for wire in wires[:250]:
            wire.send(b"GET /healthz HT")  # half of them have begun
        for _ in range(20):
            self.check_server()
        self.assertLess(self.server.rss_bytes() - before, self.server.rss_bytes_max(64 * MIB))
        for wire in wires[:250]:
            wire.send(b"TP/1.1\r\nHost: localhost\r\n\r\n")
        self.assertEqual({wire.answer()[0] for wire in wires[:250]}, {200})
        for wire in wires:
            wire.close()


class Slow(HostileTest):
    """The time-outs: 10 s for a header, and for each 4 KiB of a body that is held whole. What is
    streamed has 5 minutes. All at once."""

    def drip(self, begin, drop, results, name):
        with Wire(self.server.address) as wire:
            wire.send(begin)
            since = time.monotonic()
            wire.socket.settimeout(0.25)
            received = b""
            while time.monotonic() - since < 15:
                try:
                    piece = wire.socket.recv(4096)
                    received += piece
                    if not piece:
                        break
                except TimeoutError:
                    wire.send(drop)
                except ConnectionResetError:
                    break
            results[name] = (time.monotonic() - since, statuses(received))

    def test_slow_clients_are_cut(self):
        results = {}
        cases = {"nothing but a header's begin": (b"GET / HT", b""),
                 "a header, byte by byte": (b"GET / HTTP/1.1\r\nA: ", b"b"),
                 "headers, line by line": (b"GET / HTTP/1.1\r\n", b"A: b\r\n"),
                 "a body, byte by byte": (put("Content-Length: 1000"), b"x"),
                 "chunks, one by one": (put("Transfer-Encoding: chunked"), b"1\r\nx\r\n")}
        patient = {"an import": (request("POST", "/v1/raw/import", "Content-Length: 1000"), b" "),
                   "a file": (request("PUT", "/v1/files/slow", "Content-Length: 1000"), b" ")}
        threads = [threading.Thread(target=self.drip, args=[*case, results, name])
                   for name, case in [*cases.items(), *patient.items()]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for name in patient:
            self.assertEqual(results[name][1], [], name)
        for name in cases:
            with self.subTest(name=name):
                seconds, got = results[name]
                self.assertLess(seconds, 14)
                self.assertGreater(seconds, 5)  # nobody is cut who was merely not quick
                self.assertEqual(got, [408])


if __name__ == "__main__":
    unittest.main()
