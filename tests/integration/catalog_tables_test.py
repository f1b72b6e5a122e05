"""Gravitino's REST API, through a running server: tables with all that they are made of, views,
functions, models with their versions, partitions and statistics."""

import unittest
import urllib.parse

from catalog_http import COLUMNS, CatalogTest, path, update


def literal(kind, value):
    return {"type": "literal", "dataType": kind, "value": value}


TYPES = ["boolean", "byte", "byte unsigned", "short", "short unsigned", "integer",
         "integer unsigned", "long", "long unsigned", "float", "double", "decimal(10,2)", "date",
         "time", "time(3)", "timestamp", "timestamp(6)", "timestamp_tz", "timestamp_tz(6)",
         "string", "char(10)", "varchar(64)", "fixed(16)", "binary", "uuid", "interval_year",
         "interval_day",
         {"type": "struct", "fields": [
             {"name": "a", "type": "integer", "nullable": False, "comment": "c"},
             {"name": "b", "type": {"type": "list", "containsNull": True,
                                    "elementType": "string"}, "nullable": True}]},
         {"type": "list", "containsNull": False, "elementType": "integer"},
         {"type": "map", "valueContainsNull": True, "keyType": "string", "valueType": "double"},
         {"type": "union", "types": ["string", "integer"]},
         {"type": "external", "catalogString": "user-defined"},
         {"type": "unparsed", "unparsedType": "whatever<x>"}]


