#!/usr/bin/env python3
"""Trellis' catalog through its REST API, and the same in bare PostgreSQL (schema.sql), in turns.

Ours is asked by api_load over HTTP, PostgreSQL by pgbench with prepared statements. Neither
waits for the disk: durability everysec, synchronous_commit off. Each figure is the median of its
rounds. The ratio of requests per second is judged; the server's CPU per request, of all its
threads or processes, says what noise in the machine hides.
"""
import argparse
import base64
import http.client
import json
import os
import pwd
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from bench_server import Server, free_port, schedstat_us  # noqa: E402: its folder is named above

POSTGRES = "/usr/lib/postgresql/15/bin"
CLIENTS = 30
LISTED = 10_000
COLUMNS = 5
TICK_US = 1_000_000 / os.sysconf("SC_CLK_TCK")
SCHEMA = "/api/metalakes/{}/catalogs/hive/schemas/{}"

PLACE = """FROM metalakes m JOIN catalogs c ON c.metalake = m.id JOIN schemas s ON s.catalog = c.id
 {} WHERE m.name = '{}' AND c.name = 'hive' AND s.name = '{}'"""


def place(metalake, schema, more=""):
    return PLACE.format(more, metalake, schema)


ANN = "Basic " + base64.b64encode(b"ann:dummy").decode()


def columns(count):
    return [{"name": f"column{i}", "type": "string", "comment": f"what column {i} is"}
            for i in range(count)]


def create_body(count):
    return json.dumps({"name": "t{n}", "comment": "a table", "columns": columns(count),
                       "properties": {"format": "parquet"}})


def updates_body(*updates):
    return json.dumps({"updates": list(updates)})


