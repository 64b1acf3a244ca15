"""Devices that share weights, gradients and states train as replicas do, hold what the
formula says, send what the formula says, and refuse what they cannot share."""

import d2l_ext  # noqa: F401, I001
import numpy
import pytest
from held_devices import TWO, held, order_on
from mxnet import autograd, gluon, np, npx
import mxnet as mx
from recorded_devices import devices_to_record
from trained import assert_bit_equal

from d2l_ext.data_parallel import allreduce, traffic
from d2l_ext.data_parallel.minibatch import split_batch
from d2l_ext.devices import storage, try_all_devices
from d2l_ext.memory import STAGES, Shards, bytes_held, bytes_sent, state_bytes
from d2l_ext.memory.shards import states

DIVIDED = STAGES[1:]
OPTIMIZERS = {
    "sgd": ("sgd", {"learning_rate": 0.05}),
    "momentum": ("sgd", {"learning_rate": 0.05, "momentum": 0.9, "wd": 1e-3}),
    "adam": ("adam", {"learning_rate": 0.01}),
}
squares = gluon.loss.L2Loss()


def dense(width, is_last):
    def forward(X, params):
        out = npx.fully_connected(X, *params, num_hidden=width, flatten=False)
        return out if is_last else npx.relu(out)

    return forward


def network(widths, dtype="float32", seed=0):
    """Dense layers with sizes that few numbers of devices divide."""
    rng, layers = numpy.random.RandomState(seed), []
    for i, (a, b) in enumerate(zip(widths, widths[1:])):
        params = [rng.randn(b, a).astype(dtype) / a**0.5, rng.randn(b).astype(dtype)]
        layers.append((dense(b, i == len(widths) - 2), params))
    return layers


def minibatch(widths, n=23, dtype="float32"):
    rng = numpy.random.RandomState(1)
    return [np.array(rng.randn(n, w), dtype=dtype) for w in (widths[0], widths[-1])]


def trained(shard, devices, optimizer, dtype="float32", steps=6):
    name, options = OPTIMIZERS[optimizer]
    shards = Shards(network(UNEVEN, dtype), devices, shard, name, options)
    X, y = minibatch(UNEVEN, dtype=dtype)
    for _ in range(steps):
        shards.train_batch(X, y, squares)
    return shards


def plain(devices, optimizer, dtype, steps=6):
    """Whole replicas by autograd and a Trainer's optimizer: nothing of `Shards`."""
    name, options = OPTIMIZERS[optimizer]
    layers = network(UNEVEN, dtype)
    updaters = [mx.optimizer.get_updater(mx.optimizer.create(name, **options))
                for _ in devices]
    replicas = [[np.array(p, dtype=dtype, ctx=d) for _, ps in layers for p in ps]
                for d in devices]
    X, y = minibatch(UNEVEN, dtype=dtype)
    for params in replicas:
        for p in params:
            p.attach_grad()
    for _ in range(steps):
        with autograd.record():
            losses = []
            for h, target, params in zip(*split_batch(X, y, devices), replicas):
                for l, (forward, _) in enumerate(layers):
                    h = forward(h, params[2 * l : 2 * l + 2])
                losses.append(squares(h, target))
        for loss in losses:
            loss.backward()
        for same in zip(*replicas):
            allreduce.allreduce([p.grad for p in same])
        for updater, params in zip(updaters, replicas):
            updater.optimizer.rescale_grad = 1 / len(y)
            for i, p in enumerate(params):
                updater(i, p.grad, p)
    return [p.asnumpy() for p in replicas[-1]]


UNEVEN = (13, 37, 11, 29, 5)  # layers of 518, 418, 348 and 150 parameters


#: Whether k divides a layer and which states there are have nothing to do with each
#: other, so each k meets one optimizer, and an odd one Adam.
@pytest.mark.parametrize("k, optimizer", [
    (1, "adam"), (2, "adam"), (2, "momentum"), (3, "adam"), (4, "sgd"), (7, "momentum"),
])
def test_every_stage_trains_as_plain_data_parallelism(k, optimizer):
    """Bit by bit where the ring adds; the star's order of adding differs from it."""
    devices = try_all_devices(k)
    whole = trained("none", devices, optimizer).pack()
    assert set(whole["counts"]) == {6}
    for shard in DIVIDED:
        assert_bit_equal(trained(shard, devices, optimizer).pack(), whole)
    exact, bar = ("float32", 0) if k < 3 else ("float64", 1e-12)
    found = trained("parameters", devices, optimizer, exact).pack()
    for i, b in enumerate(plain(devices, optimizer, exact)):
        assert abs(found[f"param.{i}"] - b).max() <= bar * abs(b).max()


