"""What the catalog can that Gravitino cannot, through a running server: pages, prefixes, batches,
ETags, a feed of changes, search, undelete; and what keeps keyspaces and callers apart."""

import json
import threading
import unittest
import urllib.parse

from catalog_http import COLUMNS, CatalogTest, basic, path, update
from trellis_http import V1, in_parallel, seeded_random


class Lists(CatalogTest):
    def setUp(self):
        super().setUp()
        self.schema = self.make_schema()
        self.target = path(*self.schema) + "/tables"

    def make_many(self, count, threads=8):
        def work(number):
            api = self.connect()
            for i in range(number, count, threads):
                answer = api.post(self.target, {"name": f"t{i:06}", "columns": COLUMNS})
                self.assertEqual(answer.status, 200, answer)
        in_parallel(threads, work)
        return [f"t{i:06}" for i in range(count)]

    def test_pages(self):
        names = self.make_many(25)
        for limit in (1, 7, 24, 25, 26, 1000):
            found, token = [], ""
            for _ in range(len(names) + 2):
                page = self.ok(self.api.get(f"{self.target}?limit={limit}&pageToken={token}"))
                found += [one["name"] for one in page["identifiers"]]
                self.assertLessEqual(len(page["identifiers"]), limit)
                token = page.get("nextPageToken", "")
                if not token:
                    break
                token = urllib.parse.quote(token, safe="")
            self.assertEqual(found, names, limit)
        self.assertEqual(self.listed(self.target), names)
        self.assertEqual(self.listed(self.target + "?prefix=t00001"), names[10:20])
        self.assertEqual(self.listed(self.target + "?prefix=t00001&limit=2"), names[10:12])
        self.assertEqual(self.listed(self.target + "?prefix=none"), [])
        self.assertEqual(self.listed(self.target + "?pageToken=zzz"), [])
        for bad in ("limit=0", "limit=-1", "limit=x", "limit=1&limit=2"):
            self.fails(self.api.get(f"{self.target}?{bad}"), 400, 1001,
                       "IllegalArgumentException", "limit")
        self.fails(self.api.get(self.target + "?limit=-1"), 400, 1001, "IllegalArgumentException",
                   'limit is "-1": it must be a whole number from 1 to 2147483647')

    def test_all_of_each(self):
        names = self.make_many(250)
        tables = self.ok(self.api.get(self.target + "?details=true"))["tables"]
        self.assertEqual([table["name"] for table in tables], names)
        self.assertEqual(tables[7], self.ok(self.api.get(f"{self.target}/{names[7]}"))["table"])
        page = self.ok(self.api.get(self.target + "?details=true&limit=3&pageToken=t000100"))
        self.assertEqual([table["name"] for table in page["tables"]], names[101:104])
        self.assertEqual(page["nextPageToken"], "t000103")

    def test_batch_get(self):
        self.make_many(5)
        target = path(*self.schema) + "/tables:batchGet"
        got = self.ok(self.api.post(target, {"names": ["t000003", "none", "t000001", "a/b"]}))
        self.assertEqual([table["name"] for table in got["tables"]], ["t000003", "t000001"])
        self.assertEqual(got["missing"], ["none", "a/b"])
        self.assertEqual(self.ok(self.api.post(target, {"names": []})),
                         {"code": 0, "tables": [], "missing": []})
        for bad in ({}, {"names": "x"}, {"names": [1]}, {"names": ["x"] * 1_001}, []):
            self.fails(self.api.post(target, bad), 400, 1001, "IllegalArgumentException")
        self.fails(self.api.post(path(*self.schema[:2], "none") + "/tables:batchGet",
                                 {"names": ["x"]}), 404, 1003, "NoSuchSchemaException")

    def test_many_names_come_as_a_stream(self):
        """More than one page of the server: no length is known when it begins."""
        names = self.make_many(10_500)
        response = self.api.begin("GET", self.target)
        self.assertEqual(response.status, 200)
        self.assertEqual(response.headers["Transfer-Encoding"], "chunked")
        body = json.loads(response.read())
        self.assertEqual([one["name"] for one in body["identifiers"]], names)
        self.assertEqual(set(body), {"code", "identifiers"})
        self.assertEqual(len(self.listed(self.target + "?limit=10400")), 10_400)


