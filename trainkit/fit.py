"""The training loop: epochs of steps, which can be stopped and resumed."""

import math
import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, field, fields
from itertools import islice
from time import perf_counter

from mxnet import npx

from d2l_ext.data.download import progress_bar
from d2l_ext.data.sets import Batches, minibatches
from d2l_ext.devices import timeline

from .replicas import Replicas


@dataclass
class State:
    """The progress of a training run, counted from its first step."""

    epoch: int = 0  # complete ones
    step: int = 0  # done in the current epoch
    loss: float = 0.0  # of that epoch, summed over its examples
    examples: int = 0  # of that epoch, those in the loss
    seconds: float = 0.0  # of that epoch
    history: list = field(default_factory=list)  # seconds of each complete epoch

    @classmethod
    def of(cls, record, num_steps):
        """Restore a state from its `asdict`, with `num_steps` per epoch.

        Raises `ValueError` for a state that no training run can reach.
        """
        kinds = {part.name: part.type for part in fields(cls)}
        if not isinstance(record, dict) or kinds != {
            name: type(value) for name, value in record.items()
        }:
            raise ValueError("the keys of its state are not those of a training run")
        state = cls(**record)
        if not (
            state.epoch == len(state.history)
            and 0 <= state.step < num_steps
            and 0 <= state.seconds < math.inf
            and bool(state.step) == (state.examples > 0) == (state.examples != 0)
            and all(type(t) is float and 0 < t < math.inf for t in state.history)
        ):
            raise ValueError("its state is impossible for a training run")
        return state

    def count(self, losses, num_examples):
        """Add the losses of a step. Waits for its forward pass."""
        self.loss += sum(map(float, losses))
        self.examples += num_examples

    def mean_loss(self):
        """Return the loss per example in this epoch, 0.0 before the first."""
        return self.loss / max(self.examples, 1)


class Stopped(Exception):
    """A signal stopped the training between two steps."""

    def __init__(self, signum):
        self.signum = signum
        super().__init__(signal.Signals(signum).name)


class Stop:
    """Records a signal, so that the current step can finish."""

    signum = None

    def note(self, signum, _):
        """Handle the signal."""
        self.signum = signum

    def check(self):
        """Raise `Stopped` if a signal has arrived."""
        if self.signum:
            raise Stopped(self.signum)


@dataclass
class Training:
    """Trains `replicas` on `train_iter` up to `num_epochs` in total."""

    replicas: Replicas
    train_iter: Batches
    test_iter: Batches  # None: another worker evaluates
    num_epochs: int
    learning_rate: Callable  # of the epoch, from 0
    report: "Progress"
    save_every: int = 0  # steps between checkpoints; 0: one at the end of each epoch
    saves: bool = True  # whether this worker writes them
    checkpoints: object = None  # a `checkpoint.Checkpoints` or `parts.Parts`
    settings: dict = None  # which go into each of these
    profiler: "StepProfiler" = None
    stop: Stop = field(default_factory=Stop)
    state: State = field(default_factory=State)  # the progress of the training

    @property
    def num_steps(self):
        """The number of finished steps, over all epochs."""
        return self.state.epoch * self.train_iter.num_steps + self.state.step

    def run(self):
        """Train; return the replicas' `measure` on `test_iter`, or None without one.

        Raises `Stopped`, after a checkpoint, when `stop` has recorded a signal.
        """
        held_out = None
        if self.profiler:
            left = self.num_epochs * self.train_iter.num_steps - self.num_steps
            self.profiler.wait = max(min(2, left - 1), 0)
        self.replicas.begin()
        while self.state.epoch < self.num_epochs:
            loss, speed = self._epoch()
            held_out = self._evaluate()
            self.report.epoch(self.state, loss, held_out, speed)
            self.stop.check()
        if held_out is None:  # all epochs were done already
            held_out = self._evaluate()
        return held_out

    def _evaluate(self):
        if self.test_iter is None:
            return None
        return self.replicas.evaluate(self.test_iter, self.stop.check)

    def _epoch(self):
        """Train to the end of this epoch: (mean loss, examples per second)."""
        state, queued = self.state, ([], 0)
        self.replicas.trainer.set_learning_rate(self.learning_rate(state.epoch))
        self.train_iter.epoch = state.epoch
        clock = perf_counter() - state.seconds
        for X, y, n in islice(minibatches(self.train_iter), state.step, None):
            losses = self._step(X, y, n)
            # One step is enqueued while the next is prepared, never more: a signal
            # would have to wait for all of them.
            state.count(*queued)
            queued, state.step = (losses, len(y)), state.step + 1
            self.report.step(state)
            if self._is_due():
                state.count(*queued)
                queued = ([], 0)
                npx.waitall()
                state.seconds = perf_counter() - clock
                self._save()
                self.stop.check()
                clock = perf_counter() - state.seconds
        state.count(*queued)
        return self._end_epoch(clock)

    def _step(self, X, y, n):
        with self.profiler.step() if self.profiler else nullcontext():
            return self.replicas.train_batch(X, y, self.num_steps, n)

    def _end_epoch(self, clock):
        """Wait for the last step, and save; as `_epoch`, which began at `clock`."""
        ended = self.state
        if ended.epoch + 1 == self.num_epochs:
            self.replicas.settle()
        npx.waitall()
        seconds = perf_counter() - clock
        history = [*ended.history, seconds]
        self.state = State(epoch=ended.epoch + 1, history=history)
        self._save()
        if self.profiler:
            self.profiler.close()
        self.stop.check()
        return ended.loss / ended.examples, ended.examples / seconds

    def _is_due(self):
        if self.state.step == self.train_iter.num_steps:
            return False  # the end of the epoch saves
        return self.stop.signum or (
            self.save_every and self.num_steps % self.save_every == 0
        )

    def _save(self):
        if self.checkpoints and self.saves:
            arrays = self.replicas.pack()
            record = {"settings": self.settings, "state": asdict(self.state)}
            self.checkpoints.save(self.num_steps, arrays, record)
            if self.stop.signum or self.state.epoch == self.num_epochs:
                self.checkpoints.wait()

    def restore(self, arrays, record):
        """Resume from what `Checkpoints.load` returned.

        Raises `ValueError` if that state does not fit this training.
        """
        self.state = State.of(record.get("state"), self.train_iter.num_steps)
        self.replicas.unpack(arrays)


