"""The commands that the oracle generates, one template each.

A template is words: UPPER CASE is sent as it is, lower case names a source of arguments in
arguments.py. [a|b] takes one of its alternatives, ?[a|b] takes one or none, +[a] repeats it one or
more times, *[a] zero or more times. A number before the template is its weight; 4 is usual.
Commands that are random or iterate are checked by a procedure of their own (procedures.py).
"""

STRING = """
8 SET ks v ?[NX|XX] ?[GET] ?[EX ttl|PX ttlms|EXAT at|PXAT atms|KEEPTTL]
3 SET ks v ?[EX ttl|PX ttlms|KEEPTTL] ?[GET] ?[XX|NX] ?[GET|KEEPTTL|NX]
12 SET ks num
8 GET ks
4 GETSET ks v
3 SETNX ks v
3 SETEX ks ttl v
3 PSETEX ks ttlms v
4 GETEX ks ?[EX ttl|PX ttlms|EXAT at|PXAT atms|PERSIST]
3 GETDEL ks
4 APPEND ks v
4 STRLEN ks
4 SETRANGE ks offset v
4 GETRANGE ks idx idx
3 SUBSTR ks idx idx
4 INCR ks
4 DECR ks
5 INCRBY ks num
4 DECRBY ks num
6 INCRBYFLOAT ks fnum
4 MGET +[ks]
4 MSET +[ks v]
3 MSETNX +[ks v]
5 LCS ks ks ?[LEN|IDX] ?[MINMATCHLEN idx] ?[WITHMATCHLEN] ?[IDX]
"""

HASH = """
14 HSET kh +[f v]
4 HSET kh f num
3 HMSET kh +[f v]
3 HSETNX kh f v
5 HGET kh f
4 HMGET kh +[f]
5 HGETALL kh
4 HKEYS kh
4 HVALS kh
4 HLEN kh
4 HSTRLEN kh f
4 HEXISTS kh f
5 HDEL kh +[f]
5 HINCRBY kh f num
5 HINCRBYFLOAT kh f fnum
3 HRANDFIELD kh ?[rcount ?[WITHVALUES]]
3 HSCAN kh cursor ?[MATCH mpat] ?[COUNT scount]
"""

LIST = """
10 LPUSH kl +[v]
10 RPUSH kl +[v]
3 LPUSHX kl +[v]
3 RPUSHX kl +[v]
5 LPOP kl ?[count]
5 RPOP kl ?[count]
5 LRANGE kl idx idx
4 LLEN kl
5 LINDEX kl idx
5 LSET kl idx v
5 LREM kl idx v
5 LINSERT kl [BEFORE|AFTER] v v
2 LTRIM kl idx idx
5 LPOS kl v ?[RANK idx] ?[COUNT count] ?[MAXLEN count]
4 LMOVE kl kl [LEFT|RIGHT] [LEFT|RIGHT]
3 RPOPLPUSH kl kl
4 LMPOP nkl [LEFT|RIGHT] ?[COUNT count]
"""

SET = """
14 SADD kt +[m]
4 SADD kt +[num]
5 SREM kt +[m]
4 SISMEMBER kt m
4 SMISMEMBER kt +[m]
4 SCARD kt
5 SMEMBERS kt
4 SMOVE kt kt m
4 SINTER +[kt]
4 SUNION +[kt]
4 SDIFF +[kt]
3 SINTERSTORE kt +[kt]
3 SUNIONSTORE kt +[kt]
3 SDIFFSTORE kt +[kt]
4 SINTERCARD nkt ?[LIMIT count]
3 SPOP kt ?[pcount]
3 SRANDMEMBER kt ?[rcount]
3 SSCAN kt cursor ?[MATCH mpat] ?[COUNT scount]
"""

