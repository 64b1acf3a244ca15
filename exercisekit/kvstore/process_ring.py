"""Exercises of the chapter *Rings between processes*."""

import struct

from ..question import Note, Question, Task, by_cases
from ..ranks import Ranks

_BYTES = bytes, bytearray, memoryview


def messages(pieces):
    """Return the pieces' complete messages: each follows its length, eight bytes."""
    data, found = b"".join(pieces), []
    while len(data) >= 8:
        end = 8 + int.from_bytes(data[:8], "big")
        if len(data) < end:
            break
        found.append(data[8:end])
        data = data[end:]
    return found


def _judge_messages(function):
    for sent, cut, rest in (([], 9, b""), ([b"ab"], 99, b""), ([b"ab", b"c"], 99, b""),
                            ([b"ab", b"c"], 10, b""), ([b"ab", b"c"], 1, b""),
                            ([b"ab", b""], 7, b""), ([b"", b"x" * 300], 7, b""),
                            ([b"abc"], 5, b"\0\0\0"),
                            ([b"abc"], 5, struct.pack("!Q", 5)),
                            ([b"abc"], 5, struct.pack("!Q", 5) + b"half")):
        stream = b"".join(struct.pack("!Q", len(text)) + text for text in sent)
        stream += rest
        pieces = [stream[i : i + cut] for i in range(0, len(stream), cut)]
        found = [bytes(text) if isinstance(text, _BYTES) else text
                 for text in function(list(pieces))]
        if found != sent:
            tail = f", and with the beginning of another one ({rest})" if rest else ""
            size = f"{cut} byte{'s' * (cut > 1)}"
            yield (f"From {_short(sent)} in pieces of {size}{tail}, it returns "
                   f"{_short(found)}.")


def _short(found):
    return text if len(text := repr(found)) < 90 else f"{len(found)} messages"


def barrier(rank, n, give, take):
    """Wait for all: with each round, a rank knows that one more has arrived."""
    for _ in range(n - 1):
        give(b"here")
        take()


def _judge_barrier(function, n, late):
    ranks, log = Ranks(n, late=late), []

    def work(rank, give, take):
        def give_next(data):
            if not isinstance(data, _BYTES):
                raise TypeError(f"give sends bytes, and not {data!r}")
            give((rank + 1) % n, data)

        log.append("comes")
        function(rank, n, give_next, lambda: take((rank - 1) % n))
        log.append(rank)

    problem = _ends(ranks, ranks.run(work))
    last = len(log) - 1 - log[::-1].index("comes")
    early = [rank for rank in log[:last] if rank != "comes"]
    counts = [len(given) for given in ranks.given.values()]
    if early:
        return (f"ranks {early} leave too early; the ranks sent {counts} messages. "
                f"{problem}").rstrip()
    if problem:
        return f"{problem} The ranks sent {counts} messages."
    if n > 3 and max(counts) > n - 1:
        return f"the ranks send {counts} messages; {n - 1} each are enough."
    return Note(f"{n} ranks: each sends at most {max(counts)} times.")


def _ends(ranks, ends):
    for rank, end in ends.items():
        if isinstance(end, MemoryError):
            raise end
        if isinstance(end, BaseException):
            return f"rank {rank} raises {type(end).__name__}: {end}."
    return f"ranks {ranks.stuck} wait forever." if ranks.stuck else ""


def sum_of_living(rank, n, number, give, take):
    """Return the sum of numbers that go once around the ring of the living."""
    ahead = [(rank + i) % n for i in range(1, n + 1)]  # the rank itself is the last
    behind = [(rank - i) % n for i in range(1, n + 1)]
    total, message = number, (rank, number)
    while True:
        _first_living(ahead, give, message)
        message = _first_living(behind, take)
        owner, value = message
        if owner == rank:
            return total
        total += value


