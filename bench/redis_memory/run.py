#!/usr/bin/env python3
"""What the server's memory setting holds, over Redis's protocol.

budget  10^7 small keys are loaded, then read and written in a mix, with --cache-bytes 1GiB: the
        most that the process ever has resident stays below that.
disk    A data set four times as large as --cache-bytes, read at random, beside a loop that does
        nothing but read pages at random from the same files. A GET is at most one read of the disk
        and a bit; how near that comes to the loop depends on the cores that are left for it.
"""
import argparse
import ctypes
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

MIB = 1 << 20
PIPELINE = 200
BINARY = os.path.join(os.path.dirname(__file__), "../../build/release/trellis")
READS_PER_GET_MAX = 1.3


class Server:
    """A `trellis serve` on a folder."""

    def __init__(self, folder, cache_bytes):
        self.folder = folder
        self.process = subprocess.Popen(
            [BINARY, "serve", "--data", folder, "--cache-bytes", str(cache_bytes), "--resp",
             "127.0.0.1:0", "--http", "127.0.0.1:0", "--log-level", "error"],
            stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if "redis://" in line:
                self.port = int(line.rsplit(":", 1)[1])
            if "Ctrl-C" in line:
                return
        sys.exit("the server did not come up")

    def connect(self):
        return Client(self.port)

    def status_bytes(self, name):
        with open(f"/proc/{self.process.pid}/status") as file:
            for line in file:
                if line.startswith(name + ":"):
                    return int(line.split()[1]) * 1024
        return 0

    def io(self):
        with open(f"/proc/{self.process.pid}/io") as file:
            return {name: int(value) for name, value in (line.split(": ") for line in file)}

    def cpu_s(self):
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.process.terminate()
        self.process.communicate(timeout=300)


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=300)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.reader = self.socket.makefile("rb", MIB)

    def say(self, commands):
        """A pipeline; its replies, bulk strings as they are, anything else as its line."""
        self.socket.sendall(b"".join(commands))
        return [self.reply() for _ in commands]

    def reply(self):
        line = self.reader.readline()
        if line[:1] == b"-" or not line:
            sys.exit(f"the server said {line!r}")
        if line[:1] != b"$" or line == b"$-1\r\n":
            return line
        return self.reader.read(int(line[1:]) + 2)


def command(*words):
    return b"*%d\r\n%s" % (len(words), b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))


def key_of(number):
    return b"key:%012d" % number


VALUES = random.Random(1).randbytes(MIB)  # slices of it are hard to compress, and cheap to make


def value_of(number, least, most):
    size = least + number * 2654435761 % (most - least + 1)
    at = number * 40503 % (MIB - most)
    return VALUES[at:at + size]


