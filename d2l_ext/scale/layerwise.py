"""A dense block whose hidden units are divided over devices."""

from ..data_parallel import traffic


def seconds(block, devices, rows, inputs, outputs, link, way="naive", itemsize=4):
    """Seconds of a forward and backward pass of a block that k `devices` share.

    `block`: seconds of the whole block on one device; each of k does 1/k of it. Then
    come two allreduces, of `rows` × `outputs` numbers forward and `rows` × `inputs`
    backward. The parameters do not occur: none of their gradients is sent.

        block/k + allreduce(k, rows·outputs·4) + allreduce(k, rows·inputs·4)

    Source: Shoeybi et al., "Megatron-LM" (2019). Developed in *A cost model*.
    """
    sums = [
        traffic.seconds(way, devices, rows * width * itemsize, link.alpha, link.beta)
        for width in (outputs, inputs)
    ]
    return block / devices + sum(sums)
