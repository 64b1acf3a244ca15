"""LeNet has the shapes of the text and starts the same in every run."""

import d2l_ext  # noqa: F401, I001
from mxnet import np, npx

from d2l_ext.data_parallel import lenet
from trainkit import networks

npx.set_np()


def test_the_scores_are_those_of_the_trainers_gluon_lenet_with_the_same_parameters():
    net = networks.lenet()
    net.initialize()
    X = np.random.normal(size=(3, 1, 28, 28))
    net(X)
    params = lenet.init_params(scale=0.1)
    params[1::2] = [np.random.normal(size=b.shape) for b in params[1::2]]
    for own, p in zip(net.collect_params().values(), params):
        own.set_data(p if len(p.shape) != 2 else p.T)  # Gluon's are (out, in)
    found, expected = lenet.lenet(X, params).asnumpy(), net(X).asnumpy()
    assert found.shape == (3, 10)
    assert abs(found - expected).max() < 1e-5 * abs(expected).max()


def test_the_same_seed_gives_the_same_start_and_another_another():
    a, b, c = (lenet.init_params(seed=s)[0].asnumpy() for s in (0, 0, 1))
    assert (a == b).all()
    assert (a != c).any()


def test_the_weights_have_the_scale_that_was_asked_for():
    W3 = lenet.init_params(scale=0.5)[4].asnumpy()
    assert abs(W3.std() - 0.5) < 0.005
