"""Where the arguments of random commands come from.

Pools are small, so that commands meet each other's keys and members, and each source mixes in the
edges of what its argument allows. Two things are never generated: times that could run out while
both servers are compared (see @WAIT), and sizes that would need hundreds of megabytes.
"""
from payloads import PAYLOADS

INT_MAX, INT_MIN = b"9223372036854775807", b"-9223372036854775808"
NO_INT = [b"", b"abc", b"1.5", b" 1", b"1 ", b"01", b"+1", b"-0", b"0x10", b"1e3", b"nan",
          b"9223372036854775808", b"-9223372036854775809", b"18446744073709551616", b"\0", b"1\0"]
# replaces any argument: as a time each of these is gone, far off or refused
EDGES = NO_INT + [b"0", b"-1", INT_MAX, INT_MIN, b"inf", b"-inf", b"(1", b"[a", b"*", b"KEEPTTL",
                  b"COUNT", b"GET", b"WITHSCORES", b"\xff\xfe\r\n", b"$5\r\nhello\r\n"]
NUMBERS = [INT_MAX, INT_MIN, b"9223372036854775800", b"-9223372036854775800", b"123456789012",
           b"4611686018427387904", b"2147483648", b"-2147483649", b"4294967296", b"65536"]
FLOATS = [b"0.1", b"1.5", b"-2.25", b"3.0", b"3.0e3", b"1e17", b"1e-10", b"0.30000000000000004",
          b"5", b"-7", b"0", b"-0", b"12345.6789", b"9007199254740993", b"100", b"1e21", b".5",
          b"3.", b"0x1p3"]
ODD_FLOATS = [b"inf", b"-inf", b"+inf", b"infinity", b"nan", b"1e308", b"-1.7976931348623157e308",
              b"1e400", b"5e-324", b"1e-400", b"", b"abc", b" 1", b"1 ", b"1.0abc", b"0x10", b"1e",
              b"--1", b"1,5", b"1\0"]
# 7.0 forgets to clear errno in SORT: after one of these, out of the range of a double, it may fail
OUT_OF_RANGE = [b"1e308", b"-1.7976931348623157e308", b"1e400", b"5e-324", b"1e-400"]
IN_RANGE = [text for text in ODD_FLOATS if text not in OUT_OF_RANGE]
WORDS = [b"a", b"b", b"abc", b"ab", b"", b"hello world", b"\0", b"a\0b", b"\xff\xfe\xfd", b"A",
         b"\r\n", b"f0", b"foo*bar", b"x" * 63, b"y" * 65, b"z" * 200, b"\xc3\xa9", b'"', b"'",
         b"%s%n", b"-1", b"1.5", b"1e3", b"inf", b"nan", b"-0", b"007"]
FAR_S = 4102444800  # the year 2100
UNKNOWN = [b"FOO", b"GETT", b"", b"set ", b"HSE", b"\0", b"x" * 200, b"a\r\nb", b"ZADDD", b"*1"]
TYPES = [b"string", b"hash", b"list", b"set", b"zset", b"stream", b"foo", b"STRING"]
KEY_PATTERNS = [b"*", b"*", b"s*", b"?0", b"[sh]*", b"*[0-1]", b"[^s]*", b"h?", b"", b"nomatch",
                b"\\*", b"s0", b"*0*", b"[a-", b"**", b"[z-a]?", b"*\\", b"w_*", b"\xff*", b"[]*"]
MEMBER_PATTERNS = [b"*", b"1*", b"[0-5]", b"?", b"f*", b"*a*", b"", b"[^1]*", b"a\0*", b"\\a",
                   b"x*y"]
BY_PATTERNS = [b"w_*", b"w_*", b"s*", b"h*->f0", b"h*->f1", b"nosort", b"*", b"h0->f0", b"*->f0",
               b"s*->", b"", b"#"]
GET_PATTERNS = [b"#", b"#", b"w_*", b"s*", b"h*->f0", b"h*->f1", b"*", b"none", b"h*->", b"->f*"]
BIT_TYPES = [b"u8", b"i8", b"u1", b"i5", b"u16", b"i32", b"u63", b"i64", b"u64", b"i65", b"x8",
             b"u0"]
