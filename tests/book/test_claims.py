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


def changed(name="S4", **fields):
    return lambda ledger, book: change(ledger, name, **fields)


def tagged(tag, cell=1):
    def fault(ledger, book):
        book[PAGE].cells[cell].metadata.setdefault("tags", []).append(tag)

    return fault


def source(text):
    return lambda ledger, book: book[PAGE].cells[1].update(source=text)


def open_but_tagged(chapter):
    def fault(ledger, book):
        change(ledger, "S5", chapter=chapter)
        tagged("claim-S5")(ledger, book)

    return fault


def another_chapter(ledger, book):
    cell = new_code_cell("assert x", metadata={"tags": ["claim-S4"]})
    book["chapters/other"] = new_notebook(cells=[cell])


def test_a_ledger_in_order_has_no_problems(ledger, book):
    assert [check(ledger, book) for check in CHECKS] == [[]] * len(CHECKS)


#: By check: a part of the one message, and what is wrong with the ledger or the book.
FAULTS = {
    wrong_ids: [
        ("D7 is missing", lambda ledger, book: ledger.claims.pop(
            [claim.id for claim in ledger.claims].index("D7"))),
        ("S99", lambda ledger, book: ledger.claims.append(
            ledger.claims[0]._replace(id="S99"))),
        ("S1 stands 2 times", lambda ledger, book: ledger.claims.append(
            ledger.claims[0])),
    ],
    wrong_words: [
        ("'plausible'", changed(verdict="plausible", finding="It seems so.")),
        ("'DL2'", changed(flags=["DL2"])),
        ("'DL2'", changed(source=["DL2"])),
        ("no source", changed(source=[])),
    ],
    without_finding: [
        ("qualified", changed(verdict="qualified", finding=" ")),
        ("refuted", changed(verdict="refuted", finding=" ")),
    ],
    not_shown: [
        ("'chapters/lost'", changed("S5", verdict="confirmed",
                                    chapter="chapters/lost")),
        ("has the tag claim-S5", changed("S5", verdict="confirmed", chapter=PAGE)),
        ("asserts", source("x = 3\nprint(x == 3)")),
        ("asserts", source("assert True")),
        ("asserts", source("def f():\n    assert x == 3")),
        ("asserts", source("def check_all():\n    pass")),
        ("asserts", source("check = 3  # assert")),
    ],
    stray_tags: [
        ("claim-S44 names no claim", tagged("claim-S44")),
        (f"chapters/other: the tag claim-S4 belongs to {PAGE}, says claims.yml",
         another_chapter),
        ("open in claims.yml", open_but_tagged("")),
        ("open in claims.yml", open_but_tagged(PAGE)),
        ("cell of text", tagged("claim-S4", cell=0)),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    "check, said, fault",
    [(check, *fault) for check, faults in FAULTS.items() for fault in faults],
)
def test_exactly_one_check_finds_it_and_says_what_it_is(
    ledger, book, check, said, fault
):
    fault(ledger, book)
    found = {other: other(ledger, book) for other in CHECKS}
    assert [other for other in CHECKS if found[other]] == [check]
    (message,) = found[check]
    assert said in message


@pytest.mark.parametrize("verdict", ["qualified", "refuted"])
def test_a_finding_may_stand_with_a_verdict_that_is_not_confirmed(
    ledger, book, verdict
):
    change(ledger, "S4", verdict=verdict, finding="Only on Sundays.")
    assert without_finding(ledger, book) == []


@pytest.mark.parametrize(
    "text",
    [
        "for x in [1, 2]:\n    assert x > 0",
        "%matplotlib inline\nnpx.assert_allclose(a, b)",
        "check_replicas(device_params)",
    ],
)
def test_assertions_are_found_in_loops_and_behind_magics(ledger, book, text):
    source(text)(ledger, book)
    assert not_shown(ledger, book) == []


def test_one_asserting_cell_among_the_tagged_ones_is_enough(ledger, book):
    book[PAGE].cells.append(new_code_cell("x", metadata={"tags": ["claim-S4"]}))
    assert not_shown(ledger, book) == []


@pytest.mark.parametrize("wrong", ["verdct: open", ""])
def test_a_claim_with_a_wrong_or_missing_key_is_refused_by_name(tmp_path, wrong):
    path = tmp_path / "claims.yml"
    path.write_text(
        "sources: {}\nclaims:\n  - {id: S4, statement: x, source: [], " + wrong + "}\n"
    )
    with pytest.raises(ValueError, match="S4.*missing.*verdict"):
        claims_data.load(path)
