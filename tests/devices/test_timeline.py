"""The timeline tells which device worked when."""

import d2l_ext  # noqa: F401, I001
import json
import os
import shutil

import matplotlib
import matplotlib.pyplot as plt
import mxnet as mx
import pytest
from mxnet import np, npx

from d2l_ext.devices import timeline
from d2l_ext.devices import try_all_devices
from d2l_ext.devices.timeline import Event, Timeline

matplotlib.use("Agg")
npx.set_np()


def trace_of(*events):
    trace = Timeline()
    trace.events = [Event(d, "dot", "forward", s, e) for d, s, e in events]
    return trace


def work(device, times=3):
    a = np.ones((400, 400), ctx=device)
    for _ in range(times):
        a = np.dot(a, a) * 0.001
    return a


@pytest.mark.parametrize("events, span, busy, overlap", [
    #  cpu/0  ████████
    #  cpu/1      ████████
    ([("cpu/0", 0, 8), ("cpu/1", 4, 12)], 12, {None: 12, "cpu/0": 8, "cpu/1": 8}, 4),
    ([("cpu/0", 0, 5), ("cpu/1", 5, 9)], 9, {None: 9}, 0),  # one after the other
    ([("cpu/0", 0, 5), ("cpu/0", 3, 9)], 9, {"cpu/0": 9}, 0),  # of one device
    ([("cpu/0", 0, 4), ("cpu/1", 0, 4), ("cpu/2", 0, 4)], 4, {None: 4}, 4),  # three
    ([], 0, {None: 0}, 0),
])
def test_time_is_counted_once_however_many_work(events, span, busy, overlap):
    trace = trace_of(*events)
    assert (trace.span(), trace.overlap()) == (span, overlap)
    assert {device: trace.busy(device) for device in busy} == busy


def test_printed_it_says_how_long_each_worked_and_how_long_together():
    trace = trace_of(("cpu/0", 0, 8), ("cpu/1", 4, 12))
    assert str(trace) == "cpu/0 works 8 ms, cpu/1 works 8 ms, 4 ms side by side"
    assert str(Timeline()) == "0 ms side by side"


def test_the_engines_own_marks_are_no_work():
    """The engine marks a wait as an operator, which ends after Python was woken."""
    device = try_all_devices(1)[0]
    with timeline.record() as trace:
        work(device).wait_to_read()
    assert "WaitForVar" not in {e.name for e in trace.events}


def test_a_file_for_chrome_has_a_process_for_each_device_and_microseconds(tmp_path):
    trace = trace_of(("cpu/0", 0.25, 8), ("cpu/1", 4, 12.5))
    names = [{"ph": "M", "name": "process_name", "pid": i, "tid": 0,
              "args": {"name": f"cpu/{i}"}} for i in (0, 1)]
    work = {"ph": "X", "name": "dot", "cat": "forward", "tid": 0}
    timeline.write(trace, tmp_path / "trace")
    assert json.loads((tmp_path / "trace").read_text())["traceEvents"] == [
        *names, {**work, "pid": 0, "ts": 250.0, "dur": 7750.0},
        {**work, "pid": 1, "ts": 4000.0, "dur": 8500.0}]


def test_work_before_the_block_is_not_recorded():
    device = try_all_devices(1)[0]
    with timeline.record():
        pass
    work(device).wait_to_read()  # the profiler has stopped
    work(device, times=50)  # still queued when the next block begins
    with timeline.record() as trace:
        pass
    assert trace.events == []


def test_more_contexts_than_cores_are_named_when_they_are_announced():
    cores = len(os.sched_getaffinity(0))
    devices = [mx.cpu(0), mx.cpu(cores)]
    with timeline.record(devices) as trace:
        for device in devices:
            work(device)
    assert trace.devices == ["cpu/0", f"cpu/{cores}"]


def test_a_context_that_the_profiler_has_no_room_for_is_refused():
    cores = len(os.sched_getaffinity(0))
    refused = pytest.raises(timeline.TooFewCores, match="recorded.*room for cpu")
    with refused, timeline.record([mx.cpu(cores + 2)]):
        pass


def test_an_error_inside_the_block_ends_the_record():
    with pytest.raises(KeyError), timeline.record():
        raise KeyError("in the block")
    with timeline.record() as trace:
        work(try_all_devices(1)[0])
    assert trace.events


F, B, U, C = "forward", "backward", "update", "copy"
BULK, MARK = "ImperativeBulk", "ones_like"


@pytest.mark.parametrize("names, kinds", [
    (["Convolution", "_npi_add", "_npi_multiply_scalar"], [F, F, F]),
    (["_backward_Convolution", "CopyCPU2CPU", "_npi_add"], [B, C, U]),
    ([BULK, "pick", MARK, BULK, "_npi_add", BULK, "sgd_update"], [F, F, F, B, U, B, U]),
    # Two steps: the second's bulk is forward, because the weights have been updated.
    ([BULK, MARK, BULK, "sgd_update", BULK, MARK, BULK], [F, F, B, U, F, F, B]),
    # Micro-batches: a layer's operators are forward, whatever was before.
    (["dot", "_npi_add", MARK, BULK, "_npi_add", "dot", "_npi_add"],
     [F, F, F, B, U, F, F]),
])
def test_kinds_tell_what_an_operator_belongs_to(names, kinds):
    assert timeline.kinds([("cpu/0", name) for name in names]) == kinds


