"""A browser sets the words of each drawing: they have room, on a phone as well."""

import sys

import page_checks
import pytest
from notebook_cells import ROOT

sys.path.insert(0, str(ROOT / "_sphinx/ext"))
import narrow_drawings
from narrow_drawings import COLUMN, WORD

DRAWINGS = sorted((ROOT / "chapters/img").glob("*.svg"))
pytestmark = page_checks.needs_chromium


@pytest.fixture(scope="module")
def page():
    with page_checks.new_page() as page:
        yield page


@pytest.mark.parametrize("path", DRAWINGS, ids=lambda path: path.stem)
def test_words_of_a_drawing_have_room(page, tmp_path, path):
    svg = path.read_text("utf-8").replace("<svg ", '<svg width="700" ', 1)
    (tmp_path / "page.html").write_text(page_checks.PAGE.format(head="", body=svg))
    page.open((tmp_path / "page.html").as_uri())
    page.evaluate(page_checks.SCRIPT)
    assert page.evaluate("drawings().flatMap(drawing)") == []


@pytest.mark.parametrize("path", DRAWINGS, ids=lambda path: path.stem)
def test_no_word_of_a_drawing_is_cut_in_two_or_small_for_phones(page, tmp_path, path):
    svg = path.read_text("utf-8")
    rows = narrow_drawings.rows_of(svg) or []
    wide = float(narrow_drawings.HEAD.search(svg)[2])
    inside = {x for row in rows for part in row for x in part} - {0, wide}
    body = svg.replace("<svg ", f'<svg width="{wide}" ', 1)
    (tmp_path / "page.html").write_text(page_checks.PAGE.format(head="", body=body))
    page.open((tmp_path / "page.html").as_uri())
    boxes = page.evaluate("""(() => {
        const box = (e) => e.getBoundingClientRect();
        const { left } = box(document.querySelector("svg"));
        return [...document.querySelectorAll("text")].map(box)
            .map((b) => [b.left - left, b.right - left]);
    })()""")
    assert boxes
    assert not [(a, x, b) for a, b in boxes for x in inside if a + 1 < x < b - 1]
    drawings = {p.stem: p.read_text("utf-8") for p in DRAWINGS}
    form = narrow_drawings.for_phones(drawings, path.stem) or svg
    assert narrow_drawings.smallest(form, COLUMN) >= WORD
