"""What the search page knows of the pages, beyond Sphinx's index.

Sphinx's index says on which pages a word occurs, not how often, and a browser that
reads the book from files may not open the pages for an excerpt. So `search_words.js`
holds, for each word, how often the chapters say it, and the first words of every page.
"""

import json
import re
from collections import Counter
from functools import lru_cache
from pathlib import Path

from pages import first_words
from sphinx.search.en import SearchEnglish

FILE = "search_words.js"
WORD = re.compile(r"[^\W_]+")
#: Of the chapters that say a word, so many are kept, and a word that is said less than
#: `LEAST` times in each of them is not.
KEPT, LEAST = 4, 3


def words(text):
    return WORD.findall(text.lower())


def counted(texts, stem):
    """page -> text: for each stem, {page's number: share of the most, in percent}."""
    tallies = [Counter(map(stem, words(text))) for text in texts.values()]
    found = {}
    for i, tally in enumerate(tallies):
        for word, count in tally.items():
            found.setdefault(word, {})[i] = count
    return {
        word: {i: round(100 * n / max(pages.values())) for i, n in _most(pages)}
        for word, pages in sorted(found.items())
        if max(pages.values()) >= LEAST
    }


def _most(pages):
    return sorted(pages.items(), key=lambda page: -page[1])[:KEPT]


def remember(app, doctree):
    """Keep the text and the first words of each page as it is read."""
    if not hasattr(app.env, "said_on_pages"):
        app.env.said_on_pages = {}
    app.env.said_on_pages[app.env.docname] = (doctree.astext(), first_words(doctree))


def write(app, error):
    said = getattr(app.env, "said_on_pages", {})
    if error or app.builder.name != "html":
        return
    stem = lru_cache(maxsize=None)(SearchEnglish({}).stem)  # words recur
    chapters = {p: said[p][0] for p in sorted(said) if p.startswith("chapters/")}
    counts = counted(chapters, stem)
    spoken = {word for text in chapters.values() for word in words(text)}
    stems = {word: stem(word) for word in sorted(spoken)
             if stem(word) != word and stem(word) in counts}
    held = {
        "pages": list(chapters), "counts": counts, "stems": stems,
        "titles": [app.env.titles[page].astext() for page in chapters],
        "excerpts": {page: first for page, (_, first) in sorted(said.items())},
    }
    text = json.dumps(held, separators=(",", ":"), ensure_ascii=False)
    (Path(app.outdir) / "_static" / FILE).write_text(
        f"window.SEARCH_WORDS={text};", encoding="utf-8"
    )


def on_search_page(app, pagename, templatename, context, doctree):
    if pagename == "search":
        app.add_js_file(FILE, priority=100)


def purge(app, env, docname):
    getattr(env, "said_on_pages", {}).pop(docname, None)


def merge(app, env, docnames, other):
    env.said_on_pages = {
        **getattr(env, "said_on_pages", {}), **getattr(other, "said_on_pages", {})
    }


def setup(app):
    app.connect("doctree-read", remember)
    app.connect("env-purge-doc", purge)
    app.connect("env-merge-info", merge)
    app.connect("html-page-context", on_search_page)
    app.connect("build-finished", write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
