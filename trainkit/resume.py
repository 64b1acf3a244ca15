"""Resume a stopped run, with the same settings and nothing lost."""

import math
import os
import reprlib
import zlib

import mxnet as mx
import numpy as np
from mxnet.util import is_np_array

from d2l_ext.clusters import agreement
from d2l_ext.clusters.checkpoint import CheckpointError, step_of
from d2l_ext.memory.shards import arrays_in, checked_array, counts_in

from .parts import Parts, num_bytes

#: In a job, the launcher sets this to 1 plus the number of the job's restarts.
START = "D2L_EXT_START"
#: Settings that a resumed run must not change.
MUST_STAY = ("network", "batch_size", "optimizer", "lr", "lr_factor", "lr_step_epochs",
             "mom", "wd", "seed", "gc_type", "gc_threshold", "local_steps", "outer_lr",
             "outer_mom")
#: Settings that it may change; sums may then be rounded in another order, and dropout
#: draws other numbers.
MAY_CHANGE = ("devices", "tensor", "work_load_list", "kv_store", "allreduce", "shard",
              "accumulate", "recompute")


def settings(job, dataset, num_workers=1):
    """Return the settings stored in a checkpoint, as a dict; only `MAY_CHANGE` may
    change.

    `job`: its description. `dataset`: a `Dataset`, whose training examples are stored
    as a checksum. `num_workers`: more workers make a larger minibatch.
    """
    X, y = dataset.train_X, dataset.train_y
    return {
        "dataset": dataset.name,
        "num_examples": len(X),
        "checksum of the data": zlib.crc32(y.tobytes(), zlib.crc32(X.data)),
        **{name: getattr(job, name) for name in (*MUST_STAY, *MAY_CHANGE)},
        "batch_size": job.batch_size * num_workers,
    }


def start(training, go_on, kv, held):
    """Begin `training` at its last checkpoint if `go_on`, else at step 0.

    A restarted job always resumes. The workers of a job first agree on their settings,
    and on the steps whose checkpoints all of them have. `kv`: the store of a job, or
    None. `held`: an `ExitStack`, which releases the checkpoints when it is closed.

    Raises `ValueError` if there are checkpoints but `go_on` is false, if all are
    damaged, if settings or content differ, or if a checkpoint has more epochs than
    `training` should run.
    """
    saved, note = training.checkpoints, training.report.note
    if saved and training.saves:
        held.callback(saved.end)
        saved.begin(num_bytes(training.replicas.params), note)
    steps = _agreed(kv, training) if kv else None
    if not saved:
        return
    if not go_on and int(os.environ.get(START) or 1) <= 1:
        _check_unused(saved)
        return
    found = saved.load(note, steps)
    if found:
        _restore(training, *found)
    else:
        note("there is no checkpoint yet: starting from the beginning")


def _agreed(kv, training):
    """Return the steps whose checkpoints all workers have, if their settings agree."""
    alike = {name: value for name, value in training.settings.items()
             if name not in MAY_CHANGE}
    alike.update(kv_store=training.settings["kv_store"], num_epochs=training.num_epochs,
                 save_prefix=bool(training.checkpoints),
                 save_shards=isinstance(training.checkpoints, Parts))
    if alike["save_shards"]:  # else only one worker saves
        alike.update(save_every=training.save_every)
    whole = training.checkpoints and agreement.checkpoint_steps(training.checkpoints)
    return agreement.agree(kv, alike, whole)


def _check_unused(saved):
    """Raise `ValueError` if the prefix of `saved` has checkpoints already."""
    if saved.paths():
        raise ValueError(
            f"there are checkpoints already, {saved.paths()[-1]}: continue with "
            "--resume, or choose another --save-prefix"
        )


def _restore(training, path, arrays, record):
    """Let `training` resume from the checkpoint at `path`; note what will differ."""
    settings = record.get("settings") if isinstance(record, dict) else None
    if not isinstance(settings, dict):
        raise CheckpointError(f"{path} has unexpected contents: no settings of a run")
    _compare(path, settings, training.settings, training.report.note)
    try:
        training.restore(arrays, record)
    except ValueError as error:
        raise CheckpointError(f"{path} has unexpected contents: {error}") from None
    if training.num_steps != step_of(path):
        raise CheckpointError(f"{path} holds step {training.num_steps}, "
                              "unlike its name")
    epochs = math.ceil(training.num_steps / training.train_iter.num_steps)
    if epochs > training.num_epochs:
        raise ValueError(
            f"--num-epochs {training.num_epochs}, but {path} is from epoch {epochs}: "
            "the number includes the epochs before --resume"
        )
    training.report.note(f"going on from {path}, step {training.num_steps}")
    _note_what_is_not_stored(training.settings, training.report.note)


