"""A text from each worker of a job to all of them, through the store."""

import mxnet as mx
import numpy

#: Beyond the numbers of a network's parameters.
FIRST_KEY = 2**30
LENGTH = 4096  # bytes of a text, at most
#: Numbers of a key. More than `MXNET_KVSTORE_BIGARRAY_BOUND` on one worker alone,
#: and the workers would send them to different servers.
PIECE = 64


def exchange(kv, text):
    """Give `text` to all workers; return what each of them gave, a list by rank.

    `kv`: a store of a `dist` type, before its optimizer is set and its weights are
    put in. `text`: at most `LENGTH` bytes in UTF-8, else `ValueError`. Every worker
    must call this once: it waits for all.
    """
    own = text.encode()
    if len(own) > LENGTH:
        raise ValueError(f"{len(own)} bytes: give a text of {LENGTH} at most")
    if "async" in kv.type:  # its servers add nothing up unless told how
        kv.set_optimizer(mx.optimizer.SGD(learning_rate=-1, wd=0))
    rows = numpy.zeros((kv.num_workers, LENGTH), "float32")
    rows[kv.rank, : len(own)] = list(own)
    pieces = [mx.nd.array(piece) for piece in rows.reshape(-1, PIECE)]
    keys = list(range(FIRST_KEY, FIRST_KEY + len(pieces)))
    kv.init(keys, [mx.nd.zeros(PIECE) for _ in keys])
    kv.push(keys, pieces)
    # In an asynchronous store a worker has to wait until the others have pushed.
    finish(kv)
    kv.pull(keys, out=pieces)
    finish(kv)
    rows = numpy.stack([piece.asnumpy() for piece in pieces]).reshape(rows.shape)
    return [bytes(row.astype("uint8")).rstrip(b"\0").decode() for row in rows]


def finish(kv):
    """Wait until this worker's requests are done, and until all workers are here."""
    mx.nd.waitall()
    kv._barrier()
