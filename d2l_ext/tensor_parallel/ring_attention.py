"""Ring attention: each device keeps its queries, and keys and values go around.

A sequence of T positions is cut into equal chunks, and an `order` says which device
has which: a list of chunk numbers per device. What a device has of an array is a
dict, {chunk number: array (heads, positions, width)}. Keys and values go to the next
device k − 1 times. All queries have then met all keys, and no device ever held more
than a chunk of queries against a chunk of keys.

    round 0       0 1 2 3    whose keys and values are at devices 0, 1, 2, 3
    round 1       3 0 1 2
    round 2       2 3 0 1
    round 3       1 2 3 0

Source: Liu, Zaharia and Abbeel, "Ring attention with blockwise transformers for
near-infinite context" (2023).
"""

import numpy
from mxnet import np, npx

from ..data_parallel.traffic import send


def contiguous(k):
    """Order for k devices: device i has the i-th of k chunks. [[0], [1], …]"""
    return [[i] for i in range(k)]


def zigzag(k):
    """Order for k devices: device i has the i-th of 2k chunks and the i-th last.

    So each has an early and a late one: [[0, 3], [1, 2]] for k = 2. With causal
    attention that is the same work for all. Source: Brandon et al., "Striped
    attention" (2023), for the trouble; the order is the one of Llama 3 (2024).
    """
    return [[i, 2 * k - 1 - i] for i in range(k)]


def work(order, causal):
    """Pairs of chunks that are computed: a row for each round, a column per device.

    A pair is left out if attention is `causal` and all keys come after all queries.
    """
    k = len(order)
    return [
        [len(_pairs(order[i], order[(i - r) % k], causal)) for i in range(k)]
        for r in range(k)
    ]


def split(x, order, devices):
    """Cut `x` (heads, T, width), NumPy or `mxnet.np`, by `order`: a dict per device.

    Raises `ValueError` if T is no multiple of the number of chunks, or if there is
    not one list of chunks for each device.
    """
    chunks = sum(map(len, order))
    if len(order) != len(devices):
        raise ValueError(f"an order for {len(order)} devices, but {len(devices)}")
    if sorted(sum(order, [])) != list(range(chunks)):
        raise ValueError(f"the order {order} must have each chunk once, from 0")
    size, rest = divmod(x.shape[1], chunks)
    if rest or not size:
        raise ValueError(
            f"{x.shape[1]} positions cannot be cut into {chunks} equal chunks: "
            f"pad to {max(size + bool(rest), 1) * chunks}"
        )
    return [
        {c: np.array(x[:, c * size : (c + 1) * size], dtype=x.dtype, ctx=device)
         for c in own}
        for own, device in zip(order, devices)
    ]  # fmt: skip


def join(parts):
    """Put what the devices have together: a NumPy array (heads, T, width)."""
    chunks = {c: x.asnumpy() for part in parts for c, x in part.items()}
    return numpy.concatenate([chunks[c] for c in sorted(chunks)], axis=1)


def forward(Qs, Ks, Vs, causal=False):
    """Attention of all queries to all keys: softmax(Q Kᵀ / √width) V.

        Os, lse = forward(Qs, Ks, Vs, causal=True)

    `Qs`, `Ks`, `Vs`: from `split`, by one order; float32 or float64. `causal`: a
    query sees no later keys. Returns the output in the same form, and for `backward`
    of each query the logarithm of the sum of its exponentials, (heads, positions, 1).
    Sends 2(k − 1)/k of an array from each device: see `sent`. Developed in the
    chapter *Long sequences*.
    """
    running = [{c: start(q) for c, q in Q.items()} for Q in Qs]
    messages = _together(Ks, Vs)
    for r in range(1, len(Qs) + 1):
        arriving = pass_on(messages) if r < len(Qs) else None  # on its way while we compute
        for Q, message, state in zip(Qs, messages, running):
            for a, b in _pairs(Q, message, causal):
                state[a] = attend(state[a], Q[a], *message[b], causal and a == b)
        messages = arriving
    Os = [{c: o / s for c, (m, s, o) in state.items()} for state in running]
    lse = [{c: m + np.log(s) for c, (m, s, _) in state.items()} for state in running]
    return Os, lse


