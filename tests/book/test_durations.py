"""How long a chapter runs: what it says is what was recorded."""

import pytest
from notebook_cells import ROOT, chapters, read
from rules_learning import HOW_LONG

import durations

RECORDED = durations.load(ROOT)


def says(page):
    """The bound that a chapter names, in seconds; None for other words."""
    words = HOW_LONG.search(read(chapters()[page]).cells[0].source).group()
    seconds = {name: bound for bound, name in durations.BOUNDS.items()}
    return seconds.get(words.replace("in less than ", ""))


@pytest.mark.parametrize("page", chapters())
def test_a_chapter_runs_in_less_time_than_it_says(page):
    assert page in RECORDED, "run tools/rerun.py --time on it"
    assert RECORDED[page]["seconds"] <= says(page)


@pytest.mark.parametrize("page", chapters())
def test_a_chapter_does_not_claim_to_take_much_longer_than_it_does(page):
    assert says(page) <= max(20, 4 * RECORDED[page]["seconds"])


def test_nothing_is_recorded_that_is_no_chapter():
    assert set(RECORDED) <= set(chapters())


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(1, "ten seconds"), (8.3, "ten seconds"), (8.4, "twenty seconds"),
     (26, "a minute"), (75, "two minutes")],
)  # fmt: skip
def test_a_bound_leaves_room(seconds, words):
    assert durations.words(seconds) == words


def test_a_chapter_of_ten_minutes_is_refused():
    with pytest.raises(ValueError, match="600 s"):
        durations.words(600)


def test_a_record_keeps_the_others(tmp_path):
    (tmp_path / "chapters").mkdir()
    for name, seconds in (("two", 2.04), ("one", 1), ("two", 3)):
        durations.record(tmp_path, chapters_file(name), seconds)
    recorded = durations.load(tmp_path)
    assert list(recorded) == ["chapters/one", "chapters/two"]
    assert recorded["chapters/two"]["seconds"] == 3
    assert set(recorded["chapters/one"]) == {"seconds", "cores", "date"}


def chapters_file(name):
    return (ROOT / "chapters" / f"{name}.ipynb").relative_to(ROOT)
