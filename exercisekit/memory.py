"""Answers to exercises of the part on memory."""

import numpy

from .counts import counted
from .question import Note, Question, Task, by_cases, compared, shown

UPDATED, GATHERED = "{} number{s} updated", "{} number{s} gathered"

# ---- where_memory_goes ----


def held(sizes, every):
    """The most bytes of activations that a recomputed step keeps at a time."""
    starts = range(0, len(sizes), every)
    return max(
        sum(sizes[s - 1] for s in starts if 0 < s <= start)
        + sum(sizes[start : start + every])
        for start in starts
    )


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

    def __init__(self, n):
        self.n = n

    def forward(self, x):
        _Layer.runs += 1
        return _Array(x.value + 1)

    def backward(self, x, dy):
        return _Array(dy.value * (x.value + 2) + self.n)


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


def _keeps_all(layers, x, dy, every):
    inputs = [x]
    for layer in layers[:-1]:
        inputs.append(layer.forward(inputs[-1]))
    for layer in reversed(layers):
        dy = layer.backward(inputs.pop(), dy)
    return dy


def _begins_anew(layers, x, dy, every):
    for n in range(len(layers) - 1, -1, -1):
        value = x
        for layer in layers[:n]:
            value = layer.forward(value)
        dy = layers[n].backward(value, dy)
    return dy


def _try_recomputed(function, n, every, most_arrays=10, most_runs=32):
    layers, right = [_Layer(i) for i in range(n)], 1
    for i in reversed(range(n)):
        right = right * (i + 2) + i
    _Layer.runs, _Array.most, _Array.alive = 0, 0, 0
    found = function(layers, _Array(0), _Array(1), every)
    found = getattr(found, "value", found)
    if found != right:
        return f"the gradient is {found}, and not {right}."
    if _Array.most > most_arrays:
        return f"it keeps {_Array.most} arrays; {most_arrays} are enough."
    if _Layer.runs > most_runs:
        return f"it runs forward {_Layer.runs} times; {most_runs} are enough."
    return ""


def _judge_recomputed(function):
    cases = [(1, 1), (2, 1), (2, 2), (6, 3), (16, 4)]
    tried = by_cases(_try_recomputed, "{} layers, segments of {}", cases)(function)
    return [*filter(None, tried)] or [
        Note(f"16 layers, segments of 4: {_Array.most} arrays at a time (10 are "
             f"enough), {_Layer.runs} runs forward (32 are enough).")
    ]  # fmt: skip


# ---- half_precision ----


def whole(parts, mean_gradient):
    """The gradient of the mean over all words, from those of the pieces' means."""
    total = count = 0
    for piece in parts:
        total, count = total + len(piece) * mean_gradient(piece), count + len(piece)
    return total / count


def _mean_of_means(parts, mean_gradient):
    found = [mean_gradient(piece) for piece in parts]
    return sum(found) / len(found)


def _goes_through_twice(parts, mean_gradient):
    count = sum(len(piece) for piece in parts)
    return sum(len(piece) / count * mean_gradient(piece) for piece in parts)


def _judge_whole(function):
    def streamed(function):
        def whole(pieces):
            return function(iter(pieces), lambda piece: numpy.mean(piece, axis=0))

        return whole

    return compared(streamed(whole), [
        ([[3.0]],), ([[1.0], [0.0, 0.0, 5.0]],), ([[1.0, 2.0], [4.0, 5.0]],),
        ([[[1.0, 2.0]], [[4.0, 0.0], [2.0, 2.0], [0.0, 1.0]]],),
    ], tolerance=1e-9)(streamed(function))  # fmt: skip


def scaled_step(masters, gradients, scale):
    """A step that an overflow on any device leaves out."""
    if not all(numpy.isfinite(g).all() for g in gradients):
        return scale / 2
    summed = sum(g.astype("float32") for g in gradients) / scale
    for master in masters:
        master -= 0.1 * summed
    return scale


def _judge_scaled_step(function, given, scale):
    masters, right = numpy.zeros((2, *numpy.shape(given)), "float32")
    gradients = numpy.array(given, "float16")
    next_scale = scaled_step([*right], [*gradients], scale)
    with numpy.errstate(all="ignore"):
        found = function([*masters], [*gradients], scale)
    if not numpy.allclose(masters, right, rtol=1e-3, atol=0):
        return f"the masters are {shown(masters)}, and not {shown(right)}."
    if found != next_scale:
        return f"the next scale is {found}, and not {next_scale:g}."
    if not numpy.array_equal(gradients, numpy.array(given, "float16"), equal_nan=True):
        return "right, but the gradients are written to."
    return ""


# ---- sharded ----


def sharded_step(weights, gradients, states, update, gather):
    """Each chunk is summed and updated once, and gathered once."""
    k = len(weights)
    chunks = [numpy.split(w, k)[i].copy() for i, w in enumerate(weights)]
    for i, chunk in enumerate(chunks):
        update(chunk, sum(numpy.split(g, k)[i] for g in gradients), states[i])
    whole = gather(chunks)
    for w in weights:
        w[:] = whole


