"""What /v1 knows of keyspaces beyond PD: figures, quotas, tokens, life, GC, logs and watches."""

import json
import threading
import time
import unittest

from trellis_http import (GC, ID_MAX, KEYSPACES, V1, Api, V1Test, dashed, eventually, in_parallel,
                          raw, timestamp)



class Show(V1Test):
    def test_all_that_is_known(self):
        made = self.create(config={"a": "b"})
        self.assertEqual(self.show(made["name"]), {
            "keyspace": made, "revision": self.show(made["name"])["revision"],
            "retire_at_ms": None, "purged_at": None,
            "quota": {"bytes": 0, "keys": 0, "operations_per_second": 0},
            "figures": {"bytes": 0, "live_bytes": 0, "waiting_bytes": 0, "keys": 0},
            "load": {"reads_per_second": 0, "writes_per_second": 0, "reads": 0, "writes": 0},
            "gc": "nothing waits", "purge": None})
        by_id = self.api.get(f"/v1/keyspace-ids/{made['id']}").json
        self.assertEqual(by_id, self.show(made["name"]))

    def test_figures_are_exact(self):
        name = self.create()["name"]
        self.put(name, "a", b"1234")
        one = self.show(name)["figures"]["bytes"]
        self.put(name, "b", b"1234")
        self.assertEqual(self.show(name)["figures"],
                         {"bytes": 2 * one, "live_bytes": 2 * one, "waiting_bytes": 0, "keys": 2})
        self.put(name, "b", b"123456")
        self.assertEqual(self.show(name)["figures"]["bytes"], 2 * one + 2)
        for key in ("a", "b", "none"):
            self.api.delete(raw(name, key))
        self.assertEqual(self.show(name)["figures"]["bytes"], 0)
        self.api.get(raw(name, "a"))
        load = self.show(name)["load"]
        self.assertEqual((load["reads"], load["writes"]), (1, 6))

    def test_not_found(self):
        self.refused(self.api.get(f"{V1}/nobody"), 404, "keyspace_not_found")
        self.refused(self.api.get("/v1/keyspace-ids/4000000"), 404, "keyspace_not_found")
        self.refused(self.api.get("/v1/keyspace-ids/x"), 400, "bad_id")
        self.refused(self.api.get(f"/v1/keyspace-ids/{ID_MAX + 1}"), 422, "illegal_id")
        self.refused(self.api.get("/v1/keyspace-ids/4294967296/purge"), 422, "illegal_id")
        self.refused(self.api.get(f"{V1}/DEFAULT?verbose=1"), 400, "bad_query")
        self.refused(self.api.get("/v1/nothing"), 404, "path_not_found")
        self.refused(self.api.delete(f"{V1}/DEFAULT"), 405, "method_not_allowed")


