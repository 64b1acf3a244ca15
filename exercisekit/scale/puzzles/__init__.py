"""The puzzles: what each counts, its target, and the best that is known.

`steps`, `messages` and `plans` hold them, with the machines that count, so that a
reader can try code on these.
"""

from . import messages, plans, steps
from .plans import (
    BACKWARD,
    CAP,
    GRADIENTS,
    KEYS,
    LATENCY,
    LAYERS,
    exposed,
    loads,
    stage,
    ticks,
)
from .steps import TRAINER

__all__ = [
    "BACKWARD", "CAP", "GRADIENTS", "KEYS", "LATENCY", "LAYERS", "TRAINER",
    "exposed", "loads", "stage", "ticks",
]

QUESTIONS = dict(
    sorted({**steps.QUESTIONS, **messages.QUESTIONS, **plans.QUESTIONS}.items())
)
