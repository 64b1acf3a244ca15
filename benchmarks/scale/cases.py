"""How often each constant of this machine occurs in a step, and what each is.

One row per case. `calibrate` fits the constants to measured cases, and `Machine`
predicts others.

A *case* is a tuple: what is run, then its numbers. Devices are CPU contexts, so all of
them share the machine's `cores`: two messages at once take no longer than one if there
are two cores, three do. `crowd` counts that.
"""

from dataclasses import dataclass, field
from math import prod

from d2l_ext.data_parallel.allreduce import tree
from d2l_ext.data_parallel.lenet import SHAPES
from d2l_ext.scale import fit
from d2l_ext.scale import step as model

FLOAT32 = 4  # bytes
#: Rows and columns of the layers in `pipeline`, rows' width in `layerwise`.
PIPELINE_WIDTH, BLOCK_WIDTH = 512, 1024
#: The gradients of LeNet: how many arrays, and their bytes.
LENET_ARRAYS, LENET_BYTES = len(SHAPES), FLOAT32 * sum(map(prod, SHAPES))
#: Cases whose times follow from those of other cases: they are never fitted.
DERIVED = ("pipeline", "layerwise")


def crowd(tasks, cores):
    """Return how much longer `tasks` at once take than one: tasks/cores, at least 1."""
    return max(1.0, tasks / cores)


def reduce_row(way, k, nbytes, cores):
    """Return (1, rounds, bytes): a start, and α and β of an allreduce on `k` devices.

    For each round, how many devices send at once: there they crowd. Naive, it is one;
    in the ring all; in the tree as many as send to another, k = 8: 4, 2, 1, 1, 2, 4.
    """
    at_once = {
        "naive": [1] * 2 * (k - 1),
        "tree": 2 * [len(pairs) for pairs in tree(k)],
        "ring": [k] * 2 * (k - 1),
    }[way]
    message = nbytes / k if way == "ring" else nbytes
    return 1, len(at_once), message * sum(crowd(n, cores) for n in at_once)


def store_row(k, nbytes):
    """Return (1, N, k·N): push and pull of `k` devices over `local` or `device`.

    The store is one reader of all and one writer to all, so it is a server.
    """
    return 1, nbytes, k * nbytes


def dist_row(workers, arrays, nbytes):
    """Return (1, messages, N, n·N): push and pull over `dist_sync`, worker and server.

    The servers do not occur: on one machine they have the same cores. A second one
    is work for the same cores, no help, as long as they are busy.
    """
    return 1, workers * arrays, nbytes, workers * nbytes


def step_row(k, gradient, cores):
    """Return (computing, 1): a data-parallel step, `gradient` seconds for a device's
    share.

    The share without Python's start. The second constant is what no device computes
    meanwhile: Python splits, asks for the first work, and updates at the end. It is
    paid once: while Python asks the second device, the first is at work.
    """
    return crowd(k, cores) * gradient, 1


def stage_row(blocks, rows, chunks):
    """Return (m, m·b, m·b·r): a stage of b dense blocks, m micro-batches of r rows."""
    return chunks, chunks * blocks, chunks * blocks * rows


def block_row(rows, hidden):
    """Return (1, hidden, rows·hidden): a dense block forward and backward."""
    return 1, hidden, rows * hidden


def times(row, constants):
    """Return seconds: Σ rowᵢ·constantᵢ."""
    return sum(x * c for x, c in zip(row, constants))


def pipeline_seconds(blocks, rows, chunks, constants):
    """Return the seconds of a pipeline's step: what stages take alone, in the formula.
    """
    each = [times(stage_row(b, rows, 1), constants) for b in blocks]
    forward, backward = [t / 3 for t in each], [2 * t / 3 for t in each]
    return model.pipeline_seconds(forward, backward, chunks)


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
        """Return the predicted time, in seconds.

        Raises `ValueError` for one of the class's kinds that was not fitted.
        """
        kind, *numbers = case
        if kind == "gradient":
            return interpolate(numbers[0], self.gradient)
        if kind == "pipeline":
            return pipeline_seconds(*numbers, self._of("stage"))
        if kind == "layerwise":
            return self._layerwise(*numbers)
        return times(self.row(case), self._of(kind))

    def row(self, case):
        """Return how often each constant occurs in a case that is not derived."""
        kind, *numbers = case
        if kind in ("naive", "tree", "ring"):
            return reduce_row(kind, *numbers, self.cores)
        if kind in ("local", "device"):
            return store_row(*numbers)
        if kind == "dist lenet":
            return self._dist_lenet(*numbers)
        if kind.startswith("dist"):
            workers, _, arrays, nbytes = numbers
            return dist_row(workers, arrays, nbytes)
        if kind == "step":
            _, k, batch = numbers
            line, _ = fit.link(list(self.gradient), list(self.gradient.values()))
            return step_row(k, line.beta * batch / k, self.cores)
        return {"stage": stage_row, "block": block_row}[kind](*numbers)

    def _layerwise(self, k, rows, hidden):
        part = times(block_row(rows, hidden / k), self._of("block"))
        sums = ("naive", k, FLOAT32 * rows * BLOCK_WIDTH)
        return part * crowd(k, self.cores) + 2 * self.seconds(sums)

    def _dist_lenet(self, workers, servers, batch):
        """Return (computing, exchanging): how much slower each is in processes."""
        share = interpolate(batch / workers, self.gradient)
        moved = ("dist", workers, servers, LENET_ARRAYS, LENET_BYTES)
        return share * crowd(workers, self.cores), self.seconds(moved)

    def _of(self, kind):
        if kind not in self.constants:
            known = ", ".join(self.constants) or "nothing"
            raise ValueError(f"{kind!r} was not fitted: there is {known}")
        return self.constants[kind]


def calibrate(measured, cores):
    """Fit the constants of every kind of case in `measured`; return a `Machine`.

    `measured`: a dict from case to seconds. Of ("gradient", images) no line is made:
    the times are kept, and interpolated. Every other kind needs as many cases as it
    has constants; those of "dist" come before those of "dist lenet". Raises
    `ValueError` as `fit.least_squares`, and for a derived case.
    Developed in the chapter *Fitting a cost model*.
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


def interpolate(x, table):
    """Return the value at `x` on the straight lines between the points of `table`.

    `table`: a dict of two points at least. Beyond its ends, the last line goes on.
    """
    if len(table) < 2:
        raise ValueError(f"a line needs two points, and the table has {len(table)}")
    xs = sorted(table)
    right = min(max(sum(p < x for p in xs), 1), len(xs) - 1)
    a, b = xs[right - 1], xs[right]
    return table[a] + (x - a) * (table[b] - table[a]) / (b - a)
