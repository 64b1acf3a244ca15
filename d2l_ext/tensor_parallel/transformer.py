"""A Transformer over its heads: a decoder whose layers are divided over devices.

Divided layers alternate with the operations between them: dropout, the residual sum
and a norm. Two collectives lead in and out (`Way`):

    tokens → embed ─collect→ between ─spread→ attention ─collect→ between ─spread→ mlp
             ─collect→ between ─spread→ … ─collect→ between ─spread→ scores → loss

Nothing else is sent, apart from two numbers per position for the loss and, in
`SEQUENCE`, the norms' gradients.
"""

from dataclasses import dataclass
from itertools import chain, repeat

import numpy
from mxnet import autograd, np, npx

from ..data_parallel.traffic import cuts
from . import divided_layers as layers
from .dense import replicate
from .divided_layers import SEQUENCE, TENSOR

#: The axis along which weights (out, in) are cut, by the end of their name.
CUT = {"qkv": 0, "out": 1, "up": 0, "down": 1, "table": 0, "scores": 0}


@dataclass(frozen=True)
class Decoder:
    """The sizes of a decoder. `dropout`: the share of values set to zero, below 1."""

    vocab: int
    width: int = 128
    heads: int = 4
    layers: int = 2
    tied: bool = True  # the scores use the embedding's weights
    dropout: float = 0.0

    def halves(self):
        """Return the divided layers' names: two per block, and the scores, `'end'`."""
        kinds = ("attend", "mlp")
        return [*(f"{i}.{kind}" for i in range(self.layers) for kind in kinds), "end"]

    def shapes(self):
        """Return the shapes of the parameters by name, those of weights (out, in)."""
        d, shapes = self.width, {"table": (self.vocab, self.width)}
        weights = {"attend": {"qkv": (3 * d, d), "out": (d, d)},
                   "mlp": {"up": (4 * d, d), "down": (d, 4 * d)},
                   "end": {}}
        for half in self.halves():
            own = {"gain": (d,), "shift": (d,), **weights[half.split(".")[-1]]}
            shapes.update({f"{half}.{name}": shape for name, shape in own.items()})
        return shapes if self.tied else {**shapes, "scores": (self.vocab, d)}


def init_params(decoder, seed=0, dtype="float32"):
    """Return NumPy arrays by name: weights from N(0, 1/in), smaller at blocks' ends.

    Table and scores: from N(0, 0.02²). Raises `ValueError` if `heads` does not divide
    `width`.
    """
    if decoder.width % decoder.heads:
        raise ValueError(
            f"{decoder.width} columns cannot be divided into {decoder.heads} heads: "
            f"use a width that is a multiple of {decoder.heads}"
        )
    rng, params = numpy.random.RandomState(seed), {}
    for name, shape in decoder.shapes().items():
        kind = name.split(".")[-1]
        scale = 0.02 if kind in ("table", "scores") else shape[-1] ** -0.5
        if kind in ("out", "down"):
            scale /= (2 * decoder.layers) ** 0.5  # the number of summands
        whole = {"gain": numpy.ones, "shift": numpy.zeros}.get(kind)
        params[name] = whole(shape) if whole else scale * rng.randn(*shape)
    return {name: p.astype(dtype) for name, p in params.items()}


def positions(T, batch, width):
    """Return 0.02 · the sines and cosines of positions: (T · batch, width), NumPy."""
    angles = numpy.arange(T)[:, None] / 10_000 ** (numpy.arange(0, width, 2) / width)
    waves = numpy.stack([numpy.sin(angles), numpy.cos(angles)], 2).reshape(T, -1)
    return 0.02 * numpy.repeat(waves[:, :width], batch, axis=0)


def scores(params, tokens, decoder, masks=None):
    """Return the decoder on one device, undivided: the scores (T · batch, vocab).

    `params`: arrays by name on the device of `tokens` (T, batch). `masks`: those of
    `dropout_masks`, as arrays on that device, default none. Works inside and outside
    `record`.

    Source: Radford et al. (2019), with norms before attention and MLP. Developed in the
    chapter *A Transformer over its heads*.
    """
    batch = tokens.shape[1]
    x = np.array(positions(*tokens.shape, decoder.width), dtype=params["table"].dtype,
                 ctx=tokens.ctx)
    y = layers.embed(tokens.reshape(-1), params["table"], 0)
    for half, mask in zip(decoder.halves(), masks or repeat(None)):
        x, h = between(params, half, mask, x, y)
        y = inside(params, half, h, batch, decoder.heads)
    return y


