"""Which devices a chapter works on: the one place that decides."""

import os

import mxnet as mx

#: Forces the choice: `cpu`, `gpu`, or unset for "GPUs when there are enough".
VARIABLE = "D2L_EXT_DEVICES"


def try_device(i=0):
    """Return device `i`: `gpu(i)` if it exists, else `cpu(i)`.

    Unlike `d2l.try_gpu`, the fallback keeps the number: without a GPU, device 0
    and device 1 are two devices still, each with a worker thread of its own.
    Raises `ValueError` for a negative or fractional `i`.
    """
    _check_count("device number", i, least=0)
    return mx.gpu(i) if i < _usable_gpus(needed=i + 1) else mx.cpu(i)


def try_all_devices(k=2):
    """Return `k` devices: `k` GPUs when there are that many, else `k` CPU contexts.

    Never a mixture, so that two devices of a chapter are alike. `describe` says
    which it chose, and why. `D2L_EXT_DEVICES=cpu` or `gpu` forces the choice.

    Raises `ValueError` for `k` < 1 or an unknown value of the variable, and
    `RuntimeError` when `gpu` is forced and there are fewer than `k`.

    Developed in the chapter *Devices*.
    """
    _check_count("number of devices", k, least=1)
    kind = mx.gpu if _usable_gpus(needed=k) >= k else mx.cpu
    return [kind(i) for i in range(k)]


def parse_device(text):
    """Return the context that `text` names: `'cpu'`, `'cpu:1'`, `'gpu:0'`.

    Raises `ValueError` for anything else, and for a GPU that is not there.
    """
    kind, _, number = str(text).strip().partition(":")
    if kind not in ("cpu", "gpu") or not (number or "0").isdigit():
        raise ValueError(
            f"unknown device {text!r}: write cpu:0, cpu:1, … or gpu:0, gpu:1, …"
        )
    i = int(number or 0)
    if kind == "gpu" and i >= mx.context.num_gpus():
        raise ValueError(
            f"there is no gpu:{i}: MXNet sees {mx.context.num_gpus()} GPUs on this "
            "machine. Choose another, or use cpu:0, cpu:1, …"
        )
    return getattr(mx, kind)(i)


def describe(devices):
    """One line that names `devices` and says why they were chosen."""
    names = ", ".join(str(d) for d in devices)
    noun = "device" if len(devices) == 1 else "devices"
    return f"{len(devices)} {noun}: {names} (profile: {_reason(devices)})"


def _reason(devices):
    found = mx.context.num_gpus()
    gpus = f"{found} GPU{'' if found == 1 else 's'} found"
    if os.environ.get(VARIABLE, ""):
        return f"{gpus}, {VARIABLE}={os.environ[VARIABLE]}"
    if devices[0].device_type == "gpu":
        return gpus
    return f"{gpus}, {len(devices)} needed, so CPU contexts"


def _usable_gpus(needed):
    """How many GPUs may be used, after the variable had its say."""
    forced, found = os.environ.get(VARIABLE, ""), mx.context.num_gpus()
    if forced not in ("", "cpu", "gpu"):
        raise ValueError(f"{VARIABLE}={forced!r}: write cpu or gpu, or unset it")
    if forced == "gpu" and found < needed:
        raise RuntimeError(
            f"{VARIABLE}=gpu, but {needed} GPUs are needed and MXNet sees {found}. "
            f"Unset {VARIABLE} to use CPU contexts."
        )
    return 0 if forced == "cpu" else found


def _check_count(what, value, least):
    if not isinstance(value, int) or value < least:
        raise ValueError(f"{what} must be a whole number from {least}, not {value!r}")
