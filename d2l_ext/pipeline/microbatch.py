"""Run a pipeline schedule: stages on devices, a minibatch in micro-batches."""

import mxnet as mx
from mxnet import autograd, np, npx

from ..data_parallel import get_params
from ..data_parallel.traffic import spans
from .schedule import clock


class InTurn:
    """Work that a device runs in the order in which it is enqueued.

    `_turns`: per device an array with the value one, written by its last work.
    """

    def _wait_in_line(self, *read):
        # The engine's only order is "after what I read". So an element of the work's
        # input is multiplied by the one of its device.
        for X in read:
            if X.ctx in self._turns:
                first = first_element(X)
                first *= self._turns[X.ctx].astype(X.dtype, copy=False)

    def _let_next(self, *results):
        for X in results:
            self._turns[X.ctx] = np.ones_like(first_element(X))


class Stage(InTurn):
    """Consecutive layers of a network, and their parameters, on one device.

    `forward(X, params)`: the output of these layers. `params`: a list of at least one
    array; copied to `device`. `grads`: after `gradients`, the list of their gradients.
    Raises `ValueError` for a stage without parameters.
    """

    def __init__(self, forward, params, device):
        if not params:
            raise ValueError("a stage has no parameters: merge it with its neighbour")
        self._layers, self.device = forward, device
        self.params, self.grads = get_params(params, device), None

    def begin(self, turns):
        """Forget the last minibatch. `turns`: per device, shared by its stages."""
        self.grads, self._held, self._turns = None, {}, turns

    def mark(self, X):
        """Mark the input `X`, whose gradient will be needed."""
        X.attach_grad()

    def forward(self, i, X, loss=None, y=None):
        """Return micro-batch `i`'s output or loss; keep the arrays for backward."""
        self._wait_in_line(X)
        with autograd.record():
            out = self._layers(X, self.params)
            out = loss(out, y) if loss else out
        self._held[i] = X, out
        self._let_next(out)
        return out

    def backward(self, i, d_out):
        """Go backward with micro-batch `i`; return the gradient of its input."""
        X, out = self._held.pop(i)
        self._wait_in_line(d_out)
        out.backward(d_out)
        return X.grad

    def add_up(self, i):
        """Add the gradients of the last `backward`, that of `i`, to `grads`."""
        self._add([p.grad if self.grads else p.grad.copy() for p in self.params])

    def _add(self, new):
        if self.grads is None:
            self.grads = new
        else:
            for total, g in zip(self.grads, new):
                total += g
        self._let_next(self.grads[-1])


def gradients(stages, schedule, X, y, loss):
    """Return the gradients of the summed `loss` on the minibatch `X`, `y`, by
    micro-batches.

        losses = gradients(stages, one_f_one_b(len(stages), 4), X, y, loss)

    `stages`: a list of `Stage`, in the order of the network. `schedule`: from
    `schedule`; if it has backward work in two parts, each stage is a `SplitStage`.
    `X` (n, …), `y` (n, …): cut into micro-batches whose sizes differ by at most one.
    `loss(outputs, y)`: one loss per example, or their sum; not the mean.

    Afterwards the stages' `grads` hold the gradients of the whole minibatch, up to
    rounding. Returns the losses, one array per micro-batch, on the last device.

    Raises `ValueError` for a schedule that does not fit the stages or the minibatch.
    Developed in the chapter *Micro-batches*.
    """
    slots = clock(schedule, backward=2)
    last, chunks = max(x.stage for x in slots), 1 + max(x.chunk for x in slots)
    if last + 1 != len(stages):
        raise ValueError(f"the schedule is for {last + 1} stages, not {len(stages)}: "
                         f"make one for {len(stages)}")
    in_two = any(x.kind == "input" for x in slots)
    if in_two and not all(isinstance(stage, SplitStage) for stage in stages):
        raise ValueError("the schedule has backward work in two parts: make each of "
                         "the stages a SplitStage")
    turns = {}
    for stage in stages:
        stage.begin(turns)
    run = _Run(stages, loss, *cut_examples(X, y, chunks))
    # In the order of the clock: work is enqueued after the work that it depends on.
    for s, kind, i, *_ in slots:
        if kind == "forward":
            run.forward(s, i)
        if kind in ("backward", "input"):
            run.backward(s, i)
        if kind in ("backward", "weights"):
            stages[s].add_up(i)
    return run.losses


class _Run:
    """The messages of a step: `arrived[s, i]` is the next input of stage s."""

    def __init__(self, stages, loss, X, y):
        first, last = stages[0].device, stages[-1].device
        self.stages, self.loss, self.losses = stages, loss, [None] * len(X)
        self.targets = [t.copyto(last) for t in y]
        self.arrived = {(0, i): x.copyto(first) for i, x in enumerate(X)}

    def forward(self, s, i):
        stage, message = self.stages[s], self.arrived.pop((s, i))
        if s:  # the gradient of the network's input is not needed
            stage.mark(message)
        if stage is self.stages[-1]:
            self.losses[i] = stage.forward(i, message, self.loss, self.targets[i])
            self.arrived[s, i] = np.ones_like(self.losses[i])
        else:
            out = stage.forward(i, message)
            self.arrived[s + 1, i] = out.copyto(self.stages[s + 1].device)

    def backward(self, s, i):
        gradient = self.stages[s].backward(i, self.arrived.pop((s, i)))
        if s:
            self.arrived[s - 1, i] = gradient.copyto(self.stages[s - 1].device)


