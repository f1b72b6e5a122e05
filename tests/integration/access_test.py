"""Who may call a server, from where; and what of the answers outlives it."""

import http.client
import json
import re
import signal
import socket
import stat
import threading
import time
import unittest

from trellis_command import TrellisTest, trellis
from trellis_http import (GC, KEYSPACES, V1, Api, QuietServer, ServerTest, Wire, eventually,
                          json_lines, raw, seeded_random)

FREE_PATHS = ("/healthz", "/readyz", "/openapi.json")
PATHS = ("/pd/api/v2/keyspaces", "/pd/api/v2/keyspaces/DEFAULT", "/pd/api/v2/gc/state/0",
         "/v1/keyspaces/DEFAULT", "/v1/top", "/v1/audit", "/v1/watch/keyspaces", "/v1/raw/keys",
         "/v1/raw/keys/a", "/v1/raw/export", "/k/DEFAULT/v1/raw/keys/a", "/metrics")


class ProcessTest(TrellisTest):
    """Starts servers of its own."""

    def serve(self, *arguments):
        server = QuietServer("--data", self.folder / "store", *arguments).__enter__()
        self.addCleanup(server.__exit__)
        return server

    def connect(self, server, token=None, **headers):
        api = Api(server, token, **headers)
        self.addCleanup(api.close)
        return api

    def refused(self, *messages, data=True, arguments=(), exit_code=1):
        store = ("--data", self.folder / "store") if data else ()
        code, out, err = trellis("serve", *store, "--http", "127.0.0.1:0", *arguments)
        self.assertEqual(code, exit_code, out)
        self.assertNotIn("Trellis is up", out)
        for message in messages:
            self.assertIn(message, err)


class AdminToken(ProcessTest):
    def setUp(self):
        super().setUp()
        self.file = self.folder / "admin.token"

    def test_made_once(self):
        server = self.serve("--admin-token-file", self.file)
        self.assertEqual(stat.S_IMODE(self.file.stat().st_mode), 0o600)
        text = self.file.read_text()
        self.assertRegex(text, r"^trl_admin_[-A-Za-z0-9_]{43}\n$")
        self.assertIn(f"Made an admin token: {self.file}", server.banner)
        _, out, log = server.stop()
        server = self.serve("--admin-token-file", self.file)
        self.assertEqual(self.file.read_text(), text)
        self.assertFalse([line for line in server.banner if "Made" in line])
        self.assertNotIn(text.strip(), "\n".join(server.banner) + out + log)
        self.assertEqual(self.connect(server, text.strip()).get("/v1/top").status, 200)

    def test_files_that_are_refused(self):
        good = "x" * 16
        for mode in (0o644, 0o640, 0o604, 0o620, 0o666, 0o601):
            with self.subTest(mode=oct(mode)):
                self.file.write_text(good)
                self.file.chmod(mode)
                self.refused(str(self.file), "chmod 600",
                             arguments=("--admin-token-file", self.file))
        self.file.chmod(0o600)
        for text in ("", "\n", "short", good + "\n\n", good + " ", f"{good}\n{good}", "ä" * 16,
                     good + "\0", "x" * 257):
            with self.subTest(text=text):
                self.file.write_text(text)
                self.refused(str(self.file), "no token",
                             arguments=("--admin-token-file", self.file))
        self.refused("not a file", arguments=("--admin-token-file", self.folder))
        self.refused("No such file", arguments=("--admin-token-file", self.folder / "no" / "t"))

    def test_one_token_rules(self):
        self.file.write_text("a-token-of-my-own\n")
        self.file.chmod(0o600)
        server = self.serve("--admin-token-file", self.file, "--auth", "required")
        nobody = self.connect(server)
        for path in PATHS:
            with self.subTest(path=path):
                answer = nobody.get(path)
                self.assertEqual(answer.status, 401, answer)
                self.assertEqual(answer.headers["WWW-Authenticate"], "Bearer")
                self.assertIn(b"no_token", answer.body)
        for path in FREE_PATHS:
            self.assertEqual(nobody.get(path).status, 200)
        for token in ("a-token-of-my-ow", "a-token-of-my-own2", "A-token-of-my-own"):
            self.assertEqual(self.connect(server, token).get("/v1/top").status, 401)
        admin = self.connect(server, "a-token-of-my-own", Host="trellis.example:443",
                             Origin="https://console.example")
        for path in PATHS:
            if path not in ("/v1/watch/keyspaces", "/v1/raw/keys/a", "/k/DEFAULT/v1/raw/keys/a"):
                self.assertEqual(admin.get(path).status, 200, path)
        made = admin.post(f"{V1}/DEFAULT/tokens", {"role": "read"}).json
        self.assertEqual(self.connect(server, made["token"]).get("/v1/raw/keys").status, 200)
        changes = admin.get("/v1/audit").json["changes"]
        self.assertEqual(changes[-1]["actor"], "admin")

    def test_a_token_file_alone_is_enough(self):
        server = self.serve("--admin-token-file", self.file)
        self.assertEqual(self.connect(server).get("/v1/top").status, 401)


