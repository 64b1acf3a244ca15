"""Sharded data parallelism: replicas that divide states, gradients and weights.

Each of k devices trains on its part of the minibatch. A layer's parameters are
concatenated in one array, which is cut into k chunks; each device owns one of them.

    stage   shard          weights    gradients    states of the optimizer
    0       none           whole      whole        whole
    1       states         whole      whole        a chunk
    2       gradients      whole      a chunk      a chunk
    3       parameters     a chunk    a chunk      a chunk

Whole weights and states are the same on every device. Chunks are exchanged layer by
layer: gradients by a reduce-scatter, after which a whole array of stage 1 holds the sum
in the device's own chunk alone; weights by an allgather. The weights of a step equal
those of stage 0 bit by bit.
"""

from math import prod

import mxnet as mx
import numpy
from mxnet import autograd, np

from ..checks import known_name, whole_number
from ..data_parallel.allreduce import allgather, allreduce_ring, cut, reduce_scatter
from ..data_parallel.flat import one_dtype
from ..data_parallel.flat import views_of as views
from ..data_parallel.minibatch import split_batch
from ..data_parallel.traffic import spans

#: The divided arrays, by the number of the stage.
STAGES = ("none", "states", "gradients", "parameters")
#: Optimizers that update each number independently, so a chunk needs no other chunk.
ELEMENTWISE = ("sgd", "nag", "signum", "adam", "rmsprop", "adagrad")
#: The number of state arrays that an optimizer keeps: see `states`.
OPTIMIZERS = {"sgd": 0, "momentum": 1, "adam": 2}


