"""Replicas of a Gluon network: what they classify, draw, and ask of a job's store."""

import d2l_ext  # noqa: F401, I001
from types import SimpleNamespace

import mxnet as mx
import numpy
import pytest
from held_devices import TWO, held
from mxnet import np, npx
from mxnet.gluon import nn
from recorded_store import RecordedStore, note_waits
from trained import assert_bit_equal

from d2l_ext.data.sets import Batches
from d2l_ext.data_parallel.allreduce import allreduce_ring
from d2l_ext.data_parallel.allreduce.halving import allreduce_halving
from d2l_ext.kvstore import ring
from trainkit import job, networks, resume, ways
from trainkit.flags import parser
from trainkit.language import Decoders
from trainkit.replicas import DistReplicas, LocalReplicas, Replicas, RingReplicas
from trainkit.sharded import ShardedReplicas

npx.set_np()


# ---- Accuracy ----


def numpy_scores(X, params):
    """What `networks.mlp` gives for images `X`, by hand; its weights are (out, in)."""
    out = X.reshape(len(X), -1).astype("float64")
    weights = [p.data(mx.cpu(0)).asnumpy().astype("float64") for p in params]
    for i in range(0, len(weights), 2):
        out = numpy.maximum(out, 0) if i else out
        out = out @ weights[i].T + weights[i + 1]
    return out


@pytest.mark.parametrize("loads", [None, [3, 1, 1]])
@pytest.mark.parametrize("num_examples, batch_size, batches", [
    (48, 16, 3), (37, 16, 3), (50, 16, 4), (2, 16, 1)])
def test_the_accuracy_is_numpys_whatever_is_left_for_the_last_minibatch(
    num_examples, batch_size, batches, loads
):
    """50 = 3·16 + 2: in the last one a device of the three has nothing to do."""
    rng, devices = numpy.random.RandomState(0), [mx.cpu(i) for i in range(3)]
    X = rng.rand(num_examples, 1, 8, 8).astype("float32")
    net = networks.build("mlp", X.shape[1:], devices)
    model, seen = Replicas(net, devices, work_load_list=loads), []
    right = numpy_scores(X, model.params).argmax(axis=1)
    y = numpy.where(numpy.arange(num_examples) % 3, right, (right + 1) % 10)
    found = model.evaluate(Batches(X, y, batch_size), lambda: seen.append(1))
    assert (found, len(seen)) == (float((y == right).mean()), batches)


# ---- What the flags make ----


def store(made):
    return made.trainer._kvstore_params["kvstore"]


@pytest.mark.parametrize("flags, kind, of, value", [
    ("--kv-store local", Replicas, store, "local"),
    ("--kv-store none", Replicas, store, None),
    ("--kv-store none --allreduce halving", Replicas, lambda m: m.allreduce,
     allreduce_halving),
    ("--kv-store none --network transformer --allreduce ring", Decoders,
     lambda m: m.allreduce, allreduce_ring),
    ("--gc-type 2bit --gc-threshold 0.25", Replicas,
     lambda m: m.trainer._compression_params, {"type": "2bit", "threshold": 0.25}),
    ("--optimizer adam", Replicas, lambda m: m.trainer.optimizer.beta1, 0.9),
    ("--lr 0.25", Replicas, lambda m: m.trainer.learning_rate, 0.25),
    ("--mom 0.5", Replicas, lambda m: m.trainer.optimizer.momentum, 0.5),
    ("--wd 0.25", Replicas, lambda m: m.trainer.optimizer.wd, 0.25),
    ("--work-load-list 3,2.5", Replicas, lambda m: m.work_load_list, [3, 2.5]),
    ("--accumulate 4", Replicas, lambda m: m.accumulate, 4),
    ("--recompute", Replicas, lambda m: m.parts != [], True),
    ("--shard gradients --mom 0.5", ShardedReplicas, lambda m: m.shards.stage, 2),
    ("--shard states --momentum 0.5", ShardedReplicas,
     lambda m: m.shards.updaters[0].optimizer.momentum, 0.5),
    ("--network transformer --tensor 2", Decoders, lambda m: m.groups[1:], []),
    ("--kv-store dist_sync", DistReplicas, lambda m: store(m).type, "dist_sync"),
    ("--kv-store dist_sync --local-steps 5 --outer-lr 0.7 --outer-mom 0.9",
     LocalReplicas, lambda m: m.outer, (5, 0.7, 0.9)),
])
def test_a_flag_of_the_command_reaches_the_replicas(flags, kind, of, value):
    made = of_flags(flags)
    assert type(made) is kind
    assert of(made) == value