def between(params, half, mask, x, y):
    """Apply dropout, residual sum, and the next half's norm: row by row, (n, width)."""
    x = x + (y if mask is None else y * mask)
    gain, shift = params[f"{half}.gain"], params[f"{half}.shift"]
    return x, npx.layer_norm(x, gain, shift, axis=-1)


def inside(params, half, h, batch, heads):
    """Return what a divided layer computes here: a summand (n, width), or scores.

    `heads`: their number on this device.
    """
    if half == "end":
        return layers.linear(h, params["scores" if "scores" in params else "table"])
    if half.endswith("mlp"):
        return layers.mlp(h, params[f"{half}.up"], params[f"{half}.down"])
    qkv, out = params[f"{half}.qkv"], params[f"{half}.out"]
    return layers.attention(h, qkv, out, batch, heads)


def split(params, devices, decoder):
    """Divide a decoder over k devices: `parts[i]` are the arrays by name on device i.

    Attention is cut at the borders of heads, the MLP anywhere, the table between
    tokens; shares differ by at most one. Every device holds all norms. Gradients are
    attached. Raises `ValueError` for more devices than heads or tokens, and for none.
    """
    k, parts = len(devices), [{} for _ in devices]
    if not 1 <= k <= min(decoder.heads, decoder.vocab):
        raise ValueError(
            f"{decoder.heads} heads and {decoder.vocab} tokens cannot be divided over "
            f"{k} devices: use 1 to {min(decoder.heads, decoder.vocab)}"
        )
    for name, whole in params.items():
        shares = slices(name, whole, k, decoder.heads)
        for part, device, own in zip(parts, devices, shares):
            part[name] = np.array(own, dtype=own.dtype, ctx=device)
            shared = decoder.tied and name == "table"  # its gradient has two sources
            part[name].attach_grad("add" if shared else "write")
    return parts


def join(parts):
    """Join the parts of a decoder: NumPy arrays by name."""
    columns = {name: [p[name].asnumpy() for p in parts] for name in parts[0]}
    return {
        name: numpy.concatenate(arrays, CUT[kind]) if kind in CUT else arrays[0]
        for name, arrays in columns.items()
        for kind in [name.split(".")[-1]]
    }


