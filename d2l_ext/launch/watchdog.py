"""Ends all processes of a job when its launcher is gone, however it went.

Run as a program, before any process of the job: `watchdog.py JOB CANCEL [PATH …]`. It
waits for the end of its standard input, whose other end the launcher holds, and no
signal can keep the system from closing that. Then it ends the job and, when the
launcher did not say a word before, runs CANCEL, a list of words in JSON that may be
empty, and removes files and folders. It imports the standard library alone, so that it
starts in a moment.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time

#: The variable by which the processes of a job are known, and their children too.
MARK = "D2L_EXT_JOB"


def members(job):
    """Process ids of all that runs with the mark of `job`, in whatever group."""
    mark, found = f"{MARK}={job}".encode(), []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    if mark in file.read().split(b"\0"):
                        found.append(int(name))
            except OSError:  # it has ended, or is another user's
                continue
    return found


def end(job, grace=2.0, wait=5.0):
    """Send SIGTERM to all of `job`, after `grace` seconds SIGKILL; wait until gone.

    Returns the ids of those that were still there after `wait` more seconds.
    """
    for signum, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, wait)):
        until, told = time.monotonic() + seconds, set()
        while True:
            left = members(job)
            for pid in set(left) - told:  # one may start others meanwhile
                told.add(pid)
                _send(pid, signum)
            if not left:
                return []
            if time.monotonic() > until:
                break
            time.sleep(0.02)
    return left


def _send(pid, signum):
    try:
        os.kill(pid, signum)
    except OSError:
        pass


def main(job, words, *paths):
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)
    word = sys.stdin.buffer.read()
    end(job)
    if not word:
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
