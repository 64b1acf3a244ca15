"""Exercises of the chapter *Gradient compression*."""

from math import inf, nan

import numpy

from d2l_ext.kvstore import compression

from ..question import Question, Task, by_cases, compared


def _values(codes, t):
    return numpy.array([0, 0, -t, t], "float32")[list(codes)]


def unpacked(message, size, t):
    """Four codes of a byte, the first one in the highest bits."""
    codes = [byte >> shift & 0b11 for byte in message for shift in (6, 4, 2, 0)]
    return _values(codes[:size], t)


def _message(codes):
    return compression.pack(numpy.array(codes, "uint8")).tobytes()


def safe_sender(t):
    """What is not finite is not added to what is left over."""
    residual = 0

    def compress(gradient):
        nonlocal residual
        total = residual + numpy.where(numpy.isfinite(gradient), gradient, 0)
        codes = [3 if x >= t else 2 if x <= -t else 0 for x in total]
        residual = total - _values(codes, t)
        return codes, residual

    return compress


def _judge_safe(function, gradients):
    compress, ours = function(0.5), safe_sender(0.5)
    for n, gradient in enumerate(map(numpy.array, gradients), 1):
        given = gradient.copy()
        found = [int(code) for code in compress(given)[0]]
        if found != (right := ours(gradient)[0]):
            return f"after {n} the codes are {found}, and not {right}."
        if not numpy.array_equal(given, gradient, equal_nan=True):
            return f"after {n}, the gradient itself is changed."
    return ""


QUESTIONS = {
    1: Question(
        "the length of the message in bytes",
        250_004,
        [
            (250_000, "What becomes of the last three weights?"),
            (250_001, "The message is made of whole words of 4 bytes."),
            (62_501, "These are words of 4 bytes."),
            (4_000_012, "That is without compression."),
        ],
    ),
    2: Task(
        "a function that returns numbers",
        unpacked,
        [
            ("codes[:size]", "codes",
             "The last word was filled up: there are more codes than numbers."),
            ("(6, 4, 2, 0)", "(0, 2, 4, 6)",
             "The first of four codes is in the highest bits of its byte."),
            ("(6, 4, 2, 0)", "(4, 2, 0)", "A byte holds four codes."),
            ("in message for", "in message[::-1] for",
             "The bytes come in the order in which they were packed."),
            ("& 0b11", "& 0b1", "A code has two bits."),
            ("_values(codes[:size], t)", "-_values(codes[:size], t)",
             "The signs are exchanged: 11 stands for t, 10 for -t."),
            ("[:size], t)", "[:size], 1)", "The threshold is what a code stands for."),
            ("in message for", "in message[: size // 4] for",
             "The last byte counts, even if it is not full."),
        ],
        judge=compared(unpacked, [
            (_message(codes), len(codes), t) for codes, t in (
                ([3], 0.5), ([0, 2], 0.3), ([3, 0, 2, 3, 2, 0, 0], 0.5),
                ([2, 3, 0, 3] * 4, 0.25), ([2] + [3] * 16, 1.5))
        ], tolerance=1e-6),
    ),
    3: Question(
        "what is left over, in the units of the gradient",
        30,
        [
            (0.3, "That is left after one step, and kept for the next."),
            (0, "The sender can send no more than the threshold in a step."),
            (80, "That is all that there was. What has been sent?"),
            (50, "That has been sent. What is left of 80?"),
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
            ("numpy.where(numpy.isfinite(gradient), gradient, 0)", "gradient",
             "What is not a number stays in the residual for ever."),
            ("numpy.where(numpy.isfinite(gradient), gradient, 0)",
             "numpy.nan_to_num(gradient)",
             "An overflow is infinite, or becomes a huge number: that stays, too."),
            ("isfinite(gradient), gradient", "isfinite(gradient).all(), gradient",
             "The whole gradient is thrown away with one bad number of it."),
            ("residual = total - _values(codes, t)", "pass",
             "What is too small to be sent now is to be kept for later."),
            ("residual = total - _values(codes, t)", "residual = total",
             "What has been sent has to leave the residual."),
            ("x >= t", "x > t", "A sum of just the threshold is sent."),
            ("total = residual + numpy.where(numpy.isfinite(gradient), gradient, 0)",
             "gradient[~numpy.isfinite(gradient)] = 0; total = residual + gradient",
             "It writes zeros into the caller's gradient: take a copy."),
            ("[3 if x >= t else 2 if", "[2 if x >= t else 3 if",
             "The signs are exchanged: 11 stands for t, 10 for -t."),
        ],
        judge=by_cases(_judge_safe, "Gradients {}", [
            ([[0.5, -0.5]],), ([[0.3, -0.3], [0.3, -0.3]],),
            ([[nan, 0.3], [0.4, 0.4], [0.7, -1.0]],),
            ([[inf, 0.3], [-1.0, 0.3], [-1.0, 0.3]],),
        ]),
    ),
}
