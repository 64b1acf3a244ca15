#!/usr/bin/env python3
"""Slides of every chapter's main path, from the stored outputs: `make slides`.

They are cut out of the rendered pages. A code cell or a picture has a slide, under its
section's heading and one sentence; the prose is the speaker's notes. Set-up and folds
are left out, exercises come last. The slides are shown by reveal.js, which the package
sphinx-revealjs carries, and ask for nothing outside.
"""

import argparse
import html
import re
import shutil
import sys
from copy import copy
from importlib.util import find_spec
from pathlib import Path

from bs4 import BeautifulSoup

import one_framework
from listings import copy_to_render
from sources import RenderError, build

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "_sphinx/ext"))
import first_page

#: Where the slides land, below the book's root, and what they take from the pages.
SLIDES, TAKEN = Path("_build/slides"), ("_images", "mathjax", "_static/pygments.css")
OWN = Path(__file__).with_name("slides")
FOLDS = ".headerlink, .copybtn, .claim-badges, .only-dark, .tag_hide-cell, "\
    "details:not(.d2l-figure *), script:not(.d2l-figure *)"
PICTURE = "img, svg, .d2l-figure"
#: On one slide: lines of code and output, for which a picture counts; rows of a
#: table; and letters of a line that is not wrapped.
LINES, OF_PICTURE, ROWS, LETTERS = 22, 16, 8, 105
END_OF_SENTENCE = re.compile(r"(?<=[.?!])\s+(?=[\"“(<A-Z0-9])")


class Slide:
    """A heading, a sentence, what is shown, and what the speaker may say."""

    def __init__(self, heading, lead="", shown=(), notes=(), lines=0):
        self.heading, self.lead, self.lines = heading, lead, lines
        self.shown, self.notes = list(shown), list(notes)

    def html(self):
        level = "h1" if self.heading.name == "h1" else "h2"
        parts = [f"<{level}>{self.heading.decode_contents()}</{level}>"]
        parts += [f'<p class="lead">{self.lead}</p>'] * bool(self.lead)
        body = "\n".join(map(str, self.shown))
        notes = "".join(f"<p>{html.escape(p.get_text())}</p>" for p in self.notes)
        return (f"<section>\n{''.join(parts)}\n<div class=\"body\">{body}</div>\n"
                f'<aside class="notes">{notes}</aside>\n</section>')


def slides_of(page, question):
    """Return a chapter's slides: `page` is its HTML, `question` its question."""
    top = page.find("article").find("section")
    for tag in top.select(FOLDS):
        tag.decompose()
    one_framework.keep(top)
    for link in top.find_all("a", href=True):
        if not link["href"].startswith("http"):
            link.unwrap()
    sections = top.find_all("section", recursive=False)
    title, _, *opening = (n for n in _nodes(top) if n.name != "section")
    picture = next((n for n in opening if n.select_one(PICTURE)), None)
    said = [n for n in opening if n is not picture]
    need = [n for n in said if n.get_text().strip().startswith("You need")]
    made = [Slide(title, html.escape(question), [picture] if picture else [], need)]
    made.append(Slide(title, "", [n for n in said if n not in need]))
    for section in sections:
        is_last = section["id"] == "exercises"
        made += [exercises(section)] if is_last else part(section)
    return made


def part(section):
    """Return the slides of a section and of those in it."""
    heading, made, said = None, [], []
    for node in _nodes(section):
        if re.match("h[1-6]$", node.name):
            heading = node
        elif node.name == "p":
            said.append(node)
        elif node.name == "section":
            made += part(node)
        else:
            new = shown(heading, said, node)
            if made and not said and made[-1].lines + new[0].lines <= LINES:
                made[-1].shown += new[0].shown
                made[-1].lines += new[0].lines
                del new[0]
            made, said = made + new, []
    if said and made:
        made[-1].notes += said
    elif said:
        made = [Slide(heading, "", map(_first_of, said), said)]
    return made


def shown(heading, said, node):
    """Return one slide, or two, for a cell, a picture, a table, a formula or a list."""
    spoken = sentences(said[-1]) if said else []
    predict = [s for s in spoken[1:] if "Predict" in s]
    lead = " ".join(spoken[:1] + predict)
    code, output = (node.select_one(f".cell_{k}") for k in ("input", "output"))
    pieces = [piece for piece in (code, output) if piece] or [node]
    if output and max(map(len, output.get_text().splitlines())) > LETTERS:
        output["class"].append("wrapped")
    if "Predict" in lead and len(pieces) == 2:
        output["class"].append("fragment")
    counts = list(map(count, pieces))
    if len(rows := node.select("tbody tr")) > ROWS:
        rest = copy(node)
        for i, row in enumerate(rows):
            (row if i >= ROWS else rest.select("tbody tr")[0]).extract()
        return [Slide(heading, lead, [node], said, count(node)),
                *shown(heading, (), rest)]
    if len(pieces) == 2 and sum(counts) > LINES:
        output["class"] = [name for name in output["class"] if name != "fragment"]
        return [Slide(heading, lead, [code], said, counts[0]),
                Slide(heading, "", [output], (), counts[1])]
    return [Slide(heading, lead, pieces, said, sum(counts))]


