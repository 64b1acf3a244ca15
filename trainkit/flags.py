"""The flags of the trainer, checked one by one."""

import argparse

from d2l_ext.checks import suggestion

#: Optimizers whose whole state is arrays and counts, and whether `--mom` is theirs.
OPTIMIZERS = {
    "sgd": True,
    "nag": True,
    "signum": True,
    "adam": False,
    "rmsprop": False,
    "adagrad": False,
}
#: The stores that need a job; MXNet reads `dist_device_sync` as `dist_sync_device`.
DIST_KV_STORES = ("dist_sync", "dist_sync_device", "dist_device_sync", "dist_async",
                  "dist_async_device", "dist_device_async")
JOB_KV_STORES = (*DIST_KV_STORES, "ring")
KV_STORES = ("local", "device", "none", *JOB_KV_STORES)
GC_TYPES = ("none", "2bit")
#: MXNet computes in float32, and refuses a setting beyond it, in the first step.
LARGEST = 3.4e38


class _Parser(argparse.ArgumentParser):
    """Says what was wrong in one line, without the list of all flags."""

    def error(self, message):
        self.exit(2, f"{self.prog}: error: {message}\n")


def parser():
    """The parser of `d2l-ext-train`.

    Names and defaults follow `example/image-classification/common/fit.py` of MXNet
    1.9, where it has them. Second names are those of its `example/gluon`.
    """
    flags = _Parser(
        prog="d2l-ext-train",
        description="Train a network on one or several devices.",
        epilog="Progress goes to standard error, the result, one line of JSON, to "
        "standard output. Exit code 2: a flag or a file is wrong; 1: a checkpoint or "
        "the result cannot be written; 128 and the signal's number: stopped by it.",
        allow_abbrev=False,
    )
    _add_model(flags.add_argument_group("what is trained"))
    _add_devices(flags.add_argument_group("on which devices"))
    _add_training(flags.add_argument_group("how"))
    _add_output(flags.add_argument_group("what is kept and shown"))
    return flags


def _add_model(group):
    add = group.add_argument
    add("--network", "--model", default="lenet", 
        help="lenet (default), mlp, vgg11, or transformer, which learns a text")
    sets = "digits (default), fashion_mnist, mnist or cifar10; for transformer a file "
    sets += "with text, default D2L_EXT_TEXT, else Python's language reference"
    add("--dataset", type=filled, help=sets)
    add("--data-dir", type=filled, metavar="DIR", help="the folder with its files")
    add("--num-examples", type=count, metavar="N", help="the first N; default: all")


def _add_devices(group):
    add = group.add_argument
    add("--gpus", type=numbers, metavar="LIST", help="numbers of GPUs, as in 0,2")
    add("--devices", type=words, metavar="LIST", help="as in cpu:0,cpu:1")
    add("--kv-store", "--kvstore", type=_kv_store, default="device", metavar="TYPE",
        help="where gradients are summed: local (in CPU memory), device (default), "
        "or none (by this library's allreduce); with several workers, under "
        "pslaunch, dist_sync, dist_async, dist_sync_device, "
        "dist_async_device, or ring, without servers")
    add("--allreduce", type=filled, metavar="NAME",
        help="with --kv-store none: naive (default), tree, ring, halving or another "
        "file of d2l_ext/data_parallel/allreduce")
    add("--work-load-list", type=loads, metavar="LIST",
        help="relative speeds of the devices, as in 3,1; default: equal")
    add("--tensor", type=count, default=1, metavar="K",
        help="of a transformer: K devices divide each layer, and groups of K the "
        "minibatch (--work-load-list is theirs then); default 1")
    add("--shard", type=filled, default="none", metavar="WHAT",
        help="what the devices divide: none (default), states (ZeRO 1), gradients (2) "
        "or parameters (3, as FSDP). This library's ring then sums the gradients of "
        "the devices of one process; a checkpoint can be resumed on another number of "
        "devices, and with another WHAT")
    add("--local-steps", type=count, metavar="H",
        help="with dist_sync: each worker takes H steps alone, then all exchange; "
        "default: gradients are exchanged in every step")
    add("--outer-lr", type=positive, help="the rate of these exchanges; default 1")
    add("--outer-mom", type=below_one, help="their momentum, Nesterov's; default 0")
    add("--gc-type", type=one_of(GC_TYPES), default="none", metavar="TYPE",
        help="gradient compression: 2bit or none (default)")
    add("--gc-threshold", type=positive, metavar="T",
        help="of 2bit compression; default 0.5")


def _kv_store(text):
    if "p3" in text:
        raise argparse.ArgumentTypeError(
            f"{text!r}: the p3 store cannot run an optimizer. It says so on the "
            "servers only, and training goes on with wrong weights. Take dist_sync"
        )
    return one_of(KV_STORES)(text)


