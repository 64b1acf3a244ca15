"""The writable memory of this process, to look for what a library keeps in it."""

#: Linux lists and opens the memory of a process under these names.
MAPS, MEMORY = "/proc/self/maps", "/proc/self/mem"


class Snapshot:
    """A copy of this process's writable memory, as it is now.

        before = memory.Snapshot()
        assert before.holds(packed)  # packed: computed after the snapshot

    What you look for must be made after the snapshot, or it finds itself. Takes
    about half a second and as much memory as the process uses. Linux only:
    raises `FileNotFoundError` elsewhere.

    Developed in the chapter *Gradient compression*.
    """

    def __init__(self):
        with open(MAPS) as maps:
            spans = [_span(line) for line in maps if " rw" in line and "[v" not in line]
        with open(MEMORY, "rb", buffering=0) as memory:
            self._regions = [_read(memory, *span) for span in spans]

    def holds(self, array):
        """Whether the bytes of a NumPy array lie somewhere in it, one after another."""
        wanted = array.tobytes()
        return any(wanted in region for region in self._regions)


def _span(line):
    start, end = line.split()[0].split("-")
    return int(start, 16), int(end, 16)


def _read(memory, start, end):
    try:
        memory.seek(start)
        return memory.read(end - start)
    except OSError:  # reserved, but not to be read: a guard page, a device's buffer
        return b""
