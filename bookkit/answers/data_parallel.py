"""Answers to exercises of the part on data parallelism."""

import contextlib
import queue
import threading
import time

import numpy

from d2l_ext.data_parallel import overlap

from .counts import ROUNDS, SENT, counted
from .question import Question, Task, compared

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
    for n, speeds in ((256, [3, 1]), (5, [1, 1]), (100, [4, 2, 1]), (8, [99, 1])):
        found = list(function(n, speeds))
        said = f"{n} examples, speeds {speeds}: {found}"
        if sum(found) != n:
            return f"{said} are {sum(found)} examples."
        if min(found) < 1:
            return f"{said} leave a device without an example."
        if any(abs(b - n * v / sum(speeds)) > 1 for b, v in zip(found, speeds)):
            return f"{said} are not in proportion."
    return ""


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


def _judge_partners(function):
    for i, k in ((0, 2), (1, 4), (5, 8), (10, 16)):
        found, right = list(function(i, k)), partners(i, k)
        if found != right:
            return f"Device {i} of {k} swaps with {right}, and not with {found}."
    return ""


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


def _judge_best(function):
    for k, nbytes in ((1024, 1e8), (1000, 1e3), (1000, 1e8), (1000, 1e10)):
        found, right = function(k, nbytes, 1e-5, 1e-10), best(k, nbytes, 1e-5, 1e-10)
        if found != right:
            said = f"{k} devices, {nbytes:,.0f} bytes, 10 µs, 10 GB/s"
            return f"{said}: {right} takes least, and not {found}."
    return ""


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
    for sizes, limit in (([4, 2, 3, 1, 5], 5), ([1, 9, 1], 5), ([1, 1, 1], 3)):
        found = [list(bucket) for bucket in function(list(sizes), limit)]
        said = f"Sizes {sizes}, limit {limit}: {found}"
        if sorted(i for bucket in found for i in bucket) != list(range(len(sizes))):
            return f"{said} does not have each parameter once."
        if found[0][-1] != len(sizes) - 1 or any(b != sorted(b) for b in found):
            return f"{said} does not begin with the last parameters, in order."
        full = [sum(sizes[i] for i in b) for b in found if len(b) > 1]
        if any(size > limit for size in full):
            return f"{said} has a bucket of {max(full)}."
        right = overlap.fill_buckets(sizes, limit)
        if found != right:
            return f"{said}; {len(right)} buckets, from the last on, are {right}."
    return ""


def exposed(ready, takes):
    """How long messages, one after another, go on after the last is ready."""
    free = 0
    for start, seconds in zip(ready, takes):
        free = max(free, start) + seconds
    return free - ready[-1]


def _judge_exposed(function):
    for ready, takes in (([1, 2, 3], [0.5] * 3), ([1, 2, 3], [2] * 3)):
        found, right = function(ready, takes), exposed(ready, takes)
        if abs(found - right) > 1e-9:
            return f"Ready at {ready}, taking {takes}: {found:g}, and not {right:g}."
    return ""


def best_bucket(layers, backward, message, latency):
    """How many layers to put into a bucket, so that the step ends soonest."""

    def end(n):
        stops = [min(stop, layers) for stop in range(n, layers + n, n)]
        counts = [stop - start for start, stop in zip([0, *stops], stops)]
        takes = [latency + count * message for count in counts]
        return exposed([stop * backward for stop in stops], takes)

    return min(reversed(range(1, layers + 1)), key=end)


def _judge_best_bucket(function):
    for case in ((12, 10, 4, 0), (12, 10, 4, 12), (10, 10, 12, 30), (12, 10, 4, 1000)):
        found, right = function(*case), best_bucket(*case)
        if found != right:
            return f"best{case}: {found} layers in a bucket, and not {right}."
    return ""


# ---- large_batches ----


def ratio_of_chunks(ws, us, total):
    """‖w‖ / ‖u‖ on each device, of a layer in chunks: two numbers are summed."""
    squares = zip(total([float(w @ w) for w in ws]), total([float(u @ u) for u in us]))
    return [(w / u) ** 0.5 for w, u in squares]


def _judge_ratio_of_chunks(function):
    sent = []

    def total(values):
        sent.append(sum(numpy.size(value) for value in values))
        return [sum(values) for _ in values]

    chunks = [numpy.array([3.0, 0.0]), numpy.array([0.0, 4.0])]
    found = [*function(chunks, [chunks[1] / 2, chunks[0]], total)]
    if len(found) != 2 or any(abs(x - 5 / 13**0.5) > 1e-9 for x in found):
        ratios = ", ".join(f"{x:.3f}" for x in found)
        return f"Lengths 5 and 3.606, on two devices: the ratios are {ratios}."
    each = sum(sent) // 2
    return f"Each device sends {each} numbers; 2 are enough." if each > 2 else ""


