"""Slides show the main path, fit into their frame, and ask for nothing outside."""

import os
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from notebook_cells import chapters
from page_checks import is_outside

import slides
from browser import Browser, find_chromium

FOLDER = os.environ.get("D2L_EXT_HTML", "")
PROGRAM = find_chromium()
in_browser = pytest.mark.skipif(PROGRAM is None, reason="no Chromium here")


def cell(code, output, tags=""):
    return f"""<div class="cell {tags}"><div class="cell_input"><pre>{code}</pre></div>
    <div class="cell_output"><pre>{output}</pre></div></div>"""


LONG = "\n".join(f"line_{i} = {'wide + ' * 16}{i}" for i in range(25))
ROWS = "".join(f"<tr><td>row {i}</td></tr>" for i in range(11))
CHAPTER = f"""<html><head></head><body><article><section id="a">
<h1>A chapter<a class="headerlink" href="#a">#</a></h1>
<p>What is asked?</p>
<figure><img alt="A line" src="../../_images/a.png"></figure>
<p>A surprise: 14.</p><p>You need nothing.</p>
<div class="cell tag_hide-input"><details>the set-up</details></div>
<section id="b"><h2>A part &amp; more</h2>
<p>One <em>first. Second</em> thing. A <a href="../../x.html">term</a> of no use.</p>
{cell("one = 1", "1")}
<p>So it is. Another is next. <em>Predict</em> what follows.</p>
{cell("two = 2", "2")}
{cell("three = 3", "3")}
{cell("hidden = 4", "4", "tag_hide-cell")}
<details>history</details><p class="claim-badges">claim S1</p>
<p>A long one.</p>
{cell(LONG, "5")}
<p>A table.</p><div><table><thead><tr><th>all</th></tr></thead>
<tbody>{ROWS}</tbody></table></div>
<p>The end of it.</p></section>
<section id="summary"><h2>Summary</h2><ul><li>It is 14.</li></ul></section>
<section id="exercises"><h2>Exercises</h2><section id="exercise-1"><h3>Exercise 1</h3>
<p><em>Warm-up.</em> How many? Count. Or guess.</p><div class="cell">check</div>
</section></section></section></article></body></html>"""


@pytest.fixture
def made():
    page = BeautifulSoup(CHAPTER, "html.parser")
    return slides.slides_of(page, "What is <asked>?")


def text(slide):
    return BeautifulSoup("".join(map(str, slide.shown)), "html.parser").get_text(" ")


def test_a_chapter_becomes_its_main_path(made):
    assert [slide.heading.get_text() for slide in made] == [
        "A chapter", "A chapter", *6 * ["A part & more"], "Summary", "Exercises"
    ]
    everything = " ".join(map(text, made))
    for word in ("the set-up", "hidden", "history", "claim S1", "check", "You need"):
        assert word not in everything
    for word in ("A surprise", "one = 1", "two = 2", "three = 3", "line_24", "row 10"):
        assert word in everything


def test_the_title_has_the_question_and_the_picture(made):
    assert made[0].lead == "What is &lt;asked&gt;?" and "a.png" in str(made[0].shown)


def test_a_slide_has_one_sentence_and_the_speaker_the_rest(made):
    assert made[2].lead == "One <em>first. Second</em> thing."
    assert "of no use" in made[2].html().partition("<aside")[2]
    assert "x.html" not in made[2].html()
    assert made[3].lead == "So it is. <em>Predict</em> what follows."
    assert made[-3].notes[-1].get_text() == "The end of it."


def test_what_is_predicted_is_shown_by_the_next_key(made):
    (_, first, _, second) = made[3].shown  # two cells, with no word between them
    assert "fragment" in first["class"] and "fragment" not in second["class"]
    assert all("fragment" not in slide.html() for slide in [*made[:3], *made[4:]])


def test_what_is_long_has_two_slides(made):
    assert ["line_24" in text(s) for s in made[4:6]] == [True, False]
    assert [text(s).count("row") for s in made[6:8]] == [slides.ROWS, 3]
    assert "all" in text(made[6]) and "all" in text(made[7])


def test_exercises_come_last_in_their_own_words(made):
    assert text(made[-1]) == "1.  Warm-up.  How many? Count."


