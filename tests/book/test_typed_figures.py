"""No time and no speed-up in the text was typed by hand, but for reasons given."""

import re

import pytest
import yaml
from notebook_cells import ROOT, chapters, markdown, read
from typed_figures import ALLOWED, prose, typed

TOC = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
PAGES = ["README", TOC["root"]] + [
    page["file"] for part in TOC["parts"] for page in part["chapters"]
]


def text(page):
    if page in chapters():
        return markdown(read(chapters()[page]))
    return (ROOT / f"{page}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_takes_its_times_and_speed_ups_from_results(page):
    found = typed(text(page), ALLOWED.get(page, ()))
    assert not found, "print it, take it from a result, or say why not:\n" + "\n".join(
        found
    )


@pytest.mark.parametrize("page", ALLOWED)
def test_every_exception_is_still_needed(page):
    for piece in ALLOWED[page]:
        others = [other for other in ALLOWED[page] if other != piece]
        assert len(typed(text(page), others)) > len(typed(text(page), ALLOWED[page]))


@pytest.mark.parametrize("line", [
    "A step takes 31 ms here.",
    "It took 4.5 s, or 3–5 minutes.",
    "That is 1.9 times as fast.",
    "Two devices are 1.72× faster.",
    "The second run was twice as fast.",
    "We saw a speed-up of about 1.8.",
    "| ring | 12.5 µs |",
    "They were ready after twenty seconds.",
    "Half an hour later it was done.",
])  # fmt: skip
def test_a_typed_figure_is_found(line):
    assert typed(line)


@pytest.mark.parametrize("line", [
    "The link has 10 Gbit/s, the array 20 MB.",
    "Set `PS_RESEND_TIMEOUT=300 ms`.",
    "A message takes $5 s$ on paper.",
    "It was {result}`distributed rows.20-gloo-2.ratio` s.",
    "```\n31 ms\n```",
    "The 2 sides, the 3 sums and the 4 servers.",
    "The notebook runs in less than two minutes.",
    "MXNet 1.9.1 sends twice as much.",
])  # fmt: skip
def test_what_is_no_typed_figure_is_left_alone(line):
    assert typed(line) == []


def test_an_exception_covers_its_own_figure_only():
    line = "With a latency of 50 µs it took 50 µs."
    assert len(typed(line, ["a latency of 50 µs"])) == 1


def test_what_is_cut_out_does_not_join_what_stands_around_it():
    assert not re.search(r"3\s*s", prose("3 `x` s"))
