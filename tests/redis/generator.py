"""Random sequences of commands, in epochs: each begins with empty databases and new connections.

An epoch depends on nothing but the seed, its number and the groups, so a difference is found again
and made smaller by running one epoch, however long the run was.
"""
import random
import re
from bisect import bisect
from itertools import accumulate

import commands
from arguments import EDGES, Arguments
from resp_client import encode, encode_inline

# checked by a procedure, alone, outside of pipelines (procedures.py)
ALONE = frozenset([b"SPOP", b"SRANDMEMBER", b"HRANDFIELD", b"ZRANDMEMBER", b"RANDOMKEY", b"SCAN",
                   b"HSCAN", b"SSCAN", b"ZSCAN", b"@RESTORE", b"@WAIT", b"@PROTO", b"@GETKEYS",
                   b"@XADD"])
TIMED = frozenset([b"SET", b"SETEX", b"PSETEX", b"GETEX", b"EXPIRE", b"PEXPIRE", b"EXPIREAT",
                   b"PEXPIREAT", b"RESTORE"])
TXN = frozenset([b"MULTI", b"EXEC", b"DISCARD", b"RESET"])


def is_unsorted(args):
    """SORT BY a pattern without *: its procedure asks for the type first."""
    return args[0][:4].upper() == b"SORT" and any(
        args[i].upper() == b"BY" and b"*" not in args[i + 1] for i in range(2, len(args) - 1))


LEX = frozenset([b"ZLEXCOUNT", b"ZRANGEBYLEX", b"ZREVRANGEBYLEX", b"ZREMRANGEBYLEX"])


def lex_key(args):
    """The key of which a range BYLEX is asked for, or None."""
    name = args[0].upper()
    if name in LEX:
        return args[1] if len(args) > 1 else None
    if name in (b"ZRANGE", b"ZRANGESTORE") and len(args) > 4 and \
            any(arg.upper() == b"BYLEX" for arg in args[4:]):
        return args[1 if name == b"ZRANGE" else 2]
    return None


def is_uneven(args):
    """A range BYLEX of members with different scores is unspecified: its procedure looks first.
    The keys x0 and x1 hold nothing but scores of 0."""
    key = lex_key(args)
    return key is not None and key[-2:] not in (b"x0", b"x1")


def is_since_7_2(args):
    """What the reference, which is 7.0, refuses by the number of its words, which ends a MULTI, and
    7.2 does not; or 7.2 refuses, and 7.0 miscounts. Text tests hold these."""
    name = args[0].upper()
    return name in (b"ZRANK", b"ZREVRANK") and len(args) == 4 or (
        name == b"COMMAND" and len(args) == 3 and args[1].upper() == b"GETKEYSANDFLAGS") or (
        name == b"LPOS" and b"-9223372036854775808" in args[3:])


def is_alone(args):
    return args[0].upper() in ALONE or is_unsorted(args) or is_uneven(args)


class Step:
    """One command of one client. Steps of the same round are sent before any reply is read."""
    __slots__ = ("client", "round", "args", "inline", "name", "alone", "txn")

    def __init__(self, client, round_number, args, inline=False):
        self.client, self.round, self.args, self.inline = client, round_number, args, inline
        self.name = args[0].upper()
        self.alone = is_alone(args)
        self.txn = self.name in TXN

    def wire(self):
        return encode_inline(self.args) if self.inline else encode(self.args)


# --- templates, compiled to functions that append arguments to a list ---


def parse(words):
    """A sequence of nodes up to the end, '|' or ']'."""
    nodes = []
    while words and words[0] not in ("|", "]"):
        word = words.pop(0)
        if word in ("[", "?[", "*[", "+["):
            choices = [parse(words)]
            while words.pop(0) == "|":
                choices.append(parse(words))
            nodes.append((word, choices))
        else:
            nodes.append(("word", word))
    return nodes


