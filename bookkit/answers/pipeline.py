"""Answers to exercises of the part on pipelines."""

from itertools import combinations

import numpy

from d2l_ext.pipeline import buckets
from d2l_ext.pipeline.partition import balance, device_times
from d2l_ext.pipeline.schedule import Work, clock, peak_held
from d2l_ext.pipeline.short_bubbles import Op, most_held, op_clock
from d2l_ext.pipeline.step_time import Layer, predict

from .question import Question, Task

KINDS = {"F": "forward", "B": "backward"}


def copies(placement, T):
    """A message there and one back, for each step, at every change of device."""
    return 2 * T * sum(a != b for a, b in zip(placement, placement[1:]))


def judge_copies(function):
    for placement in ([0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 2, 0], [0]):
        found, right = function(placement, 16), copies(placement, 16)
        if found != right:
            return f"{placement} takes {right} copies in 16 steps, not {found}."
    return ""


def gates(x, h, Wx, Wh, product):
    """The sums for the four gates of an LSTM, by eight products."""
    pairs = zip(numpy.split(Wx, 4), numpy.split(Wh, 4))
    return numpy.stack([product(x, wx.T) + product(h, wh.T) for wx, wh in pairs])


def judge_gates(function):
    rng, columns = numpy.random.RandomState(3), []
    x, h, Wx, Wh = rng.randn(3, 5), rng.randn(3, 4), rng.randn(16, 5), rng.randn(16, 4)

    def product(a, b):
        columns.append(b.shape[1])
        return a @ b

    found, right = function(x, h, Wx, Wh, product), gates(x, h, Wx, Wh, numpy.matmul)
    if numpy.shape(found) != right.shape:
        return f"Its shape is {numpy.shape(found)}, and should be {right.shape}."
    wrong = (abs(found - right) > 1e-9).sum()
    if wrong:
        return (
            f"{wrong} of {right.size} sums are wrong. Which rows belong to which gate?"
        )
    if columns != [4] * 8:
        return (
            f"It asks for {len(columns)} products of {max(columns, default=0)} "
            "columns; eight of 4 were asked for."
        )
    return ""


def gpipe(p, m, backward=reversed):
    """GPipe's schedule; `backward`: how it orders its backward work."""
    order = [("F", i) for i in range(m)] + [("B", i) for i in backward(range(m))]
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


def _run(orders, p, m):
    """What is wrong with a schedule, or ""; its slots, its works, what it holds."""
    wanted = sorted((kind, i) for kind in KINDS for i in range(m))
    if len(orders) != p or any(sorted(order) != wanted for order in orders):
        return f"A stage of {p} does not do F and B of each of {m} once.", 0, 0, 0
    works = [[Work(KINDS[kind], i) for kind, i in order] for order in orders]
    slots = clock(works)
    return "", max(slot.end for slot in slots), works, peak_held(works)


def judge_first_first(function):
    for p, m in ((1, 1), (3, 4), (4, 8)):
        problem, slots, works, _ = _run(function(p, m), p, m)
        if problem:
            return problem
        for s, order in enumerate(works):
            back = [work.chunk for work in order if work.kind == "backward"]
            if back != sorted(back):
                return f"Stage {s} of {p} goes backward with {back}."
        if slots > 2 * (m + p - 1):
            return f"It takes {slots} slots; {2 * (m + p - 1)} are enough."
    return ""


def judge_limited(function):
    for p, m, most in ((3, 4, 3), (4, 8, 2), (4, 8, 1), (2, 6, 4)):
        problem, slots, _, held = _run(function(p, m, most), p, m)
        if problem:
            return problem
        if max(held) > most:
            return f"With room for {most}, its stages hold {held}."
        fewest = max(slot[-1] for slot in clock(_run(limited(p, m, most), p, m)[2]))
        if slots > fewest:
            return f"With room for {most} it takes {slots} slots; {fewest} are enough."
    return ""


def parts(x, W, d_out):
    """Backward work of a layer `x @ W.T` in two parts."""
    return lambda: d_out @ W, lambda: d_out.T @ x


