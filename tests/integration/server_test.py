"""The server as a process: starts, stops, refuses what it must and damages nothing."""

import os
import shutil
import signal
import subprocess
import time
import unittest

from trellis_command import BINARY, Server, TrellisTest, clean_environment, trellis


def contents(folder):
    """Every file below a folder with its bytes."""
    return {path.relative_to(folder): path.read_bytes()
            for path in sorted(folder.rglob("*")) if path.is_file()}


class Running(TrellisTest):
    def test_says_what_it_serves_and_closes_cleanly(self):
        for how in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with Server("--data", self.folder / "store") as server:
                self.assertIn("Trellis is up.", server.banner)
                self.assertRegex(server.url, r"^http://127\.0\.0\.1:[1-9][0-9]*$")
                code, out, err = server.stop(how)
            self.assertEqual((code, out), (0, "Closed cleanly.\n"), err)

    def test_the_store_keeps_its_identity(self):
        banners = []
        for _ in range(2):
            with Server("--data", self.folder / "store") as server:
                banners.append([line for line in server.banner if "store " in line])
                server.stop()
        self.assertEqual(banners[0], banners[1])
        self.assertEqual(len(banners[0]), 1)

    def test_survives_kill(self):
        for _ in range(3):
            with Server("--data", self.folder / "store", "--durability", "always") as server:
                server.stop(signal.SIGKILL)
        with Server("--data", self.folder / "store") as server:
            self.assertEqual(server.stop()[0], 0)

    def test_closed_descriptors_do_not_reach_the_store(self):
        store = self.folder / "store"
        command = (f"exec {BINARY} serve --data {store} --http 127.0.0.1:0 --resp 127.0.0.1:0 "
                   "<&- >&- 2>&-")
        process = subprocess.Popen(["bash", "-c", command], env=clean_environment())
        try:
            while not (store / "CURRENT").exists() and process.poll() is None:
                time.sleep(0.01)
            # Up when the lock is held and the start was written; stopping then closes cleanly.
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(timeout=60), 0)
        finally:
            if process.poll() is None:
                process.kill()
        for path in store.iterdir():
            self.assertNotIn(b"Trellis is up", path.read_bytes(), path)
        with Server("--data", store) as server:
            self.assertEqual(server.stop()[0], 0)

    def test_memory_engine_writes_nothing(self):
        with Server("--engine", "memory", cwd=self.folder) as server:
            self.assertEqual(server.stop()[0], 0)
        self.assertEqual(list(self.folder.iterdir()), [])


class Settings(TrellisTest):
    def test_flag_over_environment_over_file(self):
        (self.folder / "trellis.toml").write_text('data = "from-file"\n')
        for arguments, environment, expected in [
            ((), {}, "from-file"),
            ((), {"TRELLIS_DATA": "from-variable"}, "from-variable"),
            (("--data", "from-flag"), {"TRELLIS_DATA": "from-variable"}, "from-flag"),
        ]:
            with Server(*arguments, cwd=self.folder, **environment) as server:
                self.assertEqual(server.stop()[0], 0)
            self.assertTrue((self.folder / expected / "TRELLIS").exists(), expected)

    def test_wrong_settings_are_refused_by_name(self):
        data = ("--data", self.folder / "store")
        config = self.folder / "odd.toml"
        config.write_text('cache-byte = "1GiB"\n')
        for arguments, environment, message in [
            (data, {"TRELLIS_CACHE_BYTE": "1"}, "TRELLIS_CACHE_BYTES?"),
            (data, {"TRELLIS_CACHE_BYTES": "12 potatoes"}, "TRELLIS_CACHE_BYTES"),
            ((*data, "--cache-bytes", "1"), {}, "--cache-bytes"),
            ((*data, "--engine", "etcd"), {}, "rocksdb or memory"),
            ((*data, "--config", config), {}, "cache-bytes"),
            ((*data, "--config", self.folder / "none.toml"), {}, "none.toml"),
            (("--data", ""), {}, "--data"),
        ]:
            with self.subTest(message=message):
                code, out, err = trellis("serve", *arguments, **environment)
                self.assertEqual((code, out), (2, ""))
                self.assertIn(message, err)
        self.assertFalse((self.folder / "store").exists())


