"""The command line: what it explains, how it fails."""

import json
import subprocess
import unittest

from trellis_command import BINARY, SOURCE, TrellisTest, clean_environment, trellis

CART = "78000201646d013063617274"


def vectors():
    for path in sorted((SOURCE / "tests" / "vectors").glob("*_keys.txt")):
        for line in path.read_text().splitlines():
            if line and not line.startswith("#"):
                left, right = line.split(" -> ", 1)
                yield path.name, left.split(" ", 1)[0], right.split(" | ")[0]


class KeyDecode(TrellisTest):
    def test_explains_every_field(self):
        code, out, err = trellis("key", "decode", "--json", CART)
        self.assertEqual((code, err), (0, ""))
        key = json.loads(out)
        self.assertEqual(key["area"], "redis")
        self.assertEqual(key["kind"], "redis.metadata")
        self.assertEqual(key["pretty"], '/Keyspace/513/Redis/Metadata/"0"/"cart"')
        self.assertEqual([f["name"] for f in key["fields"]],
                         ["mode", "keyspace", "model", "table", "namespace", "key"])
        self.assertEqual(key["fields"][1],
                         {"name": "keyspace", "offset": 1, "length": 3, "hex": "000201",
                          "value": 513})
        self.assertEqual(key["fields"][5]["value"], "cart")

    def test_text_has_offsets_and_meaning(self):
        code, out, _ = trellis("key", "decode", CART)
        self.assertEqual(code, 0)
        self.assertIn("offset  length  field", out)
        self.assertIn("keyspace id, the tenant", out)

    def test_many_keys_from_standard_input(self):
        keys = [(kind, key) for _, kind, key in vectors()
                if not kind.startswith(("kvrocks.", "tikv."))]
        self.assertGreater(len(keys), 100)
        code, out, _ = trellis("key", "decode", "--json", "-",
                               stdin="\n".join(key for _, key in keys))
        self.assertEqual(code, 0)
        explained = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([e["kind"] for e in explained], [kind for kind, _ in keys])

    def test_encode_is_the_inverse(self):
        for name, kind, key in vectors():
            with self.subTest(vector=f"{name} {kind} {key}"):
                code, out, err = trellis("key", "decode", "--json", "--as", kind, key)
                self.assertEqual(code, 0, err)
                fields = [f"{f['name']}={f['value']}" for f in json.loads(out)["fields"]]
                code, out, err = trellis("key", "encode", kind, *fields)
                self.assertEqual((code, out.strip()), (0, key), err)

    def test_a_bad_key_says_where_and_why(self):
        code, out, err = trellis("key", "decode", "7800020161")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("offset 4: model: found 61", err)
        code, out, _ = trellis("key", "decode", "--json", "7800020161")
        self.assertEqual(code, 1)
        self.assertEqual(json.loads(out)["offset"], 4)

    def test_good_lines_are_explained_among_bad_ones(self):
        code, out, err = trellis("key", "decode", "-", stdin=f"zz\n{CART}\n\n78\n")
        self.assertEqual(code, 1)
        self.assertIn("/Keyspace/513/Redis", out)
        self.assertIn("line 1: zz: character 1 is not a hex digit", err)
        self.assertIn("line 4: 78: offset 1", err)

    def test_hostile_bytes_are_not_echoed(self):
        for arguments in (["-"], ["--json", "-"]):
            done = subprocess.run([BINARY, "key", "decode", *arguments], capture_output=True,
                                  input=b"z\x1b[31m\xff\n", env=clean_environment())
            self.assertEqual(done.returncode, 1)
            shown = done.stdout + done.stderr
            self.assertIn(b"x1b[31m", shown)
            self.assertFalse(any(byte > 0x7e or (byte < 0x20 and byte != 10) for byte in shown))

    def test_no_keys_is_an_error(self):
        code, _, err = trellis("key", "decode", "-", stdin="\n")
        self.assertEqual(code, 1)
        self.assertIn("standard input has no keys", err)

    def test_as_a_kind_says_what_that_kind_wants(self):
        code, _, err = trellis("key", "decode", "--as", "redis.metadata", "0366")
        self.assertEqual(code, 1)
        self.assertIn('offset 0: mode: found 03, want "x"', err)
        code, _, err = trellis("key", "decode", "--as", "redis.meta", "0366")
        self.assertEqual(code, 2)
        self.assertIn("is not a kind of key", err)

    def test_hex_as_people_paste_it(self):
        code, out, _ = trellis("key", "decode", "0x78 00 02 01 64 6D 01 30 63 61 72 74")
        self.assertEqual(code, 0)
        self.assertIn('"cart"', out)

    def test_a_huge_and_hostile_key_is_no_trouble(self):
        # Meta keys in meta keys in ...: bounded depth, no crash.
        code, out, _ = trellis("key", "decode", "-", stdin="03" * 60000)
        self.assertEqual(code, 0)
        self.assertIn("/Meta2/Meta2", out)


