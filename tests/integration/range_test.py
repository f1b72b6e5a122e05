"""Ranges as those who run a server see them: splits and merges, figures, jobs, the directory."""

import json
import os
import subprocess
import types
import unittest

import redis

from client_command import ClientTest
from trellis_command import BINARY, Server, TrellisTest, clean_environment, trellis
from trellis_http import Api, eventually

EDIT_STORE = os.environ.get("EDIT_STORE", "build/edit_store")


def raw_key(key, keyspace=0):
    """A stored key, in hex."""
    code, out, err = trellis("key", "encode", "raw", f"keyspace={keyspace}", f"key={key}")
    assert code == 0, err
    return out.split()[0]


def api(test, server, token=None):
    """A connection for one test to a server that was started by a command."""
    host, port = server.url.removeprefix("http://").split(":")
    made = Api(types.SimpleNamespace(address=(host, int(port))), token=token)
    test.addCleanup(made.http.close)
    return made


class RangesTest(ClientTest):
    """One server with small ranges, which does nothing by itself unless a test lets it."""

    arguments = ("--engine", "memory", "--range-bytes-max", "64KiB")

    def setUp(self):
        super().setUp()
        self.api = api(self, self.server)
        self.does("range", "pause")

    def ranges(self):
        return self.does("range", "list", "--json").lines

    def tile(self):
        """The ranges cover the map, each once."""
        ranges = self.ranges()
        self.assertEqual(ranges[0]["start"], "")
        self.assertEqual(ranges[-1]["end"], "ffff")
        for left, right in zip(ranges, ranges[1:]):
            self.assertEqual(left["end"], right["start"])
        return ranges

    def load(self, keys=2_000):
        host, port = self.server.resp.split(":")
        client = redis.Redis(host, int(port))
        pipe = client.pipeline(transaction=False)
        for i in range(keys):
            pipe.set(f"key:{i:06}", b"x" * 100)
        pipe.execute()
        client.close()


class ByItself(RangesTest):
    def test_splits_by_size_and_says_why(self):
        self.load()
        self.does("range", "recount")
        plan = self.does("range", "plan", "--json").json
        self.assertTrue(plan["paused"])
        self.assertIn("count", [action["action"] for action in plan["actions"]])
        self.does("range", "resume")
        eventually(lambda: len(self.ranges()) > 6, "splits")
        self.does("range", "pause")
        ranges = self.tile()
        borders = [r["start"] for r in ranges]
        self.assertIn("72000000", borders)  # raw data of the first keyspace
        self.assertIn("78000000", borders)  # and its models
        events = self.does("range", "history", "--json").json["events"]
        reasons = [event["reason"] for event in events]
        self.assertTrue(any(reason.startswith("size: ") for reason in reasons), reasons)
        self.assertTrue(any(reason.startswith("border: ") for reason in reasons), reasons)
        self.assertIn("REASON", self.does("range", "history").out)

        # Counted once more, no range is over the size, and nothing was lost.
        done = self.does("range", "recount", "--threads", 2, "--json").json
        self.assertEqual((done["state"], done["ranges_done"]), ("done", len(ranges)))
        for one in self.ranges():
            self.assertLess(one["bytes"], 64 * 1024, one)
        self.assertGreater(sum(one["keys"] for one in self.ranges()), 2_000)
        self.assertIn("all is as it should be", self.does("range", "verify").out)

    def test_borders_of_keyspaces(self):
        keyspace = self.api.post("/pd/api/v2/keyspaces", {"name": "bordered"}).json["id"]
        border = f"72{keyspace:06x}"
        self.assertNotIn(border, [r["start"] for r in self.ranges()])
        plan = self.does("range", "plan").out
        self.assertIn(f"border: keyspace {keyspace} begins there", plan)
        self.does("range", "resume")
        eventually(lambda: border in [r["start"] for r in self.ranges()], "the border")
        self.does("range", "pause")
        self.tile()


class ByKeys(RangesTest):
    arguments = ("--engine", "memory", "--range-keys-max", "1000")

    def test_splits_by_keys_and_says_why(self):
        self.load()
        self.does("range", "recount")
        self.assertIn("keys: about ", self.does("range", "plan").out)
        self.does("range", "resume")

        def reasons():
            events = self.does("range", "history", "--json").json["events"]
            return [event["reason"] for event in events]

        eventually(lambda: any(r.startswith("keys: ") for r in reasons()), "a split by keys")
        eventually(lambda: all(r["keys"] <= 1_000 for r in self.ranges()), "small ranges")
        self.does("range", "pause")
        self.tile()