class Tables(CatalogTest):
    def setUp(self):
        super().setUp()
        self.schema = self.make_schema()
        self.target = path(*self.schema) + "/tables"

    def load(self, name="tab"):
        return self.ok(self.api.get(f"{self.target}/{name}"))["table"]

    def test_life(self):
        made = self.make_table(self.schema, comment="c", properties={"format": "parquet"})
        self.assertEqual((made["name"], made["comment"]), ("tab", "c"))
        self.assertEqual(made["properties"], {"format": "parquet"})
        self.assertEqual([column["name"] for column in made["columns"]], ["id", "city"])
        self.assertEqual([column["nullable"] for column in made["columns"]], [False, True])
        self.assertEqual(made["columns"][1]["comment"], "where")
        self.assertEqual((made["partitioning"], made["sortOrders"], made["indexes"]), ([], [], []))
        self.assertEqual(made["distribution"]["strategy"], "none")
        self.check_audit(made)
        self.no_nulls(made)
        self.assertEqual(self.load(), made)
        self.assertEqual(self.ok(self.api.get(self.target + "/tab?privileges=SELECT_TABLE"))
                         ["table"], made)
        self.assertEqual(self.listed(self.target), ["tab"])
        self.assertTrue(self.ok(self.api.delete(self.target + "/tab?purge=true"))["dropped"])
        self.assertFalse(self.ok(self.api.delete(self.target + "/tab"))["dropped"])

    def test_an_alter_leaves_what_could_be_created(self):
        null = literal("null", "NULL")
        self.make_table(
            self.schema, columns=[{"name": "id", "type": "long"}, {"name": "day", "type": "date"},
                                  {"name": "n", "type": "long", "defaultValue": null}],
            partitioning=[{"strategy": "identity", "fieldName": ["day"]}],
            sortOrders=[{"sortTerm": {"type": "field", "fieldName": ["id"]}}],
            indexes=[{"indexType": "btree", "name": "i", "fieldNames": [["n"]]}])
        before = self.load()
        strict = {"fieldName": ["n"], "nullable": False}
        for refused, words in (
                (update("updateColumnNullability", **strict), "null default value: n"),
                (update("addColumn", fieldName=["m"], type="long", nullable=False,
                        defaultValue=null), "null default value: m"),
                (update("addColumn", fieldName=["id", "x"], type="long"), "Column id.x"),
                (update("deleteColumn", fieldName=["day"]), "partition field day names it"),
                (update("deleteColumn", fieldName=["id"]), "sort order field id names it"),
                (update("deleteColumn", fieldName=["n"]), "index i field n names it"),
                (update("renameColumn", oldFieldName=["day"], newFieldName="d"),
                 "Cannot alter partition column day"),
                (update("updateColumnType", fieldName=["day"], newType="string"),
                 "Cannot alter partition column day"),
                (update("addTableIndex", index={"indexType": "btree", "name": "i",
                                                "fieldNames": [["id"]]}), "Index i")):
            self.fails(self.alter(self.target + "/tab", update("updateComment", newComment="c"),
                                  refused), 400, 1001, "IllegalArgumentException", words)
            self.assertEqual(self.load(), before)
        self.ok(self.alter(self.target + "/tab",
                           update("renameColumn", oldFieldName=["id"], newFieldName="key"),
                           update("renameColumn", oldFieldName=["n"], newFieldName="m")))
        after = self.load()
        self.assertEqual(after["sortOrders"][0]["sortTerm"]["fieldName"], ["key"])
        self.assertEqual(after["indexes"][0]["fieldNames"], [["m"]])
        parts = ("columns", "partitioning", "sortOrders", "distribution", "indexes")
        again = self.make_table(self.schema, "again", **{part: after[part] for part in parts})
        self.assertEqual({part: again[part] for part in parts},
                         {part: after[part] for part in parts})

    def test_every_type(self):
        columns = [{"name": f"c{i}", "type": kind} for i, kind in enumerate(TYPES)]
        made = self.make_table(self.schema, columns=columns)
        self.assertEqual([column["type"] for column in made["columns"]], TYPES)
        self.assertEqual(self.load()["columns"], made["columns"])

    def test_all_parts(self):
        parts = {
            "columns": [{"name": "id", "type": "integer", "nullable": False, "autoIncrement": True},
                        {"name": "day", "type": "date"}, {"name": "name", "type": "string",
                                                          "defaultValue": literal("string", "x")}],
            "partitioning": [
                {"strategy": "identity", "fieldName": ["name"]},
                {"strategy": "year", "fieldName": ["day"]},
                {"strategy": "month", "fieldName": ["day"]},
                {"strategy": "day", "fieldName": ["day"]},
                {"strategy": "hour", "fieldName": ["day"]},
                {"strategy": "bucket", "numBuckets": 8, "fieldNames": [["id"]]},
                {"strategy": "truncate", "width": 4, "fieldName": ["name"]},
                {"strategy": "list", "fieldNames": [["name"]], "assignments": []},
                {"strategy": "range", "fieldName": ["day"], "assignments": []},
                {"strategy": "function", "funcName": "f",
                 "funcArgs": [{"type": "field", "fieldName": ["id"]}]}],
            "distribution": {"strategy": "hash", "number": 4,
                             "funcArgs": [{"type": "field", "fieldName": ["id"]}]},
            "sortOrders": [{"sortTerm": {"type": "field", "fieldName": ["id"]},
                            "direction": "desc", "nullOrdering": "nulls_last"}],
            "indexes": [{"indexType": "primary_key", "name": "pk", "fieldNames": [["id"]]},
                        {"indexType": "unique_key", "name": "uk", "fieldNames": [["name"]]}],
        }
        made = self.make_table(self.schema, **parts)
        self.assertEqual([part["strategy"] for part in made["partitioning"]],
                         [part["strategy"] for part in parts["partitioning"]])
        for got, given in zip(made["partitioning"], parts["partitioning"]):
            self.assertEqual({key: got[key] for key in given}, given)
        self.assertEqual(made["distribution"], parts["distribution"])
        self.assertEqual(made["sortOrders"], parts["sortOrders"])
        self.assertEqual([(index["indexType"].lower(), index["name"], index["fieldNames"])
                          for index in made["indexes"]],
                         [("primary_key", "pk", [["id"]]), ("unique_key", "uk", [["name"]])])
        self.assertEqual(made["columns"][2]["defaultValue"], literal("string", "x"))
        self.assertTrue(made["columns"][0]["autoIncrement"])
        self.assertEqual(self.load(), made)

    def test_every_update(self):
        self.make_table(self.schema, comment="c", properties={"a": "1"})
        altered = self.ok(self.alter(
            self.target + "/tab",
            update("updateComment", newComment="d"),
            update("setProperty", property="b", value="2"),
            update("removeProperty", property="a"),
            update("addColumn", fieldName=["first"], type="integer", position="first"),
            update("addColumn", fieldName=["last"], type="string", comment="l", position="default",
                   nullable=False, autoIncrement=False, defaultValue=literal("string", "z")),
            update("addColumn", fieldName=["mid"], type="decimal(10,2)", position={"after": "id"}),
            update("addColumn", fieldName=["gone"], type="date"),
            update("renameColumn", oldFieldName=["city"], newFieldName="town"),
            update("updateColumnType", fieldName=["mid"], newType="double"),
            update("updateColumnComment", fieldName=["mid"], newComment="middle"),
            update("updateColumnPosition", fieldName=["last"], newPosition={"after": "first"}),
            update("updateColumnNullability", fieldName=["first"], nullable=False),
            update("updateColumnDefaultValue", fieldName=["town"],
                   newDefaultValue=literal("string", "Bern")),
            update("updateColumnAutoIncrement", fieldName=["id"], autoIncrement=True),
            update("deleteColumn", fieldName=["gone"], ifExists=False),
            update("deleteColumn", fieldName=["never"], ifExists=True),
            update("addTableIndex", index={"indexType": "PRIMARY_KEY", "name": "pk",
                                           "fieldNames": [["id"]]}),
            update("addTableIndex", index={"indexType": "UNIQUE_KEY", "name": "uk",
                                           "fieldNames": [["town"]]}),
            update("deleteTableIndex", name="uk", ifExists=False),
            update("deleteTableIndex", name="never", ifExists=True),
            update("rename", newName="tab2")))["table"]
        self.assertEqual((altered["name"], altered["comment"], altered["properties"]),
                         ("tab2", "d", {"b": "2"}))
        columns = {column["name"]: column for column in altered["columns"]}
        self.assertEqual(list(columns), ["first", "last", "id", "mid", "town"])
        self.assertEqual((columns["mid"]["type"], columns["mid"]["comment"]),
                         ("double", "middle"))
        self.assertEqual(columns["first"]["nullable"], False)
        self.assertEqual(columns["town"]["defaultValue"], literal("string", "Bern"))
        self.assertEqual(columns["last"]["defaultValue"], literal("string", "z"))
        self.assertTrue(columns["id"]["autoIncrement"])
        self.assertEqual([index["name"] for index in altered["indexes"]], ["pk"])
        self.check_audit(altered, changed="anonymous")
        self.assertEqual(self.load("tab2"), altered)
        self.fails(self.api.get(self.target + "/tab"), 404, 1003, "NoSuchTableException")

    def test_one_bad_update_among_many_changes_nothing(self):
        before = self.make_table(self.schema)
        good = update("updateComment", newComment="never")
        for bad in (update("deleteColumn", fieldName=["none"], ifExists=False),
                    update("addColumn", fieldName=["city"], type="string"),
                    update("renameColumn", oldFieldName=["none"], newFieldName="x"),
                    update("renameColumn", oldFieldName=["id"], newFieldName="city"),
                    update("updateColumnType", fieldName=["none"], newType="string"),
                    update("updateColumnPosition", fieldName=["id"], newPosition={"after": "no"}),
                    update("deleteTableIndex", name="none", ifExists=False),
                    update("setProperty", property="x"), update("setProperty", value="x"),
                    update("rename", newName="a b"), update("rename"), update("fly"), {}, 7, None,
                    {"@type": "updateComment", "newComment": "x", "more": 1}):
            with self.subTest(bad=bad):
                kind = ("IllegalNameIdentifierException" if "a b" in str(bad)
                        else "IllegalArgumentException")
                self.fails(self.alter(self.target + "/tab", good, bad, good), 400, 1001, kind)
        for body in ({}, {"updates": {}}, {"updates": None}, [], {"updates": [good], "more": 1}):
            self.fails(self.api.put(self.target + "/tab", body), 400, 1001,
                       "IllegalArgumentException")
        self.assertEqual(self.load(), before)

    def test_rename_onto(self):
        self.make_table(self.schema)
        other = self.make_table(self.schema, "other")
        self.fails(self.alter(self.target + "/tab", update("updateComment", newComment="x"),
                              update("rename", newName="other")), 409, 1004,
                   "TableAlreadyExistsException",
                   "Failed to operate table(s) [tab] operation [ALTER] under schema [sch], "
                   "reason [")
        self.assertEqual(self.load("other"), other)
        self.assertNotIn("comment", self.load())
        same = self.ok(self.alter(self.target + "/tab", update("rename", newName="tab")))["table"]
        self.assertEqual(same["name"], "tab")

    def test_move_to_another_schema(self):
        made = self.make_table(self.schema)
        self.ok(self.api.post(path(*self.schema[:2]) + "/schemas", {"name": "other"}))
        moved = self.ok(self.alter(self.target + "/tab",
                                   update("rename", newName="tab2", newSchemaName="other")))
        self.assertEqual(moved["table"]["name"], "tab2")
        self.assertEqual(self.listed(self.target), [])
        there = path(*self.schema[:2], "other") + "/tables"
        self.assertEqual(self.listed(there), ["tab2"])
        self.assertEqual(self.ok(self.api.get(there + "/tab2"))["table"]["columns"],
                         made["columns"])
        self.make_table(self.schema)
        self.fails(self.alter(self.target + "/tab",
                              update("rename", newName="tab2", newSchemaName="other")), 409, 1004,
                   "TableAlreadyExistsException")
        self.fails(self.alter(self.target + "/tab",
                              update("rename", newName="tab2", newSchemaName="none")), 404, 1003,
                   "NoSuchSchemaException")

    def test_errors(self):
        self.make_table(self.schema)
        self.fails(self.api.post(self.target, {"name": "tab", "columns": COLUMNS}), 409, 1004,
                   "TableAlreadyExistsException",
                   "Failed to operate table(s) [tab] operation [CREATE] under schema [sch], "
                   "reason [")
        self.fails(self.api.get(self.target + "/none"), 404, 1003, "NoSuchTableException",
                   "Failed to operate table(s) [none] operation [LOAD] under schema [sch], "
                   "reason [")
        lake, catalog = self.schema[:2]
        self.fails(self.api.get(path(lake, catalog, "none") + "/tables"), 404, 1003,
                   "NoSuchSchemaException",
                   "Failed to operate table(s) operation [LIST] under schema [none], reason [")
        for names, kind in (((lake, catalog, "none"), "NoSuchSchemaException"),
                            ((lake, "none", "sch"), "NoSuchCatalogException"),
                            (("none", catalog, "sch"), "NoSuchMetalakeException")):
            target = path(*names) + "/tables"
            self.fails(self.api.get(target), 404, 1003, kind)
            self.fails(self.api.post(target, {"name": "x", "columns": COLUMNS}), 404, 1003, kind)
            if kind == "NoSuchSchemaException":
                kind = "NoSuchTableException"
            self.fails(self.api.get(target + "/tab"), 404, 1003, kind)
            self.fails(self.alter(target + "/tab", update("updateComment", newComment="x")), 404,
                       1003, kind)
        self.fails(self.api.delete(path(lake, "none", "sch") + "/tables/tab"), 404, 1003,
                   "NoSuchCatalogException")
        column = {"name": "c", "type": "string"}
        for bad in ([{"name": "c"}], [{"type": "string"}], [column, column], [None], ["c"], {}, 1,
                    [{**column, "type": "decimal(99,2)"}], [{**column, "extra": 1}],
                    [{**column, "type": {"type": "list"}}], [{**column, "nullable": "perhaps"}]):
            self.fails(self.api.post(self.target, {"name": "x", "columns": bad}), 400, 1001,
                       "IllegalArgumentException")
        for member, bad in (("partitioning", [{"strategy": "year", "fieldName": ["none"]}]),
                            ("partitioning", [{"strategy": "guess"}]), ("partitioning", {}),
                            ("distribution", {"strategy": "guess"}),
                            ("sortOrders", [{"direction": "up"}]),
                            ("indexes", [{"indexType": "guess", "fieldNames": [["c"]]}]),
                            ("extra", 1)):
            self.fails(self.api.post(self.target, {"name": "x", "columns": [column], member: bad}),
                       400, 1001, "IllegalArgumentException")
        deep = "string"
        for _ in range(100):
            deep = {"type": "list", "containsNull": True, "elementType": deep}
        self.fails(self.api.post(self.target, {"name": "x", "columns": [{**column, "type": deep}]}),
                   400, 1001, "IllegalArgumentException")
        self.assertEqual(self.listed(self.target), ["tab"])

    def test_names_with_slashes(self):
        for name in ("a/b", "a=b", "t/x=1/y=2", "0-"):
            self.make_table(self.schema, name)
            encoded = self.target + "/" + name.replace("/", "%2F").replace("=", "%3D")
            self.assertEqual(self.ok(self.api.get(encoded))["table"]["name"], name)
            self.ok(self.alter(encoded, update("rename", newName=name + "/z")))
            self.assertIn(name + "/z", self.listed(self.target))

    def test_a_wide_table(self):
        columns = [{"name": f"c{i}", "type": "string", "comment": "x" * 20} for i in range(3_000)]
        made = self.make_table(self.schema, "wide", columns=columns)
        self.assertEqual(len(made["columns"]), 3_000)
        self.assertEqual(self.load("wide"), made)


