"""Experts: a router sends each token to a few of many networks, spread over devices.

Device i holds its own tokens `Xs[i]` (n, d), a copy of the router (d, E), and about
E/k of the E experts, each a block of `dense`. A layer has five steps:

    router    P = softmax(X W): each token's probabilities of experts   (n, E)
    assign    the experts of each token, and the dropped choices        on the host
    there     all-to-all: one row per choice that is kept, by expert    (m, d)
    experts   each on the rows of all devices
    back      all-to-all; each token sums its rows, weighted by P       (n, d)

Backward goes the same way: the gradient of an all-to-all is an all-to-all back.
"""

import math
from collections import namedtuple

import numpy
from mxnet import np, npx

from ..data_parallel.allreduce import allreduce
from ..data_parallel.traffic import rounds, send, spans
from . import dense

#: The routing of n tokens. `tokens` (m,): the token of each row that is sent, sorted
#: by expert. `experts` (m,): its expert. `rows` (n, top): the row of each choice, or m
#: if it was dropped. `counts`, `wanted` (E,): rows per expert, and choices of it.
Routing = namedtuple("Routing", "tokens experts rows counts wanted")
#: The values that `forward` keeps for `backward`.
Saved = namedtuple("Saved", "Xs Ps routings gates inputs hidden outputs")


def top_experts(P, top=1):
    """Return the `top` most probable experts of each token, the best first: (n, top),
    NumPy.

    `P`: probabilities (n, E), NumPy. Ties go to the lower number. Raises `ValueError`
    for a `top` below 1 or above E.
    """
    if not 1 <= top <= P.shape[1]:
        raise ValueError(f"top={top} of {P.shape[1]} experts: choose 1 to {P.shape[1]}")
    return numpy.argsort(-P, axis=1, kind="stable")[:, :top]


def capacity(n, num_experts, factor=None, top=1):
    """Return the row limit of an expert, for n tokens: factor · top · n/E, rounded up.

    `factor`: finite; 1.0 suffices if all experts are chosen equally often. Default
    `None`: no limit. Raises `ValueError` for a factor that is not above 0.
    """
    if factor is None:
        return n * top
    if not factor > 0:
        raise ValueError(f"factor={factor}: give a capacity factor above 0, or None")
    return math.ceil(factor * top * n / num_experts - 1e-9)


def assign(choice, num_experts, most):
    """Give each expert its tokens, at most `most` of them: a `Routing`.

    `choice` (n, top): from `top_experts`. First come, first served, by the token's
    number; all first choices come before the second ones. When an expert is full,
    further choices of it are dropped.

    Source: Fedus et al., "Switch Transformers" (2022). Developed in the chapter
    *Experts*.
    """
    n, top = choice.shape
    wants = choice.T.ravel()  # the first choice of all tokens, then the second, …
    order = numpy.argsort(wants, kind="stable")  # by expert, in the order of arrival
    wanted = numpy.bincount(wants, minlength=num_experts)
    place = numpy.arange(wants.size) - (numpy.cumsum(wanted) - wanted)[wants[order]]
    kept = order[place < most]
    rows = numpy.full(wants.size, kept.size)
    rows[kept] = numpy.arange(kept.size)
    counts = numpy.minimum(wanted, most)
    return Routing(kept % n, wants[kept], rows.reshape(top, n).T, counts, wanted)


def all_to_all(parts):
    """All-to-all: `parts[i][j]` becomes `found[j][i]`.

    `parts[i]`: k arrays on device i, of any lengths. `found[j]`: k arrays on device j.
    In round r of k − 1, device i sends to device i + r.
    """
    k = len(parts)
    found = [[parts[i][j] if i == j else None for i in range(k)] for j in range(k)]
    for r in rounds(range(1, k)):
        for i in range(k):
            j = (i + r) % k
            found[j][i] = send(parts[i][j], parts[j][j].ctx)
    return found


def to_experts(rows, routings):
    """Send `rows[i]` (m, ·); return E arrays on the experts' devices, in order."""
    homes = spans(len(routings[0].counts), len(routings))
    shares = [[p.counts[a:b].sum() for a, b in homes] for p in routings]
    found = all_to_all([_split(x, counts) for x, counts in zip(rows, shares)])
    return [
        np.concatenate(of_one)
        for (a, b), parts in zip(homes, found)
        for of_one in zip(*[_split(x, r.counts[a:b]) for x, r in zip(parts, routings)])
    ]


def from_experts(arrays, routings):
    """Undo `to_experts`: return the rows (m, ·) of each device, sorted by expert."""
    shares = zip(*[p.counts for p in routings])  # expert by expert
    pieces = [_split(x, counts) for x, counts in zip(arrays, shares)]
    homes = spans(len(arrays), len(routings))
    parts = [[np.concatenate(x) for x in zip(*pieces[a:b])] for a, b in homes]
    return [np.concatenate(arrived) for arrived in all_to_all(parts)]


