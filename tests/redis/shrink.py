"""Makes a failing sequence small: halves, quarters ... single commands, then arguments."""
import time

from generator import Step


PAIRS_MAX = 30
AT_ONCE_MAX = 8


def renumbered(steps):
    """Rounds from 0 without gaps."""
    rounds = {}
    return [Step(s.client, rounds.setdefault(s.round, len(rounds)), s.args, s.inline)
            for s in steps]


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
        return renumbered(self.made_at_once(self.fewer_pairs(self.fewer(steps))))

    def made_at_once(self, steps):
        """A value that came about by moving and copying is as good made by one command."""
        command = self.last.command[self.last.command[0][:1] == b"@":]
        if len(steps) > AT_ONCE_MAX or len(command) < 2:
            return steps
        key, member = command[1], command[2] if len(command) > 2 else b"a"
        makers = [[b"SET", key, b"1"], [b"HSET", key, member, b"1"], [b"RPUSH", key, member, b"b"],
                  [b"SADD", key, member], [b"ZADD", key, b"1", member]]
        for size in range(len(steps) - 1, 1, -1):
            for at in range(len(steps) - size):
                for args in makers:
                    new = steps[:at] + [Step(steps[at].client, -1, args)] + steps[at + size:]
                    if self.fails(new):
                        return self.fewer(new)
        return steps

    def fewer_pairs(self, steps):
        """Two commands that only make sense together, as MOVE away and SELECT, go together."""
        i = 0
        while len(steps) <= PAIRS_MAX and i < len(steps) - 1:
            for j in range(i + 1, len(steps)):
                rest = steps[:i] + steps[i + 1:j] + steps[j + 1:]
                if rest and self.fails(rest):
                    steps, i = rest, -1
                    break
            i += 1
        return steps

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