class Views(CatalogTest):
    def test_life(self):
        schema = self.make_schema()
        target = path(*schema) + "/views"
        body = {"columns": COLUMNS, "comment": "c", "defaultCatalog": "cat",
                "defaultSchema": "sch", "properties": {"k": "v"},
                "representations": [{"type": "sql", "dialect": "trino", "sql": "SELECT 1"},
                                    {"type": "sql", "dialect": "spark", "sql": "SELECT 1"}]}
        made = self.make(schema, "views", "v", **body)
        for member in ("comment", "defaultCatalog", "defaultSchema", "properties",
                       "representations"):
            self.assertEqual(made[member], body[member], member)
        self.assertEqual([column["name"] for column in made["columns"]], ["id", "city"])
        self.check_audit(made)
        self.assertEqual(self.ok(self.api.get(target + "/v"))["view"], made)
        self.assertEqual(self.listed(target), ["v"])
        new_sql = [{"type": "sql", "dialect": "trino", "sql": "SELECT 2"}]
        altered = self.ok(self.alter(
            target + "/v", update("rename", newName="w"),
            update("setProperty", property="a", value="b"),
            update("removeProperty", property="k"),
            update("replaceView", columns=COLUMNS[:1], representations=new_sql)))["view"]
        self.assertEqual((altered["name"], altered["properties"], altered["representations"]),
                         ("w", {"a": "b"}, new_sql))
        self.assertEqual(len(altered["columns"]), 1)
        self.fails(self.api.post(target, {"name": "w", **body}), 409, 1004,
                   "ViewAlreadyExistsException")
        self.fails(self.api.post(target, {"name": "x", "columns": COLUMNS}), 400, 1001,
                   "IllegalArgumentException")
        self.fails(self.api.get(target + "/v"), 404, 1003, "NoSuchViewException")
        self.assertTrue(self.ok(self.api.delete(target + "/w"))["dropped"])
        self.assertFalse(self.ok(self.api.delete(target + "/w"))["dropped"])


