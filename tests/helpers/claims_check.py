"""What must hold between the claims ledger and the cells that show its claims.

Each check takes data and returns a list of messages, empty when all is well.
`chapters` is a dict from page name (`chapters/devices/devices`) to notebook.
"""

from collections import Counter

import claims_data  # it lives beside the extension that uses it
from notebook_cells import ROOT, asserts, code_cells, tags

#: Letters of the ids, and how many claims each has. Ids are never reused.
PARTS = {"S": 16, "D": 13, "M": 13, "T": 38}
EXPECTED = [f"{part}{i}" for part, n in PARTS.items() for i in range(1, n + 1)]
#: What the field states, in the order of its chapters; and a row that came later.
EXPECTED += [f"F{i}" for i in range(1, 23)] + ["T39"]


def load():
    return claims_data.load(ROOT / "reference/claims.yml")


def wrong_ids(ledger, chapters):
    known, found = Counter(EXPECTED), Counter(claim.id for claim in ledger.claims)
    return [
        f"claim {i} stands {found[i]} times in claims.yml, not {known[i]}"
        for i in known | found
        if found[i] != known[i]
    ]


def wrong_words(ledger, chapters):
    """Verdicts, flags and sources that the ledger does not know."""
    problems = []
    for claim in ledger.claims:
        known = {
            "verdict": ([claim.verdict], claims_data.VERDICTS),
            "flag": (claim.flags, list(claims_data.FLAGS)),
            "source": (claim.source, list(ledger.sources)),
        }
        for kind, (words, allowed) in known.items():
            problems += [
                f"claim {claim.id} has the {kind} {word!r}, not one of {allowed}"
                for word in words
                if word not in allowed
            ]
        if not claim.source:
            problems.append(f"claim {claim.id} has no source")
    return problems


def without_finding(ledger, chapters):
    return [
        f"claim {claim.id} is {claim.verdict}: its finding must say how"
        for claim in ledger.claims
        if claim.verdict not in ("open", "confirmed") and not claim.finding.strip()
    ]


def not_shown(ledger, chapters):
    """A claim with a verdict needs a tagged cell, with an assertion, in its chapter."""
    problems = []
    for claim in ledger.claims:
        if claim.verdict == "open":
            continue
        if claim.chapter not in chapters:
            problems.append(
                f"claim {claim.id} is {claim.verdict}, but its chapter "
                f"{claim.chapter!r} is not one of {sorted(chapters)}"
            )
            continue
        cells = tagged(chapters[claim.chapter], claim.id)
        if not cells:
            problems.append(
                f"claim {claim.id} is {claim.verdict}, but no code cell of "
                f"{claim.chapter} has the tag claim-{claim.id}"
            )
        elif not any(asserts(cell) for cell in cells):
            problems.append(
                f"claim {claim.id}: no cell of {claim.chapter} with its tag "
                "asserts anything"
            )
    return problems


def stray_tags(ledger, chapters):
    """A tag must name a claim, on a code cell, in the chapter that the claim names."""
    claims = {claim.id: claim for claim in ledger.claims}
    return [
        f"{page}: the tag claim-{name} {wrong}"
        for page, nb in chapters.items()
        for cell in nb.cells
        for name in claim_tags(cell)
        for wrong in [_wrong_tag(claims.get(name), page, cell)]
        if wrong
    ]


def _wrong_tag(claim, page, cell):
    if claim is None:
        return "names no claim"
    if claim.verdict == "open":
        return "shows a claim that is open in claims.yml: give its verdict and chapter"
    if claim.chapter != page:
        return f"belongs to {claim.chapter}, says claims.yml"
    return "" if cell.cell_type == "code" else "is on a cell of text"


def claim_tags(cell):
    prefix = "claim-"
    return [tag[len(prefix) :] for tag in tags(cell) if tag.startswith(prefix)]


def tagged(nb, name):
    return [cell for cell in code_cells(nb) if name in claim_tags(cell)]


CHECKS = [wrong_ids, wrong_words, without_finding, not_shown, stray_tags]
