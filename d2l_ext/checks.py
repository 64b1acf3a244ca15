"""Shared argument checks, with their error messages."""

from difflib import get_close_matches
from numbers import Integral, Real


def whole_number(what, value, least=1):
    """Raise `ValueError` unless `value`, called `what`, is a whole number."""
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_whole or value < least:
        raise ValueError(
            f"{what} must be a whole number of at least {least}, not {value!r}"
        )


def at_least_zero(name, value):
    """Raise `ValueError` unless `value` is a number of at least 0."""
    if not (isinstance(value, Real) and value >= 0):  # also for NaN
        raise ValueError(f"{name} must be a number of at least 0, not {value!r}")


def known_name(what, name, known, where=""):
    """Raise `ValueError`, with a suggestion, unless `name` is one of `known`.

    `where`: words that follow the name in the message, such as " in VARIABLE".
    """
    if name not in known:
        raise ValueError(
            f"unknown {what} {name!r}{where}: choose from {', '.join(known)}."
            f"{suggestion(name, known)}"
        )


def suggestion(name, known):
    """Return a sentence that suggests the closest of `known`, or an empty string."""
    close = get_close_matches(str(name).lower(), known, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""
