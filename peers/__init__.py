"""The chapters' techniques in PyTorch and JAX, run and compared with the chapters'.

A technique is PART/NAME, and has a program for each framework. Those for PyTorch and
JAX need nothing else (but NumPy or Orbax, where their docstrings say so):

    PART/NAME_mxnet.py    the chapter's, with the library's functions
    PART/NAME_torch.py    the same in PyTorch: `torchrun --nproc-per-node 2 …`
    PART/NAME_jax.py      the same in JAX

A program has three cells, each after a line `# %%`: the set-up, the technique, which
the page shows, and the output. It sets a list `result`; in PyTorch each process sets
one, but all except the first may set None. The chapter's program also sets `sent`, the
bytes sent by all devices together, as in `{"all_reduce": 4096}`. A peer that sends
something else says so in its docstring, in a line for each kind:

    Differs, broadcast: DDP gives all processes the weights of the first.
    Differs, float64: the function computes in float32.

The second is for arrays of float64 that are not equal to 1e-10.

If a framework has no counterpart, `NAME_jax.md` says so, and what is used instead.

`python -m peers` runs all, compares, and stores `results/PART/NAME.json`; the page
shows that, and needs neither framework. `python -m peers --stale` names the programs
that have changed since their results were stored.
"""

import ast
import json
import re
from pathlib import Path

from bookkit import functions

ROOT = Path(__file__).resolve().parent
#: In the order of the tabs.
FRAMEWORKS = {"mxnet": "MXNet", "torch": "PyTorch", "jax": "JAX"}
DIFFERS = re.compile(r"^Differs, (\w+): (.+?)(?=\n\s*\n|\nDiffers|\Z)",
                     re.MULTILINE | re.DOTALL)
CELL = re.compile(r"^# %% (.*)\n", re.MULTILINE)


def techniques(root=ROOT):
    """Return the names of all techniques, as in `data_parallel/ring`."""
    found = root.glob("*/*_mxnet.py")
    return sorted(p.relative_to(root).as_posix()[: -len("_mxnet.py")] for p in found)


def program(name, framework, root=ROOT):
    """Return the path of a program, whether it is there or not."""
    return root / f"{name}_{framework}.py"


def cells(name, framework, root=ROOT):
    """Return the title and the text of each of a program's three cells.

    Raises `ValueError` for any other number of cells.
    """
    path = program(name, framework, root)
    _, *parts = CELL.split(path.read_text("utf-8"))
    if len(parts) != 6:
        raise ValueError(f"{path.name} has {len(parts) // 2} cells (`# %%`), not three")
    return [(title, text.strip("\n")) for title, text in zip(parts[::2], parts[1::2])]


def shown(name, framework, root=ROOT):
    """Return the part of a program on the page: its second cell, under its title."""
    title, text = cells(name, framework, root)[1]
    return f"# {title}\n{text}"


def differs(name, framework, root=ROOT):
    """Return why a program sends other bytes than the chapter's: {kind: sentence}.

    Under the key `float64`: why its arrays differ even in that type.
    """
    tree = ast.parse(program(name, framework, root).read_text("utf-8"))
    said = DIFFERS.findall(ast.get_docstring(tree) or "")
    return {kind: " ".join(why.split()) for kind, why in said}


def digest(name, framework, root=ROOT):
    """Return a digest of a program's code, and of the kinds in which it differs."""
    code = functions.of_text(program(name, framework, root).read_text("utf-8"))
    return functions.digest(" ".join([code, *sorted(differs(name, framework, root))]))


def stored(name, root=ROOT):
    """Return the stored results of a technique: {framework: result}, or {}."""
    path = root / "results" / f"{name}.json"
    return json.loads(path.read_text("utf-8")) if path.is_file() else {}


def stale(name, framework, root=ROOT):
    """Return why a program's stored result is out of date, briefly; else None."""
    kept = stored(name, root).get(framework)
    if kept is None:
        return "never run"
    if kept["digest"] != digest(name, framework, root):
        return "changed since it was run"
    if kept["against"] != digest(name, "mxnet", root):
        return "compared with an earlier version of the chapter's program"
    return None


def all_stale(root=ROOT):
    """Return {(technique, framework): why} of each program with an old result."""
    found = {(name, framework): stale(name, framework, root)
             for name in techniques(root) for framework in FRAMEWORKS
             if program(name, framework, root).is_file()}
    return {what: why for what, why in found.items() if why}
