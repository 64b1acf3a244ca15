"""Which devices a chapter works on: GPUs when there are enough, else CPU contexts.

Every choice between the two in the book is made by `choose_kind`.
"""

import os
import re

import mxnet as mx

from ..checks import whole_number
from . import gpus

#: Forces the choice: one of `FORCED`; unset for "GPUs when there are enough".
VARIABLE = "D2L_EXT_DEVICES"
#: `cpu`, `one-gpu`: as if the machine had no GPU, or one; `gpu`: GPUs or an error.
FORCED = ("cpu", "one-gpu", "gpu")

gpus.refuse_hidden(mx)


def try_all_devices(k=2, force=None):
    """Return `k` devices: `k` GPUs when there are that many, else `k` CPU contexts.

    The kinds are never mixed, so that a chapter's devices are alike. `describe` says
    which were chosen and, without `force`, why. `force`, by default the variable
    `D2L_EXT_DEVICES`, is `cpu` or `one-gpu` to choose as on a machine with no GPU or
    with one, or `gpu` for GPUs and nothing else.

    Raises `ValueError` for `k` < 1 or an unknown word, and `RuntimeError` when GPUs are
    forced but missing.

    Developed in the chapter *Devices*.
    """
    whole_number("number of devices", k)
    forced = os.environ.get(VARIABLE, "") if force is None else force
    kind = getattr(mx, choose_kind(mx.context.num_gpus(), k, forced))
    return [kind(i) for i in range(k)]


def choose_kind(found, needed, forced=""):
    """Return `'gpu'` or `'cpu'`, for `needed` devices where there are `found` GPUs.

    `forced`: one of `FORCED`, or empty. The rule and errors: as in `try_all_devices`,
    but `needed` is not checked.
    """
    name = VARIABLE if forced == os.environ.get(VARIABLE) else "force"
    if forced not in ("", *FORCED):
        wanted = ", ".join(FORCED)
        raise ValueError(f"{name}={forced!r}: write {wanted}, or unset it")
    least = {"gpu": needed, "one-gpu": 1}.get(forced, 0)
    if found < least:
        noun = "GPU is" if least == 1 else "GPUs are"
        raise RuntimeError(
            f"{name}={forced!r}, but {least} {noun} needed and MXNet sees {found}. "
            "Without it, CPU contexts are used."
        )
    counted = min(found, {"cpu": 0, "one-gpu": 1}.get(forced, found))
    return "gpu" if needed <= counted else "cpu"


def parse_device(text):
    """Return the context that `text` names: `'cpu'`, `'cpu:1'`, `'gpu:0'`.

    Raises `ValueError` for anything else, including a GPU that MXNet cannot use.
    """
    # MXNet's engine keeps a list that is as long as the largest device number.
    found = re.fullmatch("(cpu|gpu)(?::([0-9]{1,4}))?", str(text).strip())
    if not found:
        raise ValueError(
            f"unknown device {text!r}: write cpu:0, cpu:1, … or gpu:0, gpu:1, …, up to "
            "9999"
        )
    kind, i = found[1], int(found[2] or 0)
    if kind == "gpu" and i >= mx.context.num_gpus():
        why = "".join(f" {reason}." for reason in gpus.reasons())
        raise ValueError(
            f"there is no gpu:{i}: MXNet sees {mx.context.num_gpus()} GPUs on this "
            f"machine.{why} Choose another, or use cpu:0, cpu:1, …"
        )
    return getattr(mx, kind)(i)


def describe(devices):
    """Return one line that names `devices` and says why they were chosen, if that was
    without `force`."""
    names = ", ".join(str(d) for d in devices)
    noun = "device" if len(devices) == 1 else "devices"
    return f"{len(devices)} {noun}: {names} (profile: {_reason(devices)})"


def _reason(devices):
    found = mx.context.num_gpus()
    seen = f"{found} GPU{'' if found == 1 else 's'} found"
    if os.environ.get(VARIABLE):
        return f"{seen}, {VARIABLE}={os.environ[VARIABLE]}"
    if devices[0].device_type == "gpu":
        return seen
    why = "".join(f" [{reason}]" for reason in gpus.reasons())
    return f"{seen}{why}, {len(devices)} needed, so CPU contexts"
