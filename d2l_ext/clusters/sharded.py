"""Checkpoints of a divided state: each worker writes its own chunk.

    runs/lenet-00000040.shards/
        0-of-3.ckpt     chunk 0 of every array, with its SHA-256
        1-of-3.ckpt     written in parallel by three workers
        2-of-3.ckpt
        manifest.ckpt   the SHA-256 of all three, written by the last worker

A checkpoint without its manifest is ignored. `cuts` depends only on size and number
of workers, so any number of workers can tell which shards hold its elements.
"""

import shutil
from concurrent.futures import ThreadPoolExecutor
from glob import escape
from math import prod
from pathlib import Path

import numpy

from ..data_parallel.traffic import cuts
from . import checkpoint
from .checkpoint import KEEP, MAGIC, CheckpointError

MANIFEST = "manifest.ckpt"


class ShardedCheckpoints:
    """The checkpoints of one run, as worker `rank` of `n` sees them.

        saved = ShardedCheckpoints("runs/lenet", {"w": ((784, 10), "float32")}, rank, n)
        saved.save(40, {"w": chunk}, {"epoch": 2})
        arrays, record = saved.load(max(saved.whole()))

    `prefix`: a path, the same for all workers, whose last part begins the names of the
    folders. `layout`: a dict from a name to shape and dtype of the whole array. `rank`,
    `n`: default a single worker, which has all of it.

    All workers save the same steps, of at most eight digits, in the same order, and
    none of them before rank 0 has called `load` or `clear`: a synchronous step in
    between ensures that. Source: the design of PyTorch's
    `torch.distributed.checkpoint`. Developed in the chapter *Sharded checkpoints and
    elastic training*.
    """

    def __init__(self, prefix, layout, rank=0, n=1):
        self.folder, self.name = Path(prefix).parent, Path(prefix).name
        self.sizes = {name: prod(shape) for name, (shape, _) in layout.items()}
        self.layout = {name: f"{numpy.dtype(dtype)} {list(shape)}"
                       for name, (shape, dtype) in layout.items()}
        self.rank, self.n = rank, n
        self._writer, self._last = ThreadPoolExecutor(1), None
        self.folder.mkdir(parents=True, exist_ok=True)

    def own(self, name):
        """Return the elements of the flattened array `name` on this worker: a slice."""
        return slice(*cuts(self.sizes[name], self.n)[self.rank :][:2])

    def save(self, step, chunks, record=None):
        """Copy `chunks`, and `write` them in a thread while the caller continues.

        `chunks`: by name, the elements `own(name)`, a NumPy array of one dimension;
        `CheckpointError` for others. `record`: of JSON types, the same on all workers.
        Waits for the previous save, and raises its error if it failed.
        """
        self.wait()
        own = {name: self.own(name) for name in self.layout}
        _compare(f"to save on worker {self.rank} of {self.n}",
                 {name: f"{x.dtype} {[*x.shape]}" for name, x in chunks.items()},
                 {name: f"{self.layout[name].split()[0]} {[x.stop - x.start]}"
                  for name, x in own.items()})
        copies = {name: numpy.array(chunk) for name, chunk in chunks.items()}
        self._last = self._writer.submit(self.write, step, copies, record)

    def wait(self):
        """Wait until the last save is on the disk; raise its error if it failed."""
        last, self._last = self._last, None
        if last:
            last.result()

    def write(self, step, chunks, record=None):
        """Write this worker's shard, and the manifest if all other shards exist."""
        folder = self._path(step)
        folder.mkdir(exist_ok=True)
        shards = [folder / f"{i}-of-{self.n}.ckpt" for i in range(self.n)]
        checkpoint.write(shards[self.rank], chunks, {})
        if all(path.exists() for path in shards):  # else a later worker writes it
            digests = [_digest(path) for path in shards]
            told = {"layout": self.layout, "digests": digests, "record": record}
            checkpoint.write(folder / MANIFEST, {}, told)
            checkpoint.sync_folder(self.folder)
            oldest = self.steps()[-KEEP:][0]
            self._remove(old for old in self._folders() if old < oldest)

    def steps(self):
        """Return the steps that have a manifest, ascending."""
        return [n for n in self._folders() if (self._path(n) / MANIFEST).exists()]

    def whole(self, warn=print):
        """Return the intact checkpoints: a dict from step to a SHA-256.

        The workers share the reading of the shards, so a checkpoint is whole if all
        of them say so: see `agreement.agree`. `warn`: called with each problem.
        """
        found = {}
        for step in self.steps():
            try:
                digests = self._manifest(step)["digests"]
                for i in range(self.rank, len(digests), self.n):
                    self._read(step, f"{i}-of-{len(digests)}.ckpt", digests[i])
                found[step] = _digest(self._path(step) / MANIFEST)
            except (CheckpointError, OSError) as error:
                warn(f"warning: {error}")
        return found

    def load(self, step, whole=()):
        """Return `(arrays, record)` of `step`, the arrays as `own(name)` by name.

        `whole`: names of arrays of which this worker needs every element. Rank 0 also
        removes all later steps, which were not finished or agreed upon. Raises
        `CheckpointError` for a different layout or a missing, damaged or foreign file.
        """
        told = self._manifest(step)
        _compare(f"in {self._path(step)}", told["layout"], self.layout)
        m = len(told["digests"])
        own = range(self.rank * m // self.n, -(-(self.rank + 1) * m // self.n))
        parts = {name: [] for name in self.layout}
        for i in range(m) if whole else own:
            shard, _ = self._read(step, f"{i}-of-{m}.ckpt", told["digests"][i])
            for name, part in shard.items():
                parts[name] += [part] if name in whole or i in own else []
        arrays = {name: numpy.concatenate(found) for name, found in parts.items()}
        for name in {*arrays}.difference(whole):
            here, first = self.own(name), cuts(self.sizes[name], m)[own[0]]
            arrays[name] = arrays[name][here.start - first : here.stop - first].copy()
        self.clear(step)
        return arrays, told["record"]

    def clear(self, step=-1):
        """On rank 0, remove all steps after `step`, by default all: their shards could
        be taken for new ones.
        """
        if self.rank == 0:
            self._remove(later for later in self._folders() if later > step)

    def _path(self, step):
        return self.folder / f"{self.name}-{step:08d}.shards"

    def _folders(self):
        names = escape(self.name) + "-" + 8 * "[0-9]" + ".shards"
        return sorted(int(path.stem[-8:]) for path in self.folder.glob(names))

    def _manifest(self, step):
        told = self._read(step, MANIFEST)[1]
        if not {"layout", "digests", "record"} <= {*told}:
            raise CheckpointError(f"{self._path(step) / MANIFEST} is not a manifest")
        return told

    def _read(self, step, name, only=None):
        path = self._path(step) / name
        if not path.exists():
            raise CheckpointError(f"{path} is missing")
        if only and _digest(path) != only:
            raise CheckpointError(f"{path} is not from this save: its SHA-256 differs")
        return checkpoint.read(path)

    def _remove(self, steps):
        for path in map(self._path, steps):
            (path / MANIFEST).unlink(missing_ok=True)  # first: then it no longer counts
            shutil.rmtree(path, ignore_errors=True)


def _digest(path):
    """Return the SHA-256 that the file states."""
    with open(path, "rb") as file:
        return file.read(len(MAGIC) + 64)[len(MAGIC) :].decode(errors="replace")


def _compare(where, found, right):
    for name in {**found, **right}:
        if found.get(name) != right.get(name):
            raise CheckpointError(f"{name!r} {where}: found {found.get(name)}, "
                                  f"expected {right.get(name)}")
