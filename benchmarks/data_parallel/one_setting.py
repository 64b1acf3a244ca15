"""One line of a training step, written in two ways: two timelines for the first page.

    make result NAME=one_setting
"""

import d2l_ext  # noqa: F401, I001  first: it prepares MXNet's engine

import time
from statistics import median

from mxnet import autograd, npx

from d2l_ext.data import load_data
from d2l_ext.data_parallel import flat, lenet
from d2l_ext.data_parallel.allreduce import allreduce
from d2l_ext.data_parallel.minibatch import split_batch
from d2l_ext.devices import timeline, try_all_devices

BATCH, ROUNDS, STEPS = 512, 9, 4
#: How the loop over the devices keeps the loss of each: as a number, or as an array.
LINES = {"reads": "losses.append(float(loss))", "keeps": "losses.append(loss)"}


def measured():
    """Measure one device, and two devices with either of `LINES`, in turns.

    Returns the `ms` of a step (a median), the `times` that two devices are as fast as
    one, in words too (`says`), and the `spans` of one step, the quickest of six:
    [device, kind, start, end] in ms.
    """
    npx.set_np()
    steps = {"alone": Step(1, keep), "reads": Step(2, float), "keeps": Step(2, keep)}
    ms = {name: [] for name in steps}
    for _ in range(ROUNDS):
        for name, step in steps.items():
            ms[name].append(timed(step))
    ms = {name: median(turns) for name, turns in ms.items()}
    times = {name: ms["alone"] / ms[name] for name in LINES}
    return {
        "batch": BATCH, "lines": LINES, "ms": ms, "times": times,
        "says": {name: f"{ratio:.1f} times" for name, ratio in times.items()},
        "spans": {name: spans(quickest(steps[name])) for name in LINES},
    }


def keep(loss):
    return loss


class Step:
    """A step of LeNet on `k` devices; `log` is what it does with a loss."""

    def __init__(self, k, log):
        self.devices, self.log = try_all_devices(k), log
        self.X, self.y = next(iter(load_data(BATCH)[0]))
        params = lenet.init_params()
        self.replicas = [flat.get_flat_params(params, d) for d in self.devices]

    def __call__(self):
        shards, losses = split_batch(self.X, self.y, self.devices), []
        for X, y, replica in zip(*shards, self.replicas):
            with autograd.record():
                loss = lenet.loss(lenet.lenet(X, replica.params), y)
            loss.backward()
            losses.append(self.log(loss.sum()))
        allreduce([replica.gradients for replica in self.replicas])
        for replica in self.replicas:
            replica.values[:] -= 0.01 * replica.gradients / BATCH
        return losses


def timed(step):
    step()
    npx.waitall()
    start = time.perf_counter()
    for _ in range(STEPS):
        step()
    npx.waitall()
    return (time.perf_counter() - start) / STEPS * 1e3


def quickest(step):
    def recorded():
        with timeline.record() as trace:
            step()
        return trace

    return min((recorded() for _ in range(6)), key=lambda trace: trace.span())


def spans(trace, gap=0.3):
    """Work of a kind on a device, joined across pauses shorter than `gap` ms."""
    begin = min(event.start for event in trace.events)
    joined = []
    for device in trace.devices:
        for event in sorted(trace.of(device), key=lambda event: event.start):
            last = joined[-1] if joined else None
            start, end = event.start - begin, event.end - begin
            if last and last[:2] == [device, event.kind] and start < last[3] + gap:
                last[3] = max(last[3], end)
            else:
                joined.append([device, event.kind, start, end])
    return [[d, kind, round(start, 2), round(end, 2)] for d, kind, start, end in joined]
