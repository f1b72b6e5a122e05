"""The commit of transactions across range objects (docs/decisions/0006-ranges.md): lock writes,
validate reads, decide once; with crashes, helpers, splits and merges in the middle, scans and the
counters that guard them, deletes of a range, and the sweep of a dead server's log.

Checked when everything has come to rest: what was answered as committed is there once, what was
answered as aborted is not there, and there is an order of the committed transactions in which each
read what it read, and in which nothing that was answered before another began comes after it.

A key's history is the tuple of those who wrote it, (0, PUT) for instance: as its version it is
unique. A key that is not there has the version (): as in the store, where absent is absent.
"""

import itertools
from typing import NamedTuple

PUT, DELETE = "put", "delete"
COMMITTED, ABORTED, NOTHING = "C", "A", "-"
ABSENT = ()


class Transaction(NamedTuple):
    reads: frozenset = frozenset()
    writes: tuple = ()  # (key, PUT or DELETE)
    scans: frozenset = frozenset()  # an interval: the keys that may be in it
    clears: frozenset = frozenset()  # an interval, emptied by one operation on one range
    instant: bool = False  # all of it happens between two steps of others

    def written(self):
        return frozenset(key for key, _ in self.writes)

    def looked_at(self):
        return self.reads | self.scans | self.clears | self.written()


class Range(NamedTuple):
    history: tuple  # by key
    intent: tuple  # by key: the transaction that has locked it, or None
    structure: tuple = ()  # the counter s: who last made a key appear or disappear, or prepared


class State(NamedTuple):
    ranges: tuple
    mover: str  # how far the split, then the merge, of range 0 is
    phase: tuple  # by transaction: (name, the keys that are done)
    seen: tuple  # by transaction: by key: the version that it read, None: it did not
    counter: tuple  # by transaction: by key that was scanned, or only read and not there: the
    #                 structure counter of its range; None: not noted
    record: tuple  # by transaction: what stands in the log
    log: tuple  # by transaction: of its server's log: live, fenced, looked, gone
    answer: tuple  # by transaction: what its client was told
    after: tuple  # by transaction: those that had been answered when it began
    helpers: tuple  # each None or (key, transaction, verdict)
    late: tuple  # by transaction: operations without an answer, which may still arrive


def put(values, index, value):
    return values[:index] + (value,) + values[index + 1:]


def version(history):
    return history if history and history[-1][1] == PUT else ABSENT


# Where the upper keys are while range 0 is split, and who may touch them.
SPLIT_DONE = ("split", "merging", "merge copied", "split again")
SPLITTING = ("frozen", "copied")
MERGING = ("merging", "merge copied")


