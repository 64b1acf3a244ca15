"""The figures that chapters store are those that the library would make today."""

import re
from pathlib import Path

import nbformat

from bookkit.figures import frame

CHAPTERS = sorted(Path(__file__).parents[2].glob("chapters/*/*.ipynb"))
FOLDER = Path(frame.__file__).parent


def stored():
    """Every interactive figure in a chapter: (chapter, its HTML)."""
    for path in CHAPTERS:
        for cell in nbformat.read(path, as_version=4).cells:
            for output in cell.get("outputs", ()):
                html = output.get("data", {}).get("text/html", "")
                if 'class="d2l-figure"' in html:
                    yield path.stem, html


def test_every_stored_figure_has_todays_script_and_style():
    kinds = []
    for chapter, html in stored():
        kinds += re.findall(r'data-kind="(\w+)"', html)
        for name in ("frame.css", "shapes.js", "page.js", f"{kinds[-1]}.js"):
            text = (FOLDER / name).read_text("utf-8")
            assert text in html, f"{chapter} stores an older {name}: make rerun"
    root = FOLDER.parents[1]
    for page in (root / "intro.md", *root.glob("reference/*.md")):
        kinds += re.findall(r"```\{playable\} (\w+)", page.read_text("utf-8"))
    made = {path.stem for path in FOLDER.glob("*.js")} - {"shapes", "page"}
    assert set(kinds) == made, "a figure is in no chapter and on no page"
