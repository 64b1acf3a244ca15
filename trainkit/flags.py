"""The flags of the trainer, checked one by one.

Flags of only one way of training are in `ways`; the types of values are in `words`.
"""

import argparse

from . import ways
from .ways import KV_STORES, OPTIMIZERS
from .words import (
    ascending,
    below_one,
    count,
    non_empty,
    not_negative,
    numbers,
    one_of,
    positive,
    seed,
    share,
    words,
    work_loads,
)


class _Parser(argparse.ArgumentParser):
    """Reports errors on one line, without the list of all flags."""

    def error(self, message):
        self.exit(2, f"{self.prog}: error: {message}\n")


def parser():
    """Return the parser of `d2l-ext-train`.

    Names follow `example/image-classification/common/fit.py` of MXNet 1.9, where it
    has them, and so do defaults, but for `--num-epochs`, `--batch-size` and
    `--disp-batches`. Second names are those of its `example/gluon`.
    """
    flags = _Parser(
        prog="d2l-ext-train",
        description="Train a network on one or several devices.",
        epilog="Progress goes to standard error, the result, one line of JSON (with "
        "NaN for a loss that diverged), to standard output. Exit code 2: a flag or a "
        "file is invalid; 1: a checkpoint, the profile or the result cannot be "
        "written; 128 plus a signal's number: stopped by it.",
        allow_abbrev=False,
    )
    _add_model(flags.add_argument_group("what is trained"))
    _add_devices(flags.add_argument_group("on which devices"))
    for way in ways.WAYS:
        way.add(flags.add_argument_group(way.title))
    _add_training(flags.add_argument_group("how"))
    _add_output(flags.add_argument_group("what is kept and shown"))
    return flags


def _add_model(group):
    add = group.add_argument
    add("--network", "--model", default="lenet", 
        help="lenet (default), mlp, vgg11, or transformer, which learns a text")
    sets = "digits, fashion_mnist, mnist or cifar10, default D2L_EXT_DATASET, else "
    sets += "digits; for transformer a file with text, default D2L_EXT_TEXT, else "
    sets += "Python's language reference"
    add("--dataset", type=non_empty, help=sets)
    add("--data-dir", type=non_empty, metavar="DIR",
        help="the folder with its files; default D2L_EXT_DATA_DIR, else downloads")
    add("--num-examples", type=count, metavar="N", help="the first N; default: all")


def _add_devices(group):
    add = group.add_argument
    add("--gpus", type=numbers, metavar="LIST", help="GPU numbers, as in 0,2")
    add("--devices", type=words, metavar="LIST",
        help="as in cpu:0,cpu:1; default: gpu:0 if there is one and D2L_EXT_DEVICES "
        "allows it, else cpu:0")
    add("--kv-store", "--kvstore", type=_kv_store, default="device", metavar="TYPE",
        help="where gradients are summed: local (in CPU memory), device (default), "
        "or none (by this library's allreduce); with several workers, under "
        "pslaunch, dist_sync, dist_async, dist_sync_device, "
        "dist_async_device, or ring, without servers")
    add("--work-load-list", type=work_loads, metavar="LIST",
        help="relative speeds of the devices, as in 3,1; default: equal")


def _kv_store(text):
    if "p3" in text:
        raise argparse.ArgumentTypeError(
            f"{text!r}: p3 is not a type of store, and MXNet makes an ordinary one of "
            "this name. Use dist_sync"
        )
    return one_of(KV_STORES)(text)


def _add_training(group):
    add = group.add_argument
    add("--batch-size", type=count, default=64, metavar="N",
        help="examples per step, over all devices of a worker; default 64")
    add("--accumulate", type=count, default=1, metavar="N",
        help="each device takes its examples in N pieces, one after another, and sums "
        "their gradients: less memory, the same step but for dropout (vgg11); default "
        "1")
    add("--recompute", action="store_true",
        help="keep few activations, and recompute the others in backward: the same "
        "step but for dropout (vgg11), slower, with less memory if many layers are "
        "alike, as in mlp; with lenet and vgg11 it takes more memory")
    add("--num-epochs", "--epochs", type=count, default=10, metavar="N",
        help="total epochs, including those before a --resume; default 10")
    _add_optimizer(group)
    add("--seed", type=seed, default=0, metavar="N",
        help="seed of initial weights, order and dropout; default 0")


def _add_optimizer(group):
    add = group.add_argument
    add("--optimizer", type=one_of(OPTIMIZERS), default="sgd", metavar="NAME",
        help=f"{', '.join(OPTIMIZERS)}; default sgd")
    add("--lr", type=positive, default=0.1, help="learning rate; default 0.1")
    add("--lr-factor", type=share, default=0.1, metavar="F",
        help="factor of the rate at each of --lr-step-epochs, at most 1; "
        "default 0.1")
    add("--lr-step-epochs", type=ascending, default=[], metavar="LIST",
        help="epochs after which the rate falls, as in 30,60; "
        "default: none")
    add("--mom", "--momentum", type=below_one,
        help="momentum of sgd, nag and signum, below 1; default 0.9")
    add("--wd", type=not_negative, default=0.0001, help="weight decay; default 0.0001")


def _add_output(group):
    add = group.add_argument
    add("--save-prefix", type=non_empty, metavar="P",
        help="keep the last two checkpoints as P-00000123.ckpt; "
        "default: none")
    add("--save-every", type=count, default=0, metavar="STEPS",
        help="also save every N steps; default: only after each epoch")
    add("--save-shards", action="store_true",
        help="save folders P-00000123.shards, in parts that are written in parallel "
        "while training continues: one per worker, or per device of a single process. "
        "Any number of either can resume from them, with the same minibatch in all")
    add("--resume", action="store_true",
        help="resume from the last whole checkpoint of --save-prefix")
    add("--disp-batches", type=count, default=0, metavar="N",
        help="without a terminal: a line every N steps; default: none")
    add("--profile", type=non_empty, metavar="FILE",
        help="write the timeline of up to three steps of an epoch, for "
        "chrome://tracing")
