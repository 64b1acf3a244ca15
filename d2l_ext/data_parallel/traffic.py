"""Messages between devices: sent, counted, and in closed form."""

from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps

from ..checks import known_name, whole_number

#: The open `count` blocks: pairs of {device: index} and `Traffic`.
_open = []
#: The last of these links, if any, carries the messages: see `overlap`.
links = []


@dataclass
class Traffic:
    """Bytes that device i `sent` and `received`, and the number of rounds, `steps`."""

    sent: list
    received: list
    steps: int = 0
    #: {(i, j): bytes from device i to device j}, where they were counted.
    pairs: dict = field(default_factory=dict, compare=False, repr=False)


def send(x, to):
    """Copy the array `x` to another device and return the copy. Never waits.

    `to`: a context, for an array of its own there, or an array to overwrite.
    """
    device = getattr(to, "ctx", to)
    for index, moved in _open:
        _add(index, moved, x, device)
    if links and to is device:
        from mxnet import np  # counting alone needs no MXNet

        to = np.empty(x.shape, dtype=x.dtype, ctx=device)
    return links[-1].send(x, to) if links else x.copyto(to)


def rounds(schedule):
    """Yield the items of `schedule`, and count each as a round of communication.

    In a round, a device sends at most one message and receives at most one.
    """
    for messages in schedule:
        for _, moved in _open:
            moved.steps += 1
        yield messages


def at_once(exchange, groups):
    """`exchange(group)` of each group: a list. Counts parallel rounds once."""
    begun, results = [(moved, moved.steps) for _, moved in _open], []
    for group in groups:
        for moved, steps in begun:
            moved.steps = steps
        results.append(exchange(group))
    return results


def checked(allreduce):
    """Decorate an allreduce with checks of its list of arrays."""

    @wraps(allreduce)
    def with_checks(data, **options):
        data = list(data)
        if not data:
            raise ValueError("the list is empty: allreduce needs an array per device")
        for i, x in enumerate(data):
            _check(i, x, data)
        if not data[0].shape:
            data = [x.reshape_view(1) for x in data]  # x[:] needs an axis
        return allreduce(data, **options)

    return with_checks


def _check(i, x, data):
    from mxnet import np

    if not isinstance(x, np.ndarray):
        raise TypeError(f"array {i} is a {type(x)}: make it an mxnet.np array")
    if any(x is other for other in data[:i]):
        raise ValueError(f"array {i} is in the list twice: copy it first")
    for what in ("shape", "dtype"):
        own, first = getattr(x, what), getattr(data[0], what)
        if own != first:
            raise ValueError(f"array {i} has {what} {own}, array 0 has {first}")


@contextmanager
def count(devices):
    """Count what is sent inside the `with` block; yields a `Traffic`.

    `devices`: in the order of `moved.sent` and `moved.received`. A copy within a
    device does not count. Raises `ValueError` for a device that is listed twice, and
    inside the block for a message from or to a device that is not listed.

    Developed in the chapter *Allreduce*.
    """
    index = {device: i for i, device in enumerate(devices)}
    if len(index) < len(devices):
        names = ", ".join(str(d) for d in devices)
        raise ValueError(f"count each device once, not {names}")
    moved = Traffic([0] * len(index), [0] * len(index))
    _open.append((index, moved))
    try:
        yield moved
    finally:
        _open.pop()


def _add(index, moved, x, device):
    for end in (x.ctx, device):
        if end not in index:
            counted = ", ".join(str(d) for d in index)
            raise ValueError(f"{end} sends or receives, but only {counted} are counted")
    if x.ctx != device:
        nbytes = x.size * x.dtype.itemsize
        moved.sent[index[x.ctx]] += nbytes
        moved.received[index[device]] += nbytes
        pair = index[x.ctx], index[device]
        moved.pairs[pair] = moved.pairs.get(pair, 0) + nbytes


