"""What a flag's text may be: functions for the `type` of an argument."""

import argparse
from difflib import get_close_matches

#: MXNet computes in float32, and refuses a setting beyond it, in the first step.
LARGEST = 3.4e38


def _fail(text, expected):
    raise argparse.ArgumentTypeError(f"{text!r}: expected {expected}")


def _number(kind, text, is_right, expected):
    try:
        value = kind(text)
    except ValueError:
        _fail(text, expected)
    return value if is_right(value) else _fail(text, expected)


def count(text):
    """A whole number from 1."""
    return _number(int, text, lambda n: n >= 1, "a whole number from 1")


def from_0(text):
    """A whole number from 0."""
    return _number(int, text, lambda n: n >= 0, "a whole number from 0")


def seed(text):
    """A seed, as NumPy and MXNet both take it."""
    return _number(int, text, lambda n: 0 <= n < 2**31, "a whole number, 0 to 2^31 - 1")


def positive(text):
    """A number above 0, as float32 has it."""
    return _number(float, text, lambda x: 0 < x <= LARGEST,
                   f"a positive number, {LARGEST:g} at most")  # fmt: skip


def not_negative(text):
    """A number from 0, as float32 has it."""
    return _number(float, text, lambda x: 0 <= x <= LARGEST,
                   f"a number from 0 to {LARGEST:g}")  # fmt: skip


def filled(text):
    """Any text but an empty one, as a variable gives that is not set."""
    return text or _fail(text, "a name: this one is empty")


def words(text):
    """Words with commas between them, as a list."""
    return [word.strip() for word in text.split(",")]


def numbers(text):
    """Whole numbers with commas between them, as a list."""
    if not all(word.isdecimal() for word in words(text)):
        _fail(text, "numbers with commas between them, as in 0,2")
    return [int(word) for word in words(text)]


def loads(text):
    """Relative speeds: positive numbers with commas between them, as a list."""
    values = [positive(word) for word in words(text)]
    return [int(value) if value == int(value) else value for value in values]


def one_of(choices):
    """A function that takes one of `choices`, and suggests one for a typing error."""

    def check(text):
        if text not in choices:
            close = get_close_matches(text.lower(), choices, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            _fail(text, f"one of {', '.join(choices)}.{hint}")
        return text

    return check