class CommitModel:
    """keys: a string. ranges: for each the keys in it. upper: those that a split of range 0 takes
    to the last range, which is empty before. weak: the rules that are left out."""

    def __init__(self, transactions, ranges, weak=(), upper="", crashes=True, helpers=1,
                 sweeper=False, merges=False, present="", late=False,
                 doubled=False):
        self.transactions = transactions
        self.keys = sorted("".join(ranges))
        self.index = {key: i for i, key in enumerate(self.keys)}
        self.home = {key: i for i, held in enumerate(ranges) for key in held}
        self.range_count = len(ranges) + (1 if upper else 0)
        self.upper = frozenset(upper)
        self.weak = frozenset(weak)
        self.crashes = crashes
        self.helper_count = helpers
        self.sweeper = sweeper
        self.merges = merges
        self.late = late  # an operation may be given up, and arrive all the same
        self.doubled = doubled  # and one that was answered may arrive once more
        # What is there in the beginning, written by nobody who takes part.
        self.first = {key: ((-1, PUT),) if key in present else () for key in self.keys}

    def start(self):
        each = len(self.transactions)
        nothing = tuple(None for _ in self.keys)
        ranges = tuple(
            Range(tuple(self.first[key] if self.home[key] == r else () for key in self.keys),
                  nothing) for r in range(self.range_count))
        return State(
            ranges=ranges, mover="whole" if self.upper else "still",
            phase=(("read", frozenset()),) * each, seen=(nothing,) * each,
            counter=(nothing,) * each, record=(NOTHING,) * each,
            log=("live",) * each, answer=("",) * each, after=(None,) * each,
            helpers=(None,) * self.helper_count, late=(frozenset(),) * each)

    def steps(self, s):
        for t, transaction in enumerate(self.transactions):
            name, done = s.phase[t]
            if name in ("end", "dead"):
                continue
            if self.crashes:
                yield f"T{t} dies", self.go(s, t, "dead")
            yield from getattr(self, name + "_steps")(s, t, transaction, done)
        if self.late:
            for t, _ in enumerate(self.transactions):
                yield from self.late_steps(s, t)
        for h, _ in enumerate(s.helpers):
            yield from self.helper_steps(s, h)
        if self.sweeper:
            for t, _ in enumerate(self.transactions):
                yield from self.sweeper_steps(s, t)
        if self.upper:
            yield from self.mover_steps(s)

    # --- where keys are, and what stands there ---

    def where(self, s, key):
        if key in self.upper and s.mover in SPLIT_DONE:
            return self.range_count - 1
        return self.home[key]

    def may_read(self, s, key):
        return not (key in self.upper and s.mover in MERGING)

    def may_write(self, s, key):
        if key not in self.upper or "writes go on while a split copies" in self.weak:
            return self.may_read(s, key)
        return s.mover not in SPLITTING and s.mover not in MERGING

    def history(self, s, key):
        return s.ranges[self.where(s, key)].history[self.index[key]]

    def intent(self, s, key):
        return s.ranges[self.where(s, key)].intent[self.index[key]]

    def structure(self, s, key):
        return s.ranges[self.where(s, key)].structure

    def by_range(self, s, keys):
        """What one operation on one range can do: the keys of each."""
        groups = {}
        for key in keys:
            groups.setdefault(self.where(s, key), []).append(key)
        return groups.values()

    def change(self, s, key, **fields):
        """One key of its range: history, intent."""
        r, i = self.where(s, key), self.index[key]
        changed = s.ranges[r]._replace(
            **{name: put(getattr(s.ranges[r], name), i, value) for name, value in fields.items()})
        return s._replace(ranges=put(s.ranges, r, changed))

    def count(self, s, key, **fields):
        """The counter of a key's range: structure."""
        r = self.where(s, key)
        return s._replace(ranges=put(s.ranges, r, s.ranges[r]._replace(**fields)))

    def apply(self, s, t, key):
        kind = dict(self.transactions[t].writes)[key]
        return self.change(s, key, history=self.history(s, key) + ((t, kind),), intent=None)

    def changes_structure(self, s, key, kind):
        return (version(self.history(s, key)) == ABSENT) == (kind == PUT)

    @staticmethod
    def go(s, t, name, done=frozenset()):
        return s._replace(phase=put(s.phase, t, (name, done)))

    # --- one transaction ---

    def happen_at_once(self, s, t, transaction):
        if any(self.intent(s, key) is not None for key in self.keys):
            return
        seen = tuple(version(self.history(s, key)) for key in self.keys)
        s = s._replace(seen=put(s.seen, t, seen))
        for key, kind in transaction.writes:
            if self.changes_structure(s, key, kind):
                s = self.count(s, key, structure=(t, "at once"))
            s = self.apply(s, t, key)
        yield f"T{t} happens", self.answer(self.go(s, t, "end"), t, COMMITTED)

    def read_steps(self, s, t, transaction, done):
        if s.after[t] is None:
            answered = frozenset(o for o, told in enumerate(s.answer) if told == COMMITTED)
            s = s._replace(after=put(s.after, t, answered))
        if transaction.instant:
            yield from self.happen_at_once(s, t, transaction)
            return
        todo = transaction.looked_at() - done
        if not todo:
            one = len(self.by_range(s, transaction.looked_at())) == 1
            first = "validate" if "validates before it locks" in self.weak else "prepare"
            yield f"T{t} has read", self.go(s, t, "commit_in_one" if one else first)
            return
        intervals = transaction.scans | transaction.clears
        for key in sorted(todo - intervals):
            yield from self.look(s, t, [key], done, scan=False)
        for keys in self.by_range(s, sorted(todo & intervals)):
            yield from self.look(s, t, keys, done, scan=True)

    def look(self, s, t, keys, done, scan):
        """One read of one range. Nobody reads past an intent: it waits, or helps."""
        if any(not self.may_read(s, key) for key in keys):
            return
        if any(self.intent(s, key) is not None for key in keys):
            if "reads past intents" not in self.weak:
                return
        seen, counter = s.seen[t], s.counter[t]
        for key in keys:
            now = version(self.history(s, key))
            seen = put(seen, self.index[key], now)
            absent = now == ABSENT and key not in self.transactions[t].written()
            if scan or (absent and "absence is validated as absence" not in self.weak):
                counter = put(counter, self.index[key], self.structure(s, key))
        s = s._replace(seen=put(s.seen, t, seen), counter=put(s.counter, t, counter))
        yield f"T{t} reads {keys}", self.go(s, t, "read", done | frozenset(keys))

    def unchanged(self, s, t, key):
        """The guard of one key: its version, and no foreign intent. A key of an interval that was
        not there cannot be named in a guard, and intents on those that were there are not: the
        structure counter stands for both."""
        i = self.index[key]
        transaction = self.transactions[t]
        named = key in transaction.reads or key in transaction.written()
        if not named and s.seen[t][i] == ABSENT:
            return True
        if version(self.history(s, key)) != s.seen[t][i]:
            return False
        if key in transaction.scans and not named:
            return True
        return self.intent(s, key) in (None, t) or "validates past intents" in self.weak

    def same_structure(self, s, t, key):
        """A key that comes and goes between two looks leaves no version; only the counter tells."""
        noted = s.counter[t][self.index[key]]
        return noted is None or self.structure(s, key) == noted

    def commit_in_one_steps(self, s, t, transaction, _):
        """Everything is in one range: one operation, with all guards."""
        keys = transaction.looked_at()
        if len(self.by_range(s, keys)) > 1:  # split meanwhile
            yield f"T{t} has several ranges now", self.go(s, t, "prepare")
            return
        if any(not self.may_write(s, key) for key in keys):
            return
        good = all(self.unchanged(s, t, key) for key in keys)
        good = good and all(self.same_structure(s, t, key)
                            for key in transaction.scans | transaction.clears)
        if not good:
            yield f"T{t} is refused", self.answer(self.go(s, t, "end"), t, ABORTED)
            return
        writes = list(transaction.writes)
        writes += [(key, DELETE) for key in sorted(transaction.clears)
                   if version(self.history(s, key)) != ABSENT]
        for key, kind in writes:
            if self.changes_structure(s, key, kind):
                s = self.count(s, key, structure=(t, "one"))
            s = self.change(s, key, history=self.history(s, key) + ((t, kind),))
        yield f"T{t} commits in one", self.answer(self.go(s, t, "end"), t, COMMITTED)

    def prepare_steps(self, s, t, transaction, done):
        if transaction.clears:  # only of one range, in one operation
            yield f"T{t} gives up", self.answer(self.go(s, t, "end"), t, ABORTED)
            return
        todo = transaction.written() - done
        if not todo:
            last = "decide" if "validates before it locks" in self.weak else "validate"
            yield f"T{t} has prepared", self.go(s, t, last)
            return
        for keys in self.by_range(s, sorted(todo)):
            if any(not self.may_write(s, key) for key in keys):
                continue
            following = self.go(s, t, "prepare", done | frozenset(keys))
            if self.late:
                yield f"T{t} hears nothing of its prepare {keys}", self.go(
                    self.sent(s, t, ("prepare", tuple(keys))), t, "abort")
            if self.doubled:
                following = self.sent(following, t, ("prepare", tuple(keys)))
            if self.may_prepare(s, t, keys):
                yield f"T{t} prepares {keys}", self.prepare(following, t, keys)
            else:
                yield f"T{t} cannot prepare {keys}", self.go(s, t, "abort")

    def noted_with(self, s, t, key):
        return [other for other in self.keys if s.counter[t][self.index[other]] is not None
                and self.where(s, other) == self.where(s, key)]

    def may_prepare(self, s, t, keys):
        return (all(self.unchanged(s, t, key) and self.intent(s, key) is None for key in keys)
                and all(self.same_structure(s, t, key)
                        for key in self.noted_with(s, t, keys[0])))

    def prepare(self, s, t, keys):
        mine = (t, "prepare", self.where(s, keys[0]))
        if "a prepare does not count" not in self.weak:
            s = self.count(s, keys[0], structure=mine)
            # What it scanned here is as it was if the counter stays its own.
            counter = s.counter[t]
            for key in self.noted_with(s, t, keys[0]):
                counter = put(counter, self.index[key], mine)
            s = s._replace(counter=put(s.counter, t, counter))
        for key in keys:
            s = self.change(s, key, intent=t)
        return s

    def validate_steps(self, s, t, transaction, done):
        todo = (transaction.reads | transaction.scans) - done
        todo -= transaction.written() - transaction.scans
        if "does not validate" in self.weak:
            todo = frozenset()
        if "scans of written ranges are not validated" in self.weak:
            written = {self.where(s, key) for key in transaction.written()}
            todo = frozenset(key for key in todo if self.where(s, key) not in written)
        if not todo:
            first = "prepare" if "validates before it locks" in self.weak else "decide"
            yield f"T{t} has validated", self.go(s, t, first)
            return
        for keys in self.by_range(s, sorted(todo)):
            if any(not self.may_read(s, key) for key in keys):
                continue
            good = all(self.unchanged(s, t, key) for key in keys
                       if key not in transaction.written())
            good = good and all(self.same_structure(s, t, key) for key in keys)
            following = ("validate", done | frozenset(keys)) if good else ("abort", frozenset())
            yield f"T{t} validates {keys}: {good}", self.go(s, t, *following)

    def decide_steps(self, s, t, transaction, _):
        """One operation on the log: it is live, and says nothing of this one yet."""
        if self.late:
            yield f"T{t} hears nothing of its decision", self.go(
                self.sent(s, t, ("decide",)), t, "find_out")
        if self.may_decide(s, t):
            s = s._replace(record=put(s.record, t, COMMITTED))
            yield f"T{t} decides", self.answer(self.go(s, t, "resolve"), t, COMMITTED)
        else:
            yield f"T{t} may not decide", self.go(s, t, "abort")

    @staticmethod
    def may_decide(s, t):
        return s.log[t] in ("live", "live looked") and s.record[t] == NOTHING

    def find_out_steps(self, s, t, transaction, _):
        """The decision is there, or is made impossible."""
        if s.record[t] == COMMITTED:
            yield f"T{t} finds its decision", self.answer(
                self.go(s, t, "resolve"), t, COMMITTED)
        else:
            yield f"T{t} decides against itself", self.go(
                s._replace(record=put(s.record, t, ABORTED)), t, "abort")

    @staticmethod
    def sent(s, t, operation):
        return s._replace(late=put(s.late, t, s.late[t] | {operation}))

    def late_steps(self, s, t):
        """What nobody waits for any more arrives, and applies if its guards hold."""
        for operation in s.late[t]:
            arrived = s._replace(late=put(s.late, t, s.late[t] - {operation}))
            yield f"late {operation} of T{t} is lost", arrived
            if operation == ("decide",):
                if self.may_decide(s, t):
                    yield f"late decision of T{t}", arrived._replace(
                        record=put(s.record, t, COMMITTED))
                continue
            keys = operation[1]
            if len(self.by_range(s, keys)) > 1 or any(not self.may_write(s, k) for k in keys):
                continue
            if self.may_prepare(s, t, keys):
                yield f"late {operation} of T{t}", self.prepare(arrived, t, keys)

    def resolve_steps(self, s, t, transaction, done):
        todo = transaction.written() - done
        if not todo:
            record = put(s.record, t, NOTHING) if s.record[t] == COMMITTED else s.record
            yield f"T{t} forgets", self.go(s._replace(record=record), t, "end")
        for key in sorted(todo):
            if not self.may_write(s, key):
                continue
            following = self.apply(s, t, key) if self.intent(s, key) == t else s
            yield f"T{t} resolves {key}", self.go(following, t, "resolve", done | {key})

    def abort_steps(self, s, t, transaction, done):
        todo = transaction.written() - done
        if not todo:
            # While its own decision may still arrive, the record has to stay.
            stays = ("decide",) in s.late[t] and "forgets that it may decide" not in self.weak
            if s.record[t] == ABORTED and not stays:
                s = s._replace(record=put(s.record, t, NOTHING))
            yield f"T{t} is aborted", self.answer(self.go(s, t, "end"), t, ABORTED)
        for key in sorted(todo):
            if not self.may_write(s, key):
                continue
            following = self.change(s, key, intent=None) if self.intent(s, key) == t else s
            yield f"T{t} unlocks {key}", self.go(following, t, "abort", done | {key})

    @staticmethod
    def answer(s, t, told):
        return s._replace(answer=put(s.answer, t, told))

    # --- those who meet intents of others ---

    def helper_steps(self, s, h):
        if s.helpers[h] is not None:
            yield from self.help_resolve(s, h)
            return
        for key in self.keys:
            t = self.intent(s, key)
            if t is None or not self.may_read(s, key):
                continue
            verdict, following = s.record[t], s
            if verdict == NOTHING:
                verdict = ABORTED
                if s.log[t] != "gone" and "helpers abort without a record" not in self.weak:
                    following = s._replace(record=put(s.record, t, ABORTED))
            yield f"helper {h} asks about {key}: {verdict}", following._replace(
                helpers=put(s.helpers, h, (key, t, verdict)))
        if "records of aborts are collected" in self.weak:
            for t, record in enumerate(s.record):
                locked = any(self.intent(s, key) == t for key in self.keys)
                if record == ABORTED and not locked:
                    yield f"record of T{t} is collected", s._replace(
                        record=put(s.record, t, NOTHING))

    def help_resolve(self, s, h):
        key, t, verdict = s.helpers[h]
        if not self.may_write(s, key):
            return
        following = s
        if self.intent(s, key) == t:
            if verdict == COMMITTED:
                following = self.apply(s, t, key)
            else:
                following = self.change(s, key, intent=None)
        yield f"helper {h} resolves {key}: {verdict}", following._replace(
            helpers=put(s.helpers, h, None))

    def sweeper_steps(self, s, t):
        """The log of a server that is believed dead: fenced, swept, removed. It may be alive."""
        log = s.log[t]
        if log == "live":
            unfenced = "the log is not fenced" in self.weak
            yield f"log of T{t} is fenced", s._replace(
                log=put(s.log, t, "live looked" if unfenced else "fenced"))
        locked = [key for key in self.keys if self.intent(s, key) == t]
        unresolved = s.record[t] == COMMITTED and locked
        if log == "fenced" and unresolved and "the sweep resolves nothing" not in self.weak:
            for key in locked:
                if self.may_write(s, key):
                    yield f"sweeper resolves {key}", self.apply(s, t, key)
        elif log == "fenced":
            yield f"log of T{t} is swept", s._replace(log=put(s.log, t, "looked"))
        elif log in ("looked", "live looked"):
            yield f"log of T{t} is removed", s._replace(
                log=put(s.log, t, "gone"), record=put(s.record, t, NOTHING))

    # --- the split of range 0, and the merge back ---

    def mover_steps(self, s):
        low, high = s.ranges[0], s.ranges[-1]
        after = {"whole": "frozen", "frozen": "copied", "copied": "split"}
        if s.mover in after:
            following = s._replace(mover=after[s.mover])
            if s.mover == "frozen":
                following = following._replace(ranges=s.ranges[:-1] + (self.half(low),))
            if s.mover == "copied":
                following = following._replace(
                    ranges=(self.without(low, self.upper),) + s.ranges[1:])
            yield "split: " + after[s.mover], following
        if s.mover in SPLITTING:
            yield "split is undone", s._replace(
                mover="still", ranges=s.ranges[:-1] + (self.without(high, self.keys),))
        if s.mover == "split" and self.merges:
            yield "merge: frozen", s._replace(mover="merging")
        elif s.mover == "merging":
            yield "merge: copied", s._replace(
                mover="merge copied", ranges=(self.joined(low, high),) + s.ranges[1:])
            yield "merge is undone", s._replace(mover="split again")
        elif s.mover == "merge copied":
            new = ("merge",)
            if "a merge keeps the counters" not in self.weak:
                low = low._replace(structure=new)
            yield "merge is undone", s._replace(
                mover="split again", ranges=(self.without(s.ranges[0], self.upper),) + s.ranges[1:])
            empty = self.without(high, self.keys)
            yield "merge: done", s._replace(
                mover="still", ranges=(low,) + s.ranges[1:-1] + (empty,))

    def half(self, low):
        """What a split copies: entries, intents, counters."""
        lower = [key for key in self.keys if key not in self.upper]
        high = self.without(low, lower)
        if "intents do not move" in self.weak:
            high = high._replace(intent=tuple(None for _ in self.keys))
        if "counters are not copied" in self.weak:
            high = high._replace(structure=())
        return high

    def without(self, held, keys):
        for key in keys:
            i = self.index[key]
            held = held._replace(history=put(held.history, i, ()), intent=put(held.intent, i, None))
        return held

    def joined(self, low, high):
        for key in self.upper:
            i = self.index[key]
            low = low._replace(history=put(low.history, i, high.history[i]),
                               intent=put(low.intent, i, high.intent[i]))
        return low

    # --- what must be ---

    def check(self, s):
        for key in self.keys:
            writers = [t for t, _ in self.history(s, key)]
            if len(set(writers)) != len(writers):
                return f"{key} was written twice by the same transaction"
        if not self.at_rest(s):
            return None
        committed = {t for key in self.keys for t, _ in self.history(s, key) if t >= 0}
        committed |= {t for t, told in enumerate(s.answer) if told == COMMITTED}
        for t in committed:
            if s.answer[t] == ABORTED:
                return f"T{t} was answered as aborted, and is there"
            for key in self.transactions[t].written():
                if t not in [writer for writer, _ in self.history(s, key)]:
                    return f"T{t} is committed, and its write of {key} is lost"
        orders = [order for order in itertools.permutations(sorted(committed))
                  if self.replays(s, order)]
        if not orders:
            return "no serial order explains what was read"
        if not any(self.keeps_time(s, order) for order in orders):
            return "what was answered before a transaction began comes after it"
        return None

    def at_rest(self, s):
        return (all(name in ("end", "dead") for name, _ in s.phase)
                and all(helper is None for helper in s.helpers)
                and not any(s.late)
                and s.mover not in SPLITTING and s.mover not in MERGING
                and all(self.intent(s, key) is None for key in self.keys))

    def replays(self, s, order):
        now = dict(self.first)
        for t in order:
            transaction = self.transactions[t]
            for key in transaction.looked_at():
                if s.seen[t][self.index[key]] != version(now[key]):
                    return False
            for key, kind in transaction.writes:
                now[key] += ((t, kind),)
            for key in transaction.clears:
                if version(now[key]) != ABSENT:
                    now[key] += ((t, DELETE),)
        return all(now[key] == self.history(s, key) for key in self.keys)

    @staticmethod
    def keeps_time(s, order):
        place = {t: i for i, t in enumerate(order)}
        return all(place[earlier] < place[t] for t in order for earlier in s.after[t] or ()
                   if earlier in place)


