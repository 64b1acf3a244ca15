"""After an allreduce every device holds the sum."""

import d2l_ext  # noqa: F401, I001
import numpy
import pytest
from mxnet import np, npx

from d2l_ext.allreduce import allreduce
from d2l_ext.devices import try_all_devices

npx.set_np()


def test_ones_and_twos_become_threes_on_both_devices():
    data = [np.ones((1, 2), ctx=d) * (i + 1) for i, d in enumerate(try_all_devices(2))]
    allreduce(data)
    assert [d.asnumpy().tolist() for d in data] == [[[3, 3]], [[3, 3]]]
    assert [d.ctx for d in data] == try_all_devices(2)


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
def test_every_element_is_the_sum_on_every_device(k):
    parts = [numpy.random.RandomState(i).randint(-99, 99, (7, 3)) for i in range(k)]
    devices = try_all_devices(k)
    data = [np.array(p, dtype="float32", ctx=d) for p, d in zip(parts, devices)]
    allreduce(data)
    for reduced in data:
        assert (reduced.asnumpy() == sum(parts)).all()
