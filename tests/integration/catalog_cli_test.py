"""`trellis catalog`, against a running server, and an import from something like a Gravitino."""

import copy
import http.server
import json
import os
import threading
import unittest

from client_command import ClientTest

AUDIT = {"creator": "ann", "createTime": "2026-01-01T00:00:00Z"}


class CatalogCommandTest(ClientTest):
    """Each test has a keyspace of its own."""

    def setUp(self):
        super().setUp()
        self.use_new_keyspace()

    def use_new_keyspace(self):
        self.space = None
        name = f"s{os.urandom(6).hex()}"
        self.does("keyspace", "create", name)
        self.space = name

    def environment(self, **extra):
        space = getattr(self, "space", None)
        return super().environment(**({"TRELLIS_KEYSPACE": space} if space else {}), **extra)

    def catalog(self, *arguments, **more):
        return self.does("catalog", *arguments, **more)

    def wrong(self, message, *arguments, **more):
        return self.fails(2, message, "catalog", *arguments, **more)

    def refused(self, message, *arguments, **more):
        return self.fails(1, message, "catalog", *arguments, **more)

    def names(self, *arguments):
        return self.catalog("ls", *arguments).out.splitlines()

    def entity(self, path, *more):
        return self.catalog("show", path, "--json", *more).json["entity"]

    def make_schema(self):
        self.catalog("create", "lake", "--comment", "all")
        self.catalog("create", "lake.hive", "--provider", "hive", "--property", "uri=thrift://h")
        self.catalog("create", "lake.hive.sales")

    def make_all(self):
        """One of each kind that has a command."""
        self.make_schema()
        self.catalog("create", "lake.hive.sales.orders", "--definition", "-", stdin=json.dumps({
            "columns": [{"name": "id", "type": "long", "nullable": False},
                        {"name": "day", "type": "date", "comment": "when"},
                        {"name": "tags", "type": {"type": "list", "elementType": "string",
                                                  "containsNull": True}}],
            "partitioning": [{"strategy": "identity", "fieldName": ["day"]}],
            "indexes": [{"indexType": "PRIMARY_KEY", "name": "pk", "fieldNames": [["id"]]}],
            "properties": {"format": "parquet"}}).encode())
        self.catalog("create", "lake.hive.sales.prices", "--column", "price:decimal(10,2):with tax",
                     "--column", "id:long")
        for name, *kind in (("kafka", "messaging", "--provider", "kafka"), ("minds", "model"),
                            ("store", "fileset")):
            self.catalog("create", f"lake.{name}", "--kind", *kind)
            self.catalog("create", f"lake.{name}.sales")
        self.catalog("create", "lake.kafka.sales.news", "--type", "topic", "--comment",
                     "what is new")
        self.catalog("create", "lake.store.sales.files", "--type", "fileset", "--kind", "external",
                     "--location", "s3://files/here")
        self.catalog("create", "lake.minds.sales.brain", "--type", "model")
        self.catalog("create", "lake.hive.sales.look", "--type", "view", "--definition", "-",
                     stdin=b'{"columns":[],"representations":'
                           b'[{"type":"sql","dialect":"trino","sql":"SELECT 1"}]}')


