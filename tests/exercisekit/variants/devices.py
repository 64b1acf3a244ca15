"""Right answers to exercises of the part on devices, written differently."""

import numpy


def devices_2_a(ask, devices):
    results = []
    for device in devices:
        results.append(ask(device))
    for result in reversed(results):
        result.wait()
    return results


def devices_2_b(ask, devices):
    asked = {device: ask(device) for device in devices}
    while not all(result.wait() is None for result in asked.values()):
        pass
    return tuple(asked.values())


def devices_3_a(uses, home, copy):
    copies = {i: copy(i) for i in set(uses) - {0}}
    return [copies.get(i, home) for i in uses]


def devices_3_b(uses, home, copy):
    found = [home] * len(uses)
    for n, i in enumerate(uses):
        if i in uses[:n]:
            found[n] = found[uses.index(i)]
        elif i:
            found[n] = copy(i)
    return found


def three_ways_2_a(n, features, hidden, outputs):
    ways = [
        (n * hidden, "pipeline"),
        (n * outputs, "tensor"),
        (features * hidden + hidden * outputs, "data"),
    ]
    return min(ways)[1]


def three_ways_2_b(n, features, hidden, outputs):
    """In bytes, there and back."""
    pipeline, tensor = 8 * n * hidden, 8 * n * outputs
    data = 8 * hidden * (features + outputs)
    if data < min(pipeline, tensor):
        return "data"
    return "pipeline" if hidden < outputs else "tensor"


def three_ways_3_a(X, W1, send):
    cut = len(W1) // 2
    there = send(numpy.dot(X[:, cut:], W1[cut:]))
    total = numpy.dot(X[:, :cut], W1[:cut])
    total += there
    total[total < 0] = 0
    return total


def three_ways_3_b(X, W1, send):
    sums = [x @ w for x, w in zip(numpy.array_split(X, 2, 1), numpy.array_split(W1, 2))]
    summed = sums[0] + send(sums[1])
    return summed * (summed > 0)


def what_limits_a_step_2_a(operators, peak, bandwidth):
    total = 0.0
    for flops, nbytes in operators:
        ridge = flops / peak > nbytes / bandwidth
        total += flops / peak if ridge else nbytes / bandwidth
    return total


def what_limits_a_step_2_b(operators, peak, bandwidth):
    needs = numpy.reshape(operators, (-1, 2)) / numpy.array([peak, bandwidth])
    return needs.max(axis=1).sum()


def what_limits_a_step_3_a(sizes, times):
    return numpy.polyfit(sizes, times, 1, w=1 / numpy.array(times))[1]


def what_limits_a_step_3_b(sizes, times):
    """The weighted line by its normal equations."""
    sw = swx = swy = swxx = swxy = 0.0
    for x, y in zip(sizes, times):
        w = 1 / y**2
        sw, swx, swy = sw + w, swx + w * x, swy + w * y
        swxx, swxy = swxx + w * x * x, swxy + w * x * y
    return (swxx * swy - swx * swxy) / (sw * swxx - swx**2)
