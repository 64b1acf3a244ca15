"""Load MXNet's shared library and print its version and features as JSON.

This is a process of its own: a library with missing dependencies may end the process
that loads it. MXNet's Python package is not imported, because that takes seconds.
"""

import ctypes
import importlib.util
import json
import sys
from pathlib import Path


class _Feature(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("enabled", ctypes.c_bool)]


def ask(path):
    """Load the library at `path`; return its version, features and count of GPUs."""
    library = ctypes.CDLL(str(path))
    version, gpus = ctypes.c_int(), ctypes.c_int()
    features, length = ctypes.POINTER(_Feature)(), ctypes.c_size_t()
    library.MXGetVersion(ctypes.byref(version))
    library.MXLibInfoFeatures(ctypes.byref(features), ctypes.byref(length))
    # After an error CUDA cannot be used: no GPUs.
    known = library.MXGetGPUCount(ctypes.byref(gpus)) == 0
    return {
        "version": _dotted(version.value),
        "features": [f.name.decode() for f in features[: length.value] if f.enabled],
        "gpus": gpus.value if known else 0,
    }


def _dotted(number):  # 10901 is 1.9.1
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def main():
    """Print `{"missing": true}`, `{"error": …}` or what `ask` returns."""
    spec = importlib.util.find_spec("mxnet")
    if spec is None:
        answer = {"missing": True}
    else:
        try:
            answer = ask(Path(spec.submodule_search_locations[0], "libmxnet.so"))
        except OSError as error:
            answer = {"error": str(error)}
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