class ByHand(RangesTest):
    def test_split_and_merge(self):
        key = raw_key("m")
        count = len(self.ranges())
        made = self.does("range", "split", key, "--json").json
        self.assertEqual(made["left"]["end"], key)
        self.assertEqual(made["right"]["start"], key)
        self.assertGreater(made["right"]["sticky_until_ms"], 0)
        self.assertEqual(len(self.tile()), count + 1)
        event = self.does("range", "history", "--limit", 1, "--json").json["events"][0]
        self.assertEqual((event["action"], event["right"]["id"]), ("split", made["right"]["id"]))
        self.assertTrue(event["reason"].startswith("by hand"))

        self.fails(1, "does not lie inside of", "range", "split", key)
        merged = self.does("range", "merge", made["left"]["start"], "--json").json
        self.assertEqual(merged["generation"], made["right"]["generation"] + 1)
        self.assertEqual(len(self.tile()), count)
        self.fails(1, "there is no range", "range", "show", made["right"]["id"])

    def test_places_where_no_range_begins(self):
        for key in ("01", "0203", "03ffff", "ffff"):
            self.fails(1, "", "range", "split", key)
        self.fails(1, "has no address", "range", "split", "7800000064")
        # What is no whole key says which ranges are there.
        for change in ("split", "merge"):
            said = self.fails(1, "no whole key", "range", change, "7800000064").err
            self.assertRegex(said, r"range \d+ \[[0-9a-f]*, [0-9a-f]+\)")
        self.fails(2, "it is not hex", "range", "split", "zz")
        self.tile()

    def test_lookup_explain_show_hot(self):
        key = raw_key("looked-up")
        self.does("range", "split", key)
        right = self.does("range", "lookup", key, "--json").json["range"]
        self.assertEqual(right["start"], key)
        self.assertIn("generation", self.does("range", "lookup", key).out)

        explained = self.does("key", "explain", key, "--json").json
        self.assertEqual(explained["pretty"], '/Keyspace/0/Raw/"looked-up"')
        self.assertEqual(explained["address"], key)
        self.assertEqual([step["level"] for step in explained["path"]], ["meta1", "meta2"])
        self.assertEqual(explained["path"][0]["range"]["id"], 1)
        self.assertEqual(explained["path"][1]["range"]["id"], right["id"])
        self.assertTrue(explained["path"][1]["from_cache"])
        self.assertIn("meta2", self.does("key", "explain", key).out)
        # A key whose address is another: its tag goes behind the user key.
        code, out, err = trellis("key", "encode", "redis.metadata", "keyspace=0", "namespace=0",
                                 "key=k")
        self.assertEqual(code, 0, err)
        explained = self.does("key", "explain", out.split()[0], "--json").json
        self.assertEqual(explained["address"], "780000006401306b00016d")
        figures = {name.removeprefix("trellis_range_cache_"): float(value) for name, value in
                   (line.split() for line in self.api.get("/metrics").body.decode().splitlines()
                    if line.startswith("trellis_range_cache_"))}
        self.assertEqual(set(figures), {"hits", "misses", "lookups", "stale_hops", "bytes"})
        self.assertGreater(figures["hits"], 0)

        for wrong in ("abc", "1.5"):
            self.fails(2, "number", "range", "show", wrong)
        shown = self.does("range", "show", right["id"]).out
        self.assertIn(str(right["id"]), shown)
        # A share of what was cut is no count.
        self.assertFalse(right["exact"])
        self.assertRegex(shown, r"keys +~\d")
        self.does("range", "recount")
        self.assertTrue(self.does("range", "show", right["id"], "--json").json["exact"])
        self.assertRegex(self.does("range", "show", right["id"]).out, r"keys +\d")
        self.load(500)
        hot = eventually(
            lambda: self.does("range", "hot", "--limit", 1, "--json").json["ranges"][0]
            if self.does("range", "hot", "--limit", 1, "--json").json["ranges"][0][
                "writes_per_second"] > 1 else None, "load")
        self.assertTrue(hot["start"] >= "78" or hot["end"] > "78", hot)

    def test_only_the_admin(self):
        made = self.api.post("/v1/keyspaces/DEFAULT/tokens", {"role": "admin", "label": "t"}).json
        for method, path in (("get", "/v1/ranges"), ("get", "/v1/ranges/hot"),
                             ("get", "/v1/ranges/1"), ("post", "/v1/ranges/verify")):
            answer = getattr(api(self, self.server, made["token"]), method)(path)
            self.assertEqual(answer.status, 403, path)


