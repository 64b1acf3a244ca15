"""The job as a frozen description: what the flags say, checked together."""

import os
from collections import namedtuple

from d2l_ext import devices
from d2l_ext.devices.timeline import borrowed_slots

from . import ways


def from_flags(args):
    """Return the job that flags `args` describe; raise `ValueError` on a conflict."""
    places, prefix = _places(args), args.save_prefix
    for way in ways.WAYS:
        way.check(args, places)
    if prefix and os.path.isdir(prefix):
        raise ValueError(f"--save-prefix {prefix} is a folder: give the start of a "
                         f"name, as in {prefix}/run")
    for flag in ("resume", "save_every", "save_shards"):
        if getattr(args, flag) and not prefix:
            flag = flag.replace("_", "-")
            raise ValueError(f"--{flag} needs --save-prefix, the checkpoints' name")
    if args.profile:
        _check_profile(args.profile, places)
    return of(args, places)


def of(args, places):
    """Return a named tuple of all flags, with the defaults that depend on others.

    `places`: the devices to train on, a field of their own. `devices`: their names.
    """
    own = {**vars(args), "places": places,
           "devices": [f"{d.device_type}:{d.device_id}" for d in places],
           "gc_threshold": args.gc_threshold or 0.5,
           "mom": 0.9 if args.mom is None else args.mom}
    return namedtuple("Job", own)(**own)


def _places(args):
    """Return the devices to train on."""
    if args.gpus and args.devices:
        raise ValueError("--gpus and --devices exclude each other: give only one")
    names = args.devices or [f"gpu:{i}" for i in args.gpus or []]
    places = [devices.parse_device(name) for name in names]
    if len(set(places)) < len(places):
        raise ValueError(f"{', '.join(names)}: a device is listed twice")
    try:
        return places or devices.try_all_devices(1)
    except RuntimeError as error:  # D2L_EXT_DEVICES asks for a GPU
        raise ValueError(error) from None


def _check_profile(path, places):
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path) or not os.access(folder, os.W_OK):
        raise ValueError(f"--profile {path}: cannot write a file there")
    try:
        borrowed_slots(places)
    except ValueError as error:
        raise ValueError(f"--profile {path}: {error}") from None