def split_experts(experts, devices):
    """Divide E blocks `[W1 (d, h), b1, W2 (h, d), b2]` over k devices: E blocks.

    The devices' numbers of experts differ by at most one. `ValueError` for E < k.
    """
    homes = dense.shares("experts", len(experts), devices)
    return [
        [np.array(p, dtype=p.dtype, ctx=device) for p in block]
        for device, (a, b) in zip(devices, homes)
        for block in experts[a:b]
    ]


def forward(Xs, routers, experts, top=1, factor=None):
    """Return the layer's outputs on each device: `(Ys, saved)`. Two all-to-alls.

    `Xs`, `routers`: as above. `experts`: from `split_experts`. `top`: experts per
    token. `factor`: of each device's `capacity`. A dropped choice contributes nothing.
    Raises `ValueError` if the number of experts is not that of the routers.

    Source: Shazeer et al., "Outrageously Large Neural Networks" (2017). Developed in
    the chapter *Experts*.
    """
    E = routers[0].shape[1]
    if len(experts) != E:
        raise ValueError(f"the router is for {E} experts, not {len(experts)}: give one "
                         "expert per column of the router")
    Ps = [npx.softmax(np.dot(X, W)) for X, W in zip(Xs, routers)]
    most = [capacity(len(P), E, factor, top) for P in Ps]
    choices = [top_experts(P.asnumpy(), top) for P in Ps]  # Python waits here
    routings = [assign(choice, E, m) for choice, m in zip(choices, most)]
    inputs = to_experts([_take(X, p.tokens) for X, p in zip(Xs, routings)], routings)
    done = [dense.forward([x], [block]) for x, block in zip(inputs, experts)]
    outputs = from_experts([Y for (Y,), _ in done], routings)
    wanted = [_take(P, p.tokens) * _chosen(P, p) for P, p in zip(Ps, routings)]
    gates = [P.sum(axis=1, keepdims=True) for P in wanted]  # (m, 1): a row's weight
    saved = Saved(Xs, Ps, routings, gates, inputs, [H for _, (H,) in done], outputs)
    return [combine(g * R, p) for g, R, p in zip(gates, outputs, routings)], saved


def backward(dYs, saved, routers, experts, balance=0.0):
    """Return the layer's gradients: `(dXs, dWs, gradients)`. Two all-to-alls, one
    allreduce.

    `dYs`: the loss's gradient with respect to the outputs. `balance`: the factor with
    which the sum of the devices' `balance_loss` joins the loss. The others: as in
    `forward`.

    `dXs`: of the tokens of each device. `dWs`: of the router, summed over devices.
    `gradients[e]`: of the parameters of expert e, complete on its device.
    """
    Xs, Ps, routings, gates, inputs, hidden, outputs = saved
    dRs = [_take(dY, p.tokens) for dY, p in zip(dYs, routings)]
    arrived = to_experts([g * dR for g, dR in zip(gates, dRs)], routings)
    done = [_through(*of_one) for of_one in zip(arrived, inputs, hidden, experts)]
    returned = from_experts([dx for dx, _ in done], routings)
    dXs, dWs = [], []
    for X, W, P, p, R, dR, dx in zip(Xs, routers, Ps, routings, outputs, dRs, returned):
        by_gate = (R * dR).sum(axis=1, keepdims=True)  # (m, 1)
        dP = combine(_chosen(P, p) * by_gate, p)
        dP = dP + _like(P, p.wanted / p.wanted.sum()) * (balance * P.shape[1] / len(P))
        dS = P * (dP - (P * dP).sum(axis=1, keepdims=True))  # back through the softmax
        dXs.append(combine(dx, p) + np.dot(dS, W.T))
        dWs.append(np.dot(X.T, dS))
    allreduce(dWs)
    return dXs, dWs, [gradient for _, gradient in done]


def combine(rows, routing):
    """Sum the rows (m, ·) of each token: (n, ·), zeros for a token without rows."""
    none = np.zeros((1, rows.shape[1]), dtype=rows.dtype, ctx=rows.ctx)
    return _take(np.concatenate([rows, none]), routing.rows).sum(axis=1)


def balance_loss(P, routing):
    """Return E times the sum over experts of *share of the choices* · *mean
    probability*.

    Source: Fedus et al. (2022), equation 4. Developed in the chapter *Experts*.
    """
    shares = _like(P, routing.wanted / routing.wanted.sum())
    return (shares * P.mean(axis=0)).sum() * P.shape[1]


def _through(dY, x, H, block):
    if not len(x):  # no token came; MXNet crashes on a product without rows
        return x, [np.zeros_like(p) for p in block]
    (dX,), (gradient,) = dense.backward([dY], [x], [H], [block])
    return dX, gradient


def _take(x, index):
    return np.take(x, np.array(index, dtype="int32", ctx=x.ctx), axis=0)


def _chosen(P, routing):
    return _like(P, numpy.eye(P.shape[1])[routing.experts])  # (m, E), zeros and ones


def _like(x, values):
    return np.array(values, dtype=x.dtype, ctx=x.ctx)


def _split(x, counts):
    ends = numpy.append(0, numpy.cumsum(counts))
    return [x[a:b] for a, b in zip(ends, ends[1:])]
