"""A split and a merge of range objects, with crashes and helpers (docs/decisions/0006-ranges.md).

One key, at or above the border m, is incremented by a writer who finds the object by a directory
that may be stale. Whatever happens, what can be read is the number of acknowledged increments.
"""

from typing import NamedTuple

LIVE, SPLIT, BUILDING = "live", "split", "building"
MERGE, UNMERGE, FROZEN, GONE = "merge", "unmerge", "frozen", "gone"
WRITES_MAX = 2
HELPS_MAX = 2
MERGES_MAX = 2


class Object(NamedTuple):
    generation: int
    state: str
    holds_key: bool  # its interval includes the key
    value: int | None  # None: not copied yet


class Writer(NamedTuple):
    step: str = "route"
    to: str = ""  # the object that it believes in
    generation: int = 0
    value: int = 0
    acknowledged: int = 0


class State(NamedTuple):
    left: Object  # O of a split, L of a merge
    right: Object | None  # N of a split, R of a merge
    directory: str
    changer: tuple  # who splits or merges: (step, generation of left, what it read)
    writer: Writer
    helps: int
    helpers: tuple = ()  # what each is about to do
    begun: int = 1  # merges


DEAD = ("dead", 0, None)


class ChangeModel:
    """What a split and a merge have in common: the writer, and how the key is found."""

    def __init__(self, *weakenings):
        self.weak = frozenset(weakenings)

    def check(self, s):
        holder = self.authority(s)
        value = holder.value if holder else "lost"
        if value != s.writer.acknowledged:
            return f"{s.writer.acknowledged} writes were acknowledged, {value} can be read"
        return None

    def steps(self, s):
        yield from self.changer_steps(s)
        if s.changer[0] not in ("done", "dead"):
            yield "the changer dies", s._replace(changer=DEAD)
        yield from self.helper_steps(s)
        yield from self.writer_steps(s)

    def writer_steps(self, s):
        w = s.writer
        if w.acknowledged == WRITES_MAX:
            return
        if w.step == "route":
            yield "writer asks the directory", s._replace(
                writer=w._replace(step="read", to=s.directory))
        elif w.step == "read":
            yield self.writer_reads(s)
        else:
            yield self.writer_writes(s)

    def writer_reads(self, s):
        """The header and the value in one read; it goes where the header says."""
        w = s.writer
        target = s.left if w.to == "left" else s.right
        elsewhere = "right" if w.to == "left" else "left"
        if not self.serves(s, w.to):
            return "writer goes on to the " + elsewhere, s._replace(writer=w._replace(to=elsewhere))
        if not self.may_write(target):
            return "writer waits", s._replace(writer=w._replace(step="route"))
        return "writer reads", s._replace(
            writer=w._replace(step="write", generation=target.generation, value=target.value))

    def writer_writes(self, s):
        """Guarded by the generation that was read."""
        w = s.writer
        target = s.left if w.to == "left" else s.right
        again = w._replace(step="route")
        if target is None or target.generation != w.generation:
            return "writer is refused", s._replace(writer=again)
        written = target._replace(value=w.value + 1)
        s = s._replace(left=written) if w.to == "left" else s._replace(right=written)
        return "writer writes", s._replace(
            writer=again._replace(acknowledged=w.acknowledged + 1))


class SplitModel(ChangeModel):
    """O [s, e) becomes O [s, m) and N [m, e)."""

    def start(self):
        return State(Object(1, LIVE, True, 0), None, "left", ("freeze", 1, None), Writer(), 0)

    def authority(self, s):
        return s.left if s.left.holds_key else s.right

    def serves(self, s, which):
        if which == "left":
            return s.left.holds_key
        return s.right is not None and s.right.state == LIVE and not s.left.holds_key

    def may_write(self, target):
        return target.state == LIVE or "writes go on while it is copied" in self.weak

    def changer_steps(self, s):
        step, generation, read = s.changer
        left, right = s.left, s.right
        if step == "freeze":
            if left.generation == generation:
                yield "O: split", s._replace(
                    left=left._replace(generation=generation + 1, state=SPLIT),
                    changer=("create", generation + 1, None))
        elif step == "create":
            if right is None:
                yield "N: building", s._replace(
                    right=Object(0, BUILDING, True, None), changer=("read", generation, None))
        elif step == "read":
            if left.generation == generation:
                yield "O is read", s._replace(changer=("copy", generation, left.value))
        elif step == "copy":
            if right is not None and right.state == BUILDING:
                yield "N is written", s._replace(
                    right=right._replace(value=read), changer=("live", generation, None))
        elif step == "live":
            if right is not None and right.state == BUILDING:
                yield "N: live", s._replace(
                    right=right._replace(generation=generation + 1, state=LIVE),
                    changer=("commit", generation, None))
        elif step == "commit":
            if left.generation == generation or "the commit is not guarded" in self.weak:
                yield "O: ends at m", s._replace(
                    left=Object(generation + 1, LIVE, False, left.value),
                    changer=("directory", generation, None))
        elif step == "directory":
            yield "directory: N", s._replace(directory="right", changer=("done", 0, None))

    def helper_steps(self, s):
        left = s.left
        raised = left._replace(generation=left.generation + 1, state=LIVE)
        if left.state == SPLIT and s.helps < HELPS_MAX:
            if "N is removed before O is raised" in self.weak and s.right is not None:
                yield "helper removes N first", s._replace(right=None)
            else:
                yield "helper raises O", s._replace(left=raised, helps=s.helps + 1)
        if left.state == LIVE and left.holds_key and s.right is not None and s.helps > 0:
            yield "helper removes N", s._replace(right=None)
        if not left.holds_key and s.directory == "left":
            yield "helper corrects the directory", s._replace(directory="right")