def transaction(reads="", writes="", deletes="", scans="", clears="", instant=False):
    kinds = [(key, PUT) for key in writes] + [(key, DELETE) for key in deletes]
    return Transaction(frozenset(reads), tuple(kinds), frozenset(scans), frozenset(clears), instant)


# Two that each read what the other writes; both read and write both; three.
SKEW = [transaction(reads="x", writes="y"), transaction(reads="y", writes="x")]
BOTH = [transaction(reads="xy", writes="xy"), transaction(reads="xy", writes="xy")]
THREE = SKEW + [transaction(reads="x", writes="x")]
# One looks at an interval, the other inserts into it; the second one also inserts itself.
PHANTOM = [transaction(scans="ab", writes="z"), transaction(reads="z", writes="b")]
PHANTOM_BESIDE = [transaction(scans="ab", writes="az"), transaction(reads="z", writes="b")]
PHANTOM_ABOVE = [transaction(scans="b", writes="z"), transaction(reads="z", writes="b")]


def run(report):
    run_commit(report)
    run_real_time(report)
    run_scans(report)
    run_moves(report)
    run_sweep(report)
    run_late(report)


def run_commit(report):
    for name, transactions in (("write skew", SKEW), ("two that read and write both", BOTH),
                               ("three", THREE)):
        report.holds("commit: " + name,
                     CommitModel(transactions, ("x", "y"), helpers=2, present="xy"))
    for weak in ("does not validate", "validates before it locks", "validates past intents",
                 "helpers abort without a record", "records of aborts are collected"):
        report.breaks("commit: " + weak,
                      CommitModel(SKEW, ("x", "y"), [weak], helpers=2, present="xy"))


