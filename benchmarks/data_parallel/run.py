"""One run: the workers of all rows, and the turns that they take."""

import sys
from time import perf_counter

from benchmarks import machine, measure
from benchmarks.worker import ROOT, Worker, WorkerFailed

from . import rows

#: Steps before the losses are compared, and steps without a clock in each turn.
CHECK_STEPS, WARM_UP = 10, 2


def say(text):
    print(text, file=sys.stderr, flush=True)


class Run:
    """Workers, what they measured, and the rows that were lost on the way."""

    def __init__(self, missing):
        self.workers, self.missing = {}, dict(missing)
        self.about, self.losses = {}, {}
        self.turns, self.faults = {}, {}  # by row id, an entry per round

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for worker in self.workers.values():
            worker.close()

    def each(self, action):
        """Return `action(worker)` by row id, one after another; failed rows leave."""
        answers = {}
        for id, worker in list(self.workers.items()):
            try:
                answers[id] = action(worker)
            except WorkerFailed as error:
                self._lose(id, error)
        return answers

    def start(self, chosen, peer_python, problem, environ):
        for row in chosen:
            try:
                self.workers[row.id] = Worker(
                    rows.command(row, sys.executable, peer_python, problem),
                    machine.cores(row.cores), environ)
            except WorkerFailed as error:
                self._lose(row.id, error)
        self.about = self.each(lambda worker: worker.about())

    def check(self):
        """Train every row for the same steps and compare; how far they lie apart."""
        before = self.each(lambda worker: worker.loss())
        self.each(lambda worker: worker.steps(CHECK_STEPS))
        after = self.each(lambda worker: worker.loss())
        if not after:
            return None
        before = {id: before[id] for id in after}
        self.losses = {id: {"before": before[id], "after": after[id]} for id in after}
        self.turns = {id: [] for id in after}
        self.faults = {id: [] for id in after}
        return measure.check_agreement(before, after)

    def measure(self, rounds, steps):
        def turn(worker):
            return worker.steps(steps, WARM_UP), worker.page_faults

        start = perf_counter()
        for r in range(rounds):
            for id, (seconds, faults) in self.each(turn).items():
                self.turns[id].append(seconds)
                self.faults[id].append(faults)
            if r == 0:
                left = (perf_counter() - start) * (rounds - 1)
                say(f"{rounds} rounds of {len(self.workers)} rows: {left:.0f} s to go")
        final = self.each(lambda worker: worker.loss())
        for id, loss in final.items():
            self.losses[id]["final"] = loss
        measure.check_trained({id: self.losses[id]["before"] for id in final}, final)
        self.turns = {id: self.turns[id] for id in final}

    def _lose(self, id, error):
        self.missing[id] = str(error).replace(f"{ROOT}/", "")
        say(f"{id}: {self.missing[id]}")
        if id in self.workers:
            self.workers.pop(id).close()