class Look(CatalogCommandTest):
    def test_ls(self):
        self.assertEqual(self.names(), [])
        self.make_all()
        self.assertEqual(self.names(), ["lake"])
        self.assertEqual(self.names("lake"), ["hive", "kafka", "minds", "store"])
        self.assertEqual(self.names("lake.hive"), ["sales"])
        everything = ["orders", "prices", "look"]
        self.assertEqual(self.names("lake.hive.sales"), everything)
        self.assertEqual(self.names("lake.hive.sales", "--type", "table"), everything[:2])
        self.assertEqual(self.names("lake.hive.sales", "--prefix", "pr"), ["prices"])
        self.assertEqual(self.names("lake.hive.sales", "--limit", "2"), everything[:2])
        rows = self.catalog("ls", "-l", "lake.kafka.sales", "--type", "topic").rows
        self.assertEqual([(row[0], row[2], row[3:]) for row in rows],
                         [("topic", "anonymous", ["news", "what", "is", "new"])])
        lines = self.catalog("ls", "lake.hive.sales", "--json").lines
        self.assertEqual(lines[0], {"path": "lake.hive.sales.orders", "type": "table"})
        self.assertEqual(self.catalog("ls", "--json", "-l").lines[0]["entity"]["comment"], "all")
        for tag in ("open", "pii"):
            self.catalog("create", f"lake.{tag}", "--type", "tag")
        self.assertEqual(self.names("lake", "--type", "tag"), ["open", "pii"])
        self.assertEqual(self.names("lake", "--type", "tag", "--limit", "1"), ["open"])

    def test_long_lists(self):
        self.make_schema()
        lines = [{"type": "table", "names": ["lake", "hive", "sales", f"t{i:04}"],
                  "entity": {"name": f"t{i:04}", "columns": []}} for i in range(1_200)]
        text = "\n".join(map(json.dumps, lines)).encode()
        self.assertEqual(self.catalog("import", stdin=text).out, "1200 entities imported\n")
        names = [f"t{i:04}" for i in range(1_200)]
        self.assertEqual(self.names("lake.hive.sales"), names)
        self.assertEqual([row[3] for row in self.catalog("ls", "-l", "lake.hive.sales").rows],
                         names)

    def test_show(self):
        self.make_all()
        shown = self.catalog("show", "lake.hive.sales.orders").out
        self.assertRegex(shown, r"path +lake\.hive\.sales\.orders\ntype +table\n")
        self.assertRegex(shown, r"property format +parquet\n")
        self.assertRegex(shown, r"COLUMN +TYPE +NULL +COMMENT\nid +long +no")
        self.assertRegex(shown, r"day +date +yes +when\n")
        self.assertRegex(self.catalog("show", "lake.hive").out, r"kind +relational\n")
        # Whatever has the path, or what is asked for.
        self.assertEqual(self.entity("lake.store.sales.files")["type"], "external")
        self.assertEqual(self.entity("lake.kafka.sales.news", "--type", "topic")["name"], "news")
        self.refused("orders", "show", "lake.hive.sales.orders", "--type", "topic")
        self.refused("there is no table", "show", "lake.hive.sales.none")
        self.refused("none", "show", "lake.hive.none.orders")
        self.refused("none", "show", "none")

    def test_wrong_use(self):
        for path in ("", "lake..x", ".", "a.b.c.d.e", "lake."):
            self.wrong("is no path", "show", path)
        self.wrong("is no topic", "show", "lake.hive", "--type", "topic")
        self.wrong("it is one of", "show", "lake", "--type", "tabel")
        self.wrong("has nothing in it", "ls", "a.b.c.d")
        self.wrong("there is no table right in", "ls", "a.b", "--type", "table")
        self.wrong("NAME:TYPE", "create", "a.b.c.d", "--column", "x")
        self.wrong("it needs a NAME", "search", "lake")
        self.wrong("go with --from", "import", "--path", "lake")
        self.wrong("is no JSON", "create", "lake", "--definition", "-", stdin=b"{")


