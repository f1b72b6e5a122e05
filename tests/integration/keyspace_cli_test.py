"""`trellis keyspace`, against a running server."""

import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import unittest
import urllib.parse

from client_command import ClientTest, ScriptedServer, http_answer
from trellis_command import BINARY, Server, TrellisTest, clean_environment, trellis

ISO = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"


class Life(ClientTest):
    def test_create(self):
        done = self.does("keyspace", "create", "born", "--config", "a=1", "--config", "b=x=y")
        self.assertRegex(done.out, r"^keyspace born has id \d+\n$")
        shown = self.does("keyspace", "show", "born", "--json").json
        self.assertEqual(shown["keyspace"]["config"], {"a": "1", "b": "x=y"})
        done = self.does("keyspace", "create", "born-70", "--id", 70, "--json")
        self.assertEqual((done.json["id"], done.json["name"], done.json["state"]),
                         (70, "born-70", "ENABLED"))

    def test_create_what_cannot_be(self):
        self.does("keyspace", "create", "twin", "--id", 80)
        self.fails(1, "already exists", "keyspace", "create", "twin")
        self.fails(1, "exists", "keyspace", "create", "other", "--id", 80)
        self.fails(1, "a/b", "keyspace", "create", "a/b")
        self.fails(1, "99999999", "keyspace", "create", "far", "--id", 99999999)
        self.fails(2, "given twice", "keyspace", "create", "x", "--config", "a=1", "--config",
                   "a=2")
        self.fails(2, "not key=value", "keyspace", "create", "x", "--config", "a")
        self.fails(2, "whole number", "keyspace", "create", "x", "--id", "ten")
        self.fails(2, "NAME", "keyspace", "create")
        self.fails(2, "not be empty", "keyspace", "create", "")

    def test_create_is_asked_once_more_if_the_answer_is_lost(self):
        made = json.dumps({"id": 7, "name": "lost", "state": "ENABLED"})
        with ScriptedServer(b"", http_answer(200, made)) as server:
            done = self.does("keyspace", "create", "lost", "--server", server.url)
        self.assertEqual(done.out, "keyspace lost has id 7\n")
        keys = [re.search(r"(?i)idempotency-key: (\S+)", request)[1]
                for request in server.requests]
        self.assertEqual(len(keys), 2)
        self.assertEqual(keys[0], keys[1])
        with ScriptedServer(b"", b"") as server:
            self.fails(1, "may have been done", "keyspace", "create", "x", "--server", server.url)
            self.assertEqual(len(server.requests), 2)
            self.assertNotIn(keys[0], server.requests[0])

    def test_list(self):
        for name in ("list-a", "list-b", "list-c"):
            self.does("keyspace", "create", name)
        self.does("keyspace", "state", "list-b", "disable")
        out = self.does("keyspace", "list").out
        self.assertRegex(out.splitlines()[0], r"^ *ID  NAME +STATE +CREATED +AGE$")
        self.assertRegex(out, rf"(?m)^ *\d+  list-a +ENABLED +{ISO}  \d+ s ago$")
        everything = self.does("keyspace", "list", "--json").lines
        self.assertEqual(everything[0]["name"], "DEFAULT")
        self.assertEqual([k["id"] for k in everything], sorted(k["id"] for k in everything))
        disabled = self.does("keyspace", "list", "--state", "disabled", "--json").lines
        self.assertIn("list-b", [k["name"] for k in disabled])
        self.assertEqual({k["state"] for k in disabled}, {"DISABLED"})
        self.assertEqual(self.does("keyspace", "list", "--limit", 2, "--json").lines,
                         everything[:2])
        self.fails(2, "--state", "keyspace", "list", "--state", "asleep")
        self.fails(2, "too small", "keyspace", "list", "--limit", 0)

    def test_show(self):
        self.does("keyspace", "create", "seen", "--id", 90, "--config", "owner=ann")
        self.does("raw", "put", "k", "v", "--keyspace", "seen")
        out = self.does("keyspace", "show", "seen").out
        for pattern in (r"^name +seen$", r"^id +90$",
                        rf"^state +ENABLED since {ISO} \(\d+ s ago\)$", rf"^created +{ISO}",
                        r"^revision +\d+$", r"^bytes +\d+ B \(\d+ B live",
                        r"^keys +1$", r"^load +[\d.]+ reads/s, [\d.]+ writes/s$", r"^gc +\S",
                        r"^config +owner = ann$"):
            self.assertRegex(out, "(?m)" + pattern)
        by_name = self.does("keyspace", "show", "seen", "--json").json
        by_id = self.does("keyspace", "show", "--id", 90, "--json").json
        self.assertEqual(by_name["keyspace"], by_id["keyspace"])
        self.assertEqual(by_name["figures"]["keys"], 1)
        self.fails(1, "`trellis keyspace list`", "keyspace", "show", "nobody")
        self.fails(1, "does not exist", "keyspace", "show", "--id", 12345)
        self.fails(2, "--id N", "keyspace", "show")
        self.fails(2, "--id N", "keyspace", "show", "seen", "--id", 90)

    def test_state(self):
        self.does("keyspace", "create", "moody")
        self.fails(1, "moody", "keyspace", "state", "moody", "undo")
        self.assertEqual(self.does("keyspace", "state", "moody", "disable").out,
                         "moody is DISABLED\n")
        out = self.does("keyspace", "state", "moody", "archive").out
        self.assertIn("moody is ARCHIVED\n", out)
        self.assertRegex(out, rf"will be removed on {ISO} \(in 7 d\)")
        self.assertIn("`trellis keyspace state moody undo`", out)
        self.assertEqual(self.does("keyspace", "state", "moody", "undo").out, "moody is DISABLED\n")
        done = self.does("keyspace", "state", "moody", "enable", "--json")
        self.assertEqual((done.json["name"], done.json["state"]), ("moody", "ENABLED"))
        self.does("keyspace", "state", "moody", "disable")
        self.does("keyspace", "state", "moody", "archive")
        self.assertEqual(self.does("keyspace", "state", "moody", "undo", "--json").json["state"],
                         "DISABLED")
        self.fails(1, "default keyspace", "keyspace", "state", "DEFAULT", "disable")
        self.fails(2, "CHANGE", "keyspace", "state", "moody", "sleep")
        self.fails(2, "CHANGE", "keyspace", "state", "moody")

    def test_config(self):
        self.does("keyspace", "create", "tuned", "--config", "a=1")
        self.assertEqual(self.does("keyspace", "config", "tuned").rows, [["a", "1"]])
        out = self.does("keyspace", "config", "tuned", "b=2", "c=3", "--unset", "a", "--if", "a=1",
                        "--if-absent", "b").out
        self.assertEqual(out, "KEY  VALUE\nb    2\nc    3\n")
        self.assertEqual(self.does("keyspace", "config", "tuned", "--json").json["config"],
                         {"b": "2", "c": "3"})
        self.fails(1, "expected=9", "keyspace", "config", "tuned", "b=5", "--if", "b=9")
        self.fails(1, "precondition", "keyspace", "config", "tuned", "b=5", "--if-absent", "c")
        self.assertEqual(self.does("keyspace", "config", "tuned", "--json").json["config"],
                         {"b": "2", "c": "3"})
        self.fails(2, "need something to change", "keyspace", "config", "tuned", "--if", "b=2")
        self.fails(2, "given twice", "keyspace", "config", "tuned", "b=1", "--unset", "b")
        self.fails(2, "not key=value", "keyspace", "config", "tuned", "b")
        self.fails(1, "does not exist", "keyspace", "config", "nobody", "a=1")

    def test_rename(self):
        self.does("keyspace", "create", "before", "--id", 95)
        self.assertEqual(self.does("keyspace", "rename", "before", "after").out,
                         "before is now called after\n")
        self.fails(1, "does not exist", "keyspace", "show", "before")
        done = self.does("keyspace", "rename", "after", "later", "--json")
        self.assertEqual((done.json["id"], done.json["name"]), (95, "later"))
        self.does("keyspace", "create", "taken")
        self.fails(1, "exists", "keyspace", "rename", "later", "taken")
        self.fails(1, "name", "keyspace", "rename", "later", "a b")
        self.fails(2, "NEW", "keyspace", "rename", "later")

    def test_hostile_text_is_not_obeyed(self):
        self.does("keyspace", "create", "evil", "--config", "k=\x1b[31mred")
        for command in (["show", "evil"], ["config", "evil"]):
            out = self.does("keyspace", *command).out
            self.assertIn("\\x1b[31mred", out)
            self.assertNotIn("\x1b", out)
        self.assertEqual(self.does("keyspace", "config", "evil", "--json").json["config"]["k"],
                         "\x1b[31mred")
        answer = json.dumps({"code": "odd", "message": "a\nb\x1b[31m"})
        with ScriptedServer(http_answer(400, answer)) as server:
            self.fails(1, "a\\nb\\x1b[31m", "keyspace", "top", "--server", server.url)


