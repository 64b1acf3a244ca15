"""What code uses is counted, and its target is what the reference uses."""

import tracemalloc

import numpy
import pytest

from exercisekit.counts import PEAK, ROUNDS, SENT, Counts, counted, difference
from exercisekit.question import Task, of_case, says


def once(values, exchange):
    """Everybody sends to the next one, in one round."""
    k = len(values)
    for (_, j), x in exchange({(i, (i + 1) % k): values[i] for i in range(k)}).items():
        values[j] = x


def one_by_one(values, exchange):
    old, k = list(values), len(values)
    for i in range(k):
        values[(i + 1) % k] = exchange({(i, (i + 1) % k): old[i]})[i, (i + 1) % k]


def without(values, exchange):
    values[:] = values[-1:] + values[:-1]


def run(function, counts, k):
    values = list(range(k))
    function(values, counts.exchange)
    return values


def task(about, cases=((2,), (3,))):
    return Task("", once, judge=counted(once, run, "{} devices", cases, about=about))


SENT_0, SENT_1 = (
    f"; the busiest device sends {n} (1)." for n in ("0 numbers", "1 number")
)
RAISES = "not yet. 2 devices: it raises ValueError: "
ONE_EACH = "a device may send only one message and receive only one in a round"


@pytest.mark.parametrize("function, about, said", [
    (once, [ROUNDS], f"right. 3 devices: 1 round (1 is enough){SENT_1}"),
    (one_by_one, [ROUNDS], f"not yet. 2 devices: 2 rounds (1 is enough){SENT_1}"),
    (one_by_one, [], f"right. 3 devices: 3 rounds (1 is enough){SENT_1}"),
    (without, [ROUNDS], f"not yet. 2 devices: 0 rounds (1 is enough){SENT_0}"),
    (lambda *_: 0, [], "not yet. 2 devices: it is [0, 1], not [1, 0]."),
    (lambda values, exchange: exchange({(0, 1): 7, (2, 1): 7}), [],
     f"{RAISES}{ONE_EACH}, not [(0, 1), (2, 1)]."),
    (lambda values, exchange: exchange({(0, 0): 7}), [],
     f"{RAISES}a device sends to itself: [(0, 0)]."),
])
def test_what_is_used_is_told_beside_what_is_enough(function, about, said):
    assert says(task(about), function) == said


def test_a_call_is_counted_whether_its_arguments_are_named_or_not():
    counts = Counts()
    plain = counts.calls("calls", lambda i: i)
    sized = counts.calls("numbers", lambda array: sum(array), lambda array: len(array))
    assert [plain(3), plain(i=4), sized([1, 2]), sized(array=[3])] == [3, 4, 3, 3]
    assert counts == {"calls": 2, "numbers": 3}


@pytest.mark.parametrize("message, size", [
    (7, 1), (numpy.ones((2, 3)), 6), ([1.0, 2.0], 2), ((numpy.ones(4),), 4),
    ({5: numpy.ones(4)}, 5), ([(1, 2), {3: []}], 3)])
def test_numbers_are_counted_however_they_are_packed(message, size):
    counts = Counts()
    counts.exchange({(0, 1): message})
    assert counts == {ROUNDS: 1, SENT: size}


def test_of_a_long_result_the_first_place_that_differs_is_told():
    numbers = numpy.arange(100.0)
    other = numbers.copy()
    other[42] += 0.5
    assert difference(other, numbers) == "at [42] it is 42.5, not 42"
    assert difference({"a": 1, "b": [other]}, {"a": 1, "b": [numbers]}) == (
        "at [0][42] b is 42.5, not 42"
    )
    assert difference(numbers[1:], numbers) == "it has 99 parts, not 100"
    assert difference([1, 3], (1, 2)) == "it is [1, 3], not (1, 2)"
    assert difference(277777791.0, 277777775.0).endswith("not 277777775.0")
    assert difference(numbers + 1e-13, numbers) == ""


def test_memory_is_counted_in_arrays_and_small_ones_are_not():
    counts = Counts()
    with counts.memory(unit=800_000):
        three = [numpy.ones(100_000) for _ in range(3)]
        del three[1:]
        numpy.ones(100_000)
    assert counts == {PEAK: 3.0} and not tracemalloc.is_tracing()
    small = Counts()
    with small.memory(unit=8):
        numpy.ones(1)
    assert small == {}


def test_memory_is_counted_beside_what_the_reader_traces():
    tracemalloc.start()
    try:
        counts, before = Counts(), numpy.ones(100_000)
        with counts.memory(unit=before.nbytes):
            numpy.ones(200_000)
        assert counts == {PEAK: 2.0} and tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("words, case, said", [
    ("{} devices, arrays of {:,}", (1, 40_000), "1 device, arrays of 40,000"),
    ("{} losses", (1,), "1 loss"),
    ("{} workers, {} s", (11, 0.1), "11 workers, 0.1 s"),
    ("{} s, {} per cent of {} chunks", (1, 2, [1]), "1 s, 2 per cent of [1] chunks"),
])
def test_a_case_of_one_is_said_in_the_singular(words, case, said):
    assert of_case(words, case) == said
