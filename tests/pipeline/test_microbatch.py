"""Gradients by micro-batches, in a pipeline, equal those of the whole minibatch."""

import d2l_ext  # noqa: F401, I001
import numpy
import pytest
from held_devices import done_alone, held, order_on
from hypothesis import given, settings
from hypothesis import strategies as st
from mxnet import autograd, np, npx

from d2l_ext.devices import storage, try_all_devices
from d2l_ext.pipeline import microbatch
from d2l_ext.pipeline.microbatch import (
    SplitStage,
    Stage,
    dense,
    dense_stages,
    gradients,
    init_dense,
)
from d2l_ext.pipeline.schedule import (
    gpipe,
    interleaved,
    one_f_one_b,
    peak_held,
    zero_bubble,
)

npx.set_np()

every_schedule = pytest.mark.parametrize("make", [gpipe, one_f_one_b])
TOLERANCE = {"float64": 1e-10, "float32": 2e-5}


def loss(outputs, y):
    return ((outputs - y) ** 2).sum() / 2


def loss_of_each(outputs, y):
    return ((outputs - y) ** 2).sum(axis=1) / 2


def minibatch(n, width, dtype="float32", seed=1):
    draw = numpy.random.RandomState(seed).randn
    return np.array(draw(n, width), dtype), np.array(draw(n, width), dtype)


def whole(params, X, y, loss=loss):
    """Gradients of the whole minibatch, on one device, as NumPy arrays."""
    params = [p.copy() for p in params]
    for p in params:
        p.attach_grad()
    with autograd.record():
        total = loss(dense(X, params), y)
    total.backward()
    return [p.grad.asnumpy() for p in params]


def of(stages):
    return [g.asnumpy() for stage in stages for g in stage.grads]


def assert_close(found, expected, tolerance, least=0):
    assert len(found) == len(expected)
    for f, e in zip(found, expected):
        assert f.shape == e.shape and f.dtype == e.dtype
        assert abs(f - e).max() <= tolerance * max(least, abs(e).max())


@settings(max_examples=80)
@given(
    make=st.sampled_from([gpipe, one_f_one_b]),
    loss=st.sampled_from([loss, loss_of_each]),
    dtype=st.sampled_from(sorted(TOLERANCE)),
    p=st.integers(1, 5),
    m=st.integers(1, 9),
    more_blocks=st.integers(0, 3),
    more_examples=st.integers(0, 7),
    seed=st.integers(0, 2**31 - 1),
)
def test_any_cut_and_any_micro_batches_give_the_gradients_of_the_whole_minibatch(
    make, loss, dtype, p, m, more_blocks, more_examples, seed
):
    params = init_dense(p + more_blocks, width=3, seed=seed, dtype=dtype)
    X, y = minibatch(m + more_examples, 3, dtype, seed)
    stages = dense_stages(params, try_all_devices(p))
    losses = gradients(stages, make(p, m), X, y, loss)
    assert_close(of(stages), whole(params, X, y, loss), TOLERANCE[dtype], least=1)
    total = pytest.approx(float(loss(dense(X, params), y).sum()), rel=TOLERANCE[dtype])
    assert sum(float(x.sum()) for x in losses) == total


@pytest.mark.parametrize("order", [[0, 1], [1, 0], [1]])
def test_each_stage_works_on_its_device_and_leaves_the_given_arrays_alone(order):
    params, devices = init_dense(4, 5), [try_all_devices(2)[i] for i in order]
    X, y = minibatch(6, 5)
    before = [a.asnumpy().copy() for a in [*params, X, y]]
    stages = dense_stages(params, devices)
    losses = gradients(stages, one_f_one_b(len(order), 3), X, y, loss)
    for stage, device in zip(stages, devices):
        assert {a.ctx for a in stage.params + stage.grads} == {device}
    assert {a.ctx for a in losses} == {devices[-1]} and len(losses) == 3
    for a, b in zip([*params, X, y], before):
        assert (a.asnumpy() == b).all()


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_the_first_stage_may_read_whole_numbers(dtype):
    table, w = np.arange(12).reshape(4, 3).astype("float32"), np.array([1.0, 2, 3])
    first, second = try_all_devices(2)

    def embed(X, params):
        return npx.embedding(X, *params, input_dim=4, output_dim=3)

    stages = [Stage(embed, [table], first), Stage(lambda X, p: X * p[0], [w], second)]
    tokens = np.array([1, 3, 3, 0, 1, 3], dtype=dtype)
    gradients(stages, one_f_one_b(2, 3), tokens, tokens, lambda outputs, y: outputs)
    assert stages[0].grads[0].tolist() == [[1, 2, 3], [2, 4, 6], [0, 0, 0], [3, 6, 9]]
    assert stages[1].grads[0].tolist() == table[tokens].sum(0).tolist()
    assert tokens.tolist() == [1, 3, 3, 0, 1, 3]


