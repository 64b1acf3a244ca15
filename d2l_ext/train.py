"""The command line: `python -m d2l_ext.train --network lenet --devices cpu:0,cpu:1`.

    d2l-ext-train --dataset digits --devices cpu:0,cpu:1 --kv-store device
    d2l-ext-train --gpus 0,2 --work-load-list 3,1
    d2l-ext-train --save-prefix runs/lenet --resume

The flags are in `options.py`; `--help` lists them.
"""

import json
import os
import sys
from contextlib import suppress

from . import checkpoint, chrome_trace, data, devices, networks, options, resume
from .batches import Batches
from .fit import Fit, Stop, Stopped
from .minibatch import shard_sizes
from .progress import Report
from .replicas import Replicas
from .timeline import last_cpu, without_slot


def main(argv=None):
    """Train as the flags say, and return the exit code.

    `argv`: the flags, default those of the process. Prints one line of JSON on
    standard output, everything else on standard error. Exit codes: 0; 2 when a
    flag or a file is wrong; 1 when a checkpoint cannot be written; 143 and 130
    when stopped by SIGTERM and SIGINT.
    """
    parser = options.parser()
    args = parser.parse_args(argv)
    try:
        fit, describe = prepare(args)
    except (ValueError, OSError) as error:
        return _failed(parser.prog, error, 2)
    except KeyboardInterrupt:
        return 130
    try:
        with Stop() as fit.stop:
            accuracy = fit.run()
    except Stopped as stopped:
        then = "go on with --resume" if args.save_prefix else "nothing was kept"
        fit.report.note(f"stopped by {stopped} after step {fit.num_steps}; {then}")
        return 128 + stopped.signum
    except OSError as error:
        return _failed(parser.prog, error, 1)
    print(json.dumps({"accuracy": accuracy, **describe(fit)}), flush=True)
    return 0


def prepare(args):
    """Check `args` as a whole; return the `Fit`, and what describes it when done.

    Raises `ValueError` or `OSError` that says what does not fit.
    """
    networks.check_name(args.network)
    places = _places(args)
    _check(args, places)
    dataset = data.load_arrays(args.dataset, args.data_dir)
    X, y = _examples(dataset, args.num_examples)
    _check_shards(args, len(X), len(places))
    # One worker, for now: a distributed store would give its number_of workers and
    # its rank here as num_parts and part_index, and train as it does alone.
    train_iter = Batches(X, y, args.batch_size, shuffle=True, seed=args.seed)
    test_iter = Batches(dataset.test_X, dataset.test_y, args.batch_size)
    fit = Fit(
        _replicas(args, places, X.shape[1:]), train_iter, test_iter, args.num_epochs,
        lambda epoch: learning_rate(args, epoch),
        Report(args.num_epochs, len(train_iter), args.disp_batches),
        save_every=args.save_every,
    )  # fmt: skip
    if args.save_prefix:
        fit.settings = resume.settings(args, dataset.name, _names(places), X, y)
        fit.checkpoints = checkpoint.Checkpoints(args.save_prefix)
        resume.begin(fit, args.resume)
    if args.profile:
        left = args.num_epochs * len(train_iter) - fit.num_steps
        first = max(min(2, left - 1), 0)
        fit.profiler = chrome_trace.StepProfiler(args.profile, places, first)
    return fit, lambda fit: _result(fit, args, dataset.name, places)


def learning_rate(args, epoch):
    """The rate in `epoch`, from 0: `--lr`, less after each of `--lr-step-epochs`."""
    falls = sum(epoch >= step for step in args.lr_step_epochs)
    return args.lr * args.lr_factor**falls


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


def _check(args, places):
    """Flags that do not go together."""
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
    if args.dataset == "digits" and args.data_dir:
        raise ValueError("--data-dir: the digits come with scikit-learn, not in files")
    if args.profile:
        _check_profile(args.profile, places)


def _check_profile(path, places):
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path) or not os.access(folder, os.W_OK):
        raise ValueError(f"--profile {path}: cannot write a file there")
    if without_slot(places):
        raise ValueError(
            "--profile: on this machine MXNet can profile cpu:0 to "
            f"cpu:{last_cpu()} only"
        )


def _examples(dataset, num_examples):
    total = len(dataset.train_X)
    if num_examples and num_examples > total:
        raise ValueError(f"--num-examples {num_examples}: there are only {total:,}")
    return dataset.train_X[:num_examples], dataset.train_y[:num_examples]


def _check_shards(args, num_examples, num_devices):
    shard_sizes(args.batch_size, num_devices, args.work_load_list)
    rest = num_examples % args.batch_size
    if 0 < rest < num_devices:
        raise ValueError(
            f"the last minibatch of an epoch would have {rest} of {num_examples:,} "
            f"examples for {num_devices} devices: choose another --batch-size or "
            "--num-examples"
        )


def _replicas(args, places, image_shape):
    net = networks.build(args.network, image_shape, places, args.seed)
    params = {"learning_rate": args.lr, "wd": args.wd}
    if options.OPTIMIZERS[args.optimizer]:
        params["momentum"] = args.mom
    compression = {"type": args.gc_type, "threshold": args.gc_threshold}
    return Replicas(
        net, places, args.optimizer, params,
        kv_store=None if args.kv_store == "none" else args.kv_store,
        compression=compression if args.gc_type != "none" else None,
        work_load_list=args.work_load_list, seed=args.seed,
    )  # fmt: skip


def _result(fit, args, dataset, places):
    history = fit.state.history
    seconds = sum(history)
    return {
        "seconds_per_epoch": round(seconds / len(history), 4),
        "samples_per_second": round(len(history) * len(fit.train_iter.X) / seconds, 1),
        "devices": _names(places),
        "network": args.network,
        "dataset": dataset,
        "kv_store": args.kv_store,
        "epochs": fit.state.epoch,
        "steps": fit.num_steps,
    }


def _names(places):
    return [f"{d.device_type}:{d.device_id}" for d in places]


def _failed(prog, error, code):
    line = " ".join(str(error).split())
    with suppress(BrokenPipeError):
        print(f"{prog}: error: {line}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
