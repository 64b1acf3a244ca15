"""Answers to exercises of the part on tensor parallelism."""

from itertools import chain

import numpy

from .counts import counted
from .question import Question, Task, by_cases, compared

SUMMED, GATHERED = "{} byte{s} summed", "{} byte{s} gathered"

# ---- layerwise ----


def _collective(counts, name, made):
    """Calls `made` with the arrays of several devices, and counts the bytes of one."""

    def called(arrays):
        arrays = list(arrays)
        if len(arrays) > 1:
            counts.add(name, arrays[0].nbytes)
        return made(arrays)

    return called


def forward_sum(X, W1s, W2s, b2, allreduce):
    """The output of two layers whose parts are summed once, and b2 added once."""
    return allreduce([X @ W1 @ W2 for W1, W2 in zip(W1s, W2s)]) + b2


def input_gradient(dY, hidden, W1s, W2s, allreduce):
    """Each device's contribution to the input's gradient, summed."""
    triples = zip(hidden, W1s, W2s)
    return allreduce([dY @ W2.T * (H > 0) @ W1.T for H, W1, W2 in triples])


def _block(n, width, hidden):
    """X, its W1 by columns and W2 by rows, and b2: small whole numbers."""
    rng, cuts = numpy.random.RandomState(7), numpy.cumsum(hidden)
    shapes = (n, width), (width, cuts[-1]), (cuts[-1], width), (width,)
    X, W1, W2, b2 = (rng.randint(-3, 5, shape) * 1.0 for shape in shapes)
    return X, numpy.split(W1, cuts[:-1], axis=1), numpy.split(W2, cuts[:-1]), b2


def _run_forward_sum(function, counts, *case):
    given = counts.keep(*_block(*case))
    return function(*given, _collective(counts, SUMMED, sum))


def _run_input_gradient(function, counts, *case):
    X, W1s, W2s, b2 = _block(*case)
    hidden = [numpy.maximum(X @ W1, 0) for W1 in W1s]
    given = counts.keep(X + b2, hidden, W1s, W2s)
    return function(*given, _collective(counts, SUMMED, sum))


def _sums_hidden_values(X, W1s, W2s, b2, allreduce):
    return allreduce([X @ W1 for W1 in W1s]) @ W2s[0] + b2


# ---- experts ----


def dropped(choices, E, most):
    """The choices (token, 0 or 1) that come when their expert has no place left."""
    places, late = [most] * E, []
    for c in (0, 1):
        for t, both in enumerate(choices):
            places[both[c]] -= 1
            if places[both[c]] < 0:
                late.append((t, c))
    return sorted(late)


def _token_by_token(choices, E, most):
    return [
        (t, c) for t, both in enumerate(choices) for c in (0, 1)
        if [*chain(*choices[:t])].count(both[c]) >= most
    ]  # fmt: skip