def test_a_parameter_that_forward_does_not_use_stays():
    """Its gradient lies in a buffer that the layer after it has just used."""
    def forward(X, params):
        return np.tanh(np.dot(X, params[0]))

    rng = numpy.random.RandomState(0)
    layers = [(forward, [rng.randn(4, 4).astype("float32"), numpy.ones(4, "float32")])
              for _ in range(3)]
    X, y = minibatch((4, 4), n=6)
    for shard in STAGES:
        shards = Shards(layers, try_all_devices(2), shard, "sgd")
        shards.train_batch(X, y, squares)
        found = shards.pack()
        assert [found[f"param.{i}"].tolist() for i in (1, 3, 5)] == [[1] * 4] * 3
        assert (found["param.0"] != layers[0][1][0]).all()


@pytest.mark.parametrize("shard", STAGES)
def test_what_is_held_and_sent_is_the_formula(shard):
    widths, devices = [64] * 5, devices_to_record(4)
    X, y = minibatch(widths)
    k = len(devices)
    with storage.record(devices) as memory:
        shards = Shards(network(widths), devices, shard, "adam")
        for _ in range(2):
            with traffic.count(devices) as moved:
                shards.train_batch(X, y, squares)
        npx.waitall()
    assert moved.sent == bytes_sent(shards.sizes, k, shard)
    held = bytes_held(shards.sizes, k, shard)
    for found, expected in zip(memory.held.values(), held):
        assert expected <= found <= 1.05 * expected
    of_one = {"none": 16, "states": 8 + 8 / k, "gradients": 4 + 12 / k,
              "parameters": 16 / k}[shard]
    assert held == [of_one * sum(shards.sizes)] * k
    times = 3 if shard == "parameters" else 2
    assert moved.sent == [times * (k - 1) / k * 4 * sum(shards.sizes)] * k


@pytest.mark.parametrize("shard", STAGES)
@pytest.mark.parametrize("k", [1, 3, 7])
def test_uneven_chunks_send_what_the_formula_says(k, shard):
    devices = try_all_devices(k)
    with traffic.count(devices) as moved:
        shards = trained(shard, devices, "sgd", steps=1)
    assert moved.sent == bytes_sent(shards.sizes, k, shard)


@pytest.mark.parametrize("shard", STAGES)
def test_half_precision_keeps_a_whole_precision_copy_among_the_states(shard):
    widths, options = [32] * 5, {"multi_precision": True, "learning_rate": 0.01}
    layers = [
        (lambda X, ps, f=f: f(X, [p.astype("float32") for p in ps]), params)
        for f, params in network(widths, "float16")
    ]
    state = state_bytes("adam", options, "float16")
    held = bytes_held([1024], 4, shard, itemsize=2, state=state)
    of_one = {"none": 16, "states": 4 + 12 / 4, "gradients": 2 + 14 / 4,
              "parameters": 16 / 4}
    assert (state, held) == (12, [1024 * of_one[shard]] * 4)
    found = []
    for k in (1, 4):
        devices = try_all_devices(k)
        shards = Shards(layers, devices, shard, "adam", options)
        for _ in range(3):
            losses = shards.train_batch(*minibatch(widths), squares)
        found.append(sum(map(float, losses)))
    assert found[0] == pytest.approx(found[1], rel=1e-2)


@pytest.mark.parametrize("ahead", [0, 2])
def test_how_far_ahead_weights_are_gathered_changes_no_bit(ahead):
    devices, found = try_all_devices(2), []
    X, y = minibatch(UNEVEN)
    for how in ({"shard": "none"}, {"shard": "parameters", "ahead": ahead}):
        shards = Shards(network(UNEVEN), devices, **how)
        for _ in range(3):
            shards.train_batch(X, y, squares)
        (out,) = shards.forward([X])
        found.append({**shards.pack(), "out": out.asnumpy()})
    assert_bit_equal(*found)


def test_training_goes_on_with_another_stage_on_another_number_of_devices():
    undisturbed = trained("none", try_all_devices(2), "adam", "float64").pack()
    packed = trained("gradients", try_all_devices(2), "adam", "float64", 3).pack()
    name, options = OPTIMIZERS["adam"]
    layers = network(UNEVEN, "float64", seed=9)
    shards = Shards(layers, try_all_devices(3), "parameters", name, options)
    shards.unpack(packed)
    for _ in range(3):
        shards.train_batch(*minibatch(UNEVEN, dtype="float64"), squares)
    found = shards.pack()
    assert found.keys() == undisturbed.keys()
    for a, b in zip(found.values(), undisturbed.values()):
        assert abs(a - b).max() <= 1e-12 * abs(b).max()


def test_a_checkpoint_of_other_shapes_is_refused_with_the_shapes():
    shards = Shards(network((4, 5)), try_all_devices(2), "states")
    with pytest.raises(ValueError, match=r"0 is float32 \(6, 4\) in.* \(5, 4\) here"):
        shards.unpack(Shards(network((4, 6)), try_all_devices(2)).pack())
    sgd = Shards(network((4, 5)), try_all_devices(1), optimizer="sgd")
    with pytest.raises(ValueError, match="state.0.0 is missing in the checkpoint"):
        shards.unpack(sgd.pack())


