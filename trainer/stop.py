"""Signals that ask a training to end: noted, and answered between two steps."""

import signal
from contextlib import contextmanager


class Stopped(Exception):
    """Training was asked to stop, and did so between two steps."""

    def __init__(self, signum):
        self.signum = signum
        super().__init__(signal.Signals(signum).name)


class Stop:
    """Notes SIGTERM and SIGINT inside a `with`, so that a step is finished first."""

    signum = None

    def __enter__(self):
        signums = (signal.SIGTERM, signal.SIGINT)
        self._before = {n: signal.signal(n, self._note) for n in signums}
        return self

    def __exit__(self, *_):
        for signum, handler in self._before.items():
            signal.signal(signum, handler)

    def _note(self, signum, _):
        self.signum = signum

    def check(self):
        """Raise `Stopped` if a signal came."""
        if self.signum:
            raise Stopped(self.signum)


@contextmanager
def interruptible():
    """In this `with` the first SIGINT is a `KeyboardInterrupt`, the others are nothing.

    A second one would hit what the first one has begun to clear away.
    """

    def once(*_):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, once)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
