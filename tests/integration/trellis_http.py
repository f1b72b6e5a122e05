"""Talks HTTP to a running trellis as curl would: the standard library, and plain sockets."""

import base64
import http.client
import itertools
import json
import os
import pathlib
import random
import re
import signal
import socket
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse

from trellis_command import Server

KEYSPACES = "/pd/api/v2/keyspaces"
GC = "/pd/api/v2/gc"
V1 = "/v1/keyspaces"
ID_MAX = 16_777_215
PATIENCE_S = 30  # for what takes milliseconds on a machine that has time


def seeded_random():
    """Seeded, and the seed is printed: TRELLIS_TEST_SEED repeats a run."""
    seed = int(os.environ.get("TRELLIS_TEST_SEED") or random.SystemRandom().getrandbits(32))
    print(f"TRELLIS_TEST_SEED={seed}", file=sys.stderr)
    return random.Random(seed)


def scaled(count):
    """How much a random test tries: TRELLIS_TEST_SCALE=quick is a tenth, long a hundredfold."""
    scale = os.environ.get("TRELLIS_TEST_SCALE")
    return count * 100 if scale == "long" else max(count // 10, 1) if scale == "quick" else count


def eventually(probe, what, patience_s=PATIENCE_S, every_s=0.01):
    """Asks until the answer is true, and returns it."""
    deadline = time.monotonic() + patience_s
    while True:
        found = probe()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"still not after {patience_s} s: {what}")
        time.sleep(every_s)


def encoded(key):
    """A key in a path or a query: every byte that means something there is escaped."""
    return urllib.parse.quote(key, safe="")


def entry_bytes(entry, name):
    """Key or value of a JSON entry as bytes."""
    if name in entry:
        return entry[name].encode()
    return base64.b64decode(entry[f"{name}_base64"], validate=True)


def raw(name, key):
    """Path of a raw key."""
    return f"/k/{name}/v1/raw/keys/{encoded(key)}"


def timestamp(unix_s):
    """PD's: milliseconds and 18 bits of a logical clock."""
    return int(unix_s * 1000) << 18


def in_parallel(count, work):
    """work(0), work(1) ... in threads of their own, all to their end."""
    threads = [threading.Thread(target=work, args=[n]) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def json_lines(body):
    return [json.loads(line) for line in body.splitlines()]


def dashed(headers):
    """Header names as keyword arguments: If_Match is If-Match."""
    return {name.replace("_", "-"): value for name, value in headers.items()}


class QuietServer(Server):
    """A server whose log is read all the time, so that it can never wait for its reader."""

    def __enter__(self):
        super().__enter__()
        self.log = []
        self.log_reader = threading.Thread(target=self._read_log, daemon=True)
        self.log_reader.start()
        return self

    def _read_log(self):
        for line in self.process.stderr:
            self.log.append(line.rstrip("\n"))

    def stop(self, how=signal.SIGINT):
        self.process.send_signal(how)
        return self.ended()

    def ended(self):
        """When it ends: as stop."""
        code = self.process.wait(timeout=60)
        self.log_reader.join()
        out = self.process.stdout.read()
        self.process.stdout.close()
        self.process.stderr.close()
        return code, out, "\n".join(self.log)

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.ended()

    @property
    def address(self):
        host, port = self.url.split("//")[1].rsplit(":", 1)
        return host.strip("[]"), int(port)

    def rss_bytes(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"^VmRSS:\s+(\d+) kB$", status, re.M)[1]) * 1024

    def rss_bytes_max(self, wanted):
        """What it may take; sanitizers need more than what they watch."""
        maps = pathlib.Path(f"/proc/{self.process.pid}/maps").read_text()
        return wanted * (6 if "libasan" in maps or "libtsan" in maps else 1)

    def errors(self):
        """What it logged as its own failure."""
        return [line for line in self.log if re.match(r"\S+Z error ", line)]


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {self.body[:500]!r}"


class Api:
    """One connection, which is kept."""

    def __init__(self, server, token=None, **headers):
        self.http = http.client.HTTPConnection(*server.address, timeout=PATIENCE_S)
        self.headers = dashed(headers)
        if token is not None:
            self.headers["Authorization"] = f"Bearer {token}"

    def begin(self, method, path, body=None, headers=None):
        """The response, of which nothing but the header has been read."""
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        if isinstance(body, str):
            body = body.encode()
        self.http.request(method, path, body, {**self.headers, **(headers or {})})
        return self.http.getresponse()

    def call(self, method, path, body=None, headers=None):
        return Answer(self.begin(method, path, body, headers))

    def get(self, path, **headers):
        return self.call("GET", path, None, dashed(headers))

    def post(self, path, body=None, **headers):
        return self.call("POST", path, body, dashed(headers))

    def put(self, path, body=None, **headers):
        return self.call("PUT", path, body, dashed(headers))

    def patch(self, path, body=None, **headers):
        return self.call("PATCH", path, body, dashed(headers))

    def delete(self, path, **headers):
        return self.call("DELETE", path, None, dashed(headers))

    @property
    def port(self):
        """Of this end, which tells one connection from another."""
        return self.http.sock.getsockname()[1]

    def close(self):
        self.http.close()


