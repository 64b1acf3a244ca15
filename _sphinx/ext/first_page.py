"""What pages take from the book itself: its contents, its techniques, and a figure.

`book-contents` shows every chapter as a card under its part: its first picture, its
title, the question that it opens with, and how long it runs; `book-techniques` says in
which files of the library a chapter's lesson stands, with links to their entries, and
which claims it shows; `playable` puts one of `bookkit.figures` into a page.
"""

import base64
import importlib
import io
import json
import re
import sys
from pathlib import Path

import api_pages
import claims_data
import yaml
from docutils import nodes
from links import row_of, table, xref
from matplotlib.image import thumbnail
from sphinx.util.docutils import SphinxDirective

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
import house
from made_by import durations

#: A question in emphasis, a short paragraph that is one, or the last sentence of one.
EMPHASISED = re.compile(r"(\*\*?)(.+?\?)\1", re.DOTALL)
SHORT, SHORT_ONE = 200, re.compile(r"(.+\?)$", re.DOTALL)
LAST_SENTENCE = re.compile(r"(?:^|[.?!:,]\s+)([A-Z][^.?!]*\?)\s*$", re.DOTALL)
DRAWING = re.compile(r"img/(\w+)\.svg")


def cells(notebook):
    return json.loads(Path(notebook).read_text("utf-8"))["cells"]


def opening(notebook):
    """Return (title, question) of a chapter, from its heading and first lines."""
    first = "".join(cells(notebook)[0]["source"])
    title, paragraph = first.split("\n\n")[:2]
    short = len(paragraph) <= SHORT and SHORT_ONE.match(paragraph)
    said = EMPHASISED.match(paragraph) or short or LAST_SENTENCE.search(paragraph)
    if not said:
        raise ValueError(f"{notebook} does not open with a question: {paragraph!r}")
    question = " ".join(said.groups()[-1].replace("*", "").split())
    return title.lstrip("# "), question


def first_picture(notebook):
    """Return (name, None) of a chapter's first picture if it is a drawing, else (name,
    PNG).

    Both names are those of a file among the pages' images.
    """
    for cell in cells(notebook):
        if drawing := DRAWING.search("".join(cell["source"])):
            return f"{drawing[1]}.svg", None
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                plot = base64.b64decode(output["data"]["image/png"])
                return f"{Path(notebook).stem}.small.png", plot
    raise ValueError(f"{notebook} has no picture for its card on the first page")


def parts(root):
    """Return [(part, [page])] of `_toc.yml`, without the reference."""
    toc = yaml.safe_load((root / "_toc.yml").read_text("utf-8"))
    found = [(p["caption"], [c["file"] for c in p["chapters"]]) for p in toc["parts"]]
    return [(part, pages) for part, pages in found if pages[0].startswith("chapters/")]


def lessons(root):
    """Return {title: the files of the library that the chapter develops or reads}."""
    found = {}
    for part in house.PARTS:
        for name, _, chapters in house.rows(part, root)[1]:
            for title in chapters:
                found.setdefault(title, []).append(f"d2l_ext/{part}/{name}.py")
    return found


def to_page(env, page, title):
    return xref(env.docname, "std:doc", f"/{page}", nodes.inline("", title))


class BookContents(SphinxDirective):
    """Part by part, each chapter with its picture and its question."""

    def run(self):
        root = Path(self.env.srcdir)
        seconds = durations(root)
        self.env.note_dependency(str(root / "_toc.yml"))
        shown = []
        for part, pages in parts(root):
            listed = nodes.bullet_list(classes=["book-contents"])
            for page in pages:
                self.env.note_dependency(str(root / f"{page}.ipynb"))
                title, question = opening(root / f"{page}.ipynb")
                runs = f" ({seconds[page]['seconds']:.0f} s)" if page in seconds else ""
                line = nodes.paragraph()
                line += nodes.strong("", "", to_page(self.env, page, title))
                line += nodes.Text(f" – {question}{runs}")
                name, _ = first_picture(root / f"{page}.ipynb")
                picture = (
                    '<span class="chapter-picture" aria-hidden="true">'
                    f'<img src="_images/{name}" alt=""></span>'
                )
                listed += nodes.list_item(
                    "", nodes.raw("", picture, format="html"), line
                )
            head = nodes.paragraph("", part, classes=["book-part"])
            shown += [head, listed]
        return shown


class BookTechniques(SphinxDirective):
    """A table: chapter, files of the library, claims."""

    def run(self):
        root = Path(self.env.srcdir)
        files, claims = lessons(root), {}
        for claim in claims_data.load(root / "reference/claims.yml").claims:
            claims.setdefault(claim.chapter, []).append(claim.id)
        rows = []
        for page in (page for _, pages in parts(root) for page in pages):
            self.env.note_dependency(str(root / f"{page}.ipynb"))
            title, _ = opening(root / f"{page}.ipynb")
            names = nodes.paragraph()
            for i, name in enumerate(files.get(title, [])):
                names += nodes.Text(", " if i else "")
                names += api_pages.file_link(self.env, name)
            where = nodes.paragraph("", "", to_page(self.env, page, title))
            rows.append(row_of([where, names, ", ".join(claims.get(page, []))]))
        head = row_of(["Chapter", "Library", "Claims"])
        return [table((40, 45, 15), head, rows, ["colwidths-given"])]


class Playable(SphinxDirective):
    """One interactive figure, as its module draws it when it is asked for nothing."""

    required_arguments = 1

    def run(self):
        module = importlib.import_module(f"bookkit.figures.{self.arguments[0]}")
        self.env.note_dependency(module.__file__)
        html = f'<div class="playable">{module.figure().data}</div>'
        return [nodes.raw("", html, format="html")]


def write_small_plots(app, error):
    """Write the plots on the first page's cards, at a quarter of their size."""
    if error or app.builder.format != "html":
        return
    root, images = Path(app.srcdir), Path(app.outdir) / "_images"
    images.mkdir(exist_ok=True)
    for page in (page for _, pages in parts(root) for page in pages):
        name, plot = first_picture(root / f"{page}.ipynb")
        if plot:
            thumbnail(io.BytesIO(plot), images / name, scale=0.25)


def setup(app):
    app.connect("build-finished", write_small_plots)
    app.add_directive("book-contents", BookContents)
    app.add_directive("book-techniques", BookTechniques)
    app.add_directive("playable", Playable)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
