#!/usr/bin/env python3
"""What operators do over Redis's protocol: tenant by tenant, and beside redis-server."""
import json
import sys
import threading
import time
import unittest

from trellis_command import SOURCE, Server, TrellisTest, trellis

sys.path.insert(0, str(SOURCE / "tests/redis"))
from resp_client import Address, Closed, Connection, decode  # noqa: E402
from servers import RedisServer  # noqa: E402

# What Redis 7.2 has otherwise than 7.0, which is the reference here.
ARITY_OF_7_2 = {"zrank", "zrevrank", "command|getkeys", "command|getkeysandflags"}
SINCE_7_2 = {"client|setinfo", "client|no-touch", "waitaof"}
OF_KVROCKS = {"siadd", "sicard", "siexists", "sirange", "sirangebyvalue", "sirem", "sirevrange",
              "sirevrangebyvalue"}
OF_FIELDS = {"hexpire", "hexpireat", "hexpiretime", "hgetdel", "hgetex", "hpersist", "hpexpire",
             "hpexpireat", "hpexpiretime", "hpttl", "hsetex", "httl"}  # since 7.4 and 8.0
NOT_IN_7_0 = SINCE_7_2 | OF_KVROCKS | OF_FIELDS


def text(value):
    if isinstance(value, bytes):
        return value.decode()
    return [text(item) for item in value] if isinstance(value, list) else value


def pairs(items):
    return dict(zip(items[::2], items[1::2]))


class Client(Connection):
    def __init__(self, address):
        super().__init__(Address(address), timeout_s=60)

    def say(self, *words):
        return text(decode(self.call(*[word.encode() for word in words])))

    def info(self, *sections):
        lines = self.say("INFO", *sections).split("\r\n")
        return dict(line.split(":", 1) for line in lines if ":" in line)

    def clients(self):
        lines = self.say("CLIENT", "LIST").splitlines()
        return [dict(word.split("=", 1) for word in line.split(" ")) for line in lines]

    def is_closed(self):
        try:
            self.call(b"PING")
        except (Closed, OSError):
            return True
        return False


def described(entry, into):
    """COMMAND's entry of a command and of its subcommands, by name."""
    name, arity, flags, first, last, step, categories, tips, specs, subs = entry
    for spec in (specs := [pairs(spec) for spec in specs]):
        spec.pop("notes", None)  # for people
    into[name] = {
        "arity": arity, "flags": set(flags), "keys": (first, last, step),
        "categories": set(categories), "tips": set(tips), "specs": specs}
    for sub in subs:
        described(sub, into)
    return into


def arguments(docs, into=None):
    """What COMMAND DOCS tells of arguments, but for when they came, by full names."""
    def described_argument(argument):
        known = pairs(argument)
        known["arguments"] = [described_argument(one) for one in known.get("arguments", [])]
        return {name: value for name, value in known.items() if "since" not in name}

    into = {} if into is None else into
    for name, doc in docs.items():
        doc = pairs(doc)
        into[name] = [described_argument(one) for one in doc.get("arguments", [])]
        arguments(pairs(doc.get("subcommands", [])), into)
    return into


