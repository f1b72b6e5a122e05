"""Explores every state that a model can reach, and stops at the first that must not be.

A model has start() -> state, steps(state) -> (name, state) pairs, and check(state) -> None or what
is wrong. States are immutable and comparable.
"""

import time
from collections import deque
from typing import NamedTuple


class Outcome(NamedTuple):
    states: int
    problem: str | None
    trace: list  # the names of the steps that lead to the problem
    seconds: float


def explore(model):
    began = time.monotonic()
    start = model.start()
    parent = {start: None}
    queue = deque([start])
    while queue:
        state = queue.popleft()
        problem = model.check(state)
        if problem:
            return Outcome(len(parent), problem, _trace(parent, state), time.monotonic() - began)
        for name, following in model.steps(state):
            if following not in parent:
                parent[following] = (state, name)
                queue.append(following)
    return Outcome(len(parent), None, [], time.monotonic() - began)


def _trace(parent, state):
    names = []
    while parent[state] is not None:
        state, name = parent[state]
        names.append(name)
    return names[::-1]


class Report:
    """Runs models and says whether each did what it was meant to."""

    def __init__(self, verbose=False):
        self.verbose = verbose
        self.failed = 0
        self.states = 0

    def holds(self, name, model):
        """The protocol as it is: no state that must not be."""
        self._line(name, explore(model), wanted=False)

    def breaks(self, name, model):
        """With something left out: the model must find out what that would break."""
        self._line(name, explore(model), wanted=True)

    def _line(self, name, outcome, wanted):
        self.states += outcome.states
        right = (outcome.problem is not None) == wanted
        if not right:
            self.failed += 1
        what = f"caught: {outcome.problem}" if outcome.problem else "holds"
        print(f"{'ok  ' if right else 'FAIL'} {name:<64} {outcome.states:>8} states "
              f"{outcome.seconds:6.1f} s  {what}", flush=True)
        if outcome.problem and (self.verbose or not right):
            for step in outcome.trace:
                print("       ", step)
