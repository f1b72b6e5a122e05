#!/usr/bin/env python3
"""Redis's protocol over the real server: redis-cli, and random commands beside redis-server."""
import os
import subprocess
import sys
import unittest

from trellis_command import SOURCE, Server, TrellisTest

ORACLE = SOURCE / "tests/redis/oracle.py"


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
