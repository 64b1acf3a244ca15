"""Jobs of workers, servers and a scheduler, started and supervised on one machine.

    from d2l_ext import launch

    launch.run(["python", "train.py"], num_workers=2).returncode
    launch.call(function, 0.1, num_workers=2)  # function(kv, 0.1) in each worker

The same on the command line: `python -m d2l_ext.launch -n 2 -s 1 python train.py`.
Workers, servers and the scheduler are MXNet's own, ps-lite in `libmxnet.so`. They
are told what they are by environment variables (`DMLC_ROLE`, …), which is all that is
taken from MXNet's launcher: its tracker waits for ever when a process dies, and gives
an exit code that means nothing.

Developed in the chapter *Roles, keys and shards*.
"""

from .calls import call, call_job
from .job import Job, LaunchError
from .runner import run

__all__ = ["Job", "LaunchError", "call", "call_job", "run"]
