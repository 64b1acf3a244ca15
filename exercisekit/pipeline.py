"""Answers to exercises of the part on pipelines."""

from collections import Counter
from itertools import combinations, combinations_with_replacement

import numpy

from d2l_ext.pipeline import buckets
from d2l_ext.pipeline.partition import device_times
from d2l_ext.pipeline.schedule import Work, clock, peak_held
from d2l_ext.pipeline.short_bubbles import (
    Op,
    interleaved,
    most_held,
    op_clock,
)

from .counts import counted
from .question import Question, Task, by_cases, compared

# ---- lstm_pipeline ----


def copies(placement, T):
    """A message there and one back, for each step, at every change of device."""
    return 2 * T * sum(a != b for a, b in zip(placement, placement[1:]))


def gates(x, h, Wx, Wh, product):
    """The sums for the four gates of an LSTM, by eight products."""
    pairs = zip(numpy.split(Wx, 4), numpy.split(Wh, 4))
    return numpy.stack([product(x, wx.T) + product(h, wh.T) for wx, wh in pairs])


def _two_products(x, h, Wx, Wh, product):
    both = product(x, Wx.T) + product(h, Wh.T)
    return numpy.stack(numpy.split(both, 4, axis=1))


def _run_gates(function, counts, n, D, H):
    rng, columns = numpy.random.RandomState(3), []
    shapes = (n, D), (n, H), (4 * H, D), (4 * H, H)
    given = counts.keep(*(rng.randint(-9, 9, shape) * 1.0 for shape in shapes))

    def product(a, b):
        columns.append(b.shape[1])
        return a @ b

    sums = function(*given, product)
    return {"the array of sums": sums, "the list of the products' columns": columns}


# ---- where_to_cut ----


def even_cut(times, k):
    """Of all ways to cut into k runs, empty ones too, one with the least bottleneck."""
    found, n = [], len(times)
    for cuts in combinations_with_replacement(range(n + 1), k - 1):
        ends = [0, *cuts, n]
        runs = [times[a:b] for a, b in zip(ends, ends[1:])]
        placement = [device for device, run in enumerate(runs) for _ in run]
        found.append((max(map(sum, runs)), placement))
    return min(found)[1]


def _goes_on_at_the_mean(times, k):
    placement, device, so_far = [], 0, 0
    for time in times:
        if so_far >= sum(times) / k and device < k - 1:
            device, so_far = device + 1, 0
        placement.append(device)
        so_far += time
    return placement


def _judge_even_cut(function, times, k):
    placement = list(function(list(times), k))
    said = f"it is {placement}:"
    if len(placement) != len(times):
        return f"{said} not a device for each layer."
    if placement != sorted(placement):
        return f"{said} the device numbers fall."
    if not {*placement} <= {*range(k)}:
        return f"{said} the devices are 0 to {k - 1}."
    worst, least = (
        max(device_times(cut, times, k)) for cut in (placement, even_cut(times, k))
    )
    return f"{said} bottleneck {worst}; {least} is possible." if worst > least else ""


def stepwise_slots(placement, work, T):
    """Slots of a forward pass, time step by time step in all layers."""
    free = [0] * (1 + max(placement))
    for _ in range(T):
        ready = 0
        for device, slots in zip(placement, work):
            ready = free[device] = max(ready, free[device]) + slots
    return ready


def _whole_decoder(placement, work, T):
    return stepwise_slots(placement, [*work[:-1], 0], T) + T * work[-1]


def _by_formula(placement, work, T):
    busy = [
        sum(slots for d, slots in zip(placement, work) if d == device)
        for device in {*placement}
    ]
    return (T + len(busy) - 1) * max(busy)


# ---- buckets ----


def time_first(rows, T):
    """Data and labels, (T, N) each, of sentences that are lists of numbers."""
    X, y = numpy.zeros((len(rows), T)), numpy.full((len(rows), T), -1.0)
    for n, row in enumerate(rows):
        X[n, : len(row) - 1], y[n, : len(row) - 1] = row[:-1], row[1:]
    return X.T, y.T


def _run_time_first(function, counts, rows, T):
    data, labels = function(*counts.keep(rows, T))
    arrays = {"data": numpy.asarray(data), "labels": numpy.asarray(labels)}
    shapes = {f"the shape of {what}": array.shape for what, array in arrays.items()}
    return {**shapes, **arrays}


