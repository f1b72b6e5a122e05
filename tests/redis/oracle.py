#!/usr/bin/env python3
"""The differential oracle: the same random commands to redis-server 7.0 and to another server.

tests/redis/oracle.py --reference start --subject 127.0.0.1:6379 --commands 1000000 --seed 7

Every reply is compared (compare.py says how), and after every --check-every commands all that both
hold. A difference is printed with its seed, and then as the smallest sequence that shows it.
Exit 1 if there was one. --replay runs such a sequence again, --self-test proves that all of this
can fail.
"""
import argparse
import random
import re
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack

sys.dont_write_bytecode = True
import commands  # noqa: E402
from compare import LEGITIMATE, Comparer, line, quoted, shown  # noqa: E402
from generator import Generator, Step  # noqa: E402
from resp_client import Address  # noqa: E402
from runner import Pair  # noqa: E402
from servers import RedisServer  # noqa: E402
from shrink import Shrinker  # noqa: E402


LINES_MAX = 60


def print_steps(steps):
    """One command a line, as redis-cli reads it, after the client and the round."""
    lines = [f"{step.client}/{step.round}> {line(step.args)}" for step in steps]
    if len(lines) > LINES_MAX:
        with tempfile.NamedTemporaryFile("w", prefix="oracle-", suffix=".txt", delete=False) as out:
            out.write("\n".join(lines) + "\n")
        lines = lines[-LINES_MAX:]
        print(f"  the last {LINES_MAX} of {len(steps)}; all are in {out.name} for --replay")
    for text in lines:
        print(text[:2000])


def read_steps(text):
    """What print_steps wrote; a line without client and round is a round of client 0."""
    steps = []
    for number, row in enumerate(text.split("\n")):
        row = row.strip()
        if not row or row.startswith("#"):
            continue
        head, mark, rest = row.partition("> ")
        parts = head.split("/")
        if not mark or not all(part.isdigit() for part in parts):
            parts, rest = ["0", str(-number)], row
        steps.append(Step(int(parts[0]), int(parts[1]), split(rest)))
    return steps


def split(text):
    """The words of a line, quoted as redis-cli has it."""
    words = re.findall(r'"((?:[^"\\]|\\.)*)"|(\S+)', text)
    return [plain.encode("latin-1") or re.sub(
        r"\\(x[0-9a-f]{2}|.)", lambda found: unescaped(found[1]), inner).encode("latin-1")
        for inner, plain in words]


def unescaped(code):
    return chr(int(code[1:], 16)) if len(code) > 1 else {"n": "\n", "r": "\r"}.get(code, code)


def print_difference(found):
    print(f"  command    {line(found.command)}")
    print(f"  reference  {shown(found.a)}")
    print(f"  subject    {shown(found.b)}")
    print(f"  reason     {found.reason}")


def print_coverage(counts):
    """For each command: how often it was sent, and the forms of the reference's replies."""
    rows = {}
    for (name, form), count in counts.items():
        rows.setdefault(name, Counter())[form] = count
    for name, forms in sorted(rows.items()):
        print(f"  {quoted(name)[:20]:20} {sum(forms.values()):7}  " + "  ".join(
            f"{form} {count}" for form, count in forms.most_common()))


