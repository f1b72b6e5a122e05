"""PD's HTTP API v2, as a client that was written for PD meets it: every row, every error.

Errors are bare JSON strings as PD's are, with the statuses that PD should have had.
"""

import json
import threading
import time
import unittest

from trellis_http import (GC, ID_MAX, KEYSPACES, Api, ServerTest, encoded, eventually,
                          in_parallel, timestamp)

NOT_FOUND = "[PD:keyspace:ErrKeyspaceNotFound]keyspace does not exist"
EXISTS = "[PD:keyspace:ErrKeyspaceExists]keyspace already exists"
BIND = "[PD:gin:ErrBindJSON]bind JSON error"
STATES = ("ENABLED", "DISABLED", "ARCHIVED", "TOMBSTONE")
NOT_NUMBERS = ("abc", "-1", "%2B1", "1.0", "0x1", "%201", "1%20", "1e3", "1_000", "%C2%B2",
               "18446744073709551616", "99999999999999999999999999")


class PdTest(ServerTest):
    def pd_error(self, answer, status, text, starts=False):
        self.assertEqual(answer.status, status, answer)
        self.assertEqual(answer.headers["Content-Type"], "application/json")
        said = answer.json
        self.assertIsInstance(said, str)
        if starts:
            self.assertTrue(said.startswith(text), said)
        else:
            self.assertEqual(said, text)

    def ids(self):
        return [keyspace["id"] for keyspace in self.api.get(KEYSPACES).json["keyspaces"]]


class Create(PdTest):
    def test_the_keyspace_as_pd_answers_it(self):
        before_s = int(time.time())
        name = self.new_name()
        answer = self.api.post(KEYSPACES, {"name": name, "config": {"user_kind": "basic"}})
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(answer.headers["Content-Type"], "application/json")
        keyspace = answer.json
        self.assertEqual(set(keyspace), {"id", "name", "state", "created_at", "state_changed_at",
                                         "config"})
        self.assertEqual((keyspace["name"], keyspace["state"], keyspace["config"]),
                         (name, "ENABLED", {"user_kind": "basic"}))
        self.assertGreater(keyspace["id"], 0)
        self.assertTrue(before_s <= keyspace["created_at"] <= time.time())
        self.assertEqual(keyspace["created_at"], keyspace["state_changed_at"])

    def test_an_empty_config_is_left_out(self):
        for body in ({}, {"config": {}}, {"config": None}):
            self.assertNotIn("config", self.create(**body))

    def test_ids_only_go_up(self):
        made = [self.create()["id"] for _ in range(5)]
        self.assertEqual(made, sorted(set(made)))

    def test_what_pd_sets_itself_is_dropped(self):
        keyspace = self.create(config={"tso_keyspace_group_id": "7", "meta_service_group_id": "a",
                                       "meta_service_group_addrs": "b", "mine": "c"})
        self.assertEqual(keyspace["config"], {"mine": "c"})

    def test_names(self):
        for name in ("a", "A-b_9", "x" * 64, "-", "default"):
            with self.subTest(name=name):
                self.assertEqual(self.create(name)["name"], name)
                self.assertEqual(self.api.get(f"{KEYSPACES}/{name}").json["name"], name)
        for name in ("", "x" * 65, "a b", "a/b", "a.b", "ä", "a\0b", "a\n", "%41"):
            with self.subTest(name=name):
                self.pd_error(self.api.post(KEYSPACES, {"name": name}), 422,
                              f"illegal keyspace name {name}, should contain only "
                              "alphanumerical and underline")
        for name in ("DEFAULT", "SYSTEM"):
            with self.subTest(name=name):
                self.pd_error(self.api.post(KEYSPACES, {"name": name}), 422,
                              f"illegal keyspace name {name}, "
                              "collides with a protected keyspace name")

    def test_a_keyspace_that_is_called_id(self):
        # Its paths look like those of ids.
        made = self.create("id")
        self.assertEqual(self.api.get(f"{KEYSPACES}/id").json, made)
        patched = self.api.patch(f"{KEYSPACES}/id/config", {"config": {"k": "v"}})
        self.assertEqual(patched.json["config"]["k"], "v")

    def test_exists(self):
        name = self.create()["name"]
        self.pd_error(self.api.post(KEYSPACES, {"name": name}), 409, EXISTS)
        self.pd_error(self.api.post(KEYSPACES, {"name": name, "config": {"a": "b"}}), 409, EXISTS)

    def test_bodies_that_are_none(self):
        before = self.ids()
        for body in (b"", b"null", b"[]", b"7", b'"x"', b"{", b'{"name":"b1"', b"{'name':'b1'}",
                     b'{"name":"b1"} x', b'{"name":"b1","name":"b1"}', b'{"name":7}',
                     b'{"name":["b1"]}', b'{"name":"b1","config":[]}',
                     b'{"name":"b1","config":"x"}',
                     b'{"name":"b1","config":{"a":1}}', b'{"name":"b1","config":{"a":null}}',
                     b'{"name":"b1","config":{"a":{"b":"c"}}}', b'{"name":"b1","size":1}',
                     b'{"name":"b1","id":9}', b'{"name":"\xff"}', b'{"name":"b1\0"}', b"\xff\xfe",
                     b'{"name":"b1",}', b'// x\n{"name":"b1"}', b'{"name":"\\ud800"}'):
            with self.subTest(body=body):
                self.pd_error(self.api.post(KEYSPACES, body), 400, BIND, starts=True)
        self.assertEqual(self.ids(), before)

    def test_limits_of_the_config(self):
        config = {"k": "v" * (64 * 1024 - 1)}
        self.assertEqual(self.create(config=config)["config"], config)
        self.assertEqual(self.api.post(KEYSPACES, {"name": self.new_name(), "config": {
            "k": "v" * 64 * 1024}}).status, 422)
        self.assertEqual(self.api.post(KEYSPACES, {"name": self.new_name(),
                                                   "config": {"": "v"}}).status, 400)
        answer = self.api.post(KEYSPACES, b'{"name":"' + b"x" * 1024 * 1024 + b'"}')
        self.assertEqual(answer.status, 413)
        self.assertIsInstance(answer.json, str)

    def test_unknown_query_parameters(self):
        self.assertEqual(self.api.post(f"{KEYSPACES}?nam=x", {"name": "q"}).status, 400)

    def test_32_at_once(self):
        name = self.new_name()
        statuses, ids = [], set()
        barrier = threading.Barrier(32)

        def create(_):
            api = Api(self.server)
            barrier.wait()
            answer = api.post(KEYSPACES, {"name": name})
            statuses.append(answer.status)
            if answer.status == 200:
                ids.add(answer.json["id"])
            elif answer.json != EXISTS:
                statuses.append(answer)
            api.close()

        in_parallel(32, create)
        self.assertEqual(sorted(statuses), [200] + [409] * 31)
        self.assertEqual(ids, {self.api.get(f"{KEYSPACES}/{name}").json["id"]})


