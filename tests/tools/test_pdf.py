"""A book of three pages as a PDF, and what readers expect of one."""

import os
import re
import subprocess
import sys

import nbformat
import pikepdf
import pytest
import yaml
from nbformat import v4
from notebook_cells import ROOT
from pdf_text import texts

import paper
import pdf as tool
import sources
from browser import Browser, BrowserError, find_chromium

PROGRAM = find_chromium()
needs_chromium = pytest.mark.skipif(PROGRAM is None, reason="no Chromium here")
DRAWING = '<svg width="200" height="20"><text x="1" y="15">at rest</text></svg>'
PLAYS = (
    '<div class="d2l-figure"><div class="controls"><button>Play</button></div>'
    f'{DRAWING}<script>document.body.textContent = "drawn anew"</script></div>'
)
BOTH = ["## Two ways", "Unlike the other chapter's.", "## Summary", "It works."]


def chapter(title, code, exercise):
    """A chapter: set-up, code that draws, a figure that plays, an exercise."""
    folds = {"code_prompt_show": "Set-up", "code_prompt_hide": "Set-up"}
    asked = {"code_prompt_show": "Show solution", "code_prompt_hide": "Hide solution"}
    html = v4.new_output("display_data", {"text/html": PLAYS})
    cells = [
        v4.new_markdown_cell(f"# {title}\n\n**Does {title} work?**"),
        v4.new_code_cell(
            "import json", metadata={"tags": ["hide-input"], "mystnb": folds}
        ),
        v4.new_code_cell(
            "draw_me()", metadata={"tags": ["hide-input"]}, outputs=[html]
        ),
        *(v4.new_markdown_cell(words) for words in BOTH),
        v4.new_code_cell(code),
        v4.new_markdown_cell(
            f"## Exercises\n\n### Exercise 1\n\n{exercise}\n\n<details>\n"
            "<summary>Hint</summary>\n\nThink twice.\n\n</details>\n"
        ),
        v4.new_code_cell(
            "answer = 42", metadata={"tags": ["hide-cell"], "mystnb": asked}
        ),
    ]
    python = {"language_info": {"name": "python", "pygments_lexer": "ipython3"}}
    return v4.new_notebook(cells=cells, metadata=python)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("book")
    for folder in ("chapters/one", "chapters/two", "reference"):
        (root / folder).mkdir(parents=True)
    parts = [("First part", "chapters/one/a"), ("Second part", "chapters/two/b"),
             ("Reference", "reference/notes")]
    toc = {"format": "jb-book", "root": "intro", "parts": [
        {"caption": part, "chapters": [{"file": name}]}
            for part, name in parts]}
    (root / "_toc.yml").write_text(yaml.safe_dump(toc))
    (root / "_config.yml").write_text(
        "title: Small\nonly_build_toc_files: true\n"
        "sphinx: {config: {myst_heading_anchors: 3}}\n"
    )
    (root / "CITATION.cff").write_text(
        "title: A small book\nabstract: On little.\nversion: 9.8.7\nlicense: MIT\n"
        "authors: [{name: Ada L.}, {name: Alan T.}]\n"
    )
    (root / "intro.md").write_text("# Small\n\nRead [b](chapters/two/b.ipynb).\n")
    (root / "reference/notes.md").write_text("# Notes\n\nSome.\n")
    code = "\n".join(f"line_{i} = {i}" for i in range(90))
    nbformat.write(chapter("Ants", code, "How many?"), root / "chapters/one/a.ipynb")
    nbformat.write(chapter("Bees", "b = 1", "Why?"), root / "chapters/two/b.ipynb")
    return root


@pytest.fixture(scope="module")
def printed(root):
    if PROGRAM is None:
        pytest.skip("no Chromium here")
    command = [sys.executable, ROOT / "tools/pdf.py", "--root", root]
    said = subprocess.run(command, check=False, capture_output=True, text=True,
                          timeout=600)
    assert said.returncode == 0, said.stderr
    with pikepdf.open(root / sources.PDF) as pdf:
        yield pdf


@pytest.fixture(scope="module")
def pages(printed):
    """The text of each page; the first is page 1."""
    return ["", *texts(printed)]


def page_with(pages, *words):
    """The one page that holds all these words."""
    (found,) = [i for i, text in enumerate(pages) if all(w in text for w in words)]
    return found


def test_the_cover_says_what_it_is_and_has_neither_head_nor_number(pages):
    lines = pages[1].splitlines()
    assert "A small book" in lines
    assert "Ada L., Alan T." in pages[1] and "Version 9.8.7" in pages[1]
    assert not re.search(r"^\d+$", pages[1], re.MULTILINE)


def test_the_contents_name_the_page_on_which_a_part_and_a_chapter_begin(pages):
    contents = pages[page_with(pages, "Contents", "About this book", "Two ways")]
    found = dict(re.findall(r"^(.*?[a-zA-Z].*)\n(\d+)$", contents, re.MULTILINE))
    begins = {
        "About this book": ("About this book", "Read"),
        "I First part": ("Part I\n",), "1 Ants": ("Does Ants work?", "import\njson"),
        "II Second part": ("Part II\n",), "2 Bees": ("Does Bees work?", "import\njson"),
        "A Notes": ("Some.",), "Solutions": ("Solutions", "answer =", "1 Ants"),
    }
    assert "Summary" not in contents and "Exercises" not in contents
    for words, there in begins.items():
        assert int(found[words]) == page_with(pages, *there)