class Oracle:
    def __init__(self, pair, options):
        self.pair, self.options = pair, options
        self.generator = Generator(options.seed, options.groups, options.epoch_commands)
        self.muted = set(name.upper().encode() for name in options.skip)
        self.differences = []  # minimal steps of each

    def run(self):
        """True if there was no difference."""
        options, pair = self.options, self.pair
        start, epoch, last = time.monotonic(), options.epoch, time.monotonic()
        while pair.commands < options.commands and len(self.differences) < options.differences:
            steps = [s for s in self.generator.epoch(epoch) if not self.is_muted(s)]
            found = pair.run(steps, options.check_every)
            if found is not None:
                self.report(epoch, steps, found)
            epoch += 1
            if time.monotonic() - last > 20:
                last = time.monotonic()
                print(f"  {pair.commands} commands, {pair.commands / (last - start):.0f}/s",
                      flush=True)
        took = time.monotonic() - start
        print(f"{pair.commands} commands in {epoch - options.epoch} epochs, {pair.checks} states, "
              f"{took:.1f} s, {pair.commands / took:.0f} commands/s, "
              f"{len(self.differences)} differences, seed {options.seed}", flush=True)
        if pair.coverage is not None:
            print_coverage(pair.coverage)
        return not self.differences

    def is_muted(self, step):
        return step.name in self.muted or step.args[1:2] and step.name + b" " \
            + step.args[1].upper() in self.muted

    def report(self, epoch, steps, found):
        print(f"DIFFERENCE {len(self.differences) + 1}: seed {self.options.seed}, epoch {epoch}, "
              f"step {found.index} of {len(steps)}")
        print_difference(found)
        shrinker = Shrinker(lambda s: self.pair.run(s, self.options.check_every),
                            found.signature(), self.options.shrink_s)
        before = self.pair.commands, self.pair.checks
        small = shrinker.shrink(steps)
        self.pair.commands, self.pair.checks = before
        if small is None:
            print("  it did not come back when the epoch was run again: timing, or memory of "
                  "what was before FLUSHALL")
        else:
            print(f"  smallest sequence, of {shrinker.runs} runs (client/round> command; what is "
                  "of one round is sent at once):")
            print_steps(small)
            if shrinker.last is not None:
                print_difference(shrinker.last)
        sys.stdout.flush()
        self.differences.append(small)
        if found.signature() != b"state":
            self.muted.add(found.signature())
            print(f"  {found.signature().decode('latin-1')} is left out from here on", flush=True)


def parse_arguments(argv):
    known = list(commands.GROUPS)
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0], epilog="Legitimate "
                                     "differences: " + "; ".join(
                                         f"{name.decode()}: {entry[1]}"
                                         for name, entry in LEGITIMATE.items()))
    parser.add_argument("--commands", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=None, help="else a random one, printed")
    parser.add_argument("--epoch", type=int, default=0, help="begin with this epoch of the seed")
    parser.add_argument("--reference", default="start", help="[user:password@]HOST:PORT, "
                        "unix:PATH or start, which starts redis-server")
    parser.add_argument("--subject", help="as --reference")
    parser.add_argument("--groups", default=",".join(
        g for g in known if g not in commands.OFF_BY_DEFAULT), help=f"of {','.join(known)}")
    parser.add_argument("--skip", default="", help="commands to leave out: LCS,OBJECT HELP")
    parser.add_argument("--check-every", type=int, default=500, help="commands between states")
    parser.add_argument("--epoch-commands", type=int, default=2000)
    parser.add_argument("--differences", type=int, default=10, help="stop after so many; each "
                        "command that differed is left out from there on")
    parser.add_argument("--shrink-s", type=float, default=60, help="time to make one case small")
    parser.add_argument("--timeout-s", type=float, default=10, help="the longest wait for a reply")
    parser.add_argument("--floats-by-value", action="store_true", help="0.1 equals "
                        "0.10000000000000001: Redis 7.2 writes scores shorter than 7.0")
    parser.add_argument("--coverage", action="store_true", help="print what each command replied")
    parser.add_argument("--replay", metavar="FILE", help="run the sequence of a report")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args(argv)
    options.groups = options.groups.split(",")
    for group in options.groups:
        if group not in known:
            parser.error(f"no group {group}: there are {', '.join(known)}")
    options.skip = [name for name in options.skip.split(",") if name]
    if options.seed is None:
        options.seed = 1 if options.self_test else random.SystemRandom().randrange(1 << 32)
    if not options.self_test and not options.subject:
        parser.error("--subject is missing: HOST:PORT of the server to compare")
    return options


def replay(pair, options):
    with open(options.replay, encoding="latin-1") as file:
        found = pair.run(read_steps(file.read()), 1)
    if found is None:
        print("no difference")
        return True
    print_difference(found)
    return False


def main(argv):
    options = parse_arguments(argv)
    if options.self_test:
        from self_test import self_test
        return self_test(options.seed)
    with ExitStack() as stack:
        def address(text):
            return stack.enter_context(RedisServer()) if text == "start" else Address(text)
        pair = Pair(address(options.reference), address(options.subject),
                    Comparer(options.floats_by_value), options.timeout_s)
        stack.callback(pair.close)
        pair.coverage = Counter() if options.coverage else None
        if options.replay:
            return 0 if replay(pair, options) else 1
        print(f"seed {options.seed}, groups {','.join(options.groups)}", flush=True)
        return 0 if Oracle(pair, options).run() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
