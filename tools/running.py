"""Runs one chapter of the book, and shows the progress of the whole run."""

import sys
import time

from notebooks import ChapterError, execute


class Progress:
    """Prints how far a run of `count` chapters has come: one line a chapter, and a
    moving one on a terminal."""

    def __init__(self, count, stream=None):
        self.count = count
        self.number = 0
        self.stream = stream or sys.stdout
        self.moving = self.stream.isatty()

    def start(self, path):
        """Note that chapter `path` is next."""
        self.number += 1
        self.path = path
        self.begin = time.monotonic()
        self._show("…")

    def cell(self, number, count):
        """Show that code cell `number` of `count` is about to run."""
        self._show(f"cell {number} of {count}, {self.seconds():.1f} s")

    def seconds(self):
        """Return the seconds since the chapter began."""
        return time.monotonic() - self.begin

    def end(self, what=None):
        """Print the line of an ended chapter; `what`: by default its duration."""
        start = "\r\x1b[K" if self.moving else ""
        text = self._text(what or f"{self.seconds():.1f} s")
        print(f"{start}{text}", file=self.stream, flush=True)

    def _text(self, what):
        return f"chapter {self.number} of {self.count}  {self.path}  {what}"

    def _show(self, what):
        if self.moving:
            print(f"\r\x1b[K{self._text(what)}", end="", file=self.stream, flush=True)


def run_chapter(root, work, path, progress, timeout, variables):
    """Execute `path` in `work`, the copy of the book in `root`; return the notebook.

    `variables`: as in `execute`. Raises `ChapterError`, which names the chapter.
    """
    folder, log = (work / path).parent, beside(root, path, "log")
    try:
        return execute(work / path, folder, log, progress.cell, timeout, variables)
    except ChapterError as error:
        progress.end("failed")
        error.args = (f"{path}, {error}",)
        raise


def beside(root, path, kind):
    """Return the path of a file of `kind` about the chapter `path`, such as its log."""
    return root / "_build" / f"{path.stem}.{kind}"
