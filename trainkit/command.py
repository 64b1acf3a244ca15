"""The command, `python -m d2l_ext.train`, from its flags to its exit code.

    d2l-ext-train --dataset digits --devices cpu:0,cpu:1 --kv-store device
    d2l-ext-train --gpus 0,2 --work-load-list 3,1
    d2l-ext-train --save-prefix runs/lenet --resume

The flags are in `flags.py`; `--help` lists them.
"""

import errno
import json
import os
import signal
import sys
from contextlib import ExitStack, contextmanager, suppress

from d2l_ext import runtime
from d2l_ext.kvstore.ring_links import RingError

from . import flags, load_mxnet


def command():
    """The whole process: `main`, and nothing that disturbs its beginning or end."""
    # A stream that is closed would lend its number to a file, a checkpoint even, and
    # MXNet's messages would go there.
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stderr = sys.stderr or os.fdopen(2, "w")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # before and after `main` hears it
    sys.exit(main())


def main(argv=None):
    """Train as the flags say, and return the exit code.

    A worker of a job that fails ends at once: its store would wait for the others.

    `argv`: the flags, default those of the process. Prints one line of JSON on
    standard output, everything else on standard error. Exit codes: 0; 2 when a
    flag or a file is wrong; 1 when a checkpoint or the result cannot be written; 143
    and 130 when stopped by SIGTERM and SIGINT.
    """
    args, held = flags.parser().parse_args(argv), ExitStack()
    try:
        with _answered(_interrupt, signal.SIGINT):
            runtime.check_variables()
            runtime.tell_of_a_role()
            load_mxnet()  # not for --help, nor for a flag that is wrong
            from .fit import Stopped
            from .preparation import prepare

            fit, describe = prepare(args, held)
    except (ValueError, OSError, RingError) as error:
        return _failed(error, 2, held)
    except KeyboardInterrupt:
        return _end(130, held)
    try:
        with _answered(fit.stop.note, signal.SIGTERM, signal.SIGINT):
            held_out = fit.run()
        held.close()
        _tell({fit.replicas.measure: held_out, **describe(fit)})
    except Stopped as stopped:
        then = "go on with --resume" if args.save_prefix else "nothing was kept"
        fit.report.note(f"stopped by {stopped} after step {fit.num_steps}; {then}")
        return _end(128 + stopped.signum, held)
    except (OSError, RingError) as error:
        return _failed(error, 1, held)
    return 0


@contextmanager
def _answered(answer, *signums):
    """In this `with` these signals call `answer`."""
    before = {signum: signal.signal(signum, answer) for signum in signums}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


def _interrupt(signum, _):
    """The first time: a second would hit what the first has begun to clear away."""
    signal.signal(signum, signal.SIG_IGN)
    raise KeyboardInterrupt


def _tell(result):
    """Print the result; `OSError` when nobody gets it."""
    try:
        if sys.stdout is None:
            raise OSError(errno.EBADF, "it is closed")
        print(json.dumps(result), flush=True)
    except OSError as error:
        sys.stdout = None  # Python would try again at its end, and complain again
        raise OSError(
            error.errno, f"{error.strerror}: the result is not on standard output: "
            f"{json.dumps(result)}") from None


def _failed(error, code, held):
    line = " ".join(str(error).split())
    with suppress(OSError):
        print(f"d2l-ext-train: error: {line}", file=sys.stderr)
    return _end(code, held)


def _end(code, held):
    """Leave with `code`, here, while an error still holds its frames.

    They hold the store, which waits for all workers when it is let go.
    """
    held.close()
    runtime.leave(code)
    return code