def start(q):
    """Maximum, sum and output of a chunk of queries that has met no keys."""
    zeros = np.zeros_like(q)
    return zeros[:, :, :1] - np.inf, zeros[:, :, :1], zeros


def attend(state, q, k, v, diagonal=False):
    """The state (maximum, sum, output) once `q` has met the keys `k`, too.

    What was summed so far had the older maximum taken off, and is brought up to date.
    """
    m, s, o = state
    x = scores(q, k, diagonal)  # (heads, queries, keys): a chunk by a chunk
    new = np.maximum(m, x.max(axis=2, keepdims=True))
    p, old = np.exp(x - new), np.exp(m - new)
    return new, s * old + p.sum(axis=2, keepdims=True), o * old + npx.batch_dot(p, v)


def scores(q, k, diagonal=False):
    """q kᵀ / √width; on the `diagonal`, −∞ where the key comes after the query."""
    x = npx.batch_dot(q / q.shape[2] ** 0.5, k, transpose_b=True)
    if diagonal:
        later = np.full(x.shape[1:], np.inf, dtype=x.dtype, ctx=x.ctx)
        x = x - np.tril(later, k=-1).T
    return x


def backward(dOs, Qs, Ks, Vs, Os, lse, causal=False):
    """Gradients by queries, keys and values: `(dQs, dKs, dVs)`, in the same form.

    `dOs`: the loss's gradient by the output. The others: as in and from `forward`.
    The probabilities are computed again, chunk by chunk. The gradients of keys and
    values travel with them, grow on the way, and go on once more to be at home.
    Sends (4k − 2)/k of an array from each device.
    """
    weights = [{c: (dO[c] * O[c]).sum(axis=2, keepdims=True) for c in dO}
               for dO, O in zip(dOs, Os)]  # fmt: skip
    dQs = [{c: np.zeros_like(q) for c, q in Q.items()} for Q in Qs]
    messages, sums = _together(Ks, Vs), _together(*_zeros(Ks, Vs))
    for r in range(1, len(Qs) + 1):
        arriving = pass_on(messages) if r < len(Qs) else None
        for i, (Q, message) in enumerate(zip(Qs, messages)):
            for a, b in _pairs(Q, message, causal):
                (k, v), (dk, dv) = message[b], sums[i][b]
                p = np.exp(scores(Q[a], k, causal and a == b) - lse[i][a])
                dp = npx.batch_dot(dOs[i][a], v, transpose_b=True)
                dx = p * (dp - weights[i][a]) / Q[a].shape[2] ** 0.5
                dQs[i][a] += npx.batch_dot(dx, k)
                dk += npx.batch_dot(dx, Q[a], transpose_a=True)
                dv += npx.batch_dot(p, dOs[i][a], transpose_a=True)
        messages, sums = arriving, pass_on(sums)
    dKs, dVs = ([{c: pair[x] for c, pair in own.items()} for own in sums]
                for x in (0, 1))  # fmt: skip
    return dQs, dKs, dVs


def pass_on(messages):
    """Send what each device has to the next: {chunk: (array, array)} per device."""
    devices = [next(iter(own.values()))[0].ctx for own in messages]
    if len(devices) == 1:
        return messages
    return [
        {c: tuple(send(x, device) for x in pair) for c, pair in messages[i - 1].items()}
        for i, device in enumerate(devices)
    ]


def sent(k, nbytes):
    """Bytes that each of k devices sends, forward and backward.

    `nbytes`: of one array (heads, T, width), all devices together. Forward, keys and
    values go k − 1 times; backward again, and their gradients k times.
    """
    chunk = nbytes // k
    return 2 * (k - 1) * chunk, (2 * (k - 1) + 2 * k * (k > 1)) * chunk


def _together(Ks, Vs):
    return [{c: (K[c], V[c]) for c in K} for K, V in zip(Ks, Vs)]


def _zeros(*arrays):
    return [[{c: np.zeros_like(x) for c, x in X.items()} for X in Xs] for Xs in arrays]


def _pairs(queries, keys, causal):
    return [(a, b) for a in queries for b in keys if b <= a or not causal]