class CreateById(PdTest):
    path = f"{KEYSPACES}/id"

    def test_with_its_id(self):
        for number in (7_000_000, ID_MAX):
            name = self.new_name()
            answer = self.api.post(self.path, {"id": number, "name": name, "config": {"a": "b"}})
            self.assertEqual(answer.status, 200, answer)
            self.assertEqual((answer.json["id"], answer.json["name"], answer.json["config"]),
                             (number, name, {"a": "b"}))
            self.assertEqual(self.api.get(f"{KEYSPACES}/{name}").json, answer.json)
            self.assertEqual(self.api.get(f"{KEYSPACES}/id/{number}").json, answer.json)

    def test_what_is_missing(self):
        self.pd_error(self.api.post(self.path, {"name": "m"}), 400, "keyspace id is empty")
        self.pd_error(self.api.post(self.path, {"id": None, "name": "m"}), 400,
                      "keyspace id is empty")
        self.pd_error(self.api.post(self.path, {"id": 9}), 400, "keyspace name is empty")
        self.pd_error(self.api.post(self.path, {"id": 9, "name": ""}), 400,
                      "keyspace name is empty")

    def test_ids_that_are_none(self):
        before = self.ids()
        for number in (ID_MAX + 1, 2**32, 2**32 + 1, 2**64 - 1):
            with self.subTest(number=number):
                self.pd_error(self.api.post(self.path, {"id": number, "name": "none"}), 422,
                              f"illegal keyspace id {number}, larger than spaceID Max {ID_MAX}")
        self.pd_error(self.api.post(self.path, {"id": 0, "name": "none"}), 422,
                      "illegal keyspace id 0, collides with a protected keyspace id")
        for text in ("-1", "1.5", '"7"', "1e2", "true", str(2**64), "[7]"):
            with self.subTest(id=text):
                self.pd_error(self.api.post(self.path, f'{{"id":{text},"name":"none"}}'), 400,
                              BIND, starts=True)
        # Nothing of it is there, not even the name.
        self.assertEqual(self.ids(), before)
        self.pd_error(self.api.get(f"{KEYSPACES}/none"), 404, NOT_FOUND)

    def test_taken(self):
        one = self.create()
        self.pd_error(self.api.post(self.path, {"id": one["id"], "name": self.new_name()}), 409,
                      EXISTS)
        self.pd_error(self.api.post(self.path, {"id": 6_000_001, "name": one["name"]}), 409, EXISTS)
        self.pd_error(self.api.get(f"{KEYSPACES}/id/6000001"), 404, NOT_FOUND)

    def test_the_allocator_steps_over_it(self):
        last = self.create()["id"]
        answer = self.api.post(self.path, {"id": last + 1, "name": self.new_name()})
        self.assertEqual(answer.status, 200)
        self.assertGreater(self.create()["id"], last + 1)

    def test_an_id_is_never_given_twice(self):
        name = self.new_name()
        self.assertEqual(self.api.post(self.path, {"id": 5_000_000, "name": name}).status, 200)
        self.bring_to(name, "TOMBSTONE")
        self.wait_purged(5_000_000)
        self.pd_error(self.api.post(self.path, {"id": 5_000_000, "name": name}), 409, EXISTS)
        self.pd_error(self.api.get(f"{KEYSPACES}/id/5000000"), 404, NOT_FOUND)
        self.assertNotEqual(self.create(name)["id"], 5_000_000)