ZSET = """
16 ZADD kz +[score m]
6 ZADD kz ?[NX|XX] ?[GT|LT] ?[CH] +[score m]
3 ZADD kz ?[NX|XX|GT|LT] ?[CH] INCR score m ?[score m]
9 ZADD kx +[zero m]
2 ZREM kx +[m]
1 ZADD kz +[zero m]
5 ZINCRBY kz score m
5 ZREM kz +[m]
4 ZSCORE kz m
4 ZMSCORE kz +[m]
4 ZCARD kz
4 ZRANK kz m
4 ZREVRANK kz m
4 ZCOUNT kz min max
1 ZLEXCOUNT kz lmin lmax
5 ZRANGE kz idx idx ?[REV] ?[WITHSCORES]
5 ZRANGE kz min max BYSCORE ?[REV] ?[LIMIT lim idx] ?[WITHSCORES]
1 ZRANGE kz lmin lmax BYLEX ?[REV] ?[LIMIT lim idx] ?[WITHSCORES]
2 ZRANGE kz idx idx ?[BYSCORE|BYLEX] ?[LIMIT lim idx]
2 ZRANGESTORE kz kz idx idx ?[REV]
2 ZRANGESTORE kz kz min max BYSCORE ?[REV] ?[LIMIT lim idx]
1 ZRANGESTORE kz kz lmin lmax BYLEX ?[REV] ?[LIMIT lim idx]
4 ZREVRANGE kz idx idx ?[WITHSCORES]
4 ZRANGEBYSCORE kz min max ?[WITHSCORES] ?[LIMIT lim idx]
4 ZREVRANGEBYSCORE kz max min ?[LIMIT lim idx] ?[WITHSCORES]
1 ZRANGEBYLEX kz lmin lmax ?[LIMIT lim idx]
1 ZREVRANGEBYLEX kz lmax lmin ?[LIMIT lim idx]
3 ZREMRANGEBYRANK kz idx idx
3 ZREMRANGEBYSCORE kz min max
1 ZREMRANGEBYLEX kz lmin lmax
2 ZREMRANGEBYLEX kx lmin lmax
3 ZLEXCOUNT kx lmin lmax
4 ZRANGE kx lmin lmax BYLEX ?[REV] ?[LIMIT lim idx]
1 ZRANGESTORE kx kx lmin lmax BYLEX ?[REV] ?[LIMIT lim idx]
3 ZRANGEBYLEX kx lmin lmax ?[LIMIT lim idx]
3 ZREVRANGEBYLEX kx lmax lmin ?[LIMIT lim idx]
4 ZPOPMIN kz ?[count]
4 ZPOPMAX kz ?[count]
4 ZMPOP nkz [MIN|MAX] ?[COUNT count]
4 ZUNION nkzw ?[AGGREGATE [SUM|MIN|MAX]] ?[WITHSCORES]
4 ZINTER nkzw ?[AGGREGATE [SUM|MIN|MAX]] ?[WITHSCORES]
4 ZDIFF nkzt ?[WITHSCORES]
4 ZUNIONSTORE kz nkzw ?[AGGREGATE [SUM|MIN|MAX]]
4 ZINTERSTORE kz nkzw ?[AGGREGATE [SUM|MIN|MAX]]
3 ZDIFFSTORE kz nkzt
4 ZINTERCARD nkzt ?[LIMIT count]
3 ZRANDMEMBER kz ?[rcount ?[WITHSCORES]]
3 ZSCAN kz cursor ?[MATCH mpat] ?[COUNT scount]
"""

GENERIC = """
3 DEL +[k]
2 UNLINK +[k]
4 EXISTS +[k]
4 TYPE k
3 TOUCH +[k]
3 RENAME k k
3 RENAMENX k k
5 COPY k k ?[DB db] ?[REPLACE]
2 MOVE k db
3 OBJECT [ENCODING|FREQ|IDLETIME|REFCOUNT] k
1 OBJECT [HELP|FOO|ENCODING|FREQ]
4 @RESTORE k k
3 DUMP k
3 RESTORE k rttl payload ?[REPLACE] ?[IDLETIME num|FREQ idx] ?[REPLACE]
1 RESTORE k atms payload ABSTTL ?[REPLACE]
"""

# what looks at all keys of a database: left out where clients work at the same time
KEYSPACE = """
4 KEYS kpat
4 RANDOMKEY
5 DBSIZE
4 SCAN cursor ?[MATCH kpat] ?[COUNT scount] ?[TYPE type]
0.4 FLUSHDB ?[ASYNC|SYNC]
0.1 FLUSHALL ?[ASYNC|SYNC]
0.5 SWAPDB db db
"""

