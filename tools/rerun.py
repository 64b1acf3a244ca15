"""Executes chapters and stores their outputs in the notebooks, for authors.

    tools/rerun.py                           all chapters
    tools/rerun.py chapters/devices/devices.ipynb    one of them
    tools/rerun.py --time                    store only how long each takes

What changes from run to run without meaning anything is left out or made the
same: times of execution, the kernel's name and version, how a stream was cut.
"""

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

import nbformat

import durations
from notebooks import TIMEOUT, ChapterError, chapters, execute, prepare_environment
from progress import Progress
from sources import copy_sources

KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
#: Metadata that editors write for themselves.
VOLATILE = ("execution", "ExecuteTime", "collapsed", "scrolled", "vscode")


def normalise(nb):
    """Remove from `nb`, in place, what says nothing about its content."""
    nb.metadata.kernelspec = nbformat.from_dict(KERNEL)
    nb.metadata.language_info = nbformat.from_dict({"name": "python"})
    nb.metadata.pop("widgets", None)
    count = 0
    for cell in nb.cells:
        for name in VOLATILE:
            cell.metadata.pop(name, None)
        if cell.cell_type != "code":
            continue
        if cell.execution_count is not None:
            count += 1
            cell.execution_count = count
        cell.outputs = _joined(cell.outputs)
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = cell.execution_count
    return nb


def _joined(outputs):
    """Join neighbouring pieces of one stream: where it was cut is chance."""
    joined = []
    for output in outputs:
        last = joined[-1] if joined else None
        if (
            last is not None
            and output.output_type == last.output_type == "stream"
            and output.name == last.name
        ):
            last.text += output.text
        else:
            joined.append(output)
    return joined


def rerun(root, paths, timeout, time_only=False):
    """Execute the chapters `paths` of the book in `root`; store their outputs.

    They run in a copy, so that nothing but the notebooks changes, and a notebook
    only after all its cells ran. How long it took is recorded beside them.
    With `time_only` nothing else is. Raises `ChapterError` at the first that fails.
    """
    (root / "_build").mkdir(exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="rerun-", dir=root / "_build"))
    try:
        copy_sources(root, work)
        progress = Progress(len(paths))
        for path in paths:
            progress.start(path)
            begin = time.monotonic()
            log = (root / "_build" / path.name).with_suffix(".log")
            try:
                nb = execute(
                    work / path, (work / path).parent, log, progress.cell, timeout
                )
            except ChapterError as error:
                progress.failed()
                raise ChapterError(f"{path}, {error}") from None
            if not time_only:
                nbformat.write(normalise(nb), root / path)
            durations.record(root, path, time.monotonic() - begin)
            progress.done()
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _inside(root, name):
    path = (root / name).resolve()
    if not path.is_file() or root not in path.parents or path.suffix != ".ipynb":
        raise FileNotFoundError(f"{name} is no notebook of this book")
    return path.relative_to(root)


def main():
    """Execute the chapters named, or all; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("chapters", nargs="*", help="default: all in _toc.yml")
    parser.add_argument(
        "--time", action="store_true", help="store no outputs, only how long it took"
    )
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--timeout", type=int, default=TIMEOUT, help="seconds a cell")
    arguments = parser.parse_args()
    root = arguments.root.resolve()
    prepare_environment()
    try:
        paths = [_inside(root, name) for name in arguments.chapters] or chapters(root)
        rerun(root, paths, arguments.timeout, arguments.time)
    except KeyboardInterrupt:
        print("\nStopped. Finished chapters are stored.", file=sys.stderr)
        return 130
    except (ChapterError, FileNotFoundError) as error:
        print(f"\n{error}\n\nThis chapter was left as it was.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
