"""An LSTM unrolled over time as a graph, with one group per layer."""

import json
from collections import Counter, namedtuple

import mxnet as mx
import numpy

#: The parameters of a layer, fused: the rows of the input gate, of the forget gate,
#: of the candidate and of the output gate, H each, one below the other.
Weights = namedtuple("Weights", "i2h_weight i2h_bias h2h_weight h2h_bias")
GATES = ("input", "forget", "candidate", "output")


def lstm_cell(x, h, c, weights, num_hidden, name, fused=True):
    """Take one time step of an LSTM layer, in symbols; return the new (h, c).

    `x` (N, D): input. `h`, `c` (N, H): hidden state and cell state of the step
    before. `weights`: a `Weights` of symbols, of 4H rows. `num_hidden`: H. `name`:
    prefix of the nodes' names. With 𝒊, 𝒇, 𝒐 for the gates and 𝒈 for the candidate:

        𝒊 = σ(Wᵢ x + Uᵢ h + bᵢ)      𝒇 = σ(W_f x + U_f h + b_f)
        𝒈 = tanh(W_g x + U_g h + b_g)  𝒐 = σ(Wₒ x + Uₒ h + bₒ)
        c ← 𝒇 ⊙ c + 𝒊 ⊙ 𝒈             h ← 𝒐 ⊙ tanh(c)

    These are eight matrix products. `fused`: one product of 4H rows for the four of x,
    and one for the four of h; the result is the same. `graph.bind` refuses separate
    products if the next layer is on another device, except for a single time step.

    Source: Hochreiter and Schmidhuber (1997), with the forget gate of Gers et al.
    (2000). Developed in the chapter *The LSTM as a pipeline*.
    """
    products = _fused if fused else _eight
    i, f, g, o = products(x, h, weights, num_hidden, name)  # (N, H) each
    i, f, o = (mx.sym.sigmoid(gate) for gate in (i, f, o))
    c = f * c + i * mx.sym.tanh(g)
    return o * mx.sym.tanh(c), c


def groups(num_layers):
    """Return the groups of `lstm_unroll`, in the order in which data reach them."""
    return ["embed", *[f"layer{i}" for i in range(num_layers)], "decode"]


def lstm_unroll(
    num_layers, seq_len, num_embed, num_hidden, vocab_size, *,
    concat_decode=True, fused=True, ignore_label=None,
):
    """Return the language model of `num_layers` LSTM layers, unrolled for `seq_len`
    steps.

    Inputs: `data` and `softmax_label`, (T, N), time first, and the initial states of
    each layer i, `l{i}_init_h` and `l{i}_init_c`, (N, H). Every node carries its group,
    from `groups(num_layers)`, as the attribute `ctx_group`.

    `num_embed`: length of a character's vector. `concat_decode`: one decoder for the
    outputs of all time steps, with the result (T·N, vocab_size); else one decoder
    per step, and T results (N, vocab_size). `fused`: as in `lstm_cell`.
    `ignore_label`: a label whose loss does not count, default none.

    Returns a symbol whose backward pass gives the gradient of the cross-entropy
    *summed* over all labels. Follows `lstm_unroll` of MXNet's model-parallel LSTM.
    Developed in the chapter *The LSTM as a pipeline*.
    """
    with mx.AttrScope(ctx_group="embed"):
        steps = _embed(seq_len, num_embed, vocab_size)
    for i in range(num_layers):
        with mx.AttrScope(ctx_group=f"layer{i}"):
            num_inputs = num_hidden if i else num_embed
            weights = _weights(i, num_inputs, num_hidden)
            steps = _layer(i, steps, weights, num_hidden, fused)
    with mx.AttrScope(ctx_group="decode"):
        return _decode(steps, vocab_size, ignore_label, concat_decode)


def _fused(x, h, weights, num_hidden, name):
    rows = 4 * num_hidden
    i2h = mx.sym.FullyConnected(x, weights.i2h_weight, weights.i2h_bias,
                                num_hidden=rows, name=f"{name}_i2h")
    h2h = mx.sym.FullyConnected(h, weights.h2h_weight, weights.h2h_bias,
                                num_hidden=rows, name=f"{name}_h2h")
    return mx.sym.SliceChannel(i2h + h2h, num_outputs=4, name=f"{name}_gates")


def _eight(x, h, weights, num_hidden, name):
    gates = [mx.sym.SliceChannel(rows, num_outputs=4, axis=0) for rows in weights]
    for k, gate in enumerate(GATES):
        i2h_weight, i2h_bias, h2h_weight, h2h_bias = (rows[k] for rows in gates)
        i2h = mx.sym.FullyConnected(x, i2h_weight, i2h_bias, num_hidden=num_hidden,
                                    name=f"{name}_i2h_{gate}")
        h2h = mx.sym.FullyConnected(h, h2h_weight, h2h_bias, num_hidden=num_hidden,
                                    name=f"{name}_h2h_{gate}")
        yield i2h + h2h


