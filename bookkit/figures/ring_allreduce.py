"""Ring allreduce, round by round: the sums and the sent bytes of each device.

The page holds the library's schedule, chunks and byte counts, from `allreduce.ring`,
`traffic` and `costs`, for all devices and arrays that it can show.
"""

from d2l_ext.data_parallel import allreduce, costs, traffic

from . import frame

MIN_DEVICES, MAX_DEVICES = 2, 8
#: Numbers in the array. 840 divide evenly by 2 to 8, the others not always.
SIZES = ("840", "1000", "10")
ITEMSIZE = 4
CODE = frame.listing(
    allreduce.reduce_scatter, allreduce.allgather, start="partial = [chunks",
    add=("partial = pass_on(", "partial[i] +="), own="write(sums, [(i + 1)",
    copy=("sums = pass_on(", "write(sums, arriving"), last="send(sums[i - 1]",
)
CONTROLS = (
    frame.Slider("devices", "Devices k", MIN_DEVICES, MAX_DEVICES),
    frame.Select("size", "Numbers in the array", SIZES),
    frame.Clock("Round", unit="round"),
)


def figure(devices=4, size=840, name="ring-allreduce"):
    """Return the figure for a notebook: chunks on devices, and a slider for the rounds.

    `devices`: k, 2 to 8. `size`: numbers in the array, 840, 1000 or 10, each of 4
    bytes. `name`: its id in the page; a page with two figures needs two names. Without
    scripts, the clock stands where the reduce-scatter ends, after k − 1 rounds.

    Raises `ValueError` for values that it cannot show.
    Developed in the chapter *Allreduce*.
    """
    choice = {"devices": devices, "size": str(size), "clock": devices - 1}
    return frame.figure(
        "ring_allreduce", name, "Allreduce to show", CONTROLS, choice, data()
    )


def data():
    """Return the page's data, for JSON: `code`, a `frame.listing`, and

    `rings`: k -> `allreduce.ring(k)`. `chunks`: "k,size" -> bytes of each chunk.
    `sent` and `naive`: "k,size" -> bytes that each device sends in all, in a ring and
    in the naive allreduce.
    """
    counts = range(MIN_DEVICES, MAX_DEVICES + 1)
    both = [(k, int(size)) for k in counts for size in SIZES]
    return {
        "code": CODE,
        "rings": {str(k): allreduce.ring(k) for k in counts},
        "chunks": {f"{k},{n}": _chunks(k, n) for k, n in both},
        "sent": {f"{k},{n}": _sent("ring", k, n) for k, n in both},
        "naive": {f"{k},{n}": _sent("naive", k, n) for k, n in both},
    }


def _chunks(k, size):
    return [(end - start) * ITEMSIZE for start, end in traffic.spans(size, k)]


def _sent(algorithm, k, size):
    return costs.expected(algorithm, k, size * ITEMSIZE, ITEMSIZE).sent
