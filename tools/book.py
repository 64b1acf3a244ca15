"""Makes the book, as `make book`, `make rerun` and `make html` ask for it.

    tools/book.py execute               all chapters, on this machine's devices; pages
    tools/book.py rerun                 all chapters; store their outputs
    tools/book.py rerun chapters/devices/devices.ipynb    of one of them
    tools/book.py rerun --time          store only how long each takes
    tools/book.py render                pages of stored outputs; a warning is an error

Chapters run one after the other, because they measure times, and in a copy of the
sources. `execute` keeps the outputs of a chapter whose code, library, packages,
settings and devices are those of an earlier run. `rerun` leaves out what changes
without meaning anything: times of execution, the kernel's name and version, how a
stream was cut.
"""

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
import time
from datetime import datetime, timezone
from pathlib import Path

import nbformat

from notebooks import (
    TIMEOUT,
    Cache,
    ChapterError,
    bind,
    chapters,
    execute,
    normalise,
    prepare_environment,
    surroundings,
)
from sources import (
    PAGES,
    RenderError,
    build,
    copy_sources,
    differences,
    publish,
    render,
    state,
)

#: An author's run is stopped by a finding that does not hold: the text would be false.
RECORDING = {"D2L_EXT_RECORDING": "1", "D2L_EXT_FINDINGS": None}
#: How long each chapter ran: what it says of itself is compared with this.
DURATIONS = "chapters/durations.json"


class Progress:
    """Prints how far a run of `count` chapters has come: one line a chapter, and a
    moving one on a terminal."""

    def __init__(self, count, stream=None):
        self.count = count
        self.number = 0
        self.stream = stream or sys.stdout
        self.moving = self.stream.isatty()

    def start(self, path):
        """Chapter `path` is next."""
        self.number += 1
        self.path = path
        self.begin = time.monotonic()
        self._show("…")

    def cell(self, number, count):
        """Code cell `number` of `count` is about to run."""
        self._show(f"cell {number} of {count}, {self.seconds():.1f} s")

    def seconds(self):
        """How long the chapter runs."""
        return time.monotonic() - self.begin

    def end(self, what=None):
        """The chapter is over; `what`: default, how long it ran."""
        start = "\r\x1b[K" if self.moving else ""
        text = self._text(what or f"{self.seconds():.1f} s")
        print(f"{start}{text}", file=self.stream, flush=True)

    def _text(self, what):
        return f"chapter {self.number} of {self.count}  {self.path}  {what}"

    def _show(self, what):
        if self.moving:
            print(f"\r\x1b[K{self._text(what)}", end="", file=self.stream, flush=True)


class Pages:
    """The pages of the book in `root`, made of its copy `work` while chapters run.

    What cannot be rendered anew stays as it was shown before.
    """

    #: Seconds from one rendering to the next, at least: it needs the cores, too.
    PATIENCE = 45

    def __init__(self, root, work):
        self.root, self.work, self.last = root, work, 0.0

    def begin(self, left):
        """Show the book, and say so; `left` chapters are to be executed.

        Returns the first page.
        """
        page = self.end()
        print(
            f"The book can be read: {page}\n"
            "Open it in a browser. From another machine: "
            f"python3 -m http.server --directory {PAGES} 8000\n"
            "and look at http://localhost:8000 through your tunnel, or at this host."
        )
        if left:
            print(
                f"\n{left} chapters show stored outputs. They run on this machine now, "
                "and their\npages follow. Control-C loses nothing: a next run goes on."
            )
        sys.stdout.flush()
        return page

    def follow(self):
        """Show what has changed, unless that was just done."""
        if time.monotonic() - self.last > self.PATIENCE:
            self.end()

    def end(self):
        """Show what has changed; return the first page."""
        page = publish(self.root, build(self.work, "html", strict=False))
        self.last = time.monotonic()
        return page


def execute_book(root, work, timeout, pages):
    """Show the book in `root`, then execute its chapters in the copy `work`.

    A chapter that was executed before, as it is, has those outputs from the start, the
    others the stored ones; each says which. `pages`: `Pages`. Returns the first page.
    Raises `ChapterError` at the first cell that fails.
    """
    cache = Cache(root / "_build" / "cache", surroundings(root))
    paths, left = chapters(work), []
    for path in paths:
        nb = nbformat.read(work / path, as_version=4)
        if not cache.recall(path, nb):
            left.append(path)
        nbformat.write(say_from_where(nb, path not in left), work / path)
    page = pages.begin(len(left))
    progress = Progress(len(paths))
    for path in paths:
        progress.start(path)
        if path not in left:
            progress.end("unchanged")
            continue
        # The source anew: the copy says where the stored outputs come from.
        shutil.copyfile(root / path, work / path)
        nb = _execute(root, work, path, progress, timeout, None)
        cache.keep(path, nb)
        progress.end()
        nbformat.write(say_from_where(nb, True), work / path)
        pages.follow()
    return pages.end() if left else page


