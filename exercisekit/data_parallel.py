"""Answers to exercises of the part on data parallelism."""

import contextlib
import queue
import threading
import time
from numbers import Number

import numpy

from d2l_ext.data_parallel import overlap

from .counts import ROUNDS, SENT, WAITS, counted
from .question import Question, Task, compared, raises, shown

# ---- data_parallel_scratch ----


def whole_mean(means, sizes):
    """The mean over all examples, from those of shards of the given sizes."""
    return sum(size * mean for mean, size in zip(means, sizes)) / sum(sizes)


def shares(n, speeds):
    """Examples for each device, in proportion to its speed, and at least one."""
    sizes = [max(1, int(n * speed / sum(speeds))) for speed in speeds]
    while sum(sizes) != n:
        missing = 1 if sum(sizes) < n else -1
        at = sizes.index(min(sizes) if missing > 0 else max(sizes))
        sizes[at] += missing
    return sizes


def _judge_shares(function):
    for n, speeds in (
        (5, [1]), (5, [1, 1]), (8, [99, 1]), (11, [1] * 4), (100, [4, 2, 1]),
        (256, [3, 1]),
    ):  # fmt: skip
        found = list(function(n, speeds))
        said = f"{n} examples, speeds {speeds}: {found}"
        if sum(found) != n:
            yield f"{said} are {sum(found)} examples."
        elif min(found) < 1:
            yield f"{said} leave a device without an example."
        elif any(abs(b - n * v / sum(speeds)) > 1 for b, v in zip(found, speeds)):
            yield f"{said} are not in proportion."


# ---- allreduce ----


def broadcast(values, exchange):
    """In each round, who has the value sends it on."""
    k, have = len(values), 1
    while have < k:
        pairs = [(i, i + have) for i in range(min(have, k - have))]
        for (_, j), value in exchange({(i, j): values[i] for i, j in pairs}).items():
            values[j] = value
        have *= 2


def _run_broadcast(function, counts, k):
    values = [7] + [None] * (k - 1)
    function(values, counts.exchange)
    return values


def _from_the_first(values, exchange):
    for j in range(1, len(values)):
        values[j] = exchange({(0, j): values[0]})[0, j]


def _down_a_line(values, exchange):
    for j in range(1, len(values)):
        values[j] = exchange({(j - 1, j): values[j - 1]})[j - 1, j]


def _at_once(values, exchange):
    for (_, j), value in exchange(
        {(0, j): values[0] for j in range(1, len(values))}
    ).items():
        values[j] = value


def swap_whole(data, exchange):
    """Recursive doubling: whole arrays, with ever farther partners; 2ⁿ devices."""
    distance = 1
    while distance < len(data):
        pairs = {(i, i ^ distance): x.copy() for i, x in enumerate(data)}
        for (_, j), x in exchange(pairs).items():
            data[j] += x
        distance *= 2


def _around(data, exchange):
    k = len(data)
    arrived = {((i - 1) % k, i): data[i - 1].copy() for i in range(k)}
    for _ in range(k - 1):
        exchange(arrived)
        for (_, j), x in arrived.items():
            data[j] += x
        arrived = {(j, (j + 1) % k): x for (_, j), x in arrived.items()}


def _run_sum(function, counts, k, size):
    # Whole numbers, too large for single precision.
    arrays = [numpy.arange(1, size + 1) * 10.0 ** (i % 9) for i in range(k)]
    with counts.memory(unit=8 * size):
        function(list(arrays), counts.exchange)
    return {f"device {i}": x for i, x in enumerate(arrays)}


# ---- halving


def partners(i, k):
    """With whom device i of k, a power of two, swaps while it halves."""
    return [i ^ 2**b for b in reversed(range(k.bit_length() - 1))]


def best(k, nbytes, alpha, beta):
    """Of tree, ring, halving and double tree, the one that takes least."""
    down, up = k.bit_length() - 1, (k - 1).bit_length()
    arrays = 2 * (1 - 1 / 2**down) + 2 * (up > down)
    took = {
        "tree": 2 * up * (alpha + nbytes * beta),
        "ring": 2 * (k - 1) * (alpha + nbytes / k * beta),
        "halving": 2 * up * alpha + arrays * nbytes * beta,
        "double tree": min(
            4 * (c + down - 1) * (alpha + nbytes / (2 * c) * beta)
            for c in (2**e for e in range(14))
        ),
    }
    return min(took, key=took.get)