def exercises(section):
    """Return the last slide: what each exercise asks for, in its first sentences."""
    asked = [s.find("p") for s in section.find_all("section", recursive=False)]
    return Slide(section.find("h2"), "", [f"<p>{i}. {' '.join(sentences(p)[:2])}</p>"
                 for i, p in enumerate(asked, 1)])


def count(node):
    """Return about how many lines of code are as high as `node`."""
    pictures = OF_PICTURE * len(node.select("figure, .d2l-figure, :not(figure) > img"))
    lines = sum(len(pre.get_text().rstrip().splitlines()) for pre in node.select("pre"))
    rows = 1.5 * len(node.select("tr, li"))
    return pictures + lines + rows or 3


def sentences(paragraph):
    """Return the sentences of a paragraph, as HTML; none ends inside an element."""
    found = [""]
    for piece in END_OF_SENTENCE.split(paragraph.decode_contents().strip()):
        is_open = len(re.findall(r"<\w", found[-1])) > found[-1].count("</")
        if is_open or not found[-1]:
            found[-1] += f" {piece}" if found[-1] else piece
        else:
            found.append(piece)
    return found


def _first_of(paragraph):
    return f"<p>{sentences(paragraph)[0]}</p>"


def _nodes(tag):
    """Yield the nodes of `tag` that are not empty."""
    for node in tag.find_all(True, recursive=False):
        if node.get_text().strip() or node.select_one("img, svg"):
            yield node


def written(page, made, title):
    """Return the page of slides as HTML, two folders below that of all slides."""
    mathematics = "".join(str(s) for s in page.head.find_all("script")
                          if "mathjax" in str(s).lower())
    text = (OWN / "page.html").read_text("utf-8")
    for name, value in (("TITLE", html.escape(title)), ("MATHEMATICS", mathematics),
                        ("SLIDES", "\n".join(s.html() for s in made))):
        text = text.replace(f"<!-- {name} -->", value)
    return text


def furnish(pages, folder):
    """Copy into `folder` the files that slides of the book in `pages` load."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in TAKEN:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (pages / name).is_dir() else shutil.copyfile
        copy(pages / name, folder / name)
    reveal = Path(find_spec("sphinx_revealjs").origin).parent / "_static/revealjs"
    for name in ("LICENSE", "dist/reveal.js", "plugin/notes/notes.js"):
        shutil.copyfile(reveal / name, folder / Path(name).name)
    # A figure's controls are called so as well, and reveal's own are not shown.
    style = (reveal / "dist/reveal.css").read_text("utf-8")
    style = style.replace(".controls", ".of-reveal")
    (folder / "reveal.css").write_text(style, "utf-8")
    for path in (OWN / "slides.css", OWN / "slides.js"):
        shutil.copyfile(path, folder / path.name)


def write(pages, folder, root=ROOT):
    """Write the slides of the book in `pages` to `folder`; return {page: number}."""
    furnish(pages, folder)
    counts, index = {}, []
    for caption, names in first_page.parts(root):
        index.append(f"<h2>{caption}</h2>")
        for name in names:
            title, question = first_page.opening(root / f"{name}.ipynb")
            text = (pages / f"{name}.html").read_text("utf-8")
            page = BeautifulSoup(text, "html.parser")
            made = slides_of(page, question)
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            target = (folder / name).with_suffix(".html")
            target.write_text(written(page, made, title), "utf-8")
            counts[name] = len(made)
            index.append(f'<p><a href="{name}.html">{html.escape(title)}</a>, '
                         f"{len(made)} slides</p>")
    (folder / "index.html").write_text(
        '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Slides</title>'
        '<link rel="stylesheet" href="slides.css"><body class="index"><h1>Slides</h1>'
        f"{''.join(index)}</body></html>\n", "utf-8")
    return counts


def main():
    """Write the slides; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=Path, help="rendered already, in this folder")
    pages = parser.parse_args().pages
    try:
        if pages is None:
            copy_to_render(ROOT, ROOT / "_build/stored")
            pages = build(ROOT / "_build/stored", "html", strict=True)
    except RenderError as error:
        print(f"{error}\nThe book was not rendered.", file=sys.stderr)
        return 1
    counts = write(pages, ROOT / SLIDES)
    print(f"{sum(counts.values())} slides of {len(counts)} chapters: "
          f"{ROOT / SLIDES}/index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