def run_real_time(report):
    transactions = [transaction(writes="xy"), transaction(reads="x")]
    report.holds("real time: one reads what another wrote", CommitModel(transactions, ("x", "y")))
    weak = ["reads past intents", "validates past intents"]
    report.breaks("real time: reads and validates past intents",
                  CommitModel(transactions, ("x", "y"), weak, crashes=False))


def run_scans(report):
    ranges = ("ab", "z")
    report.holds("scans: an insert into what was scanned", CommitModel(PHANTOM, ranges))
    report.breaks("scans: a prepare does not count",
                  CommitModel(PHANTOM, ranges, ["a prepare does not count"]))
    report.holds("scans: of a range that is written too", CommitModel(PHANTOM_BESIDE, ranges))
    report.breaks("scans: of written ranges are not validated",
                  CommitModel(PHANTOM_BESIDE, ranges,
                              ["scans of written ranges are not validated"]))
    # Exactly one of x and y is there at any time.
    moves = [transaction(reads="xy"), transaction(writes="x", deletes="y", instant=True),
             transaction(writes="y", deletes="x", instant=True),
             transaction(writes="x", deletes="y", instant=True)]
    for weak in ((), ("absence is validated as absence",)):
        model = CommitModel(moves, ("x", "y"), weak, present="y", crashes=False, helpers=0)
        (report.breaks if weak else report.holds)(
            "scans: " + (weak[0] if weak else "keys that come and go"), model)
    cleared = [transaction(reads="x", writes="xy"), transaction(clears="x")]
    report.holds("scans: a range is emptied under a prepare",
                 CommitModel(cleared, ("x", "y"), present="x"))


