"""How long a chapter runs: what it says is what was recorded."""

import pytest
from notebook_cells import ROOT, chapters, read
from rules_learning import HOW_LONG

from made_by import durations

RECORDED = durations(ROOT)
#: How a chapter says that it runs in less than so many seconds.
BOUNDS = {"ten seconds": 10, "twenty seconds": 20, "half a minute": 30,
          "a minute": 60, "two minutes": 120, "five minutes": 300}
#: How much slower than the usual the machine may be that recorded a chapter: two cores
#: of one kind were seen to differ by this factor.
SLOWER = 3


def says(page):
    """The bound that a chapter names, in seconds; None for other words."""
    words = HOW_LONG.search(read(chapters()[page]).cells[0].source).group()
    return BOUNDS.get(words.replace("in less than ", ""))


@pytest.mark.parametrize("page", chapters())
def test_a_chapter_runs_about_as_long_as_it_says(page):
    assert page in RECORDED, "make rerun CHAPTERS=…"
    seconds = RECORDED[page]["seconds"]
    assert seconds / SLOWER <= says(page) <= max(20, 4 * seconds)
