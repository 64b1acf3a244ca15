"""LeNet: its parameters, and its forward pass as a plain function."""

import mxnet as mx
from mxnet import autograd, gluon, np, npx

npx.set_np()

#: Shapes of W1, b1, …, W4, b4. The two convolutions, then two dense layers.
SHAPES = (
    (20, 1, 3, 3), (20,),
    (50, 20, 5, 5), (50,),
    (800, 128), (128,),
    (128, 10), (10,),
)

#: Cross-entropy of the softmax, one value per example.
loss = gluon.loss.SoftmaxCrossEntropyLoss()


def init_params(scale=0.08, seed=0):
    """Return the eight parameters: weights from N(0, scale²), biases 0.

    They are on the current context, by default `cpu(0)`. MXNet's generator is set to
    `seed`, which makes them the same in every run. *Dive into Deep Learning* starts
    with `scale=0.01`, with which ten epochs on a small set learn nothing.
    """
    mx.random.seed(seed)
    return [
        np.random.normal(scale=scale, size=shape) if len(shape) > 1 else np.zeros(shape)
        for shape in SHAPES
    ]


def lenet(X, params):
    """Return the scores of ten classes, (n, 10), for images `X`, (n, 1, 28, 28).

    `params`: the eight arrays of `SHAPES`, on the device of `X`.
    The network of *Dive into Deep Learning*, "Training on Multiple GPUs".
    """
    W1, b1, W2, b2, W3, b3, W4, b4 = params
    h = npx.convolution(data=X, weight=W1, bias=b1, kernel=(3, 3), num_filter=20)
    h = _pool(npx.relu(h))  # (n, 20, 26, 26) -> (n, 20, 13, 13)
    h = npx.convolution(data=h, weight=W2, bias=b2, kernel=(5, 5), num_filter=50)
    h = _pool(npx.relu(h))  # (n, 50, 9, 9) -> (n, 50, 4, 4)
    h = h.reshape(h.shape[0], -1)  # (n, 800)
    h = npx.relu(np.dot(h, W3) + b3)  # (n, 128)
    return np.dot(h, W4) + b4  # (n, 10)


def _pool(h):
    return npx.pooling(data=h, pool_type="avg", kernel=(2, 2), stride=(2, 2))


def gradients(X, y, params, net=lenet):
    """Return the gradients of the summed loss of `net` at `params`; call `attach_grad`
    first.

    Returns the list of gradient arrays, on the device of the parameters.
    """
    with autograd.record():
        total = loss(net(X, params), y).sum()
    total.backward()
    return [p.grad for p in params]
