"""Stages whose backward work has two parts, for the schedules of `short_bubbles`."""

from mxnet import autograd, np

from .microbatch import Stage


class SplitStage(Stage):
    """Consecutive layers on one device, whose backward work can be done in two parts.

    `layers`: a list of pairs, `function(X, params)` and its list of arrays, which are
    copied to `device`. `grads`: after `gradients`, those of all parameters, in order.
    Raises `ValueError` for a stage without parameters. Developed in the chapter
    *Shorter bubbles*.
    """

    def __init__(self, layers, device):
        super().__init__(layers, [p for _, own in layers for p in own], device)
        copies = iter(self.params)
        self._layers = [(f, [next(copies) for _ in own]) for f, own in layers]
        self._nowhere = np.zeros(1, ctx=device)

    def mark(self, X):
        """Say that the gradient of `X` will be asked for: a new array, each time."""
        autograd.mark_variables([X], [self._nowhere])

    def forward(self, i, X, loss=None, y=None):
        """Go forward with micro-batch `i`; each layer is recorded by itself."""
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
        """The gradient of the stage's input. What the weights need is kept.

        Where nobody needs it, that of the first layer's output.
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
        """Add the gradients of the parameters to `grads`, asked for in one call."""
        outs, d_outs = zip(*self._held.pop(i))
        self._wait_in_line(*d_outs)
        self._add(_gradients(outs, self.params, d_outs))


def _gradients(outs, variables, d_outs):
    """Those of `variables` alone, from those of `outs`, which can be asked again."""
    found = autograd.grad(outs, variables, d_outs, retain_graph=True)
    return [gradient.as_np_ndarray() for gradient in found]
