"""LeNet has the shapes of the text and starts the same in every run."""

import d2l_ext  # noqa: F401, I001
from mxnet import np

from d2l_ext.data_parallel import lenet


def test_the_parameters_have_the_shapes_of_the_text():
    assert [p.shape for p in lenet.init_params()] == list(lenet.SHAPES)


def test_ten_scores_for_every_image():
    assert lenet.lenet(np.zeros((3, 1, 28, 28)), lenet.init_params()).shape == (3, 10)


def test_the_same_seed_gives_the_same_start_and_another_another():
    a, b, c = (lenet.init_params(seed=s)[0].asnumpy() for s in (0, 0, 1))
    assert (a == b).all()
    assert (a != c).any()


def test_the_weights_have_the_scale_that_was_asked_for():
    W3 = lenet.init_params(scale=0.5)[4].asnumpy()
    assert abs(W3.std() - 0.5) < 0.005