class Functions(CatalogTest):
    def test_life(self):
        schema = self.make_schema()
        target = path(*schema) + "/functions"
        impl = {"language": "SQL", "runtime": "SPARK", "sql": "SELECT x + 1"}
        definition = {"parameters": [{"name": "x", "dataType": "integer"}],
                      "returnType": "integer", "impls": [impl]}
        body = {"functionType": "SCALAR", "deterministic": True, "comment": "c",
                "definitions": [definition]}
        made = self.make(schema, "functions", "f", **body)
        self.assertEqual((made["name"], made["functionType"], made["deterministic"]),
                         ("f", "scalar", True))
        self.assertEqual(made["definitions"][0]["parameters"][0]["name"], "x")
        self.assertEqual(made["definitions"][0]["impls"][0]["sql"], "SELECT x + 1")
        self.check_audit(made)
        self.assertEqual(self.ok(self.api.get(target + "/f"))["function"], made)
        self.assertEqual(self.listed(target), ["f"])
        self.assertEqual(self.ok(self.api.get(target + "?details=true"))["functions"], [made])
        other = {"parameters": [{"name": "x", "dataType": "string"}], "returnType": "integer",
                 "impls": [impl]}
        altered = self.ok(self.alter(target + "/f", update("updateComment", newComment="d"),
                                     update("addDefinition", definition=other)))["function"]
        self.assertEqual((altered["comment"], len(altered["definitions"])), ("d", 2))
        self.fails(self.api.post(target, {"name": "f", **body}), 409, 1004,
                   "FunctionAlreadyExistsException",
                   "Failed to operate function(s) [f] operation [REGISTER] under schema [sch]")
        self.fails(self.api.post(target, {"name": "g", "functionType": "SCALAR"}), 400, 1001,
                   "IllegalArgumentException")
        self.fails(self.api.get(target + "/none"), 404, 1003, "NoSuchFunctionException")
        self.assertTrue(self.ok(self.api.delete(target + "/f"))["dropped"])
        self.assertFalse(self.ok(self.api.delete(target + "/f"))["dropped"])


