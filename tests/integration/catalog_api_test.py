"""Gravitino's REST API, through a running server: what its clients send and what they need to get
back, for every kind of thing, every error and every rule that they depend on."""

import json
import unittest

from catalog_http import COLUMNS, MEDIA, CatalogTest, basic, path, update
from trellis_http import Wire


class Frame(CatalogTest):
    """What holds for every request."""

    def test_version_and_health(self):
        version = self.ok(self.api.get("/api/version"))["version"]
        self.assertEqual(set(version), {"version", "compileDate", "gitCommit"})
        self.assertEqual(version["version"], "2.0.0")
        self.assertTrue(all(version.values()))
        for target in ("/api/health", "/api/health/live", "/api/health/ready"):
            health = self.ok(self.api.get(target))
            self.assertEqual(health["status"], "up")
            for check in health["checks"]:
                self.assertEqual((check["status"], check["details"]), ("up", {}))
        configs = self.api.get("/configs")
        self.assertEqual(configs.status, 200)
        self.assertEqual(configs.headers["Content-Type"], "application/json")
        self.assertEqual(configs.json["gravitino.authorization.enable"], False)
        self.assertEqual(configs.json["gravitino.authenticators"], ["simple"])

    def test_media_types(self):
        for accept in (MEDIA, "application/vnd.gravitino.v2+json", "application/json", "*/*",
                       "text/html", f"text/html, {MEDIA};q=0.9",
                       f"application/vnd.gravitino.v9+json, {MEDIA}"):
            self.ok(self.api.get("/api/metalakes", Accept=accept))
        for version in ("0", "3", "11", ""):
            self.fails(self.api.get("/api/metalakes",
                                    Accept=f"application/vnd.gravitino.v{version}+json"),
                       406, 1001, "IllegalArgumentException", "version")

    def test_unknown_paths_and_methods(self):
        for target in ("/api", "/api/", "/api/nothing", "/api/metalakes/", "/api/metalakes/a/b",
                       "/k/DEFAULT/api/nothing", "/api/metalakes/a/catalogs/b/schemas/c/tables/"):
            self.fails(self.api.get(target), 404, 1003, "NotFoundException")
        for method, target in (("PUT", "/api/metalakes"), ("POST", "/api/version"),
                               ("PATCH", "/api/metalakes/a/catalogs/b/schemas/c")):
            answer = self.api.call(method, target)
            self.fails(answer, 405, 1006, "UnsupportedOperationException")
            self.assertIn("GET", answer.headers["Allow"])
        self.assertEqual(self.api.call("HEAD", "/api/metalakes").status, 200)

    def test_errors_of_the_transport_have_the_form(self):
        with Wire(self.server.address) as wire:
            wire.send(b"POST /api/metalakes HTTP/1.1\r\nHost: localhost\r\n"
                      b"Content-Length: 99999999999\r\n\r\n")
            status, header, body = wire.answer()
        self.assertEqual((status, header["Content-Type"]), (413, "application/json"))
        self.assertEqual(json.loads(body)["code"], 1001)
        self.assertTrue(json.loads(body)["message"])

    def test_who_creates(self):
        self.make_lake()
        self.check_audit(self.get(self.lake)["metalake"])
        other = f"lake{next(self.names)}"
        self.ok(self.api.post("/api/metalakes", {"name": other}, Authorization=basic("maria")))
        self.check_audit(self.get(other)["metalake"], "maria")
        self.ok(self.alter(path(other), update("updateComment", newComment="x"),
                           Authorization=basic("jörg")))
        self.check_audit(self.get(other)["metalake"], "maria", "jörg")
        me = self.ok(self.api.get("/api/authn/me", Authorization=basic("maria")))
        self.assertEqual((me["principal"], me["serviceAdmin"]), ("maria", False))
        self.assertEqual(self.ok(self.api.get("/api/authn/me"))["principal"], "anonymous")
        self.assertEqual(self.ok(self.api.get("/api/authn/me", Authorization=basic("")))
                         ["principal"], "anonymous")
        for bad in ("Basic !!!", "Basic " + "YQ==", "Digest x", "Bearer nothing"):
            self.fails(self.api.get("/api/metalakes", Authorization=bad), 401, 1011,
                       "UnauthorizedException")

    def test_malformed_bodies(self):
        self.make_lake()
        for body in ("", "{", "[]", "null", '"x"', '{"name":"a"', '{"name":"a"} {}',
                     '{"name":{}}', '{"name":"a","comment":{}}', '{"name":"a","properties":[]}',
                     '{"name":"a","properties":{"x":[]}}', '{"name":"a","extra":1}',
                     '{"name":"a","name":"b"}', b'{"name":"\xff"}', "[" * 10_000,
                     '{"name":"a","properties":{"a":' + '{"b":' * 500):
            self.fails(self.api.post("/api/metalakes", body), 400, 1001,
                       "IllegalArgumentException")
            self.fails(self.api.put(path(self.lake), body), 400, 1001,
                       "IllegalArgumentException")
        for body in ({}, {"inUse": "yes"}, {"inUse": True, "x": 1}, []):
            self.fails(self.api.patch(path(self.lake), body), 400, 1001,
                       "IllegalArgumentException")
        for body in ("{", '{"name":"a","extra":1}', '{"name":"a","name":"b"}'):
            self.fails(self.api.post("/api/metalakes", body), 400, 1001,
                       "IllegalArgumentException", "Malformed json request")
        self.assertEqual(self.get(self.lake)["metalake"]["audit"].get("lastModifier"), None)

    def test_ten_megabytes_of_properties(self):
        large = {"name": f"lake{next(self.names)}", "properties": {"p": "x" * 10_000_000}}
        many = {"name": f"lake{next(self.names)}",
                "properties": {f"p{i}": "x" * 100 for i in range(100_000)}}
        for body in (large, many):
            self.fails(self.api.post("/api/metalakes", body), 400, 1001,
                       "IllegalArgumentException")
            self.fails(self.api.get(path(body["name"])), 404, 1003, "NoSuchMetalakeException")

    def test_flags_are_true_and_True(self):
        schema = self.make_schema()
        self.make_table(schema)
        self.fails(self.api.delete(path(*schema) + "?cascade=False"), 409, 1005,
                   "NonEmptySchemaException")
        self.fails(self.api.delete(path(*schema) + "?cascade=perhaps"), 400, 1001,
                   "IllegalArgumentException", "cascade")
        self.assertTrue(self.ok(self.api.delete(path(*schema) + "?cascade=True"))["dropped"])
        self.assertTrue(self.ok(self.api.delete(path(*schema[:2]) + "?force=true&x=y"))["dropped"])


