"""Cores, thread settings and shared memory."""

import os

from d2l_ext.runtime import SETTINGS, cores

from .finding import NOTE, Finding

#: Below this, MXNet's DataLoader workers, which pass minibatches through shared
#: memory, may die of a bus error. Docker gives a container 64 MB.
SHARED = 256 * 2**20


def examine(environ=os.environ, count=None, shared="/dev/shm"):
    """Return the findings about the processor and its settings."""
    count = count or cores()
    found = [_cores(count)]
    for name, value in SETTINGS.items():
        if environ.get(name, value) != value:
            text = f"{environ[name]}, where the book sets {value}: two CPU devices "
            advice = f"unset {name}"
            found.append(Finding(name, text + "may not run side by side", NOTE, advice))
        else:
            found.append(Finding(name, value))
    return found + _shared_memory(shared)


def _cores(count):
    if count > 1:
        return Finding("cores", str(count))
    text = "1: two CPU devices take turns, and no chapter shows a speed-up"
    return Finding("cores", text, NOTE, "give the machine a second core")


def _shared_memory(path):
    try:
        state = os.statvfs(path)
    except OSError:
        return []
    size = state.f_frsize * state.f_blocks
    if size >= SHARED:
        return []
    text = f"{size // 2**20} MB: too little for a DataLoader with workers"
    return [Finding("shared memory", text, NOTE, "for a container: --shm-size=1g")]
