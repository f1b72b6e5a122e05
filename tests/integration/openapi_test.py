"""/openapi.json against the server that serves it."""

import base64
import json
import time
import unittest

import openapi_document
from openapi_document import Validator
from trellis_http import GC, KEYSPACES, eventually


def base64_of(latin1):
    return base64.b64encode(latin1.encode("latin-1")).decode()


class ValidatorItself(unittest.TestCase):
    def test_it_can_fail(self):
        document = {"s": {"type": "object", "properties": {"a": {"type": "integer", "minimum": 0}},
                          "required": ["a"]}}
        validator = Validator(document)
        for schema, good, bad in (
                ({"$ref": "#/s"}, [{"a": 1}], [{}, {"a": -1}, {"a": "1"}, {"a": True}, {"a": 1.5},
                                               {"a": None}, {"a": 1, "b": 2}, [], None]),
                ({"type": "array", "items": {"$ref": "#/s"}}, [[], [{"a": 1}]], [[{}], {}, "x"]),
                ({"type": "string", "enum": ["x"], "nullable": True}, ["x", None], ["y", 1]),
                ({"type": "object", "additionalProperties": {"type": "string"}},
                 [{}, {"k": "v"}], [{"k": 1}]),
                ({"type": "object", "additionalProperties": False}, [{}], [{"k": 1}]),
                ({"type": "object"}, [{}, {"any": 1}], ["x"]),
                ({"allOf": [{"$ref": "#/s"}, {"type": "object", "properties": {
                    "b": {"type": "boolean"}}, "required": ["b"]}]},
                 [{"a": 1, "b": False}], [{"a": 1}, {"b": True}, {"a": 1, "b": 1},
                                          {"a": 1, "b": True, "c": 1}]),
                ({"allOf": [{"$ref": "#/s"}], "nullable": True}, [None, {"a": 1}], [{}]),
                ({"type": "number", "maximum": 2}, [1, 1.5], [3, "1", True]),
                ({"type": "string", "pattern": "^a+$", "maxLength": 2}, ["a"], ["b", "aaa"])):
            for value in good:
                self.assertEqual(list(validator.problems(schema, value)), [], (schema, value))
            for value in bad:
                self.assertNotEqual(list(validator.problems(schema, value)), [], (schema, value))


