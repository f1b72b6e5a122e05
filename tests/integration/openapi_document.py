"""A description in OpenAPI's form, against the server that serves it: every operation is there, and
what it answers is what the description says, in success and in error."""

import re

from trellis_http import ServerTest, encoded, json_lines

METHODS = ("get", "head", "post", "put", "patch", "delete", "options")
PRIMITIVES = {"string": str, "integer": int, "number": (int, float), "boolean": bool,
              "object": dict, "array": list}


class Validator:
    """The part of OpenAPI 3.0's schemas that the description uses. Members that no schema names are
    mistakes: of the server or of the description."""

    known = {"type", "properties", "required", "additionalProperties", "items", "enum", "nullable",
             "minimum", "maximum", "pattern", "maxLength", "maxItems", "allOf", "$ref", "format",
             "description", "example", "default"}

    def __init__(self, document):
        self.document = document

    def resolve(self, node):
        while "$ref" in node:
            target = self.document
            for part in node["$ref"].removeprefix("#/").split("/"):
                target = target[part]
            node = target
        return node

    def properties(self, schema):
        """Of an object, those of all its parts; None: it may have any."""
        schema = self.resolve(schema)
        found = dict(schema.get("properties", {}))
        if not found and "allOf" not in schema:
            return None
        for part in schema.get("allOf", []):
            found.update(self.properties(part) or {})
        return found

    def problems(self, schema, value, where="it"):
        schema = self.resolve(schema)
        if unknown := set(schema) - self.known:
            yield f"{where}: the schema has {unknown}, which this validator does not know"
        if value is None and schema.get("nullable"):
            return
        if "type" in schema and not self.has_type(schema["type"], value):
            yield f"{where}: {value!r} is no {schema['type']}"
            return
        for part in schema.get("allOf", []):
            yield from self.problems(part, value, where) if not isinstance(value, dict) else \
                self.object_problems(self.resolve(part), value, where)
        if "enum" in schema and value not in schema["enum"]:
            yield f"{where}: {value!r} is not of {schema['enum']}"
        if "minimum" in schema and value < schema["minimum"]:
            yield f"{where}: {value} is under {schema['minimum']}"
        if "maximum" in schema and value > schema["maximum"]:
            yield f"{where}: {value} is over {schema['maximum']}"
        if "pattern" in schema and not re.search(schema["pattern"], value):
            yield f"{where}: {value!r} does not match {schema['pattern']}"
        if isinstance(value, str) and len(value) > schema.get("maxLength", len(value)):
            yield f"{where}: it is too long"
        if isinstance(value, list):
            if len(value) > schema.get("maxItems", len(value)):
                yield f"{where}: it has too many items"
            for i, item in enumerate(value):
                yield from self.problems(schema.get("items", {}), item, f"{where}[{i}]")
        if isinstance(value, dict):
            yield from self.object_problems(schema, value, where)
            named = self.properties(schema)
            more = schema.get("additionalProperties", named is None)
            for name in value:
                if named is not None and name in named:
                    continue
                if isinstance(more, dict):
                    yield from self.problems(more, value[name], f"{where}.{name}")
                elif not more:
                    yield f"{where}: it has the member {name!r}, which is not described"

    def object_problems(self, schema, value, where):
        """The members that a schema names, and those that it wants."""
        for part in schema.get("allOf", []):
            yield from self.object_problems(self.resolve(part), value, where)
        for name in schema.get("required", []):
            if name not in value:
                yield f"{where}: it has no {name!r}"
        for name, member in schema.get("properties", {}).items():
            if name in value:
                yield from self.problems(member, value[name], f"{where}.{name}")

    @staticmethod
    def has_type(name, value):
        is_bool = isinstance(value, bool)
        return isinstance(value, PRIMITIVES[name]) and (not is_bool or name == "boolean")


