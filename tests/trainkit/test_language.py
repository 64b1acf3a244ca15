"""`--network transformer`: whatever the devices divide, it is one decoder. A run that
was stopped goes on as if it had not been, on other devices, too."""

import d2l_ext  # noqa: F401, I001
import json
import random
import signal

import numpy
import pytest
from trained import assert_bit_equal, assert_near, last

from d2l_ext.data import text
from d2l_ext.devices import try_all_devices
from trainkit import language
from trainkit.language import Decoders
from mxnet import np

WAYS = [(1, 1), (2, 1), (2, 2), (4, 2), (4, 4), (6, 2)]  # devices, in groups of
DECODER = ("--network", "transformer", "--batch-size", "8", "--optimizer", "adam",
           "--lr", "0.003", "--num-epochs")


@pytest.fixture(scope="module")
def poem(tmp_path_factory):
    """A text of 2,000 characters: 31 sequences, 27 of them to learn from."""
    words = random.Random(0).choices(["rose", "is", "a"], k=500)
    path = tmp_path_factory.mktemp("text") / "poem.txt"
    path.write_text(" ".join(words)[:2000].ljust(2000, "."), encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(language, "SIZES", {"width": 16, "heads": 4, "layers": 2})
    monkeypatch.delenv(text.VARIABLE, raising=False)


def trained(num_devices, tensor, dtype="float32", **how):
    """Loss of each of three steps, and all arrays then."""
    rng, devices = numpy.random.RandomState(0), try_all_devices(num_devices)
    model = Decoders(9, tensor, devices, "adam", {"learning_rate": 0.01}, **how)
    X, y = (np.array(rng.randint(0, 9, (12, language.LENGTH))) for _ in "Xy")
    losses = [sum(map(float, model.train_batch(X, y))) for _ in range(3)]
    held_out = model.evaluate([(X[:5], y[:5]), (X[5:6], y[5:6])])
    assert held_out == pytest.approx(model.evaluate([(X[:6], y[:6])]), rel=1e-6)
    return losses, model.pack(), held_out


@pytest.mark.parametrize(
    "how", [{}, {"work_load_list": [2, 1]}, {"kv_store": None}, {"kv_store": "local"}],
    ids=str)
def test_whatever_the_devices_divide_the_losses_are_those_of_one(how):
    losses, arrays, held_out = trained(1, 1)
    assert losses[0] / 12 == pytest.approx(numpy.log(9), rel=0.1)
    assert losses[2] < losses[0]
    for way in WAYS[1:] if not how else [(2, 1), (4, 2)]:
        found = trained(*way, **how)
        assert found[0] == pytest.approx(losses, rel=1e-6), way
        assert found[2] == pytest.approx(held_out, rel=1e-6), way
        assert_near(found[1], arrays, 1e-3, 1e-5)
    assert "state.0.1" in arrays


def test_the_command_learns_and_says_the_held_out_loss(run, poem):
    code, out, said = run(*DECODER, 4, "--dataset", poem, "--devices",
                          "cpu:0,cpu:1,cpu:2,cpu:3", "--tensor", 2)
    result, lines = json.loads(out), said.splitlines()
    sequences = language.load_sequences(poem)
    assert (len(sequences.train_X), len(sequences.test_X)) == (27, 4)
    assert code == 0 and len(lines) == 4
    assert (result["dataset"], result["tensor"], result["steps"]) == ("poem.txt", 2, 16)
    shown = [float(line.split("held_out_loss ")[1].split()[0]) for line in lines]
    assert shown[-1] == pytest.approx(result["held_out_loss"], abs=1e-3)
    assert shown[0] - shown[-1] > 0.1


def test_a_stopped_run_goes_on_with_the_same_bits(run, poem, tmp_path, monkeypatch):
    flags = (*DECODER, 2, "--dataset", poem, "--devices", "cpu:0,cpu:1", "--tensor", 2,
             "--save-prefix")
    assert run(*flags, tmp_path / "whole")[0] == 0
    step = Decoders.train_batch

    def stopping(self, X, y, number, n):
        if number == 5:  # in the second epoch
            signal.raise_signal(signal.SIGTERM)
        return step(self, X, y, number, n)

    with monkeypatch.context() as patched:
        patched.setattr(Decoders, "train_batch", stopping)
        assert run(*flags, tmp_path / "cut")[0] == 143
    assert run(*flags, tmp_path / "cut", "--resume")[0] == 0
    assert_bit_equal(last(tmp_path / "whole")[0], last(tmp_path / "cut")[0])


def test_other_groups_go_on_from_a_checkpoint(run, refused, poem, tmp_path):
    flags = (*DECODER, 2, "--dataset", poem, "--save-prefix")
    assert run(*flags, tmp_path / "whole")[0] == 0
    cut = (*DECODER[:-1], "--dataset", poem, "--save-prefix", tmp_path / "cut")
    assert run(*cut, "--num-epochs", 1, "--devices", "cpu:0,cpu:1")[0] == 0
    more = ("--devices", "cpu:0,cpu:1,cpu:2,cpu:3", "--tensor", 2, "--resume")
    code, _, said = run(*cut, "--num-epochs", 2, *more)
    assert code == 0 and "tensor was 1 and is 2" in said
    assert_near(last(tmp_path / "whole")[0], last(tmp_path / "cut")[0], 1e-3, 1e-4)
    refused(*cut, "--num-epochs", 3, "--resume", "--optimizer", "sgd",
            why="optimizer was adam and is sgd")


def test_arrays_of_another_text_are_refused_with_the_shapes():
    one, other = (Decoders(n, 2, try_all_devices(2)).pack() for n in (9, 10))
    model = Decoders(9, 1, try_all_devices(1))
    with pytest.raises(ValueError, match=r"param.0 is float32 \(10, 16\) in the"):
        model.unpack(other)
    one["counts"][0] = -1
    with pytest.raises(ValueError, match="counts of .* must be at least 0, not -1"):
        model.unpack(one)


def test_a_step_with_fewer_sequences_than_groups_is_refused():
    """A group without one would add its gradients of the step before."""
    model = Decoders(9, 1, try_all_devices(2))
    X = np.zeros((1, language.LENGTH), dtype="int64")
    before = model.pack()
    with pytest.raises(ValueError, match="1 examples cannot be split over 2 devices"):
        model.train_batch(X, X)
    assert_bit_equal(model.pack(), before)


def test_a_text_that_is_too_short_is_refused(refused, tmp_path):
    (tmp_path / "short").write_text("a" * 128)
    refused(*DECODER, 1, "--dataset", tmp_path / "short",
            why="has 128 char.*give at least 129")
