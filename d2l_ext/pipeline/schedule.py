"""Pipeline schedules as data: the work of each device, in order.

A schedule is a list with one entry per device: its list of `Op`, in order. `gpipe` and
`one_f_one_b` give each device one stage, with backward in one piece. The other two have
shorter bubbles: several stages per device, or backward in two parts. Nothing runs here:
`microbatch` runs a schedule.
"""

from collections import namedtuple
from itertools import accumulate

from ..checks import whole_number

#: Work of a stage on the micro-batch `chunk`. The `kind` is 'forward', 'backward', or
#: one of backward's two parts: 'input' computes the gradient that the stage before
#: needs; 'weights', later, those of the stage's own parameters.
Op = namedtuple("Op", "stage kind chunk")
#: The same with its `start` and `end`, in clock slots from 0.
Slot = namedtuple("Slot", "stage kind chunk start end")


def gpipe(stages, chunks):
    """Return GPipe's lists: in every stage all micro-batches forward, then all
    backward.

    `stages` p, `chunks` m: whole numbers from 1. F2 is the forward work on micro-batch
    2, B2 the backward work. With p = 3 and m = 4:

        stage 0   F0 F1 F2 F3 .  .  .  .  B3 B2 B1 B0
        stage 1   .  F0 F1 F2 F3 .  .  B3 B2 B1 B0 .
        stage 2   .  .  F0 F1 F2 F3 B3 B2 B1 B0 .  .

    Raises `ValueError` for counts below 1.
    Source: Huang et al., "GPipe" (2019). Developed in the chapter *Micro-batches*.
    """
    _check(stages=stages, chunks=chunks)
    return [
        [Op(s, "forward", i) for i in range(chunks)]
        + [Op(s, "backward", i) for i in reversed(range(chunks))]
        for s in range(stages)
    ]


def one_f_one_b(stages, chunks):
    """Return 1F1B's lists: forward until the first gradient arrives, then both
    alternately.

    It takes as many slots as `gpipe`, but stage s holds the activations of at most
    p − s micro-batches, where `gpipe` holds m. With p = 3 and m = 4:

        stage 0   F0 F1 F2 .  .  B0 F3 B1 .  B2 .  B3
        stage 1   .  F0 F1 .  B0 F2 B1 F3 B2 .  B3 .
        stage 2   .  .  F0 B0 F1 B1 F2 B2 F3 B3 .  .

    Arguments and errors: as in `gpipe`.
    Source: Narayanan et al., "PipeDream" (2019), and with a flush after every
    minibatch, as here (2021). Developed in the chapter *Micro-batches*.
    """
    _check(stages=stages, chunks=chunks)
    schedule = []
    for s in range(stages):
        ahead = min(stages - s, chunks)
        forward = [Op(s, "forward", i) for i in range(chunks)]
        backward = [Op(s, "backward", i) for i in range(chunks)]
        turns = [work for pair in zip(backward, forward[ahead:]) for work in pair]
        schedule.append(forward[:ahead] + turns + backward[chunks - ahead :])
    return schedule


def interleaved(devices, chunks, parts):
    """Return 1F1B with `parts` v stages per device: device d has stages d, d + p, d +
    2p, …

    `devices` p; `chunks` m, a multiple of p: micro-batches go in groups of p through a
    device's first stage, then through its next. A stage is 1/v of the work, so the
    bubble of 1F1B takes 1/v of its time: (p − 1) / (v·m + p − 1). There are
    (v·p − 1) / (p − 1) times as many messages. From v = 2 on, device d goes forward
    2(p − 1 − d) + (v − 1)·p times before the alternation begins, and holds the
    activations of one more forward; both at most v·m. p − 1 − d, as in 1F1B, would
    deadlock; p − 1 − d + (v − 1)·p is enough if messages take no time.

    Raises `ValueError` for counts below 1, and when p does not divide m.
    Source: Narayanan et al. (2021). Developed in the chapter *Shorter bubbles*.
    """
    _check(devices=devices, chunks=chunks, parts=parts)
    if chunks % devices:
        raise ValueError(
            f"{chunks} micro-batches do not make groups of {devices}, one per "
            f"device: use {chunks + -chunks % devices}"
        )
    groups = [range(g, g + devices) for g in range(0, chunks, devices)]
    schedule = []
    for d in range(devices):
        mine = range(d, devices * parts, devices)
        forward = [Op(s, "forward", i) for g in groups for s in mine for i in g]
        back = [Op(s, "backward", i) for g in groups for s in mine[::-1] for i in g]
        ahead = devices - 1 - d
        if parts > 1:
            ahead = min(2 * ahead + (parts - 1) * devices, len(forward))
        turns = [op for pair in zip(forward[ahead:], back) for op in pair]
        schedule.append(forward[:ahead] + turns + back[len(forward) - ahead :])
    return schedule