def cuts(size, k):
    """The cuts of `size` elements into `k` chunks whose sizes differ by at most one.

    Returns k + 1 positions: chunk c is `[cuts[c]:cuts[c + 1]]`.
    """
    return [c * size // k for c in range(k + 1)]


def spans(size, k):
    """The chunks of `cuts` as k pairs (start, stop)."""
    edges = cuts(size, k)
    return list(zip(edges, edges[1:]))


def expected(algorithm, k, nbytes, itemsize=4, chunks=1):
    """The `Traffic` of an allreduce of `nbytes` per device on `k` devices.

    `algorithm`: one of `ALGORITHMS` or `CHUNKED`. `itemsize`: bytes of an element,
    default float32. `chunks`: c, for those in `CHUNKED`. Bytes in either direction,
    with N for `nbytes` and p for the largest power of two up to k:

        naive        device 0: (k − 1)·N, all others: N          2(k − 1) rounds
        tree         N to the parent and N for each child        2⌈log₂ k⌉ rounds
        ring         2(k − 1)/k·N, if k divides the elements     2(k − 1) rounds
        halving      2(p − 1)/p·N, if p divides them             2·log₂ p rounds
                     k > p: N more for k − p of the p,
                     N alone for the others                      2 rounds more
        double tree  in each tree, of N/2, as in a tree          4(c + ⌊log₂ k⌋ − 1)
                     2·N at most; two devices: N                 rounds; k = 2: 2·c
        network      N, summed by the switches                   c + 1 rounds

    An uneven ring leaves out two of the k chunks, each of its own size. Raises
    `ValueError` for an unknown algorithm, k < 1, or bytes that are not a whole number
    of elements.
    """
    steps, _ = _rounds(algorithm, k, chunks)
    size, rest = divmod(nbytes, itemsize)
    if rest or size < 0:
        raise ValueError(f"{nbytes} bytes are no array of {itemsize}-byte elements")
    moved = Traffic([0] * k, [0] * k, steps)
    for i, j, elements in _sent(algorithm, k, size):
        moved.sent[i] += elements * itemsize
        moved.received[j] += elements * itemsize
    return moved


def seconds(algorithm, k, nbytes, alpha, beta, chunks=1):
    """Seconds of an allreduce in the α–β model: the sum over rounds of α + n·β.

    `algorithm`, `k`, `nbytes`, `chunks`: as in `expected`. `alpha`: latency of a
    message, in seconds. `beta`: seconds per byte. Additions are free in this model.

        naive        2(k − 1)·(α + N·β)     device 0 serves one after another
        tree         2⌈log₂ k⌉·(α + N·β)    binomial reduce, then broadcast
        ring         2(k − 1)·(α + N/k·β)   all links at once, each with a chunk
        halving      2·log₂ p·α + 2(p − 1)/p·N·β, and 2(α + N·β) if k > p
        double tree  4(c + ⌊log₂ k⌋ − 1)·(α + N/2c·β); k = 2: 2·c·(α + N/2c·β)
        network      (c + 1)·(α + N/c·β)    one chunk goes up as the last comes down

    Raises as in `expected`.
    """
    count, arrays = _rounds(algorithm, k, chunks)
    return count * alpha + arrays * nbytes * beta


#: The names for `expected` and `seconds`: whole arrays, or one chunk per device.
ALGORITHMS = ("naive", "tree", "ring", "halving")
#: Algorithms that cut the array into a given number of chunks.
CHUNKED = ("double tree", "network")


def _rounds(algorithm, k, chunks):
    """The number of rounds, and of arrays that pass in them in sequence."""
    known_name("algorithm", algorithm, (*ALGORITHMS, *CHUNKED))
    whole_number("k", k)
    if k == 1:
        return 0, 0
    down, up = k.bit_length() - 1, (k - 1).bit_length()  # the logarithm, rounded
    pipelined = 2 * chunks if k == 2 else 4 * (chunks + down - 1)
    return {
        "naive": (2 * (k - 1), 2 * (k - 1)),
        "tree": (2 * up, 2 * up),
        "ring": (2 * (k - 1), 2 * (k - 1) / k),
        "halving": (2 * up, 2 * (1 - 1 / 2**down) + 2 * (up > down)),
        "double tree": (pipelined, pipelined / (2 * chunks)),
        "network": (chunks + 1, (chunks + 1) / chunks),
    }[algorithm]


def _sent(algorithm, k, size):
    """The messages of all rounds together: (from, to, number of elements)."""
    if algorithm == "network":  # to the switch and back
        return [(i, i, size) for i in range(k) if k > 1]
    if algorithm == "ring":
        # Device i sends all chunks but i + 1 while adding, all but i + 2 afterwards.
        chunk = [stop - start for start, stop in spans(size, k)]
        left_out = [chunk[(i + 1) % k] + chunk[(i + 2) % k] for i in range(k)]
        return [(i, (i + 1) % k, 2 * size - n) for i, n in enumerate(left_out)]
    if algorithm == "naive":
        up = [(i, 0, size) for i in range(1, k)]
    elif algorithm == "tree":  # the parent of i is i without its lowest bit
        up = [(i, i & (i - 1), size) for i in range(1, k)]
    elif algorithm == "halving":
        p = 2 ** (k.bit_length() - 1)
        up = [(i + p, i, size) for i in range(k - p)]  # the fold
        edges = cuts(size, p)
        for d in (2**b for b in range(p.bit_length() - 1)):
            # Of their 2d chunks, a device sends the d that its partner keeps.
            first = [(i ^ d) // d * d for i in range(p)]
            up += [(i, i ^ d, edges[j + d] - edges[j]) for i, j in enumerate(first)]
    else:
        parts = zip(trees(k), spans(size, 2))
        up = [(*link, b - a) for tree, (a, b) in parts for link in tree.items()]
    return up + [(j, i, elements) for i, j, elements in up]


def trees(k):
    """The double binary tree: two trees, each a dict from a device to its parent.

    k = 7           3                       2
                1       5       and     0       4
              0   2   4   6           6   1   3   5

    In the first tree the odd devices have children. The second is the first with each
    device moved one place on, so the even ones have them. Places are numbered 1 … k
    from left to right; a place's lowest set bit is its height. The parent of a place is
    its neighbour one level higher or, where that is beyond k, the place without its
    lowest set bit.
    """
    found = [{}, {}]
    for place in range(1, k + 1):
        low = place & -place
        above = place - low | 2 * low
        if above > k:
            above = place - low
        for n, tree in enumerate(found, 1):
            if above:  # else it is the root
                tree[(place - n) % k] = (above - n) % k
    return found
