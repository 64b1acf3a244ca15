"""One step of an LSTM layer in symbols, and its matrix products counted."""

import json
from collections import Counter, namedtuple

import mxnet as mx

#: The parameters of a layer, fused: the rows of the input gate, of the forget gate,
#: of the candidate and of the output gate, H each, one below the other.
Weights = namedtuple("Weights", "i2h_weight i2h_bias h2h_weight h2h_bias")
GATES = ("input", "forget", "candidate", "output")


def lstm_cell(x, h, c, weights, num_hidden, name, fused=True):
    """One time step of an LSTM layer, in symbols: returns the new (h, c).

    `x` (N, D): input. `h`, `c` (N, H): hidden state and cell state of the step
    before. `weights`: a `Weights` of symbols, of 4H rows. `num_hidden`: H. `name`:
    prefix of the nodes' names. With 𝒊, 𝒇, 𝒈, 𝒐 for the gates:

        𝒊 = σ(Wᵢ x + Uᵢ h + bᵢ)      𝒇 = σ(W_f x + U_f h + b_f)
        𝒈 = tanh(W_g x + U_g h + b_g)  𝒐 = σ(Wₒ x + Uₒ h + bₒ)
        c ← 𝒇 ⊙ c + 𝒊 ⊙ 𝒈             h ← 𝒐 ⊙ tanh(c)

    These are eight matrix products. `fused`: the four of x in one of 4H rows, and
    the four of h in another; the result is the same.

    Source: Hochreiter and Schmidhuber (1997), with the forget gate of Gers et al.
    (2000). Developed in the chapter *The LSTM as a pipeline*.
    """
    products = _fused if fused else _eight
    i, f, g, o = products(x, h, weights, num_hidden, name)  # (N, H) each
    i, f, o = (mx.sym.sigmoid(gate) for gate in (i, f, o))
    c = f * c + i * mx.sym.tanh(g)
    return o * mx.sym.tanh(c), c


def _fused(x, h, weights, num_hidden, name):
    rows = 4 * num_hidden
    i2h = mx.sym.FullyConnected(x, weights.i2h_weight, weights.i2h_bias,
                                num_hidden=rows, name=f"{name}_i2h")  # fmt: skip
    h2h = mx.sym.FullyConnected(h, weights.h2h_weight, weights.h2h_bias,
                                num_hidden=rows, name=f"{name}_h2h")  # fmt: skip
    return mx.sym.SliceChannel(i2h + h2h, num_outputs=4, name=f"{name}_gates")


def _eight(x, h, weights, num_hidden, name):
    def rows(parameter, k):
        first = k * num_hidden
        return mx.sym.slice_axis(parameter, axis=0, begin=first, end=first + num_hidden)

    for k, gate in enumerate(GATES):
        i2h_weight, i2h_bias, h2h_weight, h2h_bias = (rows(p, k) for p in weights)
        i2h = mx.sym.FullyConnected(x, i2h_weight, i2h_bias, num_hidden=num_hidden,
                                    name=f"{name}_i2h_{gate}")  # fmt: skip
        h2h = mx.sym.FullyConnected(h, h2h_weight, h2h_bias, num_hidden=num_hidden,
                                    name=f"{name}_h2h_{gate}")  # fmt: skip
        yield i2h + h2h


def count_products(symbol, num_hidden):
    """Matrix products of `num_hidden` rows in the graph: {group of a layer: number}.

    A fused one of 4H rows counts as four. Read from the graph's JSON.
    """
    products = Counter()
    for node in json.loads(symbol.tojson())["nodes"]:
        attrs = node.get("attrs", {})
        group = attrs.get("__ctx_group__", "")
        if node["op"] == "FullyConnected" and group.startswith("layer"):
            products[group] += int(attrs["num_hidden"]) // num_hidden
    return dict(products)
