"""Starts redis-server on a free port, in a folder that goes away with it."""
import os
import shutil
import socket
import subprocess
import tempfile
import time

from resp_client import Address, Connection


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class RedisServer:
    """with RedisServer() as address: ..."""

    def __init__(self, *options):
        self.options = options

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="oracle-redis-")
        self.port = free_port()
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.folder,
             "--save", "", "--appendonly", "no", "--databases", "16", *self.options],
            stdout=subprocess.DEVNULL, env={**os.environ, "LC_ALL": "C"})
        address = Address(f"127.0.0.1:{self.port}")
        deadline = time.monotonic() + 20
        while True:
            try:
                connection = Connection(address)
                connection.call(b"PING")
                connection.close()
                return address
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    self.__exit__()
                    raise RuntimeError("redis-server does not start") from None
                time.sleep(0.01)

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