class Change(CatalogCommandTest):
    def test_create(self):
        self.make_all()
        self.assertEqual(self.entity("lake.hive")["provider"], "hive")
        self.assertEqual(self.entity("lake.hive")["properties"]["uri"], "thrift://h")
        columns = self.entity("lake.hive.sales.prices")["columns"]
        self.assertEqual([(column["name"], column["type"]) for column in columns],
                         [("price", "decimal(10,2)"), ("id", "long")])
        self.assertEqual(columns[0]["comment"], "with tax")
        made = self.catalog("create", "lake.more", "--kind", "fileset", "--json").json
        self.assertEqual((made["path"], made["type"], made["entity"]["type"]),
                         ("lake.more", "catalog", "fileset"))
        self.refused("already exists", "create", "lake")
        self.refused("none", "create", "none.hive")

    def test_columns_in_short(self):
        self.make_schema()
        table = "lake.hive.sales.t"
        self.catalog("create", table, "--column", "s:struct<a:int,m:map<string,long>>:home: where",
                     "--column", "l:list<decimal(4,1)>", "--column", "n:int")
        columns = {column.pop("name"): column for column in self.entity(table)["columns"]}
        self.assertEqual(columns["s"]["comment"], "home: where")
        self.assertEqual([(field["name"], field["type"]) for field in
                          columns["s"]["type"]["fields"]],
                         [("a", "integer"),
                          ("m", {"type": "map", "keyType": "string", "valueType": "long",
                                 "valueContainsNull": True})])
        self.assertEqual(columns["l"]["type"]["elementType"], "decimal(4,1)")
        self.assertEqual(columns["n"]["type"], "integer")
        self.catalog("alter", table, "--add-column", "x:list<string>")
        for said in ("create", "lake.hive.sales.u", "--column"), ("alter", table, "--add-column"):
            self.wrong('there is no type "strng": there are boolean, byte, ', *said, "a:strng")
            self.wrong("there is no type", *said, "a:list<strng>")
            self.wrong("is not NAME:TYPE", *said, "a")
        # The API takes any.
        self.catalog("create", "lake.hive.sales.u", "--definition", "-",
                     stdin=b'{"columns":[{"name":"a","type":"strng"}]}')

    def test_comments_of_schemas(self):
        self.make_schema()
        self.wrong("a schema keeps the comment that it was made with", "alter", "lake.hive.sales",
                   "--comment", "x", "--set", "a=b")
        self.assertNotIn("a", self.entity("lake.hive.sales").get("properties", {}))

    def test_alter(self):
        self.make_all()
        table = "lake.hive.sales.prices"
        altered = self.catalog("alter", table, "--comment", "c", "--set", "a=b", "--set", "x=y",
                               "--unset", "x", "--add-column", "vat:double", "--drop-column", "id",
                               "--rename", "costs", "--json").json
        self.assertEqual(altered["path"], "lake.hive.sales.costs")
        entity = self.entity("lake.hive.sales.costs")
        self.assertEqual((entity["comment"], entity["properties"]), ("c", {"a": "b"}))
        self.assertEqual([column["name"] for column in entity["columns"]], ["price", "vat"])
        # All or nothing.
        self.refused("none", "alter", "lake.hive.sales.costs", "--comment", "d", "--drop-column",
                     "none")
        self.assertEqual(self.entity("lake.hive.sales.costs")["comment"], "c")
        self.catalog("create", "lake.hive.other")
        self.catalog("alter", "lake.hive.sales.costs", "--schema", "other")
        self.assertEqual(self.names("lake.hive.other"), ["costs"])
        self.catalog("alter", "lake.hive.other", "--rename", "more")
        updates = json.dumps([{"@type": "updateColumnType", "fieldName": ["vat"],
                               "newType": "float"}])
        self.catalog("alter", "lake.hive.more.costs", "--updates", "-", stdin=updates.encode())
        self.assertEqual(self.entity("lake.hive.more.costs")["columns"][1]["type"], "float")
        self.catalog("alter", "lake.kafka.sales.news", "--set", "k=v")
        self.assertEqual(self.entity("lake.kafka.sales.news")["properties"], {"k": "v"})
        self.catalog("alter", "lake", "--rename", "pond")
        self.assertEqual(self.names(), ["pond"])
        self.wrong("nothing to alter", "alter", "pond")

    def test_disable(self):
        self.make_schema()
        self.catalog("alter", "lake.hive", "--disable")
        self.assertEqual(self.entity("lake.hive")["properties"]["in-use"], "false")
        self.refused("hive", "create", "lake.hive.more")
        self.catalog("alter", "lake.hive", "--enable")
        self.catalog("create", "lake.hive.more")
        self.wrong("stand alone", "alter", "lake", "--disable", "--comment", "x")

    def test_drop_and_undelete(self):
        self.make_all()
        self.assertEqual(self.catalog("drop", "lake.kafka.sales.news").out, "")
        self.assertEqual(self.catalog("drop", "lake.kafka.sales.news").out,
                         "lake.kafka.sales.news was not there\n")
        self.assertEqual(self.catalog("drop", "lake.kafka.sales.news", "--json").json,
                         {"path": "lake.kafka.sales.news", "dropped": False})
        dropped = self.catalog("ls", "lake.kafka.sales", "--dropped").rows
        self.assertEqual([row[1:] for row in dropped], [["anonymous", "topic", "news"]])
        self.catalog("undelete", "lake.kafka.sales.news")
        self.assertEqual(self.entity("lake.kafka.sales.news")["comment"], "what is new")
        self.refused("sales", "drop", "lake.hive.sales")
        self.refused("lake", "drop", "lake")
        self.catalog("drop", "lake.hive.sales", "--force")
        self.catalog("drop", "lake", "--force")
        self.assertEqual(self.names(), [])
        self.catalog("undelete", "lake", "lake.hive.sales")
        self.assertEqual(len(self.names("lake.hive.sales")), 3)
        self.refused("none", "undelete", "lake.hive.sales.none")


