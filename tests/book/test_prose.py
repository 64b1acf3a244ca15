"""What chapters say is what their cells show: numbers, comparisons, times."""

import prose
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from notebook_cells import ROOT, chapters, read

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "reference").glob("*.md")])


@pytest.mark.parametrize("page", chapters())
def test_the_cells_of_a_section_show_what_it_says_of_numbers_and_compares(page):
    nb = read(chapters()[page])
    problems = [*prose.strange_numbers(nb, page), *prose.bare_comparisons(nb, page)]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_without_cells_takes_times_and_speed_ups_from_results(path):
    typed = prose.typed_times(path.read_text(encoding="utf-8"))
    assert not typed, f"take them from a stored result by a role: {typed}"


def chapter(text, code="print(f(2**20), 0.05)", printed="1.72"):
    cell = new_code_cell(code, outputs=[new_output("stream", text=printed)])
    return new_notebook(cells=[new_markdown_cell(f"# T\n\n## S\n\n{text}"), cell])


@pytest.mark.parametrize("text, strange", [
    ("It is 1.72 times as fast, takes 50 ms, or 5 %, for 1,048,576 numbers.", []),
    ("The twelve devices send 1,048,575 numbers at a rate of 1e3.",
     ["12", "1048575", "1e3"]),
    ("<details>\n<summary>5</summary>\n\nMXNet takes 15.\n\n</details>", ["15"]),
    ("Predict what 7 devices do.\n\n## Exercises\n\nTake 17 of 20.", ["7", "17", "20"]),
])
def test_a_number_that_no_cell_shows_is_found_in_whatever_unit(text, strange):
    problems = [*prose.strange_numbers(chapter(text), "page")]
    assert [p.split(" says ")[1].split(",")[0] for p in problems] == strange


def test_a_comparison_without_a_cell_that_asserts_or_prints_is_found():
    nb = chapter("The ring is faster than the tree.", code="x = 1")
    assert [*prose.bare_comparisons(nb, "page")] == []
    nb.cells[1].outputs = []
    (problem,) = prose.bare_comparisons(nb, "page")
    assert "'S' compares ('The ring is faster than the tree.')" in problem
    nb.cells[1].source = "assert x == 1"
    assert [*prose.bare_comparisons(nb, "page")] == []


@pytest.mark.parametrize("text, typed", [
    ("It takes 31 ms, is 1.9 times as fast: a speed-up of 1.9.",
     ["31 ms", "1.9 times as fast", "speed-up of 1"]),
    ("It was {result}`distributed rows.ratio`, `5 ms`, and ends after 30 s.", []),
])
def test_a_time_or_a_speed_up_that_was_typed_is_found(text, typed):
    assert prose.typed_times(text) == typed
