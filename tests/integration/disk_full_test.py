#!/usr/bin/env python3
"""A disk that is nearly full, and one that is full: a small tmpfs under the real server."""
import json
import os
import subprocess
import sys
import unittest
import urllib.error
import urllib.request

from trellis_command import SOURCE, Server, TrellisTest
from trellis_http import eventually, seeded_random

sys.path.insert(0, str(SOURCE / "tests/redis"))
from resp_client import Address, Connection, encode  # noqa: E402

MIB = 1 << 20


def ask(url, method="GET", body=None):
    """(status, body)"""
    request = urllib.request.Request(url, data=body, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


class DiskFull(TrellisTest):
    def setUp(self):
        super().setUp()
        self.disk = self.folder / "disk"
        self.disk.mkdir()
        mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", self.disk],
                               capture_output=True, text=True)
        if mount.returncode != 0:
            self.skipTest(f"cannot mount a small disk: {mount.stderr.strip()}")
        self.addCleanup(lambda: subprocess.run(["umount", "-l", self.disk], check=True))
        self.ballast = self.disk / "ballast"

    def leave_free(self, bytes_free):
        """Something else takes the disk, but for so much."""
        self.ballast.unlink(missing_ok=True)
        stat = os.statvfs(self.disk)
        self.ballast.write_bytes(bytes(max(stat.f_bfree * stat.f_frsize - bytes_free, 0)))

    def server(self, *arguments):
        return Server("--data", self.disk / "store", "--cache-bytes", "8MiB", *arguments)

    def connect(self, server):
        client = Connection(Address(server.resp), 60)
        self.addCleanup(client.close)
        return client

    def test_reads_and_deletes_while_it_is_nearly_full(self):
        with self.server() as server:
            client = self.connect(server)
            raw = server.url + "/v1/raw/keys/a"
            self.assertEqual(client.call(b"MSET", b"a", b"1", b"c", b"1"), b"+OK\r\n")
            self.assertEqual(ask(raw, "PUT", b"1")[0], 204)
            self.assertEqual(ask(server.url + "/readyz"), (200, '{"status":"ready"}'))

            self.leave_free(5 * MIB)  # a tenth of the disk is kept, 6.4 MiB
            eventually(lambda: client.call(b"SET", b"b", b"1").startswith(b"-MISCONF"), "refused")
            refusal = client.call(b"SET", b"b", b"1").decode()
            self.assertIn("the disk is nearly full", refusal)
            self.assertIn("disk-reserve-bytes", refusal)
            self.assertIn("delete something", refusal)
            status, body = ask(server.url + "/v1/raw/keys/b", "PUT", b"1")
            self.assertEqual((status, json.loads(body)["code"]), (507, "disk_nearly_full"))
            status, body = ask(server.url + "/readyz")
            self.assertEqual((status, json.loads(body)["status"]), (200, "read-only"))
            self.assertIn("trellis_store_adds_refused 1", ask(server.url + "/metrics")[1])
            self.assertEqual(client.call(b"GET", b"a"), b"$1\r\n1\r\n")
            self.assertEqual(ask(raw), (200, "1"))
            self.assertEqual(client.call(b"DEL", b"a"), b":1\r\n")
            self.assertEqual(ask(raw, "DELETE")[0], 204)
            # An operator can act, and bury a tenant.
            keyspaces = server.url + "/pd/api/v2/keyspaces"
            self.assertEqual(ask(keyspaces, "POST", b'{"name":"shop"}')[0], 200)
            for state in (b"disabled", b"archived", b"tombstone"):
                answer = ask(keyspaces + "/shop/state", "PUT", b'{"state":"%s"}' % state)
                self.assertEqual(answer[0], 200, answer)

            self.leave_free(1 * MIB)  # below a quarter of the reserve
            eventually(lambda: b"Not even deletes" in client.call(b"SET", b"b", b"1"), "the floor")
            self.assertIn(b"Not even deletes", client.call(b"DEL", b"c"))
            self.assertEqual(client.call(b"GET", b"c"), b"$1\r\n1\r\n")
            self.ballast.unlink()
            eventually(lambda: client.call(b"SET", b"b", b"1") == b"+OK\r\n", "taken again")
            self.assertEqual(ask(server.url + "/readyz"), (200, '{"status":"ready"}'))
            self.assertIn("trellis_store_adds_refused 0", ask(server.url + "/metrics")[1])
            self.assertEqual(server.stop()[0], 0)

    def fill(self, client, random):
        """SETs in pipelines until one is refused: what was acknowledged, and the refusal."""
        acknowledged = {}
        for number in range(100_000):
            pairs = [(b"%d:%d" % (number, i), random.randbytes(20_000)) for i in range(8)]
            client.send(b"".join(encode([b"SET", *pair]) for pair in pairs))
            for (key, value), reply in zip(pairs, client.replies(len(pairs))):
                if reply != b"+OK\r\n":
                    return acknowledged, reply.decode()
                acknowledged[key] = value
        raise AssertionError("the disk never filled")

    def wait_for_writes(self, client):
        """RocksDB looks for space every five seconds. It cannot always go on with its log."""
        try:
            eventually(lambda: client.call(b"SET", b"again", b"1") == b"+OK\r\n", "resumed", 15)
        except AssertionError:
            reply = client.call(b"SET", b"again", b"1")
            self.assertTrue(reply == b"+OK\r\n" or b"restart trellis" in reply, reply)

    def check(self, client, acknowledged):
        for key, value in acknowledged.items():
            self.assertEqual(client.call(b"GET", key), b"$%d\r\n%s\r\n" % (len(value), value), key)

    def test_full_all_the_same(self):
        """Without a reserve, or faster than it is looked at: nothing acknowledged is lost."""
        random = seeded_random()
        acknowledged = {}
        for durability in ("always", "everysec"):
            with self.subTest(durability):
                arguments = ("--disk-reserve-bytes", "0", "--durability", durability)
                with self.server(*arguments) as server:
                    self.leave_free(24 * MIB)
                    client = self.connect(server)
                    more, refusal = self.fill(client, random)
                    print(f"{durability}: {len(more)} SETs, {refusal.strip()}", file=sys.stderr)
                    self.assertRegex(refusal, "^-(MISCONF|UNKNOWN|ERR) ")
                    self.assertRegex(refusal, "(?i)free some space|space being freed")
                    acknowledged.update(more)
                    self.check(client, acknowledged)
                    self.ballast.unlink()
                    self.wait_for_writes(client)
                    server.process.kill()
                with self.server(*arguments) as server:
                    client = self.connect(server)
                    self.check(client, acknowledged)
                    self.assertEqual(client.call(b"SET", b"again", b"2"), b"+OK\r\n")
                    for key in acknowledged:
                        client.call(b"DEL", key)
                    acknowledged.clear()
                    self.assertEqual(server.stop()[0], 0)


if __name__ == "__main__":
    unittest.main()