class Metalakes(CatalogTest):
    def test_life(self):
        body = {"name": self.lake, "comment": "of mine", "properties": {"a": "1", "b": ""}}
        made = self.ok(self.api.post("/api/metalakes", body))["metalake"]
        self.assertEqual({key: made[key] for key in body}, body)  # without in-use
        self.check_audit(made)
        loaded = self.get(self.lake)["metalake"]
        self.assertEqual(loaded["properties"], {"a": "1", "b": "", "in-use": "true"})
        self.assertEqual(loaded["audit"], made["audit"])
        all_of_them = {lake["name"]: lake for lake in
                       self.ok(self.api.get("/api/metalakes"))["metalakes"]}
        self.assertEqual(all_of_them[self.lake], loaded)
        renamed = f"lake{next(self.names)}"
        altered = self.ok(self.alter(
            path(self.lake), update("rename", newName=renamed),
            update("updateComment", newComment=None),
            update("setProperty", property="a", value="2"),
            update("setProperty", property="c", value="3"), update("removeProperty", property="b"),
            update("removeProperty", property="none")))["metalake"]
        self.assertEqual(altered["name"], renamed)
        self.assertNotIn("comment", altered)
        self.assertEqual(altered["properties"], {"a": "2", "c": "3", "in-use": "true"})
        self.check_audit(altered, changed="anonymous")
        self.fails(self.api.get(path(self.lake)), 404, 1003, "NoSuchMetalakeException",
                   f"Failed to operate metalake(s) [{self.lake}] operation [LOAD], reason [")
        self.no_nulls(altered)

    def test_conflicts(self):
        self.make_lake()
        self.fails(self.api.post("/api/metalakes", {"name": self.lake}), 409, 1004,
                   "MetalakeAlreadyExistsException",
                   f"Failed to operate metalake(s) [{self.lake}] operation [CREATE], reason [")
        other = f"lake{next(self.names)}"
        self.make_lake(other)
        self.fails(self.alter(path(other), update("rename", newName=self.lake)), 409, 1004,
                   "MetalakeAlreadyExistsException")
        self.assertEqual(self.ok(self.alter(path(other), update("rename", newName=other)))
                         ["metalake"]["name"], other)

    def test_use_and_drop(self):
        catalog = self.make_catalog()
        self.fails(self.api.delete(path(self.lake)), 409, 1010, "MetalakeInUseException")
        for _ in range(2):
            self.assertEqual(self.ok(self.api.patch(path(self.lake), {"inUse": False})),
                             {"code": 0})
        self.assertEqual(self.get(self.lake)["metalake"]["properties"]["in-use"], "false")
        for answer in (self.api.post(path(self.lake) + "/catalogs",
                                     {"name": "x", "type": "relational", "provider": "hive"}),
                       self.api.get(path(*catalog) + "/schemas"),
                       self.alter(path(self.lake), update("updateComment", newComment="x"))):
            self.fails(answer, 409, 1009, "MetalakeNotInUseException")
        self.fails(self.api.delete(path(self.lake)), 409, 1005, "NonEmptyMetalakeException")
        self.ok(self.api.patch(path(self.lake), {"inUse": True}))
        self.get(*catalog)
        self.assertEqual(self.ok(self.api.delete(path(self.lake) + "?force=true")),
                         {"code": 0, "dropped": True})
        self.assertEqual(self.ok(self.api.delete(path(self.lake))), {"code": 0, "dropped": False})
        self.fails(self.api.get(path(*catalog)), 404, 1003, "NoSuchMetalakeException")
        self.fails(self.api.patch(path(self.lake), {"inUse": True}), 404, 1003,
                   "NoSuchMetalakeException")

    def test_empty_and_disabled_goes_without_force(self):
        self.make_lake()
        self.ok(self.api.patch(path(self.lake), {"inUse": False}))
        self.assertTrue(self.ok(self.api.delete(path(self.lake)))["dropped"])

    def test_names(self):
        for name in ("a", "_x", "A" * 64, "0", "System"):
            self.ok(self.api.post("/api/metalakes", {"name": name}))
            self.ok(self.api.delete(path(name) + "?force=true"))
        for name in ("a-b", "a/b", "a=b", "a b", "A" * 65, "*", "system", "%2F", ".", "a.b", "-a",
                     "ünï", "表", "\u202e", "a\u0000"):
            self.fails(self.api.post("/api/metalakes", {"name": name}), 400, 1001,
                       "IllegalNameIdentifierException")
            self.fails(self.api.get(path(name)), 404, 1003, "NoSuchMetalakeException")
        for name in ("", None):
            self.fails(self.api.post("/api/metalakes", {"name": name}), 400, 1001,
                       "IllegalArgumentException")
        self.make_lake()
        self.fails(self.alter(path(self.lake), update("rename", newName="a b")), 400, 1001,
                   "IllegalNameIdentifierException")

    def test_reserved_property(self):
        self.fails(self.api.post("/api/metalakes", {"name": self.lake,
                                                    "properties": {"in-use": "false"}}),
                   400, 1001, "IllegalArgumentException", "in-use")