class Find(CatalogCommandTest):
    def test_search(self):
        self.make_all()
        rows = self.catalog("search", "lake", "OR").rows
        self.assertEqual(rows, [["table", "lake.hive.sales.orders"]])
        found = self.catalog("search", "lake", "--column", "price", "--json").lines
        self.assertEqual([line["path"] for line in found], ["lake.hive.sales.prices.price"])
        self.assertEqual(len(self.catalog("search", "lake", "*", "--limit", "2",
                                          "--json").lines), 2)
        self.refused("none", "search", "none", "x")
        rows = self.catalog("search", "lake", "--type", "table").rows
        self.assertEqual(rows, [["table", "lake.hive.sales.orders"],
                                ["table", "lake.hive.sales.prices"]])
        self.assertEqual(self.catalog("search", "lake", "--column", "id", "--type", "table").rows,
                         rows)
        self.assertEqual(self.catalog("search", "lake", "--column", "pr", "--type", "table").rows,
                         rows[1:])
        columns = self.catalog("search", "lake", "--type", "column").rows
        self.assertEqual(sorted(columns), [["column", f"lake.hive.sales.{name}"] for name in (
            "orders.day", "orders.id", "orders.tags", "prices.id", "prices.price")])
        self.wrong("it needs a NAME, --column, --tag or --type", "search", "lake")
        self.wrong("it is one of", "show", "lake.hive.sales.orders", "--type", "column")

    def test_log(self):
        self.make_schema()
        self.catalog("alter", "lake.hive.sales", "--rename", "shop")
        lines = self.catalog("log", "lake").out.splitlines()
        self.assertEqual(len(lines), 4)
        self.assertRegex(lines[3], r"^4  \S+Z  anonymous  \w+ schema "
                                   r"lake.hive.sales -> lake.hive.shop$")
        self.assertRegex(lines[0], r" create metalake lake$")
        self.catalog("show", lines[2].split()[-1].replace("sales", "shop"))
        self.assertEqual([line["number"] for line in self.catalog(
            "log", "lake", "--since", "2", "--limit", "1", "--json").lines], [3])
        self.assertEqual(self.catalog("log", "lake", "--since", "3", "--json").json["path"],
                         "lake.hive.shop")
        follower = self.start("catalog", "log", "lake", "--since", "4", "--follow")
        self.catalog("create", "lake.hive.late")
        self.assertRegex(follower.stdout.readline(), r"^5  .* create schema lake.hive.late\n$")


