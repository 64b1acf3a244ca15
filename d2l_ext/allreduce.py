"""Allreduce: every device ends with the sum of what all devices had."""


def allreduce(data):
    """Sum the arrays in `data`, one per device, and give every device the sum.

    `data`: a list of arrays of one shape, array i on device i; changed in place.
    The naive way: device 0 gathers, adds up in the order of the list, and sends
    the sum back. It never waits, so the engine may overlap it with other work.
    Device 0 receives and sends k − 1 arrays; all others one each way.

    Follows `allreduce` of *Dive into Deep Learning*, "Training on Multiple
    GPUs". Developed in the chapter *Data parallelism from scratch*.
    """
    for i in range(1, len(data)):
        data[0][:] += data[i].copyto(data[0].ctx)
    for i in range(1, len(data)):
        data[0].copyto(data[i])
