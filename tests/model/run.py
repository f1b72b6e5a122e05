#!/usr/bin/env python3
"""The models of the cluster's protocols: every state of small worlds is visited.

Each protocol must hold as it is, and must be found broken with any of its rules left out; a model
that finds nothing in a broken protocol says nothing about the whole one.

    ./dev model            all of them
    ./dev model -v         also how each broken one gets to where it must not
"""

import sys

from explore import Report
import split_model
import commit_model


def main():
    report = Report(verbose="-v" in sys.argv[1:])
    split_model.run(report)
    commit_model.run(report)
    print(f"{report.states} states, {report.failed} failures")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
