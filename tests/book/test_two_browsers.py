"""Questions in the pages, and links to moments of figures, in two browsers.

`make html` runs this on the pages that it built: D2L_EXT_HTML names their folder.
"""

import json
import os
from pathlib import Path

import page_checks
import pytest

PAGES = Path(os.environ.get("D2L_EXT_HTML", "nowhere")).resolve()
pytestmark = pytest.mark.skipif(
    not (PAGES / "_static/book.js").is_file(), reason="no pages: make html")
#: Three questions for a number; a choice of four, and one of three.
HALVING, ALLREDUCE = (f"chapters/data_parallel/{name}.html"
                      for name in ("halving", "allreduce"))
CELL = "document.querySelectorAll('.tag_predict')[{}]"
SEEN = CELL + ".querySelector('.cell_output pre').checkVisibility()"
BELOW = CELL + ".nextElementSibling"
TOLD = CELL + ".querySelector('.predict-told').textContent"
WITHOUT = """(() => { const frame = document.createElement("iframe");
    frame.sandbox = "allow-same-origin"; frame.srcdoc = %s; frame.width = 1000;
    document.body.append(frame);
    return new Promise((resolve) => { frame.onload = () => resolve(
        [...frame.contentDocument.querySelectorAll(".tag_predict .cell_output")]
        .map((e) => e.offsetHeight > 20)); }); })()"""


def opened(page, name=HALVING, width=page_checks.WIDE):
    page.resize(width)
    page.open("about:blank")
    page.open(f"{PAGES.as_uri()}/{name}")
    return page


def press(page, words, number=0):
    page.evaluate(f"[...{CELL.format(number)}.querySelectorAll('.predict button')]"
                  f".find((b) => b.textContent === '{words}').click()")


@pytest.mark.parametrize("width", [page_checks.WIDE, page_checks.NARROW])
def test_an_output_is_hidden_until_a_number_is_said_and_then_both_are_told(page, width):
    opened(page, width=width)
    assert not page.evaluate(SEEN.format(0))
    assert page.evaluate(f"{BELOW.format(0)}.hidden") == "until-found"
    page.evaluate(f"{CELL.format(0)}.querySelector('input').focus()")
    page.type("four")
    press(page, "Guess")
    assert page.evaluate(TOLD.format(0)) == "Enter a number, or have it shown."
    assert not page.evaluate(SEEN.format(0))
    page.evaluate(f"{CELL.format(0)}.querySelector('input').select()")
    page.type("12")
    press(page, "Guess")
    assert page.evaluate(TOLD.format(0)) == (
        "How many numbers does each device send? You: 12, the machine: 6.")
    assert page.evaluate(SEEN.format(0)) and not page.evaluate(SEEN.format(1))
    assert not page.evaluate(f"{BELOW.format(0)}.hidden")
    assert page.evaluate("document.activeElement.className") == "predict-told"
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")


def test_a_number_is_right_however_it_is_written(page):
    opened(page)
    page.evaluate(f"{CELL.format(0)}.querySelector('input').focus()")
    page.type("6.0")
    press(page, "Guess")
    assert page.evaluate(TOLD.format(0)).endswith("You: 6.0, the machine: 6, too.")


@pytest.mark.parametrize("by_question", [True, False])
def test_a_choice_is_one_press_and_nobody_has_to_guess(page, by_question):
    opened(page, ALLREDUCE)
    press(page, "tree", 1)
    assert page.evaluate(TOLD.format(1)).endswith("You: tree, the machine: tree, too.")
    press(page, "Show it" if by_question else "Show the output")
    assert page.evaluate(TOLD.format(0)).endswith("at the end? The machine: 1.")
    assert page.evaluate(SEEN.format(0)) and page.evaluate(SEEN.format(1))
    assert not page.evaluate("document.querySelectorAll('.predict').length")


def test_without_scripts_everything_is_there(page):
    html = (PAGES / HALVING).read_text("utf-8")
    base = f'<head><base href="{(PAGES / HALVING).as_uri()}">'
    html = json.dumps(html.replace("<head>", base, 1))
    assert page.evaluate(WITHOUT % html) == [True] * 3


def test_on_paper_there_are_all_outputs_and_no_question(page):
    if not hasattr(page, "prefer"):
        pytest.skip("Firefox is not told to show a page as it prints it")
    opened(page)
    asks = CELL.format(0) + ".querySelector('form').checkVisibility()"
    shown = f"[{SEEN.format(0)}, {asks}]"
    assert page.evaluate(shown) == [False, True]
    page.prefer("light", "print")
    assert page.evaluate(shown) == [True, False]
    page.prefer("light")


def test_the_browsers_search_and_a_link_find_what_is_hidden(page):
    opened(page)
    page.evaluate(f"{CELL.format(0)}.querySelector('.cell_output pre').id = 'there'")
    page.evaluate("location.hash = '#there'")
    page.until(SEEN.format(0))
    assert page.evaluate(TOLD.format(0)).endswith("send? The machine: 6.")


#: Pages with a figure that plays.
PLAY = [path.relative_to(PAGES).as_posix() for path in [
    *PAGES.glob("chapters/*/*.html"), *PAGES.glob("intro.html")]
    if 'data-role="play"' in path.read_text("utf-8")]
FIGURES = "[...document.querySelectorAll('article .d2l-figure:has([data-role=play])')]"
STUB = "navigator.clipboard.writeText = (text) => { window.copied = text; return %s; }"
MOMENT = """((figure) => [figure.querySelector("[data-role=clock]").value,
    figure.querySelector("[data-role=moment]").textContent,
    figure.querySelector(".drawing").innerHTML])(%s)"""


@pytest.mark.parametrize("name", PLAY)
def test_a_link_to_a_moment_of_a_figure_shows_it_again(page, name):
    opened(page, name)
    figures = page.evaluate(f"{FIGURES}.map((figure) => figure.id)")
    assert figures
    for figure in figures:
        opened(page, name)
        here = f"document.getElementById('{figure}')"
        clock = f"{here}.querySelector('[data-role=clock]')"
        page.evaluate(STUB % "Promise.resolve()")
        page.evaluate(f"""{clock}.value = Math.ceil({clock}.max / 2);
            {clock}.dispatchEvent(new Event("input", {{ bubbles: true }}))""")
        told = page.evaluate(MOMENT % here)
        page.evaluate(f"{here}.querySelector('[data-role=link]').click()")
        page.until(f"{here}.querySelector('[data-role=link]').textContent === 'Copied'")
        link = page.evaluate("window.copied")
        assert told[0] != "0" and f"clock={told[0]}" in link
        page.open("about:blank")
        page.open(link)
        assert page.evaluate(MOMENT % here) == told


def test_a_link_made_while_a_figure_plays_stops_it_and_is_in_the_address(page):
    opened(page, ALLREDUCE)
    figure = f"{FIGURES}[0]"
    page.evaluate("Object.defineProperty(navigator, 'clipboard', {}), 0")
    page.evaluate(f"{figure}.querySelector('[data-role=play]').click()")
    page.until(f"{figure}.querySelector('[data-role=clock]').value > 0")
    page.evaluate(f"{figure}.querySelector('[data-role=link]').click()")
    words = f"{figure}.querySelector('[data-role={{}}]').textContent"
    assert page.evaluate(words.format("play")) == "Play"
    assert page.evaluate(words.format("link")) == "See the address"
    now = page.evaluate(f"{figure}.querySelector('[data-role=clock]').value")
    assert f"clock={now}" in page.evaluate("location.hash")
