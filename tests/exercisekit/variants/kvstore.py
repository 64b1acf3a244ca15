"""Right answers to exercises of the part on the kvstore, written differently."""

import io
from bisect import bisect_left
from collections import defaultdict, deque
from functools import reduce
from heapq import heapify, heapreplace
from math import ceil, pi, sin

import numpy


def kvstore_by_hand_1_a():
    total, count = {}, defaultdict(int)

    def update(key, pushed, stored):
        total[key] = total.get(key, 0) + pushed
        count[key] += 1
        stored[:] = total[key] / count[key]

    return update


class kvstore_by_hand_1_b:
    """An object that can be called is an updater, too."""

    def __init__(self):
        self.seen = defaultdict(list)

    def __call__(self, key, pushed, stored):
        self.seen[key].append(pushed.copy())
        stored *= 0
        for array in self.seen[key]:
            stored += array / len(self.seen[key])


def kvstore_by_hand_3_a(gradient):
    rows = [i for i, row in enumerate(gradient) if any(x != 0 for x in row)]
    return rows, [gradient[i] for i in rows]


def kvstore_by_hand_3_b(gradient):
    """The last rows first: their order is not asked."""
    mask = abs(gradient).max(axis=1) > 0
    return numpy.flatnonzero(mask)[::-1], numpy.compress(mask, gradient, axis=0)[::-1]


def roles_keys_shards_2_a(size, num_servers):
    if size < 10**6:
        return [4 * size + 12, 8]
    ends = [int(size * i / num_servers + 0.5) for i in range(num_servers + 1)]
    pushes = [8 + 4 * (b - a) + 4 for a, b in zip(ends, ends[1:])]
    return pushes + [8 for _ in pushes]


def roles_keys_shards_2_b(size, num_servers):
    cuts = num_servers if size >= 1_000_000 else 1
    ends = numpy.floor(size / cuts * numpy.arange(cuts + 1) + 0.5).astype(int)
    return numpy.concatenate([4 * numpy.diff(ends) + 12, numpy.full(cuts, 8)])


def roles_keys_shards_4_a(sizes, num_servers):
    heap, servers = [(0, server) for server in range(num_servers)], {}
    heapify(heap)
    for key in sorted(range(len(sizes)), key=sizes.__getitem__, reverse=True):
        held, server = heap[0]
        heapreplace(heap, (held + sizes[key], server))
        servers[key] = server
    return [servers[key] for key in range(len(sizes))]


def roles_keys_shards_4_b(sizes, num_servers):
    """The other way round: the last server is filled first."""
    held, servers = numpy.zeros(num_servers), numpy.zeros(len(sizes), int)
    for key in numpy.argsort(sizes)[::-1]:
        server = num_servers - 1 - held[::-1].argmin()
        servers[key], held[server] = server, held[server] + sizes[key]
    return servers


def in_step_2_a(numbers, num_workers, b):
    """All but the last parts have the size rounded up."""
    size = ceil(len(numbers) / num_workers)
    return [
        [numbers[rank * size + i : rank * size + min(i + b, size)]
         for rank in range(num_workers)]
        for i in range(0, size, b)
    ]


def in_step_2_b(numbers, num_workers, b):
    parts = [deque(part.tolist()) for part in numpy.array_split(numbers, num_workers)]
    steps = []
    while any(parts):
        steps.append([[p.popleft() for _ in range(min(b, len(p)))] for p in parts])
    return steps


def in_step_3_a(pushes, num_workers):
    done, step_of = defaultdict(list), [0] * num_workers
    for worker, number in pushes:
        done[step_of[worker]].append(number)
        step_of[worker] += 1
    return [sum(step) for step in done.values() if len(step) == num_workers]


def in_step_3_b(pushes, num_workers):
    waiting, found = [deque() for _ in range(num_workers)], []
    for worker, number in pushes:
        waiting[worker].append(number)
        if all(waiting):
            found.append(sum(own.popleft() for own in waiting))
    return found


def out_of_step_2_a(steps, worker, bound):
    """Who is the slowest may go on in any case."""
    return all(steps[worker] - other < bound for other in steps)


def out_of_step_2_b(steps, worker, bound):
    after = numpy.array(steps)
    after[worker] += 1
    return numpy.ptp(after) <= bound or steps[worker] == min(steps)


def out_of_step_4_a(delay):
    return 2 * sin(pi / (4 * delay + 2))


def out_of_step_4_b(delay):
    """The largest root of wᵈ⁺¹ - wᵈ + lr has the size 1 at the limit."""
    rates = numpy.arange(1, 250) / 100

    def grows(lr):
        polynomial = [1, -1, *[0] * delay]
        polynomial[-1] += lr
        return max(abs(numpy.roots(polynomial))) > 1

    return rates[bisect_left([grows(lr) for lr in rates], True) - 1]


