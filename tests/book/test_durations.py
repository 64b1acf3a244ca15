"""How long a chapter runs: what it says is what was recorded."""

from pathlib import Path

import pytest
from notebook_cells import ROOT, chapters, read
from rules_learning import HOW_LONG

from book import durations, record_duration

RECORDED = durations(ROOT)
#: How a chapter says that it runs in less than so many seconds.
BOUNDS = {"ten seconds": 10, "twenty seconds": 20, "half a minute": 30,
          "a minute": 60, "two minutes": 120, "five minutes": 300}  # fmt: skip


def says(page):
    """The bound that a chapter names, in seconds; None for other words."""
    words = HOW_LONG.search(read(chapters()[page]).cells[0].source).group()
    return BOUNDS.get(words.replace("in less than ", ""))


@pytest.mark.parametrize("page", chapters())
def test_a_chapter_runs_in_less_time_than_it_says_but_not_in_much_less(page):
    assert page in RECORDED, "run tools/book.py rerun --time on it"
    seconds = RECORDED[page]["seconds"]
    assert seconds <= says(page) <= max(20, 4 * seconds)


def test_nothing_is_recorded_that_is_no_chapter():
    assert set(RECORDED) <= set(chapters())


def test_a_record_keeps_the_others(tmp_path):
    (tmp_path / "chapters").mkdir()
    for name, seconds in (("two", 2.04), ("one", 1), ("two", 3)):
        record_duration(tmp_path, Path(f"chapters/{name}.ipynb"), seconds)
    recorded = durations(tmp_path)
    assert list(recorded) == ["chapters/one", "chapters/two"]
    assert recorded["chapters/two"]["seconds"] == 3
    assert set(recorded["chapters/one"]) == {"seconds", "cores", "date"}