MEASURE = """(async () => { const found = [];
for (const [i, slide] of Reveal.getSlides().entries()) {
    Reveal.slide(i, 0, 9);
    if (slide.querySelector(".d2l-figure"))  // it lays itself out when it is shown
        for (let n = 0; n < 3; n++) await new Promise(requestAnimationFrame);
    const at = slide.getBoundingClientRect(), scale = at.width / 1280;
    const seen = [...slide.querySelectorAll("*")].filter((e) =>
        !e.closest("aside, mjx-assistive-mml") && e.checkVisibility()
        && e.getBoundingClientRect().width);
    const words = seen.filter((e) => !e.closest("svg, mjx-container")
        && [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()));
    const zoom = +slide.querySelector(".body").style.zoom;
    found.push({
        outside: seen.filter((e) => { const b = e.getBoundingClientRect();
            return b.left < at.left - 1 || b.top < at.top - 1
                || b.right > at.left + 1280 * scale + 1
                || b.bottom > at.top + 720 * scale + 1; }).map((e) => e.outerHTML),
        smallest: Math.min(...words.map((e) => parseFloat(getComputedStyle(e).fontSize)
            * (e.closest(".body") ? zoom : 1))),
        isRaw: /\\\\\\(|\\\\\\[/.test(slide.querySelector(".body").innerText),
    });
}
return found; })()"""
#: In pixels of a slide of 1280 × 720.
READABLE = 10.4


def faults(page, path, windows=((1280, 720),)):
    """What is wrong with the slides at `path`, in windows of these sizes."""
    for size in windows:
        page.resize(*size)
        page.open(path.as_uri())
        page.until("window.Reveal && Reveal.isReady()")
        for i, slide in enumerate(page.evaluate(MEASURE), 1):
            if slide["outside"] or slide["smallest"] < READABLE or slide["isRaw"]:
                yield f"{path.stem}, slide {i} at {size}: {slide}"
    yield from filter(is_outside, page.requests())
    yield from page.complaints()


@pytest.fixture(scope="module")
def page():
    with Browser(PROGRAM) as browser:
        yield browser.page()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The slides of `CHAPTER`, with all that they load."""
    top = tmp_path_factory.mktemp("slides")
    for name in ("_images", "mathjax", "_static", "made/chapters/part"):
        (top / name).mkdir(parents=True)
    (top / "_static/pygments.css").touch()
    slides.furnish(top, top / "made")
    soup = BeautifulSoup(CHAPTER.replace("_images/a.png", "slides.css"), "html.parser")
    target = top / "made/chapters/part/a.html"
    target.parent.mkdir(parents=True, exist_ok=True)
    text = slides.written(soup, slides.slides_of(soup, "What?"), "A chapter")
    target.write_text(text, "utf-8")
    return target


@in_browser
def test_long_and_wide_code_is_made_to_fit_in_any_window(page, folder):
    assert [*faults(page, folder, [(1280, 720), (480, 560), (1920, 1080)])] == []


@in_browser
def test_keys_lead_on_and_back(page, folder):
    page.open(folder.as_uri())
    page.until("window.Reveal && Reveal.isReady()")
    page.evaluate("Reveal.slide(2)")
    found = []
    for key in (39, 39, 39, 37):  # on to a question, its answer, the next; and back
        event = f"new KeyboardEvent('keydown', {{keyCode: {key}}})"
        page.evaluate(f"document.dispatchEvent({event}) && 0")
        at = page.evaluate("Object.values(Reveal.getIndices()).join()")
        found.append(at)
    assert found == ["3,0,-1", "3,0,0", "4,0,", "3,0,0"]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    target = tmp_path_factory.mktemp("book") / "slides"
    return target, slides.write(Path(FOLDER).resolve(), target)


@pytest.mark.skipif(not FOLDER, reason="no pages: `make html` builds them")
@in_browser
@pytest.mark.parametrize("name", chapters())
def test_the_slides_of_a_chapter_fit(page, written, name):
    folder, counts = written
    assert 8 < counts[name] < 60
    assert [*faults(page, folder / f"{name}.html")] == []