def slices(name, whole, k, heads):
    """Return the parts of a parameter on k devices: views, or k times the whole."""
    kind = name.split(".")[-1]
    if kind not in CUT:
        return [whole] * k
    size = whole.shape[CUT[kind]]
    units = heads if kind in ("qkv", "out") else size
    edges = [c * (size // units) for c in cuts(units, k)]
    return numpy.split(whole, edges[1:-1], CUT[kind])


def dropout_masks(decoder, n, seed):
    """Return the masks of dropout for each place between layers: NumPy (n, width), or
    None.

    `seed`: a whole number or a list of them, such as `[seed, step]`. Drawn for the
    whole minibatch, so that the result does not depend on the number of devices.
    """
    if not decoder.dropout:
        return None
    rng, left = numpy.random.default_rng(seed), 1 - decoder.dropout
    shape = (n, decoder.width)
    return [
        (rng.random(shape, dtype="float32") < left) / numpy.float32(left)
        for _ in decoder.halves()
    ]


def record_each(k, function, *inputs):
    """Call `function(i, …)` for each of k devices; return the outputs and the way back.

    `inputs`: lists, an array per device. `function` returns a tuple of arrays. The
    outputs are lists again. `back(…)` takes a list of gradients for each output and
    returns one for each input; those of parameters are left in their `grad`.

    Nothing is sent here: each device's part goes forward and backward on its own.
    """
    for x in chain(*inputs):  # gradients are written, so they need no zeros
        autograd.mark_variables(x, np.empty(x.shape, dtype=x.dtype, ctx=x.ctx))
    with autograd.record():
        outs = [function(*own) for own in zip(range(k), *inputs)]

    def back(*gradients):
        for out, own in zip(outs, zip(*gradients)):
            autograd.backward(list(out), list(own))
        return [[x.grad for x in xs] for xs in inputs]

    return [[x.detach() for x in column] for column in zip(*outs)], back


def loss(tokens, targets, parts, decoder, way=TENSOR, masks=None, count=None):
    """Compute the loss of each token, and the function that goes backward.

    `tokens`, `targets`: whole numbers (T, batch), NumPy or `mxnet.np`. `parts`: from
    `split`. `way`: `TENSOR`, or `SEQUENCE`, with a share of the rows on each device
    between the layers. `masks`: from `dropout_masks`. `count`: the divisor of the
    summed loss, default T · batch.

    Returns `(losses, backward)`: the losses (T · batch,) on every device; `backward()`
    leaves the gradients in the `grad` of each array in `parts`. Never waits. Raises
    `ValueError` for `SEQUENCE` on more devices than the T · batch rows.
    Source: Shoeybi et al. (2019); `SEQUENCE`: Korthikanti et al. (2022). Developed in
    the chapter *A Transformer over its heads*.
    """
    given, batch = embedding(tokens, parts, decoder, way), tokens.shape[1]
    xs, ys, back = through(decoder.halves(), given, parts, decoder, batch, way, masks)
    losses, dys = loss_and_gradient(ys, targets, decoder, count)

    def backward():
        for part in parts:
            if decoder.tied:
                part["table"].grad[:] = 0
        back([np.zeros_like(x) for x in xs], dys)
        if way is SEQUENCE:
            _sum_of_the_norms(parts)

    return losses, backward


def embedding(tokens, parts, decoder, way=TENSOR):
    """Return `given` for `through`: the positions, the embedding's summands, `back`."""
    tables, firsts = [p["table"] for p in parts], cuts(decoder.vocab, len(parts))
    ids = _numbers(tokens, tables)
    (ys,), back = record_each(
        len(parts), lambda i: (layers.embed(ids[i], tables[i], firsts[i]),)
    )
    waves = positions(*tokens.shape, decoder.width).astype(tables[0].dtype)
    return way.place(waves, [table.ctx for table in tables]), ys, back


class Half:
    """One half of a block on k devices: the place between two layers, and a layer.

        forward      ys  ─collect→  between  ─spread→   inside  →  ys
        backward     dys ←spread─   between  ←collect─  inside  ←  dys

    `name`: one of `Decoder.halves()`. `parts`, `way`: as in `loss`. `heads`: their
    number on each device. `left`: a mask of dropout on each device, or None.
    """

    def __init__(self, name, parts, heads, batch, way, left):
        self.name, self.parts, self.heads, self.batch = name, parts, heads, batch
        self.way, self.left = way, left

    def forward(self, xs, ys):
        """Return residual sums with `ys` added, if given, and this layer's summands."""
        given = (xs,) if ys is None else (xs, self.way.collect(ys))
        (xs, hs), self.back_between = record_each(len(xs), self._between, *given)
        (ys,), self.back_inside = record_each(
            len(xs), self._inside, self.way.spread(hs))
        return xs, ys

    def backward(self, dxs, dys):
        """Turn gradients of the results of `forward` into those of its arguments."""
        (dhs,) = self.back_inside(dys)
        dxs, *dys = self.back_between(dxs, self.way.collect(dhs))
        return dxs, self.way.spread(*dys) if dys else None

    def _between(self, i, x, y=0):
        return between(self.parts[i], self.name, self.left[i], x, y)

    def _inside(self, i, h):
        heads = int(self.heads[i])
        return (inside(self.parts[i], self.name, h, self.batch, heads),)


def through(halves, given, parts, decoder, batch, way=TENSOR, masks=None):
    """Run some of a decoder's `halves`; return (xs, ys, back).

    `xs`: the residual sums. `ys`: the last layer's summands of them, or the scores at
    `'end'`. `given`: the same triple from `embedding`, or only the sums, with None and
    None. `back(dxs, dys)`: returns the gradients of the given residual sums.
    """
    xs, ys, back_to_ys = given
    heads = numpy.diff(cuts(decoder.heads, len(parts)))
    devices, dtype = [x.ctx for x in xs], xs[0].dtype
    passed = []
    for name, mask in zip(halves, masks or repeat(None)):
        left = [None] * len(xs)
        if mask is not None:
            left = way.place(mask.astype(dtype), devices)
        half = Half(name, parts, heads, batch, way, left)
        xs, ys = half.forward(xs, ys)
        passed.append(half)

    def back(dxs, dys):
        for half in reversed(passed):
            dxs, dys = half.backward(dxs, dys)
        if back_to_ys:
            back_to_ys(dys)
        return dxs

    return xs, ys, back


def loss_and_gradient(scores, targets, decoder, count=None):
    """Return the loss of each token, and the gradient of the `scores`: a list each."""
    firsts = cuts(decoder.vocab, len(scores))
    return layers.cross_entropy(scores, _numbers(targets, scores), firsts, count)


def _numbers(tokens, arrays):
    """Return `tokens`, flattened, on the device of each of `arrays`."""
    return replicate(tokens.reshape(-1).astype("int32"), [x.ctx for x in arrays])


def _sum_of_the_norms(parts):
    """Sum the norms' gradients, of which a device has a share if it has some rows."""
    names = [name for name in parts[0] if name.split(".")[-1] not in CUT]
    stacks = [np.stack([part[name].grad for name in names]) for part in parts]
    for part, rows in zip(parts, layers.allreduce(stacks)):
        for name, row in zip(names, rows):
            part[name].grad[:] = row
