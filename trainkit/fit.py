"""The training loop: epochs of steps, which may be stopped and taken up again."""

import math
import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, field, fields
from itertools import islice
from time import perf_counter

from mxnet import npx

from d2l_ext.data.download import bar
from d2l_ext.data.sets import Batches, minibatches
from d2l_ext.devices import timeline

from .replicas import Replicas


@dataclass
class State:
    """How far training is. It begins with the steps that are done."""

    epoch: int = 0  # complete ones
    step: int = 0  # done in the epoch that comes after these
    loss: float = 0.0  # of that epoch, summed over its examples
    examples: int = 0  # of that epoch, those in the loss
    seconds: float = 0.0  # of that epoch
    history: list = field(default_factory=list)  # seconds of each complete epoch

    @classmethod
    def of(cls, record, num_steps):
        """The state that `asdict` made `record` of, with `num_steps` in an epoch.

        Raises `ValueError` for one that no training can have come to.
        """
        kinds = {part.name: part.type for part in fields(cls)}
        if not isinstance(record, dict) or kinds != {
            name: type(value) for name, value in record.items()
        }:
            raise ValueError("its state has other parts than a training's")
        state = cls(**record)
        if not (
            state.epoch == len(state.history)
            and 0 <= state.step < num_steps
            and 0 <= state.seconds < math.inf
            and bool(state.step) == (state.examples > 0) == (state.examples != 0)
            and all(type(t) is float and 0 < t < math.inf for t in state.history)
        ):
            raise ValueError("its state is one that no training can be in")
        return state

    def count(self, losses, num_examples):
        """Add what a step returned. Waits for that step's forward pass."""
        self.loss += sum(map(float, losses))
        self.examples += num_examples

    def mean_loss(self):
        """Loss per example in this epoch, 0.0 before the first."""
        return self.loss / max(self.examples, 1)


class Stopped(Exception):
    """Training was asked to stop, and did so between two steps."""

    def __init__(self, signum):
        self.signum = signum
        super().__init__(signal.Signals(signum).name)


class Stop:
    """Notes a signal, so that a step is finished first."""

    signum = None

    def note(self, signum, _):
        """To be called by the signal."""
        self.signum = signum

    def check(self):
        """Raise `Stopped` if a signal came."""
        if self.signum:
            raise Stopped(self.signum)


@dataclass
class Fit:
    """Trains `replicas` on `train_iter` up to `num_epochs` in all.

    What has a default may be set until `run` is called.
    """

    replicas: Replicas
    train_iter: Batches
    test_iter: Batches  # None: another worker evaluates
    num_epochs: int
    learning_rate: Callable  # of the epoch, from 0
    report: "Report"
    save_every: int = 0  # steps between checkpoints; 0: one at the end of each epoch
    saves: bool = True  # whether this worker writes them
    checkpoints: object = None  # a `checkpoint.Checkpoints` or `parts.Parts`
    settings: dict = None  # which go into each of these
    profiler: "StepProfiler" = None
    stop: Stop = field(default_factory=Stop)
    state: State = field(default_factory=State)  # how far training is

    @property
    def num_steps(self):
        """Steps that are done, over all epochs."""
        return self.state.epoch * self.train_iter.num_steps + self.state.step

    def run(self):
        """Train, and return the replicas' `measure` of `test_iter`, None without.

        Raises `Stopped`, after a checkpoint, when `stop` noted a signal.
        """
        held_out = None
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
        """Train to the end of this epoch; its mean loss and examples per second."""
        state, queued = self.state, ([], 0)
        self.replicas.trainer.set_learning_rate(self.learning_rate(state.epoch))
        self.train_iter.epoch = state.epoch
        clock = perf_counter() - state.seconds
        for X, y, n in islice(minibatches(self.train_iter), state.step, None):
            with self.profiler.step() if self.profiler else nullcontext():
                losses = self.replicas.train_batch(X, y, self.num_steps, n)
            # One step is queued while the next is prepared, never more: a signal
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
        if state.epoch + 1 == self.num_epochs:
            self.replicas.settle()
        npx.waitall()
        seconds, examples, loss = perf_counter() - clock, state.examples, state.loss
        history = [*state.history, seconds]
        self.state = State(epoch=state.epoch + 1, history=history)
        if self.profiler:
            self.profiler.close()
        self._save()
        self.stop.check()
        return loss / examples, examples / seconds

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
        """Go on from what `Checkpoints.load` returned.

        Raises `ValueError` when that is not the state of such a training.
        """
        self.state = State.of(record.get("state"), self.train_iter.num_steps)
        self.replicas.unpack(arrays)


class Report:
    """Lines about a training run, on standard error.

    `num_epochs`, `num_steps`: epochs in all, and steps of an epoch. `measure`: what is
    held out. `disp_batches`: without a terminal, a line each so many steps; 0 for one
    line per epoch. On a terminal a bar shows the steps. A stream that is full or closed
    stays so: it is no reason to end a training.
    """

    REDRAW = 0.1  # seconds between two states of the bar

    def __init__(self, num_epochs, num_steps, measure, disp_batches):
        self.num_epochs, self.num_steps = num_epochs, num_steps
        self.measure, self.disp_batches = measure, disp_batches
        self.stream, self.on_terminal = sys.stderr, sys.stderr.isatty()
        self.drawn = self.length = 0

    def step(self, state):
        """After a step: `state` is a `State`."""
        where = f"epoch {state.epoch + 1}/{self.num_epochs}"
        loss = f"loss {state.mean_loss():.3f}" if state.examples else ""
        if self.on_terminal:
            if perf_counter() - self.drawn > self.REDRAW:
                line = f"{where}  {bar(state.step / self.num_steps)}  {loss}"
                self._print(f"\r{line.ljust(self.length)}")
                self.drawn, self.length = perf_counter(), len(line)
        elif self.disp_batches and state.step % self.disp_batches == 0:
            self.note(f"{where}  step {state.step}/{self.num_steps}  {loss}")

    def epoch(self, state, loss, held_out, speed):
        """After an epoch: the line that stays. `held_out` may be None."""
        measured = "" if held_out is None else f"{self.measure} {held_out:.3f}  "
        self.note(
            f"epoch {state.epoch}/{self.num_epochs}  loss {loss:.3f}  {measured}"
            f"{state.history[-1]:.2f} s  {speed:,.0f} samples/s"
        )

    def note(self, text):
        """A line of its own, in place of the bar."""
        wiped = f"\r{' ' * self.length}\r" if self.length else ""
        self.length = 0
        self._print(f"{wiped}{text}\n")

    def _print(self, text):
        with suppress(OSError):
            print(text, end="", file=self.stream, flush=True)


class StepProfiler(ExitStack):
    """Records three steps from step `first` on, and writes them to `path` at `close`.

    `devices`: the contexts that the steps use.
    """

    def __init__(self, path, devices, first):
        super().__init__()
        self.path, self.devices = path, devices
        self.wait = first  # so many steps

    @contextmanager
    def step(self):
        """Put a step of training into this."""
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
        timeline.write(trace, self.path)
