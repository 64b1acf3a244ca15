"""Checkpoints as files, or in parts that are written in parallel: `--save-shards`."""

import json
import math

import numpy as np

from d2l_ext.clusters.checkpoint import CheckpointError, Checkpoints
from d2l_ext.clusters.sharded import MANIFEST, ShardedCheckpoints


def checkpoints(job, params, kv):
    """Return the checkpoints as files or in parts; None without `--save-prefix`.

    `params`: the weights. `kv`: the store of a job, or None. Raises `ValueError` if
    there are checkpoints of the other kind.
    """
    if not job.save_prefix:
        return None
    who = (kv.rank, kv.num_workers, 1) if kv else (0, 1, len(job.places))
    # An optimizer's state is a few times the weights, and a record is small.
    most = 8 * num_bytes(params) + 2**28
    kinds = [Parts(job.save_prefix, *who), Checkpoints(job.save_prefix, most)]
    own, other = kinds if job.save_shards else reversed(kinds)
    if other.paths():
        how = "without" if job.save_shards else "with"
        raise ValueError(f"{other.paths()[-1]} is from a run {how} --save-shards: "
                         f"resume {how} it, or choose another --save-prefix")
    return own


def num_bytes(params):
    """Return the bytes of the weights, without the optimizer's states."""
    return sum(math.prod(p.shape) * np.dtype(p.dtype).itemsize for p in params)


class Parts(Checkpoints):
    """The checkpoints of one run, as folders `PREFIX-00000123.shards`.

    `prefix`: as in `Checkpoints`, with the same errors. `rank` of `num_workers`: this
    process. `parts`: the number of parts that it writes, in threads. All workers must
    `save` the same steps; any number of workers and parts can `load` them.
    """

    def __init__(self, prefix, rank=0, num_workers=1, parts=1):
        super().__init__(prefix)
        self.who, self.n = (rank, num_workers), num_workers * parts
        self.own = range(rank * parts, (rank + 1) * parts)
        self.layout, self.writers, self.last = None, [], None
        self.files = ShardedCheckpoints(prefix, {}, *self.who)

    def begin(self, need=0, warn=print):
        """On rank 0, begin as in `Checkpoints` and remove incomplete checkpoints.

        The other ranks do nothing. Call it before any worker saves.
        """
        if self.who[0] == 0:
            super().begin(need, warn)
            self.files._remove({*self.files._folders()}.difference(self.files.steps()))

    def end(self):
        """Wait for the last save, and release the lock of this prefix."""
        try:
            self.wait()
        finally:
            super().end()

    def paths(self):
        """Return the complete folders, oldest first."""
        return [self.files._path(step) for step in self.files.steps()]

    def save(self, step, arrays, record):
        """Start writing this process's parts of `arrays`; return the folder.

        Raises like `wait`.
        """
        self.wait()
        layout = {name: (x.shape, x.dtype) for name, x in arrays.items()}
        if layout != self.layout:  # an optimizer's states come with the first step
            prefix = self.folder / self.name
            self.layout = layout
            self.writers = [ShardedCheckpoints(prefix, layout, part, self.n)
                            for part in self.own]
        for writer in self.writers:
            own = {name: x.reshape(-1)[writer.own(name)] for name, x in arrays.items()}
            writer.save(step, own, record)
        self.last = self.files._path(step)
        return self.last

    def wait(self):
        """Wait until the last save is on the disk. Raises `OSError` if it failed."""
        errors = []
        for writer in self.writers:
            try:
                writer.wait()
            except OSError as error:
                errors.append(error)
        if errors:
            first = errors[0]
            raise OSError(first.errno, f"{first.strerror or first}: {self.last} was not"
                          " written; earlier checkpoints remain")

    def whole(self):
        """Return the same as `Checkpoints`; several workers share the reading."""
        return self.files.whole(warn=lambda _: None)

    def load(self, warn=print, steps=None):
        """Load as in `Checkpoints`; rank 0 removes later ones, and warns of them."""
        usable = self.files.whole(warn) if steps is None else steps
        if not usable and self.paths():
            raise CheckpointError(f"no checkpoint can be used: {self.paths()[-1]} is "
                                  "damaged. Remove all of them to start anew")
        if not usable:
            return None
        if steps is not None and self.who[0] == 0:
            for step in self.files.steps():
                if step > max(steps):
                    warn(f"warning: {self.files._path(step)} is damaged, or not all "
                         "workers have it; it is removed")
        told = self.files._read(max(usable), MANIFEST)[1]["layout"]
        layout = {name: (json.loads(kind.split(" ", 1)[1]), kind.split()[0])
                  for name, kind in told.items()}
        files = ShardedCheckpoints(self.folder / self.name, layout, *self.who)
        arrays, record = files.load(max(usable), whole=layout)
        arrays = {name: x.reshape(layout[name][0]) for name, x in arrays.items()}
        return files._path(max(usable)), arrays, record