def test_five_blocks_on_two_devices_are_cut_after_the_second():
    stages = dense_stages(init_dense(5, 2), try_all_devices(2))
    assert [len(stage.params) for stage in stages] == [4, 6]


@every_schedule
def test_training_by_micro_batches_takes_the_steps_of_the_whole_minibatch(make):
    params = init_dense(3, 4, dtype="float64")
    stages = dense_stages(params, try_all_devices(3))
    for step in range(5):
        X, y = minibatch(9, 4, "float64", seed=step)
        gradients(stages, make(3, 4), X, y, loss)
        for p, g in zip(params, whole(params, X, y)):
            p -= 0.01 / 9 * np.array(g, dtype="float64")
        for stage in stages:
            for p, g in zip(stage.params, stage.grads):
                p -= 0.01 / 9 * g
    assert_close([p.asnumpy() for s in stages for p in s.params],
                 [p.asnumpy() for p in params], 1e-10)


# ---- The order on the devices ----

CHUNKS, PER_STAGE = 6, 2
#: A stage has two products forward; all its backward work is one bulk.
NAMES = {"forward": ["FullyConnected"] * PER_STAGE, "backward": ["ImperativeBulk"]}
WORK = {"FullyConnected", "ImperativeBulk"}


def a_step(make):
    """The two devices, and a step on them that has run once."""
    devices = try_all_devices(2)
    stages = dense_stages(init_dense(2 * PER_STAGE, 4), devices)
    X, y = minibatch(4 * CHUNKS, 4)

    def step():
        gradients(stages, make(2, CHUNKS), X, y, loss)

    step()
    return devices, step


@every_schedule
def test_each_device_works_in_the_order_of_its_schedule(make):
    for lane, order in zip(order_on(*a_step(make)), make(2, CHUNKS)):
        expected = [name for _, kind, _ in order for name in NAMES[kind]]
        assert [name for name in lane if name in WORK] == expected


@every_schedule
def test_a_micro_batch_is_sent_on_before_the_next_one_begins(make):
    """Without turns, the messages queue behind the work on all micro-batches."""
    devices, step = a_step(make)
    alone = done_alone(step, devices[0], devices)[2 * CHUNKS :]  # behind the inputs
    forwards = peak_held(make(2, CHUNKS))[0]
    expected = [*NAMES["forward"], "CopyCPU2CPU"] * forwards
    assert [name for name in alone if name in expected] == expected


@every_schedule
def test_a_step_is_asked_for_while_the_devices_stand_still(make):
    devices, step = a_step(make)
    with held(*devices):
        step()


def test_gpipe_holds_every_micro_batch_and_one_f_one_b_two_and_one():
    devices, rows, width, chunks = try_all_devices(2), 1024, 64, 8
    stages = dense_stages(init_dense(4, width), devices)
    X, y = minibatch(rows * chunks, width)
    peaks = {}
    for make in (gpipe, one_f_one_b):
        gradients(stages, make(2, chunks), X, y, loss)  # warms up
        npx.waitall()
        with storage.record(devices) as memory:
            gradients(stages, make(2, chunks), X, y, loss)
        peaks[make] = list(memory.peak.values())
    # A stage of two blocks keeps its input and their outputs, at least. The inputs of
    # stage 0 are there in any case, so that two thirds are saved there.
    micro_batch = 3 * rows * width * 4
    for peak, fewer, other in zip(peaks[gpipe], [6, 7], peaks[one_f_one_b]):
        assert peak >= chunks * micro_batch
        assert peak - other > fewer * micro_batch // 2


