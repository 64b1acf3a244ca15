"""The keys of a kvstore: the calls on each, and the server that holds it.

The server is chosen deterministically: every worker computes it from the key, the
number of servers and the size of the array, by the rule of MXNet 1.9.1.
"""

import math
import os
from contextlib import contextmanager

from ..checks import whole_number

#: The calls that move arrays, and the one that sends the optimizer.
METHODS = ("init", "broadcast", "push", "pull", "pushpull", "row_sparse_pull",
           "set_optimizer")
#: The variable that sets the bound; each worker reads its own.
VARIABLE = "MXNET_KVSTORE_BIGARRAY_BOUND"
#: The number of elements from which an array is cut; the variable overrides it.
BOUND = 1_000_000
#: The prime that spreads keys over servers.
PRIME = 9973
#: From this key on, MXNet's product of key and prime overflows its 32-bit integers.
END_OF_KEYS = -(-(2**31) // PRIME)


@contextmanager
def record(kv):
    """Record the calls of the kvstore `kv` inside the `with` block.

        with keys.record(kv) as calls:
            trainer.step(64)
        assert calls == ["pushpull 0", "pushpull 1"]

    Yields a list of strings, a method's name and the key; `set_optimizer` has no key. A
    call on several keys is one string. The calls reach the store unchanged.

    Developed in the chapter *The store by hand*.
    """
    calls, before = [], {name: vars(kv)[name] for name in METHODS if name in vars(kv)}
    for name in METHODS:
        setattr(kv, name, _recorded(getattr(kv, name), name, calls))
    try:
        yield calls
    finally:
        for name in METHODS:
            delattr(kv, name)  # restores the method of the class
        vars(kv).update(before)  # or what another recorder has set


def _recorded(method, name, calls):
    def call(*args, **options):
        key = args[0] if args else options.get("key")
        calls.append(name if name == "set_optimizer" else f"{name} {key}")
        return method(*args, **options)

    return call


def server_of(key, num_servers):
    """Return the rank of the server that holds a whole array: key · 9973 mod
    `num_servers`.

    `key`: an integer. MXNet numbers keys that are names 0, 1, … in the order in which
    they are initialized. For 2, 3, 4, 6, 9 and 12 servers this is key mod
    `num_servers`, as these numbers divide 9972.

    Raises `ValueError` for a key or a number of servers out of MXNet's range.
    """
    whole_number("num_servers", num_servers)
    if not 0 <= key < END_OF_KEYS:
        raise ValueError(f"key={key}: use a key from 0 to {END_OF_KEYS - 1}")
    return key * PRIME % num_servers


def shards(key, size, num_servers, bound=None):
    """Return the number of an array's `size` elements on each server: a list, by rank.

    Below `bound` elements (default: the variable's value here, or 1,000,000) all are
    on the server of the key. From `bound` on the array is cut into a shard for each
    server, whose sizes differ by at most one.

        shards(3, 999_999, 2)    [0, 999999]
        shards(3, 1_000_001, 2)  [500001, 500000]

    Raises `ValueError` as in `server_of`, and for a negative size.
    Source: `KVStoreDist::EncodeDefaultKey`, MXNet 1.9.1; dense arrays only. Developed
    in the chapter *Roles, keys and shards*.
    """
    whole_number("size", size, least=0)
    if bound is None:
        bound = int(os.environ.get(VARIABLE) or BOUND)
    holder = server_of(key, num_servers)
    if size < bound:
        return [size * (rank == holder) for rank in range(num_servers)]
    # Rounded half up, as in C: Python's round goes to even numbers.
    edges = [math.floor(size / num_servers * i + 0.5) for i in range(num_servers + 1)]
    return [stop - start for start, stop in zip(edges, edges[1:])]


def load(sizes, num_servers, bound=None):
    """Return the elements on each server of arrays 0, 1, … of these `sizes`."""
    rows = [shards(key, size, num_servers, bound) for key, size in enumerate(sizes)]
    return [sum(row[rank] for row in rows) for rank in range(num_servers)]
