"""Turns the flags into a `Fit`; rejects every invalid combination."""

import os
from collections import namedtuple
from functools import partial

import mxnet as mx

from d2l_ext import devices
from d2l_ext.checks import known_name
from d2l_ext.clinic import flight_recorder
from d2l_ext.clusters import agreement, checkpoint
from d2l_ext.data.sets import Batches
from d2l_ext.data_parallel.minibatch import shard_sizes
from d2l_ext.devices.timeline import borrowed_slots
from d2l_ext.kvstore import ring

from . import networks, resume, ways
from .fit import Fit, Progress, StepProfiler
from .parts import Parts

#: Seconds per call of a ring: rank 0 evaluates alone; a death is noticed at once.
PATIENCE = 600


def prepare(args, held):
    """Check `args` together; return the `Fit`, and a function that describes it.

    `held`: an `ExitStack`, closed after the last checkpoint. Raises `ValueError` or
    `OSError`, with the problem.
    """
    places = _places(args)
    _check_together(args, places)
    job = description(args)
    way = ways.choose(job)
    dataset = way.load(job)
    X, y = _examples(dataset, job.num_examples)
    # A single process is worker 0 of 1. From here on, the workers of a job are
    # connected, and none may exit silently.
    kv = _store(job, held)
    rank, num_workers = (kv.rank, kv.num_workers) if kv else (0, 1)
    train_iter = Batches(X, y, job.batch_size, shuffle=True, seed=job.seed,
                         num_parts=num_workers, part_index=rank)
    _check_shards(job, train_iter, len(places) // job.tensor)
    test_iter = Batches(dataset.test_X, dataset.test_y, job.batch_size)
    replicas = way.build(job, places, dataset, kv)
    report = Progress(job.num_epochs, train_iter.num_steps, replicas.measure,
                    job.disp_batches)
    fit = Fit(replicas, train_iter, test_iter if rank == 0 else None, job.num_epochs,
              partial(learning_rate, job), report, job.save_every,
              saves=rank == 0 or job.save_shards)
    fit.settings = resume.settings(job, dataset.name, _names(places), X, y, num_workers)
    _resume(job, fit, kv, held, 1 if kv else len(places))
    if job.profile and rank == 0:
        left = job.num_epochs * train_iter.num_steps - fit.num_steps
        fit.profiler = StepProfiler(job.profile, places, max(min(2, left - 1), 0))
    return fit, lambda fit: _result(fit, job, dataset.name, places, kv)


def description(args):
    """The job as a named tuple: all flags, with the defaults that depend on others."""
    own = {**vars(args), "gc_threshold": args.gc_threshold or 0.5,
           "mom": 0.9 if args.mom is None else args.mom}
    return namedtuple("Job", own)(**own)


def _resume(job, fit, kv, held, num_parts):
    """Give `fit` its checkpoints, and let it resume from the last one if asked."""
    if job.save_prefix:
        rank, num_workers = (kv.rank, kv.num_workers) if kv else (0, 1)
        need = resume.num_bytes(fit.replicas.params)
        # An optimizer's state is a few times the weights, and a record is small.
        most = 8 * need + 2**28
        fit.checkpoints = _checkpoints(job, most, rank, num_workers, num_parts)
        if fit.saves:
            held.callback(fit.checkpoints.end)
            fit.checkpoints.begin(need, fit.report.note)
    steps = _agreed(kv, fit) if kv else None
    if job.save_prefix:
        resume.begin(fit, job.resume, steps)


def _checkpoints(args, most, *who):
    """Checkpoints as files or in parts. `ValueError` if the other kind exists."""
    kinds = [checkpoint.Checkpoints(args.save_prefix, most),
             Parts(args.save_prefix, *who)]
    own, other = kinds[:: -1 if args.save_shards else 1]
    if other.paths():
        how = "without" if args.save_shards else "with"
        raise ValueError(f"{other.paths()[-1]} is from a run {how} --save-shards: "
                         f"resume {how} it, or choose another --save-prefix")
    return own


def _store(args, held):
    if args.kv_store not in ways.JOB_KV_STORES:
        return None
    is_ring = args.kv_store == "ring"
    kv = ring.join(PATIENCE) if is_ring else mx.kv.create(args.kv_store)
    if folder := os.environ.get(flight_recorder.FOLDER):
        # A repeated start must not find the records of the last one.
        start = f"start-{os.environ.get(resume.START, '1')}"
        flight_recorder.attach(kv, os.path.join(folder, start), PATIENCE)
    return held.enter_context(kv) if is_ring else kv


def learning_rate(args, epoch):
    """The rate in `epoch`, from 0: `--lr`, reduced after each of `--lr-step-epochs`."""
    return args.lr * args.lr_factor ** sum(epoch >= e for e in args.lr_step_epochs)


def _places(args):
    """The devices to train on."""
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


def _examples(dataset, num_examples):
    total = len(dataset.train_X)
    if num_examples and num_examples > total:
        raise ValueError(f"--num-examples {num_examples}: there are only {total:,}")
    return dataset.train_X[:num_examples], dataset.train_y[:num_examples]


def _result(fit, args, dataset, places, kv):
    history = fit.state.history
    seconds = sum(history)
    return {
        "seconds_per_epoch": round(seconds / len(history), 4),
        "samples_per_second": round(len(history) * fit.train_iter.own / seconds, 1),
        "devices": _names(places),
        "network": args.network,
        "dataset": dataset,
        "kv_store": args.kv_store,
        **({"shard": args.shard} if args.shard != "none" else {}),
        **({"tensor": args.tensor} if args.tensor > 1 else {}),
        "epochs": fit.state.epoch,
        "steps": fit.num_steps,
        **({"rank": kv.rank, "num_workers": kv.num_workers} if kv else {}),
    }


def _agreed(kv, fit):
    """The steps whose checkpoints all workers have, if their settings agree."""
    alike = {name: value for name, value in fit.settings.items()
             if name not in resume.MAY_CHANGE}
    alike.update(kv_store=fit.settings["kv_store"], num_epochs=fit.num_epochs,
                 save_prefix=bool(fit.checkpoints),
                 save_shards=isinstance(fit.checkpoints, Parts))
    whole = fit.checkpoints and agreement.checkpoint_steps(fit.checkpoints)
    return agreement.agree(kv, alike, whole)


def _names(places):
    return [f"{d.device_type}:{d.device_id}" for d in places]


# ---- Flags that are valid alone, but not together ----


def _check_together(job, places):
    """Raise `ValueError` for flags that conflict, with each other or with `places`."""
    known_name("network", job.network, (*networks.NETWORKS, "transformer"))
    for way in ways.WAYS:
        way.check(job, places)
    if job.mom is not None and not ways.OPTIMIZERS[job.optimizer]:
        raise ValueError(f"--mom {job.mom:g}: {job.optimizer} has no momentum")
    if job.dataset == "digits":
        ways.refuse({"--data-dir": job.data_dir}, "--dataset digits",
                    "which come with scikit-learn, not in files")
    _check_prefix(job)
    if job.profile:
        _check_profile(job.profile, places)


def _check_prefix(job):
    if job.save_prefix and os.path.isdir(job.save_prefix):
        raise ValueError(f"--save-prefix {job.save_prefix} is a folder: give the start "
                         f"of a name, as in {job.save_prefix}/run")
    for flag in ("resume", "save_every", "save_shards"):
        if getattr(job, flag) and not job.save_prefix:
            flag = flag.replace("_", "-")
            raise ValueError(f"--{flag} needs --save-prefix, the checkpoints' name")


def _check_profile(path, places):
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path) or not os.access(folder, os.W_OK):
        raise ValueError(f"--profile {path}: cannot write a file there")
    try:
        borrowed_slots(places)
    except ValueError as error:
        raise ValueError(f"--profile {path}: {error}") from None


def _check_shards(args, train_iter, num_devices):
    """Raise `ValueError` if a minibatch cannot be split over the devices."""
    fewest = min(shard_sizes(args.batch_size, num_devices, args.work_load_list))
    if fewest < args.accumulate:
        raise ValueError(
            f"--accumulate {args.accumulate}: a device has {fewest} examples of a "
            f"minibatch of {args.batch_size}, and each piece needs one"
        )
    num_examples = train_iter.own
    rest = num_examples % args.batch_size
    if 0 < rest < num_devices:
        raise ValueError(
            f"the last minibatch of an epoch would have {rest} of {num_examples:,} "
            f"examples for {num_devices} devices: choose another --batch-size or "
            "--num-examples"
        )