class Catalogs(CatalogTest):
    def test_life(self):
        lake = self.make_lake()
        body = {"name": "cat-1", "type": "RELATIONAL", "provider": "lakehouse-iceberg",
                "comment": "c", "properties": {"uri": "thrift://x", "warehouse": "w"}}
        made = self.ok(self.api.post(path(*lake) + "/catalogs", body))["catalog"]
        self.assertEqual((made["type"], made["provider"]), ("relational", "lakehouse-iceberg"))
        self.assertEqual(made["properties"], {**body["properties"], "in-use": "true"})
        self.check_audit(made)
        self.assertEqual(self.get(*lake, "cat-1")["catalog"], made)
        self.assertEqual(self.listed(path(*lake) + "/catalogs"), ["cat-1"])
        full = self.ok(self.api.get(path(*lake) + "/catalogs?details=true"))
        self.assertEqual(full["catalogs"], [made])
        self.assertNotIn("identifiers", full)
        altered = self.ok(self.alter(path(*lake, "cat-1"), update("rename", newName="cat2"),
                                     update("updateComment", newComment="new"),
                                     update("setProperty", property="uri", value="y"),
                                     update("removeProperty", property="warehouse")))["catalog"]
        self.assertEqual((altered["name"], altered["comment"]), ("cat2", "new"))
        self.assertEqual(altered["properties"], {"uri": "y", "in-use": "true"})
        self.check_audit(altered, changed="anonymous")
        self.fails(self.api.get(path(*lake, "cat-1")), 404, 1003, "NoSuchCatalogException",
                   f"Failed to operate catalog(s) [cat-1] operation [LOAD] under metalake "
                   f"[{self.lake}], reason [")

    def test_types_and_providers(self):
        lake = self.make_lake()
        for kind, provider in (("fileset", None), ("model", None), ("fileset", "hadoop"),
                               ("messaging", "kafka"), ("relational", "jdbc-mysql"),
                               ("Relational", "anything")):
            name = self.new_name("c")
            body = {"name": name, "type": kind, "properties": {}}
            if provider:
                body["provider"] = provider
            made = self.ok(self.api.post(path(*lake) + "/catalogs", body))["catalog"]
            self.assertEqual(made["type"], kind.lower())
            self.assertEqual(made["provider"], provider or kind)
            self.no_nulls(made)
        for bad in ({"type": "relational"}, {"type": "none", "provider": "x"}, {"provider": "x"},
                    {"type": "unsupported", "provider": "x"}):
            self.fails(self.api.post(path(*lake) + "/catalogs", {"name": "x", **bad}), 400, 1001,
                       "IllegalArgumentException")

    def test_errors(self):
        catalog = self.make_catalog()
        body = {"name": "cat", "type": "relational", "provider": "hive"}
        self.fails(self.api.post(path(self.lake) + "/catalogs", body), 409, 1004,
                   "CatalogAlreadyExistsException",
                   "Failed to operate catalog(s) [cat] operation [CREATE] under metalake "
                   f"[{self.lake}], reason [")
        self.fails(self.api.post(path("none") + "/catalogs", body), 404, 1003,
                   "NoSuchMetalakeException")
        self.fails(self.api.get(path("none") + "/catalogs"), 404, 1003, "NoSuchMetalakeException",
                   "Failed to operate catalog(s) operation [LIST] under metalake [none]")
        self.fails(self.api.get(path("none", "cat")), 404, 1003, "NoSuchMetalakeException")
        self.ok(self.api.post(path(self.lake) + "/catalogs", {**body, "name": "other"}))
        self.fails(self.alter(path(self.lake, "other"), update("rename", newName="cat")), 409,
                   1004, "CatalogAlreadyExistsException")
        for name in ("a/b", "a=b", "-a", "System", "SYSTEM", "system", "*", "a" * 65):
            answer = self.api.post(path(self.lake) + "/catalogs", {**body, "name": name})
            self.assertEqual((answer.status, answer.json["code"]), (400, 1001), name)
        self.fails(self.alter(path(*catalog), update("replaceAll")), 400, 1001,
                   "IllegalArgumentException")

    def test_use_and_drop(self):
        schema = self.make_schema()
        catalog = schema[:2]
        self.fails(self.api.delete(path(*catalog)), 409, 1010, "CatalogInUseException")
        for _ in range(2):
            self.assertEqual(self.ok(self.api.patch(path(*catalog), {"inUse": False})),
                             {"code": 0})
        self.assertEqual(self.get(*catalog)["catalog"]["properties"]["in-use"], "false")
        for answer in (self.api.get(path(*schema)), self.api.get(path(*catalog) + "/schemas"),
                       self.api.post(path(*catalog) + "/schemas", {"name": "x"}),
                       self.api.delete(path(*schema)),
                       self.alter(path(*catalog), update("updateComment", newComment="x"))):
            self.fails(answer, 409, 1009, "CatalogNotInUseException")
        self.assertEqual(self.listed(path(self.lake) + "/catalogs"), ["cat"])
        self.fails(self.api.delete(path(*catalog)), 409, 1005, "NonEmptyCatalogException")
        self.assertTrue(self.ok(self.api.delete(path(*catalog) + "?force=true"))["dropped"])
        self.assertFalse(self.ok(self.api.delete(path(*catalog)))["dropped"])
        self.assertFalse(self.ok(self.api.delete(path("none", "cat")))["dropped"])
        self.fails(self.api.get(path(*schema)), 404, 1003, "NoSuchCatalogException")

    def test_connection(self):
        catalog = self.make_catalog()
        target = path(self.lake) + "/catalogs/testConnection"
        body = {"name": "new", "type": "relational", "provider": "hive", "comment": "c",
                "properties": {"a": "b"}}
        self.assertEqual(self.ok(self.api.post(target, body)), {"code": 0})
        self.assertEqual(self.listed(path(self.lake) + "/catalogs"), ["cat"])
        for asked, code, kind in (({**body, "name": "cat"}, 1004, "CatalogAlreadyExistsException"),
                                  ({**body, "type": "relational", "provider": None}, 1001,
                                   "IllegalArgumentException"),
                                  ({"name": "x"}, 1001, "IllegalArgumentException")):
            self.fails(self.api.post(target, asked), 200, code, kind)
        self.fails(self.api.post(path("none") + "/catalogs/testConnection", body), 200, 1003,
                   "NoSuchMetalakeException")
        self.get(*catalog)
        target = path(*catalog) + "/testConnection"
        before = self.get(*catalog)
        self.assertEqual(self.ok(self.api.post(target)), {"code": 0})
        rename = update("rename", newName="new")
        self.assertEqual(self.ok(self.api.post(target, {"updates": [rename]})), {"code": 0})
        for bad, kind in (({"updates": [update("rename", newName="a b")]},
                           "IllegalNameIdentifierException"),
                          ({"odd": 1}, "IllegalArgumentException")):
            self.fails(self.api.post(target, bad), 200, 1001, kind)
        self.fails(self.api.post(path(self.lake, "none") + "/testConnection"), 200, 1003,
                   "NoSuchCatalogException")
        self.assertEqual(self.get(*catalog), before)
        self.ok(self.api.patch(path(*catalog), {"inUse": False}))
        self.fails(self.api.post(target), 200, 1009, "CatalogNotInUseException")


