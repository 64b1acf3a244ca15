"""The glossary has the terms of the library's names; pages link to what they use.

That it has every bold term of the chapters is a rule in `rules_learning`.
"""

import ast
import re
from types import SimpleNamespace

import glossary  # it finds the extensions
import glossary_terms as ext
import pytest
from docutils import nodes, utils
from notebook_cells import ROOT, chapters
from sphinx import addnodes

from packages import PACKAGES

#: Words in the names of modules and classes that mean what they mean everywhere:
#: English, and computers in general.
PLAIN = (ROOT / "tests/book/plain_words.txt").read_text(encoding="utf-8").split()


#: Files of exercises have their names.
CHAPTERS = {path.stem for path in chapters().values()}


def library_words():
    """Words in the names of public modules and classes, and where each occurs."""
    found = {}
    for path in [path for p in PACKAGES for path in sorted((ROOT / p).rglob("*.py"))]:
        module = path.relative_to(ROOT).with_suffix("")
        classes = [
            node.name
            for node in ast.parse(path.read_text(encoding="utf-8")).body
            if isinstance(node, ast.ClassDef)
        ]
        for name in [*module.parts[1:], *classes]:
            is_chapters = module.parts[0] == "exercisekit" and name in CHAPTERS
            if not name.startswith("_") and not is_chapters:
                for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name):
                    found.setdefault(glossary.stem(word), f"{module}: {name}")
    return found


def test_every_word_in_the_librarys_names_is_explained_or_plain():
    terms = [glossary.stem(term).split() for term in glossary.terms()]
    explained = {word for term in terms for word in [*term, "".join(term)]}
    plain = {glossary.stem(word) for word in PLAIN}
    unknown = {w: at for w, at in library_words().items() if w not in explained | plain}
    assert not unknown
    assert not plain - set(library_words()), "words that no name has any more"


def test_the_two_meanings_of_layerwise_are_told_apart():
    text = (ROOT / "reference/glossary.md").read_text(encoding="utf-8")
    entry = text.split("\nlayer-wise\n")[1].split("\n\n")[0]
    first, second = entry.split(";")
    assert "layerwise" in first and "inside the layers" in first
    assert "tensor parallelism" in first and glossary.defines("tensor parallelism")
    assert "layer-wise" in second and "whole layers" in second
    assert "network partitioning" in second and glossary.defines("network partitioning")


def test_no_term_is_listed_twice():
    stems = [glossary.stem(term) for term in glossary.terms()]
    assert sorted(stems) == sorted(set(stems))


@pytest.mark.parametrize(
    ("words", "known"),
    [("engine", True), ("Micro-batches", True), ("key-value store", True),
     ("carburettor", False), ("`engine`", True)],
)  # fmt: skip
def test_a_term_is_known_in_the_plural_and_in_capitals(words, known):
    assert glossary.defines(words) is known


# The links, on a page made here.

PAGE = """```{glossary}
device
  A worker with a memory.

data parallelism
  A copy on each.

LSTM
long short-term memory
  A layer.

cell
  The work of a layer.
```"""


def test_the_entries_of_a_glossary_and_their_other_names():
    names = [
        ["device"],
        ["data parallelism"],
        ["LSTM", "long short-term memory"],
        ["cell"],
    ]
    assert ext.entries(PAGE) == names


def linked(tmp_path, *parts, page="chapters/one"):
    """The words and targets of the links that a paragraph of `parts` gets."""
    (tmp_path / "reference").mkdir(exist_ok=True)
    (tmp_path / "reference/glossary.md").write_text(PAGE, encoding="utf-8")
    document = utils.new_document("one")
    document.settings.env = SimpleNamespace(
        docname=page, srcdir=str(tmp_path), note_dependency=lambda path: None
    )
    document += nodes.paragraph(
        "", "", *[nodes.Text(p) if isinstance(p, str) else p for p in parts]
    )
    ext.LinkTerms(document).apply()
    return [
        (xref.astext(), xref["reftarget"])
        for xref in document.findall(addnodes.pending_xref)
    ]


LINKED = {
    "the first use and no other": ("A device and a device.", [("device", "device")]),
    "a plural, a capital and another name": (
        "Devices, an LSTM, a long short-term memory.",
        [("Devices", "device"), ("LSTM", "LSTM")]),
    "two words that are broken over lines": (
        "By data\nparallelism.", [("data\nparallelism", "data parallelism")]),
    "no part of a word": ("A multi-device, a devicer, lstm.", []),
    "no word with other meanings": ("The cell below.", []),
}  # fmt: skip


@pytest.mark.parametrize("text, links", LINKED.values(), ids=LINKED)
def test_of_a_paragraph_is_linked(tmp_path, text, links):
    assert linked(tmp_path, text) == links


def test_a_word_with_other_meanings_is_linked_in_bold(tmp_path):
    assert linked(tmp_path, nodes.strong("", "cells")) == [("cells", "cell")]


@pytest.mark.parametrize(
    "closed",
    [nodes.literal("", "device"), nodes.reference("", "device", refuri="a.html"),
     nodes.title("", "device"), nodes.math("", "device"),
     nodes.inline("", "device", classes=["cell"])],
    ids=lambda node: type(node).__name__,
)  # fmt: skip
def test_code_links_headings_formulas_and_cells_are_left_alone(tmp_path, closed):
    assert linked(tmp_path, closed, " A device.") == [("device", "device")]
    assert linked(tmp_path, closed) == []


def test_the_glossary_itself_gets_no_links(tmp_path):
    assert linked(tmp_path, "A device.", page="reference/glossary") == []


def test_words_with_other_meanings_are_terms():
    assert set(glossary.terms()) >= ext.ALSO_OTHER_WORDS
