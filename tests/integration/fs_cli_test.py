"""`trellis fs`, against a running server."""

import json
import os
import pathlib
import re
import socket
import subprocess
import unittest

from client_command import ClientTest, ScriptedServer, http_answer
from trellis_command import BINARY, Server, clean_environment
from trellis_http import seeded_random

MIB = 1 << 20
EDIT_STORE = os.environ.get("EDIT_STORE", "build/edit_store")


class FilesTest(ClientTest):
    """Each test has a keyspace of its own."""

    def setUp(self):
        super().setUp()
        self.space = f"s{os.urandom(6).hex()}"
        self.does("keyspace", "create", self.space)

    def environment(self, **extra):
        space = getattr(self, "space", None)
        return super().environment(**({"TRELLIS_KEYSPACE": space} if space else {}), **extra)

    def fs(self, *arguments, **more):
        return self.does("fs", *arguments, **more)

    def wrong(self, message, *arguments, **more):
        return self.fails(2, message, "fs", *arguments, **more)

    def refused(self, message, *arguments, **more):
        return self.fails(1, message, "fs", *arguments, **more)

    def store(self, *paths, content=b"x"):
        for path in paths:
            self.fs("put", "-", path, stdin=content)

    def names(self, *arguments):
        return self.fs("ls", *arguments).out.splitlines()

    def tree(self, folder):
        """All files below a local folder, with their content."""
        return {os.path.relpath(os.path.join(at, name), folder):
                pathlib.Path(at, name).read_bytes()
                for at, _, names in os.walk(folder) for name in names}


