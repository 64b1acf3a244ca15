"""Fit the constants of a model to measured times, with the error of each time."""

from dataclasses import dataclass

import numpy
from scipy.optimize import nnls

from .step import Link


@dataclass(frozen=True)
class Fit:
    """Non-negative `constants`, and the remaining errors.

    `residuals`: (predicted − measured) / measured, in the order of the rows: 0.1 is
    ten percent too long.
    """

    constants: tuple
    residuals: tuple


def least_squares(rows, seconds):
    """Return the constants c ≥ 0 with the smallest sum of squared relative errors: a
    `Fit`.

        least_squares([(1, nbytes) for nbytes in sizes], seconds)  # α and β

    `rows`: for each measurement, the factor of each constant. `seconds`: the measured
    times. The error of Σᵢ rowᵢ·cᵢ is relative to the time, so that a short time weighs
    as much as a long one. Method: Lawson and Hanson, *Solving
    Least Squares Problems* (1974).

    Raises `ValueError` for fewer measurements than constants, rows of different
    lengths, more or fewer rows than times, and times that are not above 0.
    Developed in *Fitting a cost model*.
    """
    A, t = _checked(rows, seconds)
    relative = A / t[:, None]
    largest = numpy.abs(relative).max(axis=0)  # bytes are millions, messages are ones
    scale = numpy.where(largest > 0, largest, 1)
    constants = nnls(relative / scale, numpy.ones(len(t)))[0] / scale
    return Fit(tuple(constants.tolist()), tuple((relative @ constants - 1).tolist()))


def link(sizes, seconds):
    """Return the `Link` of messages of `sizes` bytes in `seconds`, and its `Fit`."""
    found = least_squares([(1, size) for size in sizes], seconds)
    return Link(*found.constants), found


def _checked(rows, seconds):
    lengths = {len(row) for row in rows}
    if len(lengths) != 1 or len(rows) != len(seconds):
        raise ValueError(
            f"{len(rows)} rows of lengths {sorted(lengths)} for {len(seconds)} times: "
            "give one row per time, all of one length"
        )
    if len(rows) < min(lengths):
        raise ValueError(
            f"{len(rows)} measurements cannot determine {min(lengths)} constants: "
            "measure more configurations"
        )
    A, t = numpy.array(rows, dtype=float), numpy.array(seconds, dtype=float)
    if not (t > 0).all():
        raise ValueError(f"times must be above 0, not {t.min()}")
    return A, t