def say_from_where(nb, is_from_here):
    """Say below the title of the chapter `nb` where its outputs come from."""
    where = "made on this machine" if is_from_here else f"stored{_origin(nb)}"
    if nb.cells and nb.cells[0].cell_type == "markdown":
        nb.cells[0].source += f"\n\n*The outputs on this page were {where}.*"
    return nb


def _origin(nb):
    """Date and processor, if the chapter printed its provenance."""
    text = json.dumps([cell.get("outputs", ()) for cell in nb.cells])
    found = re.search(r"Run on (.+?) at commit .+?, on (.+?) with \d+ cores", text)
    return f" with the book, on {found[1]} on {found[2]}" if found else " with the book"


def rerun_chapters(root, paths, timeout, time_only=False):
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
            nb = _execute(root, work, path, progress, timeout, RECORDING)
            if not time_only:
                nbformat.write(bind(normalise(nb), root), root / path)
            record_duration(root, path, progress.seconds())
            progress.end()
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _execute(root, work, path, progress, timeout, variables):
    log = (root / "_build" / path.name).with_suffix(".log")
    folder = (work / path).parent
    try:
        return execute(work / path, folder, log, progress.cell, timeout, variables)
    except ChapterError as error:
        progress.end("failed")
        error.args = (f"{path}, {error}",)
        raise


def durations(root):
    """What is recorded: a dict from page name to seconds, cores and date."""
    path = root / DURATIONS
    return json.loads(path.read_text("utf-8")) if path.is_file() else {}


def record_duration(root, path, seconds):
    """Write down that the chapter `path` of the book in `root` took `seconds`."""
    recorded = durations(root)
    recorded[path.with_suffix("").as_posix()] = {
        "seconds": round(seconds, 1),
        "cores": len(os.sched_getaffinity(0)),
        "date": datetime.now(timezone.utc).date().isoformat(),
    }
    text = json.dumps(dict(sorted(recorded.items())), indent=1)
    (root / DURATIONS).write_text(text + "\n", "utf-8")


# The commands: each returns an exit status.


def make(root, arguments):
    work = root / "_build" / "book"
    before = state(root)
    copy_sources(root, work)
    page = execute_book(root, work, arguments.timeout, Pages(root, work))
    changed = differences(before, state(root))
    if changed:
        print(
            f"These files changed while the book was made: {', '.join(changed)}.\n"
            "If that was not you, a chapter writes into the checkout: it must not.",
            file=sys.stderr,
        )
        return 1
    print(f"\nEvery chapter has run on this machine: {page}")
    return 0


def rerun(root, arguments):
    paths = [_inside(root, name) for name in arguments.chapters] or chapters(root)
    rerun_chapters(root, paths, arguments.timeout, arguments.time)
    return 0


def _inside(root, name):
    path = (root / name).resolve()
    if not path.is_file() or root not in path.parents or path.suffix != ".ipynb":
        raise FileNotFoundError(f"{name} is no notebook of this book")
    return path.relative_to(root)


def show(root, arguments):
    work = root / "_build" / "stored"
    copy_sources(root, work)
    print(f"Rendered the stored outputs: {render(root, work, strict=True)}")
    return 0


#: Of each: its function, and what is said when it was stopped, and when it failed.
COMMANDS = {
    "execute": (
        make, "The book can be read as it is, and the next run goes on.",
        "The book can be read, but not all of it was made here."
    ),
    "rerun": (
        rerun, "Finished chapters are stored.", "This chapter was left as it was."
    ),
    "render": (show, "The book was not rendered.", "The book was not rendered."),
}  # fmt: skip


def main(argv=None):
    """Do what `argv` says; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--timeout", type=int, default=TIMEOUT, help="seconds a cell")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in COMMANDS:
        command = commands.add_parser(name)
        if name == "rerun":
            command.add_argument("chapters", nargs="*", help="default: all in _toc.yml")
            command.add_argument("--time", action="store_true", help="store no outputs")
    arguments = parser.parse_args(argv)
    function, stopped, failed = COMMANDS[arguments.command]
    prepare_environment()
    try:
        return function(arguments.root.resolve(), arguments)
    except KeyboardInterrupt:
        print(f"\nStopped. {stopped}", file=sys.stderr)
        return 130
    except (ChapterError, RenderError, FileNotFoundError) as error:
        print(f"\n{error}\n\n{failed}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
