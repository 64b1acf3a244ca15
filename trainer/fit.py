"""The training loop: epochs of steps, which may be stopped and taken up again."""

import math
import sys
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, field, fields
from itertools import islice
from time import perf_counter

from mxnet import npx

from d2l_ext.data.batches import minibatches
from d2l_ext.data.download import bar
from d2l_ext.devices import timeline

from .stop import Stop


class Fit:
    """Trains `replicas` on `train_iter`, a `Batches`, up to `num_epochs` in all.

    `test_iter` None: another worker evaluates. `learning_rate`: a function of the
    epoch, from 0. `report`: a `Report`. `save_every`: steps between checkpoints; 0, the
    default, for one at the end of each epoch. `saves`: whether this worker writes them.

    To be set before `run`, where they are wanted: `checkpoints`, a
    `checkpoint.Checkpoints` or `parts.Parts`; `settings`, which go into each of these;
    `stop`, a `Stop`; `profiler`, a `StepProfiler`. `state`: how far training is.
    """

    def __init__(self, replicas, train_iter, test_iter, num_epochs, learning_rate,
                 report, save_every=0, saves=True):  # fmt: skip
        self.replicas, self.num_epochs = replicas, num_epochs
        self.train_iter, self.test_iter = train_iter, test_iter
        self.learning_rate, self.report = learning_rate, report
        self.save_every, self.saves = save_every, saves
        self.checkpoints = self.settings = self.profiler = None
        self.stop, self.state = Stop(), State()

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
            self.report.epoch(self.state.epoch - 1, loss, held_out,
                              self.state.history[-1], speed)  # fmt: skip
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
            losses = self._step(X, y, n)
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

    def _step(self, X, y, n):
        with self.profiler.step() if self.profiler else nullcontext():
            return self.replicas.train_batch(X, y, self.num_steps, n)

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


class Report:
    """Lines about a training run, on `stream` (default standard error).

    `num_epochs`, `num_steps`: epochs in all, and steps of an epoch.
    `disp_batches`: without a terminal, a line each so many steps; 0, the default,
    for one line per epoch. On a terminal a bar shows the steps. A stream that is
    full or closed stays so: it is no reason to end a training.
    """

    REDRAW = 0.1  # seconds between two states of the bar
    measure = "accuracy"  # what `held_out` is

    def __init__(self, num_epochs, num_steps, disp_batches=0, stream=None):
        self.num_epochs, self.num_steps = num_epochs, num_steps
        self.disp_batches = disp_batches
        self.stream = sys.stderr if stream is None else stream
        self.on_terminal = self.stream.isatty()
        self.drawn = self.length = 0

    def step(self, state):
        """After a step: `state` is a `State`."""
        where = self._epoch(state.epoch)
        loss = f"loss {state.mean_loss():.3f}" if state.examples else ""
        if self.on_terminal:
            if perf_counter() - self.drawn > self.REDRAW:
                self.drawn = perf_counter()
                self._draw(f"{where}  {bar(state.step / self.num_steps)}  {loss}")
        elif self.disp_batches and state.step % self.disp_batches == 0:
            self.note(f"{where}  step {state.step}/{self.num_steps}  {loss}")

    def epoch(self, number, loss, held_out, seconds, speed):
        """After epoch `number`, from 0: the line that stays. `held_out` may be None."""
        measured = "" if held_out is None else f"{self.measure} {held_out:.3f}  "
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


class StepProfiler:
    """Records `count` steps from step `first` on, and writes them to `path`.

    `devices`: the contexts that the steps use. The first steps plan operators and
    memory: they are left out by default.
    """

    def __init__(self, path, devices, first=2, count=3):
        self.path, self.devices = path, devices
        self.first, self.last = first, first + count - 1
        self.number = 0  # of the step that comes
        self.open = self.trace = None

    @contextmanager
    def step(self):
        """Put a step of training into this."""
        if self.number == self.first:
            self.open = timeline.record(self.devices)
            self.trace = self.open.__enter__()
        yield
        if self.number == self.last:
            self.close()
        self.number += 1

    def close(self):
        """Write the file, even if fewer steps were seen."""
        if self.open:
            self.open.__exit__(None, None, None)
            timeline.write(self.trace, self.path)
        self.open = None
