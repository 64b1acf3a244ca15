"""Star, tree, ring and halving side by side: who sends what to whom, round by round.

The page holds the messages of the library's schedules, `allreduce.tree` and `ring` and
`halving.partners`, for each number of devices that it can show.
"""

from d2l_ext.data_parallel import allreduce, halving

from . import frame

COUNTS = range(2, 17)  # of devices
NBYTES = 4 * 720_720  # of the array, whose numbers they all divide evenly
CONTROLS = (
    frame.Slider("devices", "Devices k", COUNTS[0], COUNTS[-1]),
    frame.Clock("Round", unit="round"),
)
#: The lines that send: first towards the sum, then with it.
CODE = frame.listing(
    allreduce.allreduce, allreduce.allreduce_tree, allreduce.reduce_scatter,
    allreduce.allgather, halving.fold, halving.halve, halving.double, excerpt=True,
    **{"star +": "data[0][:] +=", "star =": "send(data[0], ",
       "tree +": "data[parent] +=", "tree =": "send(data[parent], data[child])",
       "ring +": ("partial = pass_on(", "partial[i] +="), "fold +": "x += send(",
       "ring =": ("sums = pass_on(", "write(sums, arr"), "fold =": "send(x, other)",
       "halving +": ("send(partial[j]", "half +="), "ring last": "send(sums[i - 1]",
       "halving =": ("x.copyto(wholes", "send(sums[j]")},
)


def figure(devices=6, name="allreduce-ways"):
    """The figure for a notebook: four panels, and a slider for the rounds.

    `devices`: k, 2 to 16. `name`: its id in the page. Raises `ValueError` for what the
    figure cannot show. Developed in the chapter *Halving and doubling*.
    """
    return frame.figure("allreduce_ways", name, "Devices to show", CONTROLS,
                        {"devices": devices}, data())


def data():
    """What the page holds, for JSON: `nbytes` of the array, `code`, and `ways`.

    `ways`: k -> way -> `of`, into how many chunks an array is cut, and `rounds`: lists
    of messages [from, to, first chunk, how many].
    """
    ways = {str(k): {name: make(k) for name, make in WAYS.items()} for k in COUNTS}
    return {"nbytes": NBYTES, "code": CODE, "ways": ways}


def _star(k):
    up = [[[i, 0, 0, 1]] for i in range(1, k)]
    return _way(1, up, _back(up)[::-1])


def _tree(k):
    up = [[[child, parent, 0, 1] for child, parent in row] for row in allreduce.tree(k)]
    return _way(1, up, _back(up))


def _ring(k):
    rows = [[[(i - 1) % k, i, c, 1] for i, c in enumerate(row)]
            for row in allreduce.ring(k)]
    return _way(k, rows[: k - 1], rows[k - 1 :])


def _halving(k):
    p = 2 ** (k.bit_length() - 1)
    fold = [[[i + p, i, 0, p] for i in range(k - p)]] if k > p else []
    # With a partner at distance d, a device keeps the d chunks among which its own is.
    halves = [[[j, i, i // abs(i - j) * abs(i - j), abs(i - j)]
               for i, j in enumerate(row)] for row in halving.partners(p)]
    return _way(p, fold + halves, _back(halves) + _back(fold))


def _way(of, add, copy):
    return {"of": of, "rounds": [*add, *copy], "add": len(add)}


def _back(rounds):
    """The same messages, from the last round to the first, and from `to` to `from`."""
    return [[[to, at, *chunks] for at, to, *chunks in row] for row in reversed(rounds)]


#: Way -> a function of k. The first is what the library calls naive.
WAYS = {"star": _star, "tree": _tree, "ring": _ring, "halving": _halving}
