#!/usr/bin/env python3
"""Starts the built server and runs the clients of this folder against it: ./dev clients."""

import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "integration"))
from trellis_command import Server, trellis  # noqa: E402


def run_clients(url):
    subprocess.run(["node", "clients.mjs", url], cwd=HERE, check=True, timeout=300)


def main():
    with tempfile.TemporaryDirectory(prefix="trellis-test-") as folder:
        with Server("--data", f"{folder}/open") as server:
            run_clients(f"redis://{server.resp}")
            run_clients(f"redis://{server.resp}/5")
        with Server("--data", f"{folder}/closed", "--auth", "required", "--admin-token-file",
                    f"{folder}/admin") as server:
            settings = {"TRELLIS_SERVER": server.url,
                        "TRELLIS_TOKEN": pathlib.Path(f"{folder}/admin").read_text().strip()}
            trellis("keyspace", "create", "shop", **settings)
            _, out, _ = trellis("keyspace", "token", "create", "shop", "--role", "admin", "--json",
                                **settings)
            run_clients(f"redis://shop:{json.loads(out)['token']}@{server.resp}/2")


if __name__ == "__main__":
    main()
