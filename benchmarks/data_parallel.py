"""Measure LeNet's training step on one, two and four CPU devices, against peers.

    python benchmarks/data_parallel.py
    python benchmarks/data_parallel.py --output benchmarks/results/data_parallel.json

Every row of the table has a process of its own, which waits while others work.
In each round all take their turn, so that a drift of the machine hits all alike.
"""

import argparse
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
# This checkout is measured, not a copy that may be installed elsewhere.
sys.path.insert(1, str(ROOT))

from d2l_ext import runtime  # noqa: I001  (before numpy's threads start)
import machine
import measure
import numpy
import record
import report
import rows
from run import CHECK_STEPS, WARM_UP, Run, say

from benchmarks.rosetta import peers

LEARNING_RATE = 0.1
#: What makes glibc keep the memory that a process frees, for its next step: what
#: `import d2l_ext` asks for, here for the peers as well. And what leaves glibc alone.
KEEP_MEMORY = {name: str(value) for _, name, value in runtime.KEPT}
GIVE_BACK = {runtime.KEEP_MEMORY: "0"}
DEFAULT_OUTPUT = ROOT / "_build" / "benchmarks" / "data_parallel.json"


def parse(argv):
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--batch-size", type=_positive, default=256, metavar="N",
                   help="examples per step over all devices (256)")  # fmt: skip
    p.add_argument("--rounds", type=_positive, default=15, metavar="N",
                   help="turns of each row (15)")  # fmt: skip
    p.add_argument("--steps", type=_positive, default=15, metavar="N",
                   help="timed steps in a turn (15)")  # fmt: skip
    p.add_argument("--peers", action=argparse.BooleanOptionalAction, default=True,
                   help="measure PyTorch and JAX too")  # fmt: skip
    p.add_argument("--peer-python", type=Path, metavar="FILE",
                   help="interpreter that has them (.venv-bench)")  # fmt: skip
    p.add_argument("--only", nargs="+", default=[], metavar="ROW",
                   help="rows whose id begins so, such as gluon-2")  # fmt: skip
    p.add_argument("--give-back", action="store_true",
                   help="let every row give memory back in between")  # fmt: skip
    p.add_argument("--output", type=Path, default=DEFAULT_OUTPUT, metavar="FILE",
                   help="where the JSON goes (_build/benchmarks/)")  # fmt: skip
    args = p.parse_args(argv)
    if args.batch_size % 4:
        p.error(f"--batch-size {args.batch_size}: four devices share it evenly, so "
                "it must be a multiple of 4")  # fmt: skip
    if args.peer_python is None and peers.DEFAULT.exists():
        args.peer_python = peers.DEFAULT
    try:
        args.rows, args.missing = rows.chosen(args.only, args.peers, args.peer_python)
    except ValueError as error:
        p.error(str(error))
    return args


def _positive(text):
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def write_problem(path, batch_size):
    """One minibatch and the initial weights, for all rows the same."""
    from d2l_ext.data_parallel import lenet

    rng = numpy.random.RandomState(0)
    params = {f"p{i}": p.asnumpy() for i, p in enumerate(lenet.init_params())}
    numpy.savez(path, X=rng.rand(batch_size, 1, 28, 28).astype("float32"),
                y=rng.randint(0, 10, batch_size).astype("int32"),
                lr=LEARNING_RATE, **params)  # fmt: skip


def main(argv=None):
    args = parse(argv)
    head = record.head()
    quiet = head["quiet"]
    for line in report.warning_lines(quiet["warnings"]):
        say(line)
    clock, own = machine.CpuClock(), machine.own_core_seconds()
    with tempfile.TemporaryDirectory() as folder, Run(args.missing) as run:
        problem = Path(folder) / "problem.npz"
        write_problem(problem, args.batch_size)
        environ = {"D2L_EXT_DEVICES": "cpu"}
        environ.update(GIVE_BACK if args.give_back else KEEP_MEMORY)
        run.start(args.rows, args.peer_python, problem, environ)
        try:
            apart = run.check()
            run.measure(args.rounds, args.steps)
        except measure.Disagreement as error:
            say(f"error: {error}")
            return 1
    own = machine.own_core_seconds() - own
    quiet["cores_busy_by_others"] = clock.cores_busy(own)
    quiet["cores_stolen"] = clock.cores_stolen()
    quiet["warnings"] += machine.run_warnings(
        quiet["cores_busy_by_others"], quiet["cores_stolen"])  # fmt: skip
    result = {
        **head,
        "settings": {"batch_size": args.batch_size, "rounds": args.rounds,
                     "steps": args.steps, "warm_up_steps": WARM_UP,
                     "learning_rate": LEARNING_RATE,
                     "keep_memory": not args.give_back},
        "agreement": {"steps": CHECK_STEPS, "tolerance": measure.TOLERANCE,
                      "apart": apart},
        "rows": report.row_entries(run),
        "bars": report.bars(run.turns, run.faults),
    }  # fmt: skip
    record.write(result, args.output, report.table)
    say(f"\nwritten to {args.output}")
    ours_lost = [row.id for row in args.rows if row.id in run.missing and not row.peer]
    return 1 if ours_lost else 0


if __name__ == "__main__":
    sys.exit(main())
