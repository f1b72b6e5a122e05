"""Many keyspaces, and the end of a large one: quick for who asks, complete, and nobody else's."""

import json
import random as randoms
import sys
import time
import unittest

from trellis_http import (GC, KEYSPACES, V1, Api, ServerTest, V1Test, eventually, in_parallel,
                          json_lines, scaled, seeded_random)

MIB = 1024 * 1024
MANY = 10_000
KEYS = 20_000


def say(text):
    print(text, file=sys.stderr)


class ManyKeyspaces(ServerTest):
    def test_10000(self):
        before = self.server.rss_bytes()
        begin = time.monotonic()
        port = None
        for i in range(MANY):
            answer = self.api.post(KEYSPACES, {"name": f"tenant-{i:05}"})
            self.assertEqual(answer.status, 200, answer)
            port = port or self.api.port
        self.assertEqual(self.api.port, port)  # all over one connection
        seconds = time.monotonic() - begin
        say(f"{MANY} keyspaces in {seconds:.1f} s, {MANY / seconds:.0f} per second")

        begin = time.monotonic()
        stream = self.api.begin("GET", KEYSPACES)
        self.assertEqual(stream.headers["Transfer-Encoding"], "chunked")
        first = stream.read(1000)
        first_s = time.monotonic() - begin
        listed = json.loads(first + stream.read())
        say(f"listed in {time.monotonic() - begin:.2f} s, the first of it in {first_s:.3f} s")
        names = [keyspace["name"] for keyspace in listed["keyspaces"]]
        self.assertEqual(names, ["DEFAULT"] + [f"tenant-{i:05}" for i in range(MANY)])
        self.assertEqual(listed["next_page_token"], "")

        pages, token = [], ""
        while True:
            page = self.api.get(f"{KEYSPACES}?limit=999&page_token={token}").json
            pages += page["keyspaces"]
            token = page["next_page_token"]
            if not token:
                break
        self.assertEqual(pages, listed["keyspaces"])

        # A watch begins with all of them too, and what is idle costs no memory to speak of.
        watch = self.connect().begin("GET", "/v1/watch/keyspaces")
        seen = 0
        while seen < MANY + 1:
            seen += watch.readline().startswith(b"data: ")
        say(f"rss grew by {(self.server.rss_bytes() - before) // MIB} MiB")
        self.assertLess(self.server.rss_bytes() - before, self.server.rss_bytes_max(100 * MIB))
        self.assertEqual(self.api.get("/healthz").status, 200)


class Burial(V1Test):
    def fill(self, name, value_bytes=100):
        lines = b"".join(b'{"key":"%s-%05d","value":"%s"}\n' % (name.encode(), i,
                                                               b"v" * value_bytes)
                         for i in range(KEYS))
        answer = self.api.post(f"/k/{name}/v1/raw/import", lines)
        self.assertEqual(answer.json, {"imported": KEYS})

    def contents(self, name):
        return self.api.get(f"/k/{name}/v1/raw/export").body, self.show(name)["figures"]

    def bury(self, name):
        """How long the answer took."""
        for state in ("disabled", "archived"):
            self.set_state(name, state)
        begin = time.monotonic()
        answer = self.api.post(f"{V1}/{name}/purge")
        took_s = time.monotonic() - begin
        self.assertEqual(answer.status, 202, answer)
        return took_s

    def follow(self, keyspace_id, total):
        """Until it is over; how much was done each time that was asked."""
        seen = []

        def is_done():
            progress = self.api.get(f"/v1/keyspace-ids/{keyspace_id}/purge").json
            if progress["state"] != "waiting":
                self.assertEqual(progress["bytes_total"], total)
            seen.append(progress["bytes_done"])
            return progress["state"] == "done"

        eventually(is_done, "it is buried", every_s=0.002)
        self.assertEqual(seen, sorted(seen))
        self.assertEqual(seen[-1], total)
        return seen

    def test_of_20000_keys(self):
        # Those with the ids before and behind it have the neighbouring bytes.
        left, victim, right = (self.create(self.new_name(p)) for p in ("left", "gone", "right"))
        self.assertEqual([left["id"] + 1, right["id"] - 1], [victim["id"]] * 2)
        for keyspace in (left, right):
            self.fill(keyspace["name"])
        self.fill(victim["name"], 1000)  # more than one slice of a burial
        before = [self.contents(keyspace["name"]) for keyspace in (left, right)]
        total = self.show(victim["name"])["figures"]["bytes"]
        token = self.api.post(f"{V1}/{victim['name']}/tokens", {"role": "admin"}).json["token"]

        took_s = self.bury(victim["name"])
        again = self.create(victim["name"])  # the name is free while the burial runs
        self.assertEqual(self.contents(victim["name"])[0], b"")
        seen = self.follow(victim["id"], total)
        say(f"buried {total} bytes, answered in {took_s * 1000:.1f} ms, "
            f"{len(set(seen))} steps of progress seen")
        self.assertTrue(any(0 < done < total for done in seen), "it goes step by step")
        self.wait_purged(victim["id"])

        self.assertEqual(self.contents(victim["name"]), (b"", self.show(again["name"])["figures"]))
        self.assertEqual(self.show(again["name"])["figures"]["bytes"], 0)
        shown = self.api.get(f"/v1/keyspace-ids/{victim['id']}").json
        self.assertEqual(shown["figures"], {"bytes": 0, "live_bytes": 0, "waiting_bytes": 0,
                                            "keys": 0})
        self.refused(self.connect(token).get("/v1/raw/export"), 401, "bad_token")
        self.assertEqual([self.contents(keyspace["name"]) for keyspace in (left, right)], before)
        self.assertEqual(len(json_lines(before[0][0])), KEYS)

        # Whoever asks for it does not wait for it. A busy machine may be slow once, not thrice.
        for keyspace in (left, right):
            if took_s < 0.25:
                break
            took_s = min(took_s, self.bury(keyspace["name"]))
        self.assertLess(took_s, 0.25)


