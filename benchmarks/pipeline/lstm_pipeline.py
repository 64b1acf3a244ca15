"""Measure a step of four equal LSTM layers on one device and as a pipeline on two.

    make bench-pipeline
    python -m benchmarks.pipeline.lstm_pipeline --rounds 3

All rows are bound in this process and take turns. They train the same network, bit
for bit, which is checked before any clock starts.
"""

import d2l_ext  # noqa: F401, I001  (before MXNet's engine)
import resource
import sys
from functools import partial
from statistics import median
from time import perf_counter

import mxnet as mx
import numpy

from benchmarks import command, machine, measure
from bookkit.provenance import provenance
from d2l_ext import pipeline
from d2l_ext.pipeline import lstm, wavefront

LAYERS, BATCH_SIZE, VOCABULARY = 4, 64, 64
WARM_UP = 2
#: What a pipeline should reach, as a share of the wavefront's bound.
BAR = 0.90
#: (id, name, groups of each device)
ROWS = [
    ("one", "one device", [lstm.groups(LAYERS)]),
    ("contiguous", "two, layers 0 1 | 2 3",
     pipeline.split(lstm.groups(LAYERS), [3])),
    ("interleaved", "two, layers 0 2 | 1 3",
     [["embed", "layer0", "layer2"], ["layer1", "layer3", "decode"]]),
]


def bind_all(T, H):
    """Return pipelines by row id, and a minibatch (X, y): `T` time steps, `H` units."""
    symbol = lstm.lstm_unroll(LAYERS, T, H, H, VOCABULARY)
    shapes = lstm.input_shapes(LAYERS, T, BATCH_SIZE, H)
    params = lstm.init_params(symbol, shapes)
    devices = [mx.cpu(0), mx.cpu(1)]
    bound = {
        row: pipeline.bind(symbol, pipeline.placement(parts, devices), shapes, params)
        for row, _, parts in ROWS
    }
    X, y = numpy.random.RandomState(0).randint(0, VOCABULARY, (2, T, BATCH_SIZE))
    return bound, X, y


def check_bits(bound, X, y):
    """Refuse rows whose gradients differ in any bit; this warms them up, too."""
    found = {}
    for row, net in bound.items():
        for _ in range(WARM_UP):
            net.forward_backward(X, y)
        found[row] = {n: g.asnumpy() for n, g in net.gradients().items()}
    for row, gradients in found.items():
        wrong = [n for n, g in gradients.items() if (g != found["one"][n]).any()]
        if wrong:
            raise measure.Disagreement(f"{row}: not one device's gradients: {wrong}")


def step(net, X, y):
    """Return a forward and a backward pass's seconds, and the page faults in it."""
    mx.nd.waitall()
    faults, start = _faults(), perf_counter()
    net.forward_backward(X, y)
    mx.nd.waitall()
    return perf_counter() - start, _faults() - faults


def _faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def entries(turns, seq_len):
    """Yield the rows of the result. `turns`: {row id: list of (seconds, faults)}."""
    ms = {row: [1e3 * seconds for seconds, _ in turns[row]] for row in turns}
    for row, name, parts in ROWS:
        speed_up = measure.spread(measure.paired_ratios(ms["one"], ms[row]))
        share = speed_up["median"] / wavefront.bound(2, seq_len)
        yield {
            "id": row, "name": name, "devices": len(parts),
            "step_ms": _rounded(measure.spread(ms[row]), 1),
            "speed_up": _rounded(speed_up, 3),
            "of_bound": round(share, 3) if len(parts) > 1 else None,
            "page_faults": int(median(faults for _, faults in turns[row])),
            "steps_ms": [round(t, 1) for t in ms[row]],
        }


def _rounded(spread, digits):
    return {k: round(v, digits) for k, v in spread.items()}


def measured(seq_len=35, hidden=512, rounds=15):
    """Time four equal LSTM layers, on one device and as a pipeline on two."""
    with machine.watched() as quiet:
        bound, X, y = bind_all(seq_len, hidden)
        check_bits(bound, X, y)
        turns = {row: [] for row in bound}
        for _ in range(rounds):
            for row, net in bound.items():
                turns[row].append(step(net, X, y))
    rows = list(entries(turns, seq_len))
    return {
        "quiet": quiet,
        "settings": {
            "layers": LAYERS,
            "hidden": hidden,
            "seq_len": seq_len,
            "batch_size": BATCH_SIZE,
            "vocabulary": VOCABULARY,
            "rounds": rounds,
            "warm_up_steps": WARM_UP,
            "environment": provenance()["settings"],
        },
        "rows": rows,
        "bar": {
            "bound": round(wavefront.bound(2, seq_len), 3),
            "share": BAR,
            "reached": rows[1]["of_bound"] >= BAR,
        },
    }


main = partial(command.main, "pipeline", measured)

if __name__ == "__main__":
    sys.exit(main())
