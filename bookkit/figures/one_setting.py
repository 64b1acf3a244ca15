"""Two timelines, one line of Python apart: the figure of the book's first page."""

from bookkit import stored

from . import frame

CONTROLS = (frame.Clock("ms", unit="millisecond"),)


def figure(name="one-setting"):
    """Return the figure for a page: both timelines as recorded, on one clock.

    `name`: its id in the page. It shows the stored result `one_setting`.
    On the first page; the cause is found in the chapter *Why is there no speed-up?*
    """
    return frame.figure("one_setting", name, "Clock of both", CONTROLS, {}, data())


def data():
    """Return the stored result `one_setting`."""
    return stored.read("one_setting").data