class Trellis(Server):
    def __init__(self, folder, options, name="trellis", more=()):
        port = free_port()
        data = os.path.join(folder, name)
        super().__init__(name, [options.trellis, "serve", "--data", data, "--http",
                                f"127.0.0.1:{port}", "--resp", f"127.0.0.1:{free_port()}",
                                "--durability", "everysec", *more, *options.serve.split()],
                         port, data + ".log")
        self.load_program = os.path.join(os.path.dirname(options.trellis), "api_load")
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def memory_mib(self, field):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return int(re.search(rf"^{field}:\s+(\d+)", status.read(), re.M)[1]) / 1024

    def forget_peak(self):
        with open(f"/proc/{self.process.pid}/clear_refs", "w", encoding="ascii") as out:
            out.write("5")

    def ask(self, method, path, body=None):
        self.connection.request(method, path, None if body is None else json.dumps(body),
                                {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            sys.exit(f"{method} {path}: {answer.status} {text.decode()}")
        return json.loads(text)

    def load(self, method, path, **options):
        """(requests per second, CPU us per request, median latency in us)"""
        command = [self.load_program, str(self.port), method, path]
        for name, value in options.items():
            command += [f"--{name}", str(value)]
        before_us = self.cpu_us()
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            sys.exit(f"{method} {path}:\n{result.stderr}")
        requests, seconds, _, _, median_us, _ = map(float, result.stdout.split())
        return requests / seconds, (self.cpu_us() - before_us) / requests, median_us

    def make_schema(self, metalake, schemas):
        self.ask("POST", "/api/metalakes", {"name": metalake, "comment": "a lake"})
        self.ask("POST", f"/api/metalakes/{metalake}/catalogs",
                 {"name": "hive", "type": "relational", "provider": "hive"})
        for schema in schemas:
            self.ask("POST", f"/api/metalakes/{metalake}/catalogs/hive/schemas", {"name": schema})

    def make_tables(self, metalake, schema, count, with_columns):
        self.load("POST", SCHEMA.format(metalake, schema) + "/tables",
                  body=create_body(with_columns), requests=count)

    def make_reader(self, metalake, schema, user):
        """A user who may see the tables of a schema, because of a role."""
        lake = f"/api/metalakes/{metalake}"
        allowed = [{"name": name, "condition": "allow"}
                   for name in ("use_catalog", "use_schema", "select_table")]
        objects = [{"fullName": schema.split(".")[0], "type": "catalog",
                    "privileges": allowed[:1]},
                   {"fullName": schema, "type": "schema", "privileges": allowed[1:]}]
        self.ask("POST", lake + "/users", {"name": user})
        self.ask("POST", lake + "/roles", {"name": "reader", "properties": {},
                                           "securableObjects": objects})
        self.ask("PUT", f"{lake}/permissions/users/{user}/grant", {"roleNames": ["reader"]})


class Postgres(Server):
    def __init__(self, folder):
        port = free_port()
        data = os.path.join(folder, "postgres")
        os.mkdir(data)
        user = []
        if os.geteuid() == 0:  # which it refuses to run as
            account = pwd.getpwnam("postgres")
            os.chown(data, account.pw_uid, account.pw_gid)
            os.chmod(folder, 0o755)
            user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"]
        subprocess.run(user + [f"{POSTGRES}/initdb", "-D", data, "-U", "bench", "-A", "trust",
                               "--locale=C.UTF-8", "--encoding=UTF8"],
                       stdout=subprocess.DEVNULL, check=True, cwd="/")
        settings = {"port": port, "listen_addresses": "127.0.0.1", "unix_socket_directories": data,
                    "synchronous_commit": "off", "shared_buffers": "512MB", "jit": "off",
                    "max_wal_size": "4GB", "checkpoint_timeout": "30min"}
        more = [part for item in settings.items() for part in ("-c", "{}={}".format(*item))]
        super().__init__("postgres", user + [f"{POSTGRES}/postgres", "-D", data] + more, port,
                         data + ".log")
        self.folder = folder
        deadline = time.monotonic() + 60
        while subprocess.run([f"{POSTGRES}/pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)],
                             check=False).returncode != 0:
            if time.monotonic() > deadline:
                sys.exit("postgres does not answer")
            time.sleep(0.1)  # between looks

    def connection(self):
        return ["-h", "127.0.0.1", "-p", str(self.port), "-U", "bench"]

    def stop(self):
        self.process.send_signal(2)  # fast: it does not wait for clients
        self.process.wait()

    def cpu_us(self):
        """Its own, of children that have ended, and of those that run."""
        pid = self.process.pid
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            own = sum(map(int, stat.read().rpartition(")")[2].split()[11:15])) * TICK_US
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
            return own + sum(schedstat_us(f"/proc/{child}/schedstat")
                             for child in children.read().split())

    def sql(self, text):
        subprocess.run([f"{POSTGRES}/psql", *self.connection(), "-d", "postgres", "-q", "-v",
                        "ON_ERROR_STOP=1"], input=text, text=True, check=True,
                       stdout=subprocess.DEVNULL)

    def load(self, script, clients=CLIENTS, seconds=None, requests=None, first=0):
        path = os.path.join(self.folder, "script.sql")
        with open(path, "w", encoding="ascii") as out:
            out.write(script)
        much = ["-T", str(seconds)] if requests is None else ["-t", str(requests)]
        before_us = self.cpu_us()
        result = subprocess.run([f"{POSTGRES}/pgbench", *self.connection(), "-n", "-M", "prepared",
                                 "-c", str(clients), "-j", "1", "-D", f"i={first}", "-f", path,
                                 *much, "postgres"], capture_output=True, text=True, check=False)
        rate = re.search(r"^tps = ([\d.]+)", result.stdout, re.M)
        done = re.search(r"actually processed: (\d+)", result.stdout)
        if result.returncode != 0 or not rate or not done or int(done[1]) == 0:
            sys.exit(f"pgbench: {result.stdout}{result.stderr}")
        latency = re.search(r"^latency average = ([\d.]+)", result.stdout, re.M)
        return (float(rate[1]), (self.cpu_us() - before_us) / int(done[1]),
                float(latency[1]) * 1000)

    def make_schema(self, metalake, schemas):
        names = ", ".join(f"('{name}')" for name in schemas)
        self.sql(f"""
            INSERT INTO metalakes (name, comment) VALUES ('{metalake}', 'a lake');
            INSERT INTO catalogs (metalake, name, type, provider)
              SELECT id, 'hive', 'relational', 'hive' FROM metalakes WHERE name = '{metalake}';
            INSERT INTO schemas (catalog, name) SELECT c.id, n.name FROM catalogs c
              JOIN metalakes m ON m.id = c.metalake, (VALUES {names}) n (name)
              WHERE m.name = '{metalake}';""")

    def make_tables(self, metalake, schema, count, with_columns):
        self.sql(f"""
            WITH made AS (
              INSERT INTO tables (schema, name, comment, properties)
              SELECT s.id, 't' || n, 'a table', '{{"format": "parquet"}}'
              {place(metalake, schema, f"CROSS JOIN generate_series(0, {count - 1}) n")}
              RETURNING id)
            INSERT INTO columns SELECT id, n, 'column' || n, 'string', 'what column ' || n || ' is'
              FROM made, generate_series(0, {with_columns - 1}) n;""")
        self.sql("VACUUM ANALYZE")


LIST = "SELECT t.name {} ORDER BY t.name;\n"
LOAD = r"""\set n random(0, %d)
SELECT t.*, (SELECT json_agg(k ORDER BY k.position) FROM columns k WHERE k.table = t.id) {}
  AND t.name = 't' || :n::int;
""" % (LISTED - 1)
CREATE = """WITH made AS (
  INSERT INTO tables (schema, name, comment, properties)
  SELECT s.id, 't' || nextval('fresh'), 'a table', '{{"format": "parquet"}}' {} RETURNING id)
INSERT INTO columns SELECT id, n, 'column' || n, 'string', 'what column ' || n || ' is'
  FROM made, generate_series(0, %d) n;
""" % (COLUMNS - 1)
ALTER = r"""\set n random(0, %d)
UPDATE tables SET comment = 'altered ' || :n::int,
  properties = properties || jsonb_build_object('altered', :n::int), version = version + 1,
  modifier = 'bench', modified = now()
WHERE name = 't' || :n::int AND schema = (SELECT s.id {}) RETURNING *;
""" % (LISTED - 1)
RENAME = r"""UPDATE metalakes SET name = '{0}_' || (:i::int + 1), version = version + 1,
  modifier = 'bench', modified = now() WHERE name = '{0}_' || :i::int RETURNING *;
\set i :i + 1
"""
# Taken back, so that it can be done again; its commit is not counted, which is to its advantage.
DROP = "BEGIN;\nDELETE FROM metalakes WHERE name = '{}';\nROLLBACK;\n"


class Bench:
    def __init__(self, options, ours, theirs):
        self.options = options
        self.ours = ours
        self.theirs = theirs
        self.made = 0  # tables in the schema fresh
        self.missed = 0

    def row(self, name, run_ours, run_theirs, target):
        """run_*: (rate, CPU us, latency us), called in turns; the first is not counted."""
        for server in (self.ours, self.theirs):  # what the row before left is no part of this one
            server.rest()
        figures = {run_ours: [], run_theirs: []}
        for number in range(self.options.rounds + 1):
            for run in (run_ours, run_theirs) if number % 2 == 0 else (run_theirs, run_ours):
                figures[run].append(run())
        ours, theirs = figures[run_ours][1:], figures[run_theirs][1:]
        rate, cpu, latency = (statistics.median(values) for values in zip(*ours))
        other_rate, other_cpu, _ = (statistics.median(values) for values in zip(*theirs))
        # Neighbours in one round share its noise.
        ratio = statistics.median(a[0] / b[0] for a, b in zip(ours, theirs))
        self.judge(ratio >= target, f"| {name} | {rate:,.1f} | {other_rate:,.1f} | {ratio:.2f} | "
                   f"{cpu:,.1f} | {other_cpu:,.1f} | {cpu / other_cpu:.2f} | {target}")
        return rate, cpu, latency

    def judge(self, met, text):
        self.missed += not met
        print(f"{text}{'' if met else ' MISSED'} |", flush=True)

    def heading(self, text):
        print(f"\n{text}\n\n| | requests/s ours | postgres | ratio | CPU us ours | postgres | "
              "ratio | target |\n|---|---|---|---|---|---|---|---|", flush=True)

    def load_all(self, sizes):
        for server in (self.ours, self.theirs):
            start = time.monotonic()
            server.make_schema("lake", ["sales", "fresh"])
            server.make_tables("lake", "sales", LISTED, COLUMNS)
            for size in sizes:
                server.make_schema(f"size{size}_0", ["sales"])
                server.make_tables(f"size{size}_0", "sales", size, 1)
            server.rest()
            print(f"{server.name}: loaded in {time.monotonic() - start:.0f} s", flush=True)

    def points(self):
        self.heading(f"{CLIENTS} clients, tables with {COLUMNS} columns")
        sales = SCHEMA.format("lake", "sales")
        tables = "JOIN tables t ON t.schema = s.id"
        seconds = self.options.seconds

        def create():
            result = self.ours.load("POST", SCHEMA.format("lake", "fresh") + "/tables",
                                    body=create_body(COLUMNS), seconds=seconds, first=self.made)
            self.made += 10_000_000  # further than any turn goes
            return result

        self.row("load of a table",
                 lambda: self.ours.load("GET", sales + "/tables/t{n}", span=LISTED,
                                        seconds=seconds),
                 lambda: self.theirs.load(LOAD.format(place("lake", "sales", tables)),
                                          seconds=seconds), 0.5)
        self.row("create of a table", create,
                 lambda: self.theirs.load(CREATE.format(place("lake", "fresh")), seconds=seconds),
                 0.5)
        body = updates_body({"@type": "updateComment", "newComment": "altered {n}"},
                            {"@type": "setProperty", "property": "altered", "value": "{n}"})
        self.row("alter of a table",
                 lambda: self.ours.load("PUT", sales + "/tables/t{n}", span=LISTED, body=body,
                                        seconds=seconds),
                 lambda: self.theirs.load(ALTER.format(place("lake", "sales")), seconds=seconds),
                 0.5)

    def lists(self, largest):
        sales = SCHEMA.format("lake", "sales") + "/tables"
        tables = "JOIN tables t ON t.schema = s.id"
        self.heading(f"lists; {CLIENTS} clients, of the largest one")
        _, cpu_us, _ = self.row(
            f"list of {LISTED:,} names",
            lambda: self.ours.load("GET", sales, seconds=self.options.seconds),
            lambda: self.theirs.load(LIST.format(place("lake", "sales", tables)),
                                     seconds=self.options.seconds), 1.0)
        self.ours.forget_peak()
        before_mib = self.ours.memory_mib("VmRSS")
        metalake = f"size{largest}_0"
        self.row(f"list of {largest:,} names",
                 lambda: self.ours.load("GET", SCHEMA.format(metalake, "sales") + "/tables",
                                        seconds=self.options.seconds, clients=1),
                 lambda: self.theirs.load(LIST.format(place(metalake, "sales", tables)),
                                          seconds=self.options.seconds, clients=1), 1.0)
        print(f"\nmemory of trellis: {before_mib:.0f} MiB before the last row, at most "
              f"{self.ours.memory_mib('VmHWM'):.0f} MiB in it")
        return cpu_us

    def renames(self, sizes):
        self.heading("rename of a metalake, 1 client")
        latencies = []
        count = 500
        for size in sizes:
            turns = {"ours": 0, "theirs": 0}

            def rename(size=size, turns=turns):
                first = turns["ours"] * count
                turns["ours"] += 1
                return self.ours.load(
                    "PUT", f"/api/metalakes/size{size}_{{n}}", clients=1, requests=count,
                    first=first, body=updates_body({"@type": "rename",
                                                    "newName": f"size{size}_{{m}}"}))

            def rename_theirs(size=size, turns=turns):
                first = turns["theirs"] * count
                turns["theirs"] += 1
                return self.theirs.load(RENAME.format(f"size{size}"), clients=1, requests=count,
                                        first=first)

            latencies.append(self.row(f"{size:,} tables", rename, rename_theirs, 1.0)[2])
        self.flat("rename", sizes, latencies)
        return (self.options.rounds + 1) * count

    def drops(self, sizes, number):
        self.heading("force-drop of a metalake, 1 client; postgres: without its commit")
        latencies = []
        for size in sizes:
            name = f"size{size}_{number}"

            def drop(name=name, times=20):
                us, cpu_us = [], 0
                self.ours.connection.close()  # it was idle for too long
                for _ in range(times):
                    before_us = self.ours.cpu_us()
                    start = time.monotonic()
                    answer = self.ours.ask("DELETE", f"/api/metalakes/{name}?force=true")
                    us.append((time.monotonic() - start) * 1e6)
                    cpu_us += self.ours.cpu_us() - before_us
                    if not answer["dropped"]:
                        sys.exit(f"{name} was not dropped")
                    self.ours.ask("POST", f"/api/metalakes/{name}/undelete")
                return 1e6 / statistics.median(us), cpu_us / times, statistics.median(us)

            latencies.append(self.row(
                f"{size:,} tables", drop,
                lambda name=name, size=size: self.theirs.load(DROP.format(name), clients=1,
                                                    requests=20 if size <= 1_000 else 2),
                1.0)[2])
        self.flat("drop", sizes, latencies)

    def flat(self, what, sizes, latencies):
        growth = latencies[-1] / latencies[0]
        text = ", ".join(f"{size:,}: {us / 1000:.2f} ms" for size, us in zip(sizes, latencies))
        self.judge(growth <= 2, f"\n{what}, median: {text}; growth {growth:.2f}, at most 2")

    def authorization(self, folder, cpu_us):
        """The same list as lists() has, of a server that looks whether its caller may: one who owns
        nothing, and whose role allows to read the tables of the schema."""
        usage = subprocess.run([self.options.trellis, "serve", "--help"], capture_output=True,
                               text=True, check=True).stdout
        if "--catalog-authorization" not in usage:
            print("\nauthorization: this server has none")
            return
        guarded = Trellis(folder, self.options, "guarded", ["--catalog-authorization", "on"])
        try:
            guarded.make_schema("lake", ["sales"])
            guarded.make_tables("lake", "sales", LISTED, COLUMNS)
            guarded.make_reader("lake", "hive.sales", "ann")
            guarded.rest()
            figures = []
            for _ in range(self.options.rounds):
                figures.append(
                    [server.load("GET", SCHEMA.format("lake", "sales") + "/tables",
                                 seconds=self.options.seconds, **more)
                     for server, more in ((self.ours, {}), (guarded, {"authorization": ANN}))])
            cost = statistics.median(off[0] / on[0] for off, on in figures)
            print(f"\nlist of {LISTED:,} names with authorization: "
                  f"{statistics.median(on[0] for _, on in figures):,.1f} requests/s, "
                  f"{statistics.median(on[1] for _, on in figures):,.1f} us of CPU "
                  f"(without: {cpu_us:,.1f})")
            self.judge(cost <= 1.5, f"authorization: {cost:.2f} times the cost, at most 1.5")
        finally:
            guarded.stop()


PARTS = ["points", "lists", "authorization", "renames", "drops"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trellis", default="build/release/trellis",
                        help="the program; api_load is beside it")
    parser.add_argument("--parts", default=",".join(PARTS), help="of: " + " ".join(PARTS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=3, help="of each turn")
    parser.add_argument("--largest", type=int, default=100_000,
                        help="tables in the largest metalake; from 1,000 on by tens")
    parser.add_argument("--full", action="store_true", help="1,000,000 tables in the largest")
    parser.add_argument("--folder", help="where the data goes; default: a temporary one")
    parser.add_argument("--serve", default="", help="more arguments of trellis serve")
    options = parser.parse_args()
    parts = options.parts.split(",")
    for part in parts:
        if part not in PARTS:
            parser.error(f"no part {part!r}; there are: {' '.join(PARTS)}")
    sizes = [1_000]
    while sizes[-1] * 10 <= (1_000_000 if options.full else options.largest):
        sizes.append(sizes[-1] * 10)
    folder = tempfile.mkdtemp(prefix="bench_catalog.", dir=options.folder)
    servers = []
    try:
        servers.append(Trellis(folder, options))
        servers.append(Postgres(folder))
        servers[1].sql(open(os.path.join(os.path.dirname(__file__), "schema.sql"),
                            encoding="ascii").read())
        bench = Bench(options, *servers)
        bench.load_all(sizes)
        if "points" in parts:
            bench.points()
        cpu_us = bench.lists(100_000 if 100_000 in sizes else sizes[-1]) if "lists" in parts else 0
        if "authorization" in parts:
            bench.authorization(folder, cpu_us)
        number = bench.renames(sizes) if "renames" in parts else 0
        if "drops" in parts:
            bench.drops(sizes, number)
    finally:
        for server in servers:
            server.stop()
        shutil.rmtree(folder)
    if bench.missed:
        sys.exit(f"\n{bench.missed} targets missed")


if __name__ == "__main__":
    main()
