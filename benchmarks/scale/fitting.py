"""Does the cost model predict steps that it was not fitted to? Measured, and compared.

    python -m benchmarks.scale.fitting
    python -m benchmarks.scale.fitting --passes 1 --only local ring

Cases of `benchmarks.scale.study`, all of them in each of several passes: those that
give the constants, and those that are predicted. How far two passes lie apart is the
noise, which no model can beat.
"""

import sys
from functools import partial
from statistics import median

from benchmarks import command, machine
from d2l_ext import runtime

from . import cases, study

#: What was aimed at: the relative error of the unseen cases.
MEDIAN, WORST = 0.10, 0.25


def entries(passes, cores):
    """Return a row per case: measured, predicted, how far apart; and the constants.

    `passes`: a list of dicts from case to seconds. Constants and measured times are
    those of the medians over the passes.
    """
    measured = {case: median(p[case] for p in passes) for case in passes[0]}
    known = {c: t for c, t in measured.items() if c not in study.UNSEEN}
    model = cases.calibrate(known, cores)
    rows = []
    for case, seconds in measured.items():
        ms = [1e3 * p[case] for p in passes]
        predicted = 1e3 * model.seconds(case)
        rows.append({
            "id": name(case), "use": "unseen" if case in study.UNSEEN else "fitted",
            "measured_ms": round(1e3 * seconds, 3),
            "predicted_ms": round(predicted, 3),
            "error": round(predicted / (1e3 * seconds) - 1, 4),
            "noise": round(max(ms) / min(ms) - 1, 4) if len(ms) > 1 else None,
            "passes_ms": [round(x, 3) for x in ms],
        })
    constants = {kind: list(found) for kind, found in model.constants.items()}
    return rows, constants


def name(case):
    """Return a case in words that fit a table: 'ring, 4, 5 MB'."""
    def word(x):
        if isinstance(x, int) and x >= 10**5:
            return f"{x / 10**6:g} MB"
        return "+".join(map(str, x)) if isinstance(x, tuple) else str(x)

    return ", ".join(map(word, case))


def bars(rows):
    """Return the aims, and what came out of the unseen cases; and the noise."""
    unseen = [abs(row["error"]) for row in rows if row["use"] == "unseen"]
    noise = [row["noise"] for row in rows if row["noise"] is not None]
    found = [
        ("median error of the unseen cases", MEDIAN, median(unseen)),
        ("worst error of the unseen cases", WORST, max(unseen)),
    ]
    listed = [{"what": what, "relation": "<=", "bar": bar, "value": round(value, 4),
               "reached": value <= bar} for what, bar, value in found]
    return listed, round(median(noise), 4) if noise else None


def measured(passes=3, rounds=7, steps=12, only=("",)):
    """Measure steps that a cost model is fitted to, and steps that it predicts."""
    chosen = [case for case in study.FITTED + study.UNSEEN
              if case[0].startswith(tuple(only))]
    if not any(case in study.UNSEEN for case in chosen):
        raise ValueError(f"--only {' '.join(only)} leaves nothing to predict")
    found = []
    with machine.watched() as quiet:
        for turn in range(passes):
            print(f"pass {turn + 1} of {passes}", file=sys.stderr)
            found.append(study.measure(chosen, rounds, steps))
    rows, constants = entries(found, runtime.cores())
    reached, noise = bars(rows)
    return {
        "quiet": quiet,
        "settings": {"passes": passes, "rounds": rounds, "steps": steps},
        "constants": constants,
        "rows": rows,
        "bars": reached,
        "noise": noise,
    }


def check(only, **_):
    """Raise `ValueError` if no case to predict begins with one of `only`."""
    if not any(case[0].startswith(tuple(only)) for case in study.UNSEEN):
        raise ValueError(f"--only {' '.join(only)} leaves nothing to predict")


main = partial(command.main, "cost_model", measured, check=check)

if __name__ == "__main__":
    sys.exit(main())