SORT = """
5 SORT kc ?[LIMIT lim idx] ?[ASC|DESC] ?[ALPHA]
5 SORT kc ?[BY bypat] ?[LIMIT lim idx] *[GET getpat] ?[ASC|DESC] ?[ALPHA]
4 SORT kc ?[BY bypat] ?[LIMIT lim idx] *[GET getpat] ?[ASC|DESC] ?[ALPHA] STORE kl
5 SORT_RO kc ?[BY bypat] ?[LIMIT lim idx] *[GET getpat] ?[ASC|DESC] ?[ALPHA]
1 SORT_RO kc STORE kl
"""

EXPIRE = """
5 EXPIRE k ttl ?[NX|XX|GT|LT] ?[XX|GT|LT]
4 PEXPIRE k ttlms ?[NX|XX|GT|LT]
4 EXPIREAT k at ?[NX|XX|GT|LT]
4 PEXPIREAT k atms ?[NX|XX|GT|LT] ?[NX|LT]
4 TTL k
4 PTTL k
4 EXPIRETIME k
4 PEXPIRETIME k
4 PERSIST k
0.3 @WAIT PEXPIRE k short
0.15 @WAIT PEXPIREAT k @NOW
0.15 @WAIT SET ks v PX short
0.15 @WAIT PSETEX ks short v
0.15 @WAIT GETEX ks PX short
0.15 @WAIT SET ks v PXAT @NOW GET
0.15 @WAIT RESTORE k short payload REPLACE
"""

# the rest of what a client does with transactions comes in blocks (generator.py)
TXN = """
1 MULTI
2 EXEC
1 DISCARD
3 WATCH +[k]
2 UNWATCH
"""

CONNECTION = """
3 PING ?[v]
2 ECHO v
2 SELECT db
2 HELLO [2|3]
1 HELLO [1|4|abc|3 FOO|3 SETNAME|2 SETNAME abc]
0.5 RESET
1 unknown *[v]
1 WAIT 0 1
0.3 @PROTO malformed
"""

# what is asked about the server and the connection, as far as it is the same everywhere, and so
# that no change of an argument could end connections or servers, or let them wait
ADMIN = """
2 CLIENT [GETNAME|SETNAME abc|SETNAME v|NO-EVICT ON|NO-EVICT off|NO-EVICT no]
2 CLIENT LIST [TYPE master|TYPE none|ID 999999|ID none|none none]
1 CLIENT KILL 1.2.3.4:5
1 CLIENT UNBLOCK [idx|999999] ?[TIMEOUT|ERROR|none]
1 CLIENT [UNPAUSE|REPLY ON|REPLY none]
2 CONFIG GET [slowlog-log-*|HASH-max-listpack-value|none] ?[maxmemory-policy]
3 CONFIG SET [slowlog-max-len|lfu-decay-time|none] [yes|128|-1|v] ?[HZ 10|hz none|hz]
2 CONFIG SET [lazyfree-lazy-expire|maxmemory-policy|repl-backlog-size] [no|noeviction|none]
1 CONFIG [REWRITE|RESETSTAT|none]
2 COMMAND GETKEYSANDFLAGS [SET ks v ?[GET]|LMOVE kl kl LEFT RIGHT|SORT kc STORE kl|DEL +[k]]
1 COMMAND [INFO none|LIST FILTERBY MODULE none|LIST FILTERBY PATTERN get|LIST none|DOCS none]
1 SLOWLOG [none|GET none|GET -2|GET 1 2]
1 LATENCY [HISTORY none|GRAPH none|RESET none|none]
1 MEMORY [USAGE k SAMPLES ?[none|-1]|USAGE k none|PURGE|none]
0.5 CLIENT ?[HELP|HELP none|none]
0.5 CONFIG ?[HELP|HELP none]
0.5 COMMAND [HELP|HELP none]
0.5 MEMORY ?[HELP|HELP none]
0.5 SLOWLOG ?[HELP|HELP none]
0.5 LATENCY ?[HELP|HELP none]
0.5 ROLE
0.5 READONLY
0.5 READWRITE
0.5 ASKING
0.5 FAILOVER ?[ABORT]
"""

