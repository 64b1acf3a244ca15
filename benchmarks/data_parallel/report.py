"""The result as a dictionary for JSON, and as a table to read."""

from statistics import median

from benchmarks.measure import median_of_ratios, paired_ratios, round_medians, spread

from .rows import GLUON, ROWS, SCRATCH, TORCH

#: Pages that the system may hand out in a step before they count as a cause.
MOST_FAULTS = 50


def row_entries(run):
    """Return one entry per row of `rows.ROWS`, measured or missing with its reason.

    `run`: a `run.Run` that has measured.
    """
    figures = {id: round_medians(rounds) for id, rounds in run.turns.items()}
    entries = []
    for row in ROWS:
        entry = {"id": row.id, "name": row.name, "devices": row.devices,
                 "threads": row.threads, "cores": row.cores,
                 "baseline": row.baseline}
        if row.id in run.missing:
            entries.append({**entry, "missing": run.missing[row.id]})
            continue
        speed_up = None
        if row.baseline in figures:
            ratios = paired_ratios(figures[row.baseline], figures[row.id])
            speed_up = _rounded(spread(ratios))
        entries.append({
            **entry, "step_ms": _rounded(spread(figures[row.id])),
            "speed_up": speed_up, "page_faults": round(median(run.faults[row.id])),
            "loss": run.losses[row.id], "about": run.about[row.id],
            "rounds_ms": [[round(1e3 * s, 3) for s in turn]
                          for turn in run.turns[row.id]],
        })
    return entries


def bars(turns, faults):
    """Return what was aimed at, what was reached: a list of `dict`.

    `turns`, `faults`: of a `run.Run` that has measured. A bar whose rows were not all
    measured has `value` and `reached` None.
    """
    figures = {id: round_medians(rounds) for id, rounds in turns.items()}
    scratch, gluon = fastest(figures, SCRATCH), fastest(figures, GLUON)
    alone = {row.id: row.baseline for row in ROWS}
    best = fastest(figures, SCRATCH + GLUON)
    wanted = (
        ("the best step from scratch: its one device's time over two devices'", ">=",
         1.85, alone.get(scratch), scratch),
        ("Gluon hybridized: one device's time over two devices'", ">=", 1.88,
         "gluon-1", gluon),
        ("our best step on two devices, over PyTorch's fastest on two cores", "<=",
         0.95, best, fastest(figures, TORCH)),
        ("our best step on two devices, over JAX's", "<=", 0.8, best, "jax-2"),
    )
    entries = []
    for what, relation, bar, above, below in wanted:
        value = reached = None
        if above in figures and below in figures:
            value = median_of_ratios(figures[above], figures[below])
            reached = value >= bar if relation == ">=" else value <= bar
            value = round(value, 4)
        entries.append({"what": what, "rows": [above, below], "relation": relation,
                        "bar": bar, "value": value, "reached": reached})
    ours = {row.id: round(median(faults[row.id])) for row in ROWS
            if row.id in figures and not row.peer}
    most = max(ours, key=ours.get, default=None)
    entries.append({"what": "the most page faults in a step of ours, with memory kept",
                    "rows": [most, None], "relation": "<=", "bar": MOST_FAULTS,
                    "value": ours.get(most),
                    "reached": most and ours[most] <= MOST_FAULTS})
    return entries


def fastest(figures, ids):
    """Return the id among `ids` with the smallest median in `figures`, or None."""
    measured = [id for id in ids if id in figures]
    return min(measured, key=lambda id: spread(figures[id])["median"], default=None)


def _rounded(values):
    return {k: round(v, 4) for k, v in values.items()}
