"""Answers to exercises of the part on the kvstore."""

import struct
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from queue import Empty, Queue

import numpy

from d2l_ext.kvstore import compression, key_rule

from .question import Question, Task

# ---- Tasks: functions that `check` tries, and typical ones that are not right ----


def _mean_updater():
    counts = {}

    def update(key, pushed, stored):
        counts[key] = counts.get(key, 0) + 1
        stored += (pushed - stored) / counts[key]

    return update


def _add(key, pushed, stored):
    stored += pushed


def _halve(key, pushed, stored):
    stored += (pushed - stored) / 2


def _judge_mean(mean_updater):
    update = mean_updater()
    if update is None:
        return "It returns None, not an updater."
    for key, pushes, mean in (("a", (2, 4, 9), 5), ("b", (6, 8), 7)):
        stored = numpy.zeros(1)
        for value in pushes:
            update(key, numpy.full(1, float(value)), stored)
        if abs(stored[0] - mean) > 1e-6:
            held = f"After pushes of {', '.join(map(str, pushes))} it holds"
            is_sum = ": that is the sum" if stored[0] == sum(pushes) else ""
            return f"{held} {stored[0]:g}, not {mean}{is_sum}."
    return ""


def _worth_sending(gradient):
    rows = gradient.any(axis=1).nonzero()[0]
    return rows, gradient[rows]


def _judge_rows(worth_sending):
    gradient = numpy.zeros((6, 3), "float32")
    gradient[1], gradient[4, 2] = 1, -2
    rows, values = map(numpy.asarray, worth_sending(gradient))
    if len(rows) != len(values):
        return f"It returns {len(rows)} numbers of rows, and {len(values)} rows."
    rebuilt = numpy.zeros_like(gradient)
    rebuilt[rows.astype(int)] = values
    if (rebuilt != gradient).any():
        return f"The gradient rebuilt differs in {(rebuilt != gradient).sum()} numbers."
    if values.nbytes > 24:
        will_do = "Of 6 rows 2 are worth sending: 24 bytes of values will do"
        return f"{will_do}, not {values.nbytes}."
    return ""


def _sent(size, num_servers):
    held = [n for n in key_rule.shards(0, size, num_servers, 1_000_000) if n]
    return [4 * n + 12 for n in held] + [8] * len(held)


def _judge_sent(sent):
    for size, num_servers in ((11, 2), (3_000_000, 3), (1_000_001, 5)):
        right, found = _sent(size, num_servers), list(sent(size, num_servers))
        if found != right:
            case = f"{size} elements, {num_servers} servers:"
            return f"{case} the messages have {right} bytes, not {found}."
    return ""


def _place(sizes, num_servers):
    held, servers = [0] * num_servers, [None] * len(sizes)
    for key in sorted(range(len(sizes)), key=lambda key: -sizes[key]):
        servers[key] = held.index(min(held))
        held[servers[key]] += sizes[key]
    return servers


def _judge_place(place):
    lenet = [180, 20, 25_000, 50, 102_400, 128, 1_280, 10]
    for sizes, num_servers, most in ((lenet, 2, 102_400), ([7, 6, 5, 4, 3, 2], 3, 9)):
        placed = list(place(list(sizes), num_servers))
        if len(placed) != len(sizes):
            return f"{len(sizes)} arrays need {len(sizes)} servers, not {len(placed)}."
        held = [0] * num_servers
        for size, server in zip(sizes, placed):
            held[server] += size
        if max(held) > most:
            return (
                f"Of arrays {sizes} the fullest of {num_servers} servers holds "
                f"{max(held)}, and {most} will do."
            )
    return ""


def _values(codes, t):
    return numpy.array([0, 0, -t, t], "float32")[list(codes)]


def _unpacked(message, size, t):
    codes = [byte >> shift & 0b11 for byte in message for shift in (6, 4, 2, 0)]
    return _values(codes[:size], t)


def _judge_unpacked(unpacked):
    for codes, t in (([3, 0, 2, 3, 2, 0, 0], 0.5), ([2, 3] * 17, 0.25)):
        message = compression.pack(numpy.array(codes, "uint8")).tobytes()
        found = numpy.asarray(unpacked(message, len(codes), t))
        if len(found) != len(codes):
            return f"{len(codes)} numbers were sent, and {len(found)} come out."
        wrong = int((found != _values(codes, t)).sum())
        if wrong:
            return f"Of {len(codes)} numbers {wrong} are not what was sent."
    return ""


