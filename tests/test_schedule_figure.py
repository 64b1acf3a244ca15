"""The interactive schedule shows what `schedule` computes, with scripts and without."""

import json
import re
import shutil
import subprocess

import pytest
from bs4 import BeautifulSoup
from html_check import OUTSIDE_CSS, is_outside, loaded
from matplotlib.figure import Figure

from d2l_ext import schedule_figure as module
from d2l_ext.schedule import bubble_formula, clock, gpipe, one_f_one_b, peak_held
from d2l_ext.schedule_figure import MAX_CHUNKS, MAX_STAGES, SCHEDULES, data, page
from d2l_ext.schedule_svg import drawing, held, lanes_of, moment, picture, summary

SIZES = [(p, m) for p in range(1, MAX_STAGES + 1) for m in range(1, MAX_CHUNKS + 1)]


def made(title, p, m, name="schedule"):
    make, last_first = SCHEDULES[title]
    return picture(name, title, lanes_of(clock(make(p, m))), last_first)


def soup(html):
    return BeautifulSoup(html, "html.parser")


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
    for p, m in SIZES:
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
        found = [cell["class"][0] for cell in cells]
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
    stored = json.loads(data())
    for title, (make, last_first) in SCHEDULES.items():
        assert stored[title]["last_first"] == last_first
        for p, m in SIZES:
            packed = stored[title]["lanes"][f"{p},{m}"].split(" ")
            lanes = [re.sub(r"(.)(\d+)", lambda x: x[1] * int(x[2]), x) for x in packed]
            assert lanes == lanes_of(clock(make(p, m)))


def test_without_scripts_the_picture_is_complete_and_no_dead_control_shows():
    html = soup(page("GPipe", 4, 8, "schedule"))
    svg = html.svg
    d = made("GPipe", 4, 8)
    assert str(svg.find("g", class_="drawing")) == str(
        soup(f'<g class="drawing">{drawing(d, 22)}</g>')
    )
    assert html.find("p", {"data-role": "summary"}).string == summary(d)
    assert html.find(class_="controls").has_attr("hidden")


def test_whoever_cannot_see_or_point_gets_names_and_native_controls():
    html = soup(page("1F1B", 3, 6, "schedule"))
    assert html.svg["role"] == "img"
    assert html.svg["aria-label"].startswith("1F1B, p = 3")
    assert html.find(attrs={"aria-live": "polite"}) is not None
    controls = html.find_all(["input", "select", "button"])
    assert len(controls) == 6
    for control in controls:
        named = control.find_parent("label") or control.get("aria-label")
        assert named and not control.get("tabindex")


def test_the_figure_loads_nothing():
    html = soup(page("GPipe", 4, 8, "schedule"))
    assert not list(loaded(html))
    text = page("GPipe", 4, 8, "schedule")
    assert not OUTSIDE_CSS.findall(text)
    assert not any(is_outside(word) for word in re.findall(r"[\w/:.-]{6,}", text))


def test_two_figures_share_no_id_and_each_is_the_same_in_every_run():
    both = page("GPipe", 4, 8, "first") + page("GPipe", 4, 8, "second")
    ids = [tag["id"] for tag in soup(both).find_all(id=True)]
    assert sorted(ids) == ["first", "first-stripes", "second", "second-stripes"]
    assert page("GPipe", 4, 8, "first") == page("GPipe", 4, 8, "first")
    assert module.figure().data == page("GPipe", 4, 8, "schedule")


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

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)
OPTIONS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--virtual-time-budget=20000", "--dump-dom",
]  # fmt: skip
#: Moves the controls as a reader would, and writes down what the figure then shows.
READER = """
const root = document.querySelector(".schedule-figure"), seen = [];
const find = (role) => root.querySelector(`[data-role=${role}]`);
function set(role, value) {
  find(role).value = value;
  find(role).dispatchEvent(new Event("input", {bubbles: true}));
}
function note(svg) {
  seen.push({
    summary: find("summary").textContent, moment: find("moment").textContent,
    label: root.querySelector("svg").getAttribute("aria-label"),
    box: root.querySelector("svg").getAttribute("viewBox"),
    drawing: svg ? root.querySelector(".drawing").innerHTML : "",
    hidden: root.querySelector(".controls").hidden,
    clock: find("clock-value").textContent + "/" + find("clock").max,
  });
}
"""
WRITE = """
document.body.innerHTML = "<pre></pre>";
document.querySelector("pre").textContent = JSON.stringify(seen);
"""


@pytest.fixture
def browse(tmp_path):
    """Open the figure in a browser, do `steps` there, return what was noted."""
    if BROWSER is None:
        pytest.skip("no Chromium here: the figure's script is not tried in a browser")

    def run(steps):
        file = tmp_path / "figure.html"
        figure = page("GPipe", 4, 8, "schedule")
        file.write_text(
            f'<!doctype html><meta charset="utf-8"><body>{figure}'
            f"<script>{READER}{steps};{WRITE}</script>"
        )
        command = [BROWSER, *OPTIONS, f"--user-data-dir={tmp_path / 'profile'}"]
        result = subprocess.run([*command, file.as_uri()], check=True, timeout=100,
                                capture_output=True, text=True)  # fmt: skip
        return json.loads(soup(result.stdout).pre.string)

    return run


def test_in_a_browser_every_choice_shows_the_same_as_python(browse):
    choices = [(title, p, m) for title in SCHEDULES for p, m in SIZES]
    whole = [i % 13 == 0 for i in range(len(choices))]  # the picture of every 13th
    seen = browse("".join(
        f'set("schedule", "{title}"); set("stages", {p}); set("chunks", {m});'
        f'set("clock", {m + 1}); note({str(svg).lower()});'
        for (title, p, m), svg in zip(choices, whole)
    ))  # fmt: skip
    assert len(seen) == len(choices)
    for shown, (title, p, m), svg in zip(seen, choices, whole):
        d = made(title, p, m)
        assert shown["summary"] == shown["label"] == summary(d)
        assert shown["moment"] == moment(d, m + 1)
        assert shown["clock"] == f"{m + 1}/{2 * (m + p - 1)}"
        assert shown["box"] == f"0 0 700 {40 + 30 * p}"
        if svg:
            assert str(soup(shown["drawing"])) == str(soup(drawing(d, m + 1)))


def test_in_a_browser_the_controls_show_and_the_first_picture_stays(browse):
    (shown,) = browse("note(true)")
    assert not shown["hidden"]
    d = made("GPipe", 4, 8)
    assert str(soup(shown["drawing"])) == str(soup(drawing(d, 22)))
    assert (shown["summary"], shown["moment"]) == (summary(d), moment(d, 22))


def test_in_a_browser_the_buttons_step_the_clock_and_stop_at_its_ends(browse):
    seen = browse("""note(); find("back").click(); note(); find("on").click();
                     find("on").click(); note(); set("clock", 0); note();
                     find("back").click(); note(); find("on").click(); note()""")
    clocks = [shown["clock"] for shown in seen]
    assert clocks == [f"{now}/22" for now in (22, 21, 22, 0, 0, 1)]
    assert seen[-1]["moment"] == moment(made("GPipe", 4, 8), 1)
