"""Arguments and results on their way between processes: JSON, and arrays beside it.

No pickle: to read one is to run it.
"""

import json
from pathlib import Path

import numpy

_ARRAY = "array of the .npz"


def save(path, value):
    """Write `value` to `path`.json, and the arrays in it to `path`.npz.

    `value`: None, truth values, numbers, texts, arrays of NumPy and MXNet, and lists,
    tuples and dicts of those, whose keys are texts. Tuples come back as lists, arrays
    as NumPy's. Raises `TypeError` for anything else, and names it.
    """
    arrays = {}
    text = json.dumps(_plain(value, arrays))
    numpy.savez(f"{path}.npz", **arrays)
    Path(f"{path}.json").write_text(text, encoding="utf-8")


def load(path):
    """Read what `save` wrote."""
    with numpy.load(f"{path}.npz", allow_pickle=False) as npz:
        arrays = {name: npz[name] for name in npz.files}
    text = Path(f"{path}.json").read_text(encoding="utf-8")
    return _whole(json.loads(text), arrays)


def _plain(value, arrays):
    """`value` for JSON, with its arrays moved to `arrays`."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, numpy.generic):
        return value.item()
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _plain(part, arrays) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part, arrays) for part in value]
    if hasattr(value, "asnumpy"):
        value = value.asnumpy()
    if isinstance(value, numpy.ndarray) and not value.dtype.hasobject:
        name = str(len(arrays))
        arrays[name] = value
        return {_ARRAY: name}
    raise TypeError(
        f"{value!r}: numbers, texts, arrays, lists, and dicts with texts as keys can "
        f"go to another process; a {type(value).__name__} cannot"
    )


def _whole(value, arrays):
    if isinstance(value, dict):
        if value.keys() == {_ARRAY}:
            return arrays[value[_ARRAY]]
        return {key: _whole(part, arrays) for key, part in value.items()}
    if isinstance(value, list):
        return [_whole(part, arrays) for part in value]
    return value
