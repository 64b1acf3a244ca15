"""A decoder on a mesh: split in three ways at once, and trained as one.

    axis        what a group divides        what it exchanges, and how often
    tensor      the weights of a layer      sums of activations: per divided layer
    pipeline    the layers                  activations, gradients: per micro-batch
    data        the minibatch, the states   gradients, weights: per step
"""

import numpy
from mxnet import autograd, cpu, np

from ..checks import whole_number
from ..data_parallel import traffic
from ..data_parallel.flat import views_of
from ..memory import shards
from ..pipeline.microbatch import InTurn
from ..pipeline.schedule import clock, one_f_one_b
from ..tensor_parallel import divided_layers, transformer

AXES = ("pipeline", "data", "tensor")


def stages_of(decoder, stages):
    """Return the divided layers of each pipeline stage, as even as possible: lists of
    names.

    `stages`: their number, at least 1. The first has the embedding too, the last the
    scores, `'end'`. Raises `ValueError` for a stage without layers.
    """
    whole_number("stages", stages)
    *halves, end = decoder.halves()
    if stages > len(halves):
        raise ValueError(
            f"{stages} stages of {len(halves)} divided layers: some would have none; "
            f"use at most {len(halves)} stages"
        )
    edges = traffic.cuts(len(halves), stages)
    parts = [halves[a:b] for a, b in zip(edges, edges[1:])]
    return [*parts[:-1], [*parts[-1], end]]


def names_of(decoder, halves):
    """Return the parameters' names in a stage with these divided layers, `halves`."""
    with_ends = {"table": "0.attend", "scores": "end"}
    owners = {n: with_ends.get(n, n.rpartition(".")[0]) for n in decoder.shapes()}
    return [name for name, owner in owners.items() if owner in halves]


class MeshDecoder(InTurn):
    """A decoder whose stages, shares and replicas lie on a mesh.

        net = MeshDecoder(decoder, mesh, params, "adam", {"learning_rate": 0.001})
        losses = net.step(tokens, targets, chunks=4)

    `decoder`: with `tied=False`; its dropout is left out. `mesh`: with the axes
    pipeline, data and tensor, in any order. `params`: from `transformer.init_params`.
    `optimizer`, `options`: as in `memory.Shards`; the replicas divide its states.
    Raises `ValueError` for other axes, stages without layers, more tensor shares than
    heads, and tied weights. Developed in the chapter *Data × tensor × pipeline*.
    """

    def __init__(self, decoder, mesh, params, optimizer="sgd", options=None):
        if {*mesh.sizes} != {*AXES}:
            raise ValueError(f"the mesh has the axes {', '.join(mesh.sizes)}: give all "
                             f"of {', '.join(AXES)}, with length 1 if unused")
        if decoder.tied:
            raise ValueError("tied weights would be on two stages, first and last: "
                             "use a decoder with tied=False")
        self.decoder, self.mesh = decoder, mesh
        self.p, self.d, self.t = (mesh.sizes[axis] for axis in AXES)
        self.stages, self.shards = stages_of(decoder, self.p), {}
        self.parts = {(s, r): [] for s in range(self.p) for r in range(self.d)}
        for s, halves in enumerate(self.stages):
            own = {name: params[name] for name in names_of(decoder, halves)}
            for i, part in enumerate(transformer.split(own, [cpu()] * self.t, decoder)):
                self._place(s, i, part, optimizer, options)

    def _place(self, s, i, part, *optimizer):
        """Give share `i` of stage `s` to the devices that hold it, one per replica."""
        group = [self._device(s, r, i) for r in range(self.d)]
        # Gradients of micro-batches are summed whole: only the states are divided.
        held = shards.Shards([(None, [*part.values()])], group, "states", *optimizer)
        self.shards[s, i] = held
        for r in range(self.d):
            weights, gradients = (views_of(x[0][r], held.shapes[0])
                                  for x in (held.weights, held.gradients))
            autograd.mark_variables(weights, gradients, "add")  # sums micro-batches
            self.parts[s, r].append(dict(zip(part, weights)))

    def _device(self, s, r, i):
        return self.mesh.at(pipeline=s, data=r, tensor=i)

    def step(self, tokens, targets, chunks=1):
        """Take one step on the minibatch `tokens`, `targets`: whole numbers (T, batch).

        `batch`: a multiple of replicas times `chunks`, the micro-batches of a pipeline,
        which runs 1F1B; `ValueError` for others. `chunks`: at least 1. Gradients are
        those of the mean loss over all tokens; the replicas sum them once, when all
        micro-batches are done. Returns the losses of each replica's micro-batches.
        Never waits.
        """
        whole_number("chunks", chunks)
        batch = tokens.shape[1]
        if batch % (self.d * chunks):
            raise ValueError(
                f"{batch} texts for {self.d} replicas with {chunks} micro-batches: use "
                f"a multiple of {self.d * chunks}"
            )
        self._batch, self._count = batch // (self.d * chunks), tokens.size
        for held in self.shards.values():
            for gradient in held.gradients[0]:
                gradient[:] = 0
        self._arrived, self._back, self._turns, self._losses = {}, {}, {}, []
        for s, kind, i, *_ in clock(one_f_one_b(self.p, chunks)):
            for r in range(self.d):
                a = (r * chunks + i) * self._batch
                own = [x[:, a : a + self._batch] for x in (tokens, targets)]
                (self._forward if kind == "forward" else self._backward)(s, r, i, *own)
        for held in self.shards.values():
            held.reduce(0)
            held.update(1)
        return self._losses

    def _forward(self, s, r, i, tokens, targets):
        parts, decoder = self.parts[s, r], self.decoder
        if s == 0:
            given = transformer.embedding(tokens, parts, decoder)
        else:
            given = self._arrived.pop((s, r, i)), None, None
        self._wait_in_line(*given[0])
        xs, ys, self._back[s, r, i] = transformer.through(
            self.stages[s], given, parts, decoder, self._batch)
        if s < self.p - 1:  # the sum moves on to the next stage
            ys = divided_layers.allreduce(ys)
            self._send(s, r, i, [x + y for x, y in zip(xs, ys)], s + 1)
        else:
            losses, dys = transformer.loss_and_gradient(
                ys, targets, decoder, self._count)
            self._arrived[s, r, i] = [np.zeros_like(x) for x in xs], dys
            self._losses.append(losses[0])
        self._let_next(*ys)

    def _backward(self, s, r, i, *_):
        dxs = self._arrived.pop((s, r, i))
        dxs, dys = dxs if s == self.p - 1 else (dxs, dxs)  # the same gradient
        self._wait_in_line(*dys)
        dxs = self._back.pop((s, r, i))(dxs, dys)
        if s:
            self._send(s, r, i, dxs, s - 1)
        self._let_next(*dxs)

    def _send(self, s, r, i, arrays, to):
        self._arrived[to, r, i] = [
            traffic.send(x, self._device(to, r, j)) for j, x in enumerate(arrays)
        ]

    def pack(self):
        """Return the joined parameters: NumPy arrays by name. Waits."""
        whole = {}
        for s in range(self.p):
            whole.update(transformer.join(self.parts[s, 0]))
        return whole


