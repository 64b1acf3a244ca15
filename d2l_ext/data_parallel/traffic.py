"""Messages between devices: sent, and counted."""

from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps

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

    `to`: a context, for an array of its own there, or an array of the same shape and
    dtype to overwrite.
    """
    device = getattr(to, "ctx", to)
    for index, moved in _open:
        _add(index, moved, x, device)
    if links and to is device:
        from mxnet import np  # counting needs no MXNet

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
    """Return `exchange(group)` for all groups: a list; parallel rounds count once."""
    counts, results = [moved for _, moved in _open], []
    begun = most = [moved.steps for moved in counts]
    for group in groups:
        for moved, steps in zip(counts, begun):
            moved.steps = steps
        results.append(exchange(group))
        most = [max(steps, moved.steps) for moved, steps in zip(counts, most)]
    for moved, steps in zip(counts, most):
        moved.steps = steps
    return results


def checked(allreduce):
    """Decorate an allreduce with the checks that `allreduce` describes."""

    @wraps(allreduce)
    def with_checks(data, *more, **options):
        data = list(data)
        if not data:
            raise ValueError("the list is empty: allreduce needs an array per device")
        for i, x in enumerate(data):
            _check(i, x, data)
        if not data[0].shape:
            data = [x.reshape_view(1) for x in data]  # x[:] needs an axis
        return allreduce(data, *more, **options)

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
            raise ValueError(f"array {i} has {what} {own}, array 0 has {first}: give "
                             f"arrays of one {what}")


@contextmanager
def count(devices):
    """Count bytes and rounds inside the `with` block; yields a `Traffic`.

    `devices`: in the order of `moved.sent` and `moved.received`. A copy within a
    device does not count. Raises `ValueError` for a device that is listed twice, and
    inside the block for a message from or to a device that is not listed.

    Developed in the chapter *Allreduce*.
    """
    index = {device: i for i, device in enumerate(devices)}
    if len(index) < len(devices):
        names = ", ".join(str(d) for d in devices)
        raise ValueError(f"a device is repeated in {names}: list each once")
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
            raise ValueError(f"{end} sends or receives, but only {counted} are "
                             "counted: list it, too")
    if x.ctx != device:
        nbytes = x.size * x.dtype.itemsize
        moved.sent[index[x.ctx]] += nbytes
        moved.received[index[device]] += nbytes
        pair = index[x.ctx], index[device]
        moved.pairs[pair] = moved.pairs.get(pair, 0) + nbytes


def cuts(size, k):
    """Return the cuts of `size` elements into `k` chunks whose sizes differ by at most
    one.

    Returns k + 1 positions: chunk c is `[cuts[c]:cuts[c + 1]]`.
    """
    return [c * size // k for c in range(k + 1)]


def spans(size, k):
    """Return the chunks of `cuts` as k pairs (start, stop)."""
    edges = cuts(size, k)
    return list(zip(edges, edges[1:]))
