#!/usr/bin/env python3
"""redis-server (AOF, everysec) and Trellis (everysec) under redis-benchmark, in turns.

Each row is a command, each figure the median of its rounds. The ratio of requests per second is
judged; the server's CPU per command, of all its threads, says what noise in the machine hides.
"""
import argparse
import csv
import io
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from bench_server import Server, free_port  # noqa: E402: its folder is named above

KEYS = 1_000_000
HASHES = 100_000
POPPED = 1_000_000
BITMAPS = 10_000
HLLS = 10_000
PLACES = 100_000
VALUE = b"x" * 100
CLIENTS = 50

# What a row promises: at pipeline 1 all the same, at pipeline 32 by what it does.
READ, SINGLE, COMPOUND, LATER = "read", "single", "compound", "later"
PIPELINED_TARGETS = {READ: 0.6, SINGLE: 0.45, COMPOUND: 0.3}
ALONE_TARGET = 0.95


class Row:
    def __init__(self, name, kind, arguments, keys=KEYS, before=None):
        self.name = name
        self.kind = kind
        self.arguments = arguments  # of redis-benchmark, at its end
        self.keys = keys
        self.before = before  # what is loaded, once per pipeline

    def target(self, pipeline):
        if self.kind == LATER:
            return None
        if pipeline == 1:
            return ALONE_TARGET
        return PIPELINED_TARGETS[self.kind] if pipeline == 32 else None


def preset(name):
    return ["-t", name]


def members(command, key, item):
    """Everything that is popped: POPPED members of one key."""

    def load(server):
        server.send([[b"DEL", key]])
        step = 100
        server.send([command, key] + [part for i in range(first, first + step) for part in item(i)]
                    for first in range(0, POPPED, step))

    return load