class KeyEncode(TrellisTest):
    def test_what_is_wrong_is_named(self):
        for arguments, message in [
            (["raw", "keyspace=1"], "key: missing; raw takes: keyspace, key"),
            (["raw", "keyspace=99999999", "key=a"], "at most 16777215"),
            (["raw", "keyspace"], "is not field=value"),
            (["rew", "keyspace=1"], "is not a kind of key"),
            (["redis.score", "keyspace=1", "namespace=0", "key=z", "version=1", "score=nan",
              "member=m"], "NaN has no place in an order"),
        ]:
            with self.subTest(arguments=arguments):
                code, out, err = trellis("key", "encode", *arguments)
                self.assertEqual((code, out), (2, ""))
                self.assertIn(message, err)


class Usage(TrellisTest):
    def test_wrong_use_is_2_and_help_is_0(self):
        self.assertEqual(trellis()[0], 2)
        self.assertEqual(trellis("sevre")[0], 2)
        self.assertEqual(trellis("key", "decode")[0], 2)
        code, _, err = trellis("key", "bogus")
        self.assertEqual(code, 2)
        self.assertIn("bogus is not a command", err)
        self.assertEqual(trellis("serve", "--no-such-flag", "1")[0], 2)
        for command in [[], ["serve"], ["key"], ["key", "decode"], ["key", "encode"], ["map"]]:
            code, out, _ = trellis(*command, "--help")
            self.assertEqual(code, 0)
            self.assertIn("--help", out)

    def test_what_was_probably_meant(self):
        for arguments, message in [
            (["sevre"], "sevre is not a command: did you mean serve?"),
            (["key", "decoed"], "decoed is not a command: did you mean decode?"),
            (["serve", "--rsep", "x:0"], "--rsep is not a flag of serve: did you mean --resp?"),
            (["serve", "--htpt=x:0"], "--htpt is not a flag of serve: did you mean --http?"),
            (["raw", "get", "--jsn"], "--jsn is not a flag of get: did you mean --json?"),
            (["serve", "--potatoes"], "--potatoes is not a flag of serve: see --help"),
            (["-x"], "-x is not a flag of trellis: see --help"),
            (["raw", "--keyspace", "a", "get", "k"], "--keyspace goes behind get"),
            (["key", "dec\x1b[31m"], "dec\\x1b[31m is not a command"),
        ]:
            with self.subTest(arguments=arguments):
                code, out, err = trellis(*arguments)
                self.assertEqual((code, out), (2, ""))
                self.assertIn(message, err)

    def test_the_map_lists_every_kind_in_order(self):
        code, out, _ = trellis("map", "--json")
        self.assertEqual(code, 0)
        areas = list(dict.fromkeys(kind["area"] for kind in json.loads(out) if kind["in_map"]))
        self.assertEqual(areas, ["local", "meta1", "meta2", "system", "table", "raw", "catalog",
                                 "redis", "fs", "garbage", "counter"])
        code, text, _ = trellis("map")
        self.assertEqual(code, 0)
        for kind in json.loads(out):
            self.assertIn(f"  {kind['kind']} ", text)


if __name__ == "__main__":
    unittest.main()
