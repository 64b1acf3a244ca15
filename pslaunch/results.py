"""What the workers of `launch.call` return, on its way back in a folder."""

from pathlib import Path

from . import values


def leave(folder, start, rank, result):
    """Keep what a worker of start number `start`, from 1, returned."""
    values.save(_path(folder, start, rank), result)


def is_there(folder, start, rank):
    """Whether this worker has left its result."""
    # The .json is written after the arrays that belong to it.
    return Path(f"{_path(folder, start, rank)}.json").exists()


def take(folder, start, num_workers):
    """What all workers of a start returned, by rank."""
    return [values.load(_path(folder, start, rank)) for rank in range(num_workers)]


def _path(folder, start, rank):
    return Path(folder) / f"result-{start}-{rank}"
