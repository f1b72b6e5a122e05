#!/usr/bin/env python3
"""Makes docs/key_layout.md from the layouts in the code and the golden vectors.

tools/key_layout.py TRELLIS            prints it
tools/key_layout.py TRELLIS --write    writes it to docs/key_layout.md
"""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "key_layout.md"

HEAD = """\
# Key layout

Every kind of key, lowest first, then golden vectors. This page is generated: `tools/key_layout.py
build/trellis --write` makes it from the layouts in `src/codec` and the files in `tests/vectors`,
and the tests fail when it is not up to date.

`u24` is 3 bytes, most significant first; `uvarint` and `varint` are CockroachDB's ordered integers;
`escaped` is order-preserving with 00 as 00 ff and 00 01 at the end; `bytes` goes to the end of the
key. `trellis key decode` explains any key in these terms.

## The map
"""

VECTORS = """\

## Golden vectors

Each line is read by the tests: fields give bytes, bytes give fields.
"""


def page(trellis):
    tables = subprocess.run([trellis, "map", "--markdown"], check=True, capture_output=True,
                            text=True).stdout
    parts = [HEAD, tables, VECTORS]
    for path in sorted((ROOT / "tests" / "vectors").glob("*.txt")):
        parts.append(f"\n### {path.name}\n\n```text\n{path.read_text()}```\n")
    return "".join(parts)


def main():
    if len(sys.argv) not in (2, 3) or (len(sys.argv) == 3 and sys.argv[2] != "--write"):
        sys.exit(__doc__)
    text = page(sys.argv[1])
    if len(sys.argv) == 3:
        PAGE.write_text(text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
