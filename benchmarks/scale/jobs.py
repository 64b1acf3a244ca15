"""Jobs that measure: exchanges and steps over a `dist_sync` store."""

from pslaunch import call

from . import worker

#: Steps of a case that are not counted.
WARM_UP = 2


def measure(workers, servers, exchanges, batches=(), steps=10, compressed=False,
            deadline=60):  # fmt: skip
    """Run a job; seconds of `steps` steps of each case, of the slowest worker.

    `exchanges`: pairs of (arrays, bytes in all) to push and pull. `batches`: images
    of all workers together, for steps of LeNet. Returns a dict from the pair or the
    batch to a list. A job takes some seconds to start, so it measures many cases.

    Raises `LaunchError` when the job fails. Developed in *A cost model*.
    """
    found = call(work, list(map(list, exchanges)), list(batches), steps + WARM_UP,
                 compressed, num_workers=workers, num_servers=servers,
                 deadline=deadline)  # fmt: skip
    cases = [*map(tuple, exchanges), *batches]
    return {
        case: [max(step) for step in zip(*(seconds[i] for seconds in found))][WARM_UP:]
        for i, case in enumerate(cases)
    }


def work(kv, exchanges, batches, steps, compressed):
    """Runs in each worker: a list of seconds for each case."""
    if compressed:
        worker.compress(kv)
    found = [worker.exchange(kv, i, *case, steps) for i, case in enumerate(exchanges)]
    return found + (worker.train(kv, batches, steps) if batches else [])