class MergeModel(ChangeModel):
    """L [s, m) takes over R [m, e), where the key is; if that is given up, somebody tries again."""

    def start(self):
        return State(Object(1, LIVE, False, None), Object(1, LIVE, True, 0), "right",
                     ("mark", 1, 1), Writer(), 0, helpers=(("idle",), ("idle",)))

    def authority(self, s):
        return s.left if s.left.holds_key else s.right

    def serves(self, s, which):
        if which == "left":
            return s.left.holds_key
        return s.right.state != GONE and (
            s.right.state != FROZEN or "R is not frozen" in self.weak or not s.left.holds_key)

    def may_write(self, target):
        return target.state != FROZEN

    def changer_steps(self, s):
        """What it read of R: first its generation, then its value."""
        step, generation, read = s.changer
        left, right = s.left, s.right
        if s.begun < MERGES_MAX and left.state == LIVE and right.state == LIVE:
            if not left.holds_key and step != "mark":
                yield "somebody tries again", s._replace(
                    changer=("mark", left.generation, right.generation), begun=s.begun + 1)
        if step == "mark":
            if left.generation == generation:
                yield "L: merge", s._replace(
                    left=left._replace(generation=generation + 1, state=MERGE),
                    changer=("freeze", generation + 1, read))
        elif step == "freeze":
            if "R is not frozen" in self.weak:
                yield "R stays as it is", s._replace(changer=("read", generation, None))
            elif right.generation == read:
                yield "R: frozen", s._replace(
                    right=right._replace(generation=read + 1, state=FROZEN),
                    changer=("read", generation, None))
        elif step == "read":
            yield "R is read", s._replace(changer=("copy", generation, right.value))
        elif step == "copy":
            if left.generation == generation:
                yield "L is written", s._replace(
                    left=left._replace(value=read), changer=("commit", generation, None))
        elif step == "commit":
            if left.generation == generation or "the commit is not guarded" in self.weak:
                newest = max(left.generation, right.generation) + 1
                yield "L: ends at e", s._replace(
                    left=Object(newest, LIVE, True, left.value), changer=("empty", newest, None))
        elif step == "empty":
            yield "R: gone", self.emptied(s)._replace(changer=("done", 0, None))

    @staticmethod
    def emptied(s):
        right = s.right._replace(generation=s.right.generation + 1, state=GONE, value=None)
        return s._replace(right=right, directory="left")

    def helper_steps(self, s):
        if s.left.holds_key and s.right.state == FROZEN:
            yield "helper empties R", self.emptied(s)
        for h, helper in enumerate(s.helpers):
            for name, following, then in self.undo_steps(s, *helper):
                yield f"helper {h} {name}", following._replace(
                    helpers=s.helpers[:h] + (then,) + s.helpers[h + 1:])

    def undo_steps(self, s, step, generation=0, right_generation=0):
        """(name, the state after it, what the helper does next)"""
        left, right = s.left, s.right
        thawed = right._replace(generation=right.generation + 1, state=LIVE)
        same = left.generation == generation and left.state == UNMERGE
        if step == "idle" and left.state == UNMERGE:
            yield "joins", s, ("read", left.generation)
        elif step == "idle" and left.state == MERGE and s.helps < HELPS_MAX:
            if "R is thawed before L is raised" in self.weak and right.state == FROZEN:
                yield "thaws R first", s._replace(right=thawed), ("idle",)
            raised = left._replace(generation=left.generation + 1, state=UNMERGE)
            yield ("raises L", s._replace(left=raised, helps=s.helps + 1),
                   ("read", raised.generation))
        elif step == "read":
            frozen = right.state == FROZEN
            yield "reads R", s, (("look" if frozen else "clean"), generation, right.generation)
        elif step == "look":
            going_on = same or "L is not looked at again" in self.weak
            yield ("looks at L again", s,
                   ("thaw", generation, right_generation) if going_on else ("idle",))
        elif step == "thaw":
            done = right.generation == right_generation
            yield "thaws R", s._replace(right=thawed) if done else s, ("clean", generation, 0)
        elif step == "clean":
            cleaned = s._replace(left=left._replace(state=LIVE, value=None)) if same else s
            yield "removes the copy", cleaned, ("idle",)


def run(report):
    report.holds("split, with crashes and helpers", SplitModel())
    for weakening in ("the commit is not guarded", "writes go on while it is copied",
                      "N is removed before O is raised"):
        report.breaks("split: " + weakening, SplitModel(weakening))
    report.holds("merge, with crashes and helpers", MergeModel())
    for weakening in ("the commit is not guarded", "R is not frozen",
                      "R is thawed before L is raised", "L is not looked at again"):
        report.breaks("merge: " + weakening, MergeModel(weakening))