class Shards:
    """A network on k devices, divided according to `shard`, one of `STAGES`.

        shards = Shards(layers, devices, "parameters", "adam")
        losses = shards.train_batch(X, y, loss)

    `layers`: pairs `(forward, params)`; `forward(X, params)` computes the layer on any
    device; `params`: its arrays, preferably NumPy's, so that no device holds them all.
    `optimizer`, `optimizer_params`: MXNet's, one of `ELEMENTWISE`. `ahead`: the
    number of layers whose weights stage 3 prefetches, default 1. `limit`: the maximum
    bytes of weights, gradients, states and buffers of a step on a device, without
    activations; default no limit.

    Raises `ValueError` for unknown names, an `ahead` below 0, a layer with fewer
    parameters than devices, parameters of several dtypes; `MemoryError`, before
    anything is allocated, if `limit` is too low. Sources: Rajbhandari et al., "ZeRO"
    (2020); Zhao et al., "PyTorch FSDP" (2023). Developed in the chapter *Sharded data
    parallelism*.
    """

    def __init__(self, layers, devices, shard="parameters", optimizer="adam",
                 optimizer_params=None, ahead=1, limit=None):
        known_name("shard", shard, STAGES)
        known_name("optimizer", optimizer, ELEMENTWISE)
        whole_number("ahead", ahead, least=0)
        self.devices, self.stage, self.slots = devices, STAGES.index(shard), 1 + ahead
        self.forwards = [forward for forward, _ in layers]
        self.shapes = [[p.shape for p in params] for _, params in layers]
        self.sizes = [sum(map(prod, shapes)) for shapes in self.shapes]
        self.dtype = numpy.dtype(one_dtype([p for _, params in layers for p in params]))
        for l, size in enumerate(self.sizes):
            if not 1 <= len(devices) <= size:
                raise ValueError(
                    f"layer {l} has {size} parameters, which {len(devices)} devices "
                    f"cannot share: use 1 to {size} devices, or merge it with its "
                    "neighbour"
                )
        options = dict(optimizer_params or {})
        if limit is not None:
            self._check_limit(limit, state_bytes(optimizer, options, self.dtype))
        self.updaters = [  # each with its own counts and states
            mx.optimizer.get_updater(mx.optimizer.create(optimizer, **options))
            for _ in devices
        ]
        self.weights, self.gradients, self.buffers = [], [], {}
        for l, (_, params) in enumerate(layers):
            self._lay_out(l, _end_to_end(params))

    def _lay_out(self, l, whole):
        """Give each device its part of layer `l`; allocate its gradients and states."""
        parts = zip(_parts(whole, len(self.devices), self.stage == 3), self.devices)
        self.weights.append([np.array(x, dtype=x.dtype, ctx=d) for x, d in parts])
        self.gradients.append(
            [np.zeros_like(w) for w in self.weights[l]] if self.stage < 2 else None
        )
        for updater, weight in zip(self.updaters, self._own(self.weights, l, 3)):
            updater.states[l] = updater.optimizer.create_state_multi_precision(
                l, weight.as_nd_ndarray()
            )
            updater.states_synced[l] = True

    def train_batch(self, X, y, loss, n=None, work_load_list=None):
        """Take one step on the minibatch `X`, `y`, split as by `split_batch`.

        `loss(out, y)`: one value per example. Gradients are summed over examples and
        devices, then divided by `n`, by default the number of examples. Returns the
        summed loss of each part. Never waits.
        """
        X_shards, y_shards = split_batch(X, y, self.devices, work_load_list)
        self.buffers = self._make_buffers(3, 2)
        tape = []
        outs = self.forward(X_shards, tape)
        with autograd.record():
            losses = [loss(out, y).sum() for out, y in zip(outs, y_shards)]
        self.backward(losses, tape)
        self.buffers = {}
        self.update(n or len(y))
        return losses

    def forward(self, hs, tape=None):
        """Return the outputs for the inputs `hs`, one on each device, layer by layer.

        Appends (inputs, outputs), which `backward` needs, to the list `tape`, if given;
        in stages 2 and 3 only `train_batch` makes the buffers for that.
        """
        buffers, self.buffers = self.buffers, self.buffers or self._make_buffers(3)
        for l in range(self.slots - 1):
            self.gather(l)
        for l, forward in enumerate(self.forwards):
            self.gather(l + self.slots - 1)
            if tape is None:
                hs = [forward(h, ps) for h, ps in zip(hs, self._params(l))]
                continue
            hs = [h.detach() for h in hs]  # so that backward ends at this layer
            if l > 0:
                for h in hs:
                    h.attach_grad()
            with autograd.record():
                outs = [forward(h, ps) for h, ps in zip(hs, self._params(l, True))]
            tape.append((hs, outs))
            hs = outs
        self.buffers = buffers
        return hs

    def backward(self, losses, tape):
        """Leave the sum of the gradients in `gradients`: whole in stage 0, else in the
        chunk that each device owns.

        `tape`: from `forward`. In stages 2 and 3 only inside `train_batch`.
        """
        last = len(self.forwards) - 1
        for l in range(last, last - self.slots + 1, -1):
            self.gather(l)
        heads, grads = losses, [None] * len(losses)
        while tape:
            l = len(tape) - 1
            self.gather(l - self.slots + 1)
            for grad in self._whole(self.gradients, l, 2):
                grad[:] = 0  # also for a parameter that forward did not use
            inputs, outs = tape.pop()
            for head, grad in zip(outs if l < last else heads, grads):
                head.backward(grad)
            grads = [h.grad for h in inputs]
            self.reduce(l)

    def gather(self, l):
        """Gather the weights of layer `l` on every device, in a buffer of the step.

        An earlier layer used the same buffer. The engine writes into it when that
        layer's work is done, so at most `1 + ahead` layers are whole at a time.
        """
        if self.stage == 3 and 0 <= l < len(self.forwards):
            wholes = self._whole(self.weights, l, 3)
            allgather(self.weights[l], [cut(w, len(wholes)) for w in wholes])

    def reduce(self, l):
        """Sum the gradients of layer `l` over the devices: each gets its part."""
        wholes = self._whole(self.gradients, l, 2)
        if self.stage == 0:
            return allreduce_ring(wholes)
        if self.stage > 1:
            self.gradients[l] = None  # those of the last step, before new ones arrive
        sums = reduce_scatter([cut(w, len(wholes)) for w in wholes])
        if self.stage == 1:
            for own, part in zip(self._own(self.gradients, l, 2), sums):
                own[:] = part
        else:
            self.gradients[l] = sums if len(wholes) > 1 else [sums[0].copy()]

    def update(self, n):
        """Update each device's own part; share it where the others hold the whole."""
        for l in range(len(self.forwards)):
            own = self._own(self.weights, l, 3)
            gradients = self._own(self.gradients, l, 2)
            for updater, weight, gradient in zip(self.updaters, own, gradients):
                updater.optimizer.rescale_grad = 1 / n
                updater(l, gradient, weight)
            if self.stage in (1, 2):
                allgather(own, [cut(w, len(own)) for w in self.weights[l]])

    def _params(self, l, marked=False):
        """Return the parameters of layer `l` on each device, in their shapes."""
        found = [views(w, self.shapes[l]) for w in self._whole(self.weights, l, 3)]
        if marked:
            for params, g in zip(found, self._whole(self.gradients, l, 2)):
                autograd.mark_variables(params, views(g, self.shapes[l]))
        return found

    def _whole(self, arrays, l, divided_from):
        """Return layer `l` of `arrays`, or its buffers where only chunks are kept."""
        if self.stage < divided_from:
            return arrays[l]
        return [x[: self.sizes[l]] for x in self.buffers[divided_from][l % self.slots]]

    def _own(self, arrays, l, divided_from):
        """Return the part of layer `l` of `arrays` that each device owns."""
        if self.stage == 0 or self.stage >= divided_from:
            return arrays[l]
        k = len(self.devices)
        return [cut(x, k)[(i + 1) % k] for i, x in enumerate(arrays[l])]

    def _make_buffers(self, *kinds):
        """Return buffers as large as the largest layer, of the kinds needed."""
        largest = max(self.sizes)
        return {
            kind: [[np.empty(largest, dtype=self.dtype, ctx=d) for d in self.devices]
                   for _ in range(self.slots)]
            for kind in kinds if self.stage >= kind
        }

    def _check_limit(self, limit, state):
        k, itemsize = len(self.devices), self.dtype.itemsize
        kinds = max(self.stage - 1, 0)  # of buffers in a step
        need = max(bytes_held(self.sizes, k, STAGES[self.stage], itemsize, state))
        need += kinds * self.slots * max(self.sizes) * itemsize
        if need > limit:
            advice = []
            if self.stage < 3:
                advice.append(f"divide more than {STAGES[self.stage]!r}")
            if self.stage > 0:
                advice.append("use more devices")
            raise MemoryError(
                f"each of {k} devices would hold {need:,} bytes of weights, gradients, "
                f"states and buffers, and the limit is {limit:,}: "
                + ", or ".join(advice)
            )

    def pack(self):
        """Return the weights, states and counts of updates: a dict of NumPy arrays.
        Waits.

        The same for every stage and number of devices: `param.0`, `state.0.0`, ….
        """
        arrays, count = {}, self.updaters[0].optimizer.num_update
        for names, shapes, parts, divided in self._kept():
            chunks = parts[-1:] + parts[:-1] if divided else parts[:1]
            whole = numpy.concatenate([x.asnumpy() for x in chunks])
            stops = numpy.cumsum([prod(shape) for shape in shapes])
            for name, x, shape in zip(names, numpy.split(whole, stops[:-1]), shapes):
                arrays[name] = x.reshape(shape)
        return {**arrays, "counts": numpy.full(sum(map(len, self.shapes)), count)}

    def unpack(self, arrays):
        """Restore the arrays of `pack`, on the same or a different number of devices.

        Raises `ValueError` when the arrays do not fit this network.
        """
        for name, here in self.pack().items():
            checked_array(arrays, name, here)
        count = max(counts_in(arrays, sum(map(len, self.shapes))))
        for names, _, parts, divided in self._kept():
            whole = _end_to_end([arrays[name] for name in names])
            for x, part in zip(parts, _parts(whole, len(parts), divided)):
                x[:] = part
        for updater in self.updaters:
            updater.optimizer._all_index_update_counts.clear()  # all begin at `count`
            updater.optimizer.begin_num_update = updater.optimizer.num_update = count

    def _kept(self):
        """Yield weights and states: names, shapes, each device's array if divided."""
        numbers = iter(range(sum(map(len, self.shapes))))
        for l, shapes in enumerate(self.shapes):
            own = [next(numbers) for _ in shapes]
            names = [f"param.{i}" for i in own]
            yield names, shapes, self.weights[l], self.stage == 3
            states = zip(*(arrays_in(updater.states[l]) for updater in self.updaters))
            for j, parts in enumerate(states):
                yield [f"state.{i}.{j}" for i in own], shapes, parts, self.stage > 0