def expected(decoder, sizes, shape, chunks=1, itemsize=4):
    """Return the bytes that each device of a mesh sends per step, in closed form:
    {axis: [bytes]}.

    `sizes`: the mesh's lengths by axis, in its order. `shape`: that of the tokens,
    (T, batch), and `chunks`: as `MeshDecoder.step` takes them. With micro-batches of n
    tokens, m of them, `width` w, a share of P parameters, and a stage of h divided
    layers:

        tensor     m·(2h + ends)·2(t − 1)/t·n·w, and (t − 1)·2n·m for the loss
        pipeline   m·n·w to the next stage, and m·n·w to the one before
        data       2(d − 1)/d·P

    times `itemsize`; the first stage and the last have one more exchange each, `ends`.
    Developed in the chapter *Data × tensor × pipeline*.
    """
    p, d, t = (sizes[axis] for axis in AXES)
    n, stages = shape[0] * shape[1] // (d * chunks), stages_of(decoder, p)
    shares = numpy.diff(traffic.cuts(n, t))  # the rows of an exchange
    sent, exchanges = {axis: [] for axis in sizes}, _exchanges(stages)
    zero = numpy.zeros((), "int8")  # in any shape, without memory
    wholes = {x: numpy.broadcast_to(zero, of) for x, of in decoder.shapes().items()}
    for at in numpy.ndindex(*sizes.values()):
        s, r, i = (dict(zip(sizes, at))[axis] for axis in AXES)
        ends = [s == 0, s == p - 1]
        rows = 2 * n - shares[i] - shares[(i + 1) % t]
        tensor = exchanges[s] * rows * decoder.width + ends[1] * (t - 1) * 2 * n
        sent["tensor"].append(itemsize * chunks * int(tensor))
        border = itemsize * chunks * n * decoder.width
        sent["pipeline"].append((2 - sum(ends)) * border)
        share = sum(
            transformer.slices(name, wholes[name], t, decoder.heads)[i].size
            for name in names_of(decoder, stages[s])
        )
        sent["data"].append(shards.bytes_sent([share], d, "states", itemsize)[r])
    return sent


def sequential_messages(decoder, sizes, chunks=1):
    """Return the messages that the busiest device sends in sequence per step, by axis.

    Arguments as in `expected`. A sum over t takes 2(t − 1), whether of activations or
    of gradients, the loss t − 1, and a micro-batch one message to each neighbour.
    """
    p, d, t = (sizes[axis] for axis in AXES)
    *others, last = _exchanges(stages_of(decoder, p))
    exchanges = max([*others, last + 0.5])
    found = {"pipeline": min(2, p - 1) * chunks, "data": 2 * (d - 1),
             "tensor": int(chunks * exchanges * 2 * (t - 1))}
    return {axis: found[axis] for axis in sizes}


def _exchanges(stages):
    """Return the sums per micro-batch in each stage, of its layers and its ends."""
    return [2 * len(halves) - ("end" in halves) + (halves[0] == "0.attend")
            for halves in stages]