class BadFolders(TrellisTest):
    def refused(self, data, *messages):
        code, out, err = trellis("serve", "--data", data)
        self.assertEqual((code, out), (1, ""))
        for message in messages:
            self.assertIn(message, err)
        return err

    def make_store(self):
        store = self.folder / "store"
        with Server("--data", store, "--durability", "always") as server:
            server.stop()
        return store

    def test_foreign_folder(self):
        foreign = self.folder / "photos"
        foreign.mkdir()
        (foreign / "cat.jpg").write_bytes(b"meow")
        before = contents(foreign)
        self.refused(foreign, "cat.jpg", "give an empty or a new folder")
        self.assertEqual(contents(foreign), before)

    def test_a_file(self):
        path = self.folder / "file"
        path.write_text("text")
        self.refused(path, "this is a file")
        for inside in (path / "store", path / "deep" / "store"):
            err = self.refused(inside, f"{path} is a file", "give another folder")
            self.assertNotIn("IO error", err)
        self.assertEqual(path.read_text(), "text")

    def test_no_place_for_a_folder(self):
        for data, message in ((self.folder / ("n" * 300), "too long"),
                              ("/proc/store", "/proc takes no new folders")):
            self.assertNotIn("IO error", self.refused(data, message))

    def test_working_folder_is_gone(self):
        gone = self.folder / "gone"
        gone.mkdir()
        # bash keeps its working folder though it is removed.
        done = subprocess.run(["bash", "-c", f"cd {gone} && rmdir {gone} && exec {BINARY} serve"],
                              capture_output=True, text=True, env=clean_environment())
        self.assertEqual(done.returncode, 1)
        self.assertIn("give an absolute path", done.stderr)

    def test_in_use(self):
        store = self.folder / "store"
        with Server("--data", store) as server:
            self.refused(store, "in use")
            self.assertEqual(server.stop()[0], 0)

    def test_written_by_a_newer_version(self):
        store = self.make_store()
        marker = store / "TRELLIS"
        marker.write_text(marker.read_text().replace("format 1", "format 7"))
        before = contents(store)
        self.refused(store, "format 7", "newer")
        self.assertEqual(contents(store), before)

    def test_unwritable(self):
        store = self.make_store()
        if os.geteuid() == 0:
            # Root may write anywhere but on a file system that is mounted read-only.
            mount = subprocess.run(["mount", "--bind", "-o", "ro", store, store],
                                   capture_output=True)
            remount = subprocess.run(["mount", "-o", "remount,ro,bind", store],
                                     capture_output=True)
            if mount.returncode or remount.returncode:
                self.skipTest("cannot mount here")
            self.addCleanup(subprocess.run, ["umount", store])
        else:
            store.chmod(0o500)
            self.addCleanup(store.chmod, 0o700)
        self.refused(store, "read-only" if os.geteuid() == 0 else "may not")

    def test_not_allowed(self):
        shut = self.folder / "shut"
        unreadable = self.folder / "unreadable"
        shut.mkdir()
        unreadable.mkdir()
        store = self.make_store()
        (store / "CURRENT").chmod(0)
        unreadable.chmod(0o333)
        shut.chmod(0o555)
        as_somebody = []
        if os.geteuid() == 0:  # who may do everything
            self.folder.chmod(0o755)
            for path in (shut, unreadable, store, *store.iterdir()):
                os.chown(path, 65534, 65534)
            as_somebody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        for data, named in ((shut, shut), (shut / "new", shut / "new"),
                            (shut / "a" / "b", shut / "a"), (unreadable, unreadable),
                            (unreadable / "x" / "..", unreadable), (store, "all of its files")):
            with self.subTest(data=data):
                done = subprocess.run([*as_somebody, BINARY, "serve", "--data", data],
                                      capture_output=True, text=True, env=clean_environment())
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertIn(f"may not make, read or write {named}: give it the right to",
                              done.stderr)

    def test_corrupt_files(self):
        for name in ("CURRENT", "MANIFEST"):
            store = self.make_store()
            with self.subTest(file=name):
                path = next(store.glob(f"{name}*"))
                damaged = bytearray(path.read_bytes())
                for i in range(len(damaged)):
                    damaged[i] ^= 0x5a
                path.write_bytes(damaged)
                before = path.read_bytes()
                self.refused(store, "backup")
                self.assertEqual(path.read_bytes(), before)
            shutil.rmtree(store)

    def test_lost_files_are_not_a_new_store(self):
        for lost in ("*.log", "[!T]*"):  # the log, and everything but the marker
            store = self.make_store()
            with self.subTest(lost=lost):
                for path in store.glob(lost):
                    path.unlink()
                self.refused(store, "restore from a backup")
            shutil.rmtree(store)

    def test_full_disk(self):
        disk = self.folder / "disk"
        disk.mkdir()
        mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", disk],
                               capture_output=True)
        if mount.returncode:
            self.skipTest("cannot mount here")
        self.addCleanup(subprocess.run, ["umount", disk])
        (disk / "ballast").write_bytes(bytes(60 * 1024))
        self.refused(disk / "store", "full", "free")
        os.unlink(disk / "ballast")


if __name__ == "__main__":
    unittest.main()
