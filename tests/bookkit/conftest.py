"""One Chromium for all figures that a file of tests looks at."""

import pytest
from figure_checks import READER

from browser import Browser, find_chromium


@pytest.fixture(scope="module")
def page():
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium here: the figure is not looked at in a browser")
    with Browser(program, deadline=300) as browser:
        yield browser.page()


@pytest.fixture
def browse(page, tmp_path):
    """A function that opens a figure, does `steps` there, and returns what was noted.

    `steps`: JavaScript that calls `set(role, value)`, `find(role).click()` and
    `note()`. `width`: of the page, in pixels.
    """

    def do(html, steps, width=800):
        file = tmp_path / "figure.html"
        file.write_text(f'<!doctype html><meta charset="utf-8"><body>{html}', "utf-8")
        page.resize(width)
        page.open(file.as_uri())
        return page.evaluate(f"(() => {{{READER}{steps};return seen;}})()")

    return do
