"""Backups of a server at work: each is of one instant, and what is interrupted goes on."""

import os
import random
import shutil
import signal
import subprocess
import threading
import time
import unittest

import redis

from client_command import ClientTest, Done
from trellis_command import BINARY, SOURCE, TrellisTest, clean_environment
from trellis_http import V1, Api, QuietServer, eventually, json_lines, raw

ACCOUNTS = 16
EACH = 1000


class BackupTest(TrellisTest):
    def setUp(self):
        super().setUp()
        self.data = self.folder / "store"
        self.repository = self.folder / "repository"
        self.server = None
        self.serve()
        self.addCleanup(lambda: self.server.__exit__())

    def serve(self, *arguments):
        self.server = QuietServer("--data", self.data, *arguments).__enter__()

    def kill(self):
        self.server.process.send_signal(signal.SIGKILL)
        self.server.ended()

    def api(self):
        api = Api(self.server)
        self.addCleanup(api.close)
        return api

    def redis_of(self, name, db=0):
        token = self.api().post(f"{V1}/{name}/tokens", {"role": "admin"}).json["token"]
        host, port = self.server.resp.rsplit(":", 1)
        client = redis.Redis(host, int(port), username=name, password=token, db=db,
                             decode_responses=True)
        self.addCleanup(client.close)
        return client

    def trellis(self, *arguments, stdin=b""):
        done = subprocess.run([BINARY, *map(str, arguments)], input=stdin, capture_output=True,
                              timeout=120,
                              env=clean_environment(TRELLIS_SERVER=self.server.url))
        return Done(done.returncode, done.stdout, done.stderr)

    def does(self, *arguments, stdin=b""):
        done = self.trellis(*arguments, stdin=stdin)
        self.assertEqual(done.code, 0, done.err)
        return done

    def fails(self, message, *arguments, stdin=b""):
        done = self.trellis(*arguments, stdin=stdin)
        self.assertEqual(done.code, 1, done.out + done.err)
        self.assertIn(message, done.err)

    def create(self, *arguments):
        return self.does("backup", "create", "--json", "--to", self.repository,
                         *arguments).json["backup"]

    def jobs(self):
        return self.api().get("/v1/backups/jobs").json["jobs"]

    def exported(self, name):
        return json_lines(self.api().get(f"/k/{name}/v1/raw/export").body)


class Bank:
    """Money that moves all the time: inside of Redis by MULTI, inside of raw keys by batches, and a
    number that goes to Redis first and to a raw key when that is answered."""

    def __init__(self, test, name):
        self.test, self.name = test, name
        client = test.redis_of(name)
        client.mset({f"account:{i}": EACH for i in range(ACCOUNTS)})
        client.hset("safe", mapping={str(i): EACH for i in range(ACCOUNTS)})
        test.api().post(f"/k/{name}/v1/raw/batch", self.batch({i: EACH for i in range(ACCOUNTS)}))
        client.set("number", 0)
        test.api().put(raw(name, "number"), b"0")
        self.moved = 0
        self.over = threading.Event()
        self.failed = []
        self.threads = [threading.Thread(target=self.guarded, args=[work])
                        for work in (self.move_redis, self.move_redis, self.move_raw, self.count)]

    @staticmethod
    def batch(balances):
        return {"operations": [{"put": {"key": f"account:{i}", "value": str(balance)}}
                               for i, balance in balances.items()]}

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()
        if self.failed:
            raise self.failed[0]

    def guarded(self, work):
        try:
            work()
        except Exception as failure:  # told by whoever waits for the thread
            self.failed.append(failure)

    def move_redis(self):
        client = self.test.redis_of(self.name)
        while not self.over.is_set():
            amount = random.randrange(1, 50)
            with client.pipeline(transaction=True) as pipe:
                pipe.decrby(f"account:{random.randrange(ACCOUNTS)}", amount)
                pipe.hincrby("safe", str(random.randrange(ACCOUNTS)), amount)
                pipe.execute()
            self.moved += 1

    def move_raw(self):
        api = self.test.api()
        balances = {i: EACH for i in range(ACCOUNTS)}
        while not self.over.is_set():
            a, b = random.sample(range(ACCOUNTS), 2)
            amount = random.randrange(1, 50)
            balances[a] -= amount
            balances[b] += amount
            answer = api.post(f"/k/{self.name}/v1/raw/batch",
                              self.batch({i: balances[i] for i in (a, b)}))
            assert answer.status == 200, answer

    def count(self):
        client, api = self.test.redis_of(self.name), self.test.api()
        number = 0
        while not self.over.is_set():
            number += 1
            client.set("number", number)
            api.put(raw(self.name, "number"), str(number).encode())

    def check(self, name):
        """That the keyspace is what the bank was at one instant."""
        client = self.test.redis_of(name)
        balances = [int(x) for x in client.mget([f"account:{i}" for i in range(ACCOUNTS)])]
        in_safe = [int(x) for x in client.hvals("safe")]
        self.test.assertEqual(sum(balances) + sum(in_safe), 2 * ACCOUNTS * EACH)
        entries = {e["key"]: int(e["value"]) for e in self.test.exported(name)}
        number = entries.pop("number")
        self.test.assertEqual(sum(entries.values()), ACCOUNTS * EACH)
        self.test.assertIn(int(client.get("number")) - number, (0, 1))
        return balances, in_safe


