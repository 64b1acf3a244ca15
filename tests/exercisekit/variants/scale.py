"""Right answers to exercises of the part on scale, written differently."""

from math import log2

import numpy

from d2l_ext.scale import failures, fit


def fitting_2_a(k, nbytes, cores):
    rounds, there, message = 0, 0.0, nbytes
    while k >> rounds > 1:
        message /= 2
        there += message
        rounds += 1
    return (1, rounds + rounds, 2 * there * (k / cores if k > cores else 1))


def fitting_2_b(k, nbytes, cores):
    """N/2 + N/4 + … + N/k is N − N/k."""
    return [1, int(2 * log2(k)), 2 * (nbytes - nbytes / k) * max(1.0, k / cores)]


def fitting_3_a(rows, seconds):
    rows, seconds = numpy.array(rows, float), numpy.array(seconds)
    found = []
    for i in range(len(rows)):
        kept = numpy.arange(len(rows)) != i
        constants = fit.least_squares(rows[kept], seconds[kept]).constants
        found.append((rows[i] @ constants - seconds[i]) / seconds[i])
    return numpy.array(found)


def fitting_3_b(rows, seconds):
    rows, seconds, errors = list(rows), list(seconds), []
    for _ in range(len(rows)):  # the first is left out, and goes to the end
        row, t = rows.pop(0), seconds.pop(0)
        constants = fit.least_squares(rows, seconds).constants
        errors.append(sum(a * b for a, b in zip(row, constants)) / t - 1)
        rows.append(row)
        seconds.append(t)
    return errors


def simulating_3_a(ready, message):
    """Everybody has, in the end, waited for the last one."""
    return [max(ready) + 2 * log2(len(ready)) * message] * len(ready)


def simulating_3_b(ready, message):
    now, rounds = numpy.array(ready, float), int(log2(len(ready)))
    for bit in [*range(rounds), *reversed(range(rounds))]:
        now = numpy.maximum(now, now[numpy.arange(len(now)) ^ (1 << bit)]) + message
    return now


def simulating_4_a(compute, spare):
    return numpy.sort(compute, axis=1)[:, -1 - spare].sum()


def simulating_4_b(compute, spare):
    total = 0
    for row in compute:
        left = list(row)
        for _ in range(spare):
            left.remove(max(left))
        total += max(left)
    return total


def scale_3_a(made, message):
    """The last array waits for the worst of those before it."""
    n = len(made)
    return max(t + (n - i) * message for i, t in enumerate(made))


def scale_3_b(made, message):
    made = list(made)
    if len(made) == 1:
        return made[0] + message
    before = scale_3_b(made[:-1], message)
    return max(made[-1], before) + message


def scale_4_a(write, mtbf):
    low, high = failures.young(write, mtbf) / 1000, 3 * mtbf
    while high / low > 1.001:
        a, b = low * (high / low) ** (1 / 3), low * (high / low) ** (2 / 3)
        cost = [failures.expected(1, t, write, 0, mtbf) for t in (a, b)]
        low, high = (low, b) if cost[0] < cost[1] else (a, high)
    return low


def scale_4_b(write, mtbf):
    tried = numpy.geomspace(1, mtbf, 3000)
    return tried[numpy.argmin([failures.expected(1, t, write, 0, mtbf) for t in tried])]


def rosetta_2_a(arrays):
    return [numpy.swapaxes(a, 0, 1) if len(a.shape) == 2 else a for a in arrays]


def rosetta_2_b(arrays):
    turned = list(arrays)
    for i, array in enumerate(turned):
        if array.ndim != 2:
            continue
        turned[i] = numpy.einsum("oi->io", array)
    return turned


def rosetta_3_a(own, everyones):
    return own / numpy.mean(everyones)


def rosetta_3_b(own, everyones):
    n = 0
    for share in everyones:
        n += share
    return len(everyones) * (own / n)
