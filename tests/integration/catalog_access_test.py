"""Tags, policies, users, groups, roles, permissions and owners of the catalog through a running
server, and what authorization makes of them."""

import unittest

from catalog_http import COLUMNS, CatalogTest, basic, path, update
from trellis_http import V1, in_parallel

V2 = "application/vnd.gravitino.v2+json"


def privilege(name, condition="allow"):
    return {"name": name, "condition": condition}


class Labels(CatalogTest):
    def setUp(self):
        super().setUp()
        self.schema = self.make_schema()
        self.make_table(self.schema)
        self.lake_path = path(self.lake)

    def tag(self, name, **more):
        return self.ok(self.api.post(self.lake_path + "/tags", {"name": name, **more}))["tag"]

    def objects(self, kind, full_name, what="tags"):
        return f"{self.lake_path}/objects/{kind}/{full_name}/{what}"

    def associate(self, kind, full_name, add=(), remove=(), **headers):
        body = {"tagsToAdd": list(add), "tagsToRemove": list(remove)}
        return self.api.post(self.objects(kind, full_name), body, **headers)

    def test_tags_are_entities(self):
        made = self.tag("pii", comment="private", properties={"k": "v"})
        self.check_audit(made)
        self.assertEqual((made["name"], made["comment"], made["properties"]),
                         ("pii", "private", {"k": "v"}))
        self.assertNotIn("inherited", made)
        self.fails(self.api.post(self.lake_path + "/tags", {"name": "pii"}), 409, 1004,
                   "TagAlreadyExistsException")
        self.tag("b")
        self.assertEqual(self.ok(self.api.get(self.lake_path + "/tags"))["names"], ["b", "pii"])
        full = self.ok(self.api.get(self.lake_path + "/tags?details=true"))["tags"]
        self.assertEqual([one["name"] for one in full], ["b", "pii"])
        answer = self.alter(self.lake_path + "/tags/pii", update("rename", newName="secret"))
        self.assertEqual(self.ok(answer)["tag"]["name"], "secret")
        self.fails(self.api.get(self.lake_path + "/tags/pii"), 404, 1003, "NoSuchTagException")
        self.assertTrue(self.ok(self.api.delete(self.lake_path + "/tags/secret"))["dropped"])
        self.assertFalse(self.ok(self.api.delete(self.lake_path + "/tags/secret"))["dropped"])

    def test_tags_of_things(self):
        for name in ("a", "b", "c"):
            self.tag(name)
        self.assertEqual(self.ok(self.associate("catalog", "cat", ["a", "b"]))["names"], ["a", "b"])
        self.assertEqual(self.ok(self.associate("TABLE", "cat.sch.tab", ["b", "c"]))["names"],
                         ["b", "c"])
        self.ok(self.associate("column", "cat.sch.tab.city", ["a"]))
        listed = self.ok(self.api.get(self.objects("table", "cat.sch.tab") + "?details=true"))
        self.assertEqual([(tag["name"], tag["inherited"]) for tag in listed["tags"]],
                         [("b", False), ("c", False), ("a", True)])
        self.assertEqual(self.ok(self.api.get(self.objects("schema", "cat.sch")))["names"],
                         ["a", "b"])
        one = self.ok(self.api.get(self.objects("schema", "cat.sch") + "/a"))["tag"]
        self.assertEqual((one["name"], one["inherited"]), ("a", True))
        self.fails(self.api.get(self.objects("schema", "cat.sch") + "/c"), 404, 1003,
                   "NoSuchTagException")
        found = self.ok(self.api.get(self.lake_path + "/tags/a/objects"))["metadataObjects"]
        self.assertEqual(sorted((one["type"], one["fullName"]) for one in found),
                         [("catalog", "cat"), ("column", "cat.sch.tab.city")])
        old = self.lake_path + "/tags/schema/cat.sch"
        self.assertEqual(self.ok(self.api.get(old))["names"], ["a", "b"])
        self.assertEqual(self.ok(self.api.get(old + "/a"))["tag"]["inherited"], True)
        self.fails(self.associate("catalog", "cat", ["a"]), 409, 1004,
                   "TagAlreadyAssociatedException")
        self.assertEqual(self.ok(self.associate("catalog", "cat", ["c"], ["a", "none"]))["names"],
                         ["b", "c"])
        self.fails(self.associate("table", "cat.sch.none", ["a"]), 404, 1003,
                   "NoSuchMetadataObjectException")
        self.fails(self.associate("fleet", "cat", ["a"]), 400, 1001, "IllegalArgumentException")
        self.fails(self.api.post(self.objects("catalog", "cat"), {}), 400, 1001,
                   "IllegalArgumentException")
        self.fails(self.api.get(path("nolake") + "/objects/catalog/cat/tags"), 404, 1003,
                   "NoSuchMetalakeException")

    def test_values_of_tags(self):
        self.tag("region", allowedValues=["eu", "us"])
        api = self.connect(Accept=V2, Content_Type=V2)
        target = self.objects("schema", "cat.sch")
        pair = {"name": "region", "value": "eu"}
        self.assertEqual(api.post(target, {"tagsToAdd": [pair]}).json["names"], ["region"])
        self.assertEqual(api.post(target, {"tagsToAdd": [pair]}).status, 200)
        tags = self.ok(self.api.get(target + "?details=true"))["tags"]
        self.assertEqual(tags[0]["assignmentValues"], ["eu"])
        self.assertEqual(tags[0]["allowedValues"], ["eu", "us"])
        bad = api.post(target, {"tagsToAdd": [{"name": "region", "value": "mars"}]})
        self.assertEqual((bad.status, bad.json["code"]), (400, 1001))
        objects = self.lake_path + "/tags/region/objects"
        self.assertEqual(len(self.ok(self.api.get(objects + "?value=eu"))["metadataObjects"]), 1)
        self.assertEqual(self.ok(self.api.get(objects + "?value=us"))["metadataObjects"], [])

    def test_policies(self):
        body = {"name": "keep", "policyType": "custom", "enabled": True,
                "content": {"customRules": {"days": 3}, "properties": {},
                            "supportedObjectTypes": ["CATALOG", "TABLE"]}}
        made = self.ok(self.api.post(self.lake_path + "/policies", body))["policy"]
        self.assertTrue(made["enabled"])
        self.assertEqual(self.ok(self.api.get(self.lake_path + "/policies"))["names"], ["keep"])
        self.ok(self.api.patch(self.lake_path + "/policies/keep", {"enable": False}))
        policy = self.ok(self.api.get(self.lake_path + "/policies/keep"))["policy"]
        self.assertFalse(policy["enabled"])
        target = self.objects("catalog", "cat", "policies")
        self.assertEqual(self.ok(self.api.post(target, {"policiesToAdd": ["keep"]}))["names"],
                         ["keep"])
        self.fails(self.api.post(target, {"policiesToAdd": ["keep"]}), 409, 1004,
                   "PolicyAlreadyAssociatedException")
        answer = self.api.post(self.objects("schema", "cat.sch", "policies"),
                               {"policiesToAdd": ["keep"]})
        self.fails(answer, 400, 1001, "IllegalArgumentException")
        seen = self.ok(self.api.get(self.objects("table", "cat.sch.tab", "policies") +
                                    "?details=true"))["policies"]
        self.assertEqual([(one["name"], one["inherited"]) for one in seen], [("keep", True)])
        found = self.ok(self.api.get(self.lake_path + "/policies/keep/objects"))["metadataObjects"]
        self.assertEqual(found, [{"fullName": "cat", "type": "catalog"}])

    def test_numbers_have_an_end(self):
        policy = (b'{"name":"keep","policyType":"custom","content":{"customRules":{"days":%s},'
                  b'"supportedObjectTypes":["TABLE"]}}')
        statistics = self.objects("table", "cat.sch.tab", "statistics")
        for number in b"1e999", b"-1E400":
            self.fails(self.api.post(self.lake_path + "/policies", policy % number), 400, 1001,
                       "IllegalArgumentException", "too large")
            self.fails(self.api.put(statistics, b'{"updates":{"custom-n":[%s]}}' % number), 400,
                       1001, "IllegalArgumentException", "too large")
        self.ok(self.api.post(self.lake_path + "/policies", policy % b"1e308"))

    def test_without_authorization_there_are_no_users(self):
        for method, target, body in (
                ("get", "/users", None), ("post", "/groups", {"name": "g"}),
                ("get", "/roles/r", None), ("get", "/owners/catalog/cat", None),
                ("put", "/permissions/users/u/grant", {"roleNames": ["r"]}),
                ("get", "/objects/catalog/cat/roles", None)):
            call = getattr(self.api, method)
            answer = call(self.lake_path + target, body) if body else call(self.lake_path + target)
            self.fails(answer, 405, 1006, "UnsupportedOperationException")
        self.assertFalse(self.api.get("/configs").json["gravitino.authorization.enable"])