class ListsOfWhatBelongsToSomething(CatalogTest):
    """Their page tokens are hex; with them they are cut as those of names are."""

    def pages(self, target, member, limit, more=""):
        found, token = [], ""
        for _ in range(100):
            page = self.ok(self.api.get(f"{target}?limit={limit}&pageToken={token}{more}"))
            self.assertLessEqual(len(page[member]), limit)
            found += page[member]
            token = page.get("nextPageToken", "")
            if not token:
                return found
            self.assertEqual(len(page[member]), limit)
        return self.fail("pages without end")

    def check(self, target, member, count, prefixes=()):
        """`prefixes`: how many begin so. Without them the list has no names."""
        everything = self.ok(self.api.get(target))[member]
        self.assertEqual(len(everything), count)
        for limit in (1, 3, count - 1, count, count + 1, 2_147_483_647):
            self.assertEqual(self.pages(target, member, limit), everything, limit)
        for prefix, number in prefixes:
            some = self.ok(self.api.get(f"{target}?prefix={prefix}"))[member]
            self.assertEqual(len(some), number, prefix)
            self.assertEqual(self.pages(target, member, 2, f"&prefix={prefix}"), some)
        if not prefixes:
            self.fails(self.api.get(target + "?prefix=a"), 400, 1001, "IllegalArgumentException",
                       "takes no prefix")
        for bad in ("zz", "00", "78"):
            self.fails(self.api.get(f"{target}?pageToken={bad}"), 400, 1001,
                       "IllegalArgumentException", "page token")
        for bad in ("0", "-1", "x", "2147483648"):
            self.fails(self.api.get(f"{target}?limit={bad}"), 400, 1001,
                       "IllegalArgumentException", "limit is ",
                       "it must be a whole number from 1 to 2147483647")

    def check_takes_none(self, target):
        for name in ("limit", "pageToken", "prefix"):
            self.fails(self.api.get(f"{target}{'&' if '?' in target else '?'}{name}=1"), 400, 1001,
                       "IllegalArgumentException", f"this list takes no {name}")

    def test_partitions_and_statistics(self):
        schema = self.make_schema()
        self.make_table(schema, partitioning=[{"strategy": "identity", "fieldName": ["city"]}])
        table = path(*schema) + "/tables/tab"
        for i in range(11):
            literal = {"type": "literal", "dataType": "string", "value": str(i)}
            self.ok(self.api.post(table + "/partitions", {"partitions": [
                {"type": "identity", "name": f"p{i:02}", "fieldNames": [["city"]],
                 "values": [literal]}]}))
        prefixes = [("p", 11), ("p0", 10), ("p1", 1), ("none", 0), ("p" * 3_000, 0)]
        self.check(table + "/partitions", "names", 11, prefixes)
        statistics = path(self.lake) + "/objects/table/cat.sch.tab/statistics"
        self.ok(self.api.put(statistics, {"updates": {f"custom-{i:02}": i for i in range(11)}}))
        self.check(statistics, "statistics", 11, [("custom-0", 10), ("c", 11), ("d", 0)])
        self.check_takes_none(statistics + "/partitions?from=a")
        # A token of one list is none of another.
        token = self.ok(self.api.get(table + "/partitions?limit=1"))["nextPageToken"]
        self.fails(self.api.get(f"{statistics}?pageToken={token}"), 400, 1001,
                   "IllegalArgumentException", "page token")

    def test_versions_of_models(self):
        schema = self.make_schema(kind="model", provider="")
        self.make(schema, "models", "m")
        target = path(*schema) + "/models/m/versions"
        for i in range(5):
            self.ok(self.api.post(target, {"uri": f"s3://{i}", "aliases": []}))
        self.check(target, "versions", 5)
        infos = self.pages(target, "infos", 2, "&details=true")
        self.assertEqual([info["version"] for info in infos], [0, 1, 2, 3, 4])

    def test_what_has_a_tag(self):
        schema = self.make_schema()
        self.ok(self.api.post(path(self.lake) + "/tags", {"name": "red"}))
        objects = path(self.lake) + "/objects/"
        for i in range(7):
            self.make_table(schema, f"t{i}")
            self.ok(self.api.post(f"{objects}table/cat.sch.t{i}/tags", {"tagsToAdd": ["red"]}))
        self.check(path(self.lake) + "/tags/red/objects", "metadataObjects", 7)
        # A thing has few tags, and those of what is above come with them.
        self.check_takes_none(objects + "table/cat.sch.t0/tags")
        self.check_takes_none(objects + "table/cat.sch.t0/policies?details=true")
        self.check_takes_none(path(self.lake) + "/tags/table/cat.sch.t0")

    def test_what_was_dropped(self):
        schema = self.make_schema()
        target = path(*schema) + "/tables"
        for name in ("a", "b", "b", "b", "ba", "c"):
            self.make_table(schema, name)
            self.ok(self.api.delete(f"{target}/{name}"))
        everything = self.ok(self.api.get(target + "?dropped=true"))["dropped"]
        self.assertEqual([one["name"] for one in everything], ["a", "b", "b", "b", "ba", "c"])
        for limit in (1, 2, 5, 6, 7):
            self.assertEqual(self.pages(target, "dropped", limit, "&dropped=true"), everything)
            self.assertEqual(self.pages(target, "dropped", limit, "&dropped=true&prefix=b"),
                             everything[1:5])

    def test_schemas_in_schemas(self):
        catalog = self.make_catalog()
        target = path(*catalog) + "/schemas"
        self.fails(self.api.get(target + "?parentSchema=a"), 400, 1001, "IllegalArgumentException",
                   "parentSchema")
        for blank in ("", "%20"):
            self.assertEqual(self.listed(f"{target}?parentSchema={blank}"), [])


