"""Commands that talk to a server: against a real one, and against ones that misbehave."""

import json
import os
import pty
import select
import socket
import subprocess
import threading
import time

from trellis_command import BINARY, Server, TrellisTest, clean_environment


class Done:
    """What a command did."""

    def __init__(self, code, out, err):
        self.code, self.bytes, self.err = code, out, err.decode()

    @property
    def out(self):
        return self.bytes.decode()

    @property
    def json(self):
        return json.loads(self.bytes)

    @property
    def lines(self):
        return [json.loads(line) for line in self.bytes.splitlines()]

    @property
    def rows(self):
        """The cells of a table below its header."""
        return [line.split() for line in self.out.splitlines()[1:]]


class ClientTest(TrellisTest):
    """One server for all tests of a class."""

    arguments = ("--engine", "memory")

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.arguments).__enter__()
        cls.addClassCleanup(cls.server.__exit__)

    def environment(self, **extra):
        return clean_environment(**{"TRELLIS_SERVER": self.server.url, **extra})

    def run_trellis(self, *arguments, stdin=b"", **environment):
        done = subprocess.run([BINARY, *map(str, arguments)], input=stdin, capture_output=True,
                              timeout=120, env=self.environment(**environment))
        return Done(done.returncode, done.stdout, done.stderr)

    def does(self, *arguments, stdin=b"", **environment):
        """Runs a command that must work."""
        done = self.run_trellis(*arguments, stdin=stdin, **environment)
        self.assertEqual(done.code, 0, done.err)
        return done

    def fails(self, code, message, *arguments, stdin=b"", **environment):
        """Runs a command that must not work, and says so in one line."""
        done = self.run_trellis(*arguments, stdin=stdin, **environment)
        self.assertEqual(done.code, code, done.out + done.err)
        self.assertTrue(done.err.startswith("trellis: "), done.err)
        self.assertEqual(done.err.count("\n"), 1, done.err)
        self.assertIn(message, done.err)
        return done

    def start(self, *arguments, stdout=subprocess.PIPE, **environment):
        """A command that goes on until it is stopped, which the end of the test does."""
        process = subprocess.Popen([BINARY, *map(str, arguments)], stdout=stdout,
                                   stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                                   env=self.environment(**environment))

        def stop():
            process.kill()
            process.communicate()
        self.addCleanup(stop)
        return process

    def on_terminal(self, *arguments, typed="", after="", **environment):
        """Runs a command with a terminal, where something is typed after it showed something;
        returns (exit code, all that it showed)."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen([BINARY, *map(str, arguments)], stdin=theirs, stdout=theirs,
                                   stderr=theirs, env=self.environment(**environment))
        os.close(theirs)
        shown = b""
        while after not in shown.decode():
            shown += os.read(ours, 65536)
        os.write(ours, typed.encode())
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and select.select([ours], [], [], 60)[0]:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # nobody has the other side any more
                break
            if not piece:
                break
            shown += piece
        os.close(ours)
        return process.wait(timeout=60), shown.decode()


class ScriptedServer:
    """Answers each connection with the next of some byte strings; b"" hangs up, None says nothing
    until the client leaves."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests = []

    def __enter__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()
        return self

    def serve(self):
        for answer in self.answers:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                request = b""
                while b"\r\n\r\n" not in request:
                    piece = connection.recv(65536)
                    if not piece:
                        break
                    request += piece
                self.requests.append(request.decode("latin1"))
                if answer is None:
                    connection.recv(65536)
                else:
                    connection.sendall(answer)

    def __exit__(self, *_):
        self.listener.close()
        self.thread.join(timeout=10)


def http_answer(status, body, content_type="application/json"):
    return (f"HTTP/1.1 {status} X\r\nContent-Type: {content_type}\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}").encode()