class List(PdTest):
    def pages(self, limit):
        pages, token = [], ""
        while True:
            answer = self.api.get(f"{KEYSPACES}?page_token={token}&limit={limit}")
            self.assertEqual(answer.status, 200, answer)
            self.assertEqual(set(answer.json), {"keyspaces", "next_page_token"})
            pages.append(answer.json["keyspaces"])
            token = answer.json["next_page_token"]
            if not token:
                return pages
            self.assertEqual(str(int(token)), token)
            self.assertGreater(int(token), pages[-1][-1]["id"])

    def setUp(self):
        super().setUp()
        while len(self.ids()) < 12:
            self.create(config={"n": str(next(self.names))})

    def test_all(self):
        everything = self.api.get(KEYSPACES).json
        self.assertEqual(everything["next_page_token"], "")
        self.assertEqual(everything["keyspaces"][0]["name"], "DEFAULT")
        ids = [keyspace["id"] for keyspace in everything["keyspaces"]]
        self.assertEqual(ids, sorted(set(ids)))
        for query in ("?limit=0", "?limit=", "?page_token=&limit=", "?page_token=0",
                      "?limit=1000000", f"?limit={2**64 - 1}"):
            with self.subTest(query=query):
                self.assertEqual(self.api.get(KEYSPACES + query).json, everything)
        for keyspace in everything["keyspaces"]:
            self.assertEqual(self.api.get(f"{KEYSPACES}/id/{keyspace['id']}").json, keyspace)

    def test_pages(self):
        everything = self.api.get(KEYSPACES).json["keyspaces"]
        for limit in (1, 3, 4, 5, 11, 12, len(everything), len(everything) + 1):
            with self.subTest(limit=limit):
                pages = self.pages(limit)
                self.assertEqual(sum(pages, []), everything)
                self.assertEqual({len(page) for page in pages[:-1]} - {limit}, set())
                self.assertTrue(0 < len(pages[-1]) <= limit)

    def test_a_token_is_the_first_id_of_its_page(self):
        ids = self.ids()
        page = self.api.get(f"{KEYSPACES}?limit=2").json
        self.assertEqual(page["next_page_token"], str(ids[2]))
        # An id that nobody has: from the next one on.
        page = self.api.get(f"{KEYSPACES}?limit=1&page_token={ids[-1]}").json
        self.assertEqual([k["id"] for k in page["keyspaces"]], [ids[-1]])
        self.assertEqual(page["next_page_token"], "")
        page = self.api.get(f"{KEYSPACES}?page_token={ID_MAX - 1}").json
        self.assertEqual(page, {"keyspaces": [], "next_page_token": ""})  # never null

    def test_a_page_that_grew_meanwhile(self):
        page = self.api.get(f"{KEYSPACES}?limit=3").json
        new = self.create()
        rest = self.api.get(f"{KEYSPACES}?page_token={page['next_page_token']}").json
        ids = [k["id"] for k in page["keyspaces"] + rest["keyspaces"]]
        self.assertEqual(ids, self.ids())
        self.assertIn(new["id"], ids)

    def test_what_is_gone_is_not_listed(self):
        gone = self.create()
        self.bring_to(gone["name"], "TOMBSTONE")
        self.wait_purged(gone["id"])
        self.assertNotIn(gone["id"], self.ids())

    def test_bad_values(self):
        for number in NOT_NUMBERS:
            for name in ("limit", "page_token"):
                with self.subTest(name=name, number=number):
                    self.pd_error(self.api.get(f"{KEYSPACES}?{name}={number}"), 400, "[",
                                  starts=True)
        self.pd_error(self.api.get(f"{KEYSPACES}?page_token={ID_MAX + 1}"), 400,
                      f"startID of the scan {ID_MAX + 1} exceeds spaceID Max {ID_MAX}")
        for query in ("limit=1&limit=2", "page=1", "limit=%zz", "limit=%"):
            with self.subTest(query=query):
                self.assertEqual(self.api.get(f"{KEYSPACES}?{query}").status, 400)