class Openapi(openapi_document.DescriptionTest):
    where = "/openapi.json"
    never_fail = {"getHealth", "getReady", "getOpenapi"}
    no_end = {"watchKeyspaces"}

    def calls(self):
        made = self.create(config={"a": "b"})
        name, number = made["name"], made["id"]
        archived = [self.create()["name"] for _ in range(2)]
        for one in archived:
            self.bring_to(one, "ARCHIVED")
        gone = self.create()
        self.bring_to(gone["name"], "TOMBSTONE")
        old = (int(time.time() - 60) * 1000) << 18
        self.api.put(f"{GC}/service_safepoint/{number}/held", {"safe_point": old, "ttl": 600})
        self.api.put(f"/k/{name}/v1/raw/keys/short?ttl_ms=1", b"x")
        self.api.put("/v1/raw/keys/b%FF?ttl_ms=600000", b"\xff")
        token = self.api.post(f"/v1/keyspaces/{name}/tokens", {"role": "read"}).json
        by_name, nobody = {"name": name}, {"name": "nobody"}
        by_id, no_id, bad_id = {"id": number}, {"id": 4_000_000}, {"id": "x"}
        typo = {"?typo": "1"}
        yield from {
            "pdCreateKeyspace": [(200, {}, {"name": self.new_name(), "config": {"k": "v"}},
                                  {"Idempotency-Key": "openapi"}), (422, {}, {"name": "a b"})],
            "pdListKeyspaces": [(200, {}), (200, {"?limit": 1, "?page_token": "1"}),
                                (400, {"?limit": "x"})],
            "pdCreateKeyspaceById": [(200, {}, {"id": 9_000_000, "name": self.new_name()}),
                                     (409, {}, {"id": number, "name": self.new_name()})],
            "pdGetKeyspaceById": [(200, by_id), (404, no_id), (400, bad_id)],
            "pdGetKeyspace": [(200, {**by_name, "?force_refresh_group_id": "true"}), (404, nobody)],
            "pdPatchConfig": [(200, by_name, {"config": {"a": None, "c": "d"},
                                              "preconditions": {"a": "b", "z": None}}),
                              (412, by_name, {"config": {}, "preconditions": {"c": None}})],
            "pdSetState": [(200, by_name, {"state": "Disabled"}), (200, by_name,
                                                                   {"state": "enabled"}),
                           (409, by_name, {"state": "tombstone"})],
            "pdGetSafePoint": [(200, by_id), (404, no_id)],
            "pdPutTxnSafePoint": [(200, by_id, {"safe_point": 7}), (409, by_id, {"safe_point": 1})],
            "pdPutSafePoint": [(200, by_id, {"safe_point": 5}), (409, by_id, {"safe_point": 9})],
            "pdGetTxnSafePoint": [(200, by_id), (400, bad_id)],
            "pdListServiceSafePoints": [(200, by_id), (404, no_id)],
            "pdPutServiceSafePoint": [
                (200, {**by_id, "service": "s 1"}, {"safe_point": old, "ttl": 600}),
                (422, {**by_id, "service": "gc_worker"}, {"safe_point": old, "ttl": 600})],
            "pdDeleteServiceSafePoint": [(200, {**by_id, "service": "s 1"}),
                                         (404, {**by_id, "service": "s 1"})],
            "pdGetGcState": [(200, by_id), (404, no_id)],
            "pdListGroups": [(200, {"?state": "merge"}), (400, typo)],
            "pdGetGroup": [(200, {"id": 0}), (400, {"id": 0, **typo})],
            "pdListMetaServiceGroups": [(200, {}), (400, typo)],
            **{operation: [(501, {"id": 0}, {})] for operation in (
                "pdCreateGroups", "pdDeleteGroup", "pdPatchGroup", "pdAllocGroup", "pdSplitGroup",
                "pdFinishSplitGroup", "pdMergeGroup", "pdFinishMergeGroup",
                "pdRemoveGroupKeyspaces", "pdPatchMetaServiceGroups",
                "pdPatchMetaServiceGroupStatus")},
            "getKeyspace": [(200, by_name), (404, nobody)],
            "getKeyspaceById": [(200, by_id), (200, {"id": gone["id"]}), (404, no_id)],
            "renameKeyspace": [(200, by_name, {"name": name}), (409, by_name, {"name":
                                                                               archived[0]})],
            "undoArchive": [(200, {"name": archived[0]}), (409, by_name)],
            "purgeKeyspace": [(202, {"name": archived[1]}), (409, by_name)],
            "getPurge": [(200, {"id": gone["id"]}), (404, by_id)],
            "setQuota": [(200, by_name, {"bytes": 10**9, "keys": 0}),
                         (400, by_name, {"bytes": "x"})],
            "createToken": [(201, by_name, {"role": "admin", "label": "l", "ttl_seconds": 60}),
                            (422, by_name, {"role": "read", "label": "\n"})],
            "listTokens": [(200, by_name), (404, nobody)],
            "revokeToken": [(204, {**by_name, "id": token["id"]}),
                            (404, {**by_name, "id": token["id"]})],
            "explainGc": [(200, by_name), (404, nobody)],
            "explainGcById": [(200, by_id), (404, {"id": gone["id"]}), (404, no_id)],
            "getCollector": [(200, {}), (400, {"?a": 1})],
            "setCollector": [(200, {}, {"paused": False, "bytes_per_second": 0, "threads": 2}),
                             (400, {}, {"threads": 17})],
            "getTop": [(200, {"?by": "keys", "?limit": 5}), (400, {"?by": "size"})],
            "getAudit": [(200, {"?since": 0, "?keyspace": name}), (400, {"?limit": 0}),
                         (422, {"?since": 2**60})],
            **self.range_calls(),
            **self.raw_calls("", {}, {"X-Trellis-Keyspace": name}),
            **self.raw_calls("In", {"keyspace": name}, {}),
            **self.file_calls("", {}, {"X-Trellis-Keyspace": name}),
            **self.file_calls("In", {"keyspace": self.create()["name"]}, {}),
            **self.backup_calls(name),
            "getHealth": [(200, {})], "getReady": [(200, {})], "getOpenapi": [(200, {})],
            "getMetrics": [(200, {}), (400, typo)],
        }.items()

    def range_calls(self):
        key, typo = "720000007a7a", {"?typo": "1"}
        job = {"job": self.api.post("/v1/ranges/jobs", {"kind": "recount"}).json["id"]}
        eventually(lambda: self.api.get(f"/v1/ranges/jobs/{job['job']}").json["finished_at_ms"],
                   "the job")
        return {
            "listRanges": [(200, {"?limit": 1, "?from": key}), (400, {"?from": "x"})],
            "lookupRange": [(200, {"?key": key}), (400, {})],
            "hotRanges": [(200, {}), (400, {"?limit": 0})],
            "rangeHistory": [(200, {"?limit": 5, "?before": 1000}), (400, {"?before": "x"})],
            "planRanges": [(200, {}), (400, typo)],
            "splitRange": [(200, {}, {"key": key, "sticky_s": 60}), (400, {}, {"key": "zz"})],
            "mergeRange": [(200, {}, {"key": key}), (400, {}, {})],
            "setRangeKeeper": [(200, {}, {"paused": False}), (400, {}, {"paused": 1})],
            "verifyRanges": [(200, {}), (400, typo)],
            "rebuildRanges": [(200, {}), (400, typo)],
            "listRangeJobs": [(200, {}), (400, typo)],
            "getRangeJob": [(200, job), (404, {"job": 4711})],
            "getRangeChecksums": [(200, {**job, "?from": "72", "?limit": 1}),
                                  (404, {"job": 4711}), (400, {**job, "?from": "x"})],
            "changeRangeJob": [(200, job, {"action": "cancel", "bytes_per_second": 1}),
                               (400, job, {"action": "x"})],
            "startRangeJob": [(202, {}, {"kind": "check", "threads": 1}),
                              (400, {}, {"kind": "x"})],
            "getRange": [(200, {"range": 1}), (404, {"range": 4711})],
        }

    def backup_calls(self, name):
        folder = str(self.folder / "backups")
        where = {"?repository": folder}
        made = self.job("/v1/backups", {"repository": folder, "keyspace": name})
        self.job("/v1/backups", {"repository": folder})
        stream = self.api.get(f"/v1/backups/stream?keyspace={name}").body
        other = str(self.folder / "others")
        only = self.job("/v1/backups", {"repository": other, "keyspace": name})["backup"]
        slow = {"repository": folder, "bytes_per_second": 1}
        waiting = self.api.post("/v1/backups", slow).json["id"]
        no_job, over = {"job": "none"}, {"job": made["id"]}
        nowhere = {"repository": "/nowhere/at/all"}
        return {
            "createBackup": [(202, {}, {"repository": folder, "keyspace": name, "threads": 1}),
                             (404, {}, {"repository": folder, "keyspace": "nobody"}),
                             (400, {}, {"repository": "relative"})],
            "listBackups": [(200, where), (404, {"?repository": "/nowhere/at/all"}), (400, {})],
            "downloadBackup": [(200, {"?keyspace": name}), (404, {"?keyspace": "nobody"})],
            "uploadBackup": [(202, {"?name": self.new_name()}, stream), (409, {}, stream),
                             (422, {}, stream[:-1]), (422, {}, b"nonsense")],
            "restoreBackup": [(202, {}, {"repository": folder, "backup": made["backup"],
                                         "name": self.new_name()}),
                              (409, {}, {"repository": folder, "keyspace": name}),
                              (404, {}, {"repository": folder, "backup": "none"})],
            "verifyBackups": [(202, {}, {"repository": folder}), (404, {}, nowhere)],
            "listBackupJobs": [(200, {}), (400, {"?typo": "1"})],
            "getBackupJob": [(200, over), (404, no_job)],
            "pauseBackupJob": [(200, {"job": waiting}), (404, no_job), (409, over)],
            "resumeBackupJob": [(200, {"job": waiting}), (409, over)],
            "deleteBackup": [(200, {"?repository": other, "backup": only}),
                             (409, {**where, "backup": made["backup"]})],
            "cancelBackupJob": [(200, {"job": waiting}), (409, over)],
        }

    def job(self, path, body):
        """To its end."""
        job = self.api.post(path, body).json
        return eventually(lambda: (now := self.api.get(f"/v1/backups/jobs/{job['id']}").json)[
            "state"] == "done" and now, f"{path} {body}")

    def raw_calls(self, suffix, whose, headers):
        """The paths there are twice: with the keyspace in front, and in a header."""
        key = {**whose, "key": "k/%\xff"}
        wrong = {"operations": [{"put": {"key": ""}}]}
        batch = {"operations": [{"put": {"key": "a", "value": "1", "ttl_ms": 90_000}},
                                {"put": {"key": "b", "value_base64": "/w=="}},
                                {"delete": {"key_base64": "/w=="}}]}
        new = f"new{suffix}"
        return {name + suffix: calls for name, calls in {
            "putKey": [(204, {**key, "?ttl_ms": 600_000}, b"v", headers),
                       (412, key, b"v", {**headers, "If-None-Match": "*"}),
                       (422, {**key, "?ttl_ms": 0}, b"v", headers)],
            "getKey": [(200, key, None, headers),
                       (304, key, None, {**headers, "If-None-Match": "*"}),
                       (404, {**whose, "key": "none"}, None, headers)],
            "headKey": [(200, key, None, headers), (404, {**whose, "key": "none"}, None, headers)],
            "deleteKey": [(204, {**whose, "key": "none"}, None, headers),
                          (412, {**whose, "key": "none"}, None, {**headers, "If-Match": "*"})],
            "runBatch": [(200, whose, batch, headers), (400, whose, wrong, headers)],
            "scanKeys": [(200, {**whose, "?limit": 1}, None, headers),
                         (200, {**whose, "?reverse": "true", "?keys_only": "true"}, None, headers),
                         (400, {**whose, "?limit": 0}, None, headers)],
            "compareAndSet": [
                (200, whose, {"key": new, "expected": None, "new": {"value": "1"}}, headers),
                (412, whose, {"key": new, "expected": {"value": "2"}, "new": None}, headers)],
            "exportEntries": [(200, whose, None, headers),
                              (400, {**whose, "?prefx": "a"}, None, headers)],
            "exportPart": [(200, whose, {"begin": "a", "end": "b"}, headers),
                           (400, whose, {"begin": 1}, headers)],
            "listParts": [(200, {**whose, "?prefix": "a"}, None, headers),
                          (400, {**whose, "?prefx": "a"}, None, headers)],
            "importEntries": [(200, whose, b'{"key":"i","value":"1"}\n', headers),
                              (400, whose, b"nonsense", headers)],
        }.items()}

    def file_calls(self, suffix, whose, headers):
        """Likewise."""
        file, none = {**whose, "path": f"d{suffix}/f\xff"}, {**whose, "path": "none"}
        here, typo = f"d{suffix}/", {**whose, "?typo": "1"}
        space = f"/k/{whose['keyspace']}" if whose else ""
        self.api.call("PUT", f"{space}/v1/fs/trash", {"keep_ms": 3_600_000}, headers)
        for name in ("x", "y"):
            for method in ("PUT", "DELETE"):
                self.api.call(method, f"{space}/v1/files/{name}{suffix}", None, headers)
        trash = self.api.call("GET", f"{space}/v1/fs/trash", None, headers).json["entries"]
        item = next(entry["item"] for entry in trash if entry["name"] == f"x{suffix}")
        return {name + suffix: calls for name, calls in {
            "putFile": [(200, file, b"content", {**headers, "Content-Type": "text/plain",
                                                 "X-Trellis-Meta-a": "b"}),
                        (200, {**whose, "path": f"e{suffix}/"}, None, headers),
                        (200, {**file, "?append": "true"}, b"more", headers),
                        (412, file, b"v", {**headers, "If-None-Match": "*"})],
            "getFile": [(200, file, None, headers),
                        (206, file, None, {**headers, "Range": "bytes=1-2"}),
                        (304, file, None, {**headers, "If-None-Match": "*"}),
                        (200, {**whose, "path": here, "?recursive": "true", "?limit": 1,
                               "?start_after": "a", "?prefix": "f"}, None, headers),
                        (416, file, None, {**headers, "Range": "bytes=99-"}),
                        (404, none, None, headers)],
            "headFile": [(200, file, None, headers), (404, none, None, headers),
                         (206, file, None, {**headers, "Range": "bytes=1-2"})],
            "statFile": [(200, {**whose, "?path": here}, None, headers),
                         (200, {**whose, "?path": f"d{suffix}/f\xff"}, None, headers),
                         (404, {**whose, "?path": "none"}, None, headers)],
            "getFileUsage": [(200, {**whose, "?path": here}, None, headers),
                             (404, {**whose, "?path": "none"}, None, headers)],
            "getFileFigures": [(200, whose, None, headers), (400, typo, None, headers)],
            "copyFile": [(200, whose, {"from_base64": base64_of(f"d{suffix}/f\xff"),
                                       "to": f"copy{suffix}"}, headers),
                         (404, whose, {"from": "none", "to": "x"}, headers)],
            "renameFile": [(204, whose, {"from": f"copy{suffix}", "to": f"new{suffix}"}, headers),
                           (409, whose, {"from": here, "to": f"d{suffix}/in/"}, headers)],
            "getFileQuota": [(200, {**whose, "?path": here}, None, headers),
                             (404, {**whose, "?path": "none"}, None, headers)],
            "setFileQuota": [(204, {**whose, "?path": here}, {"bytes_max": 10**9}, headers),
                             (409, {**whose, "?path": f"new{suffix}"}, {}, headers)],
            "listTrash": [(200, {**whose, "?limit": 1}, None, headers), (400, typo, None, headers)],
            "setTrash": [(204, whose, {"keep_ms": 3_600_000}, headers), (400, whose, {}, headers)],
            "restoreFromTrash": [(200, whose, {"item": item}, headers),
                                 (404, whose, {"item": item}, headers)],
            "emptyTrash": [(200, whose, None, headers), (400, typo, None, headers)],
            "checkFiles": [(200, whose, {"quick": True}, headers),
                           (400, whose, {"quick": 1}, headers)],
            "deleteFile": [(204, {**whose, "path": here, "?recursive": "true"}, None, headers),
                           (403, {**whose, "path": ""}, None, headers)],
        }.items()}

    def test_the_watch(self):
        made = self.create(config={"a": "b"})
        response = self.connect().begin("GET", "/v1/watch/keyspaces")
        self.assertEqual(response.headers["Content-Type"], "text/event-stream")
        seen = None
        while seen != made["name"]:
            line = response.readline()
            if line.startswith(b"data: "):
                event = json.loads(line.removeprefix(b"data: "))
                self.assertEqual(self.problems_of("WatchEvent", event), [])
                seen = event["keyspace"]["name"]
        response.close()
        self.check_call("watchKeyspaces", 422, {"?since": 2**60})
        self.check_call("watchKeyspaces", 400, {"?from": 1})

    def test_errors_before_any_path_is_known(self):
        for path, schema in (("/nowhere", {"$ref": "#/components/schemas/Error"}),
                             (f"{KEYSPACES}/a/b/c", {"type": "string"})):
            answer = self.api.get(path)
            self.assertEqual(answer.status, 404)
            self.assertEqual(list(self.validator.problems(schema, answer.json)), [])


if __name__ == "__main__":
    unittest.main()
