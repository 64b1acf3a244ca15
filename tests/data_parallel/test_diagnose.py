"""The verdict names the cause, on timelines that were made for it and on real steps."""

import d2l_ext  # noqa: F401, I001
import os

import pytest
from mxnet import cpu, gpu, np, npx

from d2l_ext.data_parallel import diagnose
from d2l_ext import runtime
from d2l_ext.runtime import SETTINGS
from d2l_ext.devices.timeline import Event, Timeline
from d2l_ext.data_parallel.diagnose import ADVICE

npx.set_np()
DEVICES = [cpu(0), cpu(1)]


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    monkeypatch.setattr(diagnose, "_cores", lambda: 2)


def judge(*lanes, devices=DEVICES, steps=1, seconds=0.1, environ=SETTINGS, **more):
    """The verdict on lanes of (start, end), the first of cpu/0, and so on."""
    trace = Timeline()
    events = [
        Event(f"cpu/{i}", "dot", "forward", *span)
        for i, lane in enumerate(lanes)
        for span in lane
    ]
    trace.events = sorted(events, key=lambda e: e.start)
    return diagnose.judge(trace, devices, steps, seconds, environ=environ, **more)


def test_two_devices_side_by_side_are_healthy():
    #  cpu/0  ██████████
    #  cpu/1   █████████
    verdict = judge([(0, 100)], [(10, 100)])
    assert verdict.cause == "healthy"
    assert verdict.busy == {"cpu/0": 1.0, "cpu/1": 0.9}
    assert (verdict.overlap, verdict.idle, verdict.longest_wait) == (1.0, 0.0, 0.0)


@pytest.mark.parametrize("k", [2, 5, 8])
def test_the_overlap_of_any_number_of_devices_is_from_0_to_1(k):
    devices = [cpu(i) for i in range(k)]
    together = judge(*[[(0, 100)]] * k, devices=devices)
    assert (together.overlap, together.cause) == (1.0, "healthy")
    in_turn = judge(*([(0.1 * i, 0.1 * i + 0.1)] for i in range(k)), devices=devices)
    assert f"{in_turn.overlap:.0%}" == "0%"


TURNS = [(0, 50)], [(50, 100)]


def test_taking_turns_while_python_waits_is_a_blocking_call():
    verdict = judge(*TURNS, waits=[("float(loss)", 0.05, True), ("end()", 0.04, False)])
    assert verdict.cause == "blocking call"
    assert "`float(loss)`" in verdict.advice
    assert (verdict.overlap, verdict.longest_wait) == (0.0, 0.05)


@pytest.mark.parametrize("waits", [
    [],
    [("waitall()", 0.09, False)],  # at the end of the step, after all was asked
    [("float(loss)", 0.001, True)],  # the value was there already
])
def test_taking_turns_while_python_does_not_wait_is_a_shared_resource(waits):
    assert judge(*TURNS, waits=waits).cause == "shared resource"


def test_taking_turns_while_python_asks_all_the_time_is_python_overhead():
    """A small minibatch: each device is done before Python has asked the other."""
    assert judge(*TURNS, asking=0.06).cause == "Python overhead"
    assert judge(*TURNS, asking=0.04).cause == "shared resource"


@pytest.mark.parametrize("together, cause", [(40, "shared resource"), (60, "healthy")])
def test_less_than_half_of_what_is_possible_together_is_too_little(together, cause):
    #  cpu/0  ██████████
    #  cpu/1        ██████████
    verdict = judge([(0, 100)], [(100 - together, 200 - together)])
    assert (verdict.overlap, verdict.cause) == (together / 100, cause)


@pytest.mark.parametrize("seconds, cause", [
    (0.009, "shared resource"), (0.011, "blocking call"),
])
def test_waits_inside_count_from_a_tenth_of_the_step_on(seconds, cause):
    assert judge(*TURNS, waits=[("float(loss)", seconds, True)]).cause == cause


def test_a_wait_between_overlapping_steps_is_healthy():
    waits = [("waitall()", 0.09, True)]
    assert judge([(0, 100)], [(0, 100)], waits=waits).cause == "healthy"


def test_one_device_named_twice_is_found_before_all_else():
    verdict = judge([(0, 100)], devices=[cpu(0), cpu(0)], environ={})
    assert verdict.cause == "same device twice"


@pytest.mark.parametrize("slow", [[(0, 60)], [(0, 5)], []])
def test_a_device_that_has_much_less_to_do_points_to_the_slowest(slow):
    #  cpu/0  ██████████
    #  cpu/1  ██████
    assert judge([(0, 100)], slow).cause == "slowest device"


