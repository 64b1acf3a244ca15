"""Durations expected on this machine, from stored ones and from chapters that ran."""

from statistics import median


class Expected:
    """How long chapters will take on this machine.

    `stored`: {chapter: seconds} where the book was recorded. They are scaled by the
    median ratio of those that have run here.
    """

    def __init__(self, stored):
        self.stored, self.ratios = stored, []

    def ran(self, path, seconds):
        """Note that the chapter `path` took `seconds` here."""
        if self.stored.get(path):
            self.ratios.append(seconds / self.stored[path])

    def seconds(self, paths):
        """Return how long all of `paths` will take; an unknown one is average."""
        usual = median(self.stored.values()) if self.stored else 0
        scale = median(self.ratios) if self.ratios else 1
        return scale * sum(self.stored.get(path, usual) for path in paths)


def about(seconds):
    """Return a duration as one would say it: "about 40 seconds", "about 12 minutes"."""
    if seconds < 95:
        return f"about {max(10, round(seconds, -1)):.0f} seconds"
    return f"about {seconds / 60:.0f} minutes"
