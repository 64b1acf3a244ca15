"""Flags of the trainer that are right by themselves, but not together."""

import os

from ..data_parallel.minibatch import shard_sizes
from ..devices.timeline import last_cpu, without_slot
from .dist_replicas import KV_STORES, check_job


def together(args, places):
    """Raise `ValueError` when flags do not go together, or with these `places`."""
    if args.resume and not args.save_prefix:
        raise ValueError("--resume needs --save-prefix: whose checkpoints?")
    if args.save_every and not args.save_prefix:
        raise ValueError("--save-every needs --save-prefix: where to?")
    if args.gc_type != "none" and (args.kv_store != "device" or len(places) < 2):
        raise ValueError(
            f"--gc-type {args.gc_type} needs two devices or more and --kv-store "
            f"device; here are {len(places)} and {args.kv_store}. MXNet compresses "
            "gradients nowhere else on one machine."
        )
    if args.kv_store in KV_STORES:
        _job(args)
    if args.dataset == "digits" and args.data_dir:
        raise ValueError("--data-dir: the digits come with scikit-learn, not in files")
    if args.profile:
        _profile(args.profile, places)


def _profile(path, places):
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path) or not os.access(folder, os.W_OK):
        raise ValueError(f"--profile {path}: cannot write a file there")
    if without_slot(places):
        raise ValueError(
            "--profile: on this machine MXNet can profile cpu:0 to "
            f"cpu:{last_cpu()} only"
        )


def _job(args):
    check_job(args.kv_store)
    if "async" in args.kv_store and args.lr_step_epochs:
        raise ValueError(
            f"--lr-step-epochs with --kv-store {args.kv_store}: the servers apply the "
            "rate, and are told it once. Take dist_sync, or one rate"
        )


def shards(args, train_iter, num_devices):
    """Raise `ValueError` when a minibatch cannot be split over the devices."""
    shard_sizes(args.batch_size, num_devices, args.work_load_list)
    num_examples = train_iter.own()
    rest = num_examples % args.batch_size
    if 0 < rest < num_devices:
        raise ValueError(
            f"the last minibatch of an epoch would have {rest} of {num_examples:,} "
            f"examples for {num_devices} devices: choose another --batch-size or "
            "--num-examples"
        )