class Content(FilesTest):
    def test_put_cat_get_rm(self):
        done = self.fs("put", "-", "a/b.txt", "--content-type", "text/plain", stdin=b"hello")
        self.assertEqual(done.out, "1 file put, 5 B\n")
        self.assertEqual(self.fs("cat", "a/b.txt").out, "hello")
        self.assertEqual(self.fs("cat", "/a/./b.txt").out, "hello")
        stat = self.fs("stat", "a/b.txt", "--json").json
        self.assertEqual((stat["size"], stat["content_type"]), (5, "text/plain"))
        self.assertRegex(self.fs("stat", "a/b.txt").out, r"etag +[0-9a-f-]+\n")
        self.assertEqual(self.fs("get", "a/b.txt", self.folder).out, "1 file got, 5 B\n")
        self.assertEqual(self.tree(self.folder), {"b.txt": b"hello"})
        self.fs("get", "a/b.txt", self.folder / "c.txt")
        self.assertEqual((self.folder / "c.txt").read_bytes(), b"hello")
        self.assertEqual(self.fs("get", "a/b.txt", "-").out, "hello")
        self.assertEqual(self.fs("rm", "a/b.txt").out, "")
        self.assertEqual(self.fs("rm", "a/b.txt").out, "a/b.txt was not there\n")
        self.assertEqual(self.fs("rm", "a/b.txt", "--json").json,
                         {"path": "a/b.txt", "removed": False})
        self.refused("there is no a/b.txt", "cat", "a/b.txt")
        self.refused("there is no a/b.txt", "get", "a/b.txt", self.folder / "d")
        self.assertFalse((self.folder / "d").exists())

    def test_parts(self):
        self.store("f", content=b"0123456789")
        for arguments, expected in ((["--offset", "7"], "789"), (["--size", "3"], "012"),
                                    (["--offset", "2", "--size", "3"], "234"),
                                    (["--tail", "4"], "6789"), (["--tail", "99"], "0123456789"),
                                    (["--offset", "10"], ""), (["--offset", "99"], ""),
                                    (["--size", "0"], ""), (["--tail", "0"], ""),
                                    (["--offset", "8", "--size", "99"], "89")):
            self.assertEqual(self.fs("cat", "f", *arguments).out, expected, arguments)
        self.assertEqual(self.fs("cat", "f", "--size", "2", "--json").json["content"], "01")
        self.store("empty", content=b"")
        self.assertEqual(self.fs("cat", "empty", "--tail", "5").out, "")
        self.wrong("excludes", "cat", "f", "--tail", "1", "--offset", "1")
        self.wrong("", "cat", "f", "--offset", "-1")

    def test_large_files_and_conditions(self):
        content = seeded_random().randbytes(5 * MIB + 3)
        source = self.folder / "source"
        source.write_bytes(content)
        made = self.fs("put", source, "big", "--json").json
        self.assertEqual((made["path"], made["size"]), ("big", len(content)))
        self.fs("get", "big", self.folder / "copy")
        self.assertEqual((self.folder / "copy").read_bytes(), content)
        self.refused("", "put", source, "big", "--if-absent")
        self.refused("", "put", source, "big", "--if-tag", "0-0-0")
        self.fs("put", "-", "big", "--if-tag", made["etag"], stdin=b"short")
        self.assertEqual(self.fs("cat", "big").out, "short")
        self.fs("put", "-", "big", "--append", stdin=b"er")
        self.assertEqual(self.fs("cat", "big").out, "shorter")
        self.wrong("excludes", "put", source, "big", "--append", "--if-absent")
        self.wrong("a tag has no", "put", source, "big", "--if-tag", "a\r\nHost: x")
        self.assertEqual(set(os.listdir(self.folder)), {"source", "copy"})

    def test_an_interrupted_get_goes_on(self):
        content = seeded_random().randbytes(3 * MIB)
        self.fs("put", "-", "f", stdin=content)
        stat = self.fs("stat", "f", "--json").out
        head = (f"HTTP/1.1 200 OK\r\nETag: \"1-2-3\"\r\nContent-Length: {len(content)}\r\n\r\n")
        broken = head.encode() + content[:2 * MIB]
        answers = [http_answer(200, stat), broken, *[b""] * 12]
        target = self.folder / "f"
        with ScriptedServer(*answers) as server:
            self.refused("goes on where it broke off", "get", "f", target, "--server", server.url)
            partial, = self.folder.iterdir()
            self.assertRegex(partial.name, r"^\.trellis-[0-9a-f]{8}-[0-9a-f-]+\.partial$")
            self.assertEqual(partial.read_bytes(), content[:2 * MIB])
            self.assertIn(f"Range: bytes={2 * MIB}-", "".join(server.requests[2:]))
        rest = (f"HTTP/1.1 206 OK\r\nContent-Length: {MIB}\r\nConnection: close\r\n\r\n").encode()
        with ScriptedServer(http_answer(200, stat), rest + content[2 * MIB:]) as other:
            # Of another server: nothing of what was got is taken.
            self.run_trellis("fs", "get", "f", target, "--server", other.url)
            self.assertNotIn("Range", other.requests[1])
        target.unlink(missing_ok=True)
        for left in self.folder.iterdir():
            left.unlink()
        self.fs("get", "f", target)
        self.assertEqual(self.tree(self.folder), {"f": content})

    def test_progress_on_a_terminal(self):
        source = self.folder / "source"
        source.write_bytes(bytes(64 * MIB))
        code, shown = self.on_terminal("fs", "put", source, "f")
        self.assertEqual(code, 0, shown)
        self.assertRegex(shown, r"\[[#.]{30}\] \d+%, [\d.]+ [KM]iB, [\d.]+ [KMG]?i?B/s")
        self.assertIn("1 file put, 64.0 MiB", shown)
        code, shown = self.on_terminal("fs", "get", "f", self.folder / "copy")
        self.assertEqual(code, 0, shown)
        self.assertRegex(shown, r"\[[#.]{30}\] \d+%")

    def test_a_bar_is_of_all_that_comes(self):
        self.store("d/a", content=b"")
        self.store("d/b/c", content=bytes(3 * MIB))
        for command in (["get", "-r", "d", self.folder], ["get", "d/a", "d/b/c", self.folder],
                        ["cp", "-r", "d", "e/"]):
            with self.subTest(command=command):
                code, shown = self.on_terminal("fs", *command)
                self.assertEqual(code, 0, shown)
                # The first line is shown at the first file.
                self.assertEqual(re.search(r"\] (\d+)%", shown).group(1), "0", shown)
        code, shown = self.on_terminal("fs", "get", "d/**/*", self.folder)
        self.assertEqual(code, 0, shown)
        self.assertNotIn("%", shown)


