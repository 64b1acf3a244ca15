"""Ring attention: each device keeps its queries; keys and values travel around.

A sequence of T positions is cut into equal chunks, and an `order` assigns them: a list
of chunk numbers per device. A device's part of an array is a dict, {chunk number:
array (heads, positions, width)}. Keys and values move to the next device k − 1 times.
Then all queries have met all keys, and no array has ever held scores of more than one
chunk of queries against one chunk of keys.

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

    So each has an early and a late chunk: [[0, 3], [1, 2]] for k = 2. With causal
    attention all devices then have the same work. Source: the report on Llama 3 (2024).
    """
    return [[i, 2 * k - 1 - i] for i in range(k)]


def work(order, causal):
    """Return the number of computed pairs of chunks: a row per round, a column per
    device.

    With `causal` attention a pair is skipped if all its keys come after its queries.
    """
    k = len(order)
    return [
        [len(_pairs(order[i], order[(i - r) % k], causal)) for i in range(k)]
        for r in range(k)
    ]


def split(x, order, devices):
    """Cut `x` (heads, T, width), NumPy or `mxnet.np`, by `order`: a dict per device.

    Raises `ValueError` if T is not a multiple of the number of chunks, or if the order
    does not fit the devices.
    """
    size = _size(x.shape[1], order, devices)
    return [
        {c: np.array(x[:, c * size :][:, :size], dtype=x.dtype, ctx=d) for c in own}
        for own, d in zip(order, devices)
    ]


def join(parts):
    """Join the devices' parts: a NumPy array (heads, T, width)."""
    chunks = {c: x.asnumpy() for part in parts for c, x in part.items()}
    return numpy.concatenate([chunks[c] for c in sorted(chunks)], axis=1)


def forward(Qs, Ks, Vs, causal=False):
    """Return the attention of all queries to all keys: softmax(Q Kᵀ / √width) V.

        Os, lse = forward(Qs, Ks, Vs, causal=True)

    `Qs`, `Ks`, `Vs`: from `split`, with one order; float32 or float64. `causal`: a
    query sees no later keys. Returns the output in the same form and, for `backward`,
    the logarithm of each query's sum of exponentials, (heads, positions, 1). Each
    device sends 2(k − 1)/k of an array: see `bytes_sent`. Developed in the
    chapter *Long sequences*.
    """
    running = [{c: (np.full_like(q[:, :, :1], -np.inf), 0, 0) for c, q in Q.items()}
               for Q in Qs]
    k, messages = len(Qs), _together(Ks, Vs)
    free = [places(messages) for _ in range(min(2, k - 1))]
    for r in range(k):
        arriving = pass_on(messages, free[r % 2]) if r < k - 1 else None
        for Q, message, state in zip(Qs, messages, running):
            for a, b in _pairs(Q, message, causal):
                state[a] = attend(state[a], Q[a], *message[b], causal and a == b)
        messages = arriving
    Os = [{c: o / s for c, (m, s, o) in state.items()} for state in running]
    lse = [{c: m + np.log(s) for c, (m, s, _) in state.items()} for state in running]
    return Os, lse


def attend(state, q, k, v, diagonal=False):
    """Return the queries' state (maximum, sum, output), updated by `k` and `v`."""
    m, s, o = state
    x = attention_scores(q, k, diagonal)  # (heads, queries, keys): of two chunks
    new = np.maximum(m, x.max(axis=2, keepdims=True))
    p, old = np.exp(x - new), np.exp(m - new)  # old: rescales the sums
    return new, s * old + p.sum(axis=2, keepdims=True), o * old + npx.batch_dot(p, v)


def attention_scores(q, k, diagonal=False):
    """Return q kᵀ / √width; on the `diagonal`, −∞ where the key is the later one."""
    x = npx.batch_dot(q / q.shape[2] ** 0.5, k, transpose_b=True)
    if diagonal:
        later = np.full(x.shape[1:], np.inf, dtype=x.dtype, ctx=x.ctx)
        x = x - np.tril(later, k=-1).T
    return x


