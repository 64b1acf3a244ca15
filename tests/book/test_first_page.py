"""The first page leads to every chapter, and names each with what it asks."""

import re
import sys

import pytest
from notebook_cells import PUZZLES, ROOT, chapters

sys.path.insert(0, str(ROOT / "_sphinx/ext"))
import first_page

INTRO = (ROOT / "intro.md").read_text(encoding="utf-8")
#: What readers come with: a word of it, and a chapter that has the answer.
PROBLEMS = {
    "brings nothing": "no_speed_up", "memory": "sharded", "too long": "ring_attention",
    "wait for each other": "micro_batches", "takes too long": "overlap",
    "network between": "compression", "Jobs die": "recovery",
    "Which way": "three_ways", "PyTorch": "rosetta", "One way": "mesh",
    "network between the": "seldom", "batch has": "large_batches",
    "A server": "process_ring",
}  # fmt: skip


def test_its_contents_are_all_chapters_in_their_order():
    listed = [page for _, pages in first_page.parts(ROOT) for page in pages]
    assert sorted(listed) == sorted(chapters()) and len(listed) == len(set(listed))


@pytest.mark.parametrize("chapter", chapters())
def test_a_chapter_opens_with_a_question(chapter):
    title, question = first_page.opening(ROOT / f"{chapter}.ipynb")
    assert question.endswith("?") and 20 < len(question) < 240, question
    assert not re.search(r"[*`\[]", title + question)


@pytest.mark.parametrize("words, chapter", PROBLEMS.items())
def test_a_problem_leads_to_its_chapter_in_one_click(words, chapter):
    rows = [line for line in INTRO.splitlines() if line.startswith("|")]
    assert any(words in row and f"/{chapter}.ipynb)" in row for row in rows)


def test_every_chapter_says_what_others_call_its_subject():
    teaching = {**chapters()}
    del teaching[PUZZLES]
    for name, path in teaching.items():
        said = path.read_text(encoding="utf-8")
        assert "Elsewhere" in said or name.endswith("rosetta"), name