class Starting(ProcessTest):
    def test_auth_required_needs_a_token(self):
        self.refused("--admin-token-file", arguments=("--auth", "required"), exit_code=2)

    def test_nothing_but_loopback_without_a_token(self):
        for host in ("0.0.0.0", "[::]", socket.gethostname(), "127.example.invalid"):
            with self.subTest(host=host):
                if not re.fullmatch(r"[-\w.\[\]:]+", host):
                    continue
                code, _, err = trellis("serve", "--data", self.folder / "store", "--http",
                                       f"{host}:0")
                self.assertEqual(code, 2)
                self.assertIn("--admin-token-file", err)

    def test_with_a_token_anywhere(self):
        server = self.serve("--http", "0.0.0.0:0", "--admin-token-file", self.folder / "token")
        self.assertRegex(server.url, r"^http://0\.0\.0\.0:\d+$")
        self.assertEqual(self.connect(server).get("/v1/top").status, 401)
        self.assertEqual(self.connect(server).get("/healthz").status, 200)

    def test_loopback_by_other_names(self):
        for host in ("localhost", "127.0.0.2", "[::1]"):
            with self.subTest(host=host):
                try:
                    server = QuietServer("--engine", "memory", "--http", f"{host}:0").__enter__()
                except AssertionError as error:
                    self.assertIn("[::1]", host, error)  # no IPv6 here
                    continue
                self.addCleanup(server.__exit__)
                api = self.connect(server, Host="localhost")
                self.assertEqual(api.get("/v1/top").status, 200)
                self.assertEqual(server.stop()[0], 0)

    def test_a_port_in_use(self):
        server = self.serve()
        code, _, err = trellis("serve", "--engine", "memory", "--http",
                               "{}:{}".format(*server.address))
        self.assertEqual(code, 1)
        self.assertIn(str(server.address[1]), err)

    def test_tls_files_go_together(self):
        self.refused("tls-cert", "tls-key", arguments=("--tls-cert", self.folder / "c"),
                     exit_code=2)
        self.refused("tls-cert", "tls-key", arguments=("--tls-key", self.folder / "k"),
                     exit_code=2)
        self.refused(str(self.folder / "c"), arguments=("--tls-cert", self.folder / "c",
                                                        "--tls-key", self.folder / "k"))


