"""The types of the flags' values, for `argparse`."""

import argparse

from d2l_ext.checks import suggestion

#: MXNet computes in float32, and rejects a setting beyond its range in the first step.
LARGEST = 3.4e38


def _fail(text, expected):
    raise argparse.ArgumentTypeError(f"{text!r}: expected {expected}")


def number(kind, is_right, expected):
    """Return a parser of numbers of type `kind` for which `is_right` holds."""

    def check(text):
        try:
            value = kind(text)
        except ValueError:
            _fail(text, expected)
        return value if is_right(value) else _fail(text, expected)

    return check


count = number(int, lambda n: n >= 1, "a whole number of at least 1")
seed = number(int, lambda n: 0 <= n < 2**31, "a whole number, 0 to 2^31 - 1")
#: As float32 has them.
positive = number(float, lambda x: 0 < x <= LARGEST,
                  f"a positive number of at most {LARGEST:g}")
not_negative = number(float, lambda x: 0 <= x <= LARGEST,
                      f"a number from 0 to {LARGEST:g}")
below_one = number(float, lambda x: 0 <= x < 1, "a number of at least 0 and below 1")
share = number(float, lambda x: 0 < x <= 1, "a positive number of at most 1")


def non_empty(text):
    """Return a non-empty string; an unset shell variable gives an empty one."""
    return text or _fail(text, "a name: this one is empty")


def words(text):
    """Return a list of words, separated by commas."""
    return [word.strip() for word in text.split(",")]


def numbers(text):
    """Return a list of whole numbers, separated by commas."""
    if not all(word.isdecimal() for word in words(text)):
        _fail(text, "numbers with commas between them, as in 0,2")
    return [int(word) for word in words(text)]


def ascending(text):
    """Return a list of ascending whole numbers from 1, separated by commas."""
    found = numbers(text)
    if sorted({*found, 0}) != [0, *found]:
        _fail(text, "ascending whole numbers of at least 1, as in 30,60")
    return found


def work_loads(text):
    """Return a list of relative speeds: positive numbers, separated by commas."""
    values = [positive(word) for word in words(text)]
    return [int(value) if value == int(value) else value for value in values]


def one_of(choices):
    """Return a parser of one of `choices`, which suggests one for a misspelled word."""

    def check(text):
        if text not in choices:
            _fail(text, f"one of {', '.join(choices)}.{suggestion(text, choices)}")
        return text

    return check
