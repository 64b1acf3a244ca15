"""Every answer of the FAQ leads to a section or a test that is there."""

import re

import pytest
from notebook_cells import ROOT, markdown, read

PAGES = ROOT / "reference"
FAQ = (PAGES / "faq.md").read_text(encoding="utf-8")
ANSWERS = dict(
    part.split("\n", 1) for part in re.split(r"(?m)^## ", FAQ)[1:]
)  # question: answer
LINK = re.compile(r"\]\(([\w/.]+\.(?:ipynb|md))(?:#([\w-]+))?\)")
TEST = re.compile(r"`(tests/[\w/]+\.py)`")


def headings(path):
    """The anchors of a page's headings, as links spell them."""
    is_page = path.suffix == ".md"
    text = path.read_text(encoding="utf-8") if is_page else markdown(read(path))
    titles = (x.lstrip("# ") for x in text.splitlines() if x.startswith("#"))
    return {anchor(title) for title in titles}


def anchor(title):
    return re.sub(r"[^\w\s-]", "", title.lower()).replace(" ", "-")


def sections(page):
    """The code cells below each heading of a chapter, by its anchor."""
    found, current = {}, None
    for cell in read(PAGES / page).cells:
        if cell.cell_type == "code":
            found.setdefault(current, []).append(cell.source)
        elif titles := re.findall(r"(?m)^#+ (.+)$", cell.source):
            current = anchor(titles[-1])
    return found


@pytest.mark.parametrize("question", ANSWERS)
def test_an_answer_is_backed_by_a_cell_that_runs_or_by_a_test(question):
    links = [link for link in LINK.findall(ANSWERS[question]) if ".ipynb" in link[0]]
    runs = [page for page, there in links if not there or there in sections(page)]
    assert runs or TEST.search(ANSWERS[question])


@pytest.mark.parametrize("target", sorted(set(LINK.findall(FAQ))))
def test_what_an_answer_leads_to_is_there(target):
    page, anchor = target
    assert (PAGES / page).is_file()
    assert not anchor or anchor in headings(PAGES / page)


@pytest.mark.parametrize("path", sorted(set(TEST.findall(FAQ))))
def test_a_test_that_an_answer_names_is_there(path):
    assert (ROOT / path).is_file()
