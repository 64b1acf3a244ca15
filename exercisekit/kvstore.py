"""Answers to exercises of the part on the kvstore."""

import struct
from itertools import chain
from math import ceil, pi, sin

import numpy

from d2l_ext.kvstore import compression, key_rule

from .question import Note, Question, Task, compared, shown
from .ranks import Ranks

# ---- kvstore_by_hand ----


def mean_updater():
    counts = {}

    def update(key, pushed, stored):
        counts[key] = counts.get(key, 0) + 1
        stored += (pushed - stored) / counts[key]

    return update


def _judge_mean(function):
    if not callable(function()):
        yield "It returns no function."
        return
    for pushes in ([("a", 2), ("a", 4), ("a", 9)], [("a", 6)],
                   [("a", 2), ("b", 6), ("a", 4), ("b", 8)]):  # fmt: skip
        update, seen = function(), {"a": [], "b": []}
        held, said = {key: numpy.zeros(2) for key in seen}, []
        for key, value in pushes:
            seen[key].append(value)
            said.append(f"{value} to {key!r}")
            pushed = numpy.full(2, float(value))
            update(key, pushed, held[key])
            if (pushed != value).any():
                yield f"After pushes of {', '.join(said)}, what was pushed is changed."
            for name, values in seen.items():
                mean = sum(values) / max(len(values), 1)
                if numpy.any(abs(held[name] - mean) > 1e-6):
                    yield (f"After pushes of {', '.join(said)}, {name!r} is "
                           f"{held[name][0]:g}, and not {mean:g}.")  # fmt: skip


def worth_sending(gradient):
    """The rows that are not all zero, and their numbers."""
    rows = gradient.any(axis=1).nonzero()[0]
    return rows, gradient[rows]


def _judge_rows(function):
    for gradient in ([[0, 7]], [[0, 0], [0, 0]], [[0, 7], [0, 0], [3, 0]],
                     [[1, 1, 0], [1, -1, 0], [0, 0, 0], [0, 0, -2], [0, 0, 0],
                      [1e-9, 0, 0]]):  # fmt: skip
        given = numpy.array(kept := numpy.array(gradient, "float32"))
        said = f"Gradient {shown(kept.tolist())}:"
        rows, values = function(given)
        rows, values = numpy.asarray(rows), numpy.asarray(values)
        if (given != kept).any():
            yield f"{said} it changes what it is given."
        rebuilt, least = numpy.zeros_like(kept), kept[kept.any(axis=1)].nbytes
        if len(rows) != len(values):
            yield f"{said} {len(rows)} numbers of rows, and {len(values)} rows."
            continue
        try:
            for row, value in zip(rows, values):
                rebuilt[int(row)] = value
        except (IndexError, TypeError, ValueError) as error:
            yield f"{said} {shown(rows.tolist())} are no row numbers of it ({error})."
            continue
        if (rebuilt != kept).any():
            yield (f"{said} rebuilt from rows {shown(rows.tolist())}, it has "
                   f"{(rebuilt != kept).sum()} wrong numbers.")  # fmt: skip
        elif len(values) and values.nbytes > least:
            yield f"{said} {values.nbytes} bytes of values, and {least} are enough."
    yield Note(f"4 of 6 rows matter: {values.nbytes} bytes ({least} are enough).")


# ---- roles_keys_shards ----


def sent(size, num_servers):
    """A push to each server that holds a shard, and a pull of it."""
    held = [n for n in key_rule.shards(0, size, num_servers, 1_000_000) if n]
    return [4 * n + 12 for n in held] + [8] * len(held)


def place(sizes, num_servers):
    """The largest first, each to the server that holds least so far."""
    held, servers = [0] * num_servers, [None] * len(sizes)
    for key in sorted(range(len(sizes)), key=lambda key: -sizes[key]):
        servers[key] = held.index(min(held))
        held[servers[key]] += sizes[key]
    return servers


_LENET = [180, 20, 25_000, 50, 102_400, 128, 1_280, 10]


