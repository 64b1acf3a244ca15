"""What a Gluon `Trainer` has learned, as plain arrays.

`Trainer.save_states` pickles the optimizer, and to read a pickle is to run it.
"""

import math

import mxnet as mx
import numpy as np
from mxnet.util import is_np_array


def pack(params, trainer):
    """Return weights and optimizer states as a dict of NumPy arrays.

    `params`: the list that `trainer` was made with, in that order. The replicas of
    a weight are equal, and so are their states: those of the first are taken. What
    `dist_async` keeps on the servers can't be had. Waits for the engine.
    """
    arrays = {f"param.{i}": p.data().asnumpy() for i, p in enumerate(params)}
    updaters = _updaters(trainer)
    if not updaters:
        return {**arrays, "counts": np.zeros(len(params), int)}
    updater = updaters[0]
    counts = updater.optimizer._all_index_update_counts.values()
    for i in range(len(params)):
        for j, array in enumerate(_flat(updater.states.get(i))):
            arrays[f"state.{i}.{j}"] = array.asnumpy()
    # How often each weight was updated: Adam corrects its means by it. A store
    # keeps each weight on a device of its choice, and counts there.
    arrays["counts"] = np.array(
        [max(steps.get(i, 0) for steps in counts) for i in range(len(params))]
    )
    return arrays


def num_bytes(params):
    """Bytes of the weights, without what an optimizer keeps."""
    return sum(math.prod(p.shape) * np.dtype(p.dtype).itemsize for p in params)


def unpack(arrays, params, trainer):
    """Give all replicas what `pack` returned. `trainer` must be unused, and alike.

    Raises `ValueError` when the arrays are not those of these parameters.
    """
    for i, p in enumerate(params):
        found = _take(arrays, f"param.{i}", p)
        # An array of MXNet's: NumPy's cannot be put into a layout of oneDNN's.
        p.set_data(mx.np.array(found, dtype=found.dtype, ctx=mx.cpu(0)))
    counts = _take(arrays, "counts", np.zeros(len(params), int)).tolist()
    if min(counts) < 0:
        raise ValueError(f"counts of updates below 0: {min(counts)}")
    updaters = _updaters(trainer)
    if not updaters:
        return
    for updater, device in zip(updaters, range(len(updaters))):
        for i, p in enumerate(params):
            if counts[i]:
                _fill(updater, i, p.list_data()[device], arrays)
    # One optimizer serves all updaters, and counts per number of the device.
    seen = {ctx.device_id for ctx in params[0].list_ctx()} | {0}
    optimizer = updaters[0].optimizer
    steps = {i: count for i, count in enumerate(counts) if count}
    optimizer._all_index_update_counts = {i: dict(steps) for i in seen}
    optimizer._index_update_count = optimizer._all_index_update_counts[0]
    optimizer.num_update = max(counts)


def _updaters(trainer):
    """The updater on the store, or one per device. Makes the store if need be.

    None when it is on other machines' servers.
    """
    if not trainer._kv_initialized:
        trainer._init_kvstore()
    if trainer._params_to_init:
        trainer._init_params()
    if trainer._update_on_kvstore:
        return [u for u in [trainer._kvstore._updater] if u]
    return trainer._updaters


def _fill(updater, i, weight, arrays):
    """Make the states of weight `i` as the updater itself would, and set them."""
    optimizer = updater.optimizer
    if not getattr(optimizer, "allow_np_array", is_np_array()):
        weight = weight.as_nd_ndarray()
    state = optimizer.create_state_multi_precision(i, weight)
    for j, array in enumerate(_flat(state)):
        array[:] = _take(arrays, f"state.{i}.{j}", array)
    updater.states[i] = state
    updater.states_synced[i] = False  # the first update moves it to its device


def _take(arrays, name, like):
    """The array `name`, if it has the shape and the type of `like`."""
    found, wanted = arrays.get(name), (like.shape, np.dtype(like.dtype))
    if found is None or (found.shape, found.dtype) != wanted:
        here = f"{wanted[1]} {wanted[0]}"
        there = "missing" if found is None else f"{found.dtype} {found.shape}"
        raise ValueError(f"{name} is {there} in the checkpoint and {here} here")
    return found


def _flat(state):
    """The arrays in nested tuples, in order; None stands for none."""
    if state is None:
        return []
    if isinstance(state, (tuple, list)):
        return [array for part in state for array in _flat(part)]
    return [state]
