"""What must hold for the rendered pages, read as files.

Each check takes a `Site` and gives messages, none when all is well.
"""

import re
from collections import Counter
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup

#: Attributes by which an element loads something while the page is shown.
LOADING = {"object": "data", "link": "href", **dict.fromkeys(
    ("script", "img", "iframe", "source", "video", "audio", "embed"), "src",
)}
#: Relations of a <link> that only point somewhere.
POINTING = {"author", "canonical", "index", "license", "next", "prev", "search"}
OUTSIDE_CSS = re.compile(r"""(?:url\(|@import)\s*['"]?\s*((?:https?:)?//[^'")\s]+)""")


class Site:
    """The pages below a folder: `pages` maps a path to its parsed page."""

    def __init__(self, folder):
        self.folder = Path(folder).resolve()
        # The theme leaves its templates below _static; they are no pages.
        files = sorted(
            set(self.folder.glob("**/*.html"))
            - set(self.folder.glob("_static/**/*.html"))
        )
        self.pages = {
            path.resolve(): BeautifulSoup(path.read_text("utf-8"), "html.parser")
            for path in files
        }
        self._ids = {
            path: {tag["id"] for tag in page.find_all(id=True)}
            for path, page in self.pages.items()
        }

    def name(self, path):
        return path.relative_to(self.folder).as_posix()

    def resolve(self, page, href):
        """The file and the fragment that a link of `page` leads to."""
        url = urlsplit(href)
        path = (page.parent / unquote(url.path)).resolve() if url.path else page
        return path, unquote(url.fragment)

    def has(self, path, fragment):
        return fragment in self._ids.get(path, ())


def is_outside(url):
    return url.startswith("//") or urlsplit(url).scheme in ("http", "https")


def is_file(url):
    return not urlsplit(url).scheme and not url.startswith("//")


def broken_links(site):
    """Links inside the book whose page or anchor does not exist."""
    for page, soup in site.pages.items():
        for link in soup.find_all("a", href=True):
            if not is_file(link["href"]) or link["href"] == "#":
                continue
            path, fragment = site.resolve(page, link["href"])
            if not path.is_file():
                yield f"{site.name(page)}: {link['href']} is no file"
            elif fragment and path in site.pages and not site.has(path, fragment):
                yield f"{site.name(page)}: {link['href']} is no anchor"


def loaded(soup):
    """Everything that a page loads: pairs of element name and address."""
    for name, attribute in LOADING.items():
        for tag in soup.find_all(name, **{attribute: True}):
            if not set(tag.get("rel", [])) & POINTING:
                yield name, tag[attribute]


def outside_resources(site):
    """Scripts, styles, images and fonts that would need a network."""
    for page, soup in site.pages.items():
        outside = [f"<{name}> {url}" for name, url in loaded(soup) if is_outside(url)]
        styles = [tag.get_text() for tag in soup.find_all("style")]
        styles += [tag["style"] for tag in soup.find_all(style=True)]
        outside += [url for text in styles for url in OUTSIDE_CSS.findall(text)]
        yield from (f"{site.name(page)} loads {url}" for url in outside)
    for sheet in sorted(site.folder.glob("**/*.css")):
        urls = OUTSIDE_CSS.findall(sheet.read_text("utf-8", errors="replace"))
        yield from (f"{site.name(sheet)} loads {url}" for url in urls)


def missing_resources(site):
    """Scripts, styles and images that were not put beside the pages."""
    return [
        f"{site.name(page)}: <{name}> {url} is no file"
        for page, soup in site.pages.items()
        for name, url in loaded(soup)
        if is_file(url) and url and not site.resolve(page, url)[0].is_file()
    ]


def images_without_text(site):
    return [
        f"{site.name(page)}: the image {image.get('src')} has no alternative text"
        for page, soup in site.pages.items()
        for image in soup.find_all("img")
        if not (image.get("alt", "").strip() or _is_decoration(image))
    ]


def _is_decoration(image):
    return bool(image.find_parent(attrs={"aria-hidden": "true"}))


def figures_without_caption(site):
    """Images, drawings and interactive figures of the text that lack words.

    An image stands in a figure with a caption. A drawing in the page says what it
    shows, and an interactive figure says it in words below.
    """
    return [
        f"{site.name(page)}: {what} has no words"
        for page, soup in site.pages.items()
        for article in soup.find_all("article")
        for what in _bare(article)
    ]


