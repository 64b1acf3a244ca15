"""The trainer as a job: several workers, one set of weights, one checkpoint."""

import d2l_ext  # noqa: F401, I001
import json

import mxnet as mx
import numpy
import pytest
from job_checks import PYTHON, nothing_left  # noqa: F401
from mxnet import npx
from trained import last, weights

from d2l_ext import data
from d2l_ext.data.sets import Batches, minibatches
from trainkit import networks, replicas
import pslaunch as launch

npx.set_np()
TRAIN = [PYTHON, "-m", "d2l_ext.train"]
#: 321 examples are 161 and 160: the sixth minibatch has one, on one worker.
FLAGS = ["--network", "mlp", "--num-examples", "321"]
OF_TWO = [*FLAGS, "--batch-size", "32"]
OF_ONE = [*FLAGS, "--batch-size", "64"]


def results(job):
    return [json.loads(job.output("worker", i).splitlines()[-1]) for i in (0, 1)]


@pytest.mark.parametrize("kind, servers", [("dist_sync_device", 2), ("ring", 1)])
def test_two_workers_end_with_the_weights_of_one(kind, servers, tmp_path, run):
    """n workers with batch b are one with n·b: after an epoch, and one taken up again.

    Relative to the largest weight; sums are rounded in another order.
    """
    flags = [*OF_TWO, "--kv-store", kind, "--save-prefix", str(tmp_path / "two")]
    for epochs, resume in ((1, []), (2, ["--resume"])):
        more = ["--num-epochs", str(epochs)]
        job = launch.run([*TRAIN, *flags, *more, *resume], num_servers=servers,
                         deadline=600)
        assert job.returncode == 0, job.cause
        own = tmp_path / f"one-{epochs}"
        assert run(*OF_ONE, *more, "--save-prefix", own)[0] == 0
        one, two = weights(own), weights(tmp_path / "two")
        assert abs(two - one).max() < 1e-6 * abs(one).max(), epochs
    assert not list(tmp_path.glob(".*"))  # neither a lock nor a part
    first, second = results(job)
    assert (first["rank"], second["rank"], first["num_workers"]) == (0, 1, 2)
    assert first["steps"] == second["steps"] == 12
    assert 0.1 < first["accuracy"] <= 1 and second["accuracy"] is None
    assert (first["kv_store"], first["epochs"]) == (kind, 2)


def test_asynchronous_workers_train_and_one_of_them_saves(tmp_path):
    # Long and slow: on a busy machine a worker may be many steps behind.
    flags = ["--kv-store", "dist_async_device", "--num-epochs", "16", "--lr", "0.02",
             "--save-prefix", str(tmp_path / "p")]
    job = launch.run([*TRAIN, *OF_TWO, *flags], deadline=600)
    assert job.returncode == 0, job.cause
    first, second = results(job)
    assert first["accuracy"] > 0.3 and second["accuracy"] is None
    assert first["steps"] == second["steps"] == 96
    assert last(tmp_path / "p")[1]["state"]["epoch"] == 16
    assert numpy.isfinite(weights(tmp_path / "p")).all()


def trained(kv, X, y, batch_size, *outer):
    """The parameters on each device after an epoch in float64; `kv` None: alone.

    Of LeNet; with `outer`, H first, of an MLP on two devices.
    """
    num_workers, rank = (kv.num_workers, kv.rank) if kv else (1, 0)
    name, devices, mom = ("mlp", [mx.cpu(0), mx.cpu(1)], 0) if outer else (
        "lenet", [mx.cpu(0)], 0.9)
    net = networks.build(name, X.shape[1:], devices, seed=rank if outer else 0)
    net.cast("float64")
    own = net, devices, "sgd", {"learning_rate": 0.1, "momentum": mom}
    if not kv:
        model = replicas.Replicas(*own)
    elif outer:
        model = replicas.LocalReplicas(kv, outer, *own)
    else:
        model = replicas.DistReplicas(kv, batch_size, *own)
    model.begin()
    part = Batches(X, y, batch_size, True, 0, num_workers, rank)
    for step, (X_batch, y_batch, n) in enumerate(minibatches(part)):
        model.train_batch(X_batch.astype("float64"), y_batch, step, n)
    model.settle()
    return [[a.asnumpy() for a in p.list_data()] for p in model.params]


def test_lenets_whole_trajectory_is_that_of_one_in_float64():
    """In float32 not: a step may carry 1e-7 over a kink of ReLU, and it grows."""
    digits = data.load_arrays("digits")
    X, y = digits.train_X[:768], digits.train_y[:768]
    first, second = launch.call(trained, X, y, 32, deadline=600)
    for (a,), (b,), (one,) in zip(first, second, trained(None, X, y, 64)):
        assert numpy.array_equal(a, b)
        assert a.dtype == "float64" and abs(a - one).max() < 1e-6 * abs(one).max()


@pytest.mark.parametrize("outer", [(1, 1.0, 0.0), (5, 0.7, 0.9)])
def test_workers_that_take_steps_alone_are_equal_in_the_end(outer):
    """Of 12 steps two are left over. With an exchange in each it is one machine's."""
    digits = data.load_arrays("digits")
    X, y = digits.train_X[:768], digits.train_y[:768]
    first, second = launch.call(trained, X, y, 32, *outer, deadline=600)
    one = trained(None, X, y, 64, *outer)
    apart = max(abs(a - b).max() for (a, _), (b, _) in zip(first, one))
    for (a, b), (c, d) in zip(first, second):
        assert all(numpy.array_equal(a, other) for other in (b, c, d))
    # A server may cut float64 to float32.
    assert apart < 1e-6 if outer[0] == 1 else apart > 1e-3


def test_a_worker_without_examples_ends_a_job_with_its_line():
    flags = ["--kv-store", "dist_sync", "--num-examples", "1"]
    job = launch.run([*TRAIN, *OF_TWO, *flags])
    assert job.returncode == 2 and "ended with code 2" in job.cause
    assert "part 1 of 2 would be" in job.last_lines()


def sends_its_first_weights(kv):
    net = networks.build("vgg11", (3, 32, 32), [mx.cpu()])
    weights = next(iter(net.collect_params().values())).data()
    kv.init(0, weights)
    there = mx.np.zeros(weights.shape)
    kv.pull(0, out=there)
    return bool((there == weights).all()), float(abs(weights).sum()) > 0


def test_weights_of_a_new_vgg11_can_be_sent():
    """After a prediction they could not: oneDNN lays them out in its own way."""
    assert launch.call(sends_its_first_weights, num_workers=1) == [(True, True)]