class Admin(TrellisTest):
    def server(self, *arguments):
        return Server("--data", self.folder / "store", *arguments)

    def client(self, address):
        client = Client(address)
        self.addCleanup(client.close)
        return client

    def tenants(self, server):
        """An admin and a writer of both keyspaces, `one` and `two`, and the server's admin."""
        secret = (self.folder / "admin").read_text().strip()

        def run(*arguments):
            code, out, err = trellis(*arguments, "--json", TRELLIS_SERVER=server.url,
                                     TRELLIS_TOKEN=secret)
            self.assertEqual(code, 0, err)
            return json.loads(out)

        def client(keyspace, role):
            token = run("keyspace", "token", "create", keyspace, "--role", role)["token"]
            return self.client(f"{keyspace}:{token}@{server.resp}")

        for keyspace in ("one", "two"):
            run("keyspace", "create", keyspace)
        return (client("one", "admin"), client("one", "write"), client("two", "admin"),
                client("two", "write"), self.client(f"default:{secret}@{server.resp}"))

    def test_tenants_do_not_see_each_other(self):
        with self.server("--auth", "required", "--admin-token-file",
                         self.folder / "admin") as server:
            one, _, two, writer_two, root = self.tenants(server)
            two.say("SET", "secret", "1")
            two.say("GET", "secret")
            two.say("LPUSH", "secret", "1")
            two.say("CLIENT", "SETNAME", "hidden")
            two.say("CONFIG", "SET", "slowlog-log-slower-than", "0", "maxmemory", "5")
            two.say("GET", "secret")
            self.assertEqual({client["name"] for client in one.clients()}, {""})
            self.assertEqual(len(one.clients()), 2)
            self.assertEqual(len(two.clients()), 2)
            self.assertEqual(one.say("SLOWLOG", "LEN"), 0)
            self.assertGreater(two.say("SLOWLOG", "LEN"), 0)
            self.assertEqual(one.say("CONFIG", "GET", "maxmemory"), ["maxmemory", "0"])
            info = one.info("everything")
            self.assertEqual(info["connected_clients"], "2")
            self.assertEqual(info["keyspace_hits"], "0")
            self.assertNotIn("cmdstat_get", info)
            self.assertNotIn("errorstat_WRONGTYPE", info)
            self.assertNotIn("db0", info)
            info = two.info("everything")
            self.assertEqual(info["keyspace_hits"], "2")
            self.assertEqual(info["errorstat_WRONGTYPE"], "count=1")
            self.assertEqual(info["db0"], "keys=1,expires=0,avg_ttl=0")
            # Nor can they end or hold up each other.
            id_two = str(two.say("CLIENT", "ID"))
            self.assertEqual(one.say("CLIENT", "KILL", "ID", id_two), 0)
            self.assertEqual(root.say("CLIENT", "KILL", "ID", id_two), 0)
            self.assertEqual(one.say("CLIENT", "LIST", "ID", id_two), "")
            address = two.clients()[0]["addr"]
            self.assertEqual(one.say("CLIENT", "KILL", address), "ERR No such client")
            self.assertEqual(one.say("CLIENT", "PAUSE", "600000"), "OK")
            self.assertEqual(two.say("SET", "a", "1"), "OK")
            # Whoever may only write controls nobody; only the server's admin stops the server.
            for words in (["CLIENT", "LIST"], ["CONFIG", "SET", "hz", "1"], ["SLOWLOG", "RESET"],
                          ["DEBUG", "SLEEP", "0"], ["SHUTDOWN"]):
                self.assertRegex(writer_two.say(*words), "^NOPERM ", words)
            self.assertEqual(writer_two.say("CONFIG", "GET", "hz"), ["hz", "10"])
            for words in (["DEBUG", "SLEEP", "0"], ["SHUTDOWN"], ["SHUTDOWN", "NOSAVE"]):
                self.assertRegex(two.say(*words), "^NOPERM ", words)
            root.send(b"SHUTDOWN NOSAVE\r\n")
            self.assertTrue(root.is_closed())
            self.assertEqual(server.process.wait(timeout=60), 0)
            self.assertIn("Closed cleanly", server.process.stdout.read())

    def test_kill_and_pause_reach_every_loop(self):
        with self.server() as server:
            me = self.client(server.resp)
            others = [self.client(server.resp) for _ in range(6)]
            ids = [other.say("CLIENT", "ID") for other in others]
            self.assertEqual(len(me.clients()), 7)
            self.assertRegex(me.say("CLIENT", "INFO"), " qbuf=26 ")  # with what is being run
            self.assertEqual(me.say("CLIENT", "KILL", "ID", str(ids[0])), 1)
            self.assertTrue(others[0].is_closed())
            self.assertEqual(me.say("CLIENT", "KILL", "TYPE", "normal"), 5)
            for other in others[1:]:
                self.assertTrue(other.is_closed())
            # What waits for the end of a pause goes on in order, on all loops.
            others = [self.client(server.resp) for _ in range(4)]
            self.assertEqual(me.say("CLIENT", "PAUSE", "600000", "WRITE"), "OK")
            began = time.monotonic()
            for number, other in enumerate(others):
                other.send(b"GET k%d\r\nSET k%d v\r\nGET k%d\r\n" % ((number,) * 3))
                self.assertEqual(other.replies(1), [b"$-1\r\n"])
            while int(me.info("clients")["blocked_clients"]) < len(others):
                pass
            timer = threading.Timer(0.2, lambda: me.say("CLIENT", "UNPAUSE"))
            timer.start()
            for other in others:
                self.assertEqual(other.replies(2), [b"+OK\r\n", b"$1\r\nv\r\n"])
            timer.join()
            self.assertGreaterEqual(time.monotonic() - began, 0.2)
            # What is refused whenever it comes does not wait. It also ends by itself.
            self.assertEqual(me.say("CLIENT", "PAUSE", "600000", "WRITE"), "OK")
            self.assertRegex(others[0].say("SET", "a"), "^ERR wrong number of arguments ")
            self.assertEqual(me.say("CLIENT", "UNPAUSE"), "OK")
            self.assertEqual(me.say("CLIENT", "PAUSE", "150", "ALL"), "OK")
            began = time.monotonic()
            self.assertEqual(me.say("SET", "a", "1"), "OK")
            self.assertLess(time.monotonic() - began, 10)
            # A server that stops waits for no pause, nor does one who is killed.
            self.assertEqual(me.say("CLIENT", "PAUSE", "600000", "WRITE"), "OK")
            others[0].send(b"SET a 2\r\n")
            others[1].send(b"SET a 3\r\n")
            while [client["flags"] for client in me.clients()].count("b") < 2:
                pass
            victim = str(others[1].sock.getsockname()[1])
            self.assertEqual(me.say("CLIENT", "KILL", f"127.0.0.1:{victim}"), "OK")
            with self.assertRaises(Closed):
                others[1].replies(1)
            began = time.monotonic()
            code, _, err = server.stop()
            self.assertEqual((code, err.count("broken off")), (0, 0))
            self.assertLess(time.monotonic() - began, 9)

    def test_commands_are_described_as_by_redis_server(self):
        with self.server() as server, RedisServer() as redis:
            ours, theirs = {}, {}
            for address, into in ((server.resp, ours), (redis.text, theirs)):
                client = self.client(address)
                for entry in client.say("COMMAND"):
                    described(entry, into)
                self.assertEqual(client.say("COMMAND", "COUNT"),
                                 len([name for name in into if "|" not in name]))
            self.assertEqual(set(ours) - set(theirs), NOT_IN_7_0)
            for name in sorted(set(ours) & set(theirs)):
                if name in ARITY_OF_7_2:
                    ours[name].pop("arity"), theirs[name].pop("arity")
                self.assertEqual(ours[name], theirs[name], name)
            # Byte for byte too, where neither notes nor the order of subcommands are in the way.
            one, other = self.client(server.resp), self.client(redis.text)
            for client in (one, other):
                client.call(b"HELLO", b"3")
            for name in (b"get", b"zunionstore", b"config|set", b"shutdown", b"exec", b"hello",
                         b"none"):
                self.assertEqual(one.call(b"COMMAND", b"INFO", name),
                                 other.call(b"COMMAND", b"INFO", name))
            docs = pairs(self.client(server.resp).say("COMMAND", "DOCS"))
            self.assertEqual(set(docs), {name for name in ours if "|" not in name})
            theirs = pairs(self.client(redis.text).say("COMMAND", "DOCS"))
            for name, doc in docs.items():
                doc = pairs(doc)
                self.assertTrue(doc["summary"])
                if name in NOT_IN_7_0:
                    continue
                other = pairs(theirs[name])
                self.assertEqual((name, doc["since"], doc["group"]),
                                 (name, other["since"], other["group"]))
            ours, theirs = arguments(docs), arguments(theirs)
            for name, found in ours.items():
                if name in ("zrank", "zrevrank"):  # 7.2 gave them one more
                    self.assertEqual(found.pop()["token"], "WITHSCORE")
                if name not in NOT_IN_7_0:
                    self.assertEqual((name, found), (name, theirs[name]))

    def test_keys_migrate_to_redis_server(self):
        with self.server() as server:
            self.migrate(server, self.client(server.resp))

    def migrate(self, server, ours):
        with RedisServer() as redis:
            other = self.client(f"{redis.host}:{redis.port}")
            to = (redis.host, str(redis.port))
            ours.say("SET", "text", "value", "PX", "100000")
            ours.say("RPUSH", "list", *map(str, range(1000)))
            ours.say("ZADD", "zset", "1", "a", "2.5", "b")
            self.assertEqual(ours.say("MIGRATE", *to, "none", "0", "1000"), "NOKEY")
            self.assertEqual(ours.say("MIGRATE", *to, "text", "3", "1000"), "OK")
            self.assertEqual(ours.say("EXISTS", "text"), 0)
            other.say("SELECT", "3")
            self.assertEqual(other.say("GET", "text"), "value")
            self.assertGreater(other.say("PTTL", "text"), 50_000)
            many = ("MIGRATE", *to, "", "3", "1000", "COPY", "KEYS", "list", "none", "zset")
            self.assertEqual(ours.say(*many), "OK")
            self.assertEqual(ours.say("EXISTS", "list", "zset"), 2)
            self.assertEqual(other.say("LRANGE", "list", "0", "-1"), [str(i) for i in range(1000)])
            self.assertEqual(other.say("ZRANGE", "zset", "0", "-1", "WITHSCORES"),
                             ["a", "1", "b", "2.5"])
            other.say("DEL", "zset")
            self.assertRegex(ours.say(*[word for word in many if word != "COPY"]),
                             "^ERR Target instance replied with error: BUSYKEY")
            self.assertEqual(ours.say("EXISTS", "list", "zset"), 1, "one of them was taken")
            self.assertRegex(ours.say("MIGRATE", *to, "list", "99", "1000"), "out of range")
            auth = ("AUTH2", "who", "secret")
            self.assertRegex(ours.say("MIGRATE", *to, "list", "0", "1000", *auth),
                             "^ERR Target instance replied with error: WRONGPASS")
        self.assertRegex(ours.say("MIGRATE", *to, "list", "0", "1000"), "^IOERR")
        self.assertEqual(ours.say("LLEN", "list"), 1000)
        # To itself: if it can be taken while it travels it has changed.
        host, port = server.resp.split(":")
        for _ in range(5):
            ours.say("SET", "self", "precious")
            ours.say("MIGRATE", host, port, "self", "0", "300", "REPLACE")
            self.assertEqual(ours.say("GET", "self"), "precious")
        self.assertEqual(ours.say("WAITAOF", "1", "0", "0"), [1, 0])

    def test_info_has_the_fields_of_redis_server(self):
        with self.server() as server, RedisServer() as redis:
            ours, theirs = (self.client(address) for address in (server.resp, redis.text))
            for client in (ours, theirs):
                client.say("PING")
                client.say("SET", "a", "1")
                client.say("LPUSH", "a", "1")
                client.say("INFO", "everything")
            missing = set(theirs.info("everything")) - set(ours.info("everything"))
        # What would have to be made up: of an allocator, a thread and clocks that are not here.
        self.assertEqual({name for name in missing if not name.startswith("allocator_")}, {
            "atomicvar_api", "dump_payload_sanitizations", "expire_cycle_cpu_milliseconds",
            "lru_clock", "reply_buffer_expands", "reply_buffer_shrinks", "rss_overhead_bytes",
            "rss_overhead_ratio", "total_reads_processed", "total_writes_processed",
            "used_cpu_sys_main_thread", "used_cpu_user_main_thread"})

    def test_slow_commands_are_noted_as_by_redis_server(self):
        entries = []
        with self.server() as server, RedisServer() as redis:
            for address in (server.resp, redis.text):
                client = self.client(address)
                client.say("CLIENT", "SETNAME", "me")
                client.say("CONFIG", "SET", "slowlog-log-slower-than", "0", "slowlog-max-len", "10")
                client.say("SLOWLOG", "RESET")
                client.say("CONFIG", "SET", "hz", "11", "MasterAuth", "", "requirepass", "")
                client.say("SET", "x" * 128, "y" * 129)
                client.say("DEL", *map(str, range(31)))
                client.say("DEL", *map(str, range(32)))
                client.say("AUTH", "default", "secret")
                client.say("HELLO", "2", "AUTH", "default", "secret")
                client.say("MULTI")
                client.say("GET", "a")
                client.say("EXEC")
                client.say("NOTHING")
                client.say("GET")
                found = client.say("SLOWLOG", "GET", "-1")
                self.assertTrue(all(abs(entry[1] - time.time()) < 60 for entry in found))
                self.assertEqual(found[0][4], "%s:%d" % client.sock.getsockname())
                entries.append([[entry[0], *entry[3:4], *entry[5:]] for entry in found])
        self.assertEqual(entries[0], entries[1])

    def test_figures_are_true(self):
        with self.server("--durability", "always") as server:
            client = self.client(server.resp)
            host, port = server.resp.split(":")
            self.assertEqual(pairs(client.say("CONFIG", "GET", "port", "bind", "appendfsync")),
                             {"port": port, "bind": host, "appendfsync": "always"})
            self.assertRegex(client.say("CONFIG", "SET", "appendfsync", "no"), "--durability")
            client.say("SET", "a", "1", "PX", "1")
            client.say("SET", "b", "1", "EX", "1000")
            client.say("SET", "c", "1")
            while client.say("EXISTS", "a"):
                pass
            self.assertRegex(client.info("keyspace")["db0"],
                             r"^keys=2,expires=1,avg_ttl=(1000000|99\d{4})$")
            client.say("CONFIG", "RESETSTAT")
            client.send(b"GET b\r\nGET b\r\nGET none\r\nINCR b\r\nHGET b f\r\n")
            client.replies(5)
            info = client.info("everything")
            self.assertEqual((info["keyspace_hits"], info["keyspace_misses"]), ("3", "1"))
            self.assertEqual(info["total_error_replies"], "1")
            self.assertEqual(info["total_commands_processed"], "6")
            self.assertRegex(info["cmdstat_get"], "^calls=3,usec=.*,failed_calls=0$")
            self.assertRegex(info["cmdstat_hget"], "^calls=1,.*,failed_calls=1$")
            self.assertIn("latency_percentiles_usec_get", info)
            self.assertGreater(int(info["used_memory_rss"]), 1_000_000)
            self.assertNotIn("cmdstat_get", client.info())
            self.assertEqual(int(info["used_memory"]) > 0, True)


if __name__ == "__main__":
    unittest.main()