def load_list(server):
    server.send([[b"DEL", b"mylist"]])
    server.send([b"RPUSH", b"mylist"] + [VALUE] * 100 for _ in range(POPPED // 100))


def load_bitmaps(server):
    """Of 1,000 bits each, every third of them set, by BITFIELD: a key of one fragment."""
    fields = [part for i in range(16)
              for part in (b"SET", b"i64", b"#%d" % i, b"5270498306774157604")]
    server.send([b"BITFIELD", b"bits:%012d" % i] + fields for i in range(BITMAPS))


def load_places(server):
    """In a square of 10 by 10 degrees: a circle of 5 km has about six."""
    dice = random.Random(1)
    step = 100
    server.send(
        [b"GEOADD", b"places"] +
        [part for i in range(first, first + step)
         for part in (b"%.6f" % (10 + 10 * dice.random()), b"%.6f" % (45 + 10 * dice.random()),
                      b"place:%012d" % i)] for first in range(0, PLACES, step))


def load_entries(server):
    """POPPED entries that nobody has read yet."""
    server.send([[b"DEL", b"entries"]])
    server.send([b"XADD", b"entries", b"%d-0" % i, b"field", VALUE] for i in range(1, POPPED + 1))
    server.send([[b"XGROUP", b"CREATE", b"entries", b"group", b"0"]])


def load_pending(server):
    load_entries(server)
    step = 1000
    server.send([b"XREADGROUP", b"GROUP", b"group", b"one", b"COUNT", b"%d" % step, b"STREAMS",
                 b"entries", b">"] for _ in range(POPPED // step))


ROWS = [
    Row("set", SINGLE, preset("set")),
    Row("get", READ, preset("get")),
    Row("incr", SINGLE, preset("incr")),
    Row("lpush", COMPOUND, preset("lpush"), before=lambda s: s.send([[b"DEL", b"mylist"]])),
    Row("rpush", COMPOUND, preset("rpush")),
    Row("lpop", COMPOUND, preset("lpop"), before=load_list),
    Row("sadd", COMPOUND, preset("sadd")),
    Row("hset", COMPOUND, preset("hset")),
    Row("spop", LATER, preset("spop"),
        before=members(b"SADD", b"myset", lambda i: [b"element:%012d" % i])),
    Row("zadd", COMPOUND, preset("zadd")),
    Row("zpopmin", LATER, preset("zpopmin"),
        before=members(b"ZADD", b"myzset", lambda i: [b"%d" % i, b"element:%012d" % i])),
    Row("lrange_100", READ, preset("lrange_100")),
    Row("mset", COMPOUND, preset("mset")),
    Row("hgetall", READ, ["HGETALL", "hash:__rand_int__"], keys=HASHES),
    Row("hmget", READ, ["HMGET", "hash:__rand_int__", "field1", "field5", "field9"], keys=HASHES),
    Row("zrangebyscore", READ,
        ["ZRANGEBYSCORE", "scores", "__rand_int__", "+inf", "LIMIT", "0", "10"]),
    Row("expire", COMPOUND, ["EXPIRE", "key:__rand_int__", "3600"]),
    # A number by chance has zeros in front, and is no offset.
    Row("setbit", COMPOUND, ["SETBIT", "bit:__rand_int__", "999", "1"]),
    Row("bitcount", READ, ["BITCOUNT", "bits:__rand_int__"], keys=BITMAPS, before=load_bitmaps),
    Row("pfadd", COMPOUND, ["PFADD", "hll:__rand_int__", "element:__rand_int__"], keys=HLLS),
    Row("geosearch", READ,
        ["GEOSEARCH", "places", "FROMMEMBER", "place:__rand_int__", "BYRADIUS", "5", "km"],
        keys=PLACES, before=load_places),
    Row("xadd", COMPOUND, ["XADD", "stream", "*", "field", VALUE.decode()],
        before=lambda s: s.send([[b"DEL", b"stream"]])),
    Row("xrange", READ, ["XRANGE", "entries", "__rand_int__", "+", "COUNT", "10"],
        before=load_entries),
    Row("xreadgroup", COMPOUND,
        ["XREADGROUP", "GROUP", "group", "one", "COUNT", "1", "STREAMS", "entries", ">"],
        before=load_entries),
    Row("xack", COMPOUND, ["XACK", "entries", "group", "__rand_int__"], before=load_pending),
]


def read_reply(file):
    """Its first line; the rest of it is read too."""
    line = file.readline()
    if line[:1] == b"$" and line[1:2] != b"-":
        file.read(int(line[1:]) + 2)
    elif line[:1] == b"*":
        for _ in range(int(line[1:])):
            read_reply(file)
    return line


class RedisServer(Server):
    """Of Redis's protocol."""

    def send(self, commands):
        """Pipelined, a thousand at a time; every reply is looked at."""
        with socket.create_connection(("127.0.0.1", self.port)) as stream:
            file = stream.makefile("rb")

            def flush(batch):
                stream.sendall(b"".join(batch))
                for _ in batch:
                    line = read_reply(file)
                    if not line or line.startswith(b"-"):
                        sys.exit(f"{self.name}, while loading: {line!r}")

            batch = []
            for parts in commands:
                batch.append(b"*%d\r\n" % len(parts) +
                             b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts))
                if len(batch) == 1000:
                    flush(batch)
                    batch = []
            flush(batch)

    def load(self):
        self.send([b"SET", b"key:%012d" % i, VALUE] for i in range(KEYS))
        self.send([b"SET", b"counter:%012d" % i, b"%d" % i] for i in range(KEYS))
        fields = [part for i in range(10) for part in (b"field%d" % i, b"value%d" % i)]
        self.send([b"HSET", b"hash:%012d" % i] + fields for i in range(HASHES))
        members(b"ZADD", b"scores", lambda i: [b"%d" % i, b"member:%d" % i])(self)
        members(b"SADD", b"myset", lambda i: [b"element:%012d" % i])(self)
        members(b"ZADD", b"myzset", lambda i: [b"%d" % i, b"element:%012d" % i])(self)
        members(b"HSET", b"myhash", lambda i: [b"element:%012d" % i, VALUE])(self)

    def measure(self, row, pipeline, requests):
        """Requests per second, CPU microseconds per request."""
        before_us = self.cpu_us()
        result = subprocess.run(
            ["redis-benchmark", "-p", str(self.port), "-c", str(CLIENTS), "-d", str(len(VALUE)),
             "-r", str(row.keys), "-n", str(requests), "-P", str(pipeline), "--csv"] +
            row.arguments, capture_output=True, text=True, check=False)
        rows = [line for line in csv.reader(io.StringIO(result.stdout)) if len(line) > 1]
        # The last line: what a row needs first (LRANGE a list) has lines of its own.
        if result.returncode != 0 or len(rows) < 2 or "rror" in result.stdout + result.stderr:
            sys.exit(f"redis-benchmark on {self.name}, {row.name}:\n"
                     f"{result.stdout}{result.stderr}")
        return float(rows[-1][1]), (self.cpu_us() - before_us) / requests


def start_redis(folder):
    port = free_port()
    data = os.path.join(folder, "redis")
    os.mkdir(data)
    return RedisServer("redis-server",
                  ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--dir", data,
                   "--save", "", "--appendonly", "yes", "--appendfsync", "everysec",
                   "--auto-aof-rewrite-percentage", "0"], port, data + ".log")


def start_trellis(folder, binary, more):
    port = free_port()
    data = os.path.join(folder, "trellis")
    return RedisServer("trellis",
                  [binary, "serve", "--data", data, "--resp", f"127.0.0.1:{port}", "--http",
                   f"127.0.0.1:{free_port()}", "--durability", "everysec"] + more, port,
                  data + ".log")


def run_row(row, pipeline, requests, rounds, redis, trellis):
    for server in (redis, trellis):
        if row.before:
            row.before(server)
        server.rest()  # what the row before has left to do is not its own
        # What it learns by being asked, it learns before, unless that takes what was loaded.
        if row.kind == READ or not row.before:
            server.measure(row, pipeline, requests)
    figures = {redis: [], trellis: []}
    for number in range(rounds):
        for server in (redis, trellis) if number % 2 == 0 else (trellis, redis):
            figures[server].append(server.measure(row, pipeline, requests))
    (redis_rate, redis_cpu), (rate, cpu) = (
        [statistics.median(values) for values in zip(*figures[server])]
        for server in (redis, trellis))
    # Neighbours in one round share its noise.
    ratio = statistics.median(ours[0] / theirs[0]
                              for ours, theirs in zip(figures[trellis], figures[redis]))
    target = row.target(pipeline)
    missed = target is not None and ratio < target
    print(f"| {row.name} | {rate:,.0f} | {redis_rate:,.0f} | {ratio:.2f} | {cpu:.2f} | "
          f"{redis_cpu:.2f} | {cpu / redis_cpu:.2f} | "
          f"{'' if target is None else target}{' MISSED' if missed else ''} |", flush=True)
    return missed


def main():
    names = [row.name for row in ROWS]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trellis", default="build/release/trellis", help="the program")
    parser.add_argument("--rows", default=",".join(names), help="of: " + " ".join(names))
    parser.add_argument("--pipelines", default="1,16,32")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=float, default=1.0, help="times the usual number")
    parser.add_argument("--folder", help="where the data goes; default: a temporary one")
    parser.add_argument("--serve", default="", help="more arguments of trellis serve")
    options = parser.parse_args()
    wanted = options.rows.split(",")
    for name in wanted:
        if name not in names:
            parser.error(f"no row {name!r}; there are: {' '.join(names)}")
    folder = tempfile.mkdtemp(prefix="bench_redis.", dir=options.folder)
    servers = []
    missed = 0
    try:
        servers = [start_redis(folder),
                   start_trellis(folder, options.trellis, options.serve.split())]
        for server in servers:
            start = time.monotonic()
            server.load()
            server.rest()
            print(f"{server.name}: loaded in {time.monotonic() - start:.0f} s", flush=True)
        for pipeline in map(int, options.pipelines.split(",")):
            requests = int((100_000 if pipeline == 1 else 300_000) * options.requests)
            print(f"\npipeline {pipeline}: {CLIENTS} clients, {requests:,} requests, "
                  f"{options.rounds} rounds\n")
            print("| | requests/s ours | redis | ratio | CPU us ours | redis | ratio | target |")
            print("|---|---|---|---|---|---|---|---|")
            for row in ROWS:
                if row.name in wanted:
                    missed += run_row(row, pipeline, requests, options.rounds, *servers)
    finally:
        for server in servers:
            server.stop()
        shutil.rmtree(folder)
    if missed:
        sys.exit(f"\n{missed} targets missed")


if __name__ == "__main__":
    main()
