"""What the first page takes from the book itself: its contents, and a figure.

`book-contents` lists every chapter under its part with the question that it opens with
and how long it runs; `playable` puts one of `bookkit.figures` into a page.
"""

import importlib
import json
import re
from pathlib import Path

import yaml
from docutils import nodes
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective

#: A question in emphasis, a short paragraph that is one, or the last sentence of one.
EMPHASISED = re.compile(r"(\*\*?)(.+?\?)\1", re.DOTALL)
SHORT, SHORT_ONE = 200, re.compile(r"(.+\?)$", re.DOTALL)
LAST_SENTENCE = re.compile(r"(?:^|[.?!:,]\s+)([A-Z][^.?!]*\?)\s*$", re.DOTALL)


def opening(notebook):
    """(title, question) of a chapter: its heading, and what the first lines ask."""
    first = "".join(json.loads(Path(notebook).read_text("utf-8"))["cells"][0]["source"])
    title, paragraph = first.split("\n\n")[:2]
    short = len(paragraph) <= SHORT and SHORT_ONE.match(paragraph)
    said = EMPHASISED.match(paragraph) or short or LAST_SENTENCE.search(paragraph)
    if not said:
        raise ValueError(f"{notebook} does not open with a question: {paragraph!r}")
    question = " ".join(said.groups()[-1].replace("*", "").split())
    return title.lstrip("# "), question


def parts(root):
    """[(part, [page])] of `_toc.yml`, without the reference."""
    toc = yaml.safe_load((root / "_toc.yml").read_text("utf-8"))
    found = [(p["caption"], [c["file"] for c in p["chapters"]]) for p in toc["parts"]]
    return [(part, pages) for part, pages in found if pages[0].startswith("chapters/")]


class BookContents(SphinxDirective):
    """Part by part, each chapter with its question."""

    def run(self):
        root = Path(self.env.srcdir)
        seconds = json.loads((root / "chapters/durations.json").read_text("utf-8"))
        self.env.note_dependency(str(root / "_toc.yml"))
        shown = []
        for part, pages in parts(root):
            listed = nodes.bullet_list(classes=["book-contents"])
            for page in pages:
                self.env.note_dependency(str(root / f"{page}.ipynb"))
                title, question = opening(root / f"{page}.ipynb")
                runs = f" ({seconds[page]['seconds']:.0f} s)" if page in seconds else ""
                line = nodes.paragraph()
                link = addnodes.pending_xref(
                    "", nodes.inline("", title), reftype="doc", refdomain="std",
                    reftarget=f"/{page}", refexplicit=True, refdoc=self.env.docname,
                )  # fmt: skip
                line += [nodes.strong("", "", link), nodes.Text(f" – {question}{runs}")]
                listed += nodes.list_item("", line)
            head = nodes.paragraph("", part, classes=["book-part"])
            shown += [head, listed]
        return shown


class Playable(SphinxDirective):
    """One interactive figure, as its module draws it when it is asked for nothing."""

    required_arguments = 1

    def run(self):
        module = importlib.import_module(f"bookkit.figures.{self.arguments[0]}")
        self.env.note_dependency(module.__file__)
        html = f'<div class="playable">{module.figure().data}</div>'
        return [nodes.raw("", html, format="html")]


def setup(app):
    app.add_directive("book-contents", BookContents)
    app.add_directive("playable", Playable)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