class Load(PdTest):
    def test_by_name_and_by_id(self):
        made = self.create(config={"a": "b"})
        name = made["name"]
        for path in (name, f"{name}?force_refresh_group_id=true", f"id/{made['id']}",
                     name.replace("-", "%2D")):
            with self.subTest(path=path):
                answer = self.api.get(f"{KEYSPACES}/{path}")
                self.assertEqual((answer.status, answer.json), (200, made))
        self.assertEqual(self.api.get(f"{KEYSPACES}/DEFAULT").json["id"], 0)
        self.assertEqual(self.api.get(f"{KEYSPACES}/id/0").json["name"], "DEFAULT")

    def test_not_found(self):
        for path in ("nobody", "id/4000000", "default%00", "%FF", "a%2Fb", "x" * 1000, "id/1%2F"):
            with self.subTest(path=path):
                answer = self.api.get(f"{KEYSPACES}/{path}")
                if path == "id/1%2F":
                    self.pd_error(answer, 400, "invalid keyspace id")
                else:
                    self.pd_error(answer, 404, NOT_FOUND)

    def test_ids_are_strict(self):
        # PD cuts 4294967296 to 32 bits and answers with DEFAULT.
        for number in (2**32, 2**32 + 1, ID_MAX + 1, 2**64 - 1):
            with self.subTest(number=number):
                self.pd_error(self.api.get(f"{KEYSPACES}/id/{number}"), 422,
                              f"illegal keyspace id {number}, larger than spaceID Max {ID_MAX}")
        for number in NOT_NUMBERS + ("%00", "0%00", "NaN"):
            with self.subTest(number=number):
                self.pd_error(self.api.get(f"{KEYSPACES}/id/{number}"), 400, "invalid keyspace id")

    def test_paths_and_methods_that_are_not_there(self):
        for path in ("/pd/api/v2", "/pd/api/v2/", "/pd/api/v3/keyspaces", f"{KEYSPACES}/",
                     f"{KEYSPACES}/a/b/c", "/pd/api/v2/Keyspaces"):
            with self.subTest(path=path):
                answer = self.api.get(path)
                self.assertEqual(answer.status, 404)
                self.assertIsInstance(answer.json, str)
        answer = self.api.delete(KEYSPACES)
        self.assertEqual(answer.status, 405)
        self.assertIsInstance(answer.json, str)
        self.assertEqual(set(answer.headers["Allow"].split(", ")), {"GET", "HEAD", "POST",
                                                                    "OPTIONS"})
        self.assertEqual(self.api.get(f"{KEYSPACES}/DEFAULT?forse=1").status, 400)
        self.assertEqual(self.api.call("HEAD", f"{KEYSPACES}/DEFAULT").body, b"")


class Config(PdTest):
    def patch_config(self, name, config, preconditions=None):
        body = {"config": config}
        if preconditions is not None:
            body["preconditions"] = preconditions
        return self.api.patch(f"{KEYSPACES}/{name}/config", body)

    def test_merge_and_null(self):
        name = self.create(config={"a": "1", "b": "2"})["name"]
        for patch, after in (({"b": "3", "c": "4"}, {"a": "1", "b": "3", "c": "4"}),
                             ({"a": None}, {"b": "3", "c": "4"}),
                             ({"a": None}, {"b": "3", "c": "4"}),  # again
                             ({}, {"b": "3", "c": "4"}),
                             ({"b": "", "ü": "\0\n\"\\☃"}, {"b": "", "c": "4", "ü": "\0\n\"\\☃"}),
                             ({"b": None, "c": None, "ü": None}, None)):
            with self.subTest(patch=patch):
                answer = self.patch_config(name, patch)
                self.assertEqual(answer.status, 200, answer)
                self.assertEqual(answer.json.get("config"), after)
                self.assertEqual(self.api.get(f"{KEYSPACES}/{name}").json, answer.json)

    def test_preconditions(self):
        name = self.create(config={"a": "1"})["name"]
        text = ("[PD:keyspace:ErrKeyspaceConfigPreconditionFailed]"
                "keyspace config precondition failed")
        for preconditions, expected, actual in (({"a": "2"}, "2", "1"), ({"a": None}, "<absent>",
                                                                         "1")):
            self.pd_error(self.patch_config(name, {"a": "9"}, preconditions), 412,
                          f"{text}, key=a expected={expected} actual={actual}")
        self.pd_error(self.patch_config(name, {"a": "9"}, {"z": "1"}), 412,
                      f"{text}, key=z expected=1 actual=<absent>")
        self.pd_error(self.patch_config(name, {"a": "9"}, {"a": "1", "z": ""}), 412,
                      f"{text}, key=z expected= actual=<absent>")
        self.assertEqual(self.api.get(f"{KEYSPACES}/{name}").json["config"], {"a": "1"})
        self.assertEqual(self.patch_config(name, {"a": "2"}, {"a": "1", "z": None}).json["config"],
                         {"a": "2"})

    def test_only_one_of_many_wins_a_precondition(self):
        name = self.create(config={"n": "0"})["name"]
        answers = []

        def change(number):
            api = Api(self.server)
            answers.append(api.patch(f"{KEYSPACES}/{name}/config", {
                "config": {"n": str(number + 1)}, "preconditions": {"n": "0"}}))
            api.close()

        in_parallel(12, change)
        self.assertEqual(sorted(answer.status for answer in answers), [200] + [412] * 11)
        winner = next(answer for answer in answers if answer.status == 200)
        self.assertEqual(self.api.get(f"{KEYSPACES}/{name}").json, winner.json)

    def test_refused_keys(self):
        # PD refuses to set them and lets null remove them, which moves a tenant's GC.
        name = self.create(config={"gc_management_type": "keyspace_level",
                                   "region_bound_type": "raw"})["name"]
        before = self.api.get(f"{KEYSPACES}/{name}").json
        for key in ("gc_management_type", "region_bound_type"):
            for value in ("unified", None):
                with self.subTest(key=key, value=value):
                    self.pd_error(self.patch_config(name, {key: value, "other": "x"}), 422,
                                  "[PD:keyspace:ErrUnsupportedOperationInKeyspace]", starts=True)
        self.assertEqual(self.api.get(f"{KEYSPACES}/{name}").json, before)

    def test_by_state(self):
        name = self.create()["name"]
        self.set_state(name, "disabled")
        self.assertEqual(self.patch_config(name, {"a": "1"}).json["config"], {"a": "1"})
        self.set_state(name, "archived")
        self.pd_error(self.patch_config(name, {"a": "2"}), 409,
                      "cannot change config for keyspace with state ARCHIVED")
        self.set_state(name, "tombstone")
        self.pd_error(self.patch_config(name, {"a": "2"}), 404, NOT_FOUND)

    def test_bad_bodies(self):
        name = self.create()["name"]
        for body in (b"", b"[]", b'{"config":[]}', b'{"config":{"a":1}}', b'{"config":{"a":true}}',
                     b'{"config":{"a":"1","a":"2"}}', b'{"conf":{}}', b'{"preconditions":{"a":1}}',
                     b'{"config":{"a":["x"]}}'):
            with self.subTest(body=body):
                self.pd_error(self.api.patch(f"{KEYSPACES}/{name}/config", body), 400, BIND,
                              starts=True)
        self.pd_error(self.patch_config("nobody", {"a": "1"}), 404, NOT_FOUND)
        answer = self.patch_config(name, {"k": "v" * 64 * 1024})
        self.assertEqual(answer.status, 422)
        self.assertNotIn("config", self.api.get(f"{KEYSPACES}/{name}").json)