# each is followed by PING and QUIT; none may leave redis-server waiting for more bytes
MALFORMED = [b"*1\r\n#4\r\nPING\r\n", b"*abc\r\n", b"*1\r\n$abc\r\n", b"*1\r\n$-1\r\n", b"*0\r\n",
             b"*-1\r\n", b"*-10\r\n", b"\r\n", b"\n", b"*2147483648\r\n", b"*1048577\r\n",
             b"*99999999999999999999\r\n", b"*1\r\n$99999999999\r\n", b"*1\r\n$-5\r\n",
             b"SET k \"unbalanced\r\n", b"GET 'a'b\r\n", b"GET \"a\"b\r\n", b"   \r\n", b"PING\n",
             b"PING \"\\x41\\n\"\r\n", b"ECHO 'it\\'s'\r\n", b"*1\r\n$\r\n", b"*\r\n", b"foo\r\n",
             b"*1 \r\n$4\r\nPING\r\n", b"* 1\r\n$4\r\nPING\r\n", b"*01\r\n$4\r\nPING\r\n",
             b"*1\r\nPING\r\n", b"*+1\r\n$4\r\nPING\r\n", b"$4\r\nPING\r\n", b"x" * 70000,
             b"*1\r\n$0\r\n\r\n", b"ECHO \"\"\r\n", b"echo a b\r\n", b"*1" + b"0" * 70000]


