"""Exercises of the chapter *Data parallelism with Gluon and Module*."""

import numpy

from ..counts import counted
from ..question import Question, Task, compared


def slowest(sizes, speeds):
    """Seconds of a step: a device needs its share divided by its speed."""
    return max(size / speed for size, speed in zip(sizes, speeds))


class Store:
    """A store of weights that devices push gradients to."""

    def __init__(self, weights, lr, batch):
        self.weights, self.lr, self.batch = weights.copy(), lr, batch

    def push(self, gradients):
        self.weights -= self.lr * sum(gradients) / self.batch

    def pull(self):
        return self.weights.copy()


def _run_store(make, counts, lr, batch):
    (weights,) = counts.keep(numpy.array([1.0, 2.0]))
    store = make(weights, lr, batch)
    gradients = counts.keep(numpy.array([4.0, 0.0]), numpy.array([4.0, 8.0]))
    store.push(list(gradients))
    first = store.pull()
    after_one = numpy.array(first)
    first += 100  # the reader's own
    store.push([numpy.array([1.0, 2.0])] * 3)
    return {"the first pull": after_one, "the second": store.pull()}


QUESTIONS = {
    1: Question(
        "how many times too small a step is, about",
        2,
        [
            (1, "That would be so if somebody added up the gradients."),
            (0.5, "It is half as large as it should be: how many times too small?"),
            (4, "The gradient is divided by the whole minibatch once, not twice."),
        ],
    ),
    3: Task(
        "a function `slowest(sizes, speeds)`",
        slowest,
        [
            (lambda sizes, speeds: sum(sizes) / sum(speeds),
             "That is so where all end together. The step ends with the last."),
            (lambda sizes, speeds: max(sizes) / min(speeds),
             "The largest share need not be on the slowest device."),
            ("max(", "min(", "That is the first to end. The others still work."),
            ("max(", "sum(", "The devices work at the same time, and not in turns."),
            ("size / speed", "size * speed",
             "A fast device needs less time: divide by the speed."),
            ("max(size / speed for size, speed in zip(sizes, speeds))",
             "sizes[-1] / speeds[-1]", "Any device may be the last to end."),
            ("zip(sizes, speeds)", "zip(sorted(sizes), sorted(speeds))",
             "Each device has its own share, in the order given."),
        ],
        judge=compared(slowest, [
            ([4], [2]), ([5, 0], [1, 1]), ([57, 29, 14], [4, 2, 1]),
            ([34, 33, 33], [4, 2, 1]), ([1, 8], [8, 2]),
        ]),
    ),
    4: Task(
        "a class `Store(weights, lr, batch)`",
        Store,
        [
            ("/ self.batch", "",
             "The sums are divided by the number of examples: the mean is asked for."),
            ("sum(gradients) / self.batch",
             "sum(gradients) / self.batch / len(gradients)",
             "The batch is that of all devices: do not divide by their number, too."),
            ("sum(gradients)", "gradients[0]",
             "Only the first device's gradient is used: sum them."),
            ("self.weights -=", "self.weights +=",
             "A step goes against the gradient."),
            ("self.lr * sum", "sum", "The rate is missing."),
            ("weights.copy(), lr", "weights, lr",
             "The store has to have its own copy: it changes the weights it is given."),
            ("return self.weights.copy()", "return self.weights",
             "A pull hands out the store's own array: who writes into it changes the "
             + "store."),
            ("self.weights -= self.lr * sum(gradients) / self.batch",
             "self.pushed = gradients",
             "Nothing happens at a push. The update is the store's."),
        ],
        judge=counted(Store, _run_store, "lr {}, batch {}", [(0.5, 4), (0.1, 7)],
                      tolerance=1e-9),
    ),
}
