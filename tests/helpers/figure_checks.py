"""What must hold for every interactive figure, without a browser and in one."""

import json
import re

import pytest
from bs4 import BeautifulSoup
from html_check import OUTSIDE_CSS, is_outside, loaded

from bookkit.figures import frame
from browser import Browser, find_chromium

#: Moves the controls as a reader would, and writes down what the figure then shows.
READER = """
const root = document.querySelector(".d2l-figure"), seen = [];
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
    clock: find("clock") && find("clock-value").textContent + "/" + find("clock").max,
  });
}
"""


def soup(html):
    return BeautifulSoup(html, "html.parser")


def browse(html, steps, folder):
    """Open a figure in a browser, do `steps` there, return what was noted.

    `steps`: JavaScript that calls `set(role, value)`, `find(role).click()` and
    `note(whether the drawing is wanted)`. `folder`: for files of the browser's.
    """
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium here: the figure's script is not tried in a browser")
    file = folder / "figure.html"
    file.write_text(
        f'<!doctype html><meta charset="utf-8"><body>{html}', encoding="utf-8"
    )
    with Browser(program, deadline=100) as browser:
        page = browser.page()
        page.open(file.as_uri())
        return page.evaluate(f"(() => {{{READER}{steps};return seen;}})()")


def choosing(choices, whole=lambda i: i % 13 == 0):
    """Steps for `browse`: a note for each of `choices`, dictionaries role -> value.

    `whole`: for which of them the drawing is noted as well. The clock is set last.
    """
    return "".join(
        "".join(
            f"set({json.dumps(role)}, {json.dumps(value)});"
            for role, value in sorted(choice.items(), key=lambda x: x[0] == "clock")
        )
        + f"note({str(whole(i)).lower()});"
        for i, choice in enumerate(choices)
    )


def assert_same_as_python(seen, choices, twin, data, name):
    """The browser showed for every choice what Python makes of it.

    `seen`: what `browse` returns for `choosing(choices)`. `twin`, `data`, `name`: the
    figure's, as `frame.page` takes them.
    """
    assert len(seen) == len(choices)
    for shown, choice in zip(seen, choices):
        d, now = seen_in_python(choice, twin, data, name)
        assert shown["summary"] == shown["label"] == twin.summary(d), choice
        assert shown["moment"] == twin.moment(d, now), choice
        assert shown["box"] == f"0 0 700 {twin.height(d)}", choice
        if shown["clock"]:
            assert shown["clock"] == f"{now}/{twin.steps(d)}", choice
        if shown["drawing"]:
            drawn = str(soup(shown["drawing"]))
            assert drawn == str(soup(twin.drawing(d, now))), choice


def seen_in_python(choice, twin, data, name):
    """`d` and the clock for a choice."""
    others = {role: value for role, value in choice.items() if role != "clock"}
    return {**twin.state(data, others), "name": name}, choice.get("clock", 0)


def assert_framed(html, first, controls, twin, data, name):
    """The figure's page is complete without scripts, and loads nothing.

    `first`: the choice that it shows, with the clock if it has one.
    """
    page = soup(html)
    d, now = seen_in_python(first, twin, data, name)
    drawing = soup(f'<g class="drawing">{twin.drawing(d, now)}</g>')
    assert str(page.svg.find("g", class_="drawing")) == str(drawing)
    assert page.find("p", {"data-role": "summary"}).string == twin.summary(d)
    moment = page.find("p", {"data-role": "moment"})
    assert moment.string == twin.moment(d, now) and moment["aria-live"] == "polite"
    assert page.svg["aria-label"] == twin.summary(d) and page.svg["role"] == "img"
    assert page.find(class_="controls").has_attr("hidden")
    _assert_named(page.find(class_="controls"), controls)
    _assert_loads_nothing(html, page)
    ids = [tag["id"] for tag in page.find_all(id=True)]
    assert len(set(ids)) == len(ids)
    assert all(i == name or i.startswith(f"{name}-") for i in ids)
    used = set(re.findall(r"url\(#([\w-]+)\)", html.split("<script")[0]))
    assert used <= set(ids)


def _assert_named(group, controls):
    """Native controls with names, that the keyboard reaches in their order."""
    found = group.find_all(["input", "select", "button"])
    clock = any(isinstance(control, frame.Clock) for control in controls)
    assert len(found) == len(controls) + 2 * clock
    for control in found:
        named = control.find_parent("label") or control.get("aria-label")
        assert named and not control.get("tabindex")


def _assert_loads_nothing(html, page):
    assert not list(loaded(page))
    assert not OUTSIDE_CSS.findall(html)
    assert not any(is_outside(word) for word in re.findall(r"[\w/:.-]{6,}", html))
