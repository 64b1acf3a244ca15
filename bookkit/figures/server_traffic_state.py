"""What workers and servers do in a tick of the clock, read from a run.

Every function has its twin of the same name in `server_traffic.js`. `d`: what `state`
returns. `t`: the number of a tick, -1 before the first.
"""

from string import ascii_letters, digits

#: What is known of a push and its pull, as in `ps_run.Exchange`.
FIELDS = ("worker", "key", "server", "pushed", "handled", "answered", "asked", "given",
          "stale")  # fmt: skip
#: The four messages of an exchange: name -> (tick of departure, up, with values).
MESSAGES = {
    "push": ("pushed", True, True), "answer to the push": ("answered", False, False),
    "pull": ("asked", True, False), "weights": ("given", False, True),
}  # fmt: skip
#: A character for each number from 0; `-` stands for None.
CODE = digits + ascii_letters


def state(data, choice):
    """The run that is chosen: `begins` and `exchanges` as in `ps_run`, and `values`."""
    names = ("mode", "workers", "servers", "keys", "slow")
    begins, packed = data["runs"][",".join(str(choice[n]) for n in names)].split("|")
    numbers = [None if c == "-" else CODE.index(c) for c in packed]
    n = len(FIELDS)
    return {
        **choice,
        "begins": [[CODE.index(c) for c in ticks] for ticks in begins.split(" ")],
        "exchanges": [
            dict(zip(FIELDS, numbers[i : i + n])) for i in range(0, len(numbers), n)
        ],
        "values": data["values"][str(choice["servers"])][: choice["keys"]],
        "compute": data["compute"], "flight": data["flight"], "end": data["end"],
    }  # fmt: skip


def spans(d, worker):
    """For each step of the worker the ticks in which it computes: (first, last + 1)."""
    long = d["compute"] * (d["slow"] if worker == d["workers"] - 1 else 1)
    return [(begin, min(begin + long, d["end"])) for begin in d["begins"][worker]]


def computes(d, worker, t):
    """The number of the step that the worker computes in tick `t`, or None."""
    for step, (start, end) in enumerate(spans(d, worker)):
        if start <= t < end:
            return step
    return None


def under_way(d, t):
    """The messages that fly in tick `t`: (name, exchange, ticks since it left)."""
    return [
        (name, e, t - e[field])
        for e in d["exchanges"]
        for name, (field, _, _) in MESSAGES.items()
        if happened(e[field], t) and t < e[field] + d["flight"]
    ]


def nbytes(d, name, e):
    """Bytes of a message without its header, as ps-lite logs them."""
    if MESSAGES[name][2]:
        return d["values"][e["key"]][e["server"]]
    return 8 if name == "pull" else 0


def traffic(d, server, t):
    """Bytes that have arrived at the server by tick `t`, and bytes that have left."""
    into = out = 0
    for e in d["exchanges"]:
        for name, (field, up, _) in MESSAGES.items():
            landed = t - d["flight"] if up else t
            if e["server"] == server and happened(e[field], landed):
                into += up * nbytes(d, name, e)
                out += (not up) * nbytes(d, name, e)
    return into, out


def kept(d, server, t):
    """Pushes that the server has not answered yet: (key, workers) of each such key."""
    waiting = [
        e for e in d["exchanges"]
        if e["server"] == server and happened(e["handled"], t)
        and not happened(e["answered"], t)
    ]  # fmt: skip
    keys = [(key, [e["worker"] for e in waiting if e["key"] == key])
            for key in range(d["keys"])]  # fmt: skip
    return [(key, workers) for key, workers in keys if workers]


def updates(d, server, t):
    """Updates that the server has made: pushes that it answered at once made them."""
    return sum(
        e["server"] == server and happened(e["handled"], t)
        and e["answered"] == e["handled"]
        for e in d["exchanges"]
    )  # fmt: skip


def waits(d, worker, t):
    """What the worker waits for: (words, keys), first of pushes and then of pulls."""
    pushes, pulls = set(), set()
    for e in d["exchanges"]:
        sent = e["worker"] == worker and happened(e["pushed"], t)
        if sent and not happened(e["given"], t - d["flight"]):
            answered = happened(e["answered"], t - d["flight"])
            (pulls if answered else pushes).add(e["key"])
    # A cut key is asked for when all its servers have answered the push.
    found = ("the answer to its push", pushes), ("the weights", pulls - pushes)
    return [(words, sorted(keys)) for words, keys in found if keys]


def happened(tick, t):
    return tick is not None and tick <= t