def folded(data, exchange):
    """Halving and doubling; the devices beyond a power of two are folded."""
    p = 2 ** (len(data).bit_length() - 1)
    extra = range(p, len(data))
    for (_, j), x in exchange({(i, i - p): data[i].copy() for i in extra}).items():
        data[j] += x
    low, size, d = [0] * p, len(data[0]), p // 2
    while d:
        size //= 2
        keep = [low[i] + (size if i & d else 0) for i in range(p)]
        halves = {(i, i ^ d): data[i][keep[i ^ d] :][:size].copy() for i in range(p)}
        for (_, j), half in exchange(halves).items():
            data[j][keep[j] :][:size] += half
        low, d = keep, d // 2
    d = 1
    while d < p:
        parts = {(i, i ^ d): data[i][low[i] :][:size].copy() for i in range(p)}
        for (i, j), part in exchange(parts).items():
            data[j][low[i] :][:size] = part
        low, size, d = [min(low[i], low[i ^ d]) for i in range(p)], 2 * size, 2 * d
    for (_, j), x in exchange({(i - p, i): data[i - p].copy() for i in extra}).items():
        data[j][:] = x


def _tree(data, exchange):
    k, d, rows = len(data), 1, []
    while d < k:
        rows.append([(i + d, i) for i in range(0, k - d, 2 * d)])
        d *= 2
    for row in rows:
        for (_, j), x in exchange({(i, j): data[i].copy() for i, j in row}).items():
            data[j] += x
    for row in reversed(rows):
        for (_, j), x in exchange({(j, i): data[j].copy() for i, j in row}).items():
            data[j][:] = x


# ---- overlap ----


def _judge_fill(function):
    for sizes, limit in (
        ([3], 5), ([1, 1, 1], 3), ([1, 9, 1], 5), ([2, 1, 2], 6), ([4, 2, 3, 1, 5], 5),
    ):  # fmt: skip
        found = [list(bucket) for bucket in function(list(sizes), limit)]
        said = f"Sizes {sizes}, limit {limit}: {found}"
        right = overlap.fill_buckets(sizes, limit)
        full = [sum(sizes[i] for i in b) for b in found if len(b) > 1]
        if sorted(i for bucket in found for i in bucket) != list(range(len(sizes))):
            yield f"{said} does not have each parameter once."
        elif [i for b in reversed(found) for i in b] != list(range(len(sizes))):
            yield f"{said} does not begin with the last parameters, in order."
        elif any(size > limit for size in full):
            yield f"{said} has a bucket of {max(full)}."
        elif len(found) > len(right):
            yield f"{said} has {len(found)} buckets, and not {len(right)}."


def exposed(ready, takes):
    """How long messages, one after another, go on after the last is ready."""
    free = 0
    for start, seconds in zip(ready, takes):
        free = max(free, start) + seconds
    return free - ready[-1]


def best_bucket(layers, backward, message, latency):
    """How many layers to put into a bucket, so that the step ends soonest."""

    def end(n):
        stops = [min(stop, layers) for stop in range(n, layers + n, n)]
        counts = [stop - start for start, stop in zip([0, *stops], stops)]
        takes = [latency + count * message for count in counts]
        return exposed([stop * backward for stop in stops], takes)

    return min(reversed(range(1, layers + 1)), key=end)


# ---- large_batches ----


def ratio_of_chunks(ws, us, total):
    """‖w‖ / ‖u‖ on each device, of a layer in chunks: two numbers are summed."""
    squares = zip(total([float(w @ w) for w in ws]), total([float(u @ u) for u in us]))
    return [(w / u) ** 0.5 for w, u in squares]


def _run_ratios(function, counts, k, size):
    rng = numpy.random.RandomState(k)
    ws, us = counts.keep(list(rng.randn(k, size)), list(rng.randn(k, size)))
    total = counts.calls(
        "each device sends {} number{s}",
        lambda values: [sum(values) for _ in values],
        lambda values: numpy.size(values[0]),
    )
    return {f"device {i}": x for i, x in enumerate(function(ws, us, total))}


def _gathered(ws, us, total):
    k, n = len(ws), len(ws[0])

    def all_of(parts):
        wide = [numpy.zeros((k, n)) for _ in parts]
        for i, part in enumerate(parts):
            wide[i][i] = part
        return [numpy.linalg.norm(x) for x in total(wide)]

    return [w / u for w, u in zip(all_of(ws), all_of(us))]


def _mean_of_ratios(ws, us, total):
    norm = numpy.linalg.norm
    return [s / len(ws) for s in total([norm(w) / norm(u) for w, u in zip(ws, us)])]


