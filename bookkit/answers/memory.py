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


QUESTIONS = {
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
            (
                lambda L: [("forward", l) for l in range(L)],
                "forward of layer 0, and its weights are not there.",
            ),
        ],
        judge=judge_plan,
    ),
}
