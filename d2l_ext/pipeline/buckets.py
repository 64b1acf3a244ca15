"""Sequences of different lengths: batches by length, one bound graph per length."""

from bisect import bisect_left

import mxnet as mx
import numpy
from mxnet.io import DataBatch, DataDesc, DataIter

from ..checks import whole_number
from .graph import bind

#: The label of padding: its loss does not count.
PAD = -1


def sentences(text):
    """Cut a text at line ends and at full stops before a space: a list of strings.

    Sentences of a single character are skipped: they have no next character to
    predict. Raises `ValueError` for a text without a longer sentence.
    """
    lines = text.replace(". ", ".\n").splitlines()
    found = [line.strip() for line in lines if len(line.strip()) > 1]
    if not found:
        raise ValueError(
            f"the text has {len(text)} characters, but no sentence of at least two: "
            "give a longer text"
        )
    return found


def choose_lengths(lengths, number):
    """Return up to `number` bucket lengths, ascending, with similar shares of the
    sequences.

    `number`: from 1. `lengths`: of the sequences, at least one; for `BucketIter` in
    time steps, one less than the characters. The last bucket has the longest length.
    """
    ordered = sorted(lengths)
    last = [(i + 1) * len(ordered) // number - 1 for i in range(number)]
    return sorted({ordered[max(i, 0)] for i in last})


class BucketIter(DataIter):
    """Minibatches of sequences of similar length, time first.

    `sequences`: lists of character numbers; the last one is only a label. `lengths`:
    the buckets, in time steps. Padding after a sequence's end has data 0 and the label
    `PAD`; the last batch of a bucket is filled with empty sequences. `batch_size`: N.
    `states`: shapes of further inputs, which stay zero: {name: shape}. Each `reset`
    draws a new order of batches, the same in every run.

    A batch has `bucket_key` T, `data[0]` and `label[0]` (T, N), float32, and `count`,
    the number of labels that are characters. `provide_data` and `provide_label` of the
    iterator are the largest bucket's, as Module expects. Raises `ValueError` without
    sequences, for one that is below two characters or fits no bucket, and for a bucket
    or `batch_size` below 1. Follows `bucket_io` of MXNet's LSTM examples. Developed in
    *Buckets*.
    """

    def __init__(self, sequences, lengths, batch_size, states=None):
        super().__init__(batch_size)
        _check(sequences, lengths, batch_size)
        lengths, self.states = sorted(set(lengths)), states or {}
        self._rng = numpy.random.RandomState(0)
        by_length = {T: [] for T in lengths}
        for row in sequences:
            T = lengths[bisect_left(lengths, len(row) - 1)]
            by_length[T].append(row)
        self._batches = [
            self._batch(T, rows[i : i + batch_size])
            for T, rows in by_length.items()
            for i in range(0, len(rows), batch_size)
        ]
        self.default_bucket_key = lengths[-1]
        self.provide_data, self.provide_label = self._describe(lengths[-1])
        self.reset()

    def reset(self):
        """Begin an epoch: the same batches, in a new order."""
        self._order = list(self._rng.permutation(len(self._batches)))

    def next(self):
        """Return the next batch, a `DataBatch`; `StopIteration` after the last one."""
        if not self._order:
            raise StopIteration
        return self._batches[self._order.pop()]

    def _batch(self, T, rows):
        N = self.batch_size
        X = numpy.zeros((N, T), "float32")
        y = numpy.full((N, T), PAD, "float32")
        for n, row in enumerate(rows):
            X[n, : len(row) - 1], y[n, : len(row) - 1] = row[:-1], row[1:]
        # From one row per sentence to one row per time step, the layout of the layers.
        X, y = (mx.nd.array(a.T) for a in (X, y))  # (T, N)
        zeros = [mx.nd.zeros(shape) for shape in self.states.values()]
        describe_data, describe_label = self._describe(T)
        batch = DataBatch([X, *zeros], [y], pad=N - len(rows), bucket_key=T,
                          provide_data=describe_data,
                          provide_label=describe_label)
        batch.count = sum(len(row) - 1 for row in rows)
        return batch

    def _describe(self, T):
        steps = (T, self.batch_size)
        data = [DataDesc("data", steps, layout="TN")]
        data += [DataDesc(n, shape, layout="NC") for n, shape in self.states.items()]
        return data, [DataDesc("softmax_label", steps, layout="TN")]


def widen(batch, T):
    """Return data and labels of `batch`, padded to T time steps: (X, y), (T, N)."""
    X, y = batch.data[0].asnumpy(), batch.label[0].asnumpy()
    more = [(0, T - len(X)), (0, 0)]
    return numpy.pad(X, more), numpy.pad(y, more, constant_values=PAD)


def padding(batches):
    """Return the share of padding in `batches`, 0 to 1."""
    batches = list(batches)
    places = sum(b.bucket_key * b.data[0].shape[1] for b in batches)
    return 1 - sum(b.count for b in batches) / places


def bind_all(unroll, lengths, group2ctx, params):
    """Bind each length; all share the parameters, gradients and memory of the longest.

    `unroll(T)`: returns the symbol for T time steps and the shapes of its inputs,
    by name. `lengths`: of the buckets. `group2ctx`, `params`: as in `pipeline.bind`,
    whose errors are raised. Returns {T: `Pipeline`}. Developed in *Buckets*.
    """
    bound, longest = {}, None
    # The longest first, so that the others fit into its memory.
    for T in sorted(lengths, reverse=True):
        symbol, shapes = unroll(T)
        values = None if longest else params
        bound[T] = bind(symbol, group2ctx, shapes, values, shared=longest)
        longest = longest or bound[T]
    return bound


def _check(sequences, lengths, batch_size):
    if not len(sequences):
        raise ValueError("no sequences: the text is empty, or all were skipped")
    whole_number("batch_size", batch_size)
    whole_number("the shortest bucket", min(lengths, default=0))
    for i, row in enumerate(sequences):
        if len(row) < 2:
            raise ValueError(
                f"sequence {i} has {len(row)} characters: it needs at least two, one "
                "to read and one to predict"
            )
        if len(row) - 1 > max(lengths):
            raise ValueError(
                f"sequence {i} has {len(row) - 1} time steps, the largest bucket "
                f"{max(lengths)}: add a bucket, or leave the sequence out"
            )