def fastest(critical, overhead, speed):
    """Where (1 + critical/B)·(overhead + B/speed) is least."""
    return (critical * overhead * speed) ** 0.5


# ---- concise ----


def slowest(sizes, speeds):
    """Seconds of a step: a device needs its share divided by its speed."""
    return max(size / speed for size, speed in zip(sizes, speeds))


class Store:
    """A store of weights that devices push gradients to."""

    def __init__(self, weights, lr, batch):
        self.weights, self.lr, self.batch = weights.copy(), lr, batch

    def push(self, gradients):
        self.weights -= self.lr * sum(gradients) / self.batch

    def pull(self):
        return self.weights.copy()


def _run_store(make, counts, lr, batch):
    (weights,) = counts.keep(numpy.array([1.0, 2.0]))
    store = make(weights, lr, batch)
    gradients = counts.keep(numpy.array([4.0, 0.0]), numpy.array([4.0, 8.0]))
    store.push(list(gradients))
    first = store.pull()
    after_one = numpy.array(first)
    first += 100  # the reader's own
    store.push([numpy.array([1.0, 2.0])] * 3)
    return {"the first pull": after_one, "the second": store.pull()}


# ---- no_speed_up ----


def mean_loss(losses):
    """The mean of arrays of one number, for which Python waits once."""
    total = losses[0]
    for loss in losses[1:]:
        total = total + loss
    return float(total) / len(losses)


def _run_mean_loss(function, counts, n):
    from mxnet import np, npx  # when it is asked for: it takes seconds to load

    losses = counts.keep(*(np.array(float(i * i + 1)) for i in range(n)))
    npx.waitall()
    with counts.waits():
        found = function(list(losses))
    kind = "number" if isinstance(found, Number) else type(found).__name__
    return {"the type": kind, "the mean": found}


def both_end(n, other):
    """Shares of two equal devices, the second of which also has another job."""
    return [(n + other) // 2, (n - other) // 2]


def ahead(load, depth=2):
    """A function that gives what `load` returns, in order, loaded in a thread."""
    ready = queue.Queue(depth)

    def work():
        while True:
            try:
                ready.put((load(), None))
            except Exception as error:  # noqa: BLE001 - it is passed on
                return ready.put((None, error))

    def take():
        result, error = ready.get()
        if error is not None:
            raise error
        return result

    threading.Thread(target=work, daemon=True).start()
    return take


def _ahead_without_errors(load, depth=2):
    results = queue.Queue(depth)

    def work():
        with contextlib.suppress(ZeroDivisionError):  # as if the thread had ended
            while True:
                results.put(load())

    threading.Thread(target=work, daemon=True).start()
    return results.get


def _loads_first(load, depth=2):
    ready = [load() for _ in range(depth)]
    return lambda: ready.pop(0) if ready else load()


def _soon(true, seconds):
    """Whether `true()` is so within `seconds`."""
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.005)
    return true()


def _try_ahead(function, depth, told):
    """Take what five calls of a `load` give, of which the last raises."""
    called = []

    def load():
        called.append(len(called))
        return called[-1] if len(called) < 8 else 1 // 0

    got, said = [], f"depth {depth}: "
    try:
        take = function(load, depth)
        got.append(take())
        if not _soon(lambda: len(called) > depth, 0.3):
            return told(f"{said}after one result, load was called {len(called)} "
                        "times, and not ahead.")  # fmt: skip
        if _soon(lambda: len(called) > depth + 2, 0.05):
            return told(f"{said}load was called {len(called)} times when one result "
                        "was taken.")  # fmt: skip
        for _ in range(7):
            got.append(take())
    except ZeroDivisionError:
        right = got == [*range(7)]
        return told("" if right else f"{said}the results are {got}, and then an error.")
    except Exception as error:  # noqa: BLE001 - the learner's code may raise anything
        return told(f"{said}it {raises(error)}")
    return told(f"{said}the results are {shown(got[:7])}, and nothing is raised.")


def _judge_ahead(function):
    for depth in (2, 1):
        said = queue.Queue()
        given = (function, depth, said.put)
        threading.Thread(target=_try_ahead, args=given, daemon=True).start()
        try:
            problem = said.get(timeout=1)
        except queue.Empty:
            problem = f"depth {depth}: where load raises an error, it waits for ever."
        if problem:
            return problem
    return ""