class State(PdTest):
    # PD's table, and the way back from the archive, which PD has not.
    allowed = {("ENABLED", "DISABLED"), ("DISABLED", "ENABLED"), ("DISABLED", "ARCHIVED"),
               ("ARCHIVED", "TOMBSTONE"), ("ARCHIVED", "DISABLED")}

    def test_all_16(self):
        for begin in STATES:
            for end in STATES:
                with self.subTest(begin=begin, end=end):
                    name = self.create()["name"]
                    before = self.bring_to(name, begin)
                    answer = self.api.put(f"{KEYSPACES}/{name}/state", {"state": end})
                    if begin == "TOMBSTONE":  # it has no name any more
                        self.pd_error(answer, 404, NOT_FOUND)
                    elif begin == end:
                        self.assertEqual((answer.status, answer.json), (200, before))
                    elif (begin, end) in self.allowed:
                        self.assertEqual(answer.status, 200, answer)
                        self.assertEqual(answer.json["state"], end)
                        self.assertEqual(answer.json["id"], before["id"])
                    else:
                        self.pd_error(answer, 409,
                                      f"cannot change keyspace state from {begin} to {end}")
                        self.assertEqual(self.api.get(f"{KEYSPACES}/{name}").json, before)

    def test_any_case(self):
        name = self.create()["name"]
        for text in ("disabled", "EnAbLeD", "Disabled", "ENABLED"):
            self.assertEqual(self.set_state(name, text)["state"], text.upper())

    def test_no_change_leaves_the_time(self):
        name = self.create()["name"]
        before = self.set_state(name, "disabled")
        eventually(lambda: time.time() >= before["state_changed_at"] + 1, "another second")
        self.assertEqual(self.set_state(name, "disabled"), before)
        self.assertGreater(self.set_state(name, "enabled")["state_changed_at"],
                           before["state_changed_at"])

    def test_errors(self):
        name = self.create()["name"]
        for state in ("", "gone", "ENABLED ", "0", "enabled\0", "É"):
            with self.subTest(state=state):
                self.pd_error(self.api.put(f"{KEYSPACES}/{name}/state", {"state": state}), 400,
                              f"unknown target state: {state}")
        for body in (b"", b'{"state":1}', b'{"stat":"x"}', b'{"state":["disabled"]}',
                     b'"disabled"'):
            with self.subTest(body=body):
                self.assertEqual(self.api.put(f"{KEYSPACES}/{name}/state", body).status, 400)
        self.pd_error(self.api.put(f"{KEYSPACES}/nobody/state", {"state": "disabled"}), 404,
                      NOT_FOUND)
        for state in ("disabled", "archived", "tombstone"):
            self.pd_error(self.api.put(f"{KEYSPACES}/DEFAULT/state", {"state": state}), 422,
                          "[PD:keyspace:ErrModifyDefaultKeyspace]"
                          "cannot modify default keyspace's state")

    def test_a_tombstone_has_no_name_and_keeps_its_id(self):
        made = self.create()
        self.bring_to(made["name"], "TOMBSTONE")
        self.pd_error(self.api.get(f"{KEYSPACES}/{made['name']}"), 404, NOT_FOUND)
        again = self.create(made["name"])
        self.assertNotEqual(again["id"], made["id"])


