"""Exercises of the chapter *The ladder*."""

from statistics import median

from ..question import Question, Task, compared


def gain(below, above):
    return median(a / b for a, b in zip(below, above))


QUESTIONS = {
    1: Question("how many times as fast the second run is", 1.5, [
        (3, "That compares the steps. The second run needs more of them."),
        (0.5, "That compares the numbers of steps. Their times differ, too."),
        (2 / 3, "That is how many times as long: divide the other way."),
    ]),
    2: Task("a function `gain(below, above)`", gain, [
        (lambda below, above: gain(above, below),
         "A rung that takes half of the time has a gain of 2."),
        (lambda below, above: median(below) / median(above),
         "The two medians may come from different rounds: form the ratios first."),
        (lambda below, above: sum(a / b for a, b in zip(below, above)) / len(below),
         "One disturbed round moves the mean: take the median."),
    ], judge=compared(gain, [
        ([4.0, 4.0, 4.0], [2.0, 2.0, 2.0]),
        ([4.0, 6.0, 5.0], [2.0, 5.0, 1.0]),
        ([1.0, 2.0, 9.0], [3.0, 1.0, 1.0]),
        ([4.0, 6.0, 9.0, 3.0], [4.0, 2.0, 1.0, 2.0]),
    ])),
}
