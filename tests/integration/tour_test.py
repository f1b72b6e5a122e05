"""The README's tour: every command in it is run, and prints what the README says.

A block that is fenced as ```console holds lines that start with "$ " (run in one bash, with trellis
on the PATH, in an empty folder, beside a server) and the output that follows them. "..." alone on a
line stands for any lines, at the end of a line for the rest of it.
"""

import os
import pathlib
import re
import subprocess
import unittest

from trellis_command import BINARY, SOURCE, Server, TrellisTest, clean_environment

DEFAULT_URL = "http://127.0.0.1:7380"
DEFAULT_RESP_PORT = "7379"


def steps(text):
    for block in re.findall(r"^```console\n(.*?)^```", text, re.S | re.M):
        command, output = None, []
        for line in block.splitlines():
            if line.startswith("$ "):
                if command is not None:
                    yield command, output
                command, output = line[2:], []
            else:
                output.append(line)
        if command is not None:
            yield command, output


def matches(expected, actual):
    pattern = ""
    for line in expected:
        if line == "...":
            pattern += "(?:.*\n)*"
        elif line.endswith("..."):
            pattern += re.escape(line[:-3]) + ".*\n"
        else:
            pattern += re.escape(line) + "\n"
    return re.fullmatch(pattern, "".join(line + "\n" for line in actual)) is not None


class Tour(TrellisTest):
    def test_readme(self):
        tour = list(steps((SOURCE / "README.md").read_text()))
        self.assertGreaterEqual(len(tour), 5, "the tour has too few steps")
        path = f"{pathlib.Path(BINARY).parent}:{os.environ['PATH']}"
        with Server("--data", self.folder / "store") as server:
            environment = clean_environment(PATH=path, TRELLIS_SERVER=server.url)
            resp_port = server.resp.rsplit(":", 1)[1]
            for command, expected in tour:
                here = command.replace(DEFAULT_URL, server.url)
                here = here.replace(DEFAULT_RESP_PORT, resp_port)
                with self.subTest(command=command):
                    done = subprocess.run(["bash", "-c", here], cwd=self.folder, text=True,
                                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                          timeout=60, env=environment)
                    actual = done.stdout.splitlines()
                    self.assertTrue(matches(expected, actual),
                                    f"README says:\n{chr(10).join(expected)}\n\nbut it prints:\n"
                                    f"{chr(10).join(actual)}")

    def test_a_wrong_tour_is_noticed(self):
        self.assertTrue(matches(["a", "...", "b"], ["a", "x", "y", "b"]))
        self.assertFalse(matches(["a", "b"], ["a", "x", "b"]))
        self.assertFalse(matches(["a"], ["a", "b"]))
        self.assertTrue(matches(["a..."], ["abc"]))
        self.assertFalse(matches(["b..."], ["abc"]))


if __name__ == "__main__":
    unittest.main()