def _bare(article):
    for image in article.find_all("img", src=True):
        if not (_has_caption(image) or _is_decoration(image)):
            yield f"the image {image['src']}"
    for drawing in article.find_all("svg"):
        if not drawing.get("aria-label", "").strip():
            yield f"the drawing {str(drawing)[:60]}"
    for figure in article.find_all(class_="d2l-figure"):
        if not any(p.get_text().strip() for p in figure.find_all("p")):
            yield f"the figure {figure.get('id')}"


def _has_caption(image):
    figure = image.find_parent("figure")
    caption = figure.find("figcaption") if figure else None
    return bool(caption and caption.get_text().strip())


#: Of a page and its own images; the style sheets, scripts and fonts are shared.
HEAVIEST = 1_500_000


def heavy_pages(site):
    for page, soup in site.pages.items():
        paths = {site.resolve(page, url)[0] for name, url in loaded(soup)}
        files = [page, *(p for p in paths if "_images" in p.parts and p.is_file())]
        weight = sum(file.stat().st_size for file in files)
        if weight > HEAVIEST:
            yield f"{site.name(page)} weighs {weight:,} bytes"


def undescribed_pages(site):
    """Pages that have no title or description of their own, or no preview."""
    seen = {}
    for page, soup in site.pages.items():
        said = {"title": soup.title.get_text().strip() if soup.title else ""}
        for tag in soup.find_all("meta", content=True):
            said[tag.get("name") or tag.get("property")] = tag["content"].strip()
        is_plain = page.name in PLAIN
        for what in ("title", "description") + (() if is_plain else PREVIEW):
            if not said.get(what):
                yield f"{site.name(page)} has no {what}"
        for what in () if is_plain else ("title", "description"):
            other = seen.setdefault((what, said.get(what)), page)
            if said.get(what) and other != page:
                yield f"{site.name(page)} has the {what} of {site.name(other)}"


#: Pages that nobody links to, written by hand.
PLAIN = {"404.html", "index.html"}
PREVIEW = ("og:title", "og:description", "og:type")


#: The theme's own fault, in its release for Python 3.9 and 3.10: the search page has
#: a field of its own and one in its header. No link leads there.
THEME_DOUBLES = {("search.html", "search-input")}


def doubled_ids(site):
    """An anchor that stands twice on a page leads to the wrong place."""
    for page, soup in site.pages.items():
        counts = Counter(tag["id"] for tag in soup.find_all(id=True))
        for i, n in counts.items():
            if n > 1 and (site.name(page), i) not in THEME_DOUBLES:
                yield f"{site.name(page)}: the id {i} stands {n} times"


def empty_headings(site):
    """A screen reader announces a heading, and then nothing."""
    return [
        f"{site.name(page)} has an empty {heading.name}"
        for page, soup in site.pages.items()
        for heading in soup.find_all(re.compile("^h[1-6]$"))
        if not heading.get_text(strip=True) and not heading.find("img", alt=True)
    ]


#: Where a link to the glossary has no place.
NO_TERMS_IN = ["a", "code", "pre", "h1", "h2", "h3", "h4", "nav"]


def misplaced_terms(site):
    """A chapter links terms to the glossary: each once, and only in running text."""
    for page, soup in site.pages.items():
        name, terms = site.name(page), soup.find_all("a", class_="glossary-term")
        for href, n in Counter(term["href"] for term in terms).items():
            if n > 1:
                yield f"{name} links {href} {n} times"
        for term in terms:
            if closed := term.find_parent(NO_TERMS_IN):
                yield f"{name} links the term {term.get_text()!r} in <{closed.name}>"
        is_chapter = page.parent.parent.name == "chapters"
        glossary = site.folder / "reference/glossary.html"
        if is_chapter and not terms and glossary in site.pages:
            yield f"{name} links no term of the glossary"


def unlinked_claims(site, claims):
    """Every claim has a row; a shown one links to its cell, and the cell back."""
    ledger = site.folder / "reference/claims.html"
    for claim in claims:
        row = site.pages[ledger].find("tr", id=f"row-{claim.id}")
        if row is None:
            yield f"claims.html has no row for {claim.id}"
        elif claim.verdict != "open":
            page = site.folder / f"{claim.chapter}.html"
            there = (page, f"claim-{claim.id}")
            back = (ledger, f"row-{claim.id}")
            if there not in _targets(site, ledger, row) or not site.has(*there):
                yield f"the row of {claim.id} has no link to its cell"
            elif back not in _targets(site, page, site.pages[page]):
                yield f"the cell of {claim.id} has no link to its row"


def _targets(site, page, part):
    return [site.resolve(page, a["href"]) for a in part.find_all("a", href=True)]