def _empty(lengths, sizes):
    return sum(min(T for T in sizes if T >= n) - n for n in lengths)


def best_buckets(lengths, number):
    """Up to `number` buckets that leave the fewest empty places."""
    others = sorted(set(lengths) - {max(lengths)})
    choices = combinations(others, min(number - 1, len(others)))
    sizes = ([*choice, max(lengths)] for choice in choices)
    return min(sizes, key=lambda sizes: _empty(lengths, sizes))


def _most_frequent(lengths, number):
    others = Counter(n for n in lengths if n < max(lengths))
    return [*(n for n, _ in others.most_common(number - 1)), max(lengths)]


def _judge_best_buckets(function, lengths, number):
    sizes = list(function(list(lengths), number))
    if len(sizes) > number:
        return f"{sizes} are {len(sizes)} buckets."
    if max(sizes, default=0) < max(lengths):
        return f"{sizes} have no room for a sentence of {max(lengths)}."
    best = best_buckets(lengths, number)
    empty, least = (_empty(lengths, some) for some in (sizes, best))
    return f"{sizes} leave {empty} places empty, not {least}." if empty > least else ""


# ---- micro_batches ----

KINDS = {"F": "forward", "B": "backward"}


def first_first(p, m):
    """GPipe's schedule, that goes backward with the first micro-batch first."""
    order = [("F", i) for i in range(m)] + [("B", i) for i in range(m)]
    return [order] * p


def limited(p, m, most):
    """1F1B that holds `most` at the most."""
    orders = []
    for s in range(p):
        forward, back = [("F", i) for i in range(m)], [("B", i) for i in range(m)]
        ahead = min(p - s, m, most)
        turns = [work for pair in zip(back, forward[ahead:]) for work in pair]
        orders.append(forward[:ahead] + turns + back[m - ahead :])
    return orders


def _in_groups(p, m, most):
    groups = [range(i, min(i + most, m)) for i in range(0, m, most)]
    return [[(kind, i) for group in groups for kind in "FB" for i in group]] * p


def _run(orders, p, m):
    """What is wrong with a schedule, or ""; its slots, its works, what it holds."""
    orders = [[tuple(work) for work in order] for order in orders]
    wanted = sorted((kind, i) for kind in KINDS for i in range(m))
    for s, order in enumerate(orders):
        if sorted(order) != wanted:
            works = " ".join(f"{kind}{i}" for kind, i in order)
            return f"stage {s} does {works}: not F and B of each once.", 0, 0, 0
    if len(orders) != p:
        return f"there are {len(orders)} stages.", 0, 0, 0
    works = [[Work(KINDS[kind], i) for kind, i in order] for order in orders]
    slots = clock(works)
    return "", max(slot.end for slot in slots), works, peak_held(works)


def _judge_first_first(function, p, m):
    problem, slots, works, _ = _run(function(p, m), p, m)
    if problem:
        return problem
    for s, order in enumerate(works):
        back = [work.chunk for work in order if work.kind == "backward"]
        if back != sorted(back):
            return f"stage {s} goes backward with {back}."
    enough = 2 * (m + p - 1)
    return f"it takes {slots} slots; {enough} are enough." * (slots > enough)


def _judge_limited(function, p, m, most):
    problem, slots, _, held = _run(function(p, m, most), p, m)
    if problem:
        return problem
    if max(held) > most:
        return f"the stages hold {held}."
    enough = _run(limited(p, m, most), p, m)[1]
    return f"it takes {slots} slots; {enough} are enough." * (slots > enough)


# ---- shorter_bubbles ----


def parts(x, W, d_out):
    """Backward work of a layer `x @ W.T` in two parts."""
    return lambda: d_out @ W, lambda: d_out.T @ x


def _both_at_once(x, W, d_out):
    gradients = d_out @ W, d_out.T @ x
    return lambda: gradients[0], lambda: gradients[1]


def _one_name(x, W, d_out):
    pairs = (d_out.T, W), (d_out, x)
    return [lambda: left.T @ right for left, right in pairs]  # noqa: B023 - the mistake


class _Untouched(numpy.ndarray):
    """An array that can be transposed, and of which nothing is computed."""

    __array_ufunc__ = dot = None

    def __array_function__(self, function, types, args, kwargs):
        raise TypeError(f"{function.__name__} of it is computed")


