"""Files over HTTP, against a running server."""

import base64
import email.utils
import json
import signal
import threading
import unittest

from trellis_http import (V1Test, Wire, encoded, entry_bytes, eventually, json_lines,
                          seeded_random)

MIB = 1 << 20


def file_path(path, name=None):
    """The target of a file: slashes stay."""
    if isinstance(path, str):
        path = path.encode()
    front = f"/k/{name}" if name else ""
    return f"{front}/v1/files/" + "/".join(encoded(part) for part in path.split(b"/"))


def fs_path(rest, name=None):
    return (f"/k/{name}" if name else "") + f"/v1/fs/{rest}"


def listed(answer):
    return [entry_bytes(entry, "path").decode("latin-1") for entry in answer.json["entries"]]


class FilesTest(V1Test):
    def setUp(self):
        super().setUp()
        self.space = self.create()["name"]

    def at(self, path):
        return file_path(path, self.space)

    def fs(self, rest):
        return fs_path(rest, self.space)

    def store(self, path, content=b"x", **headers):
        answer = self.api.put(self.at(path), content, **headers)
        self.assertEqual(answer.status, 200, answer)
        return answer

    def content(self, path, **headers):
        answer = self.api.get(self.at(path), **headers)
        self.assertEqual(answer.status, 200, answer)
        return answer.body

    def is_clean(self):
        lines = json_lines(self.api.post(self.fs("fsck")).body)
        self.assertTrue(lines[-1].get("done"), lines)
        self.assertTrue(lines[-1]["clean"], lines)
        self.assertEqual([line for line in lines if "kind" in line], [])
        return lines[-1]


