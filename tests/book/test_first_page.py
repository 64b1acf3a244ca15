"""The first page leads to every chapter, and names each with what it asks."""

import re
import sys

import pytest
from notebook_cells import ROOT, chapters

sys.path.insert(0, str(ROOT / "_sphinx/ext"))
import first_page


def test_its_contents_are_all_chapters_in_their_order():
    listed = [page for _, pages in first_page.parts(ROOT) for page in pages]
    assert sorted(listed) == sorted(chapters()) and len(listed) == len(set(listed))


@pytest.mark.parametrize("chapter", chapters())
def test_a_chapter_opens_with_a_question(chapter):
    title, question = first_page.opening(ROOT / f"{chapter}.ipynb")
    assert question.endswith("?") and 20 < len(question) < 240, question
    assert not re.search(r"[*`\[]", title + question)