class Jobs(RangesTest):
    def test_check_pause_resume_and_cancel(self):
        self.load()
        checked = self.does("range", "check", "--json").json
        self.assertEqual((checked["state"], checked["findings"]), ("done", []))
        started = self.does("range", "recount", "--background", "--speed", "1KiB", "--json").json
        job = started["id"]
        self.fails(1, f"job {job} is under way", "range", "check")
        self.assertEqual(self.does("range", "jobs", job, "--pause", "--json").json["state"],
                         "paused")
        self.assertIn("paused", self.does("range", "jobs").out)
        self.assertEqual(self.does("range", "jobs", job, "--resume", "--json").json["state"],
                         "running")
        self.does("range", "jobs", job, "--cancel")
        eventually(lambda: self.does("range", "jobs", job, "--json").json["state"] == "canceled",
                   "its end")
        self.fails(1, "there is no job 4711", "range", "jobs", "4711")
        self.fails(2, "which job?", "range", "jobs", "--pause")
        # Whoever waits for one that somebody else ends has not got what was asked for.
        waiting = subprocess.Popen([BINARY, "range", "check", "--speed", "1KiB"],
                                   env=clean_environment(TRELLIS_SERVER=self.server.url),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        begun = eventually(lambda: [j["id"] for j in self.does("range", "jobs", "--json")
                                    .json["jobs"] if j["state"] == "running"], "its begin")
        self.does("range", "jobs", begun[0], "--cancel")
        err = waiting.communicate(timeout=60)[1]
        self.assertEqual((waiting.returncode, b"was canceled" in err), (1, True), err)
        self.fails(2, "", "range", "history", "--limit", "10001")
        self.fails(2, "of one job", "range", "jobs", "--checksums")

    def test_a_limit_can_be_lifted(self):
        self.load()
        job = self.does("range", "recount", "--background", "--speed", "1KiB", "--json").json["id"]
        self.assertEqual(self.does("range", "jobs", job, "--speed", "0",
                                   "--json").json["bytes_per_second"], 0)
        eventually(lambda: self.does("range", "jobs", job, "--json").json["state"] == "done",
                   "its end")


class Damage(TrellisTest):
    def command(self, server, *arguments):
        code, out, err = trellis(*arguments, TRELLIS_SERVER=server.url)
        return code, out + err

    def test_a_lost_record_is_found_and_written_again(self):
        data = self.folder / "data"
        key = raw_key("m")
        with Server("--data", data) as server:
            self.assertEqual(self.command(server, "range", "pause")[0], 0)
            self.assertEqual(self.command(server, "range", "split", key, "--sticky", "1d")[0], 0)
            self.assertEqual(self.command(server, "range", "verify")[0], 0)
            self.assertEqual(server.stop()[0], 0)
        subprocess.run([EDIT_STORE, data, "03" + key], check=True)
        with Server("--data", data) as server:
            self.assertEqual(self.command(server, "range", "pause")[0], 0)
            code, text = self.command(server, "range", "verify")
            self.assertEqual(code, 1, text)
            self.assertIn("trellis range rebuild", text)
            self.assertEqual(self.command(server, "range", "verify", "--json")[0], 1)
            # What the directory does not know is not made up.
            code, text = self.command(server, "key", "explain", raw_key("a"))
            self.assertEqual(code, 1, text)
            code, text = self.command(server, "range", "rebuild", "--json")
            self.assertEqual(code, 0, text)
            self.assertEqual(json.loads(text)["written"], 1)
            self.assertEqual(self.command(server, "range", "verify")[0], 0)
            code, text = self.command(server, "key", "explain", raw_key("a"))
            self.assertEqual(code, 0, text)
            self.assertEqual(server.stop()[0], 0)

    def test_a_lost_range_is_found_and_restored(self):
        data = self.folder / "data"
        key = raw_key("m")
        with Server("--data", data) as server:
            self.assertEqual(self.command(server, "range", "pause")[0], 0)
            self.assertEqual(self.command(server, "range", "split", key, "--sticky", "1d")[0], 0)
            before = self.command(server, "range", "lookup", key)[1]
            self.assertEqual(server.stop()[0], 0)
        escaped = "".join(f"\\x{byte:02x}" for byte in bytes.fromhex(key))
        code, out, err = trellis("key", "encode", "local.range_descriptor", f"key={escaped}")
        self.assertEqual(code, 0, err)
        subprocess.run([EDIT_STORE, data, out.split()[0]], check=True)
        with Server("--data", data) as server:
            self.assertEqual(self.command(server, "range", "pause")[0], 0)
            code, text = self.command(server, "range", "verify")
            self.assertEqual(code, 1, text)
            self.assertIn("hole", text)
            self.assertEqual(self.command(server, "range", "lookup", key)[0], 1)
            code, text = self.command(server, "range", "check")
            self.assertEqual(code, 1, text)
            self.assertIn("do not tile the map", text)
            code, text = self.command(server, "range", "rebuild")
            self.assertEqual(code, 0, text)
            self.assertIn("1 restored from the directory", text)
            self.assertEqual(self.command(server, "range", "verify")[0], 0)
            after = self.command(server, "range", "lookup", key)[1]
            self.assertEqual(after.split("bytes")[0], before.split("bytes")[0])
            self.assertEqual(server.stop()[0], 0)

    def test_sizes_are_known_after_a_restart(self):
        data = self.folder / "data"
        with Server("--data", data, "--range-bytes-max", "64KiB") as server:
            http = api(self, server)
            http.put("/v1/raw/keys/a", b"x" * 1_000)
            self.command(server, "range", "recount")
            eventually(lambda: http.get("/v1/ranges/lookup?key=" + raw_key("a")).json["range"].get(
                "bytes", 0) > 1_000, "it is counted")
            # Kept every ten seconds.
            eventually(lambda: http.get("/v1/ranges/1").json["series"]["bytes"], "figures")
            self.assertEqual(server.stop()[0], 0)
        with Server("--data", data, "--range-bytes-max", "64KiB") as server:
            found = api(self, server).get("/v1/ranges/lookup?key=" + raw_key("a")).json["range"]
            self.assertGreater(found["bytes"], 1_000)
            self.assertEqual(server.stop()[0], 0)


if __name__ == "__main__":
    unittest.main()