def of_flags(flags):
    """What the command trains with these flags, on two devices."""
    args = parser().parse_args(["--network", "mlp", "--mom", "0.9", *flags.split()])
    dataset = SimpleNamespace(train_X=numpy.zeros((8, 1, 28, 28)), classes="abc")
    kv = RecordedStore() if "dist" in args.kv_store else None
    described = job.of(args, [mx.cpu(0), mx.cpu(1)])
    return ways.chosen_way(described).build(described, dataset, kv)


@pytest.mark.parametrize("flags", [
    "--network mlp", "--network lenet", "--shard parameters", "--kv-store dist_sync",
    "--kv-store dist_sync --local-steps 2", "--network transformer",
    "--network transformer --tensor 2",
])
def test_the_seed_of_the_command_draws_the_first_weights(flags):
    first, again, other = (
        {name: x for name, x in of_flags(f"{flags} --seed {seed}").pack().items()
         if name.startswith("param")} for seed in (3, 3, 4)
    )
    assert_bit_equal(first, again)
    assert any((first[name] != other[name]).any() for name in first)


@pytest.mark.parametrize("flags", ["", "--shard states", "--kv-store dist_sync"])
def test_the_seed_of_the_command_draws_the_dropout_of_a_step(flags, monkeypatch):
    def build(name, image_shape, devices, seed):
        """The same weights whatever the seed."""
        return with_dropout(devices)

    monkeypatch.setattr(networks, "build", build)
    X, y = np.ones((8, 1, 28, 28)), np.arange(8).astype("int32")
    losses = []
    for seed in (3, 3, 4):
        made = of_flags(f"{flags} --seed {seed}")
        losses.append(sum(map(float, made.train_batch(X, y, 0))))
    assert losses[0] == losses[1] != losses[2]


# ---- What a checkpoint has ----


def test_a_checkpoint_counts_how_often_each_weight_was_updated():
    net = networks.build("mlp", (1, 8, 8), [mx.cpu(0)])
    model = Replicas(net, [mx.cpu(0)], "adam")
    X, y = np.zeros((4, 1, 8, 8)), np.zeros(4, dtype="int32")
    for steps in range(3):
        found = resume.pack(model.params, model.trainer)
        assert found["counts"].tolist() == [steps] * 6
        model.train_batch(X, y, steps)


# ---- What is drawn ----


def with_dropout(devices):
    net = nn.HybridSequential()
    net.add(nn.Dropout(0.5), nn.Dense(10, in_units=784))
    mx.random.seed(0)
    net.initialize(mx.init.Xavier(), ctx=devices)
    return net


def loss_of_a_step(rank, step=0, seed=0):
    """Of a network with dropout, always from the same weights, on the same images."""
    net = with_dropout([mx.cpu(0)])
    X = np.array(numpy.random.RandomState(0).rand(8, 784), dtype="float32")
    model = DistReplicas(RecordedStore(rank=rank), 8, net, [mx.cpu(0)], seed=seed)
    (loss,) = model.train_batch(X, np.arange(8).astype("int32"), step)
    return float(loss)


