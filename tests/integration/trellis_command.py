"""Runs the built trellis as a user would."""

import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("TRELLIS_UNDER_TEST", str(SOURCE / "build" / "trellis"))


def clean_environment(**extra):
    """Without settings of whoever runs the tests."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("TRELLIS_")}
    return {**kept, **extra}


def trellis(*arguments, stdin="", **environment):
    """One command to its end: returns (exit code, stdout, stderr)."""
    done = subprocess.run([BINARY, *map(str, arguments)], input=stdin, text=True,
                          capture_output=True, timeout=120, env=clean_environment(**environment))
    return done.returncode, done.stdout, done.stderr


class Server:
    """A running `trellis serve`, up when entered."""

    def __init__(self, *arguments, cwd=None, **environment):
        arguments = list(map(str, arguments))
        if "--http" not in arguments:  # tests run side by side
            arguments += ["--http", "127.0.0.1:0"]
        if "--resp" not in arguments:
            arguments += ["--resp", "127.0.0.1:0"]
        self.arguments = [BINARY, "serve", *arguments]
        self.environment = clean_environment(**environment)
        self.cwd = cwd
        self.banner = []

    def __enter__(self):
        self.process = subprocess.Popen(self.arguments, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, cwd=self.cwd,
                                        env=self.environment)
        for line in self.process.stdout:
            self.banner.append(line.rstrip("\n"))
            if "Ctrl-C" in line:
                return self
        raise AssertionError(f"server did not come up: {self.process.stderr.read()}")

    @property
    def url(self):
        """Where HTTP is served: http://127.0.0.1:PORT."""
        return next(line.split()[1] for line in self.banner if line.startswith("  http "))

    @property
    def resp(self):
        """Where Redis's protocol is served: 127.0.0.1:PORT."""
        line = next(line for line in self.banner if line.startswith("  redis "))
        return line.split()[1].removeprefix("redis://")

    def stop(self, how=signal.SIGINT):
        """Returns (exit code, the rest of stdout, stderr)."""
        self.process.send_signal(how)
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


class TrellisTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="trellis-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