def _safe_sender(t, all_of_them=False):
    residual = 0

    def compress(gradient):
        nonlocal residual
        finite = numpy.isfinite(gradient)
        kept = finite & finite.all() if all_of_them else finite
        total = residual + numpy.where(kept, gradient, 0)
        codes = [3 if x >= t else 2 if x <= -t else 0 for x in total]
        residual = total - _values(codes, t)
        return codes, residual

    return compress


def _judge_safe(safe_sender):
    compress, theirs = safe_sender(0.5), _safe_sender(0.5)
    nan, inf, seen = float("nan"), float("inf"), []
    for gradient in ([nan, 0.3], [0.4, 0.4], [0.4, -inf], [-1.0, -1.0], [-1.0, -1.0]):
        right = [int(code) for code in theirs(numpy.array(gradient))[0]]
        found = [int(code) for code in compress(numpy.array(gradient))[0]]
        seen.append(str(gradient))
        if found != right:
            return f"With {' and then '.join(seen)} the codes are {right}, not {found}."
    return ""


def _contiguous(numbers, num_workers, b):
    size, more = divmod(len(numbers), num_workers)
    ends = [size * rank + min(rank, more) for rank in range(num_workers + 1)]
    parts = [numbers[start:end] for start, end in zip(ends, ends[1:])]
    return [[part[i : i + b] for part in parts] for i in range(0, len(parts[0]), b)]


def _dropped(numbers, num_workers, b):
    steps = _contiguous(numbers, num_workers, b)
    return [step for step in steps if all(len(share) == b for share in step)]


def _strided(numbers, num_workers, b):
    parts = [numbers[rank::num_workers] for rank in range(num_workers)]
    return [[part[i : i + b] for part in parts] for i in range(0, len(parts[0]), b)]


def _judge_shares(shares):
    for size, num_workers, b, most in ((9, 2, 2, 3), (7, 3, 1, 3), (10, 4, 3, 1)):
        case = f"Of {size} examples, {num_workers} workers, b = {b}:"
        steps = [
            [list(share) for share in step]
            for step in shares([*range(size)], num_workers, b)
        ]
        if any(len(step) != num_workers for step in steps):
            return f"{case} a step has not a share for each worker."
        if any(len(share) > b for step in steps for share in step):
            return f"{case} a share has more than {b}."
        parts = [[*chain(*worker)] for worker in zip(*steps)]
        seen = sorted(chain(*parts))
        if seen != [*range(size)]:
            return f"{case} {len(set(seen))} are seen, {len(seen)} are handed out."
        if any(part != [*range(part[0], part[-1] + 1)] for part in parts):
            return f"{case} the parts are {parts}, which is not contiguous."
        if len(steps) > most:
            return f"{case} {len(steps)} steps, and {most} will do."
    return ""


def _sums(pushes, num_workers):
    pushed = [[] for _ in range(num_workers)]
    for worker, number in pushes:
        pushed[worker].append(number)
    return [sum(step) for step in zip(*pushed)]


def _every_two(pushes, num_workers):
    numbers = [number for _, number in pushes]
    return [sum(numbers[i : i + 2]) for i in range(0, len(numbers), num_workers)]


def _judge_sums(sums):
    for pushes, num_workers in (
        ([(0, 1), (1, 2), (1, 20), (0, 10)], 2),
        ([(0, 1), (0, 10), (1, 2), (1, 20)], 2),
        ([(2, 1), (2, 2), (2, 3), (0, 4), (1, 5), (0, 6)], 3),
    ):
        right, found = _sums(pushes, num_workers), list(sums(pushes, num_workers))
        if found != right:
            return f"For pushes {pushes} the sums are {right}, not {found}."
    return ""


def _bounded(steps, worker, bound):
    return steps[worker] + 1 - min(steps) <= bound


def _judge_bound(may_begin):
    for bound in (1, 3):
        steps, free = [0, 0, 0], [0, 0, 0]  # done; the tick at which each is done
        lead, working = 0, [False] * 3
        for tick in range(41):
            for worker in range(3):
                if working[worker] and free[worker] == tick:
                    steps[worker] += 1
                    working[worker] = False
            lead = max(lead, max(steps) - min(steps))
            for worker, ticks in enumerate((1, 1, 5)):
                if not working[worker] and may_begin(list(steps), worker, bound):
                    working[worker], free[worker] = True, tick + ticks
        if lead > bound:
            return f"With a bound of {bound} somebody is {lead} steps ahead."
        if steps != [7 + bound, 7 + bound, 8]:
            return f"With a bound of {bound} the steps are {steps}: all wait too long."
    return ""