class Browsers(ServerTest):
    def ask(self, *headers, target="/v1/raw/keys/secret", version="1.1", method="GET"):
        with Wire(self.server.address) as wire:
            lines = [f"{method} {target} HTTP/{version}", *headers, "Connection: close"]
            wire.send("\r\n".join(lines).encode() + b"\r\n\r\n")
            status, _, body = wire.answer()
            return status, body

    def setUp(self):
        super().setUp()
        self.port = self.server.address[1]
        self.api.put("/v1/raw/keys/secret", b"secret")

    def test_programs_on_this_machine(self):
        own = f"127.0.0.1:{self.port}"
        for headers in ([f"Host: {own}"], ["Host: localhost"], ["Host: LOCALHOST:9"],
                        ["Host: [::1]:80"], [f"Host: {own}", f"Origin: http://{own}"]):
            with self.subTest(headers=headers):
                self.assertEqual(self.ask(*headers), (200, b"secret"))

    def test_pages_of_other_places(self):
        own = f"Host: 127.0.0.1:{self.port}"
        for headers in (["Host: evil.example"], [f"Host: evil.example:{self.port}"],
                        ["Host: localhost.evil.example"], ["Host: 127.0.0.1.evil.example"],
                        ["Host: evil.example:127.0.0.1"], ["Host: 0.0.0.0"], ["Host: 127.0.0.2"],
                        ["Host: "], ["Host: localhost."], [own, "Origin: https://evil.example"],
                        [own, "Origin: null"], [own, "Origin: "],
                        [own, f"Origin: http://127.0.0.1:{self.port + 1}"],
                        [own, "Origin: http://localhost"],
                        [own, f"Origin: http://127.0.0.1:{self.port}.evil.example"]):
            for method, target in (("GET", "/v1/raw/keys/secret"),
                                   ("DELETE", "/v1/raw/keys/secret"),
                                   ("GET", KEYSPACES), ("GET", "/v1/audit"), ("GET", "/metrics"),
                                   ("GET", f"http://{own[6:]}/v1/raw/keys/secret")):
                with self.subTest(headers=headers, method=method, target=target):
                    status, body = self.ask(*headers, method=method, target=target)
                    self.assertEqual(status, 403)
                    self.assertIn(b"browser_refused", body)
        self.assertEqual(self.api.get("/v1/raw/keys/secret").body, b"secret")
        self.assertEqual(self.ask(version="1.0")[0], 403)  # no Host at all

    def test_what_came_through_a_proxy(self):
        own = f"Host: 127.0.0.1:{self.port}"
        for header in ("X-Forwarded-For: 10.0.0.1", "Forwarded: for=10.0.0.1", "X-Real-IP: 1.2.3.4",
                       "x-forwarded-for: 127.0.0.1"):
            with self.subTest(header=header):
                self.assertEqual(self.ask(own, header)[0], 401)

    def test_headers_twice(self):
        own = f"Host: 127.0.0.1:{self.port}"
        for headers in ([own, own], [own, "Host: evil.example"],
                        [own, "Authorization: Bearer a", "Authorization: Bearer b"],
                        [own, "X-Trellis-Keyspace: a", "X-Trellis-Keyspace: b"],
                        [own, f"Origin: http://{own[6:]}", "Origin: https://evil.example"]):
            with self.subTest(headers=headers):
                self.assertEqual(self.ask(*headers)[0], 400)

    def test_no_answer_invites_a_browser(self):
        answer = self.api.call("OPTIONS", "/v1/raw/keys/secret", None,
                               {"Origin": "https://evil.example",
                                "Access-Control-Request-Method": "PUT"})
        self.assertFalse([n for n in answer.headers if n.lower().startswith("access-control")])


