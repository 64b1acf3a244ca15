"""The first page leads to every chapter, and names each with what it asks."""

import re

import first_page
import pytest
from notebook_cells import ROOT, chapters, read


def test_its_contents_are_all_chapters_in_their_order():
    listed = [page for _, pages in first_page.parts(ROOT) for page in pages]
    assert sorted(listed) == sorted(chapters()) and len(listed) == len(set(listed))


@pytest.mark.parametrize("chapter", chapters())
def test_a_chapter_opens_with_a_question(chapter):
    title, question = first_page.opening(ROOT / f"{chapter}.ipynb")
    assert question.endswith("?") and 20 < len(question) < 240, question
    assert not re.search(r"[*`\[]", title + question)


@pytest.mark.parametrize("chapter", chapters())
def test_a_card_has_the_first_picture_of_its_chapter(chapter):
    name, plot = first_page.first_picture(ROOT / f"{chapter}.ipynb")
    if plot:
        assert plot.startswith(b"\x89PNG") and name.endswith(".small.png")
    else:
        assert (ROOT / "chapters/img" / name).is_file()


CHAPTER = re.compile(r"\]\((?:\.\./|chapters/)?((?:\w+/)?\w+)\.ipynb")


def needed(chapter):
    """The chapters that the opening of `chapter` names under *You need*."""
    part = chapter.split("/")[0]
    first = read(chapters()[f"chapters/{chapter}"]).cells[0].source
    line = re.search(r"(?m)^\*\*You need\*\*.*$", first)[0]
    found = CHAPTER.findall(line)
    return {name if "/" in name else f"{part}/{name}" for name in found}


def with_all_they_need(names):
    return names | {one for name in names for one in with_all_they_need(needed(name))}


def problems():
    """Rows of the table: the chapters to read, and those that are needed before."""
    table = (ROOT / "intro.md").read_text("utf-8").split("## What is your problem?")[1]
    rows = re.findall(r"(?m)^\| (.+) \| (.+) \| (.+) \|$", table.split("\n## ")[0])
    for problem, to_read, before in rows[1:]:
        links = [{*CHAPTER.findall(cell)} for cell in (to_read, before)]
        yield pytest.param(*links, id=problem)


@pytest.mark.parametrize("to_read, before", problems())
def test_a_row_names_what_its_chapters_need(to_read, before):
    missing = {one for name in to_read for one in needed(name)}
    assert missing <= with_all_they_need(before) | to_read