def _embed(seq_len, num_embed, vocab_size):
    # Last step first: the products of a device run in the order of the graph, whose
    # backward part lists the products that these slices need in their order. With step
    # 0 first, a whole backward pass would come before it, and layer 0's gradients last.
    last_first = mx.sym.reverse(mx.sym.var("data"), axis=0)
    vectors = mx.sym.Embedding(last_first, mx.sym.var("embed_weight"),
                               input_dim=vocab_size, output_dim=num_embed,
                               name="embed")  # (T, N, num_embed)
    return list(mx.sym.SliceChannel(vectors, num_outputs=seq_len, axis=0,
                                    squeeze_axis=True, name="steps"))[::-1]


def _weights(i, num_inputs, num_hidden):
    rows = 4 * num_hidden
    shapes = (rows, num_inputs), (rows,), (rows, num_hidden), (rows,)
    return Weights(*[
        mx.sym.var(f"l{i}_{name}", shape=shape)
        for name, shape in zip(Weights._fields, shapes)
    ])


def _layer(i, steps, weights, num_hidden, fused):
    h, c = mx.sym.var(f"l{i}_init_h"), mx.sym.var(f"l{i}_init_c")
    outputs = []
    for t, x in enumerate(steps):
        h, c = lstm_cell(x, h, c, weights, num_hidden, f"l{i}_t{t}", fused)
        outputs.append(h)
    return outputs


def _decode(steps, vocab_size, ignore_label, together):
    label = mx.sym.var("softmax_label")
    if together:
        steps = [mx.sym.concat(*steps, dim=0, name="concat")]  # (T·N, H), time first
        labels, names = [mx.sym.reshape(label, shape=(-1,))], [""]  # (T·N,)
    else:
        labels = mx.sym.SliceChannel(label, num_outputs=len(steps), axis=0,
                                     squeeze_axis=True, name="labels")
        names = [f"_t{t}" for t in range(len(steps))]
    weight, bias = mx.sym.var("decode_weight"), mx.sym.var("decode_bias")
    ignore = {} if ignore_label is None else {"ignore_label": ignore_label}
    losses = []
    for h, label, name in zip(steps, labels, names):
        scores = mx.sym.FullyConnected(h, weight, bias, num_hidden=vocab_size,
                                       name=f"decode{name}")
        loss = mx.sym.SoftmaxOutput(scores, label, name=f"softmax{name}",
                                    use_ignore=bool(ignore), **ignore)
        losses.append(loss)
    return losses[0] if together else mx.sym.Group(losses)


def input_shapes(num_layers, seq_len, batch_size, num_hidden):
    """Return the shapes of the inputs of `lstm_unroll`, for `pipeline.bind`."""
    states = [f"l{i}_init_{s}" for i in range(num_layers) for s in "hc"]
    steps = (seq_len, batch_size)
    return {"data": steps, "softmax_label": steps,
            **{state: (batch_size, num_hidden) for state in states}}


def init_params(symbol, shapes, scale=0.1, seed=0):
    """Return random parameters for `symbol`, uniform from −scale to scale, on `cpu(0)`.

    `shapes`: of the inputs. Returns a dict from name to array.
    """
    found, _, _ = symbol.infer_shape(**shapes)
    rng = numpy.random.RandomState(seed)
    return {
        name: mx.nd.array(rng.uniform(-scale, scale, shape), ctx=mx.cpu(0))
        for name, shape in zip(symbol.list_arguments(), found)
        if name not in shapes
    }


def perplexity(outputs, y):
    """Return exp of the mean cross-entropy. Waits for the engine.

    `outputs`: list of probabilities, as `lstm_unroll` gives them. `y` (T, N): labels;
    those below 0, such as padding's, do not count.
    """
    p = numpy.concatenate([output.asnumpy() for output in outputs])  # (T·N, V)
    labels = numpy.asarray(y).reshape(-1).astype(int)
    kept = labels >= 0
    right = p[kept, labels[kept]]
    return float(numpy.exp(-numpy.log(numpy.maximum(right, 1e-30)).mean()))


def count_products(symbol, num_hidden):
    """Return the matrix products of `num_hidden` rows in the graph: {group of a layer:
    number}.

    A fused product of 4H rows counts as four. Read from the graph's JSON.
    """
    products = Counter()
    for node in json.loads(symbol.tojson())["nodes"]:
        attrs = node.get("attrs", {})
        group = attrs.get("__ctx_group__", "")
        if node["op"] == "FullyConnected" and group.startswith("layer"):
            products[group] += int(attrs["num_hidden"]) // num_hidden
    return dict(products)
