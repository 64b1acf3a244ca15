"""Answers to exercises of the part on memory."""

import numpy

from .question import Question, Task


def sharded_step(weights, gradients, states, update, gather):
    """Each chunk is summed and updated once, and gathered once."""
    k = len(weights)
    chunks = [numpy.split(w, k)[i].copy() for i, w in enumerate(weights)]
    for i, chunk in enumerate(chunks):
        update(chunk, sum(numpy.split(g, k)[i] for g in gradients), states[i])
    whole = gather(chunks)
    for w in weights:
        w[:] = whole


def whole_step(weights, gradients, states, update, gather):
    """Every device updates everything: a typical wrong answer."""
    for w in weights:
        update(w, sum(gradients), states[0])


def judge_sharded_step(function):
    k, size = 3, 12
    rng = numpy.random.RandomState(5)
    start, gradients = rng.randn(size), rng.randn(k, size)
    weights, states = [start.copy() for _ in range(k)], [{"sum": 0.0} for _ in range(k)]
    updated, gathered = [], []

    def update(w, g, state):
        updated.append(w.size)
        state["sum"] = state["sum"] + g
        w -= 0.1 * g

    def gather(chunks):
        gathered.append(sum(chunk.size for chunk in chunks))
        return numpy.concatenate(chunks)

    function(weights, list(gradients), states, update, gather)
    right = start - 0.1 * gradients.sum(axis=0)
    wrong = [int((abs(w - right) > 1e-9).sum()) for w in weights]
    if sum(updated) > size:
        return f"{sum(updated)} numbers are updated; {size} are enough for {k} devices."
    if any(wrong):
        return f"On the {k} devices {wrong} of {size} weights are wrong."
    if not gathered:
        return "Nothing went through gather: how do the others learn of a chunk?"
    return ""


def plan(L):
    """The last two layers stay from forward to backward."""
    steps = []
    for l in range(L):
        steps += [("gather", l), ("forward", l)] + [("drop", l)] * (l < L - 2)
    for l in reversed(range(L)):
        steps += [("gather", l)] * (l < L - 2) + [("backward", l), ("drop", l)]
    return steps


def plan_of_the_chapter(L):
    """Each layer is gathered twice: right, and not the best."""
    one = [[("gather", l), ("forward", l), ("drop", l)] for l in range(L)]
    two = [[("gather", l), ("backward", l), ("drop", l)] for l in range(L)]
    return [step for steps in one + two[::-1] for step in steps]


def judge_plan(function):
    L = 5
    steps, there, done, gathers = function(L), set(), [], 0
    for what, l in steps:
        if what == "gather":
            there, gathers = there | {l}, gathers + 1
        elif what == "drop":
            there -= {l}
        elif l not in there:
            return f"{what} of layer {l}, and its weights are not there."
        else:
            done.append((what, l))
        if len(there) > 2:
            return f"The layers {sorted(there)} are whole at a time; 2 are allowed."
    forward = [("forward", l) for l in range(L)]
    if done != forward + [("backward", l) for l in reversed(range(L))]:
        return f"It computes {done}: each layer forward, then each backward."
    return f"It gathers {gathers} times; 8 are enough." if gathers > 8 else ""


def held(sizes, every):
    """The most bytes of activations that a recomputed step keeps at a time."""
    starts = range(0, len(sizes), every)
    return max(
        sum(sizes[s - 1] for s in starts if 0 < s <= start)
        + sum(sizes[start : start + every])
        for start in starts
    )


def judge_held(function):
    for sizes, every in (([1] * 16, 4), ([5, 1, 1, 9, 2], 2), ([3, 4], 5)):
        found, right = function(sizes, every), held(sizes, every)
        if found != right:
            return f"Sizes {sizes}, segments of {every}: {found}, and not {right}."
    return ""


class _Array:
    """A number that counts how many of its kind are there."""

    alive = most = 0

    def __init__(self, value):
        self.value = value
        _Array.alive += 1
        _Array.most = max(_Array.most, _Array.alive)

    def __del__(self):
        _Array.alive -= 1


class _Layer:
    runs = 0

    def forward(self, x):
        _Layer.runs += 1
        return _Array(x.value + 1)

    def backward(self, x, dy):
        return _Array(dy.value * (x.value + 2))


def recomputed(layers, x, dy, every):
    """The gradient of the first input, with segments of `every` layers."""
    kept = []
    for i, layer in enumerate(layers):
        if i % every == 0:
            kept.append(x)
        if i < len(layers) - every:
            x = layer.forward(x)
    for start in range(len(layers) - every, -1, -every):
        segment, inputs = layers[start : start + every], [kept.pop()]
        for layer in segment[:-1]:
            inputs.append(layer.forward(inputs[-1]))
        for layer in reversed(segment):
            dy = layer.backward(inputs.pop(), dy)
    return dy


def keeps_all(layers, x, dy, every):
    inputs = [x]
    for layer in layers[:-1]:
        inputs.append(layer.forward(inputs[-1]))
    for layer in reversed(layers):
        dy = layer.backward(inputs.pop(), dy)
    return dy


def begins_anew(layers, x, dy, every):
    for n in range(len(layers) - 1, -1, -1):
        value = x
        for layer in layers[:n]:
            value = layer.forward(value)
        dy = layers[n].backward(value, dy)
    return dy


