"""Measure a step of the LSTM under placements of its layers on two devices.

    python benchmarks/where_to_cut.py                        # all contiguous ones
    python benchmarks/where_to_cut.py --interleaved --part 1/4
    python benchmarks/where_to_cut.py --placements 000110 011000

Prints, for every placement, the step time predicted from the layers' own times and
the one measured, and compares each with the placement that the partitioner chose.
Rounds alternate: in each, every placement takes a step, so a drift meets all alike.
"""

import argparse
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(1, str(ROOT))

import d2l_ext  # noqa: F401, I001  (before MXNet)
import machine
import mxnet as mx
import numpy
from report import to_json, warning_lines

from d2l_ext.pipeline import layer_costs, lstm
from d2l_ext import pipeline
from bookkit.provenance import provenance
from d2l_ext.pipeline.partition import all_placements, best_placement, predict


def parse(argv):
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--interleaved", action="store_true",
                   help="the placements that are not contiguous")  # fmt: skip
    p.add_argument("--part", default="1/1", metavar="I/N",
                   help="only part I of N of them")  # fmt: skip
    p.add_argument("--placements", nargs="+", metavar="P",
                   help="only these, such as 000111 011000")  # fmt: skip
    p.add_argument("--layers", type=int, default=4, metavar="N")
    p.add_argument("--seq-len", type=int, default=35, metavar="T")
    p.add_argument("--batch-size", type=int, default=64, metavar="N")
    p.add_argument("--hidden", type=int, default=256, metavar="H")
    p.add_argument("--vocabulary", type=int, default=10_000, metavar="V")
    p.add_argument("--apart", action="store_true", help="a decoder per time step")
    p.add_argument("--rounds", type=int, default=7, metavar="N")
    p.add_argument("--output", type=Path, metavar="FILE", help="where JSON goes")
    return p.parse_args(argv)


def network(args):
    """The symbol, its inputs' shapes, and a random minibatch."""
    symbol = lstm.lstm_unroll(
        args.layers, args.seq_len, args.hidden, args.hidden, args.vocabulary,
        concat_decode=not args.apart)  # fmt: skip
    shapes = lstm.input_shapes(args.layers, args.seq_len, args.batch_size, args.hidden)
    rng = numpy.random.RandomState(0)
    X, y = rng.randint(0, args.vocabulary, (2, args.seq_len, args.batch_size))
    return symbol, shapes, X.astype("float32"), y.astype("float32")


def candidates(args):
    """The placement chosen by the partitioner's means, and those to compare with."""
    n = args.layers + 2
    contiguous = all_placements(n, 2)[:-1]  # the last is the first on another device
    if args.placements:
        return contiguous, [tuple(map(int, p)) for p in args.placements]
    if not args.interleaved:
        return contiguous, contiguous
    others = [p for p in all_placements(n, 2, contiguous=False) if p not in contiguous]
    part, parts = map(int, args.part.split("/"))
    return contiguous, others[part - 1 :: parts]


def step(net, X, y):
    """Milliseconds of a forward and a backward pass."""
    mx.nd.waitall()
    start = perf_counter()
    net.forward_backward(X, y)
    mx.nd.waitall()
    return (perf_counter() - start) * 1e3


def measure(placements, args, network):
    """Step times of every placement: a dict of milliseconds per round."""
    symbol, shapes, X, y = network
    names, params = lstm.groups(args.layers), lstm.init_params(symbol, shapes)
    nets = {}
    for p in placements:
        group2ctx = {name: mx.cpu(d) for name, d in zip(names, p)}
        nets[p] = pipeline.bind(symbol, group2ctx, shapes, params)
    turns = [{p: step(nets[p], X, y) for p in nets} for _ in range(args.rounds + 1)]
    return {p: [turn[p] for turn in turns[1:]] for p in nets}  # the first warms up


def row(placement, found, chosen, layers, seq_len):
    """What was predicted of a placement, and what was measured."""
    ms, bound = median(found[placement]), predict(placement, layers, seq_len)
    pairs = zip(found[chosen], found[placement])
    return {
        "placement": "".join(map(str, placement)),
        "predicted_ms": round(bound, 1),
        "measured_ms": round(ms, 1),
        "of_bound": round(bound / ms, 3),
        "chosen_to_this": round(median(a / b for a, b in pairs), 3),
    }


def main(argv=None):
    args = parse(argv)
    clock, own = machine.CpuClock(), machine.own_core_seconds()
    net = symbol, shapes, X, y = network(args)
    values, devices = {"data": X, "softmax_label": y}, [mx.cpu(0), mx.cpu(1)]
    layers = layer_costs.measure(symbol, shapes, values, devices, rounds=3)
    contiguous, compared = candidates(args)
    chosen = best_placement(contiguous, layers, args.seq_len)
    placements = list(dict.fromkeys([contiguous[0], chosen, *compared]))
    found = measure(placements, args, net)
    rows = [row(p, found, chosen, layers, args.seq_len) for p in placements]
    others = clock.cores_busy(machine.own_core_seconds() - own)
    stolen = clock.cores_stolen()
    warnings = machine.run_warnings(others, stolen)
    print("chosen from the layers' times:", "".join(map(str, chosen)))
    print("placement  predicted  measured  of bound  chosen/this")
    for entry in rows:
        print("{placement:>9}{predicted_ms:11.0f}{measured_ms:10.0f}{of_bound:10.2f}"
              "{chosen_to_this:13.2f}".format(**entry))  # fmt: skip
    print(*warning_lines(warnings), sep="\n")
    if args.output:
        result = {
            "date": machine.now(), "commit": machine.commit(ROOT),
            "machine": provenance(),
            "quiet": {"cores_busy_by_others": others, "cores_stolen": stolen,
                      "warnings": warnings},
            "settings": {k: v for k, v in vars(args).items() if k != "output"},
            "layers": [vars(layer) for layer in layers],
            "chosen": "".join(map(str, chosen)), "rows": rows,
        }  # fmt: skip
        args.output.parent.mkdir(parents=True, exist_ok=True)
        args.output.write_text(to_json(result) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