class OneInstant(BackupTest):
    def test_backups_under_load(self):
        self.does("keyspace", "create", "bank")
        seen = set()
        with Bank(self, "bank") as bank:
            for i in range(6):
                before = bank.moved
                eventually(lambda: bank.moved > before + 20 or bank.failed, "money moves")
                if i % 3 == 2:
                    stream = self.does("backup", "create", "--keyspace", "bank", "--to", "-").bytes
                    self.does("backup", "restore", "--from", "-", "--as", f"copy-{i}",
                              stdin=stream)
                else:
                    scope = ("--keyspace", "bank") if i % 3 == 0 else ()
                    backup = self.create(*scope)
                    self.does("backup", "restore", backup, "--from", self.repository,
                              "--keyspace", "bank", "--as", f"copy-{i}")
                seen.add(str(bank.check(f"copy-{i}")))
            self.does("backup", "verify", "--from", self.repository)
        self.assertGreater(len(seen), 3)  # they really are of different instants
        self.assertEqual(len(self.does("backup", "list", "--from", self.repository).rows), 4)
        # All of it, without a server.
        new = self.folder / "new"
        self.does("backup", "restore", "--from", self.repository, "--data", new)
        self.fails("is not empty", "backup", "restore", "--from", self.repository, "--data", new)
        self.server.stop()
        self.data = new
        self.serve()
        bank.check("bank")
        bank.check("copy-0")

    def test_everything_that_redis_has(self):
        self.does("keyspace", "create", "shop")
        self.does("keyspace", "quota", "shop", "--keys", "1000")
        client = self.redis_of("shop")
        client.set("s", "text")
        client.set("bytes", bytes(range(256)))
        client.set("until", "then", px=1_000_000)
        client.set("soon", "gone", px=3_000)
        client.hset("h", mapping={f"f{i}": i for i in range(500)})
        client.rpush("l", *range(500))
        client.sadd("t", *range(500))
        client.zadd("z", {f"m{i}": i / 3 for i in range(500)})
        client.pexpire("h", 2_000_000)
        client.delete("l2")
        client.rpush("dead", *range(500))
        client.delete("dead")  # garbage that is still there
        third = self.redis_of("shop", db=3)
        third.set("s", "third")
        third.swapdb(3, 5)
        self.does("raw", "put", "--keyspace", "shop", "--ttl", "1h", "k", "v")
        facts = self.facts("shop")
        self.create("--keyspace", "shop")
        self.does("backup", "restore", "--from", self.repository, "--as", "other")
        self.assertEqual(self.facts("other"), facts)
        show = self.does("keyspace", "show", "other", "--json").json
        self.assertEqual(show["quota"]["keys"], 1000)
        # New lives of old keys, and what is due, are as in any keyspace.
        other = self.redis_of("other")
        for key in ("h", "l", "t", "z"):
            other.delete(key)
        other.hset("h", "new", 1)
        self.assertEqual(other.hgetall("h"), {"new": "1"})
        eventually(lambda: other.dbsize() == 4, "what is due goes by itself")  # s bytes until h
        self.assertEqual(self.facts("shop", without="soon"),
                         {k: v for k, v in facts.items() if k not in ("soon", "keys")})

    def facts(self, name, without=""):
        client = self.redis_of(name)
        client.connection_pool.connection_kwargs["encoding_errors"] = "surrogateescape"
        facts = {"s": client.get("s"), "bytes": client.get("bytes"), "h": client.hgetall("h"),
                 "l": client.lrange("l", 0, -1), "t": sorted(client.smembers("t")),
                 "z": client.zrange("z", 0, -1, withscores=True),
                 "until": client.execute_command("PEXPIRETIME", "until"),
                 "h until": client.execute_command("PEXPIRETIME", "h"),
                 "fifth": self.redis_of(name, db=5).get("s"),
                 "third": self.redis_of(name, db=3).get("s"),
                 "raw": self.exported(name)}
        if not without:
            facts["soon"] = client.execute_command("PEXPIRETIME", "soon")
            facts["keys"] = client.dbsize()
        return facts


