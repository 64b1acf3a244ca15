"""Answers to exercises of the part on tensor parallelism."""

from itertools import chain, product

import numpy

from .question import Question, Task


class Allreduce:
    """Sums NumPy arrays, and counts the bytes of one of them each time."""

    def __init__(self):
        self.nbytes = []

    def __call__(self, arrays):
        self.nbytes.append(arrays[0].nbytes)
        return sum(arrays)


def parts_of_a_block():
    """X (8, 8), the columns of W1 and the rows of W2 on three devices, and b2."""
    rng = numpy.random.RandomState(7)
    W1, W2 = rng.randn(8, 12), rng.randn(12, 8)
    return rng.randn(8, 8), numpy.hsplit(W1, 3), numpy.vsplit(W2, 3), rng.randn(8)


def forward_sum(X, W1s, W2s, b2, allreduce):
    """The output of two layers whose parts are summed once, and b2 added once."""
    return allreduce([X @ W1 @ W2 for W1, W2 in zip(W1s, W2s)]) + b2


def judge_forward_sum(function):
    X, W1s, W2s, b2 = parts_of_a_block()
    allreduce, right = Allreduce(), X @ numpy.hstack(W1s) @ numpy.vstack(W2s) + b2
    found = numpy.asarray(function(X, W1s, W2s, b2, allreduce))
    for times in (-1, 2):
        if found.shape == right.shape and numpy.allclose(found - times * b2, right):
            return f"The output is wrong by b2, {times} times. How often is it added?"
    return compared(found, right, allreduce, "What is added up?")


def input_gradient(dY, hidden, W1s, W2s, allreduce):
    """Each device's contribution to the input's gradient, summed."""
    triples = zip(hidden, W1s, W2s)
    return allreduce([dY @ W2.T * (H > 0) @ W1.T for H, W1, W2 in triples])


def judge_input_gradient(function):
    X, W1s, W2s, _ = parts_of_a_block()
    dY = numpy.random.RandomState(8).randn(8, 8)
    hidden, allreduce = [numpy.maximum(X @ W1, 0) for W1 in W1s], Allreduce()
    found = numpy.asarray(function(dY, hidden, W1s, W2s, allreduce))
    right = input_gradient(dY, hidden, W1s, W2s, sum)
    hint = (
        "Does it go back through the ReLU?"
        if allreduce.nbytes
        else "What do the other devices contribute?"
    )
    return compared(found, right, allreduce, hint)


def compared(found, right, allreduce, hint):
    """What is not right of a result, and of the bytes that were summed."""
    if found.shape != right.shape:
        return f"Its shape is {found.shape}, and should be {right.shape}."
    wrong = (abs(found - right) > 1e-9).sum()
    if wrong:
        return f"{wrong} of {right.size} numbers are wrong. {hint}"
    if not allreduce.nbytes:
        return "Nothing went through allreduce: no device has all of the weights."
    if sum(allreduce.nbytes) > right.nbytes:
        total = sum(allreduce.nbytes)
        return f"It sums {total:,} bytes; {right.nbytes:,} are enough."
    return ""


def dropped(choices, E, most):
    """The choices (token, 0 or 1) that come when their expert has no place left."""
    places, late = [most] * E, []
    for c in (0, 1):
        for t, both in enumerate(choices):
            places[both[c]] -= 1
            if places[both[c]] < 0:
                late.append((t, c))
    return sorted(late)


def judge_dropped(function):
    choices = [(0, 1), (0, 2), (0, 1), (1, 0), (1, 2), (2, 0)]
    for most in (2, 4, 12):
        right = dropped(choices, 3, most)
        found = [tuple(pair) for pair in function([list(c) for c in choices], 3, most)]
        wrong = sorted({*found} ^ {*right})
        if wrong and wrong[0] in right:
            return f"With {most} places, {wrong[0]} is late, too."
        if wrong:
            return f"With {most} places, {wrong[0]} is in time: first choices go first."
        if found != right:
            return "They are right, but not sorted, or twice in the list."
    return ""


