"""Letters in formulas: those of the table of notation, one meaning each."""

import re

import pytest
from notebook_cells import ROOT, chapters, markdown, read

#: What a letter of the table must not stand for.
OTHERWISE = {
    "n is examples, not bytes: write N": r"\$?\*?\bn\*?\$? bytes|n\s*(?:\\beta|\*?β)",
    "n is examples, not workers: write k": r"\*?\bn\*? workers",
    "N is bytes, not sequences: write n": r"\(T, N\)|\*N\*, \*[TH]\*|\*T\*, \*N\*"
    r"|\*T\* · \*N\*|\*N\* sequences",
    "T is time steps, not seconds": r"\bT\([1k]\)",
    "the minibatch is n, not b": r"\*b\* examples|minibatches of b\b|\*b / k\*",
}


def words(page):
    return markdown(read(chapters()[page]))


TABLE = (ROOT / "reference/notation.md").read_text(encoding="utf-8")
ROWS = re.findall(r"(?m)^\| (\$.*?) \|", TABLE)


def test_no_letter_of_the_table_has_two_rows():
    letters = [name for row in ROWS for name in re.findall(r"\$([^$]+)\$", row)]
    assert sorted(letters) == sorted(set(letters))
    assert letters


@pytest.mark.parametrize("page", chapters())
def test_a_letter_of_the_table_stands_for_nothing_else(page):
    found = {
        f"{what}: {match.group()!r}"
        for what, pattern in OTHERWISE.items()
        for match in re.finditer(pattern, words(page))
    }
    assert not found
