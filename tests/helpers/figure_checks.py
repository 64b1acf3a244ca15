"""What an interactive figure shows, asked of its script and seen in a browser."""

import json
import re

from bs4 import BeautifulSoup

from d2l_ext.scale import step
from d2l_ext.scale.step import VGG11, network

#: For what the cost calculator is asked, and what it shows of it at first.
MACHINES = VGG11, step.Device(flops=5e12, overhead=1e-3), network(10, latency=20e-6)
COST = {
    "parameters": VGG11.parameters, "arrays": 22, "example": 206.016, "overhead": 1,
    "batch": 1024, "devices": 16, "bandwidth": 10, "latency": 20, "servers": 4,
    "packing": 1, "per_host": 8, "inside": 3600, "nearby": 5, "tensor": 1,
    "pipeline": 1, "chunks": 8, "border": 4096, "sums": 22,
    "model": "VGG-11", "scaling": "each device", "way": "ring",
    "sent": "array by array, during backward", "compression": "no",
}
#: Moves the controls as a reader would, and writes down what the figure then shows.
READER = """
const root = document.querySelector(".d2l-figure"), seen = [];
const find = (role) => root.querySelector(`[data-role=${role}]`);
function set(role, value) {
  find(role).value = value;
  find(role).dispatchEvent(new Event("input", {bubbles: true}));
}
function note() {
  const svg = root.querySelector("svg");
  seen.push({
    summary: find("summary").textContent, moment: find("moment").textContent,
    label: svg.getAttribute("aria-label"), box: svg.getAttribute("viewBox"),
    drawing: root.querySelector(".drawing").innerHTML,
    code: root.querySelector(".code")?.innerHTML ?? "",
    hidden: root.querySelector(".controls").hidden,
    kept: find("play")?.textContent === "Pause" ? ""
      : root.style.minHeight + find("moment").style.minHeight,
    clock: find("clock") && find("clock-value").textContent + "/" + find("clock").max,
  });
}
"""


def soup(html):
    return BeautifulSoup(html, "html.parser")


def labels(drawing):
    """The words of a drawing, in the order in which they are drawn."""
    return [text.string or "" for text in soup(drawing).find_all("text")]


class State:
    """What a script makes of a choice: `state.sent(0, 3)` is its `sent(d, 0, 3)`.

    `state["ring"]` is what it holds by that name.
    """

    def __init__(self, script, choice):
        self.script, self.choice = script, choice

    def __getattr__(self, function):
        def call(*arguments):
            given = "".join(f", {json.dumps(value)}" for value in arguments)
            return self.script.ask(self.choice, f"{function}(d{given})")

        return call

    def __getitem__(self, field):
        return self.script.ask(self.choice, f"d.{field}")


def assert_in_its_box(view, choice):
    """A state is made of values, and all of its drawing lies in the drawing's box."""
    assert not re.search(r"NaN|undefined|Infinity|null|\[object", str(view)), choice
    right, bottom = map(int, view["box"].split()[2:])
    for shape in soup(view["drawing"]).find_all(["rect", "text"]):
        x, y = int(shape["x"]), int(shape["y"])
        assert 0 <= x <= x + int(shape.get("width", 0)) <= right, (choice, shape)
        assert 0 <= y <= y + int(shape.get("height", 0)) <= bottom, (choice, shape)


def choosing(choices):
    """Steps for `browse`: a note for each of `choices`, dictionaries role -> value.

    The clock is set last, as another choice may end it earlier.
    """
    return "".join(
        "".join(
            f"set({json.dumps(role)}, {json.dumps(value)});"
            for role, value in sorted(choice.items(), key=lambda x: x[0] == "clock")
        )
        + "note();"
        for choice in choices
    )


def assert_shown(seen, choices, script):
    """The browser showed for every choice what the script makes of it here.

    `seen`: what `browse` returns for `choosing(choices)`.
    """
    assert len(seen) == len(choices)
    for page, choice in zip(seen, choices):
        view = script.view(choice)
        assert page["summary"] == page["label"] == view["summary"], choice
        assert (page["moment"], page["box"]) == (view["moment"], view["box"]), choice
        assert str(soup(page["drawing"])) == str(soup(view["drawing"])), choice
        assert str(soup(page["code"])) == str(soup(view["code"])), choice
        if page["clock"]:
            assert page["clock"] == f"{view['now']}/{view['last']}", choice