class ManyPages(ClientTest):
    def test_list_goes_from_page_to_page(self):
        connection = http.client.HTTPConnection(urllib.parse.urlsplit(self.server.url).netloc)
        names = [f"many-{number}" for number in range(1203)]
        for name in names:
            connection.request("POST", "/pd/api/v2/keyspaces", json.dumps({"name": name}))
            self.assertEqual(connection.getresponse().read()[:1], b"{")
        connection.close()
        listed = [k["name"] for k in self.does("keyspace", "list", "--json").lines]
        self.assertEqual(listed, ["DEFAULT", *names])
        self.assertEqual(len(self.does("keyspace", "list", "--limit", 700).rows), 700)
        changes = self.does("keyspace", "audit", "--json").lines
        self.assertEqual([change["name"] for change in changes], ["DEFAULT", *names])
        only = self.does("keyspace", "audit", "--keyspace", "many-1100", "--json").lines
        self.assertEqual([change["name"] for change in only], ["many-1100"])
        self.assertEqual(len(self.does("keyspace", "audit", "--limit", 501).rows), 501)


class Tokens(ClientTest):
    def test_a_token_is_shown_once_and_works(self):
        self.does("keyspace", "create", "safe")
        done = self.does("keyspace", "token", "create", "safe", "--role", "write", "--label", "ci",
                         "--ttl", "30d")
        self.assertRegex(done.out, r"^trl_\w+_[-\w]+\n$")
        self.assertIn("never again", done.err)
        self.assertIn("(in 30 d)", done.err)
        token = done.out.strip()
        self.does("raw", "put", "k", "v", TRELLIS_TOKEN=token)
        self.assertEqual(self.does("raw", "get", "k", "--token", token).out, "v")
        self.assertEqual(self.does("raw", "get", "k", "--keyspace", "safe").out, "v")
        self.does("raw", "put", "l", "--token", "-", stdin=f"{token}\nvalue\n".encode())
        self.assertEqual(self.does("raw", "get", "l", TRELLIS_TOKEN=token).out, "value\n")
        self.fails(1, "another keyspace", "raw", "get", "k", "--keyspace", "DEFAULT",
                   TRELLIS_TOKEN=token)
        self.fails(1, "role", "keyspace", "list", TRELLIS_TOKEN=token)

    def test_json_and_list(self):
        self.does("keyspace", "create", "listed")
        made = self.does("keyspace", "token", "create", "listed", "--role", "read", "--json")
        self.assertIn("never again", made.err)
        self.assertEqual((made.json["role"], made.json["expires_at_ms"]), ("read", None))
        secret, token_id = made.json["token"], made.json["id"]
        self.fails(1, "role", "raw", "put", "k", "v", TRELLIS_TOKEN=secret)
        listed = self.does("keyspace", "token", "list", "listed")
        self.assertEqual(listed.out.splitlines()[0].split(),
                         ["ID", "ROLE", "CREATED", "EXPIRES", "LABEL"])
        self.assertEqual(listed.rows[0][:2], [token_id, "read"])
        as_json = self.does("keyspace", "token", "list", "listed", "--json")
        self.assertEqual([t["id"] for t in as_json.json["tokens"]], [token_id])
        self.assertNotIn(secret, listed.out + as_json.out)
        self.assertIn("revoked", self.does("keyspace", "token", "revoke", "listed", token_id).out)
        self.fails(1, "TRELLIS_TOKEN", "raw", "get", "k", TRELLIS_TOKEN=secret)
        self.fails(1, token_id, "keyspace", "token", "revoke", "listed", token_id)
        other = self.does("keyspace", "token", "create", "listed", "--role", "admin", "--json").json
        self.assertEqual(
            self.does("keyspace", "token", "revoke", "listed", other["id"], "--json").json,
            {"revoked": other["id"]})

    def test_a_typed_token_is_not_shown(self):
        self.does("keyspace", "create", "typed")
        token = self.does("keyspace", "token", "create", "typed", "--role", "read").out.strip()
        code, shown = self.on_terminal("keyspace", "show", "typed", "--token", "-",
                                       typed=f"{token}\n", after="Token: ")
        self.assertEqual(code, 0, shown)
        self.assertIn("typed", shown)
        self.assertNotIn(token, shown)

    def test_wrong_use(self):
        self.fails(2, "--role", "keyspace", "token", "create", "safe")
        self.fails(2, "--role", "keyspace", "token", "create", "safe", "--role", "god")
        self.fails(2, "length of time", "keyspace", "token", "create", "safe", "--role", "read",
                   "--ttl", "30")
        self.fails(2, "whole seconds", "keyspace", "token", "create", "safe", "--role", "read",
                   "--ttl", "100ms")
        self.fails(1, "does not exist", "keyspace", "token", "create", "nobody", "--role", "read")
        self.fails(2, "spaces", "keyspace", "list", "--token", "a b")
        self.fails(2, "no token on standard input", "keyspace", "list", "--token", "-")
        self.fails(1, "token", "keyspace", "list", "--token", "nonsense")