class Conditions(CatalogTest):
    def test_tags_of_what_is_read_and_written(self):
        schema = self.make_schema()
        self.make_table(schema)
        for target in (path(self.lake), path(*schema[:2]), path(*schema),
                       path(*schema) + "/tables/tab"):
            first = self.api.get(target).headers["ETag"]
            self.assertRegex(first, r'^"[0-9a-f]+-[0-9]+"$')
            self.assertEqual(self.api.get(target).headers["ETag"], first)
            known = self.api.get(target, If_None_Match=first)
            self.assertEqual((known.status, known.body), (304, b""))
            self.assertEqual(known.headers["ETag"], first)
            self.assertEqual(self.api.get(target, If_None_Match='"other"').status, 200)
            change = update("setProperty", property="a", value="b")
            altered = self.alter(target, change, If_Match=first)
            self.ok(altered)
            second = altered.headers["ETag"]
            self.assertNotEqual(first, second)
            self.assertEqual(self.api.get(target, If_None_Match=first).headers["ETag"], second)
            self.fails(self.alter(target, change, If_Match=first), 409, 1012,
                       "OptimisticLockException")
            self.fails(self.api.delete(target + "?force=true&cascade=true", If_Match=first), 409,
                       1012, "OptimisticLockException")
            self.ok(self.alter(target, change, If_Match="*"))
            self.fails(self.alter(target, change, If_Match="bare"), 400, 1001,
                       "IllegalArgumentException")
        tag = self.api.get(path(*schema) + "/tables/tab").headers["ETag"]
        self.assertTrue(self.ok(self.api.delete(path(*schema) + "/tables/tab", If_Match=tag))
                        ["dropped"])

    def test_one_of_many_writers_wins(self):
        schema = self.make_schema()
        self.make_table(schema)
        target = path(*schema) + "/tables/tab"
        tag = self.api.get(target).headers["ETag"]
        statuses, lock = [], threading.Lock()

        def work(number):
            answer = self.connect().put(
                target, {"updates": [update("setProperty", property="p", value=str(number))]},
                If_Match=tag)
            with lock:
                statuses.append((answer.status, answer.json["code"]))
        in_parallel(8, work)
        self.assertEqual(sorted(statuses), [(200, 0)] + [(409, 1012)] * 7)

    def test_updates_at_once_are_all_there(self):
        schema = self.make_schema()
        self.make_table(schema)
        target = path(*schema) + "/tables/tab"

        def work(number):
            api = self.connect()
            for i in range(20):
                answer = api.put(target, {"updates": [
                    update("setProperty", property=f"p{number}-{i}", value="x")]})
                self.assertEqual(answer.status, 200, answer)
        in_parallel(6, work)
        self.assertEqual(len(self.ok(self.api.get(target))["table"]["properties"]), 120)


