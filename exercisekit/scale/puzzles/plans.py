"""Puzzles on plans: which device holds which data, and does which work when."""

import functools
import itertools

import numpy

from ...kvstore import roles_keys_shards
from ...question import of_case, shown
from .puzzle import Puzzle

#: Megabytes of each key.
KEYS = (12, 7, 8, 7, 11, 2, 10, 9)


def place(sizes, servers):
    """Try every way to place the keys; the first one's server does not matter."""
    ways = itertools.product(range(servers), repeat=len(sizes) - 1)
    ways = ([0, *way] for way in ways)
    return min(ways, key=lambda way: max(loads(sizes, way, servers)))


def loads(sizes, way, servers):
    """Return the megabytes on each server if key i is on server `way[i]`."""
    return [sum(s for s, at in zip(sizes, way) if at == i) for i in range(servers)]


def _measure_place(function):
    way = [*function(list(KEYS), 3)]
    if len(way) != len(KEYS) or not {*way} <= {0, 1, 2}:
        yield f"{shown(way)} is not a server, 0 to 2, for each of {len(KEYS)} keys."
    else:
        yield max(loads(KEYS, way, 3))


#: Per layer: ticks of its backward, and ticks of its gradient on the link.
BACKWARD, GRADIENTS = (4, 5, 3, 1, 3, 3, 5, 4), (5, 2, 2, 5, 3, 2, 5, 2)
#: Ticks that each message takes in addition.
LATENCY = 3


def hide(backward, gradients, latency):
    """Try every way to cut the layers, from the last one on, into buckets."""
    last, ways = len(backward) - 1, []
    for cuts in itertools.product([False, True], repeat=last):
        way = [[last]]
        for i, new in zip(range(last - 1, -1, -1), cuts):
            if new:
                way.append([])
            way[-1].append(i)
        ways.append(way)
    return min(ways, key=lambda way: exposed(way, backward, gradients, latency))


def exposed(buckets, backward, gradients, latency):
    """Return the ticks in which the link is busy after backward, by buckets."""
    made = numpy.cumsum(backward[::-1])[::-1]  # when each layer's gradient is ready
    free = 0
    for bucket in buckets:
        ready = max(made[i] for i in bucket)
        free = max(free, ready) + latency + sum(gradients[i] for i in bucket)
    return int(free - made[0])


def _up_to(limit):
    """Fill buckets, from the last layer on, up to `limit` ticks of gradients."""

    def filled(backward, gradients, latency):
        way = [[]]
        for i in reversed(range(len(gradients))):
            if sum(gradients[j] for j in way[-1]) + gradients[i] > limit:
                way.append([])
            way[-1].append(i)
        return [bucket for bucket in way if bucket]

    return filled


def _measure_hide(function):
    way = [[*bucket] for bucket in function(BACKWARD, GRADIENTS, LATENCY)]
    if sorted(i for bucket in way for i in bucket) != [*range(len(BACKWARD))]:
        yield f"{shown(way)} does not have each of {len(BACKWARD)} layers once."
    elif [] in way:
        yield f"{shown(way)} has an empty bucket."
    else:
        yield exposed(way, BACKWARD, GRADIENTS, LATENCY)


#: Devices, micro-batches, and how many of them a device may hold (from F to W).
STAGES, BATCHES, HELD = 3, 4, 2


def schedule():
    """Return a schedule found by a search of all schedules, tick by tick."""
    return [
        row.split() for row in (
            "F0 F1 B0 W0 B1 F2 W1 F3 B2 W2 B3 W3",
            "F0 F1 B0 W0 B1 W1 F2 F3 B2 W2 B3 W3",
            "F0 B0 F1 B1 W0 W1 F2 B2 F3 B3 W2 W3",
        )
    ]


