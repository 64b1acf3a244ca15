"""The simulator agrees with the closed forms where they hold, and is deterministic."""

import d2l_ext  # noqa: F401, I001
import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from d2l_ext.kvstore import staleness
from d2l_ext.data_parallel import costs
from d2l_ext.scale import simulator, step
from d2l_ext.scale.step import Link
from d2l_ext.scale.simulator import Events, Queue

quick = settings(max_examples=80)
links = st.builds(Link, st.floats(0, 1e-2), st.floats(1e-12, 1e-7))
bytes_ = st.integers(1, 10**9)
times = st.floats(1e-4, 10)


def close(simulated, closed_form):
    """Only roundings are between the two, so the bar is met with room."""
    return simulated == pytest.approx(closed_form, rel=1e-3)


# ---- the clock


def test_actions_run_by_time_and_equal_times_in_the_order_asked_for():
    events, seen = Events(), []
    for seconds, name in ((2, "c"), (1, "a"), (2, "d"), (1, "b")):
        events.after(seconds, seen.append, name)
    assert (events.run(), seen, events.handled) == (2, ["a", "b", "c", "d"], 4)


def test_no_event_lies_in_the_past_or_nowhere():
    for seconds in (-1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="a finite time from now on, 0"):
            Events().after(seconds, print)


def test_a_queue_serves_one_after_another():
    events = Events()
    queue = Queue(events)
    assert [queue.serve(2), queue.serve(3)] == [2, 5]
    events.after(10, queue.serve, 1)
    events.run()
    assert queue.free == 11


# ---- allreduce

WAYS = (*costs.names(), "network")


@quick
@given(st.sampled_from(WAYS), st.integers(1, 40), bytes_, links, times)
def test_devices_that_are_ready_together_end_as_the_formula_says(way, k, n, link, t):
    ends = simulator.allreduce(way, [t] * k, n, link)
    assert close(ends.max(), t + costs.seconds(way, k, n, link.alpha, link.beta))


@quick
@given(st.lists(times, min_size=2, max_size=12), bytes_, links)
def test_the_ring_is_that_of_going_round_by_round(ready, nbytes, link):
    t, cost = list(ready), link.seconds(nbytes / len(ready))
    for _ in range(2 * (len(ready) - 1)):
        t = [max(t[i], t[i - 1]) + cost for i in range(len(t))]
    assert numpy.allclose(simulator.allreduce("ring", ready, nbytes, link), t)


@quick
@given(st.sampled_from(WAYS), st.lists(times, min_size=2, max_size=20))
def test_nobody_has_the_sum_before_the_last_gradient_is_made(way, ready):
    link = Link(1e-3, 1e-9)
    ends = simulator.allreduce(way, ready, 10**6, link)
    cost = costs.seconds(way, len(ready), 10**6, link.alpha, link.beta)
    assert ends.min() >= max(ready)
    assert ends.max() <= (max(ready) + cost) * (1 + 1e-9)


def test_the_chunks_of_a_network_follow_one_another():
    link = Link(1, 0)
    found = {c: simulator.allreduce("network", [0, 0], 8, link, c) for c in (1, 3)}
    assert [ends.tolist() for ends in found.values()] == [[2, 2], [4, 4]]
    with pytest.raises(ValueError, match="chunks must be a whole number of .* not 0"):
        simulator.allreduce("network", [0, 0], 8, link, chunks=0)


def test_a_straggler_delays_everybody_by_its_delay():
    compute = numpy.ones((5, 8))
    compute[:, 3] = 4
    link = Link(1e-3, 1e-9)
    each = 4 + costs.seconds("ring", 8, 10**6, link.alpha, link.beta)
    assert close(simulator.steps("ring", compute, 10**6, link)[-1], 5 * each)


# ---- servers


@quick
@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 4), times, bytes_, links,
       st.sampled_from([1.0, 1 / 16]))
def test_workers_in_step_end_as_the_formula_says(n, s, steps, t, nbytes, link, pushed):
    run = simulator.serve(numpy.full((steps, n), t), nbytes, link, s,
                              barrier=True, pushed=pushed)
    each = t + step.exchange_seconds("servers", n, nbytes, link, s, pushed=pushed)
    assert close(run.ends[-1], steps * each)
    assert len(run.ends) == steps
    assert sorted(run.updates) == sorted([*range(n)] * steps)  # none lost, none twice


@quick
@given(st.integers(1, 12), st.integers(1, 6), times, bytes_, links)
def test_without_a_barrier_workers_are_never_later(n, s, t, nbytes, link):
    compute = numpy.full((4, n), t)
    loose, strict = (simulator.serve(compute, nbytes, link, s, barrier=b)
                     for b in (False, True))
    assert loose.ends[-1] <= strict.ends[-1] * (1 + 1e-9)
    assert sorted(loose.updates) == sorted(strict.updates)


def test_asynchronous_equals_have_the_staleness_of_everybody_else():
    run = simulator.serve(numpy.ones((50, 6)), 0, Link(1e-3, 0), asynchronous=True)
    stale = staleness.staleness(simulator.tickets(run.updates))
    assert {x for own in stale for x in own} == {5}


def test_a_slow_worker_is_stale_and_holds_nobody_up_if_nobody_waits():
    compute = numpy.ones((40, 3))
    compute[:, 2] = 4
    link = Link(1e-6, 0)
    free = simulator.serve(compute, 0, link, asynchronous=True)
    tied = simulator.serve(compute, 0, link)
    assert free.ends[0] == pytest.approx(40, rel=1e-3)
    assert tied.ends[-1] == pytest.approx(160, rel=1e-3)
    stale = staleness.staleness(simulator.tickets(free.updates))
    assert stale[2][0] in (7, 8)  # two workers, four steps each while it makes one


def test_asynchronous_workers_end_in_the_order_of_finishing():
    run = simulator.serve([[3.0, 1.0, 2.0]], 8, Link(0, 0), asynchronous=True)
    assert run == ([1, 2, 3], [1, 2, 0])


def test_an_asynchronous_server_link_is_the_limit_when_workers_are_many():
    link = Link(0, 1e-6)
    run = simulator.serve(numpy.full((20, 16), 1e-3), 10**4, link,
                              asynchronous=True)
    assert run.ends[-1] >= 20 * 16 * 1e-2  # the pushes of all, one after another


@quick
@given(st.integers(2, 6), st.integers(0, 10**6))
def test_the_same_inputs_give_the_same_run(n, seed):
    compute = numpy.random.RandomState(seed).exponential(size=(5, n))
    first, second = (simulator.serve(compute, 10**5, Link(1e-3, 1e-8), 2,
                                         asynchronous=True) for _ in range(2))
    assert first == second


# ---- pipelines


@quick
@given(st.lists(st.tuples(times, times), min_size=1, max_size=8), st.integers(1, 16))
def test_unequal_stages_end_as_the_formula_says(stages, m):
    forward, backward = zip(*stages)
    simulated = simulator.pipeline(forward, backward, m)
    assert close(simulated, step.pipeline_seconds(forward, backward, m))


def test_messages_delay_the_first_micro_batch_and_hide_behind_the_others():
    alone = simulator.pipeline([1, 1, 1], [2, 2, 2], 1, message=0.5)
    assert alone == 9 + 4 * 0.5
    many = simulator.pipeline([1, 1, 1], [2, 2, 2], 20, message=0.5)
    assert many == step.pipeline_seconds([1, 1, 1], [2, 2, 2], 20) + 4 * 0.5