def test_a_mark_is_of_its_device_alone_and_an_update_of_all():
    ran = [("a", MARK), ("b", BULK), ("a", BULK), ("a", "sgd_update"), ("b", MARK),
           ("b", BULK), ("a", BULK), ("a", MARK), ("a", BULK)]
    assert timeline.kinds(ran) == [F, F, B, U, F, B, F, F, B]


def test_backward_reaches_a_device_without_a_mark_by_a_copy():
    """The stages of a pipeline: only the last one has a loss, and a mark."""
    ran = [("cpu/0", "_np_dot"), ("cpu/0", "ImperativeBulk"), ("cpu/1", "ones_like"),
           ("cpu/1", "ImperativeBulk"), ("cpu/0", "ImperativeBulk")]
    assert timeline.kinds(ran) == [F, F, F, B, B]


def test_a_device_stays_in_backward_while_another_updates():
    step = [("cpu/0", "ones_like"), ("cpu/1", "ones_like"), ("cpu/0", "ImperativeBulk"),
            ("cpu/0", "adam_update"), ("cpu/1", "ImperativeBulk"),
            ("cpu/1", "adam_update")]
    assert timeline.kinds(step * 2) == [F, F, B, U, B, U] * 2


def test_a_recorded_step_is_forward_then_backward_then_update():
    net, device = mx.gluon.nn.Dense(8, in_units=8), try_all_devices(1)[0]
    net.initialize(ctx=device)
    net.hybridize()
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    X = np.ones((4, 8), ctx=device)

    def step():
        with mx.autograd.record():
            loss = (net(X) ** 2).sum()
        loss.backward()
        trainer.step(4)

    step()
    before = mx.autograd.backward, mx.nd.NDArray.backward
    with timeline.record() as trace:
        step()
    assert (mx.autograd.backward, mx.nd.NDArray.backward) == before
    order = [e.kind for e in trace.events if e.kind != C]
    assert order == sorted(order, key=[F, B, U].index) and set(order) == {F, B, U}
    assert MARK not in {e.name for e in trace.events}


def test_gradients_asked_for_by_autograd_grad_are_backward_work():
    x = np.ones((64, 64), ctx=try_all_devices(1)[0])
    x.attach_grad()
    before = mx.autograd.grad
    with timeline.record() as trace:
        with mx.autograd.record():
            out, other = mx.npx.relu(mx.npx.relu(x)), mx.npx.relu(x)
        mx.autograd.grad([out], [x], [np.ones_like(out) * 2])
        mx.autograd.grad(other, x)
    assert mx.autograd.grad is before
    assert {e.kind for e in trace.events if "Bulk" in e.name} == {B}


def test_a_gradient_that_backward_is_given_is_passed_on():
    device = try_all_devices(1)[0]
    x, y = np.ones(3, ctx=device), np.ones(3, ctx=device)
    x.attach_grad()
    with timeline.record(), mx.autograd.record():
        out = x * 2
        mx.autograd.backward([out, x * 1], [y * 5, None])
    assert x.grad.asnumpy().tolist() == [11, 11, 11]


@pytest.mark.parametrize("heads, given", [
    (lambda y: y, lambda g: g), (lambda y: [y], lambda g: [g]),
    (lambda y: y, lambda g: [g]), (lambda y: [y], lambda g: g)])
def test_heads_and_their_gradients_may_each_be_a_list(heads, given):
    device = try_all_devices(1)[0]
    x, g = np.ones(3, ctx=device), np.arange(3.0, ctx=device)
    x.attach_grad()
    with timeline.record():
        with mx.autograd.record():
            out = x * 2
        mx.autograd.backward(heads(out), given(g))
        assert x.grad.asnumpy().tolist() == [0, 2, 4]
        with mx.autograd.record():
            out = x * 3
        (found,) = mx.autograd.grad(heads(out), [x], given(g))
    assert found.asnumpy().tolist() == [0, 3, 6]


@pytest.mark.parametrize("ends", [(9, 5), (5, 9)])
def test_axes_that_share_their_time_name_their_lanes_and_show_the_longest(ends):
    _, axes = plt.subplots(2, sharex=True)
    for ax, end in zip(axes, ends):
        timeline.plot(trace_of(("cpu/0", 0, 4), ("cpu/1", 2, end)), ax=ax)
        assert [t.get_text() for t in ax.get_yticklabels()] == ["cpu/0", "cpu/1"]
        assert ax.get_xlabel() == "time (ms)"
    assert [ax.get_xlim() for ax in axes] == [(0, 9)] * 2


def test_the_legend_of_the_first_axes_has_the_hatches_of_all():
    _, (upper, lower) = plt.subplots(2)
    traces = [Timeline() for _ in range(2)]
    traces[0].events = [Event("cpu/0", "dot", F, 0, 1)]
    traces[1].events = [Event("cpu/0", "_npi_add", U, 0, 1)]
    timeline.plot(traces[0], ax=upper)
    assert upper.get_legend() is None
    timeline.plot(traces[1], ax=lower)
    assert [t.get_text() for t in upper.get_legend().get_texts()] == [F, U]
    assert lower.get_legend() is None


def test_a_folder_into_which_the_profiler_writes_late_is_removed_all_the_same(
    monkeypatch
):
    remove, folders = shutil.rmtree, []

    def written_into_meanwhile(folder, **how):
        remove(folder, **how)
        folders.append(folder)
        if len(folders) == 1:
            os.mkdir(folder)

    monkeypatch.setattr(shutil, "rmtree", written_into_meanwhile)
    with timeline.profiled(lambda path: None, profile_imperative=True):
        pass
    assert len(folders) == 2 and not os.path.exists(folders[0])