def _judge_place(function):
    for sizes, num_servers in (([5], 1), ([5, 1], 3), ([1, 2, 9], 2), (_LENET, 2),
                               ([7, 6, 5, 4, 3, 2], 3)):  # fmt: skip
        placed = list(function(given := list(sizes), num_servers))
        said = f"Arrays of {sizes} on {num_servers} servers"
        if given != sizes:
            yield f"{said}: it changes what it is given."
        if len(placed) != len(sizes):
            yield f"{said}: it places {len(placed)} of {len(sizes)} arrays."
        elif any(server not in range(num_servers) for server in placed):
            yield f"{said}: {shown(placed)} are not all numbers of servers."
        else:
            most, enough = (
                max(sum(n for n, at in zip(sizes, servers) if at == s)
                    for s in range(num_servers))
                for servers in (placed, place(sizes, num_servers))
            )  # fmt: skip
            if most > enough:
                yield f"{said}: the fullest holds {most:,}, and {enough:,} will do."
            elif sizes is _LENET:
                yield Note(f"LeNet's fuller server holds {most:,} numbers "
                           f"({enough:,} are enough).")  # fmt: skip


# ---- in_step ----


def shares(numbers, num_workers, b):
    """Parts that differ by one at most, cut into minibatches."""
    size, more = divmod(len(numbers), num_workers)
    ends = [size * rank + min(rank, more) for rank in range(num_workers + 1)]
    parts = [numbers[start:end] for start, end in zip(ends, ends[1:])]
    return [[part[i : i + b] for part in parts] for i in range(0, len(parts[0]), b)]


def _judge_shares(function):
    for size, num_workers, b in ((1, 1, 1), (3, 1, 2), (1, 2, 3), (9, 2, 2), (7, 3, 1),
                                 (10, 4, 3)):  # fmt: skip
        numbers = [*range(100, 100 + size)]
        found = function([*numbers], num_workers, b)
        steps = [[list(own) for own in step] for step in found]
        said = f"Examples {numbers}, {num_workers} workers, b = {b}: {shown(steps)}"
        parts = [[*chain(*own)] for own in zip(*steps)]
        if any(len(step) != num_workers for step in steps):
            yield f"{said} has a step without a share for each worker."
        elif any(len(own) > b for step in steps for own in step):
            yield f"{said} has a share of more than {b}."
        elif sorted(chain(*parts)) != numbers:
            yield f"{said} does not have each example once."
        elif any(part != [*range(part[0], part[-1] + 1)] for part in parts if part):
            yield f"{said} gives a worker a part that is not contiguous."
        elif len(steps) > (enough := len(shares(numbers, num_workers, b))):
            yield f"{said} has more steps than needed."
        elif size == 9:
            yield Note(f"9 examples, 2 workers, b = 2: {len(steps)} steps "
                       f"({enough} are enough).")  # fmt: skip


def sums(pushes, num_workers):
    """A step is complete when each worker has made its push for it."""
    pushed = [[] for _ in range(num_workers)]
    for worker, number in pushes:
        pushed[worker].append(number)
    return [sum(step) for step in zip(*pushed)]


# ---- out_of_step ----


def may_begin(steps, worker, bound):
    """Whether the worker is at most `bound` ahead of the slowest after its step."""
    return steps[worker] + 1 - min(steps) <= bound


def _race(function, ticks, bound):
    """The steps of each after 40 ticks, and the largest lead."""
    k = len(ticks)
    steps, ends, lead = [0] * k, [None] * k, 0
    for tick in range(41):
        for worker in range(k):
            if ends[worker] == tick:
                steps[worker], ends[worker] = steps[worker] + 1, None
        lead = max(lead, max(steps) - min(steps))
        for worker in range(k):
            if ends[worker] is None:
                given = list(steps)
                if function(given, worker, bound):
                    ends[worker] = tick + ticks[worker]
                if given != steps:
                    raise ValueError("it changes the steps that it is given")
    return steps, lead


def _judge_bound(function):
    for ticks, bound in (((1,), 1), ((1, 1, 5), 1), ((1, 1, 5), 3), ((5, 2, 1), 2)):
        said = f"With ticks {ticks} and a bound of {bound}"
        try:
            steps, lead = _race(function, ticks, bound)
        except ValueError as error:
            yield f"{said}, {error}."
            continue
        most, _ = _race(may_begin, ticks, bound)
        if lead > bound:
            yield f"{said}, somebody is {lead} steps ahead."
        elif steps != most:
            yield f"{said}, the steps are {steps}: {most} are possible."
        elif bound == 3:
            yield Note(f"{said}: {sum(steps)} steps ({sum(most)} are possible), "
                       f"{lead} ahead ({bound} are allowed).")  # fmt: skip


