"""Answers to exercises of the part on devices."""

import numpy

from .question import Question, Task


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


def judge_on_all(function):
    log = []
    results = function(lambda device: Asked(device, log), [0, 1, 2])
    asked = [log.index(("asked", device)) for device in range(3)]
    early = [done for done in range(3) if ("done", done) in log[: max(asked)]]
    if early:
        return f"Device {early[0] + 1} was asked when device {early[0]} was done."
    missing = sum(("done", device) not in log for device in range(3))
    if missing:
        return f"When it returns, {missing} of 3 results are not there."
    if [result.device for result in results] != [0, 1, 2]:
        return "It does not return the results in the order of the devices."
    return ""


def copied(uses, home, copy):
    """The array on each device of `uses`, copied to each of them once."""
    there = {0: home}
    for i in uses:
        if i not in there:
            there[i] = copy(i)
    return [there[i] for i in uses]


def judge_copied(function):
    copies = []

    def copy(i):
        copies.append(i)
        return i

    for uses, enough in (([1, 0, 1, 1], 1), ([2, 1, 2, 0, 3], 3)):
        copies.clear()
        found = function(uses, 0, copy)
        if [*found] != uses:
            return f"For {uses} it returns the arrays of {found}."
        if len(copies) > enough:
            return f"For {uses} it copies {len(copies)} times; {enough} is enough."
    return ""


#: What `judge_cheapest` says of a wrong answer for n examples.
SAYS = "With n={} and layers of 6, 4, 2 it says {!r}."


def cheapest(n, features, hidden, outputs):
    """The way that sends the fewest numbers; each sends them there and back."""
    numbers = {"pipeline": n * hidden, "tensor": n * outputs}
    numbers["data"] = (features + outputs) * hidden
    return min(numbers, key=numbers.get)


def judge_cheapest(function):
    for n, asks in (
        (4, "What are the two halves added up to?"),
        (12, "Which arrays have a gradient?"),
        (1000, "Whose traffic does not grow with the minibatch?"),
    ):
        said = function(n, 6, 4, 2)
        if said != cheapest(n, 6, 4, 2):
            return f"{SAYS.format(n, said)} {asks}"
    if function(4, 64, 8, 32) != "pipeline":
        return "It does not choose the pipeline where a layer is narrow in the middle."
    return ""


def by_rows(X, W1, send, early=False):
    """ReLU of a layer that is cut by rows; `early`: taken of each part, wrongly."""
    half = X.shape[1] // 2
    here, there = X[:, :half] @ W1[:half], X[:, half:] @ W1[half:]
    if early:
        here, there = (numpy.maximum(part, 0) for part in (here, there))
    return numpy.maximum(here + send(there), 0)


def judge_by_rows(function):
    rng, counted = numpy.random.RandomState(5), []
    X, W1 = rng.randn(24, 6), rng.randn(6, 4)

    def send(array):
        counted.append(array.nbytes)
        return array

    found, right = numpy.asarray(function(X, W1, send)), numpy.maximum(X @ W1, 0)
    if found.shape != right.shape:
        return f"Its shape is {found.shape}, and should be {right.shape}."
    wrong = (abs(found - right) > 1e-9).sum()
    if wrong:
        return (
            f"{wrong} of {right.size} hidden values are wrong. "
            "Is ReLU taken before the sum?"
        )
    if not counted:
        return "Nothing went through send, so half of each sum is missing."
    if sum(counted) > right.nbytes:
        return f"It sends {sum(counted):,} bytes; {right.nbytes:,} are enough."
    return ""


def least_seconds(operators, peak, bandwidth):
    """Operators one after the other, each as long as the longer of its two needs."""
    return sum(max(flops / peak, n / bandwidth) for flops, n in operators)


def judge_least_seconds(function):
    said = function([(30, 1), (20, 8)], 10, 2)
    if abs(said - 7) > 1e-9:
        return f"For two operators that take 3 s and 4 s it says {said:g} s."
    rng = numpy.random.RandomState(1)
    operators = [tuple(pair) for pair in rng.rand(20, 2)]
    if abs(function(operators, 3, 2) - least_seconds(operators, 3, 2)) > 1e-9:
        return "It is right for two operators, and not for twenty."
    return ""


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
        if abs(said - alpha) > 0.1 * alpha:
            return (
                f"It says {said * 1e6:.1f} µs where {alpha * 1e6:.1f} is true. "
                "Which copies does it mind?"
            )
    return ""


QUESTIONS = {
    ("devices", 2): Task(
        "a function of ask and devices",
        on_all,
        [
            (lambda ask, devices: [waited(ask(device)) for device in devices],
             "Device 1 was asked when device 0 was done."),
            (lambda ask, devices: [ask(device) for device in devices],
             "When it returns, 3 of 3 results are not there."),
        ],
        judge=judge_on_all,
    ),
    ("devices", 3): Task(
        "a function of uses, home and copy",
        copied,
        [
            (lambda uses, home, copy: [copy(i) for i in uses],
             "For [1, 0, 1, 1] it copies 4 times; 1 is enough."),
            (lambda uses, home, copy: [copy(i) if i else home for i in uses],
             "For [1, 0, 1, 1] it copies 3 times; 1 is enough."),
        ],
        judge=judge_copied,
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
            (lambda n, f, h, o: cheapest(n, 0, h, o),
             f"{SAYS.format(12, 'data')} Which arrays have a gradient?"),
            (lambda n, f, h, o: cheapest(n, f, h, f),
             f"{SAYS.format(4, 'pipeline')} What are the two halves added up to?"),
        ],
        judge=judge_cheapest,
    ),
    ("three_ways", 3): Task(
        "a function of X, W1 and send",
        by_rows,
        [
            (lambda X, W1, send: numpy.maximum(X @ W1, 0),
             "Nothing went through send, so half of each sum is missing."),
            (lambda X, W1, send: by_rows(X, W1, send, early=True),
             "42 of 96 hidden values are wrong. Is ReLU taken before the sum?"),
            (lambda X, W1, send: numpy.maximum(send(X) @ W1, 0),
             "It sends 1,152 bytes; 768 are enough."),
        ],
        judge=judge_by_rows,
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
             "For two operators that take 3 s and 4 s it says 5 s."),
            (lambda operators, peak, bandwidth: sum(
                 f / peak + n / bandwidth for f, n in operators
             ),
             "For two operators that take 3 s and 4 s it says 9.5 s."),
        ],
        judge=judge_least_seconds,
    ),
    ("what_limits_a_step", 3): Task(
        "a function of sizes and times",
        latency,
        [
            (lambda sizes, times: float(numpy.polyfit(sizes, times, 1)[1]),
             "It says -55.9 µs where 20.0 is true. Which copies does it mind?"),
            (lambda sizes, times: times[0],
             "It says 37.1 µs where 20.0 is true. Which copies does it mind?"),
        ],
        judge=judge_latency,
    ),
}