class Undelete(CatalogTest):
    def dropped(self, target):
        return self.ok(self.api.get(target + "?dropped=true"))["dropped"]

    def test_what_was_dropped_comes_back(self):
        schema = self.make_schema()
        table = self.make_table(schema)
        target = path(*schema) + "/tables"
        self.assertEqual(self.dropped(target), [])
        self.fails(self.api.post(target + "/none/undelete"), 404, 1003, "NoSuchTableException")
        self.ok(self.api.delete(target + "/tab", Authorization=basic("maria")))
        found, = self.dropped(target)
        self.assertEqual((found["name"], found["dropper"]), ("tab", "maria"))
        self.assertRegex(found["dropTime"], r"^\d{4}-\d\d-\d\dT.*Z$")
        back = self.ok(self.api.post(target + "/tab/undelete"))["table"]
        self.assertEqual(back["columns"], table["columns"])
        self.assertEqual(self.listed(target), ["tab"])
        self.assertEqual(self.dropped(target), [])
        self.ok(self.api.delete(target + "/tab"))
        self.make_table(schema)
        self.fails(self.api.post(target + "/tab/undelete"), 409, 1004,
                   "TableAlreadyExistsException")

    def test_with_a_body(self):
        schema = self.make_schema()
        self.make_table(schema)
        target = path(*schema) + "/tables/tab"
        for body in (None, {}):
            self.ok(self.api.delete(target))
            self.ok(self.api.post(target + "/undelete", body))
        self.ok(self.api.delete(target))
        for body in ({"name": "x"}, [], "text"):
            self.fails(self.api.post(target + "/undelete", body), 400, 1001,
                       "IllegalArgumentException")
        self.assertEqual(self.listed(path(*schema) + "/tables"), [])

    def test_of_all_levels(self):
        schema = self.make_schema()
        self.make_table(schema)
        for target, words in ((path(*schema), path(*schema[:2]) + "/schemas"),
                              (path(*schema[:2]), path(self.lake) + "/catalogs"),
                              (path(self.lake), "/api/metalakes")):
            self.ok(self.api.delete(target + "?force=true&cascade=true"))
            self.assertEqual(self.api.get(path(*schema) + "/tables/tab").status, 404)
            self.assertIn(urllib.parse.unquote(target.split("/")[-1]),
                          [one["name"] for one in self.dropped(words)])
            self.ok(self.api.post(target + "/undelete"))
            self.assertEqual(self.api.get(path(*schema) + "/tables/tab").status, 200)