def _judge_parts(function, n, d_in, d_out):
    rng = numpy.random.RandomState(5)
    shapes = (n, d_in), (d_out, d_in), (n, d_out)
    x, W, d = (rng.randint(-9, 9, shape) * 1.0 for shape in shapes)
    found, right = function(x, W, d), parts(x, W, d)
    if len(found) != 2 or not all(map(callable, found)):
        return "it should return two functions without arguments."
    said = []
    for what, mine, gradient in zip("xW", found, (right[0](), right[1]())):
        shape, its = numpy.shape(mine()), gradient.shape
        if shape != its:
            said += [f"the gradient of {what} has the shape {shape}, and not {its}"]
        elif not numpy.allclose(mine(), gradient):
            first, its = mine()[0][0], gradient[0][0]
            said += [f"the gradient of {what} begins with {first:g}, and not {its:g}"]
    if said:
        return f"{'; '.join(said)}."
    for i, what in enumerate("xW"):
        given = [x, W, d]
        given[i] = given[i].view(_Untouched)
        try:
            function(*given)[i]()
        except TypeError:
            said += [f"the gradient of {what} takes a product of {what} itself"]
    return f"{'; '.join(said)}." if said else ""


def filled(p, m, most):
    """Each device: an input part, else a forward if there is room, else weights."""
    orders, done = [[] for _ in range(p)], set()
    while len(done) < 3 * p * m:
        now = []
        for s in range(p):
            f, i, w = (
                Op(s, kind, sum(op.kind == kind for op in orders[s]))
                for kind in ("forward", "input", "weights")
            )
            if i.chunk < f.chunk and (s == p - 1 or i._replace(stage=s + 1) in done):
                now.append(i)
            elif (f.chunk < m and f.chunk - w.chunk < most
                  and (s == 0 or f._replace(stage=s - 1) in done)):  # fmt: skip
                now.append(f)
            elif w.chunk < i.chunk:
                now.append(w)
        for op in now:
            orders[op.stage].append(op)
        done |= {*now}
    return orders


def _one_after_the_other(p, m, most):
    kinds = ("forward", "input", "weights")
    return [[Op(s, kind, i) for i in range(m) for kind in kinds] for s in range(p)]


def _weights_last(p, m, most):
    """1F1B's order of the other two; all weights parts at the end."""
    turns = [{"F": "forward", "B": "input"}] * p
    return [
        [Op(s, kinds[kind], i) for kind, i in order]
        + [Op(s, "weights", i) for i in range(m)]
        for s, (kinds, order) in enumerate(zip(turns, limited(p, m, most)))
    ]


def _judge_filled(function, p, m, most):
    orders = [[Op(*op) for op in order] for order in function(p, m, most)]
    reference = filled(p, m, most)
    for s, (order, wanted) in enumerate(zip(orders, reference)):
        if sorted(order) != sorted(wanted):
            return f"device {s} does not do its {3 * m} works once."
    if len(orders) != p:
        return f"there are {len(orders)} devices."
    if max(most_held(orders)) > most:
        return f"the devices hold {most_held(orders)}."
    slots, enough = (
        max(end for *_, end in op_clock(each).values()) for each in (orders, reference)
    )
    return f"it takes {slots} slots; {enough} are enough." * (slots > enough)


