"""The examples of a training run, and how a worker's devices share its minibatches."""

from d2l_ext.data.sets import Batches
from d2l_ext.data_parallel.minibatch import shard_sizes


def train_and_test_batches(job, dataset, rank, num_workers):
    """Return two `Batches`: the training examples of worker `rank`, and the held-out
    ones.

    Raises `ValueError` if the devices, or the groups of `--tensor`, cannot split a
    minibatch.
    """
    test_iter = Batches(dataset.test_X, dataset.test_y, job.batch_size)
    train_iter = Batches(dataset.train_X, dataset.train_y, job.batch_size, shuffle=True,
                         seed=job.seed, num_parts=num_workers, part_index=rank)
    num_devices, loads = len(job.places) // job.tensor, job.work_load_list
    if job.tensor > 1 and loads and len(loads) != num_devices:
        raise ValueError(f"--work-load-list has {len(loads)} numbers: give one for each"
                         f" of the {num_devices} groups of {job.tensor} devices")
    fewest = min(shard_sizes(job.batch_size, num_devices, loads))
    if fewest < job.accumulate:
        raise ValueError(
            f"--accumulate {job.accumulate}: a device has {fewest} examples of a "
            f"minibatch of {job.batch_size}: give at most that number of pieces"
        )
    rest = train_iter.own % job.batch_size
    if 0 < rest < num_devices:
        raise ValueError(
            f"the last minibatch of an epoch would have {rest} of {train_iter.own:,} "
            f"examples for {num_devices} devices: choose another --batch-size or "
            "--num-examples"
        )
    return train_iter, test_iter