class Outliving(ProcessTest):
    """What was answered is there after the process is not."""

    def fill(self, api):
        """Something of every kind, and how it reads."""
        made = api.post(KEYSPACES, {"name": "shop", "config": {"a": "b"}},
                        Idempotency_Key="once").json
        api.put(f"{V1}/shop/quota", {"keys": 100, "bytes": 100_000})
        token = api.post(f"{V1}/shop/tokens", {"role": "write", "label": "ci"}).json
        for i in range(10):
            api.put(raw("shop", bytes([i, 255])), b"v" * i)
        api.put(raw("shop", "ttl") + "?ttl_ms=3600000", b"t")
        api.put(f"{GC}/txn_safepoint/{made['id']}", {"safe_point": 7})
        api.put(f"{GC}/service_safepoint/{made['id']}/s", {"safe_point": 9, "ttl": 3600})
        api.post(KEYSPACES, {"name": "old"})
        api.post(f"{V1}/old/rename", {"name": "new"})
        for state in ("disabled", "archived"):
            api.put(f"{KEYSPACES}/new/state", {"state": state})
        return token["token"]

    def read(self, api):
        paths = (KEYSPACES, f"{V1}/shop", f"{V1}/new", f"{V1}/shop/tokens", "/v1/audit",
                 f"{V1}/shop/gc", "/k/shop/v1/raw/export", "/k/shop/v1/raw/keys/ttl")
        read = [api.get(path) for path in paths]
        shown = [json.loads(answer.body) for answer in read[:6]]
        for details in shown[1:3]:
            details.pop("load")  # of the process
        return shown, [answer.body for answer in read[6:]]

    def test_a_stop_and_a_kill(self):
        server = self.serve("--durability", "always")
        token = self.fill(self.connect(server))
        before = self.read(self.connect(server))
        for how in (signal.SIGTERM, signal.SIGKILL, signal.SIGKILL):
            with self.subTest(how=how):
                server.stop(how)
                server = self.serve("--durability", "always")
                api = self.connect(server)
                self.assertEqual(self.read(api), before)
                self.assertEqual(self.connect(server, token).get("/v1/raw/keys/ttl").body, b"t")
                again = api.post(KEYSPACES, {"name": "shop", "config": {"a": "b"}},
                                 Idempotency_Key="once")
                self.assertEqual((again.status, again.json["id"]), (200, 1))
        # Ids go on behind those that were given, whatever was lost of them.
        made = api.post(KEYSPACES, {"name": "next"}).json
        self.assertGreater(made["id"], max(k["id"] for k in before[0][0]["keyspaces"]))
        self.assertEqual(server.stop()[0], 0)

    def test_killed_while_it_writes(self):
        random = seeded_random()
        server = self.serve("--durability", "always")
        api = self.connect(server)
        api.post(KEYSPACES, {"name": "t"})
        acknowledged, strange = {}, []

        def write(n):
            writer = Api(server)
            try:
                for i in range(100_000):
                    key, value = f"{n}-{i % 50}", f"{i}"
                    if i % 7 == 3:
                        status, value = writer.delete(raw("t", key)).status, None
                    else:
                        status = writer.put(raw("t", key), value).status
                    if status == 204:
                        acknowledged[key] = (i, value)
                    else:
                        strange.append((key, status))
            except (OSError, http.client.HTTPException):
                writer.close()  # the server is gone

        writers = [threading.Thread(target=write, args=[n]) for n in range(4)]
        for thread in writers:
            thread.start()
        wanted = random.randrange(100, 400)
        eventually(lambda: sum(i for i, _ in list(acknowledged.values())) > wanted, "writes")
        server.stop(signal.SIGKILL)
        for thread in writers:
            thread.join()
        server = self.serve("--durability", "always")
        api = self.connect(server)
        entries = {e["key"]: e["value"] for e in json_lines(api.get("/k/t/v1/raw/export").body)}
        self.assertEqual(strange, [])
        for key, (i, value) in acknowledged.items():
            # The next operation on the key may have been under way.
            following = None if (i + 50) % 7 == 3 else str(i + 50)
            self.assertIn(entries.get(key), (value, following), key)
        figures = api.get(f"{V1}/t").json["figures"]
        self.assertEqual(figures["keys"], len(entries))
        # The bytes too: when all is deleted nothing is left.
        for key in entries:
            api.delete(raw("t", key))
        self.assertEqual(api.get(f"{V1}/t").json["figures"]["bytes"], 0)
        self.assertEqual(server.stop()[0], 0)

    def test_killed_while_it_buries(self):
        server = self.serve()
        api = self.connect(server)
        made = api.post(KEYSPACES, {"name": "t"}).json
        for part in range(4):
            api.post("/k/t/v1/raw/batch", {"operations": [
                {"put": {"key": f"{part}-{i:05}", "value": "v" * 700}} for i in range(5000)]})
        for state in ("disabled", "archived", "tombstone"):
            api.put(f"{KEYSPACES}/t/state", {"state": state})
        path = f"/v1/keyspace-ids/{made['id']}/purge"
        eventually(lambda: api.get(path).json["bytes_done"] > 0, "it has begun")
        server.stop(signal.SIGKILL)
        api = self.connect(self.serve())
        done = eventually(lambda: (p := api.get(path).json)["state"] == "done" and p, "it is over")
        self.assertEqual((done["bytes_done"], done["entries_done"]), (done["bytes_total"], 20_000))

    def test_stopping_ends_streams_well(self):
        server = self.serve()
        watch = self.connect(server)
        stream = watch.begin("GET", "/v1/watch/keyspaces")
        self.assertEqual(stream.status, 200)
        stream.readline()
        idle = [socket.create_connection(server.address) for _ in range(20)]
        begin = time.monotonic()
        code, out, _ = server.stop()
        self.assertEqual((code, out), (0, "Closed cleanly.\n"))
        self.assertLess(time.monotonic() - begin, 9)  # it did not wait for them
        stream.read()  # to its proper end, or this raises
        for one in idle:
            one.close()


if __name__ == "__main__":
    unittest.main()
