"""Right answers of the part on data parallelism, written otherwise."""

import numpy


def data_parallel_scratch_2_a(means, sizes):
    return float(numpy.average(means, weights=sizes))


def data_parallel_scratch_2_b(means, sizes):
    total = 0.0
    for i in range(len(means)):
        total += means[i] * sizes[i]
    count = 0
    for size in sizes:
        count += size
    return total / count
