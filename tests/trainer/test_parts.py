"""The division of the examples among workers, with equally many steps for each."""

import d2l_ext  # noqa: F401, I001
from math import ceil

import numpy
from hypothesis import given, settings
from hypothesis import strategies as some
from mxnet import npx

from d2l_ext.data.batches import Batches
from d2l_ext.trainer.parts import Part

npx.set_np()


@given(data=some.data(), workers=some.integers(1, 5), batch_size=some.integers(1, 7))
@settings(max_examples=60)
def test_workers_make_equally_many_steps_and_together_those_of_one(
    data, workers, batch_size
):
    size = data.draw(some.integers(workers, 40))
    X, y = numpy.arange(size, dtype="float32")[:, None], numpy.arange(size)
    parts = [Part(X, y, batch_size, shuffle=True, num_parts=workers, part_index=i)
             for i in range(workers)]  # fmt: skip
    steps = [[y.asnumpy().tolist() for _, y in part] for part in parts]
    one = [set(y.asnumpy().tolist()) for _, y in
           Batches(X, y, workers * batch_size, shuffle=True)]  # fmt: skip
    number = ceil(size / (workers * batch_size))
    assert {len(part) for part in parts} == {len(own) for own in steps} == {number}
    for k, together in enumerate(zip(*steps)):
        assert set().union(*together) == one[k]
        assert sum(map(len, together)) == parts[0].together(k) == len(one[k])
    assert [sum(map(len, own)) for own in steps] == [part.own() for part in parts]


def test_a_minibatch_without_examples_keeps_its_shape():
    part = Part(numpy.zeros((3, 1, 28, 28)), numpy.zeros(3), 1, num_parts=2,
                part_index=1)  # fmt: skip
    (X, y), (last_X, last_y) = part
    assert (X.shape, y.shape) == ((1, 1, 28, 28), (1,))
    assert (last_X.shape, last_y.shape) == ((0, 1, 28, 28), (0,))
