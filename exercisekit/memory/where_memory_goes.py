"""Exercises of the chapter *Where the memory goes*."""

from ..question import Note, Question, Task, by_cases, compared


def held(sizes, every):
    """Return the most bytes of activations that a recomputed step keeps at a time."""
    inputs = most = 0
    for start in range(0, len(sizes), every):
        if start > 0:
            inputs += sizes[start - 1]
        outputs = sum(sizes[start : start + every])
        most = max(most, inputs + outputs)
    return most


def _looks_at_the_last_segment(sizes, every):
    starts = range(0, len(sizes), every)
    return sum(sizes[s - 1] for s in starts if s) + sum(sizes[starts[-1] :])


class _Array:
    """A number, in a class that counts its living instances, and the most so far."""

    alive = most = 0

    def __init__(self, value):
        self.value = value
        _Array.alive += 1
        _Array.most = max(_Array.most, _Array.alive)

    def __del__(self):
        _Array.alive -= 1


class _Layer:
    """Layer `n`, which adds its runs to `log`."""

    def __init__(self, n, log):
        self.n, self.log = n, log

    def forward(self, x):
        self.log.append(("forward", self.n))
        return _Array(x.value + 1)

    def backward(self, x, dy):
        self.log.append(("backward", self.n))
        return _Array(dy.value * (x.value + 2) + self.n)


def backward(layers, x, dy, every):
    """Return the gradient of the first input, with segments of `every` layers."""
    kept = []
    for i, layer in enumerate(layers):
        if i % every == 0:
            kept.append(x)
        x = layer.forward(x)
    for start in reversed(range(0, len(layers), every)):
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


def _goes_forward_inside(layers, x, dy, every):
    kept = []
    for i, layer in enumerate(layers):
        if i % every == 0:
            kept.append(x)
        x = layer.forward(x)
    for start in reversed(range(0, len(layers), every)):
        segment, inputs = layers[start : start + every], [kept.pop()]
        for layer in segment[:-1]:
            inputs.append(layer.forward(inputs[-1]))
        for layer, its_input in zip(segment, inputs):
            dy = layer.backward(its_input, dy)
    return dy


def _in_another_segment(log, n, every):
    """Return the fault of a run forward that the next backward does not need, or ""."""
    lowest = n
    for what, l in log:
        if what == "backward":
            lowest = l
        elif lowest < n and l // every != (lowest - 1) // every:
            return (f"before the backward of layer {lowest - 1}, it runs forward layer "
                    f"{l}, which is in another segment.")
    return ""


def _judge_backward(function, n, every, most_arrays=10, most_runs=32):
    log, right = [], 1
    layers = [_Layer(i, log) for i in range(n)]
    for i in reversed(range(n)):
        right = right * (i + 2) + i
    given, _Array.most, _Array.alive = [*layers], 0, 0
    found = function(given, _Array(0), _Array(1), every)
    runs = sum(what == "forward" for what, _ in log)
    found = getattr(found, "value", found)
    if found != right:
        return f"the gradient is {found} instead of {right}."
    if _Array.most > most_arrays:
        return f"it keeps {_Array.most} arrays; {most_arrays} are enough."
    if runs > most_runs:
        return f"it runs forward {runs} times; {most_runs} are enough."
    if given != layers:
        return "it changes its arguments."
    if elsewhere := _in_another_segment(log, n, every):
        return elsewhere
    return Note(f"{n} layers, segments of {every}: {_Array.most} arrays at a time "
                f"({most_arrays} are enough), {runs} runs forward "
                f"({most_runs} are enough).")


QUESTIONS = {
    1: Question(
        "the number of gigabytes",
        112,
        [
            (28, "That is weights and gradients: where are the optimizer's arrays?"),
            (84, "A master copy takes 4 bytes, and so does each of Adam's two arrays."),
            (56, "Adam keeps its two arrays in single precision."),
        ],
    ),
    2: Task(
        "a function `held(sizes, every)`",
        held,
        [
            (lambda sizes, every: held(sizes, every) + sizes[-1],
             ("The input of the first segment is the input of the network, which does "
              "not count; sizes[-1] is the last output.")),
            (lambda sizes, every:
             max(sum(sizes[i : i + every]) for i in range(0, len(sizes), every)),
             "The inputs of the segments have to be kept, too."),
            (_looks_at_the_last_segment,
             "Look at all segments: the last one need not be the largest."),
        ],
        judge=compared(held, [
            ([3], 1), ([3, 4], 1), ([3, 4], 5), ([5, 1, 1, 9, 2], 2), ([1] * 16, 4),
            ([2, 8, 8, 2, 1, 1], 2), ([9, 1, 1, 1, 7], 3),
        ]),
    ),
    3: Task(
        "a function `backward(layers, x, dy, every)`",
        backward,
        [
            (_keeps_all, "It keeps every input, as without recomputation."),
            (_begins_anew,
             "Each input is recomputed from the first input: begin at the segment's."),
            (_goes_forward_inside,
             "Inside a segment, too, the last layer goes backward first."),
        ],
        judge=by_cases(_judge_backward, "len(layers) = {}, every = {}", [
            (1, 1), (2, 1), (2, 2), (6, 3), (8, 2), (16, 4),
        ]),
    ),
    4: Question(
        "a whole number",
        2,
        [(1, "The backward of tanh is given its input as well as its output.")],
    ),
}
