"""Builds a `Training` from the description of its job."""

from functools import partial

from . import examples, parts, resume, ways
from .fit import Progress, StepProfiler, Training


def prepare(job, held):
    """Return the `Training` that `job` describes, and a function of its result.

    `job`: from `job.from_flags`. `held`: an `ExitStack`, closed after the last
    checkpoint. Raises `ValueError` or `OSError`, with the problem.
    """
    way = ways.chosen_way(job)
    dataset = way.load(job)
    # A single process is worker 0 of 1. From here on, the workers of a job are
    # connected, and none may exit silently.
    kv = way.connect(job, held)
    rank, num_workers = (kv.rank, kv.num_workers) if kv else (0, 1)
    train_iter, test_iter = examples.train_and_test_batches(
        job, dataset, rank, num_workers)
    replicas = way.build(job, dataset, kv)
    report = Progress(job.num_epochs, train_iter.num_steps, replicas.measure,
                      job.disp_batches)
    profiled = job.profile and rank == 0
    training = Training(
        replicas, train_iter, test_iter if rank == 0 else None, job.num_epochs,
        partial(learning_rate, job), report, job.save_every,
        saves=rank == 0 or job.save_shards,
        profiler=StepProfiler(job.profile, job.places) if profiled else None,
        checkpoints=parts.checkpoints(job, replicas.params, kv),
        settings=resume.settings(job, dataset, num_workers),
    )
    resume.start(training, job.resume, kv, held)
    return training, partial(_result, kv)


def learning_rate(job, epoch):
    """Return the rate in `epoch`, from 0: `--lr`, reduced by `--lr-step-epochs`."""
    return job.lr * job.lr_factor ** sum(epoch >= e for e in job.lr_step_epochs)


def _result(kv, training):
    """Return the last line of a run. `kv`: the store of a job, or None."""
    history, settings = training.state.history, training.settings
    seconds = sum(history)
    return {
        "seconds_per_epoch": round(seconds / len(history), 4),
        "samples_per_second": round(
            len(history) * training.train_iter.own / seconds, 1),
        **{name: settings[name] for name in ("devices", "network", "dataset",
                                             "kv_store")},
        **({"shard": settings["shard"]} if settings["shard"] != "none" else {}),
        **({"tensor": settings["tensor"]} if settings["tensor"] > 1 else {}),
        "epochs": training.state.epoch,
        "steps": training.num_steps,
        **({"rank": kv.rank, "num_workers": kv.num_workers} if kv else {}),
    }