class Quotas(ClientTest):
    def test_quota_is_printed_and_kept(self):
        self.does("keyspace", "create", "small")
        self.assertEqual(self.does("keyspace", "quota", "small").rows,
                         [["bytes", "none", "0", "B"], ["keys", "none", "0"],
                          ["operations", "none", "0.0/s"]])
        out = self.does("keyspace", "quota", "small", "--bytes", "10GiB", "--keys", 1, "--ops",
                        5000).out
        for pattern in (r"bytes +10.0 GiB", r"keys +1 ", r"operations +5000/s"):
            self.assertRegex(out, pattern)
        self.does("raw", "put", "a", "1", "--keyspace", "small")
        self.fails(1, "keys", "raw", "put", "b", "1", "--keyspace", "small")
        answer = self.does("keyspace", "quota", "small", "--json").json
        self.assertEqual(answer["quota"],
                         {"bytes": 10 << 30, "keys": 1, "operations_per_second": 5000})
        self.assertEqual(answer["figures"]["keys"], 1)
        answer = self.does("keyspace", "quota", "small", "--keys", "none", "--json").json
        self.assertEqual(answer["quota"]["keys"], 0)
        self.assertEqual(answer["quota"]["bytes"], 10 << 30)
        self.does("raw", "put", "b", "1", "--keyspace", "small")

    def test_wrong_use(self):
        self.fails(2, "use none", "keyspace", "quota", "small", "--keys", 0)
        self.fails(2, "not a size", "keyspace", "quota", "small", "--bytes", "lots")
        self.fails(2, "whole number", "keyspace", "quota", "small", "--ops", "1K")
        self.fails(1, "does not exist", "keyspace", "quota", "nobody", "--keys", 1)