class TransferOfAccess(CatalogCommandTest):
    arguments = ("--engine", "memory", "--catalog-authorization", "on")

    def test_roles_and_users(self):
        self.make_schema()
        privileges = [{"name": "use_catalog", "condition": "allow"}]
        role = {"name": "reader", "properties": {"a": "b"}, "securableObjects": [
            {"fullName": "hive", "type": "catalog", "privileges": privileges}]}
        lines = [{"type": "user", "names": ["lake", "ann"],
                  "entity": {"name": "ann", "roles": ["reader"]}},
                 {"type": "user", "names": ["lake", "anonymous"],
                  "entity": {"name": "anonymous", "roles": []}},
                 {"type": "user", "names": ["lake", "old"],
                  "entity": {"name": "old", "roles": [], "externalId": "x", "enabled": False}},
                 {"type": "group", "names": ["lake", "all"],
                  "entity": {"name": "all", "roles": ["reader"]}},
                 {"type": "owner", "names": ["lake", "all"],
                  "entity": {"fullName": "hive.sales", "type": "schema", "ownerType": "group"}},
                 {"type": "owner", "names": ["lake", "ann"],
                  "entity": {"fullName": "hive", "type": "catalog", "ownerType": "user"}},
                 {"type": "role", "names": ["lake", "reader"], "entity": role},
                 {"type": "owner", "names": ["lake", "anonymous"],
                  "entity": {"fullName": "lake", "type": "metalake", "ownerType": "user"}}]
        text = "\n".join(map(json.dumps, lines)).encode()
        self.assertEqual(self.catalog("import", stdin=text).out,
                         "4 entities imported; 1 were there and stay as they are\n")
        for _ in range(2):
            exported = self.catalog("export")
            found = [line for line in exported.lines
                     if line["type"] in ("role", "user", "group", "owner")]
            for line in found:
                line["entity"].pop("audit", None)
            self.assertEqual(found, lines)
            self.use_new_keyspace()
            self.catalog("import", stdin=exported.bytes)

    def test_who_asks(self):
        self.make_schema()
        self.assertEqual(self.catalog("whoami").out, "anonymous\n")
        self.assertEqual(self.catalog("whoami", "--user", "ann").out, "ann\n")
        self.assertEqual(self.catalog("whoami", "--json", TRELLIS_USER="bob").json["principal"],
                         "bob")
        self.wrong("has no colon", "whoami", "--user", "a:b")
        self.refused("User 'ann' is not authorized to perform operation 'LIST' on 'lake'", "ls",
                     "lake", "--user", "ann")
        self.catalog("import", stdin=json.dumps(
            {"type": "user", "names": ["lake", "ann"], "entity": {"name": "ann"}}).encode())
        self.assertEqual(self.names("lake", "--user", "ann"), [])
        self.assertEqual(self.names("lake"), ["hive"])
        # With a token: below admin it is that of one user.
        tokens = {label: self.does("keyspace", "token", "create", self.space, "--role", "write",
                                   *(["--label", label] if label else []), "--json").json["token"]
                  for label in ("ann", "")}
        self.assertEqual(self.catalog("whoami", "--token", tokens["ann"], "--user", "ann").out,
                         "ann\n")
        self.refused('"ann"', "whoami", "--token", tokens["ann"], "--user", "bob")
        self.refused("its label would name another, and it has none", "whoami", "--token",
                     tokens[""], "--user", "ann")
        self.assertRegex(self.catalog("whoami", "--token", tokens[""]).out, "^token [0-9a-f]+ of ")

    def test_secrets_of_others_are_left_out(self):
        self.make_schema()
        self.catalog("create", "lake.own", "--provider", "hive")
        for path in "lake.hive", "lake.own":
            self.catalog("alter", path, "--set", "jdbc-password=x")
        privileges = [{"name": "use_catalog", "condition": "allow"}]
        lines = [{"type": "user", "names": ["lake", "bob"],
                  "entity": {"name": "bob", "roles": ["reader"]}},
                 {"type": "owner", "names": ["lake", "bob"],
                  "entity": {"fullName": "own", "type": "catalog", "ownerType": "user"}},
                 {"type": "role", "names": ["lake", "reader"],
                  "entity": {"name": "reader", "securableObjects": [
                      {"fullName": "hive", "type": "catalog", "privileges": privileges}]}}]
        self.catalog("import", stdin="\n".join(map(json.dumps, lines)).encode())

        def exported(*user):
            done = self.catalog("export", "lake", *user)
            return done, {line["names"][1]: line["entity"]["properties"].get("jdbc-password")
                          for line in done.lines if line["type"] == "catalog"}
        done, secrets = exported()
        self.assertEqual((done.err, secrets), ("", {"hive": "x", "own": "x"}))
        done, secrets = exported("--user", "bob")
        self.assertEqual(secrets, {"hive": None, "own": "x"})
        self.assertEqual(done.err, "trellis: lake.hive: left out, for only its owners see them: "
                                   "jdbc-password\n")
        self.use_new_keyspace()
        self.catalog("import", stdin=done.bytes)
        self.assertNotIn("jdbc-password", self.entity("lake.hive")["properties"])

    def test_metalakes_of_others(self):
        self.make_schema()
        lines = [{"type": "user", "names": ["lake", "ann"], "entity": {"name": "ann"}},
                 {"type": "owner", "names": ["lake", "ann"],
                  "entity": {"fullName": "lake", "type": "metalake", "ownerType": "user"}},
                 {"type": "catalog", "names": ["lake", "more"],
                  "entity": {"name": "more", "type": "model"}}]
        # Its owner is changed when all else is done.
        text = "\n".join(map(json.dumps, lines)).encode()
        self.assertEqual(self.catalog("import", stdin=text).out, "2 entities imported\n")
        self.refused("not authorized", "create", "lake.another", "--kind", "model")


