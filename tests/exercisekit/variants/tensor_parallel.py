"""Right answers of the part on tensor parallelism, written otherwise."""

from collections import Counter

import numpy


def layerwise_2_a(X, W1s, W2s, b2, allreduce):
    """Every device adds its share of b2."""
    k = len(W1s)
    return allreduce([X @ W1s[i] @ W2s[i] + b2 / k for i in range(k)])


def layerwise_2_b(X, W1s, W2s, b2, allreduce):
    parts = []
    for i, (W1, W2) in enumerate(zip(W1s, W2s)):
        hidden = numpy.dot(X, W1)
        part = numpy.dot(hidden, W2)
        parts.append(part + b2 if i == 0 else part)
    return allreduce(parts)


def layerwise_3_a(dY, hidden, W1s, W2s, allreduce):
    parts = []
    for H, W1, W2 in zip(hidden, W1s, W2s):
        d_hidden = dY @ W2.T
        d_hidden[H == 0] = 0
        parts.append(d_hidden @ W1.T)
    return allreduce(parts)


def layerwise_3_b(dY, hidden, W1s, W2s, allreduce):
    k = range(len(hidden))
    slopes = [numpy.sign(H) for H in hidden]
    return allreduce([((dY @ W2s[i].T) * slopes[i]) @ W1s[i].T for i in k])


def experts_2_a(choices, E, most):
    queues = [[] for _ in range(E)]
    for c in (0, 1):
        for t in range(len(choices)):
            queues[choices[t][c]].append((t, c))
    return sorted(pair for queue in queues for pair in queue[most:])


def experts_2_b(choices, E, most):
    """By counting who comes before: no state."""
    late = []
    for t, (first, second) in enumerate(choices):
        firsts = [own[0] for own in choices]
        if firsts[:t].count(first) >= most:
            late += [[t, 0]]
        before = firsts.count(second) + [own[1] for own in choices[:t]].count(second)
        if before >= most:
            late += [[t, 1]]
    return late


def experts_3_a(wants, E):
    k = len(wants)
    table = numpy.zeros((k, k), int)
    for i, experts in enumerate(wants):
        for e in experts:
            j = next(j for j in range(k) if j * E // k <= e < (j + 1) * E // k)
            table[i, j] += 1
    numpy.fill_diagonal(table, 0)
    return table


def experts_3_b(wants, E):
    k, rows = len(wants), []
    for i in range(k):
        count = Counter(wants[i])
        row = [
            sum(count[e] for e in range(j * E // k, (j + 1) * E // k)) for j in range(k)
        ]
        row[i] = 0
        rows.append(row)
    return rows


def transformer_2_a(W, heads, k):
    queries, keys, values = numpy.split(W, 3)
    parts = zip(*(numpy.split(each, k) for each in (queries, keys, values)))
    return [numpy.concatenate(part) for part in parts]


def transformer_2_b(W, heads, k):
    width = len(W) // 3
    own = width // heads * (heads // k)
    return [
        W[[m * width + i * own + r for m in range(3) for r in range(own)]]
        for i in range(k)
    ]


def transformer_3_a(scores, targets, firsts, allgather):
    """A loop over positions; -inf where a device does not have the word."""
    mine = []
    for z, first in zip(scores, firsts):
        sums = numpy.logaddexp.reduce(z, axis=1)
        own = [
            z[n, t - first] if first <= t < first + z.shape[1] else -numpy.inf
            for n, t in enumerate(targets)
        ]
        mine.append(numpy.array([sums, own]))
    parts = allgather(mine)
    return numpy.logaddexp.reduce(parts[:, 0]) - parts[:, 1].max(axis=0)


def transformer_3_b(scores, targets, firsts, allgather):
    """Two calls, of one number each."""
    hits = [(numpy.arange(z.shape[1]) + f)[None] == targets[:, None]
            for z, f in zip(scores, firsts)]
    correct = allgather([(z * hit).sum(1) for z, hit in zip(scores, hits)]).sum(0)
    tops = [z.max(1) for z in scores]
    logs = allgather([
        top + numpy.log(numpy.exp(z - top[:, None]).sum(1))
        for z, top in zip(scores, tops)
    ])
    largest = logs.max(0)
    return largest + numpy.log(numpy.exp(logs - largest).sum(0)) - correct


def ring_attention_2_a(one, two):
    if (one[0] >= two[0]).all():
        one, two = two, one
    m = numpy.where(one[0] > two[0], one[0], two[0])
    sums = [numpy.exp(state[0] - m) * state[1] for state in (one, two)]
    outputs = [numpy.exp(state[0] - m) * state[2] for state in (one, two)]
    return [m, sum(sums), sum(outputs)]


def ring_attention_2_b(one, two):
    m1, m2 = one[0], two[0]
    first = m1 > m2
    factor = numpy.exp(-abs(m1 - m2))  # for the one with the smaller maximum
    f1, f2 = numpy.where(first, 1, factor), numpy.where(first, factor, 1)
    both = [f1 * a + f2 * b for a, b in zip(one[1:], two[1:])]
    return (m1 * first + m2 * ~first, *both)


def ring_attention_3_a(k):
    chunks = list(range(2 * k))
    return [(chunks.pop(), chunks.pop(0)) for _ in range(k)]


def ring_attention_3_b(k):
    early, late = numpy.arange(k)[::-1], numpy.arange(k, 2 * k)
    return numpy.stack([late, early], axis=1).tolist()


def ring_attention_4_a(a, b, size, window):
    """Tries every pair of positions."""
    queries = range(a * size, (a + 1) * size)
    keys = range(b * size, (b + 1) * size)
    return any(0 <= q - key < window for q in queries for key in keys)


def ring_attention_4_b(a, b, size, window):
    first_key_seen = a * size - (window - 1)
    last_key = b * size + size - 1
    return numpy.bool_(b <= a and first_key_seen <= last_key)
