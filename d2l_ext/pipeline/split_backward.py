"""Runs schedules of `short_bubbles`: backward work in two parts, stages on devices."""

from mxnet import autograd, np

from ..data_parallel import get_params
from .microbatch import cut_examples, first_element
from .short_bubbles import op_clock


class SplitStage:
    """Consecutive layers on one device, whose backward work can be done in two parts.

    `layers`: a list of pairs, `function(X, params)` and its list of arrays, which are
    copied to `device`. `grads`: after `gradients`, those of all parameters, in order.
    Raises `ValueError` for a stage without parameters.
    """

    def __init__(self, layers, device):
        if not any(params for _, params in layers):
            raise ValueError("a stage has no parameters: give it to its neighbour")
        self.device = device
        self.layers = [(f, get_params(params, device)) for f, params in layers]
        self.params = [p for _, params in self.layers for p in params]
        self._nowhere = np.zeros(1, ctx=device)
        self.begin()

    def begin(self):
        """Forget the last minibatch."""
        self._held, self._owed, self.grads = {}, {}, None

    def forward(self, i, X, loss=None):
        """Go forward with micro-batch `i`; each layer is recorded by itself."""
        held = []
        with autograd.record():
            for f, params in [*self.layers, *([(loss, [])] if loss else [])]:
                X = X.detach()
                autograd.mark_variables([X], [self._nowhere])  # `grad` has a new array
                held.append((X, f(X, params)))
                X = held[-1][1]
        self._held[i] = held
        return X

    def input(self, i, d_out, onward=True):
        """The gradient of the stage's input. What the weights need is kept.

        `onward=False`: nobody needs it; of the first layer's output, then.
        """
        owed = []
        for layer, (X, out) in reversed([*enumerate(self._held.pop(i))]):
            if layer < len(self.layers) and self.layers[layer][1]:
                owed.insert(0, (out, d_out))
            if layer or onward:
                (d_out,) = _gradients([out], [X], [d_out])
        self._owed[i] = owed
        return d_out

    def weights(self, i):
        """Add the gradients of the parameters to `grads`, asked for in one call."""
        owed = self._owed.pop(i)
        new = _gradients([out for out, _ in owed], self.params, [d for _, d in owed])
        if self.grads is None:
            self.grads = new
        else:
            for total, g in zip(self.grads, new):
                total += g

    def owed(self, i):
        """What the gradients of the parameters will be made from."""
        return [d_out for _, d_out in self._owed[i]]

    def newest(self):
        """An array that the work before has written last, to wait for."""
        return self.grads and self.grads[-1]


def gradients(stages, schedule, X, y, loss):
    """Gradients of the summed `loss` on the minibatch `X`, `y`, by `schedule`.

    `stages`: a list of `SplitStage`, in the order of the network. `schedule`: from
    `short_bubbles`; device d does its list d. `X` (n, …), `y` (n, …) and `loss`: as in
    `microbatch.gradients`. `grads` of the stages then hold those of the whole
    minibatch, up to rounding. Returns the losses, an array per micro-batch.

    Raises `ValueError` for a schedule of other stages or of more micro-batches than
    examples. Developed in the chapter *Shorter bubbles*.
    """
    ops = op_clock(schedule)
    last, chunks = max(op.stage for op in ops), 1 + max(op.chunk for op in ops)
    if last + 1 != len(stages):
        raise ValueError(f"a schedule for {last + 1} stages, but {len(stages)}")
    X, y = cut_examples(X, y, chunks)
    losses, turn = [None] * chunks, [None] * len(schedule)
    arrived = {(0, i): x.copyto(stages[0].device) for i, x in enumerate(X)}
    targets = [t.copyto(stages[last].device) for t in y]
    for stage in stages:
        stage.begin()

    for (s, kind, i), (d, _, _) in ops.items():
        stage, done = stages[s], None
        message = None if kind == "weights" else arrived.pop((s, i))
        if turn[d] is not None:  # not before this device's last work is done
            for read in [message] if message is not None else stage.owed(i):
                first = first_element(read)
                first *= turn[d]
        if kind == "forward":
            lossy = (lambda out, _, t=targets[i]: loss(out, t)) if s == last else None
            done = stage.forward(i, message, lossy)
            if s == last:
                losses[i], arrived[s, i] = done, np.ones_like(done)
            else:
                arrived[s + 1, i] = done.copyto(stages[s + 1].device)
        if kind in ("input", "backward"):
            done = stage.input(i, message, s > 0)
            if s:
                arrived[s - 1, i] = done.copyto(stages[s - 1].device)
        if kind in ("weights", "backward"):
            stage.weights(i)
            done = stage.newest()
        turn[d] = np.ones_like(first_element(done))
    return losses


def _gradients(outs, variables, d_outs):
    """Those of `variables` alone, from those of `outs`, which can be asked again."""
    found = autograd.grad(outs, variables, d_outs, retain_graph=True)
    return [gradient.as_np_ndarray() for gradient in found]
