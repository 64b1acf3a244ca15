"""Exercises of the chapter *Sharded data parallelism*."""

import numpy

from ..counts import counted
from ..question import Note, Question, Task, by_cases

UPDATED, GATHERED = "{} number{s} updated", "{} number{s} gathered"


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


def _judge_plan(function, L):
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
    if gathers > fewest:
        return f"it gathers {gathers} times, and {fewest} would do."
    return Note(f"plan({L}): {gathers} gathers ({fewest} are enough).")




QUESTIONS = {
    1: Question(
        "the gigabytes",
        3.75,
        [
            (2.0, "Only the weights are whole; what about the chunks?"),
            (5.5, "That is stage 1: in stage 2 the gradients are divided, too."),
            (16.0, "That is a whole replica."),
        ],
    ),
    2: Task(
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
    3: Task(
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
        judge=by_cases(_judge_plan, "plan({})", [(1,), (2,), (3,), (5,)]),
    ),
}
