#!/usr/bin/env python3
"""Redis's protocol over the real server: redis-cli, and random commands beside redis-server."""
import json
import os
import socket
import subprocess
import sys
import unittest

from trellis_command import SOURCE, Server, TrellisTest, trellis

ORACLE = SOURCE / "tests/redis/oracle.py"


class RespClient:
    """A connection that gives replies as they come, which here are small."""

    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=60)

    def say(self, *words):
        bulks = b"".join(b"$%d\r\n%s\r\n" % (len(word), word.encode()) for word in words)
        self.socket.sendall(b"*%d\r\n%s" % (len(words), bulks))
        reply = b""
        while not reply.endswith(b"\r\n") or (reply[:1] == b"$" and reply.count(b"\r\n") < 2):
            piece = self.socket.recv(65536)
            assert piece, reply
            reply += piece
        return reply


class Redis(TrellisTest):
    def server(self, *arguments):
        return Server("--data", self.folder / "store", *arguments)

    def cli(self, server, *arguments):
        host, port = server.resp.rsplit(":", 1)
        done = subprocess.run(["redis-cli", "-h", host, "-p", port, *arguments], text=True,
                              capture_output=True, timeout=60)
        return (done.stdout + done.stderr).strip()

    def test_redis_cli(self):
        with self.server() as server:
            self.assertEqual(self.cli(server, "SET", "a", "1"), "OK")
            self.assertEqual(self.cli(server, "INCR", "a"), "2")
            self.assertEqual(self.cli(server, "-3", "HSET", "h", "f", "v"), "1")
            self.assertEqual(self.cli(server, "-n", "3", "DBSIZE"), "0")
            self.assertIn("redis_version", self.cli(server, "INFO"))
        with self.server() as server:
            self.assertEqual(self.cli(server, "GET", "a"), "2")
            self.assertEqual(self.cli(server, "HGET", "h", "f"), "v")

    def test_tokens_hold_on_open_connections(self):
        with self.server("--auth", "required", "--admin-token-file",
                         self.folder / "admin") as server:
            admin = (self.folder / "admin").read_text().strip()

            def trellis_json(*arguments):
                code, out, err = trellis(*arguments, "--json", TRELLIS_SERVER=server.url,
                                         TRELLIS_TOKEN=admin)
                self.assertEqual(code, 0, err)
                return json.loads(out) if out.strip() else None

            trellis_json("keyspace", "create", "shop")
            token = trellis_json("keyspace", "token", "create", "shop", "--role", "write")
            client = RespClient(server.resp)
            self.assertIn(b"NOAUTH", client.say("GET", "a"))
            self.assertIn(b"WRONGPASS", client.say("AUTH", "default", token["token"]))
            self.assertEqual(client.say("AUTH", "shop", token["token"]), b"+OK\r\n")
            self.assertEqual(client.say("SET", "a", "1"), b"+OK\r\n")
            trellis_json("keyspace", "quota", "shop", "--keys", "1")
            self.assertIn(b"-OOM", client.say("SET", "b", "1"))
            self.assertEqual(client.say("SET", "a", "2"), b"+OK\r\n")
            trellis_json("keyspace", "state", "shop", "disable")
            self.assertIn(b"-NOPERM", client.say("GET", "a"))
            trellis_json("keyspace", "state", "shop", "enable")
            self.assertEqual(client.say("GET", "a"), b"$1\r\n2\r\n")
            trellis_json("keyspace", "token", "revoke", "shop", token["id"])
            self.assertIn(b"NOAUTH", client.say("GET", "a"))
            # The other tenant has none of it.
            self.assertEqual(client.say("AUTH", admin), b"+OK\r\n")
            self.assertEqual(client.say("DBSIZE"), b":0\r\n")

    def test_the_same_as_redis_server(self):
        seed = os.environ.get("TRELLIS_TEST_SEED", "7")
        with self.server() as server:
            done = subprocess.run(
                [sys.executable, ORACLE, "--reference", "start", "--subject", server.resp,
                 "--commands", "30000", "--seed", seed, "--skip", "SWAPDB"],
                capture_output=True, timeout=280)
            self.assertEqual(done.returncode, 0, done.stdout.decode(errors="replace")[-4000:])


if __name__ == "__main__":
    unittest.main()
