"""Prints the whole book as one PDF, from the stored outputs: `make pdf`.

Sphinx joins the pages into one, and Chromium prints that, with bookmarks.
"""

import argparse
import sys
from pathlib import Path

from bs4 import BeautifulSoup

from browser import Browser, find_chromium
from sources import RenderError, build, copy_sources

#: Where the book lands, below its root.
BOOK = Path("_build/many_devices.pdf")
STYLE = Path(__file__).with_name("pdf.css")
FOOTER = (
    '<div style="width: 100%; font: 8pt sans-serif; color: #555; text-align: center">'
    '<span class="pageNumber"></span></div>'
)


def book_page(html):
    """The joined pages with a title page and a list of contents, as HTML.

    All around the text is dropped, and every script but that of the mathematics.
    Cells that the reader may open are open.
    """
    soup = BeautifulSoup(html, "html.parser")
    article = soup.find("article")
    for tag in article.select(".headerlink, .copybtn, script:not([type])"):
        if not tag.find_parent(class_="d2l-figure"):
            tag.decompose()
    for script in soup.head.find_all("script"):
        if "mathjax" not in str(script).lower():
            script.decompose()
    soup.html["data-theme"] = soup.html["data-mode"] = "light"
    for details in article.find_all("details"):
        details["open"] = ""
    article.find("h1").insert_after(contents(soup, article))
    soup.body.clear()
    soup.body.append(article)
    soup.head.append(_tag(soup, "style", STYLE.read_text("utf-8")))
    return str(soup)


def contents(soup, article):
    """A list of the chapters and their sections; each chapter's heading is marked."""
    listing = soup.new_tag("ul", id="contents")
    # Sphinx puts an empty span before each page that it joins.
    for span in article.select('span[id^="document-"]'):
        chapter = span.find_next("section")
        _heading(chapter)["class"] = "chapter"
        listing.append(_entry(soup, chapter, "of-chapter"))
        for section in chapter.find_all("section", recursive=False):
            if _heading(section).get_text() not in ("Summary", "Exercises"):
                listing.append(_entry(soup, section, "of-section"))
    return listing


def _entry(soup, section, kind):
    item = soup.new_tag("li", attrs={"class": kind})
    text = " ".join(_heading(section).get_text().split())
    item.append(_tag(soup, "a", text, href=f"#{section['id']}"))
    return item


def _heading(section):
    return section.find(["h1", "h2", "h3", "h4"])


def _tag(soup, name, text, **attributes):
    tag = soup.new_tag(name, attrs=attributes)
    tag.string = text
    return tag


def main():
    """Write the PDF; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1])
    root = parser.parse_args().root.resolve()
    program = find_chromium()
    if program is None:
        print("make pdf needs Chromium: apt-get install chromium", file=sys.stderr)
        return 1
    work = root / "_build" / "stored"
    copy_sources(root, work)
    try:
        pages = build(work, "singlehtml", strict=True)
    except RenderError as error:
        print(f"{error}\nThe book was not rendered.", file=sys.stderr)
        return 1
    page = pages / "whole.html"
    page.write_text(book_page((pages / "intro.html").read_text("utf-8")), "utf-8")
    with Browser(program, deadline=300) as browser:
        tab = browser.page()
        tab.open(page.as_uri())
        (root / BOOK).write_bytes(
            tab.pdf(
                generateDocumentOutline=True,
                displayHeaderFooter=True,
                headerTemplate="<span></span>",
                footerTemplate=FOOTER,
                printBackground=True,
                preferCSSPageSize=True,
            )
        )
    print(f"Printed the book: {root / BOOK}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
