"""The two timelines of the first page say what was recorded, and nothing else."""

from math import floor

from figure_checks import State, labels, soup

import d2l_ext  # noqa: F401  (before mxnet)
from bookkit.figures import frame, one_setting

DATA = one_setting.data()
FIGURE = State(frame.Script("one_setting", "fig", DATA), {})


def lanes(name):
    spans = DATA["spans"][name]
    return [[s for s in spans if s[0] == device] for device in ("cpu/0", "cpu/1")]


def at_work_together(name):
    """Milliseconds in which both devices have work, by tenths of one."""
    ticks = [
        {t for _, _, a, b in lane for t in range(floor(10 * a), floor(10 * b))}
        for lane in lanes(name)
    ]
    return len(ticks[0] & ticks[1]) / 10


def test_the_program_that_reads_numbers_has_one_device_work_at_a_time():
    assert at_work_together("reads") < 3 and at_work_together("keeps") > 40


def test_its_words_are_the_quotients_of_the_measured_times():
    ms = DATA["ms"]
    for name in ("reads", "keeps"):
        assert DATA["says"][name] == f"{ms['alone'] / ms[name]:.1f} times"
        verdict = f"{DATA['says'][name]} as fast as one device"
        assert verdict in labels(FIGURE.drawing(FIGURE.steps()))
        assert verdict not in labels(FIGURE.drawing(FIGURE.steps() - 1))


def test_the_quicker_step_goes_on_with_the_next_until_the_slower_one_ends():
    again = FIGURE.until(FIGURE["keeps"])
    begin = [span for span in again if span[0] == "cpu/0" and span[1] == "forward"]
    length = max(span[3] for span in DATA["spans"]["keeps"])
    longest = max(span[3] for span in DATA["spans"]["reads"])
    assert FIGURE["longest"] == longest > length
    assert any(span[2] > length for span in begin)
    assert all(span[2] < longest for span in again)


def test_time_without_work_is_red_as_far_as_the_clock_has_come():
    begin, end = (soup(FIGURE.drawing(now)) for now in (0, FIGURE.steps()))
    idle = [int(r["width"]) for r in begin.find_all("rect", class_="idle")]
    assert idle == [0, 0, 0, 0] and not begin.find_all("g", class_="work")
    lanes = end.find_all("rect", class_="idle")
    assert {int(r["width"]) for r in lanes} == {630} and len(lanes) == 4


def test_each_lane_has_its_device_beside_it_on_a_phone_too():
    for narrow in ("false", "true"):
        view = FIGURE.script.ask({}, f"view({{...d, narrow: {narrow}}}, 0)")
        names = [w for w in labels(view["drawing"]) if w.startswith("cpu")]
        assert names == ["cpu/0", "cpu/1"] * 2
