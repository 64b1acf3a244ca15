#!/usr/bin/env python3
"""The chapters as a course: assignments, and the same with solutions, as notebooks.

    make course                         all chapters, in _build/course
    .venv/bin/python tools/course.py --grade NOTEBOOK
                                        run one, print its lines of the grade book

An assignment is the chapter without stored outputs and without the cells that solve an
exercise; `check` stays, with `None` as the answer. It runs in the
environment of this checkout; `check` writes a line of JSON for each exercise into the
file that D2L_EXT_GRADES names.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KINDS = ("assignments", "solutions")


def exercises_begin(cells):
    """Return the index of the cell that opens the exercises."""
    for i, cell in enumerate(cells):
        if {"## Exercises", "## Puzzles"} & {*"".join(cell["source"]).splitlines()}:
            return i
    raise ValueError("the notebook has no section of exercises")


def solves(cell):
    """Return whether a cell after the first exercise is a folded solution."""
    tags = cell["metadata"].get("tags", [])
    return cell["cell_type"] == "code" and "hide-cell" in tags


def assignment(notebook, kind="assignments"):
    """Return chapter `notebook`, a dictionary, as assignment or with solutions."""
    begin = exercises_begin(notebook["cells"])
    cells = []
    for i, cell in enumerate(notebook["cells"]):
        if kind == "assignments" and i > begin and solves(cell):
            continue
        blank = {"outputs": [], "execution_count": None}
        cells.append({**cell, **blank} if cell["cell_type"] == "code" else cell)
    return {**notebook, "cells": cells}


def write(folder, root=ROOT):
    """Write both kinds of every chapter below `folder`; return how many of each."""
    chapters = sorted(root.glob("chapters/*/*.ipynb"))
    for path in chapters:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        for kind in KINDS:
            target = Path(folder) / kind / path.relative_to(root / "chapters")
            target.parent.mkdir(parents=True, exist_ok=True)
            text = json.dumps(assignment(notebook, kind), indent=1, ensure_ascii=False)
            target.write_text(text + "\n", encoding="utf-8")
    return len(chapters)


def grade(path, timeout=300):
    """Run the notebook at `path` in its folder; return its lines of the grade book.

    A cell that raises an exception is skipped, and one that runs for `timeout` seconds
    is interrupted: the cells after it count. If one ends the kernel, those after it
    do not run, and stderr says so.
    """
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import DeadKernelError

    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        book = Path(folder) / "grades"
        book.touch()
        place = {"metadata": {"path": str(Path(path).parent)}}
        # Said of a cell at its timeout: one that catches the interrupt would be waited
        # for again and again.
        late = {"ename": "Timeout", "evalue": f"{timeout} s", "traceback": []}
        client = NotebookClient(notebook, timeout=timeout, allow_errors=True,
                                interrupt_on_timeout=True, error_on_timeout=late,
                                resources=place)
        try:
            client.execute(env={**os.environ, "D2L_EXT_GRADES": str(book)})
        except DeadKernelError:
            print(f"{path}: a cell ended the kernel; the cells after it did not run.",
                  file=sys.stderr)
        return [json.loads(line) for line in book.read_text("utf-8").splitlines()]


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--grade", metavar="NOTEBOOK", help="run it, print its grades")
    given = parser.parse_args(argv)
    if given.grade:
        for line in grade(given.grade):
            print(json.dumps(line))
        return 0
    folder = ROOT / "_build/course"
    print(f"{write(folder)} chapters in {folder}/{{{','.join(KINDS)}}}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