class Templates:
    def __init__(self, arguments):
        self.arguments, self.rng = arguments, arguments.rng

    def compile(self, template):
        words = re.findall(r"[?*+]?\[|\||\]|[^\s\[\]|]+", template)
        return self.sequence(parse(words))

    def sequence(self, nodes):
        parts = [self.node(*node) for node in nodes]

        def emit(out):
            for part in parts:
                part(out)
        return emit if len(parts) != 1 else parts[0]

    def node(self, kind, what):
        rng = self.rng
        if kind == "word":
            return self.word(what)
        choices = [self.sequence(choice) for choice in what]
        count = len(choices)
        if kind == "[":
            return lambda out: choices[int(rng.random() * count)](out)
        if kind == "?[":
            def optional(out):
                chance = rng.random() * 2
                if chance < 1:
                    choices[int(chance * count)](out)
            return optional
        least = 1 if kind == "+[" else 0
        keys_only = what == [[("word", "k")]]  # DEL of many keys would leave little to look at

        def repeated(out):
            scale = 1 if keys_only or rng.random() < 0.7 else self.arguments.scale
            times = least + int(rng.random() ** 2 * 4 * scale)
            for _ in range(times):
                choices[int(rng.random() * count)](out)
        return repeated

    def word(self, text):
        rng, source = self.rng, self.arguments.sources.get(text)
        if source is None:
            literal = text.encode()

            lower = literal if text[0] == "@" else literal.lower()

            def constant(out):
                out.append(literal if rng.random() < 0.95 else lower)
            return constant
        if text[:2] == "nk" or text == "elements":
            return lambda out: out.extend(source())
        return lambda out: out.append(source())


