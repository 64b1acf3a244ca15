"""The joined pages as a book on paper: HTML in, HTML out. `pdf.py` prints it.

    cover, imprint, contents, about this book
    part after part, each with a page that lists its chapters, 1, 2, 3 …
    the reference, whose pages are appendices A, B, C …
    solutions, under the numbers of their chapters

Controls, scripts, folds and their labels are dropped, because paper cannot use them. A
reference to a page has `data-page`, the id of its target; its number is inserted when a
first print has shown on which page the target is.
"""

import json
import re
from pathlib import Path

from bs4 import BeautifulSoup
from docutils.utils.roman import toRoman

import one_framework

#: Words of a fold that say nothing once it is open.
EMPTY_WORDS = re.compile(r"(Show|Hide) |Set-up$")
#: Code that only draws what stands below it is left to the notebook.
DRAWS = re.compile(r"Show code cell source|Code of the figure|How this is drawn")
#: Pieces of code in the colour of the text around them; most of a book's elements.
PLAIN = "span.n, span.p, span.w, span.nn, span.nx, span.o, .highlight pre > span:empty"
#: Code of more lines may go on on the next page.
LONG = 20
#: A number of a page as long as it is not known. It is as wide as one.
UNKNOWN = "000"


class Chapter:
    """A page of the book: `name` in the table of contents, its section, its number."""

    def __init__(self, name, section, number, part=""):
        self.name, self.section, self.number, self.part = name, section, number, part
        self.heading = section.find(["h1", "h2"])
        self.title = " ".join(self.heading.get_text().split())

    @property
    def numbered(self):
        return f"{self.number} {self.title}".strip()


