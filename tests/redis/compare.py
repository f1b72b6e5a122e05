"""Are two replies to the same command the same? Byte for byte, except as the tables here say.

Called only for replies whose bytes differ. compare() gives None if they are as good as equal and
otherwise the reason why not. What is an error must always be equal byte for byte.
"""
from collections import Counter

from resp_client import decode, elements

# Legitimate differences: command -> (which arguments, reason). Replies are compared by kind only.
# This is the whole list; order, randomness and clocks are below, with how they are checked instead.
LEGITIMATE = {
    b"OBJECT": (lambda args: args[1:2] and args[1].upper() in (
        b"ENCODING", b"FREQ", b"IDLETIME", b"REFCOUNT"),
        "how a value is stored, shared and how recently it was used is the server's own matter"),
    b"MEMORY": (lambda args: args[1:2] and args[1].upper() == b"USAGE",
                "what a key takes, and where, is the server's own matter"),
    b"COMMAND": (lambda args: len(args) < 3 or args[1].upper() == b"LIST",
                 "there are fewer commands; a test of its own compares those that both have"),
    b"CONFIG": (lambda args: any(b"*" in arg or b"?" in arg or b"[" in arg for arg in args[2:]),
                "there are fewer settings"),
    b"SLOWLOG": (lambda args: args[1:2] and args[1].upper() in (b"GET", b"LEN"),
                 "what is slow is not the same"),
    b"DUMP": (lambda args: True,
              "payloads may differ in encoding and order; @RESTORE restores each on both sides"),
}


def without_sign_of_zero(raw):
    """A score of -0 is written as 0 or -0, by how redis-server stores the sorted set; so is one
    of 1e17 in ZSCAN, which is compared by value."""
    return raw.replace(b"$2\r\n-0\r\n", b"$1\r\n0\r\n").replace(b",-0\r\n", b",0\r\n")


UNORDERED = frozenset([b"SMEMBERS", b"SUNION", b"SINTER", b"SDIFF", b"KEYS", b"HKEYS", b"HVALS",
                       b"SPOP"])
RANDOM = frozenset([b"SRANDMEMBER", b"HRANDFIELD", b"ZRANDMEMBER", b"RANDOMKEY"])
SCANS = frozenset([b"SCAN", b"HSCAN", b"SSCAN", b"ZSCAN"])
# of XINFO: what follows these names is a time, or how redis-server packs entries
STREAM_TIMES = (b"idle", b"seen-time")
STREAM_NODES = (b"radix-tree-keys", b"radix-tree-nodes")
STREAM_TOLERANCE_MS = 600_000  # one server may be held up
CLOCKS = {b"TTL": 1, b"EXPIRETIME": 1, b"PTTL": 1000, b"PEXPIRETIME": 1000}  # tolerance
HELLO_OWN = (b"server", b"version", b"id", b"modules", b"mode", b"role")