class Feed(CatalogTest):
    def changes(self, query=""):
        return self.ok(self.api.get(path(self.lake) + "/changes" + query))

    def test_changes(self):
        schema = self.make_schema()
        self.make_table(schema)
        target = path(*schema) + "/tables/tab"
        self.ok(self.alter(target, update("rename", newName="tab2"), Authorization=basic("maria")))
        self.ok(self.api.delete(target + "2"))
        self.ok(self.api.post(target + "2/undelete"))
        feed = self.changes()
        said = [(one["action"], one["type"], one["fullName"]) for one in feed["changes"]]
        self.assertEqual(said[-5:], [("create", "schema", "cat.sch"),
                                     ("create", "table", "cat.sch.tab"),
                                     ("alter", "table", "cat.sch.tab2"),
                                     ("drop", "table", "cat.sch.tab2"),
                                     ("undelete", "table", "cat.sch.tab2")])
        renamed = feed["changes"][-3]
        self.assertEqual((renamed["user"], renamed["fullNameBefore"]), ("maria", "cat.sch.tab"))
        numbers = [one["number"] for one in feed["changes"]]
        self.assertEqual(numbers, sorted(set(numbers)))
        self.assertEqual(feed["last"], numbers[-1])
        for since in numbers:
            rest = self.changes(f"?since={since}")
            self.assertEqual([one["number"] for one in rest["changes"]],
                             [number for number in numbers if number > since])
        id_ = feed["metalakeId"]
        self.assertEqual(self.changes(f"?since={numbers[-1]}&metalakeId={id_}"),
                         {"code": 0, "changes": [], "last": numbers[-1], "newest": numbers[-1],
                          "metalakeId": id_})
        # Another metalake of the name has changes of its own.
        for query in (f"?since={numbers[-1] + 1}", "?since=0&metalakeId=other"):
            self.fails(self.api.get(path(self.lake) + "/changes" + query), 410, 1003,
                       "CompactedException")
        page = self.changes("?limit=2")
        self.assertEqual((len(page["changes"]), page["last"]), (2, numbers[1]))
        self.fails(self.api.get(path("none") + "/changes"), 404, 1003, "NoSuchMetalakeException")
        for bad in ("?since=x", "?limit=0", "?limit=10001"):
            self.fails(self.api.get(path(self.lake) + "/changes" + bad), 400, 1001,
                       "IllegalArgumentException")

    def test_search(self):
        schema = self.make_schema(provider="lakehouse-iceberg")  # which keeps capitals
        for name in ("orders", "Orders_2025", "customers", "reorders"):
            self.make_table(schema, name)
        self.make_table(schema, "plain", columns=[{"name": "zip_code", "type": "string"}])
        lake = path(self.lake)
        self.ok(self.api.post(lake + "/catalogs", {"name": "files", "type": "fileset"}))
        self.ok(self.api.post(path(self.lake, "files") + "/schemas", {"name": "sch"}))
        self.make([self.lake, "files", "sch"], "filesets", "orders", storageLocation="file:///x")

        def find(query):
            found = self.ok(self.api.get(f"{path(self.lake)}/search?{query}"))
            return sorted((one["fullName"], one["type"]) for one in found["metadataObjects"])
        self.assertEqual(find("name=orders&type=table"),
                         [("cat.sch.Orders_2025", "table"), ("cat.sch.orders", "table")])
        self.assertEqual(find("name=ORDERS"),
                         [("cat.sch.Orders_2025", "table"), ("cat.sch.orders", "table"),
                          ("files.sch.orders", "fileset")])
        self.assertEqual([name for name, _ in find("name=*orders&type=TABLE")],
                         ["cat.sch.Orders_2025", "cat.sch.orders", "cat.sch.reorders"])
        self.assertEqual(find("column=zip"), [("cat.sch.plain.zip_code", "column")])
        self.assertEqual(find("name=nothing"), [])
        self.assertEqual(find("column=zip&type=table"), [("cat.sch.plain", "table")])
        self.assertEqual(len(find("column=*i&type=table")), 5)
        self.assertEqual(find("type=fileset"), [("files.sch.orders", "fileset")])
        self.assertEqual(len(find("type=table")), 5)
        self.fails(self.api.get(path(self.lake) + "/search"), 400, 1001,
                   "IllegalArgumentException", "a name, a column, a tag or a type")
        first = self.ok(self.api.get(f"{path(self.lake)}/search?name=orders&limit=1"))
        self.assertEqual(len(first["metadataObjects"]), 1)
        token = urllib.parse.quote(first["nextPageToken"], safe="")
        second = self.ok(self.api.get(
            f"{path(self.lake)}/search?name=orders&limit=1&pageToken={token}"))
        self.assertNotEqual(first["metadataObjects"], second["metadataObjects"])
        self.fails(self.api.get(path(self.lake) + "/search?type=nothing"), 400, 1001,
                   "IllegalArgumentException")
        self.fails(self.api.get(path("none") + "/search?name=x"), 404, 1003,
                   "NoSuchMetalakeException")


