"""Pipeline schedules as data: which stage works on which micro-batch, and when.

A schedule is a list with an entry per stage: the list of `Work` that this stage does,
in order. Nothing here runs; `microbatch` runs it, `figures` draws it.
"""

from collections import namedtuple
from itertools import accumulate

from ..checks import whole_number

#: The `kind` of work, `'forward'` or `'backward'`, on the micro-batch `chunk`.
Work = namedtuple("Work", "kind chunk")
#: Work of a stage with its `start` and `end`, in clock slots from 0.
Slot = namedtuple("Slot", "stage kind chunk start end")


def gpipe(stages, chunks):
    """Every stage: all micro-batches forward, then all of them backward.

    `stages` p, `chunks` m: whole numbers from 1. F2 is the forward work on micro-batch
    2, B2 the backward work. With p = 3 and m = 4:

        stage 0   F0 F1 F2 F3 .  .  .  .  B3 B2 B1 B0
        stage 1   .  F0 F1 F2 F3 .  .  B3 B2 B1 B0 .
        stage 2   .  .  F0 F1 F2 F3 B3 B2 B1 B0 .  .

    Raises `ValueError` for counts below 1.
    Source: Huang et al., "GPipe" (2019). Developed in the chapter *Micro-batches*.
    """
    check_counts(stages=stages, chunks=chunks)
    forward = [Work("forward", i) for i in range(chunks)]
    backward = [Work("backward", i) for i in reversed(range(chunks))]
    return [forward + backward for _ in range(stages)]


def one_f_one_b(stages, chunks):
    """Every stage: forwards until the first gradient comes, then one of each in turn.

    It takes the slots of `gpipe`, and stage s holds the activations of p − s
    micro-batches at most, where `gpipe` holds m. With p = 3 and m = 4:

        stage 0   F0 F1 F2 .  .  B0 F3 B1 .  B2 .  B3
        stage 1   .  F0 F1 .  B0 F2 B1 F3 B2 .  B3 .
        stage 2   .  .  F0 B0 F1 B1 F2 B2 F3 B3 .  .

    Arguments and errors: as in `gpipe`.
    Source: Narayanan et al., "PipeDream" (2019), and with a flush after every
    minibatch, as here (2021). Developed in the chapter *Micro-batches*.
    """
    check_counts(stages=stages, chunks=chunks)
    schedule = []
    for s in range(stages):
        ahead = min(stages - s, chunks)
        forward = [Work("forward", i) for i in range(chunks)]
        backward = [Work("backward", i) for i in range(chunks)]
        turns = [work for pair in zip(backward, forward[ahead:]) for work in pair]
        schedule.append(forward[:ahead] + turns + backward[chunks - ahead :])
    return schedule


def clock(schedule, forward=1, backward=1, message=0):
    """When each work runs, if every stage does its next work as soon as it can.

    `schedule`: also one of `short_bubbles`. `forward`, `backward`: the length of such
    work, in slots, or a list with that of each stage; a part of backward takes half of
    it. `message`: the time from one device to the next, either way; the stages do not
    wait for it to be sent.

    Returns a list of `Slot` in the order of their starts: work stands behind all that
    it needs. Raises `ValueError` for a schedule that gets stuck.
    """
    # Work is that of the stage in whose list it is; an `Op` names its stage.
    orders = [[(s, *work)[-3:] for work in order] for s, order in enumerate(schedule)]
    stages = 1 + max(work[0] for order in orders for work in order)

    def length(work):
        stage, kind, _ = work
        slots = forward if kind == "forward" else backward
        slots = slots[stage] if hasattr(slots, "__iter__") else slots
        return slots / 2 if kind in ("input", "weights") else slots

    times = when(orders, lambda work: needs(*work, stages), length, message)
    return [Slot(*work, start, end) for work, (_, start, end) in times.items()]


def when(orders, needs, length, message=0):
    """When each work runs, if every device does its next work as soon as it can.

    `orders`: for each device, the list of its works: tuples, each once. `needs(work)`:
    the works that must have ended before. `length(work)`: its time. `message`: added
    when a needed work ends on another device. Returns {work: (device, start, end)} in
    the order of the starts: work stands behind all that it needs. Raises `ValueError`
    for orders that get stuck.
    """
    on = {work: d for d, order in enumerate(orders) for work in order}
    times, free, todo = {}, [0] * len(orders), [list(order) for order in orders]
    while any(todo):
        able = [
            (max([free[d]] + [times[w][2] + message * (on[w] != d) for w in wanted]), d)
            for d, order in enumerate(todo)
            if order
            for wanted in [needs(order[0])]
            if all(w in times for w in wanted)
        ]
        if not able:
            raise ValueError(f"the schedule is stuck: {_waiting(todo)}")
        start, d = min(able)
        work = todo[d].pop(0)
        free[d] = start + length(work)
        times[work] = d, start, free[d]
    return dict(sorted(times.items(), key=lambda item: (item[1][1], item[1][0])))


def bubble(slots):
    """Share of the stages' time in which they wait, 0 to 1: 1 − busy / (p · span)."""
    span = max(slot.end for slot in slots) - min(slot.start for slot in slots)
    busy = sum(slot.end - slot.start for slot in slots)
    return 1 - busy / (span * len({slot.stage for slot in slots}))


def bubble_formula(stages, chunks):
    """The bubble of `gpipe` and of `one_f_one_b`: (p − 1) / (m + p − 1)."""
    check_counts(stages=stages, chunks=chunks)
    return (stages - 1) / (chunks + stages - 1)


def peak_held(schedule):
    """The most micro-batches' activations that each device holds, in stages' worth.

    Without recomputation. Also for schedules of `short_bubbles`.
    """
    change = {"forward": 1, "input": 0, "weights": -1, "backward": -1}
    changes = [[change[work.kind] for work in order] for order in schedule]
    return [max(accumulate(own, initial=0)) for own in changes]


def needs(stage, kind, chunk, stages):
    """What must have ended before this work: a list of (stage, kind, chunk)."""
    if kind == "forward":
        return [(stage - 1, kind, chunk)] if stage else []
    if kind == "weights":
        return [(stage, "input", chunk)]
    behind = [(stage + 1, kind, chunk)] if stage + 1 < stages else []
    return [(stage, "forward", chunk)] + behind


def _waiting(todo):
    return "; ".join(
        f"stage {stage} waits to go {kind} with micro-batch {chunk}"
        for stage, kind, chunk in (order[0] for order in todo if order)
    )


def check_counts(**counts):
    """Raise `ValueError` unless these are whole numbers from 1."""
    for what, value in counts.items():
        whole_number(what, value)