class Paper:
    """The book that is to be printed.

    html: Sphinx's single page; toc: `_toc.yml`, read; about: the words of the cover
    (`title`, `abstract`, `authors`, `version`, `date`, `license`, `drawing`); only:
    names of chapters, if not all are printed. Numbers are those of the whole book.
    """

    def __init__(self, html, toc, about, only=()):
        self.soup = BeautifulSoup(html, "html.parser")
        self.about, self.only = about, set(only)
        #: [(level, words, id)] of the bookmarks.
        self.entries = []
        article = self.soup.find("article")
        _drop(article)
        self.chapters = self._chapters(article, toc)
        self.intro = article.find("section")
        _links(self.intro, self.chapters)
        names = {chapter.name for chapter in self.chapters}
        if missing := sorted(self.only - names):
            raise ValueError(f"No such page: {', '.join(missing)}; there is {names}.")
        self.printed = [
            c for c in self.chapters if not self.only or c.name in self.only
        ]
        body = self._body(self._asked())
        self._head()
        self.soup.body.clear()
        self.soup.body.append(body)
        self._cut_dead_links(body)

    def html(self, pages=None):
        """Return the book as HTML. pages: `{id: page}`, of a print before."""
        for place in self.soup.select("[data-page]"):
            known = (pages or {}).get(place["data-page"], UNKNOWN)
            place.string = str(known)
        return str(self.soup)

    def targets(self):
        """Return the ids of all targets of references to pages."""
        return {place["data-page"] for place in self.soup.select("[data-page]")}

    def _chapters(self, article, toc):
        """Return all pages but the first, in the order of the contents."""
        found, number, letter = [], 0, 0
        for part in toc["parts"]:
            for entry in part["chapters"]:
                name = entry["file"]
                span = article.find("span", id=f"document-{name}")
                if span is None:
                    raise ValueError(f"{name} is in _toc.yml, but not in the pages.")
                if name.startswith("chapters/"):
                    number += 1
                    shown = str(number)
                else:
                    letter += 1
                    shown = _letter(letter)
                section = span.find_next("section")
                found.append(Chapter(name, section, shown, part["caption"]))
        for chapter in found:
            chapter.section.extract()
        for rest in article.select(".toctree-wrapper"):
            rest.decompose()
        return found

    # -- what stands where

    def _body(self, asked):
        body = self.tag("main", id="book")
        body.append(self._cover())
        body.append(self._imprint())
        self.listing = self.tag("ul")
        contents = self.tag("nav", id="contents", style="page: contents")
        contents.extend([self.tag("h1", "Contents"), self.listing])
        body.append(contents)
        if not self.only:
            self._about(body)
        part, count = None, 0
        for chapter in self.chapters:
            if chapter.part != part:
                part, count = chapter.part, count + 1
                roman, home = toRoman(count), f"part-{count}"
                of = [c for c in self.printed if c.part == part]
                if of and self.only:
                    home = of[0].section["id"]
                elif of:
                    body.append(self._part(f"Part {roman}", part, home, of))
                if of:
                    self._list(f"{roman} {part}", home, "of-part")
            if chapter in self.printed:
                body.append(self._chapter(chapter))
        if solutions := self._solutions(asked):
            body.append(solutions)
        return body

    def _cover(self):
        about, cover = self.about, self.tag("section", id="cover")
        cover.append(BeautifulSoup(about["drawing"], "html.parser"))
        cover.append(self.tag("h1", about["title"]))
        cover.append(self.tag("p", about["subtitle"], "subtitle"))
        cover.append(self.tag("p", ", ".join(about["authors"]), "authors"))
        cover.append(self.tag("p", f"Version {about['version']} · {about['date']}"))
        if self.only:
            cover.append(self.tag("p", "A selection of chapters", "selection"))
        return cover

    def _imprint(self):
        about, page = self.about, self.tag("section", id="imprint")
        by = ", ".join(about["authors"])
        on_paper = (
            "Every output was printed or drawn by the cell above it, in the notebook "
            "of its chapter. On paper, code that only draws a figure is left out, "
            "figures that play stand still, and hints and solutions are at the end."
        )
        for words in (
            f"{about['title']}, version {about['version']}, {about['date']}: {by}",
            about["abstract"],
            on_paper,
            f"License: {about['license']}. CITATION.cff says how to cite the book.",
        ):
            page.append(self.tag("p", words))
        return page

    def _about(self, body):
        heading = self.intro.find("h1")
        heading.string, self.intro["id"] = "About this book", "about"
        self.intro["class"] = "chapter"
        self.intro["style"] = "page: about"
        # The contents and the pages of the parts have it.
        for listed in self.intro.select("ul.book-contents"):
            section = listed.find_parent("section")
            if section is not None and section is not self.intro:
                section.extract()
        self._list("About this book", "about", "of-part")
        body.append(self.intro)

    def _part(self, number, title, home, chapters):
        page = self.tag("section", id=home, **{"class": "part"})
        heading = self.tag("h1")
        heading.extend([self.tag("span", number, "number"), f" {title}"])
        page.append(heading)
        for chapter in chapters:
            line = self.tag("p")
            link = self.tag("a", chapter.numbered, href=f"#{chapter.section['id']}")
            line.append(link)
            if question := self.about["questions"].get(chapter.name):
                line.extend([self.tag("br"), self.tag("em", question)])
            page.append(line)
        return page

    def _chapter(self, chapter):
        section, heading = chapter.section, chapter.heading
        heading.clear()
        heading.extend([self.tag("span", chapter.number, "number"), " ", chapter.title])
        section["class"] = "chapter"
        section["style"] = f"page: p{chapter.number}"
        self._list(chapter.numbered, section["id"], "of-chapter")
        for inner in section.find_all("section", recursive=False):
            words = " ".join(_heading(inner).get_text().split())
            if words not in ("Summary", "Exercises"):
                self._list(words, inner["id"], "of-section")
        return section

    def _list(self, words, home, kind):
        item, link = self.tag("li", **{"class": kind}), self.tag("a", href=f"#{home}")
        link.extend([self.tag("span", words, "title"), self._page(home)])
        item.append(link)
        self.listing.append(item)
        level = ("of-part", "of-chapter", "of-section").index(kind)
        self.entries.append((level, words, home))

    def _page(self, home):
        return self.tag("span", UNKNOWN, "page", **{"data-page": home})

    # -- solutions

    def _asked(self):
        """Take the answers out: [(chapter, [(heading, home, [answers])])]."""
        found = []
        for chapter in self.printed:
            answers = []
            for section in chapter.section.find_all("section"):
                folds = [d for d in section.find_all("details") if _answers(d, section)]
                if not folds:
                    continue
                words = " ".join(_heading(section).get_text().split())
                home = f"solution-{chapter.number}-{len(answers) + 1}"
                link = self.tag("a", "Solution", href=f"#{home}")
                link.extend([", page ", self._page(home)])
                moved = [_whole(fold) for fold in folds]
                place = self.tag("p", "", "to-solution")
                place.append(link)
                moved[-1].insert_after(place)
                answers.append((words, section["id"], home, moved))
                for fold in moved:
                    fold.extract()
            if answers:
                found.append((chapter, answers))
            _open(chapter.section, self.tag)
        _open(self.intro, self.tag)
        return found

    def _solutions(self, asked):
        if not asked:
            return None
        whole = self.tag("section", id="solutions")
        for chapter, answers in asked:
            part = self.tag("section", style=f"page: s{chapter.number}")
            if not whole.contents:
                self._list("Solutions", "solutions", "of-part")
                part.append(self.tag("h1", "Solutions"))
            self.entries.append((1, chapter.numbered, answers[0][2]))
            whole.append(part)
            part.append(self.tag("h2", chapter.numbered))
            for words, asks, home, moved in answers:
                one = self.tag("section", id=home, **{"class": "solution"})
                heading, link = (
                    self.tag("h3", f"{words} "),
                    self.tag("a", href=f"#{asks}"),
                )
                link.extend(["asked on page ", self._page(asks)])
                back = self.tag("p", "", "to-question")
                back.append(link)
                one.extend([heading, back, *moved])
                _open(one, self.tag)
                part.append(one)
        return whole

    # -- around it

    def _head(self):
        """Keep the style and the mathematics; write the running heads."""
        soup, about = self.soup, self.about
        for script in soup.head.find_all("script"):
            if "mathjax" not in str(script).lower():
                script.decompose()
        for meta in soup.head.find_all("meta", attrs={"property": True}):
            meta.decompose()
        soup.html["data-theme"] = soup.html["data-mode"] = "light"
        soup.head.title.string = about["title"]
        heads = [("contents", "", "Contents"), ("about", "", "About this book")]
        heads += [(f"p{c.number}", c.part, c.numbered) for c in self.printed]
        heads += [(f"s{c.number}", "Solutions", c.numbered) for c in self.printed]
        rules = [
            f"@page {name} {{ @top-left {{ content: {_css(left)} }} "
            f"@top-right {{ content: {_css(right)} }} "
            "@bottom-center { content: counter(page) } }"
            for name, left, right in heads
        ]
        style = Path(__file__).with_name("pdf.css").read_text("utf-8")
        soup.head.append(self.tag("style", style + "\n".join(rules)))

    def _cut_dead_links(self, body):
        """Cut links to pages that are not in a selection: they become plain text."""
        homes = {tag["id"] for tag in body.find_all(id=True)}
        for link in body.find_all("a", href=True):
            if link["href"][0] == "#" and link["href"][1:] not in homes:
                if not self.only:
                    raise ValueError(f"A link leads nowhere: {link}")
                link.unwrap()

    def tag(self, name, text="", kind=None, **attributes):
        tag = self.soup.new_tag(name, attrs=attributes)
        if kind:
            tag["class"] = kind
        if text:
            tag.string = text
        return tag


