"""The α–β model of a message: a latency, and a time for each byte."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Link:
    """A message of n bytes takes `alpha` + n·`beta` seconds.

    `alpha`: latency, seconds. `beta`: seconds per byte, so the bandwidth is 1/β.
    Both from 0. Raises `ValueError` for a negative or unknown number.
    Source: Hockney, "The Communication Challenge for MPP" (1994).
    Developed in the chapter *Fitting a cost model*.
    """

    alpha: float
    beta: float

    def __post_init__(self):
        at_least_zero("alpha", self.alpha)
        at_least_zero("beta", self.beta)

    def seconds(self, nbytes, messages=1):
        """Seconds of `messages`, one after another, of `nbytes` in all."""
        return messages * self.alpha + nbytes * self.beta

    @property
    def half(self):
        """Bytes whose time is as long as the latency, α/β: half of the bandwidth."""
        return self.alpha / self.beta if self.beta else float("inf")


def network(gbit_per_second, latency=50e-6):
    """The `Link` of a network: 1, 10 or 100 Gbit/s; `latency` in seconds, 50 µs.

    Raises `ValueError` for a bandwidth that is not above 0.
    """
    if not gbit_per_second > 0:
        raise ValueError(f"a network needs a bandwidth above 0, not {gbit_per_second}")
    return Link(latency, 8 / (gbit_per_second * 1e9))


def at_least_zero(name, value):
    """Raise `ValueError` unless `value` is a number from 0."""
    if not value >= 0:  # also for NaN
        raise ValueError(f"{name} must be a number from 0, not {value!r}")
