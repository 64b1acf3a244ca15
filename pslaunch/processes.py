"""The processes of a job on this host: who belongs to it, and how they are ended.

Standard library alone: agents, which use this file, run on hosts that have no packages.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import time

#: The variable by which the processes of a job are known, and their children too.
MARK = "D2L_EXT_JOB"
DEATH, SUBREAPER = 1, 36  # what prctl calls PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER


def table(pids=None):
    """These processes, default all: a dict from ids to (state, id of the parent)."""
    found = {}
    for pid in ids() if pids is None else pids:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
            letter, parent = file.read().rpartition(b") ")[2].split(None, 2)[:2]
            found[pid] = letter.decode(), int(parent)
    return found


def ids():
    """Of all processes of this system."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def state(pid):
    """A letter, as in /proc: 'T' for stopped, 'Z' for ended; '' when it is gone."""
    return table([pid]).get(pid, ("", 0))[0]


def tree(root, rows=None):
    """Ids of the descendants of `root` that have not ended, the nearest first.

    `rows`: a `table`; default a new one.
    """
    rows, found, new = table() if rows is None else rows, {}, [root]
    while new:
        new = [pid for pid, (_, parent) in rows.items()
               if parent in new and pid not in found]
        found.update(dict.fromkeys(new))
    return [pid for pid in found if rows[pid][0] != "Z"]


def halted(root, rows):
    """The first of `root` and its descendants that a signal has stopped, or None.

    One that a debugger holds is in another state.
    """
    found = (pid for pid in [root, *tree(root, rows)] if rows.get(pid, "-")[0] == "T")
    return next(found, None)


def environ(pid):
    """The variables with which a process was started, a dict of texts; an empty one
    when it has ended, or is another user's."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
        texts = os.fsdecode(file.read()).split("\0")
        return dict(text.split("=", 1) for text in texts if "=" in text)
    return {}


def node_of(pid):
    """(role, rank) of a process of a job, by its variables; None of any other."""
    env = environ(pid)
    role = env.get("DMLC_ROLE")
    return role and (role, int(env.get(f"DMLC_{role.upper()}_ID", 0)))


def members(job, under=None):
    """Process ids of all that runs with the mark of `job`, or descends from `under`."""
    found = set(tree(under) if under else ())
    found.update(pid for pid in ids() if environ(pid).get(MARK) == job)
    return found - {os.getpid()}


def end(job, grace=2.0, wait=5.0, under=None):
    """Send SIGTERM to all `members`, after `grace` seconds SIGKILL; wait until gone.

    Returns the ids of those that were still there after `wait` more seconds. One that
    has become another user's is let be.
    """
    others = set()
    for signum, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, wait)):
        until, told = time.monotonic() + seconds, set()
        while True:
            left = members(job, under) - others
            for pid in left - told:  # one may start others meanwhile
                told.add(pid)
                try:
                    os.kill(pid, signum)
                except PermissionError:
                    others.add(pid)
                except ProcessLookupError:
                    pass
            if not left:
                return []
            if time.monotonic() > until:
                break
            time.sleep(0.02)
    return sorted(left)


def adopt():
    """Become the parent of what descendants leave behind; `reap` them when they end."""
    ctypes.CDLL(None).prctl(SUBREAPER, 1)


def adopts():
    """Whether this process does."""
    answer = ctypes.c_int()
    ctypes.CDLL(None).prctl(SUBREAPER + 1, ctypes.byref(answer))
    return bool(answer.value)


def popen(command, **options):
    """Start a process that leads a session, and that the system kills with this one.

    For a program without other threads, which could hold a lock.
    """
    prctl = ctypes.CDLL(None).prctl  # loaded before there is a second process
    parent = os.getpid()

    def die_with_parent():
        prctl(DEATH, signal.SIGKILL)
        if os.getppid() != parent:  # it has ended already
            os._exit(1)

    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT,
        start_new_session=True, preexec_fn=die_with_parent, **options,  # noqa: PLW1509
    )


def reap():
    """(id, exit code) of each child that has ended; its id is free only afterwards."""
    with contextlib.suppress(ChildProcessError):
        while True:
            how = os.WEXITED | os.WNOHANG | os.WNOWAIT
            found = os.waitid(os.P_ALL, 0, how)
            if not found:
                return
            by_itself = found.si_code == os.CLD_EXITED
            yield found.si_pid, found.si_status if by_itself else -found.si_status
            os.waitpid(found.si_pid, 0)


def cancel(words, seconds=20):
    """Run the words that cancel a job of a scheduler's, whatever comes of it."""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        if words:
            subprocess.run(words, check=False, stdin=subprocess.DEVNULL,
                           timeout=seconds, capture_output=True)