def test_what_does_not_fit_the_limit_is_refused_before_it_is_made():
    layers, devices = network([64] * 9), devices_to_record(4)
    size = sum(p.size for _, params in layers for p in params)
    limit = {4: 8, 2: 12}[len(devices)] * size
    # More devices would not help whole replicas.
    wrong = pytest.raises(
        MemoryError,
        match=f"{16 * size:,} .* limit is {limit:,}: divide more than 'none'$",
    )
    with storage.record(devices) as memory, wrong:
        Shards(layers, devices, "none", limit=limit)
    # The optimizer was asked for a state of a number, and the engine has its own.
    assert max(memory.peak.values()) < size
    with storage.record(devices) as memory:
        shards = Shards(layers, devices, "parameters", limit=limit)
        shards.train_batch(*minibatch([64] * 9, 4), squares)
        npx.waitall()
    assert max(memory.peak.values()) <= limit + 8 * 4 * 64 * 4


@pytest.mark.parametrize("what, message", [
    ({"shard": "stats"}, "unknown shard 'stats': choose.*Did you mean 'states'"),
    ({"optimizer": "lamb"}, "unknown optimizer 'lamb'"),
    ({"ahead": -1}, "ahead must be a whole number of at least 0, not -1"),
    ({"layers": network((2, 1, 1))}, "layer 1 has 2 parameters, which 3 devices"),
    ({"layers": network((4, 4)) + network((4, 4), "float64")}, "cast them"),
])
def test_what_cannot_be_shared_is_refused(what, message):
    given = {"layers": network((4, 4)), **what}
    with pytest.raises(ValueError, match=message):
        Shards(devices=try_all_devices(3), **given)


@pytest.mark.parametrize("count", [bytes_held, bytes_sent])
def test_bytes_of_an_unknown_shard_are_refused(count):
    with pytest.raises(ValueError, match="unknown shard 'weights': choose from none, "):
        count([4], 2, "weights")
    with pytest.raises(ValueError, match="k must be a whole number of at least 1, not"):
        count([4], 0, "states")


@pytest.mark.parametrize("shard", STAGES)
def test_a_step_is_asked_for_while_the_devices_stand_still(shard):
    shards, (X, y) = Shards(network((8, 6, 7)), TWO, shard), minibatch((8, 6, 7), 6)
    with held(*TWO):
        shards.train_batch(X, y, squares)


@pytest.mark.parametrize("ahead", [0, 1, 2])
def test_weights_are_gathered_so_many_layers_before_their_turn(ahead):
    widths = (8, 6, 7, 9, 5)
    shards, (X, _) = Shards(network(widths), TWO, ahead=ahead), minibatch(widths, 6)
    inputs = [X.as_in_ctx(device) for device in TWO]
    for lane in order_on(TWO, lambda: shards.forward(inputs)):
        before = lane[: lane.index("FullyConnected")]
        # Of two devices: each writes its own chunk, and sends it.
        assert before.count("CopyCPU2CPU") == 2 * (1 + ahead)


@pytest.mark.parametrize("half_precision", [False, True])
@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam"])
def test_states_are_what_an_optimizer_of_mxnet_holds(optimizer, half_precision):
    device = try_all_devices(1)[0]
    settings = {"momentum": {"momentum": 0.9}}.get(optimizer, {})
    made = mx.optimizer.create("adam" if optimizer == "adam" else "sgd",
                               multi_precision=True, **settings)
    update, dtype = mx.optimizer.get_updater(made), "float16"
    dtype = dtype if half_precision else "float32"
    with storage.record([device]) as memory:
        weight, grad = (mx.nd.ones((1000, 100), device, dtype) for _ in "wg")
        update(0, grad, weight)
    expected = sum(states(100_000, optimizer, half_precision).values())
    assert abs(memory.held["cpu/0"] / expected - 1) < 0.001
    assert expected == 100_000 * {"sgd": 8, "momentum": 12, "adam": 16}[optimizer]


@pytest.mark.parametrize("shard", STAGES)
def test_a_step_divides_by_the_number_given_and_splits_by_the_loads(shard):
    X, y = minibatch((4, 5), 6, "float64")
    layers, moved, first = network((4, 5), "float64"), [], []
    start = layers[0][1][0]
    for how in ({}, {"n": 12}, {"work_load_list": [2, 1]}):
        shards = Shards(layers, try_all_devices(2), shard, "sgd")
        losses = shards.train_batch(X, y, squares, **how)
        moved.append(shards.pack()["param.0"] - start)
        first.append(float(losses[0]))
    assert numpy.allclose(moved[1], moved[0] / 2, rtol=1e-9, atol=0)
    assert numpy.allclose(moved[2], moved[0], rtol=1e-9, atol=1e-15)
    assert abs(moved[0]).max() > 1e-4
    assert first[2] > first[0] == first[1]  # of four examples, and of three