class Schemas(CatalogTest):
    def test_life(self):
        catalog = self.make_catalog()
        body = {"name": "s", "comment": "c", "properties": {"k": "v"}}
        made = self.ok(self.api.post(path(*catalog) + "/schemas", body))["schema"]
        self.assertEqual({key: made[key] for key in body}, body)
        self.check_audit(made)
        self.assertEqual(self.get(*catalog, "s")["schema"], made)
        self.assertEqual(self.listed(path(*catalog) + "/schemas"), ["s"])
        altered = self.ok(self.alter(path(*catalog, "s"),
                                     update("setProperty", property="k2", value="v2"),
                                     update("removeProperty", property="k")))["schema"]
        self.assertEqual(altered["properties"], {"k2": "v2"})
        self.check_audit(altered, changed="anonymous")
        self.assertTrue(self.ok(self.api.delete(path(*catalog, "s")))["dropped"])
        self.assertFalse(self.ok(self.api.delete(path(*catalog, "s")))["dropped"])

    def test_errors(self):
        schema = self.make_schema()
        catalog = schema[:2]
        self.fails(self.api.post(path(*catalog) + "/schemas", {"name": "sch"}), 409, 1004,
                   "SchemaAlreadyExistsException",
                   "Failed to operate schema(s) [sch] operation [CREATE] under catalog [cat], "
                   "reason [")
        self.fails(self.api.get(path(*catalog, "none")), 404, 1003, "NoSuchSchemaException")
        self.fails(self.api.get(path(self.lake, "none") + "/schemas"), 404, 1003,
                   "NoSuchCatalogException")
        self.fails(self.api.delete(path(self.lake, "none", "s")), 404, 1003,
                   "NoSuchCatalogException")
        self.fails(self.alter(path(*schema), update("addColumn")), 400, 1001,
                   "IllegalArgumentException")
        self.make_table(schema)
        self.fails(self.api.delete(path(*schema)), 409, 1005, "NonEmptySchemaException")
        self.assertTrue(self.ok(self.api.delete(path(*schema) + "?cascade=true"))["dropped"])
        # Clients ask so whether there is such a table.
        tables = path(*schema) + "/tables"
        self.fails(self.api.get(tables + "/tab"), 404, 1003, "NoSuchTableException")
        self.fails(self.alter(tables + "/tab", update("rename", newName="x")), 404, 1003,
                   "NoSuchTableException")
        self.fails(self.api.get(path(*schema) + "/topics/t"), 404, 1003, "NoSuchTopicException")
        self.assertFalse(self.ok(self.api.delete(tables + "/tab"))["dropped"])
        for answer in (self.api.get(tables),
                       self.api.post(tables, {"name": "t", "columns": COLUMNS})):
            self.fails(answer, 404, 1003, "NoSuchSchemaException")
        self.fails(self.api.get(path(self.lake, "none", "s") + "/tables/t"), 404, 1003,
                   "NoSuchCatalogException")

    def test_rename(self):
        """Which Gravitino cannot."""
        schema = self.make_schema()
        table = self.make_table(schema)
        altered = self.ok(self.alter(path(*schema), update("rename", newName="new")))["schema"]
        self.assertEqual(altered["name"], "new")
        moved = self.get(*schema[:2], "new")["schema"]
        self.assertEqual(moved["audit"], altered["audit"])
        self.assertEqual(self.ok(self.api.get(path(*schema[:2], "new") + "/tables/tab"))["table"],
                         table)
        self.fails(self.api.get(path(*schema)), 404, 1003, "NoSuchSchemaException")
        self.ok(self.api.post(path(*schema[:2]) + "/schemas", {"name": "sch"}))
        self.fails(self.alter(path(*schema), update("rename", newName="new")), 409, 1004,
                   "SchemaAlreadyExistsException")

    def test_names_with_slashes(self):
        """The path is split before it is decoded."""
        catalog = self.make_catalog()
        for name in ("a/b", "a=b/c-d", "a_/", "x" * 64, "0//=="):
            with self.subTest(name=name):
                self.ok(self.api.post(path(*catalog) + "/schemas", {"name": name}))
                self.assertEqual(self.get(*catalog, name)["schema"]["name"], name)
                self.make_table([*catalog, name], "t/" + name[:60])
                self.assertEqual(self.listed(path(*catalog, name) + "/tables"),
                                 ["t/" + name[:60]])
                self.assertTrue(self.ok(self.api.delete(path(*catalog, name) + "?cascade=true"))
                                ["dropped"])
        for name in ("/a", "-a", "=a", "a b", "a%2Fb", "a.b", "a\x00", "x" * 65, "a\n", "a'",
                     "día", "名前", "*"):
            self.fails(self.api.post(path(*catalog) + "/schemas", {"name": name}), 400, 1001,
                       "IllegalNameIdentifierException")