class Authorized(CatalogTest):
    arguments = ("--catalog-authorization", "on")

    def setUp(self):
        super().setUp()
        self.schema = self.make_schema()
        self.make_table(self.schema)
        self.lake_path = path(self.lake)
        self.bob = self.connect(Authorization=basic("bob"))

    def add_bob(self, *objects):
        self.ok(self.api.post(self.lake_path + "/users", {"name": "bob"}))
        role = {"name": "reader", "properties": {}, "securableObjects": list(objects)}
        self.ok(self.api.post(self.lake_path + "/roles", role))
        self.ok(self.api.put(self.lake_path + "/permissions/users/bob/grant",
                             {"roleNames": ["reader"]}))

    def grant(self, kind, full_name, *privileges, what="grant"):
        target = f"{self.lake_path}/permissions/roles/reader/{kind}/{full_name}/{what}"
        return self.api.put(target, {"privileges": list(privileges)})

    def forbidden(self, answer):
        self.fails(answer, 403, 1008, "ForbiddenException")

    def test_users_and_groups(self):
        for words, word in (("users", "user"), ("groups", "group")):
            target = f"{self.lake_path}/{words}"
            made = self.ok(self.api.post(target, {"name": "zoe"}))[word]
            self.assertEqual((made["name"], made["roles"]), ("zoe", []))
            self.check_audit(made)
            self.fails(self.api.post(target, {"name": "zoe"}), 409, 1004,
                       f"{word.capitalize()}AlreadyExistsException")
            self.assertIn("zoe", self.ok(self.api.get(target))["names"])
            full = self.ok(self.api.get(target + "?details=true"))[words]
            self.assertIn("zoe", [one["name"] for one in full])
            self.assertEqual(self.ok(self.api.get(target + "/zoe"))[word]["name"], "zoe")
            self.fails(self.api.get(target + "/nobody"), 404, 1003,
                       f"NoSuch{word.capitalize()}Exception")
            self.assertTrue(self.ok(self.api.delete(target + "/zoe"))["removed"])
            self.assertFalse(self.ok(self.api.delete(target + "/zoe"))["removed"])
        self.assertEqual(self.ok(self.api.get(self.lake_path + "/users"))["names"], ["anonymous"],
                         "who made it is its first user")

    def test_roles(self):
        target = self.lake_path + "/roles"
        made = self.ok(self.api.post(target, {
            "name": "r", "properties": {"k": "v"},
            "securableObjects": [{"fullName": "cat.sch", "type": "SCHEMA",
                                  "privileges": [privilege("USE_SCHEMA", "ALLOW")]}]}))["role"]
        self.assertEqual(made["securableObjects"],
                         [{"fullName": "cat.sch", "type": "schema",
                           "privileges": [privilege("use_schema")]}])
        self.assertEqual(made["properties"], {"k": "v"})
        self.assertEqual(self.ok(self.api.get(target))["names"], ["r"])
        self.fails(self.api.post(target, {"name": "r"}), 409, 1004, "RoleAlreadyExistsException")
        self.fails(self.api.get(target + "/none"), 404, 1003, "NoSuchRoleException")

        def with_object(kind, name, *privileges):
            return self.api.post(target, {"name": "x", "securableObjects": [
                {"fullName": name, "type": kind, "privileges": list(privileges)}]})
        self.fails(with_object("catalog", "none", privilege("use_catalog")), 400, 1001,
                   "IllegalMetadataObjectException")
        self.fails(with_object("table", "cat.sch.tab", privilege("use_catalog")), 400, 1001,
                   "IllegalPrivilegeException")
        self.fails(with_object("catalog", "cat", privilege("read_fileset")), 400, 1001,
                   "IllegalPrivilegeException")
        self.fails(with_object("catalog", "cat", privilege("use_catalog"),
                               privilege("use_catalog", "deny")), 400, 1001,
                   "IllegalPrivilegeException")
        self.fails(with_object("catalog", "cat", privilege("fly")), 400, 1001,
                   "IllegalArgumentException")
        roles = self.lake_path + "/objects/schema/cat.sch/roles"
        self.assertEqual(self.ok(self.api.get(roles))["names"], ["r"])
        answer = self.ok(self.api.delete(target + "/r"))
        self.assertEqual((answer["dropped"], answer["deleted"]), (True, True))
        self.assertEqual(self.ok(self.api.get(roles))["names"], [])

    def test_secrets_are_the_owners(self):
        secrets = {"jdbc-password": "x", "s3-secret-access-key": "x", "Rest.Credential": "x",
                   "gravitino.bypass.fs.s3a.secret.key": "x"}
        others = {"jdbc-user": "u", "credential-providers": "s3-token", "in-use": "true"}
        target = path(self.lake, "cat")
        self.ok(self.alter(target, *(update("setProperty", property=name, value=value)
                                     for name, value in {**secrets, **others}.items()
                                     if name != "in-use")))
        whole = {**secrets, **others}
        hidden = {**dict.fromkeys(secrets, "******"), **others}
        self.add_bob({"fullName": "cat", "type": "catalog",
                      "privileges": [privilege("use_catalog")]})
        full_list = path(self.lake, None) + "?details=true"

        def shown(api):
            [listed] = self.ok(api.get(full_list))["catalogs"]
            return [properties.items() & whole.items() | properties.items() & hidden.items()
                    for properties in (self.ok(api.get(target))["catalog"]["properties"],
                                       listed["properties"])]

        self.assertEqual(shown(self.api), [whole.items(), whole.items()])
        self.assertEqual(shown(self.bob), [hidden.items(), hidden.items()])
        # What is hidden has no ETag: that of the whole does not mean it, nor the other way round.
        tag = self.api.get(target).headers["ETag"]
        self.assertEqual(self.api.get(target, If_None_Match=tag).status, 304)
        for known in tag, "*":
            answer = self.bob.get(target, If_None_Match=known)
            self.assertEqual(self.ok(answer)["catalog"]["properties"]["jdbc-password"], "******")
            self.assertIsNone(answer.headers["ETag"])
        self.ok(self.api.put(f"{self.lake_path}/owners/catalog/cat",
                             {"name": "bob", "type": "user"}))
        self.assertEqual(shown(self.bob), [whole.items(), whole.items()])
        self.assertEqual(self.bob.get(target, If_None_Match=tag).status, 304)
        # Another that takes its name has another owner.
        self.ok(self.alter(target, update("rename", newName="moved")))
        self.ok(self.api.post(path(self.lake, None), {
            "name": "cat", "type": "relational", "provider": "hive", "properties": secrets}))
        self.ok(self.grant("catalog", "cat", privilege("use_catalog")))
        properties = self.ok(self.bob.get(target))["catalog"]["properties"]
        self.assertLessEqual(dict.fromkeys(secrets, "******").items(), properties.items())

    def test_what_is_shown_in_place_of_secrets_is_none(self):
        target = path(self.lake, "cat")
        mask = update("setProperty", property="jdbc-password", value="******")
        said = "jdbc-password", "******"
        for answer in (self.alter(target, mask),
                       self.api.post(path(self.lake, None), {
                           "name": "new", "type": "relational", "provider": "hive",
                           "properties": {"jdbc-password": "******"}})):
            self.fails(answer, 400, 1001, "IllegalArgumentException", *said)
        self.ok(self.alter(target, update("setProperty", property="stars", value="******")))
        # Those of all else are shown as they are.
        self.ok(self.alter(path(*self.schema), mask))
        schema = self.ok(self.api.get(path(*self.schema)))["schema"]
        self.assertEqual(schema["properties"]["jdbc-password"], "******")

    def test_permissions(self):
        self.add_bob()
        self.fails(self.api.put(self.lake_path + "/permissions/users/bob/grant",
                                {"roleNames": ["none"]}), 400, 1001, "IllegalRoleException")
        self.fails(self.api.put(self.lake_path + "/permissions/users/nobody/grant",
                                {"roleNames": ["reader"]}), 404, 1003, "NoSuchUserException")
        role = self.ok(self.grant("table", "cat.sch.tab", privilege("select_table"),
                                  privilege("modify_table", "deny")))["role"]
        self.assertEqual(role["securableObjects"][0]["privileges"],
                         [privilege("select_table"), privilege("modify_table", "deny")])
        self.fails(self.grant("table", "cat.sch.tab", privilege("select_table", "deny")), 400, 1001,
                   "IllegalPrivilegeException")
        self.fails(self.grant("table", "cat.sch.none", privilege("select_table")), 404, 1003,
                   "NoSuchMetadataObjectException")
        role = self.ok(self.grant("table", "cat.sch.tab", privilege("select_table"),
                                  privilege("modify_table", "deny"), what="revoke"))["role"]
        self.assertEqual(role["securableObjects"], [])
        self.ok(self.grant("catalog", "cat", privilege("use_catalog")))
        role = self.ok(self.api.put(self.lake_path + "/permissions/roles/reader", {"overrides": [
            {"fullName": self.lake, "type": "metalake",
             "privileges": [privilege("create_tag")]}]}))["role"]
        self.assertEqual(role["securableObjects"],
                         [{"fullName": self.lake, "type": "metalake",
                           "privileges": [privilege("create_tag")]}])
        user = self.ok(self.api.put(self.lake_path + "/permissions/users/bob/revoke",
                                    {"roleNames": ["reader"]}))["user"]
        self.assertEqual(user["roles"], [])

    def test_owners(self):
        self.add_bob()
        target = self.lake_path + "/owners/table/cat.sch.tab"
        self.assertEqual(self.ok(self.api.get(target))["owner"],
                         {"name": "anonymous", "type": "user"})
        self.assertTrue(self.ok(self.api.put(target, {"name": "bob", "type": "USER"}))["set"])
        self.assertEqual(self.ok(self.api.get(target))["owner"], {"name": "bob", "type": "user"})
        self.fails(self.api.put(target, {"name": "eve", "type": "user"}), 404, 1003,
                   "NoSuchUserException")
        self.fails(self.api.get(self.lake_path + "/owners/table/cat.sch.none"), 404, 1003,
                   "NoSuchMetadataObjectException")
        self.ok(self.api.delete(self.lake_path + "/users/bob"))
        self.assertNotIn("owner", self.ok(self.api.get(target)))

    def test_the_owner_of_a_metalake_stays(self):
        self.fails(self.api.delete(self.lake_path + "/users/anonymous"), 400, 1001,
                   "IllegalArgumentException", "owner")
        self.add_bob()
        owner = f"{self.lake_path}/owners/metalake/{self.lake}"
        self.ok(self.api.put(owner, {"name": "bob", "type": "user"}))
        self.fails(self.bob.delete(self.lake_path + "/users/bob"), 400, 1001,
                   "IllegalArgumentException", "owner")
        self.assertTrue(self.ok(self.bob.delete(self.lake_path + "/users/anonymous"))["removed"])
        self.assertEqual(self.ok(self.bob.get(owner))["owner"], {"name": "bob", "type": "user"})

    def test_strangers_see_nothing(self):
        for target in ("", "/catalogs", "/catalogs/cat", "/users", "/tags", "/search?name=t"):
            self.forbidden(self.bob.get(self.lake_path + target))
        self.assertNotIn(self.lake, [one["name"] for one in
                                     self.ok(self.bob.get("/api/metalakes"))["metalakes"]])
        self.assertIn(self.lake, [one["name"] for one in
                                  self.ok(self.api.get("/api/metalakes"))["metalakes"]])
        self.forbidden(self.bob.delete(self.lake_path + "?force=true"))
        self.fails(self.bob.get(path("nolake")), 404, 1003, "NoSuchMetalakeException")

    def test_messages_name_what_they_are_about(self):
        table = f"{self.lake_path}/objects/table/cat.sch.tab"
        for target, words in (
                (f"{table}/tags/nope", "tag(s) [nope] operation [GET] under object [cat.sch.tab]"),
                (f"{table}/policies/nope", "[nope] operation [GET] under object [cat.sch.tab]"),
                (f"{self.lake_path}/tags/table/cat.sch.tab/nope", "under object [cat.sch.tab]"),
                (f"{self.lake_path}/objects/table/cat.sch.none/tags",
                 "tag(s) operation [LIST] under object [cat.sch.none]"),
                (f"{self.lake_path}/owners/table/cat.sch.none",
                 f"owner [cat.sch.none] operation [GET] under metalake [{self.lake}]")):
            answer = self.api.get(target)
            self.assertEqual(answer.status, 404, answer)
            self.assertIn(words, answer.json["message"])

        def refused(answer, operation, what):
            self.fails(answer, 403, 1008, "ForbiddenException", "User 'bob' is not authorized to "
                       f"perform operation '{operation}' on '{what}'")
        schema = path(*self.schema)
        new = {"name": "new", "type": "relational"}
        refused(self.bob.get(self.lake_path + "/catalogs"), "LIST", self.lake)
        refused(self.bob.post(self.lake_path + "/catalogs", new), "CREATE", self.lake)
        refused(self.bob.post(self.lake_path + "/catalogs/testConnection", new), "CREATE",
                self.lake)
        refused(self.bob.get(schema + "/tables"), "LIST", "sch")
        refused(self.bob.get(schema + "/tables/tab"), "LOAD", "tab")
        refused(self.bob.get(schema + "/tables/tab/partitions"), "LIST", "tab")
        refused(self.bob.post(schema + "/tables:batchGet", {"names": ["tab"]}), "LOAD", "sch")
        refused(self.bob.get(table + "/tags/nope"), "GET", "cat.sch.tab")
        refused(self.bob.get(table + "/credentials"), "LOAD", "cat.sch.tab")
        refused(self.bob.get(f"{self.lake_path}/owners/table/cat.sch.tab"), "GET", "cat.sch.tab")

    def test_who_brings_things_back(self):
        """The owner of what they stood in: that of the thing itself is none any more."""
        self.add_bob({"fullName": "cat.sch", "type": "schema", "privileges": [
            privilege("create_table"), privilege("use_schema")]})
        self.ok(self.grant("catalog", "cat", privilege("use_catalog")))
        tables = path(*self.schema) + "/tables"
        self.ok(self.bob.post(tables, {"name": "his", "columns": COLUMNS}))
        self.ok(self.bob.delete(tables + "/his"))
        self.forbidden(self.bob.get(tables + "?dropped=true"))
        self.forbidden(self.bob.post(tables + "/his/undelete"))
        owner = {"name": "bob", "type": "user"}
        self.ok(self.api.put(self.lake_path + "/owners/schema/cat.sch", owner))
        self.assertEqual(len(self.ok(self.bob.get(tables + "?dropped=true"))["dropped"]), 1)
        self.ok(self.bob.post(tables + "/his/undelete"))

    def test_privileges(self):
        self.add_bob()
        self.ok(self.bob.get(self.lake_path))
        table = path(*self.schema) + "/tables/tab"
        self.assertEqual(self.ok(self.bob.get(self.lake_path + "/catalogs"))["identifiers"], [])
        self.forbidden(self.bob.get(table))
        self.ok(self.grant("catalog", "cat", privilege("use_catalog"), privilege("use_schema")))
        self.forbidden(self.bob.get(table))
        tables = path(*self.schema) + "/tables"
        self.assertEqual(self.ok(self.bob.get(tables))["identifiers"], [])
        self.ok(self.grant("table", "cat.sch.tab", privilege("select_table")))
        self.ok(self.bob.get(table))
        self.ok(self.bob.get(table + "?privileges=SELECT_TABLE"))
        self.forbidden(self.bob.get(table + "?privileges=select_table,MODIFY_TABLE"))
        self.assertEqual(len(self.ok(self.bob.get(tables))["identifiers"]), 1)
        change = {"updates": [update("updateComment", newComment="x")]}
        self.forbidden(self.bob.put(table, change))
        self.forbidden(self.bob.delete(table))
        self.ok(self.grant("schema", "cat.sch", privilege("modify_table"),
                           privilege("create_table")))
        self.ok(self.bob.put(table, change))
        self.ok(self.bob.get(table + "?privileges=modify_table"))
        self.forbidden(self.bob.delete(table))
        self.ok(self.bob.post(tables, {"name": "own", "columns": COLUMNS}))
        owned = self.ok(self.api.get(self.lake_path + "/owners/table/cat.sch.own"))
        self.assertEqual(owned["owner"], {"name": "bob", "type": "user"})
        self.ok(self.bob.delete(tables + "/own"))
        self.ok(self.grant("metalake", self.lake, privilege("select_table", "deny"),
                           privilege("modify_table", "deny")))
        self.forbidden(self.bob.get(table))
        self.assertEqual(self.ok(self.bob.get(tables))["identifiers"], [])
        found = self.ok(self.bob.get(self.lake_path + "/search?name=tab"))["metadataObjects"]
        self.assertEqual(found, [])

    def test_what_users_may_do_with_access_itself(self):
        self.add_bob()
        self.ok(self.bob.get(self.lake_path + "/users/bob"))
        self.ok(self.bob.get(self.lake_path + "/roles/reader"))
        self.assertEqual(self.ok(self.bob.get(self.lake_path + "/users"))["names"], ["bob"])
        self.forbidden(self.bob.get(self.lake_path + "/users/anonymous"))
        self.forbidden(self.bob.post(self.lake_path + "/users", {"name": "eve"}))
        self.forbidden(self.bob.post(self.lake_path + "/roles", {"name": "r"}))
        self.forbidden(self.bob.put(self.lake_path + "/permissions/users/bob/grant",
                                    {"roleNames": ["reader"]}))
        self.forbidden(self.bob.put(self.lake_path + "/owners/catalog/cat",
                                    {"name": "bob", "type": "user"}))
        self.forbidden(self.bob.get(self.lake_path + "/changes"))
        self.ok(self.api.post(self.lake_path + "/tags", {"name": "pii"}))
        self.ok(self.grant("metalake", self.lake, privilege("use_catalog")))
        add = {"tagsToAdd": ["pii"]}
        self.forbidden(self.bob.post(self.lake_path + "/objects/catalog/cat/tags", add))
        self.ok(self.grant("tag", "pii", privilege("apply_tag")))
        self.ok(self.bob.post(self.lake_path + "/objects/catalog/cat/tags", add))
        self.ok(self.grant("metalake", self.lake, privilege("manage_users"),
                           privilege("manage_grants"), privilege("create_role")))
        self.ok(self.bob.post(self.lake_path + "/users", {"name": "eve"}))
        self.ok(self.bob.post(self.lake_path + "/roles", {"name": "r"}))
        self.ok(self.bob.put(self.lake_path + "/permissions/users/eve/grant", {"roleNames": ["r"]}))
        self.assertTrue(self.api.get("/configs").json["gravitino.authorization.enable"])

    def visible_tables(self, *names):
        """Tables of which bob sees these and no others."""
        self.add_bob()
        self.ok(self.grant("catalog", "cat", privilege("use_catalog"), privilege("use_schema")))
        for name in names:
            self.ok(self.grant("table", f"cat.sch.{name}", privilege("select_table")))

    def pages(self, api, target, member):
        """All elements of a list, one by one; bodies must not have what is hidden."""
        found, token = [], ""
        for _ in range(20):
            answer = api.get(f"{target}{'&' if '?' in target else '?'}limit=1{token}")
            body = self.ok(answer)
            self.assertNotIn(b"hidden", answer.body)
            found += body[member]
            if "nextPageToken" not in body:
                return found
            next_token = body["nextPageToken"]
            self.assertNotIn(b"hidden".hex(), next_token)
            token = "&pageToken=" + next_token
        self.fail("it has no end")

    def test_pages_do_not_tell_of_what_is_hidden(self):
        for name in ("a_hidden", "b_hidden", "m_seen", "n_hidden", "x_seen", "y_hidden"):
            self.make_table(self.schema, name)
        self.visible_tables("m_seen", "x_seen")
        tables = path(*self.schema) + "/tables"
        for query in ("", "?details=true"):
            member = "tables" if query else "identifiers"
            found = self.pages(self.bob, tables + query, member)
            self.assertEqual([one["name"] for one in found], ["m_seen", "x_seen"])
        found = self.pages(self.bob, self.lake_path + "/search?name=*_", "metadataObjects")
        self.assertEqual([one["fullName"] for one in found], ["cat.sch.m_seen", "cat.sch.x_seen"])
        self.fails(self.bob.get(self.lake_path + "/search?name=a&pageToken=" + b"x".hex()), 400,
                   1001, "IllegalArgumentException")
        self.ok(self.api.post(self.lake_path + "/tags", {"name": "red"}))
        self.ok(self.grant("tag", "red", privilege("view_tag")))
        for name in ("a_hidden", "b_hidden", "m_seen", "n_hidden", "x_seen", "y_hidden"):
            self.ok(self.api.post(f"{self.lake_path}/objects/table/cat.sch.{name}/tags",
                                  {"tagsToAdd": ["red"]}))
        found = self.pages(self.bob, self.lake_path + "/tags/red/objects", "metadataObjects")
        self.assertEqual([one["fullName"] for one in found], ["cat.sch.m_seen", "cat.sch.x_seen"])
        # Who sees all goes through all.
        self.assertEqual(len(self.ok(self.api.get(tables + "?limit=4"))["identifiers"]), 4)

    def test_pages_of_metalakes(self):
        for front in ("a_hidden", "z_hidden"):
            self.make_lake(f"{front}_{self.lake}")
        self.add_bob()
        found = self.pages(self.bob, "/api/metalakes?prefix=", "metalakes")
        self.assertEqual([one["name"] for one in found if self.lake in one["name"]], [self.lake])

    def test_tokens_are_their_users(self):
        self.add_bob()
        tokens = {(role, label): self.api.post(f"{V1}/DEFAULT/tokens", {
            "role": role, "label": label}).json["token"]
            for role, label in (("write", "bob"), ("write", ""), ("admin", "root"))}
        bobs = tokens["write", "bob"]

        def me(authorization):
            return self.connect(Authorization=authorization).get("/api/authn/me")
        for authorization in (f"Bearer {bobs}", basic("bob", bobs), basic("", bobs)):
            self.assertEqual(self.ok(me(authorization))["principal"], "bob")
        for user in ("anonymous", "alice"):
            self.fails(me(basic(user, bobs)), 403, 1008, "ForbiddenException")
            self.fails(me(basic(user, tokens["write", ""])), 403, 1008, "ForbiddenException")
        self.assertEqual(self.ok(me(basic("alice", tokens["admin", "root"])))["principal"], "alice")
        self.assertEqual(self.ok(me("Bearer " + tokens["admin", "root"]))["principal"], "root")
        # What is an admin's of the keyspace.
        answer = self.connect(token=bobs).get("/api/metalakes?dropped=true")
        self.forbidden(answer)
        self.ok(self.api.get("/api/metalakes?dropped=true"))

    def test_nothing_without_metalake(self):
        none = path("none_there")
        self.assertFalse(self.ok(self.bob.delete(none))["dropped"])
        self.assertFalse(self.ok(self.bob.delete(none + "/catalogs/c"))["dropped"])
        for answer in (self.bob.get(none), self.bob.post(none + "/catalogs", {}),
                       self.bob.delete(none + "/catalogs/c/schemas/s"),
                       self.bob.delete(none + "/users/u"), self.bob.get(none + "/search?name=x")):
            self.fails(answer, 404, 1003, "NoSuchMetalakeException")

    def test_files_of_filesets(self):
        self.ok(self.api.post(self.lake_path + "/catalogs", {"name": "files", "type": "fileset"}))
        self.ok(self.api.post(path(self.lake, "files") + "/schemas", {"name": "s"}))
        filesets = path(self.lake, "files", "s") + "/filesets"
        self.ok(self.api.post(filesets, {"name": "f"}))
        self.add_bob()
        self.ok(self.grant("catalog", "files", privilege("use_catalog"), privilege("use_schema")))
        self.forbidden(self.bob.get(filesets + "/f/files"))
        self.ok(self.grant("fileset", "files.s.f", privilege("write_fileset")))
        self.ok(self.bob.get(filesets + "/f"))
        self.forbidden(self.bob.get(filesets + "/f/files"))
        self.ok(self.grant("fileset", "files.s.f", privilege("read_fileset")))
        self.assertNotEqual(self.bob.get(filesets + "/f/files").status, 403)
        for what in ("files", "location"):
            for up in ("..", "a/../..", "%252e%252e", "%2520..", "/.."):
                self.fails(self.bob.get(f"{filesets}/f/{what}?sub_path={up}"), 400, 1001,
                           "IllegalArgumentException")

    def test_tags_that_are_only_seen(self):
        self.ok(self.api.post(self.lake_path + "/tags", {"name": "pii"}))
        self.add_bob()
        self.ok(self.grant("metalake", self.lake, privilege("use_catalog")))
        self.forbidden(self.bob.get(self.lake_path + "/tags/pii"))
        self.ok(self.grant("tag", "pii", privilege("view_tag")))
        self.ok(self.bob.get(self.lake_path + "/tags/pii"))
        self.assertEqual(self.ok(self.bob.get(self.lake_path + "/tags"))["names"], ["pii"])
        target = self.lake_path + "/objects/catalog/cat/tags"
        self.forbidden(self.bob.post(target, {"tagsToAdd": ["pii"]}))
        self.ok(self.api.post(target, {"tagsToAdd": ["pii"]}))
        self.forbidden(self.bob.post(target, {"tagsToRemove": ["pii"]}))
        self.assertEqual(self.ok(self.bob.get(target))["names"], ["pii"])

    def test_hidden_tags_are_not_searched_by(self):
        """Nor is it told whether there are any."""
        self.ok(self.api.post(self.lake_path + "/tags", {"name": "pii"}))
        self.ok(self.api.post(self.lake_path + "/objects/catalog/cat/tags",
                              {"tagsToAdd": ["pii"]}))
        self.add_bob()
        self.ok(self.grant("metalake", self.lake, privilege("use_catalog")))
        messages = []
        for tag in ("pii", "none"):
            answer = self.bob.get(f"{self.lake_path}/search?tag={tag}")
            failed = self.fails(answer, 404, 1003, "NoSuchTagException", tag)
            messages.append(failed["message"].replace(tag, "TAG"))
        self.assertEqual(messages[0], messages[1])
        self.fails(self.api.get(self.lake_path + "/search?tag=none"), 404, 1003,
                   "NoSuchTagException", messages[0].replace("TAG", "none"))
        self.ok(self.grant("tag", "pii", privilege("view_tag")))
        found = self.ok(self.bob.get(self.lake_path + "/search?tag=pii"))["metadataObjects"]
        self.assertEqual(found, [{"fullName": "cat", "type": "catalog"}])

    def test_conditions(self):
        self.ok(self.api.post(self.lake_path + "/groups", {"name": "g"}))
        self.add_bob()
        policy = {"name": "keep", "policyType": "custom",
                  "content": {"supportedObjectTypes": ["table"]}}
        self.ok(self.api.post(self.lake_path + "/policies", policy))
        grant = {"privileges": [privilege("use_catalog")]}
        for what, change in (
                ("", lambda tag: self.api.patch(self.lake_path, {"inUse": True}, If_Match=tag)),
                ("/catalogs/cat", lambda tag: self.api.patch(
                    self.lake_path + "/catalogs/cat", {"inUse": True}, If_Match=tag)),
                ("/policies/keep", lambda tag: self.api.patch(
                    self.lake_path + "/policies/keep", {"enable": True}, If_Match=tag)),
                ("/users/bob", lambda tag: self.api.put(
                    self.lake_path + "/permissions/users/bob/grant", {"roleNames": ["reader"]},
                    If_Match=tag)),
                ("/roles/reader", lambda tag: self.api.put(
                    self.lake_path + "/permissions/roles/reader/catalog/cat/grant", grant,
                    If_Match=tag)),
                *((what, lambda tag, what=what: self.api.delete(self.lake_path + what,
                                                                If_Match=tag))
                  for what in ("/users/bob", "/groups/g", "/roles/reader"))):
            tag = self.api.get(self.lake_path + what).headers["ETag"]
            self.fails(change('"00-1"'), 409, 1012, "OptimisticLockException")
            self.ok(change(tag))

    def test_users_who_are_disabled(self):
        users = self.lake_path + "/users"
        made = self.ok(self.api.post(users, {"name": "bob", "enabled": False,
                                             "externalId": "b-1"}))["user"]
        self.assertEqual((made["enabled"], made["externalId"]), (False, "b-1"))
        self.forbidden(self.bob.get(self.lake_path))
        full = self.ok(self.api.get(users + "?details=true"))["users"]
        self.assertEqual([(one["name"], one.get("enabled"), one.get("externalId"))
                          for one in full], [("anonymous", None, None), ("bob", False, "b-1")])

    def test_grants_at_once(self):
        self.add_bob()
        kinds = ["use_catalog", "use_schema", "create_schema", "select_table"]

        def work(number):
            api = self.connect()
            target = f"{self.lake_path}/permissions/roles/reader/catalog/cat/grant"
            answer = api.put(target, {"privileges": [privilege(kinds[number % len(kinds)])]})
            self.assertEqual(answer.status, 200, answer)
        in_parallel(8, work)
        role = self.ok(self.api.get(self.lake_path + "/roles/reader"))["role"]
        names = sorted(one["name"] for one in role["securableObjects"][0]["privileges"])
        self.assertEqual(names, sorted(kinds))


if __name__ == "__main__":
    unittest.main()