QUESTIONS = {
    ("lstm_pipeline", 1): Question(
        "the number of time steps",
        21,
        [
            (20, "With 20 steps the bound is a little below 3.5."),
            (22, "Fewer are enough: try T = 21."),
            (28, "T steps on k devices take T + k - 1 slots, not T + k."),
        ],
    ),
    ("lstm_pipeline", 2): Question(
        "the largest number of time steps with which the pipeline sends less",
        130,
        [
            (131, "With 131 the pipeline sends more already."),
            (128, "The embedding, the decoder and the biases are parameters, too."),
            (65, "What leaves device 0? The gradients come to it."),
            (261, "With two devices the ring sends one array from each, not two."),
        ],
    ),
    ("lstm_pipeline", 3): Task(
        "a function `copies(placement, T)`",
        copies,
        [
            ("2 * T", "T",
             "For each hidden state that crosses, a gradient comes back."),
            ("2 * T", "2", "Each time step has a hidden state of its own to send."),
            ("sum(a != b for a, b in zip(placement, placement[1:]))",
             "(len({*placement}) - 1)",
             "That counts devices. A device can be left and come again."),
            ("sum(a != b for a, b in zip(placement, placement[1:]))", "max(placement)",
             "The largest number says nothing of the changes between the layers."),
            ("a != b", "a < b",
             "A change to a device with a lower number counts, too."),
            ("a != b", "abs(a - b)", "From device 2 to device 0 is one message."),
            ("2 * T", "2 * (T - 1)", "The first time step is sent like the others."),
            ("zip(placement, placement[1:])",
             "zip(placement, [*placement[1:], placement[0]])",
             "The last layer's output does not go back to the first layer."),
            ("sum(a != b for a, b in zip(placement, placement[1:]))", "len(placement)",
             "Layers on one device send each other nothing."),
        ],
        judge=compared(copies, [
            ([0], 3), ([0, 1], 1), ([0, 0, 1, 1], 16), ([0, 1, 0, 1], 16),
            ([0, 1, 1, 2, 0], 5), ([2, 0, 0], 2),
        ]),
    ),
    ("lstm_pipeline", 4): Task(
        "a function `gates(x, h, Wx, Wh, product)`",
        gates,
        [
            (_two_products,
             "That is right, and the second question: first with eight products."),
            ("zip(numpy.split(Wx, 4), numpy.split(Wh, 4))",
             "zip(numpy.split(Wx, 4)[::-1], numpy.split(Wh, 4)[::-1])",
             "The first rows belong to the first gate."),
            ("zip(numpy.split(Wx, 4), numpy.split(Wh, 4))",
             "[(Wx[k::4], Wh[k::4]) for k in range(4)]",
             "The rows of a gate stand together; these are every fourth."),
            ("numpy.split(Wh, 4)", "[Wh[: len(Wh) // 4]] * 4",
             "Each gate has its own rows of both matrices."),
            (" + product(h, wh.T)", "", "The state before has a product, too."),
            ("product(x, wx.T)", "x @ wx.T", "Every product goes through `product`."),
            ("numpy.stack(", "numpy.hstack(",
             "Asked are three axes: the gates come first."),
            ("product(x, wx.T) + product(h, wh.T) for",
             "(product(x, wx.T), product(h, wh.T)) for",
             "The two products of a gate are added up."),
            ("wh.T", "wh", "The rows of a fused matrix make columns: transposed."),
            ("numpy.stack([", "numpy.stack(axis=1, arrays=[",
             "The gates are the first axis, before the examples."),
        ],
        judge=counted(gates, _run_gates, "x ({}, {}), H = {}", [
            (1, 1, 2), (1, 2, 1), (3, 5, 4), (2, 3, 3),
        ]),
    ),
    ("where_to_cut", 1): Question(
        "the new time of a step divided by the old one, for T = 12",
        6 * 14 / (9 * 13),
        [
            (2 / 3, "Three devices take longer to fill and to empty."),
            (1 / 3, "Two devices shared the work before, not one."),
            (9 * 13 / (6 * 14), "Divide the new time by the old one."),
        ],
        tolerance=0.01,
    ),
    ("where_to_cut", 2): Question(
        "the number of words, with H = 256",
        8 * 256,
        [
            (4 * 256, "A layer has a matrix for its input and one for its state."),
            (2 * 256, "Each of the two matrices has 4H rows."),
            (8, "That is the factor of H."),
        ],
        tolerance=0.001,
    ),
    ("where_to_cut", 3): Task(
        "a function `even_cut(times, k)`",
        even_cut,
        [
            ("max(map(sum, runs))", "max(map(len, runs))",
             "That evens out how many layers they have, and not their times."),
            (lambda times, k: [i % k for i in range(len(times))],
             "Layers that follow each other stay together: no turns."),
            (_goes_on_at_the_mean,
             "To go on when a device has its mean share can leave much to the last."),
            ("min(found)[1]", "min(found)[0]",
             "Asked is a placement, and not its bottleneck."),
            ("found.append((max(map(sum, runs)), placement))",
             "found.append((max(map(sum, runs)), [*map(len, runs)]))",
             "Those are the layers of each device. Asked is the device of each layer."),
            ("(range(n + 1), k - 1)", "(range(n + 1), 1)",
             "Those are two devices at most."),
            ("(range(n + 1), k - 1)", "(range(n + 1), k)",
             "k runs have k - 1 places between them."),
            ("combinations_with_replacement(range(n + 1), k - 1)",
             "combinations(range(1, n), k - 1)",
             "With more devices than layers, some stay empty."),
            ("enumerate(runs)", "enumerate(runs, 1)", "Devices are numbered from 0."),
            ("max(map(sum, runs))", "sum(map(sum, runs))",
             "The sum is the same for every cut. What is the pace set by?"),
            ("max(map(sum, runs))", "sum(runs[0])",
             "That spares the first device only: the busiest sets the pace."),
        ],
        judge=by_cases(_judge_even_cut, "even_cut({}, {})", [
            ([7], 1), ([1, 2], 2), ([7, 1], 4), ([3, 1, 1, 1], 2), ([1, 1, 1, 9], 3),
            ([4, 1, 1, 5, 2, 2], 3), ([2, 3, 3, 3, 3, 2], 4),
        ]),
    ),
    ("where_to_cut", 4): Task(
        "a function `stepwise_slots(placement, work, T)`",
        stepwise_slots,
        [
            (_whole_decoder, "The last layer still waits for all time steps."),
            (lambda placement, work, T: T * sum(work),
             "Different devices work at the same time."),
            ("max(ready, free[device])", "free[device]",
             "A layer waits for what is below it, in the same time step."),
            ("max(ready, free[device])", "ready",
             "A device does one thing at a time: is it free from the last time step?"),
            (_by_formula, "The formula of the wavefront holds for equal shares only."),
            ("range(T)", "range(T - 1)", "There are T time steps."),
            ("zip(placement, work)", "zip(placement[:-1], work)",
             "The last layer is missing."),
            ("return ready", "return free",
             "Asked is when the last work ends: a number."),
        ],
        judge=compared(stepwise_slots, [
            ((0,), [2], 2), ((0, 1), [1, 1], 3), ((0, 1), [1, 2], 3),
            *((placement, [1, 2, 3], 4) for placement in (
                (0, 0, 0), (0, 1, 1), (0, 0, 1), (0, 1, 0), (0, 1, 2)
            )),
        ]),
    ),
    ("buckets", 1): Question(
        "how many times too small the gradient is",
        2,
        [
            (0.5, "It is half as large as it should be: how many times too small?"),
            (1, "How many places are there, and how many characters?"),
        ],
    ),
    ("buckets", 2): Task(
        "a function `time_first(rows, T)`",
        time_first,
        [
            ("return X.T, y.T", "return X, y", "Time comes first: that is (n, T)."),
            ("return X.T, y.T", "return X.reshape(T, -1), y.reshape(T, -1)",
             "The shape is right, but reshape does not exchange axes."),
            ("= row[:-1], row[1:]", "= row[:-1], row[:-1]",
             "A label is the character that comes next."),
            ("= row[:-1], row[1:]", "= row[1:], row[:-1]",
             "The label comes after the data, not before."),
            ("X[n, : len(row) - 1], y[n, : len(row) - 1] = row[:-1]",
             "X[n, : len(row)], y[n, : len(row) - 1] = row[:T]",
             "The last character is only a label: nothing comes after it."),
            ("numpy.full((len(rows), T), -1.0)", "numpy.zeros((len(rows), T))",
             "A label of 0 is a character: places without one have -1."),
            ("numpy.zeros((len(rows), T))", "numpy.full((len(rows), T), -1.0)",
             "Data of places without a character are 0: -1 names none."),
            ("X[n, : len(row) - 1], y[n, : len(row) - 1]",
             "X[n, T + 1 - len(row) :], y[n, T + 1 - len(row) :]",
             "Sentences begin at the first time step. The rest is at the end."),
            ("return X.T, y.T", "return y.T, X.T", "First the data, then the labels."),
        ],
        judge=counted(time_first, _run_time_first, "time_first({}, {})", [
            ([[1, 2]], 1), ([[1, 2]], 2), ([[1, 2, 3, 4], [5, 6, 7]], 5),
            ([[3], [1, 2, 4]], 2),
        ]),
    ),
    ("buckets", 3): Task(
        "a function `best_buckets(lengths, number)`",
        best_buckets,
        [
            (buckets.choose,
             "As many sentences in each is not the same as few empty places."),
            (_most_frequent,
             "The most frequent lengths fill their own buckets. What of the others?"),
            (lambda lengths, number: sorted({*lengths})[:number],
             "The longest sentence needs a bucket first of all."),
            ("min(number - 1, len(others))", "min(number, len(others))",
             "The longest has one of the buckets."),
            ("min(number - 1, len(others))", "number - 1",
             "There may be fewer lengths than buckets: then not all are used."),
            ("min(number - 1, len(others))", "min(1, number - 1, len(others))",
             "That uses two buckets, and more are allowed."),
            ("_empty(lengths, sizes))", "_empty({*lengths}, sizes))",
             "Each sentence counts: some lengths are there more than once."),
            ("_empty(lengths, sizes))", "sum(n not in sizes for n in lengths))",
             "That counts the sentences with empty places, and not the places."),
            (lambda lengths, number: [
                 -(-max(lengths) * (i + 1) // number) for i in range(number)
             ],
             "Even steps look away from where the sentences are."),
            ("return min(", "return max(", "The fewest empty places, not the most."),
        ],
        judge=by_cases(_judge_best_buckets, "best_buckets({}, {})", [
            ([5], 1), ([5], 4), ([3, 4, 8], 2), ([1, 1, 1, 1, 4, 5, 9], 2),
            ([1, 1, 1, 2, 9, 9, 10, 20], 3), ([4, 4, 1, 8, 8, 2, 7], 3),
        ]),
    ),
    ("buckets", 4): Question(
        "whether it takes more memory: True or False",
        True,
        [(False, "What becomes of an array that is too large to share?")],
    ),
    ("micro_batches", 1): Question(
        "the number of micro-batches",
        63,
        [
            (70, "The bubble is a share of all slots, m + p - 1, and not of m."),
            (72, "A stage waits for the p - 1 others, not for p."),
            (64, "One fewer is enough: p - 1 is 7."),
        ],
    ),
    ("micro_batches", 2): Task(
        "a function `first_first(p, m)`",
        first_first,
        [
            ("(\"B\", i) for i in range(m)", "(\"B\", i) for i in reversed(range(m))",
             "That is GPipe's order: the last one first."),
            (lambda p, m: limited(p, m, 1),
             "One micro-batch at a time is no pipeline: the stages wait in turn."),
            ("[order] * p", "order", "Every stage has a list of its own."),
            ("[order] * p", "[order] * m",
             "A list for each stage, p of them: m is the number of micro-batches."),
            ("(\"B\", i) for i in range(m)", "(\"B\", i) for i in range(m - 1)",
             "Each micro-batch goes backward, the last one, too."),
            ("[(\"F\", i) for i in range(m)] + [(\"B\", i) for i in range(m)]",
             "[(\"B\", i) for i in range(m)] + [(\"F\", i) for i in range(m)]",
             "Backward work needs what forward work has left: it comes after it."),
            ("range(m)] + [(\"B\", i) for i in range(m)]",
             "range(m)] + [(\"B\", m - i) for i in range(m)]",
             "Micro-batches are numbered from 0 to m - 1."),
            ("return [order] * p",
             "return [order] * (p - 1) + [order[:m] + order[m:][::-1]]",
             "The last stage begins the backward work: it sets the order of all."),
            ("[order] * p",
             "[[(kind, i) for i in range(m) for kind in 'FB']] + [order] * (p - 1)",
             "The first stage sends on all before the first gradient comes back."),
        ],
        judge=by_cases(_judge_first_first, "{} stages, {} micro-batches", [
            (1, 1), (1, 2), (2, 2), (3, 4), (4, 8),
        ]),
    ),
    ("micro_batches", 4): Task(
        "a function `limited(p, m, most)`",
        limited,
        [
            ("min(p - s, m, most)", "min(p - s, m)",
             "That is 1F1B: its first stage goes ahead by p micro-batches."),
            ("min(p - s, m, most)", "1",
             "There is room for more than one, and the stages wait."),
            ("min(p - s, m, most)", "min(p - s, m, max(1, most - 1))",
             "The one that a stage works on is held as well: use all the room."),
            ("min(p - s, m, most)", "min(p - s - 1, m, most)",
             "The last stage needs one forward before its first backward."),
            (_in_groups,
             "After every group the pipeline runs empty: begin one when one is done."),
            ("min(p - s, m, most)", "min(p - s, m, most if s == 0 else m)",
             "Every stage has the limit, and not the first alone."),
            (" + back[m - ahead :]", "",
             "What was ahead at the start is still to go backward at the end."),
            ("zip(back, forward[ahead:])", "zip(forward[ahead:], back)",
             "Backward first, then forward: otherwise one more is held."),
            ("forward[:ahead] + turns", "forward[: ahead - 1] + turns",
             "One forward is missing between the start and the turns."),
        ],
        judge=by_cases(_judge_limited, "{} stages, {} micro-batches, room for {}", [
            (1, 1, 1), (2, 2, 2), (2, 6, 4), (3, 4, 3), (4, 8, 2), (4, 8, 1),
        ]),
    ),
    ("micro_batches", 5): Question(
        "how many times too large the gradients are, with equal sizes",
        4,
        [
            (0.25, "They are too large: four means are added."),
            (1, "A sum of four means is not the mean of all."),
            (16, "The number of examples does not matter, only that of the means."),
        ],
    ),
    ("shorter_bubbles", 1): Question(
        "how often device 0 goes forward first",
        23,
        [
            (7, "That is 1F1B's count, and it gets stuck."),
            (8, "That is 1F1B's count, and it gets stuck."),
            (22, "One more: each of the turns begins with a forward."),
            (15, "It has a second stage, too."),
        ],
    ),
    ("shorter_bubbles", 2): Task(
        "a function `parts(x, W, d_out)`",
        parts,
        [
            ("d_out.T @ x", "x.T @ d_out", "A gradient has the shape of its array."),
            ("lambda: d_out @ W, lambda: d_out.T @ x", "d_out @ W, d_out.T @ x",
             "The arrays are there at once: then nothing can be done later."),
            (_both_at_once, "Both are computed at the start: nothing is left to wait."),
            ("lambda: d_out @ W, lambda: d_out.T @ x",
             "lambda: d_out.T @ x, lambda: d_out @ W",
             "First the gradient of x, for the stage before, then that of W."),
            (_one_name,
             "A function looks up its names when it is called: after a loop, all see "
             + "the last ones."),
            ("d_out.T @ x", "d_out.T @ x / len(x)",
             "d_out has the mean already, if there is one: do not divide again."),
            ("d_out @ W,", "d_out @ W.T,", "x @ W.T goes back with W itself."),
            ("d_out @ W,", "(d_out @ W, d_out.T @ x)[0],",
             "The input part computes the gradient of W as well, and throws it away."),
            ("lambda: d_out.T @ x", "lambda: (d_out @ W, d_out.T @ x)[1]",
             "The weights part computes the gradient of x once more."),
        ],
        judge=by_cases(_judge_parts, "x ({0}, {1}), W ({2}, {1})", [
            (1, 1, 2), (2, 2, 2), (4, 3, 2),
        ]),
    ),
    ("shorter_bubbles", 3): Question(
        "how many slots a device waits in 1F1B and in ZB-H1",
        [102, 30],
        [
            ([102, 18], "The formula wants a short W. What says the clock?"),
            ([30, 102], "1F1B comes first."),
        ],
    ),
    ("shorter_bubbles", 4): Task(
        "a function `filled(p, m, most)`",
        filled,
        [
            (_one_after_the_other,
             "A device waits for each micro-batch to come back, with nothing to do."),
            (_weights_last,
             "A micro-batch is held until its weights part is done: do some earlier."),
            ("f.chunk - w.chunk < most", "f.chunk - w.chunk < p",
             "The room is `most`, whatever the number of devices."),
            ("f.chunk - w.chunk < most", "f.chunk - w.chunk <= most",
             "The new one is held, too: is there room for it?"),
            ("f.chunk - w.chunk < most", "f.chunk - i.chunk < most",
             "The input part lets nothing go: the weights part needs it still."),
            ("if i.chunk < f.chunk and",
             "if w.chunk < i.chunk:\n                now.append(w)\n"
             + "            elif i.chunk < f.chunk and",
             "Nobody waits for a weights part: what others wait for comes first."),
            (lambda p, m, most: interleaved(p, m - m % p, 1),
             "Backward work is in two parts: `input` and `weights`."),
        ],
        judge=by_cases(_judge_filled, "{} devices, {} micro-batches, room for {}", [
            (1, 2, 1), (2, 2, 1), (2, 3, 2), (2, 6, 4), (3, 4, 3), (4, 8, 2),
        ]),
    ),
}