class Garbage(ClientTest):
    def test_hold_and_release(self):
        self.does("keyspace", "create", "held", "--id", 60)
        out = self.does("keyspace", "gc", "hold", "held", "backup-7", "--at",
                        "2020-01-01T00:00:00Z", "--ttl", "2h").out
        self.assertRegex(out, rf"^backup-7 holds .* 2020-01-01T00:00:00Z .*expires: {ISO} \(in 2 h")
        state = self.does("keyspace", "gc", "state", "held")
        self.assertRegex(state.out, r"(?m)^hold backup-7 +2020-01-01T00:00:00Z \(\d+ d ago\)")
        as_json = self.does("keyspace", "gc", "state", "id:60", "--json").json
        self.assertEqual(as_json["service_safe_points"][0]["safe_point"], 1577836800000 << 18)
        explained = self.does("keyspace", "gc", "explain", "held")
        self.assertRegex(explained.out, r"(?m)^gc safe point  ")
        self.assertIn("explanation", self.does("keyspace", "gc", "explain", "held", "--json").json)
        advanced = self.does("keyspace", "gc", "advance", "held").out
        self.assertRegex(advanced, r"(?m)^txn safe point  2020-01-01T00:00:00Z")
        self.assertRegex(advanced, r"(?m)^gc safe point   2020-01-01T00:00:00Z")
        self.assertRegex(advanced, r"(?m)^held by .*backup-7")
        self.assertIn("holds nothing", self.does("keyspace", "gc", "release", "held",
                                                 "backup-7").out)
        self.fails(1, "backup-7", "keyspace", "gc", "release", "held", "backup-7")
        target = 1600000000000 << 18
        answer = self.does("keyspace", "gc", "advance", "held", "--to", target, "--json").json
        self.assertEqual(answer, {"keyspace_id": 60, "txn_safe_point": target,
                                  "gc_safe_point": target, "blocker_description": ""})
        self.fails(1, "", "keyspace", "gc", "advance", "held", "--to", "2019-01-01T00:00:00Z")
        self.fails(1, "", "keyspace", "gc", "hold", "held", "late", "--at", "2019-01-01T00:00:00Z")

    def test_a_hold_without_an_end(self):
        self.does("keyspace", "create", "kept")
        hold = self.does("keyspace", "gc", "hold", "kept", "ever", "--ttl", "never", "--json").json
        self.assertEqual(hold["service_id"], "ever")
        self.assertRegex(self.does("keyspace", "gc", "state", "kept").out,
                         r"(?m)^hold ever .* never$")
        released = self.does("keyspace", "gc", "release", "kept", "ever", "--json").json
        self.assertEqual(released["service_id"], "ever")

    def test_wrong_use(self):
        self.fails(2, "not a time", "keyspace", "gc", "hold", "held", "x", "--at", "yesterday")
        self.fails(2, "length of time", "keyspace", "gc", "hold", "held", "x", "--ttl", "1")
        self.fails(2, "not a time", "keyspace", "gc", "advance", "held", "--to", "-1")
        self.fails(2, "SERVICE", "keyspace", "gc", "release", "held")
        self.fails(1, "does not exist", "keyspace", "gc", "state", "nobody")
        self.fails(2, "is not a command", "keyspace", "gc", "collect")