def _note_what_is_not_stored(settings, note):
    if "async" in settings["kv_store"]:
        note("notice: the momentum, which is on the servers, starts at zero")
    if settings["gc_type"] != "none":
        note(
            "notice: the residuals of 2bit compression are not stored, so the weights "
            "will differ slightly from those of an undisturbed run"
        )


def _compare(path, before, now, note):
    lines = {k: f"{k} was {_show(before.get(k))} and is {_show(value)}"
             for k, value in now.items() if before.get(k) != value}
    wrong = [line for k, line in lines.items() if k not in MAY_CHANGE]
    if wrong:
        raise ValueError(f"{path} was made with other settings: {'; '.join(wrong)}")
    for line in lines.values():
        note(f"notice: {line}; the weights may differ in the last digits, or more with "
             "dropout")


def _show(value):
    """Return a value as one short line: a file may contain anything."""
    short = isinstance(value, str) and value.isprintable() and len(value) < 100
    return value if short else reprlib.repr(value)


# ---- Weights and the states of a Gluon `Trainer`, as plain arrays ----
# `Trainer.save_states` pickles the optimizer, and loading a pickle executes it.


def pack(params, trainer):
    """Return weights and optimizer states as a dict of NumPy arrays.

    `params`: the list that `trainer` was made with, in that order. The replicas of
    a weight are equal, and so are their states, so the first one's are taken. States
    that `dist_async` keeps on the servers are missing. Waits for the engine.
    """
    arrays = {f"param.{i}": p.list_data()[0].asnumpy() for i, p in enumerate(params)}
    updaters = _updaters(trainer)
    if not updaters:
        return {**arrays, "counts": np.zeros(len(params), int)}
    updater = updaters[0]
    counts = updater.optimizer._all_index_update_counts.values()
    for i in range(len(params)):
        for j, array in enumerate(arrays_in(updater.states.get(i))):
            arrays[f"state.{i}.{j}"] = array.asnumpy()
    # The number of updates of each weight, by which Adam corrects its means. A store
    # keeps each weight on a device of its choice, and counts there.
    arrays["counts"] = np.array(
        [max(steps.get(i, 0) for steps in counts) for i in range(len(params))]
    )
    return arrays


def unpack(arrays, params, trainer):
    """Restore what `pack` returned on all replicas of a new, equal `trainer`.

    Raises `ValueError` if the arrays do not fit these parameters.
    """
    for i, p in enumerate(params):
        found = checked_array(arrays, f"param.{i}", p)
        # An MXNet array: a NumPy array cannot be written into oneDNN's layout.
        p.set_data(mx.np.array(found, dtype=found.dtype, ctx=mx.cpu(0)))
    counts = counts_in(arrays, len(params))
    updaters = _updaters(trainer)
    if not updaters:
        return
    for updater, device in zip(updaters, range(len(updaters))):
        for i, p in enumerate(params):
            if counts[i]:
                _fill(updater, i, p.list_data()[device], arrays)
    # One optimizer serves all updaters, and counts per device number.
    seen = {ctx.device_id for ctx in params[0].list_ctx()} | {0}
    optimizer = updaters[0].optimizer
    steps = {i: count for i, count in enumerate(counts) if count}
    optimizer._all_index_update_counts = {i: dict(steps) for i in seen}
    optimizer._index_update_count = optimizer._all_index_update_counts[0]
    optimizer.num_update = max(counts)


def _updaters(trainer):
    """Return the updater on the store, or one per device; none if it is on servers."""
    make_store(trainer)
    if trainer._update_on_kvstore:
        return [u for u in [trainer._kvstore._updater] if u]
    return trainer._updaters


def make_store(trainer):
    """Make a `Trainer` create its store and send it the weights, if it has not yet."""
    if not trainer._kv_initialized:
        trainer._init_kvstore()
    if trainer._params_to_init:
        trainer._init_params()


def _fill(updater, i, weight, arrays):
    """Create the states of weight `i` as the updater itself would, and set them."""
    optimizer = updater.optimizer
    if not getattr(optimizer, "allow_np_array", is_np_array()):
        weight = weight.as_nd_ndarray()
    state = optimizer.create_state_multi_precision(i, weight)
    for j, array in enumerate(arrays_in(state)):
        array[:] = checked_array(arrays, f"state.{i}.{j}", array)
    updater.states[i] = state
    updater.states_synced[i] = False  # the first update moves it to its device