class Chaos(V1Test):
    """Everybody does everything at once to a few keyspaces."""

    threads = 6
    operations = scaled(150)

    @staticmethod
    def one(random):
        """(method, path, body) of something that may or may not be possible now."""
        name, other = random.choices([f"c{n}" for n in range(4)], k=2)
        data, number = f"/k/{name}/v1/raw", random.randrange(1, 40)
        key, value = f"k{random.randrange(30)}", "v" * random.randrange(200)
        return random.choice([
            lambda: ("POST", KEYSPACES, {"name": name}),
            lambda: ("POST", KEYSPACES, {"name": name}),
            lambda: ("PUT", f"{KEYSPACES}/{name}/state", {"state": random.choice(
                ("enabled", "enabled", "enabled", "disabled", "archived", "tombstone"))}),
            lambda: ("PATCH", f"{KEYSPACES}/{name}/config", {"config": {key: value}}),
            lambda: ("POST", f"{V1}/{name}/rename", {"name": other}),
            lambda: ("POST", f"{V1}/{name}/undo", None),
            lambda: ("POST", f"{V1}/{name}/purge", None),
            lambda: ("PUT", f"{V1}/{name}/quota", {"keys": random.choice((0, 10, 20))}),
            lambda: ("POST", f"{V1}/{name}/tokens", {"role": "write"}),
            lambda: ("PUT", f"{GC}/service_safepoint/{number}/s", {"safe_point": 9, "ttl": 1}),
            lambda: ("DELETE", f"{GC}/service_safepoint/{number}/s", None),
            lambda: ("GET", f"/v1/keyspace-ids/{number}", None),
            lambda: ("GET", f"/v1/keyspace-ids/{number}/purge", None),
            lambda: ("GET", f"{V1}/{name}/gc", None),
            lambda: ("GET", random.choice(("/v1/top", "/v1/top?by=operations", "/v1/audit",
                                           KEYSPACES, "/metrics")), None),
            lambda: ("GET", f"{data}/export", None),
            lambda: ("POST", f"{data}/batch", {"operations": [
                {"put": {"key": f"k{n}", "value": value}} for n in range(random.randrange(60))]}),
            lambda: ("POST", f"{data}/cas", {"key": key, "expected": None, "new": {"value": "1"}}),
            *[lambda: ("PUT", f"{data}/keys/{key}", value)] * 5,
            *[lambda: ("GET", f"{data}/keys/{key}", None)] * 3,
            *[lambda: ("DELETE", f"{data}/keys/{key}", None)] * 3])()

    def test_at_once(self):
        seed = seeded_random()
        seeds = [seed.getrandbits(32) for _ in range(self.threads)]
        strange = []

        def work(n):
            random = randoms.Random(seeds[n])
            api = Api(self.server)
            for _ in range(self.operations):
                call = self.one(random)
                answer = api.call(*call)
                if answer.status not in (200, 201, 202, 204, 403, 404, 409, 412, 422, 429):
                    strange.append((call, answer))
            api.close()

        in_parallel(self.threads, work)
        self.assertEqual(strange, [])
        # Whatever happened: what is counted is what is there, and the log has all of it.
        for keyspace in self.api.get(KEYSPACES).json["keyspaces"]:
            if keyspace["state"] == "TOMBSTONE":
                self.wait_purged(keyspace["id"])
                continue
            name = keyspace["name"]
            entries = json_lines(self.api.get(f"/k/{name}/v1/raw/export").body)
            self.assertEqual(self.show(name)["figures"]["keys"], len(entries), name)
        changes = self.api.get("/v1/audit?limit=10000").json["changes"]
        self.assertEqual([c["revision"] for c in changes], list(range(1, len(changes) + 1)))


if __name__ == "__main__":
    unittest.main()
