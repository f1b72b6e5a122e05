#!/usr/bin/env python3
"""Redis's own tools and python3-redis, unmodified: over TCP, TLS and a Unix socket."""

import json
import os
import pathlib
import shutil
import stat
import subprocess
import tempfile
import unittest

import redis

from tls_test import OPENSSL, Authority
from trellis_command import TrellisTest, trellis
from trellis_http import QuietServer, eventually


def run(*command):
    done = subprocess.run(list(map(str, command)), text=True, capture_output=True, timeout=60)
    return (done.stdout + done.stderr).strip()


def urls(server):
    """Where Redis's protocol is served, by kind: redis, rediss, unix."""
    words = [word for line in server.banner for word in line.split()]
    return {word.split(":")[0]: word for word in words
            if word.startswith(("redis://", "rediss://", "unix:"))}


class ClientTest(TrellisTest):
    def serve(self, *arguments):
        server = QuietServer("--engine", "memory", *arguments).__enter__()
        self.addCleanup(server.__exit__)
        return server

    def client(self, url, **more):
        client = redis.Redis.from_url(url, decode_responses=True, **more)
        self.addCleanup(client.close)
        return client

    def try_everything(self, client):
        """A little of each part of a client."""
        self.assertTrue(client.ping())
        client.flushdb()
        self.assertTrue(client.set("s", "1", ex=100))
        self.assertEqual((client.incr("s"), client.get("s"), client.ttl("s") > 90), (2, "2", True))
        client.hset("h", mapping={"a": 1, "b": 2})
        self.assertEqual(client.hgetall("h"), {"a": "1", "b": "2"})
        client.rpush("l", *range(100))
        self.assertEqual(client.lrange("l", 0, 2), ["0", "1", "2"])
        client.sadd("t", "a", "b")
        self.assertEqual(client.smembers("t"), {"a", "b"})
        client.zadd("z", {"a": 1, "b": 2.5})
        self.assertEqual(client.zrange("z", 0, -1, withscores=True), [("a", 1.0), ("b", 2.5)])
        self.assertEqual(sorted(client.scan_iter(count=2)), ["h", "l", "s", "t", "z"])
        with client.pipeline(transaction=False) as pipe:
            for i in range(1_000):
                pipe.set(f"p{i}", i)
            self.assertEqual(pipe.execute(), [True] * 1_000)

        def double(pipe):
            value = int(pipe.get("s"))
            pipe.multi()
            pipe.set("s", 2 * value)
        self.assertEqual(client.transaction(double, "s"), [True])
        with client.pipeline() as pipe:
            pipe.watch("s")
            client.set("s", "other")
            pipe.multi()
            pipe.get("s")
            self.assertRaises(redis.WatchError, pipe.execute)
        self.assertRaises(redis.ResponseError, client.incr, "s")
        self.assertEqual(client.config_get("maxclients"), {"maxclients": "10000"})
        self.assertEqual(client.info("server")["redis_mode"], "standalone")
        large = "x" * 5_000_000
        client.set("large", large)
        self.assertTrue(client.get("large") == large)