def judge_parts(function):
    rng = numpy.random.RandomState(5)
    x, W, d_out = rng.randn(4, 3), rng.randn(2, 3), rng.randn(4, 2)
    found = function(x, W, d_out)
    if len(found) != 2 or not all(map(callable, found)):
        return "It should return two functions without arguments."
    for what, mine, right in zip(("x", "W"), found, parts(x, W, d_out)):
        shape = numpy.shape(mine())
        if shape != right().shape:
            return f"The gradient of {what} has the shape {shape}, not {right().shape}."
        if not numpy.allclose(mine(), right()):
            return f"The gradient of {what} is wrong: {mine()}, not {right()}."
    return ""


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


def judge_filled(function):
    for p, m, most in ((3, 4, 3), (4, 8, 2), (4, 8, 3), (2, 6, 4)):
        orders = function(p, m, most)
        wanted = [sorted(order) for order in filled(p, m, most)]
        if [sorted(order) for order in orders] != wanted:
            return f"Not each of {p} devices does its {3 * m} works once."
        if max(most_held(orders)) > most:
            return f"With room for {most}, its devices hold {most_held(orders)}."
        slots, fewest = (
            max(end for *_, end in op_clock(each).values())
            for each in (orders, filled(p, m, most))
        )
        if slots > fewest:
            return f"With room for {most} it takes {slots} slots; {fewest} are enough."
    return ""


def one_after_the_other(p, m, most):
    """A micro-batch at a time."""
    kinds = ("forward", "input", "weights")
    return [[Op(s, kind, i) for i in range(m) for kind in kinds] for s in range(p)]


def judge_even_cut(function):
    for times, k in (([3, 1, 1, 1], 2), ([4, 1, 1, 5, 2, 2], 3), ([7, 1], 4)):
        placement = tuple(function(list(times), k))
        if placement != tuple(sorted(placement)):
            return f"The device numbers fall in {placement}."
        worst, least = (
            max(device_times(cut, times, k)) for cut in (placement, balance(times, k))
        )
        if worst > least:
            return (
                f"On {times} and {k} devices its bottleneck is {worst}; "
                f"{least} is possible."
            )
    return ""


def stepwise_slots(placement, work, T, whole=False):
    """Slots of a forward pass, step by step; `whole`: but for the last layer."""
    layers = [Layer("", forward=T * slots, backward=0) for slots in work]
    layers[-1].whole = whole
    return predict(placement, layers, T)


def judge_stepwise(function):
    for placement in ((0, 0, 0), (0, 1, 1), (0, 0, 1), (0, 1, 0)):
        found = function(placement, [1, 2, 3], 4)
        right = stepwise_slots(placement, [1, 2, 3], 4)
        if found != right:
            return (
                f"{placement} with work [1, 2, 3] and 4 steps takes {right:g} slots, "
                f"not {found:g}."
            )
    return ""


def time_first(rows, T):
    """Data and labels, (T, N) each, of sentences that are lists of numbers."""
    X, y = numpy.zeros((len(rows), T)), numpy.full((len(rows), T), -1.0)
    for n, row in enumerate(rows):
        X[n, : len(row) - 1], y[n, : len(row) - 1] = row[:-1], row[1:]
    return X.T, y.T


def judge_time_first(function):
    rows = [[1, 2, 3, 4], [5, 6, 7]]
    found, right = function(rows, 5), time_first(rows, 5)
    for what, mine, theirs in zip(("data", "labels"), found, right):
        shape = numpy.shape(mine)
        if shape != theirs.shape:
            return f"The {what} have the shape {shape}, and should have {theirs.shape}."
        wrong = (numpy.asarray(mine) != theirs).sum()
        if wrong:
            return f"{wrong} of {theirs.size} {what} are wrong."
    return ""


def _empty(lengths, sizes):
    return sum(min(T for T in sizes if T >= n) - n for n in lengths)


def best_buckets(lengths, number):
    """Up to `number` buckets that leave the fewest empty places."""
    others = sorted(set(lengths) - {max(lengths)})
    choices = combinations(others, min(number - 1, len(others)))
    sizes = ([*choice, max(lengths)] for choice in choices)
    return min(sizes, key=lambda sizes: _empty(lengths, sizes))


