"""Constants of a model from measured times, and how far each time is from it."""

from dataclasses import dataclass
from itertools import combinations

import numpy

from .link import Link


@dataclass(frozen=True)
class Fit:
    """`constants`, none below 0, and what they make of the measurements.

    `measured`, `predicted`: seconds, in the order of the rows.
    """

    constants: tuple
    measured: tuple
    predicted: tuple

    @property
    def residuals(self):
        """(predicted − measured) / measured, a list: 0.1 is ten percent too long."""
        return errors(self.predicted, self.measured)


def errors(predicted, measured):
    """Relative errors, a list. Raises `ValueError` for a time that is not above 0."""
    if not all(m > 0 for m in measured):
        raise ValueError(f"times must be above 0, not {min(measured)}")
    return [(p - m) / m for p, m in zip(predicted, measured)]


def least_squares(rows, seconds):
    """The constants c ≥ 0 with the smallest sum of squared relative errors: a `Fit`.

        least_squares([(1, nbytes) for nbytes in sizes], seconds)  # α and β

    `rows`: for each measurement, how often each constant occurs in it. `seconds`:
    the measured times. The error of Σᵢ rowᵢ·cᵢ counts relative to the time, so that
    a short time weighs as much as a long one.

    A constant that would be negative is left out: all subsets are tried, which is
    cheap for the two to four constants that a model here has.

    Raises `ValueError` for fewer measurements than constants, rows of different
    lengths, and times that are not above 0. Developed in *Fitting a cost model*.
    """
    A, t = _checked(rows, seconds)
    weighted, ones = A / t[:, None], numpy.ones(len(t))
    best, least = numpy.zeros(A.shape[1]), float(len(t))
    for size in range(1, A.shape[1] + 1):
        for chosen in map(list, combinations(range(A.shape[1]), size)):
            found = _solve(weighted[:, chosen], ones)
            error = float(((weighted[:, chosen] @ found - 1) ** 2).sum())
            if (found >= 0).all() and error < least - 1e-12:
                best, least = numpy.zeros(A.shape[1]), error
                best[chosen] = found
    return Fit(*(tuple(map(float, x)) for x in (best, t, A @ best)))


def link(sizes, seconds):
    """The `Link` of messages of `sizes` bytes that took `seconds`, and its `Fit`."""
    found = least_squares([(1, size) for size in sizes], seconds)
    return Link(*found.constants), found


def _solve(A, b):
    # Columns of one size: bytes are millions, messages are ones.
    scale = numpy.abs(A).max(axis=0)
    scale[scale == 0] = 1
    return numpy.linalg.lstsq(A / scale, b, rcond=None)[0] / scale


def _checked(rows, seconds):
    lengths = {len(row) for row in rows}
    if len(lengths) != 1 or len(rows) != len(seconds):
        raise ValueError(
            f"{len(rows)} rows of lengths {sorted(lengths)} for {len(seconds)} times: "
            "give a row of one length for each time"
        )
    if len(rows) < min(lengths):
        raise ValueError(
            f"{len(rows)} measurements cannot tell {min(lengths)} constants: "
            "measure more configurations"
        )
    A, t = numpy.array(rows, dtype=float), numpy.array(seconds, dtype=float)
    if not (t > 0).all():
        raise ValueError(f"times must be above 0, not {t.min()}")
    return A, t
