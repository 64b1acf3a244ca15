"""Stores new outputs in the chapters, as `make rerun` asks for it.

    tools/rerun.py                      run all chapters
    tools/rerun.py chapters/devices/devices.ipynb    one of them
    tools/rerun.py --stale              those whose code was changed since
    tools/rerun.py --list               list these; status 1 if there are any

Chapters run one after the other, because they measure times, and in a copy of the
sources. A finding that does not hold is an error. A chapter is stored if its code, or
an output that is compared, has changed, and otherwise left as it is, because times and
pictures differ in every run; `--fresh` stores it in any case.
"""

import argparse
import re
import shutil
import sys
import tempfile
from pathlib import Path

import nbformat
from nbval.plugin import get_sanitize_patterns

import made_by
from notebooks import (
    TIMEOUT,
    ChapterError,
    chapters,
    code_cells,
    normalise,
    prepare_environment,
)
from running import Progress, run_chapter
from sources import copy_sources

#: An author's run is stopped by a finding that does not hold: the text would be false.
RECORDING = {"D2L_EXT_RECORDING": "1", "D2L_EXT_FINDINGS": None, "D2L_EXT_TRIES": None}
SANITIZER = "tests/book/nbval_sanitize.cfg"
#: What nbval does not compare.
IGNORED, IMAGES = "nbval-ignore-output", ("image/png", "image/jpeg")


def rerun(root, paths, timeout, fresh=False):
    """Execute the chapters `paths` of the book in `root`; store what has changed.

    They run in a copy, so that nothing but the notebooks changes, and a notebook
    only after all its cells ran. Raises `ChapterError` at the first that fails.
    """
    (root / "_build").mkdir(exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="rerun-", dir=root / "_build"))
    config = root / SANITIZER
    text = config.read_text("utf-8") if config.exists() else ""
    patterns = get_sanitize_patterns(text)
    try:
        copy_sources(root, work)
        library = made_by.library(work)
        progress = Progress(len(paths))
        for path in paths:
            progress.start(path)
            nb = run_chapter(root, work, path, progress, timeout, RECORDING)
            nb = made_by.bind(normalise(nb), library, progress.seconds())
            stored = read(root / path)
            if not fresh and _cells(nb) == _cells(stored):
                nb = keep(nb, stored, patterns)
            if nb == stored:
                progress.end(f"{progress.seconds():.1f} s, unchanged")
            else:
                nbformat.write(nb, root / path)
                progress.end()
    finally:
        shutil.rmtree(work, ignore_errors=True)


def read(path):
    return nbformat.read(path, as_version=4)


def _cells(nb):
    return nb.metadata.get("made_by", {}).get("code", {}).get(made_by.CELLS)


def keep(nb, stored, patterns):
    """Return `nb`, which ran, with the `stored` outputs that say the same; with their
    times.

    An output that was edited by hand since its run is not kept.
    """
    made, digests = stored.metadata["made_by"], made_by.outputs(stored)
    for new, old in zip(code_cells(nb), code_cells(stored)):
        is_of_a_run = made["outputs"].get(old.id) == digests[old.id]
        if is_of_a_run and compared(new, patterns) == compared(old, patterns):
            new.outputs = old.outputs
    nb.metadata["made_by"] = {
        **made, "code": nb.metadata["made_by"]["code"], "outputs": made_by.outputs(nb)
    }
    return nb


def compared(cell, patterns):
    """Return what nbval compares of the outputs of `cell`; a listing counts whole."""
    if IGNORED in cell.metadata.get("tags", ()):
        return []

    def sanitized(text):
        for regex, replacement in patterns:
            text = re.sub(regex, replacement, text)
        return text

    seen = []
    for output in cell.outputs:
        data = {kind: value if kind == "text/markdown" else sanitized(str(value))
                for kind, value in output.get("data", {}).items() if kind not in IMAGES}
        words = ("name", "text", "ename", "evalue")
        seen.append((data, [sanitized(output.get(word, "")) for word in words]))
    return seen


def _inside(root, name):
    path = (root / name).resolve()
    if not path.is_file() or root not in path.parents or path.suffix != ".ipynb":
        raise FileNotFoundError(f"{name} is not a notebook of this book")
    return path.relative_to(root)


def main(argv=None):
    """Run or list chapters, as `argv` says; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--timeout", type=int, default=TIMEOUT, help="seconds per cell")
    parser.add_argument("--stale", action="store_true", help="only stale chapters")
    parser.add_argument("--fresh", action="store_true", help="store all")
    parser.add_argument("--list", action="store_true", help="run nothing")
    parser.add_argument("chapters", nargs="*", help="default: all in _toc.yml")
    arguments = parser.parse_args(argv)
    root = arguments.root.resolve()
    prepare_environment()
    try:
        paths = [_inside(root, name) for name in arguments.chapters] or chapters(root)
        if arguments.stale or arguments.list:
            found = made_by.stale(root, paths)
            print(made_by.report(found) if found else "no chapter is stale")
            if arguments.list:
                return 1 if found else 0
            paths = list(found)
        rerun(root, paths, arguments.timeout, arguments.fresh)
    except KeyboardInterrupt:
        print("\nStopped. Finished chapters are stored.", file=sys.stderr)
        return 130
    except (ChapterError, FileNotFoundError) as error:
        print(f"\n{error}\n\nThis chapter was left as it was.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
