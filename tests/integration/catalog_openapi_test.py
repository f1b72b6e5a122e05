"""/api/openapi.json, the catalog's description, against the server that serves it."""

import unittest

import openapi_document
from catalog_http import COLUMNS

# With the kind of catalog that they are in, if it is not the relational one.
LEAVES = {"Table": "", "Topic": "messaging", "Fileset": "fileset", "Model": "model", "View": "",
          "Function": ""}
SQL = [{"type": "sql", "dialect": "trino", "sql": "SELECT 1"}]
DEFINITION = {"parameters": [{"name": "x", "dataType": "integer"}], "returnType": "integer",
              "impls": [{"language": "SQL", "runtime": "SPARK", "sql": "SELECT x"}]}
MORE = {"Table": {"columns": [*COLUMNS, {"name": "day", "type": "date"}],
                  "partitioning": [{"strategy": "identity", "fieldName": ["day"]}],
                  "distribution": {"strategy": "hash", "number": 4, "funcArgs": [
                      {"type": "field", "fieldName": ["id"]}]},
                  "sortOrders": [{"sortTerm": {"type": "field", "fieldName": ["id"]},
                                  "direction": "asc", "nullOrdering": "nulls_first"}],
                  "indexes": [{"indexType": "primary_key", "name": "pk",
                               "fieldNames": [["id"]]}]},
        "View": {"columns": COLUMNS, "representations": SQL},
        "Function": {"functionType": "scalar", "deterministic": True,
                     "definitions": [DEFINITION]}}
SET = {"updates": [{"@type": "setProperty", "property": "k", "value": "v"}]}
COMMENT = {"updates": [{"@type": "updateComment", "newComment": "c"}]}
BAD = {"updates": [{"@type": "none"}]}


