"""To go on where a run was stopped, with the same settings and nothing lost."""

import os
import reprlib
import zlib

from pslaunch.environment import START

from ..clusters.checkpoint import CheckpointError, step_of

_shown = reprlib.Repr()
_shown.maxlist = _shown.maxstring = _shown.maxother = 100
#: A run that goes on may change these. Its sums are then rounded in another order.
MAY_CHANGE = ("devices", "work_load_list", "kv_store")


def settings(args, dataset, devices, X, y, num_workers=1):
    """What a checkpoint is made with, as a dict; all but `MAY_CHANGE` must stay.

    `args`: the flags. `dataset`: its name. `devices`: their names. `X`, `y`: the
    training examples, of which a checksum is taken. `num_workers`: several make
    a larger minibatch together.
    """
    same = ("network", "batch_size", "optimizer", "lr", "lr_factor", "lr_step_epochs",
            "mom", "wd", "seed", "gc_type", "gc_threshold")  # fmt: skip
    return {
        "dataset": dataset,
        "num_examples": len(X),
        "checksum of the data": zlib.crc32(y.tobytes(), zlib.crc32(X.data)),
        **{name: getattr(args, name) for name in same},
        "batch_size": args.batch_size * num_workers,
        "devices": devices,
        "work_load_list": args.work_load_list,
        "kv_store": args.kv_store,
    }


def is_again():
    """Whether this process belongs to a job that the launcher has started again."""
    return int(os.environ.get(START) or 1) > 1


def begin(fit, go_on, steps=None):
    """Let `fit` begin where its last checkpoint ends, if `go_on`, else at step 0.

    `steps`: those whose checkpoints all workers of the job have; None alone.

    Raises `ValueError` when nothing was said of going on and there are checkpoints,
    when all are damaged, when one was made with other settings or holds something
    else, or when more epochs are done than `fit` is to do.
    """
    if not go_on:
        if fit.checkpoints.paths():
            raise ValueError(
                f"there are checkpoints already, {fit.checkpoints.paths()[-1]}: go on "
                "with --resume, or choose another --save-prefix"
            )
        return
    found = fit.checkpoints.load(fit.report.note, steps)
    if found is None:
        fit.report.note("there is no checkpoint yet: beginning anew")
        return
    path, arrays, record = found
    settings = record.get("settings") if isinstance(record, dict) else None
    if not isinstance(settings, dict):
        raise CheckpointError(f"{path} holds something else: no settings of a run")
    _compare(path, settings, fit.settings, fit.report.note)
    try:
        fit.restore(arrays, record)
    except ValueError as error:
        raise CheckpointError(f"{path} holds something else: {error}") from None
    if fit.num_steps != step_of(path):
        raise CheckpointError(f"{path} holds step {fit.num_steps}, not its name's")
    if fit.num_steps > fit.num_epochs * len(fit.train_iter):
        raise ValueError(
            f"--num-epochs {fit.num_epochs}, but {path} is from epoch "
            f"{-(-fit.num_steps // len(fit.train_iter))}: those before --resume count"
        )
    fit.report.note(f"going on from {path}, step {fit.num_steps}")
    if "async" in fit.settings["kv_store"]:
        fit.report.note(
            "notice: the servers' part of the optimizer, its momentum, is not kept, so "
            "it begins anew"
        )
    if fit.settings["gc_type"] != "none":
        fit.report.note(
            "notice: what 2bit compression held back is not kept, so the weights "
            "will differ a little from those of a run without interruption"
        )


def _compare(path, before, now, note):
    changed = {k: (before.get(k), now[k]) for k in now if before.get(k) != now[k]}
    lines = {k: f"{k} was {_show(was)} and is {_show(is_now)}"
             for k, (was, is_now) in changed.items()}  # fmt: skip
    wrong = [line for k, line in lines.items() if k not in MAY_CHANGE]
    if wrong:
        raise ValueError(f"{path} was made with other settings: {'; '.join(wrong)}")
    for line in lines.values():
        note(f"notice: {line}; the weights may differ in the last digits")


def _show(value):
    """As text, in one line and not too long: a file may hold anything."""
    short = isinstance(value, str) and value.isprintable() and len(value) < 100
    return value if short else _shown.repr(value)
