"""Whose `mpirun` is here: several programs of that name have different flags.

Standard library alone: the doctor asks before anything is installed.
"""

import subprocess

OPEN_MPI = "Open MPI"
#: What is in the answer to `mpirun --version`, and whose it is then.
KNOWN = {"(Open MPI)": OPEN_MPI, "Intel(R) MPI": "Intel MPI", "HYDRA": "MPICH"}


def implementation(mpirun="mpirun"):
    """Whose `mpirun` it is: 'Open MPI', 'MPICH', …; None when there is none."""
    try:
        done = subprocess.run([mpirun, "--version"], check=False, text=True, timeout=30,
                              capture_output=True, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return None
    said = done.stdout + done.stderr
    names = [name for mark, name in KNOWN.items() if mark in said]
    return [*names, said.strip().partition("\n")[0] or "unknown origin"][0]
