"""Says whether the book can run on this machine, on what, and why not on more.

    python -m bookkit.doctor           every finding, the verdict, the next command
    python -m bookkit.doctor --json    the same for a program

It needs neither MXNet nor anything else that has to be installed. A module here finds
one kind of thing; `examine.py` puts them together.

Described on the page *Setting up a GPU box*.
"""
