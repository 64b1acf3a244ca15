"""Exercises of the chapter *Rings between processes*."""

import struct

from ..question import Note, Question, Task, by_cases
from ..ranks import Ranks


def messages(pieces):
    """Of the stream that the pieces make, eight bytes, and as many as they say."""
    data, found = b"".join(pieces), []
    while len(data) >= 8:
        end = 8 + int.from_bytes(data[:8], "big")
        if len(data) < end:
            break
        found.append(data[8:end])
        data = data[end:]
    return found


def _judge_messages(function):
    for sent, cut, rest in (([], 9, b""), ([b"ab"], 99, b""), ([b"ab", b"c"], 10, b""),
                            ([b"ab", b"c"], 1, b""), ([b"ab", b""], 7, b""),
                            ([b"", b"x" * 300], 7, b""), ([b"abc"], 5, b"half")):
        stream = b"".join(struct.pack("!Q", len(text)) + text for text in sent)
        stream += struct.pack("!Q", 5) + rest if rest else b""
        pieces = [stream[i : i + cut] for i in range(0, len(stream), cut)]
        found = [*map(bytes, function(list(pieces)))]
        if found != sent:
            tail = f", and of the beginning of another one ({rest})" if rest else ""
            yield (f"Of {_short(sent)} in pieces of {cut} bytes{tail}, it makes "
                   f"{_short(found)}.")


def _short(found):
    return text if len(text := repr(found)) < 90 else f"{len(found)} messages"


def barrier(rank, n, give, take):
    """After a round, one knows of one rank more that it is there."""
    for _ in range(n - 1):
        give(b"here")
        take()


def _judge_barrier(function, n, late):
    ranks, log = Ranks(n, late=late), []

    def work(rank, give, take):
        log.append("comes")
        function(rank, n, lambda data: give((rank + 1) % n, data),
                 lambda: take((rank - 1) % n))
        log.append(rank)

    problem = _ends(ranks, ranks.run(work))
    last = len(log) - 1 - log[::-1].index("comes")
    early = [rank for rank in log[:last] if rank != "comes"]
    counts = [len(given) for given in ranks.given.values()]
    if early:
        return f"{early} go before it is there; sent: {counts}. {problem}".rstrip()
    if problem:
        return problem
    if n == 4 and max(counts) > 3:
        return f"they send {counts} times; {n - 1} each will do."
    return Note(f"{n} ranks: each sends at most {max(counts)} times ({n - 1} are "
                "enough).")


def _ends(ranks, ends):
    for rank, end in ends.items():
        if isinstance(end, MemoryError):
            raise end
        if isinstance(end, BaseException):
            return f"rank {rank} raises {type(end).__name__}: {end}."
    return f"ranks {ranks.stuck} wait for ever." if ranks.stuck else ""


def sum_of_living(rank, n, number, give, take):
    """A ring of those who live: each number goes on until it is home."""

    def first(ranks, act, *data):
        for other in ranks:
            try:
                return act(other, *data)
            except ConnectionError:
                pass

    ahead = [(rank + i) % n for i in range(1, n + 1)]  # oneself the last
    behind = [(rank - i) % n for i in range(1, n + 1)]
    total, came = number, (rank, number)
    while True:
        first(ahead, give, came)
        came = first(behind, take)
        if came[0] == rank:
            return total
        total += came[1]


def _judge_living(function, numbers, dead):
    n = len(numbers)
    ranks = Ranks(n, dead)
    ends = ranks.run(
        lambda rank, give, take: function(rank, n, numbers[rank], give, take)
    )
    if problem := _ends(ranks, ends):
        return problem
    right, most = sum(numbers[rank] for rank in ranks.living), len(ranks.living)
    for rank in ranks.living:
        if ends[rank] != right:
            return f"rank {rank} returns {ends[rank]}, and not {right}."
    for rank, given in ranks.given.items():
        if len({*given}) > 1:
            return f"rank {rank} gives to {sorted({*given})}: no ring."
        if len(given) > most:
            return f"rank {rank} gives {len(given)} times, not {most}."
    busiest = max(map(len, ranks.given.values()))
    return Note(f"{most} of {n} alive: each gives at most {busiest} times "
                f"({most} are enough).")