class Activity(ClientTest):
    def test_top(self):
        self.does("keyspace", "create", "large")
        self.does("raw", "put", "k", stdin=bytes(5000), *["--keyspace", "large"])
        top = self.does("keyspace", "top")
        self.assertEqual(top.out.splitlines()[0].split(),
                         ["ID", "NAME", "BYTES", "KEYS", "READS/S", "WRITES/S"])
        self.assertEqual(top.rows[0][1:4], ["large", "4.9", "KiB"])
        as_json = self.does("keyspace", "top", "--by", "keys", "--limit", 1, "--json").json
        self.assertEqual((as_json["by"], as_json["keyspaces"][0]["name"]), ("keys", "large"))
        self.assertEqual(self.does("keyspace", "top", "--by", "operations", "--json").json["by"],
                         "operations")
        self.fails(2, "--by", "keyspace", "top", "--by", "size")

    def test_top_again_and_again(self):
        watching = self.start("keyspace", "top", "--watch", "--every", "100ms", "--json")
        for _ in range(3):
            self.assertEqual(json.loads(watching.stdout.readline())["by"], "bytes")
        self.fails(2, "100ms to 24h", "keyspace", "top", "--watch", "--every", "1ms")

    def test_audit(self):
        self.does("keyspace", "create", "noted")
        self.does("keyspace", "state", "noted", "disable")
        audit = self.does("keyspace", "audit", "--keyspace", "noted")
        self.assertEqual(audit.out.splitlines()[0].split(),
                         ["REVISION", "TIME", "ACTOR", "ACTION", "ID", "KEYSPACE", "DETAIL"])
        self.assertEqual([row[3] for row in audit.rows], ["create", "state"])
        self.assertIn("ENABLED -> DISABLED", audit.out)
        changes = self.does("keyspace", "audit", "--keyspace", "noted", "--json").lines
        self.assertEqual([change["action"] for change in changes], ["create", "state"])
        later = self.does("keyspace", "audit", "--since", changes[0]["revision"], "--limit", 1,
                          "--json").lines
        self.assertEqual(len(later), 1)
        self.assertEqual(later[0]["revision"], changes[0]["revision"] + 1)
        # Of what is done to no one keyspace, too.
        self.does("keyspace", "gc", "pace", "--threads", 2)
        last = self.does("keyspace", "audit", "--json").lines[-1]
        self.assertEqual((last["action"], last["keyspace_id"], last["name"]),
                         ("collector", None, ""))
        self.assertIn("threads 2", self.does("keyspace", "audit").out.splitlines()[-1])
        self.fails(1, "999999", "keyspace", "audit", "--since", 999999)
        self.fails(2, "whole number", "keyspace", "audit", "--since", "yesterday")

    def test_watch(self):
        watching = self.start("keyspace", "watch")
        self.assertEqual(watching.stdout.readline().split(),
                         ["REVISION", "EVENT", "ID", "STATE", "NAME"])
        self.assertEqual(watching.stdout.readline().split()[1:], ["upsert", "0", "ENABLED",
                                                                 "DEFAULT"])
        self.does("keyspace", "create", "watched")
        self.does("keyspace", "state", "watched", "disable")
        seen = []
        while not seen or seen[-1][3:] != ["DISABLED", "watched"]:
            seen.append(watching.stdout.readline().split())
        revision = int(seen[-1][0])
        again = self.start("keyspace", "watch", "--since", revision - 1, "--json")
        event = json.loads(again.stdout.readline())
        self.assertEqual((event["revision"], event["type"], event["keyspace"]["name"],
                          event["keyspace"]["state"]), (revision, "upsert", "watched", "DISABLED"))
        self.fails(1, "999999", "keyspace", "watch", "--since", 999999)
        self.fails(2, "whole number", "keyspace", "watch", "--since", "now")


