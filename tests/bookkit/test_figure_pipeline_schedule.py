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
    plot,
)
from d2l_ext.pipeline.schedule import (
    clock,
    gpipe,
    interleaved,
    one_f_one_b,
    op_clock,
    peak_held,
    zero_bubble,
)

SIZES = [(p, m) for p in range(1, MAX_STAGES + 1) for m in range(1, MAX_CHUNKS + 1)]
SCRIPT = frame.Script("pipeline_schedule", "schedule", data())


def made(title, p, m):
    return State(SCRIPT, {"schedule": title, "stages": p, "chunks": m})


def drawn(svg):
    """What is drawn: (row, column) -> (words, hatch)."""
    found = {}
    for cell in soup(svg).find_all("g"):
        x, y = int(cell.rect["x"]) - 60, int(cell.rect["y"]) - 20
        hatch = [rect["fill"][len("url(#schedule-") : -1] for rect in cell("rect")[1:]]
        found[y // 30, x] = cell.title.string, *hatch
    return found


#: How a kind of work is drawn, beside its colour.
HATCH = {"forward": (), "backward": ("backward",), "input": ("backward",),
         "weights": ("update",)}


def sizes(title):
    return [(p, m) for p, m in SIZES if title != "interleaved 1F1B" or m % p == 0]


@pytest.mark.parametrize("title", SCHEDULES)
def test_every_slot_of_the_figure_is_the_schedules(title):
    """In every size: its work in words, which the drawing has where there is room."""
    for p, m in sizes(title):
        d, slots = made(title, p, m), SCHEDULES[title](p, m)
        number = "d.lanes.map((l) => range(steps(d)).map((t) => chunkAt(d, l, t)))"
        lanes, found = SCRIPT.ask(d.choice, f"[d.lanes, {number}]")
        for x in slots:
            assert str(found[x.stage][x.start]) == str(x.chunk), (p, m, x)
            assert lanes[x.stage][x.start] == x.kind[0].upper()
        assert d.wide() * max(x.end for x in slots) <= 560
        assert sum(len(lane) - lane.count(".") for lane in lanes) == len(slots)


@pytest.mark.parametrize("title", SCHEDULES)
def test_work_is_drawn_in_its_slot_with_its_hatch(title):
    for p, m in sizes(title)[::9]:
        d, slots = made(title, p, m), SCHEDULES[title](p, m)
        cells, wide = drawn(d.drawing(0)), d.wide()
        assert cells.keys() == {(x.stage, x.start * wide) for x in slots}
        for x in slots:
            words, *hatch = cells[x.stage, x.start * wide]
            assert words.endswith(f"{x.chunk}" * (wide >= 10))
            assert tuple(hatch) == HATCH[x.kind]


def test_the_numbers_of_the_two_new_schedules_are_the_librarys():
    """Of the library's own clock, not of what the figure makes of it."""
    for p, m, times in [(4, 8, op_clock(interleaved(4, 8, 2), weights=0)),
                        (3, 7, op_clock(zero_bubble(3, 7)))]:
        title = "interleaved 1F1B" if m == 8 else "ZB-H1"
        wanted = {(device, start): (op.kind, f"{op.chunk}{'′' * (op.stage // p)}")
                  for op, (device, start, _) in times.items()}
        found = {(x.stage, x.start): (x.kind, x.chunk) for x in SCHEDULES[title](p, m)}
        assert found == wanted


def test_the_clock_divides_what_is_done_from_what_is_to_do():
    d = made("GPipe", 2, 2)
    for now, states in [(0, {"todo": 8}), (2, {"done": 1, "now": 2, "todo": 5}),
                        (6, {"done": 7, "now": 1})]:
        cells = soup(d.drawing(now)).find_all("g")
        found = [cell["class"][1] for cell in cells]
        assert {state: found.count(state) for state in set(found)} == states


#: Per micro-batch, by how much the bubble is smaller than GPipe's; and the peaks.
THEORY = {
    "GPipe": (1, lambda p, m: peak_held(gpipe(p, m))),
    "1F1B": (1, lambda p, m: peak_held(one_f_one_b(p, m))),
    "interleaved 1F1B": (2, lambda p, m: peak_held(interleaved(p, m, 2))),
    "ZB-H1": (3, lambda p, m: peak_held(zero_bubble(p, m))),
}


@pytest.mark.parametrize("title", SCHEDULES)
def test_the_empty_slots_and_the_peaks_agree_with_the_formulas(title):
    by, peaks = THEORY[title]
    for p, m in sizes(title):
        text = made(title, p, m).summary()
        idle, total = map(int, re.search(r"(\d+) of (\d+) slots", text).groups())
        if title == "ZB-H1" and m < p:
            assert idle / total > (p - 1) / (by * m + p - 1) and "%, as m < p." in text
        else:
            assert idle / total == pytest.approx((p - 1) / (by * m + p - 1), abs=1e-12)
            assert f" = {p - 1}/{by * m + p - 1} = " in text
        assert text.endswith(f": {', '.join(map(str, peaks(p, m)))}.")


def test_interleaved_the_micro_batches_are_a_multiple_of_the_devices():
    for p, m, shown in [(3, 8, 6), (5, 3, 5), (4, 16, 16), (7, 16, 14)]:
        d = made("interleaved 1F1B", p, m)
        assert d["m"] == shown and f"p = {p} devices, m = {shown} micro" in d.summary()


def test_the_moment_says_what_each_stage_does_and_holds():
    d = made("1F1B", 2, 3)
    assert d.moment(0) == "Slot 0 of 8: nothing has begun."
    assert d.moment(3) == "Slot 3 of 8: stage 0 waits, stage 1 backward 0."
    assert d.moment(5) == "Slot 5 of 8: stage 0 forward 2, stage 1 backward 1."
    assert made("GPipe", 1, 3).moment(4) == "Slot 4 of 6: stage 0 backward 2."
    assert made("ZB-H1", 2, 4).moment(7) == (
        "Slot 7 of 13: stage 0 input 1, stage 1 forward 2.")
    held = [SCRIPT.ask(d.choice, f"held(d.lanes[0], {now})") for now in range(9)]
    assert held == [0, 1, 2, 2, 1, 2, 1, 1, 0]


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
