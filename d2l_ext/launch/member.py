"""A process of a job at the other end of a channel."""

import os

from .failures import LOST


class Member:
    """A process at the other end of a channel; to be used like a `Popen`."""

    pid = None  # here

    def __init__(self, channel, log):
        self.channel = channel
        self.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        self.returncode = self.why = None
        self.listening = False

    def write(self, text):
        """Append to its log what it has printed."""
        while text:
            text = text[os.write(self.log, text) :]

    def poll(self):
        """The exit code, or None while it runs."""
        return self.returncode

    def wait(self):
        """The exit code; `Crew.end` has waited."""
        return self.returncode

    def close(self):
        """Nothing more is heard of it; it is lost, if it was not seen to end."""
        self.set(LOST, "not heard of at the end")
        os.close(self.log)

    def set(self, code, why=None):
        """It has ended, with `code`, or is lost, `why`."""
        if self.returncode is None:
            self.returncode, self.why = code, why
