"""Exercises of the chapter *A Transformer over its heads*."""

import numpy

from ..counts import counted, from_sent
from ..question import Question, Task, by_cases
from .layerwise import collective

GATHERED = "{} byte{s} gathered"


def shares(W, heads, k):
    """Return each device's heads of stacked queries, keys and values, in order."""
    queries, keys, values = (numpy.split(kind, k) for kind in numpy.split(W, 3))
    return [numpy.vstack(own) for own in zip(queries, keys, values)]


def _head_by_head(W, heads, k):
    stacked = W.reshape(3, k, heads // k, -1, W.shape[1])
    return [stacked[:, i].swapaxes(0, 1).reshape(-1, W.shape[1]) for i in range(k)]


def _judge_shares(function, heads, size, k):
    width = heads * size
    W = numpy.arange(3.0 * width * width).reshape(-1, width)
    right = shares(W, heads, k)
    found = [numpy.asarray(part) for part in function(W.copy(), heads, k)]
    if len(found) != k:
        return f"the number of shares is {len(found)} instead of {k}."
    for i, (part, own) in enumerate(zip(found, right)):
        if part.shape != own.shape:
            return f"share {i} has shape {part.shape} instead of {own.shape}."
        rows, its = ((x[:, 0] // width).astype(int).tolist() for x in (part, own))
        if rows != its:
            return f"device {i} has the rows {rows} instead of {its}."
        if (part != own).any():
            return f"device {i} has the right rows, but other numbers in them."
    return ""


def log_sum_exp(z):
    most = z.max(1)
    return most + numpy.log(numpy.exp(z - most[:, None]).sum(1))


def loss(scores, targets, firsts, allgather):
    """Return the loss of each position, from two numbers of each device."""
    rows, mine = numpy.arange(len(targets)), []
    for z, first in zip(scores, firsts):
        column = targets - first
        here = (column >= 0) & (column < z.shape[1])
        target = numpy.where(here, z[rows, column.clip(0, z.shape[1] - 1)], 0)
        mine.append(numpy.stack([log_sum_exp(z), target]))
    found = allgather(mine)
    return log_sum_exp(found[:, 0].T) - found[:, 1].sum(0)


def _overflows(scores, targets, firsts, allgather):
    def gather(arrays):
        sums = [numpy.log(numpy.exp(z).sum(1)) for z in scores]
        return allgather([numpy.stack([s, own[1]]) for s, own in zip(sums, arrays)])

    return loss(scores, targets, firsts, gather)


def _sum_of_logarithms(scores, targets, firsts, allgather):
    gathered = []

    def gather(arrays):
        gathered.append(allgather(arrays))
        return gathered[0]

    loss(scores, targets, firsts, gather)
    return gathered[0][:, 0].sum(0) - gathered[0][:, 1].sum(0)


def _run_loss(function, counts, n, words, scale):
    rng, cuts = numpy.random.RandomState(7), numpy.cumsum(words)
    z, targets = rng.randn(n, cuts[-1]) * scale, rng.randint(cuts[-1], size=n)
    targets[: len(cuts) - 1] = cuts[:-1][:n]  # first words of devices
    scores, *given = counts.keep(
        numpy.split(z, cuts[:-1], axis=1), targets, [0, *cuts[:-1]])
    found, is_known = from_sent(lambda scores, gather: function(scores, *given, gather),
                                scores, collective(counts, GATHERED, numpy.stack))
    used = "what was gathered" if is_known else "scores that were not gathered"
    return {"the loss": found, "what it uses of other devices": used}


QUESTIONS = {
    1: Question(
        "the number of allreduces",
        4 * 24 + 2,
        [
            (4 * 24, "The embedding and the scores are divided, too."),
            (2 * 24, "A block has two halves, and a step two directions."),
        ],
    ),
    2: Task(
        "a function `shares(W, heads, k)`",
        shares,
        [
            (lambda W, heads, k: numpy.split(W, k),
             "These are equal parts of the stack: the first has no values. Where are "
             + "those of its heads?"),
            (_head_by_head,
             "That is head by head. The task asks for all queries, then all keys."),
            (lambda W, heads, k: numpy.hsplit(W, k),
             "Columns belong to the inputs, which every head reads. Cut the rows."),
        ],
        judge=by_cases(_judge_shares, "{} heads of {} columns, {} devices", [
            (1, 2, 1), (2, 2, 2), (4, 2, 2), (6, 1, 3),
        ]),
    ),
    3: Task(
        "a function `loss(scores, targets, firsts, allgather)`",
        loss,
        [
            (_overflows,
             "The exponential of a large score overflows: subtract the maximum."),
            (lambda scores, targets, firsts, allgather:
             loss(scores, targets, [0] * len(firsts), allgather),
             "A device numbers its columns from 0: where do its words begin?"),
            (_sum_of_logarithms,
             "Add up the sums of exponentials, not their logarithms."),
        ],
        judge=counted(loss, _run_loss,
                      "{} positions, {} words, scores times {}", [
            (1, [2], 1), (2, [3, 3], 1), (3, [1, 4, 1], 1),
            (6, [1, 1], 10_000), (2, [3, 3], 1000),
        ], about=[GATHERED]),
    ),
    4: Question(
        "the factor",
        1.25,
        [
            (1.5, "There are four moves in a half: two forward, two backward."),
            (2, "One move is added to the four of a half."),
        ],
    ),
}
