"""How a start of a job goes wrong."""

import signal

#: The code of a process that cannot be reached any more, as of ssh.
LOST = 255


class Failed(Exception):
    """The job has failed. `code`: of the whole job; `culprit`: (role, rank) or None."""

    def __init__(self, cause, code=1, culprit=None):
        self.code, self.culprit = code, culprit
        super().__init__(cause)


class NotReady(Exception):
    """The nodes of a start did not find each other: it may be repeated."""

    def __init__(self, cause, culprit=("scheduler", 0)):
        self.culprit = culprit
        super().__init__(cause)


def how(code):
    """In words, how a process ended with `code`, a `Popen`'s."""
    if code >= 0:
        return f"ended with code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def code_of(code):
    """The same code as of a shell: 128 and the number of the signal."""
    return code if code >= 0 else 128 - code