class SafePoints(PdTest):
    def setUp(self):
        super().setUp()
        self.id = self.create()["id"]
        self.now = timestamp(time.time() - 3600)

    def put_txn(self, point):
        return self.api.put(f"{GC}/txn_safepoint/{self.id}", {"safe_point": point})

    def put_gc(self, point):
        return self.api.put(f"{GC}/safepoint/{self.id}", {"safe_point": point})

    def hold(self, service, point, ttl):
        return self.api.put(f"{GC}/service_safepoint/{self.id}/{encoded(service)}",
                            {"safe_point": point, "ttl": ttl})

    def test_both_points(self):
        self.assertEqual(self.api.get(f"{GC}/safepoint/{self.id}").json,
                         {"keyspace_id": self.id, "safe_point": 0})
        self.assertEqual(self.api.get(f"{GC}/txn_safepoint/{self.id}").json,
                         {"keyspace_id": self.id, "safe_point": 0, "blocker_description": ""})
        self.pd_error(self.put_gc(self.now), 409, "[PD:gc:ErrGCSafePointExceedsTxnSafePoint]",
                      starts=True)
        answer = self.put_txn(self.now)
        self.assertEqual(answer.json, {"keyspace_id": self.id, "safe_point": self.now,
                                       "blocker_description": ""})
        self.assertEqual(self.put_gc(self.now - 5).json,
                         {"keyspace_id": self.id, "safe_point": self.now - 5})
        self.assertEqual(self.put_gc(self.now - 5).status, 200)  # the same again
        self.pd_error(self.put_gc(self.now - 6), 409, "[PD:gc:ErrDecreasingGCSafePoint]",
                      starts=True)
        self.pd_error(self.put_txn(self.now - 1), 409, "[PD:gc:ErrDecreasingTxnSafePoint]",
                      starts=True)
        self.pd_error(self.put_gc(self.now + 1), 409, "[PD:gc:ErrGCSafePointExceedsTxnSafePoint]",
                      starts=True)
        self.assertEqual(self.api.get(f"{GC}/state/{self.id}").json,
                         {"keyspace_id": self.id, "gc_safe_point": self.now - 5,
                          "txn_safe_point": self.now, "service_safe_points": []})

    def test_of_one_keyspace_only(self):
        other = self.create()["id"]
        self.put_txn(self.now)
        self.assertEqual(self.api.get(f"{GC}/txn_safepoint/{other}").json["safe_point"], 0)
        self.assertEqual(self.api.get(f"{GC}/txn_safepoint/0").json["safe_point"], 0)

    def test_the_future_and_other_numbers(self):
        for point in (timestamp(time.time() + 3600), 2**63, 2**64 - 1):
            for put in (self.put_txn, self.put_gc):
                self.assertEqual(put(point).status, 422)
        for text in ("-1", "1.5", '"7"', str(2**64), "null", "1e30", "{}"):
            with self.subTest(safe_point=text):
                for path in ("safepoint", "txn_safepoint"):
                    self.pd_error(self.api.put(f"{GC}/{path}/{self.id}",
                                               f'{{"safe_point":{text}}}'), 400, BIND, starts=True)
        for body in (b"", b"{}", b"7", b'{"safe_point":1,"ttl":1}'):
            self.pd_error(self.api.put(f"{GC}/safepoint/{self.id}", body), 400, BIND, starts=True)
        self.assertEqual(self.api.get(f"{GC}/state/{self.id}").json["txn_safe_point"], 0)

    def test_a_service_holds(self):
        before_s = int(time.time())
        answer = self.hold("backup-7", self.now - 100, 3600)
        self.assertEqual(answer.status, 200, answer)
        held = answer.json
        self.assertEqual(set(held), {"service_id", "safe_point", "expired_at", "set_at"})
        self.assertEqual((held["service_id"], held["safe_point"]), ("backup-7", self.now - 100))
        self.assertTrue(before_s + 3600 <= held["expired_at"] <= time.time() + 3601)
        self.assertTrue(before_s <= held["set_at"] <= time.time())
        forever = self.hold("a:b c", self.now - 50, 2**63 - 1).json
        self.assertEqual(forever["expired_at"], 2**63 - 1)
        self.assertEqual(self.api.get(f"{GC}/service_safepoint/{self.id}").json,
                         {"keyspace_id": self.id, "service_safe_points": [held, forever]})

        advanced = self.put_txn(self.now).json
        self.assertEqual(advanced["safe_point"], self.now - 100)
        self.assertIn("backup-7", advanced["blocker_description"])
        # Held again at a higher point: an update, which keeps when it was set.
        moved = self.hold("backup-7", self.now - 20, 3600).json
        self.assertEqual(moved["set_at"], held["set_at"])
        advanced = self.put_txn(self.now).json
        self.assertEqual(advanced["safe_point"], self.now - 50)
        self.assertIn("a:b c", advanced["blocker_description"])
        self.pd_error(self.hold("late", self.now - 51, 10), 409,
                      "[PD:gc:ErrGCBarrierTSBehindTxnSafePoint]", starts=True)

        gone = self.api.delete(f"{GC}/service_safepoint/{self.id}/{encoded('a:b c')}")
        self.assertEqual((gone.status, gone.json), (200, forever))
        gone = self.api.delete(f"{GC}/service_safepoint/{self.id}/backup-7")
        self.assertEqual((gone.status, gone.json), (200, moved))
        self.pd_error(self.api.delete(f"{GC}/service_safepoint/{self.id}/backup-7"), 404,
                      "[TRELLIS:barrier_not_found]", starts=True)
        self.assertEqual(self.put_txn(self.now).json["blocker_description"], "")
        self.assertEqual(self.api.get(f"{GC}/state/{self.id}").json["txn_safe_point"], self.now)

    def test_a_hold_ends_with_its_ttl(self):
        ends_s = self.hold("short", self.now - 100, 1).json["expired_at"]
        path = f"{GC}/service_safepoint/{self.id}"
        held = self.api.get(path).json["service_safe_points"]
        if time.time() < ends_s:
            self.assertEqual(len(held), 1)
        eventually(lambda: not self.api.get(path).json["service_safe_points"], "it is over")
        self.assertEqual(self.put_txn(self.now).json["safe_point"], self.now)

    def test_services_that_are_none(self):
        self.pd_error(self.hold("gc_worker", self.now, 10), 422, "[PD:gc:ErrReservedGCBarrierID]",
                      starts=True)
        for service in ("x" * 129, "a/b", "ä", "a\0", "\n"):
            with self.subTest(service=service):
                answer = self.hold(service, self.now, 10)
                self.assertEqual(answer.status, 422, answer)
        for ttl in (0, 2**63):
            self.assertEqual(self.hold("s", self.now, ttl).status, 422)
        for body in ("", "{}", '{"safe_point":1}', '{"ttl":1}', '{"safe_point":1,"ttl":-1}',
                     '{"safe_point":1,"ttl":1.5}', '{"safe_point":1,"ttl":1,"x":1}'):
            with self.subTest(body=body):
                self.pd_error(self.api.put(f"{GC}/service_safepoint/{self.id}/s", body), 400, BIND,
                              starts=True)
        self.assertEqual(self.api.get(f"{GC}/service_safepoint/{self.id}").json[
            "service_safe_points"], [])

    def test_ids(self):
        calls = [("GET", "safepoint/{}", None), ("GET", "txn_safepoint/{}", None),
                 ("GET", "service_safepoint/{}", None), ("GET", "state/{}", None),
                 ("PUT", "safepoint/{}", {"safe_point": 1}),
                 ("PUT", "txn_safepoint/{}", {"safe_point": 1}),
                 ("PUT", "service_safepoint/{}/s", {"safe_point": 1, "ttl": 1}),
                 ("DELETE", "service_safepoint/{}/s", None)]
        for method, path, body in calls:
            with self.subTest(method=method, path=path):
                self.pd_error(self.api.call(method, f"{GC}/{path.format(4_000_000)}", body), 404,
                              NOT_FOUND)
                self.pd_error(self.api.call(method, f"{GC}/{path.format('x')}", body), 400,
                              "invalid keyspace id")
                self.pd_error(self.api.call(method, f"{GC}/{path.format(2**32)}", body), 422,
                              f"illegal keyspace id {2**32}, larger than spaceID Max {ID_MAX}")