def send_counts(wants, E):
    """Rows from device i to device j: a table, with zeros for what stays."""
    k = len(wants)
    home = [j for j in range(k) for _ in range(j * E // k, (j + 1) * E // k)]
    return [
        [sum(home[e] == j != i for e in wants[i]) for j in range(k)] for i in range(k)
    ]


# ---- transformer ----


def shares(W, heads, k):
    """Each device's heads of stacked queries, keys and values, stacked alike."""
    stacked = W.reshape(3, k, -1, W.shape[1])
    return [stacked[:, i].reshape(-1, W.shape[1]) for i in range(k)]


def _every_other_row(W, heads, k):
    stacked = W.reshape(3, -1, k, W.shape[1])
    return [stacked[:, :, i].reshape(-1, W.shape[1]) for i in range(k)]


def _head_by_head(W, heads, k):
    stacked = W.reshape(3, k, heads // k, -1, W.shape[1])
    return [stacked[:, i].swapaxes(0, 1).reshape(-1, W.shape[1]) for i in range(k)]


def _judge_shares(function, heads, size, k):
    width = heads * size
    W = numpy.arange(3.0 * width * width).reshape(-1, width)
    right = shares(W, heads, k)
    found = [numpy.asarray(part) for part in function(W.copy(), heads, k)]
    if len(found) != k:
        return f"there are {len(found)} shares."
    for i, (part, own) in enumerate(zip(found, right)):
        if part.shape != own.shape:
            return f"share {i} has shape {part.shape}, and not {own.shape}."
        rows, its = ((x[:, 0] // width).astype(int).tolist() for x in (part, own))
        if rows != its:
            return f"device {i} has the rows {rows}, and not {its}."
        if (part != own).any():
            return f"the rows of device {i} are changed."
    return ""


def log_sum_exp(z):
    most = z.max(1)
    return most + numpy.log(numpy.exp(z - most[:, None]).sum(1))


def sharded_loss(scores, targets, firsts, allgather):
    """The loss of each position, from two numbers of each device."""
    rows, mine = numpy.arange(len(targets)), []
    for z, first in zip(scores, firsts):
        column = targets - first
        here = (column >= 0) & (column < z.shape[1])
        own = numpy.where(here, z[rows, column.clip(0, z.shape[1] - 1)], 0)
        mine.append(numpy.stack([log_sum_exp(z), own]))
    found = allgather(mine)
    return log_sum_exp(found[:, 0].T) - found[:, 1].sum(0)


def _gathered_loss(scores, targets, firsts, allgather):
    whole = numpy.hstack(list(allgather(scores)))
    return log_sum_exp(whole) - whole[range(len(targets)), targets]


def _three_numbers(scores, targets, firsts, allgather):
    allgather([z.max(1) for z in scores])
    return sharded_loss(scores, targets, firsts, allgather)


def _run_sharded_loss(function, counts, n, words, scale):
    rng, cuts = numpy.random.RandomState(7), numpy.cumsum(words)
    z, targets = rng.randn(n, cuts[-1]) * scale, rng.randint(cuts[-1], size=n)
    targets[: len(cuts) - 1] = cuts[:-1][:n]  # first words of devices
    given = counts.keep(numpy.split(z, cuts[:-1], axis=1), targets, [0, *cuts[:-1]])
    with numpy.errstate(all="ignore"):
        return function(*given, _collective(counts, GATHERED, numpy.stack))


# ---- ring_attention ----


def combine(one, two):
    """The state of queries that have met the keys of both states."""
    (m1, s1, o1), (m2, s2, o2) = one, two
    m = numpy.maximum(m1, m2)
    old1, old2 = numpy.exp(m1 - m), numpy.exp(m2 - m)
    return m, s1 * old1 + s2 * old2, o1 * old1 + o2 * old2


def _state(shape, scale, seed):
    """Maximum, sum and output of scores (heads, queries, keys) with some values."""
    rng = numpy.random.RandomState(seed)
    x, v = scale * rng.randn(*shape), rng.randn(shape[0], shape[2], 3)
    m = x.max(axis=2, keepdims=True)
    p = numpy.exp(x - m)
    return m, p.sum(axis=2, keepdims=True), p @ v


def _judge_combine(function):
    numbers = ([1.0, 2.0, 4.0], [3.0, 1.0, 0.5], [2000.0, 1.5, 3.0])
    one, two, large = (
        tuple(numpy.full((1, 1, 1), n) for n in state) for state in numbers
    )
    cases = (
        (one, one), (one, two), (two, one), (two, large), (large, two),
        (_state((2, 3, 4), 1, 1), _state((2, 3, 5), 1, 2)),
    )  # fmt: skip
    with numpy.errstate(all="ignore"):
        return [*compared(combine, cases, tolerance=1e-9)(function)]


def fold(k):
    """An order of 2k chunks: an early one and a late one for each of k devices."""
    return [[i, 2 * k - 1 - i] for i in range(k)]


def _judge_fold(function, k):
    order = [list(own) for own in function(k)]
    once = sorted(c for own in order for c in own) == list(range(2 * k))
    if not once or [len(own) for own in order] != [2] * k:
        return f"it is {order}, and not {2 * k} chunks, two for each device."
    for r in range(k):
        pairs = [(order[i], order[i - r]) for i in range(k)]
        row = [sum(b <= a for a in own for b in come) for own, come in pairs]
        if len({*row}) > 1:
            return f"it is {order}: a round has {row} pairs."
    return ""


def needed(a, b, size, window):
    """Whether a query of chunk a looks at a key of chunk b, within the window."""
    return a == b or (b < a and (a - b - 1) * size + 1 < window)


def _judge_needed(function, size, window):
    at = numpy.arange(6 * size)
    back = at[:, None] - at
    seen = (back >= 0) & (back < window)
    for a, b in numpy.ndindex(6, 6):
        part = seen[a * size : (a + 1) * size, b * size : (b + 1) * size]
        found = function(a, b, size, window)
        if found is None or bool(found) != part.any():
            return (
                f"needed({a}, {b}, {size}, {window}) is {found}; of the "
                f"pairs of positions, {part.sum()} are looked at."
            )
    return ""


QUESTIONS = {
    ("transformer", 1): Question(
        "the number of allreduces",
        4 * 24 + 2,
        [
            (4 * 24, "The embedding and the scores are divided, too."),
            (2 * 24, "A block has two halves, and a step two directions."),
        ],
    ),
    ("transformer", 2): Task(
        "your function shares",
        shares,
        [
            (lambda W, heads, k: numpy.split(W, k),
             "Equal parts of the stack: the first has queries only. Where are its "
             + "heads' keys and values?"),
            (_every_other_row, "The rows of a head stand together, and stay together."),
            (_head_by_head,
             "That is head by head. Asked are the queries of all, then the keys."),
            ("stacked[:, i]", "stacked[0, i]",
             "That has the queries: attention needs keys and values, too."),
            ("stacked[:, i]", "stacked[:, 0]", "All devices get those of the first."),
            (".reshape(-1, W.shape[1]) for", " for",
             "Queries, keys and values stand one below the other: on two axes."),
            (lambda W, heads, k: numpy.hsplit(W, k),
             "Columns belong to the inputs, which every head reads. Cut the rows."),
        ],
        judge=by_cases(_judge_shares, "{} heads of {} columns, {} devices", [
            (1, 2, 1), (2, 2, 2), (4, 2, 2), (6, 1, 3),
        ]),
    ),
    ("transformer", 3): Task(
        "your function loss",
        sharded_loss,
        [
            (_gathered_loss, "Every device gets all scores: what of them is needed?"),
            (_three_numbers,
             "A device's maximum and its sum can be sent as one number: a logarithm."),
            ("log_sum_exp(z), own", "numpy.log(numpy.exp(z).sum(1)), own",
             "The exponential of a large score overflows: take out the maximum first."),
            ("numpy.where(here, z", "numpy.where(True, z",
             "The target's score counts only on the device that has its word."),
            ("targets - first", "targets",
             "A device numbers its columns from 0: where do its words begin?"),
            ("column < z", "column <= z",
             "The word behind a device's last one is the next device's first."),
            ("log_sum_exp(found[:, 0].T)", "found[:, 0].sum(0)",
             "Sums of exponentials are added up, and not their logarithms."),
            ("log_sum_exp(found[:, 0].T)", "found[:, 0].max(0)",
             "The largest part is not the sum of all parts."),
            ("own]))\n    found = allgather(mine)",
             "own]))\n    found = numpy.stack(mine)",
             "How do the devices learn of each other's numbers?"),
            ("log_sum_exp(found[:, 0].T) - found[:, 1].sum(0)",
             "(log_sum_exp(found[:, 0].T) - found[:, 1].sum(0)).mean()",
             "Asked is the loss of each position, and not their mean."),
            ("log_sum_exp(found[:, 0].T) - found[:, 1].sum(0)",
             "found[:, 1].sum(0) - log_sum_exp(found[:, 0].T)",
             "That is the logarithm of a probability; a loss is not below 0."),
        ],
        judge=counted(sharded_loss, _run_sharded_loss,
                      "{} positions, {} words, scores times {}", [
            (1, [2], 1), (2, [3, 3], 1), (3, [1, 4, 1], 1), (2, [3, 3], 1000),
        ], about=[GATHERED]),
    ),
    ("transformer", 4): Question(
        "the factor",
        1.25,
        [
            (1.5, "There are four moves in a half: two forward, two backward."),
            (2, "One move comes to the four of a half."),
        ],
    ),
    ("layerwise", 1): Question(
        "the number of devices",
        6,
        [
            (5, "A fifth is still more than 100 MB: round up."),
            (3, "The block has two matrices."),
            (2, "A number has 4 bytes, and there are two matrices."),
            (11, "That would be double precision."),
        ],
    ),
    ("layerwise", 2): Task(
        "your function forward_sum",
        forward_sum,
        [
            ("X @ W1 @ W2 for W1, W2 in zip(W1s, W2s)]) + b2",
             "X @ W1 @ W2 + b2 for W1, W2 in zip(W1s, W2s)])",
             "Every device adds b2: how often is it in the sum?"),
            (" + b2", "", "Where is b2?"),
            ("allreduce([", "sum([",
             "No device has the others' parts: allreduce adds them up."),
            ("zip(W1s, W2s)]", "zip(W1s[:1], W2s)]",
             "That is what device 0 contributes. The others have hidden values, too."),
            ("]) + b2", "]) / len(W1s) + b2",
             "The parts are terms of one sum: a mean of them is too small."),
            (_sums_hidden_values,
             "Each device has hidden values of its own: they are no terms of a sum."),
            ("zip(W1s, W2s)", "zip(W1s, W2s[::-1])",
             "The rows of W2 go with the columns of W1 on the same device."),
            ("return allreduce", "allreduce([X] * len(W1s))\n    return allreduce",
             "Every device has the whole input already: one sum is enough."),
        ],
        judge=counted(forward_sum, _run_forward_sum, "X ({}, {}), hidden {}", [
            (1, 1, [1]), (1, 2, [1, 1]), (2, 3, [2, 2, 2]), (8, 8, [5, 1, 6]),
        ], about=[SUMMED]),
    ),
    ("layerwise", 3): Task(
        "your function input_gradient",
        input_gradient,
        [
            (" * (H > 0)", "", "Does it go back through the ReLU?"),
            ("(H > 0)", "H",
             "The ReLU's slope is 1 or 0. Its output is something else."),
            ("(H > 0)", "(H <= 0)",
             "A gradient passes where the output is above 0, not where it is 0."),
            ("allreduce([", "sum([",
             "Each device knows its own contribution: allreduce adds them up."),
            ("zip(hidden, W1s, W2s)", "zip(hidden[:1], W1s, W2s)",
             "What do the other devices contribute?"),
            ("W2.T", "W2", "Backward, a matrix works the other way round: transposed."),
            ("@ W1.T for H, W1, W2 in triples])",
             "@ W1.T for H, W1, W2 in triples]) / len(W1s)",
             "The input goes to all devices, so their gradients add up: no mean."),
            ("triples = ", "dY = allreduce([dY] * len(W1s))\n    triples = ",
             "dY is the same on every device, and whole: it needs no sum."),
            ("zip(hidden, ", "zip(hidden[::-1], ",
             "Each device has its own hidden values: they say what passed there."),
        ],
        judge=counted(input_gradient, _run_input_gradient, "dY ({}, {}), hidden {}", [
            (2, 2, [3]), (1, 2, [3, 3]), (2, 3, [2, 2, 2]), (8, 8, [5, 1, 6]),
        ], about=[SUMMED]),
    ),
    ("layerwise", 4): Question(
        "the bytes that each device gives to the allgather of the hidden values",
        16 * 1024 * 4,
        [
            (16 * 2048 * 4, "Each device has half of the hidden values."),
            (16 * 1024, "These are numbers; each has 4 bytes."),
            (16 * 512 * 4, "That is the output. What does the second layer read?"),
        ],
    ),
    ("experts", 1): Question(
        "the number of places of an expert",
        160,
        [
            (80, "There are two experts per token."),
            (128, "The capacity factor is 1.25."),
            (10240, "That is for all experts together."),
        ],
    ),
    ("experts", 2): Task(
        "your function dropped",
        dropped,
        [
            (lambda choices, E, most: [], "An expert has `most` places, and no more."),
            (_token_by_token,
             "Token by token, a second choice takes the place of a later first one."),
            ("sorted(late)", "late", "They are right; the list is to be sorted."),
            ("< 0", "<= 0", "The last place is a place: one fewer is late."),
            ("< 0", ">= 0", "These are the choices that find a place."),
            ("for t, both", "places = [most] * E\n        for t, both",
             "First and second choices share an expert's places."),
            ("for c in (0, 1)", "for c in (0,)", "Second choices can be late, too."),
            ("for c in (0, 1)", "for c in (1, 0)", "First choices go first."),
            ("late.append((t, c))", "late.append((t, both[c]))",
             "Asked is which choice it was, 0 or 1, and not its expert."),
        ],
        judge=compared(dropped, [
            ([(0, 1)], 2, 1), ([(0, 1), (2, 1)], 3, 1), ([(0, 1), (1, 0)], 2, 1),
            ([(0, 1), (0, 2), (0, 1)], 4, 2),
            ([(0, 1), (0, 2), (0, 1), (1, 0), (1, 2), (2, 0)], 3, 2),
        ]),
    ),
    ("experts", 3): Task(
        "your function send_counts",
        send_counts,
        [
            ("home[e] == j != i", "home[e] == j",
             "What stays on a device is not sent."),
            ("home[e] == j != i for e in wants[i]",
             "home[e] == i != j for e in wants[j]",
             "Row i is what device i sends, and not what it gets."),
            ("home[e] == j", "e == j", "That takes an expert's number for a device's."),
            ("[j for j in range(k) for _ in range(j * E // k, (j + 1) * E // k)]",
             "[e // max(1, E // k) for e in range(E)]",
             "With more experts for some devices, that is not where they are."),
            ("[j for j in range(k) for _ in range(j * E // k, (j + 1) * E // k)]",
             "[e * k // E for e in range(E)]",
             "Rounded like that, other devices have the greater shares."),
            ("[j for j in range(k) for _ in range(j * E // k, (j + 1) * E // k)]",
             "[e % k for e in range(E)]",
             "The experts are not dealt out in turn: each device has a run of them."),
            ("(j + 1) * E // k)", "(j + 1) * E // k - 1)",
             "A range ends before its second number: that is the -1."),
            ("for e in wants[i]", "for e in set(wants[i])",
             "Two tokens that want the same expert are two rows."),
        ],
        judge=compared(send_counts, [
            ([[0, 1]], 2), ([[0], [0]], 2), ([[0, 0, 1], [1, 1, 0]], 2),
            ([[0, 1, 2, 3], [1]], 4),
            ([[0, 1, 2, 3, 4], [4, 4, 0, 2], [1, 2, 3]], 5),
        ]),
    ),
    ("ring_attention", 1): Question(
        "the share of rounds in which a device waits",
        28 / 64,
        [
            (36 / 64, "In these rounds the devices work."),
            (0.5, "A device's own chunk is work, too."),
            (7 / 8, "That is device 0 alone."),
        ],
    ),
    ("ring_attention", 2): Task(
        "your function combine",
        combine,
        [
            (lambda one, two: tuple(a + b for a, b in zip(one, two)),
             "Sums with different maxima cannot be added up, and maxima never."),
            (", numpy.exp(m2 - m)", ", 1",
             "The second state may have the smaller maximum: rescale both."),
            ("numpy.exp(m1 - m)", "1",
             "The first state may have the smaller maximum: rescale both."),
            ("numpy.exp(m1 - m), numpy.exp(m2 - m)", "numpy.exp(m1), numpy.exp(m2)",
             "exp of a maximum itself overflows: take the distance to the new one."),
            ("numpy.exp(m1 - m), numpy.exp(m2 - m)",
             "numpy.exp(m - m1), numpy.exp(m - m2)",
             "A greater maximum makes what was summed before smaller."),
            ("return m,", "return m1,",
             "The sums are of the new maximum: return that with them."),
            ("numpy.maximum(m1, m2)", "numpy.minimum(m1, m2)",
             "Measured from the smaller maximum, exponentials overflow."),
            ("numpy.maximum(m1, m2)", "max(m1.max(), m2.max())",
             "Every query of every head has a maximum of its own."),
            ("o1 * old1 + o2 * old2", "o1 + o2",
             "The outputs are sums of exponentials, too: rescale them."),
            ("o1 * old1 + o2 * old2",
             "(o1 * old1 + o2 * old2) / (s1 * old1 + s2 * old2)",
             "The division comes at the very end, when all keys have been met."),
        ],
        judge=_judge_combine,
    ),
    ("ring_attention", 3): Task(
        "your function fold",
        fold,
        [
            ("[i, 2 * k - 1 - i]", "[2 * i, 2 * i + 1]",
             "The first device has two early chunks, and little to look at."),
            ("[i, 2 * k - 1 - i]", "[i, k + i]",
             "The device with the earliest chunk should have the latest, too."),
            ("[[i, 2 * k - 1 - i] for i in range(k)]", "[[i] for i in range(2 * k)]",
             "That is for twice as many devices."),
            ("2 * k - 1 - i", "2 * k - i",
             "The last chunk has the number 2k - 1, for the first is 0."),
            ("2 * k - 1 - i", "k - 1 - i", "There are 2k chunks, and not k."),
            ("range(k)", "range(1, k + 1)", "Chunks are numbered from 0."),
            ("[[i, 2 * k - 1 - i] for i in range(k)]", "list(range(2 * k))",
             "Each device needs a list of its own, in the list."),
        ],
        judge=by_cases(_judge_fold, "fold({})", [(1,), (2,), (3,), (4,), (6,)]),
    ),
    ("ring_attention", 4): Task(
        "your function needed",
        needed,
        [
            ("(a - b - 1) * size + 1 < window", "True",
             "An earlier chunk may be out of the window."),
            ("(a - b - 1) * size + 1", "(a - b) * size",
             "That is how far a query is from its like in the other chunk. Some are "
             + "nearer."),
            ("(a - b - 1) * size + 1", "(a - b + 1) * size - 1",
             "That is the farthest pair. One that is near is enough."),
            (" + 1 < window", " < window",
             "The last key before a chunk is 1 from its first query, and the query "
             + "itself is in the window."),
            (" + 1 < window", " + 2 < window",
             "The first query is next to the last key before its chunk: 1 away."),
            ("b < a and ", "", "Keys of later chunks are never looked at."),
            ("b < a and (a - b - 1)", "(abs(a - b) - 1)",
             "Nobody looks ahead: the window lies before a position."),
            ("a == b or ", "", "A chunk's queries look at keys of their own chunk."),
            ("(a - b - 1) * size + 1 < window", "a - b < window",
             "The window counts positions, and not chunks."),
        ],
        judge=by_cases(_judge_needed, "size {}, window {}", [
            (1, 1), (1, 3), (4, 1), (4, 2), (4, 5), (4, 6), (3, 100),
        ]),
    ),
}