class Quotas(V1Test):
    def test_what_is_left_out_stays(self):
        name = self.create()["name"]
        self.assertEqual(self.set_quota(name, keys=5),
                         {"bytes": 0, "keys": 5, "operations_per_second": 0})
        self.assertEqual(self.set_quota(name, bytes=2**64 - 1, operations_per_second=9),
                         {"bytes": 2**64 - 1, "keys": 5, "operations_per_second": 9})
        self.assertEqual(self.set_quota(name, keys=None)["keys"], 5)
        self.assertEqual(self.show(name)["quota"], self.set_quota(name))
        for body in ('{"keys":-1}', '{"keys":1.5}', '{"keys":"5"}', '{"kys":5}', "[]", "",
                     f'{{"keys":{2**64}}}'):
            with self.subTest(body=body):
                self.refused(self.api.put(f"{V1}/{name}/quota", body), 400, "bad_body")
        self.refused(self.api.put(f"{V1}/nobody/quota", {"keys": 1}), 404, "keyspace_not_found")

    def test_keys(self):
        name = self.create()["name"]
        self.set_quota(name, keys=3)
        for key in "abc":
            self.put(name, key)
        answer = self.api.put(raw(name, "d"), b"v")
        error = self.refused(answer, 429, "quota_exceeded")
        self.assertNotIn("Retry-After", answer.headers)  # waiting makes no room
        self.assertFalse(error["retryable"])
        self.put(name, "a", b"another value")  # needs no more keys
        batch = {"operations": [{"delete": {"key": "a"}}, {"put": {"key": "d", "value": "1"}},
                                {"put": {"key": "e", "value": "1"}}]}
        self.refused(self.api.post(f"/k/{name}/v1/raw/batch", batch), 429, "quota_exceeded")
        self.assertEqual(self.api.get(raw(name, "a")).body, b"another value")
        batch["operations"].pop()
        self.assertEqual(self.api.post(f"/k/{name}/v1/raw/batch", batch).json, {"applied": 2})
        self.api.delete(raw(name, "b"))
        self.put(name, "f")
        self.set_quota(name, keys=0)
        self.put(name, "g")

    def test_bytes(self):
        name = self.create()["name"]
        self.put(name, "a", b"x" * 1000)
        used = self.show(name)["figures"]["bytes"]
        self.set_quota(name, bytes=used + 10)
        self.put(name, "a", b"x" * 1010)
        self.refused(self.api.put(raw(name, "a"), b"x" * 1011), 429, "quota_exceeded")
        self.refused(self.api.put(raw(name, "b"), b""), 429, "quota_exceeded")
        self.put(name, "a", b"")

    def test_nobody_passes_it_together(self):
        name = self.create()["name"]
        self.set_quota(name, keys=20)
        statuses = []

        def write(n):
            api = Api(self.server)
            statuses.extend(api.put(raw(name, f"{n}-{i}"), b"v").status for i in range(10))
            api.close()

        in_parallel(8, write)
        self.assertEqual((statuses.count(204), statuses.count(429)), (20, 60))
        self.assertEqual(self.show(name)["figures"]["keys"], 20)

    def test_rate(self):
        name = self.create()["name"]
        self.set_quota(name, operations_per_second=20)
        begin, done, refused = time.monotonic(), 0, None
        while refused is None:
            answer = self.api.get(raw(name, "a"))
            if answer.status == 429:
                refused = answer
            else:
                self.assertEqual(answer.status, 404)
                done += 1
        self.assertLessEqual(done, 20 + 20 * (time.monotonic() - begin) + 1)
        error = self.refused(refused, 429, "rate_exceeded")
        self.assertTrue(error["retryable"])
        self.assertGreater(error["details"]["retry_after_ms"], 0)
        self.assertGreaterEqual(int(refused.headers["Retry-After"]), 1)
        other = self.create()["name"]
        self.put(other, "a")  # has a quota of its own, which is none
        eventually(lambda: self.api.put(raw(name, "a"), b"1").status == 204, "it recovers")


