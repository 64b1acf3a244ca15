"""Every work in the bibliography is cited, and every work that is named is in it."""

import re

import pytest
from notebook_cells import ROOT, chapters, markdown, read

BIB = (ROOT / "reference/references.bib").read_text(encoding="utf-8")
KEYS = re.findall(r"(?m)^@\w+\{([^,\s]+),", BIB)
CITE = re.compile(r"\{cite(?::\w+)?\}`([^`]+)`")
#: The Markdown of every page and chapter, by name.
TEXTS = {
    **{path.name: path.read_text(encoding="utf-8")
       for path in (ROOT / "intro.md", *ROOT.glob("reference/*.md"))},
    **{page: markdown(read(path)) for page, path in chapters().items()},
}


def test_whatever_is_cited_has_one_entry_and_nothing_else_has_one():
    cited = {key.strip() for text in TEXTS.values()
             for keys in CITE.findall(text) for key in keys.split(",")}
    assert sorted(KEYS) == sorted(cited)


@pytest.mark.parametrize("name", TEXTS)
def test_authors_who_are_named_are_cited_in_the_same_line(name):
    """Lines hold a sentence each."""
    named = [line for line in TEXTS[name].splitlines() if re.search(r"\bet al\.", line)]
    assert [line for line in named if not CITE.search(line)] == []
