"""The constants of this machine, from measured cases, and what follows for others."""

from dataclasses import dataclass, field
from math import prod

from d2l_ext.data_parallel.lenet import SHAPES
from d2l_ext.scale import fit

from . import cases

#: Cases whose times follow from those of other cases: they are never fitted.
DERIVED = ("pipeline", "layerwise")
LENET_BYTES = cases.FLOAT32 * sum(map(prod, SHAPES))


@dataclass
class Machine:
    """What `calibrate` has found: `seconds(case)` predicts any case of these kinds.

    ("naive", k, nbytes), also "tree", "ring"; ("local", k, nbytes), also "device"
    ("gradient", images): LeNet on one device; ("step", way, k, batch)
    ("stage", blocks, rows, chunks); ("pipeline", (blocks, …), rows, chunks)
    ("block", rows, hidden); ("layerwise", k, rows, hidden)
    ("dist", workers, servers, arrays, nbytes), also "dist compressed"
    ("dist lenet", workers, servers, batch)

    `cores`: that all devices share. `constants`: by the case's first word.
    `residuals`: relative errors of the cases that were fitted.
    """

    cores: int
    constants: dict = field(default_factory=dict)
    gradient: dict = field(default_factory=dict)
    residuals: dict = field(default_factory=dict)

    def seconds(self, case):
        """The predicted time. Raises `ValueError` for a kind that was not fitted."""
        kind, *numbers = case
        if kind == "gradient":
            return fit.interpolate(numbers[0], self.gradient)
        if kind == "pipeline":
            return cases.pipeline_seconds(*numbers, self._of("stage"))
        if kind == "layerwise":
            return self._layerwise(*numbers)
        return cases.times(self.row(case), self._of(kind))

    def row(self, case):
        """How often each constant occurs in a case that is not derived."""
        kind, *numbers = case
        if kind in ("naive", "tree", "ring"):
            return cases.reduce_row(kind, *numbers, self.cores)
        if kind in ("local", "device"):
            return cases.store_row(*numbers)
        if kind == "dist lenet":
            return self._dist_lenet(*numbers)
        if kind.startswith("dist"):
            workers, _, arrays, nbytes = numbers
            return cases.dist_row(workers, arrays, nbytes)
        if kind == "step":
            _, k, batch = numbers
            share = fit.interpolate(batch / k, self.gradient)
            return cases.step_row(k, share, self.cores)
        return {"stage": cases.stage_row, "block": cases.block_row}[kind](*numbers)

    def _layerwise(self, k, rows, hidden):
        part = cases.times(cases.block_row(rows, hidden / k), self._of("block"))
        sums = ("naive", k, cases.FLOAT32 * rows * cases.BLOCK_WIDTH)
        return part * cases.crowd(k, self.cores) + 2 * self.seconds(sums)

    def _dist_lenet(self, workers, servers, batch):
        """(computing, exchanging): how much slower is each, in processes of its own?"""
        share = fit.interpolate(batch / workers, self.gradient)
        moved = ("dist", workers, servers, cases.LENET_ARRAYS, LENET_BYTES)
        return share * cases.crowd(workers, self.cores), self.seconds(moved)

    def _of(self, kind):
        if kind not in self.constants:
            known = ", ".join(self.constants) or "nothing"
            raise ValueError(f"{kind!r} was not fitted: there is {known}")
        return self.constants[kind]


def calibrate(measured, cores):
    """Fit the constants of every kind of case in `measured`: returns a `Machine`.

    `measured`: a dict from case to seconds. Of ("gradient", images) no line is made:
    the times are kept, and interpolated. Every other kind needs as many cases as it
    has constants. Raises `ValueError` as `fit.least_squares`, and for a derived case.
    Developed in the chapter *A cost model*.
    """
    machine, kinds = Machine(cores), {}
    for case, seconds in measured.items():
        if case[0] in DERIVED:
            raise ValueError(f"{case} follows from other cases: it cannot be fitted")
        if case[0] == "gradient":
            machine.gradient[case[1]] = seconds
        else:
            kinds.setdefault(case[0], []).append(case)
    for kind, group in kinds.items():
        found = fit.least_squares(
            [machine.row(case) for case in group], [measured[case] for case in group]
        )
        machine.constants[kind] = found.constants
        machine.residuals.update(zip(group, found.residuals))
    return machine
