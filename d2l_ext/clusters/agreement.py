"""Settings that must be equal on all workers: each sends its own, all compare."""

import json
import os
import socket

import mxnet as mx
import numpy

#: Variables that decide how workers send and servers receive: name -> default.
WIRE = {"MXNET_KVSTORE_BIGARRAY_BOUND": "1000000", "PS_RESEND": "0",
        "DMLC_PS_VAN_TYPE": "zmq"}
#: The first key here, beyond the keys of a network's parameters.
FIRST_KEY = 2**30
LENGTH = 4096  # the maximum number of bytes of a text
#: Numbers per key. If they exceeded `MXNET_KVSTORE_BIGARRAY_BOUND` on only one worker,
#: workers would send them to different servers.
PIECE = 64


def agree(kv, settings, checkpoints=None):
    """Compare all workers' settings; return the steps whose checkpoints all have.

    `kv`: as in `exchange`. `settings`: a dict of JSON types that must be the same
    on all workers. `checkpoints`: from `checkpoint_steps`, or None.

    Raises `ValueError` on every worker when MXNet's version, a variable of `WIRE` or
    a setting differs, or when there are checkpoints, but none that all workers have;
    the message lists each worker's value. A worker whose values take over `LENGTH`
    bytes raises it alone, and the others wait.

    Developed in the chapter *Faults and recovery*.
    """
    own = {
        "host": os.environ.get("DMLC_NODE_HOST") or socket.gethostname(),
        "alike": {"MXNet": mx.__version__, **wire(), **settings},
        "checkpoints": checkpoints or {},
    }
    cards = [json.loads(text) for text in exchange(kv, json.dumps(own))]
    names = [f"worker {rank} ({card['host']})" for rank, card in enumerate(cards)]
    differing = differences(names, [card["alike"] for card in cards])
    if differing:
        raise ValueError(f"the workers differ: {'; '.join(differing)}. Make them equal")
    return common_steps(names, [card["checkpoints"] for card in cards])


def exchange(kv, text):
    """Send `text` to all workers; return the texts of all, a list by rank.

    `kv`: a `Ring`, or a store of a `dist` type, before its optimizer is set and its
    weights are initialized. `text`: at most `LENGTH` bytes in UTF-8, else `ValueError`.
    Every worker must call this once: it waits for all.
    """
    # Imported here, only for jobs: that file loads d2l, which takes a second.
    from ..kvstore.dist_train import finish

    own = text.encode()
    if len(own) > LENGTH:
        raise ValueError(f"the text has {len(own)} bytes: give at most {LENGTH}")
    if kv.type == "ring":
        rows = numpy.zeros((kv.num_workers, LENGTH), "uint8")
        rows[kv.rank, : len(own)] = list(own)
        return [bytes(row).rstrip(b"\0").decode() for row in kv.allreduce(rows)]
    if "async" in kv.type:  # its servers do not sum unless told to
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


def wire(environ=os.environ):
    """Return the values of `WIRE` in `environ`, default this process's variables."""
    return {name: environ.get(name) or default for name, default in WIRE.items()}


def differences(names, alike):
    """Return a line for each key whose values differ among the dicts `alike`: a list.

    `names`: of their owners. Missing values count as None.
    """
    lines = []
    for key in dict.fromkeys(key for card in alike for key in card):
        values = [card.get(key) for card in alike]
        if any(value != values[0] for value in values):
            has = (f"{value!r} on {name}" for name, value in zip(names, values))
            lines.append(f"{key} is {', '.join(has)}")
    return lines


def common_steps(names, checkpoints):
    """Return the steps, ascending, whose checkpoints are whole and the same on all
    workers.

    `checkpoints`: per worker, a dict from the step, as text, to the checksum. Raises
    `ValueError` when some have any, and no step is common to all.
    """
    common = set.intersection(*(set(own.items()) for own in checkpoints))
    if any(checkpoints) and not common:
        seen = (f"{name}: {', '.join(sorted(own)) or 'none'}"
                for name, own in zip(names, checkpoints))
        raise ValueError(
            "the workers have no whole checkpoint in common, by steps: "
            f"{'; '.join(seen)}. --save-prefix must name a folder that all hosts share"
        )
    return sorted(int(step) for step, _ in common)


def checkpoint_steps(checkpoints):
    """Return steps and checksums of this worker's whole checkpoints: a dict."""
    return {str(step): digest[:16] for step, digest in checkpoints.whole().items()}
