"""Both compilers on the same layouts: run, and counted."""

import json
import subprocess
from collections import Counter
from pathlib import Path

from benchmarks.scale.rosetta import peers
from d2l_ext.meshes.compiler import Plan, program

from .cases import CASES

HERE = Path(__file__).resolve().parent
#: Names of XLA, and the book's.
NAMES = {"all-reduce": "allreduce", "all-gather": "allgather"}


def ours(text, shapes, sizes, where, weights):
    """Return the number of collectives that the book's compiler inserts, by kind."""
    plan = Plan(program(text), shapes, sizes, where, weights)
    return dict(Counter(kind for kind, *_ in plan.messages()))


def measure():
    """Compare what the book's compiler and JAX insert for thirty layouts on eight
    devices.

    Rows by name: counts by kind of both, and the number of arrays that JAX's
    allreduces sum, because XLA sums several in one.
    """
    run = subprocess.run(
        [peers.python(), HERE / "jax_counts.py"], input=json.dumps(CASES),
        capture_output=True, text=True, check=True)
    found = json.loads(run.stdout)
    return {"jax": found["jax"], "rows": {
        name: {"book": ours(*case), "arrays": found["arrays summed"][name],
               "jax": {NAMES.get(kind, kind): n
                       for kind, n in found["counts"][name].items()}}
        for name, case in CASES.items()}}


def agree(row):
    """Return whether both insert the same collectives, array by array.

    XLA's partitioner writes a sum that is owed and then cut as an allreduce and a
    slice. On GPUs a later pass makes a reduce-scatter of the two, on CPUs none does.
    XLA for CPUs has a reduce-scatter, too, for programs that ask for it, as
    `jax.lax.psum_scatter`.
    """
    book, jax = Counter(row["book"]), Counter(row["jax"])
    book["allreduce"] += book.pop("reduce-scatter", 0)
    jax["allreduce"] = row["arrays"]
    return +book == +jax
