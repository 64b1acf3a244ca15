"""Exercises of the chapter *Sharded data parallelism*."""

import numpy

from ..counts import counted
from ..question import Note, Question, Task, by_cases

UPDATED, GATHERED = "{} number{s} updated", "{} number{s} gathered"


def sharded_step(weights, gradients, states, update, gather):
    """Sum and update each chunk once, and gather it once."""
    k = len(weights)
    chunks = [numpy.split(w, k)[i] for i, w in enumerate(weights)]
    for i, chunk in enumerate(chunks):
        summed = sum(numpy.split(g, k)[i] for g in gradients)
        update(chunk, summed, states[i])
    whole = gather(chunks)
    for w in weights:
        w[:] = whole


def _updates_everything(weights, gradients, states, update, gather):
    for w in weights:
        update(w, sum(gradients), states[0])


def _sums_nothing(weights, gradients, *given):
    k = len(weights)
    own = [numpy.split(g, k)[i] for i, g in enumerate(gradients)]
    sharded_step(weights, [numpy.concatenate(own)], *given)


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

    function([*weights], [*counts.keep(*gradients)], states, update, gather)
    ended = {f"the weight array of device {i}": w for i, w in enumerate(weights)}
    sums = {f"the state of chunk {i}": state["sum"] for i, state in enumerate(states)}
    return {**ended, **sums}


def plan(L):
    """Return a plan whose last two layers stay whole from forward to backward."""
    steps = []
    for l in range(L):
        steps += [("gather", l), ("forward", l)]
        if l < L - 2:
            steps += [("drop", l)]
    for l in reversed(range(L)):
        if l < L - 2:
            steps += [("gather", l)]
        steps += [("backward", l), ("drop", l)]
    return steps


def _gathers_all_twice(L):
    works = [("forward", l) for l in range(L)]
    works += [("backward", l) for l in reversed(range(L))]
    return [step for what, l in works
            for step in (("gather", l), (what, l), ("drop", l))]


def _keeps_all(L):
    steps = plan(L)
    backward = steps.index(("backward", L - 1))
    return [s for s in steps[:backward] if s[0] != "drop"] + steps[backward:]


def _from_the_first(L):
    steps = plan(L)
    backward = steps.index(("backward", L - 1))
    return steps[:backward] + sorted(steps[backward:], key=lambda step: step[1])


def _judge_plan(function, L):
    there, done, gathers = set(), [], 0
    for n, (what, l) in enumerate(function(L), 1):
        said = f"instruction {n}, {what} {l}:"
        if what == "gather":
            there, gathers = there | {l}, gathers + 1
        elif what == "drop":
            there -= {l}
        elif l not in there:
            return f"{said} the weights of the layer are not gathered."
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
    if gathers > fewest:
        return f"it gathers {gathers} times; {fewest} would be enough."
    return Note(f"plan({L}): {gathers} gathers ({fewest} are enough).")


QUESTIONS = {
    1: Question(
        "the gigabytes on each device",
        3.75,
        [
            (2.0, "Only the weights are whole; what about the chunks?"),
            (5.5, "That is stage 1: in stage 2 the gradients are divided, too."),
            (16.0, "That is a whole replica."),
        ],
    ),
    2: Task(
        "a function `sharded_step(weights, gradients, states, update, gather)`",
        sharded_step,
        [
            (_updates_everything,
             "Every device updates everything, as without shards."),
            (_sums_nothing, "A chunk needs the gradients of all devices, not of one."),
            (lambda weights, *given: sharded_step([w.copy() for w in weights], *given),
             "The device's own array is as it was. Write into it: w[:] = …; w = … only "
             + "rebinds the name."),
        ],
        judge=counted(sharded_step, _run_sharded_step, "k = {}, {} weights",
                      [(1, 2), (2, 2), (3, 12), (4, 8)], about=[UPDATED, GATHERED]),
    ),
    3: Task(
        "a function `plan(L)`",
        plan,
        [
            (_gathers_all_twice,
             "Each layer is gathered twice, as in the chapter. Which need not be?"),
            (_keeps_all, "A layer is dropped after its forward, if it cannot stay."),
            (_from_the_first, "Backward begins with the last layer."),
        ],
        judge=by_cases(_judge_plan, "plan({})", [(1,), (2,), (3,), (5,)]),
    ),
}