class Generator:
    """epoch(n) gives the steps of epoch n."""

    def __init__(self, seed, groups, epoch_commands=2000):
        self.seed, self.groups, self.epoch_commands = seed, groups, epoch_commands
        self.rng = random.Random(0)
        self.arguments = Arguments(self.rng)
        templates = Templates(self.arguments)
        self.tables = {}
        for group in groups:
            self.tables[group] = [(float(line.split(" ", 1)[0]), templates.compile(
                line.split(" ", 1)[1])) for line in commands.GROUPS[group].split("\n") if line]

    def use(self, groups):
        table = [entry for group in groups for entry in self.tables[group]]
        self.emitters = [entry[1] for entry in table]
        self.sums = list(accumulate(entry[0] for entry in table))

    def epoch(self, number):
        rng = self.rng
        rng.seed(f"{self.seed}/{number}")
        self.steps, self.round = [], 0
        parallel = rng.random() < 0.15 and len(self.groups) > 1
        groups = [g for g in self.groups if not (parallel and g in ("keyspace", "getkeys"))]
        data = [g for g in groups if g in commands.DATA_GROUPS]
        if len(data) > 1 and rng.random() < 0.5:  # half of all epochs stay with one or two types
            keep = rng.sample(data, rng.randint(1, 2))
            groups = [g for g in groups if g not in data or g in keep]
        if rng.random() < 0.4 and len(groups) > 1:
            groups = [g for g in groups if g != "sort"]
        self.with_sort = "sort" in groups
        self.use(groups)
        self.clients = rng.randint(2, 4) if parallel else rng.choice([1, 2, 2, 3, 4])
        self.in_multi = [False] * self.clients
        self.mutate_share = 0 if parallel else 0.05
        for client in range(self.clients):
            if rng.random() < 0.5:
                self.add(client, [b"HELLO", b"3"])
        (self.fill_parallel if parallel else self.fill)()
        return self.steps

    def fill(self):
        rng = self.rng
        self.arguments.begin(with_sort=self.with_sort)
        while len(self.steps) < self.epoch_commands:
            client = int(rng.random() * self.clients)
            self.round += 1
            if "txn" in self.groups and rng.random() < 0.15:
                self.block(client)
                continue
            for _ in range(self.pipeline()):
                self.command(client)

    def fill_parallel(self):
        """All clients send at once, each to keys of its own."""
        rng, pools, number = self.rng, [], 0
        for client in range(self.clients):
            self.arguments.begin(b"c%d:" % client, self.with_sort)
            pools.append({k: v for k, v in vars(self.arguments).items() if k != "sources"})
        while len(self.steps) < self.epoch_commands:
            number += 1
            base = number * 1000  # what must run alone has a round of its own in between
            for client in range(self.clients):
                vars(self.arguments).update(pools[client])
                self.round = base
                for _ in range(self.pipeline()):
                    self.command(client, alone=False)
            for client in range(self.clients):
                if rng.random() < 0.3:
                    vars(self.arguments).update(pools[client])
                    self.round += 1
                    self.command(client)

    def pipeline(self):
        chance = self.rng.random()
        if chance < 0.3:
            return 1
        return int(1 + self.rng.random() * (10 if chance < 0.7 else 64 if chance < 0.98 else 300))

    def block(self, client):
        """WATCH, perhaps a write by somebody else, MULTI, commands, EXEC."""
        rng = self.rng
        if rng.random() < 0.5:
            self.add(client, [b"WATCH", self.arguments.arg_k()])
            for _ in range(rng.randint(0, 3)):
                other = rng.randrange(self.clients)
                self.round += 1
                self.command(other)
            self.round += 1
        self.add(client, [b"MULTI"])
        for _ in range(int(rng.random() ** 2 * 25)):
            self.command(client)
            if rng.random() < 0.1:  # the others go on in the meantime
                self.round += 1
                self.command(rng.randrange(self.clients))
                self.round += 1
        self.add(client, [b"EXEC" if rng.random() < 0.9 else b"DISCARD"])

    def draw(self):
        rng = self.rng
        args = []
        self.emitters[bisect(self.sums, rng.random() * self.sums[-1])](args)
        if rng.random() < self.mutate_share:
            self.mutate(args)
        if args[0][:4].upper() == b"SORT":
            upper = [arg.upper() for arg in args]
            if b"BY" in upper and b"ALPHA" in upper and b"STORE" in upper:
                args.pop(upper.index(b"ALPHA"))  # its ties have no order, and the list would stay
        return args

    def command(self, client, alone=True):
        rng = self.rng
        while True:
            args = self.draw()
            if args[0] == b"@GETKEYS":
                args = [b"COMMAND", b"GETKEYS"] + self.draw()
                if args[2][:1] == b"@":
                    continue
            if alone or not is_alone(args):
                break
        if self.in_multi[client] and rng.random() < 0.2:
            args = [b"EXEC"]
        self.add(client, args)
        self.touch_expired(client, args)

    def touch_expired(self, client, args):
        """A key that was made expired is looked at: until then redis-server counts it."""
        if args[0].upper() == b"SET" and len(args) > 4:
            self.add(client, [b"EXISTS", args[1]])

    def mutate(self, args):
        rng, name = self.rng, args[0].upper()
        if name[:1] == b"@" or name in (b"SETBIT", b"BITFIELD", b"SETRANGE", b"WAIT", b"HELLO") or \
                args[1:] and args[1] in self.arguments.even:
            return
        chance = rng.random() * (0.5 if b"SCAN" in name else 1)  # cursors are not replaced
        if chance < 0.3 and len(args) > 1:
            args.pop(rng.randrange(1, len(args)) if name not in TIMED else -1)
        elif chance < 0.5:
            args.append(rng.choice(EDGES))
        elif chance < 0.8 and len(args) > 1:
            args[rng.randrange(1, len(args))] = rng.choice(EDGES)
        elif chance < 0.9 and len(args) > 2 and name not in TIMED and name != b"SETRANGE":
            i, j = rng.randrange(1, len(args)), rng.randrange(1, len(args))
            args[i], args[j] = args[j], args[i]
        else:
            args[0] = rng.choice([args[0].lower(), args[0].title(), args[0].swapcase()])
        if name == b"XADD":  # an id of the clock
            args[2:] = [b"7-*" if arg == b"*" else arg for arg in args[2:]]

    def add(self, client, args):
        if is_since_7_2(args):
            return
        name = args[0].upper()
        alone = is_alone(args)
        self.round += alone
        inline = self.rng.random() < 0.01 and args[0].isalnum()
        self.steps.append(Step(client, self.round, args, inline))
        self.round += alone
        if name == b"MULTI":
            self.in_multi[client] = True
        elif name in TXN:
            self.in_multi[client] = False