class Interrupted(BackupTest):
    def fill(self, name, count=600):
        client = self.redis_of(name)
        with client.pipeline(transaction=False) as pipe:
            for i in range(count):
                pipe.hset(f"key:{i}", mapping={str(f): os.urandom(1500).hex() for f in range(4)})
            pipe.execute()
        return client

    def reached(self, job, phase, bytes_done):
        def look():
            now = self.api().get(f"/v1/backups/jobs/{job}").json
            self.assertIn(now["state"], ("running", "paused"), now)
            return now["phase"] == phase and now["bytes_done"] >= bytes_done
        eventually(look, f"{phase} is at {bytes_done}")

    def test_a_backup_that_is_killed_goes_on_at_its_instant(self):
        self.does("keyspace", "create", "shop")
        client = self.fill("shop")
        client.set("marker", "then")
        job = self.does("backup", "create", "--json", "--to", self.repository, "--keyspace", "shop",
                        "--limit", "4MiB", "--threads", "2", "--detach").json["id"]
        self.reached(job, "reading", 1)
        client.set("marker", "later")
        client.delete("key:0")
        self.kill()
        self.serve()
        eventually(lambda: [j["state"] for j in self.jobs() if j["id"] == job] == ["done"],
                   "it goes on")
        self.does("backup", "restore", "--from", self.repository, "--as", "copy")
        copy = self.redis_of("copy")
        self.assertEqual((copy.get("marker"), copy.hlen("key:0"), copy.dbsize()),
                         ("then", 4, 601))
        self.assertEqual(os.listdir(self.data / "backups"), [])

    def test_a_restore_that_is_killed_goes_on_and_is_not_seen_before(self):
        self.does("keyspace", "create", "shop")
        client = self.fill("shop")
        self.create("--keyspace", "shop")
        job = self.does("backup", "restore", "--json", "--from", self.repository, "--as", "copy",
                        "--limit", "8MiB", "--detach").json["id"]
        self.reached(job, "writing", 1)
        self.fails("", "raw", "scan", "--keyspace", "copy")
        self.kill()
        self.serve()
        self.fails("", "raw", "scan", "--keyspace", "copy")
        eventually(lambda: [j["state"] for j in self.jobs()] == ["done"], "it goes on")
        client, copy = self.redis_of("shop"), self.redis_of("copy")
        self.assertEqual(copy.dbsize(), 600)
        for i in random.sample(range(600), 50):
            self.assertEqual(copy.hgetall(f"key:{i}"), client.hgetall(f"key:{i}"))

    def test_a_restore_of_everything_that_is_killed_goes_on(self):
        self.does("keyspace", "create", "shop")
        self.fill("shop")
        backup = self.create()
        new = self.folder / "new"
        command = ["backup", "restore", "--from", self.repository, "--data", f"{new}/"]
        process = subprocess.Popen([BINARY, *map(str, command), "--limit", "8MiB"],
                                   env=clean_environment(), stderr=subprocess.DEVNULL)
        half = self.folder / "new.restoring"
        eventually(lambda: sum(log.stat().st_size for log in half.glob("*.log")) > 100_000,
                   "it has begun to write")
        process.kill()
        process.wait()
        self.assertFalse(new.exists())
        self.fails("is not whole", "serve", "--data", half, "--http", "127.0.0.1:0", "--resp",
                   "127.0.0.1:0")
        self.assertIn(f"backup {backup} is restored", self.does(*command).out)
        self.assertFalse((self.folder / "new.restoring").exists())
        self.server.stop()
        self.data = new
        self.serve()
        self.assertEqual(self.redis_of("shop").dbsize(), 600)

    def test_a_stream_keeps_to_its_limit(self):
        self.does("keyspace", "create", "shop")
        for i in range(20):
            self.does("raw", "put", "--keyspace", "shop", f"k{i}", os.urandom(50_000).hex())
        create = ("backup", "create", "--keyspace", "shop", "--to", "-")
        begun = time.monotonic()
        stream = self.does(*create, "--limit", "1MiB").bytes
        self.assertGreater(time.monotonic() - begun, 1.8)
        self.does("backup", "restore", "--from", "-", "--as", "copy", stdin=stream)
        self.assertEqual(self.does("raw", "scan", "--keyspace", "copy").out,
                         self.does("raw", "scan", "--keyspace", "shop").out)

    def test_a_keyspace_that_is_not_there(self):
        self.does("keyspace", "create", "shop")
        self.create("--keyspace", "shop")
        self.fails('has no keyspace "nope"; it has: "shop"', "backup", "restore", "--from",
                   self.repository, "--keyspace", "nope")

    def test_pause_resume_and_cancel(self):
        self.does("keyspace", "create", "shop")
        self.fill("shop", 100)
        job = self.does("backup", "create", "--json", "--to", self.repository,
                        "--limit", "1KiB", "--detach").json["id"]
        self.assertIn("paused", self.does("backup", "pause", job).out)
        self.assertIn(f"{job}: paused", self.does("backup", "jobs").out)
        self.kill()
        self.serve()
        self.assertIn(f"{job}: paused", self.does("backup", "jobs").out)
        self.does("backup", "resume", job)
        self.does("backup", "cancel", job)
        eventually(lambda: self.jobs()[0]["state"] == "canceled", "it ends")
        self.assertEqual(os.listdir(self.data / "backups"), [])
        self.fails("is over", "backup", "cancel", job)
        self.assertEqual(self.does("backup", "list", "--from", self.repository).rows, [])

    def test_a_paused_restore_stays_paused(self):
        self.does("keyspace", "create", "shop")
        self.fill("shop", 100)
        self.create("--keyspace", "shop")
        job = self.does("backup", "restore", "--json", "--from", self.repository, "--as", "copy",
                        "--limit", "8MiB", "--detach").json["id"]
        self.does("backup", "pause", job)
        self.kill()
        self.serve()
        self.assertIn(f"{job}: paused", self.does("backup", "jobs").out)
        self.does("backup", "resume", job)
        eventually(lambda: [j["state"] for j in self.jobs()] == ["done"], "it goes on")
        self.assertEqual(self.redis_of("copy").dbsize(), 100)
        self.fails("there is no job", "backup", "cancel", "none")