def backward(dOs, Qs, Ks, Vs, Os, lse, causal=False):
    """Return the gradients of queries, keys and values: `(dQs, dKs, dVs)`, in the same
    form.

    `dOs`: the loss's gradient with respect to the output. The others: arguments and
    results of `forward`.
    The probabilities are recomputed, chunk by chunk. The gradients of keys and values
    travel with them, accumulate on the way, and move once more to return to their
    device. Each device sends (4k − 2)/k of an array, for k ≥ 2.
    """
    weights = [{c: (dO[c] * O[c]).sum(axis=2, keepdims=True) for c in dO}
               for dO, O in zip(dOs, Os)]
    dQs = [{c: np.zeros_like(q) for c, q in Q.items()} for Q in Qs]
    k, messages = len(Qs), _together(Ks, Vs)
    free = [places(messages) for _ in range(min(2, k - 1))]
    sums = [{c: [np.zeros_like(x) for x in pair] for c, pair in own.items()}
            for own in messages]
    free_sums = [places(sums), [list(own.values()) for own in sums]]
    for r in range(k):
        arriving = pass_on(messages, free[r % 2]) if r < k - 1 else None
        for i, (Q, message) in enumerate(zip(Qs, messages)):
            for a, b in _pairs(Q, message, causal):
                (key, value), (dk, dv) = message[b], sums[i][b]
                p = np.exp(attention_scores(Q[a], key, causal and a == b) - lse[i][a])
                dp = npx.batch_dot(dOs[i][a], value, transpose_b=True)
                dx = p * (dp - weights[i][a]) / Q[a].shape[2] ** 0.5
                dQs[i][a] += npx.batch_dot(dx, key)
                dk += npx.batch_dot(dx, Q[a], transpose_a=True)
                dv += npx.batch_dot(p, dOs[i][a], transpose_a=True)
        messages, sums = arriving, pass_on(sums, free_sums[r % 2])
    dKs = [{c: dk for c, (dk, _) in own.items()} for own in sums]
    return dQs, dKs, [{c: dv for c, (_, dv) in own.items()} for own in sums]


def pass_on(messages, free):
    """Send each device's {chunk: [array, array]} to the next, into the buffers `free`.

    The engine reuses a buffer once its old contents are no longer read. So two
    alternating buffers are enough: a message travels while the devices compute, and
    none arrives too early. Returns the dicts that arrive, one per device.
    """
    return [
        {c: [send(x, place) for x, place in zip(pair, there)]
         for (c, pair), there in zip(messages[i - 1].items(), own)}
        for i, own in enumerate(free)
    ]


def places(messages):
    """Return buffers to receive one message on each device."""
    # Not `np.empty_like`: MXNet leaves that to NumPy, and waits for the values of x.
    return [
        [[np.empty(x.shape, dtype=x.dtype, ctx=x.ctx) for x in pair]
         for pair in own.values()]
        for own in messages
    ]


def bytes_sent(k, nbytes):
    """Return the bytes that each of k devices sends: a pair, forward and backward.

    `nbytes`: of one array (heads, T, width), all devices together. Keys and values move
    k − 1 times forward and again backward, their gradients k times, for k ≥ 2.
    """
    chunk = nbytes // k
    return 2 * (k - 1) * chunk, (2 * (k - 1) + 2 * k * (k > 1)) * chunk


def _together(Ks, Vs):
    return [{c: (K[c], V[c]) for c in K} for K, V in zip(Ks, Vs)]


def _pairs(queries, keys, causal):
    return [(a, b) for a in queries for b in keys if b <= a or not causal]


def _size(T, order, devices):
    """Return the positions of a chunk."""
    chunks = sorted(c for own in order for c in own)
    even = len(order) == len(devices) and len({len(own) for own in order}) == 1
    if not (even and chunks) or chunks != list(range(len(chunks))):
        raise ValueError(
            f"the order {order} must have each chunk once, from 0, and lists of one "
            f"length for {len(devices)} devices"
        )
    if not T or T % len(chunks):
        raise ValueError(
            f"{T} positions cannot be cut into {len(chunks)} equal chunks: "
            f"pad to {max(1, -(-T // len(chunks))) * len(chunks)}"
        )
    return T // len(chunks)