class Keyspaces(CatalogTest):
    """Each has a catalog of its own."""

    def test_by_path_header_and_token(self):
        space = self.create()["name"]
        self.front = f"/k/{space}"
        schema = self.make_schema()
        self.make_table(schema)
        self.assertEqual(self.listed(self.front + path(*schema) + "/tables"), ["tab"])
        self.fails(self.api.get(path(self.lake)), 404, 1003, "NoSuchMetalakeException")
        self.ok(self.api.get(path(self.lake), X_Trellis_Keyspace=space))
        self.assertEqual(self.api.get(self.front + "/configs").status, 200)
        self.ok(self.api.get(self.front + "/api/version"))
        self.fails(self.api.get("/k/none/api/metalakes"), 404, 1003, "NotFoundException")
        token = self.api.post(f"{V1}/{space}/tokens", {"role": "write", "label": "bot"}).json
        secret = token["token"]
        for authorization in (f"Bearer {secret}", basic("maria", secret)):
            self.ok(self.api.get(path(self.lake), Authorization=authorization))
        self.ok(self.api.post("/api/metalakes", {"name": "by_token"},
                              Authorization=basic("maria", secret)))
        self.check_audit(self.ok(self.api.get(self.front + path("by_token")))["metalake"], "maria")
        other = self.create()["name"]
        self.fails(self.api.get(f"/k/{other}/api/metalakes", Authorization=f"Bearer {secret}"),
                   403, 1008, "ForbiddenException")
        self.fails(self.api.get("/api/metalakes", Authorization=basic("x", secret + "0")), 401,
                   1011, "UnauthorizedException")

    def test_roles(self):
        space = self.create()["name"]
        self.front = f"/k/{space}"
        self.make_lake()
        reader = self.api.post(f"{V1}/{space}/tokens", {"role": "read", "label": "r"}).json["token"]
        api = self.connect(reader)
        self.ok(api.get("/api/metalakes"))
        self.fails(api.post("/api/metalakes", {"name": "x"}), 403, 1008, "ForbiddenException")
        self.fails(api.delete(path(self.lake) + "?force=true"), 403, 1008, "ForbiddenException")
        self.set_state(space, "DISABLED")
        self.fails(api.get("/api/metalakes"), 403, 1008, "ForbiddenException")


class TokensRequired(CatalogTest):
    @classmethod
    def setUpClass(cls):
        cls.arguments = ("--catalog-version", "1.3.1")
        super().setUpClass()

    @classmethod
    def start(cls, *arguments):
        cls.secret_file = cls.folder / "admin"
        return super().start(*arguments, "--auth", "required", "--admin-token-file",
                             cls.secret_file)

    def test_a_token_is_the_password(self):
        secret = self.secret_file.read_text().strip()
        for headers in ({}, {"Authorization": basic("maria")}, {"Authorization": "Bearer x"}):
            self.fails(self.api.get("/api/metalakes", **headers), 401, 1011,
                       "UnauthorizedException")
        for authorization in (f"Bearer {secret}", basic("maria", secret)):
            self.ok(self.api.get("/api/metalakes", Authorization=authorization))
        me = self.ok(self.api.get("/api/authn/me", Authorization=basic("maria", secret)))
        self.assertEqual(me["principal"], "maria")
        self.assertEqual(self.ok(self.api.get("/api/version"))["version"]["version"], "1.3.1")
        self.ok(self.api.get("/api/health"))


class ManyAtOnce(CatalogTest):
    def test_one_name_is_made_once(self):
        schema = self.make_schema()
        target = path(*schema) + "/tables"
        answers, lock = [], threading.Lock()

        def work(_):
            answer = self.connect().post(target, {"name": "t", "columns": COLUMNS})
            with lock:
                answers.append((answer.status, answer.json["code"]))
        in_parallel(8, work)
        self.assertEqual(sorted(answers), [(200, 0)] + [(409, 1004)] * 7)

    def test_nothing_is_made_under_what_is_dropped(self):
        random = seeded_random()
        schema = self.make_schema()
        stop = threading.Event()
        made = []

        def work(number):
            api = self.connect()
            i = 0
            while not stop.is_set():
                i += 1
                answer = api.post(path(*schema) + "/tables",
                                  {"name": f"t{number}_{i}", "columns": COLUMNS})
                if answer.status == 404:
                    self.assertEqual(answer.json["type"], "NoSuchSchemaException")
                elif answer.status == 200:
                    made.append(answer.json["table"]["name"])
                else:
                    self.assertEqual((answer.status, answer.json["code"]), (409, 1012), answer)

        threads = [threading.Thread(target=work, args=[n]) for n in range(4)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(random.randint(5, 10)):
                self.ok(self.api.delete(path(*schema) + "?cascade=true"))
                self.assertEqual(self.api.get(path(*schema) + "/tables").status, 404)
                self.ok(self.api.post(path(*schema[:2]) + "/schemas", {"name": schema[2]}))
                self.assertEqual(self.api.get(path(*schema) + "/tables").status, 200)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        for name in self.listed(path(*schema) + "/tables"):
            self.assertEqual(self.api.get(path(*schema) + f"/tables/{name}").status, 200)
        self.assertTrue(made)


if __name__ == "__main__":
    unittest.main()
