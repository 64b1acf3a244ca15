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
def test_words_have_room_and_on_phones_are_neither_cut_nor_small(page, tmp_path, path):
    svg = path.read_text("utf-8")
    body = svg.replace("<svg ", '<svg width="700" ', 1)
    (tmp_path / "page.html").write_text(page_checks.PAGE.format(head="", body=body))
    page.open((tmp_path / "page.html").as_uri())
    page.evaluate(page_checks.SCRIPT)
    assert page.evaluate("drawings().flatMap(drawing)") == []

    boxes = page.evaluate("""(() => {
        const svg = document.querySelector("svg"), wide = svg.viewBox.baseVal.width;
        const box = (e) => e.getBoundingClientRect();
        const { left, width } = box(svg), unit = wide / width;
        return [...svg.querySelectorAll("text")].map(box)
            .map((b) => [unit * (b.left - left), unit * (b.right - left)]);
    })()""")
    rows = narrow_drawings.rows_of(svg) or []
    wide = float(narrow_drawings.HEAD.search(svg)[2])
    cuts = {x for row in rows for part in row for x in part} - {0, wide}
    assert boxes
    assert not [(a, x, b) for a, b in boxes for x in cuts if a + 1 < x < b - 1]
    drawings = {p.stem: p.read_text("utf-8") for p in DRAWINGS}
    form = narrow_drawings.for_phones(drawings, path.stem) or svg
    assert narrow_drawings.smallest(form, COLUMN) >= WORD
