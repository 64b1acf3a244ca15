"""A process of a job that somebody else has started: the watchdog here, or an agent."""

import os

from .failures import LOST


class Process:
    """A process that the watchdog has started; to be used like a `Popen`.

    `pid`: None until it has begun, and elsewhere. `halted`: the id of the process that
    a signal has stopped, this one or one that it has started; else None.
    """

    pid = returncode = why = halted = None

    def poll(self):
        """The exit code, or None while it runs."""
        return self.returncode

    def set(self, code, why=None):
        """It has ended, with `code`, or is lost, `why`."""
        if self.returncode is None:
            self.returncode, self.why, self.halted = code, why, None


class Member(Process):
    """A process at the other end of a channel to an agent."""

    def __init__(self, channel, log):
        self.channel = channel
        self.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        self.listening = False

    def write(self, text):
        """Append to its log what it has printed."""
        while text:
            text = text[os.write(self.log, text) :]

    def close(self):
        """Nothing more is heard of it; it is lost, if it was not seen to end."""
        self.set(LOST, "not heard of at the end")
        os.close(self.log)