class Progress:
    """Lines about a training run, on standard error.

    `num_epochs`, `num_steps`: total epochs, and steps per epoch. `measure`: the name of
    the held-out result. `disp_batches`: without a terminal, the steps between two
    lines; 0 for one line per epoch. A terminal shows a bar. A full or closed stream
    does not end the training.
    """

    REDRAW = 0.1  # seconds between two states of the bar

    def __init__(self, num_epochs, num_steps, measure, disp_batches):
        self.num_epochs, self.num_steps = num_epochs, num_steps
        self.measure, self.disp_batches = measure, disp_batches
        self.stream, self.on_terminal = sys.stderr, sys.stderr.isatty()
        self.drawn = self.length = 0

    def step(self, state):
        """Note the end of a step: `state` is a `State`."""
        where = f"epoch {state.epoch + 1}/{self.num_epochs}"
        loss = f"loss {state.mean_loss():.3f}" if state.examples else ""
        if self.on_terminal:
            if perf_counter() - self.drawn > self.REDRAW:
                line = f"{where}  {progress_bar(state.step / self.num_steps)}  {loss}"
                self._print(f"\r{line.ljust(self.length)}")
                self.drawn, self.length = perf_counter(), len(line)
        elif self.disp_batches and state.step % self.disp_batches == 0:
            self.note(f"{where}  step {state.step}/{self.num_steps}  {loss}")

    def epoch(self, state, loss, held_out, speed):
        """Print the permanent line of an epoch. `held_out` may be None."""
        measured = "" if held_out is None else f"{self.measure} {held_out:.3f}  "
        self.note(
            f"epoch {state.epoch}/{self.num_epochs}  loss {loss:.3f}  {measured}"
            f"{state.history[-1]:.2f} s  {speed:,.0f} samples/s"
        )

    def note(self, text):
        """Print a line that replaces the bar."""
        wiped = f"\r{' ' * self.length}\r" if self.length else ""
        self.length = 0
        self._print(f"{wiped}{text}\n")

    def _print(self, text):
        with suppress(OSError):
            print(text, end="", file=self.stream, flush=True)


class StepProfiler(ExitStack):
    """Profiles up to three steps of an epoch, after `wait` others.

    At `close` it writes them to `path`, or raises `OSError`. `devices`: the contexts
    that the steps use.
    """

    def __init__(self, path, devices, wait=0):
        super().__init__()
        self.path, self.devices, self.wait = path, devices, wait

    @contextmanager
    def step(self):
        """Enter the context of one training step."""
        if self.wait == 0:
            self.enter_context(self._recorded())
        yield
        self.wait -= 1
        if self.wait == -3:
            self.close()

    @contextmanager
    def _recorded(self):
        with timeline.record(self.devices) as trace:
            yield
        try:
            timeline.write(trace, self.path)
        except OSError as error:
            raise OSError(error.errno, f"{error.strerror}: the profile {self.path} was "
                          "not written") from None