def ticks(plan):
    """Return (ticks, peak number held by each device) if each device works in list
    order.

    An entry takes a tick. F waits for the previous device's F, B for its own F and the
    next device's B, W for its own B. Raises `ValueError` if all devices wait forever.
    """
    last, left, now = len(plan) - 1, [[*row] for row in plan], 0
    held, most, done = [0] * len(plan), [0] * len(plan), set()
    while any(left):
        ready = []
        for s, (kind, m) in ((s, row[0]) for s, row in enumerate(left) if row):
            needs = {"F": {(s - 1, "F", m)} if s else set(),
                     "B": {(s, "F", m)} | ({(s + 1, "B", m)} if s < last else set()),
                     "W": {(s, "B", m)}}[kind]
            if needs <= done:
                ready.append((s, kind, m))
        if not ready:
            following = ", ".join(row[0] for row in left if row)
            after = of_case("after {} ticks", (now,))
            raise ValueError(f"every device waits forever {after}, before {following}")
        for s, kind, m in ready:
            done.add((s, kind, m))
            left[s].pop(0)
            held[s] += (kind == "F") - (kind == "W")
            most[s] = max(most[s], held[s])
        now += 1
    return now, most


def _in_turn(ahead, join="BWF"):
    """Stage s does `ahead[s]` forwards, then the kinds in `join` alternately."""

    def rows():
        for first in ahead:
            row = [f"F{m}" for m in range(first)]
            for m in range(BATCHES):
                row += [f"{k}{m + first * (k == 'F')}" for k in join]
            yield [entry for entry in row if int(entry[1:]) < BATCHES]

    return lambda: [*rows()]


def _measure_schedule(function):
    plan = [row if isinstance(row, str) else [*row] for row in function()]
    whole = sorted(f"{kind}{m}" for kind in "FBW" for m in range(BATCHES))
    wrong = [shown(row) for row in plan if sorted(row) != whole]
    if wrong or len(plan) != STAGES:
        one = f", and one is {wrong[0]}" if wrong else ""
        yield (f"Expected: {STAGES} lists, with each of F0 to W{BATCHES - 1} once. It "
               f"returns {len(plan)}{one}.")
    else:
        now, held = ticks(plan)
        full = f"The devices hold up to {shown(held)} micro-batches, not {HELD}."
        yield full if max(held) > HELD else now


#: Per layer: ticks of its forward, gigabytes of its states and of its activations.
LAYERS = ((4, 1, 1), (1, 3, 1), (4, 3, 2), (2, 4, 1), (3, 1, 3),
          (1, 1, 3), (1, 2, 3), (4, 4, 1), (1, 3, 1), (2, 1, 1))
#: Gigabytes of each device.
CAP = 16


def fit(layers, cap):
    """Return, for each possible stage, the best choice of what to compute again."""

    @functools.lru_cache(None)
    def best(first, last, held):
        inside = range(first, last)
        ways = [w for r in range(len(inside) + 1)
                for w in itertools.combinations(inside, r)]
        costs = [(*stage(layers, inside, way, held), way) for way in ways]
        return min(
            ((t, way) for t, gb, way in costs if gb <= cap), default=(numpy.inf, ())
        )

    plans = []
    for cuts in itertools.combinations(range(1, len(layers)), 3):
        ends = [0, *cuts, len(layers)]
        each = [best(*ends[s : s + 2], 4 - s) for s in range(4)]
        again = [i for _, way in each for i in way]
        plans.append((max(t for t, _ in each), [*cuts], again))
    return min(plans)[1:]


def stage(layers, inside, again, held):
    """Return (ticks, gigabytes) of a stage with the layers `inside`; some compute
    `again`.

    Backward takes twice as long as forward. The activations of `held` micro-batches
    are retained; of layers that compute again, those of one micro-batch of the largest.
    """
    at = [i for i in inside if i in again]
    took = sum(3 * layers[i][0] for i in inside) + sum(layers[i][0] for i in at)
    kept = held * sum(layers[i][2] for i in inside if i not in again)
    largest = max((layers[i][2] for i in at), default=0)
    return took, sum(layers[i][1] for i in inside) + kept + largest


def _cut_at(cuts, again):
    return lambda layers, cap: (list(cuts), list(again))


