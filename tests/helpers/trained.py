"""What training leaves behind, and a small job whose weights tests compare."""

import sys

import numpy

import pslaunch as launch
from d2l_ext.clusters import checkpoint

TRAIN = [sys.executable, "-m", "d2l_ext.train", "--network", "mlp", "--num-examples",
         "321", "--batch-size", "32", "--num-epochs", "2", "--kv-store",
         "dist_sync"]
_LOCAL = []


def last(prefix):
    """Arrays and record of the last checkpoint."""
    return checkpoint.read(checkpoint.Checkpoints(prefix).paths()[-1])


def assert_bit_equal(these, those):
    assert these.keys() == those.keys()
    for name in these:
        assert numpy.array_equal(these[name], those[name]), name


def assert_near(these, those, rtol, atol):
    assert these.keys() == those.keys()
    for name in these:
        assert numpy.allclose(these[name], those[name], rtol, atol), name


def weights(prefix):
    """All parameters of the last checkpoint, in one array."""
    arrays, _ = last(prefix)
    names = sorted(name for name in arrays if name.startswith("param"))
    assert names
    return numpy.concatenate([arrays[name].ravel() for name in names])


def local_weights(folder):
    """The weights that two workers on this machine train, made once."""
    if not _LOCAL:
        command = [*TRAIN, "--save-prefix", str(folder / "local")]
        launch.run(command, num_workers=2, num_servers=1, deadline=300, check=True)
        _LOCAL.append(weights(folder / "local"))
    return _LOCAL[0]
