"""What the tests of the catalog's API share: Gravitino's requests, as its clients send them."""

import base64
import json
import urllib.parse

from trellis_http import ServerTest

MEDIA = "application/vnd.gravitino.v1+json"
COLUMNS = [{"name": "id", "type": "long", "nullable": False},
           {"name": "city", "type": "string", "comment": "where"}]


def path(*names):
    """/api/metalakes/a/catalogs/b/...: names and the words between them; None ends at a list."""
    words = ["metalakes", "catalogs", "schemas"]
    parts = ["/api"]
    for index, name in enumerate(names):
        word = words[index] if index < len(words) else None
        if word is not None:
            parts.append(word)
        if name is not None:
            parts.append(urllib.parse.quote(name, safe=""))
    return "/".join(parts)


def basic(user, password="dummy"):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def update(kind, **members):
    return {"@type": kind, **members}


class CatalogTest(ServerTest):
    """A metalake of its own for each test, with a catalog and a schema where they are asked for."""

    front = ""

    def setUp(self):
        super().setUp()
        self.lake = f"lake{next(self.names)}"

    def connect(self, token=None, **headers):
        return super().connect(token, **{"Accept": MEDIA, "Content_Type": "application/json",
                                         "X_Client_Version": "1.3.0", **headers})

    def ok(self, answer):
        """The body of a success."""
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(answer.headers["Content-Type"], "application/json")
        body = answer.json
        self.assertEqual(body["code"], 0, answer)
        return body

    def fails(self, answer, status, code, kind, *words):
        """An error in Gravitino's form."""
        self.assertEqual(answer.status, status, answer)
        self.assertEqual(answer.headers["Content-Type"], "application/json")
        body = answer.json
        self.assertEqual(set(body), {"code", "type", "message"}, answer)
        self.assertEqual((body["code"], body["type"]), (code, kind), answer)
        self.assertTrue(body["message"])
        for word in words:
            self.assertIn(word, body["message"])
        return body

    def get(self, *names, query=""):
        return self.ok(self.api.get(self.front + path(*names) + query))

    # --- what most tests need ---

    def make_lake(self, name=None, **more):
        name = name or self.lake
        self.ok(self.api.post(self.front + "/api/metalakes", {"name": name, **more}))
        return [name]

    def make_catalog(self, name="cat", kind="relational", provider="hive", **more):
        lake = self.make_lake()
        body = {"name": name, "type": kind, "provider": provider, **more}
        self.ok(self.api.post(self.front + path(*lake) + "/catalogs", body))
        return [*lake, name]

    def make_schema(self, name="sch", **more):
        catalog = self.make_catalog(**more)
        self.ok(self.api.post(self.front + path(*catalog) + "/schemas", {"name": name}))
        return [*catalog, name]

    def make(self, schema, words, name, **more):
        """Something in a schema; its JSON."""
        answer = self.api.post(self.front + path(*schema) + "/" + words, {"name": name, **more})
        return next(value for key, value in self.ok(answer).items() if key != "code")

    def make_table(self, schema, name="tab", **more):
        return self.make(schema, "tables", name, **{"columns": COLUMNS, **more})

    def alter(self, target, *updates, **headers):
        return self.api.put(self.front + target, {"updates": list(updates)}, **headers)

    def listed(self, target):
        """Names of a list, whose namespaces are checked."""
        namespace = [urllib.parse.unquote(part) for part in
                     target.split("?")[0].removeprefix(self.front).split("/")[3::2]]
        identifiers = self.ok(self.api.get(target))["identifiers"]
        for identifier in identifiers:
            self.assertEqual(identifier["namespace"], namespace)
        return [identifier["name"] for identifier in identifiers]

    def check_audit(self, entity, creator="anonymous", changed=None):
        audit = entity["audit"]
        self.assertEqual(audit["creator"], creator)
        self.assertRegex(audit["createTime"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        self.assertEqual(audit.get("lastModifier"), changed)
        self.assertEqual("lastModifiedTime" in audit, changed is not None)

    def no_nulls(self, value):
        self.assertNotIn(": null", json.dumps(value))
