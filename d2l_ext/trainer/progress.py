"""How far training is: a bar on a terminal, plain lines elsewhere."""

import sys
from contextlib import suppress
from time import perf_counter


def bar(share, width=30):
    """A bar of `width` characters, with brackets and per cent; `share` 0 to 1."""
    return f"[{('#' * round(share * width)).ljust(width, '.')}] {share:4.0%}"


class Report:
    """Lines about a training run, on `stream` (default standard error).

    `num_epochs`, `num_steps`: epochs in all, and steps of an epoch.
    `disp_batches`: without a terminal, a line each so many steps; 0, the default,
    for one line per epoch. On a terminal a bar shows the steps. A stream that is
    full or closed stays so: it is no reason to end a training.
    """

    REDRAW = 0.1  # seconds between two states of the bar

    def __init__(self, num_epochs, num_steps, disp_batches=0, stream=None):
        self.num_epochs, self.num_steps = num_epochs, num_steps
        self.disp_batches = disp_batches
        self.stream = sys.stderr if stream is None else stream
        self.on_terminal = self.stream.isatty()
        self.drawn = self.length = 0

    def step(self, state):
        """After a step: `state` is a `fit.State`."""
        where = self._epoch(state.epoch)
        loss = f"loss {state.mean_loss():.3f}" if state.examples else ""
        if self.on_terminal:
            if perf_counter() - self.drawn > self.REDRAW:
                self.drawn = perf_counter()
                self._draw(f"{where}  {bar(state.step / self.num_steps)}  {loss}")
        elif self.disp_batches and state.step % self.disp_batches == 0:
            self.note(f"{where}  step {state.step}/{self.num_steps}  {loss}")

    def epoch(self, number, loss, accuracy, seconds, speed):
        """After epoch `number`, from 0: the line that stays. `accuracy` may be None."""
        measured = "" if accuracy is None else f"accuracy {accuracy:.3f}  "
        self.note(
            f"{self._epoch(number)}  loss {loss:.3f}  {measured}"
            f"{seconds:.2f} s  {speed:,.0f} samples/s"
        )

    def note(self, text):
        """A line of its own."""
        if self.length:
            self._draw("")  # wipe the bar
            self._print("\r", end="")
            self.length = 0
        self._print(text)

    def _epoch(self, number):
        return f"epoch {number + 1}/{self.num_epochs}"

    def _draw(self, line):
        self._print("\r" + line.ljust(self.length), end="")
        self.length = len(line)

    def _print(self, text, end="\n"):
        with suppress(OSError):
            print(text, end=end, file=self.stream, flush=True)