def test_each_worker_each_step_and_each_seed_draws_another_dropout():
    first = loss_of_a_step(rank=0)
    assert loss_of_a_step(rank=0) == first
    others = [loss_of_a_step(rank) for rank in (1, 2, 3)]
    others += [loss_of_a_step(0, step=1), loss_of_a_step(0, seed=1)]
    assert len({first, *others}) == 6


def test_each_piece_of_a_minibatch_draws_another_dropout():
    """Two pieces with the same image: their losses differ."""
    X, y = np.ones((2, 784)), np.zeros(2, dtype="int32")
    one, both = (
        float(Replicas(with_dropout([mx.cpu(0)]), [mx.cpu(0)], accumulate=pieces)
              .train_batch(X[:pieces], y[:pieces])[0])
        for pieces in (1, 2))
    assert abs(both - 2 * one) > 1e-3


# ---- What a worker asks of the store ----


def test_a_worker_of_a_ring_needs_no_first_device():
    """As with `--devices gpu:0,gpu:1`: Gluon's own default is the first CPU."""
    devices, X, y = [mx.cpu(1), mx.cpu(2)], np.ones((4, 1, 8, 8)), np.arange(4)
    net = networks.build("mlp", X.shape[1:], devices)
    model = RingReplicas(ring.connect(0, [None], ""), 4, net, devices)
    model.begin()
    model.train_batch(X, y)
    first, second = ({p.name: p.data(device).asnumpy() for p in model.params}
                     for device in devices)
    assert_bit_equal(first, second)


def worker(kind, monkeypatch):
    """The replicas of a worker, and the calls to its store so far: none."""
    net = networks.build("mlp", (1, 8, 8), [mx.cpu(0)])
    kv = RecordedStore(kind)
    model = DistReplicas(kv, 4, net, [mx.cpu(0)])
    note_waits(monkeypatch, kv.calls)
    return model, kv.calls


KEYS = range(6)


@pytest.mark.parametrize(
    "kind, before", [("dist_sync", []), ("dist_async", ["set_optimizer"])]
)
def test_nobody_begins_before_everybody_has_the_weights(kind, before, monkeypatch):
    model, calls = worker(kind, monkeypatch)
    model.begin()
    assert calls == [*before, *(f"broadcast {i}" for i in KEYS), "wait", "barrier"]
    model.begin()  # taken up again: nothing is sent twice
    assert calls[len(before) + 8 :] == ["wait", "barrier"]


def test_the_servers_last_weights_are_taken_when_all_workers_have_pushed(monkeypatch):
    model, calls = worker("dist_async", monkeypatch)
    model.settle()
    assert calls == ["wait", "barrier", *(f"pull {i}" for i in KEYS), "wait"]


def test_a_synchronous_worker_has_its_weights_and_waits_for_itself_alone(monkeypatch):
    model, calls = worker("dist_sync", monkeypatch)
    model.settle()
    assert calls == ["wait"]


def test_a_worker_without_examples_pushes_as_often_as_the_others(monkeypatch):
    nothing = np.zeros((0, 1, 8, 8)), np.zeros(0, dtype="int32")
    model, calls = worker("dist_sync", monkeypatch)
    model.begin()
    calls.clear()
    assert model.train_batch(*nothing, n=1) == []
    assert calls == [f"pushpull {i}" for i in KEYS]
    assert all((p.grad().asnumpy() == 0).all() for p in model.params)
    model, calls = worker("dist_async", monkeypatch)
    assert model.train_batch(*nothing) == [] and calls == []


# ---- What a step waits for ----


@pytest.mark.parametrize("store", ["device", "local", None])
def test_a_step_is_asked_for_while_the_devices_stand_still(store):
    model = Replicas(networks.build("mlp", (1, 8, 8), TWO), TWO, kv_store=store)
    X, y = np.zeros((4, 1, 8, 8)), np.zeros(4, dtype="int32")
    with held(*TWO):
        model.train_batch(X, y)
