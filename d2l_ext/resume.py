"""To go on where a run was stopped, with the same settings and nothing lost."""

import os
import zlib

from .launch.environment import START

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
    when all are damaged, or when one was made with other settings.
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
    _compare(path, record["settings"], fit.settings, fit.report.note)
    fit.restore(arrays, record)
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
    lines = {k: f"{k} was {was} and is {now}" for k, (was, now) in changed.items()}
    wrong = [line for k, line in lines.items() if k not in MAY_CHANGE]
    if wrong:
        raise ValueError(f"{path} was made with other settings: {'; '.join(wrong)}")
    for line in lines.values():
        note(f"notice: {line}; the weights may differ in the last digits")
