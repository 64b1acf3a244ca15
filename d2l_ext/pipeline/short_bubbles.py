"""Schedules with shorter bubbles: several stages a device, backward in two parts.

A schedule is a list with an entry per device: the list of `Op` that it does, in order.
Nothing here runs; `microbatch` runs it, on stages that divide their backward work.
"""

from collections import namedtuple

from .schedule import check_counts, needs, when
from .schedule import peak_held as most_held  # noqa: F401

#: Work on the micro-batch `chunk` by a stage of the network. The `kind` is 'forward';
#: 'backward', or its two parts: 'input' finds the gradient that the stage before needs,
#: 'weights', later, those of the stage's own parameters.
Op = namedtuple("Op", "stage kind chunk")


def interleaved(devices, chunks, parts):
    """1F1B, `parts` v stages a device: device d has the stages d, d + p, d + 2p, …

    `devices` p; `chunks` m, a multiple of p: micro-batches go in groups of p through a
    device's first stage, then through its next. A stage is 1/v of the work, so the
    bubble of 1F1B takes 1/v of its time: (p − 1) / (v·m + p − 1), for v times the
    messages. From v = 2 on, device d goes forward 2(p − 1 − d) + (v − 1)·p times before
    the turns begin (p − 1 − d, as in 1F1B, gets stuck), and holds one stage more.

    Raises `ValueError` for counts below 1, and when p does not divide m.
    Source: Narayanan et al. (2021). Developed in the chapter *Shorter bubbles*.
    """
    check_counts(devices=devices, chunks=chunks, parts=parts)
    if chunks % devices:
        raise ValueError(
            f"{chunks} micro-batches do not make groups of {devices}, one for each "
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
    """1F1B with backward in two parts: weights wait, and fill the bubble.

    `ahead=1` (ZB-H1): device d of p goes forward p − d times first, as in 1F1B, and its
    weights follow d micro-batches behind. With three kinds of work of one length the
    stages wait p − 1 slots instead of 3(p − 1), and hold p micro-batches at most.
    `ahead=2` (ZB-H2): forward 2(p − d) − 1 times, weights 2d behind. From m = 2p − 1
    on, no device waits between its first work and its last; 2p − 1 are held.

    With p = 3 and m = 4 (f forward, i input, w weights):

        device 0   f0 f1 f2 .  .  i0 w0 f3 i1 w1 i2 w2 i3 w3
        device 1   .  f0 f1 .  i0 f2 i1 w0 f3 i2 w1 i3 w2 w3
        device 2   .  .  f0 i0 f1 i1 f2 i2 w0 f3 i3 w1 w2 w3

    Raises `ValueError` for counts below 1. Source: Qi et al., "Zero Bubble Pipeline
    Parallelism" (2023). Developed in the chapter *Shorter bubbles*.
    """
    check_counts(devices=devices, chunks=chunks, ahead=ahead)
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


def op_clock(schedule, forward=1, inputs=1, weights=1, message=0):
    """When each `Op` runs: {op: (device, start, end)}, in the order of the starts.

    `forward`, `inputs`, `weights`: the time of such work of one stage; `'backward'`
    takes that of its two parts. `message`: from one device to another.
    Raises `ValueError` for a schedule that gets stuck.
    """
    length = {"forward": forward, "input": inputs, "weights": weights,
              "backward": inputs + weights}  # fmt: skip
    stages = 1 + max(op.stage for order in schedule for op in order)
    return when(
        schedule, lambda op: needs(*op, stages), lambda op: length[op.kind], message
    )


def waiting(times):
    """Slots that each device waits, from the first work of all to the last."""
    span = max(end for _, _, end in times.values())
    busy = [0] * (1 + max(device for device, _, _ in times.values()))
    for device, start, end in times.values():
        busy[device] += end - start
    return [span - b for b in busy]
