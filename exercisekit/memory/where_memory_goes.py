"""Exercises of the chapter *Where the memory goes*."""

from ..question import Note, Question, Task, by_cases, compared


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


def _judge_recomputed(function, n, every, most_arrays=10, most_runs=32):
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
    return Note(f"{n} layers, segments of {every}: {_Array.most} arrays at a time "
                f"({most_arrays} are enough), {_Layer.runs} runs forward "
                f"({most_runs} are enough).")




QUESTIONS = {
    1: Question(
        "a number of gigabytes",
        112,
        [
            (28, "That is weights and gradients: where are the optimizer's arrays?"),
            (84, "The master copy is missing."),
            (56, "Adam keeps its two arrays in single precision."),
        ],
    ),
    2: Task(
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
    3: Task(
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
        judge=by_cases(_judge_recomputed, "{} layers, segments of {}", [
            (1, 1), (2, 1), (2, 2), (6, 3), (16, 4),
        ]),
    ),
    4: Question(
        "a whole number",
        2,
        [(1, "A tanh's backward is given what the tanh was applied to as well.")],
    ),
}