class Transfer(CatalogCommandTest):
    def without_times(self, lines):
        for line in lines:
            line["entity"].pop("audit", None)
        return lines

    def test_export_and_import(self):
        self.make_all()
        self.catalog("create", "empty")
        self.catalog("create", "lake.off", "--kind", "model")
        self.catalog("alter", "lake.off", "--disable")
        exported = self.catalog("export")
        self.assertIn("lake.off: disabled", exported.err)
        file = self.folder / "all.jsonl"
        done = self.catalog("export", "--file", file)
        self.assertEqual(done.out, "17 entities exported\n")
        self.assertEqual(file.read_bytes(), exported.bytes)
        self.assertEqual(list(self.folder.iterdir()), [file])
        part = self.catalog("export", "lake.hive.sales.orders").lines
        self.assertEqual([line["names"] for line in part], [["lake", "hive", "sales", "orders"]])
        self.use_new_keyspace()
        self.assertEqual(self.catalog("import", "--file", file).out, "17 entities imported\n")
        self.assertEqual(self.without_times(self.catalog("export").lines),
                         self.without_times(exported.lines))
        again = self.catalog("import", "--threads", "1", stdin=exported.bytes)
        self.assertEqual(again.out, "0 entities imported; 17 were there and stay as they are\n")
        self.assertEqual(self.catalog("import", "--file", file, "--json").json,
                         {"imported": 0, "existed": 17})

    def test_versions_and_partitions(self):
        self.make_all()
        model = ["lake", "minds", "sales", "brain"]
        table = ["lake", "hive", "sales", "orders"]
        partition = {"type": "identity", "name": "p", "fieldNames": [["day"]], "values": [
            {"type": "literal", "dataType": "date", "value": "2026-01-01"}]}
        lines = [{"type": "model_version", "names": model,
                  "entity": {"uris": {"unknown": "s3://m"}, "aliases": ["first"]}},
                 {"type": "partition", "names": table, "entity": partition}]
        text = "\n".join(map(json.dumps, lines)).encode()
        self.assertEqual(self.catalog("import", stdin=text).out, "2 entities imported\n")
        exported = self.catalog("export")
        self.use_new_keyspace()
        self.assertEqual(self.catalog("import", stdin=exported.bytes).out,
                         "17 entities imported\n")
        self.assertEqual(self.without_times(self.catalog("export").lines),
                         self.without_times(exported.lines))
        # Nothing is linked twice.
        self.catalog("import", stdin=exported.bytes)
        self.assertEqual(self.entity("lake.minds.sales.brain")["latestVersion"], 1)

    def test_an_import_that_is_repeated_loses_no_versions(self):
        self.make_all()
        model = ["lake", "minds", "sales", "brain"]
        lines = [{"type": "model", "names": model, "entity": {"name": "brain"}},
                 *({"type": "model_version", "names": model,
                    "entity": {"uris": {"unknown": f"s3://{n // 2}"},
                               "aliases": [f"a{n}"] * (n % 2)}}
                   for n in range(4)),
                 {"type": "model_version", "names": model, "entity": {"uri": "s3://last"}}]
        text = [json.dumps(line) for line in lines]
        self.catalog("import", stdin="\n".join(text[:3]).encode())
        self.refused("line 4", "import", stdin="\n".join([*text[:3], "nonsense"]).encode())
        for _ in range(2):
            self.catalog("import", stdin="\n".join(text).encode())
            found = [line["entity"] for line in self.catalog("export").lines
                     if line["type"] == "model_version"]
            self.assertEqual([(one["uris"], one["aliases"]) for one in found],
                             [({"unknown": "s3://0"}, []), ({"unknown": "s3://0"}, ["a1"]),
                              ({"unknown": "s3://1"}, []), ({"unknown": "s3://1"}, ["a3"]),
                              ({"unknown": "s3://last"}, [])])

    def test_properties_and_statistics(self):
        self.make_all()
        table = ["lake", "hive", "sales", "orders"]
        lines = [{"type": "statistics", "names": table,
                  "entity": {"statistics": {"custom-n": 1, "custom-r": 100.0,
                                            "custom-t": {"a": [1, 1.5]}}}},
                 {"type": "statistics", "names": table,
                  "entity": {"partitionName": "p", "statistics": {"custom-n": "x"}}}]
        # Only metalakes and catalogs can be disabled.
        schema = {"type": "schema", "names": ["lake", "hive", "odd"],
                  "entity": {"name": "odd", "properties": {"in-use": "false"}}}
        inside = {"type": "table", "names": ["lake", "hive", "odd", "t"],
                  "entity": {"name": "t", "columns": [{"name": "id", "type": "long"}],
                             "properties": {"in-use": "false"}}}
        text = "\n".join(map(json.dumps, [*lines, schema, inside])).encode()
        self.assertEqual(self.catalog("import", stdin=text).out, "2 entities imported\n")
        exported = self.catalog("export")
        self.assertEqual([line for line in exported.lines if line["type"] == "statistics"], lines)
        self.assertEqual(exported.err, "")
        self.use_new_keyspace()
        self.catalog("import", stdin=exported.bytes)
        again = self.catalog("export")
        self.assertEqual(self.without_times(again.lines), self.without_times(exported.lines))
        self.assertIn('"custom-r":100.0,"custom-t":{"a":[1,1.5]}', again.out)
        self.assertEqual(self.entity("lake.hive.odd.t")["properties"], {"in-use": "false"})

    def test_users_where_there_are_none(self):
        self.make_all()
        lines = [{"type": "user", "names": ["lake", "ann"], "entity": {"name": "ann"}},
                 {"type": "role", "names": ["lake", "r"], "entity": {"name": "r"}}]
        done = self.catalog("import", stdin="\n".join(map(json.dumps, lines)).encode())
        self.assertEqual(done.out, "0 entities imported\n")
        self.assertEqual(done.err.count("authorization is off"), 1)

    def test_labels(self):
        self.make_all()
        content = {"customRules": {}, "supportedObjectTypes": ["catalog"]}
        lines = [{"type": "tag", "names": ["lake", "pii"], "entity": {"name": "pii"}},
                 {"type": "tag", "names": ["lake", "region"], "entity": {"name": "region"}},
                 {"type": "policy", "names": ["lake", "keep"],
                  "entity": {"name": "keep", "policyType": "custom", "content": content}},
                 *self.relations()]
        text = "\n".join(map(json.dumps, lines)).encode()
        self.assertEqual(self.catalog("import", stdin=text).out, "7 entities imported\n")
        exported = self.catalog("export")
        behind = [line for line in exported.lines if "_object" in line["type"]]
        self.assertEqual(behind, self.relations())
        self.use_new_keyspace()
        self.catalog("import", stdin=exported.bytes)
        self.assertEqual(self.without_times(self.catalog("export").lines),
                         self.without_times(exported.lines))
        again = self.catalog("import", "--json", stdin=exported.bytes).json
        self.assertEqual(again["imported"], 1)  # values may be there already: it is not told

    @staticmethod
    def relations():
        return [{"type": "tag_object", "names": ["lake", "pii"],
                 "entity": {"fullName": "hive.sales.orders.id", "type": "column"}},
                {"type": "tag_object", "names": ["lake", "pii"],
                 "entity": {"fullName": "hive.sales.prices", "type": "table"}},
                {"type": "tag_object", "names": ["lake", "region"],
                 "entity": {"fullName": "hive", "type": "catalog", "values": ["eu", "us"]}},
                {"type": "policy_object", "names": ["lake", "keep"],
                 "entity": {"fullName": "hive", "type": "catalog"}}]

    def test_bad_lines(self):
        good = b'{"type":"metalake","names":["lake"],"entity":{"name":"lake"}}\n'
        for bad, message in ((b"nonsense", "line 2: it is no JSON object"),
                             (b'{"type":"lake","names":["x"]}', "line 2: there is no type"),
                             (b'{"type":"table","names":["x"]}', "line 2: a table has another")):
            self.refused(message, "import", stdin=good + bad)
        self.assertEqual(self.names(), ["lake"])
        self.refused("catalog", "import",
                     stdin=b'{"type":"catalog","names":["lake","c"],"entity":{"name":"c"}}')
        self.refused("none", "import", "--file", self.folder / "none")
        self.assertEqual(self.catalog("import", stdin=b"\n\n").out, "0 entities imported\n")


