"""Shorter bubbles: orders that are valid, as long and as heavy as their formulas."""

import d2l_ext  # noqa: F401, I001
import numpy
import pytest
from mxnet import np, npx

from d2l_ext.devices import storage, timeline, try_all_devices
from d2l_ext.pipeline import microbatch
from d2l_ext.pipeline.microbatch import SplitStage, gradients
from d2l_ext.pipeline.schedule import (
    Op,
    clock,
    interleaved,
    one_f_one_b,
    op_clock,
    peak_held,
    waiting,
    zero_bubble,
)

npx.set_np()

SIZES = [(p, m) for p in range(1, 9) for m in range(1, 17)]
GROUPS = [(p, m, v) for p, m in SIZES if m % p == 0 for v in (1, 2, 4)]


def loss(outputs, y):
    return ((outputs - y) ** 2).sum() / 2


def valid(orders, stages, chunks, kinds):
    """Each work once, on one device, and none before what it needs."""
    times = op_clock(orders)
    assert sorted(times) == sorted(
        Op(s, kind, i) for s in range(stages) for kind in kinds for i in range(chunks)
    )
    for (s, kind, i), (_, start, _) in times.items():
        needs = {"forward": [(s - 1, kind)], "weights": [(s, "input")]}.get(
            kind, [(s, "forward"), (s + 1, kind)]
        )
        assert all(times[op][2] <= start for stage, k in needs
                   for op in [Op(stage, k, i)] if op in times)  # fmt: skip
    return times


def test_interleaved_waits_a_vth_and_holds_what_the_formula_says():
    for p, m, v in GROUPS:
        orders = interleaved(p, m, v)
        times = valid(orders, p * v, m, ("forward", "backward"))
        assert waiting(times) == [3 * (p - 1)] * p
        ahead = [p - 1 - d if v == 1 else 2 * (p - 1 - d) + (v - 1) * p
                 for d in range(p)]  # fmt: skip
        assert peak_held(orders) == [min(n + 1, m * v) for n in ahead]


def test_with_one_stage_a_device_interleaved_is_one_f_one_b():
    for p, m, _ in GROUPS:
        assert interleaved(p, m, 1) == one_f_one_b(p, m)


def test_zb_h1_waits_a_third_of_one_f_one_b_and_holds_p_micro_batches():
    for p, m in SIZES:
        orders = zero_bubble(p, m)
        times = valid(orders, p, m, ("forward", "input", "weights"))
        assert waiting(times) == [p - 1 + max(0, p - m)] * p
        assert peak_held(orders) == [min(p, m)] * p


def test_zb_h2_does_not_wait_inside_its_work_and_holds_twice_as_many():
    for p, m in SIZES:
        orders = zero_bubble(p, m, ahead=2)
        times = valid(orders, p, m, ("forward", "input", "weights"))
        inside = []
        for d in range(p):
            own = [(start, end) for at, start, end in times.values() if at == d]
            inside.append(max(own)[1] - min(own)[0] - 3 * m)
        assert max(inside) == max(0, 2 * p - 1 - m)
        assert peak_held(orders) == [min(2 * p - 1, m)] * p


@pytest.mark.parametrize(("make", "message"), [
    (lambda: interleaved(4, 6, 2), "6 micro-batches do not make groups of 4.*use 8"),
    (lambda: interleaved(2, 4, 0), "parts must be a whole number from 1, not 0"),
    (lambda: zero_bubble(0, 4), "devices must be a whole number from 1, not 0"),
    (lambda: zero_bubble(2, 1.5), "chunks must be a whole number from 1, not 1.5"),
    (lambda: op_clock([[Op(0, "input", 0), Op(0, "forward", 0)]]), "is stuck: stage 0"),
    (lambda: op_clock([[Op(0, "weights", 0), Op(0, "input", 0)]]), "to go weights"),
    (lambda: SplitStage([(len, [])], None), "a stage has no parameters"),
])  # fmt: skip
def test_what_cannot_be_scheduled_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_weights_before_their_input_are_refused_wherever_a_reader_puts_them():
    for d in range(2):
        for i in range(2):
            orders = zero_bubble(2, 2)
            a, b = (orders[d].index((d, kind, i)) for kind in ("input", "weights"))
            orders[d][a], orders[d][b] = orders[d][b], orders[d][a]
            for check in (op_clock, clock):
                with pytest.raises(ValueError, match=f"stage {d} waits to go weights"):
                    check(orders)