def load(server, keys, least, most):
    def part(first):
        client = server.connect()
        for begin in range(first * PIPELINE, keys, 2 * PIPELINE):
            client.say([command(b"SET", key_of(i), value_of(i, least, most))
                        for i in range(begin, min(begin + PIPELINE, keys))])

    began = time.monotonic()
    threads = [threading.Thread(target=part, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = server.connect().say([command(b"DBSIZE")])[0]
    if found != b":%d\r\n" % keys:
        sys.exit(f"loaded {keys} keys, and DBSIZE is {found!r}")
    return keys / (time.monotonic() - began)


def mixed(server, keys, seconds):
    """Reads and writes of all of it for so long; how many per second."""
    done = [0, 0]
    until = time.monotonic() + seconds

    def part(number):
        rng, client = random.Random(number), server.connect()
        while time.monotonic() < until:
            pipeline = []
            for _ in range(PIPELINE):
                key = rng.randrange(keys)
                chance = rng.random()
                if chance < 0.6:
                    pipeline.append(command(b"GET", key_of(key)))
                elif chance < 0.9:
                    pipeline.append(command(b"SET", key_of(key), value_of(key + 1, 16, 100)))
                elif chance < 0.97:
                    pipeline.append(command(b"HSET", b"h:%d" % (key % 1000), b"%d" % key, b"v"))
                else:
                    pipeline.append(command(b"DEL", b"h:%d" % (key % 1000)))
            client.say(pipeline)
            done[number] += PIPELINE

    threads = [threading.Thread(target=part, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / seconds


def many_clients(server, keys):
    subprocess.run(["redis-benchmark", "-p", str(server.port), "-c", "50", "-P", "16", "-n",
                    "100000", "-r", str(keys), "-d", "100", "-q", "-t",
                    "set,get,incr,lpush,sadd,hset,zadd,mset"],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def budget(folder, options):
    limit = options.budget_mib * MIB
    server = Server(folder, limit)
    print(f"budget: {options.keys} keys of 16 bytes, values of 16 to 100, "
          f"--cache-bytes {options.budget_mib}MiB")
    rate = load(server, options.keys, 16, 100)
    print(f"  loaded         {rate:10,.0f} SETs/s   resident "
          f"{server.status_bytes('VmRSS') / MIB:6.0f} MiB, at most "
          f"{server.status_bytes('VmHWM') / MIB:6.0f}", flush=True)
    seconds = 6 * options.seconds  # until the cache is full
    rate = mixed(server, options.keys, seconds)
    many_clients(server, options.keys)
    peak = server.status_bytes("VmHWM")
    print(f"  mixed, {seconds:3.0f} s   {rate:10,.0f} commands/s resident "
          f"{server.status_bytes('VmRSS') / MIB:6.0f} MiB, at most {peak / MIB:6.0f}", flush=True)
    server.stop()
    return judge("resident memory, of the budget", peak / limit, 1)


def table_files(folder):
    return [os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".sst")]


class NoPages:
    """with NoPages(folder): the kernel keeps nothing of the tables; reads are the disk's."""

    def __init__(self, folder):
        self.files = [os.open(path, os.O_RDONLY) for path in table_files(folder)]
        for fd in self.files:
            os.fdatasync(fd)  # what is not written yet cannot be forgotten
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while True:
            for fd in self.files:
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            if self.stop.wait(0.05):
                return

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()
        for fd in self.files:
            os.close(fd)


def in_threads(count, seconds, step):
    """How often step() ran, in all."""
    done = [0] * count
    until = time.monotonic() + seconds

    def part(number):
        run = step(number)
        while time.monotonic() < until:
            done[number] += run()

    threads = [threading.Thread(target=part, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done)


def raw_reads(folder, threads, seconds):
    """Pages of 4 KiB at random places of the tables, past the kernel's cache: reads per second."""
    files = [(os.open(path, os.O_RDONLY | os.O_DIRECT), os.path.getsize(path) // 4096)
             for path in table_files(folder)]
    weights = [pages for _, pages in files]

    def step(number):
        rng = random.Random(number)
        memory = ctypes.create_string_buffer(8192)
        start = -ctypes.addressof(memory) % 4096
        page = memoryview(memory)[start:start + 4096]

        def read():
            fd, pages = rng.choices(files, weights)[0]
            os.preadv(fd, [page], rng.randrange(pages) * 4096)
            return 1
        return read

    count = in_threads(threads, seconds, step)
    for fd, _ in files:
        os.close(fd)
    return count / seconds


def disk(folder, options):
    """One GET in flight on each connection, and as many threads of the raw loop."""
    cache = options.cache_mib * MIB
    keys = cache * 4 // 116
    server = Server(folder, cache)
    load(server, keys, 100, 100)
    server.stop()
    size = sum(map(os.path.getsize, table_files(folder)))
    print(f"disk: {keys} keys, {size / MIB:.0f} MiB of tables, --cache-bytes "
          f"{options.cache_mib}MiB, {options.connections} connections")
    server = Server(folder, cache)

    def gets(count):
        """By redis-benchmark, whose keys have the same form; per second."""
        began = time.monotonic()
        subprocess.run(["redis-benchmark", "-p", str(server.port), "-c", str(options.connections),
                        "-n", str(count), "-r", str(keys), "-q", "GET", "key:__rand_int__"],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return count / (time.monotonic() - began)

    count = int(gets(keys // 10) * options.seconds)  # fills the cache
    figures = []
    for _ in range(options.rounds):
        before, cpu = server.io(), server.cpu_s()
        with NoPages(folder):
            rate = gets(count)
        after, cpu = server.io(), server.cpu_s() - cpu
        raw = raw_reads(folder, options.connections, options.seconds)
        # Sockets are not read with read().
        reads = (after["syscr"] - before["syscr"]) / count
        kib = (after["read_bytes"] - before["read_bytes"]) / count / 1024
        figures.append(reads)
        print(f"  {rate:8,.0f} GETs/s, each {reads:.2f} reads, {kib:.1f} KiB of the disk, "
              f"{cpu / count * 1e6:.0f} us CPU; raw {raw:8,.0f} reads/s: "
              f"{rate * reads / raw:.2f} of them", flush=True)
    server.stop()
    return judge("reads of the tables per GET", statistics.median(figures), READS_PER_GET_MAX)


def judge(what, figure, most):
    good = figure <= most
    print(f"{'ok    ' if good else 'MISSED'}  {what}: {figure:.2f}, at most {most}", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=10_000_000)
    parser.add_argument("--budget-mib", type=int, default=1024)
    parser.add_argument("--cache-mib", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=10, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--only", choices=["budget", "disk"])
    options = parser.parse_args()
    good = True
    for part in (budget, disk):
        if options.only not in (None, part.__name__):
            continue
        folder = tempfile.mkdtemp(prefix="trellis-bench-", dir=os.environ.get("TMPDIR"))
        try:
            good = part(os.path.join(folder, "store"), options) and good
        finally:
            shutil.rmtree(folder)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
