"""How often each constant of this machine occurs in a step: one row per case.

A *case* is a tuple: what is run, then its numbers. Devices are CPU contexts, so all of
them share the machine's `cores`: two messages at once take no longer than one if there
are two cores, three do. `crowd` counts that.
"""

from d2l_ext.data_parallel.lenet import SHAPES
from d2l_ext.scale import pipelines

FLOAT32 = 4  # bytes
#: Rows and columns of the layers in `pipeline`, rows' width in `layerwise`.
PIPELINE_WIDTH, BLOCK_WIDTH = 512, 1024
#: The gradients of LeNet: how many arrays, and their bytes.
LENET_ARRAYS = len(SHAPES)


def crowd(tasks, cores):
    """How many times as long `tasks` at once take as one: tasks/cores, from 1 on."""
    return max(1.0, tasks / cores)


def reduce_row(way, k, nbytes, cores):
    """(1, rounds, bytes): a start, and α and β of an allreduce on `k` devices.

    The rounds of `traffic.seconds`. In a round of the ring all `k` devices send at
    once, in one of the tree half of them: there they crowd.
    """
    rounds, message, at_once = {
        "naive": (2 * (k - 1), nbytes, 1),
        "tree": (2 * (k - 1).bit_length(), nbytes, k // 2),
        "ring": (2 * (k - 1), nbytes / k, k),
    }[way]
    return 1, rounds, rounds * message * crowd(at_once, cores)


def store_row(k, nbytes):
    """(1, N, k·N): push and pull of `k` devices over `local` or `device`.

    The store is one reader of all and one writer to all, so it is a server.
    """
    return 1, nbytes, k * nbytes


def dist_row(workers, arrays, nbytes):
    """(1, messages, N, n·N): push and pull over `dist_sync`, worker and server.

    The servers do not occur: on one machine they have the same cores. A second one
    is work for the same cores, no help, as long as they are busy.
    """
    return 1, workers * arrays, nbytes, workers * nbytes


def step_row(k, gradient, cores):
    """(computing, k): a data-parallel step, `gradient` seconds for a device's share.

    The second constant is the time of Python, which asks every device for its work.
    """
    return crowd(k, cores) * gradient, k


def stage_row(blocks, rows, chunks):
    """(m, m·b, m·b·r): a stage of b dense blocks, m micro-batches of r rows."""
    return chunks, chunks * blocks, chunks * blocks * rows


def block_row(rows, hidden):
    """(1, hidden, rows·hidden): a dense block forward and backward."""
    return 1, hidden, rows * hidden


def times(row, constants):
    """Seconds: Σ rowᵢ·constantᵢ."""
    return sum(x * c for x, c in zip(row, constants))


def pipeline_seconds(blocks, rows, chunks, constants):
    """A step of a pipeline: what stages take alone, put into `pipelines.seconds`."""
    each = [times(stage_row(b, rows, 1), constants) for b in blocks]
    return pipelines.seconds([t / 3 for t in each], [2 * t / 3 for t in each], chunks)