def _first_living(ranks, act, *data):
    for other in ranks:
        try:
            return act(other, *data)
        except ConnectionError:
            pass


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
            return f"rank {rank} returns {ends[rank]} instead of {right}."
    for rank, given in ranks.given.items():
        if len({*given}) > 1:
            others = sorted({*given})
            return f"rank {rank} sends to ranks {others}: in a ring, it sends to one."
        if len(given) > most:
            return f"rank {rank} sends {len(given)} messages; {most} would be enough."
    busiest = max(map(len, ranks.given.values()))
    return Note(f"{most} of {n} alive: each sends at most {busiest} times.")


def _with_the_rest(pieces):
    data, found = b"".join(pieces), []
    while len(data) >= 8:
        end = 8 + int.from_bytes(data[:8], "big")
        found.append(data[8:end])
        data = data[end:]
    return found


def _one_round(rank, n, give, take):
    barrier(rank, min(n, 2), give, take)


def _takes_first(rank, n, give, take):
    for _ in range(n - 1):
        take()
        give(b"here")


def _all_at_once(rank, n, give, take):
    for _ in range(n - 1):
        give(b"here")
    for _ in range(n - 1):
        take()


def _ignores_deaths(rank, n, number, give, take):
    total, message = number, (rank, number)
    while True:
        give((rank + 1) % n, message)
        message = take((rank - 1) % n)
        if message[0] == rank:
            return total
        total += message[1]


def _n_rounds(rank, n, number, give, take):
    ahead = [(rank + i) % n for i in range(1, n + 1)]
    behind = [(rank - i) % n for i in range(1, n + 1)]
    total, value = number, number
    for _ in range(n - 1):
        _first_living(ahead, give, value)
        value = _first_living(behind, take)
        total += value
    return total


def _own_again(rank, n, number, give, take):
    def give_own(to, message):
        give(to, (rank, number))

    return sum_of_living(rank, n, number, give_own, take)


QUESTIONS = {
    1: Question(
        "megabytes",
        32,
        [
            (16, "That is the first half. The sums must go around, too."),
            (40, "That is the whole array, twice. In each half, a chunk is not sent."),
            (160, "That is what all five send together."),
            (20, "Every process sends in both halves."),
        ],
    ),
    2: Task(
        "a function `messages(pieces)`",
        messages,
        [
            (lambda pieces: [text for piece in pieces for text in messages([piece])],
             "A message may begin in one piece and end in another: join them first."),
            (_with_the_rest, "The last message is not complete: leave it out."),
            (lambda pieces: [text for text in messages(pieces) if text],
             "A message of no bytes is a message, too."),
        ],
        judge=_judge_messages,
    ),
    3: Task(
        "a function `barrier(rank, n, give, take)`",
        barrier,
        [
            (_one_round, "After one round, a rank knows only of its neighbour."),
            (_takes_first, "All ranks wait for a message, and none sends first."),
            (_all_at_once,
             "A message tells more only if it is sent after another was received."),
        ],
        judge=by_cases(_judge_barrier, "With {} ranks, rank {} late", [
            (1, 0), (2, 0), (2, 1), (4, 0), (4, 1), (4, 2), (5, 0),
            (4, 3),  # its note is on the page
        ]),
    ),
    5: Task(
        "a function `sum_of_living(rank, n, number, give, take)`",
        sum_of_living,
        [
            (_ignores_deaths, "Catch `ConnectionError`, and try the next rank."),
            (_n_rounds,
             "With some ranks dead, a rank's own number returns early and is added "
             + "again."),
            (_own_again,
             "It never ends: pass on each received number with its owner, and end when "
             + "your own number returns."),
        ],
        judge=by_cases(_judge_living, "Numbers {}, dead {}", [
            (numbers, dead) for n, dead in (
                (1, []), (3, []), (2, [0]), (3, [1]), (4, [1, 2]), (5, [0, 4]),
                (6, [1, 3])
            ) for numbers in ([10**rank for rank in range(n)], [1] * n)
        ]),
    ),
}