class Arguments:
    """Draws arguments by the name of their source: draw(name, out) appends to out."""

    def __init__(self, rng):
        self.rng = rng
        self.sources = {name[4:]: getattr(self, name) for name in dir(self) if name[:4] == "arg_"}
        self.begin()

    def pick(self, pool):
        return pool[int(self.rng.random() * len(pool))]

    def begin(self, prefix=b"", with_sort=True):
        """Draws new pools. The prefix keeps the keys of clients apart that work in parallel."""
        rng = self.rng
        self.odd_floats = IN_RANGE if with_sort else ODD_FLOATS
        self.prefix = prefix
        self.scale = rng.choice([1, 1, 1, 3, 40])  # how many elements one command brings
        self.home = {}
        self.last_id = [0, 0]  # of streams
        self.consumer_groups = [b"g1", b"g2", b"g22"] + rng.sample(WORDS, 1)
        self.consumers = [b"c1", b"c2", b"c10"] + rng.sample(WORDS, 1)
        for kind in "shltzebpg":
            self.home[kind] = [prefix + b"%c%d" % (ord(kind), i) for i in range(rng.randint(1, 3))]
        self.even = [prefix + b"x0", prefix + b"x1"]  # all scores are 0, for ranges BYLEX
        numbers = [b"%d" % i for i in range(rng.choice([3, 10, 10, 300]))]
        self.members = rng.sample(WORDS, rng.randint(0, len(WORDS))) + numbers
        rng.shuffle(self.members)
        weights = [prefix + b"w_" + m for m in rng.sample(self.members, 3)]
        odd = [prefix + key for key in (b"", b"\0\xff", b"a b", b"w_*")]
        self.home["s"] += weights
        # HyperLogLogs are left whole: of a broken one Redis changes a part before it says so
        self.keys = sum((self.home[kind] for kind in self.home if kind != "p"), []) + \
            odd[:rng.randint(0, 4)]
        self.fields = [b"f%d" % i for i in range(rng.choice([2, 5, 300]))] + self.members[:4]

    def key(self, kinds):
        if kinds == "p" or self.rng.random() < 0.92:
            return self.pick(self.home[kinds if len(kinds) == 1 else self.pick(kinds)])
        return self.pick(self.keys)

    def arg_k(self):
        return self.pick(self.keys)

    def arg_ks(self):
        return self.key("s")

    def arg_kh(self):
        return self.key("h")

    def arg_kl(self):
        return self.key("l")

    def arg_kt(self):
        return self.key("t")

    def arg_kz(self):
        return self.key("z")

    def arg_kb(self):
        return self.key("bbbs")

    def arg_kp(self):
        return self.key("p")

    def arg_kg(self):
        return self.key("g")

    def arg_kc(self):
        return self.key("ltz")

    def arg_ke(self):
        return self.key("e")

    def arg_kx(self):
        return self.pick(self.even)

    def many(self, kinds):
        count = self.pick([1, 1, 2, 2, 3])
        keys = [self.key(kinds) for _ in range(count)]
        if self.rng.random() < 0.04:
            return [self.pick([b"0", b"-1", b"1", b"2", b"4", b"abc", INT_MAX])] + keys
        return [b"%d" % count] + keys

    def arg_nkl(self):
        return self.many("l")

    def arg_nkt(self):
        return self.many("t")

    def arg_nkz(self):
        return self.many("z")

    def arg_nkzt(self):
        return self.many("zzzt")

    def mostly(self, usual, odd, share=0.06):
        return self.pick(odd) if self.rng.random() < share else usual

    def small(self, low, high):
        return b"%d" % (low + int(self.rng.random() * (high - low + 1)))

    def arg_v(self):
        rng = self.rng
        if rng.random() < 0.85:
            return self.hot(self.members)
        return self.pick([self.arg_num, self.arg_fnum, lambda: self.pick(WORDS),
                          lambda: rng.randbytes(rng.randint(0, 40)),
                          lambda: b"long" * rng.randint(1, 80)])()

    def hot(self, pool):
        """Mostly one of the first few, so that what is asked for is often there."""
        chance = self.rng.random()
        return pool[int(chance * 10) if chance < 0.6 and len(pool) > 6 else
                    int(self.rng.random() * len(pool))]

    def arg_m(self):
        return self.hot(self.members)

    def arg_f(self):
        return self.hot(self.fields)

    def arg_num(self):
        chance = self.rng.random()
        if chance < 0.8:
            return self.small(-10, 10)
        return self.pick(NUMBERS) if chance < 0.94 else self.pick(NO_INT)

    def arg_fnum(self):
        chance = self.rng.random()
        if chance < 0.4:
            return self.small(-10, 10)
        return self.pick(FLOATS) if chance < 0.94 else self.pick(self.odd_floats)

    arg_score = arg_fnum

    def arg_zero(self):
        return b"0"

    def arg_weight(self):
        return self.mostly(self.pick([b"1", b"2", b"0.5", b"-1", b"0", b"10"]), self.odd_floats)

    def arg_idx(self):
        return self.mostly(self.small(-4, 6), NO_INT + [INT_MAX, INT_MIN, b"-100", b"100"])

    def arg_count(self):
        return self.mostly(self.small(0, 5), NO_INT + [INT_MAX, INT_MIN, b"-1", b"100"])

    def arg_lim(self):
        return self.mostly(self.small(0, 2), NO_INT + [INT_MAX, INT_MIN, b"-1", b"-3", b"100"], 0.1)

    arg_pcount = arg_count

    def arg_rcount(self):
        return self.mostly(self.small(-5, 6), NO_INT + [INT_MAX, INT_MIN, b"100", b"-100"])

    def arg_offset(self):
        return self.mostly(self.small(0, 40), NO_INT + [INT_MAX, b"-1", b"536870912", INT_MIN])

    def arg_min(self):
        value = self.pick([b"-inf", b"-inf", b"0", b"-1", b"-5"]) if self.rng.random() < 0.75 else \
            self.arg_score()
        return self.mostly(value, [b"(" + value, b"(" + value, b"[" + value, b"("], 0.25)

    def arg_max(self):
        value = self.pick([b"+inf", b"inf", b"5", b"2", b"9"]) if self.rng.random() < 0.75 else \
            self.arg_score()
        return self.mostly(value, [b"(" + value, b"(" + value, b"[" + value, b"("], 0.25)

    def arg_lmin(self):
        return self.mostly(self.pick([b"-", b"-", b"[" + self.arg_m(), b"(" + self.arg_m()]),
                           [b"+", b"", b"a", b"-a", b"[", b"("], 0.1)

    def arg_lmax(self):
        return self.mostly(self.pick([b"+", b"+", b"[" + self.arg_m(), b"(" + self.arg_m()]),
                           [b"-", b"", b"a", b"+a", b"[", b"("], 0.1)

    def arg_nkzw(self):
        keys = self.many("zzzt")
        if self.rng.random() < 0.4:
            count = len(keys) - 1 + (self.rng.random() < 0.04)
            keys += [b"WEIGHTS"] + [self.arg_weight() for _ in range(count)]
        return keys

    # --- streams ---

    def arg_newid(self):
        """Behind those before it, mostly."""
        chance = self.rng.random()
        if chance > 0.9:
            return self.pick([b"0-*", b"0-0", b"0-1", b"5", b"5-*", b"%d-*" % self.last_id[0],
                              b"-", b"+", b"1-1-1", b"01-2", b" 7-1", b"7--1", b"-7-1", b"7- 1",
                              b"a-1", b"1-a", b"", b"$", b">", b"(5", b"7-1\0x", b"1" * 130])
        step = self.pick([0, 0, 0, 1, 1, 2, 30])
        self.last_id = [self.last_id[0] + step, 0] if step else [self.last_id[0],
                                                                 self.last_id[1] + 1]
        if chance > 0.85:
            return b"%d-*" % self.last_id[0]
        return b"%d" % self.last_id[0] if self.last_id[1] == 0 and chance > 0.7 else \
            b"%d-%d" % tuple(self.last_id)

    def arg_eid(self):
        """One that an entry may have."""
        if self.rng.random() < 0.05:
            return self.pick([b"-", b"+", b"$", b">", b"0", b"0-0", b"(3", b"a", b"1-1-1", b"",
                              b"18446744073709551615-18446744073709551615", b"18446744073709551614",
                              b"18446744073709551615", b"9223372036854775808-1", b"1-\0"])
        ms = max(0, self.last_id[0] - int(self.rng.random() ** 2 * 40))
        return b"%d-%d" % (ms, int(self.rng.random() ** 2 * 5)) if self.rng.random() < 0.8 else \
            b"%d" % ms

    def arg_eternal(self):
        return b"18446744073709551615-18446744073709551615"

    def arg_emin(self):
        chance = self.rng.random()
        return b"-" if chance < 0.4 else b"(" + self.arg_eid() if chance < 0.5 else self.arg_eid()

    def arg_emax(self):
        chance = self.rng.random()
        return b"+" if chance < 0.4 else b"(" + self.arg_eid() if chance < 0.5 else self.arg_eid()

    def arg_g(self):
        return self.hot(self.consumer_groups)

    def arg_c(self):
        return self.hot(self.consumers)

    def arg_idle(self):
        return self.mostly(self.pick([b"0", b"0", b"0", b"100000000", b"200000000"]),
                           [b"-1", b"abc", b"", INT_MAX, b"-100000000"])

    def arg_past(self):
        return self.mostly(self.pick([b"0", b"1000", b"1000000"]),
                           [b"-1", b"abc", INT_MAX, INT_MIN, b"9999999999999"])

    def streams(self, usual):
        keys = [self.key("e") for _ in range(self.pick([1, 1, 1, 2, 3]))]
        ids = [self.pick(usual)() for _ in keys]
        return keys + ids + ([b"0"] if self.rng.random() < 0.02 else [])

    def arg_nkread(self):
        return self.streams([self.arg_eid, self.arg_eid, lambda: b"0", lambda: b"$",
                             lambda: self.mostly(b"0", [b">", b"-"], 0.3)])

    def arg_nkgroup(self):
        return self.streams([lambda: b">", lambda: b">", lambda: b"0", self.arg_eid,
                             lambda: self.mostly(b">", [b"$", b"-"], 0.1)])

    # --- times: far off, long gone or refused, never soon ---

    def arg_ttl(self):
        return self.mostly(self.small(100000, 1000000),
                           NO_INT + [b"0", b"-1", INT_MAX, INT_MIN, b"9223372036854775"], 0.15)

    def arg_ttlms(self):
        return self.mostly(self.small(100000000, 1000000000),
                           NO_INT + [b"0", b"-1", INT_MAX, INT_MIN], 0.15)

    def arg_at(self):
        return self.mostly(b"%d" % (FAR_S + self.pick([0, 1, 100000])),
                           NO_INT + [b"0", b"1", b"-1", INT_MAX, INT_MIN], 0.15)

    def arg_atms(self):
        return self.mostly(b"%d" % (FAR_S * 1000 + self.pick([0, 1, 100000])),
                           NO_INT + [b"0", b"1", b"-1", INT_MAX, INT_MIN], 0.15)

    def arg_rttl(self):
        return self.mostly(b"0", [self.arg_ttlms(), b"-1", b"abc", INT_MIN], 0.3)

    def arg_short(self):
        return self.small(1, 4)

    # --- the rest ---

    def arg_payload(self):
        return self.pick(PAYLOADS)

    def arg_type(self):
        return self.pick(TYPES)

    def arg_cursor(self):
        return self.mostly(b"0", [b"abc", b"", b"-1", b"5", b" 0", b"0 "])

    def arg_scount(self):
        return self.mostly(self.pick([b"1", b"2", b"10", b"1000"]), NO_INT + [b"0", b"-1", INT_MAX])

    def arg_kpat(self):
        return self.prefix + self.pick(KEY_PATTERNS)

    def arg_mpat(self):
        return self.pick(MEMBER_PATTERNS)

    def arg_bypat(self):
        return self.prefix + self.pick(BY_PATTERNS)

    def arg_getpat(self):
        pattern = self.pick(GET_PATTERNS)
        return pattern if pattern == b"#" else self.prefix + pattern

    def arg_db(self):
        return self.mostly(self.pick([b"0", b"0", b"0", b"0", b"1", b"2"]), [
            b"15", b"16", b"-1", b"abc", b"01", b"", INT_MAX, b"2147483648", b"4294967296"])

    def arg_unknown(self):
        return self.pick(UNKNOWN)

    def arg_malformed(self):
        return self.small(0, len(MALFORMED) - 1)

    # --- bits: of one fragment, of several, and sometimes far behind them ---

    def place(self, fragment):
        chance = self.rng.random()
        if chance < 0.5:
            return int(self.rng.random() * 100)
        if chance < 0.97:
            return int(self.rng.random() * fragment * (2 if chance < 0.75 else 10))
        return int(self.rng.random() * fragment * 400)

    def arg_bit(self):
        return self.mostly(b"%d" % self.place(8192), [b"-1", b"abc", b"4294967296", INT_MAX,
                                                      b"1.5", b"8191", b"8192"])

    def arg_boffset(self):
        return self.mostly(b"%d" % self.place(1024), [b"-1", b"abc", b"536870912", INT_MAX])

    def arg_bidx(self):
        sign = -1 if self.rng.random() < 0.3 else 1
        return self.mostly(b"%d" % (sign * self.place(self.pick([1024, 8192]))),
                           NO_INT + [INT_MAX, INT_MIN, b"-1", b"0"])

    def arg_bftype(self):
        return self.pick(BIT_TYPES)

    def arg_bfoffset(self):
        return self.mostly(self.pick([b"%d" % self.place(8192), b"#" + self.small(0, 5)]),
                           [b"-1", b"#-1", b"abc", b"#", INT_MAX])

    # --- HyperLogLogs and places ---

    def arg_elements(self):
        """Now and then enough for the dense encoding."""
        count = int(1 + self.rng.random() * self.pick([3, 30, 30, 300]))
        return [b"e%d" % int(self.rng.random() * 3000) for _ in range(count)]

    def arg_lon(self):
        usual = b"%.4f" % (13 + self.rng.random() ** 3 * self.pick([1, 10, 167]))
        return self.mostly(usual, self.odd_floats + [b"180", b"-180", b"180.1", b"0", b"-179.9"],
                           0.12)

    def arg_lat(self):
        usual = b"%.4f" % (52 + self.rng.random() ** 3 * self.pick([1, 30, -130]))
        return self.mostly(usual, self.odd_floats + [
            b"85.05112878", b"-85.05112878", b"85.06", b"0", b"-84.9", b"70", b"81"], 0.12)

    def arg_length(self):
        return self.mostly(b"%d" % 10 ** int(self.rng.random() * 8), self.odd_floats + [
            b"0", b"-1", b"0.5", b"20000", b"6000", b"40000000"], 0.15)

    def arg_unit(self):
        return self.mostly(self.pick([b"m", b"km", b"km", b"ft", b"mi", b"KM"]), [b"", b"foo"])