def checked_array(arrays, name, like):
    """Return array `name`; `ValueError` unless its shape and dtype are `like`'s."""
    found, wanted = arrays.get(name), (like.shape, numpy.dtype(like.dtype))
    if found is None or (found.shape, found.dtype) != wanted:
        here = f"{wanted[1]} {wanted[0]}"
        there = "missing" if found is None else f"{found.dtype} {found.shape}"
        raise ValueError(f"{name} is {there} in the checkpoint and {here} here")
    return found


def counts_in(arrays, number):
    """Return the updates of `number` parameters; errors as in `checked_array`."""
    counts = checked_array(arrays, "counts", numpy.zeros(number, int)).tolist()
    if min(counts) < 0:
        raise ValueError(f"counts of updates must be at least 0, not {min(counts)}")
    return counts


def _parts(whole, k, divided):
    """Return the part of the NumPy array `whole` that each of k devices keeps: a chunk
    or all.

    Device i keeps chunk i + 1, the one that the ring completes there.
    """
    chunks = [whole[start:stop] for start, stop in spans(whole.size, k)]
    return chunks[1:] + chunks[:1] if divided else [whole] * k


def states(num_parameters, optimizer="sgd", half=False):
    """Return the bytes that persist between steps, by kind: a dict of whole numbers.

        sum(states(1_000_000, "adam").values())  # 16,000,000

    `optimizer`: one of `OPTIMIZERS`. `half`: weights and gradients have two bytes, and
    the update works on a copy of the weights in single precision, the master copy.
    Raises `ValueError` for any other optimizer, or fewer than one parameter.

    Source: Rajbhandari et al. (2020), section 3.1. Developed in the chapter
    *Where the memory goes*.
    """
    known_name("optimizer", optimizer, OPTIMIZERS)
    whole_number("num_parameters", num_parameters)
    short = 2 if half else 4
    return {
        "weights": short * num_parameters,
        "gradients": short * num_parameters,
        "master copy": 4 * num_parameters if half else 0,
        "optimizer": 4 * num_parameters * OPTIMIZERS[optimizer],
    }


