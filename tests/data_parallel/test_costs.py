"""The closed forms of an allreduce's bytes, rounds and seconds, and its schedules."""

import d2l_ext  # noqa: F401, I001
from collections import Counter
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mxnet import npx

from d2l_ext.data_parallel import costs, traffic
from d2l_ext.data_parallel.allreduce.algorithm import algorithms
from d2l_ext.data_parallel.traffic import Traffic

npx.set_np()

MB = 2**20
sizes = settings(max_examples=100)
small_k, elements = st.integers(1, 17), st.integers(0, 10_000)


def test_the_closed_forms_in_bytes_one_can_check_by_eye():
    # 12 elements of 4 bytes on 3 devices: whole arrays of 48, chunks of 16.
    expected = costs.expected
    assert expected("naive", 3, 48) == Traffic([96, 48, 48], [96, 48, 48], 4)
    assert expected("tree", 3, 48) == Traffic([96, 48, 48], [96, 48, 48], 4)
    assert expected("ring", 3, 48) == Traffic([64, 64, 64], [64, 64, 64], 4)
    # 0 ← 1, 2 ← 3, then 0 ← 2, and back.
    sides = [[96, 48, 96, 48]] * 2
    assert expected("tree", 4, 48) == Traffic(*sides, 4)


def test_two_elements_in_a_ring_of_three_leave_one_chunk_empty():
    # Chunks: [], [0], [1]. Device 0 adds up chunk 1, device 1 chunk 2, device 2 none.
    assert costs.expected("ring", 3, 8) == Traffic([8, 12, 12], [12, 8, 12], 4)


@sizes
@given(small_k, elements)
def test_these_send_one_array_to_and_one_from_each_device_but_one(k, size):
    for algorithm in ("naive", "tree", "ring", "halving", "double tree"):
        moved = costs.expected(algorithm, k, 4 * size)
        assert sum(moved.sent) == 4 * size * 2 * (k - 1)


@sizes
@given(small_k, elements)
def test_no_algorithm_beats_the_ring_on_the_busiest_device(k, size):
    among_devices = [a.name for a in algorithms().values() if a.schedule]
    busiest = {a: max(costs.expected(a, k, 4 * size).sent) for a in among_devices}
    assert busiest["double tree"] <= 2 * 4 * (size + 1)
    # Uneven chunks differ by an element, and two are sent: the ring's rounding.
    assert busiest["ring"] <= min(busiest.values()) + 8


@sizes
@given(small_k, elements)
def test_the_formulas_follow_from_the_schedules(k, size):
    # Another way to the same numbers: walk the rounds, message by message.
    for algorithm in algorithms().values():
        if algorithm.schedule:
            pieces, add, copy = algorithm.schedule(k)
            edges = traffic.cuts(size, pieces)
            walked = Traffic([0] * k, [0] * k, len(add) + len(copy))
            for i, j, first, many in chain(*add, *copy):
                walked.sent[i] += 4 * (edges[first + many] - edges[first])
                walked.received[j] += 4 * (edges[first + many] - edges[first])
            assert costs.expected(algorithm.name, k, 4 * size) == walked


@pytest.mark.parametrize("k", range(1, 18))
@pytest.mark.parametrize("algorithm", [a for a in algorithms().values() if a.schedule],
                         ids=lambda a: a.name)
def test_a_schedule_leaves_every_number_once_in_the_sum_of_every_device(algorithm, k):
    pieces, add, copy = algorithm.schedule(k)
    has = [[Counter([i]) for _ in range(pieces)] for i in range(k)]
    for number, row in enumerate([*add, *copy]):
        assert len({i for i, *_ in row}) == len({j for _, j, *_ in row}) == len(row)
        arrived = [(j, c, has[i][c]) for i, j, first, many in row
                   for c in range(first, first + many)]
        for j, c, numbers in arrived:
            has[j][c] = has[j][c] + numbers if number < len(add) else numbers
    assert all(own == Counter(range(k)) for row in has for own in row)


def test_the_model_of_time_in_seconds_one_can_check_by_eye():
    # 1 s per message, 0.25 s per byte, 40 bytes: a whole array takes 1 + 10 s.
    def seconds(algorithm, k):
        return costs.seconds(algorithm, k, 40, alpha=1, beta=0.25)

    assert [seconds("naive", k) for k in (1, 2, 4, 5)] == [0, 22, 66, 88]
    assert [seconds("tree", k) for k in (1, 2, 4, 5)] == [0, 22, 44, 66]
    assert [seconds("ring", k) for k in (1, 2, 4, 5)] == [0, 12, 21, 24]
    # 4 devices swap 20 bytes and then 10, and back; a fifth adds two whole arrays.
    assert [seconds("halving", k) for k in (1, 2, 4, 5)] == [0, 12, 19, 41]
    # Halves of 20 bytes take 1 + 5 s; in two chunks 1 + 2.5 s.
    assert [seconds("double tree", k) for k in (1, 2, 4, 5)] == [0, 12, 48, 48]
    assert costs.seconds("double tree", 4, 40, 1, 0.25, chunks=2) == 12 * 3.5
    # Up and down: two messages of 11 s; in two chunks three of 6 s.
    assert [seconds("network", k) for k in (1, 2, 4, 5)] == [0, 22, 22, 22]
    assert costs.seconds("network", 4, 40, 1, 0.25, chunks=2) == 18


def test_in_the_model_the_tree_wins_small_arrays_and_the_ring_large_ones():
    def fastest(nbytes, ways=("naive", "tree", "ring", "halving"), k=8):
        return min(
            ways, key=lambda a: costs.seconds(a, k, nbytes, alpha=1e-5, beta=1e-9)
        )

    assert (fastest(1_000), fastest(100 * MB)) == ("halving", "halving")
    ways = "naive", "tree", "ring"
    assert (fastest(1_000, ways), fastest(100 * MB, ways)) == ("tree", "ring")
    # For k = 6, the fold alone is two whole arrays, more than the ring sends.
    assert (fastest(1_000, k=6), fastest(100 * MB, k=6)) == ("halving", "ring")


@pytest.mark.parametrize("ask, arguments, message", [
    (costs.expected, ("pigeons", 2, 8),
     "unknown algorithm 'pigeons': choose from .*naive, .*tree"),
    (costs.expected, ("ring", 0, 8), "k must be a whole number of at least 1, not 0"),
    (costs.expected, ("ring", 2, 7), "7 bytes are not a whole number of elements of 4"),
    (costs.expected, ("ring", 2, -8), "-8 bytes are not a whole number"),
    (costs.expected, ("ring", 2, 8, 0), "itemsize must be .* of at least 1, not 0"),
    (costs.expected, ("network", 4, 8, 4, -7), "chunks must be .* 1, not -7"),
    (costs.seconds, ("pigeons", 2, 8, 1, 1), "unknown algorithm"),
    (costs.seconds, ("network", 4, 8, 1, 1, 0), "chunks must be .* 1, not 0"),
    (costs.seconds, ("tree", 0, 8, 1, 1), "k must be a whole number of .* 1, not 0"),
])
def test_what_cannot_be_is_refused(ask, arguments, message):
    with pytest.raises(ValueError, match=message):
        ask(*arguments)