class CatalogOpenapi(openapi_document.DescriptionTest):
    where = "/api/openapi.json"
    arguments = ("--catalog-authorization", "on")  # without, what is about users is 405
    # What they answer with does not depend on who asks for what.
    never_fail = {"getVersion", "getConfigs", "getOpenapi", "getHealth", "getLiveness",
                  "getReadiness"}

    def calls(self):
        lake = {"metalake": f"lake{next(self.names)}"}
        catalog = {**lake, "catalog": "cat"}
        schema = {**catalog, "schema": "sch"}
        yield from {name: [(200, {})] for name in self.never_fail}.items()
        yield "getMe", [(200, {}), (401, {}, None, {"Authorization": "Bearer none"})]
        yield from self.life("Metalake", {}, lake, {}, SET)
        yield "setMetalakeInUse", [(200, lake, {"inUse": True}), (400, lake, {})]
        relational = {"type": "relational", "provider": "hive"}
        yield from self.life("Catalog", lake, catalog, relational, SET)
        yield "setCatalogInUse", [(200, catalog, {"inUse": True}), (400, catalog, {"inUse": 1})]
        yield "testCatalog", [(200, catalog), (200, {**lake, "catalog": "none"}, SET),
                              (406, catalog, SET, {"Accept": "application/vnd.gravitino.v9+json"})]
        yield "testConnection", [(200, lake, {"name": "other", **relational}),
                                 (200, lake, {"name": "cat", **relational}),
                                 (406, lake, {"name": "x", **relational},
                                  {"Accept": "application/vnd.gravitino.v9+json"})]
        yield from self.life("Schema", catalog, schema, {}, SET)
        for name, kind in LEAVES.items():
            home = {**schema, "catalog": kind or "cat"}
            if kind:
                body = {"type": kind, "provider": "x"}
                yield "createCatalog", [(200, lake, {"name": kind, **body})]
                yield "createSchema", [(200, {**lake, "catalog": kind}, {"name": "sch"})]
                yield f"create{name}", [(405, schema, {"name": "one"})]
            one = {**home, name.lower(): "one"}
            change = COMMENT if name == "Function" else SET
            yield from self.life(name, home, one, MORE.get(name, {}), change)
            yield f"get{name}s", [(200, home, {"names": ["one", "none"]}),
                                  (400, home, {"names": 1})]
        yield from self.of_tables(schema)
        yield from self.of_filesets_and_models(schema)
        yield from self.of_labels(lake)
        yield from self.of_access(lake)
        yield "listChanges", [(200, {**lake, "?since": 1, "?limit": 5}),
                              (410, {**lake, "?since": 1, "?metalakeId": "none"}),
                              (404, {"metalake": "none"})]
        yield "search", [(200, {**lake, "?name": "o", "?limit": 2}),
                         (400, {**lake, "?type": "none"})]

    def life(self, name, above, one, more, change):
        """Made, looked at, altered, dropped and brought back: it is there for what follows."""
        key = list(one)[-1]
        body = {"name": one[key], "comment": "c", **more}
        none = {**one, key: "none"}
        drop = {"Metalake": {"?force": "true"}, "Catalog": {"?force": "True"},
                "Schema": {"?cascade": "true"}, "Table": {"?purge": "true"}}.get(name, {})
        yield f"create{name}", [(200, above, body), (409, above, body), (400, above, {"x": 1})]
        yield f"list{name}s", [(200, above), (200, {**above, "?details": "true", "?limit": 1}),
                               (400, {**above, "?limit": 0})]
        yield f"load{name}", [(200, one), (304, one, None, {"If-None-Match": "*"}), (404, none)]
        yield f"alter{name}", [(200, one, change), (400, one, BAD), (404, none, change),
                               (409, one, change, {"If-Match": '"0-0"'})]
        yield f"drop{name}", [(400, {**one, "?force": "x"}), (200, {**one, **drop}), (200, none)]
        yield f"undelete{name}", [(200, one), (409, one), (404, none)]
        yield f"list{name}s", [(200, {**above, "?dropped": "true", "?prefix": "o"})]

    def of_tables(self, schema):
        table, none = {**schema, "table": "one"}, {**schema, "table": "none"}
        object_ = {"metalake": schema["metalake"], "type": "table", "fullName": "cat.sch.one"}
        other = {**object_, "type": "schema", "fullName": "cat.sch"}
        nothing = {**object_, "fullName": "cat.sch.none"}
        part = {"type": "identity", "name": "p", "fieldNames": [["day"]], "values": [
            {"type": "literal", "dataType": "date", "value": "2026-01-01"}]}
        yield "addPartition", [(200, table, {"partitions": [part]}),
                               (409, table, {"partitions": [part]}), (400, table, {})]
        yield "listPartitions", [(200, table), (200, {**table, "?details": "true"}), (404, none)]
        yield "getPartition", [(200, {**table, "partition": "p"}),
                               (404, {**table, "partition": "none"})]
        yield "dropPartition", [(200, {**table, "partition": "p"}),
                                (404, {**none, "partition": "p"})]
        yield "getCredentials", [(200, object_), (404, nothing)]
        yield "updateStatistics", [(200, object_, {"updates": {"custom-n": 1}}),
                                   (405, other, {"updates": {"custom-n": 1}})]
        yield "listStatistics", [(200, object_), (404, nothing)]
        yield "dropStatistics", [(200, object_, {"names": ["custom-n"]}), (400, object_, {})]
        yield "updatePartitionStatistics", [
            (200, object_, {"updates": [{"partitionName": "p", "statistics": {"custom-n": 1}}]}),
            (400, object_, {})]
        yield "listPartitionStatistics", [(200, {**object_, "?from": "a", "?to": "z"}),
                                          (400, object_)]
        yield "dropPartitionStatistics", [
            (200, object_, {"drops": [{"partitionName": "p", "statisticNames": ["custom-n"]}]}),
            (400, object_, {})]

    def of_filesets_and_models(self, schema):
        fileset = {**schema, "catalog": "fileset", "fileset": "one"}
        model = {**schema, "catalog": "model", "model": "one"}
        yield "getFilesetLocation", [(200, {**fileset, "?sub_path": "a"}),
                                     (404, {**fileset, "fileset": "none"})]
        yield "listFilesetFiles", [(404, {**fileset, "fileset": "none"}),
                                   (200, fileset)]
        version = {"uris": {"a": "s3://a"}, "aliases": ["first"], "comment": "c"}
        yield "linkModelVersion", [(200, model, version), (200, model, {"uri": "s3://b"}),
                                   (400, model, {})]
        yield "listModelVersions", [(200, model), (200, {**model, "?details": "true"}),
                                    (404, {**model, "model": "none"})]
        for suffix, one, none in (("", {"version": 0}, {"version": 7}),
                                  ("ByAlias", {"alias": "last"}, {"alias": "none"})):
            one, none = {**model, **one}, {**model, **none}
            if suffix:
                yield "alterModelVersion", [(200, {**model, "version": 1}, {"updates": [
                    {"@type": "updateAliases", "aliasesToAdd": ["last"],
                     "aliasesToRemove": []}]})]
            yield f"getModelVersion{suffix}", [(200, one), (404, none)]
            yield f"alterModelVersion{suffix}", [(200, one, SET), (400, one, BAD)]
            yield f"getModelVersionUri{suffix}", [
                (200, {**one, "?uriName": "unknown" if suffix else "a"}), (404, none)]
            yield f"deleteModelVersion{suffix}", [
                (200, one), (200, one), (404, {**one, "catalog": "none"})]

    def of_labels(self, lake):
        object_ = {**lake, "type": "table", "fullName": "cat.sch.one"}
        nothing = {**object_, "fullName": "cat.sch.none"}
        content = {"customRules": {"days": 3}, "supportedObjectTypes": ["table"]}
        for name, many, more in (("Tag", "Tags", {}),
                                 ("Policy", "Policies",
                                  {"policyType": "custom", "content": content})):
            one = {**lake, name.lower(): "one"}
            none = {**lake, name.lower(): "none"}
            for operation, calls in self.life(name, lake, one, more, COMMENT):
                yield operation.replace("Policys", "Policies"), calls
            add = {f"{many.lower()}ToAdd": ["one"], f"{many.lower()}ToRemove": []}
            yield f"associate{many}", [(200, object_, add), (400, object_, {"x": 1}),
                                       (404, nothing, add)]
            yield f"listObject{many}", [(200, object_), (200, {**object_, "?details": "true"}),
                                        (404, nothing)]
            yield f"loadObject{name}", [(200, {**object_, **one}), (404, {**object_, **none})]
            yield f"list{name}Objects", [(200, one), (404, none)]
        yield "enablePolicy", [(200, {**lake, "policy": "one"}, {"enable": False}),
                               (400, {**lake, "policy": "one"}, {"x": 1})]
        yield "listTagsOlderPath", [(200, object_), (404, nothing)]
        yield "associateTagsOlderPath", [
            (200, object_, {"tagsToAdd": [], "tagsToRemove": []}), (400, object_, {"x": 1})]
        yield "loadTagOlderPath", [(200, {**object_, "tag": "one"}),
                                   (404, {**object_, "tag": "none"})]

    def of_access(self, lake):
        object_ = {**lake, "type": "table", "fullName": "cat.sch.one"}
        nothing = {**object_, "fullName": "cat.sch.none"}
        privileges = [{"name": "select_table", "condition": "allow"}]
        securable = [{"fullName": "cat.sch.one", "type": "table", "privileges": privileges}]
        role = {**lake, "role": "one"}
        body = {"name": "one", "properties": {}, "securableObjects": securable}
        yield "createRole", [(200, lake, body), (409, lake, body), (400, lake, {"x": 1})]
        yield "listRoles", [(200, lake), (404, {"metalake": "none"})]
        yield "loadRole", [(200, role), (404, {**lake, "role": "none"})]
        yield "listObjectRoles", [(200, object_), (404, nothing)]
        for what in ("grant", "revoke"):
            yield f"{what}Privileges", [(200, {**role, **object_}, {"privileges": privileges}),
                                        (400, {**role, **object_}, {"x": 1})]
        yield "overridePrivileges", [(200, role, {"overrides": securable}), (400, role, {"x": 1})]
        for name in ("User", "Group"):
            one, none = {**lake, name.lower(): "ann"}, {**lake, name.lower(): "none"}
            yield f"add{name}", [(200, lake, {"name": "ann"}), (409, lake, {"name": "ann"}),
                                 (400, lake, {"x": 1})]
            yield f"list{name}s", [(200, lake), (200, {**lake, "?details": "true"}),
                                   (404, {"metalake": "none"})]
            yield f"load{name}", [(200, one), (404, none)]
            for what in ("grant", "revoke"):
                yield f"{what}RolesOf{name}", [(200, one, {"roleNames": ["one"]}),
                                               (404, none, {"roleNames": ["one"]})]
        yield "setOwner", [(200, object_, {"name": "ann", "type": "user"}),
                           (404, object_, {"name": "none", "type": "user"})]
        yield "getOwner", [(200, object_), (404, nothing)]
        for name in ("User", "Group"):
            yield f"remove{name}", [(200, {**lake, name.lower(): "ann"}),
                                    (404, {"metalake": "none", name.lower(): "ann"})]
        yield "deleteRole", [(200, role), (404, {"metalake": "none", "role": "one"})]


if __name__ == "__main__":
    unittest.main()
