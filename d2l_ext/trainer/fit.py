"""The training loop: epochs of steps, which may be stopped and taken up again."""

import math
from dataclasses import asdict, dataclass, field, fields
from itertools import islice
from time import perf_counter

from mxnet import npx

from . import trainer_state
from .stop import Stop


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


class Fit:
    """Trains `replicas` on `train_iter`, a `Batches`, up to `num_epochs` in all.

    `learning_rate`: a function of the epoch, from 0. `report`: a `progress.Report`.
    `checkpoints`: a `checkpoint.Checkpoints`, or None. `settings`: goes into each
    checkpoint. `save_every`: steps between checkpoints; 0, the default, for one at
    the end of each epoch. `stop`: a `Stop`. `profiler`: a
    `chrome_trace.StepProfiler`, or None. `state`: where to begin. `test_iter` None:
    another worker evaluates. `saves`: whether this worker writes the checkpoints.
    """

    def __init__(self, replicas, train_iter, test_iter, num_epochs, learning_rate,
                 report, checkpoints=None, settings=None, save_every=0, stop=None,
                 profiler=None, state=None, saves=True):  # fmt: skip
        self.replicas, self.num_epochs = replicas, num_epochs
        self.train_iter, self.test_iter = train_iter, test_iter
        self.learning_rate, self.report = learning_rate, report
        self.checkpoints, self.settings = checkpoints, settings
        self.save_every, self.stop = save_every, stop or Stop()
        self.profiler, self.state = profiler, state or State()
        self.saves = saves

    @property
    def num_steps(self):
        """Steps that are done, over all epochs."""
        return self.state.epoch * len(self.train_iter) + self.state.step

    def run(self):
        """Train, and return the accuracy on `test_iter` at the end, None without.

        Raises `Stopped`, after a checkpoint, when `stop` noted a signal.
        """
        accuracy = None
        self.replicas.begin()
        while self.state.epoch < self.num_epochs:
            loss, speed = self._epoch()
            accuracy = self._accuracy()
            self.report.epoch(self.state.epoch - 1, loss, accuracy,
                              self.state.history[-1], speed)  # fmt: skip
            self.stop.check()
        if accuracy is None:  # all epochs were done already
            accuracy = self._accuracy()
        return accuracy

    def _accuracy(self):
        if self.test_iter is None:
            return None
        return self.replicas.accuracy(self.test_iter, self.stop.check)

    def _epoch(self):
        """Train to the end of this epoch; its mean loss and examples per second."""
        state, queued = self.state, ([], 0)
        self.replicas.trainer.set_learning_rate(self.learning_rate(state.epoch))
        self.train_iter.epoch = state.epoch
        clock = perf_counter() - state.seconds
        for X, y in islice(self.train_iter, state.step, None):
            losses = self._step(X, y)
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

    def _step(self, X, y):
        if not self.profiler:
            return self.replicas.train_batch(X, y, self.num_steps)
        with self.profiler.step():
            return self.replicas.train_batch(X, y, self.num_steps)

    def _is_due(self):
        if self.state.step == len(self.train_iter):
            return False  # the end of the epoch saves
        return self.stop.signum or (
            self.save_every and self.num_steps % self.save_every == 0
        )

    def _save(self):
        if self.checkpoints and self.saves:
            arrays = trainer_state.pack(self.replicas.params, self.replicas.trainer)
            record = {"settings": self.settings, "state": asdict(self.state)}
            self.checkpoints.save(self.num_steps, arrays, record)

    def restore(self, arrays, record):
        """Go on from what `Checkpoints.load` returned.

        Raises `ValueError` when that is not the state of such a training.
        """
        self.state = State.of(record.get("state"), len(self.train_iter))
        trainer_state.unpack(arrays, self.replicas.params, self.replicas.trainer)