def test_one_long_pause_in_every_step_is_waiting_for_data():
    #  cpu/0  ████░░░░░░████
    #  cpu/1  ████░░░░░░████
    lane = [(0, 40), (100, 140)]
    verdict = judge(lane, lane, steps=2, recorded=200)
    assert verdict.cause == "waiting for data"
    assert verdict.idle == 0.6


@pytest.mark.parametrize("lanes", [
    #  cpu/0  █░░░█░░░█░░░
    #  cpu/1   █░░░█░░░█░░░
    [[(4 * i + c, 4 * i + c + 1) for i in range(25)] for c in (0, 1)],
    [[(10 * i, 10 * i + 2) for i in range(20)]] * 2,
])
def test_many_pauses_are_python_overhead(lanes):
    assert judge(*lanes).cause == "Python overhead"


@pytest.mark.parametrize("asking, cause", [
    (0.0025, "Python overhead"), (0.001, "waiting for data"),
])
@pytest.mark.parametrize("scale", [0.1, 1, 10])
def test_a_pause_is_pythons_overhead_while_it_asks_and_then_waiting_on_any_machine(
    scale, asking, cause
):
    #  cpu/0  █░░█░░█░░█
    lane = [(3 * i * scale, (3 * i + 1) * scale) for i in range(4)]
    verdict = judge(lane, lane, steps=3, seconds=0.003 * scale, asking=asking * scale)
    assert verdict.cause == cause


def test_a_loader_that_computes_in_pythons_thread_is_waiting_for_data_as_well():
    """All of 60 ms is Python's, of which asking for 200 operators takes 10."""
    #  cpu/0  ░░░░░░░░░░████
    lane = [(50 + 0.4 * i, 50 + 0.4 * i + 0.3) for i in range(100)]
    verdict = judge(lane, lane, recorded=90, seconds=0.09, asking=0.06)
    assert verdict.cause == "waiting for data"


def test_one_pause_in_some_steps_is_not_waiting_for_data():
    """Another program took the cores for a while in the second of three steps."""
    #  cpu/0  █░█░░░░░░░░█░█
    lane = [(0, 10), (15, 25), (125, 135), (140, 150)]
    verdict = judge(lane, lane, steps=3, seconds=0.05, asking=0.01)
    assert verdict.cause == "Python overhead"


def test_what_other_devices_do_is_left_out():
    verdict = judge(*TURNS, [(0, 100)])
    assert verdict.cause == "shared resource" and "cpu/2" not in verdict.busy


def test_a_step_that_does_nothing_gets_a_verdict():
    assert judge([], [], asking=0.01).cause == "Python overhead"


@pytest.mark.parametrize("change, missing", [
    ({}, ""),
    ({"OMP_NUM_THREADS": "2"}, "OMP_NUM_THREADS=1"),
    ({"OMP_NUM_THREADS": "2,1"}, "OMP_NUM_THREADS=1"),
    ({"OMP_NUM_THREADS": "1,2"}, ""),  # 2 is for threads that threads start
    ({"MXNET_CPU_TEMP_COPY": "4"}, "MXNET_CPU_TEMP_COPY=256"),
    ({"MXNET_ENGINE_TYPE": "NaiveEngine"},
     "MXNET_ENGINE_TYPE=ThreadedEnginePerDevice"),
])
def test_a_setting_that_stands_in_the_way_is_named(change, missing):
    environ = {**SETTINGS, **change}
    assert diagnose.missing_settings(DEVICES, environ) == missing
    verdict = judge([(0, 100)], [(0, 100)], environ=environ)
    assert verdict.cause == ("settings" if missing else "healthy")
    assert missing in verdict.advice


def test_a_context_beyond_the_cores_is_seen_at_work():
    # It borrows a slot of the profiler that has another name.
    devices = [cpu(0), cpu(runtime.cores())]
    arrays = [np.ones((600, 600), ctx=device) for device in devices]
    verdict = diagnose.diagnose(lambda: [np.dot(a, a) for a in arrays], devices, 2)
    assert min(verdict.busy.values()) > 0


@pytest.mark.parametrize("devices, cores, environ, missing", [
    (DEVICES, 2, {}, "OMP_NUM_THREADS=1 MXNET_CPU_TEMP_COPY=256"),
    (DEVICES, 32, {**SETTINGS, "OMP_NUM_THREADS": "16"}, ""),
    ([gpu(0), gpu(1)], 2, {}, ""),
])
def test_what_is_missing_depends_on_cores_and_devices(
    monkeypatch, devices, cores, environ, missing
):
    monkeypatch.setattr(diagnose, "_cores", lambda: cores)
    assert diagnose.missing_settings(devices, environ) == missing


