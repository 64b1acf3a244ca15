"""The tabs of frameworks: their programs, what is stored of them, and the pages."""

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
from bs4 import BeautifulSoup
from job_checks import nothing_left  # noqa: F401

import one_framework
import peers
from peers import __main__ as runner

ROOT = Path(__file__).parents[2]
PAGES = Path(os.environ.get("D2L_EXT_HTML", "")).resolve()
PROGRAMS = [(name, framework) for name in peers.techniques()
            for framework in peers.FRAMEWORKS
            if peers.program(name, framework).is_file()]
LONGEST, OUTSIDE = 20, "http://outside.invalid/"


@pytest.mark.parametrize(("name", "framework"), PROGRAMS)
def test_a_tab_has_at_most_twenty_lines_and_a_result_of_this_very_program(
    name, framework
):
    lines = [line for line in peers.shown(name, framework).splitlines() if line]
    assert len(lines) <= LONGEST + 1  # and the title
    assert peers.stale(name, framework) is None


@pytest.mark.parametrize("name", peers.techniques())
def test_the_chapters_program_still_makes_what_the_peers_were_compared_with(name):
    kept, now = peers.stored(name)["mxnet"], runner.ours(name)
    assert now["sent"] == kept["sent"]
    for then, (shape, *sums) in zip(kept["sums"], runner.sums(now["arrays"])):
        assert then[0] == shape
        assert numpy.allclose(then[1:], sums, rtol=1e-4, atol=1e-4 * (1 + sums[1]))


def test_every_technique_stands_on_a_page():
    text = "".join(p.read_text("utf-8") for p in ROOT.glob("chapters/*/*.ipynb"))
    missing = [n for n in peers.techniques() if f"{{frameworks}} {n}\\n" not in text]
    assert not missing


@pytest.fixture
def copied(tmp_path):
    """The ring's programs and result, in a folder of their own."""
    for part in ("data_parallel", "results/data_parallel"):
        (tmp_path / part).mkdir(parents=True)
    for path in (*ROOT.glob("peers/data_parallel/ring_*.py"),
                 ROOT / "peers/results/data_parallel/ring.json"):
        shutil.copy(path, tmp_path / path.relative_to(ROOT / "peers"))
    return tmp_path


@pytest.mark.parametrize(("framework", "line", "old"), [
    ("torch", "k = 5", {"torch"}), ("mxnet", "k = 5", {"mxnet", "torch", "jax"}),
    ("jax", "# a word", set()),
])
def test_a_changed_program_makes_its_result_old_the_chapters_all_and_a_comment_none(
    copied, framework, line, old
):
    assert not peers.all_stale(copied)
    path = peers.program("data_parallel/ring", framework, copied)
    path.write_text(f"{path.read_text('utf-8')}{line}\n")
    assert {f for _, f in peers.all_stale(copied)} == old


def test_a_result_that_differs_is_refused():
    ours = {"arrays": [numpy.ones(2, "float32")], "sent": {"send": 8}}
    found = {"devices": {0: ours["arrays"], 1: ours["arrays"]},
             "sent": {"send": [1, 8]}}
    assert runner.compare(ours, found, {"float64": "an old function"}) == 0
    for arrays in ([numpy.full(2, 1.001, "float32")], [numpy.ones((1, 2), "float32")],
                   [numpy.full(2, numpy.nan, "float32")]):
        for devices in ({0: arrays}, {0: ours["arrays"], 1: arrays}):
            with pytest.raises(runner.Different, match="arrays"):
                runner.compare(ours, {**found, "devices": devices}, {})
    for sent, excused in (({}, {}), ({"send": [1, 9]}, {}),
                          ({"send": [1, 8]}, {"send"})):
        with pytest.raises(runner.Different, match="sent"):
            runner.compare(ours, {**found, "sent": sent}, dict.fromkeys(excused))
    assert runner.compare(ours, {**found, "sent": {"send": [1, 9]}}, {"send": ""}) == 0


HLO = """HloModule jit_step, num_partitions=4

%body (x: f32[8]) -> f32[8] {
  %a = f32[8]{0} collective-permute(%x), source_target_pairs={{0,1},{1,2},{2,3},{3,3}}
}

ENTRY %main (x: f32[8]) -> f32[8] {
  %b = (f32[4]{0}, /*index=1*/f32[2]{0}) all-reduce(%x, %y), replica_groups=[2,2]<=[4]
  %c = f32[8]{0} all-gather(%x), replica_groups={{0,1,2,3}}, dimensions={0}
  %d = f32[2]{0} reduce-scatter(%x), replica_groups={{0,1,2,3}}, dimensions={0}
  %w = f32[8]{0} while(%x), body=%body, backend_config={"known_trip_count":{"n":"3"}}
}
"""