def bytes_held(sizes, k, shard, itemsize=4, state=8):
    """Return the bytes of weights, gradients and states per device, between two steps:
    a list.

    `sizes`: the number of parameters of each layer. `shard`: one of `STAGES`.
    `itemsize`: bytes of a weight, and of a gradient. `state`: bytes that the optimizer
    keeps per parameter, default Adam's two numbers. With P parameters, if k divides
    every layer:

        none         2·itemsize·P + state·P
        states       2·itemsize·P + state·P/k
        gradients    itemsize·P + (itemsize + state)·P/k
        parameters   (2·itemsize + state)·P/k

    Raises `ValueError` for any other `shard`, and a `k` below 1. Source: Rajbhandari et
    al. (2020). Developed in the chapter *Sharded data parallelism*.
    """
    whole_number("k", k)
    known_name("shard", shard, STAGES)
    stage = STAGES.index(shard)
    divided_from = ((itemsize, 3), (itemsize, 2), (state, 1))
    return [
        sum(nbytes * (own if stage >= first else sum(sizes))
            for nbytes, first in divided_from)
        for own in _shares(sizes, k, 1)
    ]


def bytes_sent(sizes, k, shard, itemsize=4):
    """Return the bytes that each of k devices sends in a step: a list. Arguments and
    errors: as in `bytes_held`.

    Every stage needs a reduce-scatter of the gradients and an allgather, of the weights
    or, in stage `'none'`, of the gradients' sums: 2(k − 1)/k of the weights, as in
    plain data parallelism. Divided weights need one more allgather, in backward:
    3(k − 1)/k.
    """
    whole_number("k", k)
    known_name("shard", shard, STAGES)
    gathers = 2 if STAGES.index(shard) == 3 else 1
    return [
        itemsize * (sum(sizes) - summed + gathers * (sum(sizes) - last))
        for summed, last in zip(_shares(sizes, k, 1), _shares(sizes, k, 2))
    ]


def state_bytes(optimizer, options=None, dtype="float32"):
    """Return the bytes of `optimizer`'s state for each parameter of `dtype`."""
    made = mx.optimizer.create(optimizer, **(options or {}))
    state = made.create_state_multi_precision(0, mx.nd.zeros(1, dtype=dtype))
    return sum(numpy.dtype(x.dtype).itemsize for x in arrays_in(state))


def _shares(sizes, k, offset):
    """Return, for each device i, the total size of the layers' chunks i + offset."""
    chunks = [sum(b - a for a, b in of_all)
              for of_all in zip(*(spans(size, k) for size in sizes))]
    return [chunks[(i + offset) % k] for i in range(k)]


def arrays_in(state):
    """Return the arrays in nested tuples, in order; None stands for none."""
    if state is None:
        return []
    if isinstance(state, (tuple, list)):
        return [array for part in state for array in arrays_in(part)]
    return [state]


def _end_to_end(params):
    return numpy.concatenate([
        (p if isinstance(p, numpy.ndarray) else p.asnumpy()).reshape(-1) for p in params
    ])