class Models(CatalogTest):
    def setUp(self):
        super().setUp()
        self.schema = self.make_schema(kind="model", provider=None)
        self.target = path(*self.schema) + "/models"

    def test_life(self):
        made = self.make(self.schema, "models", "m", comment="c", properties={"k": "v"})
        self.assertEqual((made["name"], made["comment"], made["properties"], made["latestVersion"]),
                         ("m", "c", {"k": "v"}, 0))
        self.check_audit(made)
        self.assertEqual(self.ok(self.api.get(self.target + "/m"))["model"], made)
        self.assertEqual(self.listed(self.target), ["m"])
        altered = self.ok(self.alter(self.target + "/m", update("rename", newName="n"),
                                     update("updateComment", newComment=None),
                                     update("setProperty", property="a", value="b"),
                                     update("removeProperty", property="k")))["model"]
        self.assertEqual((altered["name"], altered["properties"]), ("n", {"a": "b"}))
        self.assertNotIn("comment", altered)
        self.fails(self.api.post(self.target, {"name": "n"}), 409, 1004,
                   "ModelAlreadyExistsException",
                   "Failed to operate model(s) [n] operation [REGISTER] under schema [sch]")
        self.fails(self.api.get(self.target + "/m"), 404, 1003, "NoSuchModelException")
        self.assertTrue(self.ok(self.api.delete(self.target + "/n"))["dropped"])
        self.assertFalse(self.ok(self.api.delete(self.target + "/n"))["dropped"])

    def version(self, name, model="m"):
        return self.ok(self.api.get(f"{self.target}/{model}/{name}"))["modelVersion"]

    def test_versions_and_aliases(self):
        self.make(self.schema, "models", "m")
        versions = self.target + "/m/versions"
        self.assertEqual(self.ok(self.api.get(versions))["versions"], [])
        self.assertEqual(self.ok(self.api.post(versions, {
            "uri": "s3://a", "aliases": ["first", "prod"], "comment": "c",
            "properties": {"k": "v"}})), {"code": 0})
        self.ok(self.api.post(versions, {"uris": {"a": "s3://x", "b": "hdfs://y"},
                                         "aliases": []}))
        self.assertEqual(self.ok(self.api.get(versions))["versions"], [0, 1])
        first = self.version("versions/0")
        self.assertEqual((first["version"], first["uri"], sorted(first["aliases"]),
                          first["comment"], first["properties"]),
                         (0, "s3://a", ["first", "prod"], "c", {"k": "v"}))
        self.check_audit(first)
        self.assertEqual(self.version("aliases/prod"), first)
        second = self.version("versions/1")
        self.assertEqual(second["uris"], {"a": "s3://x", "b": "hdfs://y"})
        self.assertNotIn("uri", second)
        self.assertEqual(self.ok(self.api.get(versions + "?details=true"))["infos"],
                         [first, second])
        self.assertEqual(self.ok(self.api.get(self.target + "/m"))["model"]["latestVersion"], 2)
        altered = self.ok(self.alter(
            self.target + "/m/aliases/prod", update("updateComment", newComment="d"),
            update("setProperty", property="a", value="b"), update("removeProperty", property="k"),
            update("updateUri", newUri="s3://b"), update("addUri", uriName="x", uri="s3://c"),
            update("updateAliases", aliasesToAdd=["best"], aliasesToRemove=["first"])))
        self.assertEqual(altered["modelVersion"], self.version("aliases/best"))
        self.assertEqual(sorted(altered["modelVersion"]["aliases"]), ["best", "prod"])
        self.assertEqual(altered["modelVersion"]["uris"], {"unknown": "s3://b", "x": "s3://c"})
        for name, uri in (("versions/0/uri?uriName=x", "s3://c"),
                          ("aliases/best/uri?uriName=unknown", "s3://b"),
                          ("versions/1/uri?uriName=b", "hdfs://y")):
            self.assertEqual(self.ok(self.api.get(f"{self.target}/m/{name}"))["uri"], uri)
        self.fails(self.api.get(self.target + "/m/versions/0/uri?uriName=none"), 404, 1003,
                   "NoSuchModelVersionURINameException")
        self.assertTrue(self.ok(self.api.delete(self.target + "/m/aliases/best"))["dropped"])
        self.assertFalse(self.ok(self.api.delete(self.target + "/m/aliases/best"))["dropped"])
        self.assertFalse(self.ok(self.api.delete(self.target + "/m/versions/0"))["dropped"])
        self.assertTrue(self.ok(self.api.delete(self.target + "/m/versions/1"))["dropped"])
        self.ok(self.api.post(versions, {"uri": "s3://d"}))
        self.assertEqual(self.ok(self.api.get(versions))["versions"], [2])

    def test_errors_of_versions(self):
        self.make(self.schema, "models", "m")
        versions = self.target + "/m/versions"
        self.ok(self.api.post(versions, {"uri": "s3://a", "aliases": ["a"]}))
        self.fails(self.api.post(versions, {"uri": "s3://b", "aliases": ["a"]}), 409, 1004,
                   "ModelVersionAliasesAlreadyExistException")
        for name in ("versions/7", "aliases/none"):
            self.fails(self.api.get(f"{self.target}/m/{name}"), 404, 1003,
                       "NoSuchModelVersionException",
                       "Failed to operate model(s) [m] operation [GET] under schema [sch]")
        for target in (self.target + "/none/versions", self.target + "/none/versions/0"):
            self.fails(self.api.get(target), 404, 1003, "NoSuchModelException")
        for bad in ({}, {"uri": ""}, {"uri": "x", "extra": 1}, {"uri": "x", "aliases": [1, {}]},
                    {"uri": "x", "aliases": ["7"]}, []):
            self.fails(self.api.post(versions, bad), 400, 1001, "IllegalArgumentException")
        for bad in ("x", "-1", "99999999999", "1.0"):
            self.fails(self.api.get(f"{versions}/{bad}"), 400, 1001, "IllegalArgumentException")


