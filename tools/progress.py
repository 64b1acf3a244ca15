"""How far a run has come: one line a chapter, and a moving one on a terminal."""

import sys
import time


class Progress:
    """Prints the state of `count` chapters to `stream`."""

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
        self._show(f"cell {number} of {count}, {self._seconds()}")

    def done(self):
        """The chapter was executed."""
        self._line(self._seconds())

    def unchanged(self):
        """The chapter's outputs are known."""
        self._line("unchanged")

    def failed(self):
        """The chapter stopped at an error."""
        self._line("failed")

    def _seconds(self):
        return f"{time.monotonic() - self.begin:.1f} s"

    def _text(self, what):
        return f"chapter {self.number} of {self.count}  {self.path}  {what}"

    def _show(self, what):
        if self.moving:
            print(f"\r\x1b[K{self._text(what)}", end="", file=self.stream, flush=True)

    def _line(self, what):
        start = "\r\x1b[K" if self.moving else ""
        print(f"{start}{self._text(what)}", file=self.stream, flush=True)