def _add_training(group):
    add = group.add_argument
    add("--batch-size", type=count, default=64, metavar="N",
        help="examples per step, over all devices of a worker; default 64")
    add("--accumulate", type=count, default=1, metavar="N",
        help="each device takes its examples in N pieces, one after another, and sums "
        "their gradients: less memory, the same step; default 1")
    add("--recompute", action="store_true",
        help="keep few activations, and recompute the others in backward: the same "
        "step, slower, with less memory if many layers are alike, as in mlp; with "
        "lenet and vgg11 it takes more memory")
    add("--num-epochs", "--epochs", type=count, default=10, metavar="N",
        help="total epochs, including those before a --resume; default 10")
    add("--optimizer", type=one_of(OPTIMIZERS), default="sgd", metavar="NAME",
        help=f"{', '.join(OPTIMIZERS)}; default sgd")
    add("--lr", type=positive, default=0.1, help="learning rate; default 0.1")
    add("--lr-factor", type=share, default=0.1, metavar="F",
        help="multiplies the rate at each of --lr-step-epochs, 1 at most; "
        "default 0.1")
    add("--lr-step-epochs", type=ascending, default=[], metavar="LIST",
        help="epochs after which the rate falls, as in 30,60; "
        "default: none")
    add("--mom", "--momentum", type=below_one,
        help="momentum, of sgd, nag and signum, below 1; default 0.9")
    add("--wd", type=not_negative, default=0.0001, help="weight decay; default 0.0001")
    add("--seed", type=seed, default=0, metavar="N",
        help="of initial weights, order and dropout; default 0")


def _add_output(group):
    add = group.add_argument
    add("--save-prefix", type=filled, metavar="P",
        help="keep the last two checkpoints as P-00000123.ckpt; "
        "default: none")
    add("--save-every", type=count, default=0, metavar="STEPS",
        help="also within an epoch; default: at the end of each")
    add("--save-shards", action="store_true",
        help="save folders P-00000123.shards, in parts that are written in parallel "
        "while training continues: one per worker, or per device of a single process. "
        "Any number of either can resume from them")
    add("--resume", action="store_true",
        help="resume from the last whole checkpoint of --save-prefix")
    add("--disp-batches", type=count, default=0, metavar="N",
        help="without a terminal: a line every N steps; default: none")
    add("--profile", type=filled, metavar="FILE",
        help="write the timeline of three steps, for chrome://tracing")


# ---- What a flag's text may be ----


def _fail(text, expected):
    raise argparse.ArgumentTypeError(f"{text!r}: expected {expected}")


def number(kind, is_right, expected):
    """A function that takes a number of type `kind` for which `is_right` holds."""

    def check(text):
        try:
            value = kind(text)
        except ValueError:
            _fail(text, expected)
        return value if is_right(value) else _fail(text, expected)

    return check


count = number(int, lambda n: n >= 1, "a whole number from 1")
seed = number(int, lambda n: 0 <= n < 2**31, "a whole number, 0 to 2^31 - 1")
#: As float32 has them.
positive = number(float, lambda x: 0 < x <= LARGEST,
                  f"a positive number, {LARGEST:g} at most")
not_negative = number(float, lambda x: 0 <= x <= LARGEST,
                      f"a number from 0 to {LARGEST:g}")
below_one = number(float, lambda x: 0 <= x < 1, "a number from 0 to below 1")
share = number(float, lambda x: 0 < x <= 1, "a positive number, 1 at most")


def filled(text):
    """Any text but an empty one, as a variable gives that is not set."""
    return text or _fail(text, "a name: this one is empty")


def words(text):
    """Words with commas between them, as a list."""
    return [word.strip() for word in text.split(",")]


def numbers(text):
    """Whole numbers with commas between them, as a list."""
    if not all(word.isdecimal() for word in words(text)):
        _fail(text, "numbers with commas between them, as in 0,2")
    return [int(word) for word in words(text)]


def ascending(text):
    """Whole numbers from 1, each larger than the one before, as a list."""
    found = numbers(text)
    if sorted({*found, 0}) != [0, *found]:
        _fail(text, "numbers from 1 that ascend, as in 30,60")
    return found


def loads(text):
    """Relative speeds: positive numbers with commas between them, as a list."""
    values = [positive(word) for word in words(text)]
    return [int(value) if value == int(value) else value for value in values]


def one_of(choices):
    """A function that takes one of `choices`, and suggests one for a typing error."""

    def check(text):
        if text not in choices:
            _fail(text, f"one of {', '.join(choices)}.{suggestion(text, choices)}")
        return text

    return check