def _descends(delay, lr, steps=400):
    w = [8.0]
    for _ in range(steps):
        w.append(w[-1] - lr * w[max(0, len(w) - 1 - delay)])
    return max(map(abs, w[-100:])) < max(map(abs, w[-200:-100]))


def _largest_rate(delay):
    return max(n for n in range(1, 250) if _descends(delay, n / 100)) / 100


def _judge_rate(largest_rate):
    for delay in range(4):
        right, found = _largest_rate(delay), float(largest_rate(delay))
        if abs(found - right) > 0.02:
            way = "less" if found > right else "more"
            return f"{delay} updates old: {found:.2f} is not the limit, it is {way}."
    return ""


def _messages(pieces):
    data, found = b"".join(pieces), []
    while len(data) >= 8 + int.from_bytes(data[:8], "big"):
        end = 8 + int.from_bytes(data[:8], "big")
        found, data = [*found, data[8:end]], data[end:]
    return found


def _judge_messages(messages):
    for sent, cut in (([b"ring", b"", b"x" * 300], 7), ([b"abc"] * 3, 1)):
        data = b"".join(struct.pack("!Q", len(text)) + text for text in sent)
        data += struct.pack("!Q", 5) + b"half"  # of which a byte is missing
        found = list(messages([data[i : i + cut] for i in range(0, len(data), cut)]))
        if found != sent:
            return (f"From pieces of {cut} bytes it makes {len(found)} messages, not "
                    f"the {len(sent)} that were sent.")  # fmt: skip
    return ""


def _barrier(rank, n, give, take):
    for _ in range(n - 1):
        give(b"here")
        take()


def _judge_barrier(barrier, n=4):
    links, log, count = [Queue() for _ in range(n)], [], [0] * n

    def rank_of(rank):
        def give(data):
            count[rank] += 1
            links[rank].put(data)

        time.sleep(0.2 * (rank == 1))
        log.append("comes")
        barrier(rank, n, give, lambda: links[rank - 1].get(timeout=1))
        log.append("goes")

    with ThreadPoolExecutor(n) as ranks:
        try:
            list(ranks.map(rank_of, range(n)))
        except Empty:
            return f"Only {log.count('goes')} of {n} come through: one takes in vain."
    if "goes" in log[:n]:
        there = log.index("goes")
        return f"One goes when {'1' if there == 1 else 'not all'} of {n} are there."
    return f"They give {count} times; {n - 1} each will do." if max(count) >= n else ""


def _fewest(step, exchange, share):
    return next(h for h in range(1, 10**6) if exchange <= share * (h * step + exchange))


def _judge_fewest(fewest):
    for times in ((2.0, 6.0, 0.5), (0.25, 1.0, 0.2), (1.0, 0.5, 0.5)):
        right, found = _fewest(*times), fewest(*times)
        if found != right:
            return f"For {times} it is {right} steps, not {found}."
    return ""