def judge_best_buckets(function):
    for lengths, number in (([1, 1, 1, 2, 9, 9, 10, 20], 3), ([3, 4, 8], 2), ([5], 4)):
        sizes = list(function(list(lengths), number))
        if len(sizes) > number:
            return f"{sizes} are more than {number} buckets."
        if max(sizes) < max(lengths):
            return f"{sizes} have no room for a sentence of {max(lengths)}."
        best = best_buckets(lengths, number)
        empty, least = (_empty(lengths, some) for some in (sizes, best))
        if empty > least:
            return f"On {lengths} it leaves {empty} places empty, not {least}."
    return ""


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
        "a function of placement and T",
        copies,
        [
            (lambda placement, T: copies(placement, T) // 2,
             "[0, 0, 1, 1] takes 32 copies in 16 steps, not 16."),
            (lambda placement, T: 2 * T * max(placement),
             "[0, 1, 0, 1] takes 96 copies in 16 steps, not 32."),
        ],
        judge=judge_copies,
    ),
    ("lstm_pipeline", 4): Task(
        "a function of x, h, Wx, Wh and product",
        gates,
        [
            (lambda x, h, Wx, Wh, product: numpy.stack(
                 numpy.split(product(x, Wx.T) + product(h, Wh.T), 4, axis=1)
             ),
             "It asks for 2 products of 16 columns; eight of 4 were asked for."),
            (lambda x, h, Wx, Wh, product: gates(x, h, Wx[::-1], Wh, product),
             "48 of 48 sums are wrong. Which rows belong to which gate?"),
        ],
        judge=judge_gates,
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
        "a function of times and k",
        balance,
        [
            (lambda times, k: balance([1] * len(times), k),
             "On [3, 1, 1, 1] and 2 devices its bottleneck is 4; 3 is possible."),
            (lambda times, k: tuple(i % k for i in range(len(times))),
             "The device numbers fall in (0, 1, 0, 1)."),
        ],
        judge=judge_even_cut,
    ),
    ("where_to_cut", 4): Task(
        "a function of placement, work and T",
        stepwise_slots,
        [
            (lambda placement, work, T: stepwise_slots(placement, work, T, True),
             "(0, 0, 1) with work [1, 2, 3] and 4 steps takes 15 slots, not 24."),
            (lambda placement, work, T: T * sum(work),
             "(0, 1, 1) with work [1, 2, 3] and 4 steps takes 21 slots, not 24."),
        ],
        judge=judge_stepwise,
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
        "a function of rows and T",
        time_first,
        [
            (lambda rows, T: [a.T for a in time_first(rows, T)],
             "The data have the shape (2, 5), and should have (5, 2)."),
            (lambda rows, T: (time_first(rows, T)[0],) * 2,
             "10 of 10 labels are wrong."),
        ],
        judge=judge_time_first,
    ),
    ("buckets", 3): Task(
        "a function of lengths and number",
        best_buckets,
        [
            (buckets.choose,
             "On [1, 1, 1, 2, 9, 9, 10, 20] it leaves 17 places empty, not 5."),
            (lambda lengths, number: [10], "[10] have no room for a sentence of 20."),
        ],
        judge=judge_best_buckets,
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
        "a function of p and m",
        lambda p, m: gpipe(p, m, list),
        [
            (gpipe, "Stage 0 of 3 goes backward with [3, 2, 1, 0]."),
            (lambda p, m: limited(p, m, 1), "It takes 24 slots; 12 are enough."),
        ],
        judge=judge_first_first,
    ),
    ("micro_batches", 4): Task(
        "a function of p, m and most",
        limited,
        [
            (lambda p, m, most: limited(p, m, p),
             "With room for 2, its stages hold [4, 3, 2, 1]."),
            (lambda p, m, most: limited(p, m, 1),
             "With room for 3 it takes 24 slots; 12 are enough."),
        ],
        judge=judge_limited,
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
        "a function of x, W and d_out",
        parts,
        [
            (lambda x, W, d_out: (lambda: d_out @ W, lambda: x.T @ d_out),
             "The gradient of W has the shape (3, 2), not (2, 3)."),
            (lambda x, W, d_out: (d_out @ W, d_out.T @ x),
             "It should return two functions without arguments."),
        ],
        judge=judge_parts,
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
        "a function of p, m and most",
        filled,
        [
            (one_after_the_other, "With room for 3 it takes 28 slots; 15 are enough."),
            (lambda p, m, most: filled(p, m, p),
             "With room for 2, its devices hold [4, 4, 4, 4]."),
        ],
        judge=judge_filled,
    ),
}
