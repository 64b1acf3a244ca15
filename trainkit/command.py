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

from . import flags


def command():
    """Run `main` as a whole process, and protect its start and its exit."""
    # A file, even a checkpoint, could get the number of a closed stream, and MXNet's
    # messages would go there.
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stderr = sys.stderr or os.fdopen(2, "w")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # before and after `main` hears it
    sys.exit(main())


def main(argv=None):
    """Train as the flags say; return the exit code.

    `argv`: the flags, by default those of the process. Prints one line of JSON on
    standard output, with NaN, as Python's `json` has it, for a loss that diverged;
    everything else on standard error. Exit codes: 0; 2 if a flag or a file is invalid;
    1 if a checkpoint, the profile or the result cannot be written; 143 or 130 after
    SIGTERM or SIGINT. A worker that fails ends at once, because its store would wait
    for the others.
    """
    args, held = flags.parser().parse_args(argv), ExitStack()
    try:
        training, describe = _prepared(args, held)
    except (ValueError, OSError, RingError) as error:
        return _failed(error, 2, held)
    except KeyboardInterrupt:
        return _end(130, held)
    from .fit import Stopped

    try:
        with _answered(training.stop.note, signal.SIGTERM, signal.SIGINT):
            held_out = training.run()
        held.close()
        _tell({training.replicas.measure: held_out, **describe(training)})
    except Stopped as stopped:
        try:
            held.close()
        except OSError as error:
            return _failed(error, 1, held)
        then = "go on with --resume" if args.save_prefix else "nothing was kept"
        training.report.note(
            f"stopped by {stopped} after step {training.num_steps}; {then}")
        return _end(128 + stopped.signum, held)
    except (OSError, RingError) as error:
        return _failed(error, 1, held)
    return 0


def _prepared(args, held):
    """Load MXNet, not for --help or an invalid flag, and prepare the training."""
    with _answered(_interrupt, signal.SIGINT):
        runtime.check_variables()
        runtime.tell_of_a_role()
        from .job import from_flags
        from .preparation import prepare

        return prepare(from_flags(args), held)


@contextmanager
def _answered(answer, *signums):
    """Let these signals call `answer` inside the `with` block."""
    before = {signum: signal.signal(signum, answer) for signum in signums}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


def _interrupt(signum, _):
    """Interrupt once: a second interrupt would disturb the cleanup after the first."""
    signal.signal(signum, signal.SIG_IGN)
    raise KeyboardInterrupt


def _tell(result):
    """Print the result. Raises `OSError` if it cannot be printed."""
    try:
        if sys.stdout is None:
            raise OSError(errno.EBADF, "standard output is closed")
        print(json.dumps(result), flush=True)
    except OSError as error:
        sys.stdout = None  # Python would try again at its exit, and report it again
        raise OSError(
            error.errno, f"{error.strerror}: the result could not be printed: "
            f"{json.dumps(result)}") from None


def _failed(error, code, held):
    line = " ".join(str(error).split())
    with suppress(OSError):
        print(f"d2l-ext-train: error: {line}", file=sys.stderr)
    return _end(code, held)


def _end(code, held):
    """Exit with `code` while the exception still holds its frames.

    The frames hold the store, which waits for all workers when it is released.
    """
    held.close()
    runtime.leave(code)
    return code