def stages_of(params, devices, parts):
    layers = [(microbatch.dense, params[i : i + 2]) for i in range(0, len(params), 2)]
    p = len(devices)
    per = len(layers) // (p * parts)
    return [SplitStage(layers[s * per : (s + 1) * per], devices[s % p])
            for s in range(p * parts)]  # fmt: skip


def of(stages):
    return [g.asnumpy() for stage in stages for g in stage.grads]


@pytest.mark.parametrize("p", [1, 2, 4])
@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-11), ("float32", 1e-5)])
def test_every_schedule_gives_the_gradients_of_the_whole_minibatch(p, dtype, tolerance):
    devices, params = try_all_devices(p), microbatch.init_dense(8, 5, dtype=dtype)
    draw = numpy.random.RandomState(2).randn
    X, y = np.array(draw(2, 19, 5), dtype)  # 19 examples: micro-batches differ in size
    (whole,) = microbatch.dense_stages(params, devices[:1])
    gradients([whole], one_f_one_b(1, 1), X, y, loss)
    expected = of([whole])
    ways = [(zero_bubble(p, 8), 1), (zero_bubble(p, 8, 2), 1),
            (interleaved(p, 8, 2), 2), (interleaved(p, 4, 1), 1)]  # fmt: skip
    for orders, parts in ways:
        stages = stages_of(params, devices, parts)
        losses = gradients(stages, orders, X, y, loss)
        for found, right in zip(of(stages), expected):
            assert abs(found - right).max() <= tolerance * abs(right).max()
        assert len(losses) == 1 + max(op.chunk for op in orders[0])
        assert {g.ctx for stage in stages for g in stage.grads} == {*devices}


def test_the_stages_of_a_device_take_turns_as_the_schedule_says():
    devices, operators = try_all_devices(2), [np.exp, np.sin, np.cos, np.tanh]
    stages = [
        SplitStage([(lambda X, w, of=of: of(X * w[0]), [np.ones(1)])], devices[s % 2])
        for s, of in enumerate(operators)
    ]
    orders, X = interleaved(2, 4, 2), np.ones((2000, 500))
    for _ in range(2):  # the first warms up
        with timeline.record(devices) as trace:
            gradients(stages, orders, X, X, lambda outputs, y: outputs)
    names = [f"_npi_{of.__name__}" for of in operators]
    for device, order in zip(trace.devices, orders):
        ran = [names.index(e.name) for e in trace.of(device) if e.name in names]
        assert ran == [op.stage for op in order if op.kind == "forward"]


def test_nothing_is_held_when_a_step_is_over():
    device = try_all_devices(1)
    stages = stages_of(microbatch.init_dense(4, 8), device, 1)
    X = np.ones((64, 8))
    gradients(stages, zero_bubble(1, 8), X, X, loss)
    found = []
    for _ in range(3):  # the engine's own scratch is counted now and then
        with storage.record(device) as memory:
            gradients(stages, zero_bubble(1, 8), X, X, loss)
        found.append(memory.held.get("cpu/0", 0))
    assert min(found) <= 0


@pytest.mark.parametrize("first, asked", [(True, [1, 4]), (False, [1, 1, 4])])
def test_a_gradient_that_nobody_needs_is_not_computed(first, asked, monkeypatch):
    """That of the network's input: the first stage ends with its first layer's."""
    (stage,) = stages_of(microbatch.init_dense(2, 3), try_all_devices(1), 1)
    real, found = microbatch._gradients, []
    monkeypatch.setattr(microbatch, "_gradients",
                        lambda *args: found.append(args) or real(*args))  # fmt: skip
    X = np.ones((4, 3))
    stage.begin({})
    if not first:
        stage.mark(X)
    stage.forward(0, X)
    stage.backward(0, np.ones((4, 3)))
    stage.add_up(0)
    assert [len(variables) for _, variables, _ in found] == asked