class Kinds(CatalogTest):
    """What stands in a catalog of which kind."""

    def test_create(self):
        lake = self.make_lake()
        columns = [{"name": "a", "type": "long"}]
        things = {"tables": ("relational", {"columns": columns}),
                  "views": ("relational", {"columns": columns, "representations": [
                      {"type": "sql", "dialect": "trino", "sql": "SELECT 1"}]}),
                  "topics": ("messaging", {}), "models": ("model", {}),
                  "filesets": ("fileset", {"storageLocation": "file:///x"}),
                  "functions": ("", {"functionType": "scalar", "definitions": [
                      {"parameters": [], "returnType": "integer", "impls": [
                          {"language": "SQL", "runtime": "SPARK", "sql": "SELECT 1"}]}]})}
        for kind in ("relational", "messaging", "model", "fileset"):
            self.ok(self.api.post(path(*lake) + "/catalogs",
                                  {"name": kind, "type": kind, "provider": "hive"}))
            self.ok(self.api.post(path(*lake, kind) + "/schemas", {"name": "s"}))
            for words, (home, body) in things.items():
                target = f"{path(*lake, kind, 's')}/{words}"
                answer = self.api.post(target, {"name": "x", **body})
                if home in ("", kind):
                    self.ok(answer)
                else:
                    self.fails(answer, 405, 1006, "UnsupportedOperationException",
                               f"Catalog does not support {words[:-1]} operations")
                    # What might be there from before is looked for all the same.
                    self.assertEqual(self.listed(target), [])
                    self.assertFalse(self.ok(self.api.delete(target + "/x"))["dropped"])


class Partitions(CatalogTest):
    def test_what_does_not_fit(self):
        schema = self.make_schema()
        day = literal("date", "2026-01-01")
        self.make_table(schema, columns=[{"name": "day", "type": "date"},
                                         {"name": "city", "type": "string"}],
                        partitioning=[{"strategy": "identity", "fieldName": ["day"]}])
        self.make_table(schema, "plain")
        identity = {"type": "identity", "name": "p", "fieldNames": [["day"]], "values": [day]}
        bound = {"type": "range", "name": "p", "lower": day, "upper": day}
        for table, bad in (("plain", identity), ("tab", bound),
                           ("tab", {**identity, "fieldNames": [["city"]]}),
                           ("tab", {**identity, "fieldNames": [["day"], ["city"]],
                                    "values": [day, day]}),
                           ("tab", {**identity, "values": [day, day]}),
                           ("tab", {**identity, "values": [literal("long", "1")]}),
                           ("tab", {**bound, "properties": {"fieldName": "x"}})):
            target = f"{path(*schema)}/tables/{table}/partitions"
            self.fails(self.api.post(target, {"partitions": [bad]}), 400, 1001,
                       "IllegalArgumentException")
            self.assertEqual(self.ok(self.api.get(target))["names"], [])

    def test_assignments(self):
        """Partitions that a table is made with."""
        schema = self.make_schema()
        parts = [{"type": "list", "name": name, "lists": [[literal("string", name)]],
                  "properties": {"k": "v"}} for name in ("Bern", "Ulm")]
        by_city = {"strategy": "list", "fieldNames": [["city"]]}
        made = self.make_table(schema, partitioning=[{**by_city, "assignments": parts}])
        self.assertEqual(made["partitioning"], [{**by_city, "assignments": []}])
        target = path(*schema) + "/tables/tab/partitions"
        self.assertEqual(self.ok(self.api.get(target + "?details=true"))["partitions"], parts)
        self.assertTrue(self.ok(self.api.delete(target + "/Ulm"))["dropped"])
        self.assertEqual(self.ok(self.api.get(target))["names"], ["Bern"])
        for bad in ([parts[0], parts[0]], [{**parts[0], "lists": [[literal("date", "x")]]}]):
            body = {"name": "bad", "columns": made["columns"],
                    "partitioning": [{**by_city, "assignments": bad}]}
            self.fails(self.api.post(path(*schema) + "/tables", body), 400, 1001,
                       "IllegalArgumentException")
        self.assertEqual(self.listed(path(*schema) + "/tables"), ["tab"])

    def test_life(self):
        schema = self.make_schema()
        self.make_table(schema, columns=[{"name": "day", "type": "date"},
                                         {"name": "city", "type": "string"}],
                        partitioning=[{"strategy": "identity", "fieldName": ["day"]},
                                      {"strategy": "identity", "fieldName": ["city"]}])
        target = path(*schema) + "/tables/tab/partitions"
        body = {"type": "identity", "name": "day=2026-01-01/city=Bern",
                "fieldNames": [["day"], ["city"]],
                "values": [literal("date", "2026-01-01"), literal("string", "Bern")],
                "properties": {"k": "v"}}
        made, = self.ok(self.api.post(target, {"partitions": [body]}))["partitions"]
        self.assertEqual({key: made[key] for key in body}, body)
        self.assertEqual(self.ok(self.api.get(target))["names"], [body["name"]])
        self.assertEqual(self.ok(self.api.get(target + "?details=true"))["partitions"], [made])
        one = target + "/day%3D2026-01-01%2Fcity%3DBern"
        self.assertEqual(self.ok(self.api.get(one))["partition"], made)
        self.fails(self.api.post(target, {"partitions": [body]}), 409, 1004,
                   "PartitionAlreadyExistsException",
                   "operation [CREATE] of table [tab], reason [")
        for bad in ({}, {"partitions": []}, {"partitions": [body, body]}, {"partitions": None},
                    {"partitions": [{**body, "type": "guess"}]}, {"partitions": ["x"]}):
            self.fails(self.api.post(target, bad), 400, 1001, "IllegalArgumentException")
        self.fails(self.api.get(target + "/none"), 404, 1003, "NoSuchPartitionException",
                   "Failed to operate partition(s) [none] operation [GET] of table [tab], reason")
        self.assertTrue(self.ok(self.api.delete(one + "?purge=false"))["dropped"])
        self.assertFalse(self.ok(self.api.delete(one))["dropped"])
        self.fails(self.api.get(path(*schema) + "/tables/none/partitions"), 404, 1003,
                   "NoSuchTableException")