class Topics(CatalogTest):
    def test_life(self):
        schema = self.make_schema(kind="messaging", provider="kafka")
        body = {"name": "top", "comment": "c", "properties": {"partition-count": "3"}}
        made = self.make(schema, "topics", **body)
        self.assertEqual({key: made[key] for key in body}, body)
        self.check_audit(made)
        target = path(*schema) + "/topics"
        self.assertEqual(self.ok(self.api.get(target + "/top"))["topic"], made)
        self.assertEqual(self.listed(target), ["top"])
        altered = self.ok(self.alter(target + "/top", update("updateComment", newComment="d"),
                                     update("setProperty", property="a", value="b"),
                                     update("removeProperty", property="partition-count")))
        self.assertEqual((altered["topic"]["comment"], altered["topic"]["properties"]),
                         ("d", {"a": "b"}))
        self.fails(self.api.post(target, {"name": "top"}), 409, 1004,
                   "TopicAlreadyExistsException",
                   "Failed to operate topic(s) [top] operation [CREATE] under schema [sch], "
                   "reason [")
        self.fails(self.api.get(target + "/none"), 404, 1003, "NoSuchTopicException")
        self.assertTrue(self.ok(self.api.delete(target + "/top"))["dropped"])
        self.assertFalse(self.ok(self.api.delete(target + "/top"))["dropped"])