class Groups(PdTest):
    def test_there_are_none(self):
        groups = "/pd/api/v2/tso/keyspace-groups"
        for path in (groups, f"{groups}?state=merge", f"{groups}?state=split&page_token=&limit=9",
                     "/pd/api/v2/meta-service-groups"):
            self.assertEqual(self.api.get(path).json, [])
        self.assertIsNone(self.api.get(f"{groups}/0").json)

    def test_and_none_can_be_made(self):
        groups = "/pd/api/v2/tso/keyspace-groups"
        for method, path in (("POST", groups), ("DELETE", f"{groups}/1"), ("PATCH", f"{groups}/1"),
                             ("POST", f"{groups}/1/alloc"), ("POST", f"{groups}/1/split"),
                             ("DELETE", f"{groups}/1/split"), ("POST", f"{groups}/1/merge"),
                             ("DELETE", f"{groups}/1/merge"), ("DELETE", f"{groups}/1/keyspaces"),
                             ("PATCH", "/pd/api/v2/meta-service-groups"),
                             ("PATCH", "/pd/api/v2/meta-service-groups/g1/status")):
            with self.subTest(method=method, path=path):
                answer = self.api.call(method, path, {"keyspace-groups": []})
                self.assertEqual(answer.status, 501)
                self.assertIsInstance(answer.json, str)


