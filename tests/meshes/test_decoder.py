"""A decoder on a mesh: the weights of one device, and the bytes of the formulas."""

import d2l_ext  # noqa: F401, I001

import numpy
import pytest
from held_devices import TWO, held
from mxnet import cpu, npx

from d2l_ext.data_parallel import traffic
from d2l_ext.meshes.decoder import MeshDecoder, expected, sequential_messages, stages_of
from d2l_ext.meshes.mesh import Mesh
from d2l_ext.scale.step import Link
from d2l_ext.scale.step import mesh_seconds, pipeline_seconds
from d2l_ext.tensor_parallel import transformer

npx.set_np()

DECODER = transformer.Decoder(vocab=33, width=40, heads=8, layers=4, tied=False)
TEXTS = numpy.random.RandomState(0).randint(33, size=(5, 2, 7, 8))
MOMENTUM = "sgd", {"learning_rate": 0.05, "momentum": 0.9}


def on(p, d, t, dtype="float32", optimizer=MOMENTUM):
    mesh = Mesh([cpu(i) for i in range(p * d * t)], pipeline=p, data=d, tensor=t)
    params = transformer.init_params(DECODER, dtype=dtype)
    return MeshDecoder(DECODER, mesh, params, *optimizer)


def trained(net, chunks):
    for X, y in TEXTS:
        net.step(X, y, chunks)
    return net.pack()


@pytest.fixture(scope="module")
def alone():
    """What one device has after five steps without micro-batches, by dtype."""
    return {dtype: trained(on(1, 1, 1, dtype), 1) for dtype in ("float32", "float64")}


MESHES = [(1, 2, 2), (1, 1, 4), (1, 4, 1), (4, 1, 1), (2, 1, 2), (2, 2, 2), (1, 1, 3)]


@pytest.mark.parametrize("dtype, apart, sizes", [
    ("float32", 1e-6, (2, 2, 2)), *(("float64", 1e-12, sizes) for sizes in MESHES),
], ids=str)
def test_a_mesh_trains_as_one_device(dtype, apart, sizes, alone):
    found = trained(on(*sizes, dtype), chunks=2)
    assert found.keys() == alone[dtype].keys() == DECODER.shapes().keys()
    square = {"off": 0.0, "all": 0.0}
    for name, right in alone[dtype].items():
        assert found[name].dtype == dtype
        assert abs(found[name] - right).max() <= 5 * apart * abs(right).max(), name
        square["off"] += float(((found[name] - right) ** 2).sum())
        square["all"] += float((right**2).sum())
    assert square["off"] ** 0.5 <= apart * square["all"] ** 0.5


def test_adams_states_are_shared_and_change_nothing():
    adam = "adam", {"learning_rate": 0.001}
    right = trained(on(1, 1, 1, "float64", adam), 1)
    net = on(2, 2, 2, "float64", adam)
    found = trained(net, 2)
    assert all(abs(found[n] - right[n]).max() < 1e-12 for n in right)
    for own in net.shards.values():
        kept = [updater.states[0][0].size for updater in own.updaters]
        assert kept == [own.sizes[0] // 2] * 2


@pytest.mark.parametrize("order", [("pipeline", "data", "tensor"),
                                   ("tensor", "pipeline", "data")])
@pytest.mark.parametrize("lengths", [(2, 2, 2), (1, 4, 2), (3, 2, 1), (8, 1, 1)])
def test_each_axis_sends_the_bytes_of_its_formula(lengths, order):
    sizes = dict(zip(order, lengths))
    mesh = Mesh([cpu(i) for i in range(numpy.prod(lengths))], **sizes)
    net = MeshDecoder(DECODER, mesh, transformer.init_params(DECODER))
    with traffic.count(mesh.devices) as moved:
        net.step(*TEXTS[0], chunks=2)
    assert mesh.by_axis(moved) == expected(DECODER, sizes, TEXTS[0, 0].shape, 2)


def test_the_loss_is_the_mean_of_all_tokens():
    losses = on(2, 2, 1).step(*TEXTS[0], chunks=2)
    one = on(1, 1, 1).step(*TEXTS[0])
    assert [len(x) for x in losses] == [14] * 4 and len(one) == 1
    mean = sum(float(x.sum()) for x in losses) / TEXTS[0, 0].size
    assert mean == pytest.approx(float(one[0].mean()), rel=1e-5)


def test_messages_one_after_another():
    sizes = {"pipeline": 2, "data": 4, "tensor": 3}
    # Stage 1: four layers and the scores, nine sums, and the loss for half of one.
    found = sequential_messages(DECODER, sizes, 5)
    assert found == {"pipeline": 5, "data": 6, "tensor": 190}
    assert sequential_messages(DECODER, {**sizes, "pipeline": 3}, 5)["pipeline"] == 10
    assert stages_of(DECODER, 3)[2] == ["2.mlp", "3.attend", "3.mlp", "end"]


def test_without_links_a_mesh_takes_the_time_of_its_pipeline():
    free = dict.fromkeys(("pipeline", "data", "tensor"), Link(0, 0))
    sizes, nothing = {"pipeline": 4, "data": 1, "tensor": 1}, dict.fromkeys(free, 0)
    there = mesh_seconds(8.0, sizes, 4, nothing, nothing, free)
    assert there == pipeline_seconds([1] * 4, [1] * 4, 4) == 14
    links, sent = {**free, "pipeline": Link(0.5, 0)}, {**nothing, "pipeline": 8}
    assert mesh_seconds(8.0, sizes, 4, sent, sent, links) == 14 + 2 * 3 * 0.5
    data = {**nothing, "data": 6}
    assert mesh_seconds(8.0, sizes, 4, data, data, {**free, "data": Link(1, 2)}) == 32


def test_what_does_not_fit_is_refused_by_its_numbers():
    with pytest.raises(ValueError, match="9 stages of 8 divided layers: some would"):
        on(9, 1, 1)
    with pytest.raises(ValueError, match="8 heads and 33 tokens cannot be divided"):
        on(1, 1, 9)
    with pytest.raises(ValueError, match="8 texts for 3 replicas with 2 micro-batches"):
        on(1, 3, 1).step(*TEXTS[0], chunks=2)
    with pytest.raises(ValueError, match="chunks must be a whole number of .* not 0"):
        on(1, 1, 1).step(*TEXTS[0], chunks=0)
    with pytest.raises(ValueError, match="stages must be a whole number of .* not 0"):
        stages_of(DECODER, 0)
    with pytest.raises(ValueError, match="axes data, tensor: give all of"):
        MeshDecoder(DECODER, Mesh([cpu(0)], data=1, tensor=1), {})
    tied = transformer.Decoder(vocab=33, layers=4)
    with pytest.raises(ValueError, match="use a decoder with tied=False"):
        MeshDecoder(tied, Mesh([cpu(0)], pipeline=1, data=1, tensor=1), {})


@pytest.mark.parametrize("axis", ["pipeline", "data", "tensor"])
def test_a_step_is_asked_for_while_the_devices_stand_still(axis):
    sizes = {"pipeline": 1, "data": 1, "tensor": 1, axis: 2}
    net = MeshDecoder(DECODER, Mesh(TWO, **sizes), transformer.init_params(DECODER))
    with held(*TWO):
        net.step(*TEXTS[0], chunks=2)