def judge_recomputed(function):
    layers, right = [_Layer() for _ in range(16)], 1
    for i in range(16):
        right *= i + 2
    _Layer.runs, _Array.most, _Array.alive = 0, 0, 0
    found = function(layers, _Array(0), _Array(1), 4)
    if getattr(found, "value", found) != right:
        return f"The gradient is {getattr(found, 'value', found)}, and not {right}."
    if _Array.most > 10:
        return f"It keeps {_Array.most} arrays at a time; 10 are enough."
    if _Layer.runs > 32:
        return f"It runs forward {_Layer.runs} times; 32 are enough."
    return ""


def whole(parts, mean_gradient):
    """The gradient of the mean over all words, from those of the pieces' means."""
    total = count = 0
    for piece in parts:
        total, count = total + len(piece) * mean_gradient(piece), count + len(piece)
    return total / count


def mean_of_means(parts, mean_gradient):
    found = [mean_gradient(piece) for piece in parts]
    return sum(found) / len(found)


def judge_whole(function):
    parts = [[1.0], [0.0, 0.0, 0.0]]
    found, right = function(iter(parts), lambda x: sum(x) / len(x)), 1 / 4
    if abs(found - right) > 1e-9:
        return f"Pieces {parts}: {found:.3f}, and not {right:.3f}."
    return ""


def scaled_step(masters, gradients, scale):
    """A step that an overflow on any device leaves out."""
    if not all(numpy.isfinite(g).all() for g in gradients):
        return scale / 2
    summed = sum(g.astype("float32") for g in gradients) / scale
    for master in masters:
        master -= 0.1 * summed
    return scale


def asks_the_first(masters, gradients, scale):
    """As MXNet's own scaler does: a typical wrong answer."""
    return scaled_step(masters, gradients[:1], scale)


def adds_in_half(masters, gradients, scale):
    with numpy.errstate(over="ignore"):
        return scaled_step(masters, [sum(gradients)], scale)


def judge_scaled_step(function):
    infinite = float("inf")
    for given, after, scale in (
        ([1, infinite], 0, 4),
        ([infinite, 1], 0, 4),
        ([40_000, 40_000], -1000, 8),
        ([8, 16], -0.3, 8),
    ):
        masters = [numpy.zeros(2, "float32") for _ in given]
        found = function(masters, [numpy.full(2, g, "float16") for g in given], 8.0)
        weights = [round(float(m[0]), 3) for m in masters]
        if weights != [after] * 2:
            return f"Gradients {given}: the masters are {weights}, and not {after}."
        if found != scale:
            return f"Gradients {given}: the next scale is {found}, and not {scale}."
    return ""


QUESTIONS = {
    ("where_memory_goes", 1): Question(
        "a number of gigabytes",
        112,
        [
            (28, "That is weights and gradients: where are the optimizer's arrays?"),
            (84, "The master copy is missing."),
            (56, "Adam keeps its two arrays in single precision."),
        ],
    ),
    ("where_memory_goes", 2): Task(
        "a function of sizes and the length of a segment",
        held,
        [
            (lambda sizes, every: len(sizes) // every + every,
             f"Sizes {[1] * 16}, segments of 4: 8, and not 7.")
        ],
        judge=judge_held,
    ),
    ("where_memory_goes", 3): Task(
        "your function backward",
        recomputed,
        [
            (keeps_all, "It keeps 18 arrays at a time; 10 are enough."),
            (begins_anew, "It runs forward 120 times; 32 are enough."),
        ],
        judge=judge_recomputed,
    ),
    ("where_memory_goes", 4): Question(
        "a whole number",
        2,
        [(1, "A tanh's backward is given what the tanh was applied to as well.")],
    ),
    ("half_precision", 1): Question(
        "the mean loss of a word",
        1.9,
        [(7 / 3, "That is the mean of the three means.")],
    ),
    ("half_precision", 2): Task(
        "your function whole",
        whole,
        [(mean_of_means, "Pieces [[1.0], [0.0, 0.0, 0.0]]: 0.500, and not 0.250.")],
        judge=judge_whole,
    ),
    ("half_precision", 3): Task(
        "your function step",
        scaled_step,
        [
            (asks_the_first,
             "Gradients [1, inf]: the masters are [-0.013, -0.013], and not 0."),
            (adds_in_half,
             "Gradients [40000, 40000]: the masters are [0.0, 0.0], and not -1000."),
        ],
        judge=judge_scaled_step,
    ),
    ("half_precision", 4): Question(
        "a power of two",
        16,
        [
            (32, "float16 rounds to the nearest: more than half of 2⁻²⁴ is kept."),
            (8, "That is less than half of 2⁻²⁴, and rounds to zero."),
        ],
    ),
    ("sharded", 1): Question(
        "the gigabytes",
        3.75,
        [
            (2.0, "Only the weights are whole; what about the chunks?"),
            (5.5, "That is stage 1: in stage 2 the gradients are divided, too."),
            (16.0, "That is a whole replica."),
        ],
    ),
    ("sharded", 2): Task(
        "your function sharded_step",
        sharded_step,
        [(whole_step, "36 numbers are updated; 12 are enough for 3 devices.")],
        judge=judge_sharded_step,
    ),
    ("sharded", 3): Task(
        "your function plan",
        plan,
        [
            (plan_of_the_chapter, "It gathers 10 times; 8 are enough."),
            (lambda L: [("forward", l) for l in range(L)],
             "forward of layer 0, and its weights are not there."),
        ],
        judge=judge_plan,
    ),
}