def test_collectives_are_read_from_compiled_text_with_their_groups_and_loops():
    # At its top it imports nothing but the standard library.
    harness = runpy.run_path(str(ROOT / "peers/harness_jax.py"))
    assert harness["collectives"](HLO, 4) == [
        ("all_reduce", 2 * 2 * 24), ("all_gather", 3 * 32), ("reduce_scatter", 3 * 32),
        *[("send", 3 * 32)] * 3,
    ]


def tabbed():
    """The first eleven of the built pages that have tabs."""
    found = [p for p in sorted(PAGES.glob("chapters/*/*.html"))
             if 'class="framework ' in p.read_text("utf-8")]
    return found[:11]


SHOWN = """[...new Set([...document.querySelectorAll(".framework:not([hidden])")]
    .map(e => e.className.match(/framework-(\\w+)/)[1]))].join(" ")"""


def test_the_choice_is_kept_over_ten_pages_and_asks_for_nothing_outside(page):
    first, *later = [path.as_uri() for path in tabbed()]
    page.open(first)
    assert page.evaluate(SHOWN) == "mxnet"
    page.evaluate("document.querySelector('.framework-tab').focus()")
    page.press("ArrowRight")
    assert page.evaluate(SHOWN) == "torch"
    asked = page.requests()
    for url in later:
        page.open(url)
        assert page.evaluate(SHOWN) == "torch"
        asked += page.requests()
    assert len(later) == 10
    assert all(url.startswith(("file:", "data:", "blob:")) for url in asked)
    page.evaluate(f"fetch('{OUTSIDE}').catch(() => 0)")
    assert OUTSIDE in page.requests()  # such a one would be seen
    page.open(f"{first}?framework=jax")
    assert page.evaluate(SHOWN) == "jax"


def test_without_scripts_all_three_stand_one_under_another():
    text = tabbed()[0].read_text("utf-8") if os.environ.get("D2L_EXT_HTML") else ""
    if not text:
        pytest.skip("no pages: `make html` builds them and runs this")
    part = text[text.index('class="frameworks'):]
    places = [part.index(f"framework-{name} ") for name in peers.FRAMEWORKS]
    assert places == sorted(places) and "hidden" not in part[: places[2]]


@pytest.mark.parametrize(("name", "left"), [
    (None, ["mxnet"]), ("jax", ["jax"]), ("all", ["mxnet", "torch", "jax"])
])
def test_on_paper_and_slides_there_is_one_framework_by_choice_or_all(
    monkeypatch, name, left
):
    monkeypatch.delenv("FRAMEWORK", raising=False)
    page = BeautifulSoup("".join(f'<div class="framework framework-{f}">{f}</div>'
                                 for f in peers.FRAMEWORKS), "html.parser")
    one_framework.keep(page, name)
    assert [panel.text for panel in page.select(".framework")] == left


def test_a_framework_without_tabs_is_refused():
    with pytest.raises(ValueError, match="FRAMEWORK=tf"):
        one_framework.keep(BeautifulSoup("", "html.parser"), "tf")


def test_a_program_that_hangs_is_ended_with_its_processes(
    nothing_left, monkeypatch, tmp_path  # noqa: F811
):
    monkeypatch.setattr(runner, "DEADLINE", 2)
    hangs = "import os, time; os.fork(); time.sleep(1000)"
    with pytest.raises(subprocess.TimeoutExpired):
        runner._run([sys.executable, "-c", hangs], tmp_path, fine=False)


def test_a_comparison_in_float64_makes_such_arrays_and_no_others_afterwards():
    from mxnet import np

    with runner._float64():
        made = np.array([1 / 3]), np.zeros(2), np.arange(2, dtype="int32")
    assert [numpy.dtype(x.dtype).name for x in made] == ["float64", "float64", "int32"]
    assert numpy.dtype(np.array([1 / 3]).dtype).name == "float32"


@pytest.mark.parametrize(("apart", "explained", "different"), [
    (0, False, False), (1e-8, False, True), (1e-8, True, False), (0, True, True),
    (1e-4, True, True),
])
def test_what_differs_in_float64_must_be_explained_and_nothing_else(
    copied, monkeypatch, apart, explained, different
):
    for framework in ("torch", "jax"):
        path = peers.program("data_parallel/ring", framework, copied)
        words = "\n\nDiffers, float64: an old function.\n" if explained else "\n"
        path.write_text(f'"""A ring.{words}"""\n')
    found = {"devices": {0: [numpy.ones(2)], 1: [numpy.ones(2) + apart]}}
    monkeypatch.setattr(runner, "ours", lambda *_, **__: {"arrays": [numpy.ones(2)]})
    monkeypatch.setattr(runner, "theirs", lambda *_, **__: found)
    for line in runner.in_float64("data_parallel/ring", copied):
        assert ("DIFFERENT" in line) == different
