"""DUMP payloads made by hand: old encodings that redis-server reads but no longer writes."""
import struct

POLYNOMIAL = 0x95ac9329ac4bc9b5  # CRC-64/Jones, reflected, as Redis has it


def crc64(data):
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (POLYNOMIAL if crc & 1 else 0)
    return crc


def length(n):
    return bytes([n]) if n < 64 else bytes([0x40 | n >> 8, n & 255])


def string(text):
    return length(len(text)) + text


def sealed(body, version=10):
    body += struct.pack("<H", version)
    return body + struct.pack("<Q", crc64(body))


def score(text):
    return bytes([len(text)]) + text


def number(n):
    """An entry of a ziplist that is a number."""
    if 0 <= n <= 12:
        return bytes([0xf1 + n])
    for code, width in ((0xfe, 1), (0xc0, 2), (0xf0, 3), (0xd0, 4), (0xe0, 8)):
        if -1 << 8 * width - 1 <= n < 1 << 8 * width - 1:
            return bytes([code]) + n.to_bytes(width, "little", signed=True)
    raise ValueError(n)


def entry(item):
    if isinstance(item, int):
        return number(item)
    if len(item) < 64:
        return bytes([len(item)]) + item
    if len(item) < 1 << 14:
        return struct.pack(">H", 0x4000 | len(item)) + item
    return b"\x80" + struct.pack(">I", len(item)) + item


def ziplist(*items):
    """How Redis packed small collections before 7.0."""
    body, last, before = b"", 10, 0
    for item in items:
        last = 10 + len(body)
        head = bytes([before]) if before < 254 else b"\xfe" + struct.pack("<I", before)
        body += head + entry(item)
        before = 10 + len(body) - last
    return struct.pack("<IIH", 11 + len(body), last, len(items)) + body + b"\xff"


ENTRIES = (b"f0", 12, b"f1", -1, b"f2", 300, b"f3", -8388608, b"f4", 1 << 30, b"f5", -1 << 63,
           b"f6", b"x" * 100, b"f7", b"y" * 300, b"", b"")
# entries 1-1, 5-0 and 7-0, a deleted 1-2, and two groups, one of which has two pending
STREAM_NODES = bytes.fromhex(
    "0110000000000000000100000000000000014054540000001f000301010102018161028162020001"
    "02010001000101018374776f040501030100010101c12c02817802050100010401dfff0201018163"
    "02817902060102010601dfff02f270110104817a020501ff")
STREAM_PENDING = bytes.fromhex(
    "02000000000000000100000000000000017b68e5cf8b010000030000000000000005000000000000"
    "00007c68e5cf8b0100000402036f6e65f2019be4a101000002000000000000000100000000000000"
    "01000000000000000500000000000000000374776ff2019be4a101000000")


def stream(kind, head, entries_read):
    return bytes([kind]) + STREAM_NODES + head + b"\2\1g\5\0" + entries_read + STREAM_PENDING \
        + b"\1h\7\0" + entries_read + b"\0\0"


PAIRS = (b"b", b"-1.5", b"a", 1, 7, 100000, b"c", b"inf")
ZIPLIST = ziplist(*ENTRIES)
STRING = sealed(b"\0" + string(b"abc"))
PAYLOADS = [
    STRING,
    sealed(b"\0" + string(b"")),
    sealed(b"\0" + string(b"x" * 100), 6),
    sealed(b"\0\xc0\xff"),                                     # an 8 bit integer, -1
    sealed(b"\0\xc1\x39\x30", 9),                              # 16 bits, 12345
    sealed(b"\0\xc2\x15\xcd\x5b\x07"),                         # 32 bits, 123456789
    sealed(b"\0\xc3\x04\x0a\x01aa\xe0\x00\x00"[:-2] + b"\0", 10),  # LZF that does not fit
    sealed(b"\1" + length(3) + string(b"1") + string(b"2") + string(b"1")),         # list
    sealed(b"\2" + length(2) + string(b"a") + b"\xc0\x05", 6),                      # set
    sealed(b"\3" + length(3) + string(b"a") + score(b"1.5") + string(b"b") + b"\xfe"
           + string(b"c") + b"\xff", 6),                       # sorted set, scores as text, inf
    sealed(b"\4" + length(2) + string(b"f0") + string(b"1") + string(b"f1") + b"\xc0\x07"),
    sealed(b"\5" + length(2) + string(b"a") + struct.pack("<d", 0.1) + string(b"1")
           + struct.pack("<d", -2)),                           # sorted set, binary scores
    sealed(b"\x0b" + string(struct.pack("<IIhhh", 2, 3, -5, 1, 300))),              # intset
    sealed(b"\x0a" + string(ZIPLIST), 6),                      # list
    sealed(b"\x0e" + length(2) + string(ZIPLIST) + string(ziplist(b"z")), 9),  # quicklist
    sealed(b"\x0d" + string(ZIPLIST), 9),                      # hash
    sealed(b"\x0c" + string(ziplist(*PAIRS)), 9),              # sorted set
    sealed(stream(15, b"\3\7\0", b""), 9),                     # before 7.0
    sealed(stream(19, b"\3\7\0\1\1\1\2\4", b"\x81" + b"\xff" * 8)),
    sealed(stream(19, b"\3\x09\7\1\1\0\0\x28", b"\2"), 10),
    sealed(b"\x13\0\0\5\5\0\0\0\0\7\0"),                    # an empty stream
    # what must be refused
    sealed(b"\x0d" + string(ziplist(b"a", b"b", b"a", b"c"))),  # a field twice
    sealed(b"\x0d" + string(ziplist(b"a"))),                   # a field without a value
    sealed(b"\x0a" + string(ziplist())),                       # empty
    sealed(b"\x0a" + string(ZIPLIST[:-1])), sealed(b"\x0a" + string(ZIPLIST[:-2] + b"\xff")),
    sealed(b"\x12\1\1\0"),                                     # a quicklist of one empty node
    b"", b"abc", b"\0" * 11, STRING[:-1], STRING[:-1] + bytes([STRING[-1] ^ 1]),
    sealed(b"\0" + string(b"abc"), 99),                        # a version of the future
    sealed(b"\x63" + string(b"abc")),                          # no such type
    sealed(b"\1" + length(3) + string(b"1")),                  # ends too early
]
