"""Every work in the bibliography is cited, and every work that is named is in it."""

import re

import pytest
from notebook_cells import ROOT, chapters, markdown, read

BIB = (ROOT / "reference/references.bib").read_text(encoding="utf-8")
KEYS = re.findall(r"(?m)^@\w+\{([^,\s]+),", BIB)
CITE = re.compile(r"\{cite(?::\w+)?\}`([^`]+)`")


def texts():
    """The Markdown of every page and chapter, by name."""
    pages = [ROOT / "intro.md", *ROOT.glob("reference/*.md")]
    found = {path.name: path.read_text(encoding="utf-8") for path in pages}
    return {**found, **{p: markdown(read(path)) for p, path in chapters().items()}}


TEXTS = texts()


def cited(text):
    return {key.strip() for keys in CITE.findall(text) for key in keys.split(",")}


def test_every_key_is_cited():
    assert set(KEYS) - {key for text in TEXTS.values() for key in cited(text)} == set()


def test_every_citation_has_an_entry():
    assert {key for text in TEXTS.values() for key in cited(text)} - set(KEYS) == set()


def test_no_key_is_there_twice():
    assert sorted(KEYS) == sorted(set(KEYS))


@pytest.mark.parametrize("name", TEXTS)
def test_authors_who_are_named_are_cited_in_the_same_line(name):
    """Lines hold a sentence each."""
    named = [line for line in TEXTS[name].splitlines() if re.search(r"\bet al\.", line)]
    assert [line for line in named if not CITE.search(line)] == []