class Tokens(V1Test):
    def test_made_listed_and_revoked(self):
        name = self.create()["name"]
        before_ms = time.time() * 1000
        answer = self.api.post(f"{V1}/{name}/tokens", {"role": "write", "label": "ci ☃",
                                                       "ttl_seconds": 60})
        self.assertEqual(answer.status, 201, answer)
        self.assertEqual(answer.headers["Cache-Control"], "no-store")
        made = answer.json
        self.assertRegex(made["token"], r"^trl_[0-9a-f]{6}_[0-9a-f]{16}_[-A-Za-z0-9_]{43}$")
        self.assertEqual((made["role"], made["label"]), ("write", "ci ☃"))
        self.assertTrue(before_ms - 1 <= made["created_at_ms"] <= time.time() * 1000)
        self.assertEqual(made["expires_at_ms"], made["created_at_ms"] + 60_000)
        forever = self.token(name, "read")
        self.assertIsNone(forever["expires_at_ms"])
        listed = self.api.get(f"{V1}/{name}/tokens")
        self.assertNotIn(made["token"][-43:].encode(), listed.body)
        shown = [{k: v for k, v in t.items() if k != "token"} for t in (made, forever)]
        self.assertCountEqual(listed.json["tokens"], shown)
        path = f"{V1}/{name}/tokens/{made['id']}"
        self.assertEqual(self.api.delete(path).status, 204)
        self.refused(self.api.delete(path), 404, "token_not_found")
        self.refused(self.connect(made["token"]).get("/v1/raw/keys"), 401, "bad_token")

    def test_bad_requests(self):
        path = f"{V1}/{self.create()['name']}/tokens"
        for body in ("", "{}", '{"role":"root"}', '{"role":"server admin"}', '{"role":1}',
                     '{"role":"read","ttl_seconds":-1}', '{"role":"read","ttl":1}'):
            with self.subTest(body=body):
                self.refused(self.api.post(path, body), 400, "bad_body")
        for body, code in (({"role": "read", "ttl_seconds": 0}, "illegal_ttl"),
                           ({"role": "read", "ttl_seconds": 2**64 - 1}, "illegal_ttl"),
                           ({"role": "read", "label": "x" * 129}, "illegal_token"),
                           ({"role": "read", "label": "a\nb"}, "illegal_token")):
            with self.subTest(body=body):
                self.refused(self.api.post(path, body), 422, code)
        for token_id in ("x", "0" * 16, "%00", "..%2F", "F" * 16):
            with self.subTest(id=token_id):
                self.refused(self.api.delete(f"{path}/{token_id}"), 404, "token_not_found")

    def routes(self, name, keyspace_id):
        """(least role, method, path, body); none of them does anything that another needs."""
        data = f"/k/{name}/v1/raw"
        hold = {"safe_point": 1, "ttl": 1}
        reads = [f"{data}/keys/a", f"{data}/keys", f"{data}/export", f"{KEYSPACES}/{name}",
                 f"{KEYSPACES}/id/{keyspace_id}", f"{GC}/safepoint/{keyspace_id}",
                 f"{GC}/txn_safepoint/{keyspace_id}", f"{GC}/service_safepoint/{keyspace_id}",
                 f"{GC}/state/{keyspace_id}", f"{V1}/{name}", f"/v1/keyspace-ids/{keyspace_id}",
                 f"{V1}/{name}/gc"]
        yield from (("read", "GET", path, None) for path in reads)
        yield "read", "HEAD", f"{data}/keys/a", None
        yield "write", "PUT", f"{data}/keys/a", "1"
        yield "write", "DELETE", f"{data}/keys/b", None
        yield "write", "POST", f"{data}/batch", {"operations": []}
        yield "write", "POST", f"{data}/cas", {"key": "a", "expected": None, "new": None}
        yield "write", "POST", f"{data}/import", ""
        yield "admin", "PATCH", f"{KEYSPACES}/{name}/config", {"config": {}}
        yield "admin", "PUT", f"{GC}/safepoint/{keyspace_id}", {"safe_point": 0}
        yield "admin", "PUT", f"{GC}/txn_safepoint/{keyspace_id}", {"safe_point": 0}
        yield "admin", "PUT", f"{GC}/service_safepoint/{keyspace_id}/s", hold
        yield "admin", "DELETE", f"{GC}/service_safepoint/{keyspace_id}/t", None
        yield "admin", "POST", f"{V1}/{name}/tokens", {"role": "read"}
        yield "admin", "GET", f"{V1}/{name}/tokens", None
        yield "admin", "DELETE", f"{V1}/{name}/tokens/0123456789abcdef", None
        yield "server", "GET", KEYSPACES, None
        yield "server", "POST", KEYSPACES, {"name": self.new_name()}
        yield "server", "POST", f"{KEYSPACES}/id", {"name": self.new_name(), "id": 0}
        yield "server", "PUT", f"{KEYSPACES}/{name}/state", {"state": "enabled"}
        yield "server", "GET", "/pd/api/v2/tso/keyspace-groups", None
        yield "server", "POST", "/pd/api/v2/tso/keyspace-groups", {}
        yield "server", "GET", "/pd/api/v2/meta-service-groups", None
        yield "server", "POST", f"{V1}/{name}/rename", {"name": name}
        yield "server", "POST", f"{V1}/{name}/undo", None
        yield "server", "POST", f"{V1}/{name}/purge", None
        yield "server", "PUT", f"{V1}/{name}/quota", {}
        yield "server", "GET", f"/v1/keyspace-ids/{keyspace_id}/purge", None
        yield from (("server", "GET", path, None) for path in ("/v1/top", "/v1/audit", "/metrics"))

    def test_roles_and_routes(self):
        made, other = self.create(), self.create()
        roles = ["read", "write", "admin", "server"]
        apis = {role: self.connect(self.token(made["name"], role)["token"]) for role in roles[:3]}
        apis["server"] = self.api
        for least, method, path, body in self.routes(made["name"], made["id"]):
            for role, api in apis.items():
                with self.subTest(role=role, method=method, path=path):
                    answer = api.call(method, path, body)
                    enough = roles.index(role) >= roles.index(least)
                    if enough:
                        self.assertNotIn(answer.status, (401, 403, 500), answer)
                    else:
                        self.assertEqual(answer.status, 403, answer)
                        self.assertIn(b"role_too_weak", answer.body)
        # Not even an admin's token says anything of another keyspace, or changes it.
        for least, method, path, body in self.routes(other["name"], other["id"]):
            with self.subTest(method=method, path=path):
                answer = apis["admin"].call(method, path, body)
                self.assertEqual(answer.status, 403, answer)
                code = b"role_too_weak" if least == "server" else b"wrong_keyspace"
                if method != "HEAD":
                    self.assertIn(code, answer.body)
        # What everybody may ask needs none.
        bad = self.connect("nonsense")
        for path in ("/healthz", "/readyz", "/openapi.json"):
            self.assertEqual(bad.get(path).status, 200)

    def test_watch_needs_the_server_admin(self):
        token = self.token(self.create()["name"], "admin")["token"]
        self.refused(self.connect(token).get("/v1/watch/keyspaces"), 403, "role_too_weak")

    def test_a_token_names_its_keyspace(self):
        one, two = self.create()["name"], self.create()["name"]
        self.put(one, "a", b"of one")
        api = self.connect(self.token(one, "write")["token"])
        self.assertEqual(api.get("/v1/raw/keys/a").body, b"of one")
        self.assertEqual(api.get("/v1/raw/keys/a", X_Trellis_Keyspace=one).body, b"of one")
        for answer in (api.get("/v1/raw/keys/a", X_Trellis_Keyspace=two), api.get(raw(two, "a")),
                       api.get(raw("DEFAULT", "a")), api.get(raw("nobody", "a")),
                       api.put(raw(two, "a"), b"x")):
            self.refused(answer, 403, "wrong_keyspace")

    def test_expiry(self):
        made = self.token(self.create()["name"], "read", ttl_seconds=1)
        api = self.connect(made["token"])
        status = api.get("/v1/raw/keys").status
        if time.time() * 1000 < made["expires_at_ms"]:
            self.assertEqual(status, 200)
        answer = eventually(lambda: (a := api.get("/v1/raw/keys")).status != 200 and a, "it ends")
        self.refused(answer, 401, "token_expired")
        self.assertEqual(answer.headers["WWW-Authenticate"], "Bearer")
        self.assertGreaterEqual(time.time() * 1000, made["expires_at_ms"])

    def test_a_revoked_token_ends_open_connections(self):
        name = self.create()["name"]
        made = self.token(name, "write")
        api = self.connect(made["token"])
        self.assertEqual(api.put(raw(name, "a"), b"1").status, 204)
        port = api.port
        self.assertEqual(self.api.delete(f"{V1}/{name}/tokens/{made['id']}").status, 204)
        self.refused(api.put(raw(name, "a"), b"2"), 401, "bad_token")
        self.assertEqual(api.port, port)
        self.assertEqual(self.api.get(raw(name, "a")).body, b"1")

    def test_what_is_no_token(self):
        name = self.create()["name"]
        token = self.token(name, "admin")["token"]
        other = "B" if token[-1] != "B" else "C"
        for header in ("Bearer", "Bearer ", "Basic " + token, token, "Bearer " + token[:-1],
                       "Bearer " + token + "A", "Bearer " + token[:-2] + other + token[-1],
                       "Bearer trl_000000" + token[10:], "Bearer x y", "Bearer \x7f" * 3,
                       "Bearer " + "A" * 8000):
            with self.subTest(header=header):
                answer = self.api.get(raw(name, "a"), Authorization=header)
                if "\x7f" in header:
                    self.assertEqual(answer.status, 400)
                    continue
                self.refused(answer, 401, "bad_token")
                self.assertEqual(answer.headers["WWW-Authenticate"], "Bearer")
        self.assertEqual(self.api.get(raw(name, "a"), Authorization=f"bearer  {token}").status, 404)


