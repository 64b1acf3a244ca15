"""The partitioner finds the best cut, within the limits; a step's time is predicted."""

import d2l_ext  # noqa: F401, I001
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from d2l_ext.pipeline.partition import (
    Layer,
    all_placements,
    balance,
    best_placement,
    device_times,
    predict,
    simulate,
)

cases = settings(max_examples=200)
whole_numbers = st.integers(0, 20)


@st.composite
def problems(draw):
    """Layers, unequal devices, crossing costs, memory and limits: small, any."""
    n, k = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    row = st.lists(whole_numbers, min_size=k, max_size=k)
    column = st.lists(whole_numbers, min_size=n, max_size=n)
    return {
        "times": draw(st.lists(row, min_size=n, max_size=n)),
        "k": k,
        "crossing": draw(column),
        "memory": draw(column),
        "limits": draw(st.lists(st.integers(0, 60), min_size=k, max_size=k)),
    }


def fits(placement, p):
    held = [0] * p["k"]
    for size, device in zip(p["memory"], placement):
        held[device] += size
    return all(size <= limit for size, limit in zip(held, p["limits"]))


def bottleneck(placement, p):
    return max(device_times(placement, p["times"], p["k"], p["crossing"]))


@cases
@given(problems())
def test_the_bottleneck_equals_that_of_the_best_placement_by_brute_force(p):
    candidates = [c for c in all_placements(len(p["times"]), p["k"]) if fits(c, p)]
    if not candidates:
        with pytest.raises(ValueError, match="bytes"):
            balance(**p)
        return
    found, least = balance(**p), min(bottleneck(c, p) for c in candidates)
    best = [c for c in candidates if bottleneck(c, p) == least]
    assert found in best  # contiguous, and within every limit
    assert found == best[0] or p["k"] > 2


@pytest.mark.parametrize("arguments, message", [
    ({"times": [], "k": 2}, "there are no layers"),
    ({"times": [1], "k": 0}, "k must be a whole number of at least 1, not 0"),
    ({"times": [1, -2], "k": 1}, "time of layer 1 on device 0 is -2"),
    ({"times": [1, math.nan], "k": 1}, "time of layer 1 on device 0 is nan"),
    ({"times": [math.inf], "k": 1}, "time of layer 0 on device 0 is inf"),
    ({"times": [[1, 2], [1]], "k": 2}, "1 times of layer 1, but 2 devices"),
    ({"times": [1, 2], "k": 1, "crossing": [1]}, "1 crossing costs, but 2 layers"),
    ({"times": [1], "k": 1, "crossing": [-1]}, "crossing cost of layer 0 is -1"),
    ({"times": [1], "k": 1, "memory": [1]}, "0 limits, but 1 devices"),
    ({"times": [1], "k": 1, "limits": [9]}, "0 memory sizes, but 1 layers"),
    ({"times": [1], "k": 1, "memory": [1], "limits": [math.nan]},
     "limit of device 0 is nan"),
])
def test_what_cannot_be_placed_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        balance(**arguments)


def test_layers_too_large_alone_or_together_are_named_with_the_bytes_missing():
    with pytest.raises(ValueError, match="layer decode needs 1,500 bytes, 500 more"):
        balance([1, 1], 2, memory=[10, 1500], limits=[1000, 900],
                names=["embed", "decode"])
    message = "device 0 has a, b: 1,200 bytes, 200 over its limit of 1,000. Use more"
    with pytest.raises(ValueError, match=message):
        balance([1] * 3, 2, memory=[600] * 3, limits=[1000, 600], names="abc")
    message = "device 0 has a, b: 8 bytes, 1 over.*; device 1 has c, d: 8 bytes, 1 over"
    with pytest.raises(ValueError, match=message):
        balance([1] * 4, 2, memory=[4] * 4, limits=[7, 7], names="abcd")


def test_the_placements_are_all_there_and_once():
    assert all_placements(3, 2) == [(0, 0, 0), (0, 0, 1), (0, 1, 1), (1, 1, 1)]
    assert all_placements(3, 2, contiguous=False) == [
        (0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1)]
    # Groupings of six layers into at most three parts: Stirling numbers 1 + 31 + 90.
    assert len(set(all_placements(6, 3, contiguous=False))) == 122


def test_both_sides_of_every_crossing_pay_for_it():
    times, crossing = [10, 20, 30], [1, 2, 99]
    assert device_times((0, 1, 0), times, crossing=crossing) == [43, 23]
    assert device_times((0, 0, 1), times, crossing=crossing) == [32, 32]
    assert device_times((0, 0, 0), times, k=2, crossing=crossing) == [60, 0]


@pytest.mark.parametrize("placement", [(0, 1), (0, 1, 2), (0, 0, -1)])
def test_a_placement_that_does_not_match_is_refused(placement):
    with pytest.raises(ValueError, match="must name one device below 2 for each of 3"):
        device_times(placement, [1, 1, 1], k=2)


# The time of a step.