def fastest_batch(critical, overhead, speed):
    """Where (1 + critical/B)·(overhead + B/speed) is least."""
    return (critical * overhead * speed) ** 0.5


def _judge_fastest_batch(function):
    for case in ((64, 0.01, 6400), (1000, 0.1, 1000)):
        found, right = function(*case), fastest_batch(*case)
        if not abs(found / right - 1) < 0.02:
            return f"Case {case}: {found:g} examples, and not {right:g}."
    return ""


# ---- concise ----


def slowest(sizes, speeds):
    """Seconds of a step: a device needs its share divided by its speed."""
    return max(size / speed for size, speed in zip(sizes, speeds))


def _judge_slowest(function):
    for sizes, speeds in (([34, 33, 33], [4, 2, 1]), ([57, 29, 14], [4, 2, 1])):
        found, right = function(sizes, speeds), slowest(sizes, speeds)
        if abs(found - right) > 1e-9:
            said = f"Shares {sizes}, speeds {speeds}: {found:.3g} s"
            return f"{said}, and not {right:.3g} s."
    return ""


class Store:
    """A store of weights that devices push gradients to."""

    def __init__(self, weights, lr, batch):
        self.weights, self.lr, self.batch = weights.copy(), lr, batch

    def push(self, gradients):
        self.weights -= self.lr * sum(gradients) / self.batch

    def pull(self):
        return self.weights.copy()