class Statistics(CatalogTest):
    def test_life(self):
        schema = self.make_schema()
        self.make_table(schema)
        target = f"/api/metalakes/{self.lake}/objects/table/cat.sch.tab/statistics"
        self.assertEqual(self.ok(self.api.get(target))["statistics"], [])
        values = {"custom-rows": 10, "custom-share": 0.5, "custom-name": "x",
                  "custom-list": [1, 2], "custom-map": {"a": 1}, "custom-flag": True}
        self.assertEqual(self.ok(self.api.put(target, {"updates": values})), {"code": 0})
        listed = self.ok(self.api.get(target))["statistics"]
        self.assertEqual({one["name"]: one["value"] for one in listed}, values)
        for one in listed:
            self.assertEqual((one["reserved"], one["modifiable"]), (False, True))
            self.assertEqual(one["audit"]["creator"], "anonymous")
        self.assertTrue(self.ok(self.api.post(target, {"names": ["custom-rows"]}))["dropped"])
        self.assertFalse(self.ok(self.api.post(target, {"names": ["custom-rows"]}))["dropped"])
        of_parts = target + "/partitions"
        self.ok(self.api.put(of_parts, {"updates": [
            {"partitionName": name, "statistics": {"custom-n": i, "custom-m": i}}
            for i, name in enumerate(("p0", "p1", "p2"))]}))
        for query, names in (("from=p0&to=p2", ["p0", "p1"]), ("from=p1", ["p1", "p2"]),
                             ("from=p0&fromInclusive=false&to=p2&toInclusive=true", ["p1", "p2"]),
                             ("to=p1", ["p0"]), ("from=x", [])):
            found = self.ok(self.api.get(f"{of_parts}?{query}"))["partitionStatistics"]
            self.assertEqual([one["partitionName"] for one in found], names, query)
            self.assertTrue(all(len(one["statistics"]) == 2 for one in found))
        self.assertTrue(self.ok(self.api.post(of_parts, {"drops": [
            {"partitionName": "p0", "statisticNames": ["custom-n"]}]}))["dropped"])

    def test_numbers_look_as_java_writes_them(self):
        schema = self.make_schema()
        self.make_table(schema)
        target = f"/api/metalakes/{self.lake}/objects/table/cat.sch.tab/statistics"
        texts = {"1.5": "1.5", "100.0": "100.0", "-0.25": "-0.25", "1e7": "1.0E7", "7": "7",
                 "12345678.5": "1.23456785E7", "0.0001": "1.0E-4", "1e300": "1.0E300", "0.0": "0.0",
                 "-3": "-3", "[1.5,{\"a\":2.0}]": "[1.5,{\"a\":2.0}]",
                 "18446744073709551615": "18446744073709551615"}
        for text, expected in texts.items():
            self.ok(self.api.call("PUT", target, f'{{"updates":{{"custom-n":{text}}}}}'))
            self.assertIn(f'"value":{expected},', self.api.get(target).body.decode(), text)

    def test_more_than_a_page(self):
        """Lists are read and sent a page of 1,000 at a time."""
        schema = self.make_schema()
        self.make_table(schema)
        target = f"/api/metalakes/{self.lake}/objects/table/cat.sch.tab/statistics"
        values = {f"custom-{i:04}": i for i in range(2_500)}
        self.ok(self.api.put(target, {"updates": values}))
        listed = self.ok(self.api.get(target))["statistics"]
        self.assertEqual([(one["name"], one["value"]) for one in listed], list(values.items()))
        parts = {"a": 1, "b": 2_100, "c": 899, "d": 1}
        self.ok(self.api.put(target + "/partitions", {"updates": [
            {"partitionName": name, "statistics": {f"custom-{i:04}": i for i in range(count)}}
            for name, count in parts.items()]}))
        found = self.ok(self.api.get(target + "/partitions?from=a"))["partitionStatistics"]
        self.assertEqual({one["partitionName"]: len(one["statistics"]) for one in found}, parts)

    def test_errors(self):
        schema = self.make_schema()
        self.make_table(schema)
        target = f"/api/metalakes/{self.lake}/objects"
        good = f"{target}/TABLE/cat.sch.tab/statistics"
        self.ok(self.api.get(good))
        for known in ("table/cat.sch.tab", "schema/cat.sch", "catalog/cat"):
            self.assertEqual(self.ok(self.api.get(f"{target}/{known}/credentials")),
                             {"code": 0, "credentials": []})
        self.fails(self.api.get(f"{target}/fileset/cat.sch.none/credentials"), 404, 1003,
                   "NoSuchFilesetException")
        self.fails(self.api.put(good, {"updates": {"rows": 1}}), 400, 1001,
                   "IllegalStatisticNameException", "custom-")
        for bad in ({}, {"updates": {}}, {"updates": []}, {"updates": {"custom-x": None}}):
            self.fails(self.api.put(good, bad), 400, 1001, "IllegalArgumentException")
        self.fails(self.api.get(good + "/partitions"), 400, 1001, "IllegalArgumentException")
        self.fails(self.api.get(f"{target}/table/cat.sch.none/statistics"), 404, 1003,
                   "NoSuchMetadataObjectException")
        self.fails(self.api.get(f"{target}/schema/cat.sch/statistics"), 405, 1006,
                   "UnsupportedOperationException")
        for bad in ("table/cat.sch", "nothing/a", "table/a.b.c.d"):
            self.fails(self.api.get(f"{target}/{bad}/statistics"), 400, 1001,
                       "IllegalArgumentException")