class Clients(ClientTest):
    def test_python_over_tcp(self):
        server = self.serve()
        url = urls(server)["redis"]
        self.try_everything(self.client(url))
        self.try_everything(self.client(url + "/3"))
        self.assertEqual(self.client(url + "/4").dbsize(), 0)

    def test_keyspace_in_the_url(self):
        server = self.serve("--auth", "required", "--admin-token-file", self.folder / "admin")
        admin = (self.folder / "admin").read_text().strip()

        def trellis_json(*arguments):
            code, out, err = trellis(*arguments, "--json", TRELLIS_SERVER=server.url,
                                     TRELLIS_TOKEN=admin)
            self.assertEqual(code, 0, err)
            return json.loads(out)
        address = server.resp
        clients = []
        for name in ("shop", "mall"):
            trellis_json("keyspace", "create", name)
            token = trellis_json("keyspace", "token", "create", name, "--role", "admin")["token"]
            clients.append(self.client(f"redis://{name}:{token}@{address}/2"))
            self.try_everything(clients[-1])
            cli = ("redis-cli", "--no-auth-warning", "-u", f"redis://{name}:{token}@{address}/2")
            self.assertEqual(run(*cli, "HGET", "h", "a"), "1")
        clients[0].set("only", "here")
        self.assertIsNone(clients[1].get("only"))
        self.assertRaises(redis.AuthenticationError, self.client(f"redis://{address}").ping)
        wrong = self.client(f"redis://mall:{token[:-1]}@{address}")
        self.assertRaisesRegex(redis.ResponseError, "WRONGPASS", wrong.ping)

    def test_unix_socket(self):
        path = self.folder / "redis.sock"
        server = self.serve("--resp-unix", path, "--resp-unix-access", "group")
        self.assertEqual(urls(server)["unix"], f"unix:{path}")
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o660)
        self.assertEqual(run("redis-cli", "-s", path, "SET", "a", "1"), "OK")
        self.try_everything(self.client(f"unix://{path}"))
        self.assertEqual(server.stop()[0], 0)
        self.assertFalse(path.exists())
        # One that was killed leaves its file, which is no hindrance.
        killed = self.serve("--resp-unix", path)
        killed.process.kill()
        killed.ended()
        self.assertTrue(path.exists())
        self.serve("--resp-unix", path)
        self.assertEqual(run("redis-cli", "-s", path, "PING"), "PONG")
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)

    def test_redis_benchmark(self):
        server = self.serve()
        host, port = server.resp.rsplit(":", 1)
        for options in (("-P", "1"), ("-P", "32"), ("-P", "16", "--threads", "2")):
            out = run("redis-benchmark", "-h", host, "-p", port, "-q", "-n", "1000", "-r", "100",
                      *options)
            self.assertIn("SET: ", out)
            self.assertIn("MSET (10 keys): ", out)
            self.assertNotIn("rror", out)

    def test_settings_that_make_no_sense(self):
        for arguments, message in (
                (("--resp-tls", "127.0.0.1:0"), "it needs a tls-cert and a tls-key"),
                (("--resp-unix", self.folder / "no/such"), "cannot listen on"),
                (("--resp-unix", "x" * 200), "up to 107 bytes"),
                (("--resp-send-timeout", "10ms"), "at least 1s"),
                (("--resp-clients-max", "0"), "at least 1")):
            with self.subTest(arguments):
                code, _, err = trellis("serve", "--engine", "memory", "--http", "127.0.0.1:0",
                                       "--resp", "127.0.0.1:0", *arguments)
                self.assertNotEqual(code, 0)
                self.assertIn(message, err)


@unittest.skipUnless(OPENSSL, "there is no openssl command here")
class TlsClients(ClientTest):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="trellis-test-")
        cls.addClassCleanup(folder.cleanup)
        cls.authority = Authority(pathlib.Path(folder.name))
        cls.issued = {name: cls.authority.issue(name) for name in ("first", "second")}

    def install(self, name):
        for source, target in zip(self.issued[name][:2], (self.cert, self.key)):
            shutil.copyfile(source, target.with_suffix(".new"))
            os.rename(target.with_suffix(".new"), target)

    def serial(self, url):
        """Of the certificate that a new connection is shown."""
        client = self.client(url, ssl_ca_certs=str(self.authority.root))
        connection = client.connection_pool.get_connection("PING")
        serial = int(connection._sock.getpeercert()["serialNumber"], 16)
        client.close()
        return serial

    def test_tls(self):
        self.cert, self.key = self.folder / "server.pem", self.folder / "server.key"
        self.install("first")
        server = self.serve("--resp-tls", "127.0.0.1:0", "--tls-cert", self.cert, "--tls-key",
                            self.key)
        url = urls(server)["rediss"]
        host, port = url.removeprefix("rediss://").rsplit(":", 1)
        root = self.authority.root
        cli = ("redis-cli", "-h", host, "-p", port, "--tls")
        self.assertEqual(run(*cli, "--cacert", root, "SET", "a", "1"), "OK")
        self.assertIn("certificate verify failed", run(*cli, "PING"))
        self.try_everything(self.client(url, ssl_ca_certs=str(root)))
        self.assertEqual(run("redis-cli", "-u", urls(server)["redis"], "PING"), "PONG")
        self.assertEqual(self.serial(url), self.issued["first"][2])
        self.install("second")
        eventually(lambda: self.serial(url) == self.issued["second"][2], "the new one is shown")
        # Who speaks no TLS here is closed, and harms nobody.
        self.assertIn("rror", run("redis-cli", "-h", host, "-p", port, "PING"))
        self.assertEqual(run(*cli, "--cacert", root, "PING"), "PONG")


if __name__ == "__main__":
    unittest.main()
