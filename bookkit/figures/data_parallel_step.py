"""One step of data parallelism: the arrays and messages of each device.

The page holds the library's numbers: the bytes of LeNet's parameters and of images,
the shares of a minibatch from `minibatch`, the bytes of an allreduce from `costs`.
"""

import numpy

from d2l_ext.data_parallel import allreduce, costs, lenet, step
from d2l_ext.data_parallel.minibatch import shard_sizes

from . import frame

MAX_DEVICES = 4
BATCHES = range(4, 257, 4)
#: Bytes of an image, 28 × 28 float32, with its label, int32.
EXAMPLE_BYTES = 28 * 28 * 4 + 4
#: The lines of each of the seven acts.
CODE = frame.listing(
    step.get_params, step.train_batch, step.forward_backward, allreduce.allreduce,
    a1="p.copyto(device)", a2="split_batch(X, y",
    a3=("forward_backward(X_shards, y_shards, device_params)", "model.loss(net("),
    a4="device_loss.backward()", a5=("allreduce([params", "data[0][:] +="),
    a6=("allreduce([params", "send(data[0], "), a7="d2l.sgd(",
)
CONTROLS = (
    frame.Slider("devices", "Devices k", 1, MAX_DEVICES),
    frame.Slider("batch", "Minibatch n", BATCHES[0], BATCHES[-1], BATCHES.step),
    frame.Clock("Step"),
)


def figure(devices=2, batch=256, name="data-parallel-step"):
    """Return the figure for a notebook: devices side by side, a slider over the step.

    `devices`: k, 1 to 4. `batch`: examples of a minibatch, n, a multiple of 4 up to
    256. `name`: its id in the page; a page with two figures needs two names. Without
    scripts, the clock stands at the end of the step.

    Raises `ValueError` for values that it cannot show.
    Developed in the chapter *Data parallelism from scratch*.
    """
    choice = {"devices": devices, "batch": batch}
    return frame.figure(
        "data_parallel_step", name, "Step to show", CONTROLS, choice, data()
    )


def data():
    """Return the page's data, for JSON.

    `code`: a `frame.listing`. `params`: bytes of all parameters, and of all gradients.
    `example`: bytes of an example. `shards`: "k,n" -> examples of each device. `sent`
    and `received`: k -> bytes of each device in the naive allreduce of the gradients.
    """
    params = sum(int(numpy.prod(shape)) for shape in lenet.SHAPES) * 4
    counts = range(1, MAX_DEVICES + 1)
    moved = {k: costs.expected("naive", k, params) for k in counts}
    return {
        "code": CODE,
        "params": params,
        "example": EXAMPLE_BYTES,
        "shards": {f"{k},{n}": shard_sizes(n, k) for k in counts for n in BATCHES},
        "sent": {str(k): moved[k].sent for k in counts},
        "received": {str(k): moved[k].received for k in counts},
    }
