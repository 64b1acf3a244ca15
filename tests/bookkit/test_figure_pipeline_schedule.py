"""The interactive schedule shows what `schedule` computes, with scripts and without."""

import re

import pytest
from figure_checks import State, labels, soup
from matplotlib.figure import Figure

from bookkit.figures import frame
from bookkit.figures.pipeline_schedule import (
    MAX_CHUNKS,
    MAX_STAGES,
    SCHEDULES,
    data,
    lanes_of,
    plot,
)
from d2l_ext.pipeline.schedule import (
    bubble_formula,
    clock,
    gpipe,
    one_f_one_b,
    peak_held,
)

SIZES = [(p, m) for p in range(1, MAX_STAGES + 1) for m in range(1, MAX_CHUNKS + 1)]
SCRIPT = frame.Script("pipeline_schedule", "schedule", data())


def made(title, p, m):
    return State(SCRIPT, {"schedule": title, "stages": p, "chunks": m})


def numbers(svg):
    """The micro-batches that are drawn: (row, column) -> (number, is it striped)."""
    found = {}
    for cell in soup(svg).find_all("g"):
        x, y = int(cell.rect["x"]) - 60, int(cell.rect["y"]) - 20
        striped = len(cell.find_all("rect")) > 1
        found[y // 30, x] = int(cell.find("text").string), striped
    return found


@pytest.mark.parametrize("title", SCHEDULES)
def test_every_slot_of_the_drawing_is_the_schedules(title):
    for p, m in SIZES[::5]:
        d = made(title, p, m)
        slots = clock(SCHEDULES[title][0](p, m))
        assert numbers(d.drawing(0)) == {
            (x.stage, x.start * d["width"]): (x.chunk, x.kind == "backward")
            for x in slots
        }
        assert d["width"] * max(x.end for x in slots) <= 560


def test_the_lanes_are_the_drawing_without_numbers():
    assert lanes_of(clock(gpipe(2, 2))) == ["FF..BB", ".FFBB."]
    assert lanes_of(clock(one_f_one_b(2, 2))) == ["FF.B.B", ".FBFB."]


def test_the_clock_divides_what_is_done_from_what_is_to_do():
    d = made("GPipe", 2, 2)
    for now, states in [(0, {"todo": 8}), (2, {"done": 1, "now": 2, "todo": 5}),
                        (6, {"done": 7, "now": 1})]:  # fmt: skip
        cells = soup(d.drawing(now)).find_all("g")
        found = [cell["class"][1] for cell in cells]
        assert {state: found.count(state) for state in set(found)} == states


def test_the_words_say_the_bubble_and_the_peak():
    assert made("GPipe", 4, 8).summary() == (
        "GPipe, p = 4 stages, m = 8 micro-batches: 24 of 88 slots are empty. "
        "Bubble: (p − 1) / (m + p − 1) = 3/11 = 27%. "
        "Peak of micro-batches held, stage by stage: 8, 8, 8, 8."
    )
    one = made("1F1B", 3, 1).summary()
    assert "= 2/3 = 67%." in one and one.endswith("stage by stage: 1, 1, 1.")


@pytest.mark.parametrize("title", SCHEDULES)
def test_the_empty_slots_and_the_peaks_agree_with_the_formulas(title):
    for p, m in SIZES:
        text, schedule = made(title, p, m).summary(), SCHEDULES[title][0](p, m)
        idle, total = map(int, re.search(r"(\d+) of (\d+) slots", text).groups())
        assert idle / total == pytest.approx(bubble_formula(p, m), abs=1e-12)
        assert text.endswith(f"stage: {', '.join(map(str, peak_held(schedule)))}.")


def test_the_moment_says_what_each_stage_does_and_holds():
    d = made("1F1B", 2, 3)
    assert d.moment(0) == "Slot 0 of 8: nothing has begun."
    assert d.moment(3) == "Slot 3 of 8: stage 0 waits, stage 1 backward 0."
    assert d.moment(5) == "Slot 5 of 8: stage 0 forward 2, stage 1 backward 1."
    assert made("GPipe", 1, 3).moment(4) == "Slot 4 of 6: stage 0 backward 2."
    held = [SCRIPT.ask(d.choice, f"held(d.lanes[0], {now})") for now in range(9)]
    assert held == [0, 1, 2, 2, 1, 2, 1, 1, 0]


def test_the_page_holds_every_schedule_that_can_be_chosen():
    for title, (make, last_first) in SCHEDULES.items():
        for p, m in SIZES:
            d = made(title, p, m)
            assert d["lanes"] == lanes_of(clock(make(p, m)))
            assert d["lastFirst"] == last_first


def test_the_labels_say_the_stages_and_how_much_they_hold():
    d, schedule = made("1F1B", 3, 6), one_f_one_b(3, 6)
    done = [(x.stage, x.kind) for x in clock(schedule) if x.end <= 5]
    rows = []
    for s, peak in enumerate(peak_held(schedule)):
        held = done.count((s, "forward")) - done.count((s, "backward"))
        rows += [f"stage {s}", f"{held} / {peak}"]
    stages = [words for words in labels(d.drawing(5)) if not words.isdigit()]
    assert stages == ["held / peak", *rows, "slot 5"]


def test_the_plot_beside_a_timeline_has_a_numbered_bar_for_each_slot():
    slots = clock(one_f_one_b(2, 3), backward=2)
    ax = plot(slots, Figure().subplots())
    bars = [path.vertices for bar in ax.collections for path in bar.get_paths()]
    found = {(round(v[:, 1].mean()), min(v[:, 0]), max(v[:, 0])) for v in bars}
    assert found == {(x.stage, x.start, x.end) for x in slots}
    labels = {(text.get_position(), int(text.get_text())) for text in ax.texts}
    assert labels == {(((x.start + x.end) / 2, x.stage), x.chunk) for x in slots}
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["stage 0", "stage 1"]

