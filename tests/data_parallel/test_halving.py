"""Halving and doubling, and the double tree: the sum, for any number of devices."""

import d2l_ext  # noqa: F401, I001
import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mxnet import np, npx

from d2l_ext.data_parallel import costs, traffic
from d2l_ext.data_parallel.allreduce.double_tree import (
    allreduce_double_tree,
    schedule,
    trees,
)
from d2l_ext.data_parallel.allreduce.halving import allreduce_halving, partners
from d2l_ext.devices import try_all_devices

npx.set_np()

WAYS = {"halving": allreduce_halving, "double tree": allreduce_double_tree}
CUT = {"halving": "pieces", "double tree": "chunks"}
every_way = pytest.mark.parametrize("way", WAYS)
random_cases = settings(max_examples=80)
many = range(1, 70)


def on_devices(parts):
    devices = try_all_devices(len(parts))
    return [np.array(x, dtype=x.dtype, ctx=d) for x, d in zip(parts, devices)]


@every_way
@random_cases
@given(st.integers(1, 9), st.integers(0, 40), st.integers(1, 3))
def test_the_sum_is_the_same_on_all_and_takes_the_bytes_of_the_formula(
    way, k, size, cut
):
    parts = numpy.random.RandomState(size).randn(k, size)
    data = on_devices(parts)
    with traffic.count(try_all_devices(k)) as moved:
        WAYS[way](data, cut)
    bound = k * numpy.finfo("float64").eps * abs(parts).sum(0)
    assert (abs(data[0].asnumpy() - parts.sum(0)) <= bound).all()
    assert len({x.asnumpy().tobytes() for x in data}) == 1
    if way == "double tree" or cut == 1:  # pieces: see below
        chunks = {"chunks": cut} if way == "double tree" else {}
        assert moved == costs.expected(way, k, 8 * size, itemsize=8, **chunks)


@pytest.mark.parametrize("pieces", [1, 2, 5])
def test_each_piece_is_an_allreduce_of_its_own(pieces):
    data = on_devices([numpy.arange(10.0) * 10**i for i in range(3)])
    with traffic.count(try_all_devices(3)) as moved:
        allreduce_halving(data, pieces=pieces)
    one = costs.expected("halving", 3, 80 // pieces, itemsize=8)
    assert moved.steps == one.steps * pieces
    assert moved.sent == [n * pieces for n in one.sent]


def test_eight_devices_swap_with_ever_nearer_partners():
    drawn = [line.split() for line in partners.__doc__.splitlines() if "round " in line]
    assert partners(8) == [[int(c) for c in words[2:10]] for words in drawn[1:]]
    assert (partners(1), partners(2)) == ([], [[1, 0]])


def test_the_trees_are_those_of_the_drawing():
    assert trees(7) == [
        {0: 1, 2: 1, 4: 5, 6: 5, 1: 3, 5: 3},
        {6: 0, 1: 0, 3: 4, 5: 4, 0: 2, 4: 2},
    ]


@pytest.mark.parametrize("k", many)
def test_no_device_has_children_in_both_trees_or_three_in_one(k):
    first, second = ([*tree.values()] for tree in trees(k))
    assert not {*first} & {*second}
    assert all(side.count(i) <= 2 for side in (first, second) for i in side)


@pytest.mark.parametrize("chunks", [1, 2, 5])
@pytest.mark.parametrize("k", many)
def test_a_round_has_one_message_for_each_end_and_nothing_unready(k, chunks):
    parts = [(tree, chunk) for tree in (0, 1) for chunk in range(chunks)]
    known = {(i, *part): {i} for i in range(k) for part in parts}
    for row in schedule(k, chunks):
        assert len({c for _, _, c, _ in row}) == len({p for *_, p in row}) == len(row)
        came = [((p, t, n), {*known[c, t, n]}) for t, n, c, p in row]
        for at, whose in came:
            known[at] |= whose
    roots = [({*range(k)} - {*tree}).pop() for tree in trees(k)]
    assert all(known[roots[t], t, n] == {*range(k)} for t, n in parts)


@every_way
def test_what_cannot_be_cut_is_refused(way):
    data = [np.ones(9, ctx=d) for d in try_all_devices(3)]
    with pytest.raises(ValueError, match=f"{CUT[way]} must be a whole number of"):
        WAYS[way](data, **{CUT[way]: 0})
    assert (data[0].asnumpy() == 1).all()