class Wire:
    """A bare socket: what is sent is what was written."""

    def __init__(self, address, timeout_s=PATIENCE_S):
        self.socket = socket.create_connection(address, timeout=timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, data):
        """False if the other side would not take it."""
        try:
            self.socket.sendall(data)
            return True
        except (BrokenPipeError, ConnectionResetError):
            return False

    def answer(self, method="GET"):
        """The next response, as (status, header, body); None if the connection just ended."""
        response = http.client.HTTPResponse(self.socket, method=method)
        try:
            response.begin()
        except (http.client.RemoteDisconnected, ConnectionResetError):
            return None
        return response.status, response.headers, response.read()

    def rest(self):
        """All that comes until the other side closes."""
        received = b""
        try:
            while piece := self.socket.recv(65536):
                received += piece
        except ConnectionResetError:
            pass
        return received

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class ServerTest(unittest.TestCase):
    """One server for all tests of a class. It must end well, whatever was done to it."""

    arguments = ()
    with_data = True

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="trellis-test-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.server = cls.start(*cls.arguments)
        cls.addClassCleanup(cls.server.__exit__)
        cls.names = itertools.count(1)

    @classmethod
    def start(cls, *arguments):
        store = ("--data", cls.folder / "store") if cls.with_data else ("--engine", "memory")
        return QuietServer(*store, *arguments).__enter__()

    @classmethod
    def tearDownClass(cls):
        code, out, log = cls.server.stop()
        if (code, out) != (0, "Closed cleanly.\n") or cls.server.errors():
            raise AssertionError(f"the server ended with {code}, {out!r}, and logged:\n{log}")

    def setUp(self):
        self.api = self.connect()

    def connect(self, token=None, **headers):
        api = Api(self.server, token, **headers)
        self.addCleanup(api.close)
        return api

    def new_name(self, prefix="ks"):
        return f"{prefix}-{next(self.names)}"

    def create(self, name=None, **more):
        answer = self.api.post(KEYSPACES, {"name": name or self.new_name(), **more})
        self.assertEqual(answer.status, 200, answer)
        return answer.json

    def set_state(self, name, state):
        answer = self.api.put(f"{KEYSPACES}/{name}/state", {"state": state})
        self.assertEqual(answer.status, 200, answer)
        return answer.json

    def bring_to(self, name, state):
        """From ENABLED, along the allowed changes."""
        way = ["DISABLED", "ARCHIVED", "TOMBSTONE"]
        for step in way[:way.index(state) + 1] if state in way else []:
            keyspace = self.set_state(name, step)
        return keyspace if state in way else self.api.get(f"{KEYSPACES}/{name}").json

    def refused(self, answer, status, code):
        """An error of /v1: status and code, in the one form that errors have there."""
        self.assertEqual(answer.status, status, answer)
        self.assertEqual(answer.headers["Content-Type"], "application/json")
        error = answer.json
        self.assertEqual(set(error), {"code", "message", "details", "retryable"})
        self.assertEqual(error["code"], code, answer)
        self.assertTrue(error["message"])
        return error

    def wait_purged(self, keyspace_id):
        def done():
            progress = self.api.get(f"/v1/keyspace-ids/{keyspace_id}/purge").json
            return progress if progress.get("state") == "done" else None
        progress = eventually(done, f"purge of keyspace {keyspace_id} is done")
        # The last step, behind the progress: the record says so too.
        eventually(lambda: self.api.get(f"/v1/keyspace-ids/{keyspace_id}").json["purged_at"],
                   "it is recorded as purged")
        return progress


class V1Test(ServerTest):
    def show(self, name):
        answer = self.api.get(f"{V1}/{name}")
        self.assertEqual(answer.status, 200, answer)
        return answer.json

    def token(self, name, role, **more):
        answer = self.api.post(f"{V1}/{name}/tokens", {"role": role, **more})
        self.assertEqual(answer.status, 201, answer)
        return answer.json

    def put(self, name, key, value=b"v"):
        answer = self.api.put(raw(name, key), value)
        self.assertEqual(answer.status, 204, answer)

    def set_quota(self, name, **quota):
        answer = self.api.put(f"{V1}/{name}/quota", quota)
        self.assertEqual(answer.status, 200, answer)
        return answer.json["quota"]


def said(address, data):
    """All that a server says to these bytes, after which nothing more is sent."""
    with Wire(address) as wire:
        if wire.send(data):
            try:
                wire.socket.shutdown(socket.SHUT_WR)
            except OSError:
                pass
        return wire.rest()
