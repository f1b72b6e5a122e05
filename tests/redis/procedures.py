"""How the commands are checked that one comparison of two replies says nothing about.

Each procedure is called as procedure(pair, step) outside of MULTI, where pair.both(client, args)
sends one command to both servers and gives both replies. It raises Difference.
"""
import re
import time
import zlib

from arguments import MALFORMED
from generator import LEX, lex_key
from resp_client import Connection, decode, elements, encode

WAIT_MS = 4  # at most the time that @WAIT commands set


class Difference(Exception):
    def __init__(self, args, a, b, reason, index=None):
        super().__init__(reason)
        self.command, self.a, self.b, self.reason, self.index = args, a, b, reason, index

    def signature(self):
        """What counts as the same difference while a case is made smaller."""
        state = self.reason.startswith("state")
        return b"state" if state else self.command[0].upper()


def require(condition, args, a, b, reason):
    if not condition:
        raise Difference(args, a, b, reason)


def is_error(raw):
    return raw[:1] in b"-!"


def list_of(raw):
    value = decode(raw)
    return [] if value is None else value if isinstance(value, list) else [value]


# --- commands with random replies ---


def pop_random(pair, step):
    """SPOP: what one side popped is removed from the other, whose reply proves it was there."""
    args = step.args
    a, b = pair.both(step.client, args)
    if is_error(a) or is_error(b) or a == b:
        pair.same(args, a, b)
        return
    require(a[:1] == b[:1], args, a, b, "the types differ")
    ones, others = list_of(a), list_of(b)
    require(len(ones) == len(others), args, a, b, "the lengths differ")
    require(len(set(others)) == len(others), args, a, b, "an element twice")
    for side, popped, kept in ((pair.subject, ones, others), (pair.reference, others, ones)):
        extra = [member for member in popped if member not in set(kept)]
        if extra:
            reply = side.call(step.client, [b"SREM", args[1]] + extra)
            require(reply == b":%d\r\n" % len(extra), args, a, b,
                    f"not of the set: of {extra!r} SREM on the other side removes {reply!r}")


# the command that tells whether what was drawn is there
MEMBERS_OF = {b"SRANDMEMBER": b"SMISMEMBER", b"HRANDFIELD": b"HMGET", b"ZRANDMEMBER": b"ZMSCORE"}


def drawn(raw, with_values):
    """[(member, value or None)] of a reply, in both protocols."""
    if not with_values:
        return [(member, None) for member in list_of(raw)]
    kind, parts = elements(raw)
    if parts and parts[0][:1] == b"*":
        return [tuple(decode(part)) for part in parts]
    values = list_of(raw)
    return list(zip(values[::2], values[1::2]))


def draw_random(pair, step):
    args = step.args
    a, b = pair.both(step.client, args)
    if is_error(a) or is_error(b):
        pair.same(args, a, b)
        return
    require(a[:1] == b[:1] and (decode(a) is None) == (decode(b) is None), args, a, b,
            "the types differ")
    with_values = len(args) > 3
    sides = [drawn(a, with_values), drawn(b, with_values)]
    require(len(sides[0]) == len(sides[1]), args, a, b, "the lengths differ")
    if not sides[0]:
        return
    if len(args) > 2 and int(args[2]) > 0:
        members = [member for member, _ in sides[1]]
        require(len(set(members)) == len(members), args, a, b, "an element twice")
    name = MEMBERS_OF[step.name]
    asked = pair.reference.call(step.client, [name, args[1]] + [m for m, _ in sides[1]])
    for (member, value), present in zip(sides[1], decode(asked)):
        require(present not in (None, 0) or name == b"ZMSCORE" and present is not None, args, a, b,
                f"{member!r} is not in the collection")
        if value is not None and name == b"ZMSCORE":
            value, present = float(value), float(present)
        require(value is None or value == present, args, a, b, f"wrong value of {member!r}")


def random_key(pair, step):
    a, b = pair.both(step.client, step.args)
    if is_error(a) or is_error(b):
        pair.same(step.args, a, b)
        return
    require((decode(a) is None) == (decode(b) is None) and a[:1] == b[:1], step.args, a, b,
            "one is null")
    if decode(a) is not None:
        asked = pair.reference.call(step.client, [b"EXISTS", decode(b)])
        require(asked == b":1\r\n", step.args, a, b, "there is no such key")


