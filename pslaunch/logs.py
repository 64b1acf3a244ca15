"""What the processes of a job print: one file each, read while it grows."""


class Tail:
    """The lines of a growing file, each once. Without the file, none yet."""

    def __init__(self, path):
        self.path, self.place, self.rest = path, 0, b""

    def lines(self, last=False):
        """Lines that are complete since the last call; with `last`, what is left too.

        A part of a line that a process has not ended waits for the next call.
        """
        try:
            with open(self.path, "rb") as file:
                file.seek(self.place)
                new = file.read()
        except FileNotFoundError:
            return []
        self.place += len(new)
        *complete, self.rest = (self.rest + new).split(b"\n")
        if last and self.rest:
            complete, self.rest = [*complete, self.rest], b""
        return [line.decode("utf-8", errors="replace") for line in complete]


def path_of(folder, role, rank):
    """The log of one process."""
    return folder / f"{role}-{rank}.log"


def keep_old(folder, nodes, attempt):
    """Rename the logs of a start that is repeated: `worker-0.log.start-1`, …"""
    for role, rank in nodes:
        path = path_of(folder, role, rank)
        if path.exists():
            path.replace(path.with_name(f"{path.name}.start-{attempt}"))
