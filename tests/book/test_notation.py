"""Letters in formulas: those of the table of notation, one meaning each."""

import re

import pytest
from notebook_cells import ROOT, chapters, markdown, read

FORMULA = re.compile(r"\$\$(.+?)\$\$|\$([^$\n]+)\$", re.DOTALL)
NO_LETTERS = re.compile(r"\\text\{[^}]*\}|\\[a-zA-Z]+|_\{?\w+\}?")
LETTER = re.compile(r"[A-Za-zα-ω]")
#: Letters that one chapter needs for itself, where it says what they are.
OWN = {
    "chapters/clusters/recovery": "abcR",
    "chapters/data_parallel/data_parallel_scratch": "c",
    "chapters/data_parallel/halving": "c",
    "chapters/data_parallel/large_batches": "abgrwGS",
    "chapters/data_parallel/no_speed_up": "ab",
    "chapters/devices/three_ways": "fho",
    "chapters/kvstore/in_step": "wx",
    "chapters/kvstore/out_of_step": "w",
    "chapters/meshes/mesh": "wLP",
    "chapters/meshes/two_links": "h",
    "chapters/pipeline/micro_batches": "L",
    "chapters/pipeline/shorter_bubbles": "FIWv",
    "chapters/scale/scale": "aS",
    "chapters/tensor_parallel/experts": "efELP",
    "chapters/tensor_parallel/ring_attention": "iwKOPQSV",
}
#: What a letter of the table must not stand for.
OTHERWISE = {
    "n is examples, not bytes: write N": r"\$?\*?\bn\*?\$? bytes|n\s*(?:\\beta|\*?β)",
    "n is examples, not workers: write k": r"\*?\bn\*? workers",
    "N is bytes, not sequences: write n": r"\(T, N\)|\*N\*, \*[TH]\*|\*T\*, \*N\*"
    r"|\*T\* · \*N\*|\*N\* sequences",
    "T is time steps, not seconds": r"\bT\([1k]\)",
    "the minibatch is n, not b": r"\*b\* examples|minibatches of b\b|\*b / k\*",
}


def in_formulas(text):
    """The letters in the formulas of Markdown, without indices."""
    formulas = (a or b for a, b in FORMULA.findall(text))
    return {x for f in formulas for x in LETTER.findall(NO_LETTERS.sub("", f))}


def words(page):
    return markdown(read(chapters()[page]))


TABLE = (ROOT / "reference/notation.md").read_text(encoding="utf-8")
ROWS = re.findall(r"(?m)^\| (\$.*?) \|", TABLE)


def test_no_letter_of_the_table_has_two_rows():
    letters = [name for row in ROWS for name in re.findall(r"\$([^$]+)\$", row)]
    assert sorted(letters) == sorted(set(letters))
    assert in_formulas(" ".join(ROWS)) >= set("knNTHdpsmtMCB")


@pytest.mark.parametrize("page", chapters())
def test_a_formula_has_letters_of_the_table_and_all_those_of_its_chapter(page):
    others = in_formulas(words(page)) - in_formulas(" ".join(ROWS))
    assert others == set(OWN.get(page, ""))


@pytest.mark.parametrize("page", chapters())
def test_a_letter_of_the_table_stands_for_nothing_else(page):
    found = {
        f"{what}: {match.group()!r}"
        for what, pattern in OTHERWISE.items()
        for match in re.finditer(pattern, words(page))
    }
    assert not found


@pytest.mark.parametrize(
    "text",
    ["A message of *n* bytes.", r"$\alpha + n\beta$", "n workers", "(T, N)",
     "With *b* examples", "$T(1)/T(k)$"],
)  # fmt: skip
def test_another_meaning_is_found(text):
    assert any(re.search(pattern, text) for pattern in OTHERWISE.values())