def _averaging_store(weights, lr, batch):
    return Store(weights, lr, batch=batch // 2)  # by a device's share


def _judge_store(make):
    weights = numpy.array([1.0, 2.0])
    store = make(weights, 0.5, 4)
    store.push([numpy.array([4.0, 0.0]), numpy.array([4.0, 8.0])])
    found = numpy.asarray(store.pull()).tolist()
    if found != [0.0, 1.0]:
        return ("Gradients [4, 0] and [4, 8], lr 0.5, batch 4: [1, 2] becomes "
                f"{found}, and not [0.0, 1.0].")  # fmt: skip
    return "" if weights.tolist() == [1.0, 2.0] else "It changes the first weights."


# ---- no_speed_up ----


def both_end(n, other):
    """Shares of two equal devices, the second of which also has another job."""
    return [(n + other) // 2, (n - other) // 2]


def _judge_both_end(function):
    for n, other in ((256, 128), (64, 0), (100, 98)):
        found = list(function(n, other))
        said = f"{n} examples and a job of {other}: {found} are"
        if sum(found) != n:
            return f"{said} {sum(found)} examples."
        if found[0] != found[1] + other:
            return f"{said} {[found[0], found[1] + other]} with it."
    return ""


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


def _judge_ahead(function):
    called, said = [], queue.Queue()

    def load():
        called.append(len(called))
        return called[-1] if len(called) < 5 else 1 // 0

    def take_all():
        got = []
        try:
            take = function(load, 2)
            got = [take(), take()]
            time.sleep(0.2)
            if len(called) < 3:
                return said.put(f"After two results, load was called {len(called)} "
                                "times, and not ahead.")  # fmt: skip
            got += [take() for _ in range(3)]
        except ZeroDivisionError:
            return said.put("" if got == [0, 1] else f"The results are {got}.")
        except Exception as error:  # noqa: BLE001 - the learner's code may raise anything
            return said.put(error)
        return said.put(f"The results are {got}, and nothing is raised.")

    threading.Thread(target=take_all, daemon=True).start()
    try:
        problem = said.get(timeout=2)
    except queue.Empty:
        return "Where load raises an error, the loop waits for ever."
    if isinstance(problem, Exception):
        raise problem
    return problem


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
             "256 examples, speeds [3, 1]: [128, 128] are not in proportion."),
            (lambda n, speeds: [int(n * v / sum(speeds)) for v in speeds],
             "5 examples, speeds [1, 1]: [2, 2] are 4 examples."),
            (lambda n, speeds: [
                 n - sum(n * v // sum(speeds) for v in speeds[1:]),
                 *(n * v // sum(speeds) for v in speeds[1:]),
             ],
             "8 examples, speeds [99, 1]: [8, 0] leave a device without an example."),
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
            (lambda i, k: partners(i, k)[::-1],
             "Device 1 of 4 swaps with [3, 0], and not with [0, 3]."),
            (lambda i, k: [(i + 2**b) % k for b in range(k.bit_length() - 1)][::-1],
             "Device 1 of 4 swaps with [3, 0], and not with [3, 2]."),
        ],
        judge=_judge_partners,
    ),
    ("halving", 3): Task(
        "a function `best(k, nbytes, alpha, beta)`",
        best,
        [
            (lambda k, nbytes, alpha, beta: "ring",
             "1024 devices, 100,000,000 bytes, 10 µs, 10 GB/s: "
             + "halving takes least, and not ring."),
            (lambda k, nbytes, alpha, beta: "halving",
             "1000 devices, 100,000,000 bytes, 10 µs, 10 GB/s: "
             + "double tree takes least, and not halving."),
        ],
        judge=_judge_best,
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
            (lambda sizes, limit: [[i] for i in range(len(sizes))],
             "Sizes [4, 2, 3, 1, 5], limit 5: [[0], [1], [2], [3], [4]] does not "
             + "begin with the last parameters, in order."),
            (lambda sizes, limit: [list(range(len(sizes)))],
             "Sizes [4, 2, 3, 1, 5], limit 5: [[0, 1, 2, 3, 4]] has a bucket of 15."),
            (lambda sizes, limit: [[i] for i in reversed(range(len(sizes)))],
             "Sizes [4, 2, 3, 1, 5], limit 5: [[4], [3], [2], [1], [0]]; "
             + "4 buckets, from the last on, are [[4], [2, 3], [1], [0]]."),
        ],
        judge=_judge_fill,
    ),
    ("overlap", 3): Task(
        "a function `exposed(ready, takes)`",
        exposed,
        [
            (lambda ready, takes: takes[-1],
             "Ready at [1, 2, 3], taking [2, 2, 2]: 2, and not 4."),
            (lambda ready, takes: sum(takes),
             "Ready at [1, 2, 3], taking [0.5, 0.5, 0.5]: 1.5, and not 0.5."),
        ],
        judge=_judge_exposed,
    ),
    ("overlap", 4): Task(
        "a function `best(layers, backward, message, latency)`",
        best_bucket,
        [
            (lambda layers, backward, message, latency: layers,
             "best(12, 10, 4, 0): 12 layers in a bucket, and not 1."),
            (lambda layers, backward, message, latency: 1,
             "best(12, 10, 4, 12): 1 layers in a bucket, and not 2."),
        ],
        judge=_judge_best_bucket,
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
            (
                lambda ws, us, total: [
                    float(numpy.linalg.norm(w) / numpy.linalg.norm(u))
                    for w, u in zip(ws, us)
                ],
                "Lengths 5 and 3.606, on two devices: the ratios are 1.500, 1.333.",
            ),
        ],
        judge=_judge_ratio_of_chunks,
    ),
    ("large_batches", 3): Task(
        "your function fastest",
        fastest_batch,
        [
            (
                lambda critical, overhead, speed: critical,
                "Case (1000, 0.1, 1000): 1000 examples, and not 316.228.",
            ),
        ],
        judge=_judge_fastest_batch,
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
             "Shares [34, 33, 33], speeds [4, 2, 1]: 14.3 s, and not 33 s."),
            (lambda sizes, speeds: max(sizes) / min(speeds),
             "Shares [34, 33, 33], speeds [4, 2, 1]: 34 s, and not 33 s."),
        ],
        judge=_judge_slowest,
    ),
    ("concise", 4): Task(
        "a class `Store(weights, lr, batch)`",
        Store,
        [
            (_averaging_store,
             "Gradients [4, 0] and [4, 8], lr 0.5, batch 4: [1, 2] becomes "
             + "[-1.0, 0.0], and not [0.0, 1.0]."),
        ],
        judge=_judge_store,
    ),
    ("no_speed_up", 1): Question(
        "the number of waits in a step",
        1,
        [
            (2, "A single call waits for all devices."),
            (0, "`npx.waitall()` is itself a wait."),
        ],
    ),
    ("no_speed_up", 3): Task(
        "a function `both_end(n, other)`",
        both_end,
        [
            (lambda n, other: [n // 2, n // 2],
             "256 examples and a job of 128: [128, 128] are [128, 256] with it."),
            (lambda n, other: [(n - other) // 2, (n + other) // 2],
             "256 examples and a job of 128: [64, 192] are [64, 320] with it."),
            (lambda n, other: [n - other, other // 2],
             "256 examples and a job of 128: [128, 64] are 192 examples."),
        ],
        judge=_judge_both_end,
    ),
    ("no_speed_up", 5): Task(
        "a function `ahead(load, depth)`",
        ahead,
        [
            (lambda load, depth=2: load,
             "After two results, load was called 2 times, and not ahead."),
            (_ahead_without_errors,
             "Where load raises an error, the loop waits for ever."),
        ],
        judge=_judge_ahead,
    ),
}