def test_a_page_has_the_number_that_it_is_and_a_running_head(pages):
    long = [i for i, text in enumerate(pages) if re.search("line_(0|89) ", text)]
    assert len(long) == 2, "the code goes on on a second page"
    for number in long:
        lines = pages[number].splitlines()
        assert str(number) in lines and "First part" in lines and "1 Ants" in lines


def test_solutions_stand_at_the_end_and_lead_back(pages, printed):
    asks = page_with(pages, "Exercise 1", "How many?")
    answers = page_with(pages, "Exercise 1", "answer =", "1 Ants")
    assert asks < page_with(pages, "Notes", "Some.") < answers
    assert "answer" not in pages[asks] and "Think twice" not in pages[asks]
    assert re.search(rf"Solution, page\n{answers}\b", pages[asks])
    assert re.search(rf"asked on page\n{asks}\b", pages[answers])
    assert answers in _led_to(printed, asks) and asks in _led_to(printed, answers)


def _led_to(pdf, page):
    """The pages to which the links of a page lead."""
    places = tool.pages_of(pdf)
    return [
        places[tool._name(str(link.Dest if "/Dest" in link else link.A.D))]
        for link in pdf.pages[page - 1].get("/Annots", [])
        if "/Dest" in link or "/D" in link.get("/A", {})
    ]


def test_nothing_is_said_that_only_a_screen_can_do(pages):
    text = "\n".join(pages)
    assert not re.search("(Show|Hide) |Set-up|Play|drawn anew|draw_me", text)
    assert text.count("at rest") == 2 and text.count("import\njson") == 2


def test_bookmarks_and_metadata(printed):
    with printed.open_outline() as outline:
        under = {i.title: [c.title for c in i.children] for i in outline.root}
        (ants,) = outline.root[1].children
    assert under == {
        "About this book": [], "I First part": ["1 Ants"], "II Second part": ["2 Bees"],
        "III Reference": ["A Notes"], "Solutions": ["1 Ants", "2 Bees"],
    }
    assert [section.title for section in ants.children] == ["Two ways"]
    assert printed.docinfo["/Author"] == "Ada L., Alan T."
    with printed.open_metadata() as metadata:
        assert metadata["dc:title"] == "A small book"
        assert metadata["dc:creator"] == ["Ada L.", "Alan T."]


@pytest.fixture(scope="module")
def joined(root, printed):
    toc = yaml.safe_load((root / "_toc.yml").read_text())
    html = (root / "_build/paper/_build/singlehtml/intro.html").read_text("utf-8")
    return html, toc, tool.about(root)


def test_headings_of_one_name_are_two_places(joined):
    soup = paper.Paper(*joined).soup
    for home, title in (("two-ways", "Ants"), ("chapters/two/b:two-ways", "Bees")):
        assert title in soup.find(id=home).find_parent("section").find("h2").get_text()
    ids = [tag["id"] for tag in soup.find_all(id=True)]
    assert len(ids) == len(set(ids))


def test_a_selection_keeps_the_numbers_of_the_book(joined):
    book = paper.Paper(*joined, only=["chapters/two/b"])
    assert book.entries[:2] == [
        (0, "II Second part", "bees"), (1, "2 Bees", "bees")
    ]
    text = book.soup.get_text(" ")
    assert "2 Bees" in " ".join(text.split()) and "Ants" not in text
    with pytest.raises(ValueError, match="No such page: chapters/c"):
        paper.Paper(*joined, only=["chapters/c"])


def test_a_link_that_leads_nowhere_is_no_book(joined):
    html, toc, about = joined
    with pytest.raises(ValueError, match="leads nowhere.*#lost"):
        paper.Paper(html.replace("Some.", '<a href="#lost">it</a>'), toc, about)


@needs_chromium
def test_an_empty_page_is_noticed(tmp_path):
    page = tmp_path / "page.html"
    page.write_text(
        "<style>@page { @bottom-center { content: counter(page) } } "
        "div { break-after: page }</style><div>one</div><div></div><p>three</p>"
    )
    with Browser(PROGRAM) as browser:
        tab = browser.page()
        tab.open(page.as_uri())
        (tmp_path / "a.pdf").write_bytes(tab.pdf(generateTaggedPDF=True))
    with pikepdf.open(tmp_path / "a.pdf") as pdf:
        assert (len(pdf.pages), tool.empty_pages(pdf)) == (3, [2])


def test_a_browser_that_ends_at_once_is_named_and_leaves_no_folder():
    browser = Browser("true")
    browser._process.wait()
    with pytest.raises(BrowserError, match="ended before Browser.getVersion"):
        browser.call("Browser.getVersion")
    browser.close()
    assert not os.path.exists(browser._home.name)


def test_pages_have_a_link_if_and_only_if_there_is_a_pdf(tmp_path, monkeypatch):
    monkeypatch.setattr(sources.engine, "lay", lambda pages: None)  # it takes a second
    new = tmp_path / "new"
    for name in ("index.html", "chapters/one/a.html"):
        (new / name).parent.mkdir(parents=True, exist_ok=True)
        (new / name).write_text(f"<footer>{sources.PLACE}</footer>")
    shown = tmp_path / sources.PAGES
    sources.publish(tmp_path, new)
    assert not list(shown.glob("*.pdf"))
    assert "href" not in (shown / "index.html").read_text()
    (tmp_path / sources.PDF).write_bytes(b"%PDF")
    for _ in range(2):
        sources.link_pdf(tmp_path)
    for name in ("index.html", "chapters/one/a.html"):
        (link,) = re.findall('href="(.*?)"', (shown / name).read_text())
        assert ((shown / name).parent / link).read_bytes() == b"%PDF"
