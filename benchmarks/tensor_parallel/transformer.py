"""Whether a decoder over its heads learns as on one device: stored for its chapter.

    make result NAME=transformer
"""

import d2l_ext  # noqa: F401, I001  first: it prepares MXNet's engine

from time import perf_counter

import numpy
from mxnet import npx, optimizer

from d2l_ext.data import text
from d2l_ext.devices import try_all_devices
from d2l_ext.tensor_parallel import transformer

BATCH, T, RATE, STEPS = 32, 64, 2e-3, 210


def learning(most=STEPS):
    """Train at most `most` steps on one device, then on two.

    Returns the `bigrams`' loss there, nats per character, and for each number of
    devices the losses of the first ten steps, the steps done, the seconds, and the
    held-out loss at the end. The clock counts only training.
    """
    npx.set_np()
    ids, held_out, vocab = the_text()
    return {"bigrams": bigrams(ids, held_out, vocab), "vocab": vocab,
            "batch": BATCH, "T": T,
            "runs": [train(ids, held_out, vocab, k, most)
                     for k in (1, 2)]}


def the_text():
    """Return the book's text as numbers: nine tenths to train, one held out."""
    whole = text.load_text()
    characters = text.Vocab(whole)
    ids = characters.encode(whole)
    border = len(ids) * 9 // 10
    return ids[:border], ids[border:], len(characters)


def bigrams(ids, held_out, vocab):
    """Return the held-out loss of a table of pairs, each counted once more."""
    counts = numpy.ones((vocab, vocab))
    numpy.add.at(counts, (ids[:-1], ids[1:]), 1)
    shares = counts / counts.sum(1, keepdims=True)
    return float(-numpy.log(shares[held_out[:-1], held_out[1:]]).mean())


def train(ids, held_out, vocab, k, most):
    decoder = transformer.Decoder(vocab, width=128, heads=4, layers=3)
    parts = transformer.split(transformer.init_params(decoder), try_all_devices(k),
                              decoder)
    updaters = [optimizer.get_updater(optimizer.Adam(learning_rate=RATE))
                for _ in parts]
    losses, clock, steps = [], perf_counter(), 0
    while steps < most:
        for X, y in text.batches(ids, BATCH, T):
            found, backward = transformer.loss(X, y, parts, decoder)
            backward()
            for part, updater in zip(parts, updaters):
                for i, param in enumerate(part.values()):
                    updater(i, param.grad, param)
            npx.waitall()
            steps += 1
            if steps <= 10:
                losses.append(float(found[0].mean()))
            if steps == most:
                break
    spent = perf_counter() - clock
    return {"devices": k, "first": losses, "steps": steps, "seconds": round(spent, 1),
            "held_out": evaluate(held_out, parts, decoder)}


def evaluate(held_out, parts, decoder):
    """Return the loss per character of the held-out text."""
    found = [float(transformer.loss(X, y, parts, decoder)[0][0].mean())
             for X, y in text.batches(held_out, BATCH, T)]
    return float(numpy.mean(found))