def lstm(num_layers=4, ms=1.0, steps=35):
    """Layers whose cells take `ms` forward and twice that backward."""
    return [Layer(f"layer{i}", ms * steps, 2 * ms * steps) for i in range(num_layers)]


@pytest.mark.parametrize("T", [1, 2, 8, 35])
def test_two_halves_of_equal_layers_reach_the_bound_of_the_wavefront(T):
    layers = lstm(steps=T)
    alone = predict((0, 0, 0, 0), layers, T)
    assert alone == pytest.approx(12 * T)
    assert predict((0, 0, 1, 1), layers, T) == pytest.approx(alone / (2 * T / (T + 1)))


def test_interleaved_layers_wait_for_each_other_as_the_order_is_that_of_the_graph():
    # Of the four layers of a time step, only the last overlaps with the next step.
    T = 35
    cell = 3 * (3 * T + 1)
    assert predict((0, 1, 0, 1), lstm(), T) == pytest.approx(cell)


def test_a_whole_decoder_starts_after_the_last_time_step():
    T, decoder = 10, Layer("decode", 50.0, 100.0, whole=True)
    layers = lstm(2, steps=T) + [decoder]
    assert predict((0, 0, 1), layers, T) == pytest.approx(6 * T + 150)  # no overlap
    assert predict((0, 1, 1), layers, T) == pytest.approx(3 * (T + 1) + 150)
    layers[-1].whole = False
    assert predict((0, 0, 1), layers, T) < 6 * T + 150


@st.composite
def steps_of_networks(draw):
    ms = st.integers(0, 9)
    layers = [
        Layer(str(i), draw(ms), draw(ms), crossing=draw(ms), whole=draw(st.booleans()))
        for i in range(draw(st.integers(1, 5)))
    ]
    device = st.integers(0, 2)
    placement = tuple(draw(device) for _ in layers)
    return placement, layers, draw(st.integers(1, 5))


@cases
@given(steps_of_networks())
def test_a_step_takes_as_long_as_its_busiest_device_at_least_and_all_on_one(case):
    placement, layers, seq_len = case
    busiest = max(device_times(placement, [layer.time for layer in layers]))
    crossing = sum(2 * layer.crossing for layer in layers)
    alone = predict((0,) * len(layers), layers, seq_len)
    assert alone == pytest.approx(sum(layer.time for layer in layers))
    assert busiest - 1e-6 <= predict(*case) <= alone + crossing + 1e-6


@cases
@given(steps_of_networks())
def test_a_device_does_one_thing_at_a_time_and_nothing_before_it_can(case):
    placement, layers, _ = case
    spans = simulate(*case)
    for device in set(placement):
        own = [s for s in spans if s.device == device]
        assert all(a.end <= b.start + 1e-9 for a, b in zip(own, own[1:]))
    done = {(s.kind, s.layer, s.t): s.end for s in spans if s.kind != "copy"}
    for s in spans:
        step = {"forward": -1, "backward": 1}.get(s.kind)
        below = (s.kind, s.layer + (step or 0), s.t)
        if step and below in done and not layers[s.layer].whole:
            assert done[below] <= s.start + 1e-9 or layers[below[1]].whole
        if s.kind == "backward":
            assert done["forward", s.layer, s.t] <= s.start + 1e-9


def test_crossing_is_paid_both_ways_by_the_device_that_sends():
    layers = [Layer("a", 10, 10, crossing=4), Layer("b", 10, 10)]
    sent = [s for s in simulate((0, 1), layers, 1) if s.kind == "copy"]
    assert [(s.device, s.end - s.start) for s in sent] == [(0, 4), (1, 4)]
    assert predict((0, 1), layers, 1) == 48


def test_the_best_placement_has_the_smallest_prediction():
    layers = lstm() + [Layer("decode", 300.0, 600.0, whole=True)]
    candidates = all_placements(5, 2)
    best = best_placement(candidates, layers, 35)
    assert predict(best, layers, 35) == min(predict(c, layers, 35) for c in candidates)
    # Balance alone would put the decoder, the heaviest, on a device of its own.
    assert balance([layer.time for layer in layers], 2) == (0, 0, 0, 0, 1)
    assert best == (0, 0, 1, 1, 1)


@pytest.mark.parametrize("placement, layers, seq_len, message", [
    ((), [], 3, "there are no layers"),
    ((0,), lstm(2), 3, "1 devices, but 2 layers: give one for each"),
    ((0, 0), lstm(2), 0, "seq_len must be a whole number of at least 1, not 0"),
    ((0,), [Layer("a", -1, 0)], 3, "forward of layer 0 is -1"),
    ((0, 1), [*lstm(1), Layer("a", 1, 1, crossing=-2)], 3, "crossing of layer 1 is -2"),
])
def test_a_step_that_makes_no_sense_is_refused(placement, layers, seq_len, message):
    with pytest.raises(ValueError, match=message):
        simulate(placement, layers, seq_len)