def _due(step, local_steps, parts):
    return [p for p in range(parts) if (step - p * local_steps // parts)
            % local_steps == 0]  # fmt: skip


def _judge_due(due):
    for local_steps, parts in ((8, 4), (6, 3), (3, 5)):
        case = f"H = {local_steps}, {parts} parts:"
        found = [list(due(step, local_steps, parts)) for step in range(local_steps)]
        if sorted(chain(*found)) != [*range(parts)]:
            return f"{case} in {local_steps} steps these are due: {found}."
        if due(local_steps, local_steps, parts) != found[0]:
            return f"{case} after {local_steps} steps it does not begin again."
        if max(map(len, found)) > -(-parts // local_steps):
            return f"{case} {max(map(len, found))} are due in one step."
    return ""


QUESTIONS = {
    ("kvstore_by_hand", 1): Task(
        "a function that returns an updater",
        _mean_updater,
        [
            (lambda: _add,
             "After pushes of 2, 4, 9 it holds 15, not 5: that is the sum."),
            (lambda: _halve, "After pushes of 2, 4, 9 it holds 5.75, not 5."),
            (lambda: None, "It returns None, not an updater."),
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
        _worth_sending,
        [
            (lambda gradient: (range(len(gradient)), gradient),
             "Of 6 rows 2 are worth sending: 24 bytes of values will do, not 72."),
            (lambda gradient: (_worth_sending(gradient)[0], gradient[:1]),
             "It returns 2 numbers of rows, and 1 rows."),
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
        _sent,
        [
            (lambda size, num_servers: [4 * size + 12, 8],
             "3000000 elements, 3 servers: the messages have [4000012, 4000012, "
             + "4000012, 8, 8, 8] bytes, not [12000012, 8]."),
            (lambda size, num_servers: [n - 12 for n in _sent(size, num_servers)],
             "11 elements, 2 servers: the messages have [56, 8] bytes, "
             + "not [44, -4]."),
            (lambda size, num_servers: _sent(size, num_servers)[:1],
             "11 elements, 2 servers: the messages have [56, 8] bytes, not [56]."),
        ],
        judge=_judge_sent,
    ),
    ("roles_keys_shards", 4): Task(
        "a function that returns a list with the server of each array",
        _place,
        [
            (lambda sizes, num_servers: [k % num_servers for k in range(len(sizes))],
             "Of arrays [180, 20, 25000, 50, 102400, 128, 1280, 10] the fullest "
             + "of 2 servers holds 128860, and 102400 will do."),
            (lambda sizes, num_servers: [0] * len(sizes),
             "Of arrays [180, 20, 25000, 50, 102400, 128, 1280, 10] the fullest "
             + "of 2 servers holds 129068, and 102400 will do."),
            (lambda sizes, num_servers: [1], "8 arrays need 8 servers, not 1."),
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
        _contiguous,
        [
            (_dropped,
             "Of 9 examples, 2 workers, b = 2: 8 are seen, 8 are handed out."),
            (_strided,
             "Of 9 examples, 2 workers, b = 2: the parts are "
             + "[[0, 2, 4, 6, 8], [1, 3, 5, 7]], which is not contiguous."),
            (lambda numbers, num_workers, b: _contiguous(numbers, num_workers, 1),
             "Of 9 examples, 2 workers, b = 2: 5 steps, and 3 will do."),
        ],
        judge=_judge_shares,
    ),
    ("in_step", 3): Task(
        "a function that returns a list of sums",
        _sums,
        [
            (_every_two,
             "For pushes [(0, 1), (0, 10), (1, 2), (1, 20)] the sums are "
             + "[3, 30], not [11, 22]."),
        ],
        judge=_judge_sums,
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
        _bounded,
        [
            (lambda steps, worker, bound: True,
             "With a bound of 1 somebody is 32 steps ahead."),
            (lambda steps, worker, bound: steps[worker] - min(steps) <= bound,
             "With a bound of 1 somebody is 2 steps ahead."),
            (lambda steps, worker, bound: steps[worker] == min(steps),
             "With a bound of 3 the steps are [8, 8, 8]: all wait too long."),
        ],
        judge=_judge_bound,
    ),
    ("out_of_step", 4): Task(
        "a function that returns a learning rate",
        _largest_rate,
        [
            (lambda delay: 2 / (1 + delay),
             "2 updates old: 0.67 is not the limit, it is less."),
            (lambda delay: 2.0, "1 updates old: 2.00 is not the limit, it is less."),
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
        _unpacked,
        [
            (lambda message, size, t: _unpacked(message, 4 * len(message), t),
             "7 numbers were sent, and 16 come out."),
            (lambda message, size, t: _unpacked(message[::-1], size, t),
             "Of 7 numbers 4 are not what was sent."),
        ],
        judge=_judge_unpacked,
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
        _safe_sender,
        [
            (lambda t: _safe_sender(t, all_of_them=True),
             "With [nan, 0.3] and then [0.4, 0.4] the codes are [0, 3], not [0, 0]."),
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
        _fewest,
        [
            (lambda step, exchange, share: exchange / step / share,
             "For (2.0, 6.0, 0.5) it is 3 steps, not 6.0."),
            (lambda step, exchange, share: 1,
             "For (2.0, 6.0, 0.5) it is 3 steps, not 1."),
        ],
        judge=_judge_fewest,
    ),
    ("seldom", 4): Task(
        "a function that returns a list of parts",
        _due,
        [
            (lambda step, local_steps, parts: [step % parts],
             "H = 8, 4 parts: in 8 steps these are due: "
             + "[[0], [1], [2], [3], [0], [1], [2], [3]]."),
            (lambda step, local_steps, parts: [] if step else [*range(parts)],
             "H = 8, 4 parts: after 8 steps it does not begin again."),
            (lambda step, local_steps, parts:
             [] if step % local_steps else [*range(parts)],
             "H = 8, 4 parts: 4 are due in one step."),
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
        _messages,
        [
            (lambda pieces: pieces,
             "From pieces of 7 bytes it makes 49 messages, not the 3 that were sent."),
        ],
        judge=_judge_messages,
    ),
    ("process_ring", 3): Task(
        "a function of rank, n, give and take",
        _barrier,
        [
            (lambda rank, n, give, take: None, "One goes when 1 of 4 are there."),
        ],
        judge=_judge_barrier,
    ),
}