class DescriptionTest(ServerTest):
    """Tests of one description; whoever has one says where it is, and how to call what it names.
    Not to be imported by its name: it would be run, too."""

    where = None
    never_fail = set()   # operations that have no error that a caller can make
    no_end = set()       # and those that cannot be called to their end

    def calls(self):
        """(operationId, [(expected status, parameters of the path and query, body, headers)])"""
        raise NotImplementedError

    def setUp(self):
        super().setUp()
        answer = self.api.get(self.where)
        self.assertEqual((answer.status, answer.headers["Content-Type"]),
                         (200, "application/json"))
        self.document = answer.json
        self.validator = Validator(self.document)
        self.operations = {operation["operationId"]: (method, path, operation)
                           for path, item in self.document["paths"].items()
                           for method, operation in item.items()}

    def test_the_document_is_whole(self):
        count = sum(len(item) for item in self.document["paths"].values())
        self.assertEqual(len(self.operations), count, "each operationId is there once")

        def walk(node):
            if isinstance(node, dict):
                if isinstance(node.get("$ref"), str):
                    self.assertIsInstance(self.validator.resolve(node), dict)
                node = list(node.values())
            for child in node if isinstance(node, list) else []:
                walk(child)
        walk(self.document)
        for name, (method, path, operation) in self.operations.items():
            with self.subTest(name=name):
                self.assertIn(method, METHODS)
                self.assertTrue(operation["summary"] and operation["tags"])
                parameters = [self.validator.resolve(p) for p in operation.get("parameters", [])]
                in_path = {p["name"] for p in parameters if p["in"] == "path"}
                self.assertEqual(in_path, set(re.findall(r"{(\w+)}", path)))
                self.assertTrue(all(p["required"] for p in parameters if p["in"] == "path"))

    def test_every_path_takes_these_methods_and_no_others(self):
        paths = self.document["paths"]
        patterns = {path: re.compile(re.sub(r"{\w+}", "[^/]+", path)) for path in paths}
        for path in paths:
            with self.subTest(path=path):
                target = re.sub(r"{\w+}", "1", path)
                answer = self.api.call("OPTIONS", target)
                self.assertEqual(answer.status, 204)
                # .../keyspaces/id is also the keyspace that is called so.
                methods = {method.upper() for other, pattern in patterns.items()
                           for method in paths[other] if pattern.fullmatch(target)} | {"OPTIONS"}
                if "GET" in methods:
                    methods.add("HEAD")
                self.assertEqual(set(answer.headers["Allow"].split(", ")), methods)

    def test_every_method_is_routed(self):
        for name, (method, path, _) in self.operations.items():
            if name in self.no_end:
                continue
            with self.subTest(name=name):
                # Not a name, an id or a body that it would do anything for.
                answer = self.api.call(method.upper(), re.sub(r"{\w+}", "%7f", path), b"-")
                self.assertNotIn(answer.status, (405, 408, 500), answer)
                self.assertNotIn(b"path_not_found", answer.body)
                self.assertNotIn(b"nothing at this path", answer.body)
                self.api.close()

    def target(self, path, parameters):
        query = []
        for name, value in parameters.items():
            text = encoded(str(value).encode("latin-1"))
            if name.startswith("?"):
                query.append(f"{name[1:]}={text}")
            else:
                path = path.replace(f"{{{name}}}", text)
        return path + ("?" + "&".join(query) if query else "")

    def check_call(self, name, expected, parameters, body=None, headers=None):
        method, path, operation = self.operations[name]
        answer = self.api.call(method.upper(), self.target(path, parameters), body, headers)
        self.assertEqual(answer.status, expected, answer)
        responses = operation["responses"]
        described = self.validator.resolve(responses.get(str(expected), responses.get("default")))
        self.assertTrue(described, f"{expected} is not described")
        if expected < 400:
            self.assertIn(str(expected), responses)
            if isinstance(body, dict):  # what it takes is what it says that it takes
                content = operation["requestBody"]["content"]["application/json"]
                self.assertEqual(list(self.validator.problems(content["schema"], body)), [])
        content = described.get("content")
        if content is None or method == "head":
            self.assertEqual(answer.body, b"")
            return
        kind = answer.headers["Content-Type"].split(";")[0]
        self.assertTrue(kind in content or "*/*" in content, kind)
        if kind == "application/json" and kind in content:
            problems = list(self.validator.problems(content[kind]["schema"], answer.json))
            self.assertEqual(problems, [], answer)
        elif kind == "application/x-ndjson":
            for entry in json_lines(answer.body):
                schema = "FsckLine" if name.startswith("checkFiles") else "RawEntry"
                self.assertEqual(self.problems_of(schema, entry), [])

    def problems_of(self, schema, value):
        return list(self.validator.problems({"$ref": f"#/components/schemas/{schema}"}, value))

    def test_every_operation(self):
        statuses = {}
        for name, calls in self.calls():
            for call in calls:
                statuses.setdefault(name, set()).add(call[0])
                with self.subTest(name=name, call=call):
                    self.check_call(name, *call)
        self.assertEqual(set(statuses) | self.no_end, set(self.operations))
        for name, seen in statuses.items():
            if 501 not in seen:
                self.assertTrue(any(status < 400 for status in seen), name)
            if name not in self.never_fail:
                self.assertTrue(any(status >= 400 for status in seen), name)
