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
    # what must be refused
    b"", b"abc", b"\0" * 11, STRING[:-1], STRING[:-1] + bytes([STRING[-1] ^ 1]),
    sealed(b"\0" + string(b"abc"), 99),                        # a version of the future
    sealed(b"\x63" + string(b"abc")),                          # no such type
    sealed(b"\1" + length(3) + string(b"1")),                  # ends too early
]
