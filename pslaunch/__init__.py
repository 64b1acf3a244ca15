"""Jobs of workers, servers and a scheduler, started and supervised.

    import pslaunch

    pslaunch.run(["python", "train.py"], num_workers=2).returncode
    pslaunch.call(function, 0.1, num_workers=2)  # function(kv, 0.1) in each worker

On the command line: `python -m pslaunch -n 2 -s 1 python train.py`. Servers and
scheduler are MXNet's own, ps-lite in `libmxnet.so`. As with MXNet's launcher,
environment variables tell each process what it is. But that launcher waits forever
when a process dies, and its exit code means nothing.

    the request        __main__ (flags), calls (functions), plan (settings and hosts)
    from start to end  runner, supervise (one start), job (its outcome and logs)
    launchers          crew (agents; local), ssh, submitted (mpi, slurm, sge, yarn)
    run as programs    agent (also the watchdog), node, calls
    shared             processes (and ports), channel, temporary

Developed in the chapter *Roles, keys and shards*.
"""

from importlib import import_module

_FILES = {
    "call": "calls", "call_job": "calls", "run": "runner",
    "Job": "job", "LaunchError": "job",
}


def __getattr__(name):
    """Import on first access: a node does not need the cloudpickle of `call`."""
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_FILES[name]}"), name)
