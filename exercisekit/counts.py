"""Judges that count what the learner's code uses, and compare it with the reference.

Write a function that runs one case with helpers that count; `counted` makes the judge:

    def run_broadcast(function, counts, k):
        values = [7] + [None] * (k - 1)
        function(values, counts.exchange)
        return values

    Task(…, judge=counted(broadcast, run_broadcast, "{} devices",
                          [(1,), (2,), (5,), (8,)], about=[ROUNDS]))

The reference runs in the same way, so right results and sufficient counts are
computed. A count's name is a template for its number and plural: "{} round{s}".
"""

import copy
import tracemalloc
from contextlib import contextmanager

from .question import Note, are_equal, as_python, by_cases, of_case, shown, told_apart

ROUNDS = "{} round{s}"
SENT = "the busiest device sends {} number{s}"
WAITS = "{} blocking call{s}"
PEAK = "at most {} array{s} more at a time"


class Counts(dict):
    """Counts by their names, in the order in which they are reported."""

    def __init__(self):
        super().__init__()
        self.kept, self._sent = [], {}

    def add(self, name, amount=1):
        self[name] = self.get(name, 0) + amount

    def calls(self, name, function, amount=lambda *given, **named: 1):
        """Wrap `function`: each call adds `amount(…)` of its arguments."""
        self.add(name, 0)

        def counting(*given, **named):
            self.add(name, amount(*given, **named))
            return function(*given, **named)

        return counting

    def exchange(self, messages):
        """Deliver one round of messages, {(i, j): what device i sends to device j}.

        A device sends at most one message, to another device, and receives at most one;
        otherwise `ValueError`. Counts `ROUNDS`, and `SENT` of the busiest device.
        """
        ends = [*zip(*messages)]
        if any(len({*end}) < len(messages) for end in ends):
            raise ValueError("a device may send only one message and receive only one "
                             f"in a round, not {[*messages]}")
        if any(i == j for i, j in messages):
            raise ValueError(f"a device sends to itself: {[*messages]}")
        self.add(ROUNDS, bool(messages))
        for (i, _), message in messages.items():
            self._sent[i] = self._sent.get(i, 0) + numbers_in(message)
        self[SENT] = max(self._sent.values(), default=0)
        return dict(messages)

    def keep(self, *given):
        """Return the same values; the judge reports it if they are changed."""
        self.kept += [(value, copy.deepcopy(value)) for value in given]
        return given

    @contextmanager
    def memory(self, unit):
        """Count the peak memory of Python and NumPy in this context, in `unit`s.

        `unit`: the bytes of an array. Rounded to tenths, the count is the same on every
        machine. Below 100 KB, Python's own objects would matter: nothing is counted.
        """
        if unit < 100_000:
            yield
            return
        tracing = tracemalloc.is_tracing()
        if not tracing:
            tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        try:
            yield
        finally:
            most = tracemalloc.get_traced_memory()[1] - before
            if not tracing:
                tracemalloc.stop()
            self[PEAK] = round(most / unit, 1)

    @contextmanager
    def waits(self):
        """Count calls that wait for MXNet's engine: asnumpy, float, waitall, …"""
        from d2l_ext.data_parallel.diagnose import blocking_calls  # loads MXNet

        with blocking_calls() as waits:
            try:
                yield
            finally:
                self[WAITS] = len(waits)


def numbers_in(message):
    """Return how many numbers a message has, also in containers; each byte is one."""
    if isinstance(message, dict):
        message = [*message, *message.values()]
    if isinstance(message, (bytes, bytearray, memoryview, str)):
        return len(message)
    if isinstance(message, (list, tuple, set, frozenset)):
        return sum(map(numbers_in, message))
    return getattr(message, "size", 1)


def from_sent(function, parts, gather):
    """Return `function(parts, gather)`, and whether some device can know the result.

    A device knows its own part and what was gathered. So for each device, `function`
    runs again with the other parts halved, while `gather` returns the same arrays.
    """
    kept, own = [], copy.deepcopy(parts)

    def recording(*given, **named):
        kept.append(gather(*given, **named))
        return copy.deepcopy(kept[-1])

    def known(device):
        given, again = [part / 2 for part in own], iter(copy.deepcopy(kept))
        given[device] = own[device].copy()
        return as_python(function(given, lambda *_, **__: next(again)))

    found = function(parts, recording)
    right = as_python(found)
    return found, any(are_equal(known(i), right, 1e-6) for i in range(len(own)))


def counted(right, run, words, cases, about=(), tolerance=0.0):
    """Return a judge that runs the learner's function and `right`, and compares them.

    `run(function, counts, *case)` runs one case and returns the result; the keys of a
    dict are reported. `cases`: tuples, the smallest first. `words`: a template for a
    case, such as "{} devices". `about`: the names of the counts that matter: a count
    above the reference's is rejected, and so is zero if the reference's is not zero.
    All counts of the last case are reported.
    """

    def needed(case):
        enough = Counts()
        return enough, as_python(run(right, enough, *copy.deepcopy(case)))

    known = {}  # what the reference needs of a case, which is what it was

    def problem(function, *case):
        at, counts = repr(as_python(case)), Counts()
        if at not in known:
            known[at] = needed(case)
        enough, expected = known[at]
        found = run(function, counts, *case)
        used = [(counts.get(name, 0), enough.get(name, 0)) for name in about]
        if apart := difference(found, expected, tolerance):
            return f"{apart}."
        if not all(are_equal(as_python(now), as_python(then))
                   for now, then in counts.kept):
            return "it changes an argument that it should only read."
        if any(n > least or n == 0 < least for n, least in used):
            return f"{in_words(counts, enough)}."
        text = f"{of_case(words, case)}: {in_words(counts, enough)}."
        return Note(text if enough else "")

    return by_cases(problem, words, cases)


def in_words(counts, enough):
    """Return the counts, with those of the reference."""
    parts = []
    for name, least in enough.items():
        n = counts.get(name, 0)
        is_enough = "" if parts else " is enough" if least == 1 else " are enough"
        said = name.format(f"{n:,.10g}", s="" if n == 1 else "s")
        parts.append(f"{said} ({least:,.10g}{is_enough})")
    return "; ".join(parts)


def difference(found, expected, tolerance=0.0, what="it", at=""):
    """Return the first difference's place and size, in words; "" if there is none."""
    found, expected = as_python(found), as_python(expected)
    if are_equal(found, expected, tolerance):
        return ""
    where = f"at {at} {what}" if at else what
    if isinstance(expected, dict) and getattr(found, "keys", set)() == expected.keys():
        parts = [(found[key], expected[key], tolerance, str(key)) for key in expected]
    elif (
        isinstance(expected, (list, tuple))
        and isinstance(found, (list, tuple))
        and len(shown(expected)) > 40
    ):
        if len(found) != len(expected):
            return f"{where} has {len(found)} parts, not {len(expected)}"
        parts = [
            (a, b, tolerance, what, f"{at}[{i}]")
            for i, (a, b) in enumerate(zip(found, expected))
        ]
    else:
        return "{} is {}, not {}".format(where, *told_apart(found, expected))
    return next(filter(None, (difference(*part) for part in parts)))
