"""Pipelines: stages that are not equal, messages that take time."""

from ..pipeline.schedule import gpipe
from .events import Events
from .link import whole


def seconds(forward, backward, chunks):
    """Seconds of a GPipe step of `chunks` micro-batches, if messages take no time.

    `forward`, `backward`: seconds of each stage for one micro-batch, two lists.

        Σᵢ (fᵢ + bᵢ) + (m − 1)·(max f + max b)

    Equal stages: (m + p − 1)·(f + b), of which (p − 1)/(m + p − 1) is the bubble. The
    slowest stage counts m times, all others once: imbalance costs more than depth.
    Raises `ValueError` for lists of different lengths. Source of the bubble: Huang et
    al., "GPipe" (2019). Developed in the chapter *A cost model*.
    """
    _check(forward, backward)
    whole("chunks", chunks)
    slowest = max(forward) + max(backward)
    return sum(forward) + sum(backward) + (chunks - 1) * slowest


def efficiency(forward, backward, chunks):
    """Share of the stages' time in which they work: 1 less the bubble."""
    busy = chunks * (sum(forward) + sum(backward))
    return busy / (len(forward) * seconds(forward, backward, chunks))


def simulate(forward, backward, chunks, message=0.0, make=gpipe):
    """Seconds of a step, event by event; also where the formula does not hold.

    `message`: seconds from one stage to the next, either way; the stages do not wait
    for it to be sent. `make`: `schedule.gpipe` or `one_f_one_b`. The rest and errors
    as in `seconds`.
    """
    _check(forward, backward)
    run = _Run({"forward": forward, "backward": backward}, message)
    run.todo = [list(order) for order in make(len(forward), chunks)]
    for stage in range(len(forward)):
        run.begin(stage)
    return run.events.run()


class _Run:
    def __init__(self, length, message):
        self.length, self.message = length, message
        self.events, self.there = Events(), set()
        self.working = [False] * len(length["forward"])

    def begin(self, stage):
        """Start the next work of `stage` if it is free and has what that needs."""
        if self.working[stage] or not self.todo[stage]:
            return
        kind, chunk = self.todo[stage][0]
        first = kind == "forward" and stage == 0
        if first or (stage, kind, chunk) in self.there:
            self.todo[stage].pop(0)
            self.working[stage] = True
            self.events.after(self.length[kind][stage], self.end, stage, kind, chunk)

    def end(self, stage, kind, chunk):
        self.working[stage] = False
        reader = stage + (1 if kind == "forward" else -1)
        if reader == len(self.working):  # the loss turns the last stage around
            self.arrive(stage, "backward", chunk)
        elif reader >= 0:
            self.events.after(self.message, self.arrive, reader, kind, chunk)
        self.begin(stage)

    def arrive(self, stage, kind, chunk):
        self.there.add((stage, kind, chunk))
        self.begin(stage)


def _check(forward, backward):
    if len(forward) != len(backward) or not forward:
        raise ValueError(
            f"{len(forward)} forward times and {len(backward)} backward times: give "
            "both for each stage, and one stage at least"
        )
