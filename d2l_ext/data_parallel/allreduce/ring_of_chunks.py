"""Allreduce around a ring: every link carries a chunk in every round."""

from ..traffic import checked, rounds, send, spans
from .algorithm import Algorithm, Schedule


@checked
def allreduce_ring(data):
    """Allreduce as `allreduce` does; each device sends 2(k − 1)/k of an array, if k
    divides its elements.

    For k − 1 rounds each device sends a chunk to the next, and adds the one that
    arrives; for k − 1 more the chunks of the sum are passed around.
    `data` and errors: as in `allreduce`. Source: Patarasuk and Yuan (2009).
    Developed in the chapter *Allreduce*.
    """
    chunks = [cut(x, len(data)) for x in data]
    if len(data) > 1:
        allgather(reduce_scatter(chunks), chunks)


def ring(k):
    """Return the chunk that arrives at each device: a row per round, a column per
    device.

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
    """Send `messages[i - 1]` to device i; return the copies. Index -1 means k - 1."""
    return [send(messages[i - 1], own[0].ctx) for i, own in enumerate(chunks)]


def write(arrays, places, chunks):
    """Copy `arrays[i]` into chunk `places[i]` of device i."""
    for i, c in enumerate(places):
        arrays[i].copyto(chunks[i][c])


def messages(k):
    """Return the messages of `ring` as a `Schedule`: each device sends to the next."""
    rows = [[((i - 1) % k, i, c, 1) for i, c in enumerate(row)] for row in ring(k)]
    return Schedule(k, rows[: k - 1], rows[k - 1 :])


def cost(k, chunks):
    """Return the cost: 2(k − 1) rounds, each with a k-th of the array."""
    return 2 * (k - 1), 2 * (k - 1) / k


def sent(k, size):
    """Return the elements that each device sends to the next, in all rounds together.

    Device i sends all chunks but i + 1 while adding, all but i + 2 afterwards.
    """
    chunk = [stop - start for start, stop in spans(size, k)]
    left_out = [chunk[(i + 1) % k] + chunk[(i + 2) % k] for i in range(k)]
    return [(i, (i + 1) % k, 2 * size - n) for i, n in enumerate(left_out)]


ALGORITHM = Algorithm("ring", allreduce_ring, messages, cost, sent)
