"""The launcher `local`: every node is a process on this machine.

A launcher is a module with a function `start`.
"""

import subprocess


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
