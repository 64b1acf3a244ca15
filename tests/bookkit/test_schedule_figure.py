"""The interactive schedule shows what `schedule` computes, with scripts and without."""

import re

import pytest
from figure_checks import (
    assert_framed,
    assert_same_as_python,
    browse,
    choosing,
    soup,
)  # fmt: skip
from matplotlib.figure import Figure

from bookkit.figures import pipeline_schedule as module
from bookkit.figures import pipeline_schedule_svg as twin
from bookkit.figures.pipeline_schedule import (
    CONTROLS,
    MAX_CHUNKS,
    MAX_STAGES,
    SCHEDULES,
    data,
    lanes_of,
)  # fmt: skip
from bookkit.figures.pipeline_schedule_svg import drawing, held, moment, summary
from d2l_ext.pipeline.schedule import (
    bubble_formula,
    clock,
    gpipe,
    one_f_one_b,
    peak_held,
)

SIZES = [(p, m) for p in range(1, MAX_STAGES + 1) for m in range(1, MAX_CHUNKS + 1)]
DATA = data()


def made(title, p, m, name="schedule"):
    choice = {"schedule": title, "stages": p, "chunks": m}
    return {**twin.state(DATA, choice), "name": name}


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
        assert numbers(drawing(d, 0)) == {
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
        cells = soup(drawing(d, now)).find_all("g")
        found = [cell["class"][1] for cell in cells]
        assert {state: found.count(state) for state in set(found)} == states


def test_the_words_say_the_bubble_and_the_peak():
    assert summary(made("GPipe", 4, 8)) == (
        "GPipe, p = 4 stages, m = 8 micro-batches: 24 of 88 slots are empty. "
        "Bubble: (p − 1) / (m + p − 1) = 3/11 = 27%. "
        "Peak of micro-batches held, stage by stage: 8, 8, 8, 8."
    )
    one = summary(made("1F1B", 3, 1))
    assert "= 2/3 = 67%." in one and one.endswith("stage by stage: 1, 1, 1.")


@pytest.mark.parametrize("title", SCHEDULES)
def test_the_empty_slots_and_the_peaks_agree_with_the_formulas(title):
    for p, m in SIZES:
        text, schedule = summary(made(title, p, m)), SCHEDULES[title][0](p, m)
        idle, total = map(int, re.search(r"(\d+) of (\d+) slots", text).groups())
        assert idle / total == pytest.approx(bubble_formula(p, m), abs=1e-12)
        assert text.endswith(f"stage: {', '.join(map(str, peak_held(schedule)))}.")


def test_the_moment_says_what_each_stage_does_and_holds():
    d = made("1F1B", 2, 3)
    assert moment(d, 0) == "Slot 0 of 8: nothing has begun."
    assert moment(d, 3) == "Slot 3 of 8: stage 0 waits, stage 1 backward 0."
    assert moment(d, 5) == "Slot 5 of 8: stage 0 forward 2, stage 1 backward 1."
    assert moment(made("GPipe", 1, 3), 4) == "Slot 4 of 6: stage 0 backward 2."
    assert [held(d["lanes"][0], now) for now in range(9)] == [0, 1, 2, 2, 1, 2, 1, 1, 0]


def test_the_page_holds_every_schedule_that_can_be_chosen():
    for title, (make, last_first) in SCHEDULES.items():
        for p, m in SIZES:
            d = made(title, p, m)
            assert d["lanes"] == lanes_of(clock(make(p, m)))
            assert d["last_first"] == last_first


def test_without_scripts_the_figure_is_complete():
    html = module.figure("1F1B", 3, 6).data
    first = {"schedule": "1F1B", "stages": 3, "chunks": 6, "clock": 16}
    assert_framed(html, first, CONTROLS, twin, DATA, "schedule")


def test_two_figures_share_no_id_and_each_is_the_same_in_every_run():
    both = module.figure(name="first").data + module.figure(name="second").data
    ids = [tag["id"] for tag in soup(both).find_all(id=True)]
    assert len(set(ids)) == len(ids) and {"first", "second"} <= set(ids)
    assert module.figure().data == module.figure().data


@pytest.mark.parametrize(
    "title, p, m, message",
    [
        ("gpipe", 4, 8, "unknown schedule 'gpipe': GPipe or 1F1B"),
        ("GPipe", 9, 8, "the figure shows 1 to 8 stages, not 9"),
        ("GPipe", 4, 0, "the figure shows 1 to 16 micro-batches, not 0"),
    ],
)
def test_what_the_figure_cannot_show_is_refused(title, p, m, message):
    with pytest.raises(ValueError, match=message):
        module.figure(title, p, m)


def test_the_plot_beside_a_timeline_has_a_numbered_bar_for_each_slot():
    slots = clock(one_f_one_b(2, 3), backward=2)
    ax = module.plot(slots, Figure().subplots())
    bars = [path.vertices for bar in ax.collections for path in bar.get_paths()]
    found = {(round(v[:, 1].mean()), min(v[:, 0]), max(v[:, 0])) for v in bars}
    assert found == {(x.stage, x.start, x.end) for x in slots}
    labels = {(text.get_position(), int(text.get_text())) for text in ax.texts}
    assert labels == {(((x.start + x.end) / 2, x.stage), x.chunk) for x in slots}
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["stage 0", "stage 1"]


# With scripts, in a browser.


def test_in_a_browser_every_choice_shows_the_same_as_python(tmp_path):
    choices = [
        {"schedule": title, "stages": p, "chunks": m, "clock": m + 1}
        for title in SCHEDULES
        for p, m in SIZES
    ]
    seen = browse(module.figure().data, choosing(choices), tmp_path)
    assert_same_as_python(seen, choices, twin, DATA, "schedule")


def test_in_a_browser_the_controls_show_and_step_the_clock_to_its_ends(tmp_path):
    seen = browse(
        module.figure().data,
        """note(true); find("back").click(); note(); find("on").click();
           find("on").click(); note(); set("clock", 0); note(); find("back").click();
           note(); find("on").click(); note()""",
        tmp_path,
    )
    d = made("GPipe", 4, 8)
    assert not seen[0]["hidden"]
    assert str(soup(seen[0]["drawing"])) == str(soup(drawing(d, 22)))
    assert (seen[0]["summary"], seen[0]["moment"]) == (summary(d), moment(d, 22))
    clocks = [shown["clock"] for shown in seen]
    assert clocks == [f"{now}/22" for now in (22, 21, 22, 0, 0, 1)]
    assert seen[-1]["moment"] == moment(d, 1)


def test_in_a_browser_the_clock_stays_at_the_end_and_never_beyond(tmp_path):
    seen = browse(
        module.figure().data,
        """set("chunks", 4); note(); set("clock", 12); note(); set("stages", 1); note();
           set("stages", 8); note()""",
        tmp_path,
    )
    clocks = [shown["clock"] for shown in seen]
    assert clocks == ["14/14", "12/14", "8/8", "22/22"]
