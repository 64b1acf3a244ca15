"""The ladder's second half: a small decoder learns a text, each rung one change.

`make race` climbs it after the digits.
"""

import d2l_ext  # noqa: F401, I001  first: it prepares MXNet's engine

from itertools import count

import numpy
from mxnet import autograd, nd, np, npx, optimizer

from d2l_ext.data import text
from d2l_ext.data_parallel import flat
from d2l_ext.data_parallel.allreduce import allreduce
from d2l_ext.devices import try_all_devices
from d2l_ext.tensor_parallel import divided_layers as layers
from d2l_ext.tensor_parallel import transformer

from ..tensor_parallel.transformer import bigrams, the_text

T = 64
#: Positions between two looks at the held-out text, and the most of such looks.
SPAN, LOOKS = 20 * 32 * T, 40


class Text:
    """A text (`load_text`), and the loss to reach: that of a table of bigrams."""

    def __init__(self):
        self.ids, self.held_out, vocab = the_text()
        self.target = bigrams(self.ids, self.held_out, vocab)
        self.decoder = transformer.Decoder(vocab, width=64, heads=4, layers=2)

    def start(self, rung, seed):
        """Return the step of `rung`, with new weights."""
        return rung.step(transformer.init_params(self.decoder, seed), rung.batch,
                         try_all_devices(rung.devices), self.decoder)

    def spans(self, batch, seed):
        """Yield minibatches (X, y), both (T, batch), in spans of `SPAN` positions."""
        starts = numpy.random.RandomState(seed)
        for _ in range(LOOKS):
            yield (self._windows(starts, batch) for _ in range(SPAN // (batch * T)))

    def _windows(self, starts, batch):
        at = starts.randint(0, len(self.ids) - T - 1, batch)
        windows = self.ids[at + numpy.arange(T + 1)[:, None]]
        return (np.array(windows[:-1], dtype="int32"),
                np.array(windows[1:], dtype="int32"))

    def solved(self, params):
        """Return whether the held-out text's first 16,384 characters lose no more."""
        losses, own = [], dict(zip(self.decoder.shapes(), params))
        for X, y in text.batches(self.held_out[:16_448], 32, T):
            X, y = (np.array(a, dtype="int32") for a in (X, y))
            losses.append(float(loss(X, y, own, Given(X, self.decoder)).mean()))
        return bool(numpy.mean(losses) <= self.target)

    def operators(self):
        """Return each forward operator's flops and bytes, for a row of `T`."""
        w, vocab, heads = self.decoder.width, self.decoder.vocab, self.decoder.heads
        norm, add = (0, 2 * w), (0, 3 * w)
        shares = heads * T  # of all earlier positions, in each head
        block = [
            norm, (2 * w * 3 * w, 4 * w), (2 * T * w, 2 * w + shares), (0, 2 * shares),
            (2 * T * w, shares + 2 * w), (2 * w * w, 2 * w), add,
            norm, (2 * w * 4 * w, 5 * w), (0, 8 * w), (2 * 4 * w * w, 5 * w), add,
        ]
        end = [norm, (2 * w * vocab, w + vocab), (0, 2 * vocab)]
        return [(T * flops, T * 4 * floats)
                for flops, floats in block * self.decoder.layers + end]


class Given:
    """What a decoder needs beside its parameters, for tokens such as `X`."""

    def __init__(self, X, decoder):
        self.decoder, (T, batch) = decoder, X.shape
        waves = transformer.positions(T, batch, decoder.width)
        self.waves = np.array(waves, dtype="float32", ctx=X.ctx)
        self.mask = layers.later((batch * decoder.heads, T, T), "float32", X.ctx).copy()
        width = decoder.width
        self.centre = np.eye(width, ctx=X.ctx) - 1 / width
        self.mean = np.full((width, width), 1 / width, ctx=X.ctx)

    def arrays(self):
        return [self.waves, self.mask, self.centre, self.mean]


def loss(X, y, params, given, attend=None, norm=None):
    """Return the loss of each position, with the attention and the norm of a rung."""
    attend, norm, decoder = attend or fused, norm or layer_norm, given.decoder
    x = given.waves
    h = npx.embedding(X.reshape(-1), params["table"], *params["table"].shape)
    for half in decoder.halves():
        x = x + h
        h = norm(x, params[f"{half}.gain"], params[f"{half}.shift"], given)
        if half.endswith("attend"):
            x3 = layers.linear(h, params[f"{half}.qkv"])
            mixed = attend(x3.reshape(*X.shape, -1), decoder.heads, given)
            h = layers.linear(mixed.reshape(-1, decoder.width), params[f"{half}.out"])
        elif half.endswith("mlp"):
            h = layers.mlp(h, params[f"{half}.up"], params[f"{half}.down"])
    scores = layers.linear(h, params["table"])
    return -npx.pick(npx.log_softmax(scores), y.reshape(-1))


def plain(x, heads, given):
    return layers.plain(x, heads)


def fused(x, heads, given):
    """Compute attention by two operators of MXNet that copy less."""
    x = x.as_nd_ndarray()
    scores = nd.contrib.interleaved_matmul_selfatt_qk(x, heads=heads).as_np_ndarray()
    shares = npx.softmax(scores + given.mask, axis=-1).as_nd_ndarray()
    mixed = nd.contrib.interleaved_matmul_selfatt_valatt(x, shares, heads=heads)
    return mixed.as_np_ndarray()


def layer_norm(x, gain, shift, given):
    return npx.layer_norm(x, gain, shift, axis=-1)


def norm_by_products(x, gain, shift, given):
    """Return the norm by three products, whose backward passes are products, too."""
    centred = layers.linear(x, given.centre)
    variance = layers.linear(np.square(centred), given.mean)
    return npx.fully_connected(centred / np.sqrt(variance + 1e-5), np.diag(gain), shift,
                               num_hidden=len(gain))


class PerArray:
    """A step as it is written first: Adam for each array, plain attention."""

    attend, norm = staticmethod(plain), staticmethod(layer_norm)

    def __init__(self, params, batch, devices, decoder):
        (device,), self.decoder = devices, decoder
        self.own = {name: np.array(p, ctx=device) for name, p in params.items()}
        for p in self.own.values():
            p.attach_grad()
        X = np.zeros((T, batch), dtype="int32", ctx=device)
        self.given = Given(X, self.decoder)
        self.adam = optimizer.get_updater(optimizer.Adam())

    def __call__(self, X, y, lr):
        with autograd.record():
            losses = loss(X, y, self.own, self.given, self.attend, self.norm)
            total = losses.mean()
        total.backward()
        self.adam.optimizer.lr = lr
        for i, p in enumerate(self.own.values()):
            self.adam(i, p.grad, p)

    def params(self):
        return list(self.own.values())


class Fused(PerArray):
    attend = staticmethod(fused)


class Products(Fused):
    norm = staticmethod(norm_by_products)


class Replica:
    """A device's decoder in one array, its recorded graph, and Adam for the array."""

    def __init__(self, params, batch, device, decoder):
        arrays = [np.array(p, dtype="float32") for p in params.values()]
        self.flat = flat.get_flat_params(arrays, device)
        self.X, self.y = (np.zeros((T, batch), dtype="int32", ctx=device) for _ in "Xy")
        self.means, self.squares = (np.zeros_like(self.flat.values) for _ in range(2))
        self.updates = count(1)
        own, given = dict(zip(params, self.flat.params)), Given(self.X, decoder)
        inputs = [self.X, self.y, *given.arrays()]
        autograd.mark_variables(inputs, [np.zeros_like(a) for a in inputs], "null")
        self.flat.gradients = flat.attach_gradients(self.flat.params)
        with autograd.record():
            losses = loss(self.X, self.y, own, given, fused, norm_by_products)
        self.ones = np.ones_like(losses)
        self.replay = self._bound(autograd.get_symbol(losses), inputs)

    def _bound(self, graph, inputs):
        """Return the graph, bound to arrays; its variables are numbered as marked."""
        names = sorted(graph.list_arguments(), key=lambda name: int(name[3:]))
        bound = dict(zip(names, inputs + self.flat.params))
        grads = {name: p.grad for name, p in list(bound.items())[len(inputs):]}
        wanted = {name: "write" if name in grads else "null" for name in names}
        return graph.bind(self.X.ctx, bound, grads, wanted)

    def update(self, lr, n):
        """Take a step of Adam: one operator for all parameters."""
        t = next(self.updates)
        lr = lr * (1 - 0.999**t) ** 0.5 / (1 - 0.9**t)
        arrays = [a.as_nd_ndarray() for a in (
            self.flat.values, self.flat.gradients, self.means, self.squares)]
        nd.adam_update(*arrays, lr=lr, rescale_grad=1 / n, out=arrays[0])


class Replayed:
    """Recorded once, replayed; on several devices each takes a share of the rows."""

    def __init__(self, params, batch, devices, decoder):
        rows = batch // len(devices)
        self.replicas = [Replica(params, rows, device, decoder) for device in devices]

    def __call__(self, X, y, lr):
        own = X.shape[1] // len(self.replicas)
        for i, replica in enumerate(self.replicas):
            columns = slice(i * own, (i + 1) * own)
            X[:, columns].copyto(replica.X)
            y[:, columns].copyto(replica.y)
        for replica in self.replicas:
            replica.replay.forward(is_train=True)
        for replica in self.replicas:
            replica.replay.backward(replica.ones)
        allreduce([replica.flat.gradients for replica in self.replicas])
        for replica in self.replicas:
            replica.update(lr, X.size)

    def params(self):
        return self.replicas[0].flat.params


class OverHeads:
    """Two devices, each with half of the heads; Adam for each array."""

    def __init__(self, params, batch, devices, decoder):
        self.decoder = decoder
        self.parts = transformer.split(params, devices, self.decoder)
        self.adams = [optimizer.get_updater(optimizer.Adam()) for _ in devices]

    def __call__(self, X, y, lr):
        _, backward = transformer.loss(X, y, self.parts, self.decoder)
        backward()
        for part, adam in zip(self.parts, self.adams):
            adam.optimizer.lr = lr
            for i, p in enumerate(part.values()):
                adam(i, p.grad, p)

    def params(self):
        whole = transformer.join(self.parts)
        return [np.array(whole[name]) for name in self.decoder.shapes()]
