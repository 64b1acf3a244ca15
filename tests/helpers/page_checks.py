"""What must hold for a rendered page in a browser.

Each function takes an open `browser.Page` and returns a list of messages, empty when
all is well. `visit` brings a page through all of them.
"""

import base64
import json
from contextlib import contextmanager
from pathlib import Path
from urllib.request import url2pathname

import matplotlib
import narrow_drawings
import pytest

from browser import Browser, find_chromium

#: A page of a test: `head` and `body` are HTML.
PAGE = """<!DOCTYPE html><html lang="en"><head><title>A page</title>{head}</head>
<body style="margin: 8px"><main><article><h1>A page</h1>{body}</article></main></body>
</html>"""
#: Widths of a desktop's window and of a phone, in CSS pixels.
WIDE, NARROW = 1400, 390
HERE = Path(__file__).parent
AXE = (HERE / "axe" / "axe.min.js").read_text("utf-8")
SCRIPT = (HERE / "page_checks.js").read_text("utf-8")
#: Figures and code are set in fonts of the machine, pages in the book's own; here, in
#: Matplotlib's: the same on every machine, and wide.
TTF = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
FACES = (
    ("measured-sans", 400, "DejaVuSans.ttf"),
    ("measured-sans", 700, "DejaVuSans-Bold.ttf"),
    ("measured-mono", 400, "DejaVuSansMono.ttf"),
    ("measured-mono", 700, "DejaVuSansMono-Bold.ttf"),
)


PROGRAM = find_chromium()
needs_chromium = pytest.mark.skipif(
    PROGRAM is None, reason="no Chromium here: apt-get install chromium"
)


@contextmanager
def new_page():
    """A page in a Chromium of its own, set in `FACES`."""
    with Browser(PROGRAM) as browser:
        page = browser.page()
        set_in_fonts_of_ours(page)
        yield page


def set_in_fonts_of_ours(page):
    """From now on, whatever `page` opens is set in `FACES`."""
    faces = [
        (family, weight, base64.b64encode((TTF / file).read_bytes()).decode())
        for family, weight, file in FACES
    ]
    script = (HERE / "page_fonts.js").read_text("utf-8")
    page.before(f"({script.rstrip()})({json.dumps(faces)})")


def visit(page, url, name):
    """Open the page `name` at `url` as a phone and as a desktop does, and check it.

    Returns a dictionary: what was checked -> messages.
    """
    found, small = on_a_phone(page, url)
    more, large = on_a_desktop(page, url, name)
    names = {path.replace(".narrow.", ".") for path in small}
    return {**found, **more, "drawings at one width": sorted(names ^ {*large})}


def on_a_phone(page, url):
    """Return what was found, and {file of a drawing: its width}."""
    open_with_checks(page, url, NARROW)
    widths = dict(page.evaluate("drawingsInFiles()"))
    found = {"drawings on a phone": page.evaluate("smallDrawings()"),
             "drawings on a phone, their words": small_words(widths)}
    page.prefer("dark")
    found[f"layout at {NARROW}"] = page.evaluate("layout()")
    found["contrast, dark"] = page.evaluate("paleWords()")
    found["drawings on a phone"] += page.evaluate("smallDrawings()")
    found["plots on a phone"] = page.evaluate("smallPlots()")
    page.evaluate(AXE + "; 0")
    page.evaluate("thinOut()")
    found["accessibility"] = page.evaluate("faults()")
    return {**found, **asked_and_said(page, "on a phone")}, widths


def on_a_desktop(page, url, name):
    """Return what was found, and {file of a drawing: its width}."""
    open_with_checks(page, url, WIDE)
    found, widths = {}, dict(page.evaluate("drawingsInFiles()"))
    if name.startswith("chapters/"):
        found["opening"] = page.evaluate("opening()")
        found["menu"] = page.evaluate("menu()")
    # Outputs that wait for a guess.
    page.evaluate("document.querySelectorAll('.predict legend ~ :last-child')"
                  ".forEach((button) => button.click())")
    found[f"layout at {WIDE}"] = page.evaluate("layout()")
    found["contrast, light"] = page.evaluate("paleWords()")
    found["figures"] = page.evaluate("operateFigures()")
    page.evaluate("widen()")
    in_wide = page.evaluate("operateFigures(drawing)")
    found["figures in wide letters"] = [t for t in in_wide if t.endswith("is outside")]
    return {**found, **asked_and_said(page, "on a desktop")}, widths


def open_with_checks(page, url, width):
    page.prefer("light")
    page.resize(width)
    page.open(url)
    page.evaluate(SCRIPT)


def asked_and_said(page, where):
    return {f"requests {where}": [u for u in page.requests() if is_outside(u)],
            f"console {where}": page.complaints()}


def small_words(widths):
    """Drawings, as wide as they are shown, with words that are too small."""
    sizes = {path: narrow_drawings.smallest(
        Path(url2pathname(path)).read_text("utf-8"), w) for path, w in widths.items()}
    return [
        f"{path} has words of {size:.1f} pixels"
        for path, size in sizes.items()
        if size < narrow_drawings.WORD
    ]


def is_outside(url):
    """Whether a request leaves the book's folder, when it was opened as a file."""
    return not url.startswith(("file:", "data:", "blob:"))
