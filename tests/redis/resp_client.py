"""A RESP2 and RESP3 client that keeps the exact bytes of every reply.

Replies are framed, not decoded: two replies are compared as bytes first, and only what differs is
taken apart. decode() gives Python values, elements() the raw bytes of each element.
"""
import socket

SIMPLE = frozenset(b"+-:,#_(")  # ends with its line
SIZED = frozenset(b"$!=")       # a length, then so many bytes
LISTS = frozenset(b"*~>")
PUSH = ord(">")


class ProtocolError(Exception):
    """The server sent what is no RESP, or bytes that nobody asked for."""


class Closed(Exception):
    """The server closed the connection; .replies has what came before that."""

    def __init__(self, replies=()):
        super().__init__("connection closed")
        self.replies = list(replies)


def frame(buf, pos):
    """The end of the reply that begins at pos, or -1 if it is not complete."""
    need = 1
    while need:
        line_end = buf.find(b"\r\n", pos)
        if line_end < 0:
            return -1
        kind = buf[pos]
        if kind in SIMPLE:
            pos = line_end + 2
            need -= 1
            continue
        try:
            count = int(buf[pos + 1:line_end])
        except ValueError:
            raise ProtocolError(f"no RESP: {bytes(buf[pos:pos + 60])!r}") from None
        pos = line_end + 2
        if kind in SIZED:
            need -= 1
            if count >= 0:
                pos += count + 2
                if pos > len(buf):
                    return -1
                if buf[pos - 2:pos] != b"\r\n":
                    raise ProtocolError(f"a string of {count} bytes has no CRLF at its end")
        elif kind in LISTS:
            need += max(count, 0) - 1
        elif kind == 0x25:  # % map
            need += 2 * count - 1
        elif kind == 0x7c:  # | attribute: the value that it belongs to follows
            need += 2 * count
        else:
            raise ProtocolError(f"no RESP: {bytes(buf[line_end - 20:line_end + 2])!r}")
    return pos


def skip_attributes(raw, pos=0):
    while raw[pos:pos + 1] == b"|":
        line_end = raw.index(b"\r\n", pos)
        count = int(raw[pos + 1:line_end])
        pos = line_end + 2
        for _ in range(2 * count):
            pos = frame(raw, pos)
    return pos


def elements(raw):
    """(type byte, raw bytes of each element); a map has keys and values in turn.

    For what is no aggregate, and for null arrays, the list is None."""
    start = skip_attributes(raw)
    kind = raw[start:start + 1]
    if kind not in (b"*", b"~", b">", b"%"):
        return kind, None
    line_end = raw.index(b"\r\n", start)
    count = int(raw[start + 1:line_end])
    if count < 0:
        return kind, None
    pos, out = line_end + 2, []
    for _ in range(count * 2 if kind == b"%" else count):
        end = frame(raw, pos)
        out.append(raw[pos:end])
        pos = end
    return kind, out


class Error(str):
    """An error reply."""


class Verbatim(bytes):
    """A verbatim string, with its three letters of format and the colon."""


def decode(raw):
    """The reply as a Python value. Maps give lists of pairs: their keys may be unhashable."""
    start = skip_attributes(raw)
    kind = raw[start:start + 1]
    line_end = raw.index(b"\r\n", start)
    line = raw[start + 1:line_end]
    if kind == b"+":
        return line.decode("latin-1")
    if kind == b"-":
        return Error(line.decode("latin-1"))
    if kind in b":(":
        return int(line)
    if kind == b",":
        return float(line)
    if kind == b"#":
        return line == b"t"
    if kind == b"_" or line == b"-1":
        return None
    if kind in b"$=!":
        body = raw[line_end + 2:line_end + 2 + int(line)]
        if kind == b"!":
            return Error(body.decode("latin-1"))
        return Verbatim(body) if kind == b"=" else body
    values = [decode(e) for e in elements(raw)[1]]
    if kind == b"%":
        return list(zip(values[::2], values[1::2]))
    return values


def encode(args):
    return b"*%d\r\n%s" % (len(args), b"".join([b"$%d\r\n%s\r\n" % (len(a), a) for a in args]))


def encode_inline(args):
    return b" ".join(b'"' + b"".join(b"\\x%02x" % c for c in a) + b'"' if a == b"" or any(
        c <= 32 or c >= 127 or c in b"\"'\\" for c in a) else a for a in args) + b"\r\n"


class Address:
    """HOST:PORT or unix:/path, with an optional user:password@ before it."""

    def __init__(self, text):
        self.text = text
        auth, _, place = text.rpartition("@")
        self.auth = [part.encode() for part in auth.split(":", 1) if part] if auth else []
        self.path = place[5:] if place.startswith("unix:") else None
        if self.path is None:
            host, _, port = place.rpartition(":")
            self.host, self.port = host or "127.0.0.1", int(port)

    def connect(self, timeout_s):
        if self.path is None:
            sock = socket.create_connection((self.host, self.port), timeout=timeout_s)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(timeout_s)
        sock.connect(self.path)
        return sock


class Connection:
    """One connection; replies() gives raw replies in order, pushes are set aside in .pushes."""

    def __init__(self, address, timeout_s=20):
        self.sock = address.connect(timeout_s)
        self.buf = b""
        self.pushes = []
        if address.auth:
            reply = self.call(b"AUTH", *address.auth)
            if reply != b"+OK\r\n":
                raise ProtocolError(f"AUTH at {address.text}: {reply!r}")

    def close(self):
        self.sock.close()

    def send(self, data):
        if self.buf:
            raise ProtocolError(f"bytes that nobody asked for: {self.buf[:200]!r}")
        self.sock.sendall(data)

    def replies(self, count):
        out, buf, pos = [], self.buf, 0
        while len(out) < count:
            end = frame(buf, pos) if pos < len(buf) else -1
            if end < 0:
                try:
                    data = self.sock.recv(1 << 18)
                except ConnectionResetError:
                    data = b""
                if not data:
                    self.buf = buf[pos:]
                    raise Closed(out)
                buf = buf[pos:] + data
                pos = 0
            else:
                (self.pushes if buf[pos] == PUSH else out).append(buf[pos:end])
                pos = end
        self.buf = buf[pos:]
        return out

    def call(self, *args):
        self.send(encode(args))
        return self.replies(1)[0]

    def read_to_end(self):
        out = self.buf
        try:
            while data := self.sock.recv(1 << 16):
                out += data
        except ConnectionResetError:
            pass
        return out
