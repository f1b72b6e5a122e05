"""What benchmarks that start servers share."""
import os
import socket
import subprocess
import sys
import time


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def schedstat_us(path):
    try:
        with open(path, encoding="ascii") as stat:
            return int(stat.read().split()[0]) / 1000
    except (FileNotFoundError, ProcessLookupError):
        return 0  # it has ended


class Server:
    """A process that listens on a port."""

    def __init__(self, name, command, port, log):
        self.name = name
        self.port = port
        with open(log, "wb") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out)
        deadline = time.monotonic() + 120
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    with open(log, encoding="utf-8", errors="replace") as text:
                        sys.exit(f"{name} does not start:\n{text.read()}")
                time.sleep(0.02)  # between looks at the port

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def cpu_us(self):
        """Of all its threads."""
        tasks = f"/proc/{self.process.pid}/task"
        return sum(schedstat_us(f"{tasks}/{task}/schedstat") for task in os.listdir(tasks))

    def rest(self):
        """Waits until what was loaded is put in order, in the background too."""
        while True:
            before_us = self.cpu_us()
            time.sleep(0.5)
            if self.cpu_us() - before_us < 25_000:
                return
