"""The connection of a worker to the others of its job."""

import os

import mxnet as mx

from d2l_ext.clinic import flight_recorder
from d2l_ext.kvstore import ring

from . import resume

#: Seconds per call of a ring: rank 0 evaluates alone; a death is noticed at once.
PATIENCE = 600


def join_job(kv_store, held):
    """Join the job: a ring, or MXNet's store of that name. Waits for all workers.

    `held`: an `ExitStack`, which leaves the ring when it is closed.
    """
    is_ring = kv_store == "ring"
    kv = ring.join(PATIENCE) if is_ring else mx.kv.create(kv_store)
    if folder := os.environ.get(flight_recorder.FOLDER):
        # A repeated start must not find the records of the last one.
        start = f"start-{os.environ.get(resume.START, '1')}"
        flight_recorder.attach(kv, os.path.join(folder, start), PATIENCE)
    return held.enter_context(kv) if is_ring else kv