class Comparer:
    """floats_by_value: numbers that are equal as doubles are equal however they are written."""

    def __init__(self, floats_by_value=False):
        self.floats_by_value = floats_by_value

    def compare(self, args, a, b):
        if a == b:
            return None
        name = args[0].upper()
        if a[:1] in b"-!" or b[:1] in b"-!":
            return "the error differs" if a[:1] == b[:1] else "one is an error"
        if a[:1] != b[:1]:
            return "the types differ"
        if args[1:2] and args[1].upper() == b"HELP":
            return self.help(a, b)
        if name in LEGITIMATE and LEGITIMATE[name][0](args):
            return self.kind(a, b)
        if name in UNORDERED:
            return self.multiset(a, b)
        if name in (b"HGETALL", b"CONFIG"):
            return self.pairs(a, b)
        if name in CLOCKS:
            return self.clock(a, b, CLOCKS[name])
        if name in (b"SORT", b"SORT_RO"):
            return self.sort(args, a, b)
        if name in RANDOM:
            return self.length(a, b)
        if name in SCANS:
            return self.scan(a, b)
        if name == b"HELLO":
            return self.hello(a, b)
        if name in (b"XINFO", b"XPENDING"):
            same = self.same_times(decode(a), decode(b))
            return None if same else "they differ in more than times"
        if name[:3] == b"GEO":
            return self.places(args, a, b)
        if name[:1] == b"Z" and without_sign_of_zero(a) == without_sign_of_zero(b):
            return None
        return self.exact(a, b)

    def exact(self, a, b):
        if self.floats_by_value and self.same_leaves(a, b):
            return None
        return "the bytes differ"

    def same_leaves(self, a, b):
        (kind, ones), (other_kind, others) = elements(a), elements(b)
        if kind != other_kind or (ones is None) != (others is None):
            return False
        if ones is not None:
            return len(ones) == len(others) and all(
                x == y or self.same_leaves(x, y) for x, y in zip(ones, others))
        try:
            return kind in b"$," and float(decode(a)) == float(decode(b))
        except (TypeError, ValueError):
            return a == b

    def same_times(self, a, b):
        """Replies about streams, but for times and nodes. A row of what is pending is an id,
        perhaps a consumer, a time, and a number."""
        if isinstance(a, bool) or not isinstance(a, (list, tuple)) or type(a) is not type(b):
            return a == b
        if len(a) != len(b):
            return False
        named = [a[i - 1] if i > 0 and isinstance(a[i - 1], bytes) else None for i in range(len(a))]
        is_pending = len(a) in (3, 4) and all(isinstance(x, int) for x in a[-2:]) and all(
            isinstance(x, bytes) for x in a[:-2])
        for i, (x, y) in enumerate(zip(a, b)):
            if named[i] in STREAM_NODES and isinstance(x, int) and isinstance(y, int):
                continue
            is_time = is_pending and i == len(a) - 2 or named[i] in STREAM_TIMES
            if is_time and isinstance(x, int) and isinstance(y, int):
                if abs(x - y) > STREAM_TOLERANCE_MS:
                    return False
            elif not self.same_times(x, y):
                return False
        return True

    def kind(self, a, b):
        return None if (decode(a) is None) == (decode(b) is None) else "one is null"

    def help(self, a, b):
        """The words are the server's own, but for the first line."""
        (_, ones), (_, others) = elements(a), elements(b)
        return None if ones[0] == others[0] else "the first lines differ"

    def length(self, a, b):
        (_, ones), (_, others) = elements(a), elements(b)
        if ones is None or others is None:
            return self.kind(a, b)
        return None if len(ones) == len(others) else "the lengths differ"

    def multiset(self, a, b):
        (_, ones), (_, others) = elements(a), elements(b)
        if ones is None or others is None:
            return self.exact(a, b)
        return None if Counter(ones) == Counter(others) else "the elements differ"

    def pairs(self, a, b):
        (_, ones), (_, others) = elements(a), elements(b)
        if ones is None or others is None:
            return self.exact(a, b)
        same = Counter(zip(ones[::2], ones[1::2])) == Counter(zip(others[::2], others[1::2]))
        return None if same and len(ones) == len(others) else "the pairs differ"

    def clock(self, a, b, tolerance):
        one, other = decode(a), decode(b)
        if one < 0 or other < 0:
            return "one is no time"
        return None if abs(one - other) <= tolerance else f"over {tolerance} apart"

    def sort(self, args, a, b):
        """No order is promised for a set BY nosort, for ties of BY with ALPHA, and by strcoll
        for what has a NUL; with LIMIT it is then open which elements there are."""
        upper = [arg.upper() for arg in args]
        by = b"BY" in upper
        open_order = by and (b"ALPHA" in upper or b"*" not in args[upper.index(b"BY") + 1]) or (
            b"ALPHA" in upper and (b"\0" in a or b"\0" in b or b"GET" in upper))
        if not open_order:
            return self.exact(a, b)
        if b"LIMIT" in upper:
            return self.length(a, b)
        gets = upper.count(b"GET") or 1
        (_, ones), (_, others) = elements(a), elements(b)
        if ones is None or others is None:
            return self.exact(a, b)
        rows = [Counter(tuple(row[i:i + gets]) for i in range(0, len(row), gets))
                for row in (ones, others)]
        return None if rows[0] == rows[1] else "the elements differ"

    def places(self, args, a, b):
        """Of several that are as far away COUNT leaves open which ones it gives."""
        upper = [arg.upper() for arg in args]
        if b"COUNT" not in upper or b"ANY" in upper:
            return self.exact(a, b)
        (_, ones), (_, others) = elements(a), elements(b)
        if ones is None or others is None or len(ones) != len(others):
            return self.exact(a, b)
        if b"WITHDIST" not in upper:
            return None
        same = all(decode(x)[1] == decode(y)[1] for x, y in zip(ones, others))
        return None if same else "the distances differ"

    def scan(self, a, b):
        """One call, of which nothing but the form is promised. Whole iterations are compared by
        the procedure for SCAN."""
        for raw in (a, b):
            _, parts = elements(raw)
            if parts is None or len(parts) != 2 or parts[0][:1] != b"$" or parts[1][:1] != b"*":
                return "no cursor and elements"
        return None

    def hello(self, a, b):
        maps = []
        for raw in (a, b):
            values = decode(raw)
            pairs = values if raw[:1] == b"%" else list(zip(values[::2], values[1::2]))
            maps.append({k: None if k in HELLO_OWN else v for k, v in pairs})
        return None if maps[0] == maps[1] else "the fields or the protocol differ"


def quoted(arg):
    """As redis-cli reads it."""
    if arg and all(33 <= c < 127 and c not in b"\"'\\#" for c in arg):
        return arg.decode()
    text = "".join({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r"}.get(
        chr(c), chr(c) if 32 <= c < 127 else f"\\x{c:02x}") for c in arg)
    return f'"{text}"'


def line(args):
    return " ".join(quoted(arg) for arg in args)


def shown(raw, most=600):
    """A reply for people: the bytes themselves, cut in the middle if they are many."""
    text = repr(bytes(raw))[1:]
    return text if len(text) <= most else f"{text[:most // 2]} ... {text[-most // 2:]} " \
        f"({len(raw)} bytes)"
