"""Right answers of the part on pipelines, written otherwise."""

from functools import lru_cache
from itertools import combinations, groupby

import numpy

from d2l_ext.pipeline.partition import balance
from d2l_ext.pipeline.schedule import Op, one_f_one_b, zero_bubble


def lstm_pipeline_3_a(placement, T):
    runs = [device for device, _ in groupby(placement)]
    return (len(runs) - 1) * T * 2


def lstm_pipeline_3_b(placement, T):
    messages = 0
    for _ in range(T):
        for layer in range(1, len(placement)):
            if placement[layer] != placement[layer - 1]:
                messages += 1  # the hidden state
                messages += 1  # its gradient
    return messages


def lstm_pipeline_4_a(x, h, Wx, Wh, product):
    H = h.shape[1]
    sums = numpy.empty((4, len(x), H))
    for gate in range(4):
        rows = slice(gate * H, (gate + 1) * H)
        sums[gate] = product(x, Wx[rows].T)
        sums[gate] += product(h, Wh[rows].T)
    return sums


def lstm_pipeline_4_b(x, h, Wx, Wh, product):
    """First all products of the input, then those of the state."""
    of_x = [product(x, W) for W in Wx.reshape(4, -1, x.shape[1]).swapaxes(1, 2)]
    of_h = [product(h, W) for W in Wh.reshape(4, -1, h.shape[1]).swapaxes(1, 2)]
    return [a + b for a, b in zip(of_x, of_h)]


def where_to_cut_3_a(times, k):
    """The smallest limit with which filling the devices in order works."""
    for limit in sorted({sum(times[a:b]) for b in range(len(times) + 1)
                         for a in range(b)}):
        placement, device, so_far = [], 0, 0
        for time in times:
            if so_far + time > limit:
                device, so_far = device + 1, 0
            so_far += time
            placement.append(device)
        if max(times) <= limit and device < k:
            return placement
    return None


def where_to_cut_3_b(times, k):
    @lru_cache(None)
    def best(start, devices):
        """The bottleneck and the runs of the layers from `start` on."""
        if devices == 1:
            return sum(times[start:]), (len(times) - start,)
        found = []
        for stop in range(start, len(times) + 1):
            worst, runs = best(stop, devices - 1)
            found.append((max(worst, sum(times[start:stop])), (stop - start, *runs)))
        return min(found)

    return tuple(d for d, run in enumerate(best(0, k)[1]) for _ in range(run))


def where_to_cut_3_c(times, k):
    return balance(times, k)


def where_to_cut_4_a(placement, work, T):
    """When each layer ends each time step, in a table."""
    end = numpy.zeros((T + 1, len(work) + 1))
    for t in range(1, T + 1):
        for i, slots in enumerate(work, 1):
            mates = [j for j, d in enumerate(placement, 1) if d == placement[i - 1]]
            free = max(end[t, j] if j < i else end[t - 1, j] for j in mates)
            end[t, i] = max(free, end[t, i - 1]) + slots
    return end[T, -1]


def where_to_cut_4_b(placement, work, T):
    free, time = {}, 0
    for _ in range(T):
        time = 0
        for i in range(len(placement)):
            time = max(time, free.get(placement[i], 0))
            time += work[i]
            free[placement[i]] = time
    return max(free.values())


def buckets_2_a(rows, T):
    data = [[row[t] if t + 1 < len(row) else 0 for row in rows] for t in range(T)]
    labels = [[row[t + 1] if t + 1 < len(row) else -1 for row in rows]
              for t in range(T)]
    return numpy.array(data), numpy.array(labels)


def buckets_2_b(rows, T):
    data = numpy.zeros((T, len(rows)), "float32")
    labels = numpy.ones((T, len(rows)), "float32") * -1
    for n in range(len(rows)):
        for t in range(len(rows[n]) - 1):
            data[t, n] = rows[n][t]
            labels[t, n] = rows[n][t + 1]
    return [data, labels]


def buckets_3_a(lengths, number):
    """By dynamic programming, from the shortest."""
    sizes = sorted(set(lengths))
    best = {(): 0}
    for size in sizes:
        for chosen, empty in list(best.items()):
            below = chosen[-1] if chosen else 0
            more = sum(size - n for n in lengths if below < n <= size)
            if len(chosen) < number:
                best[(*chosen, size)] = empty + more
    return min((chosen for chosen in best if chosen and chosen[-1] == sizes[-1]),
               key=best.get)


