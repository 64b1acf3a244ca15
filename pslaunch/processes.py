"""The processes of a job on this host: who belongs to it, and how they are ended.

Run as a program, `processes.py JOB CANCEL [PATH …]`, before any process of the job,
this file is the watchdog, which starts them, and ends them with their launcher.

    launcher === socket === watchdog ---- the processes, and what they start

Its standard input is a socket whose other end the launcher holds, and no signal can
keep the system from closing that. Then it ends the job and, when the launcher did not
say `well` before, runs CANCEL, a list of words in JSON that may be empty, and removes
files and folders. When it is killed itself, the system ends the processes, and the
launcher the job. What a process leaves behind becomes a child of the watchdog, whatever
it has done to its variables, its group and its session: Linux calls that a subreaper.

Standard library alone: the watchdog starts in a moment, and agents, which use this file
too, run on hosts that have no packages.
"""

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time

#: The variable by which the processes of a job are known, and their children too.
MARK = "D2L_EXT_JOB"
DEATH, SUBREAPER = 1, 36  # what prctl calls PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER
GREETING = b"d2l_ext agent\n"  # of the watchdog, and of an agent
LOOK = 1.0  # seconds from one look for stopped processes to the next, at least


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
               if parent in new and pid not in found]  # fmt: skip
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
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=lambda: prctl(DEATH, signal.SIGKILL), **options,  # noqa: PLW1509
    )  # fmt: skip


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


class Watchdog:
    """Serves the launcher at the other end of standard input."""

    def __init__(self):
        self.inbox, self.well = b"", False
        self.nodes = {}  # id to (number, `Popen`)
        self.halted = {}  # number to the id of what was stopped

    def tell(self, **message):
        os.write(0, json.dumps(message).encode() + b"\n")

    def serve(self):
        """Until the launcher is gone, or says that all went well."""
        woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        os.write(0, GREETING)
        parent, due = os.getppid(), 0.0
        while os.getppid() == parent and not self.well:
            ready, _, _ = select.select([0, woken], [], [], LOOK)
            if woken in ready:
                os.read(woken, 4096)
            if 0 in ready and not self._receive():
                return
            self._take_ended()
            now = time.monotonic()
            if now > due and self.nodes:
                self._look_for_halted()
                due = now + max(LOOK, 50 * (time.monotonic() - now))

    def _receive(self):
        new = os.read(0, 65536)
        *lines, self.inbox = (self.inbox + new).split(b"\n")
        for line in lines:
            message = json.loads(line)
            getattr(self, "do_" + message.pop("do"))(**message)
        return new

    def do_well(self):
        self.well = True

    def do_start(self, number, command, env, folder, log):
        try:
            with open(log, "ab") as file:
                process = popen(command, env=env, cwd=folder, stdout=file)
        except OSError as error:
            text = f"{error.filename or command[0]}: {error.strerror}"
            self.tell(**{"is": "error", "number": number, "text": text})
        else:
            self.nodes[process.pid] = number, process
            self.tell(**{"is": "begun", "number": number, "pid": process.pid})

    def _take_ended(self):
        for pid, code in reap():
            if pid in self.nodes:
                number, process = self.nodes.pop(pid)
                process.returncode = code
                with contextlib.suppress(OSError):  # there is nobody in its group
                    os.killpg(pid, signal.SIGKILL)
                self.tell(**{"is": "ended", "number": number, "code": code})

    def _look_for_halted(self):
        rows = table()
        for pid, (number, _) in self.nodes.items():
            found = halted(pid, rows)
            if found != self.halted.get(number):
                self.halted[number] = found
                self.tell(**{"is": "halted", "number": number, "pid": found})


def main(job, words, *paths):
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(signum) != signal.SIG_IGN:  # which processes would inherit
            signal.signal(signum, lambda *_: None)
    adopt()
    watchdog = Watchdog()
    with contextlib.suppress(OSError):  # the launcher is gone
        watchdog.serve()
    end(job, under=os.getpid())
    if not watchdog.well:
        cancel(json.loads(words))
        for path in paths:
            shutil.rmtree(path, ignore_errors=True)


def cancel(words, seconds=20):
    """Run the words that cancel a job of a scheduler's, whatever comes of it."""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        if words:
            subprocess.run(words, check=False, stdin=subprocess.DEVNULL,
                           timeout=seconds, capture_output=True)  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
