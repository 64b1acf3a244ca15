"""The glossary has each term once; pages link to what they use.

That it has every bold term of the chapters is a rule in `rules_learning`.
"""

from types import SimpleNamespace

import glossary
import glossary_terms as ext
import pytest
from docutils import nodes, utils
from sphinx import addnodes


def test_no_term_is_listed_twice():
    stems = [glossary.stem(term) for term in glossary.terms()]
    assert sorted(stems) == sorted(set(stems))


@pytest.mark.parametrize(
    ("words", "known"),
    [("engine", True), ("Micro-batches", True), ("key-value store", True),
     ("carburettor", False), ("`engine`", True)],
)
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
    assert ext.entries(PAGE) == [
        ["device"], ["data parallelism"], ["LSTM", "long short-term memory"], ["cell"]
    ]


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
}


@pytest.mark.parametrize("text, links", LINKED.values(), ids=LINKED)
def test_of_a_paragraph_is_linked(tmp_path, text, links):
    assert linked(tmp_path, text) == links


@pytest.mark.parametrize("terms, text, found", [
    (["key", "key range"], "A key range and keys.", ["key range", "keys"]),
    (["interleaved", "interleaved 1F1B", "LSTM"], "Interleaved 1F1B, an lstm.",
     ["Interleaved 1F1B"]),
])
def test_the_longest_term_is_found_also_where_it_begins_a_sentence(terms, text, found):
    assert ext.pattern(terms).findall(text) == found


def test_a_word_with_other_meanings_is_linked_alone_in_bold(tmp_path):
    assert linked(tmp_path, nodes.strong("", "cells")) == [("cells", "cell")]
    assert linked(tmp_path, nodes.strong("", "Which cells wait?")) == []


@pytest.mark.parametrize(
    "closed",
    [nodes.literal("", "device"), nodes.reference("", "device", refuri="a.html"),
     nodes.title("", "device"), nodes.math("", "device"),
     nodes.inline("", "device", classes=["cell"])],
    ids=lambda node: type(node).__name__,
)
def test_code_links_headings_formulas_and_cells_are_left_alone(tmp_path, closed):
    assert linked(tmp_path, closed, " A device.") == [("device", "device")]
    assert linked(tmp_path, closed) == []


def test_the_glossary_itself_gets_no_links(tmp_path):
    assert linked(tmp_path, "A device.", page="reference/glossary") == []


def test_words_with_other_meanings_are_terms():
    assert set(glossary.terms()) >= ext.ALSO_OTHER_WORDS


def test_a_definition_is_the_first_sentence_of_its_entry_in_plain_words():
    said = ext.definitions(PAGE)
    assert said["device"] == "A worker with a memory."
    assert said["LSTM"] == said["long short-term memory"] == "A layer."
    entry = "view\n  A *part*, as {term}`arrays <array>` have it {cite}`a1`: `a[1:]`."
    page = f"```{{glossary}}\n{entry}\n```"
    assert ext.definitions(page) == {"view": "A part, as arrays have it: a[1:]."}


def test_every_term_has_a_definition():
    text = (glossary.ROOT / "reference/glossary.md").read_text("utf-8")
    assert ext.definitions(text).keys() == {
        name for names in ext.entries(text) for name in names}
