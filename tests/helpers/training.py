"""What the checkpoints of the trainer's command hold."""

import d2l_ext  # noqa: F401, I001
import numpy

from d2l_ext.clusters import checkpoint


def last(prefix):
    """Arrays and record of the last checkpoint."""
    return checkpoint.read(checkpoint.Checkpoints(prefix).paths()[-1])


def assert_bit_equal(these, those):
    assert these.keys() == those.keys()
    for name in these:
        assert numpy.array_equal(these[name], those[name]), name
