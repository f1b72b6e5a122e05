"""Runs steps on two servers and compares what they say and, at times, all that they hold."""
import random

from compare import Comparer
from procedures import PROCEDURES, Difference, content_command, inside_multi
from generator import Step
from resp_client import Closed, Connection, ProtocolError, decode, elements, encode

DATABASES = (0, 1, 2, 15)  # all that the generator uses
CHECKER = -1               # the client that compares states


def form_of(raw):
    """What coverage counts: an error by its first words, else null, empty or the type."""
    if raw[:1] == b"-":
        return "-WRONGTYPE" if raw[:6] == b"-WRONG" else "-"
    if raw in (b"+QUEUED\r\n", b"$-1\r\n", b"_\r\n", b"*-1\r\n"):
        return "queued" if raw[:1] == b"+" else "null"
    if raw[1:4] == b"0\r\n":
        return "empty"
    return chr(raw[0])


class Side:
    """The connections to one server, by client."""

    def __init__(self, address, timeout_s):
        self.address, self.timeout_s, self.connections = address, timeout_s, {}

    def connection(self, client):
        found = self.connections.get(client)
        if found is None:
            found = self.connections[client] = Connection(self.address, self.timeout_s)
        return found

    def call(self, client, args):
        return self.connection(client).call(*args)

    def drop(self, client):
        self.connections.pop(client).close()

    def drop_all(self):
        for client in list(self.connections):
            self.drop(client)


