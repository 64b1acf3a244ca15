"""The rendered pages: links, anchors, images, and nothing from a network.

`make html` runs this on the pages that it built: D2L_EXT_HTML names their folder.
"""

import os

import html_check
import pytest
from claims_check import claims_data, load
from html_check import Site, unlinked_claims
from notebook_cells import taking

CHECKS = taking(html_check, "site")
FOLDER = os.environ.get("D2L_EXT_HTML", "")
built = pytest.mark.skipif(
    not FOLDER,
    reason="no pages to check: `make html` builds them and runs this test on them",
)


@pytest.fixture(scope="module")
def pages():
    site = Site(FOLDER)
    ledger = site.folder / "reference/claims.html"
    assert ledger in site.pages, f"no book in {site.folder}"
    return site


@built
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_rendered_book_has_no_problem(pages, check):
    problems = [*check(pages)]
    assert not problems, "\n".join(problems)


@built
def test_every_claim_and_its_cell_link_to_each_other(pages):
    problems = [*unlinked_claims(pages, load().claims)]
    assert not problems, "\n".join(problems)


# Below: each check finds what it is there to find, on a book of two pages.

HEAD = """<title>{0}</title><meta name="description" content="About {0}.">
<meta property="og:title" content="{0}"><meta property="og:type" content="article">
<meta property="og:description" content="About {0}.">"""
LEDGER = f"""{HEAD.format("Ledger")}
<link rel="stylesheet" href="../style.css"><a href="#">top</a>
<a href="https://example.org">out</a><link rel="canonical" href="https://a.org">
<table><tr id="row-S4"><td>
<a href="../chapters/part/one.html#claim-S4">cell</a></td></tr>
<tr id="row-S5"><td>open</td></tr></table>"""
CHAPTER = f"""{HEAD.format("One")}
<div class="cell" id="claim-S4"><img src="../../a.svg" alt="A line"></div>
<a href="../../reference/claims.html#row-S4">claim S4</a>
<script src="../../x.js"></script>"""
CLAIMS = [
    claims_data.Claim("S4", "", [], [], "confirmed", "", "chapters/part/one"),
    claims_data.Claim("S5", "", [], [], "open", "", ""),
]


def write(folder, ledger=LEDGER, chapter=CHAPTER, style="p { color: red }"):
    (folder / "chapters/part").mkdir(parents=True)
    (folder / "reference").mkdir()
    (folder / "reference/claims.html").write_text(ledger)
    (folder / "chapters/part/one.html").write_text(chapter)
    (folder / "style.css").write_text(style)
    (folder / "a.svg").write_text("<svg/>")
    (folder / "x.js").write_text("")
    return Site(folder)


def found(site):
    names = [check.__name__ for check in CHECKS if [*check(site)]]
    return names + ["unlinked_claims"] * bool([*unlinked_claims(site, CLAIMS)])


def test_a_book_in_order_has_no_problem(tmp_path):
    assert found(write(tmp_path)) == []


TERM = '<a class="glossary-term" href="../../reference/claims.html">engine</a>'
#: By check: what it finds when that stands in the chapter.
IN_CHAPTER = {
    "broken_links": '<a href="../../reference/claims.html#row-S99">',
    "outside_resources":
        "<style>@font-face { src: url('https://example.org/f.woff') }</style>",
    "missing_resources": '<img src="../b.svg" alt="A line">',
    "images_without_text": '<img src="../../a.svg" alt="">',
    "figures_without_caption":
        '<article><figure><img src="../../a.svg" alt="A line"></figure></article>',
    "heavy_pages": "<!--" + "-" * 1_600_000 + "-->",
    "misplaced_terms": f"<code>{TERM}</code>",
    "empty_headings": "<h2> </h2>",
    "doubled_ids": '<p id="claim-S4">',
}


@pytest.mark.parametrize("name", IN_CHAPTER)
def test_exactly_one_check_finds_it(tmp_path, name):
    assert found(write(tmp_path, chapter=CHAPTER + IN_CHAPTER[name])) == [name]


def test_a_title_that_two_pages_have_is_found(tmp_path):
    site = write(tmp_path, chapter=CHAPTER.replace("<title>One", "<title>Ledger"))
    assert found(site) == ["undescribed_pages"]


@pytest.mark.parametrize("old, new, problem", [
    ('id="row-S5"', "", "claims.html has no row for S5"),
    ("one.html#claim-S4", "one.html", "the row of S4 has no link to its cell"),
    ('id="claim-S4"', "", "the row of S4 has no link to its cell"),
    ("claims.html#row-S4", "claims.html", "the cell of S4 has no link to its row"),
])
def test_a_claim_that_lost_its_row_an_anchor_or_a_link_is_found(
    tmp_path, old, new, problem
):
    site = write(tmp_path, LEDGER.replace(old, new), CHAPTER.replace(old, new))
    assert [*unlinked_claims(site, CLAIMS)] == [problem]
