"""Measure a step of the LSTM under placements of its layers on two devices.

    python -m benchmarks.pipeline.where_to_cut                   # all contiguous ones
    python -m benchmarks.pipeline.where_to_cut --interleaved --part 1/4
    python -m benchmarks.pipeline.where_to_cut --placements 000110 011000

Prints, for every placement, the step time predicted from the layers' own times and
the one measured, and compares each with the placement that the partitioner chose.
Rounds alternate: in each, every placement takes a step, so a drift meets all alike.
"""

import d2l_ext  # noqa: F401, I001  (before MXNet's engine)
import sys
from argparse import Namespace
from statistics import median
from time import perf_counter

import mxnet as mx
import numpy

from benchmarks import command, machine
from d2l_ext import pipeline
from d2l_ext.pipeline import layer_costs, lstm
from d2l_ext.pipeline.partition import all_placements, best_placement, predict


def parse(argv):
    p = command.parser(__doc__)
    p.add_argument("--interleaved", action="store_true",
                   help="the placements that are not contiguous")
    p.add_argument("--part", default="1/1", metavar="I/N",
                   help="only part I of N of them")
    p.add_argument("--placements", nargs="+", metavar="P",
                   help="only these, such as 000111 011000")
    p.add_argument("--layers", type=int, default=4, metavar="N")
    p.add_argument("--seq-len", type=int, default=35, metavar="T")
    p.add_argument("--batch-size", type=int, default=64, metavar="N")
    p.add_argument("--hidden", type=int, default=256, metavar="H")
    p.add_argument("--vocabulary", type=int, default=10_000, metavar="V")
    p.add_argument("--apart", action="store_true", help="a decoder per time step")
    p.add_argument("--rounds", type=int, default=7, metavar="N")
    return p.parse_args(argv)


def network(args):
    """The symbol, its inputs' shapes, and a random minibatch."""
    symbol = lstm.lstm_unroll(
        args.layers, args.seq_len, args.hidden, args.hidden, args.vocabulary,
        concat_decode=not args.apart)
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


def measured(**options):
    """Placements of an LSTM's layers on two devices, predicted and measured."""
    args = Namespace(**options)
    with machine.watched() as quiet:
        net = symbol, shapes, X, y = network(args)
        values, devices = {"data": X, "softmax_label": y}, [mx.cpu(0), mx.cpu(1)]
        layers = layer_costs.measure(symbol, shapes, values, devices, rounds=3)
        contiguous, compared = candidates(args)
        chosen = best_placement(contiguous, layers, args.seq_len)
        placements = list(dict.fromkeys([contiguous[0], chosen, *compared]))
        found = measure(placements, args, net)
    return {
        "quiet": quiet,
        "settings": options,
        "layers": [vars(layer) for layer in layers],
        "chosen": "".join(map(str, chosen)),
        "rows": [row(p, found, chosen, layers, args.seq_len) for p in placements],
    }


def table(result):
    lines = [
        f"chosen from the layers' times: {result['chosen']}",
        "placement  predicted  measured  of bound  chosen/this",
    ]
    lines += [
        "{placement:>9}{predicted_ms:11.0f}{measured_ms:10.0f}{of_bound:10.2f}"
        "{chosen_to_this:13.2f}".format(**entry)
        for entry in result["rows"]
    ]
    return "\n".join(lines)


def main(argv=None):
    return command.run("where_to_cut", measured, parse(argv), table)


if __name__ == "__main__":
    sys.exit(main())
