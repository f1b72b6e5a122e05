"""Proves that the oracle can fail: a proxy in front of redis-server spoils requests or replies."""
import contextlib
import io
import re
import socket
import threading
import time

from oracle import Oracle, parse_arguments, print_steps, read_steps
from resp_client import Address, Connection, Error, Verbatim, decode, elements, encode, frame
from runner import Pair
from servers import RedisServer


class Proxy:
    """Passes requests to a server; a rule may change them, and the replies."""

    def __init__(self, upstream, rule):
        self.upstream, self.rule = upstream, rule
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = Address(f"127.0.0.1:{self.listener.getsockname()[1]}")
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client = self.listener.accept()[0]
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def close(self):
        self.listener.close()

    def serve(self, client):
        server, buf = Connection(self.upstream), b""
        with contextlib.suppress(OSError), client:
            while data := client.recv(1 << 18):
                requests, buf = split_requests(buf + data)
                if not requests:
                    continue
                sent = [self.rule.request(list(args)) for args in requests]
                server.send(b"".join(map(encode, sent)))
                replies = server.replies(len(sent))
                client.sendall(b"".join(self.rule.reply(args, raw)
                                        for args, raw in zip(requests, replies)))
        server.close()


def split_requests(buf):
    requests, pos = [], 0
    while pos < len(buf):
        if buf[pos:pos + 1] == b"*":
            end = frame(buf, pos)
            if end < 0:
                break
            requests.append(decode(buf[pos:end]))
        else:  # inline
            end = buf.find(b"\n", pos) + 1
            if end == 0:
                break
            requests.append(read_steps(buf[pos:end].decode("latin-1"))[0].args)
        pos = end
    return requests, buf[pos:]


class Rule:
    """What is spoiled. most: how many commands the smallest case may have."""

    def __init__(self, what, request=None, reply=None, most=3, commands=100000):
        self.what, self.most, self.commands = what, most, commands
        self.change_request, self.change_reply = request, reply

    def request(self, args):
        return self.change_request(args[0].upper(), args) if self.change_request else args

    def reply(self, args, raw):
        return self.change_reply(args[0].upper(), args, raw) if self.change_reply else raw


def on(*names):
    """Limits a change of replies to some commands."""
    names = [name.encode() for name in names]
    return lambda change: lambda name, args, raw: change(raw) if name in names else raw


def reordered(raw):
    kind, parts = elements(raw)
    if not parts:
        return raw
    return raw[:raw.index(b"\r\n") + 2] + b"".join(parts[::-1])


def without_last(raw, step=1):
    kind, parts = elements(raw)
    if not parts or len(parts) < step:
        return raw
    return kind + b"%d\r\n" % (len(parts) - step) + b"".join(parts[:-step])


def scan_without_last(raw):
    _, parts = elements(raw)
    return b"*2\r\n" + parts[0] + without_last(parts[1], 2) if parts else raw


def plus_one(raw):
    return b":%d\r\n" % (int(raw[1:-2]) + 1) if raw[:1] == b":" and raw > b":1\r\n" else raw


def as_string(raw):
    return b"$%d\r\n%s\r\n" % (len(raw) - 3, raw[1:-2]) if raw[:1] == b"," else raw


def other_string(raw):
    return b"$7\r\nnothere\r\n" if raw[:1] == b"$" and raw[:2] != b"$-" else raw


def flip_byte(raw):
    return raw[:-5] + bytes([raw[-5] ^ 1]) + raw[-4:] if raw[:1] == b"$" and len(raw) > 20 else raw


def lose_a_byte(name, args):
    if name == b"SET" and len(args) == 3 and len(args[2]) > 1:
        args[2] = args[2][:-1]
    return args


def live_longer(name, args):
    if name == b"PEXPIRE" and len(args) == 3 and len(args[2]) == 1 and args[2] > b"0":
        args[2] = b"5000"
    return args


def no_watch(name, args):
    return [b"PING"] if name == b"WATCH" and len(args) > 1 else args


RULES = [
    Rule("one letter of an error", reply=on("HGET", "LPUSH")(
        lambda raw: raw.replace(b"Operation against", b"operation against"))),
    Rule("a number off by one", reply=on("HLEN")(plus_one)),
    Rule("the order of a list", reply=on("LRANGE")(reordered)),
    Rule("a RESP3 double as a string", reply=on("ZSCORE")(as_string)),
    Rule("a write that loses a byte", request=lose_a_byte),
    Rule("a member is missing", reply=on("SMEMBERS")(without_last)),
    Rule("a pair is missing", reply=on("HGETALL")(lambda raw: without_last(raw, 2)
                                                  if raw[:1] == b"*" else raw)),
    Rule("SRANDMEMBER gives no member", reply=on("SRANDMEMBER")(other_string)),
    Rule("SPOP gives no member", reply=on("SPOP")(other_string)),
    Rule("RANDOMKEY gives no key", reply=on("RANDOMKEY")(other_string)),
    Rule("HSCAN loses a pair", reply=on("HSCAN")(scan_without_last)),
    Rule("a TTL is 5 seconds off", reply=on("TTL")(
        lambda raw: b":%d\r\n" % (int(raw[1:-2]) + 5) if re.match(rb":\d{4}", raw) else raw)),
    Rule("an expired key lives on", request=live_longer),
    Rule("DUMP makes a payload with a wrong checksum", reply=on("DUMP")(flip_byte)),
    Rule("one reply too many", reply=on("GETDEL")(lambda raw: raw + b"+OK\r\n")),
    Rule("WATCH does nothing", request=no_watch, most=5,
         reply=on("WATCH")(lambda raw: b"+OK\r\n" if raw == b"+PONG\r\n" else raw)),
    Rule("the order of a set, which is no difference", most=0, commands=10000,
         reply=on("SMEMBERS", "SUNION", "KEYS", "HKEYS")(reordered)),
]


