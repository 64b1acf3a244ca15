"""Statistics of turns taken one after another, and the check before any of them."""

import math
from statistics import median

#: How far the losses of two rows may lie apart after the same steps.
TOLERANCE = 1e-4


class Disagreement(RuntimeError):
    """Two rows do not train the same network, so their times mean nothing."""


def round_medians(turns):
    """Return one figure per round: the median of each turn's seconds, in milliseconds.

    `turns`: a list per round of seconds per step.
    """
    return [1e3 * median(seconds) for seconds in turns]


def spread(values):
    """Return `{"median", "min", "max"}` of a list that is not empty."""
    return {"median": median(values), "min": min(values), "max": max(values)}


def paired_ratios(above, below):
    """Return `above[r] / below[r]` for every round r.

    The two were measured within the same seconds, so what slows the machine
    for a while cancels out; it would not in a ratio of two medians.
    Raises `ValueError` when the rounds are not the same, or there are none.
    """
    if len(above) != len(below) or not above:
        raise ValueError(
            f"{len(above)} rounds cannot be paired with {len(below)}: both rows "
            "must have been measured in the same rounds, at least one"
        )
    return [a / b for a, b in zip(above, below)]


def median_of_ratios(above, below):
    """Return the median of `paired_ratios`: how many times longer `above` takes."""
    return median(paired_ratios(above, below))


def check_agreement(before, after, tolerance=TOLERANCE):
    """Refuse rows whose losses differ after the same steps from the same start.

    `before`, `after`: the loss by row id. Returns how far the losses `after` lie
    apart. Raises `Disagreement` when either lie further apart than `tolerance`,
    or when the steps moved the loss too little for a difference to show.
    """
    for when, losses in (("before the first step", before), ("after", after)):
        apart = max(losses.values()) - min(losses.values())
        # NaN hides from max and min, and only sometimes from their difference.
        if apart > tolerance or not all(map(math.isfinite, losses.values())):
            listed = ", ".join(f"{k} {v:.6f}" for k, v in losses.items())
            raise Disagreement(
                f"The rows do not train the same network: their losses {when} lie "
                f"{apart:.1e} apart, more than {tolerance:.0e} ({listed}). "
                "No time was measured."
            )
    moved = min(before[row] - after[row] for row in before)
    if moved < 100 * tolerance:
        raise Disagreement(
            f"The steps moved the loss by {moved:.1e} only: too little to tell a "
            "right step from a wrong one. Take another batch size."
        )
    return max(after.values()) - min(after.values())


def check_trained(before, final):
    """Refuse rows whose loss rose, or is no number, at the end of the run."""
    bad = [k for k, v in final.items() if not (math.isfinite(v) and v < before[k])]
    if bad:
        raise Disagreement(
            "The loss did not fall during the run in: "
            + ", ".join(f"{k} ({before[k]:.4f} to {final[k]:.4f})" for k in bad)
        )
