"""The numbers that an index selects: plain indices give a view, others a copy."""

from itertools import accumulate
from math import prod


def element_offsets(first, shape, steps):
    """Return the places of all numbers, in C order."""
    found = [first]
    for n, step in zip(shape, steps):
        found = [p + i * step for p in found for i in range(n)]
    return found


def c_steps(shape):
    """Return the strides, in numbers, of a contiguous array in C order."""
    return tuple(accumulate(reversed((*shape[1:], 1)), lambda a, b: a * b))[::-1][
        : len(shape)] if shape else ()


def is_basic(key):
    return isinstance(key, (int, slice, type(None), type(Ellipsis))) and not (
        isinstance(key, bool) or type(key).__name__ == "bool_")


def whole(key, ndim):
    """Return the index with an entry for each axis, None for each new one: a list."""
    keys = [*key] if isinstance(key, tuple) else [key]
    keys = [k.__index__() if hasattr(k, "__index__") and not (
        is_basic(k) or hasattr(k, "shape") or isinstance(k, bool)) else k for k in keys]
    taken = sum(getattr(k, "ndim", 0) if _is_mask(k) else 1
                for k in keys if k is not None and k is not Ellipsis)
    if taken > ndim:
        raise IndexError(f"too many indices for array: array is {ndim}-dimensional, "
                         f"but {taken} were indexed")
    fill = [slice(None)] * (ndim - taken)
    at = next((i for i, k in enumerate(keys) if k is Ellipsis), None)
    if at is None:
        return keys + fill
    return keys[:at] + fill + keys[at + 1 :]


def _is_mask(k):
    return isinstance(k, bool) or getattr(
        getattr(k, "dtype", None), "kind", "") == "b"


def basic(keys, first, shape, steps):
    """Return (first, shape, steps) of a view."""
    new_shape, new_steps, axis = [], [], 0
    for key in keys:
        if key is None:
            new_shape, new_steps = [*new_shape, 1], [*new_steps, 0]
            continue
        n, step = shape[axis], steps[axis]
        if isinstance(key, slice):
            begin, stop, stride = key.indices(n)
            count = len(range(begin, stop, stride))
            first += begin * step if count else 0
            new_shape, new_steps = [*new_shape, count], [*new_steps, stride * step]
        else:
            first += in_bounds(int(key), n, axis) * step
        axis += 1
    return first, tuple(new_shape), tuple(new_steps)


def in_bounds(i, n, axis):
    if not -n <= i < n:
        raise IndexError(f"index {i} is out of bounds for axis {axis} with size {n}")
    return i % n


def advanced(keys, first, shape, steps, as_array, broadcast):
    """Return (places, shape) of an index that contains arrays."""
    given, keys = keys, []
    for key in given:
        axis = sum(part is not None for part in keys)
        if _is_mask(key) and not getattr(key, "ndim", 0):  # all, or nothing
            shape = (*shape[:axis], 1, *shape[axis:])
            steps = (*steps[:axis], 0, *steps[axis:])
            key = [0] * bool(key)
        keys += _unmasked(key, as_array, shape, axis)
    at = [i for i, key in enumerate(keys) if not isinstance(key, slice)
          and key is not None]
    axes = [i - sum(k is None for k in keys[:i]) for i in at]
    arrays = broadcast([as_array(keys[i]) for i in at])
    rest = [slice(None) if i in at else key for i, key in enumerate(keys)]
    first, rest_shape, rest_steps = basic(rest, first, shape, steps)
    offsets = [0] * prod(arrays[0].shape)
    for axis, array in zip(axes, arrays):
        n, step = shape[axis], steps[axis]
        offsets = [p + in_bounds(int(i), n, axis) * step
                   for p, i in zip(offsets, array._values())]
    begin = at[0] if at[-1] - at[0] == len(at) - 1 else 0
    others = [i for i in range(len(keys)) if i not in at]
    front, back = others[:begin], others[begin:]
    before = element_offsets(first, *_some(front, rest_shape, rest_steps))
    after = element_offsets(0, *_some(back, rest_shape, rest_steps))
    places = [p + o + q for p in before for o in offsets for q in after]
    found = (*(rest_shape[i] for i in front), *arrays[0].shape,
             *(rest_shape[i] for i in back))
    return places, found


def _some(axes, shape, steps):
    return [shape[i] for i in axes], [steps[i] for i in axes]


def _unmasked(key, as_array, shape, first):
    """Return [key]; for a mask, which begins at axis `first`, its places per axis."""
    if isinstance(key, (slice, type(None), int)) and not isinstance(key, bool):
        return [key]
    key = as_array(key)
    if not _is_mask(key):
        return [key]
    for axis, n in enumerate(key.shape, first):
        if n != shape[axis] and n:  # an empty mask fits all
            raise IndexError(
                "boolean index did not match indexed array along dimension "
                f"{axis}; dimension is {shape[axis]} but corresponding boolean "
                f"dimension is {n}")
    return list(key.nonzero())
