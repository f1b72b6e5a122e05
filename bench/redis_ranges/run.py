#!/usr/bin/env python3
"""What ranges cost the server of Redis's protocol.

Three servers of ours take turns in one run: one that counts nothing of its ranges, one as it is by
default, and one whose ranges are split and merged every 100 ms. The ratio of requests per second is
judged against 0.9 for the last to the second, that of CPU per command against 1.05 for the second
to the first; neighbours in a round share its noise.
"""
import argparse
import http.client
import json
import os
import random
import statistics
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "redis"))
import run as redis_bench  # noqa: E402: its folder is named above

ROWS = ("set", "get", "incr", "hset", "lrange_100", "zrangebyscore", "mset")
EVERY_S = 0.1
KEYS = 1_000_000


class Changes(threading.Thread):
    """Splits at a key by chance, and merges it again, until it is told to stop."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.connection = http.client.HTTPConnection("127.0.0.1", port)
        self.stopped = threading.Event()
        self.random = random.Random(1)
        self.done = 0

    def post(self, path, body):
        self.connection.request("POST", path, json.dumps(body),
                                {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status == 200:
            self.done += 1
        elif answer.status not in (400, 409):  # it begins there already, or is the last one
            sys.exit(f"POST {path} {body}: {answer.status} {text!r}")

    def run(self):
        key = None
        while not self.stopped.wait(EVERY_S):
            if key is None:
                name = b"key:%012d" % self.random.randrange(KEYS)
                key = (b"x\0\0\0dm\x010" + name).hex()
                self.post("/v1/ranges/split", {"key": key, "sticky_s": 0})
            else:
                self.post("/v1/ranges/merge", {"key": key})
                key = None


def start(folder, binary, name, more):
    os.mkdir(os.path.join(folder, name))
    server = redis_bench.start_trellis(os.path.join(folder, name), binary, more)
    server.name = name
    return server


def http_port(server):
    arguments = server.process.args
    return int(arguments[arguments.index("--http") + 1].rsplit(":", 1)[1])


def measure(row, pipeline, requests, server, changed):
    if server is not changed:
        return server.measure(row, pipeline, requests), 0
    changes = Changes(http_port(server))
    changes.start()
    figures = server.measure(row, pipeline, requests)
    changes.stopped.set()
    changes.join()
    return figures, changes.done


def run_row(row, pipeline, requests, rounds, servers):
    uncounted, usual, changed = servers
    figures = {server: [] for server in servers}
    changes = 0
    for number in range(rounds):
        for server in servers if number % 2 == 0 else servers[::-1]:
            found, done = measure(row, pipeline, requests, server, changed)
            figures[server].append(found)
            changes += done
    rate = statistics.median(a[0] / b[0] for a, b in zip(figures[changed], figures[usual]))
    cpu = statistics.median(a[1] / b[1] for a, b in zip(figures[usual], figures[uncounted]))
    rates = [statistics.median(one[0] for one in figures[server]) for server in servers]
    costs = [statistics.median(one[1] for one in figures[server]) for server in servers]
    print(f"| {row.name} | " + " | ".join(f"{one:,.0f}" for one in rates) + f" | {rate:.2f} | " +
          " | ".join(f"{one:.2f}" for one in costs) + f" | {cpu:.3f} | {changes} |", flush=True)
    return rate, cpu


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trellis", default="build/release/trellis")
    parser.add_argument("--pipeline", type=int, default=32)
    parser.add_argument("--requests", type=int, default=400_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", default=",".join(ROWS))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="trellis-bench-") as folder:
        servers = [start(folder, options.trellis, name, more) for name, more in
                   (("uncounted", ["--range-sampling", "0"]), ("usual", []), ("changed", []))]
        try:
            for server in servers:
                began = time.monotonic()
                server.load()
                server.rest()
                print(f"{server.name}: loaded in {time.monotonic() - began:.0f} s", flush=True)
            print(f"\npipeline {options.pipeline}, {options.requests:,} requests, "
                  f"{options.rounds} rounds\n")
            print("| | requests/s uncounted | usual | changed | changed to usual | "
                  "CPU us uncounted | usual | changed | usual to uncounted | splits and merges |")
            print("|---|---|---|---|---|---|---|---|---|---|")
            found = [run_row(row, options.pipeline, options.requests, options.rounds, servers)
                     for row in redis_bench.ROWS if row.name in options.rows.split(",")]
        finally:
            for server in servers:
                server.stop()
    rate = statistics.geometric_mean(one[0] for one in found)
    cpu = statistics.geometric_mean(one[1] for one in found)
    missed = rate < 0.9 or cpu > 1.05
    print(f"\nsplits and merges every {EVERY_S * 1000:.0f} ms: {rate:.2f} of the requests per "
          f"second (target 0.9)\ncounting: {cpu:.3f} of the CPU per command (target 1.05)"
          f"{': MISSED' if missed else ''}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
