#!/usr/bin/env python3
"""What commands on large keys cost as these grow, in Trellis and in redis-server in one run.

Each command runs on keys of 10^3 to 10^6 members, pipeline 1. From the first size to the last it
may become 3 times slower, and at no size be below 0.3 of redis-server. With --without, a build that
keeps no fences (redis/fences.h), writes may cost 1.25 times what they do there.
"""
import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "redis"))
import run as redis_bench  # noqa: E402: its folder is named above

SIZES = (1_000, 10_000, 100_000, 1_000_000)
MEMBERS = 100_000  # of all keys of a size, at least: what is popped leaves most of them
SLOWER_MAX = 3
RATIO_MIN = 0.3
WRITE_MAX = 1.25


def member(i):
    return b"member:%012d" % i


# How a key of each kind is filled: the command, and the arguments of member i.
KINDS = {
    "zset": (b"ZADD", lambda i: [b"%d" % i, member(i)]),
    "lex": (b"ZADD", lambda i: [b"1", member(i)]),
    "set": (b"SADD", lambda i: [member(i)]),
    "hash": (b"HSET", lambda i: [member(i), b"value"]),
    "list": (b"RPUSH", lambda i: [member(i)]),
}


class Row:
    """A command of redis-benchmark. KEY is a key of its kind, HALF half the size, ANY a member.
    One in so many requests: of what redis-server walks."""

    def __init__(self, kind, *words, one_in=1):
        self.kind = kind
        self.one_in = one_in
        self.words = words
        self.name = " ".join(words)

    def arguments(self, size):
        keys = max(MEMBERS // size, 1)
        filled = {"KEY": f"{self.kind}:{size}:{0:012d}" if keys == 1 else
                  f"{self.kind}:{size}:__rand_int__",
                  "HALF": str(size // 2), "HALF+9": str(size // 2 + 9)}
        words = [filled.get(word, word) for word in self.words]
        # One range for all numbers: keys where there are several, members where there is one.
        any_member = "member:__rand_int__" if keys == 1 else member(size // 3).decode()
        words = [word.replace("ANY", any_member) for word in words]
        return words, keys if keys > 1 else size

    def run(self, server, size, requests):
        words, numbers = self.arguments(size)
        database = []
        if self.kind == "keys":
            database = ["--dbnum", str(1 + SIZES.index(size))]
        return server.measure(redis_bench.Row(self.name, None, database + words, keys=numbers), 1,
                              requests // self.one_in)


ROWS = [
    Row("set", "SRANDMEMBER", "KEY"),
    Row("set", "SPOP", "KEY"),
    Row("hash", "HRANDFIELD", "KEY"),
    Row("keys", "RANDOMKEY"),
    Row("zset", "ZRANDMEMBER", "KEY"),
    Row("zset", "ZRANK", "KEY", "ANY"),
    Row("zset", "ZREVRANK", "KEY", "ANY"),
    Row("zset", "ZCOUNT", "KEY", "HALF", "+inf"),
    Row("lex", "ZLEXCOUNT", "KEY", "[ANY", "+"),
    Row("zset", "ZRANGE", "KEY", "HALF", "HALF+9"),
    Row("zset", "ZREVRANGE", "KEY", "HALF", "HALF+9"),
    Row("zset", "ZRANGEBYSCORE", "KEY", "-inf", "+inf", "LIMIT", "HALF", "10",
        one_in=20),
    Row("zset", "ZREMRANGEBYRANK", "KEY", "HALF", "HALF"),
    Row("zset", "ZPOPMIN", "KEY"),
    Row("zset", "ZPOPMAX", "KEY"),
    Row("list", "LINDEX", "KEY", "HALF"),
    Row("list", "LRANGE", "KEY", "HALF", "HALF+9"),
    Row("list", "LINSERT", "KEY", "AFTER", member(0).decode(), "new"),
    Row("list", "LREM", "KEY", "1", "new"),
    Row("list", "LPOP", "KEY"),
    Row("list", "RPOP", "KEY"),
]
# Of new members, to one key.
WRITES = [
    ("zadd", ["ZADD", "written", "__rand_int__", "member:__rand_int__"]),
    ("sadd", ["SADD", "written", "member:__rand_int__"]),
    ("rpush", ["RPUSH", "written", "member:__rand_int__"]),
]


def load(server, kinds):
    step = 100
    for size in SIZES:
        for key in range(max(MEMBERS // size, 1)):
            for kind in kinds:
                command, item = KINDS[kind]
                name = f"{kind}:{size}:{key:012d}".encode()
                server.send([command, name] + [part for i in range(first, first + step)
                                               for part in item(i)]
                            for first in range(0, size, step))


def load_keys(server):
    """A database of so many keys for each size, whose names are skewed."""
    for number, size in enumerate(SIZES):
        server.send([[b"SELECT", b"%d" % (1 + number)]] +
                    [[b"MSET"] + [part for i in range(first, first + 100)
                                  for part in (b"%s:%d" % (b"user" if i % 10 else b"a", i), b"v")]
                     for first in range(0, size, 100)])


def run_row(row, requests, rounds, redis, trellis):
    medians = {redis: [], trellis: []}
    worst = 9.9
    for size in SIZES:
        figures = {redis: [], trellis: []}
        for number in range(rounds):
            for server in (redis, trellis) if number % 2 == 0 else (trellis, redis):
                figures[server].append(row.run(server, size, requests)[0])
        for server in figures:
            medians[server].append(statistics.median(figures[server]))
        worst = min(worst, statistics.median(
            ours / theirs for ours, theirs in zip(figures[trellis], figures[redis])))
    slower = medians[trellis][0] / medians[trellis][-1]
    missed = slower > SLOWER_MAX or worst < RATIO_MIN
    print(f"| {row.name} | " + " | ".join(f"{rate:,.0f}" for rate in medians[trellis]) + " | " +
          " | ".join(f"{rate:,.0f}" for rate in medians[redis]) +
          f" | {slower:.2f} | {worst:.2f} |{' MISSED' if missed else ''}", flush=True)
    return missed


def run_write(name, words, requests, rounds, without, trellis):
    """CPU and time per command, of the build with fences to the one without."""
    row = redis_bench.Row(name, None, words, keys=1_000_000_000)
    ratios = []
    for number in range(rounds):
        figures = {}
        for server in (without, trellis) if number % 2 == 0 else (trellis, without):
            server.send([[b"DEL", b"written"]])
            server.measure(row, 1, requests)  # so many that it has fences
            figures[server] = server.measure(row, 1, requests)
        ratios.append((figures[without][0] / figures[trellis][0],
                       figures[trellis][1] / figures[without][1]))
    time_ratio, cpu_ratio = (statistics.median(values) for values in zip(*ratios))
    missed = time_ratio > WRITE_MAX
    print(f"| {name} | {time_ratio:.2f} | {cpu_ratio:.2f} |{' MISSED' if missed else ''}",
          flush=True)
    return missed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trellis", default="build/release/trellis", help="the program")
    parser.add_argument("--without", help="one that keeps no fences: for the cost of writes")
    parser.add_argument("--rows", default="", help="commands, with commas; default: all")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--writes", type=int, default=200_000)
    parser.add_argument("--folder", help="where the data goes; default: a temporary one")
    options = parser.parse_args()
    rows = [row for row in ROWS
            if not options.rows or row.words[0].lower() in options.rows.lower().split(",")]
    folder = tempfile.mkdtemp(prefix="bench_redis.", dir=options.folder)
    servers = []
    missed = 0
    try:
        redis = redis_bench.start_redis(folder)
        servers.append(redis)
        trellis = redis_bench.start_trellis(folder, options.trellis, [])
        servers.append(trellis)
        kinds = [kind for kind in KINDS if any(row.kind == kind for row in rows)]
        for server in servers:
            start = time.monotonic()
            load(server, kinds)
            if any(row.kind == "keys" for row in rows):
                load_keys(server)
            server.rest()
            print(f"{server.name}: loaded in {time.monotonic() - start:.0f} s", flush=True)
        sizes = " | ".join(f"10^{len(str(size)) - 1}" for size in SIZES)
        print(f"\npipeline 1: {redis_bench.CLIENTS} clients, {options.requests:,} requests, "
              f"{options.rounds} rounds; requests/s of ours and of redis-server\n")
        print(f"| | ours {sizes} | redis {sizes} | times slower | least ratio |")
        print("|---|" + "---|" * (2 * len(SIZES) + 2))
        for row in rows:
            missed += run_row(row, options.requests, options.rounds, redis, trellis)
        if options.without:
            # Both empty: what else a server holds is written and compacted, too.
            fresh = []
            for number, program in enumerate((options.without, options.trellis)):
                os.mkdir(os.path.join(folder, str(number)))
                fresh.append(redis_bench.start_trellis(os.path.join(folder, str(number)), program,
                                                       []))
                servers.append(fresh[-1])
            print(f"\nnew members, {options.writes:,} requests: to a build without fences\n")
            print("| | time | CPU |\n|---|---|---|")
            for name, words in WRITES:
                missed += run_write(name, words, options.writes, options.rounds, *fresh)
    finally:
        for server in servers:
            server.stop()
        shutil.rmtree(folder)
    if missed:
        sys.exit(f"\n{missed} targets missed")


if __name__ == "__main__":
    main()
