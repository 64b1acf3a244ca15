"""Allreduce: every device ends with the sum over all devices.

Three algorithms, with the same result up to rounding. None waits. `traffic.expected`
has their bytes and rounds.
"""

from .traffic import checked, rounds, send, spans


@checked
def allreduce(data):
    """Sum the arrays in `data`, one per device, and give every device the sum.

    `data`: a list of k arrays of one shape and dtype, array i on device i; changed
    in place. Naive: device 0 gathers, sums in the order of the list, and sends back.
    Raises `ValueError` for an empty list, arrays that differ in shape or dtype, or
    an array that is listed twice; `TypeError` for anything but `mxnet.np`.
    Follows `allreduce` of *Dive into Deep Learning*, "Training on Multiple
    GPUs". Developed in the chapter *Data parallelism from scratch*.
    """
    for i in rounds(range(1, len(data))):
        data[0][:] += send(data[i], data[0].ctx)
    for i in rounds(range(1, len(data))):
        send(data[0], data[i])


@checked
def allreduce_tree(data):
    """The same as `allreduce`, in 2⌈log₂ k⌉ rounds instead of 2(k − 1).

    Device 0 is still the busiest: it sends and receives ⌈log₂ k⌉ whole arrays.
    `data` and errors: as in `allreduce`. Source: Thakur, Rabenseifner and Gropp (2005).
    Developed in the chapter *Allreduce*.
    """
    for pairs in rounds(tree(len(data))):
        for child, parent in pairs:
            data[parent] += send(data[child], data[parent].ctx)
    for pairs in rounds(reversed(tree(len(data)))):
        for child, parent in pairs:
            send(data[parent], data[child])


def tree(k):
    """The messages on the way to device 0: a list of (child, parent) per round.

    k = 6     0   1   2   3   4   5
    round 1   0 ← 1   2 ← 3   4 ← 5
    round 2   0 ←———— 2       4
    round 3   0 ←———————————— 4
    """
    strides = [2**b for b in range((k - 1).bit_length())]
    return [
        [(parent + s, parent) for parent in range(0, k - s, 2 * s)] for s in strides
    ]


@checked
def allreduce_ring(data):
    """The same as `allreduce`; each device sends 2(k − 1)/k of an array.

    For k − 1 rounds each device sends a chunk to the next, and adds the one that
    arrives; for k − 1 more the chunks of the sum are passed around.
    `data` and errors: as in `allreduce`. Source: Patarasuk and Yuan (2009).
    Developed in the chapter *Allreduce*.
    """
    chunks = [cut(x, len(data)) for x in data]
    if len(data) > 1:
        allgather(reduce_scatter(chunks), chunks)


def ring(k):
    """The chunk that arrives at each device: a row per round, a column per device.

    k = 4       0   1   2   3    device
    round 1     3   0   1   2    add
    round 2     2   3   0   1    add
    round 3     1   2   3   0    add: the sum is complete
    round 4     0   1   2   3    copy
    round 5     3   0   1   2    copy
    round 6     2   3   0   1    copy
    """
    return [[(i - r) % k for i in range(k)] for r in range(1, 2 * k - 1)]


def cut(x, k):
    """Cut `x`, flattened, into `k` views whose sizes differ by at most one."""
    row = x.reshape_view(-1)
    return [row[start:stop] for start, stop in spans(x.size, k)]


def reduce_scatter(chunks):
    """Leave each of k devices with one chunk of the sum, and return those k arrays.

    `chunks[i][c]`: chunk c on device i; only read, because a partial sum travels in an
    array of its own. Device i ends with chunk (i + 1) mod k.
    """
    k = len(chunks)
    partial = [chunks[i][i] for i in range(k)]
    for arriving in rounds(ring(k)[: k - 1]):
        partial = pass_on(partial, chunks)
        for i, c in enumerate(arriving):
            partial[i] += chunks[i][c]
    return partial


def allgather(sums, chunks):
    """Pass the k chunks of the sum around, and write each into `chunks` on arrival.

    `sums`: from `reduce_scatter`. A chunk that has to be passed on stays in an array of
    its own, because to the engine all chunks of a device are one variable.
    """
    k = len(chunks)
    write(sums, [(i + 1) % k for i in range(k)], chunks)
    for arriving in rounds(ring(k)[k - 1 : -1]):
        sums = pass_on(sums, chunks)
        write(sums, arriving, chunks)
    for arriving in rounds(ring(k)[-1:]):  # not passed on, so straight to its place
        for i, c in enumerate(arriving):
            send(sums[i - 1], chunks[i][c])


def pass_on(messages, chunks):
    """Send `messages[i - 1]` to device i. Device 0 receives the last: -1 is k - 1."""
    return [send(messages[i - 1], own[0].ctx) for i, own in enumerate(chunks)]


def write(arrays, places, chunks):
    """Copy `arrays[i]` into chunk `places[i]` of device i."""
    for i, c in enumerate(places):
        arrays[i].copyto(chunks[i][c])