class Pair:
    """A reference and a subject, which get the same commands."""

    def __init__(self, reference, subject, comparer=None, timeout_s=20):
        self.reference, self.subject = Side(reference, timeout_s), Side(subject, timeout_s)
        self.comparer = comparer or Comparer()
        self.queues = {}  # by client: the arguments of what waits for EXEC
        self.commands = self.checks = 0
        self.fragments = random.Random(1)
        self.coverage = None  # or a Counter of (command, form of its reply)

    def close(self):
        self.reference.drop_all()
        self.subject.drop_all()

    def begin(self):
        """Empty databases, new connections."""
        self.close()
        self.queues.clear()
        a, b = self.both(CHECKER, [b"FLUSHALL"])
        if not a == b == b"+OK\r\n":
            raise Difference([b"FLUSHALL"], a, b, "FLUSHALL")

    def both(self, client, args):
        data, sides = encode(args), (self.reference, self.subject)
        for side in sides:
            side.connection(client).send(data)
        self.commands += 1
        replies = [side.connection(client).replies(1)[0] for side in sides]
        if self.coverage is not None:
            self.coverage[args[0].upper(), form_of(replies[0])] += 1
        return replies

    def same(self, args, a, b):
        reason = self.comparer.compare(args, a, b)
        if reason:
            raise Difference(args, a, b, reason)

    def run(self, steps, check_every=500):
        """None, or the Difference that was found, with the index of its step."""
        index = 0
        try:
            self.begin()
            next_check, count = check_every, len(steps)
            while index < count:
                end = index + 1
                number = steps[index].round
                while end < count and steps[end].round == number:
                    end += 1
                self.round(steps, index, end)
                index = end
                if index >= next_check:
                    self.check_state()
                    next_check = index + check_every
            self.check_state()
        except Difference as difference:
            if difference.index is None:
                difference.index = index
            return difference
        except (Closed, ProtocolError, OSError, ValueError, TypeError, IndexError) as error:
            # also a reply of a form that its procedure cannot read, or a server that is gone
            at = steps[min(index, len(steps) - 1)].args if steps else [b"FLUSHALL"]
            return Difference(at, b"", b"", f"{type(error).__name__}: {error}", index)
        return None

    def round(self, steps, begin, end):
        first = steps[begin]
        if end == begin + 1 and first.alone:
            if self.queues.get(first.client) is None:
                self.commands += 1
                PROCEDURES[first.name](self, first)
                return
            args = inside_multi(first.args)
            if args is None:
                return
            steps = {begin: Step(first.client, first.round, args)}
        by_client = {}
        for index in range(begin, end):
            by_client.setdefault(steps[index].client, []).append((index, steps[index]))
        for client, mine in by_client.items():
            data = b"".join([step.wire() for _, step in mine])
            cut = self.fragments.randrange(len(data)) if self.fragments.random() < 0.03 else 0
            for side in (self.reference, self.subject):
                connection = side.connection(client)
                if cut:
                    connection.send(data[:cut])
                connection.send(data[cut:])
        for client, mine in by_client.items():
            self.receive(client, mine)

    def receive(self, client, mine):
        replies, closed = [], []
        for side in (self.reference, self.subject):
            try:
                replies.append(side.connection(client).replies(len(mine)))
            except Closed as error:
                replies.append(error.replies)
                closed.append(side)
            except (ProtocolError, OSError) as error:
                name = "reference" if side is self.reference else "subject"
                raise Difference(mine[0][1].args, b"", b"", f"{name}: {error}",
                                 mine[0][0]) from None
        for (index, step), a, b in zip(mine, *replies):
            self.reply(client, index, step, a, b)
        self.commands += len(mine)
        if closed:
            index, step = mine[min(map(len, replies), default=0) - len(mine)]
            if len(closed) == 1:
                raise Difference(step.args, b"", b"", "one side closed the connection", index)
            self.queues.pop(client, None)
            self.reference.drop(client)
            self.subject.drop(client)

    def reply(self, client, index, step, a, b):
        queue = self.queues.get(client)
        if self.coverage is not None:
            self.coverage[step.name, form_of(a)] += 1
        if queue is not None and a == b"+QUEUED\r\n":
            queue.append(step.args)
        if a != b:
            if queue is not None and step.name == b"EXEC" and a[:1] == b"*" == b[:1]:
                self.transaction(index, step, queue, a, b)
            else:
                reason = self.comparer.compare(step.args, a, b)
                if reason:
                    raise Difference(step.args, a, b, reason, index)
        if step.txn:
            if step.name == b"MULTI":
                if a[:1] == b"+":
                    self.queues[client] = []
            elif a[:10] != b"-ERR wrong":
                self.queues.pop(client, None)

    def transaction(self, index, step, queue, a, b):
        (_, ones), (_, others) = elements(a), elements(b)
        if ones is None or others is None or len(ones) != len(others):
            raise Difference(step.args, a, b, "one was aborted or is shorter", index)
        for args, one, other in zip(queue, ones, others):
            reason = self.comparer.compare(args, one, other)
            if reason:
                raise Difference(args, one, other, f"{reason}, inside EXEC", index)

    # --- the whole state ---

    def ask(self, requests):
        data = b"".join(map(encode, requests))
        sides = [side.connection(CHECKER) for side in (self.reference, self.subject)]
        for connection in sides:
            connection.send(data)
        return [connection.replies(len(requests)) for connection in sides]

    def check_state(self):
        """Keys, types, times and contents of all databases."""
        self.checks += 1
        requests = []
        for number in DATABASES:
            requests += [[b"SELECT", b"%d" % number], [b"KEYS", b"*"], [b"DBSIZE"]]
        ones, others = self.ask(requests)
        keys = {}
        for i, number in enumerate(DATABASES):
            for at in (3 * i, 3 * i + 1, 3 * i + 2):
                self.same_state(number, requests[at], ones[at], others[at])
            keys[number] = decode(ones[3 * i + 1])
        for number, names in keys.items():
            if names:
                self.check_keys(number, names)

    def check_keys(self, number, names):
        requests = [[b"SELECT", b"%d" % number]]
        for name in names:
            requests += [[b"TYPE", name], [b"PEXPIRETIME", name]]
        ones, others = self.ask(requests)
        contents = []
        for args, one, other in zip(requests, ones, others):
            self.same_state(number, args, one, other)
            if args[0] == b"TYPE" and (command := content_command(one[1:-2], args[1])):
                contents.append(command)
        if contents:
            for args, one, other in zip(contents, *self.ask(contents)):
                self.same_state(number, args, one, other)

    def same_state(self, number, args, one, other):
        reason = self.comparer.compare(args, one, other)
        if reason:
            raise Difference(args, one, other, f"state of database {number}: {reason}")