class Trees(FilesTest):
    FILES = {"a": b"1", "d/b": b"22", "d/e/c": b"", "with space/ü": b"3", "[x]": b"4", "*": b"5"}

    def setUp(self):
        super().setUp()
        self.source = self.folder / "tree"
        for path, content in self.FILES.items():
            (self.source / path).parent.mkdir(parents=True, exist_ok=True)
            (self.source / path).write_bytes(content)
        (self.source / "hollow").mkdir()

    def test_put_and_get_trees(self):
        self.wrong("give -r", "put", self.source, "t")
        done = self.fs("put", "-r", self.source, "t")
        self.assertEqual(done.out, "6 files put, 6 B\n")
        self.fs("put", "-r", self.source, "into/")
        self.fs("mkdir", "into/same")
        self.fs("put", "-r", f"{self.source}/.", "into/same")
        for below in ("t/", "into/tree/", "into/same/"):
            found = [name.removeprefix(below) for name in self.names("-R", below)]
            self.assertEqual(sorted(found), sorted([*self.FILES, "d/", "d/e/", "with space/",
                                                    "hollow/"]), below)
        self.wrong("give -r", "get", "t/", self.folder / "back")
        self.fs("get", "-r", "t/", self.folder / "back")
        self.assertEqual(self.tree(self.folder / "back"), self.FILES)
        self.assertTrue((self.folder / "back" / "hollow").is_dir())
        self.fs("get", "-r", "t", self.folder / "back")
        self.assertEqual(self.tree(self.folder / "back" / "t"), self.FILES)
        lines = self.fs("get", "-r", "t", self.folder / "again", "--json").lines
        self.assertEqual({line["path"] for line in lines}, {f"t/{name}" for name in self.FILES})

    def test_names_that_are_no_text(self):
        name = b"n\xff\n\x1b[31m"
        path = os.path.join(os.fsencode(self.source), name)
        with open(path, "wb") as file:
            file.write(b"odd")
        self.fs("put", "-r", self.source, "t")
        lines = self.fs("ls", "t/", "--json").lines
        self.assertEqual(sum("path_base64" in line for line in lines), 1)
        shown = self.fs("ls", "-l", "t/").bytes
        self.assertNotIn(b"\x1b", shown)
        self.assertIn(rb"n\xff\n\x1b[31m", shown)
        self.fs("get", "-r", "t", self.folder / "back")
        with open(os.path.join(os.fsencode(self.folder / "back"), name), "rb") as file:
            self.assertEqual(file.read(), b"odd")
        done = subprocess.run([BINARY, "fs", "cat", b"t/" + name], capture_output=True,
                              env=self.environment())
        self.assertEqual((done.returncode, done.stdout), (0, b"odd"))
        self.fs("cp", "-r", "t/", "u/")
        self.fs("mv", "t/", "v/")
        self.fs("rm", "-r", "u", "v")
        self.assertEqual(self.names(), [])

    def test_what_is_skipped(self):
        (self.source / "link").symlink_to("a")
        (self.source / "away").symlink_to("/etc")
        os.mkfifo(self.source / "pipe")
        (self.source / "links").mkdir()
        (self.source / "links" / "only").symlink_to("../a")
        done = self.fs("put", "-r", self.source, "t")
        self.assertEqual(done.out, "6 files put, 6 B; 4 skipped\n")
        self.assertEqual(len(done.err.splitlines()), 4)
        self.assertIn("links/", self.names("t/"))
        self.assertIn("tree/link: skipped, it is a symbolic link", done.err)
        self.assertIn("tree/pipe: skipped, it is neither a file nor a folder", done.err)
        self.assertEqual(self.fs("put", self.source / "link", "followed").out, "1 file put, 1 B\n")

    def test_one_that_fails_does_not_stop_the_others(self):
        self.store("t/tree/a/occupied")  # where a file is to go
        done = self.run_trellis("fs", "put", "-r", self.source, self.source / "none", "t")
        self.assertEqual(done.code, 1)
        self.assertRegex(done.out, r"^5 files put, \d B\n$")
        self.assertIn("tree/a: ", done.err)
        self.assertIn("2 files could not be put", done.err)
        self.assertIn(f"trellis: {self.source}/none: No such file", done.err)
        self.refused("No such file", "put", self.folder / "none", "x")
        done = self.run_trellis("fs", "get", "none", "t/tree/[x]", "no*", "t/tree/d/b", self.folder)
        self.assertEqual((done.code, done.out), (1, "1 file got, 2 B\n"))
        self.assertIn("none: there is no none", done.err)
        self.assertIn("3 files could not be got", done.err)
        self.assertEqual((self.folder / "b").read_bytes(), b"22")
        done = self.run_trellis("fs", "get", "none", "t/tree/d/b", "-")
        self.assertEqual((done.code, done.out), (1, "22"))

    def test_several_sources(self):
        self.fs("put", self.source / "a", self.source / "d/b", "new/")
        self.assertEqual(self.names("new/"), ["a", "b"])
        self.fs("put", self.source / "[x]", self.source / "*", "new")
        self.assertEqual(self.names("new/"), ["*", "[x]", "a", "b"])
        self.fs("get", "new/a", "new/b", self.folder / "out")
        self.assertEqual(self.tree(self.folder / "out"), {"a": b"1", "b": b"22"})
        self.wrong("TARGET", "put", self.source / "a")
        self.wrong("no name", "put", "-", "new/")

    def test_nothing_is_written_outside(self):
        """Whoever answers in place of a server cannot choose where files go."""
        stat = json.dumps({"type": "directory", "path": "d"})
        outside = self.folder / "outside"
        for path in ("d/../../outside", "d/x/../../../outside", "../outside", "/outside", "d//x",
                     str(outside), "d/a\0b", "d/./x"):
            listing = json.dumps({"entries": [{"path": path, "type": "file", "size": 1}]})
            answers = [http_answer(200, stat), http_answer(200, listing),
                       http_answer(200, "evil")]
            with self.subTest(path=path), ScriptedServer(*answers) as server:
                target = self.folder / "in" / "here"
                done = self.run_trellis("fs", "get", "-r", "d", target, "--server", server.url)
                self.assertEqual(done.code, 1, done.err)
                self.assertFalse(outside.exists())
                self.assertEqual(self.tree(self.folder / "in"), {})

    def test_a_listing_of_another_directory_is_refused(self):
        stat = http_answer(200, json.dumps({"type": "directory", "path": "long/name"}))
        listing = http_answer(200, json.dumps({"entries": [{"path": "x", "type": "file"}]}))
        for answers, arguments in (((stat, listing), ("ls", "long/name")),
                                   ((listing,), ("ls", "long/name/*")),
                                   ((listing,), ("ls", "long/name/**")),
                                   ((stat, listing), ("get", "-r", "long/name", self.folder)),
                                   ((http_answer(404, '{"code":"no_entry"}'), stat,
                                     http_answer(200, "{}"), listing),
                                    ("cp", "-r", "long/name", "to"))):
            with self.subTest(arguments=arguments), ScriptedServer(*answers) as server:
                done = self.run_trellis("fs", *arguments, "--server", server.url)
                self.assertEqual(done.code, 1, done)
                self.assertIn("another directory", done.err)

    def test_a_link_in_the_way_is_replaced(self):
        self.store("f", content=b"new")
        victim = self.folder / "victim"
        victim.write_bytes(b"old")
        (self.folder / "link").symlink_to(victim)
        self.fs("get", "f", self.folder / "link")
        self.assertEqual(victim.read_bytes(), b"old")
        self.assertEqual((self.folder / "link").read_bytes(), b"new")
        self.fs("get", "f", "/dev/null")
        self.assertFalse(os.path.isfile("/dev/null"))