def buckets_3_b(lengths, number):
    array, found = numpy.array(lengths), None
    for count in range(1, min(number, len(set(lengths))) + 1):
        for chosen in combinations(sorted(set(lengths)), count):
            if chosen[-1] == max(lengths):
                at = numpy.searchsorted(chosen, array)
                empty = (numpy.array(chosen)[at] - array).sum()
                if found is None or empty < found[0]:
                    found = empty, chosen
    return list(found[1])


def micro_batches_2_a(p, m):
    return [[(kind, i) for kind in ("F", "B") for i in range(m)] for _ in range(p)]


def micro_batches_2_b(p, m):
    """1F1B goes backward with the first one first, and takes no slot more."""
    return [
        [(work.kind[0].upper(), work.chunk) for work in order]
        for order in one_f_one_b(p, m)
    ]


def micro_batches_4_a(p, m, most):
    """A list for each stage, with a count of what is held."""
    orders = []
    for s in range(p):
        order, done = [], {"F": 0, "B": 0}
        room = min(p - s, most)
        while done["B"] < m:
            kind = "F" if done["F"] < m and done["F"] - done["B"] < room else "B"
            order.append((kind, done[kind]))
            done[kind] += 1
        orders.append(order)
    return orders


def micro_batches_4_b(p, m, most):
    orders = [[] for _ in range(p)]
    for s, order in enumerate(orders):
        ahead = min(most, p - s)
        for i in range(m + ahead):
            order += [["B", i - ahead]] * (i >= ahead) + [["F", i]] * (i < m)
    return orders


def shorter_bubbles_2_a(x, W, d_out):
    def gradient_of_x():
        return numpy.dot(d_out, W)

    def gradient_of_W():
        return numpy.dot(x.T, d_out).T

    return [gradient_of_x, gradient_of_W]


def shorter_bubbles_2_b(x, W, d_out):
    """Other products, with the arrays bound by default values."""

    def inputs(W=W, d=d_out):
        return numpy.einsum("no,oi->ni", d, W)

    def weights(x=x, d=d_out):
        return sum(numpy.outer(row, seen) for row, seen in zip(d, x))

    return inputs, weights


def shorter_bubbles_4_a(p, m, most):
    """The same greed, with queues of what is ready, slot by slot."""
    ready = [{"input": [], "forward": [], "weights": []} for _ in range(p)]
    ready[0]["forward"] = list(range(m))
    held, orders, left = [0] * p, [[] for _ in range(p)], 3 * p * m
    while left:
        works = []
        for s, own in enumerate(ready):
            kinds = [kind for kind, queue in own.items() if queue]
            if held[s] == most and "forward" in kinds:
                kinds.remove("forward")
            if kinds:
                works.append((s, kinds[0], own[kinds[0]].pop(0)))
        for s, kind, i in works:
            orders[s].append(Op(s, kind, i))
            held[s] += {"forward": 1, "input": 0, "weights": -1}[kind]
            if kind == "forward":
                at = (s + 1, "forward") if s + 1 < p else (s, "input")
                ready[at[0]][at[1]].append(i)
            if kind == "input":
                ready[s]["weights"].append(i)
                if s > 0:
                    ready[s - 1]["input"].append(i)
        left -= len(works)
    return orders


def shorter_bubbles_4_b(p, m, most):
    """ZB-H1 where there is room for it; otherwise greed, with counts."""
    if most >= p:
        return zero_bubble(p, m)
    orders, F, I, W = [[] for _ in range(p)], [0] * p, [0] * p, [0] * p
    while min(W) < m:
        sent, back = [m, *F], [*I[1:], F[-1]]
        for s in range(p):
            if I[s] < back[s]:
                kind, count = "input", I
            elif F[s] < sent[s] and F[s] - W[s] < most:
                kind, count = "forward", F
            elif W[s] < I[s]:
                kind, count = "weights", W
            else:
                continue
            orders[s].append(Op(s, kind, count[s]))
            count[s] += 1
    return orders
