"""Prints the book as one PDF, from the stored outputs: `make pdf`.

    make pdf                                        _build/many_devices.pdf
    make pdf CHAPTERS="chapters/meshes/mesh.ipynb"  _build/many_devices_selection.pdf

Sphinx joins the pages, `paper.py` makes a book of them, Chromium prints it twice: the
first print says on which pages things stand, the second one names these pages. Pages of
the book that lie in `_build/html` get a link to it.
"""

import argparse
import os
import re
import subprocess
import sys
from datetime import date
from pathlib import Path

import pikepdf
import yaml
from bs4 import BeautifulSoup

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "_sphinx" / "ext"))
import first_page

from browser import Browser, BrowserError, find_chromium
from listings import copy_to_render
from paper import Paper
from sources import PDF, RenderError, build, link_pdf

#: Of the whole book, in bytes; and how long a print may take, in seconds.
LARGEST, DEADLINE = 15_000_000, 300
#: Margins with running heads and numbers came with this Chromium.
NEEDED_CHROMIUM = 131


def about(root):
    """Return the cover's texts and drawing, and the chapters' questions: a dict."""
    cited = yaml.safe_load((root / "CITATION.cff").read_text("utf-8"))
    return {
        "title": cited["title"],
        "subtitle": "Training one network on several devices. Every page runs.",
        "abstract": " ".join(cited["abstract"].split()),
        "authors": [author["name"] for author in cited["authors"]],
        "version": cited["version"],
        "license": cited["license"],
        "date": _day(root),
        "drawing": drawing(),
        "questions": {page: first_page.opening(root / f"{page}.ipynb")[1]
                      for _, pages in first_page.parts(root) for page in pages},
    }


def drawing():
    """Return the cover's drawing as in previews, without words and ground."""
    svg = BeautifulSoup(
        (ROOT / "_sphinx/static/card.svg").read_text("utf-8"), "xml"
    ).svg
    ground, words = svg.rect, svg.find_all("g", recursive=False)[-1]
    for dropped in (ground, words):
        dropped.decompose()
    svg.attrs = {"viewBox": "70 40 1060 380", "role": "img", "aria-label": "Devices"}
    return str(svg)


def _day(root):
    """Return the day of the last commit, or SOURCE_DATE_EPOCH's, or today."""
    if epoch := os.environ.get("SOURCE_DATE_EPOCH"):
        day = date.fromtimestamp(int(epoch))
    else:
        command = ["git", "-C", str(root), "log", "-1", "--format=%cs"]
        said = subprocess.run(
            command, check=False, capture_output=True, text=True
        ).stdout
        day = date.fromisoformat(said.strip()) if said.strip() else date.today()
    return f"{day.day} {day:%B %Y}"


def pages_of(pdf):
    """Return {id: the page on which it stands}, of all places that a link leads to."""
    numbers = {page.objgen: i for i, page in enumerate(pdf.pages, 1)}
    named = pdf.Root.get("/Dests", {})
    return {_name(key): numbers[named[key][0].objgen] for key in named}


def _name(key):
    """Return a name of PDF, in which # and two digits are a byte of UTF-8, as text."""
    byte = re.compile(rb"#([0-9A-Fa-f]{2})")
    raw = byte.sub(lambda m: bytes.fromhex(m[1].decode()), key.encode())
    return raw[1:].decode("utf-8")


def empty_pages(pdf):
    """Return the numbers of the pages that hold nothing but their head and their
    number.

    What is in the margin is marked as an artifact, and has no number of content.
    """
    empty = []
    for number, page in enumerate(pdf.pages, 1):
        content = b"".join(part.read_bytes() for part in _streams(page))
        if not re.search(rb"/\w+\s*<<\s*/MCID", content):
            empty.append(number)
    return empty


def _streams(page):
    contents = page.obj["/Contents"]
    return list(contents) if isinstance(contents, pikepdf.Array) else [contents]


def printed(browser, paper, file):
    """Print `paper` from the HTML `file` until its numbers are right: the path."""
    version = browser.call("Browser.getVersion")["product"]
    if int(re.search(r"/(\d+)", version)[1]) < NEEDED_CHROMIUM:
        raise RenderError(f"{version} is too old: make pdf needs {NEEDED_CHROMIUM}.")
    known = None
    for _ in range(4):
        file.write_text(paper.html(known), "utf-8")
        tab = browser.page()
        tab.open(file.as_uri())
        data = tab.pdf(
            generateTaggedPDF=True, printBackground=True, preferCSSPageSize=True
        )
        tab.close()
        file.with_suffix(".pdf").write_bytes(data)
        with pikepdf.open(file.with_suffix(".pdf")) as pdf:
            found = pages_of(pdf)
        if lost := paper.targets() - found.keys():
            raise RenderError(f"No page has these targets: {sorted(lost)}")
        found = {home: found[home] for home in paper.targets()}
        if found == known:
            return file.with_suffix(".pdf")
        known = found
    raise RenderError("The page numbers still change after four prints.")