def _whole_step(weights, gradients, states, update, gather):
    for w in weights:
        update(w, sum(gradients), states[0])


def _run_sharded_step(function, counts, k, size):
    rng = numpy.random.RandomState(5)
    start, gradients = rng.randint(-9, 9, size) * 1.0, rng.randint(1, 9, (k, size))
    weights, states = [start.copy() for _ in range(k)], [{"sum": 0} for _ in range(k)]

    def update(w, g, state):
        counts.add(UPDATED, w.size)
        state["sum"] = state["sum"] + g
        w -= 0.5 * g

    def gather(chunks):
        whole = numpy.concatenate(chunks)
        counts.add(GATHERED, whole.size * (k > 1))
        return whole

    function(weights, [*counts.keep(*gradients)], states, update, gather)
    ended = {f"the weight array of device {i}": w for i, w in enumerate(weights)}
    sums = {f"the state of chunk {i}": state["sum"] for i, state in enumerate(states)}
    return {**ended, **sums}


def plan(L):
    """The last two layers stay from forward to backward."""
    stay = 2
    steps = []
    for l in range(L):
        steps += [("gather", l), ("forward", l)] + [("drop", l)] * (l < L - stay)
    for l in reversed(range(L)):
        steps += [("gather", l)] * (l < L - stay) + [("backward", l), ("drop", l)]
    return steps


def _follow_plan(function, L):
    there, done, gathers = set(), [], 0
    for n, (what, l) in enumerate(function(L), 1):
        said = f"instruction {n}, {what} {l}:"
        if what == "gather":
            there, gathers = there | {l}, gathers + 1
        elif what == "drop":
            there -= {l}
        elif l not in there:
            return f"{said} its weights are not there."
        else:
            done.append((what, l))
        if len(there) > 2:
            return f"{said} the layers {sorted(there)} are whole; 2 are allowed."
    right = [("forward", l) for l in range(L)]
    right += [("backward", l) for l in reversed(range(L))]
    if done != right:
        works = ", ".join(f"{what} {l}" for what, l in done)
        return f"it computes {works or 'nothing'}."
    fewest = L + max(0, L - 2)
    said = f"it gathers {gathers} times, and {fewest} would do."
    return said if gathers > fewest else ""