QUESTIONS = {
    ("data_parallel_scratch", 1): Question(
        "the number of images that each device gets",
        16,
        [
            (64, "The minibatch is divided, and does not grow with the devices."),
            (32, "That is the share on two devices."),
        ],
    ),
    ("data_parallel_scratch", 2): Task(
        "a function `whole_mean(means, sizes)`",
        whole_mean,
        [
            ("size * mean for", "mean for",
             "The sizes do not weigh the means: a mean of sums needs sums."),
            ("sum(size * mean for mean, size in zip(means, sizes)) / sum(sizes)",
             "sum(means) / len(means)",
             "A mean of means is right only where all shards are equal."),
            (" / sum(sizes)", "",
             "That is the sum over the examples: divide by how many there are."),
            (" / sum(sizes)", " / len(sizes)",
             "That divides by the number of shards, and not of examples."),
            ("zip(means, sizes)", "zip(means, sizes[::-1])",
             "Each mean goes with the size of its own shard."),
        ],
        judge=compared(whole_mean, [
            ([5.0], [2]), ([1.0, 5.0], [3, 1]), ([2.0, 4.0], [2, 2]),
            ([1.0, 2.0, 4.0], [1, 5, 0]),
        ], tolerance=1e-9),
    ),
    ("data_parallel_scratch", 4): Task(
        "a function `shares(n, speeds)`",
        shares,
        [
            (lambda n, speeds: [n // len(speeds)] * len(speeds),
             "Each device gets as many as the others, whatever its speed."),
            (lambda n, speeds: [int(n * v / sum(speeds)) for v in speeds],
             "Rounding down loses examples: hand out what is left over."),
            (lambda n, speeds: [round(n * v / sum(speeds)) for v in speeds],
             "Numbers that are rounded one by one need not add up to n."),
            (lambda n, speeds: [max(1, int(n * v / sum(speeds))) for v in speeds],
             "With at least one example for each, the sum is not n any more: correct "
             + "it, up or down."),
            (lambda n, speeds: [
                 *(n * v // sum(speeds) for v in speeds[:-1]),
                 n - sum(n * v // sum(speeds) for v in speeds[:-1]),
             ],
             "The last device gets all that is left over. Give one example each to "
             + "several."),
            (lambda n, speeds: [
                 n - sum(n * v // sum(speeds) for v in speeds[1:]),
                 *(n * v // sum(speeds) for v in speeds[1:]),
             ],
             "The first device gets all that is left over, and a slow one may go "
             + "without any."),
            (lambda n, speeds: shares(n, [1 / v for v in speeds]),
             "The slow ones get most: that is in proportion to the time of an "
             + "example, and not to the speed."),
        ],
        judge=_judge_shares,
    ),
    ("allreduce", 1): Question(
        "the number of rounds",
        14,
        [
            (7, "That is the reduce-scatter. The allgather takes as many again."),
            (16, "A chunk is complete after k - 1 rounds, not after k."),
            (6, "That is the tree."),
            (8, "It takes two halves, each of k - 1 rounds."),
        ],
    ),
    ("allreduce", 2): Question(
        "a number of bytes",
        22 * 50e-6 / (6.125 * 1e-9),
        [
            (26 * 50e-6 / (2.125 * 1e-9), "The tree's messages also run backwards."),
            (7 * 50e-6 / (7.0625 * 1e-9), "The ring has two halves of 15 rounds."),
            (179.6, "That is in kilobytes."),
        ],
        tolerance=0.01,
    ),
    ("allreduce", 3): Task(
        "a function `broadcast(values, exchange)`",
        broadcast,
        [
            (_from_the_first,
             "Only the first device sends. Who has the value can send it on, in the "
             + "same round."),
            (_down_a_line,
             "Each device waits for the one before it, as in a line: after a round, "
             + "twice as many could have the value."),
            (_at_once,
             "In a round a device sends at most one message: who else has the value?"),
            ("min(have, k - have)", "have",
             "In the last round fewer devices are left than could send: that message "
             + "goes beyond the end."),
            ("while have < k", "while 2 * have <= k",
             "That ends too early where the number of devices is no power of two."),
            ("(i, i + have)", "(i, i + have - 1)",
             "That is one too few: device 0 would send the first message to itself."),
            ("values[j] = value", "pass",
             "Exchange only delivers: store what arrives, or nobody has it."),
        ],
        judge=counted(broadcast, _run_broadcast, "{} devices",
                      [(1,), (2,), (3,), (5,), (8,)], about=[ROUNDS]),
    ),
    ("allreduce", 4): Task(
        "a function `swap_whole(data, exchange)`",
        swap_whole,
        [
            ("x.copy()", "x",
             "A device that sends its array, and not a copy, sends what its partner "
             + "has changed in the same round."),
            ("data[j] += x", "data[j] = data[j] + x",
             "That makes a new array, and leaves the device's own as it was: the sum "
             + "has to be in place."),
            ("data[j] += x", "data[j][:] = x",
             "What arrives is added to what is there. This overwrites it."),
            ("x.copy()", "x.astype('float32')",
             "Single precision on the way: the large numbers lose their last digits."),
            ("< len(data)", "< len(data) // 2",
             "A round is missing: the farthest partners, half of the devices apart, "
             + "never meet."),
            ("distance *= 2", "distance += 1",
             "The distances double from round to round: with others, some numbers "
             + "are added twice and some never."),
            ("data[j] += x", "data[j] += x; data[j] /= 2",
             "That is a mean. The sum is asked for, as the gradients need it."),
            (_around,
             "A ring of whole arrays sends on what arrived. Send all that you have "
             + "by now: in each round it is a sum of twice as many."),
            (_tree,
             "That is a tree, up and down again. Both partners of a pair can send in "
             + "the same round."),
        ],
        judge=counted(swap_whole, _run_sum, "{} devices, arrays of {:,}",
                      [(1, 3), (2, 1), (4, 5), (8, 40_000)], about=[ROUNDS]),
    ),
    ("halving", 1): Question(
        "the number of rounds",
        24,
        [
            (22, "3,000 is no power of two: the devices beyond 2,048 are folded."),
            (12, "That is one way. The sum has to go back."),
            (11, "That is the halving of 2,048. Then they double, and 952 are left."),
            (5998, "That is the ring."),
        ],
    ),
    ("halving", 2): Task(
        "a function `partners(i, k)`",
        partners,
        [
            ("reversed(range(k.bit_length() - 1))", "range(k.bit_length() - 1)",
             "That is the order of doubling. Halving begins with the farthest."),
            ("i ^ 2**b", "(i + 2**b) % k",
             "A swap goes both ways: whom you send to has to send to you."),
            ("i ^ 2**b", "i + 2**b",
             "Half of the devices swap with one before them, and nobody with one "
             + "beyond the end."),
            ("i ^ 2**b", "i ^ b",
             "That is the number of the bit. The distance is a power of two."),
            ("k.bit_length() - 1)", "k.bit_length())",
             "The farthest partner is half of the devices away: that is a round too "
             + "many."),
            ("k.bit_length() - 1)", "k.bit_length() - 2)",
             "A round is missing: log₂ of the number of devices are needed."),
            ("reversed(range(k.bit_length() - 1))",
             "reversed(range(1, k.bit_length() - 1))",
             "The last round, with the neighbour, is missing."),
        ],
        judge=compared(partners, [(0, 1), (0, 2), (1, 2), (1, 4), (5, 8), (10, 16)]),
    ),
    ("halving", 3): Task(
        "a function `best(k, nbytes, alpha, beta)`",
        best,
        [
            (lambda k, nbytes, alpha, beta: "ring",
             "A ring has few bytes, and a round for each device, twice: with many "
             + "devices that is what it takes."),
            ("+ 2 * (up > down)", "",
             "Where the devices are no power of two, the fold sends an array there "
             + "and one back."),
            ("min(took", "max(took", "That is the one that takes most."),
            ("2 * up * (alpha + nbytes * beta)", "up * (alpha + nbytes * beta)",
             "The tree goes up, and then down again."),
            ("(k - 1) * (alpha + nbytes / k * beta)",
             "(k - 1) * (alpha + nbytes * beta)",
             "A message of the ring is a chunk, and not the array."),
            ("for e in range(14)", "for e in range(1)",
             "One chunk makes the double tree wait for whole arrays. Try more chunks."),
        ],
        judge=compared(best, [
            (5, 4096, 1e-6, 1e-9), (4, 4e6, 1e-5, 1e-9),
            (3, 1e6, 1e-6, 1e-9), (8, 1e5, 1e-5, 1e-9), (6, 1e6, 1e-6, 1e-9),
            (1000, 1e3, 1e-5, 1e-10), (1024, 1e8, 1e-5, 1e-10),
            (1000, 1e8, 1e-5, 1e-10), (1000, 1e10, 1e-5, 1e-10),
        ]),
    ),
    ("halving", 4): Task(
        "a function `folded(data, exchange)`",
        folded,
        [
            (_tree,
             "That is a tree, and whoever has two children sends two whole arrays "
             + "down and one up: halve the arrays."),
            (_around,
             "A ring of whole arrays takes a round for each other device. Send halves "
             + "of what is left."),
            ("2 ** (len(data).bit_length() - 1)", "len(data)",
             "Halves need partners for all: where the devices are no power of two, "
             + "those beyond it are folded first."),
            ("extra = range(p, len(data))", "extra = range(0)",
             "The devices beyond the power of two take no part: their numbers are "
             + "missing."),
            ("data[j][keep[j] :][:size] += half", "data[j][keep[j] :][:size] = half",
             "While they halve, what arrives is added to one's own part. This "
             + "overwrites it."),
            ("data[j][low[i] :][:size] = part", "data[j][low[i] :][:size] += part",
             "While they double, parts arrive that are complete. Adding counts what "
             + "was there before once more."),
            ("    data[j][:] = x", "    data[j] += x",
             "The folded devices get the whole sum back. Adding counts their own "
             + "numbers twice."),
            ("range(p)}\n        for (_, j), half",
             "range(p) if i & d}\n        for (_, j), half",
             "In a round of halving both partners send: each the half that the other "
             + "keeps."),
        ],
        judge=counted(folded, _run_sum, "{} devices, arrays of {:,}",
                      [(1, 1), (2, 2), (3, 6), (4, 4), (5, 12), (6, 40_000)],
                      about=[ROUNDS, SENT]),
    ),
    ("overlap", 1): Question(
        "the share, from 0 to 1",
        0.875,
        [
            (15 / 16, "A bucket has two layers, and waits for both."),
            (1, "The last bucket is full only when backward has ended."),
            (0.125, "That is the share of the last bucket."),
        ],
    ),
    ("overlap", 2): Task(
        "a function `fill(sizes, limit)`",
        overlap.fill_buckets,
        [
            (lambda sizes, limit: [[i] for i in reversed(range(len(sizes)))],
             "Each parameter has a bucket of its own: the small ones can share."),
            (lambda sizes, limit: [list(range(len(sizes)))],
             "All are in one bucket, whatever the limit: nothing is sent before "
             + "backward ends."),
            ("reversed(range(len(sizes)))", "range(len(sizes))",
             "Backward makes the last layer's gradient first: so go from the last "
             + "parameter to the first."),
            ("insert(0, i)", "append(i)",
             "Within a bucket the numbers rise: a new one goes in front."),
            ("sizes[i] > room", "sizes[i] >= room",
             "What fills the bucket to its limit still fits."),
            ("room -= sizes[i]", "pass",
             "What is in the bucket already takes room, too."),
            ("room = limit", "room = limit - sizes[i]",
             "The first parameter of each bucket is deducted twice."),
        ],
        judge=_judge_fill,
    ),
    ("overlap", 3): Task(
        "a function `exposed(ready, takes)`",
        exposed,
        [
            (lambda ready, takes: sum(takes),
             "That is the whole exchange. Part of it is hidden behind backward."),
            ("max(free, start)", "free",
             "A message cannot start before its bucket is ready."),
            ("max(free, start)", "start",
             "There is one link: a message waits for the one before it. Only then is "
             + "the last bucket's time all."),
            (" - ready[-1]", "",
             "That is when the exchange ends. How long is it since backward ended?"),
            ("ready[-1]", "ready[0]",
             "That counts from the first bucket on. Backward ends with the last."),
            ("max(free, start) + seconds", "max(free, start + seconds)",
             "A message that waits for the link still takes its time after that."),
        ],
        judge=compared(exposed, [
            ([2], [3]), ([1, 2, 3], [0.5, 0.5, 0.5]), ([1, 2, 3], [2, 2, 2]),
            ([1, 5, 6], [9, 1, 2]), ([1, 2, 9], [1, 1, 0.5]),
        ], tolerance=1e-9),
    ),
    ("overlap", 4): Task(
        "a function `best(layers, backward, message, latency)`",
        best_bucket,
        [
            (lambda layers, backward, message, latency: layers,
             "One bucket hides nothing. That is best only where latency is all."),
            (lambda layers, backward, message, latency: 1,
             "Each bucket pays the latency: with many of them the link is the slow "
             + "one."),
            ("reversed(range(1, layers + 1))", "range(1, layers + 1)",
             "Of several that are best, the largest is asked for."),
            ("range(1, layers + 1)", "range(1, layers)",
             "All layers in one bucket is a way, too."),
            ("latency + count * message", "latency + n * message",
             "The last bucket may have fewer layers, and then takes less."),
            ("latency + count * message", "count * message",
             "Each bucket takes the latency, however small it is."),
            ("latency + count * message", "count * (latency + message)",
             "The latency is paid once for a bucket, and not for each layer."),
            ("min(reversed", "max(reversed", "That is where the step ends last."),
        ],
        judge=compared(best_bucket, [
            (1, 10, 4, 3), (3, 10, 4, 0), (3, 10, 4, 12), (12, 10, 4, 12),
            (10, 10, 12, 30), (5, 1, 4, 4), (7, 3, 5, 6), (12, 10, 4, 1000),
        ]),
    ),
    ("large_batches", 1): Question(
        "the rate",
        0.096,
        [
            (0.08, "Number 5 is the sixth step."),
            (0.32, "That is the rate after the warm-up."),
            (0.02, "That is the rate of the small batch."),
        ],
        tolerance=1e-6,
    ),
    ("large_batches", 2): Task(
        "your function ratios",
        ratio_of_chunks,
        [
            (lambda ws, us, total: [
                 numpy.linalg.norm(w) / numpy.linalg.norm(u) for w, u in zip(ws, us)
             ],
             "Each device takes the lengths of its own chunks, and not the layer's."),
            (_mean_of_ratios,
             "A mean of the chunks' ratios is not the ratio of the layer's lengths."),
            (_gathered,
             "It is right, but whole chunks are sent. What of a chunk does a length "
             + "need?"),
            ("[(w / u) ** 0.5 for", "[w / u for",
             "These are squares of lengths: the root is missing."),
            ("float(w @ w) for w in ws", "float(w @ w) ** 0.5 for w in ws",
             "Lengths do not add up: their squares do."),
            ("total([float(u @ u) for u in us])", "[float(u @ u) for u in us]",
             "The updates' length is each device's own: sum that, too."),
            ("(w / u)", "(u / w)", "That is upside down: ‖w‖ over ‖u‖."),
            ("float(w @ w) for", "float(w.sum() ** 2) for",
             "The square of a sum is not the sum of the squares."),
        ],
        judge=counted(ratio_of_chunks, _run_ratios, "{} devices, chunks of {}",
                      [(2, 3), (5, 7)], tolerance=1e-9,
                      about=["each device sends {} number{s}"]),
    ),
    ("large_batches", 3): Task(
        "your function fastest",
        fastest,
        [
            (lambda critical, overhead, speed: critical,
             "That saves examples. What a step costs without examples counts, too."),
            (lambda critical, overhead, speed: overhead * speed,
             "There the overhead takes as long as the examples. How many steps are "
             + "needed counts, too."),
            (" ** 0.5", "", "The root is missing: that is the square of the batch."),
            ("critical * overhead * speed", "critical * overhead / speed",
             "Is `speed` in seconds or in examples a second? A faster device wants a "
             + "larger batch."),
            ("critical * overhead * speed", "critical * speed / overhead",
             "The larger the overhead, the larger is the best batch."),
            ("(critical * overhead * speed) ** 0.5", "critical + overhead * speed",
             "The product of the steps and seconds has both terms, and the least is "
             + "where they balance."),
        ],
        judge=compared(fastest, [
            (1, 1, 4), (64, 0.01, 6400), (1000, 0.1, 1000), (50, 2, 3),
        ], tolerance=0.02),
    ),
    ("concise", 1): Question(
        "how many times too small a step is, about",
        2,
        [
            (1, "That would be so if somebody added up the gradients."),
            (0.5, "It is half as large as it should be: how many times too small?"),
            (4, "The gradient is divided by the whole minibatch once, not twice."),
        ],
    ),
    ("concise", 3): Task(
        "a function `slowest(sizes, speeds)`",
        slowest,
        [
            (lambda sizes, speeds: sum(sizes) / sum(speeds),
             "That is so where all end together. The step ends with the last."),
            (lambda sizes, speeds: max(sizes) / min(speeds),
             "The largest share need not be on the slowest device."),
            ("max(", "min(", "That is the first to end. The others still work."),
            ("max(", "sum(", "The devices work at the same time, and not in turns."),
            ("size / speed", "size * speed",
             "A fast device needs less time: divide by the speed."),
            ("max(size / speed for size, speed in zip(sizes, speeds))",
             "sizes[-1] / speeds[-1]", "Any device may be the last to end."),
            ("zip(sizes, speeds)", "zip(sorted(sizes), sorted(speeds))",
             "Each device has its own share, in the order given."),
        ],
        judge=compared(slowest, [
            ([4], [2]), ([5, 0], [1, 1]), ([57, 29, 14], [4, 2, 1]),
            ([34, 33, 33], [4, 2, 1]), ([1, 8], [8, 2]),
        ]),
    ),
    ("concise", 4): Task(
        "a class `Store(weights, lr, batch)`",
        Store,
        [
            ("/ self.batch", "",
             "The sums are divided by the number of examples: the mean is asked for."),
            ("sum(gradients) / self.batch",
             "sum(gradients) / self.batch / len(gradients)",
             "The batch is that of all devices: do not divide by their number, too."),
            ("sum(gradients)", "gradients[0]",
             "Only the first device's gradient is used: sum them."),
            ("self.weights -=", "self.weights +=",
             "A step goes against the gradient."),
            ("self.lr * sum", "sum", "The rate is missing."),
            ("weights.copy(), lr", "weights, lr",
             "The store has to have its own copy: it changes the weights it is given."),
            ("return self.weights.copy()", "return self.weights",
             "A pull hands out the store's own array: who writes into it changes the "
             + "store."),
            ("self.weights -= self.lr * sum(gradients) / self.batch",
             "self.pushed = gradients",
             "Nothing happens at a push. The update is the store's."),
        ],
        judge=counted(Store, _run_store, "lr {}, batch {}", [(0.5, 4), (0.1, 7)],
                      tolerance=1e-9),
    ),
    ("no_speed_up", 1): Question(
        "the number of waits in a step",
        1,
        [
            (2, "A single call waits for all devices."),
            (0, "`npx.waitall()` is itself a wait."),
        ],
    ),
    ("no_speed_up", 2): Task(
        "a function `mean_loss(losses)`",
        mean_loss,
        [
            (lambda losses: sum(float(loss) for loss in losses) / len(losses),
             "`float` waits for each loss, as `asnumpy` does: add the arrays, and ask "
             + "for one number."),
            ("float(total) / len(losses)", "total / len(losses)",
             "That is an array still. A Python number has to be waited for, once."),
            ("float(total)", "float(total.copy().wait_to_read() or total)",
             "`float` waits by itself: another wait before it adds nothing."),
            ("total + loss", "total.__iadd__(loss)",
             "Adding in place (+=) writes into the first of the losses."),
            (" / len(losses)", "", "That is the sum."),
            ("losses[1:]", "losses[1:-1]", "The last loss is left out."),
        ],
        judge=counted(mean_loss, _run_mean_loss, "{} losses", [(1,), (2,), (7,)],
                      about=[WAITS], tolerance=1e-6),
    ),
    ("no_speed_up", 3): Task(
        "a function `both_end(n, other)`",
        both_end,
        [
            (lambda n, other: [n // 2, n // 2],
             "Device 1 has the other job as well, and ends later by that."),
            (lambda n, other: [(n - other) // 2, (n + other) // 2],
             "The busy device gets more. Which one is it?"),
            (lambda n, other: [n - other, other],
             "That is right for one pair of numbers: when do both end?"),
            ("(n - other) // 2]", "n // 2]",
             "These are more than n examples: what one gets more the other gets less."),
            ("[(n + other) // 2, (n - other) // 2]", "[n // 2 + other, n // 2 - other]",
             "The whole job is moved over. Half of it makes them equal."),
            ("[(n + other) // 2,", "[n // 2,",
             "The examples that the busy device is spared go to the other one."),
        ],
        judge=compared(both_end, [(2, 0), (3, 1), (64, 0), (256, 128), (100, 98)]),
    ),
    ("no_speed_up", 5): Task(
        "a function `ahead(load, depth)`",
        ahead,
        [
            ("raise error", "return error",
             "The error comes as if it were a result: raise it where it is taken."),
            ("raise error", "raise RuntimeError(str(error))",
             "What is raised is another error: let the loop see the one of load."),
            ("queue.Queue(depth)", "queue.Queue()",
             "Without a limit it loads all that there is, and memory fills up."),
            (_loads_first,
             "The first results are loaded ahead, and nothing after them: a thread "
             + "has to go on."),
            (lambda load, depth=2: load,
             "Each result is loaded when it is asked for, while the devices wait."),
            (_ahead_without_errors,
             "The thread ended with the error, and nobody was told: put it into the "
             + "queue."),
        ],
        judge=_judge_ahead,
    ),
}
