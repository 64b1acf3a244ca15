"""Exercises of the chapter *A Transformer over its heads*."""

import numpy

from ..counts import counted
from ..question import Question, Task, by_cases
from .layerwise import collective

GATHERED = "{} byte{s} gathered"


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
    return function(*given, collective(counts, GATHERED, numpy.stack))


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
    3: Task(
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
             "Expected: the loss of each position, and not their mean."),
            ("log_sum_exp(found[:, 0].T) - found[:, 1].sum(0)",
             "found[:, 1].sum(0) - log_sum_exp(found[:, 0].T)",
             "That is the logarithm of a probability; a loss is not below 0."),
        ],
        judge=counted(sharded_loss, _run_sharded_loss,
                      "{} positions, {} words, scores times {}", [
            (1, [2], 1), (2, [3, 3], 1), (3, [1, 4, 1], 1), (2, [3, 3], 1000),
        ], about=[GATHERED]),
    ),
    4: Question(
        "the factor",
        1.25,
        [
            (1.5, "There are four moves in a half: two forward, two backward."),
            (2, "One move comes to the four of a half."),
        ],
    ),
}