class WatchEnds(TrellisTest):
    def test_it_says_how_to_go_on(self):
        with Server("--engine", "memory") as server:
            watching = subprocess.Popen([BINARY, "keyspace", "watch", "--server", server.url],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env=clean_environment())
            watching.stdout.readline()
            revision = watching.stdout.readline().split()[0]
            server.stop(signal.SIGKILL)
            _, err = watching.communicate(timeout=60)
        self.assertEqual(watching.returncode, 1)
        self.assertIn(f"`trellis keyspace watch --since {revision}`", err)


class Purge(ClientTest):
    arguments = ("--engine", "memory", "--gc-life-time", "100ms")

    def archive(self, name, entries=0):
        self.does("keyspace", "create", name)
        lines = "".join(json.dumps({"key": f"k{i}", "value": "v" * 1000}) + "\n"
                        for i in range(entries))
        if entries:
            self.does("raw", "import", "--keyspace", name, stdin=lines.encode())
        self.does("keyspace", "state", name, "disable")
        self.does("keyspace", "state", name, "archive")

    def test_wait(self):
        self.archive("doomed", 3000)
        out = self.does("keyspace", "purge", "doomed", "--yes", "--wait").out
        self.assertRegex(out.splitlines()[-1], r"^doomed: done, 100%, 2\.\d MiB of 2\.\d MiB, "
                                               r"\d+ entries removed$")
        self.fails(1, "does not exist", "keyspace", "show", "doomed")
        self.does("keyspace", "create", "doomed")  # the name is free again

    def test_json(self):
        self.archive("gone")
        done = self.does("keyspace", "purge", "gone", "--yes", "--json").json
        self.assertEqual(done["state"], "TOMBSTONE")
        self.archive("gone-too", 100)
        progress = self.does("keyspace", "purge", "gone-too", "--yes", "--wait", "--json").lines
        self.assertEqual(progress[-1]["state"], "done")

    def test_not_archived(self):
        self.does("keyspace", "create", "alive")
        self.fails(1, "add --yes", "keyspace", "purge", "alive")  # nobody to ask
        self.fails(1, "ARCHIVED", "keyspace", "purge", "alive", "--yes")

    def test_says_how_to_see_more(self):
        self.archive("leaving")
        out = self.does("keyspace", "purge", "leaving", "--yes").out
        shown = re.search(r"`trellis (keyspace show --id \d+)`", out)[1]
        self.assertRegex(self.does(*shown.split()).out, r"(?m)^state +TOMBSTONE")

    def test_a_terminal_is_asked(self):
        self.archive("asked", 2000)
        code, shown = self.on_terminal("keyspace", "purge", "asked", typed="wrong\n", after="Type")
        self.assertEqual(code, 1)
        self.assertIn("nothing was done", shown)
        self.assertIn("ARCHIVED", self.does("keyspace", "show", "asked").out)
        code, shown = self.on_terminal("keyspace", "purge", "asked", typed="\x04", after="Type")
        self.assertEqual(code, 1)
        self.does("keyspace", "gc", "pace", "--speed", "1MiB")  # there is time to see how far it is
        self.addCleanup(self.does, "keyspace", "gc", "pace", "--speed", "0")
        code, shown = self.on_terminal("keyspace", "purge", "asked", "--wait", typed="asked\n",
                                       after="Type")
        self.assertEqual(code, 0, shown)
        self.assertIn("Type asked", shown)
        self.assertRegex(shown, r"\r\x1b\[K\x1b\[\?7lasked: running \[#+\.+\] \d+%, 1\.")
        self.assertIn("asked: done, 100%", shown)
        self.archive("unasked")
        code, shown = self.on_terminal("keyspace", "purge", "unasked", "--yes")
        self.assertEqual(code, 0)
        self.assertNotIn("Type", shown)