def _heading(section):
    return section.find(["h1", "h2", "h3", "h4", "h5"])


def _letter(count):
    """Return a … Z, AA …"""
    return ("" if count <= 26 else _letter((count - 1) // 26)) + chr(
        65 + (count - 1) % 26
    )


def _css(words):
    return json.dumps(words, ensure_ascii=False)


def _drop(article):
    """Take out what only a screen can use."""
    selectors = (
        ".headerlink, .copybtn, .only-dark, script:not([type]), .d2l-figure script, "
        ".d2l-figure .controls, .d2l-figure [aria-live]:empty, .on-screen"
    )
    for tag in article.select(selectors):
        tag.decompose()
    one_framework.keep(article)
    for cell in article.select("div.cell"):
        fold = cell.find("details", class_="hide", recursive=False)
        drawn = cell.select_one(".cell_output :is(img, svg, figure)")
        if fold and drawn and DRAWS.match(_words(fold)):
            fold.decompose()
    for code in article.find_all("pre"):
        if code.get_text().count("\n") > LONG:
            code["class"] = [*code.get("class", []), "long"]
    for span in article.select(PLAIN):
        span.unwrap()
    for link in article.select("a.image-reference, a[href^='_images/']"):
        link.unwrap()


def _words(fold):
    """Return the label of a fold: of two, for open and closed, the latter."""
    summary = fold.find("summary")
    said = summary.find(class_="collapsed") or summary
    return " ".join(said.get_text().split())


def _answers(fold, section):
    """Return whether `fold` is a hint or a solution of `section` itself."""
    return fold.find_parent("section") is section and re.match(
        r"Hint$|Show solution", _words(fold)
    )


def _whole(fold):
    """Return the cell whose fold this is, or the fold itself."""
    cell = fold.find_parent("div", class_="cell")
    return cell or fold


def _open(section, tag):
    """Turn folds into boxes, with a title if it says something."""
    for fold in section.find_all("details"):
        words, summary = _words(fold), fold.find("summary")
        if EMPTY_WORDS.match(words):
            summary.decompose()
        else:
            twice = summary.find(class_="expanded")
            if twice:
                twice.decompose()
            summary.name, summary["class"] = "p", "fold-title"
            del summary["aria-label"]
            for inner in summary.find_all("p"):
                inner.unwrap()
        fold.name = "div"
        fold["class"] = "fold" if words.startswith("In MXNet") else "opened"


def _links(intro, chapters):
    """Make ids unique, and links lead to the same places as in the single pages.

    Sphinx joins pages whose headings may have the same names, and numbers the entries
    of the bibliography as if no other page had numbers.
    """
    pages = [("intro", intro), *((c.name, c.section) for c in chapters)]
    homes, first = {}, {}
    for name, section in pages:
        own = homes[name] = {}
        for tag in [section, *section.find_all(id=True)]:
            if not tag.find_parent(class_="d2l-figure"):
                home = tag["id"]
                own[home] = f"{name}:{home}" if home in first else home
                first.setdefault(home, own[home])
                tag["id"] = own[home]
        first[f"document-{name}"] = section["id"]
    for name, section in pages:
        for link in section.find_all("a", href=re.compile(r"^(intro\.html)?#")):
            there, _, home = link["href"].partition("#")
            if there and re.match(r"id\d+$", home):
                own = homes.get("reference/bibliography", {})
            else:
                own = {} if there else homes[name]
            link["href"] = "#" + own.get(home, first.get(home, home))
