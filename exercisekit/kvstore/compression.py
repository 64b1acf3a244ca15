"""Exercises of the chapter *Gradient compression*."""

from math import inf, nan

import numpy

from d2l_ext.kvstore import compression

from ..question import Question, Task, by_cases, compared, shown


def _values(codes, t):
    value = {0b11: t, 0b10: -t, 0b00: 0}
    return numpy.array([value[code] for code in codes], dtype="float32")


def _codes(numbers, t):
    return [0b11 if x >= t else 0b10 if x <= -t else 0b00 for x in numbers]


def unpacked(message, size, t):
    """Return the numbers for the four codes of each byte, highest bits first."""
    codes = [byte >> shift & 0b11 for byte in message for shift in (6, 4, 2, 0)]
    return _values(codes[:size], t)


def _message(codes):
    return compression.pack(numpy.array(codes, "uint8")).tobytes()


def safe_sender(t):
    """Return a sender whose residual never gets a number that is not finite."""
    residual = 0

    def compress(gradient):
        nonlocal residual
        total = residual + numpy.where(numpy.isfinite(gradient), gradient, 0)
        codes = _codes(total, t)
        residual = total - _values(codes, t)
        return codes, residual

    return compress


def _judge_safe(function, t, gradients):
    compress, expected = function(t), safe_sender(t)
    for n, gradient in enumerate(map(numpy.array, gradients), 1):
        given = gradient.copy()
        (codes, residual), (right, left) = compress(given), expected(gradient)
        if (found := [int(code) for code in codes]) != right:
            return f"for gradient {n} the codes are {found} instead of {right}."
        if not numpy.allclose(numpy.asarray(residual, float), left):
            return (f"for gradient {n} the residual is {shown(residual)} instead of "
                    f"{shown(left)}.")
        if not numpy.array_equal(given, gradient, equal_nan=True):
            return f"it changes gradient {n} itself."
    return ""


def _lowest_first(message, size, t):
    codes = [byte >> shift & 0b11 for byte in message for shift in (0, 2, 4, 6)]
    return _values(codes[:size], t)


def _sender(t, cleaned):
    """Return a sender that adds `cleaned(gradient)` to its residual."""
    residual = 0

    def compress(gradient):
        nonlocal residual
        total = residual + cleaned(gradient)
        codes = _codes(total, t)
        residual = total - _values(codes, t)
        return codes, residual

    return compress


QUESTIONS = {
    1: Question(
        "the length of the message in bytes",
        250_004,
        [
            (250_000, "The last three weights need a word, too."),
            (250_001, "The message is made of whole words of 4 bytes."),
            (62_501, "That is the number of words. A word has 4 bytes."),
            (4_000_012, "That is without compression."),
        ],
    ),
    2: Task(
        "a function `unpacked(message, size, t)`",
        unpacked,
        [
            (lambda message, size, t: unpacked(message, 4 * len(message), t),
             "Zeros fill the last word: return only `size` numbers."),
            (_lowest_first, "The first of four codes is in the highest bits."),
            (lambda message, size, t: -unpacked(message, size, t),
             "The signs are swapped: 11 stands for t, 10 for -t."),
        ],
        judge=compared(unpacked, [
            (_message(codes), len(codes), t) for codes, t in (
                ([3], 0.5), ([0, 2], 0.3), ([3, 0, 2, 3, 2, 0, 0], 0.5),
                ([2, 3, 0, 3] * 4, 0.25), ([2] + [3] * 16, 1.5))
        ], tolerance=1e-6),
    ),
    3: Question(
        "the residual, in the units of the gradient",
        30,
        [
            (0.3, "That is the residual after one step. It grows."),
            (0, "The sender can send at most the threshold per step."),
            (80, "That is the sum of the gradients. Subtract what was sent."),
            (50, "That was sent. How much of 80 is left?"),
        ],
        tolerance=0.005,
    ),
    4: Question(
        "a bandwidth in Gbit/s",
        8 / (0.011 / (32e6 - 1.5 * 17e6)) / 1e9,
        [
            (0.59, "That is in gigabytes: a byte has eight bits."),
            (2.36, "Two workers share the link."),
        ],
        tolerance=0.02,
    ),
    5: Task(
        "a function that returns a function like `compress`",
        safe_sender,
        [
            (lambda t: _sender(t, lambda gradient: gradient),
             "A NaN stays in the residual forever."),
            (lambda t: _sender(t, numpy.nan_to_num),
             "`nan_to_num` makes infinity a huge number, which stays in the residual."),
            (lambda t: lambda gradient: safe_sender(t)(gradient),
             "Keep the rounding error for the next gradient."),
        ],
        judge=by_cases(_judge_safe, "t = {}, gradients {}", [
            (0.5, [[0.5, -0.5]]), (0.5, [[0.3, -0.3], [0.3, -0.3]]),
            (0.25, [[0.3, -0.3], [0.3, -0.3]]),
            (0.5, [[nan, 0.3], [0.4, 0.4], [0.7, -1.0]]),
            (0.5, [[0.4, 0.3], [nan, 0.3], [0.2, -0.2]]),
            (0.5, [[inf, 0.3], [-1.0, 0.3], [-1.0, 0.3]]),
            (0.5, [[-inf, 0.3], [1.0, 0.3], [1.0, 0.3]]),
        ]),
    ),
}
