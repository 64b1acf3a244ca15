"""The launcher `local`: every node is a process on this machine.

Its processes listen on 127.0.0.1, and see the launcher's files.
"""

import subprocess


def check(plan):
    """Raise `ValueError` when `plan` names hosts, or how to reach them."""
    for name in ("hosts", "interface", "sync_dst_dir", "ssh_config", "submit_args"):
        if getattr(plan.where, name):
            raise ValueError(f"{name}: the launcher local knows this machine alone, "
                             "name another one")  # fmt: skip


def start(command, env, log):
    """Start one process of a job and return its `Popen`, without waiting.

    `command`: a list of strings, given to the system as it is: no shell reads it.
    `env`: all variables. `log`: a file open for writing, for all that it prints.

    A session of its own, hence a process group: Ctrl-C in a terminal reaches the
    launcher alone, which ends the others. Raises `OSError` when there is no such
    command.
    """
    return subprocess.Popen(
        command, env=env, stdin=subprocess.DEVNULL, stdout=log,
        stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
