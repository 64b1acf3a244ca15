"""The puzzles: the count of each, its target, and the best known solution.

`steps`, `messages` and `plans` hold them, with the simulators that count, on which
readers can try their code.
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
