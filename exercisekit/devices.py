"""Answers to exercises of the part on devices."""

import numpy

from .counts import counted
from .question import Question, Task, compared

EARLY = "{} wait{s} before the last device is asked"
COPIED = "{} time{s} copied"
SENT = "{} byte{s} sent"


def waited(result):
    result.wait()
    return result


def on_all(ask, devices):
    """Ask all, then wait for all."""
    return [*map(waited, [ask(device) for device in devices])]


class Asked:
    """What stands for the work of a device; `log` has what happened, in order."""

    def __init__(self, device, log):
        self.device, self.log = device, log
        log.append(("asked", device))

    def wait(self):
        self.log.append(("done", self.device))


def run_on_all(function, counts, devices):
    log = []
    results = list(function(lambda device: Asked(device, log), devices))
    last = max((i for i, (what, _) in enumerate(log) if what == "asked"), default=0)
    counts.add(EARLY, sum(what == "done" for what, _ in log[:last]))
    return {
        "what is asked": sorted(device for what, device in log if what == "asked"),
        "what has been waited for": sorted({d for what, d in log if what == "done"}),
        "the list": [getattr(result, "device", result) for result in results],
    }


def copied(uses, home, copy):
    """The array on each device of `uses`, copied to each of them once."""
    there = {0: home}
    for i in uses:
        if i not in there:
            there[i] = copy(i)
    return [there[i] for i in uses]


def run_copied(function, counts, uses):
    copy = counts.calls(COPIED, lambda i: f"its copy on {i}")
    return list(function(uses, "the array on 0", copy))


def cheapest(n, features, hidden, outputs):
    """The way that sends the fewest numbers; each sends them there and back."""
    numbers = {"pipeline": n * hidden, "tensor": n * outputs}
    numbers["data"] = (features + outputs) * hidden
    return min(numbers, key=numbers.get)


def by_rows(X, W1, send):
    """ReLU of a layer that is cut by rows: the sum comes first."""
    half = X.shape[1] // 2
    here, there = X[:, :half] @ W1[:half], X[:, half:] @ W1[half:]
    return numpy.maximum(here + send(there), 0)


def run_by_rows(function, counts, n, features, hidden):
    rng = numpy.random.RandomState(5)
    X, W1 = counts.keep(rng.randn(n, features), rng.randn(features, hidden))
    send = counts.calls(SENT, lambda array: array, lambda array: array.nbytes)
    return numpy.asarray(function(X, W1, send))


def least_seconds(operators, peak, bandwidth):
    """Operators one after the other, each as long as the longer of its two needs."""
    return sum(max(flops / peak, n / bandwidth) for flops, n in operators)


def latency(sizes, times):
    """α of the line whose relative errors are least."""
    n, t = numpy.array(sizes, dtype=float), numpy.array(times)
    rows = numpy.stack([1 / t, n / t], axis=1)
    return numpy.linalg.lstsq(rows, numpy.ones(len(t)), rcond=None)[0][0]


def judge_latency(function):
    rng = numpy.random.RandomState(4)
    for alpha, beta in ((20e-6, 1e-9), (80e-6, 2e-9)):
        sizes = [4**i for i in range(7, 14)]
        noise = rng.uniform(0.98, 1.02, len(sizes))
        times = [(alpha + n * beta) * e for n, e in zip(sizes, noise)]
        said = function(sizes, times)
        if not abs(said - alpha) <= 0.1 * alpha:
            yield f"It says {said * 1e6:.1f} µs where {alpha * 1e6:.1f} is true."