class Filesets(CatalogTest):
    def setUp(self):
        super().setUp()
        self.schema = self.make_schema(kind="fileset", provider="hadoop")
        self.target = path(*self.schema) + "/filesets"

    def test_life(self):
        body = {"name": "f", "type": "MANAGED", "comment": "c", "storageLocation": "file:///tmp/f",
                "properties": {"k": "v"}}
        made = self.make(self.schema, "filesets", **body)
        self.assertEqual(made["type"], "managed")
        self.assertEqual(made["storageLocation"], "file:///tmp/f")
        self.assertEqual(made["storageLocations"], {"unknown": "file:///tmp/f"})
        self.assertEqual(made["properties"], {"k": "v", "default-location-name": "unknown"})
        self.check_audit(made)
        self.assertEqual(self.ok(self.api.get(self.target + "/f"))["fileset"], made)
        self.assertEqual(self.listed(self.target), ["f"])
        altered = self.ok(self.alter(self.target + "/f", update("rename", newName="g"),
                                     update("setProperty", property="a", value="b"),
                                     update("removeProperty", property="k"),
                                     update("removeComment")))["fileset"]
        self.assertEqual((altered["name"], "comment" in altered), ("g", False))
        self.assertEqual(altered["properties"], {"a": "b", "default-location-name": "unknown"})
        commented = self.ok(self.alter(self.target + "/g", update("updateComment",
                                                                  newComment="again")))
        self.assertEqual(commented["fileset"]["comment"], "again")
        self.assertTrue(self.ok(self.api.delete(self.target + "/g"))["dropped"])
        self.assertFalse(self.ok(self.api.delete(self.target + "/g"))["dropped"])

    def test_locations(self):
        made = self.make(self.schema, "filesets", "many", type="external",
                         storageLocations={"a": "s3://x/a/", "b": "hdfs://y/b"},
                         properties={"default-location-name": "b"})
        self.assertEqual(made["storageLocations"], {"a": "s3://x/a/", "b": "hdfs://y/b"})
        self.assertNotIn("storageLocation", made)
        for query, location in (("?sub_path=", "hdfs://y/b"), ("", "hdfs://y/b"),
                                ("?sub_path=c/d.txt", "hdfs://y/b/c/d.txt"),
                                ("?sub_path=%252Fc%2520d&location_name=a", "s3://x/a/c d"),
                                ("?sub_path=/c&location_name=a", "s3://x/a/c")):
            self.assertEqual(self.ok(self.api.get(f"{self.target}/many/location{query}"))
                             ["fileLocation"], location, query)
        self.fails(self.api.get(self.target + "/many/location?location_name=c"), 404, 1003,
                   "NoSuchLocationNameException")
        self.fails(self.api.get(self.target + "/none/location?sub_path=x"), 404, 1003,
                   "NoSuchFilesetException")
        self.fails(self.api.get(self.target + "/many/files"), 405, 1006,
                   "UnsupportedOperationException")

    def test_managed_without_a_location_is_in_trellis(self):
        made = self.make(self.schema, "filesets", "own")
        place = "/".join([*self.schema, "own"])
        self.assertEqual(made["storageLocations"], {"unknown": f"trellis:///{place}"})
        self.assertEqual(self.ok(self.api.get(self.target + "/own/files"))["files"], [])
        for name in ("a.txt", "sub/b.txt"):
            self.assertEqual(self.api.put(f"/v1/files/{place}/{name}", b"hello").status, 200)
        files = self.ok(self.api.get(self.target + "/own/files"))["files"]
        self.assertEqual([(file["name"], file["isDir"], file["size"]) for file in files],
                         [("a.txt", False, 5), ("sub", True, 0)])
        virtual = "/fileset/" + "/".join([*self.schema[1:], "own"])
        self.assertEqual({file["path"] for file in files}, {virtual})
        self.assertTrue(all(file["lastModified"] > 1_600_000_000_000 for file in files))
        below = self.ok(self.api.get(self.target + "/own/files?sub_path=%2Fsub"))["files"]
        self.assertEqual([(file["name"], file["path"]) for file in below],
                         [("b.txt", virtual + "/sub")])
        located = self.ok(self.api.post(path(*self.schema[:2]) + "/schemas",
                                        {"name": "s2", "properties": {"location": "s3://b/s2/"}}))
        self.assertEqual(located["schema"]["properties"], {"location": "s3://b/s2/"})
        other = self.make([*self.schema[:2], "s2"], "filesets", "f")
        self.assertEqual(other["storageLocation"], "s3://b/s2/f")

    def test_errors(self):
        self.make(self.schema, "filesets", "f")
        self.fails(self.api.post(self.target, {"name": "f"}), 409, 1004,
                   "FilesetAlreadyExistsException",
                   "Failed to operate fileset(s) [f] operation [CREATE] under schema [sch], "
                   "reason [")
        self.fails(self.api.get(self.target + "/none"), 404, 1003, "NoSuchFilesetException")
        self.fails(self.api.post(self.target, {"name": "e", "type": "external"}), 400, 1001,
                   "IllegalArgumentException")
        self.fails(self.api.post(self.target, {"name": "e", "type": "other"}), 400, 1001,
                   "IllegalArgumentException")
        self.fails(self.api.post(self.target, {"name": "e", "storageLocations": {"": "x"}}), 400,
                   1001, "IllegalArgumentException")
        for bad in ("/f/location?sub_path=%", "/f/files?sub_path=%zz"):
            self.assertEqual(self.api.get(self.target + bad).json["code"], 1001)


if __name__ == "__main__":
    unittest.main()