class Names(FilesTest):
    def setUp(self):
        super().setUp()
        self.store("top.txt", "logs/a.txt", "logs/b.txt", "logs/c.bin", "logs/2025/x.txt",
                   "logs/2026/x.txt", "logs/2026/deep/y.txt", "logs/*odd.txt", "[a,b]")

    def test_ls(self):
        self.assertEqual(self.names(), ["[a,b]", "logs/", "top.txt"])
        self.assertEqual(self.names("logs"), ["*odd.txt", "2025/", "2026/", "a.txt", "b.txt",
                                              "c.bin"])
        self.assertEqual(self.names("logs/"), self.names("logs"))
        self.assertEqual(self.names("top.txt"), ["top.txt"])
        self.assertEqual(self.names("logs/2025", "logs/2026"),
                         ["logs/2025/x.txt", "logs/2026/deep/", "logs/2026/x.txt"])
        self.assertEqual(self.names("-R", "logs/2026"),
                         ["logs/2026/deep/", "logs/2026/deep/y.txt", "logs/2026/x.txt"])
        rows = self.fs("ls", "-l", "--bytes", "logs").rows
        self.assertEqual(rows[1][0], "drwxr-xr-x")
        self.assertEqual((rows[3][0], rows[3][3], rows[3][-1]), ("-rw-r--r--", "1", "a.txt"))
        self.refused("there is no none", "ls", "none")
        self.refused("there is no none/", "ls", "none/")

    def test_globs(self):
        for glob, expected in (
                ("logs/*.txt", ["logs/*odd.txt", "logs/a.txt", "logs/b.txt"]),
                (r"logs/\*odd.txt", ["logs/*odd.txt"]), (r"logs/\**", ["logs/*odd.txt"]),
                ("logs/[ab].txt", ["logs/a.txt", "logs/b.txt"]),
                ("logs/[!a].txt", ["logs/b.txt"]), ("logs/?.txt", ["logs/a.txt", "logs/b.txt"]),
                ("logs/202?/x.txt", ["logs/2025/x.txt", "logs/2026/x.txt"]),
                ("logs/*/x.*", ["logs/2025/x.txt", "logs/2026/x.txt"]),
                ("logs/*/", ["logs/2025/", "logs/2026/"]),
                ("**/x.txt", ["logs/2025/x.txt", "logs/2026/x.txt"]),
                ("logs/**/y.txt", ["logs/2026/deep/y.txt"]),
                ("**/*.bin", ["logs/c.bin"]), (r"\[a,b]", ["[a,b]"]), ("[[]a,b]", ["[a,b]"]),
                ("*.txt", ["top.txt"])):
            self.assertEqual(self.names(glob), expected, glob)
        self.refused("nothing matches logs/*.zip", "ls", "logs/*.zip")
        self.refused("nothing matches none/*", "ls", "none/*")
        self.wrong("..", "ls", "../*")

    def test_globs_of_other_commands(self):
        self.assertEqual(self.fs("cat", "logs/?.txt").out, "xx")
        self.fs("get", "logs/**/x.txt", self.folder)
        self.assertEqual(set(self.tree(self.folder)), {"2025/x.txt", "2026/x.txt"})
        self.fs("cp", "logs/*.txt", "copies")
        self.assertEqual(self.names("copies"), ["*odd.txt", "a.txt", "b.txt"])
        self.fs("mv", "copies/?.txt", "moved/")
        self.assertEqual(self.names("moved"), ["a.txt", "b.txt"])
        self.fs("rm", "logs/*")  # files only
        self.assertEqual(self.names("logs"), ["2025/", "2026/"])
        self.fs("rm", "-r", "logs/*")
        self.assertEqual(self.names("logs"), [])

    def test_many_pages(self):
        lines = "".join(f"f{i:05}\n" for i in range(2_500))
        folder = self.folder / "many"
        folder.mkdir()
        for name in lines.split():
            (folder / name).write_bytes(b"")
        self.fs("put", "-r", folder, "many")
        self.assertEqual(self.names("many"), lines.split())
        self.assertEqual(self.names("many/*7"), [f"many/f{i:05}" for i in range(7, 2_500, 10)])
        process = self.start("fs", "ls", "-R", "many")
        process.stdout.readline()
        process.stdout.close()
        self.assertEqual((process.wait(timeout=60), process.stderr.read()), (0, ""))

    def test_mkdir_mv_cp(self):
        self.fs("mkdir", "x/y/z", "x/y/z/", "w")
        self.assertEqual(self.names("-R", "x"), ["x/y/", "x/y/z/"])
        self.fs("mv", "logs", "x/y")
        self.assertEqual(self.fs("cat", "x/y/logs/a.txt").out, "x")
        self.fs("mv", "x/y/logs/", "logs2")
        self.fs("mv", "top.txt", "renamed.txt")
        self.refused("", "mv", "renamed.txt", "logs2/a.txt", "--if-absent")
        self.refused("there is no gone", "mv", "gone", "x")
        self.wrong("give -r", "cp", "logs2", "logs3")
        done = self.fs("cp", "-r", "logs2", "logs3")
        self.assertEqual(done.out, "7 files copied, 7 B\n")
        self.assertEqual([name.replace("3", "2", 1) for name in self.names("-R", "logs3")],
                         self.names("-R", "logs2"))
        self.wrong("into itself", "cp", "-r", "logs2", "logs2/in")
        self.fs("cp", "renamed.txt", "w")
        self.assertEqual(self.names("w"), ["renamed.txt"])
        self.assertEqual(self.fs("mv", "renamed.txt", "again.txt", "--json").json,
                         {"from": "renamed.txt", "to": "again.txt"})

    def test_rm(self):
        self.refused("not empty: -r", "rm", "logs")
        self.wrong("--everything", "rm", "-r", "/")
        self.fs("rm", "-r", "log")  # not what begins so
        self.assertIn("logs/", self.names())
        self.fs("rm", "-r", "logs", "top.txt")
        self.assertEqual(self.names(), ["[a,b]"])
        self.fs("rm", "[a,b]", r"\[a,b]")
        self.store("f")
        self.fs("rm", "-r", "/", "--everything")
        self.assertEqual(self.names(), [])