# --- iterations ---


def by_value(item):
    """A member with its score as a number: how ZSCAN writes it depends on the encoding."""
    return item[0], float(decode(item[1]))


def iterate(pair, step):
    """SCAN and its family: whole iterations of both sides give the same."""
    position = 1 if step.name == b"SCAN" else 2
    a, b = pair.both(step.client, step.args)
    if is_error(a) or is_error(b) or step.args[position:position + 1] != [b"0"]:
        pair.same(step.args, a, b)
        return
    found = []
    for side, first in ((pair.reference, a), (pair.subject, b)):
        seen, reply, rounds = set(), first, 0
        while True:
            _, parts = elements(reply)
            require(parts is not None and len(parts) == 2, step.args, a, reply, "no SCAN reply")
            _, items = elements(parts[1])
            require(items is not None, step.args, a, reply, "no SCAN reply")
            if step.name in (b"HSCAN", b"ZSCAN"):
                items = zip(items[::2], items[1::2])
            seen.update(map(by_value, items) if step.name == b"ZSCAN" else items)
            cursor = decode(parts[0])
            if cursor == b"0":
                break
            rounds += 1
            require(rounds < 20000, step.args, a, reply, "the iteration does not end")
            again = list(step.args)
            again[position] = cursor
            reply = side.call(step.client, again)
        found.append(seen)
    if found[0] != found[1]:
        missing, extra = sorted(found[0] - found[1])[:5], sorted(found[1] - found[0])[:5]
        raise Difference(step.args, a, b, f"whole iteration: missing {missing}, extra {extra}")


# --- our own: more than one command, written with @ ---


def dump_and_restore(pair, step):
    """@RESTORE from to: what each side dumps is restored on both and reads the same."""
    source, target = step.args[1:3]
    a, b = pair.both(step.client, [b"DUMP", source])
    pair.same([b"DUMP", source], a, b)
    if decode(a) is None:
        return
    for payload in (decode(a), decode(b)):
        args = [b"RESTORE", target, b"0", payload, b"REPLACE"]
        c, d = pair.both(step.client, args)
        require(c == d == b"+OK\r\n", step.args + [payload], c, d, "RESTORE of what was dumped")
        args = [b"TYPE", target]
        c, d = pair.both(step.client, args)
        require(c == d, step.args, c, d, "RESTORE makes another type")
        args = content_command(c[1:-2], target)
        if args:
            c, d = pair.both(step.client, args)
            pair.same(args, c, d)