QUESTIONS = {
    ("devices", 2): Task(
        "a function of ask and devices",
        on_all,
        [
            (lambda ask, devices: [waited(ask(device)) for device in devices],
             "A wait right after each question: the others are asked only then. "
             + "A generator asks as late as that, too: make a list first."),
            ("[*map(waited, [ask(device) for device in devices])]",
             "[ask(device) for device in devices]",
             "Nobody waits: when it returns, the results are not there."),
            ("[ask(device) for device in devices])]",
             "[ask(device) for device in devices][-1:])]",
             "Only the last is waited for and returned. The others may take longer."),
            ("[ask(device) for device in devices]",
             "[ask(device) for device in devices[1:]]",
             "The first device is left out."),
            ("in devices])]", "in devices])][::-1]",
             "The list has another order than the devices."),
            ("map(waited, [ask", "map(lambda result: result.wait(), [ask",
             "`wait` returns nothing: the list has to hold the results themselves."),
        ],
        judge=counted(on_all, run_on_all, "Devices {}",
                      [([0],), ([0, 1],), ([2, 0, 1],)], about=[EARLY]),
    ),
    ("devices", 3): Task(
        "a function of uses, home and copy",
        copied,
        [
            (lambda uses, home, copy: [copy(i) for i in uses],
             "It is copied for each use, and even to where it lives."),
            (lambda uses, home, copy: [copy(i) if i else home for i in uses],
             "It is copied for each use: keep what a device has got."),
            ("{0: home}", "{}", "The array lives on device 0: that needs no copy."),
            ("if i not in there:", "if i not in there or i != uses[0]:",
             "A copy that was made before is made again."),
            ("for i in uses]", "for i in sorted(uses)]",
             "The list has to be in the order of the uses."),
            ("for i in uses]", "for i in dict.fromkeys(uses)]",
             "A device that uses the array twice is in the list twice."),
            ("for i in uses:", "for i in range(max(uses) + 1):",
             "It is copied to devices that do not use it."),
            ("[there[i] for i in uses]", "list(there.values())",
             "That is what there is: an array for each use is asked for, in order."),
        ],
        judge=counted(copied, run_copied, "Uses {}",
                      [([0],), ([1],), ([1, 1],), ([1, 0, 1, 1],), ([2, 1, 2, 0, 4],)],
                      about=[COPIED]),
    ),
    ("three_ways", 1): Question(
        'the way that fails: "pipeline", "tensor" or "data"',
        "data",
        [
            ("pipeline", "Nobody holds more than three of the ten layers."),
            ("tensor", "Each device holds a quarter of each layer."),
        ],
    ),
    ("three_ways", 2): Task(
        "a function of n, features, hidden, outputs",
        cheapest,
        [
            ("(features + outputs) * hidden", "outputs * hidden",
             "Both layers have a gradient: that of the first is sent, too."),
            ("(features + outputs) * hidden", "features * hidden",
             "Both layers have a gradient: that of the second is sent, too."),
            ("(features + outputs) * hidden", "n * (features + outputs) * hidden",
             "A gradient is as large as the weights, whatever the minibatch."),
            ('"tensor": n * outputs', '"tensor": n * hidden',
             "What are the two halves added up to? To the outputs."),
            ('"tensor": n * outputs', '"tensor": n * features',
             "Both devices have the inputs: what are the two halves added up to?"),
            ('"pipeline": n * hidden', '"pipeline": n * outputs',
             "Between the two layers are the hidden values: that is where it is cut."),
            ("min(numbers", "max(numbers", "That is the one that sends most."),
            (lambda n, features, hidden, outputs: "data",
             "What data parallelism sends does not grow with the minibatch, and for "
             + "few examples it is much."),
        ],
        judge=compared(cheapest, [
            (1, 1, 4, 2), (4, 6, 4, 2), (5, 2, 3, 9), (4, 64, 8, 32), (12, 6, 4, 2),
            (20, 6, 4, 2), (30, 3, 4, 9), (1000, 6, 4, 2),
        ]),
    ),
    ("three_ways", 3): Task(
        "a function of X, W1 and send",
        by_rows,
        [
            (lambda X, W1, send: numpy.maximum(X @ W1, 0),
             "Nothing went through send, so half of each sum is missing."),
            (lambda X, W1, send: numpy.maximum(send(X) @ W1, 0),
             "The examples are sent. What device 1 has computed is smaller."),
            ("here + send(there)",
             "numpy.maximum(here, 0) + send(numpy.maximum(there, 0))",
             "ReLU of a sum is not the sum of the ReLUs: add first."),
            ("here + send(there)", "send(here) + send(there)",
             "What device 0 has computed itself is there already."),
            ("numpy.maximum(here + send(there), 0)", "here + send(there)",
             "The ReLU is missing."),
            ("here + send(there)", "send(there)",
             "Device 0's own half of the sum is missing."),
            ("@ W1[:half], X[:, half:]", "@ W1[:half], X[:, :half]",
             "Device 1 has the other features, and the rows that belong to them."),
            ("here + send(there)", "here + send(there.astype('float32'))",
             "Sent in single precision: fewer bytes, and the last digits are lost."),
        ],
        judge=counted(by_rows, run_by_rows, "X {} × {}, {} hidden values",
                      [(1, 4, 1), (5, 7, 3), (24, 16, 4)], about=[SENT],
                      tolerance=1e-9),
    ),
    ("what_limits_a_step", 1): Question(
        "the smallest d",
        192,
        [
            (48, "Each number has 4 bytes."),
            (96, "A multiplication and an addition are two flops."),
            (128, "Two matrices are read, and one is written."),
        ],
    ),
    ("what_limits_a_step", 2): Task(
        "a function of operators, peak and bandwidth",
        least_seconds,
        [
            (lambda operators, peak, bandwidth: max(
                 sum(f for f, _ in operators) / peak,
                 sum(n for _, n in operators) / bandwidth,
             ),
             "The larger of the two sums: but each operator waits for its own need."),
            ("max(flops / peak, n / bandwidth)", "flops / peak + n / bandwidth",
             "An operator reads while it computes: the longer of the two counts."),
            ("max(flops", "min(flops",
             "The shorter need does not end an operator: the longer does."),
            ("max(flops / peak, n / bandwidth)", "flops / peak",
             "Some operators are bound by memory: their bytes take longer."),
            ("max(flops / peak, n / bandwidth)", "n / bandwidth",
             "Some operators are bound by arithmetic: their flops take longer."),
            ("sum(max", "max(max",
             "That is the longest of them. They run one after the other."),
            ("flops / peak, n / bandwidth", "flops / bandwidth, n / peak",
             "Flops belong to the peak, bytes to the bandwidth."),
        ],
        judge=compared(least_seconds, [
            ([], 10, 2), ([(30, 1)], 10, 2), ([(20, 8)], 10, 2),
            ([(30, 1), (20, 8)], 10, 2), ([(1, 7), (9, 2), (6, 6), (0, 5)], 3.0, 2.5),
        ]),
    ),
    ("what_limits_a_step", 3): Task(
        "a function of sizes and times",
        latency,
        [
            (lambda sizes, times: numpy.polyfit(sizes, times, 1)[1],
             "A fit that minds seconds minds the longest copies: two per cent of one "
             + "are many latencies."),
            (lambda sizes, times: times[0],
             "The shortest copy still takes its bytes: what would none take?"),
            (lambda sizes, times: times[0] - times[-1],
             "Seconds of a large copy do not tell those of a small one, but their rate "
             + "does."),
            ("rcond=None)[0][0]", "rcond=None)[0][1]",
             "That is β, the seconds of a byte."),
            ("numpy.ones(len(t))", "t",
             "Rows and right side have to be divided by the same: by each time."),
            ("rcond=None)[0][0]", "rcond=None)[0][0] * 1e6",
             "That is in microseconds: seconds are asked for."),
        ],
        judge=judge_latency,
    ),
}