BIT = """
8 SETBIT kb bit [0|1|1|1|2]
5 GETBIT kb bit
5 BITCOUNT kb ?[bidx bidx ?[BYTE|BIT]]
6 BITPOS kb [0|1|2] ?[bidx ?[bidx ?[BYTE|BIT]]]
4 BITOP [AND|OR|XOR] kb +[kb]
2 BITOP [NOT|NOT|AND|none] kb kb
4 BITFIELD kb +[[GET|SET|INCRBY] bftype bfoffset ?[idx]]
6 BITFIELD kb ?[OVERFLOW [WRAP|SAT|FAIL]] *[SET bftype bfoffset num|INCRBY bftype bfoffset num]
3 BITFIELD_RO kb +[GET bftype bfoffset]
2 GET kb
2 STRLEN kb
3 GETRANGE kb bidx bidx
3 SETRANGE kb boffset v
3 APPEND kb v
1 SET kb v ?[KEEPTTL] ?[GET]
1 GETSET kb v
1 GETDEL kb
1 GETEX kb ?[PERSIST]
1 MGET +[kb]
1 INCR kb
1 INCRBYFLOAT kb fnum
1 LCS kb ks
2 COPY kb kb ?[REPLACE]
1 RENAME kb kb
2 EXPIRE kb ttl
1 TYPE kb
2 @RESTORE kb kb
"""

# Ids are given: those of the clock differ. A rough trim takes all or nothing here, for what else it
# takes depends on how redis-server has packed the entries. Idle times are long gone or far off.
STREAM = """
16 XADD ke newid +[f v]
5 XADD ke ?[NOMKSTREAM] ?[MAXLEN ?[=] count|MINID ?[=] eid] newid +[f v]
2 XADD ke [MAXLEN ~ [0|100000]|MINID ~ [0|eternal]] ?[LIMIT [0|100000]] newid f v
1 XADD ke ?[MAXLEN count] ?[MINID ?[=] eid] ?[LIMIT num] newid f v
0.5 @XADD ke ?[NOMKSTREAM] ?[MAXLEN 3] * +[f v]
5 XRANGE ke emin emax ?[COUNT count]
5 XREVRANGE ke emax emin ?[COUNT count]
5 XREAD ?[COUNT count] STREAMS nkread
1 XREAD ?[COUNT count] ?[NOACK|GROUP g c] ?[STREAMS nkread|ke]
3 XLEN ke
5 XDEL ke +[eid]
3 XTRIM ke [MAXLEN ?[=] count|MINID ?[=] eid]
2 XTRIM ke [MAXLEN ~ [0|100000]|MINID ~ [0|eternal]] ?[LIMIT [0|100000]]
1 XTRIM ke ?[MAXLEN ?[=] num] ?[MINID eid] ?[LIMIT num] ?[NOMKSTREAM]
2 XSETID ke [newid|eid] ?[ENTRIESADDED num] ?[MAXDELETEDID eid]
8 XGROUP CREATE ke g [eid|$|0] ?[MKSTREAM] ?[ENTRIESREAD num]
3 XGROUP SETID ke g [eid|$|0] ?[ENTRIESREAD num]
1 XGROUP DESTROY ke g
3 XGROUP CREATECONSUMER ke g c
2 XGROUP DELCONSUMER ke g c
1 XGROUP [HELP|FOO|CREATE ke g|SETID ke g $ MKSTREAM|CREATE ke g $ FOO|DESTROY ke]
12 XREADGROUP GROUP g c ?[COUNT count] ?[NOACK] STREAMS nkgroup
1 XREADGROUP ?[NOACK] ?[COUNT num] ?[GROUP g c] STREAMS nkgroup
6 XACK ke g +[eid]
4 XPENDING ke g
5 XPENDING ke g ?[IDLE idle] emin emax count ?[c]
1 XPENDING ke g ?[IDLE num] ?[emin] ?[emax count] ?[c c]
5 XCLAIM ke g c idle +[eid] ?[IDLE idle|TIME past] ?[RETRYCOUNT num] ?[FORCE] ?[JUSTID]
2 XCLAIM ke g c idle +[eid] ?[JUSTID] ?[FORCE] ?[LASTID eid]
6 XAUTOCLAIM ke g c idle emin ?[COUNT count] ?[JUSTID]
4 XINFO STREAM ke ?[FULL ?[COUNT count]]
4 XINFO GROUPS ke
4 XINFO CONSUMERS ke g
1 XINFO [HELP|FOO|STREAM ke FULL FOO 1|STREAM ke FOO|STREAM ke FULL COUNT|GROUPS|CONSUMERS ke]
"""

