"""The claims ledger agrees with the cells that show its claims."""

import pytest
from claims_check import CHECKS, claims_data, load
from notebook_cells import chapters, read


def test_the_ledger_and_the_chapters_agree():
    notebooks = {page: read(path) for page, path in chapters().items()}
    ledger = load()
    problems = [problem for check in CHECKS for problem in check(ledger, notebooks)]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("wrong", ["verdct: open", ""])
def test_a_claim_with_a_wrong_or_missing_key_is_refused_by_name(tmp_path, wrong):
    path = tmp_path / "claims.yml"
    path.write_text(
        "sources: {}\nclaims:\n  - {id: S4, statement: x, source: [], " + wrong + "}\n"
    )
    with pytest.raises(ValueError, match="S4.*missing.*verdict"):
        claims_data.load(path)


def test_a_source_that_stands_twice_is_refused(tmp_path):
    """YAML would keep the last one, and the other would be gone from the ledger."""
    path = tmp_path / "claims.yml"
    source = "  Ring: {title: x, what: y, url: z}\n"
    path.write_text(f"sources:\n{source}{source}claims: []\n")
    with pytest.raises(ValueError, match="line 3: Ring occurs twice"):
        claims_data.load(path)
