"""Right answers to the part on data parallelism, written differently."""

import math
import queue
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy

from d2l_ext.data_parallel import traffic  # isort: split

from mxnet import np


def data_parallel_scratch_2_a(means, sizes):
    return float(numpy.average(means, weights=sizes))


def data_parallel_scratch_2_b(means, sizes):
    total = count = 0
    for i in range(len(means)):
        total, count = total + means[i] * sizes[i], count + sizes[i]
    return total / count


def data_parallel_scratch_4_a(n, speeds):
    """One for each, the others by the largest remainders."""
    parts = [n * speed / sum(speeds) for speed in speeds]
    sizes = [max(1, math.floor(part)) for part in parts]
    order = sorted(range(len(parts)), key=lambda i: sizes[i] - parts[i])
    for i in order[: max(0, n - sum(sizes))]:
        sizes[i] += 1
    while sum(sizes) > n:
        sizes[max(range(len(sizes)), key=sizes.__getitem__)] -= 1
    return sizes


def data_parallel_scratch_4_b(n, speeds):
    """Each example goes to the device that would be the first to be done with it."""
    sizes = [1 for _ in speeds]
    for _ in range(n - len(speeds)):
        ends = [(size + 1) / speed for size, speed in zip(sizes, speeds)]
        sizes[ends.index(min(ends))] += 1
    return tuple(sizes)


def allreduce_3_a(values, exchange):
    have = [0]
    left = [*range(1, len(values))]
    while left:
        pairs = [*zip(have, left)]
        arrived = exchange({pair: values[pair[0]] for pair in pairs})
        for pair in pairs:
            values[pair[1]] = arrived[pair]
        have, left = have + left[: len(pairs)], left[len(pairs) :]


def allreduce_3_b(values, exchange):
    """From the farthest on: down a tree of strides."""
    stride = 2 ** max(0, (len(values) - 1).bit_length() - 1)
    while stride and len(values) > 1:
        senders = range(0, len(values) - stride, 2 * stride)
        messages = {(i, i + stride): values[i] for i in senders}
        for (_, j), value in exchange(messages).items():
            values[j] = value
        stride //= 2


def allreduce_4_a(data, exchange):
    """Everybody sends to the one that is ahead of it, around the circle."""
    k = len(data)
    for bit in range(k.bit_length() - 1):
        copies = [array.copy() for array in data]
        arrived = exchange({(i, (i + 2**bit) % k): copies[i] for i in range(k)})
        for i, j in arrived:
            numpy.add(data[j], arrived[i, j], out=data[j])


def allreduce_4_b(data, exchange):
    distance = len(data) // 2
    while distance > 0:
        messages = {}
        for i in range(len(data)):
            partner = i - distance if i // distance % 2 else i + distance
            messages[i, partner] = numpy.array(data[i])
        for (_, partner), array in exchange(messages).items():
            data[partner][:] = data[partner] + array
        distance //= 2