def check_client():
    """The types of RESP, framed and decoded."""
    cases = [
        (b"+OK\r\n", "OK"), (b"-ERR x\r\n", Error("ERR x")), (b":-12\r\n", -12), (b"_\r\n", None),
        (b"$-1\r\n", None), (b"*-1\r\n", None), (b"$0\r\n\r\n", b""),
        (b"$4\r\na\r\nb\r\n", b"a\r\nb"),
        (b",1.5\r\n", 1.5), (b",-inf\r\n", float("-inf")), (b"#t\r\n", True), (b"#f\r\n", False),
        (b"(3492890328409238509324850943850943825024385\r\n",
         3492890328409238509324850943850943825024385), (b"=7\r\ntxt:abc\r\n", Verbatim(b"txt:abc")),
        (b"!5\r\nERR a\r\n", Error("ERR a")), (b"*2\r\n:1\r\n*1\r\n+a\r\n", [1, ["a"]]),
        (b"~1\r\n$1\r\na\r\n", [b"a"]), (b"%1\r\n+k\r\n*0\r\n", [("k", [])]),
        (b"|1\r\n+ttl\r\n:3\r\n:5\r\n", 5),
    ]
    for raw, value in cases:
        assert frame(raw + b"+next\r\n", 0) == len(raw), raw
        assert all(frame(raw[:end], 0) < 0 for end in range(1, len(raw))), raw
        assert decode(raw) == value and type(decode(raw)) is type(value), raw
    left, right = socket.socketpair()
    connection = Connection.__new__(Connection)
    connection.sock, connection.buf, connection.pushes = left, b"", []
    right.sendall(b">2\r\n+invalidate\r\n*0\r\n:1\r\n>1\r\n+x\r\n:2\r\n")
    assert connection.replies(2) == [b":1\r\n", b":2\r\n"] and len(connection.pushes) == 2
    left.close()
    right.close()


OTHER_ENCODINGS = [
    "--hash-max-listpack-entries", "0", "--zset-max-listpack-entries", "0",
    "--set-max-intset-entries", "0", "--list-max-listpack-size", "1"]


def check_encodings(reference, seed):
    """How redis-server stores values is no difference: what depends on it is not compared."""
    with RedisServer(*OTHER_ENCODINGS) as other:
        options = parse_arguments(["--subject", other.text, "--differences", "1", "--commands",
                                   "50000", "--seed", str(seed)])
        pair = Pair(reference, other)
        with contextlib.redirect_stdout(io.StringIO()) as output:
            good = Oracle(pair, options).run()
        pair.close()
    print(f"{'ok  ' if good else 'FAIL'} other encodings, which are no difference")
    if not good:
        print(output.getvalue())
    return good


def run_rule(rule, reference, upstream, seed):
    proxy = Proxy(upstream, rule)
    options = parse_arguments(["--subject", proxy.address.text, "--differences", "1", "--skip",
                               "@PROTO", "--shrink-s", "30", "--commands", str(rule.commands),
                               "--seed", str(seed)])
    pair, start = Pair(reference, proxy.address, timeout_s=5), time.monotonic()
    oracle = Oracle(pair, options)
    with contextlib.redirect_stdout(io.StringIO()) as output:
        oracle.run()
    pair.close()
    proxy.close()
    small = oracle.differences[0] if oracle.differences else []
    good = len(small or []) <= rule.most and bool(small) == bool(rule.most)
    if small:  # what is printed is read back
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            print_steps(small)
        good = good and [s.args for s in read_steps(printed.getvalue())] == [s.args for s in small]
    print(f"{'ok  ' if good else 'FAIL'} {rule.what}: {len(small or [])} commands, "
          f"{time.monotonic() - start:.1f} s", flush=True)
    if not good:
        print(output.getvalue())
    elif small:
        print_steps(small)
    return good


def self_test(seed):
    print(f"seed {seed}")
    check_client()
    with RedisServer() as reference, RedisServer() as upstream:
        results = [run_rule(rule, reference, upstream, seed) for rule in RULES]
        results.append(check_encodings(reference, seed))
    print(f"{sum(results)} of {len(results)} passed")
    return 0 if all(results) else 1