def largest_rate(delay):
    """Between rates at which the weight falls, and at which it grows."""
    low, high = 0.0, 2.5
    for _ in range(12):
        lr, w = (low + high) / 2, [8.0]
        for _ in range(400):
            w.append(w[-1] - lr * w[max(0, len(w) - 1 - delay)])
        arrives = max(map(abs, w[-100:])) < max(map(abs, w[-200:-100]))
        low, high = (lr, high) if arrives else (low, lr)
    return low


def _judge_rate(function):
    for delay in range(4):
        right, found = 2 * sin(pi / (4 * delay + 2)), float(function(delay))
        if not abs(found - right) < 0.02:
            way = "less" if found > right else "more"
            yield f"{delay} updates old: {found:.2f} is not the limit, it is {way}."


# ---- compression ----


def _values(codes, t):
    return numpy.array([0, 0, -t, t], "float32")[list(codes)]


def unpacked(message, size, t):
    """Four codes of a byte, the first one in the highest bits."""
    codes = [byte >> shift & 0b11 for byte in message for shift in (6, 4, 2, 0)]
    return _values(codes[:size], t)


def _message(codes):
    return compression.pack(numpy.array(codes, "uint8")).tobytes()


def safe_sender(t):
    """What is not finite is not added to what is left over."""
    residual = 0

    def compress(gradient):
        nonlocal residual
        total = residual + numpy.where(numpy.isfinite(gradient), gradient, 0)
        codes = [3 if x >= t else 2 if x <= -t else 0 for x in total]
        residual = total - _values(codes, t)
        return codes, residual

    return compress


def _judge_safe(function):
    nan, inf = float("nan"), float("inf")
    for gradients in ([[0.5, -0.5]], [[0.3, -0.3], [0.3, -0.3]],
                      [[nan, 0.3], [0.4, 0.4], [0.7, -1.0]],
                      [[inf, 0.3], [-1.0, 0.3], [-1.0, 0.3]]):  # fmt: skip
        with numpy.errstate(all="ignore"):
            compress, ours, seen = function(0.5), safe_sender(0.5), []
            for gradient in gradients:
                given = numpy.array(gradient)
                found = [int(code) for code in compress(given)[0]]
                right = ours(numpy.array(gradient))[0]
                seen.append(shown(gradient))
                if found != right:
                    yield (f"After {' and '.join(seen)} the codes are {found}, and not "
                           f"{right}.")  # fmt: skip
                if not numpy.array_equal(given, gradient, equal_nan=True):
                    yield f"After {' and '.join(seen)}, the gradient itself is changed."


# ---- seldom ----


def fewest(step, exchange, share):
    """The first number of steps that is enough."""
    steps = 1
    while exchange > share * (steps * step + exchange):
        steps += 1
    return steps


