"""Raw keys and values over HTTP: any bytes, conditions, pages, streams; and states in their way."""

import base64
import http.client
import json
import threading
import time
import unittest

from trellis_http import (GC, KEYSPACES, V1, Api, V1Test, Wire, encoded, entry_bytes, eventually,
                          in_parallel, json_lines, raw)

EVERY_BYTE = bytes(range(256))


class Raw(V1Test):
    def setUp(self):
        super().setUp()
        self.name = self.create()["name"]
        self.data = f"/k/{self.name}/v1/raw"

    def scan(self, **query):
        text = "&".join(f"{name}={encoded(value)}" for name, value in query.items())
        answer = self.api.get(f"{self.data}/keys?{text}")
        self.assertEqual(answer.status, 200, answer)
        return answer.json

    def keys(self, **query):
        """Of all pages."""
        keys, page = [], self.scan(**query)
        while True:
            keys += [entry_bytes(entry, "key") for entry in page["entries"]]
            if page["next"] is None:
                return keys
            page = self.scan(**query, cursor=page["next"])

    def test_any_bytes(self):
        for key in (b"a", EVERY_BYTE, b"\0", b"\xff\xff", b"a/b/../c", b"//", b"%41", b"a?b#c",
                    "ü☃".encode(), b" ", b"+", b"x" * 4000):
            for value in (b"", EVERY_BYTE):
                with self.subTest(key=key):
                    self.assertEqual(self.api.put(raw(self.name, key), value).status, 204)
                    answer = self.api.get(raw(self.name, key))
                    self.assertEqual((answer.status, answer.body), (200, value))
                    self.assertEqual(answer.headers["Content-Type"], "application/octet-stream")
        self.assertEqual(self.api.get(f"{self.data}/keys/a/b/../c").body, EVERY_BYTE)
        self.assertEqual(len(self.keys()), 12)
        self.refused(self.api.get(f"{self.data}/keys/"), 400, "empty_key")

    def test_get_put_delete(self):
        path = raw(self.name, "k")
        self.refused(self.api.get(path), 404, "key_not_found")
        self.assertEqual(self.api.call("HEAD", path).status, 404)
        self.put(self.name, "k", b"one")
        answer = self.api.get(path)
        tag = answer.headers["ETag"]
        self.assertRegex(tag, r'^"[0-9a-f]{32}"$')
        self.assertNotIn("X-Trellis-Expires-At", answer.headers)
        head = self.api.call("HEAD", path)
        self.assertEqual((head.status, head.body, head.headers["Content-Length"],
                          head.headers["ETag"]), (200, b"", "3", tag))
        for header in (tag, f'"x", {tag}', "*", f"W/{tag}"):
            same = self.api.get(path, If_None_Match=header)
            self.assertEqual((same.status, same.body, same.headers["ETag"]), (304, b"", tag))
        self.assertEqual(self.api.get(path, If_None_Match='"x"').body, b"one")
        self.assertEqual(self.api.delete(path).status, 204)
        self.assertEqual(self.api.delete(path).status, 204)
        self.refused(self.api.get(path), 404, "key_not_found")
        self.refused(self.api.put(path + "?ttl=1", b"x"), 400, "bad_query")
        self.refused(self.api.get(path + "?x=1"), 400, "bad_query")

    def test_conditions(self):
        path = raw(self.name, "k")
        self.refused(self.api.put(path, b"0", If_Match="*"), 412, "condition_failed")
        self.refused(self.api.delete(path, If_Match="*"), 412, "condition_failed")
        self.assertEqual(self.api.put(path, b"1", If_None_Match="*").status, 204)
        self.refused(self.api.put(path, b"2", If_None_Match="*"), 412, "condition_failed")
        tag = self.api.get(path).headers["ETag"]
        self.assertEqual(self.api.put(path, b"3", If_Match=tag).status, 204)
        self.refused(self.api.put(path, b"4", If_Match=tag), 412, "condition_failed")
        self.refused(self.api.delete(path, If_Match=tag), 412, "condition_failed")
        self.assertEqual(self.api.put(path, b"5", If_Match="*").status, 204)
        for headers in ({"If_Match": "x"}, {"If_Match": '"a", "b"'}, {"If_None_Match": '"x"'},
                        {"If_Match": "*", "If_None_Match": "*"}):
            self.refused(self.api.put(path, b"6", **headers), 400, "bad_condition")
        self.assertEqual(self.api.get(path).body, b"5")

    def test_only_one_of_many_makes_a_key(self):
        statuses = []

        def make(n):
            api = Api(self.server)
            statuses.append(api.put(raw(self.name, "k"), b"%d" % n, If_None_Match="*").status)
            api.close()

        in_parallel(12, make)
        self.assertEqual(sorted(statuses), [204] + [412] * 11)

    def test_ttl(self):
        path = raw(self.name, "k")
        before_ms = time.time() * 1000
        self.assertEqual(self.api.put(path + "?ttl_ms=60000", b"1").status, 204)
        expires = int(self.api.get(path).headers["X-Trellis-Expires-At"])
        self.assertTrue(before_ms + 59_999 <= expires <= time.time() * 1000 + 60_000)
        self.assertEqual(self.scan()["entries"], [{"key": "k", "value": "1",
                                                   "expires_at_ms": expires}])
        self.put(self.name, "k", b"2")  # for ever
        self.assertNotIn("X-Trellis-Expires-At", self.api.get(path).headers)
        expires = time.time() * 1000 + 300
        self.api.put(path + "?ttl_ms=300", b"3")
        gone = eventually(lambda: (a := self.api.get(path)).status != 200 and a, "it expires")
        self.refused(gone, 404, "key_not_found")
        self.assertGreaterEqual(time.time() * 1000, expires - 1)
        self.assertEqual(self.keys(), [])
        self.assertEqual(self.api.put(path, b"4", If_None_Match="*").status, 204)
        for ttl, status, code in (("0", 422, "illegal_ttl"), (2**64 - 1, 422, "ttl_too_large"),
                                  ("-1", 400, "bad_query"), ("1s", 400, "bad_query")):
            self.refused(self.api.put(f"{path}?ttl_ms={ttl}", b"x"), status, code)

    def test_scan(self):
        keys = sorted([b"a", b"a\0", b"a\xff", b"aa", b"ab", b"b", b"\0", b"\xff", b"\xff\xff",
                       EVERY_BYTE, "ü".encode()] + [b"n%03d" % i for i in range(30)])
        for key in keys:
            self.put(self.name, key, key[::-1])
        for limit in (1, 7, 1000):
            self.assertEqual(self.keys(limit=str(limit)), keys)
            self.assertEqual(self.keys(limit=str(limit), reverse="true"), keys[::-1])
        for begin, end, prefix in ((b"a", b"b", b""), (b"", b"a", b""), (b"a\xff", b"", b""),
                                   (b"", b"", b"a"), (b"", b"", b"\xff"), (b"b", b"a", b""),
                                   (b"n010", b"n020", b"n01"), (b"", b"", b"n029"),
                                   (b"a", b"", b"n")):
            wanted = [key for key in keys if key >= begin and (not end or key < end)
                      and key.startswith(prefix)]
            for limit in ("3", "100"):
                with self.subTest(begin=begin, end=end, prefix=prefix, limit=limit):
                    query = {"begin": begin, "end": end, "prefix": prefix, "limit": limit}
                    self.assertEqual(self.keys(**query), wanted)
                    self.assertEqual(self.keys(**query, reverse="true"), wanted[::-1])
        page = self.scan(limit="1000")
        self.assertEqual([entry_bytes(entry, "value") for entry in page["entries"]],
                         [key[::-1] for key in keys])
        self.assertEqual(self.scan(prefix="n00", keys_only="true", limit="1")["entries"],
                         [{"key": "n000"}])
        for query in ("limit=0", "limit=10001", "reverse=yes", "cursor=zz", "cursor=a", "pre=x",
                      "begin=%zz", "keys_only=1"):
            with self.subTest(query=query):
                self.refused(self.api.get(f"{self.data}/keys?{query}"), 400, "bad_query")

    def test_batch(self):
        def batch(*operations):
            return self.api.post(f"{self.data}/batch", {"operations": list(operations)})
        put = {"put": {"key_base64": base64.b64encode(EVERY_BYTE).decode(), "value": "1"}}
        self.assertEqual(batch(put, {"put": {"key": "a", "value_base64": "//8="}},
                               {"put": {"key": "b", "value": "2", "ttl_ms": 60_000}},
                               {"put": {"key": "c", "value": "x"}}, {"delete": {"key": "c"}},
                               {"delete": {"key": "none"}}).json, {"applied": 6})
        self.assertEqual(self.keys(), sorted([EVERY_BYTE, b"a", b"b"]))
        self.assertEqual(self.api.get(raw(self.name, "a")).body, b"\xff\xff")
        self.assertIn("X-Trellis-Expires-At", self.api.get(raw(self.name, "b")).headers)
        self.assertEqual(batch().json, {"applied": 0})
        good = {"delete": {"key": "a"}}
        for bad in ({}, {"put": {"key": "x"}}, {"put": {"value": "x"}}, {"delete": {}},
                    {"put": {"key": "x", "value": "1"}, "delete": {"key": "y"}}, {"get": {}}, 7,
                    {"put": {"key": "x", "value": "1", "ttl": 1}}, {"delete": {"key": 1}},
                    {"put": {"key": "x", "key_base64": "eA==", "value": "1"}},
                    {"delete": {"key_base64": "eA"}}, {"delete": {"key_base64": "e A="}}):
            with self.subTest(bad=bad):
                self.refused(batch(good, bad), 400, "bad_body")
        self.refused(batch(good, {"delete": {"key": ""}}), 400, "empty_key")
        self.refused(batch(good, {"put": {"key": "x", "value": "1", "ttl_ms": 0}}), 422,
                     "illegal_ttl")
        self.refused(batch(good, {"put": {"key": "x" * 65_536, "value": ""}}), 413, "key_too_large")
        self.refused(batch(*[good] * 10_001), 413, "batch_too_large")
        self.assertEqual(self.api.get(raw(self.name, "a")).status, 200)  # nothing was done

    def test_cas(self):
        def cas(key, expected, new):
            return self.api.post(f"{self.data}/cas", {"key": key, "expected": expected, "new": new})
        self.assertEqual(cas("k", None, {"value": "1"}).json, {"done": True})
        error = self.refused(cas("k", None, {"value": "2"}), 412, "condition_failed")
        self.assertEqual(error["details"]["current"], {"value": "1"})
        error = self.refused(cas("none", {"value": "1"}, None), 412, "condition_failed")
        self.assertIsNone(error["details"]["current"])
        self.assertEqual(cas("k", {"value": "1"}, {"value_base64": "/w==", "ttl_ms": 60_000}).json,
                         {"done": True})
        current = self.refused(cas("k", {"value": "1"}, None), 412,
                               "condition_failed")["details"]["current"]
        self.assertEqual(current["value_base64"], "/w==")
        self.assertGreater(current["expires_at_ms"], time.time() * 1000)
        self.assertEqual(cas("k", {"value_base64": "/w=="}, None).json, {"done": True})
        self.assertEqual(self.keys(), [])
        for body in ({"key": "k", "new": None}, {"key": "k", "expected": None},
                     {"expected": None, "new": None}, {"key": "k", "expected": {}, "new": None},
                     {"key": "k", "expected": "1", "new": None}, []):
            self.refused(self.api.post(f"{self.data}/cas", body), 400, "bad_body")

    def test_counting_with_cas(self):
        def count(_):
            api = Api(self.server)
            for _ in range(10):
                done = False
                while not done:
                    got = api.get(raw(self.name, "n"))
                    old = None if got.status == 404 else {"value": got.body.decode()}
                    new = {"value": str(int(old["value"]) + 1 if old else 1)}
                    done = api.post(f"{self.data}/cas", {"key": "n", "expected": old,
                                                         "new": new}).status == 200
            api.close()
        in_parallel(4, count)
        self.assertEqual(self.api.get(raw(self.name, "n")).body, b"40")

    def test_export_and_import(self):
        entries = {bytes([i, i ^ 0x5a]) * (i % 3 + 1): bytes(255 - i for _ in range(i))
                   for i in range(256)}
        lines = "\r\n\n".join(json.dumps({"key_base64": base64.b64encode(key).decode(),
                                          "value_base64": base64.b64encode(value).decode()})
                              for key, value in entries.items())
        answer = self.api.post(f"{self.data}/import", lines)
        self.assertEqual((answer.status, answer.json), (200, {"imported": 256}))
        self.api.put(raw(self.name, "ttl") + "?ttl_ms=60000", "ü")
        exported = self.api.get(f"{self.data}/export")
        self.assertEqual(exported.headers["Content-Type"], "application/x-ndjson")
        read = {entry_bytes(e, "key"): entry_bytes(e, "value") for e in json_lines(exported.body)}
        self.assertEqual(read, {**entries, b"ttl": "ü".encode()})
        other = self.create()["name"]
        self.assertEqual(self.api.post(f"/k/{other}/v1/raw/import", exported.body).json,
                         {"imported": 257})
        self.assertEqual(self.api.get(f"/k/{other}/v1/raw/export").body, exported.body)
        only = self.api.get(f"{self.data}/export?prefix=tt")
        self.assertEqual([e["key"] for e in json_lines(only.body)], ["ttl"])
        self.assertEqual(self.api.get(f"{self.data}/export?prefix=none").body, b"")

    def test_import_says_where_it_stopped(self):
        good = [json.dumps({"key": f"{i:04}", "value": "v"}) for i in range(300)]
        for bad, status, code in (("{", 400, "bad_body"), ('{"key":"a"}', 400, "bad_body"),
                                  ('{"key":"","value":"v"}', 400, "empty_key"),
                                  ('{"key":"a","value":"v","ttl_ms":1}', 400, "bad_body")):
            with self.subTest(bad=bad):
                answer = self.api.post(f"{self.data}/import", "\n".join([*good, bad, *good]))
                error = self.refused(answer, status, code)
                self.assertEqual(error["details"]["line"], 301)
                imported = error["details"]["imported"]
                self.assertEqual(self.keys(), [b"%04d" % i for i in range(imported)])
        expired = json.dumps({"key": "old", "value": "v", "expires_at_ms": 1})
        self.assertEqual(self.api.post(f"{self.data}/import", expired).json, {"imported": 0})
        self.assertEqual(self.api.post(f"{self.data}/import", "").json, {"imported": 0})

    def test_large_values(self):
        value = bytes(16 * 1024 * 1024 - 64)
        self.put(self.name, "large", value)
        answer = self.api.get(raw(self.name, "large"))
        self.assertEqual((answer.status, len(answer.body)), (200, len(value)))
        self.assertEqual(self.api.put(raw(self.name, "l"), bytes(16 * 1024 * 1024 + 1)).status, 413)

    def test_a_body_that_waits_to_be_asked_for(self):
        head = (f"PUT {raw(self.name, 'k')} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
                "Expect: 100-continue\r\n\r\n").encode()
        with Wire(self.server.address) as wire:
            wire.send(head)
            self.assertEqual(wire.socket.recv(100), b"HTTP/1.1 100 Continue\r\n\r\n")
            wire.send(b"12345")
            self.assertEqual(wire.answer()[0], 204)
        self.assertEqual(self.api.get(raw(self.name, "k")).body, b"12345")

    def test_clients_of_http_1_0(self):
        for i in range(50):
            self.put(self.name, f"{i:02}", b"v" * 1000)
        for path in (raw(self.name, "00"), f"{self.data}/export", KEYSPACES):
            with self.subTest(path=path), Wire(self.server.address) as wire:
                wire.send(f"GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
                head, _, body = wire.rest().partition(b"\r\n\r\n")  # until it closes
                self.assertTrue(head.startswith(b"HTTP/1.1 200 ") and b"chunked" not in head, head)
                self.assertEqual(body, self.api.get(path).body)

    def test_head_of_what_has_no_end(self):
        for path in ("/v1/watch/keyspaces", f"{self.data}/export", KEYSPACES, "/v1/audit"):
            with self.subTest(path=path):
                answer = self.api.call("HEAD", path)
                self.assertEqual((answer.status, answer.body), (200, b""))
                self.assertEqual(self.api.get("/healthz").status, 200)  # on the same connection

    def test_whose_data(self):
        other = self.create()["name"]
        self.put(self.name, "k", b"mine")
        self.put(other, "k", b"other")
        self.assertEqual(self.api.put("/v1/raw/keys/k", b"default").status, 204)
        for path, headers, value in (("/v1/raw/keys/k", {}, b"default"),
                                     (raw("DEFAULT", "k"), {}, b"default"),
                                     ("/v1/raw/keys/k", {"X_Trellis_Keyspace": other}, b"other"),
                                     (raw(self.name, "k"), {}, b"mine"),
                                     (raw(self.name, "k"), {"X_Trellis_Keyspace": other}, b"mine")):
            with self.subTest(path=path, headers=headers):
                self.assertEqual(self.api.get(path, **headers).body, value)
        self.refused(self.api.get(raw("nobody", "k")), 404, "keyspace_not_found")
        self.refused(self.api.get("/v1/raw/keys/k", X_Trellis_Keyspace="nobody"), 404,
                     "keyspace_not_found")


class States(V1Test):
    def test_open_connections_obey(self):
        made = self.create()
        name, data = made["name"], f"/k/{made['name']}/v1/raw"
        self.put(name, "k", b"v")
        apis = {role: self.connect(self.token(name, role)["token"])
                for role in ("read", "write", "admin")}
        apis["server"] = self.connect()
        ports = {}

        def check(state, codes):
            """Per role: codes of a read and of a write; None: it is served."""
            for role, api in apis.items():
                calls = (("GET", f"{data}/keys/k", None), ("PUT", f"{data}/keys/k", b"v"),
                         ("GET", f"{data}/export", None), ("POST", f"{data}/import", b""),
                         ("GET", f"{data}/keys", None), ("POST", f"{data}/batch",
                                                         {"operations": []}))
                for i, (method, path, body) in enumerate(calls):
                    code = codes[role][i % 2]
                    with self.subTest(state=state, role=role, method=method, path=path):
                        answer = api.call(method, path, body)
                        if code is None:
                            self.assertIn(answer.status, (200, 204), answer)
                        else:
                            self.refused(answer, 404 if code.endswith("found") else 403, code)
                        self.assertEqual(ports.setdefault(role, api.port), api.port)

        weak = "role_too_weak"
        enabled = {"read": (None, weak), "write": (None, None), "admin": (None, None),
                   "server": (None, None)}
        check("ENABLED", enabled)
        self.set_state(name, "disabled")
        off = ("keyspace_disabled",) * 2
        check("DISABLED", {**enabled, "read": off, "write": off})
        self.set_state(name, "archived")
        off = ("keyspace_archived",) * 2
        read_only = (None, "keyspace_archived")
        check("ARCHIVED", {"read": off, "write": off, "admin": read_only, "server": read_only})
        self.api.post(f"{V1}/{name}/undo")
        self.set_state(name, "enabled")
        check("ENABLED", enabled)
        # A hold keeps the tombstone, so that it is not purged while this looks.
        self.api.put(f"{GC}/service_safepoint/{made['id']}/test", {"safe_point": 1, "ttl": 600})
        self.bring_to(name, "TOMBSTONE")
        for api in apis.values():
            for path in (f"{data}/keys/k", f"{data}/keys"):
                answer = api.get(path)
                self.assertIn((answer.status, answer.json["code"]),
                              ((403, "keyspace_gone"), (403, "wrong_keyspace"),
                               (404, "keyspace_not_found")))
            self.refused(api.get("/v1/raw/keys/k"), *((404, "key_not_found")
                         if api is apis["server"] else (403, "keyspace_gone")))

    def test_streams_that_are_under_way_obey(self):
        name = self.create()["name"]
        lines = b"".join(b'{"key":"%05d","value":"%s"}\n' % (i, b"v" * 1000) for i in range(16_000))
        self.assertEqual(self.api.post(f"/k/{name}/v1/raw/import", lines).json,
                         {"imported": 16_000})
        for change in ("revoked", "disabled"):
            made = self.token(name, "read")
            api = self.connect(made["token"])
            stream = api.begin("GET", "/v1/raw/export")  # more than sockets hold
            self.assertEqual((stream.status, len(stream.read(1000))), (200, 1000))
            if change == "revoked":
                self.api.delete(f"{V1}/{name}/tokens/{made['id']}")
            else:
                self.set_state(name, "disabled")
            # It breaks off, so that nobody takes a part for the whole.
            with self.subTest(change=change):
                with self.assertRaises((http.client.IncompleteRead, ConnectionResetError)):
                    stream.read()

    def test_nothing_is_written_after_the_answer(self):
        name = self.create()["name"]
        token = self.token(name, "write")["token"]
        stop, counts = threading.Event(), [0] * 4

        def write(n):
            api = Api(self.server, token)
            while not stop.is_set():
                counts[n] += api.put(f"/v1/raw/keys/{n}-{counts[n]}", b"v").status == 204
            api.close()

        threads = [threading.Thread(target=write, args=[n]) for n in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(5):
            eventually(lambda: self.show(name)["figures"]["keys"] > 0, "writes")
            self.set_state(name, "disabled")
            keys = self.show(name)["figures"]["keys"]
            for _ in range(5):
                self.assertEqual(self.show(name)["figures"]["keys"], keys)
            self.set_state(name, "enabled")
        stop.set()
        for thread in threads:
            thread.join()
        self.assertEqual(self.show(name)["figures"]["keys"], sum(counts))


if __name__ == "__main__":
    unittest.main()
