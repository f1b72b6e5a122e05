"""Makes a failing sequence small: halves, quarters ... single commands, then arguments."""
import time

from generator import Step


class Shrinker:
    """test(steps) runs them on empty servers and gives a Difference or None."""

    def __init__(self, test, signature, budget_s):
        self.test, self.signature = test, signature
        self.end = time.monotonic() + budget_s
        self.runs = 0
        self.last = None

    def fails(self, steps):
        if time.monotonic() > self.end:
            return False
        self.runs += 1
        found = self.test(steps)
        if found is not None and found.signature() == self.signature:
            self.last = found
            return True
        return False

    def shrink(self, steps):
        """The smallest steps found that still differ in the same command, or None if the
        difference does not come back."""
        if not self.fails(steps):
            return None
        steps = steps[:self.last.index + 1] if self.fails(steps[:self.last.index + 1]) else steps
        steps = self.fewer(steps)
        steps = self.simpler(steps, lambda s, i: Step(0, s.round, s.args, s.inline))
        steps = self.simpler(steps, lambda s, i: Step(s.client, i, s.args))
        steps = self.shorter(steps)
        return self.fewer(steps)

    def fewer(self, steps):
        size = max(1, len(steps) // 2)
        while True:
            before, at = len(steps), 0
            while at < len(steps):
                rest = steps[:at] + steps[at + size:]
                if rest and self.fails(rest):
                    steps = rest
                else:
                    at += size
            if size == 1 and len(steps) == before or time.monotonic() > self.end:
                return steps
            size = max(1, size // 2)

    def simpler(self, steps, change):
        changed = [change(step, i) for i, step in enumerate(steps)]
        return changed if self.fails(changed) else steps

    def shorter(self, steps):
        """Leaves out arguments, many at first; an even number, as they may be pairs, then one."""
        for at in range(len(steps)):
            size = 0 if steps[at].name[:1] == b"@" else max(len(steps[at].args) // 4 * 2, 1)
            while size:
                position = len(steps[at].args) - size
                while position > 0:
                    old = steps[at]
                    new = Step(old.client, old.round, old.args[:position] + old.args[
                        position + size:], old.inline)
                    if self.fails(steps[:at] + [new] + steps[at + 1:]):
                        steps = steps[:at] + [new] + steps[at + 1:]
                    position -= size
                size = size // 4 * 2 if size > 2 else size - 1
        return steps