class Content(FilesTest):
    def test_put_get_head_delete(self):
        made = self.store("a/b.txt", b"hello", Content_Type="text/plain",
                          X_Trellis_Meta_Color="red", Cache_Control="no-cache")
        self.assertEqual((made.json["type"], made.json["size"]), ("file", 5))
        got = self.api.get(self.at("a/b.txt"))
        self.assertEqual((got.status, got.body), (200, b"hello"))
        self.assertEqual(got.headers["Content-Type"], "text/plain")
        self.assertEqual(got.headers["Cache-Control"], "no-cache")
        self.assertEqual(got.headers["X-Trellis-Meta-color"], "red")
        self.assertEqual(got.headers["Accept-Ranges"], "bytes")
        self.assertEqual(got.headers["ETag"], made.headers["ETag"])
        self.assertEqual(got.headers["ETag"], f'"{made.json["etag"]}"')
        head = self.api.call("HEAD", self.at("a/b.txt"))
        self.assertEqual((head.status, head.body), (200, b""))
        self.assertEqual(head.headers["Content-Length"], "5")
        self.assertEqual(head.headers["ETag"], got.headers["ETag"])
        self.assertEqual(self.api.call("HEAD", self.at("a/")).status, 200)
        self.assertEqual(self.api.call("HEAD", self.at("none")).status, 404)
        self.assertEqual(self.api.delete(self.at("a/b.txt")).status, 204)
        self.refused(self.api.get(self.at("a/b.txt")), 404, "no_entry")
        self.assertEqual(self.api.delete(self.at("a/b.txt")).status, 204)

    def test_content_is_bytes_of_any_size(self):
        random = seeded_random()
        for size in (0, 1, 4095, 65535, 65536, 65537, 3 * MIB + 17):
            content = random.randbytes(size)
            self.store("sized", content)
            self.assertEqual(self.content("sized"), content)
        self.assertEqual(self.is_clean()["entries"], 1)

    def test_ranges(self):
        content = seeded_random().randbytes(200_000)
        self.store("f", content)
        for header, begin, end in (("0-0", 0, 1), ("0-99999", 0, 100_000), ("7-70000", 7, 70_001),
                                   ("199999-", 199_999, 200_000), ("100-", 100, 200_000),
                                   ("-1", 199_999, 200_000), ("-70000", 130_000, 200_000),
                                   ("-900000", 0, 200_000), ("5-900000", 5, 200_000),
                                   ("0-18446744073709551615", 0, 200_000),
                                   ("0-18446744073709551616", 0, 200_000),
                                   ("7-" + 40 * "9", 7, 200_000), ("-" + 40 * "9", 0, 200_000)):
            for method in ("GET", "HEAD"):
                with self.subTest(header=header, method=method):
                    got = self.api.call(method, self.at("f"), None, {"Range": f"bytes={header}"})
                    self.assertEqual(got.status, 206, got)
                    self.assertEqual(got.body, content[begin:end] if method == "GET" else b"")
                    self.assertEqual(got.headers["Content-Length"], str(end - begin))
                    self.assertEqual(got.headers["Content-Range"],
                                     f"bytes {begin}-{end - 1}/200000")
        for header in ("200000-", "200000-200001", "-0", "99999999999-", 30 * "9" + "-"):
            got = self.api.get(self.at("f"), Range=f"bytes={header}")
            self.refused(got, 416, "range_not_satisfied")
            self.assertEqual(got.headers["Content-Range"], "bytes */200000")
        for header in ("bytes=5-3", "bytes=a-b", "lines=1-2", "bytes=0-1,4-5", "bytes=", "bytes=-",
                       "bytes=1", "bytes=0-1x", "bytes=+1-2"):
            got = self.api.get(self.at("f"), Range=header)
            self.assertEqual((got.status, len(got.body)), (200, 200_000), header)
        self.store("empty", b"")
        self.refused(self.api.get(self.at("empty"), Range="bytes=0-"), 416, "range_not_satisfied")

    def test_if_range(self):
        tag = self.store("f", b"0123456789").headers["ETag"]
        got = self.api.get(self.at("f"), Range="bytes=5-", If_Range=tag)
        self.assertEqual((got.status, got.body), (206, b"56789"))
        self.store("f", b"abcdefghij")
        got = self.api.get(self.at("f"), Range="bytes=5-", If_Range=tag)
        self.assertEqual((got.status, got.body), (200, b"abcdefghij"))

    def test_conditions_of_reads(self):
        made = self.store("f", b"hello")
        tag, other = made.headers["ETag"], '"other"'
        modified = self.api.get(self.at("f")).headers["Last-Modified"]
        stamp = email.utils.parsedate_to_datetime(modified).timestamp()
        before, after = (email.utils.formatdate(stamp + shift, usegmt=True)
                         for shift in (-10, 10))
        for headers, status in (
                ({"If-Match": tag}, 200), ({"If-Match": f"{other}, {tag}"}, 200),
                ({"If-Match": "*"}, 200), ({"If-Match": other}, 412),
                # A weak tag promises too little.
                ({"If-Match": f"W/{tag}"}, 412), ({"If-Match": f"W/{tag}, {tag}"}, 200),
                ({"If-None-Match": tag}, 304), ({"If-None-Match": f"W/{tag}"}, 304),
                ({"If-None-Match": "*"}, 304), ({"If-None-Match": other}, 200),
                ({"If-Modified-Since": modified}, 304), ({"If-Modified-Since": after}, 304),
                ({"If-Modified-Since": before}, 200), ({"If-Modified-Since": "yesterday"}, 200),
                ({"If-Unmodified-Since": modified}, 200), ({"If-Unmodified-Since": before}, 412),
                # Tags win over times.
                ({"If-None-Match": other, "If-Modified-Since": after}, 200),
                ({"If-Match": tag, "If-Unmodified-Since": before}, 200)):
            for method in ("GET", "HEAD"):
                with self.subTest(headers=headers, method=method):
                    got = self.api.call(method, self.at("f"), None, headers)
                    self.assertEqual(got.status, status, got)
                    if status == 304:
                        self.assertEqual((got.body, got.headers["ETag"]), (b"", tag))
                    elif method == "GET":
                        self.assertEqual(got.body == b"hello", status == 200)

    def test_conditions_of_writes(self):
        tag = self.store("f", b"1", If_None_Match="*").headers["ETag"]
        self.refused(self.api.put(self.at("f"), b"2", If_None_Match="*"), 412, "condition_failed")
        self.refused(self.api.put(self.at("f"), b"2", If_Match='"x"'), 412, "condition_failed")
        self.refused(self.api.put(self.at("new"), b"2", If_Match="*"), 412, "condition_failed")
        self.refused(self.api.put(self.at("f"), b"2", If_None_Match=tag), 412, "condition_failed")
        self.refused(self.api.put(self.at("f"), b"2", If_Match="bare"), 400, "bad_condition")
        changed = self.store("f", b"3", If_Match=tag).headers["ETag"]
        self.assertNotEqual(changed, tag)
        self.refused(self.api.put(self.at("f"), b"4", If_Match=tag), 412, "condition_failed")
        self.assertEqual(self.content("f"), b"3")

    def test_conditions_of_removals_and_appends(self):
        old = self.store("f", b"1").headers["ETag"]
        append = self.at("f") + "?append=true"
        tag = self.api.put(append, b"2", If_Match=old).headers["ETag"]
        for headers in ({"If_Match": old}, {"If_Match": '"x"'}):
            self.refused(self.api.put(append, b"3", **headers), 412, "condition_failed")
            self.refused(self.api.delete(self.at("f"), **headers), 412, "condition_failed")
        self.refused(self.api.delete(self.at("f"), If_Match="bare"), 400, "bad_condition")
        self.assertEqual(self.content("f"), b"12")
        # Piece by piece, each to what the one before made.
        tag = self.api.put(append, bytes(5_000_000), If_Match=tag).headers["ETag"]
        self.assertEqual(len(self.content("f")), 5_000_002)
        self.assertEqual(self.api.delete(self.at("f"), If_Match=tag).status, 204)
        self.refused(self.api.delete(self.at("f"), If_Match="*"), 412, "condition_failed")
        self.refused(self.api.put(append, b"3", If_Match="*"), 412, "condition_failed")
        self.assertEqual(self.api.get(self.at("f")).status, 404)

    def test_conditions_that_nobody_looks_at_are_refused(self):
        tag = self.store("f", b"1").headers["ETag"]
        self.assertEqual(self.api.put(self.at("d/")).status, 200)
        time = email.utils.formatdate(usegmt=True)
        for method, target in (("DELETE", "f"), ("DELETE", "d/"), ("DELETE", "f?recursive=true"),
                               ("PUT", "f?append=true"), ("PUT", "d/")):
            of_files = target in ("f", "f?append=true")
            for headers in (*([] if of_files else [{"If-Match": tag}, {"If-Match": "*"}]),
                            {"If-None-Match": "*"}, {"If-Unmodified-Since": time}):
                with self.subTest(method=method, target=target, headers=headers):
                    path, _, query = target.partition("?")
                    answer = self.api.call(method, self.at(path) + (query and "?" + query), b"",
                                           headers)
                    self.refused(answer, 400, "bad_condition")
        self.refused(self.api.put(self.at("f"), b"2", If_Unmodified_Since=time), 400,
                     "bad_condition")
        self.assertEqual(self.content("f"), b"1")
        self.assertEqual(self.api.get(self.fs("stat?path=f&follow=maybe")).status, 400)

    def test_append(self):
        append = self.at("log") + "?append=true"
        self.assertEqual(self.api.put(append, b"one ").json["size"], 4)
        self.assertEqual(self.api.put(append, b"two").json["size"], 7)
        self.assertEqual(self.content("log"), b"one two")
        big = seeded_random().randbytes(3 * MIB)
        self.assertEqual(self.api.put(append, big).json["size"], 7 + len(big))
        self.assertEqual(self.content("log"), b"one two" + big)
        self.assertEqual(self.api.put(self.at("none") + "?append=true", b"").json["size"], 0)
        self.refused(self.api.put(self.at("log") + "?apend=true", b""), 400, "bad_query")

    def test_a_chunked_body(self):
        def pieces():
            for _ in range(40):
                yield bytes(100_000)
        self.api.http.request("PUT", self.at("chunked"), pieces(), encode_chunked=True,
                              headers={"Transfer-Encoding": "chunked"})
        response = self.api.http.getresponse()
        self.assertEqual(json.loads(response.read())["size"], 4_000_000)

    def test_what_reads_reads_on(self):
        """A file that is replaced or removed while it is read is read to its end."""
        old = seeded_random().randbytes(20 * MIB)
        self.store("f", old)
        reading = self.connect().begin("GET", self.at("f"))
        first = reading.read(100)
        self.store("f", b"new")
        self.assertEqual(self.api.delete(self.at("f")).status, 204)
        self.assertEqual(first + reading.read(), old)