class Life(V1Test):
    def test_rename(self):
        made = self.create(config={"a": "b"})
        old, new = made["name"], self.new_name("renamed")
        self.put(old, "k", b"v")
        api = self.connect(self.token(old, "write")["token"])
        answer = self.api.post(f"{V1}/{old}/rename", {"name": new})
        self.assertEqual((answer.status, answer.json), (200, {"keyspace": {**made, "name": new}}))
        self.refused(self.api.get(f"{V1}/{old}"), 404, "keyspace_not_found")
        self.refused(self.api.get(raw(old, "k")), 404, "keyspace_not_found")
        self.refused(api.get(raw(old, "k")), 403, "wrong_keyspace")
        self.assertEqual(api.get(raw(new, "k")).body, b"v")
        # Who gets the old name has nothing of it.
        self.create(old)
        self.refused(self.api.get(raw(old, "k")), 404, "key_not_found")
        self.refused(self.api.post(f"{V1}/{new}/rename", {"name": old}), 409, "keyspace_exists")
        self.refused(self.api.post(f"{V1}/{new}/rename", {"name": "a b"}), 422, "illegal_name")
        self.refused(self.api.post(f"{V1}/{new}/rename", {"name": "SYSTEM"}), 422, "reserved_name")
        self.refused(self.api.post(f"{V1}/{new}/rename", {}), 400, "bad_body")
        self.refused(self.api.post(f"{V1}/DEFAULT/rename", {"name": "x"}), 422, "default_keyspace")
        self.refused(self.api.post(f"{V1}/nobody/rename", {"name": "x"}), 404, "keyspace_not_found")

    def test_undo(self):
        name = self.create()["name"]
        self.put(name, "k", b"v")
        self.refused(self.api.post(f"{V1}/{name}/undo"), 409, "illegal_state_change")
        self.bring_to(name, "ARCHIVED")
        self.assertGreater(self.show(name)["retire_at_ms"], time.time() * 1000)
        answer = self.api.post(f"{V1}/{name}/undo")
        self.assertEqual((answer.status, answer.json["keyspace"]["state"]), (200, "DISABLED"))
        self.assertIsNone(self.show(name)["retire_at_ms"])
        self.set_state(name, "enabled")
        self.assertEqual(self.api.get(raw(name, "k")).body, b"v")
        self.refused(self.api.post(f"{V1}/nobody/undo"), 404, "keyspace_not_found")

    def test_purge(self):
        made = self.create(config={"a": "b"})
        name, keyspace_id = made["name"], made["id"]
        entries = [{"put": {"key": f"{i:05}", "value": "v" * 50}} for i in range(5000)]
        self.api.post(f"/k/{name}/v1/raw/batch", {"operations": entries})
        token = self.token(name, "admin")["token"]
        total = self.show(name)["figures"]["bytes"]
        for state in ("ENABLED", "DISABLED"):
            self.bring_to(name, state)
            self.refused(self.api.post(f"{V1}/{name}/purge"), 409, "illegal_state_change")
        progress = f"/v1/keyspace-ids/{keyspace_id}/purge"
        self.refused(self.api.get(progress), 404, "purge_not_found")
        self.set_state(name, "archived")
        answer = self.api.post(f"{V1}/{name}/purge")
        self.assertEqual((answer.status, answer.json["keyspace"]["state"]), (202, "TOMBSTONE"))
        self.assertIn(self.api.get(progress).json["state"], ("waiting", "running", "done"))
        self.refused(self.api.get(f"{V1}/{name}"), 404, "keyspace_not_found")
        again = self.create(name)  # the name is free at once
        self.refused(self.api.get(raw(name, "00000")), 404, "key_not_found")
        done = self.wait_purged(keyspace_id)
        self.assertEqual((done["bytes_total"], done["bytes_done"], done["entries_done"]),
                         (total, total, 5000))
        self.assertTrue(done["started_ms"] <= done["updated_ms"] <= done["finished_ms"])
        self.assertIsNone(done["held_by"])
        shown = self.api.get(f"/v1/keyspace-ids/{keyspace_id}").json
        self.assertEqual(shown["keyspace"]["state"], "TOMBSTONE")
        self.assertEqual((shown["figures"]["bytes"], shown["purge"]), (0, done))
        self.refused(self.connect(token).get("/v1/raw/keys"), 401, "bad_token")
        self.assertEqual(self.show(name)["keyspace"], again)
        self.refused(self.api.get("/v1/keyspace-ids/0/purge"), 404, "purge_not_found")

    def test_a_hold_holds_a_burial(self):
        made = self.create()
        self.put(made["name"], "k")
        hold = f"{GC}/service_safepoint/{made['id']}/backup"
        self.api.put(hold, {"safe_point": 1, "ttl": 600})
        self.bring_to(made["name"], "TOMBSTONE")
        path = f"/v1/keyspace-ids/{made['id']}/purge"
        held = eventually(lambda: (p := self.api.get(path).json)["state"] == "held" and p, "held")
        self.assertEqual((held["held_by"], held["bytes_done"]), ("backup", 0))
        self.assertEqual(self.api.delete(hold).status, 200)
        self.assertEqual(self.wait_purged(made["id"])["entries_done"], 1)

    def test_a_burial_can_be_watched_to_its_end(self):
        for _ in range(5):
            made = self.create()
            self.put(made["name"], "k")
            self.bring_to(made["name"], "TOMBSTONE")

            def is_purged():
                answer = self.api.get(f"/v1/keyspace-ids/{made['id']}")
                self.assertEqual(answer.status, 200, answer)
                return answer.json["purged_at"]
            eventually(is_purged, "it is purged", every_s=0)

    def test_renames_and_writes_at_once(self):
        name = self.create()["name"]
        names = [name, self.new_name()]
        stop, wrong = threading.Event(), []

        def write(n):
            api = Api(self.server)
            while not stop.is_set():
                answer = api.put(raw(names[n], "k"), b"v")
                if answer.status not in (204, 404):
                    wrong.append(answer)
            api.close()

        threads = [threading.Thread(target=write, args=[n]) for n in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(30):
            answer = self.api.post(f"{V1}/{names[0]}/rename", {"name": names[1]})
            self.assertEqual(answer.status, 200, answer)
            names.reverse()
        stop.set()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


class ShortRetention(V1Test):
    arguments = ("--archive-retention", "1s", "--gc-life-time", "0s")

    def test_an_archived_keyspace_retires(self):
        made = self.create()
        self.bring_to(made["name"], "ARCHIVED")
        self.wait_purged(made["id"])
        changes = self.api.get(f"/v1/audit?keyspace={made['name']}").json["changes"]
        self.assertEqual([(c["actor"], c["action"], c["detail"]) for c in changes[-2:]],
                         [("retention", "state", "ARCHIVED -> TOMBSTONE"),
                          ("trellis", "purge", "all data is removed")])

    def test_garbage_is_explained_and_collected(self):
        made = self.create()
        name, path = made["name"], f"{V1}/{made['name']}/gc"
        self.assertEqual(self.api.get(path).json, {
            "keyspace_id": made["id"], "gc_safe_point": 0, "txn_safe_point": 0,
            "service_safe_points": [], "held_by": None, "waiting_bytes": 0, "waiting_notes": 0,
            "more": False, "oldest_due_ms": None, "paused": False, "collecting": None,
            "explanation": "nothing waits"})
        hold = self.api.put(f"{GC}/service_safepoint/{made['id']}/backup-7",
                            {"safe_point": timestamp(time.time() - 60), "ttl": 3600}).json
        for key in ("a", "b"):
            self.api.put(raw(name, key) + "?ttl_ms=1", b"x" * 500)
        eventually(lambda: self.api.get(path).json["waiting_notes"] == 2, "both have expired")
        gc = self.api.get(path).json
        self.assertEqual((gc["held_by"], gc["service_safe_points"]), (hold, [hold]))
        self.assertGreater(gc["waiting_bytes"], 1000)
        self.assertLessEqual(gc["oldest_due_ms"], time.time() * 1000)
        self.assertRegex(gc["explanation"], r"^held at \S+Z by backup-7, \d+ s old, .+ waiting$")
        shown = self.show(name)
        self.assertEqual(shown["gc"], self.api.get(path).json["explanation"])
        self.assertGreater(shown["figures"]["waiting_bytes"], 1000)
        self.assertEqual(shown["figures"]["keys"], 2)
        self.refused(self.api.get(raw(name, "a")), 404, "key_not_found")
        # The hold goes, and so does the garbage.
        self.api.delete(f"{GC}/service_safepoint/{made['id']}/backup-7")
        eventually(lambda: self.api.get(path).json["waiting_notes"] == 0, "it is collected")
        self.assertEqual(self.show(name)["figures"], {"bytes": 0, "live_bytes": 0,
                                                      "waiting_bytes": 0, "keys": 0})
        self.refused(self.api.get(f"{V1}/nobody/gc"), 404, "keyspace_not_found")


class Logs(V1Test):
    def test_top(self):
        large, many, busy = (self.create(self.new_name(p))["name"] for p in ("l", "m", "b"))
        self.put(large, "a", b"x" * 50_000)
        for i in range(20):
            self.put(many, f"{i}")

        def first(by):
            top = self.api.get(f"/v1/top?by={by}&limit=2").json
            self.assertEqual((top["by"], len(top["keyspaces"])), (by, 2))
            return top["keyspaces"][0]["name"]

        def is_busiest():  # of the last seconds
            for _ in range(60):
                self.api.get(raw(busy, "a"))
            return first("operations") == busy

        self.assertEqual((first("bytes"), first("keys")), (large, many))
        eventually(is_busiest, "it is on top")
        self.assertGreater(self.show(busy)["load"]["reads_per_second"], 0)
        entry = self.api.get("/v1/top").json["keyspaces"][0]
        self.assertEqual((entry["keys"], entry["bytes"]),
                         (1, self.show(large)["figures"]["bytes"]))
        for query in ("by=size", "limit=0", "limit=1001", "limit=x", "by=keys&by=keys", "b=1"):
            with self.subTest(query=query):
                self.refused(self.api.get(f"/v1/top?{query}"), 400, "bad_query")

    def test_audit(self):
        begin = self.api.get("/v1/audit?limit=10000").json["last_revision"]
        made = self.create(config={"a": "b"})
        name, path = made["name"], f"{V1}/{made['name']}"
        admin = self.token(name, "admin", label="ops")
        api = self.connect(admin["token"])
        for _ in range(2):  # the second changes nothing
            patched = api.patch(f"{KEYSPACES}/{name}/config", {"config": {"a": "c"}})
            self.assertEqual(patched.status, 200)
        self.set_quota(name, keys=7)
        self.api.put(f"{GC}/service_safepoint/{made['id']}/s", {"safe_point": 1, "ttl": 600})
        self.api.delete(f"{GC}/service_safepoint/{made['id']}/s")
        for _ in range(2):  # the second moves nothing
            api.put(f"{GC}/txn_safepoint/{made['id']}", {"safe_point": 9})
            self.api.put(f"{GC}/safepoint/{made['id']}", {"safe_point": 7})
        self.api.post(f"{path}/rename", {"name": name + "-x"})
        self.create()  # of somebody else
        self.bring_to(name + "-x", "DISABLED")
        self.api.delete(f"{path}-x/tokens/{admin['id']}")
        audit = self.api.get(f"/v1/audit?since={begin}&keyspace={name}-x")
        self.assertNotIn(admin["token"].encode(), audit.body)
        token_text = f"{admin['id']}, admin, ops"
        by_token = f"token {admin['id']} of {made['id']}"
        expected = [("loopback", "create", name, ""),
                    ("loopback", "token.create", name, token_text),
                    (by_token, "config", name, "a"),
                    ("loopback", "quota", name, "bytes 0, keys 7, operations per second 0"),
                    ("loopback", "gc.barrier", name, None),
                    ("loopback", "gc.barrier.delete", name, None),
                    (by_token, "gc.txn_safe_point", name, "0 -> 9"),
                    ("loopback", "gc.safe_point", name, "0 -> 7"),
                    ("loopback", "rename", name, f"{name} -> {name}-x"),
                    ("loopback", "state", f"{name}-x", "ENABLED -> DISABLED"),
                    ("loopback", "token.revoke", f"{name}-x", token_text)]
        changes = audit.json["changes"]
        said = [(c["actor"], c["action"], c["name"], c["detail"]) for c in changes]
        for left, right in zip(said, expected, strict=True):
            self.assertEqual(left[:3], right[:3])
            if right[3] is not None:
                self.assertEqual(left[3], right[3])
        self.assertEqual({c["keyspace_id"] for c in changes}, {made["id"]})
        self.assertTrue(all(0 <= time.time() * 1000 - c["time_ms"] < 60_000 for c in changes))
        # In pages: each goes on from the last revision of the one before.
        everything = self.api.get(f"/v1/audit?since={begin}").json["changes"]
        self.assertEqual([c["revision"] for c in everything],
                         list(range(begin + 1, begin + len(everything) + 1)))
        pages, since = [], begin
        while page := (answer := self.api.get(f"/v1/audit?since={since}&limit=3").json)["changes"]:
            pages += page
            since = answer["last_revision"]
        self.assertEqual(pages, everything)
        for query in ("since=x", "limit=0", "limit=10001", "sinc=1"):
            self.refused(self.api.get(f"/v1/audit?{query}"), 400, "bad_query")
        self.refused(self.api.get(f"/v1/audit?since={2**63}"), 422, "revision_in_future")
        self.assertEqual(self.api.get("/v1/audit?keyspace=nobody").json["changes"], [])


class Events:
    """A watch: its events, one by one."""

    def __init__(self, test, query="", **headers):
        self.api = test.connect()
        self.response = self.api.begin("GET", f"/v1/watch/keyspaces{query}", None,
                                       dashed(headers))
        test.assertEqual(self.response.status, 200)
        test.assertEqual(self.response.headers["Content-Type"], "text/event-stream")
        self.test = test

    def next(self):
        event = {}
        while True:
            line = self.response.readline().decode().rstrip("\n")
            if not line and "data" in event:
                break
            name, _, value = line.partition(": ")
            if name:
                event[name] = value
        data = json.loads(event["data"])
        self.test.assertEqual(event["event"], data["type"])
        if "id" in event:
            self.test.assertEqual(int(event["id"]), data["revision"])
        return event.get("id"), data["type"], data["keyspace"]

    def until(self, name):
        """The events up to the first of a name."""
        seen = []
        while not seen or seen[-1][2]["name"] != name:
            seen.append(self.next())
        return seen


class Watch(V1Test):
    def test_first_all_then_changes(self):
        before = [self.create() for _ in range(3)]
        watch = Events(self)
        listed = watch.until(before[-1]["name"])
        self.assertEqual([keyspace for _, _, keyspace in listed],
                         self.api.get(KEYSPACES).json["keyspaces"])
        self.assertEqual({(i, kind) for i, kind, _ in listed[:-1]}, {(None, "upsert")})
        self.assertIsNotNone(listed[-1][0])  # from here on it can be resumed
        new = self.create()
        revision, kind, keyspace = watch.next()
        self.assertEqual((kind, keyspace), ("upsert", new))
        self.assertEqual(int(revision), int(listed[-1][0]) + 1)

    def test_changes_and_deletes_from_a_revision(self):
        begin = self.api.get("/v1/audit?limit=10000").json["last_revision"]
        made = self.create()
        watch = Events(self, f"?since={begin}")
        self.assertEqual(watch.next(), (str(begin + 1), "upsert", made))
        self.token(made["name"], "read")  # a change that is not the keyspace's own
        self.api.patch(f"{KEYSPACES}/{made['name']}/config", {"config": {"a": "b"}})
        self.assertEqual(watch.next()[2]["config"], {"a": "b"})
        for state in ("DISABLED", "ARCHIVED", "TOMBSTONE"):
            self.set_state(made["name"], state)
            self.assertEqual(watch.next()[1:], ("upsert", {
                **made, "state": state, "config": {"a": "b"},
                "state_changed_at": self.api.get(f"/v1/keyspace-ids/{made['id']}").json[
                    "keyspace"]["state_changed_at"]}))
        revision, kind, gone = watch.next()
        self.assertEqual((kind, gone["id"]), ("delete", made["id"]))
        # Whoever comes back gets what it has missed, once, by either way to ask.
        again = self.create()
        for back in (Events(self, f"?since={revision}"),
                     Events(self, f"?since={begin}", Last_Event_ID=revision)):
            self.assertEqual(back.next()[2], again)
        full = Events(self, f"?since={begin}").until(again["name"])
        self.assertEqual([kind for _, kind, _ in full], ["upsert"] * 5 + ["delete", "upsert"])

    def test_two_watchers_see_the_same(self):
        revision = self.api.get("/v1/audit?limit=10000").json["last_revision"]
        watches = [Events(self, f"?since={revision}") for _ in range(2)]

        def create(n):
            api = Api(self.server)
            for i in range(10):
                api.post(KEYSPACES, {"name": f"seen-{n}-{i}"})
            api.close()

        in_parallel(4, create)
        seen = [[watch.next() for _ in range(40)] for watch in watches]
        self.assertEqual(seen[0], seen[1])
        self.assertEqual([int(i) for i, _, _ in seen[0]],
                         list(range(revision + 1, revision + 41)))

    def test_bad_begins(self):
        self.refused(self.api.get("/v1/watch/keyspaces?since=x"), 400, "bad_query")
        self.refused(self.api.get("/v1/watch/keyspaces", Last_Event_ID="x"), 400, "bad_query")
        self.refused(self.api.get(f"/v1/watch/keyspaces?since={2**60}"), 422, "revision_in_future")
        self.refused(self.api.get("/v1/watch/keyspaces?from=1"), 400, "bad_query")


if __name__ == "__main__":
    unittest.main()