def due(step, local_steps, parts):
    """Each part has its own first step, and comes again."""
    return [p for p in range(parts)
            if (step - p * local_steps // parts) % local_steps == 0]  # fmt: skip


def _judge_due(function):
    for local_steps, parts in ((1, 1), (2, 1), (4, 2), (8, 4), (5, 3), (3, 5)):
        rounds = [
            [list(function(step, local_steps, parts)) for step in steps]
            for steps in (range(local_steps), range(local_steps, 2 * local_steps))
        ]
        said = f"H = {local_steps}, {parts} parts: due are {shown(rounds[0])}"
        most = -(-parts // local_steps)
        if sorted(chain(*rounds[0])) != [*range(parts)]:
            yield f"{said}, and not each part once."
        elif rounds[1] != rounds[0]:
            yield f"{said}, and then {shown(rounds[1])}."
        elif max(map(len, rounds[0])) > most:
            yield f"{said}, and {most} in a step will do."


# ---- process_ring ----


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
                   f"{_short(found)}.")  # fmt: skip


def _short(found):
    return text if len(text := repr(found)) < 90 else f"{len(found)} messages"


def barrier(rank, n, give, take):
    """After a round, one knows of one rank more that it is there."""
    for _ in range(n - 1):
        give(b"here")
        take()


def _judge_barrier(function):
    for n, late in ((1, 0), (2, 0), (2, 1), (4, 0), (4, 1), (4, 2), (4, 3)):
        ranks, log = Ranks(n, late=late), []

        def work(rank, give, take, n=n, log=log):
            log.append("comes")
            function(rank, n, lambda data: give((rank + 1) % n, data),
                     lambda: take((rank - 1) % n))  # fmt: skip
            log.append(rank)

        said = f"With {n} ranks, of which {late} is late,"
        if problem := _ends(ranks, ranks.run(work)):
            yield f"{said} {problem}"
        last = len(log) - 1 - log[::-1].index("comes")
        early = [rank for rank in log[:last] if rank != "comes"]
        counts = [len(given) for given in ranks.given.values()]
        if early:
            yield f"{said} {early} go before it is there; sent: {counts}."
        if n == 4 and max(counts) > 3:
            yield f"{said} they send {counts} times; {n - 1} each will do."
    most = max(counts)
    yield Note(f"{n} ranks: each sends at most {most} times ({n - 1} are enough).")


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


def _judge_living(function):
    for n, dead in ((1, []), (3, []), (2, [0]), (3, [1]), (4, [1, 2]), (5, [0, 4]),
                    (6, [1, 3])):  # fmt: skip
        for numbers in ([10**rank for rank in range(n)], [1] * n):
            ranks = Ranks(n, dead)

            def work(rank, give, take, n=n, numbers=numbers):
                return function(rank, n, numbers[rank], give, take)

            ends, most = ranks.run(work), len(ranks.living)
            said = f"Numbers {numbers}, dead {dead or 'nobody'}:"
            if problem := _ends(ranks, ends):
                yield f"{said} {problem}"
                continue
            right = sum(numbers[rank] for rank in ranks.living)
            off = next((rank for rank in ranks.living if ends[rank] != right), None)
            if off is not None:
                yield f"{said} rank {off} returns {ends[off]}, and not {right}."
            for rank, given in ranks.given.items():
                if len({*given}) > 1:
                    yield f"{said} rank {rank} gives to {sorted({*given})}: no ring."
                elif len(given) > most:
                    yield f"{said} rank {rank} gives {len(given)} times, not {most}."
    if not ranks.stuck:
        busiest = max(map(len, ranks.given.values()))
        yield Note(f"{most} of {n} alive: each gives at most {busiest} times "
                   f"({most} are enough).")  # fmt: skip


QUESTIONS = {
    ("kvstore_by_hand", 1): Task(
        "a function that returns an updater",
        mean_updater,
        [
            ("+= (pushed - stored) / counts[key]", "+= pushed",
             "That is the sum of all pushes."),
            ("/ counts[key]", "/ 2",
             "Each push would weigh as much as all before it: a mean needs a count."),
            ("counts.get(key, 0) + 1", "1",
             "That is the last push: nothing is counted."),
            ("counts.get(key, 0)", "counts.get(key, 1)",
             "The count is one too many: what the store began with is no push."),
            ("counts[key] = counts.get(key, 0)",
             'counts[key] = counts["all"] = counts.get("all", 0)',
             "The count is of the pushes to all keys: each key needs its own."),
            ("stored += (", "stored = stored + (",
             "`stored = …` is another array. The store's own must change, in place."),
            ("():\n    counts = {}", "(counts={}):",
             "A second updater goes on with the counts of the first."),
            ("stored += (pushed - stored)",
             "pushed -= stored\n        stored += pushed",
             "The pushed array may still be somebody's gradient: leave it as it is."),
            ("    return update", "", "A function without `return` returns None."),
        ],
        judge=_judge_mean,
    ),
    ("kvstore_by_hand", 2): Question(
        "a list of two numbers of bytes: dense, row-sparse",
        [4_000_000, 64 * 408],
        [
            ([4_000_000, 64 * 400], "It also stores which rows it has."),
            ([4_000_000, 64 * 404], "The number of a row has 8 bytes."),
            ([1_000_000, 6_400], "These are numbers; each has 4 bytes."),
        ],
    ),
    ("kvstore_by_hand", 3): Task(
        "a function that returns row numbers and rows",
        worth_sending,
        [
            (lambda gradient: (range(len(gradient)), gradient),
             "These are all rows, also those of zeros."),
            ("axis=1", "axis=0", "Axis 0 goes down the columns: rows are asked for."),
            (".any(axis=1)", ".all(axis=1)",
             "A row is worth sending if any of its numbers is not zero."),
            (".any(axis=1)", ".sum(axis=1)",
             "Numbers of a row may cancel each other out, and still be worth sending."),
            ("gradient.any(axis=1)", "(gradient > 0).any(axis=1)",
             "Numbers below zero are worth sending, too."),
            ("gradient.any(axis=1)", "(abs(gradient) > 1e-6).any(axis=1)",
             "Small is not zero: a small gradient is lost."),
            (".nonzero()[0]", "",
             "A mask has a truth for each row of the gradient: numbers are asked for."),
            ("gradient[rows]", "gradient[gradient != 0]",
             "Whole rows are asked for, and not the single numbers in them."),
            ("gradient[rows]", "gradient[: len(rows)]",
             "These are the first rows, and not those with these numbers."),
        ],
        judge=_judge_rows,
    ),
    ("kvstore_by_hand", 4): Question(
        "the size that a step must exceed",
        2**-11,
        [
            (2**-10, "That is eps, the distance just above 1. Half is enough."),
            (2**-12, "That is the limit for steps down, below 1."),
            (2**-13, "A step of this size is rounded away."),
        ],
        tolerance=0.005,
    ),
    ("roles_keys_shards", 1): Question(
        "a list of the numbers of servers",
        [5, *range(7, 17)],
        [
            ([5, 7, 11, 13], "It need not be a prime: try 8."),
            ([5, 7, 9, 11, 13, 15], "Some even numbers will do: try 8."),
            ([*range(4, 17)], "On four servers the keys 0 and 4 meet."),
            ([5, 6, *range(7, 17)], "On six servers the keys 0 and 6 meet."),
        ],
    ),
    ("roles_keys_shards", 2): Task(
        "a function that returns a list of bytes",
        sent,
        [
            ("key_rule.shards(0, size, num_servers, 1_000_000)", "[size]",
             "A large array is cut, and each server is sent its shard."),
            ("1_000_000", "1", "Small arrays are not cut: one server holds all."),
            ("1_000_000", "1_000_001", "An array of just the bound is cut already."),
            (" if n]", "]",
             "A server that holds nothing of the array is sent nothing."),
            ("4 * n + 12", "4 * n",
             "A push also says which key it is and how long: see the table."),
            ("4 * n + 12", "n + 12", "A number has 4 bytes."),
            ("4 * n + 12", "4 * n + 8", "A push has its key, and a length besides."),
            ("[8] * len(held)", "[8]",
             "Each server is asked for the shard that it holds."),
            (" + [8] * len(held)", "", "To pull, a worker sends a message, too."),
            ("[8] * len(held)", "[4 * n + 12 for n in held]",
             "What a pull brings is sent by the servers, and not by the worker."),
        ],
        judge=compared(sent, [
            (11, 1), (11, 2), (999_999, 2), (1_000_000, 2), (1_000_001, 5),
            (3_000_000, 3),
        ]),
    ),
    ("roles_keys_shards", 4): Task(
        "a function that returns a list with the server of each array",
        place,
        [
            (lambda sizes, num_servers: [k % num_servers for k in range(len(sizes))],
             "In turn, whatever the sizes: the large ones may meet."),
            ("+= sizes[key]", "+= 0",
             "All are on one server: what a server holds has to be counted."),
            ("sorted(range(len(sizes)), key=lambda key: -sizes[key])",
             "range(len(sizes))",
             "A large array that comes late finds no room that is left for it."),
            ("-sizes[key]", "sizes[key]",
             "Begin with the largest, and count elements, not arrays."),
            (lambda sizes, num_servers: place(sorted(sizes)[::-1], num_servers),
             "The list is in the order of placing. Asked is the order of the arrays."),
            ("servers[key] = held.index(min(held))",
             "servers[key] = held.index(min(held)); sizes.sort()",
             "Sort a copy: the caller needs the sizes as they are."),
            ("return servers", "return held",
             "That is what each server holds. Asked is the server of each array."),
        ],
        judge=_judge_place,
    ),
    ("in_step", 1): Question(
        "a list of the divisors, step by step",
        [3, 3, 1],
        [
            ([1, 1, 1], "The sum is over all workers, and so is the divisor."),
            ([3, 3, 3], "In the last step only one example is left."),
            ([3, 3], "The seventh example has a step, too."),
        ],
    ),
    ("in_step", 2): Task(
        "a function that returns a list of steps",
        shares,
        [
            ("for i in range(0, len(parts[0]), b)]",
             "for i in range(0, len(parts[-1]) // b * b, b)]",
             "The last, smaller minibatches are left out."),
            ("numbers[start:end] for start, end in zip(ends, ends[1:])",
             "numbers[rank::num_workers] for rank in range(num_workers)",
             "These parts are dealt out in turn."),
            ("range(0, len(parts[0]), b)", "range(len(parts[0]))",
             "The next minibatch begins `b` examples later, and not one."),
            (" + min(rank, more)", "",
             "The rest of the division is nobody's: give it to somebody."),
            ("len(parts[0])", "len(parts[-1])",
             "The number of steps is up to the longest part."),
            ("for part in parts]", "for part in parts if part[i:]]",
             "Who has no example left still takes the step, with an empty share."),
            ("i : i + b", "i : i + b + 1",
             "A slice ends before its end: that is one example too many."),
            (lambda *given: list(zip(*shares(*given))),
             "That is a list for each worker. Asked is one for each step."),
            (lambda numbers, num_workers, b:
             shares([*range(len(numbers))], num_workers, b),
             "These are places in the list, and not the examples themselves."),
        ],
        judge=_judge_shares,
    ),
    ("in_step", 3): Task(
        "a function that returns a list of sums",
        sums,
        [
            (lambda pushes, num_workers: [
                 sum(number for _, number in pushes[i : i + num_workers])
                 for i in range(0, len(pushes), num_workers)],
             "Pushes that come one after another need not be of one step."),
            ("[[] for _ in range(num_workers)]", "[[]] * num_workers",
             "`[[]] * n` is one list, n times: all workers share it."),
            ("[sum(step) for step in zip(*pushed)]",
             ("[sum(own[i] for own in pushed if own[i:]) for i in "
              "range(max(map(len, pushed)))]"),
             "A step for which somebody has not pushed is not complete."),
            ("zip(*pushed)", "zip(*filter(None, pushed))",
             "Who has not pushed at all is waited for, too."),
            ("zip(*pushed)", "pushed",
             "That adds up what a worker has pushed. Asked is a sum over workers."),
            ("sum(step)", "sum(step) / num_workers", "That is a mean."),
            ("pushed[worker].append(number)", "pushed[worker][:] = [number]",
             "An early push for the next step takes the place of the one before."),
            ("zip(*pushed)]", "zip(*pushed)][:1]", "There may be more steps than one."),
        ],
        judge=compared(sums, [
            ([], 1), ([(0, 3)], 1), ([(0, 1)], 2), ([(0, 1), (1, 2), (1, 20)], 2),
            ([(0, 1), (1, 2), (1, 20), (0, 10)], 2),
            ([(0, 1), (0, 10), (1, 2), (1, 20)], 2),
            ([(2, 1), (2, 2), (2, 3), (0, 4), (1, 5), (0, 6)], 3),
        ]),
    ),
    ("in_step", 5): Question(
        "a list: the examples of worker 0 and of worker 1",
        [32, 16],
        [
            ([24, 24], "Worker 1 would need twice as long as worker 0."),
            ([16, 32], "The fast worker should have more."),
            ([40, 20], "These are 60 examples."),
        ],
    ),
    ("out_of_step", 1): Question(
        "the staleness with four workers",
        3,
        [
            (4, "A worker's own update does not count."),
            (0, "The others push between its pull and its push."),
            (1, "Each of the others pushes once."),
        ],
    ),
    ("out_of_step", 2): Task(
        "a function that returns whether the worker may begin",
        may_begin,
        [
            (lambda steps, worker, bound: True, "Nobody ever waits."),
            (" + 1", "", "When its step is done, it is one step farther."),
            ("<= bound", "< bound", "Just as far as the bound is allowed."),
            ("<= bound", "<= 1", "Any bound may be asked for, and not one step alone."),
            ("min(steps)", "sum(steps) / len(steps)",
             "What counts is the slowest, not the mean of all."),
            ("min(steps)", "steps[worker - 1]",
             "The slowest may be any of them, and not the neighbour."),
            ("return steps[worker] + 1", "steps[worker] += 1\n    return steps[worker]",
             "Ask what would be, without doing it: the list is the clock's own."),
        ],
        judge=_judge_bound,
    ),
    ("out_of_step", 4): Task(
        "a function that returns a learning rate",
        largest_rate,
        [
            (lambda delay: 2 / (1 + delay),
             "Twice as old is not just half the rate. Let `descend` try it."),
            (lambda delay: 2.0, "That is the limit of gradients that are not late."),
            ("max(map(abs, w[-100:])) < max(map(abs, w[-200:-100]))", "min(w) > 0",
             "A weight that swings across 0 may arrive, too, in smaller swings."),
            ("len(w) - 1 - delay", "len(w) - 2 - delay",
             "These gradients are older by one than asked for."),
            ("2.5", "1.0", "The interval ends too early: the limit is not in it."),
            ("if arrives else", "if not arrives else",
             "Where the descent arrives, the limit is above that rate."),
            ("return low", "return round(low, 1)", "Two digits are asked for."),
            ("range(12)", "range(4)",
             "The interval is still too wide: halve it more often."),
        ],
        judge=_judge_rate,
    ),
    ("out_of_step", 3): Question(
        "a list of three times in seconds",
        [3 - 2 * 0.9**n for n in (1, 4, 16)],
        [
            ([1.2, 1.2, 1.2], "That is a worker's mean. All wait for the slowest."),
            ([1.2, 4.8, 19.2], "They compute at the same time: nothing adds up."),
            ([3, 3, 3], "With some luck all are quick. How often?"),
        ],
        tolerance=0.01,
    ),
    ("compression", 1): Question(
        "the length of the message in bytes",
        250_004,
        [
            (250_000, "What becomes of the last three weights?"),
            (250_001, "The message is made of whole words of 4 bytes."),
            (62_501, "These are words of 4 bytes."),
            (4_000_012, "That is without compression."),
        ],
    ),
    ("compression", 2): Task(
        "a function that returns numbers",
        unpacked,
        [
            ("codes[:size]", "codes",
             "The last word was filled up: there are more codes than numbers."),
            ("(6, 4, 2, 0)", "(0, 2, 4, 6)",
             "The first of four codes is in the highest bits of its byte."),
            ("(6, 4, 2, 0)", "(4, 2, 0)", "A byte holds four codes."),
            ("in message for", "in message[::-1] for",
             "The bytes come in the order in which they were packed."),
            ("& 0b11", "& 0b1", "A code has two bits."),
            ("_values(codes[:size], t)", "-_values(codes[:size], t)",
             "The signs are exchanged: 11 stands for t, 10 for -t."),
            ("[:size], t)", "[:size], 1)", "The threshold is what a code stands for."),
            ("in message for", "in message[: size // 4] for",
             "The last byte counts, even if it is not full."),
        ],
        judge=compared(unpacked, [
            (_message(codes), len(codes), t) for codes, t in (
                ([3], 0.5), ([0, 2], 0.3), ([3, 0, 2, 3, 2, 0, 0], 0.5),
                ([2, 3, 0, 3] * 4, 0.25), ([2] + [3] * 16, 1.5))
        ], tolerance=1e-6),
    ),
    ("compression", 3): Question(
        "what is left over, in the units of the gradient",
        30,
        [
            (0.3, "That is left after one step, and kept for the next."),
            (0, "The sender can send no more than the threshold in a step."),
            (80, "That is all that there was. What has been sent?"),
            (50, "That has been sent. What is left of 80?"),
        ],
        tolerance=0.005,
    ),
    ("compression", 5): Task(
        "a function that returns a function like `compress`",
        safe_sender,
        [
            ("numpy.where(numpy.isfinite(gradient), gradient, 0)", "gradient",
             "What is not a number stays in the residual for ever."),
            ("numpy.where(numpy.isfinite(gradient), gradient, 0)",
             "numpy.nan_to_num(gradient)",
             "An overflow is infinite, or becomes a huge number: that stays, too."),
            ("isfinite(gradient), gradient", "isfinite(gradient).all(), gradient",
             "The whole gradient is thrown away with one bad number of it."),
            ("residual = total - _values(codes, t)", "pass",
             "What is too small to be sent now is to be kept for later."),
            ("residual = total - _values(codes, t)", "residual = total",
             "What has been sent has to leave the residual."),
            ("x >= t", "x > t", "A sum of just the threshold is sent."),
            ("total = residual + numpy.where(numpy.isfinite(gradient), gradient, 0)",
             "gradient[~numpy.isfinite(gradient)] = 0; total = residual + gradient",
             "It writes zeros into the caller's gradient: take a copy."),
            ("[3 if x >= t else 2 if", "[2 if x >= t else 3 if",
             "The signs are exchanged: 11 stands for t, 10 for -t."),
        ],
        judge=_judge_safe,
    ),
    ("seldom", 1): Question(
        "a number of GB",
        8,
        [
            (4_000, "That is with an exchange in every step."),
            (0.4, "That is one exchange. How many are there?"),
            (20, "That is the number of exchanges."),
        ],
    ),
    ("seldom", 2): Task(
        "a function that returns a number of steps",
        fewest,
        [
            (lambda step, exchange, share: 1, "That exchanges after each step."),
            ("exchange > share", "exchange >= share",
             "Just this share is allowed, too."),
            ("(steps * step + exchange)", "steps * step",
             "From one exchange to the next it takes the steps and an exchange."),
            ("share * (", "(1 - share) * (",
             "That is the share of computing. The exchanges' is given."),
            (lambda step, exchange, share:
             max(1, int(exchange * (1 - share) / (share * step))),
             "Rounded down, it is a step too few."),
            (lambda step, exchange, share: exchange * (1 - share) / (share * step),
             "A whole number of steps is asked for, and one at least."),
            (lambda step, exchange, share: max(1, ceil(exchange / step)),
             "The share plays no part in it."),
        ],
        judge=compared(fewest, [
            (1.0, 0.5, 0.5), (2.0, 6.0, 0.5), (1.0, 2.5, 0.5), (0.25, 1.0, 0.25),
            (1.0, 3.0, 0.125), (1.0, 3.0, 0.75),
        ]),
    ),
    ("seldom", 4): Task(
        "a function that returns a list of parts",
        due,
        [
            (lambda step, local_steps, parts: [step % parts],
             "A part's turn comes once in `local_steps` steps, whatever their number."),
            ("(step - p * local_steps // parts) % local_steps == 0",
             "step == p * local_steps // parts", "The turns come again, and again."),
            ("p * local_steps // parts", "0",
             "All at once is what it is to avoid: spread the turns."),
            ("p * local_steps // parts", "p * (local_steps // parts)",
             "Rounded down, two turns are 0 steps apart if there are many parts."),
            ("range(parts)", "range(1, parts + 1)", "The parts are numbered from 0."),
            ("range(parts)", "range(parts - 1)", "The last part never has its turn."),
            ("range(parts)", "range(min(parts, local_steps))",
             "More parts than steps: then some steps have several."),
            ("% local_steps == 0", "% parts == 0",
             "A part comes again after `local_steps` steps, and not after `parts`."),
        ],
        judge=_judge_due,
    ),
    ("compression", 4): Question(
        "a bandwidth in Gbit/s",
        8 / (0.011 / (32e6 - 1.5 * 17e6)) / 1e9,
        [
            (0.59, "That is in gigabytes: a byte has eight bits."),
            (2.36, "Two workers share the link."),
        ],
        tolerance=0.02,
    ),
    ("process_ring", 1): Question(
        "megabytes",
        32,
        [
            (16, "That is one half, adding. The sums must go around, too."),
            (40, "That is the whole array, twice. One's own chunk stays."),
            (160, "That is what all five send together."),
            (20, "What is added must come back to everybody."),
        ],
    ),
    ("process_ring", 2): Task(
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
    ("process_ring", 3): Task(
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
        judge=_judge_barrier,
    ),
    ("process_ring", 5): Task(
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
        judge=_judge_living,
    ),
}
