"""The seconds in which a node of ps-lite drops its messages, with `PS_DROP_MSG`.

    unsigned seed = time(NULL) + my_node_.id;
    if (rand_r(&seed) % 100 < drop_rate_) …         // van.cc, for each message

The seed is made anew for each message, from the second. So within a second a node drops
all messages or none: it is deaf for whole seconds, which can be computed in advance.
"""

import ctypes
import time

from pslaunch.plan import node_id  # noqa: F401, for those who ask who is deaf

LIBC = ctypes.CDLL(None)


def draw(node, second):
    """Return the number, 0 to 99, that node `node` draws in this second of time."""
    seed = ctypes.c_uint(second + node)
    return LIBC.rand_r(ctypes.byref(seed)) % 100


def deaf(node, begin, seconds, percent):
    """Return whether the node is deaf, per second from `begin` on: a list of bools."""
    return [draw(node, int(begin) + i) < percent for i in range(seconds)]


def longest(pattern):
    """Return the largest number of deaf seconds in a row."""
    best = run = 0
    for silent in pattern:
        run = run + 1 if silent else 0
        best = max(best, run)
    return best


def one_second(node, after=6, within=6):
    """Return a coming second and a percentage, so that `node` is deaf then, and only
    then.

    The second is one of `within` seconds that begin `after` seconds from now; until
    two seconds later there is no other. Returns (second, percent): with that
    `PS_DROP_MSG` there is one short outage. May wait a few seconds for a good time.
    """
    while True:
        now = int(time.time())
        window = range(now + 2, now + after + within + 2)
        draws = {second: draw(node, second) for second in window}
        chosen = min(window[after - 2 : after - 2 + within], key=draws.get)
        if list(draws.values()).count(draws[chosen]) == 1 and (
            draws[chosen] == min(draws.values())
        ):
            return chosen, draws[chosen] + 1
        time.sleep(1)


def drawing(node, begin, seconds, percent):
    """Return a line of text: `#` for a second of deafness, `.` for others."""
    return "".join("#" if x else "." for x in deaf(node, begin, seconds, percent))
