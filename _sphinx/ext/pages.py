"""What every page says about itself, and what of its making is mended.

A page is described by its own first words, for search engines and for the previews
that messengers show. Previews also have a picture, and pages their full address,
once `html_baseurl` names where the book is published: both must be absolute.

Scripts that the book does not use are left out. Thebe, which runs cells on a server,
is one: it would stand there twice, and the second one throws. And some of the HTML
that docutils and Sphinx write tells screen readers something untrue.
"""

import re
from html import escape, unescape

from docutils import nodes

#: Of a description, so that previews show it whole.
LONGEST = 200
#: The picture in previews, and what it shows. Drawn in card.svg.
CARD = "_static/card.png"
CARD_TEXT = "Four devices, each with a colour of its own, and lines to the one model."
#: What is written, and what a screen reader should be told instead.
MENDED = (
    # A column without a heading has no heading cell.
    (re.compile(r"<th( [^>]*)?>(<p></p>)?</th>"), "<td></td>"),
    # ARIA has given up the role of an entry; a list must have items.
    (re.compile(' role="(doc-biblioentry|list)"'), ""),
)
#: Jupyter Book's extensions that do not say whether pages may be read side by side.
#: They may: one counts in the parent, when all are read, the other is for LaTeX.
SILENT = ("sphinx_multitoc_numbering", "sphinx_jupyterbook_latex")
#: What a cell prints, and what makes a table of it: gaps inside of two lines.
PRINTED = re.compile(r'<div class="output (?:stream|text_plain)[^"]*(?=">)')
TEXT = re.compile(r">(.*?)</pre>", re.DOTALL)
COLUMNS = re.compile(r"\S {2,}\S")
#: A printed result, and the line of it that says when and where it was recorded.
STREAM = re.compile(r'<div class="output stream.*?</pre>', re.DOTALL)
RECORDED = re.compile(r"Source: (recorded|measured)( [^\n<]*)\n?")
#: Results of a search show a page's words, which no browser reads from a file.
FILES_ARE_NOT_READ = (
    'DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = location.protocol !== "file:";'
)
#: Pages that have no words of their own.
GENERATED = {
    "genindex": ("Index", "Every entry of the book's index."),
    "search": ("Search", "Find a word in the chapters and reference pages."),
}


def first_words(doctree):
    """Return the text of a page's first paragraphs, as much as a description holds."""
    words = ""
    for paragraph in doctree.findall(nodes.paragraph):
        if isinstance(paragraph.parent, nodes.section):
            words = f"{words} {' '.join(paragraph.astext().split())}".strip()
            if len(words) > LONGEST // 3:
                break
    return shortened(words)


def shortened(words):
    """Return `words` up to the last sentence that fits, or else the last word."""
    if len(words) <= LONGEST:
        return words
    part = words[: LONGEST - 1]
    sentence = re.match(r".{60,}[.?!](?=\s)", part)
    return sentence.group() if sentence else part.rsplit(" ", 1)[0].rstrip(",;:") + "…"


def metatags(title, book, description, address, base):
    """Return the tags as HTML. `address`: the page's, below `base`, maybe empty."""
    named = {"description": description}
    properties = {
        "og:type": "article",
        "og:site_name": book,
        "og:title": title,
        "og:description": description,
    }
    if base:
        base = base.rstrip("/") + "/"
        properties.update(
            {
                "og:url": base + address,
                "og:image": base + CARD,
                "og:image:width": "1200",
                "og:image:height": "630",
                "og:image:alt": CARD_TEXT,
            }
        )
        named["twitter:card"] = "summary_large_image"
    return "".join(
        f'\n<meta {kind}="{name}" content="{escape(text)}" />'
        for kind, tags in (("name", named), ("property", properties))
        for name, text in tags.items()
    )


def with_prose(body):
    """Return `body`, with the class `prose`, which wraps, for outputs but tables."""

    def marked(found):
        text = re.sub("<[^>]*>", "", TEXT.search(body, found.end())[1])
        gaps = sum(bool(COLUMNS.search(line)) for line in text.splitlines())
        return found[0] if gaps > 1 else f"{found[0]} prose"

    return PRINTED.sub(marked, body)


def with_badges(body):
    """Return `body`, where a badge above a printed result says when it was recorded."""

    def badged(found):
        said = dict.fromkeys(RECORDED.findall(found[0]))
        badges = (f'<p class="recorded"><b>{how.title()}</b>{where}</p>'
                  for how, where in said)
        return "".join([*badges, RECORDED.sub("", found[0])])

    return STREAM.sub(badged, body)


def complete(app, pagename, templatename, context, doctree):
    """Describe the page, mend it, and drop what it does not use."""
    title, description = GENERATED.get(pagename, (context.get("title", ""), ""))
    if doctree:
        description = first_words(doctree)
    title = unescape(re.sub("<[^>]*>", "", title))
    # The theme's heading on paper, which it leaves empty on a page that it generates.
    context["pagetitle"] = context.get("pagetitle") or title
    context["metatags"] = context.get("metatags", "") + metatags(
        title, app.config.project, description, f"{pagename}.html",
        app.config.html_baseurl,
    )
    for pattern, replacement in MENDED:
        context["body"] = pattern.sub(replacement, context.get("body", ""))
    context["body"] = with_badges(with_prose(context.get("body", "")))
    if pagename == "search":
        app.add_js_file(None, body=FILES_ARE_NOT_READ, priority=900)
    seen = set()
    for kind in ("script_files", "css_files"):
        context[kind] = [file for file in context[kind] if _is_used(file, seen)]


def _is_used(file, seen):
    what = f"{file.filename} {file.attributes.get('body', '')}"
    is_new = what not in seen
    seen.add(what)
    return is_new and "thebe" not in what.lower()


def read_side_by_side(app, _):
    """Answer for `SILENT`; otherwise Sphinx warns, and reads page after page."""
    for name in app.extensions.keys() & SILENT:
        app.extensions[name].parallel_read_safe = True


def setup(app):
    app.connect("config-inited", read_side_by_side)
    # After the theme, which adds files of its own.
    app.connect("html-page-context", complete, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
