"""A step that needs one core and nothing else: the test whether cores are free."""

import sys

from .worker import serve


class Spin:
    """Counts. No memory, no threads, no library that could use a second core."""

    def __init__(self):
        self.about = {"python": sys.version.split()[0]}

    def step(self):
        total = 0
        for i in range(1_000_000):
            total += i
        return total


if __name__ == "__main__":
    serve(Spin())
