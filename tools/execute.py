"""Executes every chapter on this machine's devices and renders the book.

    tools/execute.py

Works on a copy of the sources in _build/book. A chapter whose code, library,
packages, settings and devices are those of an earlier run keeps its outputs.
The chapters run one after the other, because they measure times.
"""

import argparse
import sys
from pathlib import Path

import nbformat

from cache import Cache, surroundings
from notebooks import TIMEOUT, ChapterError, chapters, execute, prepare_environment
from progress import Progress
from render import PAGES, RenderError, render
from sources import copy_sources, differences, state


def execute_book(root, work, timeout):
    """Execute the chapters of the book in `root`, in the copy `work`.

    Raises `ChapterError` at the first cell that fails.
    """
    cache = Cache(root / "_build" / "cache", surroundings(root))
    paths = chapters(work)
    progress = Progress(len(paths))
    for path in paths:
        progress.start(path)
        nb = nbformat.read(work / path, as_version=4)
        if cache.recall(path, nb):
            progress.unchanged()
        else:
            folder = (work / path).parent
            log = (root / "_build" / path.name).with_suffix(".log")
            try:
                nb = execute(work / path, folder, log, progress.cell, timeout)
            except ChapterError as error:
                progress.failed()
                raise ChapterError(f"{path}, {error}") from None
            cache.keep(path, nb)
            progress.done()
        nbformat.write(nb, work / path)


def main():
    """Make the book; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--timeout", type=int, default=TIMEOUT, help="seconds a cell")
    arguments = parser.parse_args()
    root = arguments.root.resolve()
    work = root / "_build" / "book"
    prepare_environment()

    before = state(root)
    copy_sources(root, work)
    try:
        execute_book(root, work, arguments.timeout)
        page = render(root, work, strict=False)
    except KeyboardInterrupt:
        print("\nStopped. Finished chapters keep their outputs.", file=sys.stderr)
        return 130
    except (ChapterError, RenderError, FileNotFoundError) as error:
        print(f"\n{error}\n\nThe book was not made.", file=sys.stderr)
        return 1
    changed = differences(before, state(root))
    if changed:
        print(
            f"These files changed while the book was made: {', '.join(changed)}.\n"
            "If that was not you, a chapter writes into the checkout: it must not.",
            file=sys.stderr,
        )
        return 1
    print(
        f"\nThe book is ready: {page}\n"
        f"Open it in a browser. From another machine: "
        f"python3 -m http.server --directory {PAGES} 8000\n"
        "and look at http://localhost:8000 through your tunnel, or at this host."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
