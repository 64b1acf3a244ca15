"""Star, tree, ring and halving side by side: all messages, round by round.

The page holds the messages of the library's algorithms, for each number of devices that
it can show.
"""

from d2l_ext.data_parallel import allreduce
from d2l_ext.data_parallel.allreduce import halving
from d2l_ext.data_parallel.allreduce.algorithm import algorithms

from . import frame

COUNTS = range(2, 17)  # of devices
NBYTES = 4 * 720_720  # of the array, whose numbers they all divide evenly
CONTROLS = (
    frame.Slider("devices", "Devices k", COUNTS[0], COUNTS[-1]),
    frame.Clock("Round", unit="round"),
)
#: The title of a panel -> the algorithm's name in the library.
PANELS = {"star": "naive", "tree": "tree", "ring": "ring", "halving": "halving"}
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
    """Return the figure for a notebook: four panels, and a slider for the rounds.

    `devices`: k, 2 to 16. `name`: its id in the page. Raises `ValueError` for what the
    figure cannot show. Developed in the chapter *Halving and doubling*.
    """
    return frame.figure("allreduce_ways", name, "Devices to show", CONTROLS,
                        {"devices": devices}, data())


def data():
    """Return the page's data, for JSON: `nbytes` of the array, `code`, and `ways`.

    `ways`: k -> way -> `of`, the number of chunks of an array, `rounds`: lists of
    messages [from, to, first chunk, number of chunks], and `add`: how many of the
    rounds, the first ones, add.
    """
    ways = {str(k): {panel: _way(name, k) for panel, name in PANELS.items()}
            for k in COUNTS}
    return {"nbytes": NBYTES, "code": CODE, "ways": ways}


def _way(name, k):
    schedule = algorithms()[name].schedule(k)
    return {"of": schedule.pieces, "rounds": schedule.rounds, "add": len(schedule.add)}