def zero_bubble(devices, chunks, ahead=1):
    """Return 1F1B with backward in two parts: the weights' part is delayed to fill the
    bubble.

    `ahead=1` (ZB-H1): device d of p goes forward p − d times first, as in 1F1B, and its
    weights follow d micro-batches behind. With three kinds of work of one length, and
    m ≥ p, the stages wait p − 1 slots instead of 3(p − 1), and hold p micro-batches.
    `ahead=2` (ZB-H2): forward 2(p − d) − 1 times, weights 2d behind. From m = 2p − 1
    on, no device waits between its first work and its last; 2p − 1 are held.

    With p = 3 and m = 4 (f forward, i input, w weights):

        device 0   f0 f1 f2 .  .  i0 w0 f3 i1 w1 i2 w2 i3 w3
        device 1   .  f0 f1 .  i0 f2 i1 w0 f3 i2 w1 i3 w2 w3
        device 2   .  .  f0 i0 f1 i1 f2 i2 w0 f3 i3 w1 w2 w3

    Raises `ValueError` for counts below 1. Source: Qi et al., "Zero Bubble Pipeline
    Parallelism" (2023). Developed in the chapter *Shorter bubbles*.
    """
    _check(devices=devices, chunks=chunks, ahead=ahead)
    schedule = []
    for d in range(devices):
        first, behind = ahead * (devices - d) - ahead + 1, ahead * d
        order = [Op(d, "forward", i) for i in range(min(first, chunks))]
        for i in range(chunks):
            order.append(Op(d, "input", i))
            if i >= behind:
                order.append(Op(d, "weights", i - behind))
            if i + first < chunks:
                order.append(Op(d, "forward", i + first))
        last = range(max(0, chunks - behind), chunks)
        schedule.append(order + [Op(d, "weights", i) for i in last])
    return schedule


def clock(schedule, forward=1, backward=1, message=0):
    """Return the start and end of each `Op`, if every device works as early as it can.

    `forward`, `backward`: the length of such work in slots, or a list with one length
    per stage; a part of backward takes half of it. `message`: the time from one device
    to the next, either way; devices do not wait while sending.

    Returns a list of `Slot`s in the order of their starts, so that, if no length is 0,
    each comes after everything it depends on. Raises `ValueError` for a schedule that
    deadlocks.
    """

    def length(op):
        slots = forward if op.kind == "forward" else backward
        slots = slots[op.stage] if hasattr(slots, "__iter__") else slots
        return slots / 2 if op.kind in ("input", "weights") else slots

    times = _when(schedule, length, message)
    return [Slot(*op, start, end) for op, (_, start, end) in times.items()]


def op_clock(schedule, forward=1, inputs=1, weights=1):
    """Return `clock` as a dict: {op: (device, start, end)}, in the order of the starts.

    `forward`, `inputs`, `weights`: the length of such work, the same in every stage;
    `'backward'` takes the sum of its two parts.
    """
    length = {"forward": forward, "input": inputs, "weights": weights,
              "backward": inputs + weights}
    return _when(schedule, lambda op: length[op.kind])


def _when(schedule, length, message=0):
    on = {op: d for d, order in enumerate(schedule) for op in order}
    stages = 1 + max(op.stage for op in on)
    times, free, todo = {}, [0] * len(schedule), [list(order) for order in schedule]
    while any(todo):
        able = [
            (max([free[d]] + [times[w][2] + message * (on[w] != d) for w in needed]), d)
            for d, order in enumerate(todo)
            if order
            for needed in [_needs(*order[0], stages)]
            if all(w in times for w in needed)
        ]
        if not able:
            raise ValueError(f"the schedule is stuck: {_waiting(todo)}")
        start, d = min(able)
        op = todo[d].pop(0)
        free[d] = start + length(op)
        times[op] = d, start, free[d]
    return dict(sorted(times.items(), key=lambda item: (item[1][1], item[1][0])))


def _needs(stage, kind, chunk, stages):
    """Return the work that must end before this one: a list of (stage, kind, chunk)."""
    if kind == "forward":
        return [(stage - 1, kind, chunk)] if stage else []
    if kind == "weights":
        return [(stage, "input", chunk)]
    behind = [(stage + 1, kind, chunk)] if stage + 1 < stages else []
    return [(stage, "forward", chunk)] + behind


def _waiting(todo):
    act = {"input": "do the input part of", "weights": "do the weights part of"}
    return "; ".join(
        f"stage {stage} waits to {act.get(kind, f'go {kind} with')} micro-batch {chunk}"
        for stage, kind, chunk in (order[0] for order in todo if order)
    )


def bubble(slots):
    """Return the share of time the stages wait, 0 to 1: 1 − busy / (p · span).

    With one stage per device; for `interleaved` use `waiting(op_clock(…))`.
    """
    span = max(slot.end for slot in slots) - min(slot.start for slot in slots)
    busy = sum(slot.end - slot.start for slot in slots)
    return 1 - busy / (span * len({slot.stage for slot in slots}))


def bubble_formula(stages, chunks):
    """Return the bubble of `gpipe` and of `one_f_one_b`: (p − 1) / (m + p − 1)."""
    _check(stages=stages, chunks=chunks)
    return (stages - 1) / (chunks + stages - 1)


def waiting(times):
    """Return each device's idle slots between the first and the last `Op` of all."""
    span = max(end for _, _, end in times.values())
    busy = [0] * (1 + max(device for device, _, _ in times.values()))
    for device, start, end in times.values():
        busy[device] += end - start
    return [span - b for b in busy]


def peak_held(schedule):
    """Return the peak of each device's activations, in micro-batches of one stage: a
    list.

    It applies to stages without recomputation.
    """
    change = {"forward": 1, "input": 0, "weights": -1, "backward": -1}
    changes = [[change[work.kind] for work in order] for order in schedule]
    return [max(accumulate(own, initial=0)) for own in changes]


def _check(**counts):
    """Raise `ValueError` unless these are whole numbers from 1."""
    for what, value in counts.items():
        whole_number(what, value)