def send_counts(wants, E):
    """Rows from device i to device j: a table, with zeros for what stays."""
    k = len(wants)
    home = [j for j in range(k) for _ in range(j * E // k, (j + 1) * E // k)]
    return [
        [sum(home[e] == j != i for e in wants[i]) for j in range(k)] for i in range(k)
    ]


def judge_send_counts(function):
    for wants, E in (
        ([[0, 0, 1], [1, 1, 0]], 2),
        ([[0, 1, 2, 3, 4], [4, 4, 0, 2], [1, 2, 3]], 5),
    ):
        found = [[int(n) for n in row] for row in function(wants, E)]
        right = send_counts(wants, E)
        k = len(wants)
        if [len(row) for row in found] != [k] * k:
            return f"It is no table of {k} rows and {k} columns."
        for i, j in product(range(k), repeat=2):
            n, m = found[i][j], right[i][j]
            if i == j and n:
                return f"Device {i} sends {n} rows to itself. What stays is not sent."
            if n != m:
                return (f"{E} experts on {k} devices: device {i} sends {n} to {j}, "
                        f"and should send {m}.")  # fmt: skip
    return ""


def shares(W, heads, k):
    """Each device's heads of stacked queries, keys and values, stacked alike."""
    stacked = W.reshape(3, k, -1, W.shape[1])
    return [stacked[:, i].reshape(-1, W.shape[1]) for i in range(k)]


def judge_shares(function):
    W = numpy.arange(3 * 24 * 5.0).reshape(-1, 5)  # 6 heads of 4 columns, width 5
    found = [numpy.asarray(part) for part in function(W, 6, 3)]
    right = shares(W, 6, 3)
    for i, (part, own) in enumerate(zip(found, right)):
        if part.shape != own.shape:
            return f"Device {i} has shape {part.shape}, and should have {own.shape}."
        if (part != own).any():
            return f"Device {i} has rows of others. Does it have keys, and values?"
    return "" if len(found) == 3 else f"It makes {len(found)} shares for 3 devices."


class Allgather:
    """Stacks NumPy arrays, and counts the bytes of one of them each time."""

    def __init__(self):
        self.nbytes = []

    def __call__(self, arrays):
        self.nbytes.append(arrays[0].nbytes)
        return numpy.stack(arrays)


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


def gathered_loss(scores, targets, firsts, allgather):
    """The plain way: every device has all scores."""
    whole = numpy.hstack(list(allgather(scores)))
    return log_sum_exp(whole) - whole[range(len(targets)), targets]


def judge_sharded_loss(function):
    rng = numpy.random.RandomState(7)
    z, targets, allgather = rng.randn(5, 12) * 300, rng.randint(12, size=5), Allgather()
    scores = numpy.hsplit(z, 3)
    found = numpy.asarray(function(scores, targets, [0, 4, 8], allgather))
    right = gathered_loss(scores, targets, [0, 4, 8], numpy.stack)
    if found.shape != right.shape:
        return f"Its shape is {found.shape}, and should be {right.shape}."
    wrong = (~numpy.isclose(found, right)).sum()
    if wrong:
        return f"{wrong} of {right.size} losses are wrong. Does a large score overflow?"
    least = 2 * 5 * 8
    if sum(allgather.nbytes) > least:
        return f"It gathers {sum(allgather.nbytes)} bytes of each; {least} are enough."
    return "" if allgather.nbytes else "Nothing went through allgather."
# ---- ring_attention ----


def combine(one, two):
    """The state of queries that have met the keys of both states."""
    (m1, s1, o1), (m2, s2, o2) = one, two
    m = numpy.maximum(m1, m2)
    old1, old2 = numpy.exp(m1 - m), numpy.exp(m2 - m)
    return m, s1 * old1 + s2 * old2, o1 * old1 + o2 * old2


def _combine_without_maxima(one, two):
    (m1, s1, o1), (m2, s2, o2) = one, two
    old1, old2 = numpy.exp(m1), numpy.exp(m2)
    return 0 * m1, s1 * old1 + s2 * old2, o1 * old1 + o2 * old2


def _combine_the_first_only(one, two):
    (m1, s1, o1), (m2, s2, o2) = one, two
    m = numpy.maximum(m1, m2)
    old = numpy.exp(m1 - m)
    return m, s1 * old + s2, o1 * old + o2


def state_of(x, v):
    """Maximum, sum and output of the scores x (heads, queries, keys) and values v."""
    m = x.max(axis=2, keepdims=True)
    p = numpy.exp(x - m)
    return m, p.sum(axis=2, keepdims=True), p @ v


def judge_combine(function):
    rng = numpy.random.RandomState(9)
    for scale, said in ((1, "Scores near 0"), (1000, "Scores near 1,000")):
        x, v = scale * rng.randn(2, 5, 8), rng.randn(2, 8, 3)
        halves = [state_of(x[:, :, h], v[:, h]) for h in (slice(0, 3), slice(3, 8))]
        with numpy.errstate(all="ignore"):
            _m, s, o = function(*halves)
            found = numpy.asarray(o / s)
        _, s, o = state_of(x, v)
        if found.shape != o.shape:
            return f"The output's shape is {found.shape}, and should be {o.shape}."
        if not numpy.isfinite(found).all():
            return f"{said}: some numbers are not finite: exp of what?"
        wrong = (abs(found - o / s) > 1e-9).sum()
        if wrong:
            return f"{said}: {wrong} of {o.size} numbers are wrong. Rescale both."
    return ""


def fold(k):
    """An order of 2k chunks: an early one and a late one for each of k devices."""
    return [[i, 2 * k - 1 - i] for i in range(k)]


def judge_fold(function):
    for k in (1, 2, 3, 4, 6):
        order = [list(own) for own in function(k)]
        once = sorted(c for own in order for c in own) == list(range(2 * k))
        if not once or [len(own) for own in order] != [2] * k:
            return f"fold({k}) is {order}: {2 * k} chunks, two for each device."
        for r in range(k):
            pairs = [(order[i], order[i - r]) for i in range(k)]
            row = [sum(b <= a for a in own for b in come) for own, come in pairs]
            if len({*row}) > 1:
                return f"fold({k}) is {order}: a round has {row} pairs."
    return ""


def needed(a, b, size, window):
    """Whether a query of chunk a looks at a key of chunk b, within the window."""
    return a == b or (b < a and (a - b - 1) * size + 1 < window)


def judge_needed(function):
    for size, window in ((4, 1), (4, 2), (4, 5), (4, 6), (3, 100)):
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
             "Device 0 has rows of others. Does it have keys, and values?"),
        ],
        judge=judge_shares,
    ),
    ("transformer", 3): Task(
        "your function loss",
        sharded_loss,
        [(gathered_loss, "It gathers 160 bytes of each; 80 are enough.")],
        judge=judge_sharded_loss,
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
            (lambda X, W1s, W2s, b2, allreduce: allreduce(
                 [X @ W1 @ W2 + b2 for W1, W2 in zip(W1s, W2s)]
             ),
             "The output is wrong by b2, 2 times. How often is it added?"),
            (lambda X, W1s, W2s, b2, allreduce: (
                 X @ numpy.hstack(W1s) @ numpy.vstack(W2s) + b2
             ),
             "Nothing went through allreduce: no device has all of the weights."),
        ],
        judge=judge_forward_sum,
    ),
    ("layerwise", 3): Task(
        "your function input_gradient",
        input_gradient,
        [
            (lambda dY, hidden, W1s, W2s, allreduce: allreduce(
                 [dY @ W2.T @ W1.T for W1, W2 in zip(W1s, W2s)]
             ),
             "64 of 64 numbers are wrong. Does it go back through the ReLU?"),
            (lambda dY, hidden, W1s, W2s, allreduce: (
                 dY @ W2s[0].T * (hidden[0] > 0) @ W1s[0].T
             ),
             "64 of 64 numbers are wrong. What do the other devices contribute?"),
        ],
        judge=judge_input_gradient,
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
            (lambda choices, E, most: [], "With 2 places, (0, 1) is late, too."),
            (lambda choices, E, most: [
                 (t, c)
                 for t, both in enumerate(choices)
                 for c in (0, 1)
                 if [*chain(*choices[:t])].count(both[c]) >= most
             ],
             "With 2 places, (0, 1) is late, too."),
        ],
        judge=judge_dropped,
    ),
    ("experts", 3): Task(
        "your function send_counts",
        send_counts,
        [
            (lambda wants, E: [[w.count(0), w.count(1)] for w in wants],
             "Device 0 sends 2 rows to itself. What stays is not sent."),
            (lambda wants, E: [
                 [w.count(j) if i != j else 0 for j in range(len(wants))]
                 for i, w in enumerate(wants)
             ],
             "5 experts on 3 devices: device 0 sends 1 to 1, and should send 2."),
        ],
        judge=judge_send_counts,
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
             "Scores near 0: 30 of 30 numbers are wrong. Rescale both."),
            (_combine_the_first_only,
             "Scores near 0: 9 of 30 numbers are wrong. Rescale both."),
            (_combine_without_maxima,
             "Scores near 1,000: some numbers are not finite: exp of what?"),
        ],
        judge=judge_combine,
    ),
    ("ring_attention", 3): Task(
        "your function fold",
        fold,
        [
            (lambda k: [[2 * i, 2 * i + 1] for i in range(k)],
             "fold(2) is [[0, 1], [2, 3]]: a round has [0, 4] pairs."),
            (lambda k: [[i, k + i] for i in range(k)],
             "fold(2) is [[0, 2], [1, 3]]: a round has [1, 3] pairs."),
            (lambda k: [[i] for i in range(2 * k)],
             "fold(1) is [[0], [1]]: 2 chunks, two for each device."),
        ],
        judge=judge_fold,
    ),
    ("ring_attention", 4): Task(
        "your function needed",
        needed,
        [
            (lambda a, b, size, window: b <= a,
             "needed(1, 0, 4, 1) is True; of the pairs of positions, 0 are "
             + "looked at."),
            (lambda a, b, size, window: 0 <= (a - b) * size < window,
             "needed(1, 0, 4, 2) is False; of the pairs of positions, 1 are "
             + "looked at."),
        ],
        judge=judge_needed,
    ),
}