class Audit(BackupTest):
    def test_who_copied_and_who_removed_is_known(self):
        shop = self.api().post("/pd/api/v2/keyspaces", {"name": "shop"}).json["id"]
        backup = self.create("--keyspace", "shop")
        self.create()
        streamed = self.api().get("/v1/backups/stream?keyspace=shop")
        self.assertEqual(streamed.status, 200)
        self.does("backup", "delete", backup, "--from", self.repository)
        self.fails(backup, "backup", "delete", backup, "--from", self.repository)
        changes = [change for change in json_lines(self.does("keyspace", "audit", "--json").out)
                   if change["action"].startswith("backup.")]
        self.assertEqual([(change["action"], change["keyspace_id"], change["name"])
                          for change in changes],
                         [("backup.create", shop, "shop"), ("backup.create", None, ""),
                          ("backup.stream", shop, "shop"), ("backup.delete", None, "")])
        self.assertIn(str(self.repository), changes[0]["detail"])
        self.assertIn(backup, changes[3]["detail"])


class BadInput(BackupTest):
    def test_what_is_no_backup(self):
        self.does("keyspace", "create", "shop")
        self.does("raw", "put", "--keyspace", "shop", "k", "v")
        self.fails("no backups of trellis in", "backup", "list", "--from", self.folder / "none")
        (self.folder / "other").mkdir()
        (self.folder / "other" / "precious").write_text("mine")
        self.fails("holds other things", "backup", "create", "--to", self.folder / "other")
        self.fails("no backups of trellis in", "backup", "restore", "--from",
                   self.folder / "other")
        backup = self.create("--keyspace", "shop")
        self.fails("already exists", "backup", "restore", "--from", self.repository)
        self.fails("has no keyspace", "backup", "restore", "--from", self.repository,
                   "--keyspace", "nobody", "--as", "x")
        self.fails("is of the keyspace \"shop\" only", "backup", "restore", "--from",
                   self.repository, "--data", self.folder / "new")
        self.fails("there is no backup none", "backup", "restore", "none", "--from",
                   self.repository, "--as", "x")
        self.fails("does not begin as one does", "backup", "restore", "--from", "-", "--as", "x",
                   stdin=b"REDIS0011 and so on")
        new = self.folder / "new"
        self.fails("does not begin as one does", "backup", "restore", "--from", "-", "--data", new,
                   stdin=b"REDIS0011 and so on")
        stream = self.does("backup", "create", "--keyspace", "shop", "--to", "-").bytes
        self.fails("is of the keyspace \"shop\" only", "backup", "restore", "--from", "-",
                   "--data", new, stdin=stream)
        self.assertEqual(list(self.folder.glob("new*")), [])
        # What does nothing is not taken as if it did.
        for wrong in (("-", "--as", "x", "--detach"), ("-", "--as", "x", "--threads", "2"),
                      (self.repository, "--data", new, "--detach")):
            done = self.trellis("backup", "restore", "--from", *wrong)
            self.assertEqual(done.code, 2, done.err)
        manifest = self.repository / "backups" / f"{backup}.backup"
        whole = manifest.read_bytes()
        manifest.write_bytes(whole[:-1])
        self.fails("damaged", "backup", "restore", backup, "--from", self.repository, "--as", "x")
        self.fails("damaged", "backup", "verify", "--from", self.repository)
        self.assertEqual(self.does("backup", "list", "--from", self.repository).rows,
                         [[backup, "damaged"]])
        manifest.write_bytes(whole[:7] + b"\x03" + whole[8:])
        for command in (("restore", backup, "--as", "x"), ("delete", backup)):
            self.fails("use a newer trellis", "backup", *command, "--from", self.repository)
        self.fails("keyspace \"x\" does not exist", "keyspace", "show", "x")
        manifest.write_bytes(whole[:-1])
        self.does("backup", "delete", backup, "--from", self.repository)
        self.assertEqual(self.does("backup", "list", "--from", self.repository).rows, [])

    def test_format_1_can_be_restored(self):
        # What an old build wrote; see its README.
        copied = self.folder / "format1"
        shutil.copytree(SOURCE / "tests" / "backup" / "format1", copied)
        self.does("backup", "verify", "--from", copied)
        self.does("backup", "restore", "--from", copied, "--keyspace", "golden", "--as", "new")
        client = self.redis_of("new")
        self.assertEqual(client.hgetall("hash"), {"a": "1", "b": "2"})
        self.assertEqual(client.lrange("list", 0, -1), ["x", "y", "z"])
        self.assertEqual(client.zrange("zset", 0, -1, withscores=True), [("m", 1.5), ("n", 2.5)])
        self.assertEqual(client.smembers("set"), {"1", "2", "3"})
        self.assertEqual((client.get("string"), client.dbsize()), ("value", 5))
        self.assertEqual(self.exported("new"), [{"key": "raw", "value": "bytes"}])
        new = self.folder / "new"
        self.does("backup", "restore", "--from", copied, "--data", new)
        self.server.stop()
        self.data = new
        self.serve()
        self.assertEqual(self.redis_of("golden").get("string"), "value")


class InMemory(ClientTest):
    def test_there_are_none(self):
        done = self.fails(1, "has no files to copy", "backup", "create", "--to",
                          self.folder / "repository")
        self.assertEqual(done.out, "")
        self.fails(1, "has no files to copy", "backup", "create", "--to", "-")


class OnATerminal(ClientTest):
    arguments = ()

    @classmethod
    def setUpClass(cls):
        import tempfile
        folder = tempfile.TemporaryDirectory(prefix="trellis-test-")
        cls.addClassCleanup(folder.cleanup)
        cls.arguments = ("--data", folder.name)
        super().setUpClass()

    def test_a_bar_grows(self):
        for i in range(40):
            self.does("raw", "put", f"k{i}", os.urandom(50_000).hex())
        code, shown = self.on_terminal("backup", "create", "--to", self.folder / "repository",
                                       "--limit", "4MiB")
        self.assertEqual(code, 0, shown)
        self.assertIn("reading [", shown)
        self.assertIn("#", shown)
        self.assertIn(" are new", shown)


if __name__ == "__main__":
    unittest.main()