class Names(FilesTest):
    def test_directories_and_pages(self):
        names = [f"d/{i:03}" for i in range(25)]
        for name in names:
            self.store(name)
        self.store("d/sub/deep")
        self.store("d-b")
        page = self.api.get(self.at("d/"))
        self.assertEqual(listed(page), ["d/", *names, "d/sub/"])
        self.assertNotIn("resume", page.json)
        whole = listed(self.api.get(self.at("") + "?recursive=true"))
        self.assertEqual(whole, ["/", "d-b", "d/", *names, "d/sub/", "d/sub/deep"])
        for limit in (1, 2, 7, 29, 30):
            seen, query = [], f"?recursive=true&limit={limit}"
            target = self.at("") + query
            while True:
                page = self.api.get(target)
                seen += listed(page)
                if "resume" not in page.json:
                    break
                target = self.at("") + query + "&start_after=" + encoded(page.json["resume"])
            self.assertEqual(seen, whole)
        self.assertEqual(listed(self.api.get(self.at("d/") + "?prefix=02")), names[20:])
        self.assertEqual(listed(self.api.get(self.at("none/"))), [])
        self.refused(self.api.get(self.at("d")), 409, "is_a_directory")
        self.refused(self.api.get(self.at("d/000/x")), 404, "no_entry")
        for query in ("limit=0", "limit=x", "limit=10001", "recursive=maybe", "what=1"):
            self.assertEqual(self.api.get(self.at("d/") + f"?{query}").status, 400, query)

    def test_make_and_remove_directories(self):
        made = self.api.put(self.at("a/b/c/"))
        self.assertEqual((made.status, made.json["type"]), (200, "directory"))
        self.assertEqual(self.api.put(self.at("a/b/c/")).status, 200)
        self.refused(self.api.put(self.at("a/b/c/"), b"content"), 409, "is_a_directory")
        self.refused(self.api.put(self.at("a/b"), b"content"), 409, "is_a_directory")
        self.store("f")
        self.refused(self.api.put(self.at("f/")), 409, "not_a_directory")
        self.refused(self.api.put(self.at("f/x"), b""), 409, "not_a_directory")
        self.refused(self.api.delete(self.at("a/")), 409, "not_empty")
        self.assertEqual(self.api.delete(self.at("a/b/c/")).status, 204)
        self.store("a/b/x")
        self.assertEqual(self.api.delete(self.at("a/") + "?recursive=true").status, 204)
        self.assertEqual(listed(self.api.get(self.at("") + "?recursive=true")), ["/", "f"])
        self.assertEqual(self.api.delete(self.at("") + "?recursive=true").status, 204)
        self.assertEqual(listed(self.api.get(self.at("") + "?recursive=true")), ["/"])
        self.is_clean()

    def test_hostile_paths(self):
        self.store("a/b", b"content")
        # Dots are resolved before anything is looked at, and never leave the root.
        for path in ("../../a/b", "a/../a/./b", "/a//b", "a/x/../b"):
            self.assertEqual(self.api.get(f"/k/{self.space}/v1/files/{path}").body, b"content",
                             path)
        self.assertEqual(self.api.get(f"/k/{self.space}/v1/files/a%2Fb").body, b"content")
        self.refused(self.api.put(self.at(b"nul\x00"), b""), 422, "illegal_name")
        self.refused(self.api.get(self.at(b"nul\x00")), 422, "illegal_name")
        long = bytes(range(1, 256)).replace(b"/", b"x")
        self.store(long, b"long")
        self.assertEqual(self.content(long), b"long")
        self.refused(self.api.put(self.at(long + b"x"), b""), 422, "name_too_long")
        deep = "/".join(["d" * 15] * 256)  # of 4,095 bytes
        self.store(deep, b"deep")
        self.assertEqual(self.content(deep), b"deep")
        self.store(deep[:-15] + "e" * 16, b"4096 bytes")
        self.refused(self.api.put(self.at(deep + "/x"), b""), 422, "path_too_long")
        listing = self.api.get(self.at(""))
        self.assertIn(long.decode("latin-1"), listed(listing))
        entry = next(e for e in listing.json["entries"] if "path_base64" in e)
        self.assertEqual(base64.b64decode(entry["path_base64"]), long)
        self.assertEqual(self.api.delete(self.at("") + "?recursive=true").status, 204)
        self.is_clean()

    def test_pages_of_the_longest_paths(self):
        # Each byte of them is three of the request line.
        directory = b"/".join([b"\xff" * 255] * 15) + b"/"
        names = [directory + bytes([letter]) * 255 for letter in (0xf0, 0xf1, 0xf2)]
        for name in names:
            self.store(name)
        query = "?limit=1"
        found = []
        after = ""
        while True:
            page = self.api.get(self.at(directory) + query + after)
            self.assertEqual(page.status, 200, page)
            found += [entry_bytes(entry, "path") for entry in page.json["entries"]]
            if not page.json["entries"]:
                break
            after = f"&start_after={encoded(found[-1])}"
        self.assertEqual([path for path in found if path != directory], names)

    def test_copy(self):
        content = seeded_random().randbytes(2 * MIB)
        self.store("f", content, Content_Type="text/plain")
        made = self.api.post(self.fs("copy"), {"from": "f", "to": "d/g"})
        self.assertEqual((made.status, made.json["size"]), (200, len(content)))
        self.assertEqual(made.json["content_type"], "text/plain")
        self.store("f", b"changed")
        self.assertEqual(self.content("d/g"), content)
        refuse = {"from": "f", "to": "d/g", "if_not_exists": True}
        self.refused(self.api.post(self.fs("copy"), refuse), 412, "condition_failed")
        self.assertEqual(self.api.post(self.fs("copy"), {"from": "f", "to": "d/g"}).status, 200)
        self.assertEqual(self.content("d/g"), b"changed")
        self.refused(self.api.post(self.fs("copy"), {"from": "no", "to": "x"}), 404, "no_entry")
        self.refused(self.api.post(self.fs("copy"), {"from": "f", "to": "f"}), 409, "is_same_file")
        self.refused(self.api.post(self.fs("copy"), {"from": "d/", "to": "x"}), 409,
                     "is_a_directory")
        self.assertEqual(self.api.post(self.fs("copy"), {"from": "f"}).status, 400)
        self.is_clean()

    def test_rename(self):
        self.store("d/e/f", b"1")
        self.store("g", b"2")
        def rename(source, target, **more):
            return self.api.post(self.fs("rename"), {"from": source, "to": target, **more})
        self.assertEqual(rename("d/", "x/y/").status, 204)
        self.assertEqual(self.content("x/y/e/f"), b"1")
        self.assertEqual(self.api.get(self.at("d/e/f")).status, 404)
        self.refused(rename("x/", "x/y/z/"), 409, "into_itself")
        self.refused(rename("g", "x/y/e/f", if_not_exists=True), 412, "condition_failed")
        self.assertEqual(rename("g", "x/y/e/f").status, 204)
        self.assertEqual(self.content("x/y/e/f"), b"2")
        self.api.put(self.at("empty/"))
        self.store("full/f")
        self.refused(rename("x/", "full/"), 409, "not_empty")
        self.assertEqual(rename("x/", "empty/").status, 204)
        self.assertEqual(self.content("empty/y/e/f"), b"2")
        self.refused(rename("none", "some"), 404, "no_entry")
        odd = base64.b64encode(b"n\xff").decode()
        answer = self.api.post(self.fs("rename"), {"from": "full/f", "to_base64": odd})
        self.assertEqual(answer.status, 204, answer)
        self.assertEqual(self.content(b"n\xff"), b"x")
        self.is_clean()

    def test_stat_and_figures(self):
        self.store("d/f", bytes(100_000))
        stat = self.api.get(self.fs("stat?path=d/f")).json
        self.assertEqual((stat["path"], stat["type"], stat["size"]), ("d/f", "file", 100_000))
        self.assertEqual(stat["space"], 2 * 65536)
        self.assertRegex(stat["modified"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$")
        self.assertEqual(self.api.get(self.fs("stat?path=d")).json["type"], "directory")
        self.assertEqual(self.api.get(self.fs("stat")).json["type"], "directory")
        self.refused(self.api.get(self.fs("stat?path=d/f/")), 404, "no_entry")
        du = self.api.get(self.fs("du?path=d")).json
        self.assertEqual((du["space"], du["length"]), (2 * 65536, 100_000))
        figures = self.api.get(self.fs("figures")).json
        self.assertEqual(figures["used"]["length"], 100_000)


class Whole(FilesTest):
    def test_quota(self):
        self.api.put(self.at("d/"))
        quota = self.fs("quota?path=d/")
        answer = self.api.put(quota, {"bytes_max": 4 * 65536, "inodes_max": 3})
        self.assertEqual(answer.status, 204, answer)
        self.store("d/a", bytes(100_000))
        answer = self.api.put(self.at("d/b"), bytes(300_000))
        self.refused(answer, 507, "directory_quota_exceeded")
        self.assertIn('quota of 256.0 KiB of the directory "d/"', answer.json["message"])
        self.assertEqual(self.api.get(self.at("d/b")).status, 404)
        append = self.api.put(self.at("d/a") + "?append=true", bytes(300_000))
        self.refused(append, 507, "directory_quota_exceeded")
        for name in ("d/b", "d/c"):
            self.store(name, b"")
        self.refused(self.api.put(self.at("d/e"), b""), 507, "directory_quota_exceeded")
        shown = self.api.get(quota).json
        self.assertEqual((shown["bytes_max"], shown["inodes_max"]), (4 * 65536, 3))
        self.assertLessEqual(shown["used"]["space"], 4 * 65536)
        self.assertEqual(self.api.put(quota, {}).status, 204)
        self.store("d/e", bytes(300_000))
        self.refused(self.api.get(self.fs("quota?path=d/a")), 409, "not_a_directory")
        self.is_clean()

    def test_an_upload_without_room_is_refused_in_the_middle(self):
        self.api.put(self.at("d/"))
        quota = self.fs("quota?path=d/")
        self.assertEqual(self.api.put(quota, {"bytes_max": 10 * MIB}).status, 204)
        wire = Wire(self.server.address)
        self.addCleanup(wire.close)
        # What follows never comes: it is answered because of what there is.
        wire.send(f"PUT {self.at('d/f')} HTTP/1.1\r\nHost: localhost\r\n"
                  f"Content-Length: {500 * MIB}\r\n\r\n".encode() + bytes(12 * MIB))
        self.assertIn(b"directory_quota_exceeded", wire.rest())
        eventually(lambda: self.show(self.space)["figures"]["bytes"] < MIB,
                   "what was stored of it is free")
        self.is_clean()

    def test_trash(self):
        self.assertEqual(self.api.put(self.fs("trash"), {"keep_ms": 86_400_000}).status, 204)
        self.store("d/f", b"kept")
        self.store("d/g", b"kept too")
        self.assertEqual(self.api.delete(self.at("d/f")).status, 204)
        self.assertEqual(self.api.delete(self.at("d/") + "?recursive=true").status, 204)
        self.assertEqual(listed(self.api.get(self.at("") + "?recursive=true")), ["/"])
        trash = self.api.get(self.fs("trash")).json
        self.assertEqual(trash["keep_ms"], 86_400_000)
        items = {entry["name"]: entry["item"] for entry in trash["entries"]}
        self.assertEqual(set(items), {"f", "d"})
        restore = self.fs("trash/restore")
        self.assertEqual(self.api.post(restore, {"item": items["d"]}).status, 200)
        self.assertEqual(self.content("d/g"), b"kept too")
        self.assertEqual(self.api.post(restore, {"item": items["f"], "to": "d/h"}).status, 200)
        self.assertEqual(self.content("d/h"), b"kept")
        self.assertEqual(self.api.post(restore, {"item": items["f"]}).status, 404)
        self.api.delete(self.at("d/h"))
        self.assertEqual(len(self.api.get(self.fs("trash")).json["entries"]), 1)
        self.assertEqual(self.api.post(self.fs("trash/empty")).status, 200)
        self.assertEqual(self.api.get(self.fs("trash")).json["entries"], [])
        self.assertEqual(self.api.put(self.fs("trash"), {}).status, 400)
        self.is_clean()

    def test_fsck(self):
        for i in range(20):
            self.store(f"d{i % 3}/{i}", bytes(i * 10_000))
        report = self.is_clean()
        self.assertEqual(report["entries"], 23)
        quick = json_lines(self.api.post(self.fs("fsck"), {"quick": True}).body)
        self.assertTrue(quick[-1]["clean"])
        self.assertEqual(self.api.post(self.fs("fsck"), {"repare": True}).status, 400)

    def test_one_fsck_at_a_time(self):
        self.store("f", bytes(100_000_000))
        wires = [Wire(self.server.address) for _ in range(8)]
        for wire in wires:
            self.addCleanup(wire.close)
            wire.send(f"POST {self.fs('fsck')} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n"
                      "Connection: close\r\n\r\n".encode())
        answers = [wire.rest() for wire in wires]
        running = [answer for answer in answers if answer.startswith(b"HTTP/1.1 409")]
        self.assertTrue(0 < len(running) < len(wires), answers)
        for answer in answers:
            self.assertIn(b"fsck_running" if answer in running else b'"clean":true', answer)
        self.is_clean()

    def test_keyspaces_do_not_see_each_other(self):
        other = self.create()["name"]
        self.store("f", b"mine")
        self.assertEqual(self.api.get(file_path("f", other)).status, 404)
        self.assertEqual(self.api.put(file_path("f", other), b"theirs").status, 200)
        self.assertEqual(self.content("f"), b"mine")
        token = self.token(self.space, "write")["token"]
        mine = self.connect(token)
        self.assertEqual(mine.get(file_path("f")).body, b"mine")
        self.assertEqual(mine.get(file_path("f", other)).status, 403)
        self.assertEqual(mine.put(file_path("f", other), b"").status, 403)
        self.assertEqual(mine.delete(file_path("", other) + "?recursive=true").status, 403)
        self.assertEqual(self.api.get(file_path("f", other)).body, b"theirs")
        self.refused(self.api.get(file_path("f", "nobody")), 404, "keyspace_not_found")

    def test_roles(self):
        self.store("f", b"content")
        reader = self.connect(self.token(self.space, "read")["token"])
        self.assertEqual(reader.get(file_path("f")).body, b"content")
        self.assertEqual(listed(reader.get(file_path(""))), ["/", "f"])
        self.assertEqual(reader.get(fs_path("stat?path=f")).status, 200)
        self.assertEqual(reader.get(fs_path("du")).status, 200)
        self.assertEqual(reader.post(fs_path("fsck")).status, 200)
        move = {"from": "f", "to": "g"}
        for refused in (reader.put(file_path("g"), b"x"), reader.put(file_path("d/")),
                        reader.put(file_path("f") + "?append=true", b"x"),
                        reader.delete(file_path("f")),
                        reader.delete(file_path("") + "?recursive=true"),
                        reader.post(fs_path("copy"), move), reader.post(fs_path("rename"), move),
                        reader.put(fs_path("quota?path=/"), {"bytes_max": 1}),
                        reader.put(fs_path("trash"), {"keep_ms": 1}),
                        reader.post(fs_path("trash/empty")),
                        reader.post(fs_path("fsck"), {"repair": True})):
            self.assertEqual(refused.status, 403, refused)
        self.assertEqual(listed(self.api.get(self.at(""))), ["/", "f"])
        self.assertEqual(self.connect("nonsense").get(file_path("f")).status, 401)


class Streams(FilesTest):
    arguments = ("--cache-bytes", "32MiB")
    SIZE = 200 * MIB

    def move(self, piece):
        """200 MiB there and back."""
        self.api.http.request("PUT", self.at("large"), (piece for _ in range(200)),
                              headers={"Content-Length": str(self.SIZE)})
        response = self.api.http.getresponse()
        self.assertEqual(json.loads(response.read())["size"], self.SIZE)
        reading = self.api.begin("GET", self.at("large"))
        self.assertEqual(reading.headers["Content-Length"], str(self.SIZE))
        for _ in range(200):
            self.assertTrue(reading.read(MIB) == piece)
        self.assertEqual(reading.read(), b"")

    def test_large_files_need_little_memory(self):
        piece = seeded_random().randbytes(MIB)
        self.store("small", piece)
        before = self.server.rss_bytes()
        peaks = [0, 0]
        turn = 0
        done = threading.Event()

        def watch():
            while not done.wait(0.02):
                peaks[turn] = max(peaks[turn], self.server.rss_bytes())
        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            for turn in range(2):
                self.move(piece)
        finally:
            done.set()
            watcher.join()
        print(f"200 MiB in and out: {peaks[0] / MIB:.0f} MiB, again: {peaks[1] / MIB:.0f} MiB, "
              f"before: {before / MIB:.0f} MiB")
        # The store fills its own buffers, which are bounded, with the first; what comes then is
        # ours.
        self.assertLess(peaks[0] - before, self.server.rss_bytes_max(250 * MIB))
        self.assertLess(peaks[1] - peaks[0], self.server.rss_bytes_max(64 * MIB))

    def test_an_upload_that_breaks_off(self):
        with Wire(self.server.address) as wire:
            wire.send(f"PUT {self.at('half')} HTTP/1.1\r\nHost: [::1]\r\n"
                      "Content-Length: 9000000\r\n\r\n".encode() + bytes(5_000_000))
        self.assertEqual(self.api.get(self.at("half")).status, 404)
        self.is_clean()
        self.assertEqual(listed(self.api.get(self.at("") + "?recursive=true")), ["/"])

    def test_sizes_that_no_disk_has(self):
        def put(size, content=b""):
            head = f"PUT {self.at('f')} HTTP/1.1\r\nHost: [::1]\r\nContent-Length: {size}\r\n\r\n"
            with Wire(self.server.address) as wire:
                wire.send(head.encode() + content)
                return None if content else wire.answer("PUT")[0]
        self.assertEqual(put(2**63 - 1), 413)
        self.assertEqual(put(2**64), 400)
        put(2**62, bytes(MIB))  # and no more of it comes
        self.assertEqual(self.api.get(self.at("f")).status, 404)
        self.store("f", b"12345")
        answer = self.api.get(self.at("f"), Range=f"bytes=1-{2**63 - 1}")
        self.assertEqual((answer.status, answer.body), (206, b"2345"))
        answer = self.api.get(self.at("f"), Range=f"bytes={2**63 - 2}-{2**63 - 1}")
        self.assertEqual(answer.status, 416)
        self.is_clean()


class Restart(FilesTest):
    def restart(self, how):
        cls = type(self)
        cls.server.stop(how)
        cls.server.__exit__()
        cls.server = cls.start()
        cls.addClassCleanup(cls.server.__exit__)
        self.api = self.connect()

    def test_files_stay(self):
        content = seeded_random().randbytes(5 * MIB)
        tag = self.store("d/large", content).headers["ETag"]
        self.store("d/small", b"small", Content_Type="text/plain")
        for how in (signal.SIGINT, signal.SIGKILL):
            self.restart(how)
            self.assertEqual(self.content("d/large"), content)
            got = self.api.get(self.at("d/small"))
            self.assertEqual((got.body, got.headers["Content-Type"]), (b"small", "text/plain"))
            self.assertEqual(self.api.get(self.at("d/large")).headers["ETag"], tag)
            self.is_clean()

    def test_killed_in_the_middle_of_an_upload(self):
        self.store("f", b"before")
        for name in ("f", "new"):
            wire = Wire(self.server.address)
            self.addCleanup(wire.close)
            # More than fits between the two: when it is sent, most of it is stored.
            wire.send(f"PUT {self.at(name)} HTTP/1.1\r\nHost: [::1]\r\nContent-Length: 90000000\r\n"
                      "\r\n".encode() + bytes(40 * MIB))
        self.restart(signal.SIGKILL)
        self.assertEqual(self.content("f"), b"before")
        self.assertEqual(listed(self.api.get(self.at("") + "?recursive=true")), ["/", "f"])
        lines = json_lines(self.api.post(self.fs("fsck")).body)
        self.assertTrue(lines[-1]["clean"], lines)


if __name__ == "__main__":
    unittest.main()
