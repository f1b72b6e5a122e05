#!/usr/bin/env python3
"""BITCOUNT of a bitmap of 512 MiB, and BITOP of three, beside redis-server in one run.

Dense bitmaps have every byte, sparse ones 10,000 bits by chance: what Redis has to go through as
well. Seconds are the medians of rounds in turns; 0.5 of redis-server's speed is promised, and that
the server's memory stays within what it may cache: it is told by how much it grew while it worked.
"""
import argparse
import os
import random
import re
import socket
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "redis"))
import run as redis_bench  # noqa: E402: its folder is named above

MIB = 1024 * 1024
PIECE = MIB
TARGET = 0.5
SPARSE_BITS = 10_000


class Client:
    def __init__(self, server):
        self.stream = socket.create_connection(("127.0.0.1", server.port))
        self.file = self.stream.makefile("rb")

    def call(self, *parts):
        self.stream.sendall(b"*%d\r\n" % len(parts) +
                            b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts))
        line = self.file.readline()
        if line[:1] != b":":
            sys.exit(f"{parts[0]!r}: {line!r}")
        return int(line[1:])


def load_dense(client, name, size_bytes, seed):
    dice = random.Random(seed)
    client.call(b"SETBIT", name, b"%d" % (size_bytes * 8 - 1), b"1")  # of ours: a bitmap at once
    for offset in range(0, size_bytes, PIECE):
        piece = dice.randbytes(min(PIECE, size_bytes - offset))
        client.call(b"SETRANGE", name, b"%d" % offset, piece)


def load_sparse(client, name, size_bytes, seed):
    dice = random.Random(seed)
    client.call(b"SETBIT", name, b"%d" % (size_bytes * 8 - 1), b"1")
    for _ in range(SPARSE_BITS):
        client.call(b"SETBIT", name, b"%d" % dice.randrange(size_bytes * 8), b"1")


def memory_bytes(server, field):
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as status:
        return int(re.search(rf"^{field}:\s+(\d+) kB$", status.read(), re.M)[1]) * 1024


def reset_peak(server):
    with open(f"/proc/{server.process.pid}/clear_refs", "w", encoding="ascii") as file:
        file.write("5")


def measure(server, client, command):
    """Seconds, what it answered, and how far its memory was at most above where it began."""
    server.rest()
    reset_peak(server)
    before = memory_bytes(server, "VmRSS")
    began = time.monotonic()
    answer = client.call(*command)
    took_s = time.monotonic() - began
    return took_s, answer, memory_bytes(server, "VmHWM") - before


def run_row(name, command, rounds, redis, trellis, clients):
    figures = {redis: [], trellis: []}
    for number in range(rounds):
        for server in (redis, trellis) if number % 2 == 0 else (trellis, redis):
            figures[server].append(measure(server, clients[server], command))
    if len({one[1] for found in figures.values() for one in found}) != 1:
        sys.exit(f"{name}: the answers differ: {figures}")
    theirs, ours = (statistics.median(one[0] for one in figures[s]) for s in (redis, trellis))
    ratio = statistics.median(a[0] / b[0] for a, b in zip(figures[redis], figures[trellis]))
    grown = max(one[2] for one in figures[trellis])
    missed = ratio < TARGET
    print(f"| {name} | {ours:.3f} | {theirs:.3f} | {ratio:.2f}{' MISSED' if missed else ''} | "
          f"{grown / MIB:.0f} |", flush=True)
    return missed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trellis", default="build/release/trellis")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mib", type=int, default=512)
    options = parser.parse_args()
    missed = False
    with tempfile.TemporaryDirectory(prefix="trellis-bench-") as folder:
        servers = [redis_bench.start_redis(folder),
                   redis_bench.start_trellis(folder, options.trellis, [])]
        try:
            clients = {server: Client(server) for server in servers}
            print("| | s ours | redis | ratio | MiB more at most |\n|---|---|---|---|---|")
            for kind, load in (("dense", load_dense), ("sparse", load_sparse)):
                names = [b"%s%d" % (kind.encode(), i) for i in range(3)]
                for server in servers:
                    for i, key in enumerate(names):
                        load(clients[server], key, options.mib * MIB, i)
                rows = [(f"{kind} BITCOUNT", (b"BITCOUNT", names[0]))]
                rows += [(f"{kind} BITOP {name}", (b"BITOP", name.encode(), b"to", *names))
                         for name in ("AND", "OR", "XOR")]
                for name, command in rows:
                    missed |= run_row(name, command, options.rounds, *servers, clients)
        finally:
            for server in servers:
                server.stop()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