class Trouble(ClientTest):
    def test_nobody_there(self):
        for command in (["keyspace", "list"], ["raw", "get", "k"]):
            done = self.fails(1, "cannot reach 127.0.0.1:1", *command, "--server",
                              "http://127.0.0.1:1")
            self.assertIn("`trellis serve`", done.err)
        code, _, err = trellis("keyspace", "list", "--server", "http://127.0.0.1:1")
        self.assertEqual(code, 1, err)

    def test_somebody_else_there(self):
        for answer in (http_answer(404, "<html>", "text/html"), http_answer(200, "[]"),
                       http_answer(200, "hello"), http_answer(500, "")):
            with ScriptedServer(answer) as server:
                self.fails(1, "is a Trellis server there?", "keyspace", "top", "--server",
                           server.url)
        with ScriptedServer(b"SSH-2.0-OpenSSH\r\n\r\n") as server:
            self.fails(1, "makes no sense", "keyspace", "top", "--server", server.url)

    def test_a_server_that_hangs(self):
        with ScriptedServer(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{") as server:
            self.fails(1, "broke off", "keyspace", "top", "--server", server.url)
        with ScriptedServer(None) as server:
            self.fails(1, "nothing for 200 ms", "keyspace", "top", "--server", server.url,
                       "--timeout", "200ms")
        self.fails(2, "--timeout", "keyspace", "top", "--timeout", "0s")
        self.fails(2, "no URL", "keyspace", "top", "--server", "localhost:7380")

    def test_the_reader_leaves(self):
        for command in (["list"], ["audit"], ["top"], ["watch"], ["top", "--watch"]):
            reader, writer = os.pipe()
            os.close(reader)
            process = self.start("keyspace", *command, stdout=writer)
            os.close(writer)
            self.assertEqual((process.wait(timeout=60), process.stderr.read()), (0, ""), command)

    def test_the_disk_is_full(self):
        with open("/dev/full", "wb") as full:
            process = self.start("keyspace", "list", stdout=full)
        self.assertEqual(process.wait(timeout=60), 1)
        self.assertIn("No space left", process.stderr.read())

    def test_help_and_unknown_things(self):
        for command in ([], ["create"], ["list"], ["show"], ["state"], ["config"], ["rename"],
                        ["token"], ["token", "create"], ["token", "list"], ["token", "revoke"],
                        ["quota"], ["gc"], ["gc", "explain"], ["gc", "state"], ["gc", "hold"],
                        ["gc", "release"], ["gc", "advance"], ["top"], ["purge"], ["audit"],
                        ["watch"]):
            with self.subTest(command=command):
                out = self.does("keyspace", *command, "--help").out
                if command not in ([], ["token"], ["gc"]):
                    self.assertIn("Example", out)
                    for option in ("--server", "--token", "--json", "--ca", "--timeout",
                                   "TRELLIS_SERVER", "TRELLIS_TOKEN", "can see arguments"):
                        self.assertIn(option, out)
                self.fails(2, "", "keyspace", *command, "--no-such-option")
        self.fails(2, "is not a command: see --help", "keyspace", "destroy")
        self.fails(2, "did you mean list?", "keyspace", "lsit")
        self.fails(2, "did you mean --keys?", "keyspace", "quota", "x", "--kyes=1")
        self.fails(2, "not expected", "keyspace", "list", "extra")

    def test_a_server_does_not_mind_the_variables_of_tools(self):
        with Server("--engine", "memory", TRELLIS_SERVER="http://127.0.0.1:1",
                    TRELLIS_KEYSPACE="shop", TRELLIS_TOKEN="trl", TRELLIS_USER="ann") as server:
            self.does("keyspace", "list", "--server", server.url)

    def test_variables_and_flags(self):
        self.does("keyspace", "list", TRELLIS_SERVER="http://127.0.0.1:1", *[
            "--server", self.server.url])
        self.does("keyspace", "list", "--server", self.server.url + "/", TRELLIS_TOKEN="")


class Strict(TrellisTest):
    def test_without_a_token(self):
        secret = self.folder / "admin"
        with Server("--engine", "memory", "--auth", "required", "--admin-token-file",
                    secret) as server:
            for command in (["keyspace", "list"], ["keyspace", "top"], ["raw", "get", "k"]):
                code, out, err = trellis(*command, "--server", server.url)
                self.assertEqual((code, out), (1, ""))
                self.assertIn("TRELLIS_TOKEN", err)
            code, out, err = trellis("keyspace", "list", "--server", server.url, "--token", "-",
                                     stdin=secret.read_text())
            self.assertEqual(code, 0, err)
            self.assertIn("DEFAULT", out)


@unittest.skipUnless(shutil.which("openssl"), "openssl makes the certificate")
class Secure(TrellisTest):
    def test_https(self):
        key, certificate = self.folder / "key.pem", self.folder / "cert.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out",
                        certificate, "-days", "2", "-subj", "/CN=localhost", "-addext",
                        "subjectAltName=IP:127.0.0.1,DNS:localhost"],
                       check=True, capture_output=True)
        with Server("--engine", "memory", "--tls-cert", certificate, "--tls-key", key) as server:
            self.assertTrue(server.url.startswith("https://"))
            code, out, err = trellis("keyspace", "list", "--server", server.url, "--ca",
                                     certificate)
            self.assertEqual((code, err), (0, ""))
            self.assertIn("DEFAULT", out)
            code, out, err = trellis("keyspace", "list", "--server", server.url,
                                     TRELLIS_CA=str(certificate))
            self.assertEqual((code, err), (0, ""))
            code, _, err = trellis("keyspace", "list", "--server", server.url)
            self.assertEqual(code, 1)
            self.assertIn("--ca FILE", err)
            code, _, err = trellis("keyspace", "list", "--server", server.url, "--ca",
                                   self.folder / "none.pem")
            self.assertEqual(code, 1)
            self.assertIn("none.pem", err)


if __name__ == "__main__":
    unittest.main()
