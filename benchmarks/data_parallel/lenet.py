"""Measure LeNet's training step on one, two and four CPU devices, against peers.

    make bench
    python -m benchmarks.data_parallel.lenet --rounds 3 --no-peers

Every row of the table has a process of its own, which waits while others work.
In each round all take their turn, so that a drift of the machine hits all alike.
"""

import d2l_ext  # noqa: F401, I001  (before numpy's threads start)
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy

from benchmarks import command, machine, measure
from benchmarks.scale.rosetta import peers as others
from d2l_ext import runtime

from . import report, rows
from .run import CHECK_STEPS, WARM_UP, Run

LEARNING_RATE = 0.1
#: What makes glibc keep the memory that a process frees, for its next step: what
#: `import d2l_ext` asks for, here for the peers as well. And what leaves glibc alone.
KEEP_MEMORY = {name: str(value) for _, name, value in runtime.KEPT}
GIVE_BACK = {runtime.KEEP_MEMORY: "0"}


def measured(batch_size=256, rounds=15, steps=15, peers=True, peer_python=None,
             only=(), give_back=False):
    """Measure LeNet's training step on one, two and four CPU devices, and in other
    libraries.

    The arguments are the options of the command. Raises `measure.Disagreement` when
    the rows do not train the same network.
    """
    if peer_python is None and others.DEFAULT.exists():
        peer_python = others.DEFAULT
    chosen, missing = rows.chosen(only, peers, peer_python)
    with machine.watched() as quiet, Run(missing) as run, (
        tempfile.TemporaryDirectory()
    ) as folder:
        problem = Path(folder) / "problem.npz"
        write_problem(problem, batch_size)
        environ = {"D2L_EXT_DEVICES": "cpu"}
        environ.update(GIVE_BACK if give_back else KEEP_MEMORY)
        run.start(chosen, peer_python, problem, environ)
        apart = run.check()
        run.measure(rounds, steps)
    return {
        "quiet": quiet,
        "settings": {
            "batch_size": batch_size,
            "rounds": rounds,
            "steps": steps,
            "warm_up_steps": WARM_UP,
            "learning_rate": LEARNING_RATE,
            "keep_memory": not give_back,
        },
        "agreement": {
            "steps": CHECK_STEPS,
            "tolerance": measure.TOLERANCE,
            "apart": apart,
        },
        "rows": report.row_entries(run),
        "bars": report.bars(run.turns, run.faults),
    }


def check(batch_size, only, peers, peer_python, **_):
    """Raise `ValueError` for an unknown row or a batch that cannot be shared evenly."""
    if batch_size % 4:
        raise ValueError(f"--batch-size {batch_size}: four devices share it evenly, so "
                         "it must be a multiple of 4")
    rows.chosen(only, peers, peer_python)


def write_problem(path, batch_size):
    """Write one minibatch and the initial weights, the same for all rows."""
    from d2l_ext.data_parallel import lenet

    rng = numpy.random.RandomState(0)
    params = {f"p{i}": p.asnumpy() for i, p in enumerate(lenet.init_params())}
    numpy.savez(path, X=rng.rand(batch_size, 1, 28, 28).astype("float32"),
                y=rng.randint(0, 10, batch_size).astype("int32"),
                lr=LEARNING_RATE, **params)


main = partial(command.main, "data_parallel", measured, check=check,
               is_peer=rows.is_peer)

if __name__ == "__main__":
    sys.exit(main())
