"""Turns the flags into a `Fit`; rejects every invalid combination."""

import os
from functools import partial

import mxnet as mx

from d2l_ext import data, devices
from d2l_ext.checks import known_name
from d2l_ext.clinic import flight_recorder
from d2l_ext.clusters import agreement, checkpoint
from d2l_ext.data.sets import Batches
from d2l_ext.data_parallel.allreduce.algorithm import algorithms
from d2l_ext.data_parallel.minibatch import shard_sizes
from d2l_ext.devices.timeline import borrowed_slots
from d2l_ext.kvstore import ring
from d2l_ext.memory.shards import STAGES

from . import flags, language, networks, resume
from .fit import Fit, Report, StepProfiler
from .parts import Parts
from .replicas import DistReplicas, LocalReplicas, Replicas, RingReplicas
from .sharded import ShardedReplicas

#: Seconds per call of a ring: death is noticed at once, and rank 0 evaluates alone.
PATIENCE = 600


def prepare(args, held):
    """Check `args` together; return the `Fit`, and a function that describes it.

    `held`: an `ExitStack`, closed after the last checkpoint. Raises `ValueError` or
    `OSError` that names the problem.
    """
    known_name("shard", args.shard, STAGES)
    known_name("network", args.network, (*networks.NETWORKS, "transformer"))
    known_name("allreduce", args.allreduce or "naive", allreduces())
    places = _places(args)
    _check_together(args, places)
    args.gc_threshold = args.gc_threshold or 0.5
    args.mom = 0.9 if args.mom is None else args.mom
    if args.network == "transformer":
        dataset = language.load(args.dataset)
    else:
        dataset = data.load_arrays(args.dataset, args.data_dir)
    X, y = _examples(dataset, args.num_examples)
    # A single process is worker 0 of 1. From here on, the workers of a job are
    # connected, and none may leave silently.
    kv = _store(args, held)
    rank, num_workers = (kv.rank, kv.num_workers) if kv else (0, 1)
    train_iter = Batches(X, y, args.batch_size, shuffle=True, seed=args.seed,
                         num_parts=num_workers, part_index=rank)
    _check_shards(args, train_iter, len(places) // args.tensor)
    test_iter = Batches(dataset.test_X, dataset.test_y, args.batch_size)
    replicas = _replicas(args, places, dataset, kv)
    report = Report(args.num_epochs, train_iter.num_steps, replicas.measure,
                    args.disp_batches)
    fit = Fit(replicas, train_iter, test_iter if rank == 0 else None, args.num_epochs,
              partial(learning_rate, args), report, args.save_every,
              saves=rank == 0 or args.save_shards)
    fit.settings = resume.settings(args, dataset.name, _names(places), X, y,
                                   num_workers)
    if args.save_prefix:
        need = resume.num_bytes(fit.replicas.params)
        # An optimizer's state is a few times the weights, and a record is small.
        parts = 1 if kv else len(places)
        fit.checkpoints = _checkpoints(args, 8 * need + 2**28, rank, num_workers, parts)
        if fit.saves:
            held.callback(fit.checkpoints.end)
            fit.checkpoints.begin(need, fit.report.note)
    steps = _agreed(kv, fit) if kv else None
    if args.save_prefix:
        resume.begin(fit, args.resume, steps)
    if args.profile and rank == 0:
        left = args.num_epochs * train_iter.num_steps - fit.num_steps
        first = max(min(2, left - 1), 0)
        fit.profiler = StepProfiler(args.profile, places, first)
    return fit, lambda fit: _result(fit, args, dataset.name, places, kv)


def _checkpoints(args, most, *who):
    """Whole files or parts. `ValueError` if checkpoints of the other kind exist."""
    kinds = [checkpoint.Checkpoints(args.save_prefix, most),
             Parts(args.save_prefix, *who)]
    own, other = kinds[:: -1 if args.save_shards else 1]
    if other.paths():
        how = "without" if args.save_shards else "with"
        raise ValueError(f"{other.paths()[-1]} is of a run {how} --save-shards: go on "
                         "as it did, or choose another --save-prefix")
    return own


def _store(args, held):
    if args.kv_store not in flags.JOB_KV_STORES:
        return None
    is_ring = args.kv_store == "ring"
    kv = ring.join(PATIENCE) if is_ring else mx.kv.create(args.kv_store)
    if folder := os.environ.get(flight_recorder.FOLDER):
        # A start that is repeated must not find the records of the one before.
        start = f"start-{os.environ.get('D2L_EXT_START', '1')}"
        flight_recorder.attach(kv, os.path.join(folder, start), PATIENCE)
    return held.enter_context(kv) if is_ring else kv


def learning_rate(args, epoch):
    """The rate in `epoch`, from 0: `--lr`, reduced after each of `--lr-step-epochs`."""
    return args.lr * args.lr_factor ** sum(epoch >= e for e in args.lr_step_epochs)


def allreduces():
    """The allreduces among devices: a dict from a name to the function."""
    return {name: a.reduce for name, a in algorithms().items() if a.reduce}


def _places(args):
    """The devices to train on."""
    if args.gpus and args.devices:
        raise ValueError("--gpus and --devices exclude each other: give one of them")
    names = args.devices or [f"gpu:{i}" for i in args.gpus or []]
    places = [devices.parse_device(name) for name in names]
    if len(set(places)) < len(places):
        raise ValueError(f"{', '.join(names)}: a device is there twice")
    try:
        return places or devices.try_all_devices(1)
    except RuntimeError as error:  # D2L_EXT_DEVICES asks for a GPU
        raise ValueError(error) from None


def _examples(dataset, num_examples):
    total = len(dataset.train_X)
    if num_examples and num_examples > total:
        raise ValueError(f"--num-examples {num_examples}: there are only {total:,}")
    return dataset.train_X[:num_examples], dataset.train_y[:num_examples]


def _replicas(args, places, dataset, kv):
    params = {"learning_rate": args.lr, "wd": args.wd}
    if flags.OPTIMIZERS[args.optimizer]:
        params["momentum"] = args.mom
    own = places, args.optimizer, params
    options = {"work_load_list": args.work_load_list, "seed": args.seed,
               "allreduce": allreduces()[args.allreduce or "naive"]}
    store = None if args.kv_store == "none" else args.kv_store
    if args.network == "transformer":
        return language.Decoders(len(dataset.classes), args.tensor, *own, store,
                                 **options)
    net = networks.build(args.network, dataset.train_X.shape[1:], places, args.seed)
    if args.shard != "none":
        return ShardedReplicas(args.shard, net, *own, **options)
    options.update(accumulate=args.accumulate, recompute=args.recompute)
    if args.local_steps:
        outer = args.local_steps, args.outer_lr or 1.0, args.outer_mom or 0.0
        return LocalReplicas(kv, outer, net, *own, **options)
    if kv:
        kind = RingReplicas if args.kv_store == "ring" else DistReplicas
        return kind(kv, args.batch_size, net, *own, **options)
    if args.gc_type != "none":
        options["compression"] = {"type": args.gc_type, "threshold": args.gc_threshold}
    return Replicas(net, *own, store, **options)


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


def _check_together(args, places):
    """Raise `ValueError` for flags that conflict, with each other or with `places`."""
    store, shard = f"--kv-store {args.kv_store}", f"--shard {args.shard}"
    of_a_job = args.kv_store in flags.JOB_KV_STORES
    other_steps = {"--accumulate": args.accumulate > 1, "--recompute": args.recompute,
                   "--gc-type": args.gc_type != "none", store: of_a_job}
    if args.network == "transformer":
        alone = {shard: args.shard != "none", "--data-dir": args.data_dir}
        _refuse({**alone, **other_steps}, "--network transformer", "whose groups are "
                "whole replicas in one process, take a minibatch in one piece, and "
                "read one text (--dataset FILE)")
    elif args.tensor > 1:
        raise ValueError(
            f"--tensor {args.tensor} divides the heads of attention, and "
            f"{args.network} has none: take --network transformer"
        )
    if len(places) % args.tensor:
        raise ValueError(
            f"--tensor {args.tensor}: {len(places)} devices are no groups of that size"
        )
    if args.shard != "none":
        other_steps[store] = of_a_job or args.kv_store == "local"
        _refuse(other_steps, shard, "which takes a minibatch in one piece, and goes "
                "through this library's ring, among the devices of one process: the "
                "servers of a job hold a part each already")
    if args.mom is not None and not flags.OPTIMIZERS[args.optimizer]:
        raise ValueError(f"--mom {args.mom:g}: {args.optimizer} has no such momentum")
    if args.allreduce and (args.kv_store != "none" or args.shard != "none"):
        raise ValueError(f"--allreduce {args.allreduce} needs --kv-store none, and no "
                         "--shard: else a store or the ring sums the gradients")
    if args.gc_threshold and args.gc_type == "none":
        raise ValueError(f"--gc-threshold {args.gc_threshold:g} needs --gc-type 2bit")
    if args.save_prefix and os.path.isdir(args.save_prefix):
        raise ValueError(f"--save-prefix {args.save_prefix} is a folder: give the "
                         f"beginning of a name, as in {args.save_prefix}/run")
    if not args.save_prefix:
        for flag in ("--resume", "--save-every", "--save-shards"):
            if getattr(args, flag[2:].replace("-", "_")):
                raise ValueError(f"{flag} needs --save-prefix: whose checkpoints?")
    if args.local_steps:
        in_step = args.kv_store in flags.DIST_KV_STORES and "async" not in store
        _refuse({"--save-prefix": args.save_prefix, store: not in_step},
                f"--local-steps {args.local_steps}", "which is for the workers of a "
                "synchronous job, each with weights of its own: take dist_sync, and "
                "save nothing, as those of one would be saved")
    elif args.outer_lr or args.outer_mom:
        raise ValueError("--outer-lr and --outer-mom need --local-steps")
    if "async" in store:
        _refuse({"--save-shards": args.save_shards,
                 "--lr-step-epochs": args.lr_step_epochs}, store, "whose workers are "
                "at different steps, and whose servers apply the rate, which they are "
                "told once: take dist_sync")
    if of_a_job and os.environ.get("DMLC_ROLE") != "worker":
        servers = "" if args.kv_store == "ring" else " and servers"
        raise ValueError(
            f"{store} needs a job of workers{servers}: python -m pslaunch -n 2 "
            f"-s {1 if servers else 0} python -m d2l_ext.train {store} …"
        )
    if of_a_job and args.kv_store != "ring" and os.environ["DMLC_NUM_SERVER"] == "0":
        raise ValueError(f"{store} needs servers: pslaunch -s 1 or more")
    if args.gc_type != "none" and (args.kv_store != "device" or len(places) < 2):
        raise ValueError(
            f"--gc-type {args.gc_type} needs two devices or more and --kv-store "
            f"device; here are {len(places)} and {args.kv_store}. MXNet compresses "
            "gradients nowhere else on one machine."
        )
    if args.dataset == "digits":
        _refuse({"--data-dir": args.data_dir}, "--dataset digits",
                "which come with scikit-learn, not in files")
    if args.profile:
        _check_profile(args.profile, places)


def _refuse(others, what, why):
    """Raise `ValueError` if one of `others` is given, with its reason."""
    given = ", ".join(flag for flag, is_given in others.items() if is_given)
    if given:
        raise ValueError(f"{given}: not with {what}, {why}")


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