@pytest.mark.parametrize("schedule, n, targets, message", [
    (gpipe(2, 8), 5, 5, "8 micro-batches of 5 examples: use at most 5"),
    (gpipe(3, 2), 6, 6, "the schedule is for 3 stages, not 2"),
    (gpipe(2, 2), 6, 4, "X has 6 examples, y has 4"),
    (zero_bubble(2, 2), 4, 4, "two parts: make each of the stages a SplitStage"),
    ([order[::-1] for order in gpipe(2, 2)], 4, 4, "the schedule is stuck"),
])
def test_what_does_not_fit_is_refused_before_anything_runs(
    schedule, n, targets, message
):
    stages = dense_stages(init_dense(2, 3), try_all_devices(2))
    X, y = minibatch(n, 3)[0], minibatch(targets, 3)[1]
    with pytest.raises(ValueError, match=message):
        gradients(stages, schedule, X, y, loss)


def test_a_cut_that_leaves_a_stage_empty_is_refused():
    with pytest.raises(ValueError, match="2 blocks are too few for 3 devices"):
        dense_stages(init_dense(2, 3), try_all_devices(3))
    with pytest.raises(ValueError, match="no parameters: merge it with its neighbour"):
        Stage(dense, [], try_all_devices(1)[0])
    with pytest.raises(ValueError, match="a stage has no parameters"):
        SplitStage([(len, [])], None)


# ---- Shorter bubbles ----


def split_stages(params, devices, parts):
    layers = [(dense, params[i : i + 2]) for i in range(0, len(params), 2)]
    p = len(devices)
    per = len(layers) // (p * parts)
    return [SplitStage(layers[s * per : (s + 1) * per], devices[s % p])
            for s in range(p * parts)]


@pytest.mark.parametrize("p", [1, 2, 4])
@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-11), ("float32", 1e-5)])
def test_every_schedule_gives_the_gradients_of_the_whole_minibatch(p, dtype, tolerance):
    devices, params = try_all_devices(p), init_dense(8, 5, dtype=dtype)
    X, y = minibatch(19, 5, dtype)  # 19 examples: micro-batches differ in size
    expected = whole(params, X, y)
    ways = [(zero_bubble(p, 8), 1), (zero_bubble(p, 8, 2), 1),
            (interleaved(p, 8, 2), 2), (interleaved(p, 4, 1), 1)]
    for orders, parts in ways:
        stages = split_stages(params, devices, parts)
        losses = gradients(stages, orders, X, y, loss)
        assert_close(of(stages), expected, tolerance)
        assert len(losses) == 1 + max(op.chunk for op in orders[0])
        assert {g.ctx for stage in stages for g in stage.grads} == {*devices}


def test_the_stages_of_a_device_take_turns_as_the_schedule_says():
    devices, operators = try_all_devices(2), [np.exp, np.sin, np.cos, np.tanh]
    stages = [
        SplitStage([(lambda X, w, of=of: of(X * w[0]), [np.ones(1)])], devices[s % 2])
        for s, of in enumerate(operators)
    ]
    orders, X = interleaved(2, 4, 2), np.ones((8, 5))
    lanes = order_on(
        devices, lambda: gradients(stages, orders, X, X, lambda outputs, y: outputs)
    )
    names = [f"_npi_{of.__name__}" for of in operators]
    for lane, order in zip(lanes, orders):
        ran = [names.index(name) for name in lane if name in names]
        assert ran == [op.stage for op in order if op.kind == "forward"]


def test_nothing_is_held_when_a_step_is_over():
    device = try_all_devices(1)
    stages = split_stages(init_dense(4, 8), device, 1)
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
    (stage,) = split_stages(init_dense(2, 3), try_all_devices(1), 1)
    real, found = microbatch._gradients, []
    monkeypatch.setattr(microbatch, "_gradients",
                        lambda *args: found.append(args) or real(*args))
    X = np.ones((4, 3))
    stage.begin({})
    if not first:
        stage.mark(X)
    stage.forward(0, X)
    stage.backward(0, np.ones((4, 3)))
    stage.add_up(0)
    assert [len(variables) for _, variables, _ in found] == asked