def _measure_fit(function):
    cuts, again = map(list, function(LAYERS, CAP))
    ends = [0, *cuts, len(LAYERS)]
    if len(cuts) != 3 or sorted({*ends}) != ends:
        yield f"{shown(cuts)} is not a list of three cuts between {len(LAYERS)} layers."
        return
    if not all(i in range(len(LAYERS)) for i in again):
        yield f"{shown(again)} is not a list of layers, 0 to {len(LAYERS) - 1}."
        return
    each = [stage(LAYERS, range(*ends[s : s + 2]), again, 4 - s) for s in range(4)]
    full = [f"device {s} needs {gb} GB" for s, (_, gb) in enumerate(each) if gb > CAP]
    yield f"Of {CAP} GB, {', '.join(full)}." if full else max(t for t, _ in each)


QUESTIONS = {
    2: Puzzle.of(
        "Keys over servers", "a function `place(sizes, servers)`",
        place, _measure_place, ("MB on the busiest server", 29, 23, 22, 22), [
            (lambda sizes, servers: [i % servers for i in range(len(sizes))],
             "If all servers were equally full, how much would each hold?"),
            (roles_keys_shards.in_order, "Large keys that come late find no room."),
            (roles_keys_shards.place,
             "The largest first is a good rule, but not the best for these keys."),
            (lambda sizes, servers: [0, 0, 0, 1, 1, 1, 2, 2],
             "A more even placement exists; a server's keys need not be neighbours."),
            (lambda sizes, servers: loads(sizes, place(sizes, servers), servers),
             "These are megabytes. Return a server for each key."),
        ],
    ),
    7: Puzzle.of(
        "Hide this exchange", "a function `hide(backward, gradients, latency)`",
        hide, _measure_hide, ("Ticks after backward", 29, 16, 14, 14), [
            (_up_to(99), "A single bucket starts when backward has ended."),
            (_up_to(0),
             "Each message pays the latency. Would fewer, or other cuts, be better?"),
            (_up_to(7),
             "Compare the first bucket with the last: should their sizes be alike?"),
            (lambda *given: [[7, 6, 5, 4, 3, 2], [1, 0]],
             "When does the first message start? What does the link do until then?"),
            (lambda *given: [[0, 1, 2], [3, 4, 5], [6, 7]],
             "Backward starts at the last layer, so this first bucket waits for all."),
            (lambda *given: hide(*given)[:-1], "The other layers have gradients, too."),
        ],
    ),
    10: Puzzle.of(
        "A schedule in little memory", "a function `schedule()`",
        schedule, _measure_schedule, ("Ticks", 28, 18, 17, 17), [
            (_in_turn((1, 1, 1)),
             "One micro-batch at a time goes through all devices."),
            (_in_turn((2, 2, 1)),
             "Where does a device wait? Do a W there, or another device's B earlier."),
            (_in_turn((3, 2, 1)), "1F1B needs more memory on the first device."),
            (_in_turn((4, 4, 4)), "GPipe holds all four micro-batches."),
            (_in_turn((2, 2, 2), "WBF"), "A micro-batch's W comes after its B."),
            (_in_turn((2, 2, 2), "BF"), "The weights need their gradients, too."),
        ],
    ),
    11: Puzzle.of(
        "Ten layers on four devices", "a function `fit(layers, cap)`",
        fit, _measure_fit, ("Ticks of the slowest stage", 28, 22, 21, 21), [
            (_cut_at((1, 3, 7), range(10)),
             "A layer that computes again costs a third more. Which ones have to?"),
            (_cut_at((1, 3, 7), ()),
             "With these cuts, some layers must compute again."),
            (_cut_at((1, 3, 7), (4, 5, 6)),
             "Is there a cheaper choice for these cuts? If not, try others."),
            (_cut_at((2, 5, 8), ()),
             "No cut into two or three layers each fits without computing again."),
            (_cut_at((2, 4, 6), ()),
             "No cut is better without computing again. Which layers should do so?"),
            (_cut_at((2, 4, 10), ()), "The last stage is empty."),
        ],
    ),
}
