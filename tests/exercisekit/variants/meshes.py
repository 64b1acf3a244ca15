"""Right answers to exercises of the part on meshes, written differently."""

from itertools import groupby, product
from math import prod

import numpy


def mesh_3_a(lengths, axis):
    numbers = numpy.arange(prod(lengths)).reshape(lengths)
    return numpy.moveaxis(numbers, axis, -1).reshape(-1, lengths[axis])


def mesh_3_b(lengths, axis):
    found = {}
    for device, place in enumerate(product(*map(range, lengths))):
        found.setdefault(place[:axis] + place[axis + 1 :], []).append(device)
    return list(found.values())


def mesh_4_a(x, dy, w, groups):
    y, dw = [None] * len(x), [None] * len(x)
    for group in groups["tensor"]:
        wide, tall = [x[i] for i in group], [w[i] for i in group]
        total = numpy.hstack(wide) @ numpy.vstack(tall)
        for i in group:
            y[i] = total.copy()
    for group in groups["data"]:
        total = numpy.zeros_like(w[group[0]])
        for i in group:
            total += x[i].T @ dy[i]
        for i in group:
            dw[i] = total
    return [y, dw]


def mesh_4_b(x, dy, w, groups):
    def group_of(i, axis):
        return next(group for group in groups[axis] if i in group)

    k = range(len(x))
    return (tuple(sum(x[j].dot(w[j]) for j in group_of(i, "tensor")) for i in k),
            tuple(sum(x[j].T.dot(dy[j]) for j in group_of(i, "data")) for i in k))


def two_links_2_a(hosts):
    return [i for host in set(hosts) for i, at in enumerate(hosts) if at == host]


def two_links_2_b(hosts):
    """Host for host, each one's devices backwards."""
    ring = []
    pairs = sorted((host, i) for i, host in enumerate(hosts))
    for _, own in groupby(pairs, lambda pair: pair[0]):
        ring += [i for _, i in own][::-1]
    return numpy.array(ring)


def two_links_3_a(hosts, devices, cards, inner, outer):
    last = 1 / (hosts * devices)  # all but this share of the array leaves, twice
    if (1 - 1 / devices) * inner + (1 - 1 / hosts) * outer / cards < (1 - last) * outer:
        return "hierarchy"
    return "ring"


def two_links_3_b(hosts, devices, cards, inner, outer):
    def ring(k, seconds):
        return sum(seconds / k for _ in range(2 * (k - 1)))

    hierarchy = ring(devices, inner) + ring(hosts, outer / cards)
    return min([hierarchy, "hierarchy"], [ring(hosts * devices, outer), "ring"])[1]


def two_links_4_a(nbytes, groups):
    if not groups:
        return 0
    (k, alpha, beta), *outside = groups
    ring = 2 * (k - 1) * alpha + 2 * (k - 1) / k * nbytes * beta
    return ring + two_links_4_a(nbytes / k, outside)


def two_links_4_b(nbytes, groups):
    """Out, and back the same way."""
    seconds, left, ways = 0.0, nbytes, []
    for k, alpha, beta in groups:
        left = left / k
        ways.append((k - 1, alpha + left * beta))
    for messages, each in ways + ways[::-1]:
        seconds += messages * each
    return seconds