class Providers(CatalogTest):
    """What they make of names."""

    def schema_of(self, provider):
        catalog = self.make_catalog(provider=provider)
        made = self.ok(self.api.post(path(*catalog) + "/schemas", {"name": "Sales"}))["schema"]
        return [*catalog, made["name"]]

    def test_lower_case(self):
        for provider, column in (("hive", "id"), ("glue", "Id")):
            self.lake = f"lake{next(self.names)}"
            schema = self.schema_of(provider)
            self.assertEqual(schema[-1], "sales")
            given = [*schema[:2], "SALES"]
            table = self.make(given, "tables", "Orders", columns=[{"name": "Id", "type": "long"}])
            self.assertEqual((table["name"], table["columns"][0]["name"]), ("orders", column))
            target = path(*given) + "/tables"
            self.assertEqual(self.listed(path(*schema) + "/tables"), ["orders"])
            self.assertEqual(self.ok(self.api.get(target + "/ORDERS"))["table"], table)
            found = self.ok(self.api.post(target + ":batchGet", {"names": ["Orders", "None"]}))
            self.assertEqual(([one["name"] for one in found["tables"]], found["missing"]),
                             (["orders"], ["None"]))
            self.fails(self.api.post(target, {"name": "oRDERS", "columns": COLUMNS}), 409, 1004,
                       "TableAlreadyExistsException")
            altered = self.ok(self.alter(
                target + "/Orders", update("rename", newName="New", newSchemaName="SALES"),
                update("addColumn", fieldName=["More"], type="date", position={"after": "Id"}),
                update("renameColumn", oldFieldName=["Id"], newFieldName="Key")))["table"]
            self.assertEqual((altered["name"], [one["name"] for one in altered["columns"]]),
                             ("new", ["key", "more"] if provider == "hive" else ["Key", "More"]))
            self.ok(self.api.post(path(self.lake) + "/tags", {"name": "Tag"}))
            tags = path(self.lake) + "/objects/table/cat.Sales.NEW/tags"
            self.assertEqual(self.ok(self.api.post(tags, {"tagsToAdd": ["Tag"]}))["names"], ["Tag"])
            self.assertTrue(self.ok(self.api.delete(target + "/NEW"))["dropped"])

    def test_two_columns_that_become_one(self):
        schema = self.schema_of("hive")
        columns = [{"name": "a", "type": "long"}, {"name": "A", "type": "long"}]
        self.fails(self.api.post(path(*schema) + "/tables", {"name": "t", "columns": columns}), 400,
                   1001, "IllegalArgumentException")

    def test_case_of_others(self):
        schema = self.schema_of("lakehouse-iceberg")
        self.assertEqual(schema[-1], "Sales")
        self.assertEqual(self.make_table(schema, "Orders")["name"], "Orders")
        self.fails(self.api.get(path(*schema) + "/tables/orders"), 404, 1003,
                   "NoSuchTableException")

    def test_letters(self):
        for provider in ("jdbc-mysql", "jdbc-postgresql"):
            self.lake = f"lake{next(self.names)}"
            schema = self.schema_of(provider)
            columns = [{"name": "größe$", "type": "long"}]
            table = self.make(schema, "tables", "表$1", columns=columns)
            self.assertEqual((table["name"], table["columns"][0]["name"]), ("表$1", "größe$"))
            target = path(*schema) + "/tables/"
            altered = self.ok(self.alter(target + urllib.parse.quote("表$1"),
                                         update("rename", newName="Ω"),
                                         update("renameColumn", oldFieldName=["größe$"],
                                                newFieldName="ñ")))["table"]
            self.assertEqual((altered["name"], altered["columns"][0]["name"]), ("Ω", "ñ"))
            for bad in ("a b", "ä\u2028", "\U0001f600", "-ä", "ä" * 65, "a.b"):
                self.fails(self.api.post(target[:-1], {"name": bad, "columns": columns}), 400, 1001,
                           "IllegalNameIdentifierException")
            # Only of what the database itself has.
            self.fails(self.api.post(path(*schema) + "/views", {
                "name": "ä", "columns": columns,
                "representations": [{"type": "sql", "dialect": "d", "sql": "s"}]}), 400, 1001,
                "IllegalNameIdentifierException")
        self.lake = f"lake{next(self.names)}"
        schema = self.schema_of("hive")
        self.fails(self.api.post(path(*schema) + "/tables", {"name": "ä", "columns": COLUMNS}), 400,
                   1001, "IllegalNameIdentifierException")


if __name__ == "__main__":
    unittest.main()