def run_moves(report):
    ranges = ("xy", "z")
    skew = [transaction(reads="x", writes="yz"), transaction(reads="y", writes="x")]
    report.holds("split during a commit", CommitModel(skew, ranges, upper="y"))
    for weak in ("writes go on while a split copies", "intents do not move"):
        report.breaks("split: " + weak, CommitModel(skew, ranges, [weak], upper="y"))
    ranges = ("ab", "z")
    report.holds("split and merge during a scan",
                 CommitModel(PHANTOM_ABOVE, ranges, upper="b", merges=True))
    report.breaks("split: counters are not copied",
                  CommitModel(PHANTOM_ABOVE, ranges, ["counters are not copied"], upper="b"))
    report.breaks("merge: keeps the counters",
                  CommitModel(PHANTOM_ABOVE, ranges, ["a merge keeps the counters"], upper="b",
                              merges=True))


def run_sweep(report):
    report.holds("sweep of a log", CommitModel(SKEW, ("x", "y"), sweeper=True))
    for weak in ("the log is not fenced", "the sweep resolves nothing"):
        report.breaks("sweep: " + weak, CommitModel(SKEW, ("x", "y"), [weak], sweeper=True))


def run_late(report):
    """RADOS applies an operation once, but maybe after its client has given up. Doubled ones are
    survived too, but for one case: an insert that was undone by somebody else in between looks as
    if it had not happened, as absent is absent. The store must not do that."""
    ranges = ("x", "y")
    removed = [transaction(writes="xy"), transaction(deletes="x")]
    alone = [transaction(writes="xy")]
    report.holds("late operations", CommitModel(SKEW, ranges, late=True))
    report.holds("late: what is inserted is removed", CommitModel(removed, ranges, late=True))
    report.holds("late and doubled operations", CommitModel(SKEW, ranges, late=True, doubled=True))
    report.breaks("doubled: what is inserted is removed",
                  CommitModel(removed, ranges, late=True, doubled=True))
    report.holds("doubled: one alone", CommitModel(alone, ranges, late=True, doubled=True))
    report.breaks("doubled: forgets that it may decide",
                  CommitModel(alone, ranges, ["forgets that it may decide"], late=True,
                              doubled=True))
