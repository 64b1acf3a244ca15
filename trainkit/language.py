"""A Transformer that learns a text, on groups of devices: `--network transformer`.

A group of `--tensor` devices shares a decoder; the groups divide a minibatch. An
example is a sequence of characters; its label is the sequence one character later.
"""

import os
import re
from pathlib import Path

import numpy
from mxnet import gluon

from d2l_ext.data import text
from d2l_ext.data.sets import Dataset
from d2l_ext.data_parallel.allreduce import allreduce
from d2l_ext.data_parallel.minibatch import shard_sizes
from d2l_ext.tensor_parallel import transformer

from . import resume
from .replicas import Replicas

LENGTH = 64  # characters in a sequence
SIZES = {"width": 128, "heads": 4, "layers": 3}


def load_sequences(path=None):
    """Return a text from `text.load_text`, as a `Dataset` of sequences of numbers.

    `X`, `y` (n, LENGTH); the last tenth, rounded up, is held out. `classes`: the
    characters. Raises as `load_text`, and `ValueError` for a text that is too short.
    """
    path = path or os.environ.get(text.VARIABLE)
    whole = text.load_text(path)
    characters, n = text.Vocab(whole), (len(whole) - 1) // LENGTH
    if n < 2:
        raise ValueError(f"{path} has {len(whole)} characters: give at least "
                         f"{2 * LENGTH + 1}")
    ids, border = characters.encode(whole), n * 9 // 10
    X, y = (ids[i : i + n * LENGTH].reshape(n, LENGTH) for i in (0, 1))
    name = Path(path).name if path else "pydoc_data.topics"
    return Dataset(name, X[:border], y[:border], X[border:], y[border:],
                   characters.characters)


class Decoders(Replicas):
    """A decoder on each group of `tensor` devices, for a text of `vocab` characters.

    `work_load_list`: shares of the groups. `optimizer`, `optimizer_params`, `kv_store`,
    `seed`: as in `Replicas`; the store sums gradients of the same slice over groups.
    Raises `ValueError` if a group has more devices than heads.
    """

    measure = "held_out_loss"

    def __init__(self, vocab, tensor, devices, optimizer="sgd", optimizer_params=None,
                 kv_store="device", work_load_list=None, seed=0, allreduce=allreduce):
        self.allreduce = allreduce
        self.decoder = transformer.Decoder(vocab, **SIZES)
        self.work_load_list, self.trainer = work_load_list, self
        self.sums_itself = kv_store is None and len(devices) > tensor
        whole = transformer.init_params(self.decoder, seed)
        self.names, self.params = list(whole), list(whole.values())
        parts = transformer.split(whole, devices[:tensor], self.decoder)
        # The slices of each device in a group: parameters that all groups have.
        self.slices = [
            [_slice(*item, devices[rank::tensor]) for item in part.items()]
            for rank, part in enumerate(parts)
        ]
        self.trainers = [
            gluon.Trainer(own, optimizer, optimizer_params, kvstore=kv_store)
            for own in self.slices
        ]
        self.groups = [
            [{p.name: p.data(d) for p in own} for own, d in zip(self.slices, places)]
            for places in (devices[i:] for i in range(0, len(devices), tensor))
        ]

    def set_learning_rate(self, lr):
        """Set the learning rate of all slices."""
        for trainer in self.trainers:
            trainer.set_learning_rate(lr)

    def train_batch(self, X, y, step=0, n=None):
        """Take one step on `X`, `y` (sequences, LENGTH); return the summed loss of each
        group.

        A sequence's loss is the mean over its characters. Never waits. Raises
        `ValueError` for fewer sequences than groups.
        """
        losses = []
        for found, backward in self._losses(X, y, self.groups):
            backward()
            losses.append(found)
        for own, trainer in zip(self.slices, self.trainers):
            for p in own if self.sums_itself else ():
                self.allreduce(p.list_grad())
            trainer.step(1)  # the gradients are the mean's
        return losses

    def _losses(self, X, y, groups):
        """Yield each group's summed loss, and backward functions of the mean loss."""
        loads = self.work_load_list and self.work_load_list[: len(groups)]
        sizes = shard_sizes(len(y), len(groups), loads)
        for stop, size, parts in zip(numpy.cumsum(sizes).tolist(), sizes, groups):
            losses, backward = transformer.loss(
                X[stop - size : stop].T, y[stop - size : stop].T, parts, self.decoder,
                count=len(y) * LENGTH)
            yield losses[0].sum() / LENGTH, backward

    def evaluate(self, batches, between=lambda: None):
        """Return the sequences' mean loss; `between` is called before each batch."""
        loss = total = 0
        for X, y in batches:
            between()
            groups = self.groups[: len(y)]  # few sequences may be left
            loss += sum(float(found) for found, _ in self._losses(X, y, groups))
            total += len(y)
        return loss / total

    def pack(self):
        """Return the whole arrays, from which any number of devices resumes."""
        parts = [resume.pack(*pair) for pair in zip(self.slices, self.trainers)]
        arrays = {key: [part[key] for part in parts] for key in parts[0]}
        for key, found in arrays.items():
            _, axis = self._cut(key)
            arrays[key] = found[0] if axis is None else numpy.concatenate(found, axis)
        return arrays

    def unpack(self, arrays):
        """Restore the arrays of `pack`. Raises `ValueError` if they do not fit."""
        parts = [{} for _ in self.slices]
        for key, whole in arrays.items():
            i, axis = self._cut(key)
            own = [whole] * len(parts)
            if axis is not None:
                resume.checked_array(arrays, key, self.params[i])
                ends = numpy.cumsum([own[i].shape[axis] for own in self.slices])
                own = numpy.split(whole, ends[:-1], axis)
            for part, x in zip(parts, own):
                part[key] = x
        for part, *pair in zip(parts, self.slices, self.trainers):
            resume.unpack(part, *pair)

    def _cut(self, key):
        """Return (number of the weight, split axis) of an array of a checkpoint."""
        found = re.fullmatch(r"(param|state)\.(\d+)(\.\d+)?", key)
        i = int(found[2]) if found else len(self.names)
        name = dict(enumerate(self.names)).get(i, "")
        return i, transformer.CUT.get(name.split(".")[-1])


def _slice(name, x, devices):
    """Return a parameter: the array `x`, on all `devices`."""
    adds = "add" if name == "table" else "write"  # the table's gradient has two sources
    p = gluon.Parameter(name, grad_req=adds, shape=x.shape, dtype=x.dtype)
    p.initialize("zeros", ctx=devices)
    p.set_data(x)
    return p
