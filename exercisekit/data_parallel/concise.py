"""Exercises of the chapter *Data parallelism with Gluon and Module*."""

import numpy

from ..counts import counted
from ..question import Question, Task, compared


def slowest(sizes, speeds):
    """Return the seconds of a step, which ends when the last device has finished."""
    return max(size / speed for size, speed in zip(sizes, speeds))


class Store:
    """Weights to which devices push gradients, and from which they pull."""

    def __init__(self, weights, lr, batch):
        self.weights, self.lr, self.batch = weights.copy(), lr, batch

    def push(self, gradients):
        self.weights -= self.lr * sum(gradients) / self.batch

    def pull(self):
        return self.weights.copy()


def _run_store(make, counts, lr, batch):
    weights = numpy.array([1.0, 2.0])
    store = make(weights, lr, batch)
    gradients = counts.keep(numpy.array([4.0, 0.0]), numpy.array([4.0, 8.0]))
    store.push(list(gradients))
    first = store.pull()
    after_one = numpy.array(first)
    first += 100  # the reader's own
    store.push([numpy.array([1.0, 2.0]) for _ in range(3)])
    pulls = {"the first pull": after_one, "the second pull": store.pull()}
    return {"the array that it is given": weights, **pulls}


class SumInsteadOfMean(Store):
    def push(self, gradients):
        self.weights -= self.lr * sum(gradients)


class DividesByTheDevices(Store):
    def push(self, gradients):
        self.weights -= self.lr * sum(gradients) / self.batch / len(gradients)


class NoCopyAtTheStart(Store):
    def __init__(self, weights, lr, batch):
        self.weights, self.lr, self.batch = weights, lr, batch


class NoCopyOnPull(Store):
    def pull(self):
        return self.weights


QUESTIONS = {
    1: Question(
        "how many times too small a step is, about",
        2,
        [
            (1, "That would be so if the gradients were summed."),
            (0.5, "It is half as large as it should be: how many times too small?"),
            (4, "The gradient is divided by the whole minibatch once, not twice."),
        ],
        tolerance=0.15,  # measured: 1.8 and 1.9
    ),
    3: Task(
        "a function `slowest(sizes, speeds)`",
        slowest,
        [
            (lambda sizes, speeds: sum(sizes) / sum(speeds),
             "That is so if all devices end together. A step ends with the last."),
            (lambda sizes, speeds: max(sizes) / min(speeds),
             "The largest share need not be on the slowest device."),
            (lambda sizes, speeds: sum(n / speed for n, speed in zip(sizes, speeds)),
             "The devices work at the same time, not one after the other."),
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
            (SumInsteadOfMean,
             "The step needs the mean gradient: divide by the number of examples."),
            (DividesByTheDevices,
             "`batch` counts the examples of all devices: do not divide by the number "
             + "of devices as well."),
            (NoCopyAtTheStart,
             "The store needs its own copy: it changes the weights that it is given."),
            (NoCopyOnPull,
             "`pull()` returns a copy: a device may change the array that it pulled."),
        ],
        judge=counted(Store, _run_store, "lr {}, batch {}", [(0.5, 4), (0.1, 7)],
                      tolerance=1e-9),
    ),
}
