"""`--shard`: the weights of a run that divides nothing, and checkpoints that any number
of devices goes on from."""

import d2l_ext  # noqa: F401, I001
import json
from functools import partial

import numpy
import pytest
from trained import assert_near, last

from trainkit.networks import build
from trainkit.replicas import Replicas
from trainkit.sharded import ShardedReplicas
from d2l_ext.devices import try_all_devices
from mxnet import np

SMALL = ("--network", "mlp", "--num-examples", "96", "--batch-size", "32",
         "--optimizer", "adam", "--lr", "0.003")
TWO = ("--devices", "cpu:0,cpu:1")
THREE = ("--devices", "cpu:0,cpu:1,cpu:2", "--shard", "parameters")


def test_a_divided_run_goes_on_elsewhere_and_ends_with_the_weights_of_a_whole_one(
    run, tmp_path
):
    flags = (*SMALL, "--num-epochs", 2, "--save-prefix")
    assert run(*flags, tmp_path / "whole", *TWO)[0] == 0
    cut = (*SMALL, "--save-prefix", tmp_path / "cut", "--num-epochs")
    assert run(*cut, 1, *TWO, "--shard", "gradients")[0] == 0
    code, out, said = run(*cut, 2, *THREE, "--resume")
    assert (code, json.loads(out)["shard"]) == (0, "parameters")
    assert "shard was gradients and is parameters" in said
    assert_near(last(tmp_path / "whole")[0], last(tmp_path / "cut")[0], 1e-4, 1e-6)
    # and back to replicas that divide nothing
    assert run(*cut, 3, "--resume")[0] == 0


@pytest.mark.parametrize("name", ["lenet", "mlp", "vgg11"])
def test_each_network_is_a_chain_of_layers(name):
    devices, found = try_all_devices(2), []
    X = np.array(numpy.random.RandomState(0).rand(4, 1, 28, 28), dtype="float32")
    for make in (Replicas, partial(ShardedReplicas, "parameters")):
        replicas = make(build(name, (1, 28, 28), devices), devices)
        found.append(replicas._count_right(X, np.zeros(4, dtype="int32")))
        before = replicas.pack()
        assert len(before) == len(replicas.params) + 1
    assert [float(n) for n in found[0]] == [float(n) for n in found[1]]


def test_a_checkpoint_of_another_network_is_refused_with_the_shapes():
    devices = try_all_devices(2)
    mlp, lenet = (ShardedReplicas("states", build(name, (1, 28, 28), devices), devices)
                  for name in ("mlp", "lenet"))
    with pytest.raises(ValueError, match=r"param.0 is float32 \(20, 1, 3, 3\) in the"):
        mlp.unpack(lenet.pack())
