"""Jobs of workers, servers and a scheduler, started and supervised.

    import pslaunch as launch

    launch.run(["python", "train.py"], num_workers=2).returncode
    launch.call(function, 0.1, num_workers=2)  # function(kv, 0.1) in each worker

The same on the command line: `python -m pslaunch -n 2 -s 1 python train.py`.
Servers and scheduler are MXNet's own, ps-lite in `libmxnet.so`. Environment variables
tell each process what it is, which is all that is taken from MXNet's launcher: that
waits for ever when a process dies, and gives an exit code that means nothing.

    what is asked for      __main__ (flags), plan, calls (functions)
    from start to end      runner, start (one start), supervise, job (what became of it)
    what a process is told environment, ports, hosts
    launchers              crew (agents, here and elsewhere), local, ssh, mpi, slurm,
                           sge, yarn, submitted (what the last four share)
    run as programs        agent (the watchdog, too), door, node, calls
    what these need        processes, channel, temporary

Developed in the chapter *Roles, keys and shards*.
"""

from importlib import import_module

_FILES = {
    "call": "calls", "call_job": "calls", "run": "runner",
    "Job": "job", "LaunchError": "job",
}


def __getattr__(name):
    """Brought when it is asked for: a node needs no cloudpickle, which `call` does."""
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_FILES[name]}"), name)