class Whole(FilesTest):
    def test_du_df_quota(self):
        self.store("d/a", "d/b", content=bytes(100_000))
        rows = self.fs("du", "--bytes", "d", "d/a").rows
        self.assertEqual([row[1] for row in rows], ["200000", "100000"])
        self.assertEqual(rows[0][-1], "d/")
        self.assertEqual(self.fs("du", "d", "--json").json["length"], 200_000)
        self.assertEqual(len(self.fs("df").rows), 2)
        self.assertEqual(self.fs("df", "--json").json["used"]["length"], 200_000)
        self.assertIn("of none", self.fs("quota", "d").out)
        self.fs("quota", "d", "--bytes", "1MiB")
        shown = self.fs("quota", "d", "--files", "10", "--json").json
        self.assertEqual((shown["bytes_max"], shown["inodes_max"]), (MIB, 10))
        self.refused("quota", "put", "-", "d/c", stdin=bytes(2 * MIB))
        self.assertEqual(self.names("d"), ["a", "b"])
        self.fs("quota", "d", "--bytes", "none", "--files", "none")
        self.fs("put", "-", "d/c", stdin=bytes(2 * MIB))
        self.wrong("", "quota", "d", "--bytes", "much")

    def test_trash(self):
        self.assertIn("kept for 24 h", self.fs("trash", "list").out)
        self.assertIn("there is no trash", self.fs("trash", "keep", "0s").out)
        self.assertIn("kept for 7 d", self.fs("trash", "keep", "7d").out)
        self.store("d/f", "g", content=b"kept")
        self.fs("rm", "-r", "d", "g")
        items = {line["name"]: line["item"] for line in self.fs("trash", "list", "--json").lines}
        self.assertEqual(set(items), {"d", "g"})
        self.assertIn(items["g"], self.fs("trash", "list").out)
        self.fs("trash", "restore", items["d"])
        self.assertEqual(self.fs("cat", "d/f").out, "kept")
        self.fs("trash", "restore", items["g"], "--to", "new/below/h")
        self.assertEqual(self.fs("cat", "new/below/h").out, "kept")
        self.refused("", "trash", "restore", items["g"])
        for item in ("g", "g/", "/"):
            self.refused(f'there is no "{item}"', "trash", "restore", item)
        self.fs("rm", "new/below/h")
        self.assertIn("is empty", self.fs("trash", "empty").out)
        self.assertEqual(self.fs("trash", "list", "--json").lines, [])
        self.wrong("", "trash", "keep", "long")
        self.fs("trash", "keep", "0s")

    def test_fsck(self):
        self.store("d/a", "d/b", content=bytes(100_000))
        self.assertIn("all is well", self.fs("fsck").out)
        self.assertIn("all is well", self.fs("fsck", "--quick", "--repair").out)
        self.assertTrue(self.fs("fsck", "--json").lines[-1]["clean"])
        finding = {"kind": "links_wrong", "inode": 7, "directory": 1, "what": "2, not\x1b[0m 1",
                   "repaired": False, "name": "x"}
        end = {"done": True, "clean": False, "inodes": 2, "directories": 1, "entries": 2,
               "blocks": 0, "findings": {}}
        progress = {"phase": "names", "bytes_done": 1, "bytes_total": 2}

        def lines(*objects):
            return http_answer(200, "".join(json.dumps(one) + "\n" for one in objects),
                               "application/x-ndjson")
        with ScriptedServer(lines(progress, finding, end)) as server:
            done = self.refused("1 findings are not repaired", "fsck", "--server", server.url)
            self.assertEqual(done.rows[0][:3], ["links_wrong", "7", "no"])
            self.assertNotIn("\x1b", done.out)
        with ScriptedServer(lines({**finding, "repaired": True}, end)) as server:
            self.fs("fsck", "--repair", "--server", server.url)
        with ScriptedServer(lines(progress)) as server:
            self.refused("not complete", "fsck", "--server", server.url)
        with ScriptedServer(lines({"error": "it was damaged"})) as server:
            self.refused("it was damaged", "fsck", "--server", server.url)


