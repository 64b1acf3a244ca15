"""How much of an exchange hides behind backward: in the timeline, and in time.

    python -m benchmarks.data_parallel.overlap

Twelve dense layers on two devices, a bucket for each, and a link on which the exchange
takes a third of backward. Prints JSON, and fails if less than 0.7 is hidden in either.
"""

import d2l_ext  # noqa: F401, I001  (before mxnet)
import json
import sys
from statistics import median
from time import perf_counter

import mxnet as mx
from mxnet import init, np, npx
from mxnet.gluon import nn

from d2l_ext.data_parallel import overlap
from d2l_ext.devices import timeline, try_all_devices

LAYERS, WIDTH, EXAMPLES, TURNS, BAR = 12, 512, 4096, 9, 0.7


def main():
    npx.set_np()
    devices = try_all_devices(2)
    X = np.random.normal(size=(EXAMPLES, WIDTH))
    y = np.random.randint(0, WIDTH, size=EXAMPLES).astype("int32")
    link = overlap.SlowLink(1e15, beside=devices)

    def step(bulk):
        """A step of a network whose backward runs in bulks of so many operators."""
        net = nn.HybridSequential()
        for _ in range(LAYERS):
            net.add(nn.Dense(WIDTH, activation="relu", in_units=WIDTH))
        mx.random.seed(0)
        net.initialize(init.Normal(0.05), ctx=devices)
        net.hybridize(forward_bulk_size=1, backward_bulk_size=bulk)
        params, limit = net.collect_params().values(), 4 * WIDTH * (WIDTH + 1)
        replicas = [overlap.attach_buckets([p.data(d) for p in params], limit)
                    for d in devices]

        def run():
            with link.between():
                overlap.train_batch(X, y, replicas, devices, 1e-3, lambda X, _: net(X))

        return run

    def milliseconds(action, bandwidth):
        npx.waitall()
        link.bandwidth, start = bandwidth, perf_counter()
        action()
        npx.waitall()
        return (perf_counter() - start) * 1e3

    during, after = step(bulk=2), step(bulk=100)  # one bulk: all is sent after backward
    for action in (during, after):
        milliseconds(action, 1e15)
    alone = median(milliseconds(during, 1e15) for _ in range(TURNS))
    exchange = alone * 2 / 3 / 3  # a third of backward, which is two thirds of a step
    bandwidth = 2 * 4 * WIDTH * (WIDTH + 1) * LAYERS / exchange * 1e3
    cases = {"no link": (during, 1e15), "after": (after, bandwidth),
             "during": (during, bandwidth)}
    turns = [{name: milliseconds(*case) for name, case in cases.items()}
             for _ in range(TURNS)]
    found = {name: round(median(turn[name] for turn in turns), 1) for name in cases}
    shares = []
    for _ in range(3):
        with timeline.record([*devices, link.device]) as trace:
            during()
        both = timeline.Timeline()
        both.events = [e._replace(device=e.kind) for e in trace.events
                       if e.name == overlap.MESSAGE or e.kind == "backward"]
        shares.append(both.overlap() / both.busy("copy"))
    found["hidden in time"] = round(
        (found["after"] - found["during"]) / (found["after"] - found["no link"]), 2)
    found["hidden in the timeline"] = round(median(shares), 2)
    print(json.dumps(found))
    return min(found["hidden in time"], found["hidden in the timeline"]) < BAR


if __name__ == "__main__":
    sys.exit(main())
