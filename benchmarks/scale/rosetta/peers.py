"""A step in another framework, in an interpreter that has it."""

import os
import subprocess
from pathlib import Path

import numpy

from bookkit import functions
from pslaunch.temporary import Folder

HERE = Path(__file__).resolve().parent
#: The environment of `make bench-peers`, unless this variable names an interpreter.
PEER_PYTHON = "D2L_EXT_PEER_PYTHON"
DEFAULT = HERE.parents[2] / ".venv-bench" / "bin" / "python"
DEADLINE = 600
#: Prints the versions of both, without importing either.
LOOK = """
from importlib.metadata import PackageNotFoundError, version
for name in ("torch", "jax"):
    try:
        print(name, version(name))
    except PackageNotFoundError:
        pass
"""


def python():
    """Return the interpreter that should have PyTorch and JAX: a path, as text."""
    return os.environ.get(PEER_PYTHON) or str(DEFAULT)


def why_not():
    """Return None when PyTorch and JAX are there; else a sentence that says how to get
    them.

    Imports neither, so it takes a moment only.
    """
    there = versions()
    missing = [name for name in ("torch", "jax") if name not in there]
    if not missing:
        return None
    return f"no {' and no '.join(missing)} here: make bench-peers, or set {PEER_PYTHON}"


def versions():
    """Return the versions of PyTorch and JAX in the peers' interpreter, if there."""
    try:
        run = subprocess.run([python(), "-I", "-c", LOOK], capture_output=True,
                             text=True, timeout=DEADLINE, check=True)
    except (OSError, subprocess.SubprocessError):
        return {}
    return dict(line.split() for line in run.stdout.splitlines())


def step(framework, name, problem):
    """Return the weights after one step of `name` in `framework`, such as `"torch"`.

    `problem`: from `problems`. Returns a list of NumPy arrays, `p0`, `p1`, … in the
    book's layout. Raises `RuntimeError` with the last lines of what went wrong.
    """
    with Folder("d2l_ext-rosetta-") as folder:
        source, target = Path(folder) / "problem.npz", Path(folder) / "weights.npz"
        numpy.savez(source, **problem)
        program = str(_program(framework))
        _run([python(), program, name, str(source), str(target)], folder)
        with numpy.load(target) as weights:
            return [weights[f"p{i}"] for i in range(len(weights))]


def digest(framework):
    """Return a digest of the program that takes the steps of `framework`.

    Stored beside its results, it tells whether they are of this program: most machines
    cannot run it.
    """
    return functions.of_text(_program(framework).read_text("utf-8"))


def _program(framework):
    return HERE / f"{framework}_steps.py"


def _run(command, folder):
    # Settings meant for MXNet's threads in this process are not the peer's.
    env = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "MXNET_"))}
    env["TMPDIR"] = folder  # what it leaves behind, if it is killed, goes as well
    run = subprocess.run(command, env=env, stdin=subprocess.DEVNULL,
                         capture_output=True, text=True, timeout=DEADLINE,
                         check=False)
    if run.returncode:
        last = "\n".join(run.stderr.splitlines()[-5:])
        raise RuntimeError(f"{' '.join(command[1:3])} failed:\n{last}")


def largest_difference(weights, others):
    """Return the largest difference of an element, relative to its array's largest
    value; infinite if one is no number.

    `weights`, `others`: lists of arrays of the same shapes. Raises `ValueError` when
    they are not, because NumPy would broadcast.
    """
    shapes = [w.shape for w in weights], [o.shape for o in others]
    if shapes[0] != shapes[1]:
        raise ValueError(f"shapes {shapes[0]} and {shapes[1]}: not the same network")
    found = [abs(w - o).max() / abs(w).max() for w, o in zip(weights, others)]
    return numpy.inf if numpy.isnan(found).any() else float(max(found))
