"""What the learner's code uses, counted while it is tried, beside what is enough.

Write how one case is tried, with helpers that count, and `counted` makes a judge:

    def run_broadcast(function, counts, k):
        values = [7] + [None] * (k - 1)
        function(values, counts.exchange)
        return values

    Task(…, judge=counted(broadcast, run_broadcast, "{} devices",
                          [(1,), (2,), (5,), (8,)], about=[ROUNDS]))

The reference is tried in the same way: what is right and what is enough is computed.
A count's name is how it is told, with its number and a plural: "{} round{s}".
"""

import copy
import tracemalloc
from contextlib import contextmanager

from .question import Note, by_cases, of_case, plain, same, shown

ROUNDS = "{} round{s}"
SENT = "the busiest device sends {} number{s}"
WAITS = "{} blocking call{s}"
PEAK = "at most {} array{s} more at a time"


class Counts(dict):
    """Numbers by their names, in the order in which they are told."""

    def __init__(self):
        super().__init__()
        self.kept, self._sent = [], {}

    def add(self, name, amount=1):
        self[name] = self.get(name, 0) + amount

    def calls(self, name, function, amount=lambda *given: 1):
        """`function`, each call of which adds `amount(…)` of what it is given."""
        self.add(name, 0)

        def counting(*given):
            self.add(name, amount(*given))
            return function(*given)

        return counting

    def exchange(self, messages):
        """One round: {(i, j): what device i sends to j}, delivered.

        A device sends at most one message, to another one, and receives at most one:
        `ValueError` otherwise. Counts `ROUNDS`, and `SENT` of the busiest device.
        """
        ends = [*zip(*messages)]
        if any(len({*end}) < len(messages) for end in ends):
            raise ValueError(f"two messages in one round: {[*messages]}")
        if any(i == j for i, j in messages):
            raise ValueError(f"a message to oneself: {[*messages]}")
        self.add(ROUNDS, bool(messages))
        for (i, _), message in messages.items():
            self._sent[i] = self._sent.get(i, 0) + getattr(message, "size", 1)
        self[SENT] = max(self._sent.values(), default=0)
        return dict(messages)

    def keep(self, *given):
        """The same values; it is told if they are changed."""
        self.kept += [(value, copy.deepcopy(value)) for value in given]
        return given

    @contextmanager
    def memory(self, unit):
        """Count the most that Python and NumPy take inside, in `unit`s of bytes.

        `unit` is an array's bytes: rounded to tenths, the number is the same on every
        machine. Below 100 KB Python's own objects would count, so nothing does.
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
        """Count the calls that wait for MXNet's engine: asnumpy, float, waitall, …"""
        from d2l_ext.data_parallel.diagnose import blocking_calls  # loads MXNet

        with blocking_calls() as waits:
            try:
                yield
            finally:
                self[WAITS] = len(waits)


def counted(right, run, words, cases, about=(), tolerance=0.0):
    """A judge that tries the learner's function and `right`, and compares all.

    `run(function, counts, *case)` tries one case and returns what came out; of a dict
    its keys are told. `cases` are tuples, the smallest first, and `words` say a case:
    "{} devices". `about` are the counts that the exercise is about: what exceeds the
    reference's is refused, and nothing where the reference needs something. All counts
    of the last case are told.
    """

    def needed(case):
        enough = Counts()
        return enough, plain(run(right, enough, *copy.deepcopy(case)))

    known = {}  # what the reference needs of a case, which is what it was

    def problem(function, *case):
        at, counts = repr(plain(case)), Counts()
        if at not in known:
            known[at] = needed(case)
        enough, expected = known[at]
        found = run(function, counts, *case)
        used = [(counts.get(name, 0), enough.get(name, 0)) for name in about]
        if apart := difference(found, expected, tolerance):
            return f"{apart}."
        if not all(same(plain(now), plain(then)) for now, then in counts.kept):
            return "it changes what it is given."
        if any(n > least or n == 0 < least for n, least in used):
            return f"{told(counts, enough)}."
        return Note(f"{of_case(words, case)}: {told(counts, enough)}." * bool(enough))

    return by_cases(problem, words, cases)


def told(counts, enough):
    """The counts, beside what the reference used."""
    parts = []
    for name, least in enough.items():
        n = counts.get(name, 0)
        is_enough = "" if parts else " is enough" if least == 1 else " are enough"
        said = name.format(f"{n:,.10g}", s="" if n == 1 else "s")
        parts.append(f"{said} ({least:,.10g}{is_enough})")
    return "; ".join(parts)


def difference(found, expected, tolerance=0.0, what="it", at=""):
    """Where and by what a result is not as expected, in words; "" if it is."""
    found, expected = plain(found), plain(expected)
    if same(found, expected, tolerance):
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
            return f"{where} has {len(found)} parts, and not {len(expected)}"
        parts = [
            (a, b, tolerance, what, f"{at}[{i}]")
            for i, (a, b) in enumerate(zip(found, expected))
        ]
    else:
        pair = [shown(found), shown(expected)]
        if pair[0] == pair[1]:  # the digits that are not shown
            pair = [repr(found), repr(expected)]
        return f"{where} is {pair[0]}, and not {pair[1]}"
    return next(filter(None, (difference(*part) for part in parts)))