QUESTIONS = {
    1: Question(
        "megabytes",
        32,
        [
            (16, "That is one half, adding. The sums must go around, too."),
            (40, "That is the whole array, twice. One's own chunk stays."),
            (160, "That is what all five send together."),
            (20, "What is added must come back to everybody."),
        ],
    ),
    2: Task(
        "a function that returns a list of messages",
        messages,
        [
            (lambda pieces: pieces, "A piece is no message: they are cut anywhere."),
            (lambda pieces: [text for piece in pieces for text in messages([piece])],
             "A message may begin in one piece and end in another: join them first."),
            ('"big"', '"little"', "`!Q` puts the highest byte of a length first."),
            ("if len(data) < end:", "if False:",
             "The last message is not complete: it is to be left out."),
            ("data[8:end]", "data[:end]", "The length is no part of the message."),
            ('8 + int.from_bytes(data[:8], "big")',
             'int.from_bytes(data[:8], "big") or 8',
             "The eight bytes of the length come on top of it."),
            ("found.append(data[8:end])", "found += filter(None, [data[8:end]])",
             "A message of no bytes is a message, too."),
            ("len(data) >= 8", "len(data) > 8",
             "Eight bytes that are left may be a whole message, an empty one."),
            ("len(data) < end", "len(data) <= end",
             "A message with nothing behind it is complete, too."),
            ("data = data[end:]", "break", "After the first message there are others."),
        ],
        judge=_judge_messages,
    ),
    3: Task(
        "a function of rank, n, give and take",
        barrier,
        [
            ("n - 1", "0", "Nobody waits for anybody."),
            ("n - 1", "min(n - 1, 1)",
             "After one round, a rank knows of its neighbour, and of nobody else."),
            ("n - 1", "n - 2", "One round more: then it knows of all."),
            ("n - 1", "n if n > 1 else 0",
             "After n - 1 rounds it knows of all already."),
            ('give(b"here")\n        take()', 'take()\n        give(b"here")',
             "All wait for somebody who gives: who begins?"),
            ('give(b"here")\n        take()',
             'give(b"here")\n    for _ in range(n - 1):\n        take()',
             "A message says more only if it is given after one that was taken."),
            ('for _ in range(n - 1):\n        give(b"here")\n        take()',
             ('acts = [lambda: give(b"here"), take]\n'
              "    for act in acts[:: -1 if rank else 1] * (n > 1):\n        act()"),
             ("A word that goes around once tells rank 0 that all are there. For the "
              "others it goes around again.")),
        ],
        judge=by_cases(_judge_barrier, "With {} ranks, of which {} is late", [
            (1, 0), (2, 0), (2, 1), (4, 0), (4, 1), (4, 2), (4, 3),
        ]),
    ),
    5: Task(
        "a function of rank, n, number, give and take",
        sum_of_living,
        [
            ("ConnectionError", "KeyError",
             "Who is dead is passed over: ask who comes next."),
            ("came = first(behind, take)", "came = take(behind[0])",
             "The one before may be dead as well as the next."),
            ("in ranks:", "in ranks[:2]:",
             "Neighbours may be dead, one beside the other."),
            ("if came[0] == rank:\n", "n -= 1\n        if not n:\n",
             ("With some dead, n rounds are too many: the own number comes home, and "
              "is added again.")),
            ("came[0] == rank", "came[1] == number",
             "Two may have the same number: send whose it is with it."),
            ("first(ahead, give, came)", "first(ahead, give, (rank, number))",
             "Pass on what has come, and not the own number again."),
            ("first(ahead, give, came)", "first(ahead, give, (came[0], total))",
             "A sum that is passed on has numbers in it that come alone as well."),
            ("total, came = number, ", "total, came = 0, ",
             "The own number is missing."),
            ("first(ahead, give, came)\n        came = first(behind, take)",
             "came, last = first(behind, take), came\n        first(ahead, give, last)",
             "All wait for a number, and nobody has given one: give first."),
            ("first(ahead, give, came)\n",
             "for other in ahead:\n            first([other], give, came)\n",
             "Everything to everybody is no ring: give to the next who lives."),
        ],
        judge=by_cases(_judge_living, "Numbers {}, dead {}", [
            (numbers, dead) for n, dead in (
                (1, []), (3, []), (2, [0]), (3, [1]), (4, [1, 2]), (5, [0, 4]),
                (6, [1, 3])
            ) for numbers in ([10**rank for rank in range(n)], [1] * n)
        ]),
    ),
}