def content_command(kind, key):
    return {b"string": [b"GET", key], b"hash": [b"HGETALL", key], b"set": [b"SMEMBERS", key],
            b"list": [b"LRANGE", key, b"0", b"-1"],
            b"zset": [b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"],
            b"stream": [b"XINFO", b"STREAM", key, b"FULL", b"COUNT", b"0"]}.get(kind)


PROBES = [b"GET", b"TYPE", b"HLEN", b"EXISTS", b"TTL", b"INCR", b"LLEN", b"PERSIST", b"SCARD",
          b"ZCARD", b"STRLEN", b"DUMP", b"HGETALL", b"GETDEL", b"UNLINK"]


def run_out(pair, step):
    """@WAIT command...: sets a time of up to WAIT_MS (@NOW is a moment that far off), and waits
    until it has run out for sure on both sides. The reference is asked meanwhile; the subject is
    not, so the command at the end is the first to meet the expired key there."""
    args = list(step.args[1:])
    if b"@NOW" in args:
        args[args.index(b"@NOW")] = b"%d" % (time.time() * 1000 + WAIT_MS)
    a, b = pair.both(step.client, args)
    pair.same(args, a, b)
    end = time.time() + WAIT_MS / 1000 + 0.0015
    gone = False
    while time.time() < end or not gone and time.time() < end + 5:
        reply = pair.reference.call(step.client, [b"PTTL", args[1]])
        gone = int(reply[1:-2]) < 0 or int(reply[1:-2]) > WAIT_MS
        time.sleep(0.0005)  # the servers need the processor more than we do
    probe = [PROBES[zlib.crc32(b" ".join(step.args)) % len(PROBES)], args[1]]
    reason = pair.comparer.compare(probe, *(replies := pair.both(step.client, probe)))
    require(reason is None, step.args + [b"and", b"then"] + probe, *replies, reason)


def add_by_clock(pair, step):
    """@XADD key ... *: ids of the clock are of the same form; the key is not looked at further."""
    args = [b"XADD"] + step.args[1:]
    a, b = pair.both(step.client, args)
    if a[:1] == b"$" and b"\r\n18446744073709551615-" in a and b"exhausted" in b:
        pass  # the largest time is not for entries here
    elif a[:1] == b"$" and decode(a) is not None and not is_error(b):
        times = [re.fullmatch(rb"(\d{13,})-\d+", decode(raw) or b"") for raw in (a, b)]
        require(all(times), args, a, b, "no id of the clock")
        require(abs(int(times[0][1]) - int(times[1][1])) < 600000, args, a, b, "too far apart")
        pair.same(args, *pair.both(step.client, [b"XLEN", args[1]]))
    else:  # an error, or an id behind one that is far off
        pair.same(args, a, b)
    pair.same(args, *pair.both(step.client, [b"DEL", args[1]]))


def malformed(pair, step):
    """@PROTO n: bytes that are no command, on a connection of their own, to its end."""
    data = MALFORMED[int(step.args[1])] + encode([b"PING"]) + encode([b"QUIT"])
    for _ in range(5):  # a close with unread input may take the reply with it
        replies = []
        for side in (pair.reference, pair.subject):
            connection = Connection(side.address)
            try:
                connection.sock.sendall(data)
            except (BrokenPipeError, ConnectionResetError):
                pass
            replies.append(connection.read_to_end())
            connection.close()
        if replies[0] == replies[1]:
            return
    raise Difference(step.args + [data[:100]], *replies, "replies to malformed input")


def sort_unsorted(pair, step):
    """SORT BY what has no *: in the order of the collection, which a set does not have."""
    kind = pair.reference.call(step.client, [b"TYPE", step.args[1]])
    a, b = pair.both(step.client, step.args)
    if kind == b"+set\r\n":
        pair.same(step.args, a, b)
    else:
        require(a == b, step.args, a, b, "the bytes differ")


def lexicographic(pair, step):
    """Ranges BYLEX, if all scores are the same: only then Redis specifies them."""
    key = lex_key(step.args)
    ends = [pair.reference.call(step.client, [b"ZRANGE", key, at, at, b"WITHSCORES"])
            for at in (b"0", b"-1")]
    scores = [drawn(raw, True) for raw in ends if raw[:1] == b"*"]
    if len(scores) < 2 or [score for _, score in scores[0]] == [score for _, score in scores[1]]:
        pair.same(step.args, *pair.both(step.client, step.args))


PROCEDURES = {
    b"SPOP": pop_random, b"SRANDMEMBER": draw_random, b"HRANDFIELD": draw_random,
    b"ZRANDMEMBER": draw_random, b"RANDOMKEY": random_key, b"SCAN": iterate, b"HSCAN": iterate,
    b"SSCAN": iterate, b"ZSCAN": iterate, b"@RESTORE": dump_and_restore, b"@WAIT": run_out,
    b"@PROTO": malformed, b"@XADD": add_by_clock, b"SORT": sort_unsorted, b"SORT_RO": sort_unsorted,
    **dict.fromkeys(LEX | {b"ZRANGE", b"ZRANGESTORE"}, lexicographic),
}


def inside_multi(args):
    """What is sent instead while the client is in MULTI, or None."""
    name = args[0].upper()
    if name == b"SPOP":  # all of it, as what is left must be the same
        return [b"SPOP", args[1], b"1000000"] if len(args) > 1 else args
    if name == b"@RESTORE":
        return [b"DUMP", args[1]]
    return None if name[:1] == b"@" or lex_key(args) is not None else args