def compression_2_a(message, size, t):
    bits = numpy.unpackbits(numpy.frombuffer(message, "uint8")).reshape(-1, 2)
    return (t * (bits[:, 0] * (2.0 * bits[:, 1] - 1)))[:size]


def compression_2_b(message, size, t):
    stream, means = "".join(f"{byte:08b}" for byte in message), {"11": t, "10": -t}
    return [means.get(stream[2 * i : 2 * i + 2], 0.0) for i in range(size)]


def compression_5_a(t):
    kept = []

    def compress(gradient):
        kept[:] = kept or [0.0] * len(gradient)
        codes = []
        for i, x in enumerate(gradient):
            if -float("inf") < x < float("inf"):
                kept[i] += x
            sign = int(kept[i] >= t) - int(kept[i] <= -t)
            codes.append([0b00, 0b11, 0b10][sign])
            kept[i] -= sign * t
        return codes, numpy.array(kept)

    return compress


def compression_5_b(t):
    """The whole sum is checked: where it is not finite, it stays as it was."""
    state = {"left": None}

    def compress(gradient):
        left = numpy.zeros(len(gradient)) if state["left"] is None else state["left"]
        total = left + gradient
        total[~numpy.isfinite(total)] = left[~numpy.isfinite(total)]
        signs = numpy.sign(total) * (abs(total) >= t)
        state["left"] = total - t * signs
        return numpy.choose(signs.astype(int) + 1, [2, 0, 3]), state["left"]

    return compress


def seldom_2_a(step, exchange, share):
    return max(1, ceil(exchange * (1 - share) / (share * step)))


def seldom_2_b(step, exchange, share):
    low, high = 0, 1  # too few, and enough
    while exchange / (high * step + exchange) > share:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        enough = exchange / (middle * step + exchange) <= share
        low, high = (low, middle) if enough else (middle, high)
    return high


def seldom_4_a(step, local_steps, parts):
    """One after another, and around if there are more parts than steps."""
    return range(step % local_steps, parts, local_steps)


def seldom_4_b(step, local_steps, parts):
    """From the last on, some steps later: where the turns begin is not asked."""
    turns = [[] for _ in range(local_steps)]
    for part in range(parts):
        turns[-1 - part * local_steps // parts].append(part)
    return turns[(step + 3) % local_steps]


def process_ring_2_a(pieces):
    stream, found = io.BytesIO(b"".join(pieces)), []
    while len(head := stream.read(8)) == 8:
        text = stream.read(count := int(head.hex(), 16))
        if len(text) == count:
            found.append(text)
    return found


def process_ring_2_b(pieces):
    """Byte by byte, as they come."""

    def take(state, byte):
        found, head, text = state
        if len(head) < 8:
            head = head + bytes([byte])
        else:
            text = text + bytes([byte])
        if len(head) == 8 and len(text) == int.from_bytes(head, "big"):
            return [*found, text], b"", b""
        return found, head, text

    return reduce(take, b"".join(pieces), ([], b"", b""))[0]


def process_ring_3_a(rank, n, give, take):
    """A word goes around twice, from rank 0: all have come, and all know."""
    for word in (b"come", b"go") if n > 1 else ():
        if rank == 0:
            give(word)
        if rank or word == b"come":
            take()
        if rank and (rank < n - 1 or word == b"come"):
            give(word)


def process_ring_3_b(rank, n, give, take):
    """Each says how many in a row it knows of, until it is everybody."""
    known = 1
    while known < n:
        give(bytes([known]))
        known = max(known, 1 + take()[0])


def process_ring_5_a(rank, n, number, give, take):
    """The numbers travel together, by their ranks, until nothing new comes."""
    known, news = {rank: number}, {rank: number}
    ahead, behind = (rank + 1) % n, (rank - 1) % n
    while news:
        while True:
            try:
                give(ahead, news)
                break
            except ConnectionError:
                ahead = (ahead + 1) % n
        while True:
            try:
                came = take(behind)
                break
            except ConnectionError:
                behind = (behind - 1) % n
        news = {who: x for who, x in came.items() if who not in known}
        known.update(news)
    return sum(known.values())


def process_ring_5_b(rank, n, number, give, take):
    """Who is dead is passed over by a call of its own."""

    def around(other, step, act, *data):
        try:
            return act(other, *data)
        except ConnectionError:
            return around((other + step) % n, step, act, *data)

    numbers, message = {}, (rank, number)
    while message[0] not in numbers:
        numbers[message[0]] = message[1]
        around((rank + 1) % n, 1, give, message)
        message = around((rank - 1) % n, -1, take)
    return sum(numbers.values())
