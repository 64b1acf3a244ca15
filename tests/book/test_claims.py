"""The claims ledger agrees with the cells that show its claims."""

import pytest
from claims_check import (
    CHECKS,
    EXPECTED,
    claims_data,
    load,
    not_shown,
    stray_tags,
    without_finding,
    wrong_ids,
    wrong_words,
)
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from notebook_cells import chapters, read

PAGE = "chapters/example"
Claim, Source = claims_data.Claim, claims_data.Source


@pytest.mark.parametrize("check", CHECKS)
def test_the_ledger_and_the_chapters_agree(check):
    notebooks = {page: read(path) for page, path in chapters().items()}
    problems = check(load(), notebooks)
    assert not problems, "\n".join(problems)


# Below: each check finds what it is there to find, on a small ledger and chapter.


@pytest.fixture
def ledger():
    """All ids open, but for S4, which is shown."""
    claims = [Claim(i, "Text", ["D2L"], [], "open", "", "") for i in EXPECTED]
    ledger = claims_data.Ledger({"D2L": Source("D2L", "", "", "")}, claims)
    change(ledger, "S4", verdict="confirmed", chapter=PAGE)
    return ledger


@pytest.fixture
def book():
    cells = [
        new_markdown_cell("# Title"),
        new_code_cell("x = 3\nassert x == 3", metadata={"tags": ["claim-S4"]}),
    ]
    return {PAGE: new_notebook(cells=cells)}


def change(ledger, name, **fields):
    i = [claim.id for claim in ledger.claims].index(name)
    ledger.claims[i] = ledger.claims[i]._replace(**fields)


def only(check, ledger, book):
    """The one message, which must come from `check`."""
    found = {other: other(ledger, book) for other in CHECKS}
    assert [other for other in CHECKS if found[other]] == [check]
    (message,) = found[check]
    return message


def test_a_ledger_in_order_has_no_problems(ledger, book):
    assert [check(ledger, book) for check in CHECKS] == [[]] * len(CHECKS)


def test_the_ids_are_the_seventy_five_of_the_book():
    assert len(EXPECTED) == 75
    assert (EXPECTED[0], EXPECTED[14], EXPECTED[-1]) == ("S1", "D1", "T38")


def test_a_missing_id_is_found(ledger, book):
    del ledger.claims[20]
    assert "D7 is missing" in only(wrong_ids, ledger, book)


def test_an_invented_id_is_found(ledger, book):
    ledger.claims.append(ledger.claims[0]._replace(id="S15"))
    assert "S15" in only(wrong_ids, ledger, book)


def test_a_doubled_id_is_found(ledger, book):
    ledger.claims.append(ledger.claims[0])
    assert "S1 stands 2 times" in only(wrong_ids, ledger, book)


def test_an_unknown_verdict_is_found(ledger, book):
    change(ledger, "S4", verdict="plausible", finding="It seems so.")
    assert "'plausible'" in only(wrong_words, ledger, book)


@pytest.mark.parametrize("field", ["flags", "source"])
def test_an_unknown_flag_or_source_is_found(ledger, book, field):
    change(ledger, "S4", **{field: ["DL2"]})
    assert "'DL2'" in only(wrong_words, ledger, book)


def test_a_claim_without_source_is_found(ledger, book):
    change(ledger, "S4", source=[])
    assert "no source" in only(wrong_words, ledger, book)


@pytest.mark.parametrize("verdict", ["qualified", "refuted"])
def test_a_verdict_that_is_not_confirmed_needs_a_finding(ledger, book, verdict):
    change(ledger, "S4", verdict=verdict, finding=" ")
    assert verdict in only(without_finding, ledger, book)
    change(ledger, "S4", verdict=verdict, finding="Only on Sundays.")
    assert without_finding(ledger, book) == []


def test_a_shown_claim_needs_a_chapter_that_exists(ledger, book):
    change(ledger, "S5", verdict="confirmed", chapter="chapters/lost")
    assert "'chapters/lost'" in only(not_shown, ledger, book)


def test_a_shown_claim_needs_a_tagged_code_cell(ledger, book):
    change(ledger, "S5", verdict="confirmed", chapter=PAGE)
    assert "has the tag claim-S5" in only(not_shown, ledger, book)


@pytest.mark.parametrize(
    "source",
    [
        "x = 3\nprint(x == 3)",
        "assert True",
        "def f():\n    assert x == 3",
        "def check_all():\n    pass",
        "check = 3  # assert",
    ],
)
def test_a_shown_claim_needs_an_assertion_that_runs(ledger, book, source):
    book[PAGE].cells[1].source = source
    assert "asserts" in only(not_shown, ledger, book)


@pytest.mark.parametrize(
    "source",
    [
        "for x in [1, 2]:\n    assert x > 0",
        "%matplotlib inline\nnpx.assert_allclose(a, b)",
        "check_replicas(device_params)",
    ],
)
def test_assertions_are_found_in_loops_and_behind_magics(ledger, book, source):
    book[PAGE].cells[1].source = source
    assert not_shown(ledger, book) == []


def test_one_asserting_cell_among_the_tagged_ones_is_enough(ledger, book):
    book[PAGE].cells.append(new_code_cell("x", metadata={"tags": ["claim-S4"]}))
    assert not_shown(ledger, book) == []


def test_a_tag_that_names_no_claim_is_found(ledger, book):
    book[PAGE].cells[1].metadata.tags.append("claim-S44")
    assert "claim-S44 names no claim" in only(stray_tags, ledger, book)


def test_a_tag_in_another_chapter_is_found(ledger, book):
    cell = new_code_cell("assert x", metadata={"tags": ["claim-S4"]})
    book["chapters/other"] = new_notebook(cells=[cell])
    message = only(stray_tags, ledger, book)
    assert (
        message
        == f"chapters/other: the tag claim-S4 belongs to {PAGE}, says claims.yml"
    )


@pytest.mark.parametrize("chapter", ["", PAGE])
def test_a_tag_of_an_open_claim_is_found(ledger, book, chapter):
    change(ledger, "S5", chapter=chapter)
    book[PAGE].cells[1].metadata.tags.append("claim-S5")
    assert "open in claims.yml" in only(stray_tags, ledger, book)


def test_a_tag_on_text_is_found(ledger, book):
    book[PAGE].cells[0].metadata["tags"] = ["claim-S4"]
    assert "cell of text" in only(stray_tags, ledger, book)


@pytest.mark.parametrize("wrong", ["verdct: open", ""])
def test_a_claim_with_a_wrong_or_missing_key_is_refused_by_name(tmp_path, wrong):
    path = tmp_path / "claims.yml"
    path.write_text(
        "sources: {}\nclaims:\n  - {id: S4, statement: x, source: [], " + wrong + "}\n"
    )
    with pytest.raises(ValueError, match="S4.*missing.*verdict"):
        claims_data.load(path)