HYPERLOGLOG = """
6 PFADD kp *[m]
10 PFADD kp elements
8 PFCOUNT +[kp]
5 PFMERGE kp *[kp]
1 PFDEBUG [ENCODING|DECODE|TODENSE|GETREG|none] kp
4 GET kp
2 STRLEN kp
1 GETBIT kp bit
2 PFADD [ks|kh] *[m]
2 PFCOUNT [ks|kh] ?[kp]
1 PFMERGE [ks|kp] [ks|kh]
0.5 SET kp v
1 DEL kp
1 RENAME kp kp
1 COPY kp kp ?[REPLACE]
1 @RESTORE kp kp
1 EXPIRE kp ttl
"""

GEO = """
16 GEOADD kg ?[NX|XX] ?[CH] +[lon lat m]
4 GEOPOS kg *[m]
4 GEODIST kg m m ?[unit]
4 GEOHASH kg *[m]
8 GEOSEARCH kg @FROM @BY ?[ASC|DESC] ?[COUNT count ?[ANY]] ?[WITHCOORD] ?[WITHDIST] ?[WITHHASH]
4 GEOSEARCH kg @BY @FROM ?[WITHDIST] ?[WITHHASH] ?[COUNT count ?[ANY]] ?[ASC|DESC] ?[WITHCOORD]
4 GEOSEARCHSTORE kg kg @FROM @BY ?[ASC|DESC] ?[COUNT count ANY] ?[STOREDIST]
1 GEOSEARCHSTORE kg kg ?[@FROM] ?[@BY] ?[WITHDIST|STORE] ?[ANY]
4 GEORADIUS kg lon lat length unit ?[WITHDIST] ?[WITHHASH] ?[WITHCOORD] ?[ASC|DESC] ?[COUNT count]
3 GEORADIUS kg lon lat length unit ?[DESC] ?[COUNT count ANY] ?[STORE kg|STOREDIST kg] ?[WITHDIST]
4 GEORADIUS_RO kg lon lat length unit ?[WITHDIST] ?[WITHHASH] ?[ASC] ?[COUNT count] ?[STORE kg]
4 GEORADIUSBYMEMBER kg m length unit ?[WITHDIST] ?[WITHCOORD] ?[ASC|DESC] ?[COUNT count ?[ANY]]
3 GEORADIUSBYMEMBER kg m length unit ?[COUNT count ANY] [STORE kg|STOREDIST kg] ?[STOREDIST kg]
3 GEORADIUSBYMEMBER_RO kg m length unit ?[WITHDIST] ?[WITHHASH] ?[ASC] ?[COUNT count] ?[STORE kg]
2 ZADD kg score m
2 ZREM kg +[m]
2 ZRANGE kg idx idx WITHSCORES
""".replace("@FROM", "[FROMMEMBER m|FROMLONLAT lon lat]").replace(
    "@BY", "[BYRADIUS length unit|BYBOX length length unit]")

# only the commands above, asked about: COMMAND is not part of the core types
GETKEYS = """
4 @GETKEYS
"""

GROUPS = {
    "string": STRING, "hash": HASH, "list": LIST, "set": SET, "zset": ZSET, "generic": GENERIC,
    "keyspace": KEYSPACE, "sort": SORT, "expire": EXPIRE, "txn": TXN, "connection": CONNECTION,
    "admin": ADMIN, "bit": BIT, "hyperloglog": HYPERLOGLOG, "geo": GEO, "stream": STREAM,
    "getkeys": GETKEYS,
}
OFF_BY_DEFAULT = ("getkeys",)
DATA_GROUPS = ("string", "hash", "list", "set", "zset", "bit", "hyperloglog", "geo", "stream")


def names(groups):
    """Every command of these groups."""
    return {line.split()[1] for group in groups for line in GROUPS[group].split("\n") if line}