def bookmark(pdf, entries):
    """Write the bookmarks: Chromium's own have the running heads in their words."""
    places = {_name(key): place for key, place in pdf.Root.Dests.items()}
    with pdf.open_outline() as outline:
        branches = [outline.root]
        for level, words, home in entries:
            item = pikepdf.OutlineItem(words, pikepdf.Array(places[home]))
            item.is_closed = True
            del branches[min(level, len(branches) - 1) + 1 :]
            branches[-1].append(item)
            branches.append(item.children)


def share_pictures(pdf):
    """Keep one copy of identical pictures; Chromium makes one per hatched bar."""
    kept, same = {}, {}
    pictures = [o for o in pdf.objects if isinstance(o, pikepdf.Stream)]
    pictures = [o for o in pictures if o.get("/Subtype") == "/Image"]
    # A mask has no mask of its own, so masks come first.
    for picture in sorted(pictures, key=lambda o: "/SMask" in o):
        mask = None
        if "/SMask" in picture:
            picture.SMask = same[picture.SMask.objgen]
            mask = picture.SMask.objgen
        what = repr(sorted(picture.keys())), int(picture.Width), int(picture.Height)
        content = (mask, what, str(picture.get("/ColorSpace")))
        content += (picture.read_raw_bytes(),)
        same[picture.objgen] = kept.setdefault(content, picture)
    for holder in pdf.objects:
        if isinstance(holder, pikepdf.Stream) and "/Resources" in holder:
            used = holder.Resources.get("/XObject", {})
            for name, drawn in used.items():
                if drawn.objgen in same:
                    used[name] = same[drawn.objgen]


def finished(raw, target, said, entries):
    """Check the PDF, write its metadata, compress it; return the number of pages."""
    pikepdf.settings.set_flate_compression_level(9)
    with pikepdf.open(raw) as pdf:
        if empty := empty_pages(pdf):
            raise RenderError(f"These pages are empty: {empty}")
        bookmark(pdf, entries)
        share_pictures(pdf)
        with pdf.open_metadata() as metadata:
            metadata["dc:title"] = said["title"]
            metadata["dc:creator"] = said["authors"]
            metadata["dc:description"] = said["abstract"]
            metadata["dc:language"] = ["en"]
        pdf.docinfo["/Author"] = ", ".join(said["authors"])
        pdf.docinfo["/Title"] = said["title"]
        pdf.docinfo["/Subject"] = f"Version {said['version']}, {said['date']}"
        if "/Creator" in pdf.docinfo:
            del pdf.docinfo["/Creator"]
        pdf.Root.PageMode = pikepdf.Name.UseOutlines
        pdf.Root.ViewerPreferences = pikepdf.Dictionary(DisplayDocTitle=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        pdf.save(target, object_stream_mode=pikepdf.ObjectStreamMode.generate,
                 recompress_flate=True)
        return len(pdf.pages)


def main():
    """Write the PDF; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("chapters", nargs="*", help="print only these")
    asked = parser.parse_args()
    root = asked.root.resolve()
    program = find_chromium()
    if program is None:
        print("make pdf needs Chromium: apt-get install chromium", file=sys.stderr)
        return 1
    only = [re.sub(r"\.(ipynb|md)$", "", name) for name in asked.chapters]
    target = root / PDF
    if only:
        target = target.with_name(f"{target.stem}_selection.pdf")
    work = root / "_build" / "paper"
    toc = yaml.safe_load((root / "_toc.yml").read_text("utf-8"))
    try:
        copy_to_render(root, work)
        joined = build(work, "singlehtml", strict=True)
        html = (joined / f"{toc['root']}.html").read_text("utf-8")
        said = about(root)
        paper = Paper(html, toc, said, only)
        with Browser(program, deadline=DEADLINE) as browser:
            raw = printed(browser, paper, joined / "book.html")
        pages = finished(raw, target, said, paper.entries)
    except (RenderError, BrowserError, ValueError) as error:
        print(f"{error}\nThe book was not printed.", file=sys.stderr)
        return 1
    size = target.stat().st_size
    if size > LARGEST:
        print(f"{target} has {size / 1e6:.1f} MB, more than {LARGEST / 1e6:.0f}.",
              file=sys.stderr)
        return 1
    if not only:
        link_pdf(root)
    print(f"Printed {pages} pages, {size / 1e6:.1f} MB: {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