class FakeGravitino(http.server.ThreadingHTTPServer):
    """Knows no details of lists but of catalogs', and no pages."""

    answers = {
        "/api/metalakes": {"metalakes": [
            {"name": "lake", "comment": "c", "properties": {"in-use": "true"}, "audit": AUDIT}]},
        "/api/metalakes/lake/tags": {"tags": [{"name": "pii", "audit": AUDIT}]},
        "/api/metalakes/lake/catalogs": {"catalogs": [
            {"name": "hive", "type": "relational", "provider": "hive", "audit": AUDIT,
             "properties": {"in-use": "true", "gravitino.identifier": "x"}},
            {"name": "files", "type": "fileset", "provider": "hadoop", "audit": AUDIT,
             "properties": {"in-use": "true"}}]},
        "/api/metalakes/lake/catalogs/hive": {"catalog": {
            "name": "hive", "type": "relational", "provider": "hive", "audit": AUDIT}},
        "/api/metalakes/lake/catalogs/hive/schemas": {"identifiers": [
            {"namespace": ["lake", "hive"], "name": "a/b"}]},
        "/api/metalakes/lake/catalogs/hive/schemas/a%2Fb": {"schema": {
            "name": "a/b", "audit": AUDIT}},
        "/api/metalakes/lake/catalogs/hive/schemas/a%2Fb/tables": {"identifiers": [
            {"namespace": ["lake", "hive", "a/b"], "name": "t"}]},
        "/api/metalakes/lake/catalogs/hive/schemas/a%2Fb/tables/t": {"table": {
            "name": "t", "columns": [{"name": "id", "type": "long", "nullable": True}],
            "partitioning": [], "distribution": {"strategy": "none", "number": 0, "funcArgs": []},
            "audit": AUDIT}},
        "/api/metalakes/lake/catalogs/files/schemas": {"identifiers": [
            {"namespace": ["lake", "files"], "name": "s"}]},
        "/api/metalakes/lake/catalogs/files/schemas/s": {"schema": {"name": "s", "audit": AUDIT}},
        "/api/metalakes/lake/catalogs/files/schemas/s/filesets": {"identifiers": [
            {"namespace": ["lake", "files", "s"], "name": "f"}]},
        "/api/metalakes/lake/catalogs/files/schemas/s/filesets/f": {"fileset": {
            "name": "f", "type": "managed", "storageLocation": "s3://f",
            "storageLocations": {"unknown": "s3://f"},
            "properties": {"default-location-name": "unknown"}, "audit": AUDIT}},
    }

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            self.server.users.add(self.headers["Authorization"])
            answer = self.server.answers.get(self.path.split("?")[0])
            if answer == "broken":
                status, body = 500, {"code": 1002, "type": "RuntimeException", "message": "broken"}
            elif answer:
                status, body = 200, {"code": 0, **answer}
            else:
                status, body = 404, {"code": 1003, "type": "NotFoundException",
                                     "message": "nothing there"}
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    def __init__(self):
        super().__init__(("127.0.0.1", 0), self.Handler)
        self.answers = copy.deepcopy(self.answers)
        self.users = set()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class FromGravitino(CatalogCommandTest):
    def setUp(self):
        super().setUp()
        self.gravitino = FakeGravitino()
        self.addCleanup(self.gravitino.server_close)
        self.addCleanup(self.gravitino.shutdown)

    def test_everything(self):
        # Tags are there as soon as the server has them.
        done = self.catalog("import", "--from", self.gravitino.url, "--from-user", "ann")
        self.assertRegex(done.out, r"^\d entities imported\n$")
        self.assertEqual(self.gravitino.users, {"Basic YW5uOmR1bW15"})
        self.assertEqual(self.names("lake"), ["files", "hive"])
        self.assertEqual(self.entity("lake.hive.a/b.t")["columns"][0]["name"], "id")
        self.assertEqual(self.entity("lake.files.s.f")["storageLocations"], {"unknown": "s3://f"})
        self.assertEqual(self.entity("lake")["comment"], "c")

    def test_secrets_that_it_hides_are_left_out(self):
        self.gravitino.answers["/api/metalakes/lake/catalogs"]["catalogs"][0]["properties"].update(
            {"jdbc-user": "******", "jdbc-password": "******", "uri": "thrift://h"})
        done = self.catalog("import", "--from", self.gravitino.url)
        self.assertEqual(done.err, "trellis: lake.hive: left out, for only its owners see them: "
                                   "jdbc-user, jdbc-password\n")
        properties = self.entity("lake.hive")["properties"]
        self.assertEqual(properties["uri"], "thrift://h")
        self.assertFalse({"jdbc-user", "jdbc-password"} & set(properties))

    def test_what_cannot_be_imported_is_told(self):
        lake = "/api/metalakes/lake"
        views = lake + "/catalogs/hive/schemas/a%2Fb/views"
        view = {"name": "v", "columns": [], "representations": [], "audit": AUDIT}
        object_ = {"metadataObjects": [{"fullName": "hive.none", "type": "schema"}]}
        assigned = f"{lake}/objects/schema/hive.none/tags/pii"
        for more, message in (
                ({views: {"views": [view]}}, "representations"),
                ({lake + "/catalogs/hive/schemas/a%2Fb/functions": "broken"}, "broken"),
                ({lake + "/tags/pii/objects": object_, assigned: {"tag": {"name": "pii"}}},
                 "hive.none"),
                ({lake + "/tags/pii/objects": "broken"}, "broken"),
                ({lake + "/users": "broken"}, "broken")):
            self.use_new_keyspace()
            before = dict(self.gravitino.answers)
            self.gravitino.answers.update(more)
            self.refused(message, "import", "--from", self.gravitino.url)
            self.gravitino.answers.clear()
            self.gravitino.answers.update(before)

    def test_a_part(self):
        self.refused("lake", "import", "--from", self.gravitino.url, "--path", "lake.hive.a/b.t")
        self.catalog("create", "lake")
        self.catalog("create", "lake.hive", "--provider", "hive")
        self.catalog("create", "lake.hive.a/b")
        done = self.catalog("import", "--from", self.gravitino.url, "--path", "lake.hive.a/b.t")
        self.assertEqual(done.out, "1 entities imported\n")
        self.refused("nothing there", "import", "--from", self.gravitino.url, "--path", "none")
        self.wrong("http", "import", "--from", "nowhere")


if __name__ == "__main__":
    unittest.main()