def _judge_plan(function):
    tried = by_cases(_follow_plan, "plan({})", [(1,), (2,), (3,), (5,)])(function)
    return [*filter(None, tried)] or [Note("plan(5): 8 gathers (8 are enough).")]


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
        "a function `held(sizes, every)`",
        held,
        [
            ("0 < s <= start", "s <= start",
             "Before the first segment is only the network's input, which does not "
             + "count: sizes[-1] is the last output."),
            ("0 < s <= start", "0 < s < start",
             "The segment that is taken has an input, too: it was kept."),
            ("0 < s <= start", "0 < s",
             "Backward goes from the last segment to the first: inputs of later "
             + "segments have been let go."),
            ("sizes[s - 1]", "sizes[s]",
             "That is the output of a segment's first layer. Kept is its input."),
            ("if 0 < s <= start", "if False",
             "The inputs of the segments are kept all the time: where are they?"),
            ("start : start + every]", "start : start + every - 1]",
             "The last layer of a segment has an output, too."),
            ("return max(", "return sum(",
             "Segments are taken one after another, not at the same time."),
            ("range(0, len(sizes), every)", "[len(sizes) - every]",
             "Look at all segments: the last need not be the largest, nor is its "
             + "input all that is kept."),
            (lambda sizes, every: len(sizes) // every + every,
             "That counts outputs as if all were of one byte. Add up their sizes."),
        ],
        judge=compared(held, [
            ([3], 1), ([3, 4], 1), ([3, 4], 5), ([5, 1, 1, 9, 2], 2), ([1] * 16, 4),
            ([2, 8, 8, 2, 1, 1], 2), ([9, 1, 1, 1, 7], 3),
        ]),
    ),
    ("where_memory_goes", 3): Task(
        "your function backward",
        recomputed,
        [
            (_keeps_all, "It keeps every input, as without recomputation."),
            (_begins_anew,
             "Each input is computed from the very first: begin at the segment's."),
            ("kept.pop()", "kept.pop(0)",
             "The last segment comes first backward: take what was kept last."),
            ("reversed(segment)", "segment",
             "Inside of a segment, too, the last layer goes backward first."),
            ("inputs.pop()", "inputs[-1]",
             "Each layer has its own input: all of them get that of the last."),
            ("in segment[:-1]", "in segment",
             "The output of the segment is the input of none of its layers."),
            ("i % every == 0", "i % every == every - 1",
             "What is kept is the input of a segment's first layer, not of its last."),
        ],
        judge=_judge_recomputed,
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
        [
            (_mean_of_means, "A mean of means is right only for pieces of one length."),
            ("return total / count", "return total",
             "That is the sum over the words: divide it by how many there are."),
            ("count + len(piece)", "count + 1",
             "It divides by the number of pieces, and not of words."),
            ("len(piece) * mean_gradient", "mean_gradient",
             "Only sums can be added up: make one of each piece's mean first."),
            ("total + len(piece)", "len(piece)",
             "Only the last piece is left: what of those before?"),
            ("for piece in parts", "for piece in list(parts)[1:]",
             "Where is the first piece? Whatever looks at a stream takes from it."),
            (_goes_through_twice,
             "A stream is empty when you come again: count the words on the way."),
            (lambda parts, mean_gradient: sum(map(mean_gradient, parts)) / len(parts),
             "A stream has no length: count on the way, and count words."),
        ],
        judge=_judge_whole,
    ),
    ("half_precision", 3): Task(
        "your function step",
        scaled_step,
        [
            ("isfinite(g).all() for g in gradients",
             "isfinite(g).all() for g in gradients[:1]",
             "It asks the first device only, as MXNet's own scaler does."),
            ("isfinite(g).all()", "isfinite(g).any()",
             "A single number that is not finite spoils the step."),
            ("numpy.isfinite(g).all()", "not numpy.isinf(g).any()",
             "An infinite one is found, but nan is not finite, either."),
            ('g.astype("float32") for', "g for",
             "The sum overflows in float16, although each gradient is finite."),
            (lambda masters, gradients, scale: scaled_step(
                 masters, [sum(gradients)], scale
             ),
             "It adds up in float16 first: what overflows then was finite before."),
            ('g.astype("float32") for', '(g / scale).astype("float32") for',
             "The scale is taken out twice."),
            ('g.astype("float32") for g in gradients) / scale',
             '(g / scale).astype("float32") for g in gradients)',
             "Divided in float16, a small gradient is zero again: change the type "
             + "first."),
            (") / scale", ")", "The gradients are those of a scaled loss."),
            (") / scale", ") / scale / len(gradients)",
             "Asked is a step by the sum of the gradients, and not by their mean."),
            ("in masters:", "in masters[:1]:",
             "The masters of the other devices need the same step."),
            ("master -= ", "master = master - ",
             "That makes a new array, and leaves the master as it was."),
            ("return scale / 2", "return scale",
             "With the same scale the next step overflows again."),
        ],
        judge=by_cases(_judge_scaled_step, "gradients {}, scale {}", [
            ([[8.0]], 8.0), ([[8.0, 4.0], [16.0, 0.5]], 8.0),
            ([[1.0], [numpy.inf]], 8.0), ([[4e4], [4e4]], 8.0),
            ([[1e-4], [1e-4]], 2.0**15), ([[-numpy.inf, 1.0], [1.0, 1.0]], 4.0),
            ([[1.0], [2.0], [numpy.nan]], 2.0),
        ]),
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
        [
            (_whole_step, "Every device updates everything, as without shards."),
            ("sum(numpy.split(g, k)[i] for g in gradients)",
             "numpy.split(gradients[i], k)[i]",
             "A chunk needs the gradients of all devices, not of its own alone."),
            ("for g in gradients)", "for g in gradients) / k",
             "The gradients are summed, not averaged."),
            ("states[i]", "states[0]", "Each chunk has a state of its own."),
            ("numpy.split(w, k)[i]", "numpy.split(w, k)[0]",
             "All devices take the first chunk: who has the others?"),
            ("numpy.split(g, k)[i]", "numpy.split(g, k)[0]",
             "The gradients of the first chunk are not those of the others."),
            ("w[:] = whole", "w = whole",
             "That gives the name to another array, and leaves the weights alone."),
            ("for w in weights:", "for w in weights[:1]:",
             "Only the first device learns of the other chunks."),
            ("gather(chunks)", "numpy.concatenate(chunks)",
             "How do the others learn of a chunk?"),
            ("= whole", "= gather(chunks)",
             "What gather returns is there for every device: ask once."),
        ],
        judge=counted(sharded_step, _run_sharded_step, "{} devices, {} weights",
                      [(1, 2), (2, 2), (3, 12), (4, 8)], about=[UPDATED, GATHERED]),
    ),
    ("sharded", 3): Task(
        "your function plan",
        plan,
        [
            ("stay = 2", "stay = 0",
             "Each layer is gathered twice, as in the chapter. Which need not be?"),
            ("stay = 2", "stay = 1",
             "The last layer stays. There is room for another one."),
            ("stay = 2", "stay = 3", "There is no room for a third layer."),
            (" + [(\"drop\", l)] * (l < L - stay)", "",
             "A layer is dropped after its forward, if it cannot stay."),
            ("[(\"backward\", l), (\"drop\", l)]", "[(\"backward\", l)]",
             "A layer is dropped after its backward, too: nobody needs it then."),
            ("[(\"gather\", l)] * (l < L - stay) + [(\"b", "[(\"b",
             "What was dropped after forward is needed again for backward."),
            ("reversed(range(L))", "range(L)",
             "Backward begins with the last layer."),
            ("[(\"gather\", l), (\"f", "[(\"f",
             "A layer is gathered before it computes."),
        ],
        judge=_judge_plan,
    ),
}
