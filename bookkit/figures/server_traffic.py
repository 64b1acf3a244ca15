"""Workers and servers at work, tick by tick: messages, bytes, waiting, staleness.

The page holds the result of `ps_run.run` for every choice.
"""

from dataclasses import fields
from string import ascii_letters, digits

from . import frame, ps_run

MAX_WORKERS, MAX_SERVERS, MAX_KEYS, MAX_SLOW = 4, 3, len(ps_run.SIZES), 3
CONTROLS = (
    frame.Select("mode", "Store", ps_run.MODES),
    frame.Slider("workers", "Workers", 1, MAX_WORKERS),
    frame.Slider("servers", "Servers", 1, MAX_SERVERS),
    frame.Slider("keys", "Keys", 1, MAX_KEYS),
    frame.Slider("slow", "Last worker slower ×", 1, MAX_SLOW),
    frame.Clock(unit="tick"),
)
#: What is known of a push and its pull.
FIELDS = [field.name for field in fields(ps_run.Exchange)]
#: A character for each number from 0; `-` stands for None.
CODE = digits + ascii_letters


def figure(mode="dist_sync", workers=3, servers=2, keys=2, slow=3, clock=20,
           name="server-traffic"):
    """Return the figure for a notebook: controls, a drawing, and its explanation in
    words.

    `mode`: `'dist_sync'` or `'dist_async'`. `workers`: 1 to 4, `servers`: 1 to 3,
    `keys`: 1 to 3. `slow`: how many times as long the last worker computes, 1 to 3.
    These are the initial choice, the only one without scripts. `clock`: 0 to 60, where
    the clock stands without scripts; with them, it begins at 0.
    `name`: its id in the page; a page with two figures needs two names.

    Raises `ValueError` for values that it cannot show.
    Developed in the chapter *Out of step*.
    """
    choice = {"mode": mode, "workers": workers, "servers": servers, "keys": keys,
              "slow": slow, "clock": clock}
    return frame.figure(
        "server_traffic", name, "Job to show", CONTROLS, choice, data()
    )


def data():
    """Return all runs that can be chosen, for JSON.

    `runs`: "mode,workers,servers,keys,slow" -> a `run_as_text`, with `fields` and
    `code`. `values`: for each number of servers, `ps_run.values_bytes` of it.
    `compute`, `flight`, `end`: of `ps_run`, in ticks.
    """
    runs = {
        f"{mode},{workers},{servers},{keys},{slow}": run_as_text(
            ps_run.run(workers, servers, keys, mode, slow)
        )
        for mode in ps_run.MODES
        for workers in range(1, MAX_WORKERS + 1)
        for servers in range(1, MAX_SERVERS + 1)
        for keys in range(1, MAX_KEYS + 1)
        for slow in range(1, MAX_SLOW + 1)
    }
    values = {str(n): ps_run.values_bytes(n) for n in range(1, MAX_SERVERS + 1)}
    return {"runs": runs, "fields": FIELDS, "code": CODE, "values": values,
            "compute": ps_run.COMPUTE, "flight": ps_run.FLIGHT,
            "end": ps_run.END}


def run_as_text(run):
    """Return a run in characters: each worker's starts, `|`, one for each field."""
    begins = " ".join("".join(map(_letter, ticks)) for ticks in run.begins)
    exchanges = "".join(
        _letter(getattr(e, field)) for e in run.exchanges for field in FIELDS
    )
    return f"{begins}|{exchanges}"


def _letter(number):
    return "-" if number is None else CODE[number]
