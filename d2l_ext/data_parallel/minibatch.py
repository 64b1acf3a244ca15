"""A minibatch divided among devices."""

from math import isfinite


def shard_sizes(num_examples, num_devices, work_load_list=None):
    """Return the number of examples for each device: a list of `num_devices` ints.

    Even by default; the remainder of `num_examples` goes to the first devices.
    `work_load_list`: relative speeds, one positive number per device. `[3, 1]` gives
    the first device three quarters (rounded, but at least one). Raises `ValueError` for
    fewer examples than devices, and for unusable loads.
    """
    loads = list(work_load_list or [1] * num_devices)
    if (len(loads) != num_devices or min(loads, default=0) <= 0
            or not isfinite(sum(loads))):
        raise ValueError(
            f"work_load_list={loads} does not fit {num_devices} devices: give one "
            "positive number per device"
        )
    if num_examples < num_devices:
        raise ValueError(
            f"{num_examples} examples cannot be split over {num_devices} devices: "
            f"use at most {num_examples} devices or a larger batch"
        )
    # One example each is certain; the others are shared out by largest remainder.
    spare = num_examples - num_devices
    ideal = [max(num_examples * load / sum(loads) - 1, 0) for load in loads]
    ideal = [share * spare / sum(ideal) if spare else 0 for share in ideal]
    sizes = [int(share) for share in ideal]
    # A stable sort: equal remainders go to the first devices.
    by_remainder = sorted(range(num_devices), key=lambda i: sizes[i] - ideal[i])
    for i in by_remainder[: spare - sum(sizes)]:
        sizes[i] += 1
    return [size + 1 for size in sizes]


def split(X, devices, work_load_list=None):
    """Cut `X` along axis 0 by `shard_sizes`; return part i on `devices[i]`, a list."""
    shards, start = [], 0
    sizes = shard_sizes(X.shape[0], len(devices), work_load_list)
    for device, size in zip(devices, sizes):
        shards.append(X[start : start + size].as_in_ctx(device))
        start += size
    return shards


def split_batch(X, y, devices, work_load_list=None):
    """Split `X` (n, …) and `y` (n, …) into one shard per device.

    Returns `(X_shards, y_shards)`, cut at the same places (see `shard_sizes`).
    Raises `ValueError` when `X` and `y` have different lengths, or when there
    are more devices than examples. Follows *Dive into Deep Learning*, "Training on
    Multiple GPUs". Developed in the chapter *Data parallelism from scratch*.
    """
    if X.shape[0] != y.shape[0]:
        raise ValueError(
            f"X has {X.shape[0]} examples and y has {y.shape[0]}: "
            "every example needs one label"
        )
    return split(X, devices, work_load_list), split(y, devices, work_load_list)