class Idempotency(PdTest):
    def test_the_same_again(self):
        body = {"name": self.new_name(), "config": {"a": "b"}}
        first = self.api.post(KEYSPACES, body, Idempotency_Key="once-1")
        again = self.connect().post(KEYSPACES, body, Idempotency_Key="once-1")
        self.assertEqual((first.status, again.status), (200, 200))
        self.assertEqual(first.json, again.json)
        self.pd_error(self.api.post(KEYSPACES, body), 409, EXISTS)
        self.pd_error(self.api.post(KEYSPACES, body, Idempotency_Key="once-2"), 409, EXISTS)

    def test_another_request_with_the_same_key(self):
        first = {"name": self.new_name(), "config": {"a": "b"}}
        self.assertEqual(self.api.post(KEYSPACES, first, Idempotency_Key="mine").status, 200)
        for body in ({"name": self.new_name()}, {**first, "config": {"a": "c"}},
                     {**first, "config": {}}):
            with self.subTest(body=body):
                answer = self.api.post(KEYSPACES, body, Idempotency_Key="mine")
                self.assertEqual(answer.status, 422, answer)
        answer = self.api.post(f"{KEYSPACES}/id", {**first, "id": 77}, Idempotency_Key="mine")
        self.assertEqual(answer.status, 422, answer)

    def test_what_became_of_it_since(self):
        name = self.new_name()
        self.api.post(KEYSPACES, {"name": name}, Idempotency_Key="since")
        now = self.set_state(name, "disabled")
        again = self.api.post(KEYSPACES, {"name": name}, Idempotency_Key="since")
        self.assertEqual((again.status, again.json), (200, now))

    def test_by_id_and_in_parallel(self):
        body = json.dumps({"id": 3_000_000, "name": self.new_name()})
        answers = []

        def create(_):
            api = Api(self.server)
            answers.append(api.post(f"{KEYSPACES}/id", body, Idempotency_Key="all"))
            api.close()

        in_parallel(16, create)
        self.assertEqual({answer.status for answer in answers}, {200})
        self.assertEqual({answer.json["id"] for answer in answers}, {3_000_000})

    def test_a_failure_is_not_kept(self):
        name = self.create()["name"]
        answer = self.api.post(KEYSPACES, {"name": name}, Idempotency_Key="failed")
        self.pd_error(answer, 409, EXISTS)
        self.bring_to(name, "TOMBSTONE")
        self.assertEqual(self.api.post(KEYSPACES, {"name": name},
                                       Idempotency_Key="failed").status, 200)

    def test_long_keys(self):
        body = {"name": self.new_name()}
        self.assertEqual(self.api.post(KEYSPACES, body, Idempotency_Key="k" * 129).status, 400)
        self.assertEqual(self.api.post(KEYSPACES, body, Idempotency_Key="k" * 128).status, 200)


class PdClient:
    """As one for PD's API v2 is written: creates, waits until it is enabled, then uses it."""

    def __init__(self, api):
        self.api = api

    def _do(self, method, path, body=None):
        answer = self.api.call(method, f"/pd/api/v2{path}", body,
                               {"Content-Type": "application/json"})
        if answer.status != 200:
            raise RuntimeError(f"request pd http api failed with status: '{answer.status}', "
                               f"err: {answer.json}")
        return answer.json

    def create(self, name, config):
        self._do("POST", "/keyspaces", {"name": name, "config": config})
        return eventually(lambda: self.loaded(name, "ENABLED"), f"{name} is enabled")

    def loaded(self, name, state):
        meta = self._do("GET", f"/keyspaces/{name}?force_refresh_group_id=true")
        return meta if meta["state"] == state else None

    def all(self, limit):
        token = ""
        while True:
            page = self._do("GET", f"/keyspaces?page_token={token}&limit={limit}")
            yield from page["keyspaces"] or []
            token = page["next_page_token"]
            if token == "":
                return

    def set_config(self, name, **config):
        return self._do("PATCH", f"/keyspaces/{name}/config", {"config": config})

    def set_state(self, name, state):
        return self._do("PUT", f"/keyspaces/{name}/state", {"state": state})

    def safe_point(self, keyspace_id):
        return self._do("GET", f"/gc/safepoint/{keyspace_id}")["safe_point"]


class Client(PdTest):
    def test_a_life(self):
        client = PdClient(self.api)
        for n in range(7):
            meta = client.create(f"tenant_{n}", {"user_kind": "standard", "n": str(n)})
            self.assertEqual(client.safe_point(meta["id"]), 0)
            self.assertEqual(self.api.put(f"/k/tenant_{n}/v1/raw/keys/a", b"1").status, 204)
        names = [meta["name"] for meta in client.all(limit=2)]
        self.assertEqual(names, ["DEFAULT"] + [f"tenant_{n}" for n in range(7)])
        self.assertEqual(client.set_config("tenant_3", n=None, user_kind="enterprise")["config"],
                         {"user_kind": "enterprise"})
        for state in ("disabled", "archived", "tombstone"):
            self.assertEqual(client.set_state("tenant_3", state)["state"], state.upper())
        with self.assertRaisesRegex(RuntimeError, "status: '404'.*keyspace does not exist"):
            client.loaded("tenant_3", "TOMBSTONE")
        with self.assertRaisesRegex(RuntimeError, "status: '409'.*keyspace already exists"):
            client.create("tenant_4", {})


if __name__ == "__main__":
    unittest.main()