def test_the_report_says_cause_measurements_and_what_to_do():
    verdict = judge([(0, 100)], [(0, 60)])
    report = str(verdict).splitlines()
    assert report[0] == "cause: slowest device"
    assert "  time per step           100.0 ms" in report
    assert "  cpu/1 works             60%" in report
    at = report.index("  Python computes         0.0 ms") + 1
    assert " ".join(report[at:]) == ADVICE["slowest device"]
    assert max(map(len, report)) <= 80


# ---- Real steps: what does not depend on how fast they are ----


def work(device, times=4):
    a = np.ones((700, 700), ctx=device)
    for _ in range(times):
        a = np.dot(a, a) * 1e-3
    return a


def work_on_both():
    return [work(device) for device in DEVICES]


def wait_for_each():
    for device in DEVICES:
        float(work(device)[0, 0])


def test_a_step_that_waits_for_each_device_never_has_both_at_work():
    verdict = diagnose.diagnose(wait_for_each, DEVICES, steps=2)
    assert verdict.overlap == 0 < verdict.longest_wait
    lines = [line for line, *_ in diagnose._waits(wait_for_each)]
    assert lines == ["float(work(device)[0, 0])"] * 2


def test_a_step_that_asks_both_devices_has_no_blocking_call():
    verdict = diagnose.diagnose(work_on_both, DEVICES)
    assert verdict.cause not in ("blocking call", "settings")
    assert verdict.longest_wait == 0


# ---- A clock that is given ----


@pytest.fixture
def clock(monkeypatch):
    """A function that lets time pass, all of it or that of Python's own thread, too."""
    now, own = [0.0], [0.0]
    monkeypatch.setattr(diagnose, "perf_counter", lambda: now[0])
    monkeypatch.setattr(diagnose, "thread_time", lambda: own[0])

    def passes(seconds, of_python=0.0):
        now[0] += seconds
        own[0] += of_python

    return passes


@pytest.mark.parametrize("after, inside", [(0.0, False), (0.1, False), (0.3, True)])
def test_a_wait_at_the_very_end_of_a_step_is_told_from_one_inside(clock, after, inside):
    """At the end: in the last 2 % of the step, here of 10 s."""
    x = np.ones(3)

    def step():
        clock(5)
        x.wait_to_read()
        clock(5 - after)
        npx.waitall()
        clock(after)

    found = [(line, is_inside) for line, _, is_inside in diagnose._waits(step)]
    assert found == [("x.wait_to_read()", True), ("npx.waitall()", inside)]


def test_the_verdict_is_on_the_measurements_of_a_step(clock, monkeypatch):
    x, given = np.ones(3), []
    monkeypatch.setattr(diagnose, "judge", lambda trace, *rest: given.extend(rest))

    def step():
        clock(3, of_python=1)
        x.wait_to_read()
        clock(1)

    diagnose.diagnose(step, DEVICES, steps=2)
    devices, steps, seconds, waits, recorded, asking = given
    assert (devices, steps, seconds, recorded, asking) == (DEVICES, 2, 4, 8000, 1)
    assert waits == [("x.wait_to_read()", 0, True)] * 2


# ---- What is refused, and what is noted ----


def test_one_context_for_both_devices_is_named():
    devices = [cpu(0), cpu(0)]
    verdict = diagnose.diagnose(lambda: work(devices[0]), devices, steps=1)
    assert verdict.cause == "same device twice"
    assert list(verdict.busy) == ["cpu/0"]


@pytest.mark.parametrize("devices, steps, message", [
    (DEVICES[:1], 5, "1 devices, 5 steps"),
    (DEVICES, 0, "2 devices, 0 steps"),
    ([cpu(0), cpu((os.cpu_count() or 1) + 2)], 5, "cannot be recorded"),
])
def test_what_cannot_be_diagnosed_is_refused(devices, steps, message):
    with pytest.raises(ValueError, match=message):
        diagnose.diagnose(work_on_both, devices, steps)


def test_every_blocking_call_is_noted_with_its_line():
    a = np.ones(3)
    with diagnose.blocking_calls() as waits:
        b = a + 1
        b.wait_to_read()
        print(b)
        npx.waitall()
    lines = [wait.line for wait in waits]
    assert lines == ["b.wait_to_read()", "print(b)", "npx.waitall()"]


def test_no_call_is_noted_after_the_block_even_if_it_fails():
    with pytest.raises(KeyError), diagnose.blocking_calls() as waits:
        raise KeyError("in the block")
    np.ones(3).asnumpy()
    assert waits == []