class SplitStage(Stage):
    """Consecutive layers on one device, with backward work in two parts.

    `layers`: a list of pairs, `function(X, params)` and its list of arrays, which are
    copied to `device`. `grads`: after `gradients`, all parameters' gradients, in order.
    Raises `ValueError` for a stage without parameters. Developed in the chapter
    *Shorter bubbles*.
    """

    def __init__(self, layers, device):
        super().__init__(layers, [p for _, own in layers for p in own], device)
        copies = iter(self.params)
        self._layers = [(f, [next(copies) for _ in own]) for f, own in layers]
        self._nowhere = np.zeros(1, ctx=device)

    def mark(self, X):
        """Mark the input `X`, whose gradient will be needed: a new array each time."""
        autograd.mark_variables([X], [self._nowhere])

    def forward(self, i, X, loss=None, y=None):
        """Compute as in `Stage`, but with each layer recorded separately."""
        self._wait_in_line(X)
        with_loss = [(lambda out, _: loss(out, y), [])] if loss else []
        self._held[i] = held = []
        with autograd.record():
            for f, params in self._layers + with_loss:
                if held:
                    X = X.detach()
                    self.mark(X)
                held.append((X, f(X, params), params))
                X = held[-1][1]
        self._let_next(X)
        return X

    def backward(self, i, d_out):
        """Return the gradient of the stage's input; keep the arrays for the weights'
        part.

        In the first stage, the gradient of the first layer's output.
        """
        self._wait_in_line(d_out)
        held, self._held[i] = self._held[i], []
        for X, out, params in reversed(held):
            if params:
                self._held[i].insert(0, (out, d_out))
            if X.grad is not None:
                (d_out,) = _gradients([out], [X], [d_out])
        self._let_next(d_out)
        return d_out

    def add_up(self, i):
        """Add the gradients of the parameters, from one call, to `grads`."""
        outs, d_outs = zip(*self._held.pop(i))
        self._wait_in_line(*d_outs)
        self._add(_gradients(outs, self.params, d_outs))


def _gradients(outs, variables, d_outs):
    """Return the gradients of only `variables`, given `outs`'; may be called again."""
    found = autograd.grad(outs, variables, d_outs, retain_graph=True)
    return [gradient.as_np_ndarray() for gradient in found]


def dense(X, params):
    """Return equal dense blocks, relu(X Wᵀ + b), one per pair W (d, d), b (d,) in
    `params`.

    `X` (n, d); returns (n, d).
    """
    for W, b in zip(params[::2], params[1::2]):
        X = npx.fully_connected(X, W, b, num_hidden=W.shape[0], flatten=False)
        X = npx.relu(X)
    return X


def init_dense(blocks, width, seed=0, dtype="float32"):
    """Return the parameters of `blocks` dense blocks of `width` units: W, b, W, b, … on
    cpu(0).

    Weights from N(0, 2 / width), biases 0.
    """
    mx.random.seed(seed)
    scale = (2 / width) ** 0.5
    return [
        np.random.normal(0, scale, shape).astype(dtype) if len(shape) > 1
        else np.zeros(shape, dtype=dtype)
        for shape in [(width, width), (width,)] * blocks
    ]


def dense_stages(params, devices):
    """Cut the dense blocks in `params` into one `Stage` per device, evenly.

    Raises `ValueError` for fewer blocks than devices.
    """
    blocks = len(params) // 2
    if blocks < len(devices):
        raise ValueError(f"{blocks} blocks are too few for {len(devices)} devices: "
                         "give each device at least one")
    parts = spans(blocks, len(devices))
    return [Stage(dense, params[2 * a : 2 * b], d) for (a, b), d in zip(parts, devices)]


def cut_examples(X, y, chunks):
    """Return `X` and `y`, each cut evenly into `chunks` micro-batches: two lists.

    Raises `ValueError` for different lengths, or fewer examples than micro-batches.
    """
    if len(X) != len(y):
        raise ValueError(f"X has {len(X)} examples, y has {len(y)}: they must match")
    if len(X) < chunks:
        raise ValueError(
            f"{chunks} micro-batches of {len(X)} examples: use at most {len(X)}"
        )
    return [[a[i:j] for i, j in spans(len(X), chunks)] for a in (X, y)]


def first_element(x):
    """Return the first element of `x`, a view: to the engine it is the whole array."""
    return x.reshape_view(-1)[:1]
