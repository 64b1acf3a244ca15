"""Ring attention, round by round: where keys are, which devices compute or wait.

The page holds the library's orders and its `work`, the pairs under a causal mask.
"""

from d2l_ext.tensor_parallel import ring_attention

from . import frame

ORDERS = {"contiguous": ring_attention.contiguous, "zigzag": ring_attention.zigzag}
COUNTS = range(2, 9)  # of devices
CODE = frame.listing(
    ring_attention.forward, start="k, messages =", end="Os = [",
    round=("arriving = pass_on(", "state[a] = attend(", "messages = arriving"),
)
CONTROLS = (
    frame.Select("order", "Order", tuple(ORDERS)),
    frame.Slider("devices", "Devices k", COUNTS[0], COUNTS[-1]),
    frame.Clock("Round", unit="round"),
)


def figure(order="contiguous", devices=4, name="ring-rounds"):
    """Return the figure for a notebook: chunks on devices, their time, and the scores.

    `order`: `'contiguous'` or `'zigzag'`. `devices`: k, 2 to 8. `name`: its id in the
    page. Raises `ValueError` for values that it cannot show. Developed in the chapter
    *Long sequences*.
    """
    choice = {"order": order, "devices": devices}
    return frame.figure("ring_rounds", name, "Ring to show", CONTROLS, choice, data())


def data():
    """Return the page's data, for JSON: `code`; order -> k -> `at` and `pairs`.

    For each round and device: the chunks of its keys and values, and its number of
    pairs.
    """
    orders = {name: {str(k): _rounds(make(k)) for k in COUNTS}
              for name, make in ORDERS.items()}
    return {"code": CODE, **orders}


def _rounds(order):
    k = len(order)
    at = [[order[(i - r) % k] for i in range(k)] for r in range(k)]
    return {"at": at, "pairs": ring_attention.work(order, causal=True)}