class OfflineFsck(ClientTest):
    """On a store that no server has open."""

    @classmethod
    def setUpClass(cls):
        pass

    def environment(self, **extra):
        return clean_environment(**extra)

    def test_fsck(self):
        data = self.folder / "data"
        content = bytes(200_000)
        fsck = ("fs", "fsck", "--data", data)
        self.fails(1, "", *fsck)  # there is none
        self.assertFalse(data.exists())
        with Server("--data", data) as server:
            at = {"TRELLIS_SERVER": server.url}
            self.does("keyspace", "create", "home", **at)
            for keyspace in ("DEFAULT", "home"):
                self.does("fs", "put", "-", "f", "--keyspace", keyspace, stdin=content, **at)
            inode = self.does("fs", "stat", "f", "--json", **at).json["inode"]
            self.fails(1, "in use", *fsck)
            self.assertEqual(server.stop()[0], 0)
        self.assertIn("all is well", self.does(*fsck).out)
        key = self.does("key", "encode", "fs.entry", "keyspace=0", "parent=1", "name=f").out
        subprocess.run([EDIT_STORE, data, key.split()[0]], check=True)
        done = self.fails(1, "are not repaired", *fsck, "--quick")
        self.assertIn(["name_missing", str(inode), "no"], [row[:3] for row in done.rows])
        self.assertFalse(self.run_trellis(*fsck, "--json").lines[-1]["clean"])
        self.assertIn("all is well", self.does(*fsck, "--keyspace", "home").out)
        self.fails(1, "", *fsck, "--keyspace", "nobody")
        self.assertIn(["name_missing", str(inode), "yes"],
                      [row[:3] for row in self.does(*fsck, "--repair").rows])
        self.assertIn("all is well", self.does(*fsck).out)
        with Server("--data", data) as server:
            found = self.does("fs", "cat", f"lost+found/inode-{inode}", TRELLIS_SERVER=server.url)
            self.assertEqual(found.bytes, content)


class Usage(FilesTest):
    COMMANDS = ("ls", "stat", "cat", "put", "get", "rm", "mv", "cp", "mkdir", "du", "df", "quota",
                "fsck")

    def test_help_and_unknown_things(self):
        for command in (*([name] for name in self.COMMANDS), ["trash", "list"],
                        ["trash", "restore"], ["trash", "empty"], ["trash", "keep"]):
            with self.subTest(command=command):
                out = self.fs(*command, "--help").out
                for text in ("Example", "--server", "--keyspace", "--token", "--json", "--ca",
                             "--timeout"):
                    self.assertIn(text, out)
                self.wrong("", *command, "--no-such-option")
        self.wrong("is not a command", "list")
        self.wrong("PATH", "cat")
        self.wrong("at least one character", "cat", "")
        self.wrong("255", "cat", "x" * 256)
        self.wrong("4,096", "mkdir", "x/" * 2048 + "y")
        self.fails(1, "keyspace", "fs", "ls", "--keyspace", "nobody")

    def test_a_server_that_is_not_there(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        self.refused("trellis serve", "ls", "--server", f"http://127.0.0.1:{port}")


if __name__ == "__main__":
    unittest.main()