def halving_2_a(i, k):
    found = []
    while k > 1:
        k //= 2
        found.append(i - k if i // k % 2 else i + k)
    return found


def halving_2_b(i, k):
    return [i ^ (k >> n) for n in range(1, k.bit_length())]


def halving_3_a(k, nbytes, alpha, beta):
    def seconds(way):
        if way != "double tree":
            return traffic.seconds(way, k, nbytes, alpha, beta)
        chunks = [2**e for e in range(14)]
        return min(traffic.seconds(way, k, nbytes, alpha, beta, chunks=c)
                   for c in chunks)

    return min(("tree", "ring", "halving", "double tree"), key=seconds)


def halving_3_b(k, nbytes, alpha, beta):
    best, least = None, math.inf
    tried = [("tree", 1), ("ring", 1), ("halving", 1)]
    tried += [("double tree", 1 << e) for e in range(14)]
    for way, chunks in tried:
        more = {"chunks": chunks} if way == "double tree" else {}
        took = traffic.seconds(way, k, nbytes, alpha, beta, **more)
        if took < least:
            best, least = way, took
    return best


def halving_4_a(data, exchange):
    """Ranges by device, cut in two at each step, and put together on the way back."""
    k, p = len(data), 1
    while 2 * p <= k:
        p *= 2
    if k > p:
        for (_, j), x in exchange({(i, i - p): data[i] for i in range(p, k)}).items():
            data[j] += x
    own, path, d = [(0, len(data[0]))] * p, [], p // 2
    while d:
        path.append((d, own))
        middle = [(a + b) // 2 for a, b in own]
        parts = [(m, b) if i & d else (a, m)
                 for i, ((a, b), m) in enumerate(zip(own, middle))]
        messages = {(i, i ^ d): data[i][slice(*parts[i ^ d])].copy() for i in range(p)}
        for (_, j), x in exchange(messages).items():
            data[j][slice(*parts[j])] += x
        own, d = parts, d // 2
    for d, before in reversed(path):
        messages = {(i, i ^ d): data[i][slice(*own[i])].copy() for i in range(p)}
        for (i, j), x in exchange(messages).items():
            data[j][slice(*own[i])] = x
        own = before
    if k > p:
        messages = {(i - p, i): data[i - p] for i in range(p, k)}
        for (_, j), x in exchange(messages).items():
            data[j][:] = x


def overlap_2_a(sizes, limit):
    buckets, bucket, held = [], [], 0
    for i in range(len(sizes) - 1, -1, -1):
        if bucket and held + sizes[i] > limit:
            buckets, bucket, held = [*buckets, sorted(bucket)], [], 0
        bucket.append(i)
        held += sizes[i]
    return [*buckets, sorted(bucket)]


def overlap_2_b(sizes, limit):
    if not sizes:
        return []
    start = len(sizes) - 1
    while start > 0 and sum(sizes[start - 1 :]) <= limit:
        start -= 1
    return [[*range(start, len(sizes))], *overlap_2_b(sizes[:start], limit)]


def overlap_3_a(ready, takes):
    """The last pause of the link decides: what starts there goes on without one."""
    return max(ready[i] + sum(takes[i:]) for i in range(len(ready))) - ready[-1]


def overlap_3_b(ready, takes):
    ends = [0]
    for i in range(len(ready)):
        waits = ready[i] - ends[-1]
        ends.append(ends[-1] + takes[i] + waits * (waits > 0))
    return ends[-1] - ready[len(ready) - 1]


def overlap_4_a(layers, backward, message, latency):
    ends = {}
    for n in range(1, layers + 1):
        now, left = 0, layers
        while left:
            count = min(n, left)
            left -= count
            now = max(now, (layers - left) * backward) + latency + count * message
        ends[n] = now
    return max(n for n in ends if ends[n] == min(ends.values()))


def overlap_4_b(layers, backward, message, latency):
    best = None
    for n in range(layers, 0, -1):
        sizes = [n] * (layers // n) + [layers % n] * (layers % n > 0)
        ready = numpy.cumsum(sizes) * backward
        after = numpy.cumsum([latency + size * message for size in sizes][::-1])[::-1]
        end = (ready + after).max()
        best = min(best or (end, n), (end, n), key=lambda pair: pair[0])
    return best[1]


def large_batches_2_a(ws, us, total):
    squares = total([numpy.array([(w**2).sum(), (u**2).sum()]) for w, u in zip(ws, us)])
    return [math.sqrt(w2 / u2) for w2, u2 in squares]


def large_batches_2_b(ws, us, total):
    lengths = []
    for parts in (us, ws):
        squares = total([numpy.linalg.norm(part) ** 2 for part in parts])
        lengths.append(numpy.sqrt(squares))
    return lengths[1] / lengths[0]


def large_batches_3_a(critical, overhead, speed):
    tried = numpy.geomspace(1e-3, 1e7, 20_001)
    return tried[numpy.argmin((1 + critical / tried) * (overhead + tried / speed))]


def large_batches_3_b(critical, overhead, speed):
    """Both growing terms are alike where B / speed is overhead · critical / B."""
    return math.sqrt(overhead * speed) * math.sqrt(critical)


def concise_3_a(sizes, speeds):
    longest = 0
    for i in range(len(sizes)):
        longest = max(longest, sizes[i] / speeds[i])
    return longest


def concise_3_b(sizes, speeds):
    return (numpy.array(sizes) / numpy.array(speeds)).max()


class concise_4_a:
    def __init__(self, weights, lr, batch):
        self.now, self.rate = numpy.array(weights), lr / batch

    def push(self, gradients):
        for gradient in gradients:
            self.now = self.now - self.rate * gradient

    def pull(self):
        return self.now.copy()


def concise_4_b(weights, lr, batch):
    """What has been pushed is kept, and the weights made when they are pulled."""

    class Pushed(list):
        def push(self, gradients):
            self.append(numpy.sum(gradients, axis=0))

        def pull(self):
            return start - lr / batch * sum(self)

    start = weights.copy()
    return Pushed()


def no_speed_up_2_a(losses):
    return np.stack(losses).mean().item()


def no_speed_up_2_b(losses):
    return sum(losses).asnumpy().tolist() / len(losses)


def no_speed_up_3_a(n, other):
    half = (n + other) // 2
    return (half, n - half)


def no_speed_up_3_b(n, other):
    sizes = [0, 0]
    for _ in range(n):
        sizes[sizes[0] > sizes[1] + other - 1] += 1
    return sizes


def no_speed_up_5_a(load, depth=2):
    """A pool of one thread, which is asked for a result more whenever one is taken."""
    pool = ThreadPoolExecutor(1)
    coming = deque(pool.submit(load) for _ in range(depth + 1))

    def take():
        first = coming.popleft()
        coming.append(pool.submit(load))
        return first.result()

    return take


def no_speed_up_5_b(load, depth=2):
    room, there = threading.Semaphore(depth + 1), queue.SimpleQueue()

    def work():
        failed = None
        while failed is None:
            room.acquire()
            result = None
            try:
                result = load()
            except Exception as error:  # noqa: BLE001 - it is passed on
                failed = error
            there.put((result, failed))

    def take():
        result, failed = there.get()
        if failed:
            raise failed
        room.release()
        return result

    thread = threading.Thread(target=work)
    thread.daemon = True
    thread.start()
    return take
